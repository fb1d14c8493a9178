"""Transactions on real Kafka: 4.4.0 speaks version 2, 3.9.2 version 1. Three readers agree on what is committed."""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import confluent_kafka
import pytest

from headrace import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from headrace.machines.producer.transactions import ConsumerGroupMetadata
from tests.support.configuration import GENERAL, OLDER, Configuration
from tests.support.real_kafka import make_topic, read_all, running, take, until
from tools.kafka import KafkaCluster

_NUMBERS = count()
QUICK = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


@pytest.fixture(scope="module")
def older(configured: Configuration) -> Iterator[KafkaCluster]:
    yield from running(configured.cluster(OLDER))


@pytest.fixture(params=[GENERAL, pytest.param(OLDER, marks=pytest.mark.slow)])
def site(request: pytest.FixtureRequest, configured: Configuration) -> KafkaCluster:
    """Kafka with transactions version 2, and with version 1."""
    found: KafkaCluster = request.getfixturevalue("kafka" if request.param == configured.version else "older")
    return found


@pytest.fixture(scope="module", params=[GENERAL, OLDER])
def impatient(request: pytest.FixtureRequest, configured: Configuration) -> Iterator[KafkaCluster]:
    """Coordinators that look every half second for transactions whose time is over."""
    yield from running(configured.cluster(request.param, properties=QUICK))


@contextmanager
def transactional(cluster: KafkaCluster, name: str | None = None, **more: Any) -> Iterator[Producer]:
    config = {**cluster.connection, "linger.ms": 1,
              "transactional.id": name or f"x-{next(_NUMBERS)}", **more}
    with Producer(config) as producer:
        producer.init_transactions(30)
        yield producer


def machine(producer: Producer) -> Any:
    assert producer._engine.transactions is not None
    return producer._engine.transactions.machine


def refused(call: Callable[..., Any], *arguments: Any) -> KafkaError:
    with pytest.raises(KafkaException) as raised:
        call(*arguments)
    return raised.value.error


def values(messages: list[Any]) -> list[str]:
    return sorted(message.value().decode() for message in messages)


def committed(cluster: KafkaCluster, group: str, topic: str) -> int:
    with Consumer({**cluster.connection, "group.id": group}) as consumer:
        return consumer.committed([TopicPartition(topic, 0)], 20)[0].offset


def test_three_readers_see_the_committed_transactions_and_no_other(site: KafkaCluster) -> None:
    topic = make_topic(site, 3)
    expected = []
    with transactional(site) as producer:
        for number in range(8):
            producer.begin_transaction()
            for record in range(60):
                producer.produce(topic, f"{number}-{record}", partition=record % 3)
            if number % 4 == 3:
                producer.flush(30)
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
                expected += [f"{number}-{record}" for record in range(60)]
        assert machine(producer).version == (2 if site.version == GENERAL else 1)
        assert machine(producer).epoch == (8 if site.version == GENERAL else 0)
    assert values(read_all(site, topic, len(expected))) == sorted(expected)
    assert len(read_all(site, topic, 480, **{"isolation.level": "read_uncommitted"})) == 480
    theirs = confluent_kafka.Consumer({
        **site.connection, "group.id": f"theirs-{topic}", "auto.offset.reset": "earliest"})
    try:
        theirs.subscribe([topic])
        assert values(take(theirs, len(expected))) == sorted(expected)
    finally:
        theirs.close()
    for timeout_s in (4, 16, 64):  # it may be late, and nothing says when it has got the last one
        done = site.java_tool("console-consumer", "--topic", topic, "--from-beginning", "--isolation-level",
                              "read_committed", "--timeout-ms", f"{timeout_s}000", timeout_s=timeout_s + 60)
        lines = done.stdout.decode().splitlines()  # it also says there that time was up
        found = sorted(line for line in lines if re.fullmatch(r"\d+-\d+", line))
        if len(found) >= len(expected):
            break
    assert found == sorted(expected)


def test_offsets_count_when_the_transaction_does(site: KafkaCluster) -> None:
    topic, group = make_topic(site, 1), f"g-{next(_NUMBERS)}"
    with transactional(site) as producer:
        with producer.transaction() as transaction:
            transaction.send_offsets([TopicPartition(topic, 0, 5)], ConsumerGroupMetadata(group))
            transaction.send_offsets([TopicPartition(topic, 0, 7)], ConsumerGroupMetadata(group))
            transaction.send_offsets([TopicPartition(topic, 0, 3)], ConsumerGroupMetadata(f"{group}-2"))
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 9)], ConsumerGroupMetadata(group), 20)
        producer.abort_transaction(20)
    assert (committed(site, group, topic), committed(site, f"{group}-2", topic)) == (7, 3)


def test_offsets_of_a_member_that_left_are_refused_and_the_transaction_can_be_aborted(site: KafkaCluster) -> None:
    topic, group = make_topic(site, 1), f"g-{next(_NUMBERS)}"
    config = {**site.connection, "group.id": group, "auto.offset.reset": "earliest"}
    with transactional(site) as producer:
        with producer.transaction():
            producer.produce(topic, b"v")
        with Consumer(config) as consumer:
            consumer.subscribe([topic])
            take(consumer, 1)
            place = consumer.consumer_group_metadata()
            with producer.transaction() as transaction:
                transaction.send_offsets(consumer.position(consumer.assignment()), place)
        producer.begin_transaction()
        error = refused(producer.send_offsets_to_transaction, [TopicPartition(topic, 0, 0)], place, 20)
        assert error.txn_requires_abort()
        producer.abort_transaction(20)
        with producer.transaction():
            producer.produce(topic, b"w")
    assert committed(site, group, topic) >= 1


def test_whoever_comes_last_fences_the_others_and_is_left_alone_by_them(site: KafkaCluster) -> None:
    topic, name = make_topic(site, 1), f"x-{next(_NUMBERS)}"
    with transactional(site, name) as zombie:
        zombie.begin_transaction()
        zombie.produce(topic, b"zombie")
        zombie.flush(30)
        with transactional(site, name) as successor:
            successor.begin_transaction()
            successor.produce(topic, b"successor")
            successor.flush(30)
            error = refused(zombie.abort_transaction, 20)
            assert (error.code(), error.fatal()) == (KafkaError._FENCED, True)
            assert refused(zombie.begin_transaction).fatal()
            successor.commit_transaction(30)
    assert values(read_all(site, topic, 1)) == ["successor"]


def test_a_fenced_producer_that_commits_is_told(site: KafkaCluster) -> None:
    topic, name = make_topic(site, 1), f"x-{next(_NUMBERS)}"
    with transactional(site, name) as zombie:
        zombie.begin_transaction()
        zombie.produce(topic, b"zombie")
        zombie.flush(30)
        with transactional(site, name):
            assert refused(zombie.commit_transaction, 20) == KafkaError._FENCED
        assert read_all(site, topic, 0) == []


def test_aborting_right_after_a_commit_does_not_end_the_producer(site: KafkaCluster) -> None:
    """The markers of the transaction before are still being written then."""
    topic = make_topic(site, 3)
    with transactional(site) as producer:
        for number in range(30):
            with producer.transaction():
                for partition in range(3):
                    producer.produce(topic, f"{number}", partition=partition)
            producer.begin_transaction()
            producer.produce(topic, b"dropped", partition=0)
            producer.abort_transaction(20)
    assert values(read_all(site, topic, 90)) == sorted(f"{number}" for number in range(30) for _ in range(3))


def test_closing_lets_readers_go_on_at_once(site: KafkaCluster) -> None:
    topic = make_topic(site, 1)
    with transactional(site) as producer:
        producer.begin_transaction()
        producer.produce(topic, b"left open")
        producer.flush(30)
    with transactional(site) as producer, producer.transaction():
        producer.produce(topic, b"v")
    started = time.monotonic()
    assert values(read_all(site, topic, 1)) == ["v"]
    assert time.monotonic() - started < 20


@pytest.mark.slow
@pytest.mark.parametrize("call", ["commit_transaction", "abort_transaction"])
def test_a_transaction_that_is_open_for_too_long_is_never_committed(impatient: KafkaCluster, call: str) -> None:
    topic = make_topic(impatient, 1)
    with transactional(impatient, **{"transaction.timeout.ms": 1000}) as producer:
        producer.begin_transaction()
        producer.produce(topic, b"late")
        producer.flush(30)
        other = f"after-{next(_NUMBERS)}"
        with transactional(impatient, other) as neighbour, neighbour.transaction():
            neighbour.produce(topic, b"v")
        assert values(read_all(impatient, topic, 1)) == ["v"]  # the coordinator has ended it
        if impatient.version == "3.9.2":  # says the same as if another producer had taken over
            assert refused(getattr(producer, call), 20) == KafkaError._FENCED
            return
        if call == "commit_transaction":
            assert refused(producer.commit_transaction, 20).txn_requires_abort()
        producer.abort_transaction(20)
        with producer.transaction():
            producer.produce(topic, b"w")
    assert values(read_all(impatient, topic, 2)) == ["v", "w"]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_cluster_changes_its_version_of_transactions_under_a_producer(own_kafka: KafkaCluster) -> None:
    topic, versions, written = make_topic(own_kafka, 1), [], 0

    def settle(way: str, level: int) -> None:
        done = own_kafka.java_tool(
            "org.apache.kafka.tools.FeatureCommand", way, "--feature", f"transaction.version={level}")
        assert done.returncode == 0, done.stdout + done.stderr

    with transactional(own_kafka) as producer:
        for way, level in (("", 2), ("downgrade", 1), ("upgrade", 2)):
            if way:
                settle(way, level)
                own_kafka.kill(1)  # features are told when a connection is made
                own_kafka.restart(1)
            for number in range(10):
                producer.begin_transaction()
                producer.produce(topic, f"{level}-{number}")
                if number % 3 == 2:
                    producer.flush(60)
                    producer.abort_transaction(60)
                else:
                    producer.commit_transaction(60)
                    written += 1
                versions.append(machine(producer).version)
    assert (versions[0], versions[19], versions[-1]) == (2, 1, 2)
    assert len(read_all(own_kafka, topic, written)) == written


class Copier:
    """Copies one topic to another in transactions: consume, produce, send the offsets, commit; over and over."""

    def __init__(self, cluster: KafkaCluster, source: str, target: str) -> None:
        self.copied = 0
        self.aborted = 0
        self.renewed = 0
        self._cluster, self._source, self._target = cluster, source, target
        self._stop = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Copier:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join(120)
        assert not self._thread.is_alive()
        assert self._failed is None, self._failed

    def _run(self) -> None:
        config = {**self._cluster.connection, "group.id": f"copy-{self._target}",
                  "auto.offset.reset": "earliest", "enable.auto.commit": False}
        try:
            with Consumer(config) as consumer:
                consumer.subscribe([self._source])
                while not self._stop.is_set():
                    name = f"copy-{self._target}"
                    with transactional(self._cluster, name, **{"request.timeout.ms": 5000}) as producer:
                        self._copy(consumer, producer)
                    self.renewed += 1
        except BaseException as error:
            self._failed = error

    def _copy(self, consumer: Consumer, producer: Producer) -> None:
        while not self._stop.is_set():
            messages = consumer.consume(200, 0.5)
            if not messages:
                continue
            try:
                with producer.transaction() as transaction:
                    for message in messages:
                        producer.produce(self._target, message.value(), partition=message.partition())
                    transaction.send_offsets(consumer.position(consumer.assignment()),
                                             consumer.consumer_group_metadata())
                self.copied += len(messages)
            except KafkaException as failed:
                self.aborted += 1
                for place in consumer.committed(consumer.assignment(), 60):
                    assert place.error is None, place.error
                    place.offset = max(place.offset, 0)
                    consumer.seek(place)
                if failed.error.fatal():
                    return


def copy_through(cluster: KafkaCluster, disturb: Callable[[], None]) -> None:
    """Copy while records come in and something happens to the cluster; all must arrive once and in order."""
    source, target = make_topic(cluster, 3), make_topic(cluster, 3)
    written, stop = [0], threading.Event()

    def write() -> None:
        config = {**cluster.connection, "message.timeout.ms": 120_000, "linger.ms": 5}
        with Producer(config) as producer:
            while not stop.is_set():
                for _ in range(30):
                    producer.produce(source, str(written[0]), partition=written[0] % 3)
                    written[0] += 1
                producer.poll(0.05)

    writer = threading.Thread(target=write)
    with Copier(cluster, source, target) as copier:
        writer.start()
        try:
            until(lambda: copier.copied > 500)
            disturb()
            before = copier.copied
            until(lambda: copier.copied > before + 500, 90)
        finally:
            stop.set()
            writer.join(130)
        until(lambda: copier.copied >= written[0], 90)
    by_partition: dict[int, list[int]] = defaultdict(list)
    for message in read_all(cluster, target, written[0]):
        by_partition[message.partition()].append(int(message.value()))
    assert {p: found == sorted(set(found)) for p, found in by_partition.items()} == {0: True, 1: True, 2: True}
    assert sorted(number for found in by_partition.values() for number in found) == list(range(written[0]))


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(400)
@pytest.mark.parametrize("version", [GENERAL, OLDER])
def test_every_record_is_copied_once_although_each_broker_is_killed_in_turn(
    configured: Configuration, version: str
) -> None:
    for cluster in running(configured.cluster(version, 3)):
        def disturb(cluster: KafkaCluster = cluster) -> None:
            for node_id in cluster.nodes:
                cluster.kill(node_id)
                time.sleep(3)
                cluster.restart(node_id)
                time.sleep(5)

        copy_through(cluster, disturb)


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(400)
def test_every_record_is_copied_once_although_a_broker_freezes(three_brokers: KafkaCluster) -> None:
    def disturb() -> None:
        three_brokers.pause(1)
        time.sleep(15)
        three_brokers.resume(1)
        time.sleep(3)

    copy_through(three_brokers, disturb)
