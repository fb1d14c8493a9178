"""The smallest pieces of the wire format: unsigned varints, tagged fields, UUIDs, and the view of a buffer.

Read next: `wire.writing` and `wire.reading`, the source that is generated around them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from operator import itemgetter
from uuid import UUID, SafeUUID

from headrace.errors import ProtocolError

__all__ = [
    "TINY", "as_view", "read_text_length", "read_uuid", "read_uvarint", "write_tags", "write_text_length",
    "write_uvarint",
]

TINY = 0x80
"""Unsigned varints below this take one byte; generated code writes and reads those in place."""

_MAX_LENGTH = 0x7FFF_FFFF
_LAST_SHIFT = 28
_MAX_TEXT = 0x7FFF
_new = object.__new__
_set = object.__setattr__


def write_uvarint(value: int) -> bytes:
    """Seven bits a byte, the lowest first (KIP-482)."""
    out = bytearray()
    while value >= TINY:
        out.append(value & 0x7F | TINY)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 31 bits.

    Returns:
        The value and the position behind it.

    Raises:
        ProtocolError: it does not end, or is too large to be a length.
        IndexError: the data ends first.
    """
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < TINY:
            break
        if shift == _LAST_SHIFT:
            raise ProtocolError(f"a varint before byte {position} does not end")
        shift += 7
    if value > _MAX_LENGTH:
        raise ProtocolError(f"a varint before byte {position} is too large: {value}")
    return value, position


def write_text_length(above: int) -> bytes:
    """Length of a string plus one, as a varint. Java refuses strings that an int16 cannot measure, here too.

    Raises:
        ValueError: the string is too long.
    """
    if above > _MAX_TEXT + 1:
        raise ValueError(f"a string takes at most {_MAX_TEXT} bytes, not {above - 1}")
    return write_uvarint(above)


def read_text_length(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Read what `write_text_length` writes, and the position behind it.

    Raises:
        ProtocolError: the varint is broken, or the string is too long.
        IndexError: the data ends first.
    """
    above, position = read_uvarint(data, position)
    if above > _MAX_TEXT + 1:
        raise ProtocolError(f"a string before byte {position} has {above - 1} bytes; at most {_MAX_TEXT} are allowed")
    return above, position


def write_tags(
    out: bytearray, known: list[tuple[int, bytes | bytearray]], unknown: Mapping[int, bytes] | None,
    reserved: Collection[int],
) -> None:
    """Append the tagged fields of a structure in the order of their numbers (KIP-482).

    Args:
        out: where to.
        known: number and bytes of each field that is set, in order.
        unknown: those that were read but have no name here.
        reserved: numbers of all fields that have a name.

    Raises:
        ValueError: an unknown field has the number of a known one, or none that fits.
    """
    tags = known
    if unknown:
        for tag in unknown:
            if tag in reserved or not 0 <= tag <= _MAX_LENGTH:
                raise ValueError(f"{tag} cannot be the number of an unknown tagged field")
        tags = sorted([*known, *unknown.items()], key=itemgetter(0))
    out += write_uvarint(len(tags))
    for tag, data in tags:
        out += write_uvarint(tag)
        out += write_uvarint(len(data))
        out += data


@lru_cache(maxsize=16384)
def read_uuid(data: bytes) -> UUID:
    """The UUID of 16 bytes. Kept, because the same topic ids come in every reply.

    It is made without the class's own `__init__`, which asks for five other forms of an id first and costs 1 us.
    """
    made = _new(UUID)
    _set(made, "int", int.from_bytes(data))
    _set(made, "is_safe", SafeUUID.unknown)
    return made


def as_view(data: bytes | bytearray | memoryview) -> memoryview:
    """`data` as a view of single bytes, without a copy."""
    view = memoryview(data)
    if type(data) is bytes:
        return view
    return view if view.format == "B" and view.ndim == 1 and view.contiguous else view.cast("B")
