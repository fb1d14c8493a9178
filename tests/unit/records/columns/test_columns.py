"""Records as columns: plain buffers in Arrow's layout, by both twins."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.records.samples import Record, batch, cut, record_lists, simple

quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_column_stops_before_it_is_larger_than_arrow_allows(twin: Any) -> None:
    data = simple([b"x" * 40] * 5) + simple([b"y" * 40] * 5, base_offset=5)
    read = twin.read_columns(data, "t", 0, 0, 100, max_column_bytes=6 * (28 + 40) + 9)
    assert (read.rows, read.next_offset, len(read.value.data)) == (6, 6, 240)
    assert twin.read_columns(data, "t", 0, 0, 100, max_column_bytes=10).rows == 1


def unpacked(kind: str, rows: int, buffer: Any) -> list[int]:
    return list(struct.unpack(f"<{rows}{kind}", bytes(buffer)))


def nullable(column: Any) -> list[bytes | None]:
    """The values of a binary column."""
    values = cut(column)
    bits = None if column.validity is None else bytes(column.validity)
    return [value if bits is None or bits[row >> 3] >> (row & 7) & 1 else None for row, value in enumerate(values)]


@quick
@given(rows=record_lists, codec=st.integers(0, 4), first=st.integers(0, 14), span=st.integers(0, 14))
def test_columns_hold_what_a_cursor_reads(twin: Any, rows: list[Record], codec: int, first: int, span: int) -> None:
    data, stop = batch(rows, codec=codec), first + span
    read = twin.read_columns(data, "t", 0, first, stop, want_headers=True)
    wanted = [m for m in twin.Cursor(data, "t", 0, first).take(100) if m.offset() < stop]
    assert read.rows == len(wanted)
    assert nullable(read.key) == [m.key() for m in wanted]
    assert nullable(read.value) == [m.value() for m in wanted]
    assert unpacked("q", read.rows, read.offsets) == [m.offset() for m in wanted]
    assert unpacked("q", read.rows, read.timestamps) == [min(m.timestamp()[1] * 1000, 2**63 - 1) for m in wanted]
    assert unpacked("i", read.rows, read.timestamp_types) == [0] * read.rows
    assert read.headers.total == sum(len(m.headers() or ()) for m in wanted)
    assert read.next_offset == (max(first, len(rows)) if stop >= len(rows) else stop)  # a range of none is never read


def test_columns_that_nobody_wants_are_not_made(twin: Any) -> None:
    read = twin.read_columns(simple([b"a"]), "t", 0, 0, 1, want_key=False, want_value=False)
    assert (read.rows, read.key, read.value, read.headers) == (1, None, None, None)


def test_a_column_without_nulls_needs_no_bitmap(twin: Any) -> None:
    read = twin.read_columns(batch([(1, None, b"a", []), (1, b"k", b"", [])]), "t", 0, 0, 9)
    assert read.value.validity is None
    assert nullable(read.key) == [None, b"k"]


def test_reading_stops_behind_so_many_rows_and_says_where_to_go_on(twin: Any) -> None:
    data = simple([b"%d" % number for number in range(10)])
    read = twin.read_columns(data, "t", 0, 2, 9, max_rows=4)
    assert (cut(read.value), read.next_offset) == ([b"2", b"3", b"4", b"5"], 6)
