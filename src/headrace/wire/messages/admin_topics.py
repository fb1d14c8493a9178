"""Creating, growing, trimming and deleting topics."""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    field,
)

__all__ = [
    "CreatableReplicaAssignment",
    "CreatableTopic",
    "CreatableTopicConfig",
    "CreatableTopicConfigs",
    "CreatableTopicResult",
    "CreatePartitionsAssignment",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreatePartitionsTopic",
    "CreatePartitionsTopicResult",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DeletableTopicResult",
    "DeleteRecordsPartition",
    "DeleteRecordsPartitionResult",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteRecordsTopic",
    "DeleteRecordsTopicResult",
    "DeleteTopicState",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
]


class CreatableReplicaAssignment(Struct):
    """One entry: creatable replica assignment."""

    partition_index: Int32 = field()
    broker_ids: Array[Int32] = field()


class CreatableTopicConfig(Struct):
    """One entry: creatable topic config."""

    name: String = field()
    value: String | None = field(nullable="0+")


class CreatableTopic(Struct):
    """One entry: creatable topic."""

    name: String = field()
    num_partitions: Int32 = field()
    replication_factor: Int16 = field()
    assignments: Array[CreatableReplicaAssignment] = field()
    configs: Array[CreatableTopicConfig] = field()


class CreateTopicsRequest(Request, key=19, versions="0-7", flexible="5+"):
    """Create topics."""

    topics: Array[CreatableTopic] = field()
    timeout_ms: Int32 = field(default=60000)
    validate_only: Bool = field("1+")


class CreatableTopicConfigs(Struct):
    """One entry: creatable topic configs."""

    name: String = field("5+")
    value: String | None = field("5+", nullable="5+")
    read_only: Bool = field("5+")
    config_source: Int8 = field("5+", default=-1, ignorable=True)
    is_sensitive: Bool = field("5+")


class CreatableTopicResult(Struct):
    """One entry: creatable topic result."""

    name: String = field()
    topic_id: Uuid = field("7+", ignorable=True)
    error_code: Int16 = field()
    error_message: String | None = field("1+", nullable="0+", ignorable=True)
    topic_config_error_code: Int16 = field("5+", tag=0, tagged="5+", ignorable=True)
    num_partitions: Int32 = field("5+", default=-1, ignorable=True)
    replication_factor: Int16 = field("5+", default=-1, ignorable=True)
    configs: Array[CreatableTopicConfigs] | None = field("5+", nullable="5+", ignorable=True)


class CreateTopicsResponse(Response, key=19, versions="0-7", flexible="5+"):
    """Answer to `CreateTopicsRequest`."""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: Array[CreatableTopicResult] = field()


CreateTopicsRequest.response_type = CreateTopicsResponse


class DeleteTopicState(Struct):
    """One entry: delete topic state."""

    name: String | None = field("6+", default=None, nullable="6+")
    topic_id: Uuid = field("6+")


class DeleteTopicsRequest(Request, key=20, versions="0-6", flexible="4+"):
    """Delete topics; v6 by id."""

    topics: Array[DeleteTopicState] = field("6+")
    topic_names: Array[String] = field("0-5", ignorable=True)
    timeout_ms: Int32 = field()


class DeletableTopicResult(Struct):
    """One entry: deletable topic result."""

    name: String | None = field(nullable="6+")
    topic_id: Uuid = field("6+", ignorable=True)
    error_code: Int16 = field()
    error_message: String | None = field("5+", default=None, nullable="5+", ignorable=True)


class DeleteTopicsResponse(Response, key=20, versions="0-6", flexible="4+"):
    """Answer to `DeleteTopicsRequest`."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    responses: Array[DeletableTopicResult] = field()


DeleteTopicsRequest.response_type = DeleteTopicsResponse


class CreatePartitionsAssignment(Struct):
    """One entry: create partitions assignment."""

    broker_ids: Array[Int32] = field()


class CreatePartitionsTopic(Struct):
    """One entry: create partitions topic."""

    name: String = field()
    count: Int32 = field()
    assignments: Array[CreatePartitionsAssignment] | None = field(nullable="0+")


class CreatePartitionsRequest(Request, key=37, versions="0-3", flexible="2+"):
    """Add partitions to topics."""

    topics: Array[CreatePartitionsTopic] = field()
    timeout_ms: Int32 = field()
    validate_only: Bool = field()


class CreatePartitionsTopicResult(Struct):
    """One entry: create partitions topic result."""

    name: String = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None, nullable="0+")


class CreatePartitionsResponse(Response, key=37, versions="0-3", flexible="2+"):
    """Answer to `CreatePartitionsRequest`."""

    throttle_time_ms: Int32 = field()
    results: Array[CreatePartitionsTopicResult] = field()


CreatePartitionsRequest.response_type = CreatePartitionsResponse


class DeleteRecordsPartition(Struct):
    """One entry: delete records partition."""

    partition_index: Int32 = field()
    offset: Int64 = field()


class DeleteRecordsTopic(Struct):
    """One entry: delete records topic."""

    name: String = field()
    partitions: Array[DeleteRecordsPartition] = field()


class DeleteRecordsRequest(Request, key=21, versions="0-2", flexible="2+"):
    """Delete the records before an offset."""

    topics: Array[DeleteRecordsTopic] = field()
    timeout_ms: Int32 = field()


class DeleteRecordsPartitionResult(Struct):
    """One entry: delete records partition result."""

    partition_index: Int32 = field()
    low_watermark: Int64 = field()
    error_code: Int16 = field()


class DeleteRecordsTopicResult(Struct):
    """One entry: delete records topic result."""

    name: String = field()
    partitions: Array[DeleteRecordsPartitionResult] = field()


class DeleteRecordsResponse(Response, key=21, versions="0-2", flexible="2+"):
    """Answer to `DeleteRecordsRequest`."""

    throttle_time_ms: Int32 = field()
    topics: Array[DeleteRecordsTopicResult] = field()


DeleteRecordsRequest.response_type = DeleteRecordsResponse
