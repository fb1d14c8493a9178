"""Records as columns: plain buffers in Arrow's layout, by both twins."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import CorruptRecordError
from headrace.records.legacy.message_set_writer import write_message_set
from tests.unit.records.samples import Record, batch, cut, flat, record_lists, simple

quick = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_column_stops_before_it_is_larger_than_arrow_allows(twin: Any) -> None:
    data = simple([b"x" * 40] * 5) + simple([b"y" * 40] * 5, base_offset=5)
    read = twin.read_columns(data, "t", 0, 0, 100, max_column_bytes=6 * (28 + 40) + 9)
    assert (read.rows, read.next_offset, len(read.value.data)) == (6, 6, 240)
    assert twin.read_columns(data, "t", 0, 0, 100, max_column_bytes=10).rows == 1


def test_a_cursor_goes_on_where_the_columns_were_full(twin: Any) -> None:
    data = simple([b"x" * 40] * 5, codec=4) + simple([b"y" * 40] * 5, base_offset=5, codec=4)
    cursor = twin.Cursor(data, "t", 0, 1)
    reads = []
    while not cursor.exhausted and cursor.position < 9:
        reads.append(twin.read_columns(cursor, "t", 0, 1, 9, max_column_bytes=3 * (28 + 40) + 9))
    assert [(read.rows, read.next_offset) for read in reads] == [(3, 4), (3, 7), (2, 9)]
    assert b"".join(bytes(read.value.data) for read in reads) == b"x" * 160 + b"y" * 160


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
    some = [simple([b"%d" % number for number in range(first, first + 3)], base_offset=first) for first in (0, 3, 6)]
    read = twin.read_columns(b"".join(some), "t", 0, 1, 9, max_rows=4)
    assert (cut(read.value), read.next_offset) == ([b"1", b"2", b"3", b"4"], 5)


def built(twin: Any, pieces: list[bytes], steps: list[int], **how: Any) -> list[Any]:
    """What a builder makes of pieces of one partition, read in steps, by turns with a cursor's own messages."""
    builder, story, offset = twin.ColumnBuilder(want_headers=True, **how), [], 0
    for piece in pieces:
        cursor = twin.Cursor(piece, "t", 0, offset)
        for step in steps:
            story.append((builder.append(cursor, step), builder.rows, builder.full, cursor.position, cursor.exhausted))
            story += [message.value() for message in cursor.take(1)]
        offset = cursor.position
    columns = builder.finish(offset)
    return [*story, flat(columns._replace(headers=None)), flat(columns.headers)]


@quick
@given(lists=st.lists(record_lists, min_size=1, max_size=3), codec=st.integers(0, 4),
       steps=st.lists(st.integers(0, 14), max_size=4), room=st.integers(1, 1500), java=st.booleans(),
       likely=st.integers(0, 100))
def test_both_twins_build_the_same_columns_of_several_pieces_and_leave_their_cursors_at_the_same_place(
    native: Any, plain: Any, lists: list[list[Record]], codec: int, steps: list[int], room: int, java: bool,
    likely: int,
) -> None:
    pieces, base = [], 0
    for rows in lists:
        pieces.append(batch(rows, codec=codec, base_offset=base) + batch(rows, base_offset=base + len(rows)))
        base += 2 * len(rows)
    how = {"max_column_bytes": room, "java_times": java, "likely_rows": likely}
    assert built(native, pieces, steps, **how) == built(plain, pieces, steps, **how)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_both_twins_build_the_same_columns_of_message_sets_beside_batches(
    native: Any, plain: Any, magic: int, codec: int
) -> None:
    old = bytes(write_message_set(magic, [(offset, 7, b"k", b"v" * offset) for offset in range(5)], codec))
    pieces = [old + batch([(1, b"k", None, [(b"h", b"x")])], base_offset=5)]
    for room in (100, 1 << 20):
        found = built(native, pieces, [0, 2, 9], max_column_bytes=room)
        assert found == built(plain, pieces, [0, 2, 9], max_column_bytes=room)
        assert bytes(found[-2][6])[:1] == bytes([magic])  # no timestamp in format 0


def test_columns_and_messages_come_from_one_cursor_by_turns(twin: Any) -> None:
    cursor = twin.Cursor(simple([b"%d" % number for number in range(9)], codec=4), "t", 0, 0)
    builder = twin.ColumnBuilder()
    assert [message.value() for message in cursor.take(2)] == [b"0", b"1"]
    assert builder.append(cursor, 3) == 3
    assert cursor.take_one().value() == b"5"
    assert builder.append(cursor, 99) == 3
    assert cut(builder.finish().value) == [b"2", b"3", b"4", b"6", b"7", b"8"]
    assert (cursor.position, cursor.exhausted) == (9, True)


def test_what_does_not_fit_stays_with_the_cursor(twin: Any) -> None:
    cursor = twin.Cursor(simple([b"x" * 40] * 3), "t", 0, 0)
    builder = twin.ColumnBuilder(max_column_bytes=2 * (28 + 40))
    assert (builder.append(cursor, 9), builder.full, builder.append(cursor, 9)) == (2, True, 0)
    assert (cursor.position, cursor.exhausted) == (2, False)
    again = twin.ColumnBuilder()
    assert (again.append(cursor, 9), again.full, cursor.exhausted) == (1, False, True)


def test_damage_is_raised_when_no_row_is_left_in_front_of_it(twin: Any) -> None:
    damaged = bytearray(simple([b"a", b"b"]) + simple([b"c"], base_offset=2))
    damaged[-2] ^= 1
    cursor, builder = twin.Cursor(bytes(damaged), "t", 0, 0), twin.ColumnBuilder()
    assert builder.append(cursor, 9) == 2
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="checksum"):
            builder.append(cursor, 9)
    assert (cut(builder.finish().value), cursor.position) == ([b"a", b"b"], 2)


def test_names_of_headers_become_valid_text(twin: Any) -> None:
    rows: list[Record] = [(1, None, None, [(b"\xff", b"x"), (b"plain", None)]), (1, None, None, [("ü".encode(), b"y")])]
    builder = twin.ColumnBuilder(want_headers=True)
    builder.append(twin.Cursor(batch(rows), "t", 0, 0), 9)
    headers = builder.finish().headers
    assert [name.decode() for name in cut(headers.names)] == ["\N{REPLACEMENT CHARACTER}", "plain", "ü"]
    assert nullable(headers.values) == [b"x", None, b"y"]


def test_many_headers_find_room(twin: Any) -> None:
    rows: list[Record] = [(1, None, b"v", [(b"n%d" % at, b"x" * 300)] * 50) for at in range(40)]
    builder = twin.ColumnBuilder(want_headers=True)
    assert builder.append(twin.Cursor(batch(rows), "t", 0, 0), 99) == 40
    headers = builder.finish().headers
    assert headers.total == 2000
    assert cut(headers.names) == [b"n%d" % at for at in range(40) for _ in range(50)]
    assert cut(headers.values) == [b"x" * 300] * 2000


def test_memory_that_was_used_before_is_taken_again_and_leaves_no_trace(native: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    rows, addresses, kept = 150_000, set(), []

    def piece(of: int) -> bytes:
        builder = native.BatchBuilder(1 << 24, 1 << 24)
        for row in range(rows):
            assert builder.append(1, None, None if row % of == 0 else b"%d" % of)
        return bytes(builder.seal(0).data)

    pieces = {of: piece(of) for of in (2, 3)}
    for of in (2, 3, 2, 3, 2, 3):
        builder = native.ColumnBuilder(want_key=False)
        for _ in range(8):  # so that the bitmap is large, too
            builder.append(native.Cursor(pieces[of], "t", 0, 0), rows, waiting_bytes=8 * len(pieces[of]))
        column = builder.finish().value
        addresses.add(pa.py_buffer(column.offsets).address)
        array = pa.Array.from_buffers(pa.binary(), 8 * rows, [pa.py_buffer(part) for part in column])
        array.validate(full=True)
        assert (array.null_count, array.unique().to_pylist()) == (8 * rows // of, [None, b"%d" % of])
        if len(kept) < 2:
            kept.append((of, array))
    assert len(addresses) < 6
    assert [array.null_count for _, array in kept] == [8 * rows // of for of, _ in kept], "what is held is not touched"
