"""`write_topic()`: the rows of a frame as records of a topic.

Read next: `headrace.frames.formats`, then `client.producer.column_feed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final

from headrace.client.producer.column_feed import ColumnRole, record_batches
from headrace.client.producer.producer import Producer, calls_of
from headrace.client.producer.topics import SOON
from headrace.errors import ConfigError
from headrace.frames.formats import need_pyarrow, side_formats
from headrace.frames.topic_reading import client_properties

if TYPE_CHECKING:
    import pyarrow

    from headrace.values.value_format import ValueFormat

__all__ = ["write_topic"]

_INDEX: Final = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name when it hands a frame over."""


def write_topic(
    frame: Any,
    topic: str,
    config: Mapping[str, Any] | str,
    *,
    value: str | Sequence[str] | EllipsisType = ...,
    key: ColumnRole = ...,
    headers: ColumnRole = ...,
    timestamp: ColumnRole = ...,
    partition: ColumnRole = ...,
    value_format: str = "raw",
    key_format: str = "raw",
    registry: str | Mapping[str, Any] | None = None,
    schemas: Mapping[str, str] | None = None,
) -> int:
    """Write the rows of a frame to a topic, and wait until all are stored.

        headrace.write_topic(frame, "orders", "localhost:9092", key="customer", value=["id", "price"],
                             value_format="avro", registry="http://localhost:8081")

    Args:
        frame: a pyarrow Table, a Polars or pandas data frame, a DuckDB relation, or anything else that has the Arrow
            PyCapsule protocol.
        topic: topic name.
        config: a producer's properties, or the value of "bootstrap.servers" alone.
        value: name of the column of values; with a format that has schemas also a list of columns, which become one
            value for each row. Left out it is the column "value" or, with such a format and without such a column, all
            columns without another role. Null is a tombstone.
        key: name of the column of keys; left out the column "key", if there is one; None for no keys.
        headers: of headers: a list of structs (key, value), or a map.
        timestamp: of timestamps of any unit, or of integers in milliseconds; null stands for now.
        partition: of partition numbers; null leaves it to the partitioner.
        value_format: what values become: raw (binary or string columns as they are), string, avro, protobuf, json or
            json-schema.
        key_format: the same of keys.
        registry: URL of a Schema Registry, or the properties of a `SchemaRegistryClient`.
        schemas: more about schemas, in the options of Spark's sink: "value.schema", "value.auto.register", and so on.

    Returns:
        How many rows were stored: all of them.

    Raises:
        ConfigError: an unknown property or option, a malformed value, or no schema can be found.
        DependencyError: pyarrow is not installed.
        KafkaException: rows were not stored; the text says how many were, and why the first one was not.
        SchemaRegistryError: a schema is not compatible with earlier ones, or the registry did not answer.
        SerializationError: a value does not fit the schema.
        TypeError: the frame, or a column's type, cannot be used.
        ValueError: there is no such column.
    """
    need_pyarrow()
    formats = side_formats(value_format, key_format, registry, schemas, reading=False)
    roles = {"key": key, "headers": headers, "timestamp": timestamp, "partition": partition}
    tables: Any = [frame]
    if any(each.has_schema for each in formats):
        tables = _EncodedRows(topic, value, roles, *formats).batches(frame)
        value, roles = "value", dict.fromkeys(roles, ...)
    elif not isinstance(value, (str, EllipsisType)):
        raise ConfigError("several columns become a value with value_format avro, protobuf, json or json-schema only")
    with Producer({**SOON, **client_properties(config)}) as producer:
        calls = calls_of(producer)
        calls.waits.run(calls.topic_answered(topic))
        stored = producer.produce_batches(topic, tables, value="value" if value is ... else str(value), **roles)
        producer.flush()
        return stored.result()


@dataclass(frozen=True, slots=True)
class _EncodedRows:
    """Rows whose values or keys are encoded on their way.

    Attributes:
        topic: where they go.
        value: column, or columns, of the values.
        roles: the other columns.
        value_format: of values.
        key_format: of keys.
    """

    topic: str
    value: str | Sequence[str] | EllipsisType
    roles: Mapping[str, ColumnRole]
    value_format: ValueFormat
    key_format: ValueFormat

    def batches(self, frame: Any) -> Iterator[pyarrow.RecordBatch]:
        """The rows as columns that are called by their roles."""
        import pyarrow as pa

        for batch in record_batches(frame):
            found = {role: batch.column(name) for role, name in self._names(batch.schema.names).items()}
            arrays = {"value": _encoded(self.value_format, self.topic, self._values(batch))}
            arrays |= {role: _encoded(self.key_format, self.topic, array) if role == "key" else array
                       for role, array in found.items()}
            yield pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))

    def _names(self, known: Sequence[str]) -> dict[str, str]:
        """The column of each role but the value's."""
        names = {role: role if name is ... else name for role, name in self.roles.items()
                 if name is not None and (name is not ... or role in known)}
        for role, name in names.items():
            _check_is_there(name, role, known)
        return names

    def _values(self, batch: pyarrow.RecordBatch) -> pyarrow.Array:
        import pyarrow as pa

        known = batch.schema.names
        if isinstance(self.value, str) or (self.value is ... and "value" in known):
            name = self.value if isinstance(self.value, str) else "value"
            _check_is_there(name, "value", known)
            return batch.column(name)
        taken = set(self._names(known).values())
        names = list(self.value) if not isinstance(self.value, EllipsisType) else [
            name for name in known if name not in taken and not _INDEX.fullmatch(name)]
        for name in names:
            _check_is_there(name, "value", known)
        if not names:
            raise ValueError(f"no column is left for the value: the columns are {', '.join(known)}")
        return pa.StructArray.from_arrays([batch.column(name) for name in names],
                                          fields=[batch.schema.field(name) for name in names])


def _check_is_there(name: str, role: str, known: Sequence[str]) -> None:
    if known.count(name) != 1:
        raise ValueError(f"there is {'more than one' if name in known else 'no'} column {name!r} for {role}: the "
                         f"columns are {', '.join(known) or 'none'}")


def _encoded(of: ValueFormat, topic: str, values: pyarrow.Array) -> pyarrow.Array:
    if not of.has_schema:
        return values
    from headrace.values.value_encoder import encoder_of

    kind = _plain(values.type)
    # A cast to the same type is refused where a null has fields beneath that cannot be null.
    plain = values if kind == values.type else values.cast(kind)
    return encoder_of(of, topic, kind).encode(plain)


def _plain(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The type that codecs know in the place of one of the frames' libraries: no dictionaries, views or large lists."""
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_struct(kind):
        return pa.struct([each.with_type(_plain(each.type)) for each in kind])
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if kinds.is_dictionary(kind):
        return _plain(kind.value_type)
    if kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return pa.string()
    if kinds.is_large_binary(kind) or kinds.is_binary_view(kind):
        return pa.binary()
    if kinds.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    return kind
