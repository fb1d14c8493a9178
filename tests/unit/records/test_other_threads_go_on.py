"""Other threads go on while columns are filled and batches summed."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.turns import AROUND, Turns, had_some, turns

__all__ = ["turns"]


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="there is no GIL to keep")
def test_a_function_that_keeps_the_gil_leaves_no_turn(turns: Turns) -> None:
    numbers = range(3_000_000)
    assert min(turns.during(lambda: sum(numbers)) for _ in range(3)) <= AROUND


def test_other_threads_go_on_while_columns_are_filled(native: Any, turns: Turns) -> None:
    builder = native.BatchBuilder(1 << 30, 1 << 30)
    for _ in range(3000):
        builder.append(1, None, bytes(10_000))
    data = bytes(builder.seal().data)
    assert had_some(turns, lambda: native.read_columns(data, "t", 0, 0, 1 << 30, check_crcs=False))


def test_other_threads_go_on_while_a_large_batch_is_summed(native: Any, turns: Turns) -> None:
    builder = native.BatchBuilder(1 << 30, 1 << 30)
    builder.append(1, None, bytes(60_000_000))
    data = bytes(builder.seal().data)
    assert had_some(turns, lambda: native.verify(data))
