"""Administration of a real Kafka."""

from collections.abc import Iterator

import pytest

from headrace import KafkaError, KafkaException, Producer
from headrace.admin import AdminClient, ConfigResource, NewPartitions, NewTopic
from tests.support.real_kafka import until
from tools.kafka import KafkaCluster


@pytest.fixture
def admin(kafka: KafkaCluster) -> Iterator[AdminClient]:
    with AdminClient(kafka.connection) as client:
        yield client


def test_a_topic_is_made_grown_and_deleted(kafka: KafkaCluster, admin: AdminClient) -> None:
    admin.create_topics([NewTopic("made", 2, len(kafka.nodes), config={"retention.ms": "60000"})])["made"].result(10)
    admin.create_partitions([NewPartitions("made", 5)])["made"].result(10)
    # The controller has done it when it answers; the broker that is asked next hears of it a little later.
    until(lambda: sorted(admin.list_topics("made", 10).topics["made"].partitions) == [0, 1, 2, 3, 4])
    admin.delete_topics(["made"])["made"].result(10)
    until(lambda: "made" not in admin.list_topics(timeout=10).topics)


def test_making_a_topic_twice_says_that_it_exists(admin: AdminClient, topic: str) -> None:
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(10)
    assert caught.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    assert topic in str(caught.value)


def test_deleting_a_topic_that_is_not_there_says_so(admin: AdminClient) -> None:
    with pytest.raises(KafkaException) as caught:
        admin.delete_topics(["nowhere"])["nowhere"].result(10)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_config_is_altered_and_read_back(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={"retention.ms": "123456"})
    admin.alter_configs([resource])[resource].result(10)
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    # As above: another broker than the one that did it may be asked.
    until(lambda: admin.describe_configs([asked])[asked].result(10)["retention.ms"].value == "123456")
    assert not admin.describe_configs([asked])[asked].result(10)["retention.ms"].is_default


def test_the_cluster_shows_its_brokers(kafka: KafkaCluster, admin: AdminClient) -> None:
    cluster = admin.list_topics(timeout=10)
    assert sorted(cluster.brokers) == list(kafka.nodes)
    places = [f"{cluster.brokers[node_id].host}:{cluster.brokers[node_id].port}" for node_id in kafka.nodes]
    assert ",".join(places) == kafka.connection["bootstrap.servers"]
    assert cluster.controller_id in kafka.nodes


def test_a_partition_number_beyond_the_topic_is_refused(kafka: KafkaCluster, topic: str) -> None:
    errors: list[KafkaError | None] = []
    with Producer(kafka.connection) as producer:
        try:
            producer.produce(topic, b"v", partition=99, on_delivery=lambda error, _m: errors.append(error))
        except KafkaException as error:
            errors.append(error.args[0])
        producer.flush(10)
    assert [error is not None and error.code() for error in errors] == [KafkaError._UNKNOWN_PARTITION]
