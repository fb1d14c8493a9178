"""Spark's face of writing to topics: Arrow batches in, records out, at least once.

A task reports success only when every one of its records was acknowledged; a task or micro-batch that runs again
writes its records again. Key and value are written as they are; columns as in Spark's own Kafka sink.

Planning, `write()` and `commit()` run in three different processes: writers carry options only, and what only one of
them needs is imported there. Read next: `headrace.spark.column_writer`.
"""

# mypy: disallow-subclassing-any=False
# pyspark is not followed by the type checker, so its base classes are Any.
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headrace.errors import ConfigError
from headrace.spark.options import SinkOptions
from headrace.spark.worker import acknowledge_at_once, spare_collections

if TYPE_CHECKING:
    import pyarrow

    from headrace.spark.column_writer import ColumnWriter

__all__ = ["BatchWriter", "StreamWriter", "append_rows", "check_columns"]

_KINDS: Final = {
    "key": ("binary", "string"), "value": ("binary", "string"), "topic": ("string",), "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote."""

    rows: int


class _Writer:
    """What batch and streaming writers share."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self.options = options

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; returns when all of them are acknowledged."""
        acknowledge_at_once()
        from headrace.spark.column_writer import ColumnWriter

        spare_collections()
        rows = 0
        with ColumnWriter(self.options.client) as out:
            for batch in iterator:
                rows += batch.num_rows
                append_rows(out, batch, self.options)
            out.finish()
        return Written(rows)


class BatchWriter(_Writer, DataSourceArrowWriter):
    """Appends a DataFrame to topics."""


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Appends each micro-batch to topics."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Nothing to do: what a task wrote is acknowledged already."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Nothing can be taken back; the micro-batch is written again when the query restarts."""


def append_rows(out: ColumnWriter, batch: pyarrow.RecordBatch, options: SinkOptions) -> None:
    """Append the rows of a batch to their topics."""
    for topic, part in _by_topic(batch, options.topic):
        columns = {name: part.column(name) for name in part.schema.names}
        if options.value.has_schema or options.key.has_schema:
            from headrace.spark.values.value_encoder import encoded_columns

            columns |= encoded_columns(options, topic, columns)
        headers = columns.get("headers") if options.include_headers else None
        out.append(topic, columns.get("key"), columns["value"], columns.get("partition"), headers)


def check_columns(options: SinkOptions, schema: StructType) -> None:
    """Refuse a frame that cannot be written.

    Raises:
        ConfigError: a column is missing, unknown or of a wrong type; the text says what to do.
    """
    kinds: dict[str, Any] = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "value" not in kinds:
        raise ConfigError(f"a topic takes a column named value (string or binary); there are {', '.join(kinds)}")
    if not options.topic and "topic" not in kinds:
        raise ConfigError("name the topic: with option topic, or with a column named topic")
    formats = {each.side: each for each in (options.key, options.value) if each.has_schema}
    if formats:
        from headrace.spark.values.value_encoder import check_frame

        check_frame(options, schema)
    for name, kind in kinds.items():
        if name in formats:
            continue
        if name not in _KINDS:
            raise ConfigError(f"column {name} cannot be written to a topic: there are {', '.join(_KINDS)}. "
                              "Put it into value, for example as to_json(struct(*)) AS value, or as struct(*) AS value "
                              "with value.format")
        if kind not in _KINDS[name]:
            raise ConfigError(f"column {name} must be {' or '.join(_KINDS[name])}, not {kind}: cast it")


def _by_topic(batch: pyarrow.RecordBatch, topic: str) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
    """The rows of each topic, in their order; the option goes before the column."""
    if topic:
        yield topic, batch
        return
    import pyarrow.compute

    names = batch.column("topic")
    for name in pyarrow.compute.unique(names).to_pylist():
        if name is None:
            raise ConfigError("a row has null as its topic")
        yield name, batch.filter(pyarrow.compute.equal(names, name))
