"""Other threads go on while columns are filled and appended and batches are summed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.records.columns.columns import BinaryInput

AROUND = 2
"""Turns that another thread may have just before and just after an action that lets it have none."""


class Turns:
    """Counts how often another thread had a turn; it gives each back at once."""

    def __init__(self) -> None:
        self.count = 0
        self._ended = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Turns:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._thread.join()

    def _run(self) -> None:
        while not self._ended:
            self.count += 1
            time.sleep(0)

    def during(self, action: Callable[[], object]) -> int:
        """Turns while the action runs."""
        before = self.count
        action()
        return self.count - before


@pytest.fixture
def turns() -> Iterator[Turns]:
    with Turns() as counted:
        yield counted


def had_some(turns: Turns, action: Callable[[], object]) -> bool:
    """Whether another thread has turns in one of some calls: a busy machine may need more than one to wake it."""
    return any(turns.during(action) > AROUND for _ in range(20))


def test_a_function_that_keeps_the_gil_leaves_no_turn(turns: Turns) -> None:
    numbers = range(3_000_000)
    assert min(turns.during(lambda: sum(numbers)) for _ in range(3)) <= AROUND


def test_other_threads_go_on_while_columns_are_filled(native: Any, turns: Turns) -> None:
    builder = native.BatchBuilder(1 << 30, 1 << 30)
    for _ in range(3000):
        builder.append(1, None, bytes(10_000))
    data = bytes(builder.seal().data)
    assert had_some(turns, lambda: native.read_columns(data, "t", 0, 0, 1 << 30, check_crcs=False))


def test_other_threads_go_on_while_columns_are_appended(native: Any, turns: Turns) -> None:
    rows = 1_000_000
    values = BinaryInput(None, b"".join((50 * row).to_bytes(4, "little") for row in range(rows + 1)),
                         bytes(50 * rows), 0, False)

    def append() -> None:
        buffer = native.RecordAccumulator("t", 1, native.BufferPool(rows, 1 << 40))
        assert native.append_columns(buffer, 0, rows, None, values, None, None, None) == rows

    assert had_some(turns, append)


def test_other_threads_go_on_while_a_large_batch_is_summed(native: Any, turns: Turns) -> None:
    builder = native.BatchBuilder(1 << 30, 1 << 30)
    builder.append(1, None, bytes(60_000_000))
    data = bytes(builder.seal().data)
    assert had_some(turns, lambda: native.verify(data))
