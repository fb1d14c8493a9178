"""What was sent, for assertions: whole, in order, waited for, and no more than expected."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from headrace import KafkaException, Producer
from headrace.testing import EmbeddedBroker, sent_records


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def send(broker: EmbeddedBroker, topic: str, *numbers: int) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for number in numbers:
            producer.produce(topic, b"%d" % number, partition=number % 2)


def test_records_come_by_partition_and_offset(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 2)
    send(broker, "t", 0, 1, 2, 3)
    assert [message.value() for message in sent_records(broker, "t")] == [b"0", b"2", b"1", b"3"]
    assert len(sent_records(broker, "t", 4)) == 4


def test_an_empty_topic_has_none(broker: EmbeddedBroker) -> None:
    broker.create_topic("empty")
    assert sent_records(broker, "empty") == []


def test_records_that_come_later_are_waited_for(broker: EmbeddedBroker) -> None:
    broker.create_topic("later", 2)
    sender = threading.Timer(0.3, send, (broker, "later", 5))
    sender.start()
    assert [message.value() for message in sent_records(broker, "later", 1)] == [b"5"]
    sender.join()


@pytest.mark.parametrize("count", [1, 3])
def test_fewer_or_more_than_expected_fail_and_show_what_is_there(broker: EmbeddedBroker, count: int) -> None:
    topic = f"wrong-{count}"
    broker.create_topic(topic, 2)
    send(broker, topic, 0, 1)
    with pytest.raises(AssertionError, match=rf"{topic} has 2 records after 3 s, {count} were expected: .Message"):
        sent_records(broker, topic, count, timeout=3)


def test_a_topic_that_does_not_exist_is_an_error(broker: EmbeddedBroker) -> None:
    with pytest.raises(KafkaException):
        sent_records(broker, "nothing")
