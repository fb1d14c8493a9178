"""What an acknowledgement is worth at three real brokers: who has the record, who can read it, and when it is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from headrace import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    KafkaSyncProducer,
    Producer,
    ProducerRecord,
    TopicPartition,
)
from tests.support.real_kafka import make_topic, until
from tools.kafka import KafkaCluster

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.timeout(300)]


def leader_of(producer: Producer, topic: str) -> int:
    leader = producer.list_topics(topic, 30).topics[topic].partitions[0].leader
    assert isinstance(leader, int)
    return leader


def readable(conf: dict[str, Any], topic: str, wait_s: float) -> list[bytes | None]:
    """What a reader finds in the topic within a time."""
    with Consumer({**conf, "group.id": "reader", "enable.auto.commit": False}) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found, ends_at = [], time.monotonic() + wait_s
        while time.monotonic() < ends_at:
            found += [message.value() for message in consumer.consume(10, 0.2) if message.error() is None]
    return found


def told(producer: Producer, topic: str, value: bytes) -> Callable[[], list[KafkaError | None]]:
    reports: list[KafkaError | None] = []
    producer.produce(topic, value, on_delivery=lambda error, message: reports.append(error))

    def reported() -> list[KafkaError | None]:
        producer.poll(0)
        return reports

    return reported


def await_stored(reported: Callable[[], list[KafkaError | None]]) -> None:
    until(lambda: reported() == [None], 60)


def test_the_leaders_word_is_early_and_may_be_lost_that_of_all_is_late_and_holds(three_brokers: KafkaCluster) -> None:
    topic, conf = make_topic(three_brokers, 1), {**three_brokers.connection, "message.timeout.ms": 60_000}
    with Producer({**conf, "acks": 1}) as one, Producer({**conf, "acks": "all", "request.timeout.ms": 3000}) as every:
        for producer in (one, every):
            await_stored(told(producer, topic, b"first"))
        leader = leader_of(one, topic)
        followers = set(three_brokers.nodes) - {leader}
        for node in followers:
            three_brokers.pause(node)
        time.sleep(2)  # the answers that they waited for when they froze are empty
        await_stored(told(one, topic, b"leader only"))
        of_all = told(every, topic, b"all")
        assert readable({**conf, "bootstrap.servers": address_of(three_brokers, leader)}, topic, 3) == [b"first"] * 2
        assert of_all() == []  # stored by the leader as well, and not acknowledged
        three_brokers.kill(leader)
        for node in followers:
            three_brokers.resume(node)
        await_stored(of_all)  # sent again, to the new leader
        assert readable(conf, topic, 3) == [b"first", b"first", b"all"]  # what only the old leader had is lost
        three_brokers.restart(leader)


def address_of(cluster: KafkaCluster, node: int) -> str:
    return cluster.connection["bootstrap.servers"].split(",")[sorted(cluster.nodes).index(node)]


def test_with_too_few_replicas_in_sync_only_records_for_all_of_them_are_refused(three_brokers: KafkaCluster) -> None:
    topic, conf = make_topic(three_brokers, 1, **{"min.insync.replicas": "3"}), dict(three_brokers.connection)
    with Producer({**conf, "acks": 1}) as one, KafkaSyncProducer({**conf, "acks": "all"}) as every:
        every.send(ProducerRecord(topic, b"first"))
        missing = min(set(three_brokers.nodes) - {leader_of(one, topic)})
        three_brokers.kill(missing)

        def refused() -> bool:
            with KafkaSyncProducer({**conf, "acks": "all", "message.timeout.ms": 2000}) as impatient:
                try:
                    impatient.send(ProducerRecord(topic, b"too few"))
                except KafkaException as failed:
                    return KafkaError(KafkaError.NOT_ENOUGH_REPLICAS).str() in failed.error.str()
            return False

        until(refused, 90)
        assert one.send(ProducerRecord(topic, b"leader")).result(30).has_offset()
        three_brokers.restart(missing)
        assert every.send(ProducerRecord(topic, b"last")).has_offset()  # waited for
