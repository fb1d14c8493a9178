"""A source that yields the same Arrow batches from memory, batch and stream: what Spark's Python API itself can do.

With a topic each task also receives the bytes of its partition and computes their checksums, before the rows that they
hold come from memory: what no source can go below that reads them from a broker.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

_ROWS = 10_000
"""Rows of a batch: about what one fetch of ours holds."""


class _Rows:
    def __init__(self, options: dict[str, str]) -> None:
        self.rows, self.tasks, self.size = (int(options[name]) for name in ("rows", "tasks", "size"))
        self.topic, self.bootstrap = options.get("topic"), options.get("bootstrap", "")
        self.counts = [int(count) for count in options.get("counts", "").split()]

    def in_tasks(self) -> Sequence[InputPartition]:
        return [InputPartition(task) for task in range(self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa

        def columns(count: int) -> Any:
            return pa.RecordBatch.from_arrays(
                [pa.nulls(count, pa.binary()), pa.array([b"x" * self.size] * count, pa.binary()),
                 pa.array(["topic"] * count), pa.array([partition.value] * count, pa.int32()),
                 pa.array(range(count), pa.int64()), pa.array([0] * count, pa.timestamp("us", tz="UTC")),
                 pa.array([0] * count, pa.int32())],
                names=["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"])

        whole = columns(_ROWS)
        for left in self._counts(partition.value):
            for count in (*[_ROWS] * (left // _ROWS), left % _ROWS):
                if count:
                    yield whole.slice(0, count)

    def _counts(self, partition: int) -> Iterator[int]:
        """How many rows come together."""
        if self.topic is None:
            yield self.rows // self.tasks
            return
        from benchmarks.receiving import receive_partition

        yield from receive_partition(self.bootstrap, self.topic, partition, self.counts[partition])


class _Reader(_Rows, DataSourceReader):
    def partitions(self) -> Sequence[InputPartition]:
        return self.in_tasks()


class _StreamReader(_Rows, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """All rows are there from the beginning."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        pass

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, int] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, int]:
        return {"rows": self.rows}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self.in_tasks()


class DefaultSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "memory-source"

    def schema(self) -> str:
        return ("key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
                "timestampType int")

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(dict(self.options))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _StreamReader(dict(self.options))
