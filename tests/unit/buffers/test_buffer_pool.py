"""How much may wait: what is counted, who is refused, and who is told to wait. By both twins."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import pytest

from headrace.errors import BufferFullError, KafkaError

from .accumulators import make


def test_the_pool_counts_keys_values_headers_and_a_constant(twin: Any) -> None:
    accumulator, pool = make(twin)
    accumulator.append("vä", b"key", 0, 5, {"h": b"12", "n": None})
    accumulator.append(None)
    assert (pool.messages, pool.bytes) == (2, 3 + 3 + 4 + 2 * twin.OVERHEAD_BYTES)
    accumulator.append(None, callback=print)
    assert pool.bytes == 3 + 3 + 4 + 3 * twin.OVERHEAD_BYTES + twin.CALLBACK_BYTES
    costs = [(opened.count, opened.cost_bytes) for opened in accumulator.open_batches.ready(math.inf)]
    for cost in costs:
        pool.release(*cost)
    assert (pool.messages, pool.bytes) == (0, 0)


def test_a_used_up_pool_refuses_and_takes_again_after_release(twin: Any) -> None:
    for limits in ((3, 10**6), (100, 3 * 26)):
        accumulator, pool = make(twin, 1, *limits)
        for _ in range(3):
            accumulator.append(b"0123456789")
        with pytest.raises(BufferFullError, match=r"Queue full.*poll\(\)") as caught:
            accumulator.append(b"0123456789")
        assert isinstance(caught.value, BufferError)
        assert caught.value.error == KafkaError._QUEUE_FULL
        assert pool.messages == 3
        pool.release(1, 26)
        accumulator.append(b"0123456789")


def test_a_pool_is_shared_and_one_record_alone_always_fits(twin: Any) -> None:
    pool = twin.BufferPool(0, 50)
    one, two = twin.RecordAccumulator("one", 1, pool), twin.RecordAccumulator("two", 1, pool)
    one.append(bytes(100))
    with pytest.raises(BufferFullError):
        two.append(b"")


def test_who_is_far_ahead_of_the_brokers_is_told_so_and_callbacks_do_not_count(twin: Any) -> None:
    accumulator, pool = make(twin, 1, 0, 10**9)
    size = 99 + twin.OVERHEAD_BYTES
    for _ in range((16 << 20) // size):
        accumulator.append(bytes(99), callback=print)
    assert not pool.is_far_ahead
    accumulator.append(bytes(99), headers={"h": b""})
    assert pool.is_far_ahead
    batches = accumulator.open_batches.ready(math.inf)
    assert pool.ahead_bytes == sum(opened.data_bytes for opened in batches) == (16 << 20) // size * size + size + 1
    for part in batches[0].split([number % 2 for number in range(batches[0].count)]):
        pool.answer(part.data_bytes)
    assert not pool.is_far_ahead
    for opened in batches[1:]:
        pool.answer(opened.data_bytes)
    assert pool.ahead_bytes == 0
    assert pool.messages == (16 << 20) // size + 1


def test_records_that_do_not_fit_are_not_counted_at_all(twin: Any) -> None:
    pool = twin.BufferPool(10, 1000)
    assert pool.take(4, 600)
    assert not pool.take(7, 10)
    assert not pool.take(1, 401)
    assert (pool.messages, pool.bytes) == (4, 600)
    assert pool.take(6, 400)
    assert (pool.messages, pool.bytes) == (10, 1000)


def test_a_record_is_queued_if_it_fits_and_counts_then(twin: Any) -> None:
    pool, queue = twin.BufferPool(1, 1000), deque[str]()
    assert pool.admit(queue, "first", 30)
    assert not pool.admit(queue, "second", 30)
    assert (list(queue), pool.messages, pool.bytes) == (["first"], 1, 30)


def test_no_limit_of_messages_is_none(twin: Any) -> None:
    pool = twin.BufferPool(0, 1000)
    assert pool.take(10**12, 1000)
    assert not pool.take(1, 1)


def test_a_pool_is_roomy_while_a_sixteenth_of_both_is_free(twin: Any) -> None:
    pool = twin.BufferPool(160, 1600)
    pool.take(150, 0)
    assert pool.is_roomy
    pool.take(1, 0)
    assert not pool.is_roomy
    pool.release(1, 0)
    pool.take(0, 1500)
    assert pool.is_roomy
    pool.take(0, 1)
    assert not pool.is_roomy
