"""The target `native`: `headrace.records._batch`, `headrace.records._joined_rows` and `headrace.buffers._buffer` from
every side from which bytes come.

The first byte chooses the entry, the second how; entries with a twin are compared with it where bit 7 says so, because
a silent difference is damage as well.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from typing import Any

from headrace.errors import CorruptRecordError, KafkaException
from headrace.records import compress, crc32c
from headrace.records.columns.columns import BinaryColumn, HeaderColumn
from headrace.records.columns.joined_rows import BYTES, HEADERS, JSON, NUMBER, SIZE, SIZE_32, TIME, RowPart
from tests.support.twins import NATIVE, PLAIN
from tests.unit.records.samples import tabled, taken, told

from .taker import Taker

LIMIT = 1 << 16
COMPARE = 0x80
_MAX_BATCH = 1 << 12


def run(data: bytes, compare: bool = False) -> None:
    """One input. Returns, or raises what must never be raised.

    Args:
        data: the fuzzer's bytes.
        compare: hold the plain twin beside the native module, whatever the input says.
    """
    taker = Taker(data)
    entry, how = ENTRIES[taker.byte() % len(ENTRIES)], taker.byte()
    rest = taker.rest()
    result = entry(NATIVE, rest, how)
    if (compare or how & COMPARE) and entry not in NOT_COMPARED:
        expected = entry(PLAIN, rest, how)
        assert result == expected, f"{entry.__name__}: native {result!r:.500}, plain {expected!r:.500}"


def summed(data: bytes) -> bytes:
    """The same with the right checksum on every whole batch and every message of an old format."""
    fixed, at = bytearray(data), 0
    while len(fixed) - at >= 26:
        size = int.from_bytes(fixed[at + 8 : at + 12], "big", signed=True) + 12
        if size < 26 or at + size > len(fixed):
            break
        if fixed[at + 16] < 2:
            struct.pack_into(">I", fixed, at + 12, zlib.crc32(fixed[at + 16 : at + size]))
        elif size >= 61:
            struct.pack_into(">I", fixed, at + 17, crc32c(bytes(fixed[at + 21 : at + size])))
        at += size
    return bytes(fixed)


def _bytes_of(data: bytes, how: int) -> tuple[bytes, dict[str, Any]]:
    """What the cursor reads: the bytes as they are, summed, or as records that are compressed into a batch."""
    if how & 1:
        data = summed(data)
    elif how & 2 and len(data) >= 61:  # what stands behind the header is not compressed yet
        packed = compress((how >> 2) & 3, data[61:])
        head = bytearray(data[:61])
        struct.pack_into(">i", head, 8, 49 + len(packed))
        head[22] = head[22] & 0xF8 | (how >> 2) & 3
        data = summed(bytes(head) + packed)
    aborted = [(7, 0), (int.from_bytes(data[43:51], "big", signed=True), 0)] if how & 0x10 else None
    return data, {"check_crcs": not how & 0x20, "max_decompressed_bytes": LIMIT, "aborted": aborted}


def cursor(twin: Any, data: bytes, how: int) -> Any:
    """Records one by one or in steps."""
    data, settings = _bytes_of(data, how)
    return taken(twin, data, 1 if how & 0x40 else 1 << 31, how & 8 and 3, **settings)


def columns(twin: Any, data: bytes, how: int) -> Any:
    """Records into columns."""
    data, settings = _bytes_of(data, how)
    settings["max_rows"] = 3 if how & 0x40 else 1 << 31
    return tabled(twin, data, how & 8 and 3, 1 << 40 if how & 8 else 1 << 62, max_column_bytes=1 << 12, **settings)


def headers(twin: Any, data: bytes, how: int) -> Any:
    """Batches' headers and sums, and the functions that write into them."""
    if how & 1:
        data = summed(data)
    story = [told(twin.scan, data), told(twin.verify, data)]
    batch = bytearray(data)
    story.append(told(twin.set_base_offset, batch, how, -1))
    story.append(told(twin.set_log_append_time, memoryview(batch), how))
    return [*story, bytes(batch)]


def sums(twin: Any, data: bytes, how: int) -> Any:
    """Sums and hashes."""
    start = how % (len(data) + 1)
    assert NATIVE.crc32c(data, how) == NATIVE.crc32c_portable(data, how)
    assert NATIVE.crc32c(data[start:], NATIVE.crc32c(data[:start])) == NATIVE.crc32c(data)
    return [twin.crc32c(data, how), twin.murmur2(data), twin.fnv1a(data), twin.crc32(data)]


def changing(twin: Any, data: bytes, how: int) -> Any:
    """Bytes to which someone writes while messages point into them: anything may be read, but nothing beyond them."""
    taker = Taker(data)
    changes = [(taker.byte(), taker.byte()) for _ in range(how & 7)]
    batch = bytearray(summed(taker.rest()))
    try:
        made = twin.Cursor(batch, "t", 0, 0, max_decompressed_bytes=LIMIT).take(100)
    except CorruptRecordError:
        return None
    for at, byte in changes:
        if batch:
            batch[(61 + at) % len(batch)] = byte
    for message in made:
        told(message.key)
        told(message.value)
        told(message.headers)
        told(message.__repr__)
        told(message.set_topic, "other")
    return None


def _input(taker: Taker) -> tuple[Any, ...]:
    kind = taker.byte()
    return (None if kind & 1 else taker.piece(), taker.piece(), None if kind & 2 else taker.piece(),
            taker.number() if kind & 4 else 0, bool(kind & 8))


def arrow(twin: Any, data: bytes, how: int) -> Any:
    """Arrow's buffers whose offsets and sizes may be anything."""
    taker = Taker(data)
    buffer = _buffer(twin, taker)
    start, stop = taker.number() if how & 1 else 0, taker.number()
    if stop - start > 200 and stop < 2**31:
        stop = start + 200
    key = _input(taker) if how & 2 else None
    value = _input(taker) if how & 4 else None
    partitions = taker.maybe_piece() if how & 8 else None
    timestamps = taker.maybe_piece() if how & 16 else None
    lists = (_input(taker), _input(taker), _input(taker)) if how & 32 else None
    if key is value is lists is partitions is timestamps is None:
        stop = min(stop, 200)  # rows of nothing, as many as are asked for
    try:
        twin.append_columns(buffer, start, stop, key, value, partitions, timestamps, lists)
    except (IndexError, ValueError, KafkaException):
        pass
    return _drain(buffer)


def _buffer(twin: Any, taker: Taker) -> Any:
    names = ("random", "consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random",
             "uniform_sticky")
    kind = taker.byte()
    return twin.RecordAccumulator(
        "t", (1, 4, 0, 3)[kind >> 3 & 3], twin.BufferPool(30, 10_000), partitioner=names[kind & 7],
        batch_bytes=(61, 100, 1_000, 1 << 20)[kind >> 5 & 3], batch_count=(1, 2, 10_000, 10_000)[kind >> 6],
        message_bytes=2_000, seed=9)


def _drain(buffer: Any) -> Any:
    """The batches of a buffer as bytes, and their reports."""
    story = []
    for opened in buffer.open_batches.ready(math.inf):
        story += [opened.partition, opened.count, opened.size_bytes, opened.cost_bytes, opened.data_bytes]
        sealed = opened.seal(opened.count % 4)
        sealed.stamp(2**62, 1, 2**31 - 1, transactional=True)
        story += [bytes(sealed.data), [(message.key(), message.value(), message.headers())
                                       for _, message in opened.messages(5, 1, 0, None, 0.0)]]
    return story


def produced(twin: Any, data: bytes, how: int) -> Any:
    """Records of all sizes and with all kinds of headers into a topic's buffer."""
    taker = Taker(data)
    buffer = _buffer(twin, taker)
    story: list[Any] = []
    while taker.more and len(story) < 100:
        kind = taker.byte()
        value: Any = taker.maybe_piece()
        if kind & 1 and value is not None:
            value = value.decode("latin-1") * (1 + 20 * (kind >> 7))
        pairs: Any = [(taker.piece().decode("utf-8", "surrogateescape"), taker.maybe_piece())
                      for _ in range(kind >> 1 & 3)]
        if kind & 8:
            pairs = dict(pairs)
        partition, timestamp = (taker.number(), taker.number()) if kind & 16 else (-1, 5)
        try:
            story.append(buffer.append(value, taker.maybe_piece(), max(-2, min(partition, 5)), timestamp or 1,
                                       pairs if kind & 6 else None, print if kind & 32 else None))
        except (KafkaException, ValueError) as error:
            story.append(type(error).__name__)
        if kind & 64 and taker.byte() & 7 == 0:
            buffer.grow(taker.byte() & 15)
            buffer.shrink(taker.byte() & 15)
            buffer.weigh([taker.byte() + 1] * min(buffer.partition_count, 3) or None)
    return [story, _drain(buffer)]


def built(twin: Any, data: bytes, how: int) -> Any:
    """A batch of records as they come, and read again."""
    taker = Taker(data)
    builder = twin.BatchBuilder(taker.byte() * 16, 1 + taker.byte())
    while taker.more:
        pairs = [(taker.piece(), taker.maybe_piece()) for _ in range(taker.byte() & 3)]
        builder.append(taker.number(), taker.maybe_piece(), taker.maybe_piece(), pairs)
    batch = builder.seal(how & 3)
    return [builder.count, bytes(batch.data), taken(twin, bytes(batch.data), max_decompressed_bytes=1 << 20)]


def joined(twin: Any, data: bytes, how: int) -> Any:
    """Rows of lists, with JSON of whatever is text or is none."""
    taker = Taker(data)
    column = []
    while taker.more:
        column.append(taker.maybe_piece())
    parts = [RowPart(kind, b"-", column, how >> 3 & 1) for kind in (JSON, BYTES, SIZE, SIZE_32)[how & 3:]]
    return _pieces(twin, parts, max(len(column) - (how >> 3 & 1), 0), 1 << (how >> 4 & 7))


def joined_columns(twin: Any, data: bytes, how: int) -> Any:
    """Rows of columns whose offsets may be anything: nothing beyond them may be read."""
    taker = Taker(data)
    cells = BinaryColumn(taker.maybe_piece(), taker.piece(), taker.piece())
    names = BinaryColumn(None, taker.piece(), taker.piece())
    headers = HeaderColumn(None, taker.piece(), names, cells, 0)
    times = taker.piece(taker.byte() & 0x78), taker.piece()
    parts = [RowPart(JSON, column=cells), RowPart(BYTES, b"", cells, how & 1), RowPart(HEADERS, column=headers),
             RowPart(TIME, b"", times), RowPart(NUMBER, column=times[0])]
    for part in parts:
        try:
            _pieces(twin, [part], taker.byte(), 100)
        except ValueError:
            pass
    return None


def _pieces(twin: Any, parts: list[RowPart], end: int, most: int) -> list[tuple[bytes, int]]:
    found, row = [], 0
    while row < end:
        piece, row = twin.join_rows(parts, row, end, most)
        found.append((bytes(piece), row))
    return found


ENTRIES: tuple[Callable[[Any, bytes, int], Any], ...] = (
    cursor, columns, headers, changing, arrow, produced, built, sums, joined, joined_columns)
NOT_COMPARED = (changing, arrow, joined_columns)
