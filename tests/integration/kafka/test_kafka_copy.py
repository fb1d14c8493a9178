"""`headrace copy --exactly-once` between real clusters: killed, and frozen while another takes its place."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from headrace import Producer
from tests.support.configuration import OLDER, Configuration
from tests.support.real_kafka import make_topic, running, until
from tools.kafka import KafkaCluster

RECORDS = 40_000
COMMAND = [sys.executable, "-c", "import sys; from headrace.cli import main; sys.exit(main())", "copy"]


@pytest.fixture(scope="module")
def older(configured: Configuration) -> Iterator[KafkaCluster]:
    """Another cluster, whose transactions are of version 1."""
    yield from running(configured.cluster(OLDER, brokers=1))


@pytest.fixture
def filled(kafka: KafkaCluster, topic: str) -> str:
    """A topic whose records are numbers, in three partitions."""
    with Producer({**kafka.connection, "linger.ms": 20, "queue.buffering.max.messages": RECORDS}) as producer:
        for number in range(RECORDS):
            producer.produce(topic, str(number), partition=number % 3)
    return topic


def command(source: KafkaCluster, topic: str, target: KafkaCluster, copied: str, *options: str) -> list[str]:
    words = [*COMMAND, topic, copied, "--exactly-once", "--transaction-every", "250", *options]
    for name, value in source.connection.items():
        words += ["-X", f"{name}={value}"]
    if target is not source:
        for name, value in target.connection.items():
            words += ["--to-property", f"{name}={value}"]
    return words


def committed(cluster: KafkaCluster, topic: str) -> list[list[int]]:
    """What somebody else's client reads of each partition at read_committed, in order."""
    found: list[list[int]] = [[], [], []]
    consumer = ConfluentConsumer({**cluster.connection, "group.id": "judge", "enable.partition.eof": True,
                                  "isolation.level": "read_committed"})
    try:
        consumer.assign([ConfluentTopicPartition(topic, number, 0) for number in range(3)])
        ends = 0
        while ends < 3:
            for message in consumer.consume(10_000, 0.3):
                if message.error() is not None:
                    ends += 1
                else:
                    found[message.partition()].append(int(message.value()))
    finally:
        consumer.close()
    return found


def written(cluster: KafkaCluster, topic: str) -> int:
    """How far a topic's partitions go, all together; markers of transactions count, and what is open."""
    consumer = ConfluentConsumer({**cluster.connection, "group.id": "judge"})
    try:
        return sum(consumer.get_watermark_offsets(ConfluentTopicPartition(topic, number))[1] for number in range(3))
    finally:
        consumer.close()


EXPECTED = [list(range(number, RECORDS, 3)) for number in range(3)]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["one cluster", "two clusters"])
def test_a_copy_that_is_killed_again_and_again_has_each_record_once(kafka, older, filled, elsewhere):
    target = older if elsewhere else kafka
    copied = make_topic(target, 3)
    killed = 0
    for turn in range(6):
        with subprocess.Popen(command(kafka, filled, target, copied), stderr=subprocess.PIPE) as process:
            until(lambda: written(target, copied) > turn * RECORDS / 12 or process.poll() is not None)  # noqa: B023
            process.kill()
            said = process.communicate(timeout=60)[1]
        assert process.returncode in (0, -signal.SIGKILL), said
        killed += process.returncode != 0
    assert killed >= 4, "most were to be killed at work"
    done = subprocess.run(command(kafka, filled, target, copied), stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 0, done.stderr
    assert committed(target, copied) == EXPECTED


@pytest.mark.parametrize("elsewhere", [False, True], ids=["one cluster", "two clusters"])
def test_a_copy_that_was_frozen_adds_nothing_when_it_wakes_behind_its_successor(kafka, older, filled, elsewhere):
    target = older if elsewhere else kafka
    copied = make_topic(target, 3)
    with subprocess.Popen(command(kafka, filled, target, copied), stderr=subprocess.PIPE) as frozen:
        try:
            until(lambda: any(committed(target, copied)))
            os.kill(frozen.pid, signal.SIGSTOP)
            done = subprocess.run(command(kafka, filled, target, copied), stderr=subprocess.PIPE, timeout=120)
            os.kill(frozen.pid, signal.SIGCONT)
            said = frozen.communicate(timeout=60)[1]
        finally:
            frozen.kill()
    assert done.returncode == 0, done.stderr
    if frozen.returncode:  # it may have been done before it froze
        assert 2 <= len(said.splitlines()) <= 3, said.decode()
        assert b"the transaction is lost to this producer: " in said
    time.sleep(0.2)
    assert committed(target, copied) == EXPECTED
