"""Zigzag varints and length-prefixed bytes, as records use them. Every read is checked against the end.

Read next: `headrace.records.batch`.
"""

from __future__ import annotations

from headrace.errors import CorruptRecordError

__all__ = ["read_varint", "take_bytes", "write_bytes", "write_varint"]


def write_varint(out: bytearray, value: int) -> None:
    """Append a number of at most 64 bits."""
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)


def write_bytes(out: bytearray, data: bytes | None) -> None:
    """Append bytes with their length in front; -1 stands for None."""
    if data is None:
        out.append(1)
    else:
        write_varint(out, len(data))
        out += data


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number at a place, and the place behind it.

    Raises:
        CorruptRecordError: it passes the end or has more than 64 bits.
    """
    rest = 0
    for index, byte in enumerate(data[at : at + 10]):
        rest |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if rest >= 1 << 64:
                break
            return (rest >> 1) ^ -(rest & 1), at + index + 1
    raise CorruptRecordError("a number in a record passes its end or has more than 64 bits")


def take_bytes(data: memoryview, at: int) -> tuple[bytes | None, int]:
    """The length-prefixed bytes at a place, and the place behind them.

    Raises:
        CorruptRecordError: they pass the end.
    """
    size, at = read_varint(data, at)
    if size == -1:
        return None, at
    if not 0 <= size <= len(data) - at:
        raise CorruptRecordError("a field of a record passes its end")
    return bytes(data[at : at + size]), at + size
