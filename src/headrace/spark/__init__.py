"""Kafka as a PySpark data source and sink, and declared pipelines over it.

`spark.read.format("headrace")`, `readStream`, `write` and `writeStream` work as soon as the package is installed: Spark
finds `pyspark_headrace` by itself. `options` and `plan` are pure; `source` and `sink` are Spark's two faces; `pipeline`
runs a file that `spec` has checked. Only `source`, `sink` and `pipeline` import pyspark.
"""

from __future__ import annotations

from importlib.util import find_spec

from headrace.errors import DependencyError

__all__ = ["require_spark"]


def require_spark() -> None:
    """Check that the packages of the extra are installed, before anything imports them.

    Raises:
        DependencyError: one is missing; the text says what to install.
    """
    missing = [name for name in ("pyspark", "pyarrow", "matplotlib") if find_spec(name) is None]
    if missing:
        raise DependencyError(f"this needs {' and '.join(missing)}: pip install headrace[spark]")
