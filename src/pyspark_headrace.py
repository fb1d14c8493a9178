"""Spark's way of finding us: it imports every top-level module named ``pyspark_*`` and registers its `DefaultSource`.

So `spark.read.format("headrace")` works without `spark.dataSource.register`. Where something is missing that it needs,
the format is there all the same and says what: an error while Spark looks for sources would hide those of all packages.

Read next: `headrace.spark.source`.
"""

# mypy: disallow-subclassing-any=False
# pyspark is not followed by the type checker, so its base classes are Any.
from __future__ import annotations

from collections.abc import MutableMapping

from headrace.errors import DependencyError

__all__ = ["DefaultSource"]

try:
    from headrace.spark.source import HeadraceSource as DefaultSource
except DependencyError as error:
    from pyspark.sql.datasource import DataSource

    _REASON = str(error)

    class DefaultSource(DataSource):  # type: ignore[no-redef]
        """The format where it cannot be used."""

        def __init__(self, options: MutableMapping[str, str]) -> None:
            raise DependencyError(_REASON)

        @classmethod
        def name(cls) -> str:
            """The name for `format()`."""
            return "headrace"
