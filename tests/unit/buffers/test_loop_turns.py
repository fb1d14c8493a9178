"""Who never waits steps aside for a loop's thread: by both twins, and how the native one waits for sockets."""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.buffers import Alarm, LoopTurn, LoopTurns
from headrace.records import compression
from tests.support.twins import NATIVE

from .lanes.test_direct_lane import Bench

PATIENCE_S = 10
selects = pytest.mark.skipif(not LoopTurns.selects, reason="only the native twin waits for sockets, and on Linux")


@pytest.fixture
def hardly_ever_interrupted() -> Iterator[None]:
    """Python takes the GIL from a thread that does not let go of it after a minute only."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Loop:
    """Something of a loop: a thread that waits for bytes and counts them."""

    def __init__(self, twin: Any) -> None:
        self.turns, self.counted, self.ended = twin.LoopTurns(), 0, False
        self.turn = twin.LoopTurn(self.turns)
        self.read, self.write = os.pipe()
        self.selector = selectors.DefaultSelector()
        self.keys = {self.read: self.selector.register(self.read, selectors.EVENT_READ)}
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while not self.ended:
            if self.turns.selects:
                self.turn.select(self.selector.fileno(), self.keys)
            else:
                self.selector.select()
            self.counted += len(os.read(self.read, 100))
        self.turn.end()

    def end(self) -> None:
        self.ended = True
        os.write(self.write, b"end")
        self.thread.join(PATIENCE_S)
        self.selector.close()
        os.close(self.read)
        os.close(self.write)


@pytest.fixture
def loop(twin: Any) -> Iterator[Loop]:
    made = Loop(twin)
    yield made
    made.end()


def polls(twin: Any, loop: Loop) -> Callable[[], object]:
    poll = twin.ServeFastPath(twin.Polling(), (), loop.turns, SimpleNamespace(closed=False), int).poll
    return lambda: poll(0)


def produces(twin: Any, loop: Loop) -> Callable[[], object]:
    pool = twin.BufferPool(0, 10**9)
    produce = twin.ProduceFastPath(
        {"topic": twin.RecordAccumulator("topic", 1, pool)}, pool, loop.turns, int, int).produce

    def one() -> None:
        produce("topic", b"v")
        pool.release(pool.messages, pool.bytes)  # few are under way

    return one


@pytest.mark.usefixtures("hardly_ever_interrupted")
@pytest.mark.parametrize("caller", [lambda _, loop: loop.turns.step_aside, polls, produces],
                         ids=["step_aside", "poll", "produce"])
def test_a_loop_goes_on_beside_a_thread_that_never_waits(
    twin: Any, loop: Loop, caller: Callable[[Any, Loop], Callable[[], object]]
) -> None:
    call = caller(twin, loop)
    for count in range(1, 21):
        os.write(loop.write, b"x")
        began = time.monotonic()
        while loop.counted < count:
            call()
            assert time.monotonic() - began < PATIENCE_S


@pytest.mark.usefixtures("hardly_ever_interrupted")
@selects
def test_a_turn_that_lasts_holds_nobody_up_for_long(native: Any) -> None:
    turns = native.LoopTurns()
    turn = native.LoopTurn(turns)
    read, write = os.pipe()
    os.write(write, b"x")
    with selectors.DefaultSelector() as selector:
        keys = {read: selector.register(read, selectors.EVENT_READ)}
        thread = threading.Thread(target=lambda: turn.select(selector.fileno(), keys))  # and there it stays
        thread.start()
        thread.join()
        began = time.monotonic()
        assert turns.step_aside()
        assert 0.0005 < time.monotonic() - began < PATIENCE_S
        turn.end()
        assert not turns.step_aside()
    os.close(read)
    os.close(write)


@selects
def test_a_loop_that_is_let_go_is_in_no_turn_any_more(native: Any) -> None:
    turns = native.LoopTurns()
    with selectors.DefaultSelector() as selector:
        thread = threading.Thread(target=lambda: native.LoopTurn(turns).select(selector.fileno(), {}, 0))
        thread.start()
        thread.join()
    assert not turns.step_aside()


@selects
def test_who_is_in_a_turn_does_not_wait_for_its_end(native: Any) -> None:
    turns, found = native.LoopTurns(), []

    def run() -> None:
        turn = native.LoopTurn(turns)
        with selectors.DefaultSelector() as selector:
            turn.select(selector.fileno(), {}, 0)
        found.append(turns.step_aside())
        turn.end()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False]


@selects
def test_nobody_steps_aside_for_a_loop_that_waits_for_its_sockets(native: Any) -> None:
    loop = Loop(native)
    time.sleep(0.05)
    assert not any(loop.turns.step_aside() for _ in range(1_000))
    loop.end()


class Selecting:
    """The same files in Python's selector, for what it says of them."""

    def __init__(self) -> None:
        self.selector, self.turn = selectors.DefaultSelector(), LoopTurn(LoopTurns())
        self.keys: dict[int, selectors.SelectorKey] = {}
        self.sockets: list[socket.socket] = []

    def pair(self, events: int) -> tuple[socket.socket, socket.socket]:
        ours, theirs = socket.socketpair()
        self.sockets += [ours, theirs]
        key = self.selector.register(ours, events, f"about {len(self.keys)}")
        self.keys[key.fd] = key
        return ours, theirs

    def both(self, timeout: float | None = 0) -> list[tuple[selectors.SelectorKey, int]]:
        found = self.turn.select(self.selector.fileno(), self.keys, timeout)
        assert sorted(found, key=lambda each: each[0].fd) == sorted(
            self.selector.select(timeout), key=lambda each: each[0].fd)
        return found


@pytest.fixture
def selecting() -> Iterator[Selecting]:
    made = Selecting()
    yield made
    made.selector.close()
    for each in made.sockets:
        each.close()


@selects
def test_sockets_are_told_of_as_by_the_selector_of_python(selecting: Selecting) -> None:
    read, write = selectors.EVENT_READ, selectors.EVENT_WRITE
    (quiet, _), (spoken_to, speaker), (both, other), (left, leaver) = (
        selecting.pair(events) for events in (read, read, read | write, read | write))
    assert {key.fileobj for key, _ in selecting.both()} == {both, left}
    speaker.send(b"x")
    other.send(b"x")
    leaver.close()
    found = {key.fileobj: events for key, events in selecting.both(1)}
    assert found == {spoken_to: read, both: read | write, left: read | write}
    assert quiet not in found


@selects
def test_a_file_that_is_not_registered_any_more_is_left_out(selecting: Selecting) -> None:
    ours, theirs = selecting.pair(selectors.EVENT_READ)
    theirs.send(b"x")
    del selecting.keys[ours.fileno()]
    assert selecting.turn.select(selecting.selector.fileno(), selecting.keys, 0) == []


@selects
def test_of_very_many_sockets_all_are_told_of_in_a_few_turns(selecting: Selecting) -> None:
    for _ in range(150):
        _, theirs = selecting.pair(selectors.EVENT_READ)
        theirs.send(b"x")
    seen = set()
    for _ in range(20):
        seen |= {key.fd for key, _ in selecting.turn.select(selecting.selector.fileno(), selecting.keys, 0)}
    assert seen == set(selecting.keys)


@selects
@pytest.mark.parametrize(("timeout", "least", "most"), [(0, 0, 0.04), (-1.0, 0, 0.04), (0.0001, 0.0001, 0.5),
                                                        (0.05, 0.05, 1)])
def test_it_waits_so_long_and_no_shorter(selecting: Selecting, timeout: float, least: float, most: float) -> None:
    selecting.pair(selectors.EVENT_READ)
    began = time.monotonic()
    assert selecting.turn.select(selecting.selector.fileno(), selecting.keys, timeout) == []
    assert least <= time.monotonic() - began < most


@selects
def test_what_the_kernel_refuses_is_an_error() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        LoopTurn(LoopTurns()).select(-1, {}, 0)


class Lingering:
    """A batch that has been lent a way, and the alarm that rings for it in a loop's wait."""

    def __init__(self, selecting: Selecting, linger_s: float, way: bool = True, codec: int = 0) -> None:
        self.bench, self.alarm = Bench(NATIVE, linger_s=linger_s, codec=codec), Alarm()
        self.flushing = dict[object, object]()
        self.batches, self.turns, self.selecting = self.bench.accumulator.open_batches, LoopTurns(), selecting
        self.batches.ring(self.alarm, self.flushing)
        self.turns.watch(self.alarm)
        selecting.turn = LoopTurn(self.turns)
        key = selecting.selector.register(self.alarm.file, selectors.EVENT_READ)
        selecting.keys[key.fd] = key
        if not way:
            self.bench.accumulator.lend(0)

    def append(self, partition: int = 0) -> int:
        woken: int = self.bench.accumulator.append(b"v", None, partition, 1_000)
        return woken

    def select(self, timeout: float | None) -> list[int]:
        selecting = self.selecting
        return [key.fd for key, _ in selecting.turn.select(selecting.selector.fileno(), selecting.keys, timeout)]

    def close(self) -> None:
        self.turns.unwatch(self.alarm)
        self.batches.ring()
        self.selecting.selector.unregister(self.alarm.file)
        self.alarm.close()
        self.bench.close()


@pytest.fixture
def lingering(selecting: Selecting) -> Iterator[Lingering]:
    made = Lingering(selecting, 0.02)
    yield made
    made.close()


@selects
@pytest.mark.parametrize("timeout", [0.2, None])
def test_what_has_lingered_is_sent_in_the_loops_wait_which_goes_on(
    selecting: Selecting, lingering: Lingering, timeout: float | None
) -> None:
    ours, theirs = selecting.pair(selectors.EVENT_READ)
    assert [lingering.append(), lingering.append()] == [0, 0]
    waker = threading.Timer(0.2, lambda: theirs.send(b"x"))
    if timeout is None:
        waker.start()
    began = time.monotonic()
    assert lingering.select(timeout) == ([] if timeout else [ours.fileno()])
    assert 0.19 <= time.monotonic() - began < 1
    assert (lingering.bench.lane.in_flight, lingering.batches.ready(1e12)) == (1, [])
    assert lingering.select(0) == ([] if timeout else [ours.fileno()]), "the alarm is silent"


@selects
def test_beside_an_alarm_sockets_are_told_of(selecting: Selecting, lingering: Lingering) -> None:
    ours, theirs = selecting.pair(selectors.EVENT_READ)
    lingering.append()
    time.sleep(0.03)
    theirs.send(b"x")
    assert lingering.select(None) == [ours.fileno()]
    assert lingering.bench.lane.in_flight == 1


@selects
def test_what_may_not_be_sent_directly_is_a_turn_of_the_loop(selecting: Selecting) -> None:
    lingering = Lingering(selecting, 0.02, way=False)
    lingering.append()
    assert lingering.select(5) == [lingering.alarm.file]
    assert lingering.select(0) == []
    lingering.close()


@selects
def test_an_alarm_that_rings_for_the_next_batch_while_one_is_sent_is_heard(
    selecting: Selecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    lingering, pack = Lingering(selecting, 0.02, codec=1), compression._COMPRESS[1]

    def slow(data: Any, level: int) -> bytes:
        time.sleep(0.03)
        return pack(data, level)

    monkeypatch.setattr(compression, "_COMPRESS", (None, slow))
    lingering.append()
    time.sleep(0.01)
    lingering.append(partition=1)
    assert lingering.select(5) == [lingering.alarm.file], "the second one's"
    assert lingering.bench.lane.in_flight == 1
    assert [batch.partition for batch in lingering.batches.ready(1e12)] == [1]
    lingering.close()


@selects
def test_while_somebody_flushes_what_has_lingered_is_the_loops(lingering: Lingering) -> None:
    lingering.append()
    lingering.flushing["one"] = None
    assert lingering.select(5) == [lingering.alarm.file]
    assert lingering.bench.lane.in_flight == 0


@selects
def test_an_alarm_of_somebody_else_is_told_of_as_any_file(selecting: Selecting, lingering: Lingering) -> None:
    lingering.turns.unwatch(lingering.alarm)
    lingering.append()
    assert lingering.select(5) == [lingering.alarm.file]
    assert lingering.bench.lane.in_flight == 0
