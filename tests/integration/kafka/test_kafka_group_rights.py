"""A consumer whose user may not use its group: whoever polls, asks or commits is told so at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

import headrace
from headrace import KafkaError, KafkaException, Producer, TopicPartition
from headrace.admin import AdminClient, NewTopic
from tests.support.real_kafka import frozen, until
from tests.support.rights import allowed, as_nobody
from tools.kafka import KafkaCluster

REFUSED = KafkaError.GROUP_AUTHORIZATION_FAILED
AT_ONCE_S = 5.0


@pytest.fixture(scope="module")
def reader(secured: KafkaCluster) -> Iterator[dict[str, Any]]:
    """Properties of a consumer that may read the topic, and has no group."""
    properties = {**as_nobody(secured), "group.id": "closed", "auto.offset.reset": "earliest"}
    with allowed(secured, "topic", "orders", "read"):
        with headrace.Consumer({**properties, "group.id": ""}) as consumer:
            until(lambda: consumer.list_topics("orders", timeout=10).topics["orders"].error is None)
        yield properties


def first_told(consumer: Any, errors: list[Any]) -> tuple[int, str | None]:
    """What the first message says, of the peer and of ours alike; and nothing went elsewhere."""
    end = time.monotonic() + 20
    while (message := consumer.poll(0.5)) is None:
        assert time.monotonic() < end, "nobody says why nothing comes"
    consumer.close()
    assert errors == []
    return message.error().code(), message.topic()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("how", ["subscribe", "assign"])
def test_who_polls_gets_the_refusal_as_with_confluent_kafka(reader: dict[str, Any], how: str, protocol: str) -> None:
    found = []
    for module, more in ((confluent_kafka, {"log_level": 0}), (headrace, {})):
        errors: list[Any] = []
        consumer = module.Consumer({**reader, **more, "group.protocol": protocol, "error_cb": errors.append})
        if how == "subscribe":
            consumer.subscribe(["orders"])
        else:
            consumer.assign([module.TopicPartition("orders", 0)])
        found.append(first_told(consumer, errors))
    assert found == [(REFUSED, None)] * 2


def test_columns_and_share_groups_are_refused_as_well(reader: dict[str, Any]) -> None:
    with headrace.Consumer(reader) as consumer:
        consumer.subscribe(["orders"])
        with pytest.raises(KafkaException, match='needs READ on group "closed"') as refused:
            consumer.consume_arrow(10, 20)
    assert refused.value.error == REFUSED
    share = headrace.ShareConsumer({name: value for name, value in reader.items() if name != "auto.offset.reset"})
    share.subscribe(["orders"])
    with pytest.raises(KafkaException, match='needs READ on group "closed"') as refused:
        share.poll(20)
    share.close()
    assert refused.value.error == REFUSED


def test_offsets_are_neither_asked_for_nor_committed_and_nobody_waits(reader: dict[str, Any]) -> None:
    began = time.monotonic()
    with headrace.Consumer(reader) as consumer:
        with pytest.raises(KafkaException, match='needs READ on group "closed"') as refused:
            consumer.committed([TopicPartition("orders", 0)], 60)
        assert refused.value.error == REFUSED
        with pytest.raises(KafkaException, match='needs READ on group "closed"') as refused:
            consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
        assert refused.value.error == REFUSED
    assert time.monotonic() - began < AT_ONCE_S


def test_who_is_given_the_right_later_goes_on_by_itself(secured: KafkaCluster, reader: dict[str, Any]) -> None:
    with headrace.Consumer({**reader, "group.id": "opened"}) as consumer:
        consumer.subscribe(["orders"])
        message = consumer.poll(20)
        assert message is not None
        assert message.error() == REFUSED
        with allowed(secured, "group", "opened", "read"):
            end = time.monotonic() + 30
            while (message := consumer.poll(1.0)) is None:
                assert time.monotonic() < end
            assert (message.error(), message.value()) == (None, b"one")
            consumer.unsubscribe()


def test_a_producer_without_any_right_says_which_one_it_needs(secured: KafkaCluster, reader: dict[str, Any]) -> None:
    told: list[KafkaError | None] = []
    with frozen(secured):
        producer = Producer(as_nobody(secured))
        producer.produce("orders", "two", on_delivery=lambda error, message: told.append(error))
    with producer:
        producer.flush(20)
    (error,) = told
    assert error == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert "needs WRITE on a topic, or IDEMPOTENT_WRITE on the cluster" in error.str()


@pytest.mark.parametrize("how", ["subscribe", "assign"])
def test_a_consumer_reads_on_soon_after_it_is_given_the_right_to_its_topic(secured: KafkaCluster, how: str) -> None:
    topic = f"hidden-{how}"
    with AdminClient(secured.client_properties()) as admin, Producer(secured.client_properties()) as producer:
        admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
        producer.produce(topic, "one")
    properties = {**as_nobody(secured), "group.id": "late", "auto.offset.reset": "earliest"}
    with allowed(secured, "group", "late", "read"), headrace.Consumer(properties) as consumer:
        if how == "subscribe":
            consumer.subscribe([topic])
        else:
            consumer.assign([TopicPartition(topic, 0)])
        message = consumer.poll(30)
        assert message is not None
        assert message.error() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        with allowed(secured, "topic", topic, "read"):
            until(lambda: (message := consumer.poll(0.5)) is not None and message.error() is None)
