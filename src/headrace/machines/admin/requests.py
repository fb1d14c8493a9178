"""Requests of the admin client and what their replies mean: pure functions from values to messages and back.

A reply is read into a dict from what was asked for to its result, or to the `KafkaError` that it ended with.
This module knows no sockets and does not wait. Read next: `client.admin.admin_engine`, which sends the requests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from headrace.errors import KafkaError
from headrace.types.admin import (
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    DeletedRecords,
    DescribeClusterResult,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from headrace.types.cluster import Node
from headrace.types.records import TopicPartition
from headrace.wire.messages.admin import configs as admin_configs
from headrace.wire.messages.admin import topics as admin_topics
from headrace.wire.messages.cluster import metadata
from headrace.wire.messages.consumer import offsets
from headrace.wire.messages.groups import classic_groups as groups

__all__ = [
    "alter_configs",
    "create_partitions",
    "create_topics",
    "delete_records",
    "delete_topics",
    "describe_configs",
    "incremental_alter_configs",
    "list_offsets",
    "named_result",
    "read_altered",
    "read_cluster",
    "read_created",
    "read_deleted_groups",
    "read_deleted_records",
    "read_deleted_topics",
    "read_described_configs",
    "read_new_partitions",
    "read_offsets",
]

_V = TypeVar("_V")

_WIRE_TYPES = {ResourceType.TOPIC: 2, ResourceType.BROKER: 4, ResourceType.GROUP: 32}
_BY_WIRE_TYPE = {number: kind for kind, number in _WIRE_TYPES.items()}
_SOURCES = {source.value: source for source in ConfigSource}
_CONSUMER_REPLICA = -1


def named_result(what: str, code: int, message: str | None) -> KafkaError | None:
    """The error of one topic, resource or group, None when it went well."""
    if not code:
        return None
    return KafkaError(code, f"{what}: {message or KafkaError(code).str()}")


# Topics


def create_topics(
    topics: Sequence[NewTopic], timeout_s: float, validate_only: bool
) -> admin_topics.CreateTopicsRequest:
    """Ask for new topics, or with `validate_only` whether they could be created."""
    return admin_topics.CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics], timeout_ms=int(timeout_s * 1000), validate_only=validate_only
    )


def _creatable(topic: NewTopic) -> admin_topics.CreatableTopic:
    assignments = [
        admin_topics.CreatableReplicaAssignment(partition_index=partition, broker_ids=brokers)
        for partition, brokers in enumerate(topic.replica_assignment)
    ]
    return admin_topics.CreatableTopic(
        name=topic.topic,
        num_partitions=-1 if assignments else topic.num_partitions,
        replication_factor=-1 if assignments else topic.replication_factor,
        assignments=assignments,
        configs=[admin_topics.CreatableTopicConfig(name=name, value=None if value is None else _text(value))
                 for name, value in topic.config.items()],
    )


def read_created(reply: admin_topics.CreateTopicsResponse) -> dict[str, KafkaError | None]:
    """How the creation of each topic ended."""
    return {topic.name: named_result(f'topic "{topic.name}"', topic.error_code, topic.error_message)
            for topic in reply.topics}


def delete_topics(names: Sequence[str], timeout_s: float) -> admin_topics.DeleteTopicsRequest:
    """Ask to delete topics by name: the form of versions up to 5."""
    return admin_topics.DeleteTopicsRequest(topics=[], topic_names=list(names), timeout_ms=int(timeout_s * 1000))


def read_deleted_topics(reply: admin_topics.DeleteTopicsResponse) -> dict[str, KafkaError | None]:
    """How the deletion of each topic ended."""
    return {str(topic.name): named_result(f'topic "{topic.name}"', topic.error_code, topic.error_message)
            for topic in reply.responses}


def create_partitions(
    additions: Sequence[NewPartitions], timeout_s: float, validate_only: bool
) -> admin_topics.CreatePartitionsRequest:
    """Ask for more partitions."""
    return admin_topics.CreatePartitionsRequest(
        topics=[
            admin_topics.CreatePartitionsTopic(
                name=new.topic,
                count=new.new_total_count,
                assignments=[admin_topics.CreatePartitionsAssignment(broker_ids=b) for b in new.replica_assignment]
                or None,
            )
            for new in additions
        ],
        timeout_ms=int(timeout_s * 1000),
        validate_only=validate_only,
    )


def read_new_partitions(reply: admin_topics.CreatePartitionsResponse) -> dict[str, KafkaError | None]:
    """How the addition of partitions ended for each topic."""
    return {topic.name: named_result(f'topic "{topic.name}"', topic.error_code, topic.error_message)
            for topic in reply.results}


# Configurations


def describe_configs(resources: Iterable[ConfigResource]) -> admin_configs.DescribeConfigsRequest:
    """Ask for all properties of some resources, with the values that each property hides."""
    return admin_configs.DescribeConfigsRequest(
        resources=[
            admin_configs.DescribeConfigsResource(
                resource_type=_WIRE_TYPES[r.restype], resource_name=r.name, configuration_keys=None
            )
            for r in resources
        ],
        include_synonyms=True,
        include_documentation=False,
    )


def read_described_configs(
    reply: admin_configs.DescribeConfigsResponse,
) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
    """The entries of each resource by name."""
    found: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
    for result in reply.results:
        resource = _resource(result)
        error = named_result(repr(resource), result.error_code, result.error_message)
        found[resource] = error or {config.name: _entry(config) for config in result.configs}
    return found


def _entry(config: admin_configs.DescribeConfigsResourceResult) -> ConfigEntry:
    source = _SOURCES.get(config.config_source, ConfigSource.UNKNOWN_CONFIG)
    synonyms = {
        s.name: ConfigEntry(s.name, s.value, _SOURCES.get(s.source, ConfigSource.UNKNOWN_CONFIG), is_synonym=True)
        for s in config.synonyms
    }
    return ConfigEntry(
        config.name, config.value, source, config.read_only, source is ConfigSource.DEFAULT_CONFIG,
        config.is_sensitive, synonyms=synonyms,
    )


def alter_configs(resources: Iterable[ConfigResource], validate_only: bool) -> admin_configs.AlterConfigsRequest:
    """Ask to replace the whole configuration of some resources."""
    return admin_configs.AlterConfigsRequest(
        resources=[
            admin_configs.AlterConfigsResource(
                resource_type=_WIRE_TYPES[r.restype],
                resource_name=r.name,
                configs=[admin_configs.AlterableConfig(name=name, value=_text(value))
                         for name, value in r.set_config_dict.items()],
            )
            for r in resources
        ],
        validate_only=validate_only,
    )


def incremental_alter_configs(
    resources: Iterable[ConfigResource], validate_only: bool
) -> admin_configs.IncrementalAlterConfigsRequest:
    """Ask to change single properties of some resources (KIP-339)."""
    return admin_configs.IncrementalAlterConfigsRequest(
        resources=[
            admin_configs.IncrementalAlterConfigsResource(
                resource_type=_WIRE_TYPES[r.restype],
                resource_name=r.name,
                configs=[
                    admin_configs.IncrementalAlterableConfig(
                        name=change.name,
                        config_operation=change.incremental_operation.value if change.incremental_operation else 0,
                        value=change.value,
                    )
                    for change in r.incremental_configs
                ],
            )
            for r in resources
        ],
        validate_only=validate_only,
    )


def read_altered(
    reply: admin_configs.AlterConfigsResponse | admin_configs.IncrementalAlterConfigsResponse,
) -> dict[ConfigResource, KafkaError | None]:
    """How the change of each resource ended."""
    responses: Sequence[Any] = reply.responses
    return {_resource(result): named_result(repr(_resource(result)), result.error_code, result.error_message)
            for result in responses}


def _resource(result: Any) -> ConfigResource:
    return ConfigResource(_BY_WIRE_TYPE.get(result.resource_type, ResourceType.UNKNOWN), result.resource_name or "?")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# Offsets and records


def list_offsets(
    wanted: Mapping[TopicPartition, int], isolation_level: int, timeout_s: float
) -> offsets.ListOffsetsRequest:
    """Ask one leader for the offsets at some times; negative times have a meaning of their own."""
    return offsets.ListOffsetsRequest(
        replica_id=_CONSUMER_REPLICA,
        isolation_level=isolation_level,
        topics=[
            offsets.ListOffsetsTopic(
                name=topic,
                partitions=[offsets.ListOffsetsPartition(partition_index=tp.partition, timestamp=timestamp)
                            for tp, timestamp in partitions],
            )
            for topic, partitions in _by_topic(wanted).items()
        ],
        timeout_ms=int(timeout_s * 1000),
    )


def read_offsets(reply: offsets.ListOffsetsResponse) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
    """The offset of each partition."""
    return {
        TopicPartition(topic.name, p.partition_index):
            named_result(f"{topic.name}[{p.partition_index}]", p.error_code, None)
            or ListOffsetsResultInfo(p.offset, p.timestamp, p.leader_epoch if p.leader_epoch >= 0 else None)
        for topic in reply.topics for p in topic.partitions
    }


def delete_records(wanted: Mapping[TopicPartition, int], timeout_s: float) -> admin_topics.DeleteRecordsRequest:
    """Ask one leader to drop the records before some offsets; -1 means all."""
    return admin_topics.DeleteRecordsRequest(
        topics=[
            admin_topics.DeleteRecordsTopic(
                name=topic,
                partitions=[admin_topics.DeleteRecordsPartition(partition_index=tp.partition, offset=offset)
                            for tp, offset in partitions],
            )
            for topic, partitions in _by_topic(wanted).items()
        ],
        timeout_ms=int(timeout_s * 1000),
    )


def read_deleted_records(
    reply: admin_topics.DeleteRecordsResponse,
) -> dict[TopicPartition, DeletedRecords | KafkaError]:
    """The new beginning of each partition."""
    return {
        TopicPartition(topic.name, p.partition_index):
            named_result(f"{topic.name}[{p.partition_index}]", p.error_code, None) or DeletedRecords(p.low_watermark)
        for topic in reply.topics for p in topic.partitions
    }


def _by_topic(wanted: Mapping[TopicPartition, _V]) -> dict[str, list[tuple[TopicPartition, _V]]]:
    topics: dict[str, list[tuple[TopicPartition, _V]]] = defaultdict(list)
    for tp, value in wanted.items():
        topics[tp.topic].append((tp, value))
    return topics


# Cluster and groups


def read_cluster(reply: metadata.DescribeClusterResponse) -> DescribeClusterResult:
    """The cluster and its brokers."""
    nodes = {b.broker_id: Node(b.broker_id, b.host, b.port, b.rack) for b in reply.brokers}
    return DescribeClusterResult(reply.cluster_id, nodes.get(reply.controller_id), list(nodes.values()))


def read_deleted_groups(reply: groups.DeleteGroupsResponse) -> dict[str, KafkaError | None]:
    """How the deletion of each group ended."""
    return {group.group_id: named_result(f'group "{group.group_id}"', group.error_code, group.error_message)
            for group in reply.results}
