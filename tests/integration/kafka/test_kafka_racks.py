"""Readers and brokers in racks on real Kafka: whom a consumer reads from (KIP-392), counted by which node answered."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from headrace import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from headrace.admin import AdminClient, NewTopic
from tests.support.configuration import Configuration
from tests.support.real_kafka import running, until
from tools.kafka import KafkaCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a cluster of its own, whose brokers are killed

RACKS = ("east", "west", "north")
LEADER, NEAR = 1, 2
RECORDS, SIZE = 1_000, 1_000
BY_RACK = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


@pytest.fixture(scope="module")
def racks(configured: Configuration) -> Iterator[KafkaCluster]:
    """Three brokers, each in a rack of its own, that name the nearest replica."""
    yield from running(configured.cluster(properties=BY_RACK, racks=RACKS))


@pytest.fixture
def near(racks: KafkaCluster) -> str:
    """A topic of one partition, led in the first rack, with records that all replicas have."""
    return filled(racks)


def filled(cluster: KafkaCluster) -> str:
    topic = f"near-{time.time_ns()}"
    with AdminClient(cluster.connection) as admin:
        admin.create_topics([NewTopic(topic, replica_assignment=[[1, 2, 3]])])[topic].result(30)
    fill(cluster, topic)
    return topic


def fill(cluster: KafkaCluster, topic: str) -> None:
    with Producer({**cluster.connection, "batch.num.messages": 10}) as producer:
        for _ in range(RECORDS):
            producer.produce(topic, b"." * SIZE, partition=0)
        assert producer.flush(90) == 0


class Reader:
    """A consumer in the second rack, and what it got of whom."""

    def __init__(self, cluster: KafkaCluster, topic: str, **more: Any) -> None:
        near = {"client.rack": RACKS[NEAR - 1], "fetch.wait.max.ms": 100}
        self.consumer = Consumer({**cluster.connection, **near, **more})
        self.consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        self.offsets: list[int | None] = []

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.close()

    def read(self, count: int, timeout_s: float = 30.0) -> None:
        """Read up to the offset `count`, each record once and in order."""
        deadline = time.monotonic() + timeout_s
        while len(self.offsets) < count:
            assert time.monotonic() < deadline, (len(self.offsets), self.consumer.health())
            for message in self.consumer.consume(count - len(self.offsets), 0.1):
                assert message.error() is None
                self.offsets.append(message.offset())
        assert self.offsets == list(range(count))

    def of(self, what: str) -> Counter[int]:
        """Bytes received, fetches, or questions about a leader's log, by node."""
        requests = {"fetches": "Fetch", "questions": "OffsetForLeaderEpoch"}
        found: Counter[int] = Counter()
        for broker in self.consumer.metrics()["brokers"].values():
            found[broker["nodeid"]] += (
                broker["rxbytes"] if what == "bytes" else broker["req"].get(requests[what], 0))
        return found


def test_records_come_from_the_follower_in_the_rack_of_the_reader(racks: KafkaCluster, near: str) -> None:
    with Reader(racks, near) as reader:
        reader.read(RECORDS)
        received = reader.of("bytes")
    assert received[NEAR] > RECORDS * SIZE
    assert received[LEADER] + received[3] < 100_000, "it says who is near, and has all metadata, and that is all"


def test_without_a_rack_records_come_from_the_leader(racks: KafkaCluster, near: str) -> None:
    with Reader(racks, near, **{"client.rack": ""}) as reader:
        reader.read(RECORDS)
        assert reader.of("bytes")[LEADER] > RECORDS * SIZE
        assert reader.of("fetches")[NEAR] == 0


def test_the_leader_is_asked_anew_whenever_metadata_has_grown_old(racks: KafkaCluster, near: str) -> None:
    with Reader(racks, near) as reader:
        reader.read(RECORDS)
        reader.consumer.poll(1.5)
        assert reader.of("fetches")[LEADER] <= 2, "what was named is read for minutes"
    with Reader(racks, near, **{"metadata.max.age.ms": 300}) as reader:
        reader.read(RECORDS)
        until(lambda: reader.consumer.poll(0.2) or reader.of("fetches")[LEADER] >= 5)
        fill(racks, near)
        reader.read(2 * RECORDS)
        assert reader.of("bytes")[NEAR] > 2 * RECORDS * SIZE


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_of_a_group_get_the_partitions_of_their_racks(racks: KafkaCluster, strategy: str) -> None:
    """KIP-881, and in the plan of whoever is the leader; also if one had all of them before the others came."""
    topic = f"spread-{time.time_ns()}"
    with AdminClient(racks.connection) as admin:
        admin.create_topics([NewTopic(topic, replica_assignment=[[3], [1], [2]])])[topic].result(30)
    wanted = [("east", [1]), ("west", [2]), ("north", [0])]
    with ExitStack() as stack:
        members = [stack.enter_context(Consumer({
            **racks.connection, "group.id": topic, "client.rack": rack, "heartbeat.interval.ms": 300,
            "partition.assignment.strategy": strategy})) for rack, _ in wanted]
        members[0].subscribe([topic])
        until(lambda: members[0].poll(0.1) or len(members[0].assignment()) == 3)
        for member in members[1:]:
            member.subscribe([topic])
        until(lambda: [member.poll(0.1) for member in members] and [
            [tp.partition for tp in member.assignment()] for member in members] == [own for _, own in wanted], 60)


def test_a_follower_that_dies_is_left_for_the_leader_at_once_and_read_again_when_it_is_back(
    racks: KafkaCluster, near: str
) -> None:
    with Reader(racks, near, **{"max.partition.fetch.bytes": 20_000, "queued.max.messages.kbytes": 20,
                                "reconnect.backoff.max.ms": 100}) as reader:
        reader.read(100)
        assert reader.of("fetches")[NEAR] > 0
        racks.kill(NEAR)
        killed_at, before = time.monotonic(), reader.of("bytes")[LEADER]
        try:
            reader.read(RECORDS)
            took_s, received = time.monotonic() - killed_at, reader.of("bytes")[LEADER] - before
        finally:
            racks.restart(NEAR)
        assert took_s < 8, "the controller notices after nine seconds: it is not waited for"
        assert received > 500 * SIZE
        fetches = reader.of("fetches")[NEAR]
        until(lambda: reader.consumer.poll(0.2) or reader.of("fetches")[NEAR] > fetches + 1, 60)
        fill(racks, near)
        before = reader.of("bytes")[NEAR]
        reader.read(2 * RECORDS)
        assert reader.of("bytes")[NEAR] - before > RECORDS * SIZE // 2


def test_a_new_leader_is_asked_whether_it_has_what_was_read_and_not_again(racks: KafkaCluster, near: str) -> None:
    told: list[KafkaError] = []
    with Reader(racks, near, error_cb=told.append, **{"client.rack": ""}) as reader:
        reader.read(RECORDS)
        assert reader.of("questions").total() == 0
        racks.stop(LEADER)
        try:
            fill(racks, near)
            reader.read(2 * RECORDS, 60)
            asked = reader.of("questions").total()
            assert 1 <= asked <= 5, "one that does not know of its term yet is asked once more"
            fill(racks, near)
            reader.read(3 * RECORDS)
            assert reader.of("questions").total() == asked
        finally:
            racks.restart(LEADER)
    assert KafkaError._LOG_TRUNCATION not in told
