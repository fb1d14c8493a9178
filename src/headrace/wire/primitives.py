"""The smallest pieces of the wire format: unsigned varints, UUIDs, and the view of a buffer as plain bytes.

Read next: `wire.writing` and `wire.reading`, the source that is generated around them.
"""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from headrace.errors import ProtocolError

__all__ = ["TINY", "as_view", "read_uvarint", "read_uuid", "write_uvarint"]

TINY = 0x80
"""Unsigned varints below this take one byte; generated code writes and reads those in place."""

_MAX_LENGTH = 0x7FFF_FFFF
_LAST_SHIFT = 28


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


@lru_cache(maxsize=4096)
def read_uuid(data: bytes) -> UUID:
    """The UUID of 16 bytes. Kept, because the same few topic ids come in every reply and making one costs 1 us."""
    return UUID(bytes=data)


def as_view(data: bytes | bytearray | memoryview) -> memoryview:
    """`data` as a view of single bytes, without a copy."""
    view = memoryview(data)
    return view if view.format == "B" and view.ndim == 1 and view.contiguous else view.cast("B")
