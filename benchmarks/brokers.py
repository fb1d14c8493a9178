"""The broker that the clients of one run share, and its topics.

Topics are made and checked with confluent-kafka, so that ours is judged by somebody else.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from benchmarks.measure import ROOT, ChildError
from tools.kafka import KafkaCluster, KafkaStartError, MissingJavaError, RegistryError

_PROPERTIES = {"log.segment.delete.delay.ms": "0"}
"""The pages of a deleted topic are free at once: the next one need not take new ones, whose price varies
by a factor of three."""
_MOST_AT_ONCE = 5_000
"""Partitions that one request makes: a controller takes at most 10,000 records of metadata, topics included."""
_LEADERS_S = 300.0


@dataclass(slots=True)
class Broker:
    """A running broker: how to reach it, what it is, and what CPU it has used."""

    bootstrap_servers: str
    about: str
    cpu_s: Callable[[], float | None]

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic and wait until it has leaders."""
        from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic(name, min(partitions, _MOST_AT_ONCE), 1)])[name].result(30)
        for count in range(2 * _MOST_AT_ONCE, partitions + _MOST_AT_ONCE, _MOST_AT_ONCE):
            admin.create_partitions([NewPartitions(name, min(count, partitions))])[name].result(30)
        deadline = time.monotonic() + _LEADERS_S
        while time.monotonic() < deadline:
            topic = admin.list_topics(timeout=30).topics.get(name)
            if topic is not None and len(topic.partitions) == partitions:
                return
            time.sleep(0.05)
        raise TimeoutError(f"the topic {name} has no leaders after {_LEADERS_S:g} s")

    def delete_topic(self, name: str) -> None:
        """Remove a topic, so that the next run finds the same amount of memory."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        admin.delete_topics([name])[name].result(30)

    def record_count(self, topic: str, partitions: int) -> int:
        """Records in a topic, from the partitions' offsets."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": "count"})
        try:
            marks = [consumer.get_watermark_offsets(TopicPartition(topic, p), 30) for p in range(partitions)]
            return sum(high - low for low, high in marks)
        finally:
            consumer.close()


@contextlib.contextmanager
def kafka(version: str, nodes: int = 1, properties: Mapping[str, str] = MappingProxyType({})) -> Iterator[Broker]:
    """Real Apache Kafka, in Java processes of its own, with further properties."""
    with KafkaCluster(version, nodes, heap_mb=1024, properties={**_PROPERTIES, **properties}) as cluster:
        about = f"Apache Kafka {version}, {nodes} node{'s' if nodes > 1 else ''}, 1 GB heap"
        yield Broker(cluster.bootstrap_servers, about, cluster.cpu_s)


@contextlib.contextmanager
def embedded() -> Iterator[Broker]:
    """Our own broker in a process of its own, its log in memory."""
    command = [sys.executable, "-m", "headrace.cli", "broker", "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("bootstrap.servers="):
                    address = line.strip().partition("=")[2]
                    yield Broker(address, "headrace's embedded broker, log in memory", lambda: _cpu_s(process.pid))
                    return
            raise RuntimeError(f"the embedded broker did not start: {' '.join(command)}")
        finally:
            process.terminate()


def _cpu_s(pid: int) -> float | None:
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


Main = Callable[[list[str]], int]


def failures_told(*others: type[Exception]) -> Callable[[Main], Main]:
    """Have a benchmark's `main` say in a line why it could not measure, and return 1.

    Args:
        others: further errors that are told so.
    """
    told: tuple[type[Exception], ...] = (MissingJavaError, RegistryError, KafkaStartError, ChildError, *others)

    def around(main: Main) -> Main:
        @functools.wraps(main)
        def telling(argv: list[str]) -> int:
            try:
                return main(argv)
            except told as error:
                print(f"benchmarks: {error}", file=sys.stderr)
                return 1
        return telling
    return around
