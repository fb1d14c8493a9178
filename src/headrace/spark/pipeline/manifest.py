"""The files of a directory that Spark's streaming file sink has committed.

The sink lists them in ``_spark_metadata``. Files that are not in the list come from tasks that failed: a reader
that does not know the list counts them too. This module does not import pyspark.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["committed_files"]


def committed_files(directory: Path) -> list[str]:
    """Paths of the committed files, in order.

    Args:
        directory: what the sink was given as its path.

    Raises:
        FileNotFoundError: no streaming query has written there.
    """
    log = directory / "_spark_metadata"
    batches = {entry.name: entry for entry in log.iterdir() if not entry.name.startswith(".")}
    compacted = [int(name.partition(".")[0]) for name in batches if name.endswith(".compact")]
    first = max(compacted, default=-1)
    found: set[str] = set()
    for name, entry in batches.items():
        number = int(name.partition(".")[0])
        if number > first or (number == first and name.endswith(".compact")):
            for line in entry.read_text(encoding="utf-8").splitlines()[1:]:
                found.add(unquote(urlsplit(json.loads(line)["path"]).path))
    return sorted(found)
