"""Which topics a consumer asks the brokers about: those that it reads, and all of them only while it has a pattern."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.client.consumer.consumer import Consumer
from headrace.client.producer.producer import Producer
from headrace.errors import KafkaError
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.types.records import OFFSET_BEGINNING, TopicPartition
from headrace.wire.messages.cluster.metadata import MetadataRequest

SOON_S = 10.0
REFRESH_MS = 100


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"log-1": 1, "log-2": 1, "other": 1}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for topic in ("log-1", "log-2", "other"):
                producer.produce(topic, b"value")
        yield broker


class SessionPartition:
    """The topics of the metadata requests that reached a broker, None for all topics."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.topics: list[list[str | None] | None] = []
        broker.add_fault(Fault(action=Action.DELAY, request=MetadataRequest, times=None, when=self._note))

    def _note(self, request: MetadataRequest) -> bool:
        self.topics.append(None if request.topics is None else sorted(str(topic.name) for topic in request.topics))
        return False  # it is not hurt

    def settle(self, reader: Consumer) -> list[list[str | None] | None]:
        """What is asked for again and again from now on."""
        deadline = time.monotonic() + SOON_S
        while time.monotonic() < deadline:
            count = len(self.topics)
            poll_until(reader, lambda count=count: len(self.topics) >= count + 3)
            if self.topics[-1] == self.topics[-2] == self.topics[-3]:
                return self.topics[-1]
        raise AssertionError(self.topics)


def poll_until(reader: Consumer, happened: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SOON_S
    while not happened():
        assert time.monotonic() < deadline
        reader.poll(0.02)


@pytest.fixture
def reader(broker: EmbeddedBroker) -> Iterator[Consumer]:
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "heartbeat.interval.ms": 50,
                   "auto.offset.reset": "earliest", "topic.metadata.refresh.interval.ms": REFRESH_MS}) as reader:
        yield reader


@pytest.fixture
def asked(broker: EmbeddedBroker) -> SessionPartition:
    return SessionPartition(broker)


def topics(reader: Consumer) -> set[str]:
    return {tp.topic for tp in reader.assignment()}


def test_a_consumer_asks_for_all_topics_only_while_it_has_a_pattern(asked: SessionPartition, reader: Consumer) -> None:
    assert asked.settle(reader) == []
    reader.subscribe(["^log-"])
    poll_until(reader, lambda: topics(reader) == {"log-1", "log-2"})
    assert asked.settle(reader) is None
    reader.subscribe(["other"])
    poll_until(reader, lambda: topics(reader) == {"other"})
    assert asked.settle(reader) == ["other"]
    reader.subscribe(["^log-1", "other"])
    poll_until(reader, lambda: topics(reader) == {"log-1", "other"})
    assert asked.settle(reader) is None
    reader.unsubscribe()
    assert asked.settle(reader) == []


def test_a_consumer_forgets_topics_that_it_does_not_read_any_more(asked: SessionPartition, reader: Consumer) -> None:
    reader.assign([TopicPartition("log-1", 0, OFFSET_BEGINNING)])
    assert asked.settle(reader) == ["log-1"]
    reader.incremental_assign([TopicPartition("other", 0, 0)])
    assert asked.settle(reader) == ["log-1", "other"]
    reader.incremental_unassign([TopicPartition("log-1", 0)])
    assert asked.settle(reader) == ["other"]
    assert reader.get_watermark_offsets(TopicPartition("log-2", 0), 5) == (0, 1)
    assert asked.settle(reader) == ["other"]
    reader.unassign()
    assert asked.settle(reader) == []


def test_a_leader_asks_for_what_other_members_read_as_well(
    broker: EmbeddedBroker, asked: SessionPartition, reader: Consumer
) -> None:
    """For it must notice when their partitions change."""
    reader.subscribe(["log-1"])
    poll_until(reader, lambda: topics(reader) == {"log-1"})
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "heartbeat.interval.ms": 50,
                   "auto.offset.reset": "earliest"}) as other:
        other.subscribe(["other"])
        poll_until(other, lambda: (reader.poll(0.02), topics(other) == {"other"})[1])
        assert asked.settle(reader) == ["log-1", "other"]


def test_a_topic_that_was_not_asked_for_is_not_told_to_be_missing(broker: EmbeddedBroker) -> None:
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "planned", "group.protocol": "consumer",
                   "auto.offset.reset": "latest"}) as reader:
        reader.subscribe(["^log-1$"])
        poll_until(reader, lambda: topics(reader) == {"log-1"})
        metadata, machines = reader._engine.machines.client.metadata, reader._engine.machines

        async def ask(wanted: set[str]) -> int:
            metadata.want_only(wanted, every=False)
            metadata.refresh(machines.clock())
            machines.wake()
            return metadata.updates

        told: list[Any] = []
        for wanted in {"log-1"}, {"other"}:
            before = reader._waits.call(ask(wanted))
            while metadata.updates <= before:
                told.append(reader.poll(0.02))
        assert set(metadata.cluster.topics) == {"other"}
        assert [*told, reader.poll(0.2)] == [None] * (len(told) + 1)


def test_a_partition_that_its_topic_does_not_have_is_told_once_and_none_of_a_topic_that_is_not_there(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.client.consumer.consumer_machines._PROPAGATION_S", 0.3)
    told: list[KafkaError] = []
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "error_cb": told.append}) as reader:
        reader.assign([TopicPartition("log-1", 0, 0), TopicPartition("log-1", 7, 0), TopicPartition("none", 0, 0)])
        poll_until(reader, lambda: told)
        assert [error.code() for error in told] == [KafkaError._UNKNOWN_PARTITION]
        assert "log-1[7]" in told[0].str()
        asked = SessionPartition(broker)
        poll_until(reader, lambda: len(asked.topics) > 3)  # it is still looked for
        assert len(told) == 1
