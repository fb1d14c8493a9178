"""Spark's face of writing to topics: Arrow batches in, records out, at least once or exactly once.

A task reports success only when every one of its records was acknowledged; at least once, a task or micro-batch that
runs again writes its records again. Exactly once, each micro-batch is a transaction (`headrace.spark.exactly_once`).
Key and value are written as they are; columns as in Spark's own Kafka sink: what is there is written, headers too.

Planning, `write()` and `commit()` run in three different processes: writers carry options only, and what only one of
them needs is imported there. Read next: `headrace.spark.column_writer`.
"""

# mypy: disallow-subclassing-any=False
# pyspark is not followed by the type checker, so its base classes are Any.
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headrace.errors import ConfigError
from headrace.spark.options import SinkOptions
from headrace.spark.worker import acknowledge_at_once, spare_collections

if TYPE_CHECKING:
    import pyarrow

    from headrace.spark.column_writer import ColumnWriter
    from headrace.spark.exactly_once.task_report import BegunBatch, TaskReport

__all__ = ["BatchWriter", "StreamWriter", "append_rows", "check_columns"]

_KINDS: Final = {
    "key": ("binary", "string"), "value": ("binary", "string"), "topic": ("string",), "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
_OF_SOURCE: Final = (("offset", "bigint"), ("timestamp", "timestamp"), ("timestampType", "int"))
"""What the source says of a record and nobody can choose: a topic may be copied as it is read, without these."""
_NESTED: Final = ("struct", "array", "map", "variant")


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote.

    Attributes:
        rows: how many.
        report: where they are in the transaction, exactly once.
    """

    rows: int
    report: TaskReport | None = None


class _Writer:
    """What batch and streaming writers share."""

    def __init__(self, options: SinkOptions, schema: StructType | None) -> None:
        if schema is not None:
            check_columns(options, schema)
        self.options = options
        self._begun: BegunBatch | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Spark pickles a writer once all is planned and before tasks start, and twice: the moment to begin."""
        if self.options.exactly_once and self._begun is None:
            self._begun = self._begin()
        return self.__dict__.copy()

    def _begin(self) -> BegunBatch:
        raise NotImplementedError

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; returns when all of them are acknowledged."""
        acknowledge_at_once()
        if self._begun is not None:
            return self._write_once(iterator, self._begun)
        from headrace.spark.column_writer import ColumnWriter

        spare_collections()
        rows = 0
        with ColumnWriter(self.options.client) as out:
            for batch in iterator:
                rows += batch.num_rows
                append_rows(out, batch, self.options)
            out.finish()
        return Written(rows)

    def _write_once(self, iterator: Iterator[pyarrow.RecordBatch], begun: BegunBatch) -> Written:
        from headrace.spark.exactly_once import task_transaction
        from headrace.spark.exactly_once.spark_task import task_identity

        spare_collections()
        report = task_transaction.write(
            begun, task_identity(), self.options.client, iterator,
            lambda out, batch: append_rows(out, batch, self.options))
        return Written(sum(report.written.values()), report)

    def _commit(self, messages: list[WriterCommitMessage | None]) -> None:
        if self.options.exactly_once:
            from headrace.spark.exactly_once import driver_transaction

            driver_transaction.commit(self.options, [_report(each) for each in messages])

    def _abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if self.options.exactly_once:
            from headrace.spark.exactly_once import driver_transaction

            known = (report.begun for each in messages if (report := _report(each)) is not None and not report.skipped)
            driver_transaction.abort(self.options, self._begun or next(known, None))


def _report(message: WriterCommitMessage | None) -> TaskReport | None:
    return message.report if isinstance(message, Written) else None


class BatchWriter(_Writer, DataSourceArrowWriter):
    """Appends a DataFrame to topics; exactly once, readers see all of it or nothing."""

    def _begin(self) -> BegunBatch:
        from headrace.spark.exactly_once import driver_transaction

        return driver_transaction.begin_alone(self.options)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks are done: end the transaction, if there is one."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """A task has failed. At least once, nothing can be taken back."""
        self._abort(messages)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Appends each micro-batch to topics; exactly once if it was asked for.

    Args:
        options: of the write.
        schema: of the rows; None where they are written already, and only to be committed or given up.
    """

    def __init__(self, options: SinkOptions, schema: StructType | None) -> None:
        super().__init__(options, schema)
        if options.exactly_once:
            from headrace.spark.exactly_once.driver_transaction import sink_name

            sink_name(options)  # a stream without a name is refused before anything is begun

    def _begin(self) -> BegunBatch:
        from headrace.spark.exactly_once import driver_transaction

        return driver_transaction.begin(self.options)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """What tasks wrote is acknowledged already; exactly once, now it comes to be.

        Raises:
            ConfigError: a task has not written. Spark lets a Python sink have a continuous trigger, and drops its rows.
        """
        if None in messages:
            raise ConfigError("Spark has handed no rows to the tasks of this write, as with a continuous trigger, "
                              "which no Python sink can have: trigger by processingTime or availableNow")
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """The micro-batch is written again when the query restarts. At least once, nothing can be taken back."""
        self._abort(messages)


def append_rows(out: ColumnWriter, batch: pyarrow.RecordBatch, options: SinkOptions) -> None:
    """Append the rows of a batch to their topics."""
    for topic, part in _by_topic(batch, options.topic):
        columns = {name: part.column(name) for name in part.schema.names}
        if options.value.has_schema or options.key.has_schema:
            from headrace.values.value_encoder import encoded_columns

            columns |= encoded_columns((options.key, options.value), topic, columns)
        out.append(topic, columns.get("key"), columns["value"], columns.get("partition"), columns.get("headers"))


def check_columns(options: SinkOptions, schema: StructType) -> None:
    """Refuse a frame that cannot be written.

    Raises:
        ConfigError: a column is missing, unknown or of a wrong type; the text says what to do.
    """
    kinds: dict[str, Any] = {field.name: field.dataType.simpleString() for field in schema.fields}
    if len(kinds) < len(schema.fields):
        twice = next(name for name in kinds if schema.names.count(name) > 1)
        raise ConfigError(f"column {twice} is there more than once: drop all but one, or rename them")
    if "value" not in kinds:
        respelled = "".join(f": rename {name} to value" for name in kinds if name.lower() == "value")
        there = ", ".join(kinds) + respelled
        raise ConfigError(f"a topic takes a column named value (string or binary); there are {there}")
    if not options.topic and "topic" not in kinds:
        raise ConfigError("name the topic: with option topic, or with a column named topic")
    formats = {each.side: each for each in (options.key, options.value) if each.has_schema}
    if formats:
        from headrace.spark.values.checked_frame import check_frame

        check_frame(options, schema)
    for name, kind in kinds.items():
        # The option goes before the column topic, whatever is in it.
        if name in formats or (name, kind) in _OF_SOURCE or (name == "topic" and options.topic):
            continue
        if name not in _KINDS:
            raise ConfigError(f"column {name} cannot be written to a topic: there are {', '.join(_KINDS)}. "
                              f"{_place(name)}")
        if kind not in _KINDS[name]:
            raise ConfigError(f"column {name} must be {' or '.join(_KINDS[name])}, not {kind}: {_remedy(name, kind)}")


def _place(name: str) -> str:
    """What to do with a column that a topic has not."""
    if name.lower() in _KINDS:
        return f"Rename {name} to {name.lower()}"
    return ("Put it into value, for example as to_json(struct(*)) AS value, or as struct(*) AS value with "
            "value.format")


def _remedy(name: str, kind: str) -> str:
    if name in ("key", "value") and kind.startswith(_NESTED):
        return f"choose option {name}.format: json, avro, protobuf or json-schema; or write to_json({name})"
    return "cast it"


def _by_topic(batch: pyarrow.RecordBatch, topic: str) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
    """The rows of each topic, in their order; the option goes before the column."""
    if topic:
        yield topic, batch
        return
    import pyarrow.compute

    names = batch.column("topic")
    for name in pyarrow.compute.unique(names).to_pylist():
        if name is None:
            raise ConfigError("column topic is null in a row: give each row its topic, or all of them option topic")
        yield name, batch.filter(pyarrow.compute.equal(names, name))
