"""Columns into an accumulator, and which rows of a batch came from which call: by both twins."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.buffers.column_input import BinaryInput
from headrace.errors import KafkaException
from tests.support.turns import Turns, had_some, turns
from tests.unit.records.samples import contents

__all__ = ["turns"]

quick = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


def cells(*values: bytes) -> BinaryInput:
    offsets = b"".join(sum(map(len, values[:n])).to_bytes(4, "little") for n in range(len(values) + 1))
    return BinaryInput(None, offsets, b"".join(values), 0, False)


def test_each_call_has_its_runs_and_records_of_their_own_have_none(twin: Any) -> None:
    accumulator = twin.RecordAccumulator("t", 1, twin.BufferPool(100, 10_000), batch_count=7)
    values = cells(b"a", b"b", b"c")
    assert twin.append_columns(accumulator, 0, 2, None, values, None, None, None, "one") == 2
    accumulator.append(b"alone")
    assert twin.append_columns(accumulator, 0, 3, None, values, None, None, None, "one") == 3
    assert twin.append_columns(accumulator, 0, 3, None, values, None, None, None, "two") == 3
    assert twin.append_columns(accumulator, 0, 3, None, values, None, None, None) == 3
    assert [(b.count, b.runs) for b in accumulator.open_batches.ready(math.inf)] == [
        (7, [(0, "one"), (2, None), (3, "one"), (6, "two")]), (5, [(0, "two"), (2, None)])]
    twin.append_columns(accumulator, 0, 2, None, values, None, None, None, "one")
    accumulator.append(b"alone")
    twin.append_columns(accumulator, 0, 3, None, values, None, None, None, "two")
    (batch,) = accumulator.open_batches.ready(math.inf)
    assert [(part.count, part.runs) for part in batch.split([0, 1, 0, 1, 0, 1])] == [
        (3, [(0, "one"), (1, None), (2, "two")]), (3, [(0, "one"), (1, "two")])]
    accumulator.append(b"alone")
    assert [b.runs for b in accumulator.open_batches.ready(math.inf)] == [None]


def test_an_error_says_how_many_rows_came_before_it(twin: Any) -> None:
    accumulator = twin.RecordAccumulator("t", 1, twin.BufferPool(100, 10_000), message_bytes=5)
    with pytest.raises(KafkaException) as refused:
        twin.append_columns(accumulator, 1, 4, None, cells(b"a", b"b", b"c", b"too large"), None, None, None)
    assert refused.value.appended == 2  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="must not be negative") as negative:
        twin.append_columns(accumulator, 0, 2, None, cells(b"a", b"b"), None, (1).to_bytes(8, "little") + b"\xff" * 8,
                               None)
    assert negative.value.appended == 1  # type: ignore[attr-defined]


def test_other_threads_go_on_while_columns_are_appended(native: Any, turns: Turns) -> None:
    rows = 1_000_000
    values = BinaryInput(None, b"".join((50 * row).to_bytes(4, "little") for row in range(rows + 1)),
                         bytes(50 * rows), 0, False)

    def append() -> None:
        accumulator = native.RecordAccumulator("t", 1, native.BufferPool(rows, 1 << 40))
        assert native.append_columns(accumulator, 0, rows, None, values, None, None, None) == rows

    assert had_some(turns, append)


def appended(twin: Any, *arguments: Any) -> list[tuple[Any, ...]]:
    """What `append_columns` makes of columns: partition, key, value, headers and timestamp of each record."""
    accumulator = twin.RecordAccumulator("t", 4, twin.BufferPool(10_000, 1 << 24))
    rows = arguments[1] - arguments[0]
    assert twin.append_columns(accumulator, *arguments) == rows
    return [(opened.partition, m.key(), m.value(), m.headers(), m.timestamp()[1])
            for opened in accumulator.open_batches.ready(math.inf)
            for m in twin.Cursor(bytes(opened.seal().data), "t", opened.partition, 0).take(rows)]


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
    accumulator = twin.RecordAccumulator("t", 1, twin.BufferPool(100, 10_000))
    with pytest.raises(IndexError):
        twin.append_columns(accumulator, start, stop, None, cells(b"a", b"b"), None, None, None)
    assert accumulator.open_batches.ready(math.inf) == []
