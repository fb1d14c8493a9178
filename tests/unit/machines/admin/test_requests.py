"""Administration as values: requests survive the wire in every version, replies are read into results."""

from typing import Any

import pytest

from headrace.errors import KafkaError
from headrace.machines.admin import requests as admin
from headrace.types.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    DeletedRecords,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from headrace.types.records import TopicPartition
from headrace.wire.codec import decode, encode
from headrace.wire.messages.admin.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from headrace.wire.messages.admin.topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.wire.schema import Request


def travels(request: Request, first: int, last: int) -> Any:
    """Write and read the request in each version; the newest is returned."""
    for version in range(first, last + 1):
        travelled = decode(type(request), encode(request, version), version)
    return travelled


def test_new_topics_are_written_with_counts_or_with_an_assignment() -> None:
    topics = [NewTopic("a", 3, 2, config={"retention.ms": 5, "flag": True}),
              NewTopic("b", replica_assignment=[[1], [2]])]
    request = travels(admin.create_topics(topics, 1.5, True), 1, 7)
    counted, assigned = request.topics
    assert (counted.num_partitions, counted.replication_factor) == (3, 2)
    assert [(config.name, config.value) for config in counted.configs] == [("retention.ms", "5"), ("flag", "true")]
    assert (assigned.num_partitions, assigned.replication_factor) == (-1, -1)
    assert [(a.partition_index, a.broker_ids) for a in assigned.assignments] == [(0, [1]), (1, [2])]
    assert (request.timeout_ms, request.validate_only) == (1500, True)


def test_deletions_go_by_name() -> None:
    assert travels(admin.delete_topics(["a", "b"], 1.0), 0, 5).topic_names == ["a", "b"]


def test_partitions_are_added_where_the_broker_likes_or_as_assigned() -> None:
    request = travels(admin.create_partitions([NewPartitions("a", 4), NewPartitions("b", 2, [[1]])], 1.0, False), 0, 3)
    assert [(t.name, t.count, t.assignments and t.assignments[0].broker_ids) for t in request.topics] == [
        ("a", 4, None), ("b", 2, [1])]


def test_a_result_names_the_topic_and_keeps_the_brokers_words() -> None:
    reply = CreateTopicsResponse(topics=[CreatableTopicResult(name="a"), CreatableTopicResult(
        name="b", error_code=36, error_message="Topic 'b' already exists.")])
    results = admin.read_created(reply)
    assert results["a"] is None
    error = results["b"]
    assert error == KafkaError.TOPIC_ALREADY_EXISTS
    assert error is not None
    assert error.str() == "topic \"b\": Topic 'b' already exists."


@pytest.mark.parametrize(("kind", "number"), [("topic", 2), ("broker", 4), ("group", 32)])
def test_resource_types_have_the_wires_numbers(kind: str, number: int) -> None:
    resource = ConfigResource(kind, "7", set_config={"x": "1"})
    resource.add_incremental_config(ConfigEntry("y", "2", incremental_operation=AlterConfigOpType.APPEND))
    assert travels(admin.describe_configs([resource]), 1, 4).resources[0].resource_type == number
    assert travels(admin.alter_configs([resource], False), 0, 2).resources[0].resource_type == number
    change = travels(admin.incremental_alter_configs([resource], False), 0, 1).resources[0]
    assert (change.resource_type, change.configs[0].config_operation, change.configs[0].value) == (number, 2, "2")


def test_described_entries_know_their_source_and_what_they_hide() -> None:
    synonym = DescribeConfigsSynonym(name="log.retention.ms", value="9", source=5)
    entry = DescribeConfigsResourceResult(name="retention.ms", value="5", config_source=1, synonyms=[synonym])
    unknown = DescribeConfigsResourceResult(name="new", value=None, config_source=77)
    reply = DescribeConfigsResponse(results=[
        DescribeConfigsResult(resource_type=2, resource_name="t", configs=[entry, unknown]),
        DescribeConfigsResult(resource_type=2, resource_name="u", error_code=3)])
    results = admin.read_described_configs(reply)
    found = results[ConfigResource("topic", "t")]
    assert isinstance(found, dict)
    assert found["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert found["retention.ms"].synonyms["log.retention.ms"].value == "9"
    assert found["new"].source is ConfigSource.UNKNOWN_CONFIG
    assert results[ConfigResource("topic", "u")] == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_offsets_are_asked_for_by_topic_and_read_by_partition() -> None:
    specs = {("a", 0): OffsetSpec.earliest(), ("a", 1): OffsetSpec.latest(), ("b", 0): OffsetSpec.for_timestamp(99)}
    wanted = {TopicPartition(*key): spec.timestamp for key, spec in specs.items()}
    request = travels(admin.list_offsets(wanted, 1, 5.0), 2, 11)
    assert {(t.name, p.partition_index, p.timestamp) for t in request.topics for p in t.partitions} == {
        ("a", 0, -2), ("a", 1, -1), ("b", 0, 99)}
    reply = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="a", partitions=[
        ListOffsetsPartitionResponse(partition_index=0, offset=5, timestamp=-1, leader_epoch=2),
        ListOffsetsPartitionResponse(partition_index=1, error_code=6)])])
    results = admin.read_offsets(reply)
    assert results[TopicPartition("a", 0)] == ListOffsetsResultInfo(5, -1, 2)
    assert results[TopicPartition("a", 1)] == KafkaError.NOT_LEADER_FOR_PARTITION


def test_records_are_deleted_up_to_an_offset() -> None:
    request = travels(admin.delete_records({TopicPartition("a", 0): 7}, 1.0), 0, 2)
    assert request.topics[0].partitions[0].offset == 7
    reply = DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="a", partitions=[
        DeleteRecordsPartitionResult(partition_index=0, low_watermark=7)])])
    assert admin.read_deleted_records(reply) == {TopicPartition("a", 0): DeletedRecords(7)}


def test_a_resource_is_known_by_type_and_name_and_keeps_values_that_must_not_be_overwritten() -> None:
    resource = ConfigResource(ResourceType.TOPIC, "t")
    assert resource == ConfigResource(2, "t") != ConfigResource("broker", "t")
    assert len({resource, ConfigResource("TOPIC", "t")}) == 1
    resource.set_config("a", "1")
    resource.set_config("a", "2", overwrite=False)
    assert resource.set_config_dict == {"a": "1"}
    with pytest.raises(ValueError, match="unknown resource type 'topics'"):
        ConfigResource("topics", "t")
