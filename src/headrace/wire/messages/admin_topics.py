"""Making, deleting and growing topics, and deleting records from their beginning.

Read next: `machines.admin`.
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

    partition_index: Int32 = field()  # partition number
    broker_ids: Array[Int32] = field()  # node ids of the replicas, the preferred leader first


class CreatableTopicConfig(Struct):
    """A configuration entry of a new topic."""

    name: String = field()  # name of the entry
    value: String | None = field()  # value of the entry, null for its default or a secret


class CreatableTopic(Struct):
    """A topic to create."""

    name: String = field()  # name of the topic
    num_partitions: Int32 = field()  # number of partitions; -1 for the default or with `assignments`
    replication_factor: Int16 = field()  # number of replicas; -1 for the default or with `assignments`
    # one for each partition; empty or null lets the broker choose
    assignments: Array[CreatableReplicaAssignment] = field()
    configs: Array[CreatableTopicConfig] = field()  # configuration entries


class CreateTopicsRequest(Request, key=19, versions="0-7", flexible="5+"):
    """Create topics.

    v4: the cluster's defaults (KIP-464). v5: the configuration in the answer (KIP-525). v6: quotas (KIP-599). v7:
    topic ids (KIP-516).
    """

    topics: Array[CreatableTopic] = field()  # one for each topic
    timeout_ms: Int32 = field(default=60000)  # how long the broker may take
    validate_only: Bool = field("1+")  # check the request and change nothing


class CreatableTopicConfigs(Struct):
    """A configuration entry that the new topic has."""

    name: String = field("5+")  # name of the entry
    value: String | None = field("5+")  # value of the entry, null for its default or a secret
    read_only: Bool = field("5+")  # the entry can not be changed
    # 1 topic, 2 broker, 3 cluster default, 4 static, 5 default, 6 broker logger, 7 client metrics, 8 group
    config_source: Int8 = field("5+", default=-1, ignorable=True)
    is_sensitive: Bool = field("5+")  # the value is a secret and is not shown


class CreatableTopicResult(Struct):
    """Whether one topic was created, and how it came out."""

    name: String = field()  # name of the topic
    topic_id: Uuid = field("7+", ignorable=True)  # zero when it is not known
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field("1+", ignorable=True)  # the error in words, null when there is none
    topic_config_error_code: Int16 = field("5+", tag=0, ignorable=True)  # why the configuration is not shown
    # number of partitions; -1 for the default or with `assignments`
    num_partitions: Int32 = field("5+", default=-1, ignorable=True)
    # number of replicas; -1 for the default or with `assignments`
    replication_factor: Int16 = field("5+", default=-1, ignorable=True)
    configs: Array[CreatableTopicConfigs] | None = field("5+", ignorable=True)  # configuration entries


class CreateTopicsResponse(Response, to=CreateTopicsRequest):
    """Whether each topic was created."""

    # how long a quota held the answer back, or asks to wait
    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: Array[CreatableTopicResult] = field()  # one for each topic


class DeleteTopicState(Struct):
    """A topic to delete, by name or by id."""

    name: String | None = field("6+", default=None)  # name of the topic, null when it is deleted by id
    topic_id: Uuid = field("6+")  # zero when it is not known


class DeleteTopicsRequest(Request, key=20, versions="0-6", flexible="4+"):
    """Delete topics. v5: errors in words. v6: by topic id (KIP-516)."""

    topics: Array[DeleteTopicState] = field("6+")  # one for each topic
    topic_names: Array[String] = field("0-5", ignorable=True)  # names of the topics
    timeout_ms: Int32 = field()  # how long the broker may take


class DeletableTopicResult(Struct):
    """Whether one topic was deleted."""

    name: String | None = field(nullable="6+")  # name of the topic
    topic_id: Uuid = field("6+", ignorable=True)  # zero when it is not known
    error_code: Int16 = field()  # 0 when all went well
    # the error in words, null when there is none
    error_message: String | None = field("5+", default=None, ignorable=True)


class DeleteTopicsResponse(Response, to=DeleteTopicsRequest):
    """Whether each topic was deleted."""

    # how long a quota held the answer back, or asks to wait
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    responses: Array[DeletableTopicResult] = field()  # one for each topic


class CreatePartitionsAssignment(Struct):
    """The brokers of one new partition."""

    broker_ids: Array[Int32] = field()  # node ids of the replicas, the preferred leader first


class CreatePartitionsTopic(Struct):
    """A topic that gets more partitions."""

    name: String = field()  # name of the topic
    count: Int32 = field()  # number of partitions that the topic shall have in all
    # one for each partition; empty or null lets the broker choose
    assignments: Array[CreatePartitionsAssignment] | None = field()


class CreatePartitionsRequest(Request, key=37, versions="0-3", flexible="2+"):
    """Add partitions to topics (KIP-195). v3: quotas (KIP-599)."""

    topics: Array[CreatePartitionsTopic] = field()  # one for each topic
    timeout_ms: Int32 = field()  # how long the broker may take
    validate_only: Bool = field()  # check the request and change nothing


class CreatePartitionsTopicResult(Struct):
    """Whether one topic got its partitions."""

    name: String = field()  # name of the topic
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none


class CreatePartitionsResponse(Response, to=CreatePartitionsRequest):
    """Whether each topic got its partitions."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    results: Array[CreatePartitionsTopicResult] = field()  # one for each that was asked for


class DeleteRecordsPartition(Struct):
    """Up to where records of one partition go."""

    partition_index: Int32 = field()  # partition number
    offset: Int64 = field()  # records before it go; -1 for all that are committed


class DeleteRecordsTopic(Struct):
    """A topic that loses records."""

    name: String = field()  # name of the topic
    partitions: Array[DeleteRecordsPartition] = field()  # one for each partition


class DeleteRecordsRequest(Request, key=21, versions="0-2", flexible="2+"):
    """Delete the records before an offset (KIP-107)."""

    topics: Array[DeleteRecordsTopic] = field()  # one for each topic
    timeout_ms: Int32 = field()  # how long the broker may take


class DeleteRecordsPartitionResult(Struct):
    """Where one partition begins now."""

    partition_index: Int32 = field()  # partition number
    low_watermark: Int64 = field()  # first offset that is left
    error_code: Int16 = field()  # 0 when all went well


class DeleteRecordsTopicResult(Struct):
    """Where the partitions of one topic begin now."""

    name: String = field()  # name of the topic
    partitions: Array[DeleteRecordsPartitionResult] = field()  # one for each partition


class DeleteRecordsResponse(Response, to=DeleteRecordsRequest):
    """Where each partition begins now."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    topics: Array[DeleteRecordsTopicResult] = field()  # one for each topic
