"""Batches that are sent by the thread that appends them: what is on the wire, and when they go the general way."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.records import compression
from headrace.wire.frame import encode_request, encode_response
from headrace.wire.messages.producer.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from headrace.wire.templates import ReplyTemplate, RequestTemplate
from tests.unit.buffers.accumulators import make

from .ends import connected

NEVER, FROM, LAST = 1e12, 40, 2**31 - 1
PATIENCE_S = 10.0
TOPIC_ID = UUID(int=7)
OFFSETS = ("base_offset", "log_append_time_ms", "log_start_offset")


def request_with(records: Any, partition: int = 0) -> tuple[ProduceRequest, PartitionProduceData]:
    data = PartitionProduceData(index=partition, records=records)
    topic = TopicProduceData(name="topic", topic_id=TOPIC_ID, partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]), data


def reply_with(partition: int = 0, **fields: Any) -> tuple[ProduceResponse, PartitionProduceResponse]:
    part = PartitionProduceResponse(index=partition, **fields)
    topic = TopicProduceResponse(name="topic", topic_id=TOPIC_ID, partition_responses=[part])
    return ProduceResponse(responses=[topic]), part


def replied(number: int, base_offset: int, version: int = 13, **fields: Any) -> bytes:
    partition = fields.pop("partition", 0)
    reply, _ = reply_with(partition, base_offset=base_offset, **fields)
    return b"".join(encode_response(reply, version, number))


class Bench:
    """An accumulator whose lone batches go straight to a socket."""

    def __init__(self, twin: Any, version: int = 13, most: int = 5, sequence: int = 9, number: int = FROM,
                 until: float = NEVER, used_at: float = NEVER, **how: Any) -> None:
        self.twin, self.version, self.rests = twin, version, 0
        self.ours, self.lent, self.theirs = connected(twin)
        self.theirs.setblocking(False)
        self.accumulator, self.pool = make(twin, **how)
        self.lane = twin.DirectLane(most, self.on_rest)
        self.way = self.way_of(0, sequence, used_at)
        self.accumulator.lend(0, self.way)
        self.lane.start(self.lent, number, until)

    def on_rest(self) -> None:
        self.rests += 1

    def way_of(self, partition: int, sequence: int = 9, used_at: float = NEVER) -> Any:
        request, data = request_with(b"", partition)
        before, behind, flexible = RequestTemplate(request, data).around(self.version, "me")
        expected = ReplyTemplate(*reply_with(partition), OFFSETS).around(self.version)
        assert expected is not None
        return self.twin.DirectPartition(self.lane, f"owner of {partition}",
                                         (request.api_key, self.version, before, behind, flexible), expected,
                                         (1234, 3, sequence), used_at)

    def add(self, value: bytes = b"value", partition: int = 0) -> int:
        woken: int = self.accumulator.append(value, None, partition, 1_000)
        return woken

    def received(self, size: int = 0) -> bytes:
        """What has come; waits for so many bytes."""
        found = b""
        while select.select([self.theirs], [], [], PATIENCE_S if len(found) < size else 0)[0]:
            more = self.theirs.recv(1 << 20)
            if not more:
                break
            found += more
        return found

    def general(self, value: bytes, number: int, sequence: int, partition: int = 0, codec: int = 0) -> bytes:
        """The frame as the codec writes it."""
        builder = self.twin.BatchBuilder(1 << 20, 1000)
        builder.append(1_000, None, value)
        sealed = builder.seal(codec)
        sealed.stamp(1234, 3, sequence)
        request, _ = request_with(sealed.data, partition)
        return b"".join(bytes(part) for part in encode_request(request, self.version, number, "me"))

    def take(self, data: bytes) -> list[Any]:
        found: list[Any] = self.lane.take(memoryview(bytearray(data) + bytes(50)), len(data))
        return found

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def bench(twin: Any) -> Iterator[Bench]:
    made = Bench(twin)
    yield made
    made.close()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 16_000), min_size=1, max_size=4), st.sampled_from([8, 9, 12, 13]),
       st.sampled_from([0, LAST - 1]), st.sampled_from([0, LAST]))
def test_a_request_is_byte_for_byte_that_of_the_codec(
    twin: Any, sizes: list[int], version: int, sequence: int, number: int
) -> None:
    bench, sent = Bench(twin, version, sequence=sequence, number=number), list[int]()
    for index, size in enumerate(sizes):
        value = bytes([index]) * size
        assert bench.add(value) == 0
        expected = bench.general(value, (number + index) % 2**31, (sequence + index) % 2**31)
        assert bench.received(len(expected)) == expected
        sent.append(len(expected))
    assert (bench.lane.in_flight, bench.lane.correlation_id) == (len(sizes), (number + len(sizes)) % 2**31)
    assert [size for _, _, _, size, _ in bench.lane.stop()[0]] == sent
    bench.close()


def test_what_was_sent_is_no_longer_to_be_taken_out(bench: Bench) -> None:
    assert bench.add() == 0
    assert bench.accumulator.open_batches.ready(NEVER) == []
    assert bench.pool.messages == 1  # until its report


def test_a_batch_that_was_taken_out_is_not_overtaken(twin: Any) -> None:
    bench = Bench(twin, most=1)
    bench.accumulator.lend(1, bench.way_of(1))
    assert (bench.add(b"one"), bench.add(b"two")) == (0, 1)
    (taken,) = bench.accumulator.open_batches.ready(NEVER)
    assert taken.partition == 0
    bench.take(replied(FROM, 7))
    assert bench.add(b"three") == 1
    assert bench.add(b"other", partition=1) == 0
    bench.close()


def test_the_usual_reply_names_owner_batch_and_offset(bench: Bench) -> None:
    bench.add(b"one")
    bench.add(b"two")
    before = time.monotonic()
    bench.add(b"three")
    ((owner, batch, offset, time_ms, size, reply_size, sent_at),) = bench.take(replied(FROM, 70))
    assert (owner, offset, time_ms, bench.lane.in_flight) == ("owner of 0", 70, -1, 2)
    assert before - 5 < sent_at <= before
    assert (size, reply_size) == (len(bench.general(b"one", FROM, 9)), len(replied(FROM, 70)))
    assert [message.value() for message in bench.twin.Cursor(batch.seal().data, "t", 0, 0).take(9)] == [b"one"]
    ((_, _, offset, time_ms, _, _, _),) = bench.take(replied(FROM + 1, 71, log_append_time_ms=5))
    assert (offset, time_ms, bench.lane.in_flight) == (71, 5, 1)
    assert bench.take(replied(FROM + 2, 72))[0][6] >= before


def test_replies_that_come_together_are_taken_together(bench: Bench) -> None:
    bench.accumulator.lend(1, bench.way_of(1))
    bench.add(b"one")
    bench.add(b"other", partition=1)
    bench.add(b"two")
    taken = bench.take(replied(FROM, 7) + replied(FROM + 1, 8, partition=1) + replied(FROM + 2, 9))
    assert [(owner, offset) for owner, _, offset, *_ in taken] == [
        ("owner of 0", 7), ("owner of 1", 8), ("owner of 0", 9)]


@pytest.mark.parametrize("data", [
    replied(FROM, 7, error_code=1), replied(FROM + 1, 7), replied(FROM, 7)[:-1], replied(FROM, 7) + b"\0",
    replied(FROM, 7) + replied(FROM + 1, 8), replied(FROM, 7, partition=1), replied(FROM, 7)[:3], b"",
])
def test_anything_but_whole_usual_replies_is_left_as_it_is(bench: Bench, data: bytes) -> None:
    bench.add()
    assert bench.take(data) == []
    assert bench.lane.in_flight == 1
    assert len(bench.take(replied(FROM, 7))) == 1


def test_every_other_byte_of_a_reply_counts(bench: Bench) -> None:
    usual = replied(FROM, 7)
    places = len(usual) - len(OFFSETS) * 8
    other = [place for place in range(len(usual))
             if replied(FROM, -1, log_append_time_ms=0, log_start_offset=0)[place] ==
             replied(FROM, 0, log_append_time_ms=-1, log_start_offset=-1)[place]]
    assert len(other) == places
    bench.add()
    for place in other:
        assert bench.take(usual[:place] + bytes([usual[place] ^ 1]) + usual[place + 1:]) == []
    assert len(bench.take(usual)) == 1


def test_stopping_gives_back_what_is_in_flight_in_order(bench: Bench) -> None:
    bench.add(b"one")
    bench.add(b"two")
    batches, rest = bench.lane.stop()
    assert rest is None
    assert [owner for owner, *_ in batches] == ["owner of 0"] * 2
    sent = b"".join(bytes(sealed.data) for _, _, sealed, *_ in batches)
    assert [m.value() for m in bench.twin.Cursor(sent, "t", 0, 0).take(9)] == [b"one", b"two"]
    assert (bench.lane.in_flight, bench.lane.stop()) == (0, ([], None))
    assert bench.add(b"three") == 1
    assert [each.count for each in bench.accumulator.open_batches.ready(NEVER)] == [1]


def refused(twin: Any, case: str) -> tuple[Bench, bytes]:
    """A bench on which the next record may not be sent directly, and that record."""
    now, value = 0.0, b"value"
    if case == "in flight":
        bench = Bench(twin, most=2)
        assert (bench.add(), bench.add()) == (0, 0)
    elif case == "too late":
        bench = Bench(twin, until=now)
    elif case == "quiet for too long":
        bench = Bench(twin, used_at=now)
    elif case == "large":
        bench, value = Bench(twin), bytes(17_000)
    elif case == "stopped":
        bench = Bench(twin)
        bench.lane.stop()
    else:
        bench = Bench(twin)
        bench.accumulator.lend(0)
    bench.received()
    return bench, value


@pytest.mark.parametrize("case", [
    "in flight", "too late", "quiet for too long", "large", "stopped", "not lent",
])
def test_what_may_not_be_sent_directly_stays_for_the_loop(twin: Any, case: str) -> None:
    bench, value = refused(twin, case)
    assert bench.add(value) == 1
    (batch,) = bench.accumulator.open_batches.ready(NEVER)
    assert [m.value() for m in twin.Cursor(batch.seal().data, "t", 0, 0).take(9)] == [value]
    assert bench.received() == b""
    bench.close()


def test_a_record_for_a_connection_that_is_gone_is_the_loops_and_through_tls_in_flight_first(bench: Bench) -> None:
    bench.ours.shutdown(socket.SHUT_WR)
    over_tls = bench.twin.over_tls
    assert (bench.add(), bench.rests, bench.lane.in_flight) == ((0, 1, 1) if over_tls else (1, 0, 0))
    batches, rest = bench.lane.stop()
    assert (len(batches), bool(rest)) == (over_tls, over_tls)
    assert len(bench.accumulator.open_batches.ready(NEVER)) == 1 - over_tls


def test_a_record_does_not_overtake_a_full_batch_of_its_partition(twin: Any) -> None:
    bench = Bench(twin, batch_count=2)
    bench.lane.stop()
    bench.add(b"one")
    bench.add(b"two")
    bench.lane.start(bench.lent, FROM, NEVER)
    assert bench.add(b"three") == 1
    assert [each.count for each in bench.accumulator.open_batches.ready(NEVER)] == [2, 1]
    bench.close()


def filled(twin: Any) -> tuple[Bench, list[bytes]]:
    """A bench whose socket took only a part of the last frame, and the frames."""
    for more in range(100):
        bench = Bench(twin, most=10_000)
        bench.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        frames: list[bytes] = []
        while not bench.rests:
            value = bytes([len(frames) % 256]) * (9_000 + 7 * more + len(frames))
            if bench.add(value) != 0:
                break  # no room for a single byte: frames of other sizes end elsewhere
            frames.append(bench.general(value, FROM + len(frames), 9 + len(frames)))
        else:
            return bench, frames
        bench.close()
    raise AssertionError("frames of all sizes fit to the byte")


def test_what_the_kernel_has_no_room_for_is_given_back_as_the_rest(twin: Any) -> None:
    bench, frames = filled(twin)
    batches, rest = bench.lane.stop()
    assert rest
    assert len(batches) == len(frames)
    bench.ours.setblocking(True)
    writing = threading.Thread(target=bench.ours.sendall, args=(rest,))
    writing.start()
    assert bench.received(sum(map(len, frames))) == b"".join(frames)
    writing.join()
    bench.close()


def test_nothing_is_sent_or_read_behind_a_rest(twin: Any) -> None:
    bench, frames = filled(twin)
    assert bench.rests == 1
    assert bench.add() == 1
    # Through TLS a frame goes as a whole, and what is left are bytes over the wire.
    assert len(bench.take(replied(FROM, 1))) == twin.over_tls
    assert bench.lane.in_flight == len(frames) - twin.over_tls
    bench.close()


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [0, 90, 2_000, 16_000])
def test_what_is_compressed_and_has_lingered_is_byte_for_byte_that_of_the_codec(
    twin: Any, codec: int, size: int
) -> None:
    bench = Bench(twin, linger_s=60.0, codec=codec)
    batches, frames = bench.accumulator.open_batches, list[bytes]()
    for index in range(3):
        value = b"%d" % index * size
        bench.add(value)
        assert batches.send_lone(NEVER)
        frames.append(bench.general(value, FROM + index, 9 + index, codec=codec))
        assert bench.received(len(frames[-1])) == frames[-1]
    assert batches.ready(NEVER) == []
    stored = bench.take(replied(FROM, 70) + replied(FROM + 1, 71))
    assert [(batch.count, offset, sent) for _, batch, offset, _, sent, _, _ in stored] == [
        (1, 70, len(frames[0])), (1, 71, len(frames[1]))]
    ((_, batch, sealed, sent, _),), _ = bench.lane.stop()
    assert (batch.count, sent) == (1, len(frames[2]))
    assert bytes(sealed.data) in frames[2]
    bench.close()


def test_what_is_compressed_is_not_sent_by_who_appends_but_by_who_flushes(twin: Any) -> None:
    for linger_s in (0.0, 60.0):
        bench = Bench(twin, linger_s=linger_s, codec=3)
        assert bench.add() == 1
        assert bench.lane.in_flight == 0
        assert bench.accumulator.open_batches.send_open()
        expected = bench.general(b"value", FROM, 9, codec=3)
        assert bench.received(len(expected)) == expected
        assert (bench.lane.in_flight, bench.accumulator.open_batches.ready(NEVER)) == (1, [])
        bench.close()


@pytest.mark.parametrize("meanwhile", ["its way ends", "the sender takes it", "the sender takes it and lends anew"])
def test_what_is_compressed_is_the_senders_if_its_thread_may_not_send_it_then_any_more(
    twin: Any, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    bench, taken = Bench(twin, linger_s=60.0, codec=1), list[Any]()
    batches, pack = bench.accumulator.open_batches, compression._COMPRESS[1]

    def interrupted(data: Any, level: int) -> bytes:
        monkeypatch.undo()
        bench.add(b"later")
        assert not batches.send_open(), "it would overtake what is compressed"
        if meanwhile == "its way ends":
            bench.accumulator.lend(0)
        else:
            taken.extend(batches.ready())
        if meanwhile.endswith("anew"):
            bench.accumulator.lend(0, bench.way_of(0, sequence=50))
        return pack(data, level)

    replaced = [*compression._COMPRESS]
    replaced[1] = interrupted
    monkeypatch.setattr(compression, "_COMPRESS", replaced)
    bench.add(b"first")
    assert not batches.send_open()
    assert bench.lane.in_flight == 0
    taken += batches.ready(NEVER)
    assert [m.value() for batch in taken for m in twin.Cursor(batch.seal(1).data, "topic", 0, 0).take(10)] == [
        b"first", b"later"]
    bench.close()


def test_what_is_compressed_and_may_not_be_sent_any_more_is_the_senders(twin: Any) -> None:
    bench = Bench(twin, linger_s=60.0, codec=3, most=1)
    batches = bench.accumulator.open_batches
    bench.add(b"one")
    assert batches.send_lone(NEVER)
    bench.add(b"two")
    assert not batches.send_lone(NEVER), "one is in flight"
    bench.add(b"three")
    assert [batch.count for batch in batches.ready(NEVER)] == [2]
    bench.add(b"four")
    bench.take(replied(FROM, 70))
    assert not batches.send_lone(NEVER), "it would overtake what the sender has"
    bench.close()


def test_a_connection_that_is_gone_leaves_what_is_compressed_to_the_sender(twin: Any) -> None:
    bench = Bench(twin, linger_s=60.0, codec=4)
    batches = bench.accumulator.open_batches
    bench.add(b"value" * 50)
    bench.theirs.close()
    while batches.send_lone(NEVER):
        bench.add(b"value" * 50)
        assert bench.lane.in_flight < 5
    (batch,) = batches.ready(NEVER)
    sealed = batch.seal(4)
    assert [m.value() for m in twin.Cursor(sealed.data, "topic", 0, 0).take(10)] == [b"value" * 50]
    bench.add()
    assert not batches.send_lone(NEVER)
    bench.close()
