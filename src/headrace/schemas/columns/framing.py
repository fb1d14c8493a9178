"""What Confluent's serializers put before a payload, split off and put on for a whole column.

A 0 byte and the schema's id in four bytes, or a 1 byte and its GUID in sixteen; Protobuf adds which message of the file
it is. The rows of one schema become a column of their own, so that a codec never looks at framing.

It must not know a registry. Read next: `schemas.columns.column_codec`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FramedRows", "SplitRows", "put_on", "split_message_indexes", "split_off"]

_ID_SIZE: Final = 5
_GUID_SIZE: Final = 17
_MOST_INDEXES: Final = 100
_LONGEST_VARINT: Final = 5
_END: Final = 2**31 - 1
"""Said, because `binary_slice` without an end fails on short payloads (pyarrow 26)."""
SchemaNumber = int | str
"""A schema's id, or its GUID as text."""


@dataclass(frozen=True, slots=True)
class FramedRows:
    """The payloads that were written with one schema.

    Attributes:
        schema: its id, or its GUID as text.
        rows: where they stand in the whole column (int32, ascending); None when they are all of it.
        bodies: their payloads without framing.
        message_indexes: for Protobuf, the place of the message's type in its file; empty where nothing was asked.
    """

    schema: SchemaNumber
    rows: pyarrow.Array | None
    bodies: pyarrow.BinaryArray
    message_indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitRows:
    """A column, by schema.

    Attributes:
        groups: rows of one schema each, in the order in which the schemas appear.
        malformed: rows that do not begin as they must, and why. Null rows are in neither.
    """

    groups: list[FramedRows]
    malformed: dict[int, str]


def split_off(payloads: pyarrow.BinaryArray) -> SplitRows:
    """Split the schema's number off each payload.

    Args:
        payloads: with framing; null rows are passed over.
    """
    import pyarrow.compute as pc

    heads = pc.binary_slice(payloads, 0, _ID_SIZE).dictionary_encode()
    distinct = heads.dictionary.to_pylist()
    if len(distinct) == 1 and heads.null_count == 0 and _is_id(distinct[0]):
        return SplitRows([FramedRows(_id_of(distinct[0]), None, pc.binary_slice(payloads, _ID_SIZE, _END))], {})
    numbers: list[SchemaNumber | str | None] = [_id_of(head) if _is_id(head) else None for head in distinct]
    by_schema: dict[SchemaNumber, list[int]] = {}
    malformed: dict[int, str] = {}
    for row, code in enumerate(heads.indices.to_pylist()):
        if code is None:
            continue
        number = numbers[code]
        if number is None:
            found = _guid_of(payloads[row].as_py())
            if found is None:
                malformed[row] = _no_framing(distinct[code])
                continue
            number = found
        by_schema.setdefault(number, []).append(row)
    return SplitRows([_taken(payloads, number, rows) for number, rows in by_schema.items()], malformed)


def _taken(payloads: pyarrow.BinaryArray, number: SchemaNumber, rows: list[int]) -> FramedRows:
    import pyarrow
    import pyarrow.compute as pc

    places = pyarrow.array(rows, pyarrow.int32())
    bodies = pc.binary_slice(payloads.take(places), _ID_SIZE if isinstance(number, int) else _GUID_SIZE, _END)
    return FramedRows(number, places, bodies)


def _is_id(head: bytes) -> bool:
    return len(head) == _ID_SIZE and head[0] == 0


def _id_of(head: bytes) -> int:
    return int.from_bytes(head[1:], "big")


def _guid_of(payload: bytes) -> str | None:
    whole = len(payload) >= _GUID_SIZE and payload[0] == 1
    return str(uuid.UUID(bytes=payload[1:_GUID_SIZE])) if whole else None


def _no_framing(head: bytes) -> str:
    if not head:
        return "the payload is empty: a schema's number should stand first"
    if head[0] in (0, 1):
        return "the payload ends within the schema's number"
    return f"the first byte is {head[0]}: 0 or 1, and a schema's number, should stand first"


def split_message_indexes(group: FramedRows) -> SplitRows:
    """Split Protobuf's message indexes off the payloads of one schema.

    Args:
        group: as `split_off` gives it.

    Returns:
        A group for each message; rows are those of the whole column, of malformed ones too.
    """
    import pyarrow.compute as pc

    first = pc.unique(pc.binary_slice(group.bodies, 0, 1)).to_pylist()
    if first == [b"\0"]:
        return SplitRows([FramedRows(group.schema, group.rows, pc.binary_slice(group.bodies, 1, _END), (0,))], {})
    by_message: dict[tuple[int, ...], tuple[list[int], list[bytes]]] = {}
    malformed: dict[int, str] = {}
    rows = range(len(group.bodies)) if group.rows is None else group.rows.to_pylist()
    for row, body in zip(rows, group.bodies.to_pylist(), strict=True):
        if body is None:
            continue
        found = _indexes(body)
        if found is None:
            malformed[row] = "the payload does not begin with Protobuf's message indexes"
            continue
        places, bodies = by_message.setdefault(found[0], ([], []))
        places.append(row)
        bodies.append(body[found[1]:])
    return SplitRows([_message_rows(group.schema, indexes, *each) for indexes, each in by_message.items()], malformed)


def _message_rows(
    schema: SchemaNumber, indexes: tuple[int, ...], rows: list[int], bodies: list[bytes]
) -> FramedRows:
    import pyarrow

    return FramedRows(
        schema, pyarrow.array(rows, pyarrow.int32()), pyarrow.array(bodies, pyarrow.binary()), indexes)


def _indexes(body: bytes) -> tuple[tuple[int, ...], int] | None:
    """The indexes, and where they end; None when they are none."""
    count, at = _varint(body, 0)
    if not 0 <= count <= _MOST_INDEXES:
        return None
    found = []
    for _ in range(count):
        index, at = _varint(body, at)
        if index < 0:
            return None
        found.append(index)
    return tuple(found) or (0,), at


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """A zigzag number and where it ends; negative when there is none."""
    value = 0
    for place, byte in enumerate(body[at:at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * place)
        if byte <= 0x7F:
            return (value >> 1) ^ -(value & 1), at + place + 1
    return -1, at


def put_on(
    bodies: pyarrow.BinaryArray, schema_id: int, message_indexes: Sequence[int] | None = None
) -> pyarrow.BinaryArray:
    """Put a schema's id before each payload.

    Args:
        bodies: payloads; null stays null.
        schema_id: number in the registry.
        message_indexes: for Protobuf, the place of the message's type in its file; None for other formats.
    """
    import pyarrow
    import pyarrow.compute as pc

    head = b"\0" + schema_id.to_bytes(4, "big")
    if message_indexes is not None:
        head += b"\0" if list(message_indexes) == [0] else b"".join(
            _zigzag(each) for each in (len(message_indexes), *message_indexes))
    binary = pyarrow.binary()
    return pc.binary_join_element_wise(pyarrow.scalar(head, binary), bodies, pyarrow.scalar(b"", binary))


def _zigzag(value: int) -> bytes:
    left, made = value << 1, bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*made, left))
