"""A thread that waits for records receives them by itself, and whatever else happens is as if it did not."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import Consumer, Message, Producer, TopicPartition
from headrace.aio import AIOConsumer
from headrace.buffers import implementation
from headrace.errors import WakeupError
from headrace.testing import EmbeddedBroker
from tests.support.ctrl_c import CtrlC, interrupted, keys

__all__ = ["keys"]
pytestmark = pytest.mark.skipif(implementation == "plain", reason="plain steps can be interrupted half way")
TOPIC, PARTITIONS, PATIENCE_S = "alone", 3, 10.0


class Reader:
    """A consumer whose records come one by one, and what it got."""

    def __init__(self, broker: EmbeddedBroker, **properties: Any) -> None:
        self.broker = broker
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        self.producer = Producer({**servers, "linger.ms": 0})
        self.consumer = Consumer({**servers, "group.id": "g", "enable.auto.commit": False,
                                  "auto.offset.reset": "earliest", **properties})
        self.written = 0
        self.got: list[bytes] = []
        self.assign()

    @property
    def lane(self) -> Any:
        direct = self.consumer._engine.machines.direct
        lanes = [] if direct is None else direct.lanes.lanes
        return lanes[0] if lanes else SimpleNamespace(lent=False, exchanges=0)

    def assign(self, *partitions: int) -> None:
        self.consumer.assign([TopicPartition(TOPIC, number, 0) for number in partitions or range(PARTITIONS)])

    def write(self, partition: int | None = None, topic: str = TOPIC) -> bytes:
        value = b"%d" % self.written
        self.producer.produce(topic, value, partition=self.written % PARTITIONS if partition is None else partition)
        assert self.producer.flush(PATIENCE_S) == 0
        self.written += 1
        return value

    def read(self) -> Message:
        message = self.consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        self.got.append(message.value() or b"")
        return message

    def pass_on(self, count: int, partition: int | None = None) -> None:
        """Write one record and read it, so often."""
        for _ in range(count):
            value = self.write(partition)
            assert self.read().value() == value

    def until_lent(self, partition: int | None = None) -> None:
        """Write and read until the thread that reads receives by itself."""
        end = time.monotonic() + PATIENCE_S
        while not self.lane.lent:
            assert time.monotonic() < end
            self.pass_on(1, partition)
        self.pass_on(3, partition)
        assert self.lane.exchanges

    def close(self) -> None:
        self.consumer.close()
        self.producer.close()
        assert not self.lane.lent
        assert not self.consumer._waits._sleepers


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={TOPIC: PARTITIONS, "other": 1}) as started:
        yield started


@pytest.fixture
def reader(broker: EmbeddedBroker) -> Iterator[Reader]:
    made = Reader(broker)
    yield made
    made.close()


def test_records_that_come_one_by_one_do_without_the_loop_and_in_order(reader: Reader) -> None:
    reader.until_lent()
    before = reader.lane.exchanges
    reader.pass_on(60)
    assert reader.lane.lent
    assert reader.lane.exchanges >= before + 55
    assert reader.got == [b"%d" % number for number in range(reader.written)]
    assert {tp.partition: tp.offset for tp in reader.consumer.position(reader.consumer.assignment())} == {
        number: len(range(number, reader.written, PARTITIONS)) for number in range(PARTITIONS)}
    assert set(reader.consumer.lag().values()) == {0}
    assert reader.consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), cached=True)[1] > 10
    assert (reader.consumer.health().fetch_s or 99) < 5


def test_what_the_loop_receives_next_comes_behind_what_a_thread_received_that_is_late(reader: Reader) -> None:
    reader.until_lent(0)
    machines = reader.consumer._engine.machines
    receive, state = machines.direct.receive, machines.subscription.get(TOPIC, 0)

    def receive_and_be_late(*args: Any) -> None:
        receive(*args)
        if state.fetch_offset == reader.written:
            machines.direct.receive = receive
            reader.consumer._waits.do(machines.fetcher.lending.take_back)
            reader.write(0)
            end = time.monotonic() + PATIENCE_S
            while state.fetch_offset < reader.written and time.monotonic() < end:
                time.sleep(0.001)

    machines.direct.receive = receive_and_be_late
    reader.write(0)
    reader.read()
    assert machines.direct.receive is receive
    reader.read()
    assert reader.got == [b"%d" % number for number in range(reader.written)]


def test_what_was_received_is_stored_and_committed_as_ever(broker: EmbeddedBroker) -> None:
    reader = Reader(broker)
    reader.until_lent(0)
    reader.consumer.commit(asynchronous=False)
    assert reader.consumer.committed([TopicPartition(TOPIC, 0)], timeout=5)[0].offset == reader.written
    reader.pass_on(2, 0)
    reader.close()


def test_records_that_came_while_nobody_waited_are_there_in_order(reader: Reader) -> None:
    reader.until_lent(0)
    for _ in range(30):
        reader.write(0)
    for _ in range(30):
        reader.read()
    assert reader.got == [b"%d" % number for number in range(reader.written)]
    reader.pass_on(10, 0)


def test_records_of_several_partitions_in_a_reply_are_received_there_too(reader: Reader) -> None:
    reader.until_lent()
    before = reader.lane.exchanges
    for _ in range(20):
        for partition in (0, 1, 2, 1):  # the first is on its way at once, the rest comes with the next reply
            reader.write(partition)
        found = {reader.read().partition(): None for _ in range(4)}
        assert sorted(found) == [0, 1, 2]
        assert reader.lane.lent
    assert before + 40 <= reader.lane.exchanges < before + 60
    assert sorted(map(int, reader.got)) == list(range(reader.written))
    ends = {tp.partition: tp.offset for tp in reader.consumer.position(reader.consumer.assignment())}
    reader.pass_on(9)
    assert reader.lane.lent
    assert {tp.partition: tp.offset for tp in reader.consumer.position(reader.consumer.assignment())} == {
        partition: offset + 3 for partition, offset in ends.items()}


def test_figures_count_what_the_loop_has_not_seen(reader: Reader) -> None:
    reader.until_lent(0)
    before = reader.consumer.metrics()
    reader.until_lent(0)
    reader.pass_on(40, 0)
    assert reader.lane.lent
    after = reader.consumer.metrics()
    assert not reader.lane.lent  # so that all is counted

    def fetches(metrics: Any) -> tuple[int, int]:
        (counts,) = [each for each in metrics["brokers"].values() if each["nodeid"] >= 0]
        return counts["req"]["Fetch"], counts["rxbytes"]

    assert fetches(after)[0] - fetches(before)[0] >= 40
    assert fetches(after)[1] - fetches(before)[1] >= 40 * 100
    topic = after["topics"][TOPIC]["partitions"]["0"]
    assert (topic["app_offset"], topic["next_offset"], topic["consumer_lag"]) == (reader.written, reader.written, 0)
    reader.pass_on(5, 0)


def many_at_once(reader: Reader) -> None:
    for _ in range(2000):
        reader.producer.produce(TOPIC, b"x" * 100, partition=0)
    assert reader.producer.flush(PATIENCE_S) == 0
    for _ in range(2000):
        assert reader.read().value() == b"x" * 100


def seek_back(reader: Reader) -> None:
    reader.consumer.seek(TopicPartition(TOPIC, 0, 1))
    assert [reader.read().offset() for _ in range(reader.written - 1)] == list(range(1, reader.written))


def read_something_else(reader: Reader) -> None:
    reader.consumer.assign([TopicPartition("other", 0, 0)])
    value = reader.write(0, "other")
    assert reader.read().value() == value
    reader.consumer.assign([TopicPartition(TOPIC, 0, reader.written - 1)])


def pause_and_resume(reader: Reader) -> None:
    reader.consumer.pause([TopicPartition(TOPIC, 0)])
    value = reader.write(0)
    assert reader.consumer.poll(0.05) is None
    reader.consumer.resume([TopicPartition(TOPIC, 0)])
    assert reader.read().value() == value


def look_in_now_and_then(reader: Reader) -> None:
    for _ in range(20):
        value, began = reader.write(0), time.monotonic()
        while (message := reader.consumer.poll(0)) is None:
            assert time.monotonic() - began < PATIENCE_S
            time.sleep(0.001)
        assert message.value() == value
    assert reader.consumer.consume(10, 0) == []
    value, began = reader.write(0), time.monotonic()
    while not (messages := reader.consumer.consume(10, 0)):
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.001)
    assert [message.value() for message in messages] == [value]
    reader.write(0)
    while not (rows := reader.consumer.consume_arrow(10, 0)):
        assert time.monotonic() - began < 2 * PATIENCE_S
        time.sleep(0.001)
    assert len(rows) == 1
    assert reader.lane.lent


def wake_up(reader: Reader) -> None:
    waker = threading.Timer(0.05, reader.consumer.wakeup)
    waker.start()
    began = time.monotonic()
    with pytest.raises(WakeupError):
        reader.consumer.poll(PATIENCE_S)
    assert time.monotonic() - began < PATIENCE_S / 2
    waker.join()


def run_out_of_time(reader: Reader) -> None:
    began = time.monotonic()
    assert reader.consumer.poll(0.05) is None
    assert 0.04 < time.monotonic() - began < PATIENCE_S / 2


def nothing_for_longer_than_a_fetch_waits(reader: Reader) -> None:
    exchanges = reader.lane.exchanges
    assert reader.consumer.poll(1.3) is None
    assert reader.lane.lent
    assert reader.lane.exchanges > exchanges


def ask_the_cluster(reader: Reader) -> None:
    reader.consumer.list_topics(timeout=5)
    reader.consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=5)
    reader.consumer.offsets_for_times([TopicPartition(TOPIC, 0, 1)], timeout=5)


def read_by_columns(reader: Reader) -> None:
    reader.write(0)
    assert len(reader.consumer.consume_arrow(1, PATIENCE_S)) == 1


def read_by_lists(reader: Reader) -> None:
    value = reader.write(0)
    assert [message.value() for message in reader.consumer.consume(1, PATIENCE_S)] == [value]
    assert reader.consumer.consume(10, 0.02) == []


@pytest.mark.parametrize("meanwhile", [
    many_at_once, look_in_now_and_then, seek_back, read_something_else, pause_and_resume, wake_up, run_out_of_time,
    nothing_for_longer_than_a_fetch_waits, ask_the_cluster, read_by_columns, read_by_lists])
def test_whatever_happens_meanwhile_the_next_record_comes(reader: Reader, meanwhile: Callable[[Reader], None]) -> None:
    reader.assign(0)
    reader.until_lent(0)
    meanwhile(reader)
    reader.pass_on(40, 0)


def test_a_broker_that_ends_the_connection_is_found_again(broker: EmbeddedBroker, reader: Reader) -> None:
    reader.until_lent(0)
    broker.stop_node(1)
    assert reader.consumer.poll(0.3) is None
    broker.start_node(1)
    reader.pass_on(30, 0)
    assert reader.got == [b"%d" % number for number in range(reader.written)]


def test_a_close_in_another_thread_ends_the_wait(broker: EmbeddedBroker) -> None:
    reader = Reader(broker)
    reader.until_lent(0)
    ended: list[object] = []

    def wait() -> None:
        try:
            ended.append(reader.consumer.poll(60))
        except RuntimeError as error:
            ended.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.05)
    began = time.monotonic()
    reader.consumer.close()
    waiter.join(PATIENCE_S)
    assert not waiter.is_alive()
    assert time.monotonic() - began < PATIENCE_S
    assert len(ended) == 1
    reader.close()


def test_a_group_that_rebalances_takes_partitions_away_and_gives_them_back(broker: EmbeddedBroker) -> None:
    reader = Reader(broker)
    told: list[tuple[str, int]] = []
    reader.consumer.unassign()
    reader.consumer.subscribe([TOPIC], on_assign=lambda _, partitions: told.append(("come", len(partitions))),
                              on_revoke=lambda _, partitions: told.append(("gone", len(partitions))))
    reader.until_lent()
    reader.consumer.commit(asynchronous=False)
    other = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "latest"})
    other.subscribe([TOPIC])
    end = time.monotonic() + PATIENCE_S
    while ("gone", 3) not in told or told[-1][0] != "come":
        reader.consumer.poll(0.05)
        other.poll(0.05)
        assert time.monotonic() < end
    assert told[-1][1] < 3
    other.close()
    while told[-1] != ("come", 3):
        assert reader.consumer.poll(0.05) is None or time.monotonic() < end
    reader.pass_on(20)
    reader.close()


@interrupted
def test_ctrl_c_at_any_moment_loses_nothing_and_brings_nothing_twice(broker: EmbeddedBroker, keys: CtrlC) -> None:
    reader = Reader(broker)
    reader.until_lent()
    reader.got.clear()
    messages: list[Message] = []
    lent = 0

    def step() -> None:
        nonlocal lent
        for _ in range(10):
            if len(reader.producer) < 100:
                reader.producer.produce(TOPIC, b"value", partition=0)  # replies with one partition are usual
            if (message := reader.consumer.poll(0.01)) is not None:
                messages.append(message)
            lent += reader.lane.lent

    keys.again_and_again(2e-2, step, 3.0, 100)
    keys.end()
    assert lent > 30
    assert reader.producer.flush(PATIENCE_S) == 0
    while (message := reader.consumer.poll(0.5)) is not None:
        messages.append(message)
    places = [(message.partition(), message.offset()) for message in messages]
    ends = [reader.consumer.get_watermark_offsets(TopicPartition(TOPIC, number), 5)[1] for number in range(PARTITIONS)]
    assert len(places) == len(set(places))
    missing = sum(ends) - len(places) - len(reader.got)
    assert missing <= 30 + keys.count // 8  # what a call returned in that very moment, and those of `until_lent`
    for number in range(PARTITIONS):
        offsets = [offset for partition, offset in places if partition == number]
        assert offsets == sorted(offsets)
    reader.close()


def test_a_process_without_a_file_to_spare_goes_on_by_the_loop(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    reader = Reader(broker)  # which may begin the process's loop, with a file of its own
    monkeypatch.setattr(os, "eventfd", refuse)
    reader.pass_on(10, 0)
    assert not reader.lane.lent
    reader.close()


def test_where_it_cannot_be_the_loop_receives(broker: EmbeddedBroker) -> None:
    reader = Reader(broker, **{"enable.partition.eof": True})
    for number in range(20):
        reader.write(0)
        while (message := reader.consumer.poll(PATIENCE_S)) is None or message.error() is not None:
            assert message is not None
        assert message.value() == b"%d" % number
        assert not reader.lane.lent
    reader.close()


def test_on_a_loop_of_the_application_nothing_is_lent(broker: EmbeddedBroker) -> None:
    async def main() -> None:
        async with AIOConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
            assert not consumer._engine.machines.fetcher.lending.lends

    asyncio.run(main())
