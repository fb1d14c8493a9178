"""Protobuf's bytes as Python values, record by record: the plain twin of `_protobuf_columns.pyx`, and what it means.

A message is a row of fields: a tag (number << 3 | wire type, a varint), then the value. Wire types: 0 varint, 1 eight
bytes, 2 a length and as many bytes, 5 four bytes; 3 and 4 open and close a group. A field that comes again replaces
the one before, but repeated ones add up, and a message adds to the message before it. Unknown fields, and fields of
another wire type than theirs, are passed over. Read next: `schemas.columns.protobuf.protobuf_plan`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headrace.errors import SerializationError
from headrace.schemas.columns.plain_rows import value_rows
from headrace.schemas.columns.protobuf.protobuf_plan import EnumPlan, FieldPlan, MessagePlan

if TYPE_CHECKING:
    import pyarrow

__all__ = ["read_rows", "write_rows"]

MOST_GROUPS: Final = 100
MOST_CELLS: Final = 1 << 24
_MICROS: Final = 1_000_000
_WIDTHS: Final = {1: 8, 5: 4}
_FORMATS: Final = {"fixed64": "<q", "sfixed64": "<q", "double": "<d", "fixed32": "<i", "sfixed32": "<i", "float": "<f"}
_WIRES: Final = {"fixed64": 1, "sfixed64": 1, "double": 1, "fixed32": 5, "sfixed32": 5, "float": 5} | dict.fromkeys(
    ("string", "bytes", "message", "timestamp", "duration"), 2)
_EMPTY: Final = {"string": "", "bytes": b"", "bool": False, "timestamp": 0, "duration": 0, "float": 0.0, "double": 0.0}
_ZEROS: Final = {"float": b"\0" * 4, "double": b"\0" * 8}
_UNKNOWN: Final = object()
"""A number that a closed enum does not have."""


class _BadMessageError(Exception):
    """The bytes are no message; the text says why, and the tag, where it is known, of which value."""

    tag = 0


class _Found(NamedTuple):
    """The fields of a message as they were found: raw values by name."""

    values: dict[str, Any]
    has_unknown: bool


def read_rows(
    plan: MessagePlan, kind: pyarrow.StructType, payloads: pyarrow.Array
) -> tuple[pyarrow.Array, dict[int, str]]:
    """Read messages.

    Args:
        plan: of the message type.
        kind: of the column.
        payloads: their bytes.

    Returns:
        The column, and what is wrong with the rows that are malformed.
    """
    import pyarrow as pa

    rows: list[Any] = []
    bad: dict[int, str] = {}
    for row, payload in enumerate(payloads):
        data = payload.as_py()
        try:
            rows.append(None if data is None else _Reading().message(plan, [data], ""))
        except _BadMessageError as error:
            rows.append(None)
            bad[row] = str(error)
    return pa.array(rows, kind), bad


class _Reading:
    """Reads one record, and counts its values."""

    def __init__(self) -> None:
        self._cells = 0

    def message(self, plan: MessagePlan, pieces: list[bytes], path: str) -> dict[str, Any]:
        """A message that came in pieces."""
        found = self._scan(plan, pieces, path)
        return {field.name: self._settled(field, found.values, _within(path, field)) for field in plan.fields}

    def _scan(self, plan: MessagePlan, pieces: list[bytes], path: str) -> _Found:
        by_number = {field.number: field for field in plan.fields}
        values: dict[str, Any] = {}
        has_unknown = False
        for piece in pieces:
            for number, wire, raw in _located(by_number, piece, path):
                field = by_number.get(number)
                if field is not None and _takes(field, wire):
                    for one in _unpacked(field, wire, raw, _within(path, field)):
                        if one is _UNKNOWN:
                            has_unknown = True
                        else:
                            has_unknown = has_unknown and field.enum is None
                            self._note(plan, field, one, values, _within(path, field))
        return _Found(values, has_unknown)

    def _note(self, plan: MessagePlan, field: FieldPlan, value: Any, values: dict[str, Any], path: str) -> None:
        if field.kind == "string":
            _text(value, path)
        if field.shape != "one":
            self._count(field, path)
            if field.kind in ("message", "timestamp", "duration"):
                value = self._element(field, value, path)
            if value is not _UNKNOWN:
                values.setdefault(field.name, []).append(value)
            return
        if field.oneof:
            for other in plan.fields:
                if other.oneof == field.oneof and other is not field:
                    values.pop(other.name, None)
        if field.kind in ("message", "timestamp", "duration"):
            values.setdefault(field.name, []).append(value)
        else:
            values[field.name] = value

    def _element(self, field: FieldPlan, data: bytes, path: str) -> Any:
        if field.kind != "message":
            return _time([data], path)
        assert field.message is not None
        if field.shape == "map":
            found = self._scan(field.message, [data], path)
            if found.has_unknown:
                return _UNKNOWN
            return tuple(self._settled(each, found.values, _within(path, each), True) for each in field.message.fields)
        return self.message(field.message, [data], path)

    def _settled(self, field: FieldPlan, values: dict[str, Any], path: str, is_entry: bool = False) -> Any:
        """The value of a column."""
        found = values.get(field.name)
        if field.shape == "map":
            return list(_last_of_each(found or []).items())
        if field.shape == "many":
            return [_shown(field, each) for each in found or []]
        if found is None:
            return self._absent(field, path, is_entry)
        if field.kind == "message":
            assert field.message is not None
            return self.message(field.message, found, path)
        if field.kind in ("timestamp", "duration"):
            return _time(found, path)
        if field.zero_is_null and _is_zero(field, found):
            return None
        return _shown(field, found)

    def _absent(self, field: FieldPlan, path: str, is_entry: bool) -> Any:
        if field.is_required:
            raise _bad("a required field is missing", path)
        if field.default is not None:
            return field.default
        if not (is_entry or (field.is_implicit and not field.zero_is_null)):
            return None
        if field.kind == "message":
            assert field.message is not None
            return self.message(field.message, [], path)
        if field.enum is not None:
            return _shown(field, next(iter(field.enum.numbers.values())))
        return _EMPTY.get(field.kind, 0)

    def _count(self, field: FieldPlan, path: str) -> None:
        self._cells += _cells(field)
        if self._cells > MOST_CELLS:
            raise _bad(f"the message has more than {MOST_CELLS} values", path)


def _cells(field: FieldPlan) -> int:
    if _wire(field) != 2:
        return 1
    own = 1 if field.shape != "one" else 0
    return own + (sum(map(_cells, field.message.fields)) if field.message is not None else 1)


def _last_of_each(entries: list[tuple[Any, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in entries:
        found.pop(key, None)
        found[key] = value
    return found


def _within(path: str, field: FieldPlan) -> str:
    return f"{path}.{field.name}" if path else field.name


def _wire(field: FieldPlan) -> int:
    return _WIRES.get(field.kind, 0)


def _bad(reason: str, path: str) -> _BadMessageError:
    return _BadMessageError(f"field {path}: {reason}" if path else reason)


def _takes(field: FieldPlan, wire: int) -> bool:
    """Whether a field has values of a wire type; repeated numbers may come packed."""
    return wire == _wire(field) or (wire == 2 and field.shape == "many")


def _located(by_number: dict[int, FieldPlan], data: bytes, path: str) -> Iterator[tuple[int, int, Any]]:
    """As `_tags`; an error names the field."""
    try:
        yield from _tags(data)
    except _BadMessageError as error:
        field = by_number.get(error.tag >> 3)
        is_known = field is not None and _takes(field, error.tag & 7)
        raise _bad(str(error), _within(path, field) if field is not None and is_known else path) from None


def _tags(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and raw value of each field; groups are passed over."""
    at = 0
    while at < len(data):
        tag, at = _tag(data, at)
        if tag & 7 in (3, 4):
            at = _behind_group(data, at, tag)
            continue
        try:
            raw, at = _raw(data, at, tag & 7)
        except _BadMessageError as error:
            error.tag = tag
            raise
        yield tag >> 3, tag & 7, raw


def _tag(data: bytes, at: int) -> tuple[int, int]:
    tag, at = _varint(data, at)
    if tag >= 1 << 32 or tag < 8 or tag & 7 > 5:
        raise _BadMessageError("the bytes have no valid tag")
    return tag, at


def _behind_group(data: bytes, at: int, tag: int) -> int:
    open_groups: list[int] = []
    while True:
        wire, number = tag & 7, tag >> 3
        if wire == 3:
            open_groups.append(number)
        elif wire == 4:
            if not open_groups or open_groups.pop() != number:
                raise _BadMessageError("a group is not closed, or too deep")
        else:
            at = _raw(data, at, wire)[1]
        if not open_groups:
            return at
        if len(open_groups) > MOST_GROUPS or at == len(data):
            raise _BadMessageError("a group is not closed, or too deep")
        tag, at = _tag(data, at)


def _raw(data: bytes, at: int, wire: int) -> tuple[Any, int]:
    if wire == 0:
        return _varint(data, at)
    size = _WIDTHS.get(wire, 0)
    if wire == 2:
        size, at = _varint(data, at)
    if size > len(data) - at:
        raise _BadMessageError("the bytes end within a value")
    return data[at:at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[at:at + 10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & (1 << 64) - 1, at + index + 1
    raise _BadMessageError("the bytes end within a value")


def _unpacked(field: FieldPlan, wire: int, raw: Any, path: str) -> Iterator[Any]:
    """The values of a field: one, or those of a packed one."""
    own = _wire(field)
    if wire == own:
        yield _scalar(field, raw)
        return
    at = 0
    while at < len(raw):
        try:
            one, at = _raw(raw, at, own)
        except _BadMessageError as error:
            raise _bad(str(error), path) from None
        yield _scalar(field, one)


def _scalar(field: FieldPlan, raw: Any) -> Any:
    """What the raw value of a number means; of an enum that is its number."""
    kind = field.kind
    if kind in _FORMATS:
        return struct.unpack(_FORMATS[kind], raw)[0]
    if _wire(field) == 2:
        return raw
    if kind == "bool":
        return raw != 0
    if kind.startswith("sint"):
        raw &= (1 << 64) - 1 if kind == "sint64" else (1 << 32) - 1
        return (raw >> 1) ^ -(raw & 1)
    number = _signed(raw, 64 if kind.endswith("64") else 32)
    if field.enum is not None and field.enum.is_closed and number not in field.enum.names:
        return _UNKNOWN
    return number


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _is_zero(field: FieldPlan, value: Any) -> bool:
    if field.kind in _ZEROS:  # minus zero is not zero
        return bool(struct.pack(_FORMATS[field.kind], value) == _ZEROS[field.kind])
    return not value


def _shown(field: FieldPlan, value: Any) -> Any:
    if field.kind == "string" and isinstance(value, bytes):
        return value.decode()
    if field.enum is not None and isinstance(value, int):
        return field.enum.names.get(value, f"{field.enum.unknown_prefix}{value}")
    return value


def _text(value: bytes, path: str) -> None:
    try:
        value.decode()
    except UnicodeDecodeError:
        raise _bad("the text is not UTF-8", path) from None


def _time(pieces: list[bytes], path: str) -> int:
    """Microseconds."""
    parts = {1: 0, 2: 0}
    for piece in pieces:
        try:
            for number, wire, raw in _tags(piece):
                if number in parts and wire == 0:
                    parts[number] = _signed(raw, 64 if number == 1 else 32)
        except _BadMessageError as error:
            raise _bad(str(error), path) from None
    most = ((1 << 63) - 1) // _MICROS
    if not -most < parts[1] < most:
        raise _bad("the time is out of range", path)
    nanos = parts[2]
    return parts[1] * _MICROS + (nanos // 1000 if nanos >= 0 else -(-nanos // 1000))


def write_rows(plan: MessagePlan, kind: pyarrow.StructType, values: pyarrow.Array) -> pyarrow.BinaryArray:
    """Write structs as messages.

    Args:
        plan: of the message type.
        kind: of the column.
        values: structs with some of its fields.

    Raises:
        SerializationError: a value does not fit.
    """
    import pyarrow as pa

    written: list[bytes | None] = []
    for row, value in enumerate(value_rows(values, kind)):
        try:
            written.append(None if value is None else _written(plan, value, ""))
        except _BadMessageError as error:
            raise SerializationError(f"row {row} cannot be written as {plan.name}: {error}") from None
    return pa.array(written, pa.binary())


def _written(plan: MessagePlan, value: dict[str, Any], path: str) -> bytes:
    parts: list[bytes] = []
    seen: set[str] = set()
    for field in sorted(plan.fields, key=lambda each: each.number):
        own = value.get(field.name)
        here = _within(path, field)
        if own is None:
            if field.is_required:
                raise _bad("a required field is null", here)
            continue
        if field.oneof:
            if field.oneof in seen:
                raise _bad("two fields of a oneof are set", here)
            seen.add(field.oneof)
        parts.append(_written_field(field, own, here))
    return b"".join(parts)


def _written_field(field: FieldPlan, value: Any, path: str) -> bytes:
    if field.shape == "one":
        data = _payload(field, value, path)
        is_absent = field.is_implicit and not data.strip(b"\0" if _wire(field) != 2 else b"")
        return b"" if is_absent else _framed(field, data)
    if any(each is None for each in value):
        raise _bad("an element is null", path)
    if field.shape == "map":
        assert field.message is not None
        return b"".join(_framed(field, _entry(field.message, each, path)) for each in value)
    if field.is_packed and value:
        data = b"".join(_payload(field, each, path) for each in value)
        return _number(field.number << 3 | 2) + _number(len(data)) + data
    return b"".join(_framed(field, _payload(field, each, path)) for each in value)


def _entry(plan: MessagePlan, pair: tuple[Any, Any], path: str) -> bytes:
    parts = []
    for field, value in zip(plan.fields, pair, strict=True):
        if value is None:
            raise _bad("a required field is null", _within(path, field))
        parts.append(_framed(field, _payload(field, value, _within(path, field))))
    return b"".join(parts)


def _framed(field: FieldPlan, data: bytes) -> bytes:
    """A value with its tag, and its length if it has one."""
    size = _number(len(data)) if _wire(field) == 2 else b""
    return _number(field.number << 3 | _wire(field)) + size + data


def _payload(field: FieldPlan, value: Any, path: str) -> bytes:
    kind = field.kind
    if kind == "message":
        assert field.message is not None
        return _written(field.message, value, path)
    writer = _WRITERS.get(kind)
    if writer is not None:
        return writer(value)
    if field.enum is not None:
        return _number(_named(field.enum, value, path))
    if kind in _FORMATS:
        return struct.pack(_FORMATS[kind], value)
    if kind == "uint32":
        value &= (1 << 32) - 1
    return _number(value)


def _number(value: int) -> bytes:
    value &= (1 << 64) - 1
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _named(enum: EnumPlan, name: str, path: str) -> int:
    number = enum.numbers.get(name)
    if number is None and not enum.is_closed and name.startswith(enum.unknown_prefix):
        digits = name[len(enum.unknown_prefix):]
        if digits.removeprefix("-").isascii() and digits.removeprefix("-").isdigit() and len(digits) <= 11:
            number = int(digits)
    if number is None or not -1 << 31 <= number < 1 << 31:
        raise _bad("the enum has no such name", path)
    return number


def _time_parts(micros: int, seconds: int, rest: int) -> bytes:
    return (b"\x08" + _number(seconds) if seconds else b"") + (b"\x10" + _number(rest * 1000) if rest else b"")


def _duration(micros: int) -> bytes:
    sign = -1 if micros < 0 else 1
    seconds, rest = divmod(abs(micros), _MICROS)
    return _time_parts(micros, sign * seconds, sign * rest)


_WRITERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "string": lambda value: value.encode(),
    "bytes": lambda value: value,
    "bool": lambda value: b"\1" if value else b"\0",
    "sint32": lambda value: _number((value << 1 ^ value >> 31) & (1 << 32) - 1),
    "sint64": lambda value: _number(value << 1 ^ value >> 63),
    "timestamp": lambda value: _time_parts(value, *divmod(value, _MICROS)),
    "duration": _duration,
}
