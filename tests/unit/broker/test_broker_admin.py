"""Administration of the embedded broker, asked for by confluent-kafka and kafka-python."""

from uuid import UUID

import pytest
from confluent_kafka import KafkaError as ConfluentError
from confluent_kafka import KafkaException as ConfluentException
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka.admin import KafkaAdminClient

from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.wire.messages.cluster.metadata import (
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from tests.support.kafka_python import KAFKA_PYTHON
from tests.support.raw_client import RawClient, batch_of

pytestmark = [*KAFKA_PYTHON]


@pytest.fixture
def admin(three_nodes: EmbeddedBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": three_nodes.bootstrap_servers, "log_level": 0})


def code_of(future: object) -> int:
    with pytest.raises(ConfluentException) as caught:
        future.result(10)  # type: ignore[attr-defined]
    return int(caught.value.args[0].code())


def test_topics_are_made_described_and_deleted(admin: AdminClient, three_nodes: EmbeddedBroker) -> None:
    admin.create_topics([NewTopic("a", 3, 2), NewTopic("b")])["a"].result(10)
    metadata = admin.list_topics(timeout=10)
    assert {"a", "b"} <= set(metadata.topics)
    assert len(metadata.topics["a"].partitions) == 3
    assert all(len(each.replicas) == 2 for each in metadata.topics["a"].partitions.values())
    assert sorted(metadata.brokers) == [1, 2, 3]
    admin.delete_topics(["a"])["a"].result(10)
    assert "a" not in admin.list_topics(timeout=10).topics


@pytest.mark.parametrize(("topic", "code"), [
    (NewTopic("present", 1), ConfluentError.TOPIC_ALREADY_EXISTS),
    (NewTopic("no spaces", 1), ConfluentError.TOPIC_EXCEPTION),
    (NewTopic("n" * 250, 1), ConfluentError.TOPIC_EXCEPTION),
    (NewTopic("t", 0), ConfluentError.INVALID_PARTITIONS),
    (NewTopic("t", 10_001), ConfluentError.POLICY_VIOLATION),
    (NewTopic("t", 1, 4), ConfluentError.INVALID_REPLICATION_FACTOR),
    (NewTopic("t", 1, config={"no.such.config": "1"}), ConfluentError.INVALID_CONFIG),
    (NewTopic("t", 1, config={"retention.ms": "soon"}), ConfluentError.INVALID_CONFIG),
    (NewTopic("t", 1, config={"compression.gzip.level": "0"}), ConfluentError.INVALID_CONFIG),
    (NewTopic("t", 1, config={"min.compaction.lag.ms": "50", "max.compaction.lag.ms": "5"}),
     ConfluentError.INVALID_CONFIG),
    (NewTopic("t", 2, replica_assignment=[[1], [9]]), ConfluentError.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("t", 2, replica_assignment=[[1], [1, 2]]), ConfluentError.INVALID_REPLICA_ASSIGNMENT),
    (NewTopic("t", 1, replica_assignment=[[1, 1]]), ConfluentError.INVALID_REPLICA_ASSIGNMENT),
])
def test_what_is_not_allowed_is_refused(admin: AdminClient, three_nodes: EmbeddedBroker, topic: NewTopic,
                                        code: int) -> None:
    three_nodes.create_topic("present")
    assert code_of(admin.create_topics([topic])[topic.topic]) == code
    assert sorted(admin.list_topics(timeout=10).topics) == ["present"]


def test_a_name_that_differs_from_another_one_in_dots_and_underscores_only_is_refused_until_that_topic_is_gone(
    admin: AdminClient, three_nodes: EmbeddedBroker,
) -> None:
    three_nodes.create_topic("a.b_c")
    for name in ("a_b.c", "a.b.c", "a_b_c"):
        assert code_of(admin.create_topics([NewTopic(name, 1)])[name]) == ConfluentError.TOPIC_EXCEPTION
        assert code_of(admin.create_topics([NewTopic(name, 1)], validate_only=True)[name]) == \
            ConfluentError.TOPIC_EXCEPTION
    assert code_of(admin.create_topics([NewTopic("a.b_c", 1)])["a.b_c"]) == ConfluentError.TOPIC_ALREADY_EXISTS
    admin.create_topics([NewTopic("a-b-c", 1)])["a-b-c"].result(10)
    admin.delete_topics(["a.b_c"])["a.b_c"].result(10)
    admin.create_topics([NewTopic("a_b_c", 1)])["a_b_c"].result(10)


def test_a_topic_whose_name_collides_does_not_appear_where_it_is_asked_for() -> None:
    with EmbeddedBroker(topics={"a.b": 1}) as broker, RawClient(broker) as client:
        reply = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("a_b", "c_d")]))
        assert {each.name: each.error_code for each in reply.topics} == {
            "a_b": ConfluentError.UNKNOWN_TOPIC_OR_PART, "c_d": 0}


def test_topics_of_one_request_do_not_collide_with_each_other_but_with_all_that_come_later(
    admin: AdminClient, three_nodes: EmbeddedBroker,
) -> None:
    for future in admin.create_topics([NewTopic("a.b", 1), NewTopic("a_b", 1)]).values():
        future.result(10)
    with RawClient(three_nodes) as client:
        reply = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("c.d", "c_d", "a.b")]))
    assert {each.name: each.error_code for each in reply.topics} == {"c.d": 0, "c_d": 0, "a.b": 0}
    again = admin.create_topics([NewTopic(name, 1) for name in ("a.b", "a_b", "c.d", "e_f", "e.f")])
    assert [code_of(again[name]) for name in ("a.b", "a_b", "c.d")] == [ConfluentError.TOPIC_ALREADY_EXISTS] * 3
    for first, other in (("a.b", "a_b"), ("c_d", "c.d"), ("e.f", "e_f")):
        admin.delete_topics([first])[first].result(10)
        assert code_of(admin.create_topics([NewTopic(first, 1)])[first]) == ConfluentError.TOPIC_EXCEPTION
        admin.delete_topics([other])[other].result(10)
        admin.create_topics([NewTopic(first, 1)])[first].result(10)


def test_the_rights_to_a_name_are_told_without_a_topic_of_that_name(broker: EmbeddedBroker) -> None:
    with RawClient(broker) as client:
        topics = [MetadataRequestTopic(name=name) for name in ("not.there", "no spaces")]
        reply = client.call(MetadataRequest(topics=[*topics, MetadataRequestTopic(topic_id=UUID(int=7), name=None)],
                                            allow_auto_topic_creation=False, include_topic_authorized_operations=True))
        told = {each.name: (each.error_code, each.topic_authorized_operations) for each in reply.topics}
        assert told["not.there"] == (ConfluentError.UNKNOWN_TOPIC_OR_PART, 0b0000_1101_1111_1000)
        assert told["no spaces"] == (ConfluentError.TOPIC_EXCEPTION, 0b0000_1101_1111_1000)
        assert told[None] == (ConfluentError.UNKNOWN_TOPIC_ID, -1 << 31)


def test_validate_only_makes_nothing(admin: AdminClient) -> None:
    admin.create_topics([NewTopic("v", 2)], validate_only=True)["v"].result(10)
    assert "v" not in admin.list_topics(timeout=10).topics


def test_partitions_grow_and_never_shrink(admin: AdminClient, three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("g", 2)
    admin.create_partitions([NewPartitions("g", 5)])["g"].result(10)
    assert len(three_nodes.end_offsets("g")) == 5
    assert code_of(admin.create_partitions([NewPartitions("g", 5)])["g"]) == ConfluentError.INVALID_PARTITIONS
    assert code_of(admin.create_partitions([NewPartitions("g", 20_000)])["g"]) == ConfluentError.POLICY_VIOLATION


def test_settings_are_shown_replaced_and_changed(admin: AdminClient, three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("c", configs={"retention.ms": "1000"})

    def shown() -> dict[str, ConfigEntry]:
        resource = ConfigResource(ResourceType.TOPIC, "c")
        return dict(admin.describe_configs([resource])[resource].result(10))

    assert shown()["retention.ms"].value == "1000"
    assert not shown()["retention.ms"].is_default
    assert shown()["max.message.bytes"].is_default
    changed = ConfigResource(ResourceType.TOPIC, "c", incremental_configs=[
        ConfigEntry("max.message.bytes", "5000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)])
    admin.incremental_alter_configs([changed])[changed].result(10)
    assert (shown()["max.message.bytes"].value, shown()["cleanup.policy"].value) == ("5000", "delete,compact")
    assert shown()["retention.ms"].value == "1000"
    wrong = ConfigResource(ResourceType.TOPIC, "c", incremental_configs=[
        ConfigEntry("retention.ms", "never", incremental_operation=AlterConfigOpType.SET)])
    with pytest.raises(ConfluentException, match="from -1 to 9223372036854775807") as failed:
        admin.incremental_alter_configs([wrong])[wrong].result(10)
    assert failed.value.args[0].code() == ConfluentError.INVALID_CONFIG
    broker = ConfigResource(ResourceType.BROKER, "1")
    of_broker = admin.describe_configs([broker])[broker].result(10)
    assert (of_broker["node.id"].value, of_broker["log.dirs"].value) == ("1", "memory")


def test_a_node_tells_where_it_listens(admin: AdminClient, three_nodes: EmbeddedBroker) -> None:
    for number, address in enumerate(three_nodes.bootstrap_servers.split(","), 1):
        node = ConfigResource(ResourceType.BROKER, str(number))
        told = admin.describe_configs([node])[node].result(10)["advertised.listeners"]
        assert (told.value, told.is_read_only) == (f"PLAINTEXT://{address}", True)


def test_records_are_deleted_and_offsets_listed(admin: AdminClient, three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("d", 1)
    with RawClient(three_nodes, 1) as client:
        for number in range(10):
            client.produce("d", 0, batch_of([b"x"], timestamp_ms=1000 + number))

    def offset(spec: OffsetSpec) -> int:
        where = TopicPartition("d", 0)
        return int(admin.list_offsets({where: spec})[where].result(10).offset)

    assert (offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())) == (0, 10)
    assert offset(OffsetSpec.for_timestamp(1004)) == 4
    assert offset(OffsetSpec.for_timestamp(2000)) == -1
    assert offset(OffsetSpec.max_timestamp()) == 9
    deleted = admin.delete_records([TopicPartition("d", 0, 6)])
    assert next(iter(deleted.values())).result(10).low_watermark == 6
    assert offset(OffsetSpec.earliest()) == 6
    beyond = admin.delete_records([TopicPartition("d", 0, 11)])
    assert code_of(next(iter(beyond.values()))) == ConfluentError.OFFSET_OUT_OF_RANGE


def test_the_cluster_describes_itself(admin: AdminClient, three_nodes: EmbeddedBroker) -> None:
    described = admin.describe_cluster().result(10)
    assert {node.id for node in described.nodes} == {1, 2, 3}
    assert described.controller.id == 1
    assert described.cluster_id.startswith("headrace-")


def test_kafka_python_administers_too(broker: EmbeddedBroker) -> None:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        broker.create_topic("k", 2)
        assert "k" in client.list_topics()
        assert client.describe_cluster()["controller_id"] == 1
        assert client.list_groups() == []
    finally:
        client.close()


def test_topics_do_not_appear_where_that_is_turned_off() -> None:
    with EmbeddedBroker(settings=BrokerSettings(auto_create_topics=False)) as broker, RawClient(broker) as client:
        reply = client.call(MetadataRequest(topics=[MetadataRequestTopic(name="x")]))
        assert reply.topics[0].error_code == ConfluentError.UNKNOWN_TOPIC_OR_PART


def test_partitions_are_described_page_by_page(broker: EmbeddedBroker) -> None:
    for name in ("a", "b", "c"):
        broker.create_topic(name, 3)
    found: list[tuple[str, int]] = []
    cursor = None
    with RawClient(broker) as client:
        while True:
            reply = client.call(DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=each) for each in "cab"], response_partition_limit=2, cursor=cursor))
            page = [(topic.name, part.partition_index) for topic in reply.topics for part in topic.partitions]
            assert 1 <= len(page) <= 2
            found += page
            if reply.next_cursor is None:
                break
            cursor = DescribeTopicPartitionsCursor(topic_name=reply.next_cursor.topic_name,
                                                   partition_index=reply.next_cursor.partition_index)
    assert found == [(name, index) for name in "abc" for index in range(3)]


def test_a_setting_that_is_changed_is_compared_with_those_that_stay(admin: AdminClient) -> None:
    admin.create_topics([NewTopic("t", 1, config={"max.compaction.lag.ms": "5"})])["t"].result(10)
    for value, code in (("5", None), ("6", ConfluentError.INVALID_CONFIG)):
        change = ConfigResource(ResourceType.TOPIC, "t", incremental_configs=[
            ConfigEntry("min.compaction.lag.ms", value, incremental_operation=AlterConfigOpType.SET)])
        future = admin.incremental_alter_configs([change])[change]
        assert (future.result(10) if code is None else code_of(future)) == code


@pytest.mark.parametrize(("policy", "deletes"), [("", True), ("compact", False), ("compact,delete", True)])
def test_records_are_deleted_by_offset_unless_a_topic_is_only_compacted(admin: AdminClient, policy: str,
                                                                        deletes: bool) -> None:
    admin.create_topics([NewTopic("t", 1, config={"cleanup.policy": policy})])["t"].result(10)
    [future] = admin.delete_records([TopicPartition("t", 0, 0)]).values()
    if deletes:
        assert future.result(10).low_watermark == 0
    else:
        assert code_of(future) == ConfluentError.POLICY_VIOLATION
