"""Making, deleting and growing topics, and deleting records from their beginning.

Read next: `machines.admin.topic_requests`.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Int8, Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

__all__ = [
    "CreatableReplicaAssignment", "CreatableTopic", "CreatableTopicConfig", "CreatableTopicConfigs",
    "CreatableTopicResult", "CreatePartitionsAssignment", "CreatePartitionsRequest", "CreatePartitionsResponse",
    "CreatePartitionsTopic", "CreatePartitionsTopicResult", "CreateTopicsRequest", "CreateTopicsResponse",
    "DeletableTopicResult", "DeleteRecordsPartition", "DeleteRecordsPartitionResult", "DeleteRecordsRequest",
    "DeleteRecordsResponse", "DeleteRecordsTopic", "DeleteRecordsTopicResult", "DeleteTopicState",
    "DeleteTopicsRequest", "DeleteTopicsResponse",
]


class CreatableReplicaAssignment(Struct):
    """The brokers of one partition of a new topic."""

    partition_index: Int32 = field()
    """Partition number."""
    broker_ids: Array[Int32] = field()
    """Node ids of the replicas, the preferred leader first."""


class CreatableTopicConfig(Struct):
    """A configuration entry of a new topic."""

    name: String = field()
    """Name of the entry."""
    value: String | None = field()
    """Value to set; null for the default."""


class CreatableTopic(Struct):
    """A topic to create."""

    name: String = field()
    """Name of the topic."""
    num_partitions: Int32 = field()
    """Number of partitions; -1 for the default or with `assignments`."""
    replication_factor: Int16 = field()
    """Number of replicas; -1 for the default or with `assignments`."""
    assignments: Array[CreatableReplicaAssignment] = field()
    """One entry for each partition; empty or null lets the broker choose."""
    configs: Array[CreatableTopicConfig] = field()
    """Configuration entries."""


class CreateTopicsRequest(Request, key=19, versions="0-7", flexible="5+"):
    """Create topics.

    v4: the cluster's defaults (KIP-464). v5: the configuration in the answer (KIP-525). v6: quotas (KIP-599). v7:
    topic ids (KIP-516).
    """

    topics: Array[CreatableTopic] = field()
    """One entry for each topic."""
    timeout_ms: Int32 = field(default=60000)
    """Milliseconds that the broker may take."""
    validate_only: Bool = field("1+")
    """Check the request and change nothing."""


class CreatableTopicConfigs(Struct):
    """A configuration entry that the new topic has."""

    name: String = field("5+")
    """Name of the entry."""
    value: String | None = field("5+")
    """Value of the entry; null when it is a secret."""
    read_only: Bool = field("5+")
    """The entry cannot be changed."""
    config_source: Int8 = field("5+", default=-1, ignorable=True)
    """Where the value is set: 1 topic, 2 broker, 3 cluster default, 4 static, 5 default, 6 broker logger, 7 client
    metrics, 8 group.
    """
    is_sensitive: Bool = field("5+")
    """The value is a secret and is not shown."""


class CreatableTopicResult(Struct):
    """Whether one topic was created, and how it came out."""

    name: String = field()
    """Name of the topic."""
    topic_id: Uuid = field("7+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field("1+", ignorable=True)
    """The error in words; null when there is none."""
    topic_config_error_code: Int16 = field("5+", tag=0, ignorable=True)
    """Why the configuration is not shown; 0 when it is."""
    num_partitions: Int32 = field("5+", default=-1, ignorable=True)
    """Number of partitions; -1 when it is not shown."""
    replication_factor: Int16 = field("5+", default=-1, ignorable=True)
    """Number of replicas; -1 when it is not shown."""
    configs: Array[CreatableTopicConfigs] | None = field("5+", ignorable=True)
    """Configuration entries."""


class CreateTopicsResponse(Response, to=CreateTopicsRequest):
    """Whether each topic was created."""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[CreatableTopicResult] = field()
    """One entry for each topic."""


class DeleteTopicState(Struct):
    """A topic to delete, by name or by id."""

    name: String | None = field("6+", default=None)
    """Name of the topic; null when it is deleted by id."""
    topic_id: Uuid = field("6+")
    """Id of the topic; zero when it is not known."""


class DeleteTopicsRequest(Request, key=20, versions="0-6", flexible="4+"):
    """Delete topics. v5: errors in words. v6: by topic id (KIP-516)."""

    topics: Array[DeleteTopicState] = field("6+")
    """One entry for each topic."""
    topic_names: Array[String] = field("0-5", ignorable=True)
    """Names of the topics."""
    timeout_ms: Int32 = field()
    """Milliseconds that the broker may take."""


class DeletableTopicResult(Struct):
    """Whether one topic was deleted."""

    name: String | None = field(nullable="6+")
    """Name of the topic."""
    topic_id: Uuid = field("6+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field("5+", default=None, ignorable=True)
    """The error in words; null when there is none."""


class DeleteTopicsResponse(Response, to=DeleteTopicsRequest):
    """Whether each topic was deleted."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    responses: Array[DeletableTopicResult] = field()
    """One entry for each topic."""


class CreatePartitionsAssignment(Struct):
    """The brokers of one new partition."""

    broker_ids: Array[Int32] = field()
    """Node ids of the replicas, the preferred leader first."""


class CreatePartitionsTopic(Struct):
    """A topic that gets more partitions."""

    name: String = field()
    """Name of the topic."""
    count: Int32 = field()
    """Number of partitions that the topic shall have in all."""
    assignments: Array[CreatePartitionsAssignment] | None = field()
    """One entry for each partition; empty or null lets the broker choose."""


class CreatePartitionsRequest(Request, key=37, versions="0-3", flexible="2+"):
    """Add partitions to topics (KIP-195). v3: quotas (KIP-599)."""

    topics: Array[CreatePartitionsTopic] = field()
    """One entry for each topic."""
    timeout_ms: Int32 = field()
    """Milliseconds that the broker may take."""
    validate_only: Bool = field()
    """Check the request and change nothing."""


class CreatePartitionsTopicResult(Struct):
    """Whether one topic got its partitions."""

    name: String = field()
    """Name of the topic."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""


class CreatePartitionsResponse(Response, to=CreatePartitionsRequest):
    """Whether each topic got its partitions."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    results: Array[CreatePartitionsTopicResult] = field()
    """One entry for each that was asked for."""


class DeleteRecordsPartition(Struct):
    """Up to where records of one partition go."""

    partition_index: Int32 = field()
    """Partition number."""
    offset: Int64 = field()
    """Records before it go; -1 for all that are committed."""


class DeleteRecordsTopic(Struct):
    """A topic that loses records."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[DeleteRecordsPartition] = field()
    """One entry for each partition."""


class DeleteRecordsRequest(Request, key=21, versions="0-2", flexible="2+"):
    """Delete the records before an offset (KIP-107)."""

    topics: Array[DeleteRecordsTopic] = field()
    """One entry for each topic."""
    timeout_ms: Int32 = field()
    """Milliseconds that the broker may take."""


class DeleteRecordsPartitionResult(Struct):
    """Where one partition begins now."""

    partition_index: Int32 = field()
    """Partition number."""
    low_watermark: Int64 = field()
    """First offset that is left."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class DeleteRecordsTopicResult(Struct):
    """Where the partitions of one topic begin now."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[DeleteRecordsPartitionResult] = field()
    """One entry for each partition."""


class DeleteRecordsResponse(Response, to=DeleteRecordsRequest):
    """Where each partition begins now."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[DeleteRecordsTopicResult] = field()
    """One entry for each topic."""
