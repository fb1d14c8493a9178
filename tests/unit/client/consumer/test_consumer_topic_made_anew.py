"""A topic that is deleted and made anew while a consumer reads it: another topic, whose records are all read."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headrace.admin import AdminClient, NewTopic
from headrace.client.consumer.aio_consumer import AIOConsumer
from headrace.client.consumer.consumer import Consumer
from headrace.client.consumer.partition_reader import PartitionReader
from headrace.client.producer.producer import Producer
from headrace.errors import KafkaError, KafkaException
from headrace.records import Message
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.types.records import OFFSET_BEGINNING, OFFSET_INVALID, TopicPartition
from headrace.wire.messages.consumer.fetch import FetchRequest

PARTITIONS = 2
OLD, FEW, MANY = 10, 3, 25
"""Records in each partition of the old topic, and of a new one that has fewer or more."""
PATIENCE_S = 20.0


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


class Site:
    """A cluster with topic "t", and what its consumers were told."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.told: list[KafkaError] = []
        self.values: list[tuple[int, str]] = []
        self.errors: list[tuple[int, KafkaError]] = []
        with self.admin() as admin:
            self._create(admin)
        self.write("old", OLD)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers})

    def _create(self, admin: AdminClient) -> None:
        admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(PATIENCE_S)

    def write(self, name: str, count: int) -> None:
        with Producer({"bootstrap.servers": self.servers}) as producer:
            for partition in range(PARTITIONS):
                for number in range(count):
                    producer.produce("t", f"{name} {number}", partition=partition)
            assert producer.flush(PATIENCE_S) == 0

    def make_anew(self, count: int, pause_s: float = 0.0, between: Callable[[], Any] = lambda: None) -> None:
        """Delete the topic, make it anew, and write so many records to each partition."""
        with self.admin() as admin:
            admin.delete_topics(["t"])["t"].result(PATIENCE_S)
            end = time.monotonic() + pause_s
            while time.monotonic() < end:
                between()
            self._create(admin)
        self.write("new", count)

    def consumer(self, **properties: Any) -> Consumer:
        return Consumer({"bootstrap.servers": self.servers, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100,
                         "heartbeat.interval.ms": 100, "auto.commit.interval.ms": 100, "error_cb": self.told.append,
                         **properties})

    def reader(self, way: str, **properties: Any) -> Consumer:
        """A consumer that has read all of the topic: of "assign", or of a group by its strategy."""
        if way == "assign":
            reader = self.consumer(**properties)
            reader.assign([TopicPartition("t", partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
        else:
            reader = self.consumer(**{"group.id": f"by {way}", "partition.assignment.strategy": way, **properties})
            reader.subscribe(["t"])
        self.read(reader, lambda: len(self.values) == OLD * PARTITIONS)
        self.values.clear()
        return reader

    def read(self, reader: Consumer, enough: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not enough():
            assert time.monotonic() < deadline, (len(self.values), self.values[:3], self.errors, self.told)
            self.take(reader.consume(100, 0.1))

    def take(self, messages: list[Message]) -> None:
        for message in messages:
            error, value = message.error(), message.value()
            partition = message.partition()
            if error is not None:
                self.errors.append((-1 if partition is None else partition, error))
            else:
                assert value is not None
                assert partition is not None
                self.values.append((partition, value.decode()))

    def check(self, count: int) -> None:
        """All records of the new topic came, once and in order, and the application was told."""
        for partition in range(PARTITIONS):
            assert [value for of, value in self.values if of == partition] == [f"new {i}" for i in range(count)]
        anew = [error.code() for error in self.told if "made anew" in error.str()]
        missed = [error.code() for _, error in self.errors]
        assert anew == [KafkaError.UNKNOWN_TOPIC_ID] or missed == [KafkaError.UNKNOWN_TOPIC_OR_PART]


@pytest.fixture
def site(broker: EmbeddedBroker) -> Site:
    return Site(broker.bootstrap_servers)


@contextmanager
def nothing_fetched(broker: EmbeddedBroker) -> Iterator[None]:
    """No fetch reaches the broker, so that no consumer learns what happens meanwhile."""
    held = threading.Event()
    broker.add_fault(Fault(action=Action.DELAY, request=FetchRequest, delay_s=60, times=None,
                           effect=lambda _: held.set()))
    held.wait(0.3)  # one that waits there already is answered, and the next is held up
    yield
    broker.clear_faults()


@pytest.mark.parametrize("count", [FEW, MANY], ids=["with fewer records", "with more records"])
@pytest.mark.parametrize("way", ["assign", "range", "cooperative-sticky"])
def test_all_records_of_a_topic_that_is_made_anew_at_once_are_read(
    broker: EmbeddedBroker, site: Site, way: str, count: int
) -> None:
    reader = site.reader(way)
    with nothing_fetched(broker):
        site.make_anew(count)
    site.read(reader, lambda: len(site.values) >= count * PARTITIONS)
    site.take(reader.consume(100, 0.3))
    site.check(count)
    reader.close()


@pytest.mark.parametrize("count", [FEW, MANY], ids=["with fewer records", "with more records"])
@pytest.mark.parametrize("way", ["assign", "range", "cooperative-sticky"])
def test_all_records_of_a_topic_that_comes_back_after_a_while_are_read(site: Site, way: str, count: int) -> None:
    reader = site.reader(way)
    site.make_anew(count, 0.5, lambda: site.take(reader.consume(100, 0.05)))
    site.read(reader, lambda: len(site.values) >= count * PARTITIONS)
    site.take(reader.consume(100, 0.3))
    site.check(count)
    reader.close()


def test_only_later_records_of_the_new_topic_are_read_when_the_policy_is_latest(
    broker: EmbeddedBroker, site: Site
) -> None:
    reader = site.reader("assign", **{"auto.offset.reset": "latest"})
    with nothing_fetched(broker):
        site.make_anew(MANY)
    site.read(reader, lambda: bool(site.told))
    deadline = time.monotonic() + PATIENCE_S
    while [tp.offset for tp in reader.assignment()] != [MANY] * PARTITIONS and time.monotonic() < deadline:
        site.take(reader.consume(10, 0.05))
    assert site.values == []
    site.write("later", FEW)
    site.read(reader, lambda: len(site.values) >= FEW * PARTITIONS)
    assert {value.partition(" ")[0] for _, value in site.values} == {"later"}
    reader.close()


def test_each_partition_of_the_new_topic_waits_for_a_seek_when_the_policy_is_error(
    broker: EmbeddedBroker, site: Site
) -> None:
    reader = site.reader("assign", **{"auto.offset.reset": "error"})
    with nothing_fetched(broker):
        site.make_anew(MANY)
    site.read(reader, lambda: len(site.errors) >= PARTITIONS)
    assert [(partition, error.code()) for partition, error in site.errors] == [
        (partition, KafkaError._AUTO_OFFSET_RESET) for partition in range(PARTITIONS)]
    assert all("made anew" in error.str() and "seek()" in error.str() for _, error in site.errors)
    assert site.values == []
    site.errors.clear()
    for partition in range(PARTITIONS):
        reader.seek(TopicPartition("t", partition, MANY - FEW))
    site.read(reader, lambda: len(site.values) >= FEW * PARTITIONS)
    assert sorted(site.values) == [(partition, f"new {number}") for partition in range(PARTITIONS)
                                   for number in range(MANY - FEW, MANY)]
    reader.close()


@pytest.mark.parametrize("way", ["range", "cooperative-sticky"])
def test_offsets_of_the_old_topic_are_not_committed_to_the_new(broker: EmbeddedBroker, site: Site, way: str) -> None:
    reader = site.reader(way, **{"auto.commit.interval.ms": 60_000})
    with nothing_fetched(broker):
        site.make_anew(MANY)
        reader.commit()  # by one who does not know yet
        time.sleep(0.3)
    partitions = [TopicPartition("t", partition) for partition in range(PARTITIONS)]
    assert [tp.offset for tp in reader.committed(partitions, PATIENCE_S)] == [OFFSET_INVALID] * PARTITIONS
    site.read(reader, lambda: len(site.values) >= MANY * PARTITIONS)
    site.check(MANY)
    reader.close()
    with site.consumer(**{"group.id": f"by {way}"}) as other:
        assert [tp.offset for tp in other.committed(partitions, PATIENCE_S)] == [MANY] * PARTITIONS


def test_a_topic_that_is_gone_does_not_hold_up_commits_of_others(broker: EmbeddedBroker, site: Site) -> None:
    broker.create_topic("u", 1)
    reader = site.reader("assign", **{"group.id": "g", "enable.auto.commit": False})
    reader.incremental_assign([TopicPartition("u", 0, 0)])
    both = [TopicPartition("t", 0, 5), TopicPartition("u", 0, 1)]
    with site.admin() as admin:
        admin.delete_topics(["t"])["t"].result(PATIENCE_S)
    site.read(reader, lambda: bool(site.errors))
    started = time.monotonic()
    reader.commit(offsets=both)
    [of_t, of_u] = reader.commit(offsets=both, asynchronous=False) or []
    assert time.monotonic() - started < 5
    assert (of_t.error, of_u.error) == (KafkaError.UNKNOWN_TOPIC_OR_PART, None)
    reader.close()


def test_an_asyncio_consumer_reads_all_of_a_topic_that_is_made_anew(broker: EmbeddedBroker, site: Site) -> None:
    async def main() -> None:
        properties = {"bootstrap.servers": site.servers, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100,
                      "error_cb": site.told.append}
        async with AIOConsumer(properties) as reader, asyncio.timeout(PATIENCE_S):
            await reader.assign([TopicPartition("t", partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
            await take(reader, OLD)
            with nothing_fetched(broker):
                await asyncio.to_thread(site.make_anew, MANY)
            await take(reader, MANY)

    async def take(reader: AIOConsumer, count: int) -> None:
        site.values.clear()
        while len(site.values) < count * PARTITIONS:
            site.take(await reader.consume(100, 0.1))

    asyncio.run(main())
    site.check(MANY)


def test_a_reader_of_a_range_ends_when_its_topic_is_made_anew(broker: EmbeddedBroker, site: Site) -> None:
    """As Spark's tasks read: the rest of the range is gone."""
    properties = {"bootstrap.servers": site.servers, "max.partition.fetch.bytes": 100, "fetch.max.bytes": 100,
                  "fetch.wait.max.ms": 100}
    with PartitionReader(properties, "t", 0, 0, OLD + 5) as reader:
        ranges = iter(reader)
        assert next(ranges).fetch_offset == 0
        with nothing_fetched(broker):
            site.make_anew(MANY)
        with pytest.raises(KafkaException, match="made anew") as ended:
            list(ranges)
    assert ended.value.error == KafkaError.UNKNOWN_TOPIC_ID
