"""Values read by the schemas that they were written with, as texts of JSON, for those who show them.

No schema is planned: each value says which one it has. Read next: `headrace.values.schema_formats`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Final

from headrace.errors import SerializationError
from headrace.values.schema_formats import schema_format

if TYPE_CHECKING:
    import pyarrow

    from headrace.schemas.columns.column_codec import ColumnCodec
    from headrace.schemas.columns.framing import FramedRows
    from headrace.values.registry_access import RegistryAccess

__all__ = ["UnreadableValueError", "WrittenValues"]

_JSON: Final = "json-schema"
_Key = tuple[int | str, tuple[int, ...]]


class UnreadableValueError(SerializationError):
    """A value is not what its format says.

    Args:
        row: which one, counted from 0.
        why: what is wrong.
    """

    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row = row


class WrittenValues:
    """Reads values with a schema's number in front of them. Needs pyarrow.

    Args:
        format_name: "avro", "protobuf" or "json-schema".
        registry: knows the schemas.
    """

    def __init__(self, format_name: str, registry: RegistryAccess) -> None:
        self._format = None if format_name == _JSON else schema_format(format_name)
        self._registry = registry
        self._codecs: dict[_Key, ColumnCodec] = {}

    def texts(self, payloads: Sequence[bytes | None]) -> list[bytes | None]:
        """The values as JSON; null stays null.

        Bytes are in base64, times in ISO 8601, decimals and what JSON has no number for are strings.

        Raises:
            UnreadableValueError: a value has no schema's number, or is damaged.
            SchemaRegistryError: the registry did not answer, or refused.
        """
        import pyarrow as pa

        from headrace.schemas.columns.framing import split_message_indexes, split_off

        split = split_off(pa.array(payloads, pa.binary()))
        malformed, groups = dict(split.malformed), split.groups
        if self._format is not None and self._format.has_messages:
            parts = [split_message_indexes(group) for group in groups]
            groups = [each for part in parts for each in part.groups]
            for part in parts:
                malformed |= part.malformed
        if malformed:
            raise UnreadableValueError(min(malformed), malformed[min(malformed)])
        found: list[bytes | None] = [None] * len(payloads)
        for group in groups:
            rows = range(len(payloads)) if group.rows is None else group.rows.to_pylist()
            for row, text in zip(rows, self._decoded(group, rows), strict=True):
                found[row] = text
        return found

    def _decoded(self, group: FramedRows, rows: Sequence[int]) -> list[bytes | None]:
        if self._format is None:
            return [_checked(body, row) for body, row in zip(group.bodies.to_pylist(), rows, strict=True)]
        decoded = self._codec(group, rows[0]).decode(group.bodies)
        if decoded.malformed:
            first = min(decoded.malformed)
            raise UnreadableValueError(rows[first], decoded.malformed[first])
        shown = _shown(decoded.values.type)
        return [None if value is None else _text(shown(value)) for value in decoded.values.to_pylist()]

    def _codec(self, group: FramedRows, row: int) -> ColumnCodec:
        from headrace.schemas.parsed import InvalidSchemaError
        from headrace.values.registry_access import UnknownSchemaError

        key = group.schema, group.message_indexes
        if key not in self._codecs:
            assert self._format is not None
            try:
                writer = self._registry.by_number(group.schema)
                self._codecs[key] = self._format.codec(writer, message=self._message(writer, group.message_indexes))
            except (UnknownSchemaError, InvalidSchemaError) as error:
                raise UnreadableValueError(row, str(error)) from None
        return self._codecs[key]

    def _message(self, writer: Any, indexes: tuple[int, ...]) -> str:
        """The full name of the message at a place; empty for a format that has none."""
        if self._format is None or not self._format.has_messages:
            return ""
        from headrace.schemas.columns.protobuf.protobuf_plan import message_at
        from headrace.values.protobuf_format import parsed_protobuf

        return message_at(parsed_protobuf(writer), indexes or (0,))


def _checked(body: bytes | None, row: int) -> bytes | None:
    try:
        if body is not None:
            json.loads(body)
    except ValueError as error:
        raise UnreadableValueError(row, f"not JSON: {error}") from None
    return body


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _shown(kind: pyarrow.DataType) -> Callable[[Any], Any]:
    """How values of a type are written in JSON."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        fields = [(field.name, _shown(field.type)) for field in kind]
        return lambda value: None if value is None else {name: show(value[name]) for name, show in fields}
    if pa.types.is_map(kind):
        key, item = _shown(kind.key_type), _shown(kind.item_type)
        return lambda value: None if value is None else {str(key(name)): item(each) for name, each in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _shown(kind.value_type)
        return lambda value: None if value is None else [element(each) for each in value]
    return _single


def _single(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, (date, datetime, time)) else str(value)
