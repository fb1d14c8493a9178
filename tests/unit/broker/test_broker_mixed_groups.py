"""One group at the embedded broker: members of ours beside librdkafka's, kafka-python's and Java's."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import closing

import confluent_kafka
import kafka
import pytest

from headrace import Consumer, Producer
from headrace.testing import EmbeddedBroker
from tests.support.kafka_python import KAFKA_PYTHON
from tools.kafka import MissingJavaError, RegistryError, java_tool

pytestmark = [*KAFKA_PYTHON]
EACH = 50


def settings(broker: EmbeddedBroker) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap_servers, "group.id": "mixed", "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range", "session.timeout.ms": 6000, "heartbeat.interval.ms": 200}


def planned(broker: EmbeddedBroker) -> dict[str, object]:
    """Of a member of a group that the coordinator plans for."""
    return {"bootstrap.servers": broker.bootstrap_servers, "group.id": "planned", "auto.offset.reset": "earliest",
            "group.protocol": "consumer"}


def fill(broker: EmbeddedBroker, partitions: int) -> set[bytes]:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        values = {f"{partition}-{i}".encode() for partition in range(partitions) for i in range(EACH)}
        for value in sorted(values):
            producer.produce("t", value, partition=int(value.split(b"-")[0]))
        assert producer.flush(10) == 0
    return values


def until(done: Callable[[], bool], *steps: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline, "not within 30 s"
        for step in steps:
            step()


def test_ours_librdkafka_and_kafka_python_share_a_group() -> None:
    with EmbeddedBroker(topics={"t": 6}) as broker, Consumer(settings(broker)) as ours:
        librdkafka = confluent_kafka.Consumer(settings(broker))
        python = kafka.KafkaConsumer(
            "t", bootstrap_servers=broker.bootstrap_servers, group_id="mixed", auto_offset_reset="earliest",
            partition_assignment_strategy=[kafka.coordinator.assignors.range.RangePartitionAssignor],
            session_timeout_ms=6000, heartbeat_interval_ms=200)
        read: list[bytes] = []
        ours.subscribe(["t"])
        librdkafka.subscribe(["t"])

        def step() -> None:
            for member in (ours, librdkafka):
                read.extend(message.value() for message in member.consume(100, 0.05) if message.error() is None)
            for records in python.poll(50).values():
                read.extend(record.value for record in records)

        with closing(librdkafka), closing(python):
            until(lambda: [len(m.assignment()) for m in (ours, librdkafka, python)] == [2, 2, 2], step)
            values = fill(broker, 6)
            until(lambda: len(read) >= len(values), step)
        assert sorted(read) == sorted(values)


def test_ours_and_librdkafka_share_a_group_that_the_coordinator_plans_for() -> None:
    with EmbeddedBroker(topics={"t": 5}) as broker, Consumer(planned(broker)) as ours:
        librdkafka = confluent_kafka.Consumer(planned(broker))
        read: list[bytes] = []
        ours.subscribe(["t"])
        librdkafka.subscribe(["^t|u"])

        def step() -> None:
            for member in (ours, librdkafka):
                read.extend(message.value() for message in member.consume(100, 0.05) if message.error() is None)

        with closing(librdkafka):
            until(lambda: sorted(len(m.assignment()) for m in (ours, librdkafka)) == [2, 3], step)
            values = fill(broker, 5)
            until(lambda: len(read) >= len(values), step)
        until(lambda: len(ours.assignment()) == 5, lambda: ours.poll(0.05))
        assert sorted(read) == sorted(values)


@pytest.mark.kafka
@pytest.mark.parametrize("group", ["mixed", "planned"])
def test_ours_and_the_java_console_consumer_share_a_group(group: str) -> None:
    of_group = {"mixed": settings, "planned": planned}[group]
    protocol = () if group == "mixed" else ("--command-property", "group.protocol=consumer")
    with EmbeddedBroker(topics={"t": 4}) as broker, Consumer(of_group(broker)) as ours:
        java: list[object] = []

        def run() -> None:
            try:
                java.append(java_tool(
                    "console-consumer", "--bootstrap-server", broker.bootstrap_servers, "--topic", "t", "--group",
                    group, "--from-beginning", "--max-messages", str(2 * EACH), *protocol, timeout_s=60))
            except (MissingJavaError, RegistryError) as error:
                java.append(error)

        read: list[bytes] = []
        ours.subscribe(["t"])

        def step() -> None:
            read.extend(message.value() for message in ours.consume(100, 0.05) if message.error() is None)

        until(lambda: len(ours.assignment()) == 4, step)
        thread = threading.Thread(target=run)
        thread.start()
        until(lambda: bool(java) or len(ours.assignment()) == 2, step)
        values = fill(broker, 4)
        until(lambda: bool(java) and len(read) >= 2 * EACH, step)
        thread.join()
        done = java[0]
        if isinstance(done, Exception):
            assert os.environ.get("CI") != "true", done
            pytest.skip(str(done))
        lines = {line.encode() for line in done.stdout.decode().splitlines()}  # type: ignore[attr-defined]
        assert len(lines & values) == 2 * EACH
        assert sorted(read) == sorted(values - lines)
