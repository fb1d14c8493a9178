"""Records of real Kafka that were read and then lost by an unclean election: readers are told and leave nothing out."""

from __future__ import annotations

import time
from typing import Any

import pytest

from headrace import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from headrace.admin import AdminClient, NewTopic
from tests.support.real_kafka import until
from tools.kafka import KafkaCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

KEPT, LOST, NEW = 50, 40, 60
"""Records that both replicas have, that only the old leader has, and that the new one gets in their place."""


def make_topic(cluster: KafkaCluster) -> str:
    """A topic of one partition that two of the three brokers have, and whose leader need not have all of it."""
    topic = f"cut-{time.time_ns()}"
    with AdminClient(cluster.connection) as admin:
        admin.create_topics([NewTopic(topic, replica_assignment=[[1, 2]], config={
            "min.insync.replicas": "1", "unclean.leader.election.enable": "true"})])[topic].result(30)
    return topic


def fill(cluster: KafkaCluster, topic: str, name: str, count: int) -> None:
    with Producer(cluster.connection) as producer:
        for number in range(count):
            producer.produce(topic, f"{name} {number}", partition=0)
        assert producer.flush(60) == 0


class Reader:
    """A consumer, and what it got and was told."""

    def __init__(self, cluster: KafkaCluster, topic: str, **more: Any) -> None:
        self.told: list[KafkaError] = []
        self.errors: list[Message] = []
        self.values: list[str] = []
        self.partition = TopicPartition(topic, 0, OFFSET_BEGINNING)
        self.consumer = Consumer({**cluster.connection, "error_cb": self.told.append, "fetch.wait.max.ms": 100,
                                  "auto.offset.reset": "earliest", "enable.auto.commit": False, **more})

    def take(self) -> bool:
        for message in self.consumer.consume(1_000, 0.1):
            value = message.value()
            if message.error() is not None or value is None:
                self.errors.append(message)
            else:
                self.values.append(value.decode())
        return False

    def read(self, count: int) -> None:
        until(lambda: self.take() or len(self.values) >= count, 60)
        self.take()

    @property
    def truncations(self) -> list[str]:
        return [error.str() for error in self.told if error == KafkaError._LOG_TRUNCATION]


def named(name: str, count: int) -> list[str]:
    return [f"{name} {number}" for number in range(count)]


def test_readers_of_records_that_are_lost_are_told_and_read_all_that_come_in_their_place(
    three_brokers: KafkaCluster
) -> None:
    cluster = three_brokers
    topic = make_topic(cluster)
    goes_on, stops = Reader(cluster, topic), Reader(cluster, topic, **{"auto.offset.reset": "error"})
    member = Reader(cluster, topic, **{"group.id": topic})
    for reader in (goes_on, stops, member):
        reader.consumer.assign([reader.partition])
    fill(cluster, topic, "kept", KEPT)
    cluster.stop(2)
    fill(cluster, topic, "lost", LOST)
    for reader in (goes_on, stops, member):
        reader.read(KEPT + LOST)
        assert reader.values == named("kept", KEPT) + named("lost", LOST)
    member.consumer.commit(asynchronous=False)
    member.consumer.close()

    cluster.stop(1)
    cluster.restart(2)
    fill(cluster, topic, "new", NEW)

    goes_on.read(KEPT + LOST + NEW)
    assert goes_on.values[KEPT + LOST:] == named("new", NEW)
    [text] = goes_on.truncations
    assert f"{topic}[0]" in text
    assert f"from offset {KEPT} to {KEPT + LOST - 1}" in text
    assert goes_on.errors == []

    until(lambda: stops.take() or stops.errors, 60)
    [message] = stops.errors
    assert (message.error(), message.offset()) == (KafkaError._LOG_TRUNCATION, KEPT + LOST)
    assert len(stops.values) == KEPT + LOST
    stops.consumer.seek(TopicPartition(topic, 0, KEPT))
    stops.read(KEPT + LOST + NEW)
    assert stops.values[KEPT + LOST:] == named("new", NEW)

    later = Reader(cluster, topic, **{"group.id": topic})
    later.consumer.assign([TopicPartition(topic, 0)])
    later.read(NEW)
    assert (later.values, len(later.truncations)) == (named("new", NEW), 1), "the commit carried the epoch"
    later.consumer.commit(asynchronous=False)
    assert later.consumer.committed([TopicPartition(topic, 0)], 30)[0].offset == KEPT + NEW
    for reader in (goes_on, stops, later):
        reader.consumer.close()
