"""Records as columns and columns as records: plain buffers in Arrow's layout, by both twins."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import KafkaException
from headrace.records.columns.columns import BinaryInput
from tests.unit.records.samples import Record, batch, contents, cut, record_lists, simple

quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def cells(*values: bytes) -> BinaryInput:
    offsets = b"".join(sum(map(len, values[:n])).to_bytes(4, "little") for n in range(len(values) + 1))
    return BinaryInput(None, offsets, b"".join(values), 0, False)


def test_each_call_has_its_runs_and_records_of_their_own_have_none(twin: Any) -> None:
    buffer = twin.RecordAccumulator("t", 1, twin.BufferPool(100, 10_000), batch_count=7)
    values = cells(b"a", b"b", b"c")
    assert twin.append_columns(buffer, 0, 2, None, values, None, None, None, "one") == 2
    buffer.append(b"alone")
    assert twin.append_columns(buffer, 0, 3, None, values, None, None, None, "one") == 3
    assert twin.append_columns(buffer, 0, 3, None, values, None, None, None, "two") == 3
    assert twin.append_columns(buffer, 0, 3, None, values, None, None, None) == 3
    assert [(b.count, b.runs) for b in buffer.ready(math.inf)] == [
        (7, [(0, "one"), (2, None), (3, "one"), (6, "two")]), (5, [(0, "two"), (2, None)])]
    twin.append_columns(buffer, 0, 2, None, values, None, None, None, "one")
    buffer.append(b"alone")
    twin.append_columns(buffer, 0, 3, None, values, None, None, None, "two")
    (batch,) = buffer.ready(math.inf)
    assert [(part.count, part.runs) for part in batch.split([0, 1, 0, 1, 0, 1])] == [
        (3, [(0, "one"), (1, None), (2, "two")]), (3, [(0, "one"), (1, "two")])]
    buffer.append(b"alone")
    assert [b.runs for b in buffer.ready(math.inf)] == [None]


def test_an_error_says_how_many_rows_came_before_it(twin: Any) -> None:
    buffer = twin.RecordAccumulator("t", 1, twin.BufferPool(100, 10_000), message_bytes=5)
    with pytest.raises(KafkaException) as refused:
        twin.append_columns(buffer, 1, 4, None, cells(b"a", b"b", b"c", b"too large"), None, None, None)
    assert refused.value.appended == 2  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="must not be negative") as negative:
        twin.append_columns(buffer, 0, 2, None, cells(b"a", b"b"), None, (1).to_bytes(8, "little") + b"\xff" * 8,
                               None)
    assert negative.value.appended == 1  # type: ignore[attr-defined]


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


def appended(twin: Any, *arguments: Any) -> list[tuple[Any, ...]]:
    """What `append_columns` makes of columns: partition, key, value, headers and timestamp of each record."""
    buffer = twin.RecordAccumulator("t", 4, twin.BufferPool(10_000, 1 << 24))
    rows = arguments[1] - arguments[0]
    assert twin.append_columns(buffer, *arguments) == rows
    return [(opened.partition, m.key(), m.value(), m.headers(), m.timestamp()[1]) for opened in buffer.ready(math.inf)
            for m in twin.Cursor(bytes(opened.seal().data), "t", opened.partition, 0).take(rows)]


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


@pytest.mark.parametrize("large", [False, True])
def test_cells_are_found_by_their_offsets_behind_the_rows_in_front_and_by_their_bits(twin: Any, large: bool) -> None:
    values = [b"not ours", b"a", b"", b"null", b"last"]
    ends = [sum(map(len, values[:index])) for index in range(len(values) + 1)]
    column = BinaryInput(bytes([0b10111]), struct.pack(f"<6{'q' if large else 'i'}", *ends), b"".join(values), 1, large)
    found = appended(twin, 0, 4, column, column, struct.pack("<4i", 3, 3, 3, 3), struct.pack("<4q", 5, 6, 7, 8), None)
    assert found == [(3, value, value, None, 5 + row) for row, value in enumerate([b"a", b"", None, b"last"])]


def test_headers_are_lists_of_names_and_values(twin: Any) -> None:
    lists = BinaryInput(bytes([0b101]), struct.pack("<4i", 0, 2, 2, 3), None, 0, False)
    nulled = BinaryInput(bytes([0b101]), struct.pack("<4i", 0, 1, 1, 2), b"xz", 0, False)
    found = appended(twin, 0, 3, None, cells(b"a", b"b", b"c"), struct.pack("<3i", 1, 1, 1),
                     struct.pack("<3q", 5, 5, 5), (lists, cells(b"one", b"two", b"three"), nulled))
    assert [row[3] for row in found] == [[("one", b"x"), ("two", None)], None, [("three", b"z")]]


@quick
@given(values=st.lists(contents, min_size=1, max_size=12), chosen=st.data())
def test_any_rows_of_a_column_can_be_appended(twin: Any, values: list[bytes | None], chosen: Any) -> None:
    start = chosen.draw(st.integers(0, len(values)))
    stop = chosen.draw(st.integers(start, len(values)))
    bits = sum(1 << row for row, value in enumerate(values) if value is not None)
    plain = cells(*(value or b"" for value in values))
    column = plain._replace(validity=bits.to_bytes(len(values) // 8 + 1, "little"))
    partitions = struct.pack(f"<{len(values)}i", *([2] * len(values)))
    assert [row[2] for row in appended(twin, start, stop, None, column, partitions, None, None)] == values[start:stop]


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (2, 1)])
def test_rows_that_cannot_be_are_an_index_error(twin: Any, start: int, stop: int) -> None:
    buffer = twin.RecordAccumulator("t", 1, twin.BufferPool(100, 10_000))
    with pytest.raises(IndexError):
        twin.append_columns(buffer, start, stop, None, cells(b"a", b"b"), None, None, None)
    assert buffer.ready(math.inf) == []
