"""Record batches as columns: plain buffers in Arrow's layout. The plain twin of the native function.

A binary column is a validity bitmap (None when nothing is null), `rows + 1` offsets of 32 bits and the bytes; all
little-endian. The caller owns the buffers. This module must not import pyarrow.
Read next: `headrace.records.columns.arrow`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.records.batch import Cursor
from headrace.records.compression import MAX_COLUMN_BYTES, MAX_DECOMPRESSED_BYTES
from headrace.records.message import Message

__all__ = ["BinaryColumn", "Columns", "HeaderColumn", "read_columns"]

_ROW_COST = 28  # bytes of a row in the columns of a fixed size and of offsets, so that empty records cost as well
_HEADER_COST = 8  # offsets of a header's name and value
Buffer = Any


class BinaryColumn(NamedTuple):
    """A column of binary or string."""

    validity: Buffer | None
    offsets: Buffer
    data: Buffer


class HeaderColumn(NamedTuple):
    """A column of lists of (name, value); a record without headers is null."""

    validity: Buffer | None
    offsets: Buffer
    names: BinaryColumn
    values: BinaryColumn
    total: int  # headers of all rows
    ascii: bool  # no name has bytes that could be bad UTF-8


class Columns(NamedTuple):
    """What was read.

    Timestamps are microseconds; types are Java's: 0 the producer's, 1 the broker's, -1 none (format 0), which goes with
    a timestamp of -1 ms.
    """

    rows: int
    next_offset: int
    key: BinaryColumn | None
    value: BinaryColumn | None
    offsets: Buffer
    timestamps: Buffer
    timestamp_types: Buffer
    headers: HeaderColumn | None


def read_columns(
    data: Any,
    topic: str,
    partition: int,
    fetch_offset: int,
    end_offset: int,
    *,
    want_key: bool = True,
    want_value: bool = True,
    want_headers: bool = False,
    max_rows: int = 1 << 31,
    check_crcs: bool = True,
    aborted: Sequence[tuple[int, int]] | None = None,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    max_column_bytes: int = MAX_COLUMN_BYTES,
) -> Columns:
    """Read the records from `fetch_offset` up to but not including `end_offset`.

    All columns together take `max_column_bytes` at most, or one record: what a few compressed batches hold may be far
    more than memory does.

    Returns:
        The columns. `next_offset` is where to go on: less than what the bytes hold when `max_column_bytes` or
        `max_rows` are read.

    Raises:
        CorruptRecordError: the bytes are damaged.
    """
    cursor = Cursor(data, topic, partition, fetch_offset, check_crcs=check_crcs, aborted=aborted,
                    max_decompressed_bytes=max_decompressed_bytes)
    messages: list[Message] = []
    size, next_offset = 0, cursor.position
    while len(messages) < max_rows and next_offset < end_offset:
        message = cursor.take_one()
        if message is None:
            next_offset = cursor.position  # behind records that are not wanted, too
            break
        offset = message.offset() or 0
        size += _ROW_COST + len(message.key() or b"") + len(message) + sum(
            _HEADER_COST + len(name) + len(value or b"") for name, value in message.headers() or ())
        if offset >= end_offset or (size > max_column_bytes and messages):
            next_offset = offset
            break
        messages.append(message)
        next_offset = cursor.position
    return Columns(
        len(messages),
        min(next_offset, end_offset),
        _binary([m.key() for m in messages]) if want_key else None,
        _binary([m.value() for m in messages]) if want_value else None,
        struct.pack(f"<{len(messages)}q", *(m.offset() or 0 for m in messages)),
        struct.pack(f"<{len(messages)}q", *(_micros(*m.timestamp()) for m in messages)),
        struct.pack(f"<{len(messages)}i", *(m.timestamp()[0] - 1 for m in messages)),
        _headers([m.headers() for m in messages]) if want_headers else None,
    )


def _micros(kind: int, ms: int) -> int:
    if kind == 0:  # none: Java, and so Spark, has -1 ms then
        return -1000
    return max(-(1 << 63), min((1 << 63) - 1, ms * 1000))


def _validity(valid: list[bool]) -> bytes | None:
    if all(valid):
        return None
    bits = sum(1 << index for index, bit in enumerate(valid) if bit)
    return bits.to_bytes((len(valid) + 7) // 8, "little")


def _offsets(sizes: list[int]) -> bytes:
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    return struct.pack(f"<{len(ends)}i", *ends)


def _binary(values: list[bytes | None]) -> BinaryColumn:
    return BinaryColumn(_validity([value is not None for value in values]),
                        _offsets([len(value or b"") for value in values]), b"".join(value or b"" for value in values))


def _headers(rows: list[list[tuple[str, bytes | None]] | None]) -> HeaderColumn:
    flat = [header for row in rows for header in row or ()]
    names = [name.encode() for name, _ in flat]
    return HeaderColumn(_validity([bool(row) for row in rows]), _offsets([len(row or ()) for row in rows]),
                        _binary(list(names)), _binary([value for _, value in flat]), len(flat), True)
