"""Topics of real Kafka that are deleted and made anew while a consumer reads them: all of the new one is read."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, cast

import pytest

from headrace import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from headrace.admin import AdminClient, NewTopic
from tests.support.real_kafka import until
from tools.kafka import KafkaCluster

PARTITIONS = 2
OLD, FEW, MANY = 10, 3, 25
"""Records in each partition of the old topic, and of a new one that has fewer or more."""
PATIENCE_S = 60.0


class Site:
    """A topic, and what its readers got and were told."""

    def __init__(self, cluster: KafkaCluster, topic: str) -> None:
        self.cluster, self.topic = cluster, topic
        self.told: list[KafkaError] = []
        self.values: list[tuple[int, str]] = []
        self.errors: list[KafkaError] = []
        with AdminClient(cluster.connection) as admin:
            self._create(admin)
        self.write("old", OLD)

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)]

    def _create(self, admin: AdminClient) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])[self.topic].result(PATIENCE_S)
                return
            except KafkaException as failed:
                if failed.error != KafkaError.TOPIC_ALREADY_EXISTS or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)  # it is still being deleted

    def write(self, name: str, count: int, partitions: Iterable[int] = range(PARTITIONS)) -> dict[int, int]:
        """Write that many records into each of these partitions; gives the offset of the first of each."""
        first: dict[int, int] = {}

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            first.setdefault(cast("int", message.partition()), cast("int", message.offset()))

        with Producer(self.cluster.connection) as producer:
            for partition in partitions:
                for number in range(count):
                    producer.produce(self.topic, f"{name} {number}", partition=partition, on_delivery=on_delivery)
            assert producer.flush(PATIENCE_S) == 0
        return first

    def delete(self, admin: AdminClient) -> None:
        admin.delete_topics([self.topic])[self.topic].result(PATIENCE_S)

    def make_anew(self, count: int) -> None:
        with AdminClient(self.cluster.connection) as admin:
            self.delete(admin)
            self._create(admin)
        missing = set(range(PARTITIONS))
        while missing:  # the controller answers before a broker hears of it, which takes records for the old topic then
            missing = {partition for partition, offset in self.write("new", count, missing).items() if offset > 0}

    def reader(self, way: str, **more: Any) -> Consumer:
        """A consumer that has read all of the topic: of "assign", or of a group by its strategy."""
        properties = {**self.cluster.connection, "auto.offset.reset": "earliest", "heartbeat.interval.ms": 200,
                      "auto.commit.interval.ms": 200, "fetch.wait.max.ms": 100, "error_cb": self.told.append, **more}
        if way == "assign":
            reader = Consumer(properties)
            reader.assign(self.partitions)
        else:
            reader = Consumer({**properties, "group.id": self.topic, "partition.assignment.strategy": way})
            reader.subscribe([self.topic])
        self.read(reader, OLD)
        self.values.clear()
        return reader

    def read(self, reader: Consumer, count: int) -> None:
        until(lambda: self.take(reader) >= count * PARTITIONS, PATIENCE_S)

    def take(self, reader: Consumer) -> int:
        for message in reader.consume(100, 0.1):
            error, value, partition = message.error(), message.value(), message.partition()
            if error is not None:
                self.errors.append(error)
            else:
                assert value is not None
                assert partition is not None
                self.values.append((partition, value.decode()))
        return len(self.values)

    def check(self, count: int) -> None:
        for partition in range(PARTITIONS):
            assert [value for of, value in self.values if of == partition] == [f"new {i}" for i in range(count)]


@pytest.fixture
def site(kafka: KafkaCluster, request: pytest.FixtureRequest) -> Site:
    return Site(kafka, f"anew-{time.time_ns()}")


@pytest.mark.parametrize("count", [FEW, MANY], ids=["with fewer records", "with more records"])
@pytest.mark.parametrize("way", ["assign", "range", "cooperative-sticky"])
def test_all_records_of_a_topic_that_was_made_anew_while_nobody_looked_are_read(
    site: Site, way: str, count: int
) -> None:
    reader = site.reader(way)
    reader.pause(site.partitions)
    time.sleep(0.5)  # the last fetch is answered
    site.make_anew(count)
    reader.resume(site.partitions)
    site.read(reader, count)
    site.take(reader)
    site.check(count)
    assert [error.code() for error in site.told if "made anew" in error.str()] == [KafkaError.UNKNOWN_TOPIC_ID]
    reader.close()


@pytest.mark.parametrize("way", ["assign", "range", "cooperative-sticky"])
def test_all_records_of_a_topic_that_was_gone_for_a_while_are_read(site: Site, way: str) -> None:
    reader = site.reader(way)
    with AdminClient(site.cluster.connection) as admin:
        site.delete(admin)
    until(lambda: (site.take(reader), bool(site.errors))[1], PATIENCE_S)
    assert {error.code() for error in site.errors} == {KafkaError.UNKNOWN_TOPIC_OR_PART}
    with AdminClient(site.cluster.connection) as admin:
        site._create(admin)
    site.write("new", MANY)
    site.read(reader, MANY)
    site.take(reader)
    site.check(MANY)
    reader.close()


@pytest.mark.parametrize("way", ["range", "cooperative-sticky"])
def test_the_next_member_of_the_group_goes_on_in_the_new_topic(site: Site, way: str) -> None:
    reader = site.reader(way)
    reader.pause(site.partitions)
    time.sleep(0.5)
    site.make_anew(MANY)
    reader.resume(site.partitions)
    site.read(reader, MANY)
    reader.close()
    site.write("later", FEW)
    site.values.clear()
    with Consumer({**site.cluster.connection, "group.id": site.topic, "auto.offset.reset": "earliest"}) as other:
        assert [tp.offset for tp in other.committed(site.partitions, PATIENCE_S)] == [MANY] * PARTITIONS
        other.subscribe([site.topic])
        site.read(other, FEW)
    assert {value.partition(" ")[0] for _, value in site.values} == {"later"}


def test_what_was_read_of_the_old_topic_is_not_committed_to_the_new(site: Site) -> None:
    """Where commits name topics by id (KIP-848's OffsetCommit v10); before Kafka 4.1 the name is all there is."""
    reader = site.reader("range", **{"auto.commit.interval.ms": 600_000})
    reader.pause(site.partitions)
    time.sleep(0.5)
    site.make_anew(MANY)
    reader.commit()
    time.sleep(1.0)
    offsets = [tp.offset for tp in reader.committed(site.partitions, PATIENCE_S)]
    if site.cluster.version >= "4.1":
        assert not any(offset == OLD for offset in offsets)
    reader.resume(site.partitions)
    site.read(reader, MANY)
    site.check(MANY)
    reader.close()
