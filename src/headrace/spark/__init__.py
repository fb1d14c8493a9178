"""Kafka as a PySpark data source and sink, and declared pipelines over it.

`spark.read.format("headrace")`, `readStream`, `write` and `writeStream` work as soon as the package is installed: Spark
finds `pyspark_headrace` by itself. `options` and `plan` are pure; `source` and `sink` are Spark's two faces; `pipeline`
runs a file that `spec` has checked. Only `source`, `sink` and `pipeline` import pyspark.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from headrace.errors import DependencyError

__all__ = ["lag", "require_spark"]


def lag(progress: Any) -> dict[tuple[str, int], int]:
    """How far a streaming query is behind its topics, from a progress report of Spark's.

        sum(lag(query.lastProgress).values())

    Args:
        progress: `query.lastProgress`, an entry of `query.recentProgress`, `event.progress` of a listener, or its JSON.

    Returns:
        Records that were not read yet when the micro-batch ended, by topic and partition, over all sources of the
        format headrace; empty for a report without such a source, and for None.
    """
    import json

    from headrace.spark.plan import lag_in_progress

    text = progress if isinstance(progress, str) else getattr(progress, "json", None)
    report = json.loads(text) if isinstance(text, str) else progress
    return lag_in_progress(report["sources"]) if report else {}


def require_spark() -> None:
    """Check that the packages of the extra are installed, before anything imports them.

    Raises:
        DependencyError: one is missing; the text says what to install.
    """
    missing = [name for name in ("pyspark", "pyarrow", "matplotlib") if find_spec(name) is None]
    if missing:
        raise DependencyError(f"this needs {' and '.join(missing)}: pip install headrace[spark]")
