"""Rows of columns, plain buffers in Arrow's layout, into a `RecordAccumulator`. The plain twin of the native function.

This module must not import pyarrow. Came from: `headrace.buffers.arrow_rows`. Read next:
`headrace.buffers.record_accumulator`.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from headrace.buffers.record_accumulator import RecordAccumulator
from headrace.errors import BufferFullError

__all__ = ["BinaryInput", "append_columns"]

Buffer = Any


class BinaryInput(NamedTuple):
    """The buffers of an Arrow array of (large) binary or string, or of a (large) list."""

    validity: Buffer | None
    offsets: Buffer
    data: Buffer | None
    first: int  # row of the buffers that is row 0 of the array
    large: bool  # offsets have 64 bits


def append_columns(
    accumulator: RecordAccumulator,
    start: int,
    stop: int,
    key: BinaryInput | None,
    value: BinaryInput | None,
    partitions: Buffer | None,
    timestamps: Buffer | None,
    headers: tuple[BinaryInput, BinaryInput, BinaryInput] | None,
    listener: object = None,
) -> int:
    """Append rows to a topic's accumulator, as many as its pool allows.

    Args:
        accumulator: where to.
        start: first row.
        stop: row behind the last.
        key: the keys.
        value: the values.
        partitions: 32-bit partition numbers by row, -1 for the partitioner.
        timestamps: 64-bit milliseconds by row, 0 for now.
        headers: the lists, the names and the values.
        listener: kept once for the rows that come together in a batch, in `ClosedBatch.runs`.

    Returns:
        Rows appended.

    Raises:
        KafkaException: a row is too large or names a partition that does not exist; rows before it are appended.
            Like any error of a row it has their count as `appended`.
        IndexError: there are no such rows.
    """
    if not 0 <= start <= stop:
        raise IndexError(f"there are no rows {start} to {stop}")
    for row in range(start, stop):
        try:
            accumulator.add_row(
                _cell(value, row),
                _cell(key, row),
                -1 if partitions is None else struct.unpack_from("<i", partitions, 4 * row)[0],
                0 if timestamps is None else struct.unpack_from("<q", timestamps, 8 * row)[0],
                None if headers is None else _header_cells(headers, row),
                None,
                listener,
            )
        except BufferFullError:
            return row - start
        except Exception as refused:
            refused.appended = row - start  # type: ignore[attr-defined]
            raise
    return stop - start


def _span(column: BinaryInput, row: int) -> tuple[int, int] | None:
    at = column.first + row
    if column.validity is not None and not memoryview(column.validity)[at >> 3] >> (at & 7) & 1:
        return None
    begin, end = struct.unpack_from("<qq", column.offsets, 8 * at) if column.large else struct.unpack_from(
        "<ii", column.offsets, 4 * at)
    return begin, end


def _cell(column: BinaryInput | None, row: int) -> bytes | None:
    span = None if column is None else _span(column, row)
    if span is None or column is None:
        return None
    return bytes(memoryview(column.data)[span[0] : span[1]]) if column.data is not None else b""


def _header_cells(headers: tuple[BinaryInput, BinaryInput, BinaryInput], row: int) -> list[tuple[str, bytes | None]]:
    lists, names, values = headers
    span = _span(lists, row)
    if span is None:
        return []
    return [((_cell(names, at) or b"").decode(), _cell(values, at)) for at in range(*span)]
