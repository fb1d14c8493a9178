"""Rows of columns as bytes: both twins make the same of all columns, and JSON is what `json` makes of it."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.records.columns.columns import BinaryColumn, HeaderColumn
from headrace.records.columns.joined_rows import (
    BYTES,
    HEADERS,
    JSON,
    LITERAL,
    NUMBER,
    SIZE,
    SIZE_32,
    TIME,
    RowPart,
    json_text,
)
from tests.unit.records.samples import Record, batch, names, timestamps

quick = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
texts = st.text(max_size=30).map(str.encode)
nearly = st.tuples(texts, st.binary(max_size=3), texts).map(b"".join)
"""UTF-8 with something in it that often is none."""
cells = st.none() | texts | nearly | st.binary(max_size=40) | st.sampled_from([b"plain, long and without a quote" * 9])
record_lists: st.SearchStrategy[list[Record]] = st.lists(
    st.tuples(timestamps, cells, cells, st.lists(st.tuples(names, cells), max_size=3)), min_size=1, max_size=20)


def columns_of(plain: Any, records: list[Record]) -> Any:
    builder = plain.ColumnBuilder(want_headers=True)
    builder.append(plain.Cursor(batch(records), "topic", 0, 0), 1000)
    return builder.finish()


def all_parts(columns: Any, first: int) -> list[RowPart]:
    """Each kind, of each column that it takes."""
    types = bytearray(columns.timestamp_types)
    types[::3] = bytes(len(types[::3]))  # some have no timestamp
    return [RowPart(LITERAL, b"<"), RowPart(NUMBER, b"", columns.offsets, first),
            RowPart(TIME, b"none", (columns.timestamps, types), first), RowPart(HEADERS, b"", columns.headers, first),
            *(RowPart(kind, b"NULL", column, first) for kind in (BYTES, JSON, SIZE, SIZE_32)
              for column in (columns.key, columns.value)), RowPart(LITERAL), RowPart(LITERAL, b">\n")]


def pieces(twin: Any, parts: list[RowPart], row: int, end: int, most: int) -> list[tuple[bytes, int]]:
    found = []
    while row < end:
        piece, row = twin.join_rows(parts, row, end, most)
        found.append((bytes(piece), row))
    return found


def joined(twin: Any, parts: list[RowPart], count: int) -> bytes:
    return b"".join(piece for piece, _ in pieces(twin, parts, 0, count, 1 << 20))


@quick
@given(records=record_lists, first=st.integers(0, 5), row=st.integers(0, 5), most=st.sampled_from([1, 60, 1 << 18]))
def test_the_twins_make_the_same_pieces_of_columns(
    native: Any, plain: Any, records: list[Record], first: int, row: int, most: int
) -> None:
    parts = all_parts(columns_of(plain, records), first)
    end = max(len(records) - first, 0)
    assert pieces(native, parts, row, end, most) == pieces(plain, parts, row, end, most)


@quick
@given(column=st.lists(cells, max_size=20), first=st.integers(0, 3), most=st.sampled_from([1, 100, 1 << 18]))
def test_the_twins_make_the_same_pieces_of_lists(
    native: Any, plain: Any, column: list[bytes | None], first: int, most: int
) -> None:
    parts = [RowPart(kind, b"-", column, first) for kind in (BYTES, JSON, SIZE, SIZE_32)]
    end = max(len(column) - first, 0)
    assert pieces(native, parts, 0, end, most) == pieces(plain, parts, 0, end, most)


@quick
@given(data=texts | nearly)
def test_json_is_text_as_json_reads_it_and_base64_where_it_is_none(twin: Any, data: bytes) -> None:
    found = json.loads(joined(twin, [RowPart(JSON, column=[data])], 1))
    try:
        assert found == data.decode()
    except UnicodeDecodeError:
        assert list(found) == ["base64"]


def test_every_byte_at_every_place_among_others_is_the_same_json_in_both_twins(native: Any) -> None:
    column: list[bytes | None] = [b"a" * before + bytes([byte]) + b"z" * behind
                                  for byte in range(256) for before in range(10) for behind in (0, 1, 9)]
    column += [bytes([lead, second]) + b"\x80" * rest for lead in range(0xC0, 256) for second in range(256)
               for rest in range(3)]
    expected = b"".join(json_text(cell) for cell in column)
    assert joined(native, [RowPart(JSON, column=column)], len(column)) == expected


@pytest.mark.parametrize("number", [0, 1, 9, 10, 99, 100, 101, 1000, 1_700_000_000_000, -1, -10, -99, -100,
                                    (1 << 63) - 1, -(1 << 63)])
def test_numbers_are_digits(twin: Any, number: int) -> None:
    assert joined(twin, [RowPart(NUMBER, column=array("q", [7, number]), first=1)], 1) == b"%d" % number


def test_a_piece_ends_with_the_row_that_reaches_its_size(twin: Any) -> None:
    parts = [RowPart(BYTES, column=[b"a", b"bc", b"d" * 200_000, b"e"]), RowPart(LITERAL, b";")]
    found = pieces(twin, parts, 0, 4, 4)
    assert [(len(piece), row) for piece, row in found] == [(5, 2), (200_001, 3), (2, 4)]


def test_nothing_is_made_of_no_parts(twin: Any) -> None:
    assert pieces(twin, [], 0, 3, 100) == [(b"", 3)]


@pytest.mark.parametrize("part", [
    RowPart(BYTES, column=[b"a"] * 3), RowPart(SIZE, column=[b"a"] * 9, first=6),
    RowPart(NUMBER, column=array("q", range(3))), RowPart(TIME, column=(array("q", range(4)), bytes(3))),
    RowPart(TIME, column=(array("q", range(3)), bytes(4))),
    RowPart(BYTES, column=BinaryColumn(None, bytes(16), b"")), RowPart(BYTES, column=[b"a"] * 9, first=-1),
    RowPart(HEADERS, column=HeaderColumn(None, bytes(16), BinaryColumn(None, bytes(4), b""),
                                         BinaryColumn(None, bytes(4), b""), 0)),
])
def test_a_column_with_fewer_rows_is_refused(twin: Any, part: RowPart) -> None:
    with pytest.raises(ValueError, match="fewer rows"):
        twin.join_rows([part], 0, 4)


def test_what_is_no_part_is_refused(twin: Any) -> None:
    with pytest.raises(ValueError, match="no kind"):
        twin.join_rows([RowPart(9, column=[b"a"])], 0, 1)
    with pytest.raises(TypeError, match="neither bytes nor None"):
        twin.join_rows([RowPart(BYTES, column=["a"])], 0, 1)


@pytest.mark.parametrize("ends", [[0, 1 << 30], [-1, 2], [3, 1], [4, 5]])
def test_an_offset_outside_of_its_column_is_never_followed(native: Any, ends: list[int]) -> None:
    column = BinaryColumn(None, array("i", ends), b"abcd")
    with pytest.raises(ValueError, match="outside"):
        native.join_rows([RowPart(BYTES, column=column)], 0, 1)
    good = BinaryColumn(None, array("i", [0, 1]), b"a")
    for headers in (HeaderColumn(None, array("i", [0, 1]), column, good, 1),
                    HeaderColumn(None, array("i", [0, 1]), good, column, 1),
                    HeaderColumn(None, array("i", ends), good, good, 1)):
        with pytest.raises(ValueError, match="outside"):
            native.join_rows([RowPart(HEADERS, column=headers)], 0, 1)
