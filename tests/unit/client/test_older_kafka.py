"""What clients do at brokers of each Kafka from 0.11 on: all of it that those have, and else the reason is told."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from headrace import Consumer, KafkaException, Producer, TopicPartition
from headrace.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from headrace.broker.profiles import RELEASES
from headrace.errors import KafkaError
from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.types.groups import ConsumerGroupState

FIRST = RELEASES.index("0.11")
SINCE_0_11 = RELEASES[FIRST:]


def before(release: str) -> tuple[str, ...]:
    return RELEASES[FIRST:RELEASES.index(release)]


def like(release: str) -> EmbeddedBroker:
    return EmbeddedBroker(settings=BrokerSettings.of_kafka(release), topics={"t": 1})


def consumer_of(broker: EmbeddedBroker, **more: Any) -> Consumer:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False,
                         "auto.offset.reset": "earliest", **more})
    consumer.subscribe(["t"])
    return consumer


def fill(broker: EmbeddedBroker) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce("t", b"v")


def admin_of(broker: EmbeddedBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def error_of(future: Future[Any]) -> KafkaError:
    with pytest.raises(KafkaException) as caught:
        future.result(10)
    error = caught.value.args[0]
    assert isinstance(error, KafkaError)
    return error


@pytest.mark.parametrize("release", SINCE_0_11)
def test_a_consumer_that_closes_has_left_its_group(release: str) -> None:
    with like(release) as broker:
        fill(broker)
        with consumer_of(broker) as consumer:
            assert consumer.poll(10) is not None
        admin = admin_of(broker)
        described = admin.describe_consumer_groups(["g"])["g"].result(10)
        assert (described.state, described.members) == (ConsumerGroupState.EMPTY, [])


@pytest.mark.parametrize("release", SINCE_0_11)
def test_a_transaction_commits_records_and_the_offsets_of_a_group(release: str) -> None:
    with like(release) as broker, consumer_of(broker) as consumer:
        fill(broker)
        assert consumer.poll(10) is not None
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"})
        producer.init_transactions(10)
        for number, ends in ((1, producer.commit_transaction), (7, producer.abort_transaction)):
            producer.begin_transaction()
            producer.produce("out", b"%d" % number)
            producer.send_offsets_to_transaction(
                [TopicPartition("t", 0, number)], consumer.consumer_group_metadata(), 10)
            ends(10)
        assert [each.offset for each in consumer.committed([TopicPartition("t", 0)], 10)] == [1]


@pytest.mark.parametrize("release", SINCE_0_11)
def test_configurations_tell_which_values_nobody_has_set(release: str) -> None:
    with like(release) as broker:
        admin = admin_of(broker)
        admin.create_topics([NewTopic("set", 1, 1, config={"retention.ms": "5000"})])["set"].result(10)
        resource = ConfigResource(ResourceType.TOPIC, "set")
        entries = admin.describe_configs([resource])[resource].result(10)
        assert (entries["retention.ms"].value, entries["retention.ms"].is_default) == ("5000", False)
        assert entries["cleanup.policy"].is_default


@pytest.mark.parametrize("release", SINCE_0_11)
def test_rules_of_any_pattern_are_asked_for(release: str) -> None:
    wanted = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
                              AclPermissionType.ANY)
    with like(release) as broker:
        admin = admin_of(broker)
        assert error_of(admin.describe_acls(wanted)).code() == KafkaError.SECURITY_DISABLED  # the broker has answered
        assert error_of(admin.delete_acls([wanted])[wanted]).code() == KafkaError.SECURITY_DISABLED


@pytest.mark.parametrize("release", before("2.0"))
def test_rules_of_prefixes_are_refused_where_there_are_none(release: str) -> None:
    wanted = AclBindingFilter(ResourceType.TOPIC, "t", ResourcePatternType.PREFIXED, None, None, AclOperation.ANY,
                              AclPermissionType.ANY)
    with like(release) as broker:
        admin = admin_of(broker)
        assert error_of(admin.describe_acls(wanted)).code() == KafkaError._UNSUPPORTED_FEATURE


@pytest.mark.parametrize("release", SINCE_0_11)
def test_a_topic_whose_counts_are_left_to_the_brokers_needs_kafka_2_4(release: str) -> None:
    with like(release) as broker:
        admin = admin_of(broker)
        assert admin.create_topics([NewTopic("counted", 2, 1)])["counted"].result(10) is None
        uncounted = admin.create_topics([NewTopic("left", 2)])["left"]
        if release in before("2.4"):
            error = error_of(uncounted)
            assert error.code() == KafkaError._UNSUPPORTED_FEATURE
            assert 'topic "left": the brokers are older than Kafka 2.4' in error.str()
            assert "give both" in error.str()
        else:
            assert uncounted.result(10) is None


@pytest.mark.parametrize("release", before("2.3"))
def test_a_static_member_hears_that_the_brokers_know_none(release: str) -> None:
    with like(release) as broker, consumer_of(broker, **{"group.instance.id": "one"}) as consumer:
        message = consumer.poll(10)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError._UNSUPPORTED_FEATURE
        assert "group_instance_id is set" in error.str()
        assert "the broker is too old for this, or leave it out" in error.str()
