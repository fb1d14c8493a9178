"""TODO"""

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
    """TODO CreatableReplicaAssignment"""

    partition_index: Int32 = field()
    broker_ids: Array[Int32] = field()


class CreatableTopicConfig(Struct):
    """TODO CreatableTopicConfig"""

    name: String = field()
    value: String | None = field()


class CreatableTopic(Struct):
    """TODO CreatableTopic"""

    name: String = field()
    num_partitions: Int32 = field()
    replication_factor: Int16 = field()
    assignments: Array[CreatableReplicaAssignment] = field()
    configs: Array[CreatableTopicConfig] = field()


class CreateTopicsRequest(Request, key=19, versions="0-7", flexible="5+"):
    """TODO CreateTopicsRequest"""

    topics: Array[CreatableTopic] = field()
    timeout_ms: Int32 = field(default=60000)
    validate_only: Bool = field("1+")


class CreatableTopicConfigs(Struct):
    """TODO CreatableTopicConfigs"""

    name: String = field("5+")
    value: String | None = field("5+")
    read_only: Bool = field("5+")
    config_source: Int8 = field("5+", default=-1, ignorable=True)
    is_sensitive: Bool = field("5+")


class CreatableTopicResult(Struct):
    """TODO CreatableTopicResult"""

    name: String = field()
    topic_id: Uuid = field("7+", ignorable=True)
    error_code: Int16 = field()
    error_message: String | None = field("1+", ignorable=True)
    topic_config_error_code: Int16 = field("5+", tag=0, ignorable=True)
    num_partitions: Int32 = field("5+", default=-1, ignorable=True)
    replication_factor: Int16 = field("5+", default=-1, ignorable=True)
    configs: Array[CreatableTopicConfigs] | None = field("5+", ignorable=True)


class CreateTopicsResponse(Response, to=CreateTopicsRequest):
    """TODO CreateTopicsResponse"""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: Array[CreatableTopicResult] = field()


class DeleteTopicState(Struct):
    """TODO DeleteTopicState"""

    name: String | None = field("6+", default=None)
    topic_id: Uuid = field("6+")


class DeleteTopicsRequest(Request, key=20, versions="0-6", flexible="4+"):
    """TODO DeleteTopicsRequest"""

    topics: Array[DeleteTopicState] = field("6+")
    topic_names: Array[String] = field("0-5", ignorable=True)
    timeout_ms: Int32 = field()


class DeletableTopicResult(Struct):
    """TODO DeletableTopicResult"""

    name: String | None = field(nullable="6+")
    topic_id: Uuid = field("6+", ignorable=True)
    error_code: Int16 = field()
    error_message: String | None = field("5+", default=None, ignorable=True)


class DeleteTopicsResponse(Response, to=DeleteTopicsRequest):
    """TODO DeleteTopicsResponse"""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    responses: Array[DeletableTopicResult] = field()


class CreatePartitionsAssignment(Struct):
    """TODO CreatePartitionsAssignment"""

    broker_ids: Array[Int32] = field()


class CreatePartitionsTopic(Struct):
    """TODO CreatePartitionsTopic"""

    name: String = field()
    count: Int32 = field()
    assignments: Array[CreatePartitionsAssignment] | None = field()


class CreatePartitionsRequest(Request, key=37, versions="0-3", flexible="2+"):
    """TODO CreatePartitionsRequest"""

    topics: Array[CreatePartitionsTopic] = field()
    timeout_ms: Int32 = field()
    validate_only: Bool = field()


class CreatePartitionsTopicResult(Struct):
    """TODO CreatePartitionsTopicResult"""

    name: String = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None)


class CreatePartitionsResponse(Response, to=CreatePartitionsRequest):
    """TODO CreatePartitionsResponse"""

    throttle_time_ms: Int32 = field()
    results: Array[CreatePartitionsTopicResult] = field()


class DeleteRecordsPartition(Struct):
    """TODO DeleteRecordsPartition"""

    partition_index: Int32 = field()
    offset: Int64 = field()


class DeleteRecordsTopic(Struct):
    """TODO DeleteRecordsTopic"""

    name: String = field()
    partitions: Array[DeleteRecordsPartition] = field()


class DeleteRecordsRequest(Request, key=21, versions="0-2", flexible="2+"):
    """TODO DeleteRecordsRequest"""

    topics: Array[DeleteRecordsTopic] = field()
    timeout_ms: Int32 = field()


class DeleteRecordsPartitionResult(Struct):
    """TODO DeleteRecordsPartitionResult"""

    partition_index: Int32 = field()
    low_watermark: Int64 = field()
    error_code: Int16 = field()


class DeleteRecordsTopicResult(Struct):
    """TODO DeleteRecordsTopicResult"""

    name: String = field()
    partitions: Array[DeleteRecordsPartitionResult] = field()


class DeleteRecordsResponse(Response, to=DeleteRecordsRequest):
    """TODO DeleteRecordsResponse"""

    throttle_time_ms: Int32 = field()
    topics: Array[DeleteRecordsTopicResult] = field()
