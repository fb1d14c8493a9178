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

import logging
import os
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headrace.errors import ConfigError
from headrace.interpreter import uncollected
from headrace.spark.options import SinkOptions, SourceOptions, column_names
from headrace.spark.plan import (
    DataLossError,
    Offsets,
    Range,
    advance,
    batch_offsets,
    batch_start,
    checked_end,
    checked_start,
    holds_start,
    limit_bytes,
    limit_rows,
    limit_rows_of_partitions,
    logged_epochs,
    logged_ids,
    losses,
    made_anew,
    ranges,
    share_tasks,
    split,
    text_of,
)
from headrace.spark.sink import BatchWriter, StreamWriter
from headrace.spark.worker import acknowledge_at_once, spare_collections
from headrace.values.value_format import has_formats

if TYPE_CHECKING:
    import pyarrow

    from headrace.spark.cluster import ClusterView
    from headrace.spark.group_commits import GroupCommits
    from headrace.spark.record_sizes import RecordSizes
    from headrace.spark.values.dead_letters import DeadLetterWriter
    from headrace.spark.values.planned_columns import PlannedColumns
    from headrace.values.value_planning import DecodedRead

__all__ = ["HeadraceSource"]

_COLUMNS: Final = {
    "key": "binary", "value": "binary", "topic": "string", "partition": "int", "offset": "bigint",
    "timestamp": "timestamp", "timestampType": "int",
}
_ALL_COLUMNS: Final = {**_COLUMNS, "headers": "array<struct<key:string,value:binary>>"}
_IDLE_S: Final = (0.1, 2.0)
"""How long Spark waits for an answer when there is nothing new: at first, for `processAllAvailable` to be over soon,
and in the end, twice as long each time. Records, and `query.stop()`, end the wait."""
_IDLE_WITH_STOP_FILE_S: Final = 0.25
_OTHERS_S: Final = 0.05
"""Spark asks a query's sources one after the other, and a lone one again at once. Who is asked later than this has
others beside it, which a long wait would keep from their records, or a trigger that asks at times of its own."""
_SHARED_IDLE_S: Final = 0.5
_SHARE_OF_QUIET: Final = 0.05
"""Beside others it waits for this share of the time in which none of them had records, within these limits: a query of
several sources that has nothing to do is not to cost more than one with one."""
_SHARE_OF_PERIOD: Final = 0.6
"""It waits for no more than this share of the time from one question to the next: Spark warns that a batch falls behind
whose source answers later than its trigger comes again."""
_PAUSE_S: Final = 0.05
"""Between two looks while records come in that are not to be read yet."""
_NO_LIMIT: Final = (1 << 63) - 1
_NOWHERE: Final = {"@nowhere": True}
"""A first offset that could not be resolved."""
_log = logging.getLogger("headrace")
_OF_A_TABLE: Final = "provider"
"""A property that Spark gives where a table is made, among others of its own; options come with each query."""


class HeadraceSource(DataSource):
    """Kafka as a Spark data source. Options as in Spark's own connector: see `headrace.spark.options`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        # Plain and in lower case: the object travels to executors.
        self.options = {name.lower(): value for name, value in options.items()}
        self._planned: PlannedColumns | None = None
        self._came_pickled = False
        spare_collections()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._came_pickled = True

    @classmethod
    def name(cls) -> str:
        """The name for `format()`."""
        return "headrace"

    def schema(self) -> str | StructType:
        """Columns of Spark's own Kafka source; with includeHeaders also the headers; or those of the option columns.

        Keys and values have the types of their formats. Options are checked here too, as far as batch and streaming
        reads have them in common: `load()` asks for the schema, so a mistake is said there, before the stream starts.

        Raises:
            ConfigError: a malformed or unknown option, an unknown column, or no schema can be found.
            SchemaRegistryError: the registry did not answer, or refused.
        """
        options = None if _OF_A_TABLE in self.options else SourceOptions.parse(self.options)
        columns = self._chosen()
        if not has_formats(self.options):
            # What `timestamp` means is up to spark.sql.timestampType; Kafka's are moments.
            return ", ".join(f"{name} {'timestamp_ltz' if kind == 'timestamp' else kind}"
                             for name, kind in columns.items())
        return self._decoding(options or SourceOptions.parse(self.options)).spark_schema(columns)

    def _chosen(self) -> dict[str, str]:
        headers = str(self.options.get("includeheaders", "")).strip().lower() == "true"
        chosen = column_names(str(self.options.get("columns", ""))) or (_ALL_COLUMNS if headers else _COLUMNS)
        for name in chosen:
            if name not in _ALL_COLUMNS:
                raise ConfigError(f"option columns: {name!r} cannot be read from a topic: there are "
                                  f"{', '.join(_ALL_COLUMNS)}")
        return {name: _ALL_COLUMNS[name] for name in chosen}

    def _decoding(self, options: SourceOptions) -> PlannedColumns:
        """What is decoded, settled once: Spark pickles this object between `schema()` and the readers."""
        if self._planned is None:
            from headrace.spark.values.planned_columns import PlannedColumns

            self._planned = PlannedColumns.of(options)
        return self._planned

    def _columns(self, schema: StructType, options: SourceOptions) -> tuple[list[str], DecodedRead | None]:
        if not has_formats(self.options):
            return _checked_columns(schema, _ALL_COLUMNS), None
        planned = self._decoding(options)
        columns = _checked_columns(schema, planned.kinds(_ALL_COLUMNS))
        planned.check(schema)
        return columns, planned.decoded

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch query."""
        options = SourceOptions.parse(self.options, streaming=False)
        return BatchReader(options, *self._columns(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader of a streaming query. What is wrong with it is said by its methods: see `RefusedStream`."""
        try:
            options = SourceOptions.parse(self.options, streaming=True)
            return StreamReader(options, *self._columns(schema, options))
        except Exception as error:  # a registry may not answer, a package may be missing
            return RefusedStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The writer of a batch query; a topic can only be appended to."""
        if overwrite:
            raise ConfigError('a topic cannot be overwritten: write with mode("append")')
        return BatchWriter(SinkOptions.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802 - Spark's name
        """The writer of a streaming query, in the process that plans a micro-batch or in the one that ends it.

        Spark makes a source anew to plan, and sends one to commit or abort: rows that are written already are not
        checked again there, which would ask a registry that may be away by then.
        """
        return StreamWriter(SinkOptions.parse(self.options), None if self._came_pickled else schema)


def _checked_columns(schema: StructType, known: Mapping[str, str]) -> list[str]:
    """The columns to read. A schema that the user gave may leave columns out, which spares their transfer."""
    for each in schema.fields:
        if each.name not in known:
            raise ConfigError(f"column {each.name} cannot be read from a topic: there are {', '.join(known)}")
        found = each.dataType.simpleString()
        if found != known[each.name] or not each.nullable:
            raise ConfigError(f"column {each.name} must be {known[each.name]} and nullable, not {found}"
                              f"{'' if each.nullable else ' not null'}")
    return [each.name for each in schema.fields]


class RangePartition(InputPartition):
    """The task of one executor: ranges of offsets, each of another partition."""

    value: list[Range]


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
        """Read the ranges of a task as Arrow batches."""
        if partition.value is None:
            return  # Spark's word for a batch read without a range
        from headrace.spark.range_columns import read_columns

        spare_collections()
        if self.decoded is None:
            yield from read_columns(self.options, self.columns, partition.value)
            return
        from headrace.values.decoded_batches import decoded_batches, raw_columns

        raw = read_columns(self.options, raw_columns(self.decoded, self.columns), partition.value)
        yield from decoded_batches(self.decoded, self.columns, raw, _open_letters)

    def tasks(self, start: Offsets, end: Offsets, ids: dict[str, str]) -> list[RangePartition]:
        options = self.options
        cut = split(ranges(start, end, ids), options.min_partitions, options.max_rows_per_partition)
        most = min(options.shared_task_rows, options.max_rows_per_partition or options.shared_task_rows)
        if options.min_partitions:
            most = 0  # who asks for a number of tasks shall have it
        return [RangePartition(each) for each in share_tasks(cut, most)]


def _open_letters(of: DecodedRead) -> DeadLetterWriter:
    """The dead-letter topic of a read; most never need it."""
    from headrace.spark.values.dead_letters import DeadLetterWriter

    return DeadLetterWriter(of.client, of.dead_letter_topic)


@uncollected  # amid the import a collection looks at all that pyspark has, for 16 ms
def _view(options: SourceOptions) -> ClusterView:
    from headrace.spark.cluster import ClusterView

    return ClusterView(options.client, options.subscription, options.retries)


class BatchReader(_Tasks, DataSourceReader):
    """Reads topics between two positions. The offsets are resolved once for each `load()`."""

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks: one for each partition, more of large ones and fewer of small ones as the options say."""
        with _view(self.options) as view:
            partitions, ending = view.partitions(), self.options.ending
            start, end = view.resolve(self.options.starting, partitions), view.resolve(ending, partitions)
            too_short = view.too_short({tp: offset for tp, offset in ending.offsets.items() if offset >= 0})
            end = checked_end(start, end, too_short, fail_on_data_loss=self.options.fail_on_data_loss)
            return self.tasks(start, end, view.topic_ids)


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
        self._sizes: RecordSizes | None = None
        self._commits: GroupCommits | None = None
        self._initial: dict[str, Any] | None = None
        self._no_start: Exception | None = None
        self._target: Offsets | None = None
        self._latest: Offsets = {}
        self._warned: list[str] = []
        self._idle_s = _IDLE_S[0]
        self._idle_since_s = float("inf")
        self._waited_s = 0.0
        self._others_ran = False
        self._others_ran_s = float("-inf")
        self._last_batch_s = float("-inf")  # a query that starts takes what there is, as in Spark's connector

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
        """Where the very first batch starts. Spark asks twice and must get one answer.

        It also asks where a first batch runs again, which holds its own start: the topics may have changed since, so
        that there is no answer any more. What is wrong is said to who needs one.
        """
        if self._initial is None:
            try:
                self._initial = self._first()
            except (ConfigError, DataLossError) as error:
                self._initial, self._no_start = _NOWHERE, error
        return self._initial

    def _first(self) -> dict[str, Any]:
        start = self._cluster.resolve(self.options.starting, self._cluster.partitions())
        given = {tp: offset for tp, offset in self.options.starting.offsets.items() if offset >= 0}
        too_short = self._cluster.too_short(given)
        start = checked_start(start, too_short, fail_on_data_loss=self.options.fail_on_data_loss)
        if too_short:
            _log.warning("the logs of some partitions end before startingOffsets, and are read from their end on: %s",
                         text_of(too_short))
        return batch_offsets(start, start, self._cluster.topic_ids)

    def _check_start(self, logged: dict[str, Any]) -> None:
        if logged == _NOWHERE and self._no_start is not None:
            raise self._no_start

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """The limit that Spark hands to `latestOffset`; for Trigger.Once, which wants everything, ReadAllAvailable."""
        return ReadMaxRows(self.options.max_rows or _NO_LIMIT) if self.options.is_limited else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember the end of now; records that come later are for the next run."""
        self._target = self._cluster.ends()

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """The end of the next batch; `start` itself, unchanged, when there shall be none.

        Spark asks every 10 ms while there is nothing to do, so the answer takes a moment then: brokers hold a question
        until something comes.
        """
        logged = start if start is not None else self.initialOffset()
        self._check_start(logged)
        self._tell_group(logged)
        began = time.monotonic()
        until = began + self._patience_s()
        while not self._stopped:
            end = self._next_end(logged, limit)
            if end is not None:
                self._last_batch_s, self._idle_s, self._idle_since_s = time.monotonic(), _IDLE_S[0], float("inf")
                return end
            if self._target is not None or not self._has_news(until):
                break
        self._idle_s = min(2 * self._idle_s, _IDLE_WITH_STOP_FILE_S if self.options.stop_file else _IDLE_S[1])
        if self._target is not None and self._commits is not None:
            self._commits.finish(self._cluster)
        self._idle_since_s = time.monotonic()
        self._waited_s = self._idle_since_s - began
        return logged

    def _patience_s(self) -> float:
        """How long to wait for records: not while the query's other sources have some; briefly where they wait, too."""
        others_ran, self._others_ran = self._others_ran, False
        now = time.monotonic()
        if others_ran:
            self._others_ran_s = now
            return 0.0
        if now - self._idle_since_s <= _OTHERS_S:
            return self._idle_s
        quiet_s = now - max(self._last_batch_s, self._others_ran_s)
        period_s = now - self._idle_since_s + self._waited_s
        longest_s = min(quiet_s * _SHARE_OF_QUIET, period_s * _SHARE_OF_PERIOD, _SHARED_IDLE_S)
        return min(self._idle_s, max(_IDLE_S[0], longest_s))

    def _has_news(self, until: float) -> bool:
        """Wait for records; False when the time is over."""
        if time.monotonic() >= until:
            return False
        if self._latest and not self._cluster.wait_for_records(self._latest, until - time.monotonic()):
            return False
        time.sleep(min(_PAUSE_S, max(until - time.monotonic(), 0.0)) if self.options.min_rows else 0.0)
        return time.monotonic() < until

    @property
    def _stopped(self) -> bool:
        return bool(self.options.stop_file) and os.path.exists(self.options.stop_file)

    def _tell_group(self, logged: dict[str, Any]) -> None:
        if not self.options.group_id:
            return
        begin, reached = batch_start(logged, logged)
        if begin == reached:
            return  # nothing has been read yet
        if self._commits is None:
            from headrace.spark.group_commits import GroupCommits

            self._commits = GroupCommits(self.options.group_id)
        self._commits.reached(self._cluster, reached)

    def _next_end(self, logged: dict[str, Any], limit: ReadLimit | None) -> dict[str, Any] | None:
        _, reached = batch_start(logged, logged)
        latest = self._reachable(reached)
        anew = made_anew(logged_ids(logged), self._cluster.topic_ids)
        latest = latest | self._read_ahead(reached, latest, anew)
        begin = self._begin(logged, reached, latest, anew)
        passes_over = any(offset > reached.get(tp, offset) for tp, offset in begin.items())  # which is to be logged
        if (begin == latest and not passes_over) or self._waits_for_more(begin, latest, limit):
            return None
        end = self._limited(begin, latest, limit.max_rows) if isinstance(limit, ReadMaxRows) else latest
        return batch_offsets(begin, end, self._cluster.topic_ids, self._cluster.end_epochs)

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

    def _read_ahead(self, reached: Offsets, latest: Offsets, anew: set[str]) -> Offsets:
        """Where partitions stay whose log is whole, and only their committed records end before the place reached: who
        came so far read uncommitted ones, as Spark's connector does unless it is told otherwise.
        """
        ahead = {tp: reached[tp] for tp, end in latest.items() if end < reached.get(tp, end) and tp[0] not in anew}
        short = self._cluster.too_short(ahead)
        return {tp: offset for tp, offset in ahead.items() if tp not in short}

    def _begin(self, logged: dict[str, Any], reached: Offsets, latest: Offsets, anew: set[str]) -> Offsets:
        cut = self._cut(logged_epochs(logged), reached, anew)
        unread = [tp for tp in latest if tp not in reached or latest[tp] < reached[tp] or tp[0] in anew]
        if self.options.is_limited and not self.options.fail_on_data_loss:
            # Records that are gone would else take many micro-batches, each with nothing to read.
            unread += [tp for tp in latest if latest[tp] > reached.get(tp, latest[tp]) and tp[0] not in anew]
        earliest = self._cluster.earliest(unread)
        if not self.options.fail_on_data_loss:
            self._warn_of(losses(reached, earliest, latest, anew=anew, cut=cut))
        return advance(reached, earliest, latest, fail_on_data_loss=self.options.fail_on_data_loss, anew=anew, cut=cut)

    def _warn_of(self, lost: list[str]) -> None:
        """Spark asks again and again until there is a batch: each loss is said once."""
        for each in lost:
            if each not in self._warned:
                _log.warning("records may be lost: %s. The query goes on with what there is, as failOnDataLoss is "
                             "false", each)
        self._warned = lost

    def _cut(self, epochs: Offsets, reached: Offsets, anew: set[str]) -> Offsets:
        """Where the logs of new leaders end that lack what was read, after an unclean election (KIP-320)."""
        now = self._cluster.end_epochs
        doubtful = {tp: epoch for tp, epoch in epochs.items() if now.get(tp, -1) > epoch and tp[0] not in anew}
        ends = self._cluster.log_ends(doubtful)
        return {tp: end for tp, end in ends.items() if 0 <= end < reached.get(tp, 0)}

    def _limited(self, begin: Offsets, latest: Offsets, max_rows: int) -> Offsets:
        end = limit_rows_of_partitions(begin, latest, self.options.max_rows_of_partition)
        end = limit_rows(begin, end, None if max_rows == _NO_LIMIT else max_rows)
        if self.options.max_bytes is None:
            return end
        if self._sizes is None:
            from headrace.spark.record_sizes import RecordSizes

            self._sizes = RecordSizes(self.options.client)
        return limit_bytes(begin, end, self.options.max_bytes, self._sizes.of(begin, end))

    def _waits_for_more(self, begin: Offsets, latest: Offsets, limit: ReadLimit | None) -> bool:
        # A run that takes what there is now, and ends, has no later batch in which the rest could come.
        if self.options.min_rows is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        backlog = sum(latest[tp] - begin[tp] for tp in latest)
        return backlog < self.options.min_rows and time.monotonic() - self._last_batch_s < self.options.max_delay_s

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The end of each partition as last seen, from which listeners compute the lag.

        A batch that runs again after a restart is reported before anybody has asked for the end of the next one.
        """
        if not self._latest:
            self._latest = self._cluster.ends()
        return batch_offsets(self._latest, self._latest) if self._latest else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch, the same ones when it runs again after a crash."""
        if not holds_start(end):
            self._check_start(start)
        return self.tasks(*batch_start(start, end), logged_ids(end))

    def commit(self, end: dict[str, Any]) -> None:
        """Spark's checkpoint holds the offsets. A source without records learns that others of the query have some."""
        self._others_ran = self._idle_since_s < float("inf")


class RefusedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a stream that cannot start: whatever Spark asks first is answered with the reason.

    pyspark hides what `streamReader()` itself raises behind an UnboundLocalError of its own.

    Args:
        error: the reason.
    """

    def __init__(self, error: Exception) -> None:
        self._error = error

    def _refuse(self, *_: Any) -> Any:
        raise self._error

    initialOffset = getDefaultReadLimit = prepareForTriggerAvailableNow = _refuse  # noqa: N815 - Spark's names
    latestOffset = partitions = read = _refuse  # noqa: N815 - Spark's name
