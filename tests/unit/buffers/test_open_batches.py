"""The batches of all topics of a producer are taken out together, each topic's own only in the order of its records."""

import gc
import math
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest


class Topics:
    """A producer's topics, of two partitions each."""

    def __init__(self, twin: Any, *names: str, linger_s: float = 0.0, **how: Any) -> None:
        pool = twin.BufferPool(0, 1 << 30)
        self.batches = twin.OpenBatches(linger_s)
        self.of = {name: twin.RecordAccumulator(name, 2, pool, self.batches, **how) for name in names}

    def add(self, name: str, partition: int = 0, value: bytes = b"v") -> int:
        woken: int = self.of[name].append(value, None, partition)
        return woken


def places(batches: list[Any]) -> list[tuple[str, int, int]]:
    return [(batch.topic, batch.partition, batch.count) for batch in batches]


def test_batches_of_all_topics_are_taken_out_with_the_oldest_first(twin: Any) -> None:
    topics = Topics(twin, "a", "b", "c")
    for name, partition in [("b", 1), ("a", 0), ("b", 1), ("b", 0)]:
        topics.add(name, partition)
    assert places(topics.batches.ready(math.inf)) == [("b", 1, 2), ("a", 0, 1), ("b", 0, 1)]
    assert topics.batches.ready(math.inf) == []


def test_only_what_has_lingered_is_taken_out_and_the_oldest_says_when_the_next_has(twin: Any) -> None:
    topics = Topics(twin, "a", "b")
    topics.add("b")
    time.sleep(0.002)
    between = time.monotonic()
    time.sleep(0.002)
    topics.add("a")
    assert topics.batches.next_deadline(10.0) <= between + 10.0
    assert places(topics.batches.ready(between)) == [("b", 0, 1)]
    assert between + 10.0 <= topics.batches.next_deadline(10.0)
    assert places(topics.batches.ready(math.inf)) == [("a", 0, 1)]
    assert topics.batches.next_deadline(10.0) is None


def test_what_is_full_leaves_before_what_was_opened_earlier_and_is_due_at_once(twin: Any) -> None:
    topics = Topics(twin, "a", "b", batch_count=2)
    topics.add("a")
    topics.add("b")
    assert topics.add("b") == twin.WAKE
    assert topics.batches.next_deadline(10.0) == -math.inf
    assert places(topics.batches.ready()) == [("b", 0, 2)]
    assert places(topics.batches.ready(math.inf)) == [("a", 0, 1)]


def test_a_partition_that_is_held_keeps_its_batch_and_those_of_other_topics_go(twin: Any) -> None:
    topics = Topics(twin, "a", "b")
    for name in ("a", "b"):
        topics.add(name, 1)
    assert places(topics.batches.ready(math.inf, {"a": {1}, "b": {0}})) == [("b", 1, 1)]
    topics.add("a", 1)
    assert topics.batches.next_deadline(1.0, {"a": {1}}) is None
    assert topics.batches.next_deadline(1.0, {"a": {0}, "c": {1}}) is not None
    assert places(topics.batches.ready(math.inf)) == [("a", 1, 2)]


def test_one_wake_up_is_enough_for_the_batches_that_many_topics_open(twin: Any) -> None:
    topics = Topics(twin, *(f"t{number}" for number in range(100)))
    assert topics.add("t0") == twin.WAKE
    assert topics.batches.next_deadline(0.005) is not None
    assert [topics.add(f"t{number}") for number in range(1, 100)] == [0] * 99, "the loop comes back by itself"
    assert len(topics.batches.ready(math.inf)) == 100
    assert topics.batches.next_deadline(0.005) is None
    assert topics.add("t5") == twin.WAKE, "it does not any more"


class Ringing:
    """Topics whose open batches an alarm watches."""

    def __init__(self, twin: Any, *names: str, linger_s: float = 100.0, **how: Any) -> None:
        self.topics = Topics(twin, *names, linger_s=linger_s, **how)
        self.add, self.batches, self.linger_s = self.topics.add, self.topics.batches, linger_s
        self.alarm, self.flushing = twin.Alarm(), dict[object, object]()
        assert not self.batches.rings
        self.batches.ring(self.alarm, self.flushing)
        assert self.batches.rings

    def rang_for(self, opened: Callable[[], object]) -> bool:
        """Whether the alarm is set for a batch that is opened now."""
        before = time.monotonic()
        opened()
        return bool(before + self.linger_s <= self.alarm.at <= time.monotonic() + self.linger_s)


def test_an_alarm_is_set_for_the_first_batch_and_nobody_is_woken(twin: Any) -> None:
    ringing = Ringing(twin, "a", "b")
    assert ringing.rang_for(lambda: ringing.add("a"))
    at = ringing.alarm.at
    time.sleep(0.002)
    assert (ringing.add("b"), ringing.add("a"), ringing.alarm.at) == (0, 0, at)
    assert ringing.batches.next_deadline(100.0) is None


def test_behind_a_batch_that_is_taken_out_alone_the_alarm_is_set_for_the_oldest_that_stays(twin: Any) -> None:
    ringing = Ringing(twin, "a", "b", linger_s=0.004)
    ringing.add("a")
    time.sleep(0.002)
    between = time.monotonic()
    ringing.add("b", 1)
    time.sleep(0.004)
    assert places(ringing.batches.ready(between)) == [("a", 0, 1)]
    assert between < ringing.alarm.at - 0.004 <= time.monotonic()
    assert places(ringing.batches.ready(math.inf)) == [("b", 1, 1)]
    time.sleep(0.006)
    assert ringing.batches.ready(math.inf) == []
    assert ringing.batches.next_deadline(0.004) is None
    assert ringing.rang_for(lambda: ringing.add("a")), "nothing rings any more"


def test_behind_several_the_loop_comes_back_by_itself_unless_the_alarm_rings_before(twin: Any) -> None:
    ringing = Ringing(twin, "a", "b", "c", linger_s=0.02)
    assert ringing.rang_for(lambda: ringing.add("a"))
    at = ringing.alarm.at
    assert len(ringing.batches.ready(math.inf, {"c": {1}})) == 1
    ringing.add("b")
    assert ringing.batches.next_deadline(0.02, {"c": {1}}) is None, "it rings before the new one has lingered"
    time.sleep(0.03)
    deadline = ringing.batches.next_deadline(0.02, {"c": {1}})
    assert at < deadline <= time.monotonic()
    assert (ringing.add("a"), ringing.alarm.at) == (0, at), "the loop is on its way"
    assert ringing.batches.next_deadline(0.02, {"b": {0}}) > deadline, "not for what is held"
    assert len(ringing.batches.ready(deadline - 0.02)) == 1
    assert ringing.alarm.at > deadline, "who takes one out need not ask for the next deadline"
    assert len(ringing.batches.ready(math.inf)) == 1


def test_an_alarm_that_rings_before_is_left_as_it_is(twin: Any) -> None:
    ringing = Ringing(twin, "a")
    ringing.add("a")
    at = ringing.alarm.at
    assert len(ringing.batches.ready(math.inf)) == 1
    assert ringing.add("a") == 0
    assert ringing.batches.ready(0.0) == []
    assert ringing.alarm.at == at


def test_who_sends_while_somebody_flushes_is_woken_as_without_an_alarm(twin: Any) -> None:
    ringing = Ringing(twin, "a", "b", "c")
    ringing.add("a")
    ringing.flushing["one"] = None
    assert len(ringing.batches.ready(math.inf)) == 1
    assert ringing.batches.next_deadline(0.0) is None
    assert ringing.add("a") == twin.WAKE
    assert ringing.batches.next_deadline(0.0) <= time.monotonic()
    assert ringing.add("b") == 0, "the loop is on its way"
    ringing.flushing.clear()
    assert ringing.batches.next_deadline(100.0) is None
    assert ringing.add("c") == 0
    ringing.flushing["one"] = None
    assert ringing.add("b", 1) == twin.WAKE


def test_what_is_full_wakes_in_spite_of_an_alarm(twin: Any) -> None:
    ringing = Ringing(twin, "a", batch_count=2)
    assert [ringing.add("a"), ringing.add("a")] == [0, twin.WAKE]
    assert ringing.batches.next_deadline(100.0) == -math.inf


def test_without_its_alarm_the_loop_is_woken_again(twin: Any) -> None:
    ringing = Ringing(twin, "a", "b")
    ringing.add("a")
    ringing.batches.ring()
    assert not ringing.batches.rings
    assert ringing.add("b") == twin.WAKE
    assert ringing.batches.next_deadline(100.0) is not None


def test_open_batches_without_a_way_are_not_sent(twin: Any) -> None:
    topics = Topics(twin, "a")
    assert topics.batches.send_open(), "there is nothing to be sent"
    topics.add("a")
    assert not topics.batches.send_open()
    assert places(topics.batches.ready(math.inf)) == [("a", 0, 1)]


def test_full_batches_are_not_sent_by_who_flushes(twin: Any) -> None:
    topics = Topics(twin, "a", batch_count=1)
    topics.add("a")
    assert not topics.batches.send_open()


@pytest.mark.parametrize("records", [20_000])
def test_no_record_is_lost_or_overtaken_while_threads_append_to_several_topics(twin: Any, records: int) -> None:
    topics = Topics(twin, "a", "b", "c", batch_count=7)
    names, left = list(topics.of), threading.Semaphore(0)

    def append(own: int) -> None:
        for number in range(own, records, 2):
            topics.add(names[number % 3], own, b"%d" % number)
        left.release()

    threads = [threading.Thread(target=append, args=(own,)) for own in (0, 1)]
    for thread in threads:
        thread.start()
    taken: list[Any] = []
    while not (left.acquire(blocking=False) and left.acquire()):
        taken += topics.batches.ready(math.inf)
    taken += topics.batches.ready(math.inf)
    for thread in threads:
        thread.join()
    values: dict[tuple[str, int], list[int]] = {}
    for batch in taken:
        read = twin.Cursor(batch.seal().data, batch.topic, batch.partition, 0).take(100)
        values.setdefault((batch.topic, batch.partition), []).extend(int(message.value()) for message in read)
    assert sum(map(len, values.values())) == records
    assert all(before < after for each in values.values() for before, after in pairwise(each))


def test_who_sends_what_is_open_may_be_interrupted_by_the_collector_and_by_others_that_open_more(twin: Any) -> None:
    topics = Topics(twin, *(f"t{number}" for number in range(40)), linger_s=60.0)
    for name in list(topics.of)[:20]:
        topics.add(name)
    others, batches = iter(list(topics.of)[20:]), topics.batches

    def open_another(phase: str, info: object) -> None:
        lock = getattr(batches, "lock", None)  # of the plain twin: others wait for it
        if phase == "start" and not (lock is not None and lock.locked()):
            topics.add(next(others, "t0"))

    pairs = [(number, number) for number in range(5_000)]  # Python keeps no more of them: each new one is allocated
    thresholds = gc.get_threshold()
    gc.callbacks.append(open_another)
    gc.set_threshold(1)
    try:
        for _ in range(5):
            batches.send_open()
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(open_another)
    assert len(batches.ready(math.inf)) >= 20
    assert len(pairs) == 5_000
