"""Where records go, when their batches are full, and what is refused: by both twins."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.records.hashing import PARTITIONERS

from .accumulators import make, read


def test_records_of_a_partition_leave_in_the_order_of_append(twin: Any) -> None:
    accumulator, _ = make(twin, batch_bytes=300)
    for number in range(200):
        accumulator.append(b"%d" % number, None, number % 3)
    out: dict[int, list[bytes]] = {}
    for opened in accumulator.open_batches.ready(math.inf):
        out.setdefault(opened.partition, []).extend(read(twin, opened))
    assert out == {p: [b"%d" % n for n in range(200) if n % 3 == p] for p in range(3)}


def test_a_record_that_the_pool_counts_already_has_room_and_costs_what_it_costs_here(twin: Any) -> None:
    accumulator, pool = make(twin, messages=1, size=100)
    assert pool.take(1, 90)
    accumulator.append(b"value", b"key", 0, counted_bytes=90)
    accumulator.append(bytes(60), None, 0, counted_bytes=0)  # more than there is room for: it was never away
    assert (pool.messages, pool.bytes) == (1, 24 + 76)
    with pytest.raises(BufferError):
        accumulator.append(b"new", None, 0)
    for refused in ({"partition": 9}, {"value": bytes(2_000_000)}):
        with pytest.raises(KafkaException):
            accumulator.append(**refused, counted_bytes=24)
    assert (pool.messages, pool.bytes) == (1, 24 + 76)
    opened, = accumulator.open_batches.ready(math.inf)
    assert (opened.count, opened.cost_bytes) == (2, 24 + 76)


def test_append_wakes_for_the_first_record_of_a_partition_and_for_a_full_batch(twin: Any) -> None:
    accumulator, _ = make(twin, batch_count=3)
    assert [accumulator.append(b"x", None, 0) for _ in range(7)] == [1, 0, 1, 1, 0, 1, 1]
    assert accumulator.append(b"x", None, 1) == twin.WAKE
    assert [opened.count for opened in accumulator.open_batches.ready()] == [3, 3]
    assert accumulator.open_batches.ready() == []


def test_append_wakes_nobody_who_comes_by_himself_before_the_new_batch_has_lingered(twin: Any) -> None:
    accumulator, _ = make(twin, batch_count=3)
    assert accumulator.append(b"x", None, 0) == twin.WAKE
    assert accumulator.open_batches.next_deadline(5.0) is not None
    assert [accumulator.append(b"x", None, partition) for partition in (1, 2, 1, 1)] == [0, 0, 0, twin.WAKE]
    assert [opened.count for opened in accumulator.open_batches.ready(math.inf)] == [3, 1, 1]
    assert accumulator.open_batches.next_deadline(5.0) is None
    assert accumulator.append(b"x", None, 3) == twin.WAKE
    assert accumulator.open_batches.next_deadline(5.0, {"topic": {3}}) is None
    assert accumulator.append(b"x", None, 2) == twin.WAKE


def test_ready_takes_open_batches_only_when_they_are_old_enough(twin: Any) -> None:
    accumulator, _ = make(twin)
    accumulator.append(b"a", None, 2)
    between = time.monotonic()
    time.sleep(0.002)
    accumulator.append(b"b", None, 1)
    assert accumulator.open_batches.next_deadline(10.0) <= between + 10.0
    assert accumulator.open_batches.ready(None) == []
    first, = accumulator.open_batches.ready(between)
    assert (first.topic, first.partition, first.count) == ("topic", 2, 1)
    assert first.opened_at <= between
    second, = accumulator.open_batches.ready(math.inf)
    assert second.partition == 1
    assert accumulator.open_batches.next_deadline(1.0) is None


def test_a_full_batch_is_due_at_once(twin: Any) -> None:
    accumulator, _ = make(twin, batch_count=1)
    accumulator.append(b"a")
    assert accumulator.open_batches.next_deadline(5.0) == -math.inf


def test_held_partitions_keep_their_open_batch(twin: Any) -> None:
    accumulator, _ = make(twin, batch_count=2)
    for partition in (0, 1, 1, 1):
        accumulator.append(b"x", None, partition)
    ready = accumulator.open_batches.ready(math.inf, {"topic": {1}})
    assert [(b.partition, b.count) for b in ready] == [(1, 2), (0, 1)]
    assert accumulator.open_batches.next_deadline(1.0, {"topic": {1}}) is None
    assert [(b.partition, b.count) for b in accumulator.open_batches.ready(math.inf)] == [(1, 1)]


def turns(taken: list[Any]) -> list[tuple[int, int]]:
    return [(opened.partition, opened.count) for opened in taken]


def test_records_without_a_key_stay_on_a_partition_until_it_has_got_as_much_as_fills_a_batch(twin: Any) -> None:
    for limits in ({"batch_count": 10}, {"batch_bytes": 64 + 10 * 108}):
        accumulator, _ = make(twin, 50, seed=7, **limits)
        for _ in range(1000):
            accumulator.append(bytes(99))
        full = accumulator.open_batches.ready(math.inf)
        assert {opened.count for opened in full} == {10}
        assert len({opened.partition for opened in full}) > 30


def test_a_batch_that_is_full_but_for_the_next_record_leaves_at_once(twin: Any) -> None:
    accumulator, _ = make(twin, 50, seed=7, batch_bytes=64 + 10 * 108)
    assert [accumulator.append(bytes(99)) for _ in range(12)] == [1, *[0] * 9, 1, 0]
    assert [opened.count for opened in accumulator.open_batches.ready()] == [10]


def test_a_turn_outlives_the_batch_that_was_taken_from_it(twin: Any) -> None:
    accumulator, _ = make(twin, 50, seed=7, batch_count=10)
    for _ in range(4):
        accumulator.append(b"x")
    first, = accumulator.open_batches.ready(math.inf)
    for _ in range(7):
        accumulator.append(b"x")
    second, third = accumulator.open_batches.ready(math.inf)
    assert turns([first, second]) == [(first.partition, 4), (first.partition, 6)]
    assert third.partition == accumulator.sticky != first.partition


def test_a_turn_with_an_older_open_batch_is_as_long_as_any(twin: Any) -> None:
    accumulator, _ = make(twin, 50, seed=7, batch_count=10)
    accumulator.append(b"x")
    for _ in range(6):
        accumulator.append(b"key", b"", accumulator.sticky)
    partition = accumulator.sticky
    while accumulator.sticky == partition:
        accumulator.append(b"x")
    expected = [(partition, 10), (partition, 6), (accumulator.sticky, 1)]
    assert sorted(turns(accumulator.open_batches.ready(math.inf))) == sorted(expected)


def test_a_turn_ends_with_its_time_whatever_the_timestamps_are(twin: Any) -> None:
    accumulator, _ = make(twin, 1000, seed=7, turn_ms=0)
    for _ in range(50):
        accumulator.append(b"x")
    assert len(accumulator.open_batches.ready(math.inf)) > 40
    accumulator, _ = make(twin, 1000, seed=7, turn_ms=20)
    seen = set()
    expires_at = time.monotonic() + 10
    while len(seen) < 3 and time.monotonic() < expires_at:
        accumulator.append(b"x", None, -1, 5)
        seen.add(accumulator.sticky)
    assert len(seen) == 3
    assert all(opened.count > 1 for opened in accumulator.open_batches.ready(math.inf)[:2])


def test_the_clock_set_back_ends_a_turn(plain: Any, monkeypatch: Any) -> None:
    accumulator, _ = make(plain, 1000, seed=7, turn_ms=1000)
    for now_s, ends in ((50.0, True), (50.9, False), (51.1, True), (20.0, True), (20.5, False)):
        monkeypatch.setattr(time, "time_ns", lambda now_s=now_s: int(now_s * 1e9))
        before = accumulator.sticky
        accumulator.append(b"x")
        assert (accumulator.sticky != before) == ends


@pytest.mark.parametrize("key", [None, b"", b"key"])
def test_uniform_sticky_leaves_every_record_to_chance(twin: Any, key: Any) -> None:
    accumulator, _ = make(twin, 50, partitioner="uniform_sticky", batch_count=10, seed=3)
    for _ in range(100):
        accumulator.append(b"x", key)
    full = accumulator.open_batches.ready()
    assert [opened.count for opened in full] == [10] * 10
    assert len({opened.partition for opened in full}) > 3


def test_random_draws_a_lot_for_each_record_with_a_key(twin: Any) -> None:
    for key, few in ((b"key", False), (b"", False), (None, True)):
        accumulator, _ = make(twin, 50, partitioner="random", seed=3)
        for _ in range(100):
            accumulator.append(b"x", key)
        assert (len(accumulator.open_batches.ready(math.inf)) == 1) == few


@pytest.mark.parametrize("partitioner", ["consistent", "murmur2", "fnv1a"])
def test_partitioners_that_leave_nothing_to_chance_hash_the_missing_key(twin: Any, partitioner: str) -> None:
    accumulator, _ = make(twin, 50, partitioner=partitioner, turn_ms=0)
    for _ in range(20):
        accumulator.append(b"x")
        accumulator.append(b"x", b"")
    assert len(accumulator.open_batches.ready(math.inf)) == 1


def test_the_empty_key_is_left_to_chance_by_consistent_random_alone(twin: Any) -> None:
    for partitioner, fixed in (("consistent_random", False), ("murmur2_random", True), ("fnv1a_random", True)):
        accumulator, _ = make(twin, 50, partitioner=partitioner, turn_ms=0)
        for _ in range(20):
            accumulator.append(b"x", b"")
        assert (len(accumulator.open_batches.ready(math.inf)) == 1) == fixed


def chi_square(counts: list[int], weights: list[int]) -> float:
    share = sum(counts) / sum(weights)
    return sum((count - weight * share) ** 2 / (weight * share)
               for count, weight in zip(counts, weights, strict=True) if weight)


@pytest.mark.parametrize("weights", [None, [1] * 12, [5, 1, 0, 4, 1, 1, 1, 1, 1, 1, 1, 3], [0] * 11 + [1], [3, 1, 0]])
def test_partitions_are_drawn_as_often_as_they_weigh(twin: Any, weights: Any) -> None:
    accumulator, _ = make(twin, 12, partitioner="random", seed=11)
    accumulator.weigh(weights)
    counts = [0] * 12
    for _ in range(20_000):
        accumulator.append(b"x", b"key")
    for opened in accumulator.open_batches.ready(math.inf):
        counts[opened.partition] += opened.count
    expected = [1] * 12 if weights is None else weights + [0] * (12 - len(weights))
    assert all(count == 0 for count, weight in zip(counts, expected, strict=True) if not weight)
    assert chi_square(counts, expected) < 31.3  # 11 degrees of freedom, p = 0.001


def test_the_turn_of_a_partition_that_weighs_nothing_ends_at_once(twin: Any) -> None:
    accumulator, _ = make(twin, 3, seed=3)
    accumulator.append(b"x")
    first = accumulator.sticky
    accumulator.weigh([1, 1, 1])
    assert accumulator.sticky == first
    accumulator.weigh([int(partition != first) for partition in range(3)])
    assert accumulator.sticky == -1
    accumulator.append(b"x")
    assert accumulator.sticky not in (first, -1)
    accumulator.weigh()
    assert accumulator.sticky >= 0
    accumulator.grow(9)
    accumulator.weigh([0] * 8 + [7])
    accumulator.append(b"x")
    assert accumulator.sticky == 8


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1, 1], [1] * 5, [1 << 31, 1]])
def test_weights_that_say_nothing_are_refused(twin: Any, weights: Any) -> None:
    accumulator, _ = make(twin, 4)
    with pytest.raises(ValueError, match="weights of"):
        accumulator.weigh(weights)


@pytest.mark.parametrize(("arguments", "code"), [
    ((b"x" * 101, None, 0), KafkaError.MSG_SIZE_TOO_LARGE),
    ((b"x", b"k" * 100, 0), KafkaError.MSG_SIZE_TOO_LARGE),
    ((b"x", None, 0, 0, {"h": b"x" * 100}), KafkaError.MSG_SIZE_TOO_LARGE),
    ((b"x", None, 4), KafkaError._UNKNOWN_PARTITION),
    ((b"x", None, (1 << 31) - 1), KafkaError._UNKNOWN_PARTITION),
    ((b"x", None, -2), KafkaError._UNKNOWN_PARTITION),
    ((b"x", None, -1 << 31), KafkaError._UNKNOWN_PARTITION),
])
def test_what_no_broker_would_take_is_refused(twin: Any, arguments: Any, code: int) -> None:
    accumulator, pool = make(twin, message_bytes=100)
    with pytest.raises(KafkaException) as caught:
        accumulator.append(*arguments)
    assert caught.value.error.code() == code
    assert "topic" in str(caught.value)
    assert pool.messages == 0


@pytest.mark.parametrize("partition", [
    1 << 31, (1 << 63) - 2, (1 << 63) - 1, 1 << 63, (-1 << 31) - 1, -1 << 63, (-1 << 63) - 1,
])
def test_a_partition_that_no_topic_can_have_is_out_of_range(twin: Any, partition: int) -> None:
    accumulator, pool = make(twin)
    with pytest.raises(OverflowError):
        accumulator.append(b"x", None, partition)
    assert pool.messages == 0


@contextmanager
def no_more_memory() -> Iterator[None]:
    """Nothing large can be allocated."""
    import resource

    with open("/proc/self/statm", encoding="ascii") as numbers:
        used = int(numbers.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 24), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no limit of memory holds")
@pytest.mark.parametrize("counted_bytes", [-1, 40])
@pytest.mark.parametrize("before", [[], [b"before"]])
def test_a_record_that_there_is_no_memory_for_leaves_nothing_behind(
        twin: Any, before: list[bytes], counted_bytes: int) -> None:
    accumulator, pool = make(twin, batch_bytes=1 << 30, message_bytes=1 << 30)
    for value in before:
        accumulator.append(value, None, 0)
    if counted_bytes >= 0:
        pool.take(1, counted_bytes)
    counted = pool.messages, pool.bytes, pool.ahead_bytes
    value = bytes(1 << 27)
    with no_more_memory(), pytest.raises(MemoryError):
        accumulator.append(value, None, 0, counted_bytes=counted_bytes)
    assert (pool.messages, pool.bytes, pool.ahead_bytes) == counted
    if not before:
        assert not accumulator.open_batches.ready(math.inf)
    accumulator.append(b"behind", None, 0)
    opened, = accumulator.open_batches.ready(math.inf)
    assert read(twin, opened) == [*before, b"behind"]


def test_partitions_that_are_gone_get_no_records_and_keep_those_that_they_have(twin: Any) -> None:
    accumulator, pool = make(twin, 4, seed=3)
    accumulator.weigh([0, 0, 0, 1])
    accumulator.append(b"random")
    accumulator.append(b"chosen", None, 2)
    accumulator.shrink(0)  # no topic is without partitions
    accumulator.shrink(5)
    assert accumulator.partition_count == 4
    accumulator.shrink(1)
    for key in range(20):
        accumulator.append(b"v", b"%d" % key)
        accumulator.append(b"v")
    with pytest.raises(KafkaException) as caught:
        accumulator.append(b"v", None, 2)
    assert caught.value.error.code() == KafkaError._UNKNOWN_PARTITION
    assert {batch.partition: batch.count for batch in accumulator.open_batches.ready(math.inf)} == {0: 40, 2: 1, 3: 1}
    assert pool.messages == 42
    accumulator.grow(6)
    accumulator.lend(5)
    for partition in range(6):
        accumulator.append(b"v", None, partition)
    assert sorted(opened.partition for opened in accumulator.open_batches.ready(math.inf)) == list(range(6))


def test_a_batch_of_a_partition_that_is_gone_may_have_its_own_way(twin: Any) -> None:
    accumulator, _ = make(twin, 4)
    accumulator.shrink(1)
    accumulator.lend(3)
    accumulator.grow(3)
    accumulator.append(b"v", None, 2)
    assert [opened.partition for opened in accumulator.open_batches.ready(math.inf)] == [2]


def test_a_topic_without_partitions_takes_nothing(twin: Any) -> None:
    accumulator, _ = make(twin, 0)
    with pytest.raises(KafkaException):
        accumulator.append(b"x")
    accumulator.grow(2)
    accumulator.append(b"x", None, 1)
    assert accumulator.partition_count == 2


@pytest.mark.parametrize("arguments", [
    (5,), ({"a": 1},), (b"v", 1.5), (b"v", None, 0, 1767225600.5), (b"v", None, 0, "5"), (b"v", None, 0, None),
    (b"v", None, 0, 0, 5), (b"v", None, 0, 0, [("h", 5)]),
    (b"v", None, 0, 0, [(b"h", b"v")]), (b"v", None, 0, 0, ["abc"]),
])
def test_wrong_types_are_refused_before_anything_is_kept(twin: Any, arguments: Any) -> None:
    accumulator, pool = make(twin)
    with pytest.raises(TypeError):
        accumulator.append(*arguments)
    assert (pool.messages, accumulator.open_batches.ready(math.inf)) == (0, [])


def test_a_negative_timestamp_is_an_error_and_zero_is_now(twin: Any) -> None:
    accumulator, _ = make(twin, 1)
    with pytest.raises(ValueError, match="negative"):
        accumulator.append(b"x", None, 0, -1)
    before = time.time_ns() // 1_000_000
    accumulator.append(b"x")
    accumulator.append(b"y", None, 0, 77)
    messages = twin.Cursor(accumulator.open_batches.ready(math.inf)[0].seal().data, "t", 0, 0).take(2)
    assert before <= messages[0].timestamp()[1] <= time.time_ns() // 1_000_000
    assert messages[1].timestamp() == (1, 77)


@pytest.mark.parametrize("value", ["text", bytearray(b"text"), memoryview(b"text")])
def test_text_and_buffers_are_taken_as_bytes(twin: Any, value: Any) -> None:
    accumulator, _ = make(twin, 1)
    accumulator.append(value, value)
    message = twin.Cursor(accumulator.open_batches.ready(math.inf)[0].seal().data, "t", 0, 0).take_one()
    assert (message.key(), message.value()) == (b"text", b"text")


def test_threads_may_append_while_another_takes(twin: Any) -> None:
    accumulator, pool = make(twin, 4, batch_bytes=2000)
    taken: list[Any] = []

    def produce(name: int) -> None:
        for number in range(2000):
            accumulator.append(b"%d %d" % (name, number), None, number % 4)

    threads = [threading.Thread(target=produce, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        taken += accumulator.open_batches.ready(math.inf)
    taken += accumulator.open_batches.ready(math.inf)
    assert sum(opened.count for opened in taken) == pool.messages == 6000
    last: dict[tuple[int, bytes], int] = {}
    for opened in taken:
        for value in read(twin, opened):
            name, number = value.split()
            assert last.get((opened.partition, name), -1) < int(number)
            last[opened.partition, name] = int(number)


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize("key", [b"key", "schlüssel", b"k" * 100])
def test_records_with_a_key_go_where_the_partitioner_says(twin: Any, partitioner: str, key: Any) -> None:
    accumulator = twin.RecordAccumulator("topic", 1000, twin.BufferPool(10**6, 10**9), partitioner=partitioner)
    for _ in range(20):
        accumulator.append(b"value", key)
    partitions = {opened.partition for opened in accumulator.open_batches.ready(float("inf"))}
    function, by_lot = PARTITIONERS[partitioner]
    if by_lot == "always":
        assert len(partitions) > 1
    elif by_lot == "any":
        assert len(partitions) == 1
    else:
        assert function is not None
        assert partitions == {function(key.encode() if isinstance(key, str) else key) % 1000}
