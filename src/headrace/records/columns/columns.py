"""Record batches as columns: plain buffers in Arrow's layout. The plain twin of the native function.

A binary column is a validity bitmap (None when nothing is null), `rows + 1` offsets of 32 bits and the bytes; all
little-endian. The caller owns the buffers. This module must not import pyarrow.
Read next: `headrace.records.columns.arrow`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from headrace.errors import CorruptRecordError
from headrace.records.batch import Cursor
from headrace.records.compression import MAX_COLUMN_BYTES, MAX_DECOMPRESSED_BYTES
from headrace.records.message import Message

__all__ = ["BinaryColumn", "Buffer", "ColumnBuilder", "Columns", "HeaderColumn", "cells", "header_lists",
           "read_columns"]

_ROW_COST = 28  # bytes of a row in the columns of a fixed size and of offsets, so that empty records cost as well
_HEADER_COST = 8  # offsets of a header's name and value
Buffer = Any


class BinaryColumn(NamedTuple):
    """A column of binary or string."""

    validity: Buffer | None
    offsets: Buffer
    data: Buffer


class HeaderColumn(NamedTuple):
    """A column of lists of (name, value); a record without headers is null. Names are valid UTF-8."""

    validity: Buffer | None
    offsets: Buffer
    names: BinaryColumn
    values: BinaryColumn
    total: int  # headers of all rows


class Columns(NamedTuple):
    """What was read.

    Timestamps are 64-bit milliseconds, and their types bytes: 0 none (format 0), 1 the producer's, 2 the broker's. As
    Java's they are microseconds, and the types 32-bit: -1 none, which goes with a timestamp of -1 ms, 0 and 1.
    """

    rows: int
    next_offset: int
    key: BinaryColumn | None
    value: BinaryColumn | None
    offsets: Buffer
    timestamps: Buffer
    timestamp_types: Buffer
    headers: HeaderColumn | None


class ColumnBuilder:
    """Columns that grow by the records of one cursor after the other.

    All columns together take `max_column_bytes` at most, or one record: what a few compressed batches hold may be far
    more than memory does.

    Args:
        want_key, want_value, want_headers: make these columns.
        java_times: timestamps and their types as Java has them, see `Columns`.
        max_column_bytes: of all columns.
        likely_rows: how many there will be, as far as one knows; the native twin makes room at once.

    Attributes:
        full: the next record did not fit, or was not wanted.
    """

    def __init__(
        self, *, want_key: bool = True, want_value: bool = True, want_headers: bool = False, java_times: bool = False,
        max_column_bytes: int = MAX_COLUMN_BYTES, likely_rows: int = 0,
    ) -> None:
        self._want_key, self._want_value, self._want_headers = want_key, want_value, want_headers
        self._java_times = java_times
        self._max_bytes = max_column_bytes
        self._messages: list[Message] = []
        self._size = 0
        self.full = False

    @property
    def rows(self) -> int:
        """Rows so far."""
        return len(self._messages)

    def append(
        self, cursor: Cursor, max_rows: int, end_offset: int = (1 << 63) - 1, waiting_bytes: int = 0
    ) -> int:
        """Add what a cursor hands out, up to so many rows, and records before `end_offset`.

        Args:
            cursor: over fetched bytes.
            max_rows: most rows to add.
            end_offset: offset behind the last one wanted.
            waiting_bytes: of fetched bytes that are there, this cursor's included; the native twin makes room at once.

        Returns:
            Rows added; fewer than asked for at the end of the cursor, at `end_offset`, and when it is full.

        Raises:
            CorruptRecordError: the next record or its batch is damaged; all in front of it were added before.
        """
        before, messages = self.rows, self._messages
        while len(messages) - before < max_rows and cursor.position < end_offset and not self.full:
            try:
                message = cursor.take_one()
            except CorruptRecordError:
                if len(messages) == before:
                    raise
                break
            if message is None:
                break
            size = _ROW_COST + len(message.key() or b"") + len(message) + sum(
                _HEADER_COST + len(name.encode()) + len(value or b"") for name, value in message.headers() or ())
            if (message.offset() or 0) >= end_offset or (self._size + size > self._max_bytes and messages):
                cursor.give_back(message)
                self.full = True
                break
            self._size += size
            messages.append(message)
        return len(messages) - before

    def finish(self, next_offset: int = -1) -> Columns:
        """The columns. Nothing can be added any more.

        Args:
            next_offset: for `Columns.next_offset`.
        """
        messages, java = self._messages, self._java_times
        stamps = [message.timestamp() for message in messages]
        return Columns(
            len(messages),
            next_offset,
            _binary([m.key() for m in messages]) if self._want_key else None,
            _binary([m.value() for m in messages]) if self._want_value else None,
            struct.pack(f"<{len(messages)}q", *(m.offset() or 0 for m in messages)),
            struct.pack(f"<{len(messages)}q", *(_micros(*stamp) if java else stamp[1] for stamp in stamps)),
            struct.pack(f"<{len(messages)}{'i' if java else 'b'}", *(kind - java for kind, _ in stamps)),
            _headers([m.headers() for m in messages]) if self._want_headers else None,
        )


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
    """Read the records from `fetch_offset` up to but not including `end_offset`, with timestamps as Java has them.

    `data` may also be a cursor, which goes on where it is: what a compressed batch holds is then read piece by piece,
    and decompressed once.

    Returns:
        The columns. `next_offset` is where to go on: less than what the bytes hold when `max_column_bytes` or
        `max_rows` are read.

    Raises:
        CorruptRecordError: the bytes are damaged.
    """
    cursor = data if isinstance(data, Cursor) else Cursor(
        data, topic, partition, fetch_offset, check_crcs=check_crcs, aborted=aborted,
        max_decompressed_bytes=max_decompressed_bytes)
    builder = ColumnBuilder(want_key=want_key, want_value=want_value, want_headers=want_headers, java_times=True,
                            max_column_bytes=max_column_bytes)
    while builder.rows < max_rows and builder.append(cursor, max_rows - builder.rows, end_offset):
        pass
    return builder.finish(min(cursor.position, end_offset))


def cells(column: BinaryColumn, first: int, end: int) -> list[bytes | None]:
    """The values of some rows, from one up to and without another."""
    starts = memoryview(column.offsets).cast("B").cast("i")[first : end + 1].tolist()
    base = starts[0]
    data = bytes(memoryview(column.data).cast("B")[base : starts[-1]])
    if base:
        starts = [start - base for start in starts]
    found: list[bytes | None] = [data[start:stop] for start, stop in pairwise(starts)]
    if column.validity is not None:
        bits = memoryview(column.validity).cast("B")
        for row in range(first, end):
            if not bits[row >> 3] >> (row & 7) & 1:
                found[row - first] = None
    return found


def header_lists(column: HeaderColumn, first: int, end: int) -> list[list[tuple[str, bytes | None]]]:
    """The headers of some rows, from one up to and without another; an empty list for none."""
    starts = memoryview(column.offsets).cast("B").cast("i")[first : end + 1].tolist()
    base = starts[0]
    if base == starts[-1]:
        return [[] for _ in range(first, end)]
    names = [(name or b"").decode() for name in cells(column.names, base, starts[-1])]
    pairs = list(zip(names, cells(column.values, base, starts[-1]), strict=True))
    return [pairs[start - base : stop - base] for start, stop in pairwise(starts)]


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
                        _binary(list(names)), _binary([value for _, value in flat]), len(flat))
