"""`read_topic()`: what a topic holds between two bounds, as one frame.

No group, no commits; the bounds are settled before the first record is read, so that what is written meanwhile does not
make the read longer. Read next: `headrace.frames.bounds`, then `client.consumer.range_reader`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from headrace.client.consumer.log_view import LogView
from headrace.client.consumer.range_reader import OffsetRange, RangeReader
from headrace.config.property import close_matches
from headrace.errors import ConfigError
from headrace.frames.bounds import Bound, checked_bound, ranges_between
from headrace.frames.formats import decoded_read, need_pyarrow, side_formats
from headrace.frames.frame_kinds import frame_maker
from headrace.records import Cursor
from headrace.records.columns.arrow_batch import ArrowBatchBuilder

if TYPE_CHECKING:
    import pyarrow

    from headrace.values.value_planning import DecodedRead

__all__ = ["client_properties", "read_topic"]

_COLUMNS: Final = ("partition", "offset", "timestamp", "key", "value", "headers")
_ALL: Final = 1 << 62


def read_topic(
    topic: str,
    config: Mapping[str, Any] | str,
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    partitions: Collection[int] | None = None,
    columns: Sequence[str] = _COLUMNS,
    limit: int | None = None,
    value_format: str = "raw",
    key_format: str = "raw",
    registry: str | Mapping[str, Any] | None = None,
    schemas: Mapping[str, str] | None = None,
    format: str = "arrow",
    timeout: float = 60.0,
) -> Any:
    """Read what a topic holds between two bounds into one frame.

        frame = headrace.read_topic("orders", "localhost:9092", start=timedelta(hours=1), format="polars")

    Rows come in the order of partitions, and of offsets in each. There is no group, and nothing is committed. With
    "isolation.level" `read_committed`, the default, records of transactions that are open or aborted are left out.

    Args:
        topic: topic name.
        config: a consumer's properties, or the value of "bootstrap.servers" alone.
        start: where to begin: "earliest", "latest", an offset (below zero: so many before the end of each partition), a
            datetime with a zone, a timedelta (so long ago), or a dict of partitions to offsets.
        end: where to stop, in the same words; the record there is not read. "latest" is the end of the topic when the
            call began, and what is behind it means the same.
        partitions: numbers of those to read; all with None.
        columns: those wanted, in their order, of the columns that `Consumer.consume_arrow()` gives: topic, partition,
            offset, timestamp, timestamp_type, key, value, headers.
        limit: most rows; they are the first in the order of rows. None for all.
        value_format: what values are: raw (bytes), string, avro, protobuf, json or json-schema.
        key_format: the same of keys.
        registry: URL of a Schema Registry, or the properties of a `SchemaRegistryClient`.
        schemas: more about schemas, in the options of Spark's source: "value.schema", "value.message",
            "value.malformed", and so on.
        format: arrow (a `pyarrow.Table`), pandas (columns of `ArrowDtype`) or polars.
        timeout: longest wait for an answer of the brokers, in seconds.

    Returns:
        The frame. All of it is in memory.

    Raises:
        ConfigError: an unknown property, option or column, a malformed value, or no such partition.
        DependencyError: pyarrow, or the library of `format`, is not installed.
        KafkaException: the topic does not exist, records are gone, or the brokers did not answer in time.
        SchemaRegistryError: the registry did not answer, or refused.
        SerializationError: a value cannot be read; "value.malformed": "null" in `schemas` makes such values null.
    """
    need_pyarrow()
    made = frame_maker(format)
    _check(columns, limit)
    bounds = checked_bound("start", start), checked_bound("end", end)
    value, key = side_formats(value_format, key_format, registry, schemas, reading=True)
    properties = client_properties(config)
    decoding = decoded_read(value, key, topic)
    with LogView(properties, [topic]) as view:
        ranges = ranges_between(view, topic, partitions, *bounds, timeout)
    reader = RangeReader(properties)
    try:
        batches = _first(_batches(reader, ranges, timeout), limit)
        return made(_table(batches, list(columns), decoding))
    finally:
        reader.close()


def client_properties(config: Mapping[str, Any] | str) -> dict[str, Any]:
    """Properties of a client, which may be given as the servers alone.

    Raises:
        ConfigError: neither.
    """
    if isinstance(config, str):
        return {"bootstrap.servers": config}
    if not isinstance(config, Mapping):
        raise ConfigError(f"config must be a dict of properties, or the servers as text, not {type(config).__name__}")
    return dict(config)


def _check(columns: Sequence[str], limit: int | None) -> None:
    known = ArrowBatchBuilder().finish().column_names
    if isinstance(columns, str) or not columns:
        raise ConfigError(f"columns must be a list of {', '.join(known)}, not {columns!r}")
    for name in columns:
        if name not in known:
            close = close_matches(name, known)
            raise ConfigError(f"there is no column {name!r}: " + (f"did you mean {close[0]!r}?" if close else
                                                                  f"there are {', '.join(known)}"))
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise ConfigError(f"limit must be a number of rows, not {limit!r}")


def _batches(reader: RangeReader, ranges: Sequence[OffsetRange], timeout_s: float) -> Iterator[pyarrow.RecordBatch]:
    """The records of ranges, a reply of a broker at a time."""
    import pyarrow as pa

    ends = {each.key: each.end for each in ranges}
    for fetched in reader.read(ranges, timeout_s):
        key = fetched.topic, fetched.partition
        cursor = Cursor(fetched.data, *key, fetched.fetch_offset, aborted=fetched.aborted)
        while True:  # as a rule once: more often where the columns of a reply are very large
            rows = ArrowBatchBuilder()
            rows.append(cursor, *key, _ALL, end_offset=ends[key])
            if not len(rows):
                break
            yield pa.record_batch(rows.finish())


def _first(batches: Iterable[pyarrow.RecordBatch], limit: int | None) -> Iterator[pyarrow.RecordBatch]:
    """The first rows; nothing is asked for beyond them."""
    if limit is None:
        yield from batches
        return
    for batch in batches if limit else ():
        yield batch.slice(0, limit)
        limit -= min(limit, batch.num_rows)
        if not limit:
            return


def _table(batches: Iterable[pyarrow.RecordBatch], columns: list[str], decoding: DecodedRead | None) -> pyarrow.Table:
    import pyarrow as pa

    plain = pa.record_batch(ArrowBatchBuilder().finish()).schema
    if decoding is None:
        return pa.Table.from_batches([each.select(columns) for each in batches],
                                     pa.schema([plain.field(name) for name in columns]))
    from headrace.values.decoded_batches import decoded_batches

    types = {name: each.data_type for name, each in decoding.sides.items()} | dict.fromkeys(decoding.texts, pa.string())
    schema = pa.schema([(name, types.get(name, plain.field(name).type)) for name in columns])
    return pa.Table.from_batches(decoded_batches(decoding, columns, batches), schema)
