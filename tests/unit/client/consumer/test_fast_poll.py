"""`poll()` hands out the rest of a batch natively, and whatever else happens is seen at once all the same."""

from __future__ import annotations

import functools
import gc
import itertools
import multiprocessing
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace import Consumer, KafkaError, Message, Producer, TopicPartition
from headrace.client.consumer.consumer_engine import ConsumerEngine
from headrace.errors import ClientClosedError
from headrace.records import implementation
from headrace.testing import EmbeddedBroker

RECORDS = 200
native = pytest.mark.skipif(implementation == "plain", reason="the plain twin goes the general way")


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with two partitions, each with one batch of many records."""
    with EmbeddedBroker(topics={"t": 2}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 500}) as producer:
            for number in range(RECORDS):
                for partition in range(2):
                    producer.produce("t", b"%d" % number, partition=partition)
        yield broker.bootstrap_servers


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets an entry for each call that goes the general way."""
    calls: list[int] = []
    take_one = ConsumerEngine.take_one

    def counted(self: ConsumerEngine) -> Message | None:
        calls.append(1)
        return take_one(self)

    monkeypatch.setattr(ConsumerEngine, "take_one", counted)
    return calls


class Reader:
    """A consumer that is amid a batch of partition 0."""

    def __init__(self, servers: str, partitions: tuple[int, ...] = (0,), **properties: Any) -> None:
        self.consumer = Consumer({"bootstrap.servers": servers, "group.id": f"g{time.time_ns()}",
                                  "enable.auto.commit": False, **properties})
        self.consumer.assign([TopicPartition("t", partition, 0) for partition in partitions])
        for _ in range(3):
            self.next()

    def next(self) -> int:
        message = self.consumer.poll(10)
        assert message is not None
        assert message.error() is None, message.error()
        value = message.value()
        assert value is not None
        return int(value)


@pytest.fixture
def reader(servers: str, general: list[int]) -> Iterator[Reader]:
    made = Reader(servers)
    yield made
    made.consumer.close()


def position(consumer: Consumer, partition: int = 0) -> int:
    ((found),) = consumer.position([TopicPartition("t", partition)])
    return found.offset


@native
def test_the_rest_of_a_batch_needs_nothing_of_the_general_way(reader: Reader, general: list[int]) -> None:
    general.clear()
    assert [reader.next() for _ in range(3, RECORDS - 1)] == list(range(3, RECORDS - 1))
    assert not general


def test_a_time_that_is_none_is_refused_while_a_batch_lasts_too(reader: Reader) -> None:
    consumer = reader.consumer
    with pytest.raises(TypeError):
        consumer.poll("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        consumer.consume(1, "x")  # type: ignore[arg-type]
    assert consumer.poll(None) is not None


def test_the_position_and_what_is_stored_move_with_each_record(reader: Reader) -> None:
    for number in range(3, 40):
        assert reader.next() == number
        assert position(reader.consumer) == number + 1
    ((committed),) = reader.consumer.commit(asynchronous=False) or []
    assert committed.offset == 40


def test_without_storing_nothing_is_stored(servers: str) -> None:
    reader = Reader(servers, **{"enable.auto.offset.store": False})
    for _ in range(10):
        reader.next()
    reader.consumer.store_offsets(offsets=[TopicPartition("t", 0, 2)])
    reader.next()
    ((committed),) = reader.consumer.commit(asynchronous=False) or []
    assert committed.offset == 2
    reader.consumer.close()


def seek(consumer: Consumer) -> None:
    consumer.seek(TopicPartition("t", 0, 150))


def assign_anew(consumer: Consumer) -> None:
    consumer.assign([TopicPartition("t", 0, 150)])


@pytest.mark.parametrize("move", [seek, assign_anew])
def test_another_position_holds_from_the_next_call_on(reader: Reader, move: Callable[[Consumer], None]) -> None:
    move(reader.consumer)
    assert [reader.next() for _ in range(5)] == list(range(150, 155))
    assert position(reader.consumer) == 155


def pause(consumer: Consumer) -> None:
    consumer.pause([TopicPartition("t", 0)])


def unassign(consumer: Consumer) -> None:
    consumer.unassign()


@pytest.mark.parametrize("stop", [pause, unassign])
def test_what_is_not_to_be_handed_out_is_not(reader: Reader, stop: Callable[[Consumer], None]) -> None:
    stop(reader.consumer)
    assert reader.consumer.poll(0.05) is None


def test_a_paused_partition_goes_on_where_it_was(reader: Reader) -> None:
    pause(reader.consumer)
    assert reader.consumer.poll(0.05) is None
    reader.consumer.resume([TopicPartition("t", 0)])
    assert [reader.next() for _ in range(3)] == [3, 4, 5]


def test_consume_goes_on_where_poll_was_and_poll_where_consume_was(reader: Reader) -> None:
    read: list[int] = []
    for count in (5, 1, 20):
        read += [reader.next() for _ in range(4)]
        read += [int(message.value() or b"") for message in reader.consumer.consume(count, 10)]
    assert read == list(range(3, 3 + len(read)))


def test_a_callback_that_is_due_is_called_by_the_next_poll(reader: Reader) -> None:
    told: list[object] = []
    engine: Any = reader.consumer._engine
    engine.machines.notify(told.append, KafkaError(KafkaError._FAIL))
    reader.next()
    assert told == [KafkaError(KafkaError._FAIL)]


def test_a_closed_consumer_hands_out_nothing(reader: Reader) -> None:
    reader.consumer.close()
    with pytest.raises(ClientClosedError):
        reader.consumer.poll(0)


def test_iterating_gives_every_record_once(servers: str) -> None:
    reader = Reader(servers, (0, 1))
    found: list[int] = []
    for message in reader.consumer:
        found.append(int(message.value() or b""))
        if len(found) == 2 * RECORDS - 3:
            break
    assert sorted([*found, 0, 1, 2]) == sorted([*range(RECORDS), *range(RECORDS)])
    reader.consumer.close()


def test_threads_that_poll_together_share_the_records(servers: str) -> None:
    reader = Reader(servers, (0, 1))
    found: list[tuple[int | None, int | None]] = []

    def poll() -> None:
        while (message := reader.consumer.poll(0.3)) is not None:
            found.append((message.partition(), message.offset()))

    threads = [threading.Thread(target=poll) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 2 * RECORDS - 3
    reader.consumer.close()


def test_a_consumer_that_is_let_go_ends_although_it_was_read_from(servers: str) -> None:
    reader = Reader(servers)
    gone = weakref.ref(reader.consumer)
    gc.disable()
    try:
        del reader.consumer
        assert gone() is None  # nothing of it refers to itself
    finally:
        gc.enable()


def a_consumer(servers: str) -> Consumer:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "c"})
    consumer.assign([TopicPartition("t", 0, 0)])
    return consumer


@pytest.mark.parametrize("read", [
    lambda servers: [a_consumer(servers).poll(10)],
    lambda servers: list(itertools.islice(iter(functools.partial(a_consumer(servers).poll, 10), None), 20)),
    lambda servers: list(itertools.islice(a_consumer(servers), 20)),
])
def test_a_consumer_lives_as_long_as_its_poll_and_its_iterator(
    servers: str, read: Callable[[str], list[Message]]
) -> None:
    assert all(message.error() is None for message in read(servers))


def test_a_subclass_sees_each_call_of_its_poll(servers: str) -> None:
    class Counting(Consumer):
        polls = 0

        def poll(self, timeout: float | None = -1) -> Message | None:
            self.polls += 1
            return super().poll(timeout)

    with Counting({"bootstrap.servers": servers, "group.id": "c"}) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        assert len([message for message, _ in zip(consumer, range(20), strict=False)]) == 20
        assert consumer.polls >= 20


def _in_child(consumer: Consumer, told: Any) -> None:
    try:
        told.put(consumer.poll(0) is not None)
    except ClientClosedError:
        told.put("closed")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_hands_out_nothing_of_its_parent(reader: Reader) -> None:
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    child = context.Process(target=_in_child, args=(reader.consumer, told))
    child.start()
    assert told.get(timeout=20) == "closed"
    child.join()
    assert reader.next() == 3


def test_a_group_learns_that_the_application_is_there(servers: str) -> None:
    def error() -> KafkaError | None:
        with Consumer({"bootstrap.servers": servers, "group.id": f"alive{time.time_ns()}",
                       "auto.offset.reset": "earliest", "max.poll.interval.ms": 2_000,
                       "session.timeout.ms": 1_000, "heartbeat.interval.ms": 100}) as consumer:
            consumer.subscribe(["t"])
            for _ in range(RECORDS // 2):  # longer than the interval in all
                message = consumer.poll(10)
                assert message is not None
                if message.error() is not None:
                    return message.error()
                time.sleep(0.025)
        return None

    # A machine may stop for as long as that, now and then.
    errors = list(itertools.takewhile(bool, (error() for _ in range(5))))
    assert len(errors) < 5, errors
