"""Columns into an accumulator, and which rows of a batch came from which call: by both twins."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headrace.buffers.column_input import BinaryInput
from headrace.errors import KafkaException
from tests.support.turns import Turns, had_some, turns

__all__ = ["turns"]


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
    assert [(b.count, b.runs) for b in accumulator.ready(math.inf)] == [
        (7, [(0, "one"), (2, None), (3, "one"), (6, "two")]), (5, [(0, "two"), (2, None)])]
    twin.append_columns(accumulator, 0, 2, None, values, None, None, None, "one")
    accumulator.append(b"alone")
    twin.append_columns(accumulator, 0, 3, None, values, None, None, None, "two")
    (batch,) = accumulator.ready(math.inf)
    assert [(part.count, part.runs) for part in batch.split([0, 1, 0, 1, 0, 1])] == [
        (3, [(0, "one"), (1, None), (2, "two")]), (3, [(0, "one"), (1, "two")])]
    accumulator.append(b"alone")
    assert [b.runs for b in accumulator.ready(math.inf)] == [None]


def test_an_error_says_how_many_rows_came_before_it(twin: Any) -> None:
    accumulator = twin.RecordAccumulator("t", 1, twin.BufferPool(100, 10_000), message_bytes=5)
    with pytest.raises(KafkaException) as refused:
        twin.append_columns(accumulator, 1, 4, None, cells(b"a", b"b", b"c", b"too large"), None, None, None)
    assert refused.value.appended == 2  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="must not be negative") as negative:
        twin.append_columns(accumulator, 0, 2, None, cells(b"a", b"b"), None, (1).to_bytes(8, "little") + b"\xff" * 8,
                               None)
    assert negative.value.appended == 1  # type: ignore[attr-defined]


def test_other_threads_have_their_turns_while_columns_are_appended(native: Any, turns: Turns) -> None:
    rows = 1_000_000
    values = BinaryInput(None, b"".join((50 * row).to_bytes(4, "little") for row in range(rows + 1)),
                         bytes(50 * rows), 0, False)

    def append() -> None:
        accumulator = native.RecordAccumulator("t", 1, native.BufferPool(rows, 1 << 40))
        assert native.append_columns(accumulator, 0, rows, None, values, None, None, None) == rows

    assert had_some(turns, append)
