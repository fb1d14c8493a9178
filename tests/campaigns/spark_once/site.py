"""Where it all happens: real Apache Kafka, a topic with numbered records, and a reader of what comes out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Self

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.campaigns.chaos.reader import messages_of
from tests.support.raw_client import RawClient
from tools.kafka import KafkaCluster

PARTITIONS: Final = 4
_PROPERTIES: Final = {
    "broker.session.timeout.ms": "5000",  # a killed broker's partitions move sooner
    "broker.heartbeat.interval.ms": "1000",
    "unclean.leader.election.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",  # transactions expire when they are due
}
_LATE_S: Final = 240.0


class OnceSite:
    """A running cluster with one input, which all cases share; a context manager.

    Args:
        version: of Kafka.
        nodes: 1 or 3.
        rows: how many records the input has.

    Attributes:
        sent: the numbers of the input by partition.
    """

    def __init__(self, version: str, nodes: int, rows: int) -> None:
        isr = "2" if nodes > 1 else "1"
        self.cluster = KafkaCluster(version, nodes, heap_mb=384, quick=True, properties={
            **_PROPERTIES, "transaction.state.log.min.isr": isr, "min.insync.replicas": isr})
        self.sent = {partition: list(range(partition, rows, PARTITIONS)) for partition in range(PARTITIONS)}
        self.input = ""
        self._topics = 0

    def __enter__(self) -> Self:
        self.cluster.start()
        self._admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        self.input = self.make_topic()
        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for partition, numbers in self.sent.items():
            for number in numbers:
                producer.produce(self.input, b"%d" % number, partition=partition)
            assert producer.flush(60) == 0
        return self

    def __exit__(self, *exception: object) -> None:
        self.cluster.close()

    @property
    def servers(self) -> str:
        return self.cluster.bootstrap_servers

    def make_topic(self) -> str:
        """A new topic with a replica on each broker."""
        self._topics += 1
        name = f"once-{self._topics}"
        self._admin.create_topics([NewTopic(name, PARTITIONS, len(self.cluster.nodes))])[name].result(60)
        until(lambda: len(self.leaders(name)) == PARTITIONS, f"{name} has no leaders")
        return name

    def leaders(self, topic: str) -> dict[int, int]:
        """The brokers that lead the partitions of a topic, as far as they are known."""
        try:
            partitions = self._admin.list_topics(topic, timeout=5).topics[topic].partitions
        except Exception:  # confluent_kafka's, while brokers come and go
            return {}
        return {number: each.leader for number, each in partitions.items() if each.leader in self.cluster.nodes}

    def coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates a transactional id."""
        from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest

        with RawClient(self.servers) as client:
            reply = client.call(FindCoordinatorRequest(coordinator_keys=[transactional_id], key_type=1), 4)
            return int(reply.coordinators[0].node_id)

    def committed(self, topic: str) -> dict[int, list[int]]:
        """The committed numbers of a topic, by partition.

        Raises:
            TimeoutError: a transaction stays open.
        """
        return self._numbers(topic, "read_committed")

    def uncommitted(self, topic: str) -> int:
        """How many records a topic has, those of aborted transactions included."""
        return sum(map(len, self._numbers(topic, "read_uncommitted").values()))

    def end(self, topic: str, isolation: str = "read_uncommitted") -> int:
        """The sum of the end offsets of a topic, or of the last stable ones at read_committed."""
        consumer = confluent_kafka.Consumer({
            "bootstrap.servers": self.servers, "group.id": "once-end", "isolation.level": isolation, "log_level": 0})
        try:
            return sum(consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, p), 10)[1]
                       for p in range(PARTITIONS))
        finally:
            consumer.close()

    def group_offsets(self, group: str) -> dict[int, int]:
        """The offsets of the input that a group has committed, by partition."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.servers, "group.id": group, "log_level": 0})
        try:
            asked = [confluent_kafka.TopicPartition(self.input, partition) for partition in range(PARTITIONS)]
            return {each.partition: each.offset for each in consumer.committed(asked, 30)}
        finally:
            consumer.close()

    def _numbers(self, topic: str, isolation: str) -> dict[int, list[int]]:
        log: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        for message in messages_of(self.servers, topic, PARTITIONS, isolation):
            log[message.partition()].append(int(message.value()))
        return log


def until(condition: Callable[[], Any], what: str, timeout_s: float = _LATE_S) -> None:
    """Wait for something that other processes bring about.

    Raises:
        TimeoutError: it did not happen; the text says what.
    """
    give_up_at = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{what} within {timeout_s:.0f} s")
        time.sleep(0.05)
