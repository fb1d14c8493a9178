"""Message sets of the formats 0 and 1, which old clients still send and old logs still hold: bytes into records.

A message: offset 8, size 4, CRC-32 4, magic 1, attributes 1, timestamp 8 (format 1 only), key and value with lengths
of 4 bytes. A compressed set is the value of one wrapping message whose offset is that of the last one inside and whose
timestamp is the largest inside; inner offsets are absolute in format 0 and relative to the first in format 1.
Attributes: bits 0-2 codec (zstd came later and is not allowed), bit 3 of format 1: the timestamp is the broker's.

It must not know batches of version 2 beyond what it is given. `headrace.records.legacy.message_set_writer` writes.
Source: KIP-31, KIP-32, KAFKA-3160, Java's `LegacyRecord` and `AbstractLegacyRecordBatch`.
Read next: `headrace.records.batch`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from headrace.errors import CorruptRecordError
from headrace.records.compression import LZ4, decompress

__all__ = [
    "LOG_APPEND_TIME",
    "NO_TIMESTAMP",
    "MessageSet",
    "LegacyRecord",
    "check_sum",
    "read_info",
    "read_set",
    "resum_lz4",
]

HEAD = struct.Struct(">qiIbb")
LOG_APPEND_TIME = 8
NO_TIMESTAMP = -1
_CODEC = 7
_LAST = (1 << 63) - 1  # no record has this offset: the one behind it must have 64 bits too
_LENGTH = struct.Struct(">i")
_TIME = struct.Struct(">q")


class LegacyRecord(NamedTuple):
    """One record: its offset, key, value, and (type, milliseconds) as `Message.timestamp()` gives them."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: tuple[int, int]


class MessageSet(NamedTuple):
    """What a message holds: itself, or the messages that it wraps. The records are made one by one."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which is not needed here
    size: int  # bytes, uncompressed
    records: Iterator[LegacyRecord]


class _Entry(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None
    size: int


_Info = TypeVar("_Info")


def read_info(make: Callable[[tuple[int, ...]], _Info], view: memoryview, position: int, topic: str, partition: int,
              stored: bool = True) -> _Info | None:
    """The message at a position as a batch of one; None if it is not whole. `count` is 1 also for a wrapper.

    Args:
        make: from a tuple of a `BatchInfo`'s fields.
        view: the bytes.
        position: where it begins.
        topic: for errors.
        partition: for errors.
        stored: it comes from a log; before that its offset may be anything (a client's).

    Raises:
        CorruptRecordError: its header cannot be true.
    """
    if len(view) - position < 18:
        return None
    offset, length, _, magic, attributes = HEAD.unpack_from(view, position)
    if magic not in (0, 1) or (stored and not 0 <= offset < _LAST) or length < 14 + 8 * magic:
        raise CorruptRecordError(f"message at offset {offset} of {topic}[{partition}]: bad header (format {magic}, "
                                 f"length {length})")
    if position + 12 + length > len(view):
        return None
    timestamp = _TIME.unpack_from(view, position + 18)[0] if magic else NO_TIMESTAMP
    known = _CODEC | LOG_APPEND_TIME if magic else _CODEC
    return make((offset, offset, magic, attributes & known, -1, timestamp, timestamp, -1, -1, -1, 1, position,
                 12 + length))


def check_sum(view: memoryview, position: int, size: int, topic: str, partition: int) -> None:
    """Compare the message's checksum with its bytes.

    Raises:
        CorruptRecordError: they differ.
    """
    offset, _, expected, _, _ = HEAD.unpack_from(view, position)
    if zlib.crc32(view[position + 16 : position + size]) != expected:
        raise CorruptRecordError(f"message at offset {offset} of {topic}[{partition}]: wrong checksum")


def read_set(view: memoryview, position: int, limit: int, check_crcs: bool, stored: bool = True) -> MessageSet:
    """The message at a position, or all that it wraps. Everything is checked before the first record is made.

    Args:
        view: the bytes; the message is whole (`read_info`).
        position: where it begins.
        limit: most bytes that it may decompress to.
        check_crcs: compare the checksums of wrapped messages; the outer one is `check_sum`'s.
        stored: it comes from a log, so that offsets mean something.

    Raises:
        CorruptRecordError: the bytes are damaged, or wrap nothing, another format or a wrapper.
    """
    outer = _read_entry(view, position)
    if not outer.attributes & _CODEC:
        return MessageSet(1, outer.size, iter([_record(outer, outer.offset, outer)]))
    plain = memoryview(_unpack(outer, limit))
    count = at = last = most = 0
    for entry in _entries(plain):
        if entry.attributes & _CODEC or entry.magic != outer.magic:
            raise CorruptRecordError("a compressed message set holds another one, or another format")
        if check_crcs:
            _check_inner(plain, at, entry)
        at += entry.size
        last = entry.offset
        most = max(most, last)
        count += 1
    if not count:
        raise CorruptRecordError("a compressed message set is empty")
    base = _base_offset(outer, last, most) if stored else 0
    return MessageSet(count, len(plain), (_record(entry, base + entry.offset, outer) for entry in _entries(plain)))


def _entries(plain: memoryview) -> Iterator[_Entry]:
    at = 0
    while at < len(plain):
        entry = _read_entry(plain, at)
        yield entry
        at += entry.size


def _base_offset(outer: _Entry, last: int, most: int) -> int:
    """What is added to inner offsets. Old librdkafka left the wrapper's offset 0: they are taken as they are then."""
    base = outer.offset - last if outer.magic and outer.offset else 0
    if base < 0 or base + most >= _LAST:
        raise CorruptRecordError(f"a message set's last offset is {last}, its wrapper says {outer.offset}")
    return base


def _check_inner(plain: memoryview, at: int, entry: _Entry) -> None:
    if zlib.crc32(plain[at + 16 : at + entry.size]) != int.from_bytes(plain[at + 12 : at + 16], "big"):
        raise CorruptRecordError("a wrapped message has a wrong checksum")


def _unpack(outer: _Entry, limit: int) -> bytes:
    codec = outer.attributes & _CODEC
    if codec > LZ4:
        raise CorruptRecordError(f"compression codec {codec} is unknown in format {outer.magic}")
    if outer.value is None:
        raise CorruptRecordError("a compressed message set is null")
    if codec == LZ4 and outer.magic == 0:
        return decompress(codec, resum_lz4(bytes(outer.value)), limit)
    return decompress(codec, outer.value, limit)


def resum_lz4(data: bytes, with_magic: bool = False) -> bytes:
    """An LZ4 frame with the checksum of its head set anew.

    Args:
        data: the frame.
        with_magic: sum the frame's magic number too, as all writers of format 0 did (KAFKA-3160).
    """
    if len(data) < 7:
        return data
    end = 6 + 8 * bool(data[4] & 0x08) + 4 * bool(data[4] & 0x01)
    return data[:end] + bytes([_xxh32(data[0 if with_magic else 4 : end]) >> 8 & 0xFF]) + data[end + 1 :]


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
    offset, length, _, magic, attributes = HEAD.unpack_from(view, position)
    end = position + 12 + length
    if magic not in (0, 1) or length < 14 + 8 * magic or end > len(view):
        raise CorruptRecordError("a message has a bad header")
    at = position + 18 + 8 * magic
    timestamp = _TIME.unpack_from(view, position + 18)[0] if magic else NO_TIMESTAMP
    key, at = _field(view, at, end)
    value, at = _field(view, at, end)
    if at != end:
        raise CorruptRecordError("a message's length does not fit its fields")
    return _Entry(offset, magic, attributes, timestamp, key, value, 12 + length)


def _field(view: memoryview, at: int, end: int) -> tuple[memoryview | None, int]:
    if end - at < 4:
        raise CorruptRecordError("a field of a message passes its end")
    size, = _LENGTH.unpack_from(view, at)
    at += 4
    if size == -1:
        return None, at
    if not 0 <= size <= end - at:
        raise CorruptRecordError("a field of a message passes its end")
    return view[at : at + size], at + size


def _record(entry: _Entry, offset: int, outer: _Entry) -> LegacyRecord:
    """A record from its message; the wrapper's kind of timestamp holds for all inside."""
    if entry.magic == 0:
        stamp = (0, 0)
    elif outer.attributes & LOG_APPEND_TIME:
        stamp = (2, outer.timestamp)
    else:
        stamp = (1, entry.timestamp)
    key, value = entry.key, entry.value
    return LegacyRecord(offset, None if key is None else bytes(key), None if value is None else bytes(value), stamp)
