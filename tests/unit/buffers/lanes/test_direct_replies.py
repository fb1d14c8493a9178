"""Replies to direct batches that threads take which serve reports: what is reported, and when the loop has to read."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .test_direct_lane import FROM, PATIENCE_S, Bench, replied


class AtOnce:
    """A callback that does not wait for reports to be served."""

    def __call__(self, error: Any, message: Any) -> None:
        raise AssertionError("it is called by the loop")


class Replies:
    """A bench whose replies are read by whoever serves reports."""

    def __init__(self, twin: Any, **how: Any) -> None:
        self.bench = Bench(twin, **how)
        self.runs: deque[Any] = deque()
        self.failures: list[bool] = []
        self.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.pool, self.lane = self.bench.pool, self.bench.lane
        self.done = 0
        self.replies = twin.DirectReplies(self.runs, self.pool, AtOnce, self.wake, self.on_failed, self.on_done)
        self.told: list[tuple[str, int | None, Any]] = []
        self.lane.read_by(self.replies)

    def on_failed(self) -> None:
        self.failures.append(self.lane.failed)

    def on_done(self) -> None:
        self.done += 1

    def add(self, name: str, **more: Any) -> None:
        def report(error: Any, message: Any) -> None:
            assert error is None
            self.told.append((name, message.offset(), message.timestamp()))

        assert self.bench.accumulator.append(name.encode(), None, 0, 1_000, None, more.get("callback", report)) == 0

    def answer(self, data: bytes) -> None:
        self.bench.theirs.sendall(data)

    def receive(self, timeout_s: float = PATIENCE_S) -> None:
        self.replies.receive(timeout_s)

    def serve(self) -> list[tuple[str, int | None, Any]]:
        """Call the callbacks that are due, as a producer does."""
        for run in self.runs:
            assert run.begin()
            for call, message in run:
                call(run.error, message)
        self.runs.clear()
        told, self.told = self.told, []
        return told

    def close(self) -> None:
        self.replies.end()
        os.close(self.wake)
        self.bench.close()


@pytest.fixture
def reading(twin: Any) -> Iterator[Replies]:
    made = Replies(twin)
    yield made
    made.close()


def test_a_usual_reply_is_a_report_that_waits_to_be_served(reading: Replies) -> None:
    reading.add("one")
    reading.answer(replied(FROM, 70))
    reading.receive()
    assert (reading.lane.in_flight, reading.pool.messages, reading.failures) == (0, 1, [])
    assert reading.serve() == [("one", 70, (1, 1_000))]
    assert (reading.pool.messages, reading.pool.bytes, reading.pool.ahead_bytes) == (0, 0, 0)


def test_a_log_append_time_is_reported(reading: Replies) -> None:
    reading.add("one")
    reading.answer(replied(FROM, 70, log_append_time_ms=55))
    reading.receive()
    assert reading.serve() == [("one", 70, (2, 55))]


def test_what_was_taken_is_told_to_the_loop_once(reading: Replies) -> None:
    before = time.monotonic()
    reading.add("one")
    reading.add("two")
    frames = [len(reading.bench.general(b"one", FROM, 9))] * 2
    reading.answer(replied(FROM, 70) + replied(FROM + 1, 71))
    reading.receive()
    answered = reading.lane.take_answered()
    assert [entry[:6] for entry in answered] == [
        ("owner of 0", 1, answered[0][2], 70 + number, frames[number], len(replied(FROM, 70))) for number in range(2)]
    assert all(61 < size < 100 for _, _, size, *_ in answered)
    assert all(before <= sent <= done <= time.monotonic() for *_, sent, done in answered)
    assert reading.lane.take_answered() == []
    assert before <= reading.lane.answered_at <= reading.lane.looked_at


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 5), st.lists(st.integers(0, 400), max_size=4))
def test_replies_that_come_in_pieces_are_taken_when_they_are_whole(twin: Any, count: int, at: list[int]) -> None:
    reading = Replies(twin)
    names = [f"record {number}" for number in range(count)]
    for name in names:
        reading.add(name)
    whole = b"".join(replied(FROM + number, 70 + number) for number in range(count))
    cuts = sorted(min(place, len(whole)) for place in at)
    told: list[str] = []
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        if end > begin:
            reading.answer(whole[begin:end])
            reading.receive(0.5 if end == len(whole) else 0.01)
            told += [name for name, _, _ in reading.serve()]
            assert len(told) <= end * count // len(whole)
    assert (told, reading.failures) == (names, [])
    reading.close()


@pytest.mark.parametrize("data", [
    replied(FROM, 7, error_code=1), replied(FROM + 1, 7), replied(FROM, 7, partition=1), b"\0\0\0\0\0\0\0\1",
    replied(FROM, 7, version=9),
])
def test_anything_unusual_is_left_to_the_loop_with_all_bytes(reading: Replies, data: bytes) -> None:
    reading.add("one")
    reading.answer(data)
    reading.receive()
    assert (reading.lane.in_flight, reading.failures, reading.replies.ready) == (1, [True], False)
    reading.replies.look()
    assert reading.failures == [True]  # it was told
    reading.receive(1)  # comes back at once
    assert reading.lane.read_by_loop() == data
    assert (reading.lane.failed, reading.lane.is_read, reading.runs) == (False, False, deque())


def test_what_is_taken_before_something_unusual_is_reported(reading: Replies) -> None:
    reading.add("one")
    reading.add("two")
    reading.answer(replied(FROM, 70) + replied(FROM + 1, 7, error_code=1))
    reading.receive()
    assert reading.serve() == [("one", 70, (1, 1_000))]
    assert reading.lane.read_by_loop() == replied(FROM + 1, 7, error_code=1)
    assert [batch.count for _, batch, *_ in reading.lane.stop()[0]] == [1]


def test_every_byte_of_a_reply_but_its_offsets_counts(twin: Any) -> None:
    usual = replied(FROM, 7)
    for place in range(len(usual)):
        if replied(FROM, -1, log_append_time_ms=0, log_start_offset=0)[place] != replied(
                FROM, 0, log_append_time_ms=-1, log_start_offset=-1)[place]:
            continue
        reading = Replies(twin)
        reading.add("one")
        reading.answer(usual[:place] + bytes([usual[place] ^ 1]) + usual[place + 1:])
        reading.receive()
        assert (reading.lane.in_flight, reading.failures) == (1, [True]), place
        reading.close()


def test_bytes_that_nobody_asked_for_are_left_to_the_loop(reading: Replies) -> None:
    reading.answer(b"\0")
    reading.replies.look()  # nothing is in flight: it does not look
    assert reading.failures == []
    reading.receive()
    assert reading.failures == [True]
    assert reading.lane.read_by_loop() == b"\0"


def test_the_end_of_the_stream_is_left_to_the_loop(reading: Replies) -> None:
    reading.add("one")
    reading.bench.theirs.close()
    reading.receive()
    assert (reading.failures, reading.lane.read_by_loop()) == ([True], b"")


def test_a_batch_without_callbacks_is_done_at_once(reading: Replies) -> None:
    reading.add("one", callback=None)
    reading.answer(replied(FROM, 70))
    reading.receive()
    assert (reading.runs, reading.done, reading.failures) == (deque(), 1, [])
    assert (reading.pool.messages, reading.pool.bytes, reading.pool.ahead_bytes) == (0, 0, 0)
    assert [entry[3] for entry in reading.lane.take_answered()] == [70]
    reading.replies.look()
    assert reading.done == 1


def test_a_batch_for_which_somebody_else_waits_is_left_to_the_loop(reading: Replies) -> None:
    reading.add("one", callback=AtOnce())
    assert (reading.failures, reading.lane.in_flight) == ([True], 1)
    reading.answer(replied(FROM, 70))
    reading.receive(0.01)
    assert (len(reading.runs), reading.lane.in_flight) == (0, 1)
    assert reading.lane.read_by_loop() == b""
    assert reading.bench.received() != b""


def test_looking_takes_what_is_there_and_does_not_wait(reading: Replies) -> None:
    reading.add("one")
    began = time.monotonic()
    reading.replies.look()
    assert (time.monotonic() - began < PATIENCE_S / 2, len(reading.runs)) == (True, 0)
    reading.answer(replied(FROM, 70))
    while not reading.runs:
        reading.replies.look()
        assert time.monotonic() - began < PATIENCE_S
    assert [name for name, _, _ in reading.serve()] == ["one"]


def test_poll_looks_for_replies_before_it_serves(reading: Replies) -> None:
    client, asked = SimpleNamespace(closed=False), list[float]()
    polling = reading.bench.twin.Polling()
    polling.replies = reading.replies
    turns = reading.bench.twin.LoopTurns()
    poll = reading.bench.twin.ServeFastPath(polling, (reading.runs,), turns, client, asked.append).poll
    reading.add("one")
    reading.answer(replied(FROM, 70))
    began, calls = time.monotonic(), 0
    while not reading.runs:
        poll(0)
        calls += 1
        assert time.monotonic() - began < PATIENCE_S
    assert (polling.polls, asked) == (calls, [0])
    assert [name for name, _, _ in reading.serve()] == ["one"]


def test_a_wait_ends_when_its_time_is_over_or_it_is_woken(reading: Replies) -> None:
    reading.add("one")
    began = time.monotonic()
    reading.receive(0.05)
    assert 0.04 < time.monotonic() - began < PATIENCE_S / 2
    waker = threading.Timer(0.05, reading.replies.wake)
    waker.start()
    reading.receive()
    waker.join()
    assert time.monotonic() - began < PATIENCE_S / 2
    assert (reading.replies.waiting, reading.lane.in_flight) == (0, 1)


def test_a_wait_ends_when_the_loop_reads_again(reading: Replies) -> None:
    reading.add("one")
    began, data = time.monotonic(), list[bytes]()
    loop = threading.Timer(0.05, lambda: data.append(reading.lane.read_by_loop()))
    loop.start()
    reading.receive()
    loop.join()
    assert (data, reading.replies.ready) == ([b""], False)
    assert time.monotonic() - began < PATIENCE_S / 2


def test_there_is_no_wait_while_reports_are_to_be_served(reading: Replies) -> None:
    reading.add("one")
    reading.add("two")
    reading.answer(replied(FROM, 70))
    reading.receive()
    began = time.monotonic()
    reading.receive()
    assert time.monotonic() - began < PATIENCE_S / 2


def test_several_connections_are_waited_for_at_once(twin: Any) -> None:
    first, second = Replies(twin), Bench(twin)
    second.lane.read_by(first.replies)
    second.accumulator.append(b"x", None, 0, 1_000, None, lambda error, message: first.told.append(("second", 0, 0)))
    first.add("first")
    second.theirs.sendall(replied(FROM, 5))
    first.receive()
    assert [name for name, _, _ in first.serve()] == ["second"]
    first.answer(replied(FROM, 6))
    first.receive()
    assert [name for name, _, _ in first.serve()] == ["first"]
    second.close()
    first.close()


def test_all_threads_that_wait_are_woken(reading: Replies) -> None:
    reading.add("one")
    ended: list[int] = []
    waiting = [threading.Thread(target=lambda: (reading.receive(), ended.append(1))) for _ in range(4)]
    for thread in waiting:
        thread.start()
    began = time.monotonic()
    while reading.replies.waiting < 4:
        time.sleep(0.001)
    reading.replies.wake()
    for thread in waiting:
        thread.join(PATIENCE_S / 2)
    assert (len(ended), reading.replies.waiting) == (4, 0)
    assert time.monotonic() - began < PATIENCE_S / 2
    began = time.monotonic()
    reading.receive(0.05)  # nothing is left of it
    assert time.monotonic() - began > 0.04


def test_a_thread_that_was_woken_before_it_waits_does_not_wait(reading: Replies) -> None:
    reading.add("one")
    awake, other = threading.Lock(), threading.Lock()
    other.acquire()
    began = time.monotonic()
    reading.replies.wake()
    reading.replies.receive(PATIENCE_S, other)  # takes the wake-up of all
    reading.replies.receive(PATIENCE_S, awake)
    assert (awake.locked(), reading.replies.waiting) == (True, 0)
    assert time.monotonic() - began < PATIENCE_S / 2


def test_no_more_connections_are_read_than_can_be_waited_for(twin: Any) -> None:
    reading = Replies(twin)
    others = [Bench(twin) for _ in range(14)]
    for number, other in enumerate(others):
        assert reading.replies.has_room, number
        other.lane.read_by(reading.replies)
    assert not reading.replies.has_room
    others[-1].theirs.close()
    reading.receive()  # also the last one
    assert others[-1].lane.failed
    for other in others:
        other.close()
    reading.close()


@pytest.mark.parametrize("waited_for", [False, True])
def test_replies_that_somebody_waits_for_who_does_not_serve_reports_stay_the_loops(
    twin: Any, waited_for: bool
) -> None:
    reading = Replies(twin)
    reading.lane.read_by_loop()
    reading.add("before")
    reading.add("in flight when they are lent", **({"callback": AtOnce()} if waited_for else {}))
    reading.lane.read_by(reading.replies)
    assert (reading.lane.failed, reading.replies.ready) == (waited_for, not waited_for)
    reading.answer(replied(FROM, 70) + replied(FROM + 1, 71))
    reading.receive(0.05)
    assert reading.lane.in_flight == (2 if waited_for else 0)
    reading.close()


@pytest.mark.parametrize("lingers", [False, True])
def test_open_batches_are_sent_when_they_are_asked_for(twin: Any, lingers: bool) -> None:
    reading = Replies(twin, linger_s=60.0 if lingers else 0.0)
    accumulator, pairs = reading.bench.accumulator, [(b"one", 0), (b"two", 0), (b"other", 1)]
    accumulator.lend(1, reading.bench.way_of(1))
    assert accumulator.open_batches.send_open()
    woken = [accumulator.append(value, None, partition, 1_000) for value, partition in pairs]
    assert any(woken) == lingers
    time.sleep(0.02)
    before = time.monotonic()
    assert accumulator.open_batches.send_open()
    assert (reading.lane.in_flight, accumulator.open_batches.ready(1e12)) == (2 if lingers else 3, [])
    sent = reading.lane.stop()[0]
    assert [(batch.partition, batch.count) for _, batch, *_ in sent] == (
        [(0, 2), (1, 1)] if lingers else [(0, 1), (0, 1), (1, 1)])
    if lingers:
        assert all(sent_at >= before > batch.opened_at for _, batch, _, _, sent_at in sent)
    reading.close()


def test_a_batch_that_has_lingered_alone_is_sent_when_it_is_asked_for(twin: Any) -> None:
    reading = Replies(twin, linger_s=60.0)
    accumulator = reading.bench.accumulator
    accumulator.lend(1, reading.bench.way_of(1))
    batches = accumulator.open_batches
    assert not batches.send_lone(1e12), "there is none"
    accumulator.append(b"one", None, 0, 1_000)
    time.sleep(0.002)
    between = time.monotonic()
    time.sleep(0.002)
    accumulator.append(b"other", None, 1, 1_000)
    assert not batches.send_lone(0.0), "none has lingered"
    assert not batches.send_lone(1e12), "together they are one request"
    assert batches.send_lone(between)
    assert not batches.send_lone(between)
    assert [(batch.partition, batch.count) for _, batch, *_ in reading.lane.stop()[0]] == [(0, 1)]
    assert not batches.send_lone(1e12), "its way has ended"
    assert [batch.partition for batch in batches.ready(1e12)] == [1]
    reading.close()


def test_behind_a_batch_that_is_sent_alone_the_alarm_is_set_for_the_next(twin: Any) -> None:
    reading = Replies(twin, linger_s=0.004)
    accumulator, alarm = reading.bench.accumulator, twin.Alarm()
    accumulator.open_batches.ring(alarm, {})
    accumulator.append(b"one", None, 0, 1_000)
    time.sleep(0.002)
    between = time.monotonic()
    accumulator.append(b"other", None, 1, 1_000)
    time.sleep(0.004)
    assert accumulator.open_batches.send_lone(between)
    assert between < alarm.at - 0.004 <= time.monotonic()
    assert len(accumulator.open_batches.ready(1e12)) == 1
    alarm.close()
    reading.close()


def test_who_has_sent_a_batch_alone_need_not_ask_for_the_next_deadline(twin: Any) -> None:
    reading = Replies(twin, linger_s=0.01)
    accumulator, alarm = reading.bench.accumulator, twin.Alarm()
    accumulator.append(b"one", None, 0, 1_000)
    accumulator.open_batches.ring(alarm, {})
    assert accumulator.open_batches.next_deadline(0.01) is not None
    assert accumulator.append(b"another", None, 1, 1_000) == 0
    assert alarm.at == float("inf"), "the loop comes by itself"
    assert len(accumulator.open_batches.ready(0.0)) == 0
    accumulator.lend(1, reading.bench.way_of(1))
    assert accumulator.open_batches.send_open()
    accumulator.append(b"two", None, 0, 1_000)
    time.sleep(0.015)
    assert accumulator.open_batches.send_lone(1e12)
    before = time.monotonic()
    assert accumulator.append(b"three", None, 0, 1_000) == 0
    assert before + 0.01 <= alarm.at <= time.monotonic() + 0.01
    assert len(accumulator.open_batches.ready(1e12)) == 1
    alarm.close()
    reading.close()


def test_what_is_full_is_not_overtaken_by_what_has_lingered(twin: Any) -> None:
    reading = Replies(twin, linger_s=60.0, batch_count=2)
    accumulator = reading.bench.accumulator
    for partition in (1, 1, 0):
        accumulator.append(b"v", None, partition, 1_000)
    assert not accumulator.open_batches.send_lone(1e12)
    reading.close()


def test_who_flushes_behind_each_record_does_not_wake_the_loop_for_batches_that_are_gone_when_it_comes(
    twin: Any,
) -> None:
    reading = Replies(twin, linger_s=0.2)
    accumulator = reading.bench.accumulator

    def flushed() -> int:
        woken: int = accumulator.append(b"v", None, 0, 1_000)
        assert accumulator.open_batches.send_open()
        return woken

    assert flushed() == 1
    assert accumulator.open_batches.next_deadline(0.2) is None  # the first one says nothing about the next
    assert flushed() == 1
    before = time.monotonic()
    look_at = accumulator.open_batches.next_deadline(0.0)  # also while somebody flushes
    assert before + 0.2 <= look_at <= time.monotonic() + 0.2
    assert flushed() == 0
    assert accumulator.append(b"stays", None, 0, 1_000) == 0  # it has not lingered when the loop comes
    assert accumulator.open_batches.ready(look_at - 0.2) == []
    assert look_at <= accumulator.open_batches.next_deadline(0.2) <= time.monotonic() + 0.2
    assert [batch.count for batch in accumulator.open_batches.ready(1e12)] == [1]
    time.sleep(0.25)
    assert accumulator.open_batches.next_deadline(0.2) is None
    assert accumulator.append(b"later", None, 0, 1_000) == 1
    reading.close()


def test_open_batches_that_have_no_way_are_left_to_the_loop(twin: Any) -> None:
    reading = Replies(twin, linger_s=60.0)
    reading.bench.accumulator.append(b"one", None, 0, 1_000)
    reading.bench.accumulator.append(b"other", None, 1, 1_000)
    assert not reading.bench.accumulator.open_batches.send_open()
    assert reading.lane.in_flight == 1
    assert [batch.partition for batch in reading.bench.accumulator.open_batches.ready(1e12)] == [1]
    reading.close()


def test_after_the_end_nothing_is_read(reading: Replies) -> None:
    reading.add("one")
    reading.replies.end()
    reading.answer(replied(FROM, 70))
    reading.replies.look()
    reading.receive()
    assert (reading.runs, reading.lane.in_flight, reading.lane.read_by_loop()) == (deque(), 1, b"")
