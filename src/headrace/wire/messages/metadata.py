"""TODO"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Int8, Int16, Int32, Request, Response, String, Struct, Uuid, field

__all__ = [
    "DescribeClusterBroker", "DescribeClusterRequest", "DescribeClusterResponse", "DescribeTopicPartitionsCursor",
    "DescribeTopicPartitionsRequest", "DescribeTopicPartitionsResponse", "DescribeTopicPartitionsResponseCursor",
    "DescribeTopicPartitionsResponsePartition", "DescribeTopicPartitionsResponseTopic", "MetadataRequest",
    "MetadataRequestTopic", "MetadataResponse", "MetadataResponseBroker", "MetadataResponsePartition",
    "MetadataResponseTopic", "TopicRequest",
]


class MetadataRequestTopic(Struct):
    """TODO MetadataRequestTopic"""

    topic_id: Uuid = field("10+", ignorable=True)
    name: String | None = field(nullable="10+")


class MetadataRequest(Request, key=3, versions="0-13", flexible="9+"):
    """TODO MetadataRequest"""

    topics: Array[MetadataRequestTopic] | None = field(nullable="1+")
    allow_auto_topic_creation: Bool = field("4+", default=True)
    include_cluster_authorized_operations: Bool = field("8-10")
    include_topic_authorized_operations: Bool = field("8+")


class MetadataResponseBroker(Struct):
    """TODO MetadataResponseBroker"""

    node_id: Int32 = field()
    host: String = field()
    port: Int32 = field()
    rack: String | None = field("1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    """TODO MetadataResponsePartition"""

    error_code: Int16 = field()
    partition_index: Int32 = field()
    leader_id: Int32 = field()
    leader_epoch: Int32 = field("7+", default=-1, ignorable=True)
    replica_nodes: Array[Int32] = field()
    isr_nodes: Array[Int32] = field()
    offline_replicas: Array[Int32] = field("5+", ignorable=True)


class MetadataResponseTopic(Struct):
    """TODO MetadataResponseTopic"""

    error_code: Int16 = field()
    name: String | None = field(nullable="12+")
    topic_id: Uuid = field("10+", ignorable=True)
    is_internal: Bool = field("1+", ignorable=True)
    partitions: Array[MetadataResponsePartition] = field()
    topic_authorized_operations: Int32 = field("8+", default=-(2**31))


class MetadataResponse(Response, to=MetadataRequest):
    """TODO MetadataResponse"""

    throttle_time_ms: Int32 = field("3+", ignorable=True)
    brokers: Array[MetadataResponseBroker] = field()
    cluster_id: String | None = field("2+", default=None, ignorable=True)
    controller_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: Array[MetadataResponseTopic] = field()
    cluster_authorized_operations: Int32 = field("8-10", default=-(2**31))
    error_code: Int16 = field("13+", ignorable=True)


class DescribeClusterRequest(Request, key=60, versions="0-2", flexible="0+"):
    """TODO DescribeClusterRequest"""

    include_cluster_authorized_operations: Bool = field()
    endpoint_type: Int8 = field("1+", default=1)
    include_fenced_brokers: Bool = field("2+")


class DescribeClusterBroker(Struct):
    """TODO DescribeClusterBroker"""

    broker_id: Int32 = field()
    host: String = field()
    port: Int32 = field()
    rack: String | None = field(default=None)
    is_fenced: Bool = field("2+")


class DescribeClusterResponse(Response, to=DescribeClusterRequest):
    """TODO DescribeClusterResponse"""

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None)
    endpoint_type: Int8 = field("1+", default=1)
    cluster_id: String = field()
    controller_id: Int32 = field(default=-1)
    brokers: Array[DescribeClusterBroker] = field()
    cluster_authorized_operations: Int32 = field(default=-(2**31))


class TopicRequest(Struct):
    """TODO TopicRequest"""

    name: String = field()


class DescribeTopicPartitionsCursor(Struct):
    """TODO DescribeTopicPartitionsCursor"""

    topic_name: String = field()
    partition_index: Int32 = field()


class DescribeTopicPartitionsRequest(Request, key=75, versions="0", flexible="0+"):
    """TODO DescribeTopicPartitionsRequest"""

    topics: Array[TopicRequest] = field()
    response_partition_limit: Int32 = field(default=2000)
    cursor: DescribeTopicPartitionsCursor | None = field(default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    """TODO DescribeTopicPartitionsResponsePartition"""

    error_code: Int16 = field()
    partition_index: Int32 = field()
    leader_id: Int32 = field()
    leader_epoch: Int32 = field(default=-1, ignorable=True)
    replica_nodes: Array[Int32] = field()
    isr_nodes: Array[Int32] = field()
    eligible_leader_replicas: Array[Int32] | None = field(default=None)
    last_known_elr: Array[Int32] | None = field(default=None)
    offline_replicas: Array[Int32] = field(ignorable=True)


class DescribeTopicPartitionsResponseTopic(Struct):
    """TODO DescribeTopicPartitionsResponseTopic"""

    error_code: Int16 = field()
    name: String | None = field()
    topic_id: Uuid = field(ignorable=True)
    is_internal: Bool = field(ignorable=True)
    partitions: Array[DescribeTopicPartitionsResponsePartition] = field()
    topic_authorized_operations: Int32 = field(default=-(2**31))


class DescribeTopicPartitionsResponseCursor(Struct):
    """TODO DescribeTopicPartitionsResponseCursor"""

    topic_name: String = field()
    partition_index: Int32 = field()


class DescribeTopicPartitionsResponse(Response, to=DescribeTopicPartitionsRequest):
    """TODO DescribeTopicPartitionsResponse"""

    throttle_time_ms: Int32 = field(ignorable=True)
    topics: Array[DescribeTopicPartitionsResponseTopic] = field()
    next_cursor: DescribeTopicPartitionsResponseCursor | None = field(default=None)
