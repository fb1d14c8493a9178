"""Disks, leaders, replicas, quotas and the list of what can be configured.

Read next: `wire.messages.admin_nodes`.
"""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    String,
    Struct,
    field,
)

__all__ = [
    "AlterClientQuotasRequest", "AlterClientQuotasResponse", "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse", "AlterReplicaLogDir", "AlterReplicaLogDirPartitionResult",
    "AlterReplicaLogDirTopic", "AlterReplicaLogDirTopicResult", "AlterReplicaLogDirsRequest",
    "AlterReplicaLogDirsResponse", "AlterableQuotaEntity", "AlterableQuotaEntry", "AlteredQuotaEntity",
    "AlteredQuotaEntry", "ConfigResource", "DescribableLogDirTopic", "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse", "DescribeLogDirsPartition", "DescribeLogDirsRequest", "DescribeLogDirsResponse",
    "DescribeLogDirsResult", "DescribeLogDirsTopic", "DescribedQuotaEntity", "DescribedQuotaEntry",
    "DescribedQuotaValue", "ElectLeadersRequest", "ElectLeadersResponse", "ElectLeadersTopic",
    "ElectionPartitionResult", "ListConfigResourcesRequest", "ListConfigResourcesResponse",
    "ListPartitionReassignmentsRequest", "ListPartitionReassignmentsResponse", "ListPartitionReassignmentsTopics",
    "OngoingPartitionReassignment", "OngoingTopicReassignment", "QuotaFilterComponent", "QuotaOperation",
    "ReassignablePartition", "ReassignablePartitionResponse", "ReassignableTopic", "ReassignableTopicResponse",
    "ReplicaElectionResult",
]


class AlterReplicaLogDirTopic(Struct):
    """Partitions of a topic to move."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class AlterReplicaLogDir(Struct):
    """A directory and what moves into it."""

    path: String = field()
    """Path of the directory."""
    topics: Array[AlterReplicaLogDirTopic] = field()
    """One entry for each topic."""


class AlterReplicaLogDirsRequest(Request, key=34, versions="0-2", flexible="2+"):
    """Move replicas between the directories of one broker (KIP-113)."""

    dirs: Array[AlterReplicaLogDir] = field()
    """Log directories and what goes there."""


class AlterReplicaLogDirPartitionResult(Struct):
    """Whether one partition is on its way."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class AlterReplicaLogDirTopicResult(Struct):
    """Whether the partitions of one topic are on their way."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[AlterReplicaLogDirPartitionResult] = field()
    """One entry for each partition."""


class AlterReplicaLogDirsResponse(Response, to=AlterReplicaLogDirsRequest):
    """Whether each partition is on its way."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    results: Array[AlterReplicaLogDirTopicResult] = field()
    """One entry for each that was asked for."""


class DescribableLogDirTopic(Struct):
    """Partitions of a topic to look at."""

    topic: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class DescribeLogDirsRequest(Request, key=35, versions="0-5", flexible="2+"):
    """Ask what lies in the directories of one broker (KIP-113).

    v4: free space (KIP-827). v5: cordoned ones (KIP-1066).
    """

    topics: Array[DescribableLogDirTopic] | None = field()
    """Topics and partitions; null for all."""


class DescribeLogDirsPartition(Struct):
    """One replica in a directory."""

    partition_index: Int32 = field()
    """Partition number."""
    partition_size: Int64 = field()
    """Bytes in the log."""
    offset_lag: Int64 = field()
    """Records that the replica is behind."""
    is_future_key: Bool = field()
    """The replica is being moved here."""


class DescribeLogDirsTopic(Struct):
    """The replicas of one topic in a directory."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[DescribeLogDirsPartition] = field()
    """One entry for each partition."""


class DescribeLogDirsResult(Struct):
    """One directory."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    log_dir: String = field()
    """Path of the directory."""
    topics: Array[DescribeLogDirsTopic] = field()
    """One entry for each topic."""
    total_bytes: Int64 = field("4+", default=-1, ignorable=True)
    """Size of the volume; -1 when not known."""
    usable_bytes: Int64 = field("4+", default=-1, ignorable=True)
    """Free bytes of the volume; -1 when not known."""
    is_cordoned: Bool = field("5+", ignorable=True)
    """No new replicas are placed here."""


class DescribeLogDirsResponse(Response, to=DescribeLogDirsRequest):
    """The directories of the broker."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field("3+", ignorable=True)
    """Error code; 0 when all went well."""
    results: Array[DescribeLogDirsResult] = field()
    """One entry for each that was asked for."""


class ElectLeadersTopic(Struct):
    """Partitions of a topic."""

    topic: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class ElectLeadersRequest(Request, key=43, versions="0-2", flexible="2+"):
    """Give partitions their preferred leader, or any at all (KIP-183, KIP-460)."""

    election_type: Int8 = field("1+")
    """Which leader: 0 the preferred one, 1 any replica, even one that is not in sync."""
    topic_partitions: Array[ElectLeadersTopic] | None = field()
    """Topics and partitions; null for all."""
    timeout_ms: Int32 = field(default=60000)
    """Milliseconds that the broker may take."""


class ElectionPartitionResult(Struct):
    """Whether one partition has got its leader."""

    partition_id: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""


class ReplicaElectionResult(Struct):
    """Whether the partitions of one topic have got their leaders."""

    topic: String = field()
    """Name of the topic."""
    partition_result: Array[ElectionPartitionResult] = field()
    """One entry for each partition."""


class ElectLeadersResponse(Response, to=ElectLeadersRequest):
    """Whether each partition has got its leader."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field("1+")
    """Error code; 0 when all went well."""
    replica_election_results: Array[ReplicaElectionResult] = field()
    """One entry for each topic."""


class ReassignablePartition(Struct):
    """A partition and its new replicas."""

    partition_index: Int32 = field()
    """Partition number."""
    replicas: Array[Int32] | None = field(default=None)
    """Node ids of the new replicas; null stops a move."""


class ReassignableTopic(Struct):
    """A topic whose partitions move."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[ReassignablePartition] = field()
    """One entry for each partition."""


class AlterPartitionReassignmentsRequest(Request, key=45, versions="0-1", flexible="0+"):
    """Move partitions to other brokers, or stop that (KIP-455).

    v1: the number of replicas is kept unless allowed (KIP-860).
    """

    timeout_ms: Int32 = field(default=60000)
    """Milliseconds that the broker may take."""
    allow_replication_factor_change: Bool = field("1+", default=True)
    """The number of replicas may change."""
    topics: Array[ReassignableTopic] = field()
    """One entry for each topic."""


class ReassignablePartitionResponse(Struct):
    """Whether one partition moves."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""


class ReassignableTopicResponse(Struct):
    """Whether the partitions of one topic move."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[ReassignablePartitionResponse] = field()
    """One entry for each partition."""


class AlterPartitionReassignmentsResponse(Response, to=AlterPartitionReassignmentsRequest):
    """Whether each partition moves."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    allow_replication_factor_change: Bool = field("1+", default=True, ignorable=True)
    """As in the request."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    responses: Array[ReassignableTopicResponse] = field()
    """One entry for each topic."""


class ListPartitionReassignmentsTopics(Struct):
    """Partitions of a topic to look up."""

    name: String = field()
    """Name of the topic."""
    partition_indexes: Array[Int32] = field()
    """Partition numbers."""


class ListPartitionReassignmentsRequest(Request, key=46, versions="0", flexible="0+"):
    """Ask which partitions are moving (KIP-455)."""

    timeout_ms: Int32 = field(default=60000)
    """Milliseconds that the broker may take."""
    topics: Array[ListPartitionReassignmentsTopics] | None = field(default=None)
    """Topics and partitions; null for all."""


class OngoingPartitionReassignment(Struct):
    """A partition that is moving."""

    partition_index: Int32 = field()
    """Partition number."""
    replicas: Array[Int32] = field()
    """Node ids of the replicas."""
    adding_replicas: Array[Int32] = field()
    """Node ids of the replicas that come."""
    removing_replicas: Array[Int32] = field()
    """Node ids of the replicas that go."""


class OngoingTopicReassignment(Struct):
    """A topic with moving partitions."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[OngoingPartitionReassignment] = field()
    """One entry for each partition."""


class ListPartitionReassignmentsResponse(Response, to=ListPartitionReassignmentsRequest):
    """The partitions that are moving."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    topics: Array[OngoingTopicReassignment] = field()
    """One entry for each topic."""


class QuotaFilterComponent(Struct):
    """What an entity must have to fit."""

    entity_type: String = field()
    """Type of the entity: user, client-id or ip."""
    match_type: Int8 = field()
    """Which names fit: 0 this one, 1 the default, 2 any."""
    match: String | None = field()
    """The name, for `match_type` 0; null for the others."""


class DescribeClientQuotasRequest(Request, key=48, versions="0-1", flexible="1+"):
    """Ask for quotas (KIP-546)."""

    components: Array[QuotaFilterComponent] = field()
    """What the name of an entity must have."""
    strict: Bool = field()
    """Leave out entities that have more than the filter names."""


class DescribedQuotaEntity(Struct):
    """A part of an entity: a user, a client id or an address."""

    entity_type: String = field()
    """Type of the entity: user, client-id or ip."""
    entity_name: String | None = field()
    """Name of the entity; null for the default."""


class DescribedQuotaValue(Struct):
    """One quota."""

    key: String = field()
    """Name of the quota, for example producer_byte_rate."""
    value: Float64 = field()
    """Value of the quota."""


class DescribedQuotaEntry(Struct):
    """The quotas of one entity."""

    entity: Array[DescribedQuotaEntity] = field()
    """The parts that make the entity."""
    values: Array[DescribedQuotaValue] = field()
    """The quotas."""


class DescribeClientQuotasResponse(Response, to=DescribeClientQuotasRequest):
    """The quotas that fit."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    entries: Array[DescribedQuotaEntry] | None = field()
    """One entry for each entity; null after an error."""


class AlterableQuotaEntity(Struct):
    """A part of an entity: a user, a client id or an address."""

    entity_type: String = field()
    """Type of the entity: user, client-id or ip."""
    entity_name: String | None = field()
    """Name of the entity; null for the default."""


class QuotaOperation(Struct):
    """One quota to set or remove."""

    key: String = field()
    """Name of the quota, for example producer_byte_rate."""
    value: Float64 = field()
    """Value of the quota."""
    remove: Bool = field()
    """Remove the quota rather than set it."""


class AlterableQuotaEntry(Struct):
    """An entity and what happens to its quotas."""

    entity: Array[AlterableQuotaEntity] = field()
    """The parts that make the entity."""
    ops: Array[QuotaOperation] = field()
    """Quotas to set or remove."""


class AlterClientQuotasRequest(Request, key=49, versions="0-1", flexible="1+"):
    """Set and remove quotas (KIP-546)."""

    entries: Array[AlterableQuotaEntry] = field()
    """One entry for each entity."""
    validate_only: Bool = field()
    """Check the request and change nothing."""


class AlteredQuotaEntity(Struct):
    """A part of an entity: a user, a client id or an address."""

    entity_type: String = field()
    """Type of the entity: user, client-id or ip."""
    entity_name: String | None = field()
    """Name of the entity; null for the default."""


class AlteredQuotaEntry(Struct):
    """Whether the quotas of one entity were changed."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    entity: Array[AlteredQuotaEntity] = field()
    """The parts that make the entity."""


class AlterClientQuotasResponse(Response, to=AlterClientQuotasRequest):
    """Whether the quotas of each entity were changed."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    entries: Array[AlteredQuotaEntry] = field()
    """One entry for each entity."""


class ListConfigResourcesRequest(Request, key=74, versions="0-1", flexible="0+"):
    """Ask which resources have configuration of their own (KIP-714). v1: of any type (KIP-1142)."""

    resource_types: Array[Int8] = field("1+")
    """Types wanted; empty for all that can be configured."""


class ConfigResource(Struct):
    """A resource with configuration."""

    resource_name: String = field()
    """Name of the resource."""
    resource_type: Int8 = field("1+", default=16, ignorable=True)
    """Type of the resource: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""


class ListConfigResourcesResponse(Response, to=ListConfigResourcesRequest):
    """The resources found."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    config_resources: Array[ConfigResource] = field()
    """One entry for each resource."""
