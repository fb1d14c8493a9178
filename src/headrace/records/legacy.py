"""Message sets of the formats 0 and 1, which old clients still send. Read only: a broker may write a batch of
what it read.

A message: offset 8, size 4, CRC-32 4, magic 1, attributes 1, timestamp 8 (format 1 only), key and value with lengths
of 4 bytes. A compressed set is the value of one wrapping message whose offset is that of the last one inside; inner
offsets are absolute in format 0 and relative in format 1.

It must not know batches of version 2 beyond what it is given. Source: KIP-31, KIP-32, Java's `LegacyRecord`.
Read next: `headrace.records.batch`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from headrace.errors import CorruptRecordError
from headrace.records.compression import LZ4, decompress

__all__ = ["Record", "check_sum", "read_info", "read_records"]

_HEAD = struct.Struct(">qiIbb")
_LOG_APPEND_TIME = 8


class Record(NamedTuple):
    """One record: its offset, key, value, and (type, milliseconds) as `Message.timestamp()` gives them."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: tuple[int, int]


class _Entry(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    size: int


_Info = TypeVar("_Info")


def read_info(make: Callable[[tuple[int, ...]], _Info], view: memoryview, position: int, topic: str, partition: int,
              ) -> _Info | None:
    """The message at a position as a batch of one; None if it is not whole. `count` is 1 also for a wrapper."""
    if len(view) - position < 18:
        return None
    offset, length, _, magic, attributes = _HEAD.unpack_from(view, position)
    if magic not in (0, 1) or offset < 0 or length < 14 + 8 * magic:
        raise CorruptRecordError(f"message at offset {offset} of {topic}[{partition}]: bad header")
    if position + 12 + length > len(view):
        return None
    timestamp = int.from_bytes(view[position + 18 : position + 26], "big", signed=True) if magic else -1
    return make((offset, offset, magic, attributes & 0x0F, -1, timestamp, timestamp, -1, -1, -1, 1, position,
                 12 + length))


def check_sum(view: memoryview, position: int, size: int, topic: str, partition: int) -> None:
    """Compare the message's checksum with its bytes.

    Raises:
        CorruptRecordError: they differ.
    """
    offset, _, expected, _, _ = _HEAD.unpack_from(view, position)
    if zlib.crc32(view[position + 16 : position + size]) != expected:
        raise CorruptRecordError(f"message at offset {offset} of {topic}[{partition}]: wrong checksum")


def read_records(view: memoryview, position: int, limit: int) -> list[Record]:
    """The records of the message at a position: one, or all that it wraps.

    Raises:
        CorruptRecordError: the bytes are damaged.
    """
    outer = _read_entry(view, position)
    if not outer.attributes & 7:
        return [_record(outer, outer.offset, outer)]
    plain = memoryview(_unpack(outer, limit))
    inner = []
    at = 0
    while at < len(plain):
        inner.append(_read_entry(plain, at))
        at += inner[-1].size
    if not inner or any(entry.attributes & 7 for entry in inner):
        raise CorruptRecordError("a compressed message set is empty or nested")
    base = outer.offset - inner[-1].offset if outer.magic else 0
    return [_record(entry, base + entry.offset, outer) for entry in inner]


def _unpack(outer: _Entry, limit: int) -> bytes:
    codec = outer.attributes & 7
    data = outer.value or b""
    if codec == LZ4 and outer.magic == 0 and len(data) > 6:
        # Format 0's writers summed the wrong bytes of the frame's head; the right sum is put in its place.
        data = _mend_lz4(data)
    return decompress(codec, data, limit)


def _mend_lz4(data: bytes) -> bytes:
    size = 2 + 8 * bool(data[4] & 0x08) + 4 * bool(data[4] & 0x01)
    return data[: 4 + size] + bytes([_xxh32(data[4 : 4 + size]) >> 8 & 0xFF]) + data[5 + size :]


def _xxh32(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes."""
    mask, p1, p2, p3, p4, p5 = 0xFFFFFFFF, 2654435761, 2246822519, 3266489917, 668265263, 374761393
    h = p5 + len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        h = (h + int.from_bytes(data[at : at + 4], "little") * p3) & mask
        h = ((h << 17 | h >> 15) & mask) * p4 & mask
    for byte in data[whole:]:
        h = (h + byte * p5) & mask
        h = ((h << 11 | h >> 21) & mask) * p1 & mask
    h = (h ^ h >> 15) * p2 & mask
    h = (h ^ h >> 13) * p3 & mask
    return h ^ h >> 16


def _read_entry(view: memoryview, position: int) -> _Entry:
    if len(view) - position < 18:
        raise CorruptRecordError("a message passes the end of its set")
    offset, length, _, magic, attributes = _HEAD.unpack_from(view, position)
    end = position + 12 + length
    if magic not in (0, 1) or length < 14 + 8 * magic or end > len(view):
        raise CorruptRecordError("a message has a bad header")
    at = position + 18 + 8 * magic
    timestamp = int.from_bytes(view[position + 18 : at], "big", signed=True) if magic else -1
    key, at = _field(view, at, end)
    value, at = _field(view, at, end)
    if at != end:
        raise CorruptRecordError("a message's length does not fit its fields")
    return _Entry(offset, magic, attributes, timestamp, key, value, 12 + length)


def _field(view: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    if end - at < 4:
        raise CorruptRecordError("a field of a message passes its end")
    size = int.from_bytes(view[at : at + 4], "big", signed=True)
    at += 4
    if size == -1:
        return None, at
    if not 0 <= size <= end - at:
        raise CorruptRecordError("a field of a message passes its end")
    return bytes(view[at : at + size]), at + size


def _record(entry: _Entry, offset: int, outer: _Entry) -> Record:
    if entry.magic == 0:
        stamp = (0, 0)
    elif outer.attributes & _LOG_APPEND_TIME:
        stamp = (2, outer.timestamp)
    else:
        stamp = (1, entry.timestamp)
    return Record(offset, entry.key, entry.value, stamp)
