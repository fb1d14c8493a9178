"""Consumer groups on real Kafka: sharing, committing, and sharing with librdkafka's members."""

import threading
import time
from typing import Any

import confluent_kafka
import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.admin import AdminClient, NewPartitions
from tests.support.real_kafka import make_topic, take, until
from tools.kafka import KafkaCluster


def settings(cluster: KafkaCluster, group: str, **more: Any) -> dict[str, Any]:
    return {**cluster.connection, "group.id": group, "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000, "heartbeat.interval.ms": 500, **more}


def fill(cluster: KafkaCluster, topic: str, count: int, partitions: int = 3) -> None:
    with Producer(cluster.connection) as producer:
        for i in range(count):
            producer.produce(topic, str(i).encode(), partition=i % partitions)
        assert producer.flush(30) == 0


class Member:
    """A consumer that a thread of its own polls, as programs do; what it has been given is seen from outside.

    Everything is asked in that thread: librdkafka's Python client hangs when two threads use a consumer at once.
    """

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer
        self.partitions: set[int] = set()
        self.received: set[tuple[int, int]] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def _poll(self) -> None:
        while not self._stop.is_set():
            found = [m for m in self.consumer.consume(100, 0.1) if m.error() is None]
            self.received |= {(m.partition(), m.offset()) for m in found}
            self.partitions = {partition.partition for partition in self.consumer.assignment()}

    def __enter__(self) -> "Member":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(20)


def test_a_committed_offset_is_where_the_next_member_goes_on(kafka: KafkaCluster, topic: str) -> None:
    fill(kafka, topic, 30)
    with Consumer(settings(kafka, topic, **{"enable.auto.commit": False})) as first:
        first.subscribe([topic])
        found = take(first, 30)
        first.commit(offsets=[TopicPartition(topic, p, 5) for p in range(3)], asynchronous=False)
        assert [p.offset for p in first.committed([TopicPartition(topic, 0)], 10)] == [5]
    with Consumer(settings(kafka, topic)) as second:
        second.subscribe([topic])
        rest = take(second, 15)
    assert {(m.partition(), m.offset()) for m in rest} == {
        (m.partition(), m.offset()) for m in found if m.offset() >= 5}


def test_close_commits_what_was_handed_out(kafka: KafkaCluster, topic: str) -> None:
    fill(kafka, topic, 30)
    with Consumer(settings(kafka, topic)) as consumer:
        consumer.subscribe([topic])
        take(consumer, 30)
    with Consumer(settings(kafka, topic)) as consumer:
        committed = consumer.committed([TopicPartition(topic, p) for p in range(3)], 10)
    assert [p.offset for p in committed] == [10, 10, 10]


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
@pytest.mark.parametrize("other", [Consumer, confluent_kafka.Consumer], ids=["ours", "librdkafka"])
def test_two_members_share_and_the_last_takes_over(
    kafka: KafkaCluster, topic: str, other: Any, strategy: str
) -> None:
    fill(kafka, topic, 300)
    config = settings(kafka, topic, **{"partition.assignment.strategy": strategy})
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        leaving = other(config)
        leaving.subscribe([topic])
        with Member(consumer) as first:
            with Member(leaving) as second:
                until(lambda: first.partitions and second.partitions and
                      sorted([*first.partitions, *second.partitions]) == [0, 1, 2])
                until(lambda: len(first.received | second.received) == 300)
            leaving.close()
            until(lambda: first.partitions == {0, 1, 2})


def test_a_static_member_keeps_its_partitions_over_a_restart(kafka: KafkaCluster) -> None:
    topic = make_topic(kafka, 4)
    config = settings(kafka, topic)
    with Consumer({**config, "group.instance.id": "a"}) as consumer:
        leaves = Consumer({**config, "group.instance.id": "b"})
        consumer.subscribe([topic])
        leaves.subscribe([topic])
        with Member(consumer) as stays:
            with Member(leaves) as left:
                until(lambda: len(stays.partitions) == len(left.partitions) == 2)
            before = stays.partitions
            leaves.close()
            with Consumer({**config, "group.instance.id": "b"}) as consumer_again:
                consumer_again.subscribe([topic])
                with Member(consumer_again) as back:
                    until(lambda: len(back.partitions) == 2)
            assert stays.partitions == before


def test_a_new_partition_is_found_and_read(kafka: KafkaCluster) -> None:
    topic = make_topic(kafka, 1)
    config = settings(kafka, topic, **{"topic.metadata.refresh.interval.ms": 500})
    with Consumer(config) as consumer, AdminClient(kafka.connection) as admin:
        consumer.subscribe([topic])
        with Member(consumer) as member:
            until(lambda: member.partitions == {0})
            admin.create_partitions([NewPartitions(topic, 2)])[topic].result(10)
            until(lambda: member.partitions == {0, 1})


def test_callbacks_run_in_the_thread_that_polls(kafka: KafkaCluster, topic: str) -> None:
    seen: list[tuple[str, int, threading.Thread]] = []
    with Consumer(settings(kafka, topic)) as consumer:
        consumer.subscribe(
            [topic],
            on_assign=lambda _c, p: seen.append(("assigned", len(p), threading.current_thread())),
            on_revoke=lambda _c, p: seen.append(("revoked", len(p), threading.current_thread())),
        )
        deadline = time.monotonic() + 20
        while not seen and time.monotonic() < deadline:
            consumer.poll(0.1)
        consumer.unsubscribe()
        deadline = time.monotonic() + 10
        while len(seen) < 2 and time.monotonic() < deadline:
            consumer.poll(0.1)
    me = threading.current_thread()
    assert seen == [("assigned", 3, me), ("revoked", 3, me)]


def test_an_enforced_rebalance_brings_a_new_generation(kafka: KafkaCluster, topic: str) -> None:
    seen: list[str] = []
    with Consumer(settings(kafka, topic)) as consumer:
        consumer.subscribe([topic], on_assign=lambda *_: seen.append("assigned"),
                           on_revoke=lambda *_: seen.append("revoked"))
        until(lambda: consumer.poll(0.1) or seen)
        before = consumer.consumer_group_metadata()
        consumer.enforce_rebalance("the weather has changed")
        until(lambda: consumer.poll(0.1) or seen == ["assigned", "revoked", "assigned"])
        after = consumer.consumer_group_metadata()
        assert before is not None
        assert after is not None
        assert (after.generation, after.member_id) == (before.generation + 1, before.member_id)
    until(lambda: any("the weather has changed" in node.log.read_text() for node in kafka.nodes.values()))
