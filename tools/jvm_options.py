"""Options of JVMs that live for seconds, as those of the tests do.

They compile little, and take the classes of Kafka or Spark ready made from an archive (the JDK's class data sharing),
where `python -m tools.class_archives` has made one: a start then takes half of the CPU time. A JVM that finds that its
Java or its jars are others leaves the archive alone.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path
from typing import Final

SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Without the compiler that pays off after minutes, and without threads that collect garbage beside the program."""
_ARCHIVES: Final = Path(__file__).parents[1] / ".cache" / "classes"
_SILENT: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive(program: str) -> Path:
    """The file that has, or is to have, the classes of a program.

    Args:
        program: ``spark``, or ``kafka-`` and a version.
    """
    made_from = [os.environ.get("JAVA_HOME"), shutil.which("java")]
    if program == "spark" and (found := importlib.util.find_spec("pyspark")):
        made_from += [found.origin, importlib.metadata.version("pyspark")]
    return _ARCHIVES / f"{program}-{hashlib.sha256(repr(made_from).encode()).hexdigest()[:12]}.jsa"


def short_lived(program: str) -> tuple[str, ...]:
    """`SHORT_LIVED`, with the archive of a program's classes when there is one.

    Args:
        program: ``spark``, or ``kafka-`` and a version.
    """
    file = archive(program)
    return (*SHORT_LIVED, f"-XX:SharedArchiveFile={file}", *_SILENT) if file.exists() else SHORT_LIVED
