"""A share consumer of objects: what cannot be made one costs no other record. Its records are put into its queue."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import confluent_kafka
import pytest

import headrace
from headrace import DeserializingShareConsumer, IllegalStateException, KafkaError
from headrace.machines.share.share_fetcher import AcquiredBatch, ShareFailure
from headrace.machines.share.share_session import ShareSession
from headrace.records import BatchBuilder
from headrace.serialization import IntegerDeserializer, MessageField, SerializationContext
from tests.support.same_as_confluent import QUIET

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "logger": QUIET, "error_cb": lambda _: None,
           "share.acknowledgement.mode": "explicit"}
FOUR = (4).to_bytes(4, "big")


@pytest.fixture
def polled() -> Iterator[Any]:
    """What a consumer with some properties makes of records."""
    made: list[DeserializingShareConsumer] = []

    def poll(records: list[tuple[bytes | None, bytes | None]], **properties: Any) -> list[Any]:
        consumer = DeserializingShareConsumer({**NOWHERE, **{k.replace("_", "."): v for k, v in properties.items()}})
        made.append(consumer)
        consumer.subscribe(["t"])
        builder = BatchBuilder(1 << 20, 1 << 20)
        for key, value in records:
            builder.append(1000, key, value)
        fetcher = consumer._engine.machines.fetcher
        fetcher.queue.append(AcquiredBatch(
            ("t", 0), UUID(int=1), ShareSession(1), [(0, len(records) - 1, 2)], builder.seal(0).data, float("inf")))
        fetcher.queue.append(ShareFailure(("t", 1), KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
        messages = list(consumer.poll(0))
        for message in messages[:-1]:
            consumer.acknowledge(message, headrace.AcknowledgeType.REJECT)
        return messages

    yield poll
    for consumer in made:
        consumer.close()


def test_keys_and_values_are_objects(polled: Any) -> None:
    message, failure = polled([(FOUR, b"x")], key_deserializer=IntegerDeserializer(),
                              value_deserializer=lambda value, context: (value, context.topic, context.field))
    assert (message.key(), message.value()) == (4, (b"x", "t", MessageField.VALUE))
    assert (message.error(), message.delivery_count()) == (None, 2)
    assert failure.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_what_cannot_be_deserialized_keeps_its_bytes_and_costs_no_other_record(polled: Any) -> None:
    def fail(value: bytes | None, context: SerializationContext) -> Any:
        if value == b"bad":
            raise ValueError("no such thing")
        return value

    both: Any = {"key_deserializer": IntegerDeserializer(), "value_deserializer": fail}
    first, second, third, _ = polled([(b"k", b"good"), (FOUR, b"bad"), (FOUR, b"good")], **both)
    assert (first.error().code(), first.key(), first.value()) == (KafkaError._KEY_DESERIALIZATION, b"k", b"good")
    assert (second.error().code(), second.key(), second.value()) == (KafkaError._VALUE_DESERIALIZATION, FOUR, b"bad")
    assert second.error().str() == "no such thing"
    assert (third.error(), third.key(), third.value()) == (None, 4, b"good")


def test_without_deserializers_bytes_stay_bytes(polled: Any) -> None:
    assert [message.value() for message in polled([(None, b"x")])] == [b"x", None]


def test_it_is_a_share_consumer_with_confluents_arguments() -> None:
    def arguments(kafka: Any) -> list[str]:
        return [*inspect.signature(kafka.DeserializingShareConsumer.__init__).parameters,
                *inspect.signature(kafka.DeserializingShareConsumer.poll).parameters]

    assert arguments(headrace) == arguments(confluent_kafka)
    with DeserializingShareConsumer(NOWHERE) as consumer, pytest.raises(IllegalStateException, match="not subscribed"):
        consumer.poll(0)


def test_a_loop_may_be_left_at_any_record_and_the_next_one_goes_on_there() -> None:
    made: list[bytes | None] = []
    with DeserializingShareConsumer({**NOWHERE, "share.acknowledgement.mode": "implicit",
                                     "value.deserializer": lambda value, _: made.append(value)}) as consumer:
        consumer.subscribe(["t"])
        builder = BatchBuilder(1 << 20, 1 << 20)
        for number in range(6):
            builder.append(1000, None, b"%d" % number)
        consumer._engine.machines.fetcher.queue.append(AcquiredBatch(
            ("t", 0), UUID(int=1), ShareSession(1), [(0, 5, 1)], builder.seal(0).data, float("inf")))
        seen = [next(message.offset() for message in consumer) for _ in range(3)]
        assert [*seen, *(message.offset() for message in consumer.poll(0))] == [*range(6)]
    assert made == [b"%d" % number for number in range(6)], "objects are made once of each"
