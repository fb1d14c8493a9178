"""Who the brokers are, and where each partition is led."""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    field,
)

__all__ = [
    "Cursor",
    "DescribeClusterBroker",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
    "DescribeTopicPartitionsResponsePartition",
    "DescribeTopicPartitionsResponseTopic",
    "MetadataRequest",
    "MetadataRequestTopic",
    "MetadataResponse",
    "MetadataResponseBroker",
    "MetadataResponsePartition",
    "MetadataResponseTopic",
    "TopicRequest",
]


class MetadataRequestTopic(Struct):
    """One entry: metadata request topic."""

    topic_id: Uuid = field("10+", ignorable=True)
    name: String | None = field(nullable="10+")


class MetadataRequest(Request, key=3, versions="0-13", flexible="9+"):
    """Ask for brokers, topics and leaders; v10 adds topic ids, v12 asks by id (KIP-516)."""

    topics: Array[MetadataRequestTopic] | None = field(nullable="1+")
    allow_auto_topic_creation: Bool = field("4+", default=True)
    include_cluster_authorized_operations: Bool = field("8-10")
    include_topic_authorized_operations: Bool = field("8+")


class MetadataResponseBroker(Struct):
    """One entry: metadata response broker."""

    node_id: Int32 = field()
    host: String = field()
    port: Int32 = field()
    rack: String | None = field("1+", default=None, nullable="1+", ignorable=True)


class MetadataResponsePartition(Struct):
    """One entry: metadata response partition."""

    error_code: Int16 = field()
    partition_index: Int32 = field()
    leader_id: Int32 = field()
    leader_epoch: Int32 = field("7+", default=-1, ignorable=True)
    replica_nodes: Array[Int32] = field()
    isr_nodes: Array[Int32] = field()
    offline_replicas: Array[Int32] = field("5+", ignorable=True)


class MetadataResponseTopic(Struct):
    """One entry: metadata response topic."""

    error_code: Int16 = field()
    name: String | None = field(nullable="12+")
    topic_id: Uuid = field("10+", ignorable=True)
    is_internal: Bool = field("1+", ignorable=True)
    partitions: Array[MetadataResponsePartition] = field()
    topic_authorized_operations: Int32 = field("8+", default=-2147483648)


class MetadataResponse(Response, key=3, versions="0-13", flexible="9+"):
    """Answer to `MetadataRequest`."""

    throttle_time_ms: Int32 = field("3+", ignorable=True)
    brokers: Array[MetadataResponseBroker] = field()
    cluster_id: String | None = field("2+", default=None, nullable="2+", ignorable=True)
    controller_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: Array[MetadataResponseTopic] = field()
    cluster_authorized_operations: Int32 = field("8-10", default=-2147483648)
    error_code: Int16 = field("13+", ignorable=True)


MetadataRequest.response_type = MetadataResponse


class DescribeClusterRequest(Request, key=60, versions="0-2", flexible="0+"):
    """Ask for the brokers of the cluster (KIP-700)."""

    include_cluster_authorized_operations: Bool = field()
    endpoint_type: Int8 = field("1+", default=1)
    include_fenced_brokers: Bool = field("2+")


class DescribeClusterBroker(Struct):
    """One entry: describe cluster broker."""

    broker_id: Int32 = field()
    host: String = field()
    port: Int32 = field()
    rack: String | None = field(default=None, nullable="0+")
    is_fenced: Bool = field("2+")


class DescribeClusterResponse(Response, key=60, versions="0-2", flexible="0+"):
    """Answer to `DescribeClusterRequest`."""

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None, nullable="0+")
    endpoint_type: Int8 = field("1+", default=1)
    cluster_id: String = field()
    controller_id: Int32 = field(default=-1)
    brokers: Array[DescribeClusterBroker] = field()
    cluster_authorized_operations: Int32 = field(default=-2147483648)


DescribeClusterRequest.response_type = DescribeClusterResponse


class TopicRequest(Struct):
    """One entry: topic request."""

    name: String = field()


class Cursor(Struct):
    """One entry: cursor."""

    topic_name: String = field()
    partition_index: Int32 = field()


class DescribeTopicPartitionsRequest(Request, key=75, versions="0", flexible="0+"):
    """Page through the partitions of topics (KIP-966)."""

    topics: Array[TopicRequest] = field()
    response_partition_limit: Int32 = field(default=2000)
    cursor: Cursor | None = field(default=None, nullable="0+")


class DescribeTopicPartitionsResponsePartition(Struct):
    """One entry: describe topic partitions response partition."""

    error_code: Int16 = field()
    partition_index: Int32 = field()
    leader_id: Int32 = field()
    leader_epoch: Int32 = field(default=-1, ignorable=True)
    replica_nodes: Array[Int32] = field()
    isr_nodes: Array[Int32] = field()
    eligible_leader_replicas: Array[Int32] | None = field(default=None, nullable="0+")
    last_known_elr: Array[Int32] | None = field(default=None, nullable="0+")
    offline_replicas: Array[Int32] = field(ignorable=True)


class DescribeTopicPartitionsResponseTopic(Struct):
    """One entry: describe topic partitions response topic."""

    error_code: Int16 = field()
    name: String | None = field(nullable="0+")
    topic_id: Uuid = field(ignorable=True)
    is_internal: Bool = field(ignorable=True)
    partitions: Array[DescribeTopicPartitionsResponsePartition] = field()
    topic_authorized_operations: Int32 = field(default=-2147483648)


class DescribeTopicPartitionsResponse(Response, key=75, versions="0", flexible="0+"):
    """Answer to `DescribeTopicPartitionsRequest`."""

    throttle_time_ms: Int32 = field(ignorable=True)
    topics: Array[DescribeTopicPartitionsResponseTopic] = field()
    next_cursor: Cursor | None = field(default=None, nullable="0+")


DescribeTopicPartitionsRequest.response_type = DescribeTopicPartitionsResponse
