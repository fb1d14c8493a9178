"""Consumer groups on real Kafka: sharing, committing, and sharing with librdkafka's members."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import confluent_kafka
import pytest
from real_kafka import make_topic, take, until

from headrace import Consumer, Producer, TopicPartition
from tools.kafka import KafkaCluster


def settings(cluster: KafkaCluster, group: str, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000, "heartbeat.interval.ms": 500, **more}


def fill(cluster: KafkaCluster, topic: str, count: int, partitions: int = 3) -> None:
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for i in range(count):
            producer.produce(topic, str(i).encode(), partition=i % partitions)
        assert producer.flush(30) == 0


@contextmanager
def polling(*consumers: Any) -> Iterator[list[Any]]:
    """Poll several consumers in threads, as programs do; what they receive is gathered."""
    stop = threading.Event()
    received: list[Any] = []

    def poll(consumer: Any) -> None:
        while not stop.is_set():
            received.extend(m for m in consumer.consume(100, 0.1) if m.error() is None)

    threads = [threading.Thread(target=poll, args=(c,)) for c in consumers]
    for thread in threads:
        thread.start()
    try:
        yield received
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)


def partitions_of(consumer: Any) -> set[int]:
    return {partition.partition for partition in consumer.assignment()}


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
def test_two_members_share_and_the_last_takes_over(kafka: KafkaCluster, topic: str, strategy: str) -> None:
    fill(kafka, topic, 300)
    config = settings(kafka, topic, **{"partition.assignment.strategy": strategy})
    with ExitStack() as stack:
        first = stack.enter_context(Consumer(config))
        second = Consumer(config)
        first.subscribe([topic])
        second.subscribe([topic])
        with polling(first, second) as received:
            until(lambda: partitions_of(first) and partitions_of(second))
            assert partitions_of(first).isdisjoint(partitions_of(second))
            until(lambda: len({(m.partition(), m.offset()) for m in received}) == 300)
        second.close()
        with polling(first):
            until(lambda: partitions_of(first) == {0, 1, 2})


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_is_shared_with_librdkafka(kafka: KafkaCluster, topic: str, strategy: str) -> None:
    fill(kafka, topic, 300)
    config = settings(kafka, topic, **{"partition.assignment.strategy": strategy})
    theirs = confluent_kafka.Consumer({**config, "log_level": 0})
    with Consumer(config) as ours:
        theirs.subscribe([topic])
        ours.subscribe([topic])
        with polling(ours, theirs) as received:
            until(lambda: partitions_of(ours) and partitions_of(theirs))
            assert partitions_of(ours) | partitions_of(theirs) == {0, 1, 2}
            until(lambda: len({(m.partition(), m.offset()) for m in received}) == 300)
        theirs.close()
        with polling(ours):
            until(lambda: partitions_of(ours) == {0, 1, 2})


def test_a_static_member_keeps_its_partitions_over_a_restart(kafka: KafkaCluster) -> None:
    topic = make_topic(kafka, 4)
    config = settings(kafka, topic)
    with Consumer({**config, "group.instance.id": "a"}) as stays:
        leaves = Consumer({**config, "group.instance.id": "b"})
        stays.subscribe([topic])
        leaves.subscribe([topic])
        with polling(stays, leaves):
            until(lambda: partitions_of(stays) and partitions_of(leaves))
        before = partitions_of(stays)
        leaves.close()
        with Consumer({**config, "group.instance.id": "b"}) as back, polling(stays, back):
            back.subscribe([topic])
            until(lambda: partitions_of(back))
            assert partitions_of(stays) == before


def test_a_new_partition_is_found_and_read(kafka: KafkaCluster) -> None:
    topic = make_topic(kafka, 1)
    from headrace.admin import AdminClient, NewPartitions

    config = settings(kafka, topic, **{"topic.metadata.refresh.interval.ms": 500})
    with Consumer(config) as consumer, AdminClient({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        consumer.subscribe([topic])
        with polling(consumer):
            until(lambda: partitions_of(consumer) == {0})
            admin.create_partitions([NewPartitions(topic, 2)])[topic].result(10)
            until(lambda: partitions_of(consumer) == {0, 1})


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
