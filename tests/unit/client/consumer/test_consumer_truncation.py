"""A leader without some of the records that were read (an unclean election), at the embedded broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import Consumer, KafkaError, Producer, TopicPartition
from headrace.broker.cluster import BrokerCluster
from headrace.client.consumer.consumer_truncation import compare_positions
from headrace.client.consumer.partition_reader import PartitionReader
from headrace.errors import KafkaException
from headrace.machines.consumer.truncation import LogTruncated
from headrace.testing import EmbeddedBroker

KEPT, LOST, NEW = 6, 4, 7


def fill(broker: EmbeddedBroker, topic: str, name: str, count: int) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.num.messages": 2}) as producer:
        for number in range(count):
            producer.produce(topic, f"{name} {number}")
        assert producer.flush(10) == 0


def named(name: str, count: int) -> list[str]:
    return [f"{name} {number}" for number in range(count)]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """Two nodes; the second has a replica of "t", "u", which lacks its last records."""
    with EmbeddedBroker(nodes=2, topics={"t": 1, "u": 1}) as broker:
        for topic in ("t", "u"):
            fill(broker, topic, "kept", KEPT)
            broker.move_leader(topic, 0, 1)
        fill(broker, "t", "lost", LOST)
        yield broker


def elect_uncleanly(broker: EmbeddedBroker) -> None:
    """Let the other node lead with what it has, and new records come."""
    def elect(cluster: BrokerCluster) -> None:
        whole, short = (cluster.catalog.topics[topic].partitions[0] for topic in ("t", "u"))
        whole.log, whole.epochs = short.log, short.epochs
        cluster.move_leader("t", 0, 3 - whole.leader_id)

    broker.apply(elect)
    fill(broker, "t", "new", NEW)


def reader(broker: EmbeddedBroker, **more: Any) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest",
                     "enable.auto.commit": False, "fetch.wait.max.ms": 50, **more})


def read(consumer: Consumer, count: int) -> list[str]:
    """So many values; an error is a failure."""
    found: list[str] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(count - len(found), 0.2):
            value = message.value()
            assert (message.error(), value is None) == (None, False)
            found.append((value or b"").decode())
    return found


def test_a_reader_with_a_policy_is_told_and_leaves_nothing_out(broker: EmbeddedBroker) -> None:
    told: list[KafkaError] = []
    with reader(broker, error_cb=told.append) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        assert read(consumer, KEPT + LOST) == named("kept", KEPT) + named("lost", LOST)
        elect_uncleanly(broker)
        assert read(consumer, NEW) == named("new", NEW)
        consumer.poll(0)
    [error] = [error for error in told if error == KafkaError._LOG_TRUNCATION]
    assert f"from offset {KEPT} to {KEPT + LOST - 1}" in error.str()


def test_a_reader_without_a_policy_stops_with_the_error_until_it_seeks(broker: EmbeddedBroker) -> None:
    with reader(broker, **{"auto.offset.reset": "error"}) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        read(consumer, KEPT + LOST)
        elect_uncleanly(broker)
        message = consumer.poll(20)
        assert message is not None
        assert (message.error(), message.offset()) == (KafkaError._LOG_TRUNCATION, KEPT + LOST)
        assert consumer.poll(0.2) is None
        consumer.seek(TopicPartition("t", 0, KEPT))
        assert read(consumer, NEW) == named("new", NEW)


def test_who_goes_on_from_a_commit_is_told_as_well(broker: EmbeddedBroker) -> None:
    told: list[KafkaError] = []
    with reader(broker) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        read(consumer, KEPT + LOST)
        consumer.commit(asynchronous=False)
    elect_uncleanly(broker)
    with reader(broker, error_cb=told.append) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        assert read(consumer, NEW) == named("new", NEW)
        consumer.poll(0)
    assert KafkaError._LOG_TRUNCATION in told


def test_a_reader_of_a_range_fails_instead_of_giving_other_records(broker: EmbeddedBroker) -> None:
    with PartitionReader({"bootstrap.servers": broker.bootstrap_servers, "fetch.wait.max.ms": 50}, "t", 0, 0,
                         KEPT + LOST + NEW, timeout_s=20) as pieces:
        rest = iter(pieces)
        at = 0
        while at < KEPT + LOST:
            at = next(rest).next_offset
        elect_uncleanly(broker)
        with pytest.raises(KafkaException) as raised:
            next(rest)
    assert raised.value.error == KafkaError._LOG_TRUNCATION


def test_a_leader_that_has_everything_is_read_on_without_a_word(broker: EmbeddedBroker) -> None:
    told: list[KafkaError] = []
    with reader(broker, error_cb=told.append) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        read(consumer, KEPT + LOST)
        for node in (2, 1, 2):
            broker.move_leader("t", 0, node)
            fill(broker, "t", "new", NEW)
            assert read(consumer, NEW) == named("new", NEW)
        consumer.poll(0)
    assert KafkaError._LOG_TRUNCATION not in told


def test_new_leaders_are_asked_by_one_machine_however_often_positions_are_in_doubt() -> None:
    added: list[object] = []
    core: Any = SimpleNamespace(driver=SimpleNamespace(listeners={}, add=added.append), metadata=None,
                                retries=SimpleNamespace(wait_s=lambda attempt: 0.1))
    subscription: Any = SimpleNamespace()
    for _ in range(2):
        compare_positions(core, subscription, 1.0, lambda truncated: None)
    assert (len(added), list(core.driver.listeners)) == (1, [LogTruncated])
