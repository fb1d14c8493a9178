"""Columns of a frame become the bytes of a topic, by the schema of the topic's subject.

The driver settles the schema before tasks begin where it knows the topic, so that what is wrong is said there; each
process asks the registry once for each subject. Read next: `headrace.values.value_planning`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from headrace.client.registry.schema_cache import LruCache
from headrace.interpreter import SteadyLock
from headrace.schemas.columns.framing import put_on
from headrace.values.schema_formats import SchemaText, schema_format
from headrace.values.value_planning import said_of, subject_of

if TYPE_CHECKING:
    import pyarrow

    from headrace.schemas.columns.column_codec import ColumnCodec
    from headrace.values.value_format import ValueFormat

__all__ = ["ValueEncoder", "encoded_columns", "encoder_of"]

_LIFE_S: Final = 300.0
"""How long a process writes with the schema that it has found: a newer latest one is seen after that."""
_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class _Writing:
    """How the values of a topic are written.

    Attributes:
        schema: of the values.
        codec: of the schema.
        number: id in the registry; None where payloads are not framed.
        indexes: place of the message in its schema, for formats that have that.
    """

    schema: SchemaText
    codec: ColumnCodec
    number: int | None
    indexes: tuple[int, ...] | None


class ValueEncoder:
    """Writes one side of a topic's records. From any thread.

    Args:
        of: options of the side.
        topic: name of the topic.
        data_type: Arrow type of the column.

    Raises:
        ConfigError: no schema can be found, or it is not registered.
        SerializationError: the column does not fit the schema, or the format has no such type.
        SchemaRegistryError: the schema is not compatible with earlier ones, or the registry did not answer.
    """

    def __init__(self, of: ValueFormat, topic: str, data_type: pyarrow.DataType) -> None:
        self._format = of
        self._kind = schema_format(of.name)
        with said_of(of.side):
            self._writing = self._settled(topic, data_type)

    def encode(self, values: pyarrow.Array) -> pyarrow.BinaryArray:
        """Write a column.

        Args:
            values: null stays null: a record without a value.

        Raises:
            SerializationError: a value does not fit the schema; the text names its column, row and field.
        """
        with said_of(self._format.side):
            bodies = self._writing.codec.encode(values)
        if self._writing.number is None:
            return bodies
        return put_on(bodies, self._writing.number, self._writing.indexes)

    def _settled(self, topic: str, data_type: pyarrow.DataType) -> _Writing:
        of = self._format
        given = self._kind.given(of.schema, of.message) if of.schema else None
        known = of.use_latest or of.version is not None or (given is None and not of.auto_register)
        if of.framed and known:
            number, schema = self._registered(topic, given)
            return self._checked(number, schema, data_type)
        found = self._checked(None, given or self._kind.derived(data_type, of.message), data_type)
        return replace(found, number=self._number(topic, found.schema)) if of.framed else found

    def _checked(self, number: int | None, schema: SchemaText, data_type: pyarrow.DataType) -> _Writing:
        message = self._format.message
        codec = self._kind.codec(schema, message=message, flags=self._format.flags)
        codec.check_columns(data_type)
        return _Writing(schema, codec, number, self._kind.message_indexes(schema, message))

    def _registered(self, topic: str, given: SchemaText | None) -> tuple[int, SchemaText]:
        """The latest schema of the subject, or a version of it."""
        from headrace.values.registry_access import registry_of

        record = self._format.message if given is None else self._kind.record_name(given, self._format.message)
        subject = subject_of(self._format, topic, record)
        return registry_of(self._format).of_subject(subject, self._format.version, self._format.side)

    def _number(self, topic: str, schema: SchemaText) -> int:
        """The id of a schema that the frame fits: registered now, if that is allowed."""
        from headrace.values.registry_access import registry_of

        subject = subject_of(self._format, topic, self._kind.record_name(schema, self._format.message))
        registry = registry_of(self._format)
        return registry.number_of(subject, self._kind, schema, self._format.auto_register)


_lock = SteadyLock()
_encoders = LruCache(_MOST, _LIFE_S, time.monotonic)


def encoder_of(of: ValueFormat, topic: str, data_type: pyarrow.DataType) -> ValueEncoder:
    """The encoder of a side of a topic. A process keeps it for five minutes, for the tasks that follow.

    Raises:
        ConfigError: see `ValueEncoder`, as for the other errors.
    """
    key = of, topic, data_type
    with _lock:
        found: ValueEncoder | None = _encoders.get(key)
        if found is None:
            found = ValueEncoder(of, topic, data_type)
            _encoders.put(key, found)
        return found


def encoded_columns(formats: Iterable[ValueFormat], topic: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a batch that have a format, as bytes.

    Args:
        formats: of the sides.
        topic: where the rows go.
        columns: Arrow arrays by name.

    Raises:
        SerializationError: a value does not fit the schema; also see `ValueEncoder`.
    """
    return {each.side: encoder_of(each, topic, columns[each.side].type).encode(columns[each.side])
            for each in formats if each.has_schema and each.side in columns}
