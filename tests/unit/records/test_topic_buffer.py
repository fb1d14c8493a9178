from __future__ import annotations

import gc
import math
import threading
import time
from operator import length_hint
from typing import Any

import pytest

from headrace.errors import BufferFullError, KafkaError, KafkaException

from .samples import fields


def make(twin: Any, partitions: int = 4, messages: int = 10**6, size: int = 10**9, **how: Any) -> tuple[Any, Any]:
    budget = twin.BufferPool(messages, size)
    return twin.RecordAccumulator("topic", partitions, budget, **how), budget


def read(twin: Any, opened: Any) -> list[Any]:
    return [m.value() for m in twin.Cursor(opened.seal().data, "topic", opened.partition, 0).take(10**6)]


def test_records_of_a_partition_leave_in_the_order_of_append(twin: Any) -> None:
    buffer, _ = make(twin, batch_bytes=300)
    for number in range(200):
        buffer.append(b"%d" % number, None, number % 3)
    out: dict[int, list[bytes]] = {}
    for opened in buffer.ready(math.inf):
        out.setdefault(opened.partition, []).extend(read(twin, opened))
    assert out == {p: [b"%d" % n for n in range(200) if n % 3 == p] for p in range(3)}


def test_append_wakes_for_the_first_record_of_a_partition_and_for_a_full_batch(twin: Any) -> None:
    buffer, _ = make(twin, batch_count=3)
    assert [buffer.append(b"x", None, 0) for _ in range(7)] == [1, 0, 1, 1, 0, 1, 1]
    assert buffer.append(b"x", None, 1) == twin.WAKE
    assert [opened.count for opened in buffer.ready()] == [3, 3]
    assert buffer.ready() == []


def test_append_wakes_nobody_who_comes_by_himself_before_the_new_batch_has_lingered(twin: Any) -> None:
    buffer, _ = make(twin, batch_count=3)
    assert buffer.append(b"x", None, 0) == twin.WAKE
    assert buffer.next_deadline(5.0) is not None
    assert [buffer.append(b"x", None, partition) for partition in (1, 2, 1, 1)] == [0, 0, 0, twin.WAKE]
    assert [opened.count for opened in buffer.ready(math.inf)] == [3, 1, 1]
    assert buffer.next_deadline(5.0) is None
    assert buffer.append(b"x", None, 3) == twin.WAKE
    assert buffer.next_deadline(5.0, {3}) is None
    assert buffer.append(b"x", None, 2) == twin.WAKE


def test_ready_takes_open_batches_only_when_they_are_old_enough(twin: Any) -> None:
    buffer, _ = make(twin)
    buffer.append(b"a", None, 2)
    between = time.monotonic()
    time.sleep(0.002)
    buffer.append(b"b", None, 1)
    assert buffer.next_deadline(10.0) <= between + 10.0
    assert buffer.ready(None) == []
    first, = buffer.ready(between)
    assert (first.topic, first.partition, first.count) == ("topic", 2, 1)
    assert first.opened_at <= between
    second, = buffer.ready(math.inf)
    assert second.partition == 1
    assert buffer.next_deadline(1.0) is None


def test_a_full_batch_is_due_at_once(twin: Any) -> None:
    buffer, _ = make(twin, batch_count=1)
    buffer.append(b"a")
    assert buffer.next_deadline(5.0) == -math.inf


def test_held_partitions_keep_their_open_batch(twin: Any) -> None:
    buffer, _ = make(twin, batch_count=2)
    for partition in (0, 1, 1, 1):
        buffer.append(b"x", None, partition)
    assert [(b.partition, b.count) for b in buffer.ready(math.inf, {1})] == [(1, 2), (0, 1)]
    assert buffer.next_deadline(1.0, {1}) is None
    assert [(b.partition, b.count) for b in buffer.ready(math.inf)] == [(1, 1)]


def turns(taken: list[Any]) -> list[tuple[int, int]]:
    return [(opened.partition, opened.count) for opened in taken]


def test_records_without_a_key_stay_on_a_partition_until_it_has_got_as_much_as_fills_a_batch(twin: Any) -> None:
    for limits in ({"batch_count": 10}, {"batch_bytes": 64 + 10 * 108}):
        buffer, _ = make(twin, 50, seed=7, **limits)
        for _ in range(1000):
            buffer.append(bytes(99))
        full = buffer.ready(math.inf)
        assert {opened.count for opened in full} == {10}
        assert len({opened.partition for opened in full}) > 30


def test_a_batch_that_is_full_but_for_the_next_record_leaves_at_once(twin: Any) -> None:
    buffer, _ = make(twin, 50, seed=7, batch_bytes=64 + 10 * 108)
    assert [buffer.append(bytes(99)) for _ in range(12)] == [1, *[0] * 9, 1, 0]
    assert [opened.count for opened in buffer.ready()] == [10]


def test_a_turn_outlives_the_batch_that_was_taken_from_it(twin: Any) -> None:
    buffer, _ = make(twin, 50, seed=7, batch_count=10)
    for _ in range(4):
        buffer.append(b"x")
    first, = buffer.ready(math.inf)
    for _ in range(7):
        buffer.append(b"x")
    second, third = buffer.ready(math.inf)
    assert turns([first, second]) == [(first.partition, 4), (first.partition, 6)]
    assert third.partition == buffer.sticky != first.partition


def test_a_turn_with_an_older_open_batch_is_as_long_as_any(twin: Any) -> None:
    buffer, _ = make(twin, 50, seed=7, batch_count=10)
    buffer.append(b"x")
    for _ in range(6):
        buffer.append(b"key", b"", buffer.sticky)
    partition = buffer.sticky
    while buffer.sticky == partition:
        buffer.append(b"x")
    assert sorted(turns(buffer.ready(math.inf))) == sorted([(partition, 10), (partition, 6), (buffer.sticky, 1)])


def test_a_turn_ends_with_its_time_whatever_the_timestamps_are(twin: Any) -> None:
    buffer, _ = make(twin, 1000, seed=7, turn_ms=0)
    for _ in range(50):
        buffer.append(b"x")
    assert len(buffer.ready(math.inf)) > 40
    buffer, _ = make(twin, 1000, seed=7, turn_ms=20)
    seen = set()
    expires_at = time.monotonic() + 10
    while len(seen) < 3 and time.monotonic() < expires_at:
        buffer.append(b"x", None, -1, 5)
        seen.add(buffer.sticky)
    assert len(seen) == 3
    assert all(opened.count > 1 for opened in buffer.ready(math.inf)[:2])


def test_the_clock_set_back_ends_a_turn(plain: Any, monkeypatch: Any) -> None:
    buffer, _ = make(plain, 1000, seed=7, turn_ms=1000)
    for now_s, ends in ((50.0, True), (50.9, False), (51.1, True), (20.0, True), (20.5, False)):
        monkeypatch.setattr(time, "time_ns", lambda now_s=now_s: int(now_s * 1e9))
        before = buffer.sticky
        buffer.append(b"x")
        assert (buffer.sticky != before) == ends


@pytest.mark.parametrize("key", [None, b"", b"key"])
def test_uniform_sticky_leaves_every_record_to_chance(twin: Any, key: Any) -> None:
    buffer, _ = make(twin, 50, partitioner="uniform_sticky", batch_count=10, seed=3)
    for _ in range(100):
        buffer.append(b"x", key)
    full = buffer.ready()
    assert [opened.count for opened in full] == [10] * 10
    assert len({opened.partition for opened in full}) > 3


def test_random_draws_a_lot_for_each_record_with_a_key(twin: Any) -> None:
    for key, few in ((b"key", False), (b"", False), (None, True)):
        buffer, _ = make(twin, 50, partitioner="random", seed=3)
        for _ in range(100):
            buffer.append(b"x", key)
        assert (len(buffer.ready(math.inf)) == 1) == few


@pytest.mark.parametrize("partitioner", ["consistent", "murmur2", "fnv1a"])
def test_partitioners_that_leave_nothing_to_chance_hash_the_missing_key(twin: Any, partitioner: str) -> None:
    buffer, _ = make(twin, 50, partitioner=partitioner, turn_ms=0)
    for _ in range(20):
        buffer.append(b"x")
        buffer.append(b"x", b"")
    assert len(buffer.ready(math.inf)) == 1


def test_the_empty_key_is_left_to_chance_by_consistent_random_alone(twin: Any) -> None:
    for partitioner, fixed in (("consistent_random", False), ("murmur2_random", True), ("fnv1a_random", True)):
        buffer, _ = make(twin, 50, partitioner=partitioner, turn_ms=0)
        for _ in range(20):
            buffer.append(b"x", b"")
        assert (len(buffer.ready(math.inf)) == 1) == fixed


def chi_square(counts: list[int], weights: list[int]) -> float:
    share = sum(counts) / sum(weights)
    return sum((count - weight * share) ** 2 / (weight * share)
               for count, weight in zip(counts, weights, strict=True) if weight)


@pytest.mark.parametrize("weights", [None, [1] * 12, [5, 1, 0, 4, 1, 1, 1, 1, 1, 1, 1, 3], [0] * 11 + [1], [3, 1, 0]])
def test_partitions_are_drawn_as_often_as_they_weigh(twin: Any, weights: Any) -> None:
    buffer, _ = make(twin, 12, partitioner="random", seed=11)
    buffer.weigh(weights)
    counts = [0] * 12
    for _ in range(20_000):
        buffer.append(b"x", b"key")
    for opened in buffer.ready(math.inf):
        counts[opened.partition] += opened.count
    expected = [1] * 12 if weights is None else weights + [0] * (12 - len(weights))
    assert all(count == 0 for count, weight in zip(counts, expected, strict=True) if not weight)
    assert chi_square(counts, expected) < 31.3  # 11 degrees of freedom, p = 0.001


def test_the_turn_of_a_partition_that_weighs_nothing_ends_at_once(twin: Any) -> None:
    buffer, _ = make(twin, 3, seed=3)
    buffer.append(b"x")
    first = buffer.sticky
    buffer.weigh([1, 1, 1])
    assert buffer.sticky == first
    buffer.weigh([int(partition != first) for partition in range(3)])
    assert buffer.sticky == -1
    buffer.append(b"x")
    assert buffer.sticky not in (first, -1)
    buffer.weigh()
    assert buffer.sticky >= 0
    buffer.grow(9)
    buffer.weigh([0] * 8 + [7])
    buffer.append(b"x")
    assert buffer.sticky == 8


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1, 1], [1] * 5, [1 << 31, 1]])
def test_weights_that_say_nothing_are_refused(twin: Any, weights: Any) -> None:
    buffer, _ = make(twin, 4)
    with pytest.raises(ValueError, match="weights of"):
        buffer.weigh(weights)


def test_the_budget_counts_keys_values_headers_and_a_constant(twin: Any) -> None:
    buffer, budget = make(twin)
    buffer.append("vä", b"key", 0, 5, {"h": b"12", "n": None})
    buffer.append(None)
    assert (budget.messages, budget.bytes) == (2, 3 + 3 + 4 + 2 * twin.OVERHEAD_BYTES)
    buffer.append(None, callback=print)
    assert budget.bytes == 3 + 3 + 4 + 3 * twin.OVERHEAD_BYTES + twin.CALLBACK_BYTES
    costs = [(opened.count, opened.cost_bytes) for opened in buffer.ready(math.inf)]
    for cost in costs:
        budget.release(*cost)
    assert (budget.messages, budget.bytes) == (0, 0)


def test_a_used_up_budget_refuses_and_takes_again_after_release(twin: Any) -> None:
    for limits in ((3, 10**6), (100, 3 * 26)):
        buffer, budget = make(twin, 1, *limits)
        for _ in range(3):
            buffer.append(b"0123456789")
        with pytest.raises(BufferFullError, match=r"Queue full.*poll\(\)") as caught:
            buffer.append(b"0123456789")
        assert isinstance(caught.value, BufferError)
        assert caught.value.error == KafkaError._QUEUE_FULL
        assert budget.messages == 3
        budget.release(1, 26)
        buffer.append(b"0123456789")


def test_a_budget_is_shared_and_one_record_alone_always_fits(twin: Any) -> None:
    budget = twin.BufferPool(0, 50)
    one, two = twin.RecordAccumulator("one", 1, budget), twin.RecordAccumulator("two", 1, budget)
    one.append(bytes(100))
    with pytest.raises(BufferFullError):
        two.append(b"")


def test_who_is_far_ahead_of_the_brokers_is_told_so_and_callbacks_do_not_count(twin: Any) -> None:
    buffer, budget = make(twin, 1, 0, 10**9)
    size = 99 + twin.OVERHEAD_BYTES
    for _ in range((16 << 20) // size):
        buffer.append(bytes(99), callback=print)
    assert not budget.is_far_ahead
    buffer.append(bytes(99), headers={"h": b""})
    assert budget.is_far_ahead
    batches = buffer.ready(math.inf)
    assert budget.ahead_bytes == sum(opened.data_bytes for opened in batches) == (16 << 20) // size * size + size + 1
    for part in batches[0].split([number % 2 for number in range(batches[0].count)]):
        budget.answer(part.data_bytes)
    assert not budget.is_far_ahead
    for opened in batches[1:]:
        budget.answer(opened.data_bytes)
    assert budget.ahead_bytes == 0
    assert budget.messages == (16 << 20) // size + 1


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
    buffer, budget = make(twin, message_bytes=100)
    with pytest.raises(KafkaException) as caught:
        buffer.append(*arguments)
    assert caught.value.error.code() == code
    assert "topic" in str(caught.value)
    assert budget.messages == 0


@pytest.mark.parametrize("partition", [
    1 << 31, (1 << 63) - 2, (1 << 63) - 1, 1 << 63, (-1 << 31) - 1, -1 << 63, (-1 << 63) - 1,
])
def test_a_partition_that_no_topic_can_have_is_out_of_range(twin: Any, partition: int) -> None:
    buffer, budget = make(twin)
    with pytest.raises(OverflowError):
        buffer.append(b"x", None, partition)
    assert budget.messages == 0


def test_a_topic_without_partitions_takes_nothing(twin: Any) -> None:
    buffer, _ = make(twin, 0)
    with pytest.raises(KafkaException):
        buffer.append(b"x")
    buffer.grow(2)
    buffer.append(b"x", None, 1)
    assert buffer.partition_count == 2


@pytest.mark.parametrize("arguments", [
    (5,), ({"a": 1},), (b"v", 1.5), (b"v", None, 0, 0, 5), (b"v", None, 0, 0, [("h", 5)]),
    (b"v", None, 0, 0, [(b"h", b"v")]), (b"v", None, 0, 0, ["abc"]),
])
def test_wrong_types_are_refused_before_anything_is_kept(twin: Any, arguments: Any) -> None:
    buffer, budget = make(twin)
    with pytest.raises(TypeError):
        buffer.append(*arguments)
    assert (budget.messages, buffer.ready(math.inf)) == (0, [])


def test_a_negative_timestamp_is_an_error_and_zero_is_now(twin: Any) -> None:
    buffer, _ = make(twin, 1)
    with pytest.raises(ValueError, match="negative"):
        buffer.append(b"x", None, 0, -1)
    before = time.time_ns() // 1_000_000
    buffer.append(b"x")
    buffer.append(b"y", None, 0, 77)
    messages = twin.Cursor(buffer.ready(math.inf)[0].seal().data, "t", 0, 0).take(2)
    assert before <= messages[0].timestamp()[1] <= time.time_ns() // 1_000_000
    assert messages[1].timestamp() == (1, 77)


@pytest.mark.parametrize("value", ["text", bytearray(b"text"), memoryview(b"text")])
def test_text_and_buffers_are_taken_as_bytes(twin: Any, value: Any) -> None:
    buffer, _ = make(twin, 1)
    buffer.append(value, value)
    message = twin.Cursor(buffer.ready(math.inf)[0].seal().data, "t", 0, 0).take_one()
    assert (message.key(), message.value()) == (b"text", b"text")


@pytest.mark.parametrize("codec", [0, 4])
def test_delivery_reports_tell_what_was_sent_and_where_it_is(twin: Any, codec: int) -> None:
    buffer, _ = make(twin, 2)
    for number in range(6):
        buffer.append(f"v{number}", b"k", 1, 100 + number, [("h", b"x")], number if number % 2 else None)
    opened, = buffer.ready(math.inf)
    assert opened.reports == [None, 1, None, 3, None, 5]
    opened.seal(codec)
    left = opened.messages(50, 1, -1, None, time.monotonic() + 1)
    assert length_hint(left) == 3
    reports = list(left)
    assert length_hint(left) == 0
    assert [callback for callback, _ in reports] == [1, 3, 5]
    assert fields(reports[1][1])[:8] == ("topic", 1, 53, b"k", b"v3", [("h", b"x")], (1, 103), None)
    assert 0.9 <= reports[0][1].latency() < 5  # two clocks are read, and a thread may have to wait in between


def test_delivery_reports_of_failed_batches_have_the_error_and_no_offset(twin: Any) -> None:
    buffer, _ = make(twin, 1)
    buffer.append(b"x", callback=print)
    error = KafkaError(KafkaError._MSG_TIMED_OUT)
    (_, message), = buffer.ready(math.inf)[0].messages(-1, 0, -1, error, 0.0)
    assert (message.error(), message.offset(), message.latency(), message.value()) == (error, None, 0.0, b"x")


def test_delivery_reports_have_the_brokers_time_when_it_sets_it(twin: Any) -> None:
    buffer, _ = make(twin, 1)
    buffer.append(b"x", callback=print)
    (_, message), = buffer.ready(math.inf)[0].messages(0, 2, 12345, None, 0.0)
    assert message.timestamp() == (2, 12345)


def test_batches_without_callbacks_keep_nothing(twin: Any) -> None:
    buffer, _ = make(twin, 1)
    buffer.append(b"x")
    opened, = buffer.ready(math.inf)
    assert opened.reports is None
    assert list(opened.messages(0, 1, 0, None, 0.0)) == []


def divided(twin: Any, parts: list[int], codec: int = 0) -> tuple[Any, list[Any]]:
    buffer, budget = make(twin, 2)
    for number in range(4):
        headers = [("h", b"x"), ("n", None)] if number == 2 else None
        buffer.append(f"v{number}", b"k" * number or None, 1, 100 - 7 * number, headers, number if number % 2 else None)
    opened, = buffer.ready(math.inf)
    opened.seal(codec)
    assert opened.cost_bytes == budget.bytes
    return opened, opened.split(parts)


@pytest.mark.parametrize("codec", [0, 4])
def test_a_batch_is_divided_into_batches_that_keep_the_order_and_all_that_a_record_has(twin: Any, codec: int) -> None:
    opened, parts = divided(twin, [0, 1, 0, 1], codec)
    found = [[(m.value(), m.key(), m.headers(), m.timestamp()) for m in
              twin.Cursor(part.seal(codec).data, "topic", 1, 0).take(9)] for part in parts]
    assert found == [
        [(b"v0", None, None, (1, 100)), (b"v2", b"kk", [("h", b"x"), ("n", None)], (1, 86))],
        [(b"v1", b"k", None, (1, 93)), (b"v3", b"kkk", None, (1, 79))],
    ]
    assert [(part.topic, part.partition, part.opened_at, part.count) for part in parts] == [
        ("topic", 1, opened.opened_at, 2)] * 2
    assert sum(part.cost_bytes for part in parts) == opened.cost_bytes


def test_the_parts_of_a_divided_batch_report_its_records_with_their_latencies(twin: Any) -> None:
    opened, parts = divided(twin, [1, 0, 0, 1])
    now = time.monotonic() + 1
    whole = dict(opened.messages(0, 1, -1, None, now))
    shown = [(callback, message.value(), message.offset(), message.latency())
             for part in parts for callback, message in part.messages(50, 1, -1, None, now)]
    assert shown == [(1, b"v1", 50, whole[1].latency()), (3, b"v3", 51, whole[3].latency())]


def test_a_part_whose_records_have_no_callback_keeps_nothing(twin: Any) -> None:
    _, parts = divided(twin, [0, 1, 0, 1])
    assert [part.reports for part in parts] == [None, [1, 3]]


@pytest.mark.parametrize("parts", [[0, 0, 0], [0] * 5, [0, 0, 2, 2], [1, 1, 1, 1], [-1, 0, 0, 0]])
def test_a_division_that_leaves_a_record_or_a_part_out_is_refused(twin: Any, parts: list[int]) -> None:
    with pytest.raises(ValueError, match="4 records"):
        divided(twin, parts)


def test_threads_may_append_while_another_takes(twin: Any) -> None:
    buffer, budget = make(twin, 4, batch_bytes=2000)
    taken: list[Any] = []

    def produce(name: int) -> None:
        for number in range(2000):
            buffer.append(b"%d %d" % (name, number), None, number % 4)

    threads = [threading.Thread(target=produce, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        taken += buffer.ready(math.inf)
    taken += buffer.ready(math.inf)
    assert sum(opened.count for opened in taken) == budget.messages == 6000
    last: dict[tuple[int, bytes], int] = {}
    for opened in taken:
        for value in read(twin, opened):
            name, number = value.split()
            assert last.get((opened.partition, name), -1) < int(number)
            last[opened.partition, name] = int(number)


def test_memory_of_batches_that_only_the_garbage_collector_finds_goes_back_to_its_pool(twin: Any) -> None:
    buffer, _ = make(twin, 1)
    for _ in range(40):
        rows: list[Any] = []
        buffer.append(b"x" * 100_000, callback=rows)
        opened, = buffer.ready(math.inf)
        rows += [opened, opened.seal(), memoryview(opened.seal().data)]
        del opened, rows
    assert gc.collect() > 0
    buffer.append(b"y" * 100_000)
    assert read(twin, buffer.ready(math.inf)[0]) == [b"y" * 100_000]
