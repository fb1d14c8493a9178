"""Fetches whose replies the thread takes that waits for them: what is on the wire, and when they go the general way."""

from __future__ import annotations

import gc
import itertools
import os
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.machines.consumer.lone_fetch import LoneFetch
from headrace.records import BatchBuilder, set_base_offset
from headrace.wire.frame import decode_request, encode_response
from headrace.wire.messages.consumer.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

from .ends import WAYS, connected

TOPIC_ID, SESSION, FROM, LAST = UUID(int=7), 99, 40, 2**31 - 1
FETCH, OTHER = object(), object()
PATIENCE_S = 10.0
quick = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


def records(offset: int, *values: bytes, leader_epoch: int = 3) -> bytes:
    builder = BatchBuilder(1 << 20, 1 << 20)
    for value in values:
        builder.append(1, None, value)
    batch = bytearray(builder.seal().data)
    set_base_offset(batch, offset, leader_epoch)
    return bytes(batch)


def reply(number: int, data: bytes | None, version: int, partition: int = 0, **fields: Any) -> bytes:
    """A reply with records of one partition, `also` of others; with None as Kafka answers when there is nothing new."""
    also: dict[int, bytes] = fields.pop("also", {})
    whole = {name: fields.pop(name) for name in ("throttle_time_ms", "error_code", "session_id") if name in fields}
    topic_id = fields.pop("topic_id", TOPIC_ID)
    fields = {"high_watermark": 50, "last_stable_offset": 49, "log_start_offset": 2, "aborted_transactions": None,
              "error_code": fields.pop("error_of_partition", 0), **fields}
    parts = [PartitionData(partition_index=index, records=each, **fields)
             for index, each in [(partition, data), *also.items()]]
    responses = [] if data is None else [FetchableTopicResponse(topic="topic", topic_id=topic_id, partitions=parts)]
    answer = FetchResponse(**{"session_id": SESSION, **whole}, responses=responses)
    return b"".join(encode_response(answer, version, number))


class Bench:
    """A lane on one end of a connection, with partitions 0 to 2 of a session at offset 10."""

    def __init__(self, twin: Any, version: int = 17, number: int = FROM, epoch: int = 5) -> None:
        self.ours, self.lent, self.theirs = connected(twin)
        self.theirs.settimeout(PATIENCE_S)
        self.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.version = version
        self.states = [SimpleNamespace(
            epoch=1, fetch_offset=10, fetch_epoch=-1, phase=FETCH, paused=False, stop_offset=None, attempts=4,
            high_watermark=-1, last_stable=-1, log_start=-1, received_bytes=100, received_records=10) for _ in range(3)]
        self.known = {("topic", index): SimpleNamespace(state=state, epoch=1, leader_epoch=3 + index, fetch_offset=10)
                      for index, state in enumerate(self.states)}
        request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, session_id=SESSION, session_epoch=epoch,
                               topics=[])
        self.lone = LoneFetch(request, "topic", TOPIC_ID, FetchPartition(
            partition=0, current_leader_epoch=3, fetch_offset=10, partition_max_bytes=1 << 20))
        self.queue = deque[tuple[Any, ...]]()
        self.making: Callable[[], object] = bool
        self.lanes, self.lane = twin.FetchLanes(self.queue, self.fetched), twin.FetchLane()
        self.lanes.lanes.append(self.lane)
        self.lanes.begin(self.wake)
        self.start(number, epoch)

    def start(self, number: int = FROM, epoch: int = 5) -> None:
        self.lane.start(self.lent, self.lone.shapes(self.version, "me"),
                        ("topic", self.known, FETCH), (number, epoch, 0, 1.0))

    def fetched(self, *what: Any) -> tuple[Any, ...]:
        """What is queued of a partition."""
        self.making()
        return what

    def send(self, data: bytes) -> None:
        self.theirs.sendall(data)

    def receive(self, timeout_s: float = PATIENCE_S) -> None:
        self.lanes.receive(timeout_s)

    def answer(self, data: bytes | None, number: int = FROM, partition: int = 0, **fields: Any) -> None:
        self.send(reply(number, data, self.version, partition, **fields))
        self.receive()

    def asked(self) -> tuple[int, FetchRequest]:
        """The correlation id and the content of the request that came."""
        size = int.from_bytes(self._exactly(4), "big")
        frame = decode_request(self._exactly(size))
        assert isinstance(frame.request, FetchRequest)
        assert (frame.version, frame.client_id) == (self.version, "me")
        return frame.correlation_id, frame.request

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self.theirs.recv(size - len(data))
        return data

    def nothing_was_asked(self) -> bool:
        self.theirs.settimeout(0.02)
        try:
            return self.theirs.recv(1) == b""
        except TimeoutError:
            return True
        finally:
            self.theirs.settimeout(PATIENCE_S)

    def close(self) -> None:
        self.lanes.end()
        for each in (self.ours, self.theirs):
            each.close()
        os.close(self.wake)


@pytest.fixture
def make(twin: Any) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def of(*args: Any, **kwargs: Any) -> Bench:
        made.append(Bench(twin, *args, **kwargs))
        return made[-1]

    yield of
    for bench in made:
        bench.close()


@pytest.mark.parametrize("version", [9, 11, 12, 13, 17])
def test_records_land_and_what_follows_is_asked_for(make: Callable[..., Bench], version: int) -> None:
    bench = make(version)
    data = records(10, b"a", b"b") + records(12, b"c", leader_epoch=4)
    bench.answer(data)
    number, request = bench.asked()
    assert number == FROM + 1
    assert (request.session_id, request.session_epoch) == (SESSION, 6)
    (topic,) = request.topics
    (part,) = topic.partitions
    assert (topic.topic_id, topic.topic) == ((TOPIC_ID, "") if version >= 13 else (UUID(int=0), "topic"))
    assert (part.partition, part.fetch_offset, part.partition_max_bytes) == (0, 13, 1 << 20)
    assert part.current_leader_epoch == 3
    assert request.forgotten_topics_data == []
    state = bench.states[0]
    assert list(bench.queue) == [(state, 1, 10, 13, 4, data, 3, -1)]
    assert (state.fetch_offset, state.fetch_epoch, state.attempts) == (13, 4, 0)
    assert (state.high_watermark, state.last_stable, state.log_start) == (50, 49, 2)
    assert (state.received_bytes, state.received_records) == (100 + len(data), 13)
    assert bench.known["topic", 0].fetch_offset == 13
    lane = bench.lane
    assert (lane.correlation_id, lane.session_epoch, lane.partition) == (FROM + 1, 6, 0)
    assert (bench.lanes.received_bytes, lane.exchanges) == (len(data), 1)
    assert bench.lanes.answered_at == pytest.approx(time.monotonic(), abs=5)
    assert (lane.lent, lane.failed) == (True, False)


def test_what_a_reply_held_is_queued_at_once_and_nothing_is_taken_while_something_waits(
    make: Callable[..., Bench]
) -> None:
    bench = make()
    bench.answer(records(10, b"a"))
    bench.send(reply(FROM + 1, records(11, b"b"), 17))
    bench.receive()
    assert bench.states[0].fetch_offset == 11
    bench.queue.clear()
    bench.receive()
    assert bench.states[0].fetch_offset == 12
    (landed,) = bench.queue
    assert landed[5] == records(11, b"b")
    assert landed[7] == 3
    assert [bench.asked()[0], bench.asked()[0]] == [FROM + 1, FROM + 2]


def test_another_partition_of_the_session_may_be_the_next(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.answer(records(10, b"a"), partition=2)
    (part,) = bench.asked()[1].topics[0].partitions
    assert (part.partition, part.current_leader_epoch, part.fetch_offset) == (2, 5, 11)
    assert [state.fetch_offset for state in bench.states] == [10, 10, 11]
    assert bench.lane.partition == 2


@pytest.mark.parametrize("version", [12, 13, 17])
def test_several_partitions_in_a_reply_land_together_and_are_asked_for_together(
    make: Callable[..., Bench], version: int
) -> None:
    bench = make(version)
    data = {2: records(10, b"a"), 0: records(10, b"b" * 300, b"c"), 1: records(10, b"d" * 20_000)}
    bench.answer(data[2], partition=2, also={0: data[0], 1: data[1]})
    number, request = bench.asked()
    assert (number, request.session_epoch, request.forgotten_topics_data) == (FROM + 1, 6, [])
    (topic,) = request.topics
    assert [(part.partition, part.current_leader_epoch, part.fetch_offset, part.partition_max_bytes)
            for part in topic.partitions] == [(2, 5, 11, 1 << 20), (0, 3, 12, 1 << 20), (1, 4, 11, 1 << 20)]
    assert list(bench.queue) == [(bench.states[index], 1, 10, end, 3, data[index], end - 10, 3)
                                 for index, end in ((2, 11), (0, 12), (1, 11))]
    assert [state.fetch_offset for state in bench.states] == [12, 11, 11]
    assert [state.received_bytes for state in bench.states] == [100 + len(data[index]) for index in range(3)]
    assert [bench.known["topic", index].fetch_offset for index in range(3)] == [12, 11, 11]
    assert (bench.lane.partition, bench.lanes.received_bytes) == (-1, sum(map(len, data.values())))
    bench.queue.clear()
    bench.answer(records(11, b"e"), FROM + 1, partition=1)
    assert bench.asked()[1].topics[0].partitions[0].fetch_offset == 12
    assert (bench.lane.partition, bench.lane.exchanges) == (1, 2)


@pytest.mark.parametrize("also", [
    {3: records(10, b"a")}, {1: records(5, b"a")}, {1: b""}, {1: records(10, b"a")[:-1]},
    {1: records(10, b"a" * 70_000)}, dict.fromkeys(range(3, 19), records(10, b"a")),
], ids=["unknown", "read already", "nothing", "cut off", "much", "many"])
def test_where_one_of_several_partitions_is_unusual_all_are_left_to_the_loop(
    make: Callable[..., Bench], also: dict[int, bytes]
) -> None:
    bench = make()
    before = [dict(vars(state)) for state in bench.states]
    frame = reply(FROM, records(10, b"a"), 17, also=also)
    bench.send(frame)
    deadline = time.monotonic() + PATIENCE_S
    while not bench.lane.failed and time.monotonic() < deadline:
        bench.receive(0.1)
    assert bench.lane.failed
    assert not bench.queue
    assert frame.startswith(bench.lane.stop()[0])
    assert [vars(state) for state in bench.states] == before
    assert bench.nothing_was_asked()


def test_a_partition_that_comes_twice_in_a_reply_is_left_to_the_loop(make: Callable[..., Bench]) -> None:
    bench = make()
    frames = [reply(FROM, records(10, b"a"), 17, also={index: records(10, b"b")}) for index in (1, 2)]
    (place,) = [at for at, (one, other) in enumerate(zip(*frames, strict=True)) if one != other]
    bench.send(frames[0][:place] + b"\0" + frames[0][place + 1:])
    bench.receive()
    assert (bench.lane.failed, *bench.queue) == (True,)
    assert [state.fetch_offset for state in bench.states] == [10, 10, 10]


def test_of_an_older_broker_replies_with_one_partition_are_taken(make: Callable[..., Bench]) -> None:
    bench = make(11)
    bench.answer(records(10, b"a"), also={1: records(10, b"b")})
    assert (bench.lane.failed, *bench.queue) == (True,)


def test_a_reply_without_anything_new_is_followed_by_a_request_for_nothing_else(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.send(reply(FROM, None, 17))
    bench.receive(0.05)
    number, request = bench.asked()
    assert (number, request.session_epoch, request.topics, request.forgotten_topics_data) == (FROM + 1, 6, [], [])
    assert (bench.lane.partition, *bench.queue) == (-1,)
    bench.answer(records(10, b"a"), FROM + 1)
    assert bench.asked()[1].session_epoch == 7
    assert bench.queue
    assert bench.lane.exchanges == 2


def test_numbers_begin_anew_behind_the_last_one(make: Callable[..., Bench]) -> None:
    bench = make(number=LAST, epoch=LAST)
    bench.answer(records(10, b"a"), LAST)
    number, request = bench.asked()
    assert (number, request.session_epoch) == (0, 1)


def unusual() -> dict[str, Any]:
    good = records(10, b"a")
    damaged = bytearray(good)
    damaged[16] = 9  # a format that does not exist
    old = bytearray(good)
    old[16] = 1
    return {
        "an error": {"data": b"", "error_of_partition": 6},
        "an error of the session": {"data": None, "error_code": 70},
        "throttled": {"data": good, "throttle_time_ms": 5},
        "throttled without records": {"data": None, "throttle_time_ms": 5},
        "another session": {"data": good, "session_id": 5},
        "another topic": {"data": good, "topic_id": UUID(int=8)},
        "another number": {"data": good, "number": FROM + 1},
        "an unknown partition": {"data": good, "partition": 3},
        "aborted transactions": {"data": good, "aborted_transactions": [
            AbortedTransaction(producer_id=1, first_offset=10)]},
        "a follower": {"data": good, "preferred_read_replica": 2},
        "no records": {"data": b""},
        "a batch that is cut off": {"data": good + records(11, b"b")[:-1]},
        "a damaged batch": {"data": bytes(damaged)},
        "an old format": {"data": bytes(old)},
        "records that were read already": {"data": records(5, b"a")},
        "much": {"data": records(10, b"a" * 70_000)},
    }


@pytest.mark.parametrize("name", sorted(unusual()))
def test_what_is_unusual_is_left_to_the_loop_with_all_its_bytes(make: Callable[..., Bench], name: str) -> None:
    bench, fields = make(), unusual()[name]
    before = [dict(vars(state)) for state in bench.states]
    data = fields.pop("data")
    frame = reply(fields.pop("number", FROM), data, 17, fields.pop("partition", 0), **fields)
    bench.send(frame)
    deadline = time.monotonic() + PATIENCE_S
    while not bench.lane.failed and time.monotonic() < deadline:
        bench.receive(0.1)
    assert (bench.lane.lent, bench.lane.failed, *bench.queue) == (False, True)
    left, rest = bench.lane.stop()
    assert rest is None
    assert frame.startswith(left)
    assert left  # what has not come yet comes to the loop
    assert (bench.lane.failed, bench.lane.exchanges, bench.lane.correlation_id) == (False, 0, FROM)
    assert [vars(state) for state in bench.states] == before
    assert bench.nothing_was_asked()


@pytest.mark.parametrize("change", [
    lambda bench: setattr(bench.states[0], "epoch", 2),
    lambda bench: setattr(bench.states[0], "fetch_offset", 9),
    lambda bench: setattr(bench.states[0], "phase", OTHER),
    lambda bench: setattr(bench.states[0], "paused", True),
    lambda bench: setattr(bench.states[0], "stop_offset", 100),
    lambda bench: bench.known.clear(),
], ids=["sought", "moved", "another phase", "paused", "ends somewhere", "forgotten"])
def test_what_has_happened_to_a_partition_meanwhile_is_heeded(make: Callable[..., Bench], change: Any) -> None:
    bench = make()
    change(bench)
    before = dict(vars(bench.states[0]))
    bench.answer(records(10, b"a"))
    assert (bench.lane.failed, *bench.queue) == (True,)
    assert vars(bench.states[0]) == before
    assert bench.lane.stop()[0] == reply(FROM, records(10, b"a"), 17)
    assert bench.nothing_was_asked()


def test_what_happens_while_records_are_made_ready_is_heeded(make: Callable[..., Bench]) -> None:
    """What is queued is made by a step of Python: others have a turn."""
    frame = reply(FROM, records(10, b"a"), 17, also={1: records(10, b"b")})
    happens: list[tuple[Callable[[Bench], object], bytes]] = [
        (lambda bench: setattr(bench.states[0], "fetch_offset", 5), frame),
        (lambda bench: setattr(bench.states[0], "epoch", 2), frame),
        (lambda bench: bench.lane.stop(), b""),
        (lambda bench: (bench.lane.stop(), bench.start(70, 9)), b""),
    ]
    for happen, left in happens:
        bench = make()
        bench.making = lambda bench=bench, happen=happen: bench.queue or happen(bench)
        bench.send(frame)
        bench.receive(0.1)
        assert not bench.queue
        assert bench.states[1].fetch_offset == 10
        assert bench.states[0].fetch_offset in (5, 10)
        assert bench.nothing_was_asked()
        assert bench.lane.stop()[0] == left


def test_the_end_of_the_stream_is_left_to_the_loop(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.send(reply(FROM, records(10, b"a"), 17)[:30])
    bench.receive(0.05)
    bench.theirs.shutdown(socket.SHUT_WR)
    bench.receive()
    assert bench.lane.failed
    assert bench.lane.stop()[0] == reply(FROM, records(10, b"a"), 17)[:30]


@quick
@given(cuts=st.lists(st.integers(0, 200), max_size=4))
def test_a_reply_may_come_in_pieces(make: Callable[..., Bench], cuts: list[int]) -> None:
    bench = make()
    frame, at = reply(FROM, records(10, b"a"), 17), 0
    for cut in sorted({min(cut, len(frame)) for cut in cuts} | {len(frame)}):
        if cut > at:
            bench.send(frame[at:cut])
            at = cut
            bench.receive(PATIENCE_S if cut == len(frame) else 0.002)
    assert bench.queue
    assert bench.asked()[0] == FROM + 1


@quick
@given(changes=st.lists(st.tuples(st.integers(4, 10_000), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_damaged_reply_is_taken_as_the_codec_would_or_left_to_it(
    make: Callable[..., Bench], changes: list[tuple[int, int]]
) -> None:
    """Whatever differs before the records is left; in the records their headers count."""
    bench = make()
    whole = bytearray(reply(FROM, records(10, b"a", b"b"), 17))
    first = whole.index(records(10, b"a", b"b")[:12])
    numbers = range(first - 40, first)  # the offsets may be any
    damaged = bytearray(whole)
    for at, byte in changes:
        damaged[4 + at % (len(damaged) - 4)] = byte
    bench.send(bytes(damaged))
    bench.receive(0.5)
    differs = [at for at in range(4, first) if damaged[at] != whole[at]]
    if any(at not in numbers for at in differs):
        assert not bench.queue
    if not bench.queue:
        assert bench.lane.stop()[0] == bytes(damaged)
        assert bench.states[0].fetch_offset == 10
    else:
        (landed,) = bench.queue
        assert landed[2] == 10
        assert landed[0] in bench.states  # another partition of the topic may be the next
        assert landed[3] == landed[0].fetch_offset > 10


def test_both_twins_decide_alike(native: Any, plain: Any) -> None:
    chance = random.Random(5)
    for _ in range(300):
        also = {index: records(10, b"c") for index in range(3) if chance.random() < 0.3}
        whole = bytearray(reply(FROM, records(10, b"a", b"b"), 17, chance.randrange(4), also=also))
        for _ in range(chance.randrange(3)):
            whole[chance.randrange(4, len(whole))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        outcomes = []
        for twin in (native, plain):
            bench = Bench(twin)
            bench.send(bytes(whole))
            bench.receive(1.0)
            landed = list(bench.queue)
            outcomes.append((bench.lane.failed, [each[1:] for each in landed],
                             [vars(state) for state in bench.states]))
            bench.close()
        assert outcomes[0] == outcomes[1]


def test_a_wait_ends_when_it_is_woken_and_one_that_comes_later_too(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.lanes.wake()
    began = time.monotonic()
    bench.receive()
    waker = threading.Timer(0.05, bench.lanes.wake)
    waker.start()
    bench.receive()
    waker.join()
    assert time.monotonic() - began < PATIENCE_S / 2
    bench.answer(records(10, b"a"))
    assert bench.queue


def test_without_any_time_what_has_come_is_taken(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.receive(0.0)
    assert not bench.queue
    frame = reply(FROM, records(10, b"a"), 17)
    bench.send(frame[:20])
    time.sleep(0.02)
    bench.receive(0.0)
    bench.send(frame[20:])
    time.sleep(0.02)
    bench.lanes.wake()  # says nothing of what has come
    bench.receive(0.0)
    assert bench.queue


def test_a_wait_ends_when_its_time_is_over_and_when_the_connection_is_taken_back(make: Callable[..., Bench]) -> None:
    bench = make()
    began = time.monotonic()
    bench.receive(0.05)
    assert 0.04 < time.monotonic() - began < PATIENCE_S / 2
    taker = threading.Timer(0.05, lambda: (bench.lane.stop(), bench.lanes.wake()))
    taker.start()
    bench.receive()
    taker.join()
    assert time.monotonic() - began < PATIENCE_S / 2
    bench.send(reply(FROM, records(10, b"a"), 17))
    bench.receive()
    assert not bench.queue
    bench.start()
    bench.receive()
    assert len(bench.queue) == 1  # nobody took it before


def test_where_the_kernel_has_no_room_nothing_is_taken(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    refused = 0
    while refused < 5:  # the other end makes room for a while
        try:
            bench.ours.send(b"x" * (65_536 if refused == 0 else 1))
            refused = 0
        except BlockingIOError:
            refused += 1
            time.sleep(0.02)
    bench.answer(records(10, b"a"))
    left, rest = bench.lane.stop()
    if rest is None:
        assert (bench.states[0].fetch_offset, left) == (10, reply(FROM, records(10, b"a"), 17))
    else:  # a part of the request found room
        assert (bench.states[0].fetch_offset, left) == (11, b"")


def test_a_connection_that_is_lent_again_begins_anew(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.send(b"\0\0")
    bench.receive(0.05)
    assert bench.lane.stop() == (b"\0\0", None)
    bench.start(70, 9)
    bench.answer(records(10, b"a"), 70)
    number, request = bench.asked()
    assert (number, request.session_epoch) == (71, 10)
    assert bench.lanes.received_bytes == len(records(10, b"a"))


def test_one_thread_waits_for_several_connections_and_takes_what_all_have(make: Callable[..., Bench]) -> None:
    benches = [make() for _ in range(3)]
    lanes = benches[0].lanes
    lanes.lanes.extend(bench.lane for bench in benches[1:])
    assert lanes.ready
    assert not lanes.receive(0.01)
    for bench in benches[1:]:
        bench.send(reply(FROM, records(10, b"a"), 17))
    time.sleep(0.02)
    assert not lanes.receive(PATIENCE_S)
    assert [landed[0] for landed in lanes.queue] == [bench.states[0] for bench in benches[1:]]
    assert [bench.asked()[0] for bench in benches[1:]] == [FROM + 1] * 2
    assert [bench.lane.exchanges for bench in benches] == [0, 1, 1]
    assert lanes.received_bytes == 2 * len(records(10, b"a"))
    lanes.queue.clear()
    benches[0].send(reply(FROM, records(10, b"b"), 17))
    assert not lanes.receive(PATIENCE_S)
    assert [landed[0] for landed in lanes.queue] == [benches[0].states[0]]


def test_a_connection_that_fails_ends_the_wait_until_the_loop_was_told_and_the_others_go_on(
    make: Callable[..., Bench]
) -> None:
    benches = [make() for _ in range(2)]
    lanes = benches[0].lanes
    lanes.lanes.append(benches[1].lane)
    benches[0].send(reply(FROM, b"", 17, error_of_partition=6))
    assert lanes.receive(PATIENCE_S)
    began = time.monotonic()
    assert lanes.receive(PATIENCE_S)  # whoever asks, at once, until somebody has told it
    assert time.monotonic() - began < PATIENCE_S / 2
    assert [bench.lane.lent for bench in benches] == [False, True]
    benches[0].lane.told = True
    assert lanes.ready
    benches[1].send(reply(FROM, records(10, b"a"), 17))
    assert not lanes.receive(PATIENCE_S)
    assert lanes.queue
    benches[1].lane.stop()
    assert not lanes.ready
    lanes.queue.clear()
    assert not lanes.receive(PATIENCE_S)  # nothing to wait for


def test_there_is_room_for_as_many_connections_as_one_thread_waits_for(twin: Any) -> None:
    lanes = twin.FetchLanes(deque(), bool)
    for _ in range(15):
        assert lanes.has_room
        lanes.lanes.append(twin.FetchLane())
    assert not lanes.has_room


def test_a_lane_that_is_stopped_by_another_thread_takes_all_of_a_reply_or_leaves_all_of_it(twin: Any) -> None:
    """Through TLS others have a turn while something is opened or sealed."""
    frame = reply(FROM, records(10, b"a"), 17, also={1: records(10, b"b"), 2: records(10, b"c")})
    ways, chance = set[bool](), random.Random(5)
    for wait_s in (0.0, 0.1, *(chance.uniform(0, 3e-4) for _ in range(300))):
        bench, left = Bench(twin), list[bytes]()

        def stop(*, bench: Bench = bench, left: list[bytes] = left, wait_s: float = wait_s) -> None:
            time.sleep(wait_s)
            left.append(bench.lane.stop()[0])

        stopping = threading.Thread(target=stop)
        stopping.start()
        if not wait_s:
            stopping.join()
        bench.send(frame)
        bench.receive(0.005)
        stopping.join()
        is_taken = len(bench.queue) > 0
        ways.add(is_taken)
        assert len(bench.queue) == (3 if is_taken else 0)
        assert [state.fetch_offset for state in bench.states] == ([11] * 3 if is_taken else [10] * 3)
        if not is_taken:  # what was not received yet comes when it is lent again
            bench.start()
            bench.receive(0.0)
            opened = b"" if bench.queue else bench.lane.stop()[0]
            assert len(bench.queue) == 3 or left[0] + opened == frame
        bench.close()
    assert ways == {True, False}


@pytest.mark.parametrize("twin", [way for way in WAYS if way.endswith("no TLS")], indirect=True)
def test_a_lane_that_is_stopped_while_it_looks_a_reply_over_takes_all_of_it_or_nothing(twin: Any) -> None:
    """The collector runs the code of others in between, and the loop has a turn."""
    frame = reply(FROM, records(10, b"a"), 17, also={1: records(10, b"b"), 2: records(10, b"c")})
    thresholds, is_taken = gc.get_threshold(), False
    for turn in itertools.count(1):
        bench, turns, left = Bench(twin), [0], list[bytes]()

        def stop(phase: str, _: Any, *, bench: Bench = bench, turns: list[int] = turns, left: list[bytes] = left,
                 turn: int = turn) -> None:
            turns[0] += phase == "start"
            if turns[0] == turn and not left:
                left.append(bench.lane.stop()[0])

        bench.send(frame)
        time.sleep(0.005)
        gc.collect()
        gc.callbacks.append(stop)
        gc.set_threshold(1)
        try:
            bench.receive(0.0)
        finally:
            gc.set_threshold(*thresholds)
            gc.callbacks.remove(stop)
        offsets = [state.fetch_offset for state in bench.states]
        if not bench.queue:
            assert offsets == [10, 10, 10]
            assert bench.nothing_was_asked()
        else:
            assert offsets == [11, 11, 11]
            assert bench.asked()[0] == FROM + 1
            is_taken = True
        bench.close()
        if is_taken:
            break
    assert turn > 1  # it was stopped in the middle before
