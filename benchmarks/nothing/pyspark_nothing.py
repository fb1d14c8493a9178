"""A sink that does nothing: what is left is what Spark's Python API costs. Spark finds it by its module's name."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage


class _Writer(DataSourceArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class DefaultSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "nothing"

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return _Writer()
