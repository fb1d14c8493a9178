"""Batches for tests: random records, and what a cursor or the columns make of bytes, errors included."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from headrace.errors import CorruptRecordError
from headrace.records import MAX_DECOMPRESSED_BYTES, set_base_offset
from headrace.records.builder import BatchBuilder

Record = tuple[int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]

contents = st.none() | st.binary(max_size=40) | st.sampled_from([b"x" * 63, b"x" * 64, b"y" * 200])
names = st.text(max_size=5).map(str.encode)
timestamps = st.integers(0, 2**41) | st.sampled_from([0, 1, 2**62])
record_lists: st.SearchStrategy[list[Record]] = st.lists(
    st.tuples(timestamps, contents, contents, st.lists(st.tuples(names, contents), max_size=3)),
    min_size=1, max_size=12)


def batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: int = 0,
    producer_id: int = -1,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = 7,
    twin_builder: Any = BatchBuilder,
) -> bytes:
    """One sealed batch."""
    builder = twin_builder(1 << 20, 1 << 20)
    for timestamp, key, value, headers in records:
        assert builder.append(timestamp, key, value, headers)
    sealed = builder.seal(codec)
    sealed.stamp(producer_id, 0 if producer_id >= 0 else -1, 0 if producer_id >= 0 else -1, transactional)
    data = bytearray(sealed.data)
    set_base_offset(data, base_offset, leader_epoch)
    if control:
        data[22] |= 0x20
        resum(data)
    return bytes(data)


def simple(values: Sequence[bytes], **how: Any) -> bytes:
    """A batch of records without keys and headers."""
    return batch([(1000 + index, None, value, []) for index, value in enumerate(values)], **how)


def resum(data: bytearray) -> None:
    """Make the checksum of a single batch right again."""
    from headrace.records import crc32c

    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))


def fields(message: Any) -> tuple[Any, ...]:
    """All that a message says."""
    return (message.topic(), message.partition(), message.offset(), message.key(), message.value(), message.headers(),
            message.timestamp(), message.leader_epoch(), message.latency(), message.error(), len(message))


def taken(twin: Any, data: bytes, step: int = 1 << 30, fetch_offset: int = 0, **how: Any) -> list[Any]:
    """What a cursor hands out, with its position, until it ends or fails."""
    story: list[Any] = []
    try:
        cursor = twin.Cursor(data, "topic", 3, fetch_offset, **how)
        while not cursor.exhausted:
            story += [fields(message) for message in cursor.take(step)]
            story.append(("position", cursor.position))
        story.append(("end", cursor.position, cursor.take(1), cursor.take_one()))
    except CorruptRecordError as error:
        story.append(str(error))
    return story


def told(action: Any, *arguments: Any, **how: Any) -> Any:
    """A result, or the text of the `CorruptRecordError`."""
    try:
        return action(*arguments, **how)
    except CorruptRecordError as error:
        return str(error)


def tabled(twin: Any, data: bytes, fetch_offset: int = 0, end_offset: int = 1 << 62, **how: Any) -> Any:
    """What the columns hold, as plain values."""
    read = told(twin.read_columns, data, "topic", 3, fetch_offset, end_offset, want_headers=True, **how)
    if isinstance(read, str):
        return read
    headers = read.headers
    texts = [name.decode() for name in cut(headers.names)]
    return flat(read[:-1]), flat((headers.validity, headers.offsets, headers.values, headers.total)), texts


def cut(column: Any) -> list[bytes]:
    """The values of a binary column without nulls."""
    ends = memoryview(column.offsets).cast("B").cast("i")
    return [bytes(memoryview(column.data)[ends[row]:ends[row + 1]]) for row in range(len(ends) - 1)]


def flat(value: Any) -> Any:
    """Nested tuples of plain values; buffers as bytes."""
    if isinstance(value, tuple):
        return tuple(flat(part) for part in value)
    return value if value is None or isinstance(value, int) else bytes(value)


LIMIT = min(MAX_DECOMPRESSED_BYTES, 1 << 22)
