"""`format("headrace")`: Spark's face of Kafka topics, batch and streaming, read as Arrow columns.

What runs where: `DataSource` and `partitions()` in planner processes of the driver; the stream reader's offset methods
in one driver process that lives as long as the query; `read()` in the executors' workers. Readers are pickled on the
way, so they carry options only, and connections are made where they are used. Each of these processes is begun with the
first query that needs it, so it imports the clients only when it uses one.

`pushFilters` is left out on purpose: in Spark 4.3 a pushed filter sticks to the relation and falsifies later queries.

Read next: `headrace.spark.plan` for the arithmetic, `headrace.spark.sink` for the way back.
"""

# mypy: disallow-subclassing-any=False
# pyspark is not followed by the type checker, so its base classes are Any.
from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.spark.options import SinkOptions, SourceOptions
from headrace.spark.plan import (
    DataLossError,
    Offsets,
    Range,
    advance,
    batch_offsets,
    batch_start,
    limit_rows,
    ranges,
    split,
)
from headrace.spark.sink import BatchWriter, StreamWriter
from headrace.spark.values.value_format import has_formats
from headrace.spark.worker import acknowledge_at_once, spare_collections

if TYPE_CHECKING:
    import pyarrow

    from headrace.spark.cluster import ClusterView
    from headrace.spark.values.planned_columns import PlannedColumns
    from headrace.spark.values.value_planning import DecodedRead

__all__ = ["HeadraceSource"]

_COLUMNS: Final = {
    "key": "binary", "value": "binary", "topic": "string", "partition": "int", "offset": "bigint",
    "timestamp": "timestamp", "timestampType": "int",
}
_HEADERS: Final = "array<struct<key:string,value:binary>>"
_ROWS: Final = 20_000
"""Rows of one Arrow batch at most: Spark is quickest between 5,000 and 50,000 and does not cut batches itself."""
_PATIENCE_S: Final = 120.0
"""How long a task waits for data: brokers may restart meanwhile. Spark's connector waits as long."""
_IDLE_S: Final = 0.1
_CHECK_S: Final = 0.05


class HeadraceSource(DataSource):
    """Kafka as a Spark data source. Options as in Spark's own connector: see `headrace.spark.options`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        # Plain and in lower case: the object travels to executors.
        self.options = {name.lower(): value for name, value in options.items()}
        self._planned: PlannedColumns | None = None
        spare_collections()

    @classmethod
    def name(cls) -> str:
        """The name for `format()`."""
        return "headrace"

    def schema(self) -> str | StructType:
        """Columns of Spark's own Kafka source, values and keys in their formats; with includeHeaders also the headers.

        Raises:
            ConfigError: a malformed option of a format, or no schema can be found.
            SchemaRegistryError: the registry did not answer, or refused.
        """
        headers = str(self.options.get("includeheaders", "")).strip().lower() == "true"
        columns = {**_COLUMNS, "headers": _HEADERS} if headers else _COLUMNS
        if not has_formats(self.options):
            return ", ".join(f"{name} {kind}" for name, kind in columns.items())
        return self._decoding().spark_schema(columns)

    def _decoding(self) -> PlannedColumns:
        """What is decoded, settled once: Spark pickles this object between `schema()` and the readers."""
        if self._planned is None:
            from headrace.spark.values.planned_columns import PlannedColumns

            self._planned = PlannedColumns.of(self.options)
        return self._planned

    def _columns(self, schema: StructType) -> tuple[list[str], DecodedRead | None]:
        if not has_formats(self.options):
            return _checked_columns(schema, {**_COLUMNS, "headers": _HEADERS}), None
        planned = self._decoding()
        columns = _checked_columns(schema, planned.kinds({**_COLUMNS, "headers": _HEADERS}))
        planned.check(schema)
        return columns, planned.decoded

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch query."""
        options = SourceOptions.parse(self.options, streaming=False)
        return BatchReader(options, *self._columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader of a streaming query."""
        options = SourceOptions.parse(self.options, streaming=True)
        return StreamReader(options, *self._columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The writer of a batch query; a topic can only be appended to."""
        if overwrite:
            raise ConfigError('a topic cannot be overwritten: write with mode("append")')
        return BatchWriter(SinkOptions.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802 - Spark's name
        """The writer of a streaming query, at least once."""
        return StreamWriter(SinkOptions.parse(self.options), schema)


def _checked_columns(schema: StructType, known: Mapping[str, str]) -> list[str]:
    """The columns to read. A schema that the user gave may leave columns out, which spares their transfer."""
    for each in schema.fields:
        if each.name not in known:
            raise ConfigError(f"column {each.name} cannot be read from a topic: there are {', '.join(known)}")
        found = each.dataType.simpleString()
        if found != known[each.name] or not each.nullable:
            raise ConfigError(f"column {each.name} must be {known[each.name]} and nullable, not {found}")
    return [each.name for each in schema.fields]


class RangePartition(InputPartition):
    """The task of one executor: a range of offsets."""

    def __init__(self, value: Range) -> None:
        super().__init__(value)
        self.value: Range = value


class _Tasks:
    """What batch and streaming readers share: `read()`, on executors."""

    def __init__(self, options: SourceOptions, columns: list[str], decoded: DecodedRead | None = None) -> None:
        self.options = options
        self.columns = columns
        self.decoded = decoded

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        acknowledge_at_once()  # Spark sends the range behind the reader

    def read(self, partition: Any) -> Iterator[pyarrow.RecordBatch]:
        """Read one range as Arrow batches."""
        if partition.value is None:
            return  # Spark's word for a batch read without a range
        if self.decoded is None:
            yield from self._raw(partition.value, self.columns)
            return
        from headrace.spark.values.decoded_batches import decoded_batches, raw_columns

        raw = self._raw(partition.value, raw_columns(self.decoded, self.columns))
        yield from decoded_batches(self.decoded, self.columns, raw)

    def _raw(self, wanted: Range, columns: list[str]) -> Iterator[pyarrow.RecordBatch]:
        try:
            yield from _read_range(self.options, columns, wanted, wanted.start)
        except KafkaException as failed:
            if failed.error not in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
                raise
            if self.options.fail_on_data_loss:
                raise DataLossError(
                    f"records of {wanted} are gone: {failed.error.str()}. Set failOnDataLoss to false to go on with "
                    "what there is, or keep records longer (retention.ms)"
                ) from failed
            yield from self._read_what_is_left(wanted, columns)

    def _read_what_is_left(self, wanted: Range, columns: list[str]) -> Iterator[pyarrow.RecordBatch]:
        view = _view(self.options)
        tp = (wanted.topic, wanted.partition)
        start, end = max(wanted.start, view.earliest([tp])[tp]), min(wanted.end, view.latest([tp])[tp])
        if start < end:
            left = Range(wanted.topic, wanted.partition, start, end)
            yield from _read_range(self.options, columns, left, start)

    def tasks(self, start: Offsets, end: Offsets) -> list[RangePartition]:
        whole = ranges(start, end)
        cut = split(whole, self.options.min_partitions, self.options.max_rows_per_partition)
        return [RangePartition(each) for each in cut]


def _read_range(
    options: SourceOptions, columns: list[str], wanted: Range, start: int
) -> Iterator[pyarrow.RecordBatch]:
    from headrace.client.consumer.partition_reader import PartitionReader
    from headrace.records.columns.arrow import to_arrow

    spare_collections()
    isolation = options.client.get("isolation.level", "read_committed")
    topic, partition = wanted.topic, wanted.partition
    with PartitionReader(
        options.client, topic, partition, start, wanted.end, isolation_level=isolation, timeout_s=_PATIENCE_S
    ) as reader:
        for fetched in reader:
            at, end = fetched.fetch_offset, min(fetched.next_offset, wanted.end)
            while at < end:  # as a rule once: twice only where a column is too large for one Arrow batch
                batch, after = to_arrow(
                    fetched.data, topic, partition, at, wanted.end, headers="headers" in columns,
                    aborted=fetched.aborted, columns=columns,
                )
                yield from _slices(batch.select(columns))
                at = max(after, at + 1)


def _view(options: SourceOptions) -> ClusterView:
    from headrace.spark.cluster import ClusterView

    return ClusterView(options.client, options.subscription)


def _slices(batch: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
    for row in range(0, batch.num_rows, _ROWS):
        yield batch.slice(row, _ROWS)


class BatchReader(_Tasks, DataSourceReader):
    """Reads topics between two positions. The offsets are resolved once for each `load()`."""

    def partitions(self) -> Sequence[InputPartition]:
        """One task per partition, or more when minPartitions asks for it."""
        view = _view(self.options)
        partitions = view.partitions()
        start = view.resolve(self.options.starting, partitions)
        return self.tasks(start, view.resolve(self.options.ending, partitions))


class StreamReader(_Tasks, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics in micro-batches.

    Offsets live in Spark's checkpoint. A batch's start is kept inside its logged end (see `headrace.spark.plan`), so
    that a start which was resolved at run time is not resolved anew after a crash.
    """

    def __init__(self, options: SourceOptions, columns: list[str], decoded: DecodedRead | None = None) -> None:
        super().__init__(options, columns, decoded)
        self._forget()

    def _forget(self) -> None:
        self._view: ClusterView | None = None
        self._initial: dict[str, Any] | None = None
        self._target: Offsets | None = None
        self._latest: Offsets = {}
        self._last_batch_s = time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "columns": self.columns, "decoded": self.decoded}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()

    @property
    def _cluster(self) -> ClusterView:
        if self._view is None:
            self._view = _view(self.options)
        return self._view

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where the very first batch starts. Spark asks twice and must get one answer."""
        if self._initial is None:
            start = self._cluster.resolve(self.options.starting, self._cluster.partitions())
            self._initial = batch_offsets(start, start)
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """The limit that Spark hands to `latestOffset`, except where a trigger wants everything at once."""
        return ReadMaxRows(self.options.max_rows) if self.options.max_rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember the end of now; records that come later are for the next run."""
        self._target = self._cluster.ends()

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """The end of the next batch; `start` itself, unchanged, when there shall be none.

        Spark asks every 10 ms while there is nothing to do, so the answer takes a moment then.
        """
        logged = start if start is not None else self.initialOffset()
        for _ in range(int(_IDLE_S / _CHECK_S)):
            end = self._next_end(logged, limit)
            if end is not None:
                self._last_batch_s = time.monotonic()
                return end
            if self._target is not None or self._stopped:
                break
            time.sleep(_CHECK_S)
        return logged

    @property
    def _stopped(self) -> bool:
        return bool(self.options.stop_file) and os.path.exists(self.options.stop_file)

    def _next_end(self, logged: dict[str, Any], limit: ReadLimit | None) -> dict[str, Any] | None:
        if self._stopped:
            return None
        _, reached = batch_start(logged, logged)
        latest = self._reachable(reached)
        begin = self._begin(reached, latest)
        if begin == latest or self._waits_for_more(begin, latest):
            return None
        max_rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return batch_offsets(begin, limit_rows(begin, latest, max_rows))

    def _reachable(self, reached: Offsets) -> Offsets:
        """The end of each partition; in an AvailableNow run, what it was when the run began.

        The first batch's start may have been resolved after that, so `reached` can lie behind the target.
        """
        self._latest = self._cluster.ends()
        target = self._target
        if target is None:
            return self._latest
        known = {tp: max(target.get(tp, 0), reached.get(tp, 0)) for tp in {*target, *reached}}
        return {tp: min(offset, known[tp]) for tp, offset in self._latest.items() if tp in known}

    def _begin(self, reached: Offsets, latest: Offsets) -> Offsets:
        unread = [tp for tp in latest if tp not in reached or latest[tp] < reached[tp]]
        earliest = self._cluster.earliest(unread)
        return advance(reached, earliest, latest, fail_on_data_loss=self.options.fail_on_data_loss)

    def _waits_for_more(self, begin: Offsets, latest: Offsets) -> bool:
        if self.options.min_rows is None or self._target is not None:
            return False
        backlog = sum(latest[tp] - begin[tp] for tp in latest)
        return backlog < self.options.min_rows and time.monotonic() - self._last_batch_s < self.options.max_delay_s

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The end of each partition as last seen, from which listeners compute the lag."""
        return batch_offsets(self._latest, self._latest) if self._latest else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch, the same ones when it runs again after a crash."""
        return self.tasks(*batch_start(start, end))

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: Spark's checkpoint holds the offsets."""
