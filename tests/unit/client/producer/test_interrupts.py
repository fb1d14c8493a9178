"""Ctrl-C at any moment: each record that was accepted is stored once and reported once, and the producer goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace import Consumer, KafkaError, KafkaSyncProducer, Message, Producer, ProducerRecord, TopicPartition
from headrace.testing import EmbeddedBroker
from tests.support.ctrl_c import INTERRUPTED, CtrlC, keys

__all__ = ["keys"]
pytestmark = [*INTERRUPTED]
TOPIC = "interrupted"


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as started:
        started.create_topic(TOPIC, 1)
        yield started


def stored(broker: EmbeddedBroker) -> int:
    """Records in the topic."""
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
        return consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=10)[1]


@pytest.mark.parametrize(("linger_ms", "at_once", "within_s"), [(0, 1, 2e-4), (0, 20, 5e-4), (5, 5, 0.02)])
@pytest.mark.parametrize("waits_by", ["poll", "flush"])
def test_an_interrupt_leaves_every_record_stored_once_and_with_one_report(
    broker: EmbeddedBroker, keys: CtrlC,
    linger_ms: int, at_once: int, within_s: float, waits_by: str
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": linger_ms})
    producer.produce(TOPIC, b"first")
    assert producer.flush(20) == 0
    reports: list[dict[KafkaError | None, Message]] = []

    def produce() -> None:
        before = len(producer)
        for _ in range(at_once):
            reports.append({})
            producer.produce(TOPIC, b"x", on_delivery=reports[-1].setdefault)  # native: not interrupted by itself
        if waits_by == "flush":
            producer.flush(1)
        while waits_by == "poll" and len(producer) > before:
            producer.poll(0.01)

    keys.again_and_again(within_s, produce, 0.8, 10)
    assert producer.flush(20) == 0
    offsets = [message.offset() for report in reports for message in report.values()]
    assert {error for report in reports for error in report} == {None}
    assert sorted(offsets) == list(range(1, stored(broker)))
    assert [thing for thing in (len(producer), producer._engine.flushes, producer._waits._sleepers) if thing] == []
    producer.close()


def test_an_interrupt_loses_no_event_that_is_to_be_served(broker: EmbeddedBroker, keys: CtrlC) -> None:
    told: list[dict[str, Any]] = [{} for _ in range(20_000)]
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for event in told:
            producer._engine.deliveries.add_notice(event.setdefault, "told", True)

        def serve() -> None:
            producer.poll(0)

        keys.again_and_again(1e-4, serve, 0.5, 10)
        producer.poll(0)
        assert all(told)
        assert not producer._engine.deliveries.pending


def test_a_sync_producer_goes_on_after_it_was_interrupted_at_any_moment(broker: EmbeddedBroker, keys: CtrlC) -> None:
    offsets: list[int] = []
    with KafkaSyncProducer({"bootstrap.servers": broker.bootstrap_servers}) as producer:

        def send() -> None:
            for _ in range(5):
                metadata = producer.send(ProducerRecord(TOPIC, b"v", partition=0))
                offsets.append(metadata.offset)

        keys.again_and_again(0.004, send, 2, 20)
        send()
        assert producer.flush(10) == 0
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == stored(broker) - 1
