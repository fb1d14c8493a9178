"""Ctrl-C at any moment: a consumer goes on where it was, whatever it was doing, and closes.

What a call returns just when Ctrl-C comes is lost to the caller, with any library: Python drops it. That is one call of
twenty here, where all the time is spent in calls; what was read and not yet returned comes again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace import Consumer, Message, Producer, TopicPartition
from headrace.testing import EmbeddedBroker
from tests.support.ctrl_c import INTERRUPTED, CtrlC, keys

__all__ = ["keys"]
pytestmark = [*INTERRUPTED]
TOPIC, PARTITIONS = "interrupted", 3
AT_ONCE = 20


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={TOPIC: PARTITIONS}) as started:
        yield started


class Reader:
    """A consumer, a producer, and what came of the records."""

    def __init__(self, broker: EmbeddedBroker, **properties: Any) -> None:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        self.producer = Producer(servers)
        self.consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest",
                                  "queued.max.messages.kbytes": 4096, **properties})
        self.got: list[Message] = []
        self.consumer.subscribe([TOPIC])

    def produce(self) -> None:
        for _ in range(AT_ONCE if len(self.producer) < 50_000 else 0):
            self.producer.produce(TOPIC, b"value", partition=random.randrange(PARTITIONS))
        self.producer.poll(0)

    def rest(self) -> tuple[list[tuple[int | None, int | None]], int]:
        """Where all records were that were read at last, and how many there are.

        A record behind everything else shows that the consumer goes on.
        """
        last: set[tuple[int | None, int | None]] = set()
        for partition in range(PARTITIONS):
            self.producer.produce(TOPIC, b"last", partition=partition, on_delivery=lambda _, message: last.add(
                (message.partition(), message.offset())))
        assert self.producer.flush(20) == 0
        written = sum((offset or 0) + 1 for _, offset in last)
        end = time.monotonic() + 20
        while last and time.monotonic() < end:
            read = self.consumer.consume(1000, 0.05)
            self.got += read
            last -= {(message.partition(), message.offset()) for message in read}
        assert not last, self.consumer.health()
        return [(message.partition(), message.offset()) for message in self.got], written

    def close(self) -> None:
        began = time.monotonic()
        self.consumer.close()
        assert time.monotonic() - began < 10
        assert not self.consumer._waits._sleepers
        self.producer.close()


def poll(reader: Reader) -> None:
    if (message := reader.consumer.poll(0.01)) is not None:
        reader.got.append(message)


def consume(reader: Reader) -> None:
    reader.got += reader.consumer.consume(AT_ONCE, 0.01)


def commit(reader: Reader) -> None:
    poll(reader)
    if reader.got:
        reader.consumer.commit(reader.got[-1], asynchronous=False)
        reader.consumer.committed([TopicPartition(TOPIC, 0)], timeout=5)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(("work", "at_most"), [(poll, 1), (consume, AT_ONCE), (commit, 1)])
def test_an_interrupted_consumer_reads_on_and_reads_nothing_twice(
    broker: EmbeddedBroker, keys: CtrlC, work: Callable[[Reader], None], at_most: int, protocol: str
) -> None:
    reader = Reader(broker, **{"group.protocol": protocol})

    def step() -> None:
        reader.produce()
        work(reader)

    keys.again_and_again(1e-3, step, 1.0, 30)
    read, written = reader.rest()
    assert len(read) == len(set(read))
    assert written - len(read) <= at_most * keys.count // 8
    reader.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_interrupted_change_of_the_subscription_leaves_a_consumer_that_joins_and_reads(
    broker: EmbeddedBroker, keys: CtrlC, protocol: str
) -> None:
    reader, turn = Reader(broker, **{"group.protocol": protocol}), 0

    def step() -> None:
        nonlocal turn
        turn += 1
        if turn % 20:
            reader.consumer.subscribe([TOPIC])
        else:
            reader.consumer.unsubscribe()
        poll(reader)

    keys.again_and_again(2e-3, step, 1.0, 30)
    reader.consumer.subscribe([TOPIC])
    reader.rest()
    reader.close()


def test_a_close_that_is_interrupted_has_closed(broker: EmbeddedBroker, keys: CtrlC) -> None:
    left: list[Consumer] = []

    def step() -> None:
        left.append(Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}))
        left[-1].subscribe([TOPIC])
        left[-1].poll(0)
        left[-1].close()

    keys.again_and_again(1e-2, step, 1.0, 10)
    keys.end()
    for consumer in left:
        consumer.close()
        assert consumer._engine._client.closed
