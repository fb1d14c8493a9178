"""Where everything is: brokers, topics, partitions and their leaders.

Read next: `machines.metadata`, which keeps what these answer.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Int8, Int16, Int32, Request, Response, String, Struct, Uuid, field

__all__ = [
    "DescribeClusterBroker", "DescribeClusterRequest", "DescribeClusterResponse", "DescribeTopicPartitionsCursor",
    "DescribeTopicPartitionsNextCursor", "DescribeTopicPartitionsRequest", "DescribeTopicPartitionsResponse",
    "DescribeTopicPartitionsResponsePartition", "DescribeTopicPartitionsResponseTopic", "MetadataRequest",
    "MetadataRequestTopic", "MetadataResponse", "MetadataResponseBroker", "MetadataResponsePartition",
    "MetadataResponseTopic", "TopicRequest",
]


class MetadataRequestTopic(Struct):
    """A topic to look up, by name or by id."""

    topic_id: Uuid = field("10+", ignorable=True)  # zero when it is not known
    name: String | None = field(nullable="10+")  # name of the topic, null when it is asked for by id


class MetadataRequest(Request, key=3, versions="0-13", flexible="9+"):
    """Ask for brokers and for the partitions of topics.

    v10: topic ids (KIP-516). v13: a top-level error (KIP-1102).
    """

    # null for all topics; empty for none (all in version 0)
    topics: Array[MetadataRequestTopic] | None = field(nullable="1+")
    # the broker may create topics that do not exist
    allow_auto_topic_creation: Bool = field("4+", default=True)
    include_cluster_authorized_operations: Bool = field("8-10")  # ask for the allowed operations on the cluster
    include_topic_authorized_operations: Bool = field("8+")  # ask for the allowed operations on each topic


class MetadataResponseBroker(Struct):
    """A broker and where it listens for clients."""

    node_id: Int32 = field()
    host: String = field()  # name or address
    port: Int32 = field()
    rack: String | None = field("1+", default=None, ignorable=True)  # rack of the broker, null when it has none


class MetadataResponsePartition(Struct):
    """A partition, its leader and its replicas."""

    error_code: Int16 = field()  # 0 when all went well
    partition_index: Int32 = field()  # partition number
    leader_id: Int32 = field()  # node id of the leader, -1 when there is none
    leader_epoch: Int32 = field("7+", default=-1, ignorable=True)  # leader epoch, -1 when not known
    replica_nodes: Array[Int32] = field()  # node ids of the replicas
    isr_nodes: Array[Int32] = field()  # node ids of the replicas in sync
    offline_replicas: Array[Int32] = field("5+", ignorable=True)  # node ids of the replicas that are down


class MetadataResponseTopic(Struct):
    """A topic and its partitions."""

    error_code: Int16 = field()  # 0 when all went well
    name: String | None = field(nullable="12+")  # name of the topic
    topic_id: Uuid = field("10+", ignorable=True)  # zero when it is not known
    is_internal: Bool = field("1+", ignorable=True)  # the topic is kept by Kafka itself
    partitions: Array[MetadataResponsePartition] = field()  # one for each partition
    # bits of the allowed operations; the lowest number when they were not asked for
    topic_authorized_operations: Int32 = field("8+", default=-(2**31))


class MetadataResponse(Response, to=MetadataRequest):
    """Brokers and topics as this broker sees them; another broker may know newer leaders."""

    # how long a quota held the answer back, or asks to wait
    throttle_time_ms: Int32 = field("3+", ignorable=True)
    brokers: Array[MetadataResponseBroker] = field()  # every broker that is alive
    cluster_id: String | None = field("2+", default=None, ignorable=True)  # null when it is not known
    # node id of the controller, -1 when not known
    controller_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: Array[MetadataResponseTopic] = field()  # one for each topic
    # bits of the allowed operations; the lowest number when they were not asked for
    cluster_authorized_operations: Int32 = field("8-10", default=-(2**31))
    error_code: Int16 = field("13+", ignorable=True)  # 0 when all went well


class DescribeClusterRequest(Request, key=60, versions="0-2", flexible="0+"):
    """Ask for the nodes of the cluster (KIP-700). v1: controllers too (KIP-919). v2: fenced brokers (KIP-1073)."""

    include_cluster_authorized_operations: Bool = field()  # ask for the allowed operations on the cluster
    endpoint_type: Int8 = field("1+", default=1)  # 1 brokers, 2 controllers
    include_fenced_brokers: Bool = field("2+")  # ask for fenced brokers too


class DescribeClusterBroker(Struct):
    """A node of the cluster."""

    broker_id: Int32 = field()
    host: String = field()  # name or address
    port: Int32 = field()
    rack: String | None = field(default=None)  # rack of the broker, null when it has none
    is_fenced: Bool = field("2+")  # the broker is registered but may not serve


class DescribeClusterResponse(Response, to=DescribeClusterRequest):
    """The nodes of the cluster."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    endpoint_type: Int8 = field("1+", default=1)  # 1 brokers, 2 controllers
    cluster_id: String = field()  # null when it is not known
    controller_id: Int32 = field(default=-1)  # node id of the controller, -1 when not known
    brokers: Array[DescribeClusterBroker] = field()  # every broker that is alive
    # bits of the allowed operations; the lowest number when they were not asked for
    cluster_authorized_operations: Int32 = field(default=-(2**31))


class TopicRequest(Struct):
    """A topic to describe."""

    name: String = field()  # name of the topic


class DescribeTopicPartitionsCursor(Struct):
    """Where to go on with a description that did not fit into one response."""

    topic_name: String = field()  # topic to begin with
    partition_index: Int32 = field()  # partition to begin with


class DescribeTopicPartitionsRequest(Request, key=75, versions="0", flexible="0+"):
    """Ask for topics page by page, with their eligible leaders (KIP-966)."""

    topics: Array[TopicRequest] = field()  # one for each topic
    response_partition_limit: Int32 = field(default=2000)  # most partitions on a page
    cursor: DescribeTopicPartitionsCursor | None = field(default=None)  # where to go on, null for the beginning


class DescribeTopicPartitionsResponsePartition(Struct):
    """A partition, its leader, its replicas and who may lead next."""

    error_code: Int16 = field()  # 0 when all went well
    partition_index: Int32 = field()  # partition number
    leader_id: Int32 = field()  # node id of the leader, -1 when there is none
    leader_epoch: Int32 = field(default=-1, ignorable=True)  # leader epoch, -1 when not known
    replica_nodes: Array[Int32] = field()  # node ids of the replicas
    isr_nodes: Array[Int32] = field()  # node ids of the replicas in sync
    # may lead without loss although not in sync; null when not kept
    eligible_leader_replicas: Array[Int32] | None = field(default=None)
    last_known_elr: Array[Int32] | None = field(default=None)  # last known eligible leaders; null when not kept
    offline_replicas: Array[Int32] = field(ignorable=True)  # node ids of the replicas that are down


class DescribeTopicPartitionsResponseTopic(Struct):
    """A topic and those of its partitions that are on this page."""

    error_code: Int16 = field()  # 0 when all went well
    name: String | None = field()  # name of the topic
    topic_id: Uuid = field(ignorable=True)  # zero when it is not known
    is_internal: Bool = field(ignorable=True)  # the topic is kept by Kafka itself
    partitions: Array[DescribeTopicPartitionsResponsePartition] = field()  # one for each partition
    # bits of the allowed operations; the lowest number when they were not asked for
    topic_authorized_operations: Int32 = field(default=-(2**31))


class DescribeTopicPartitionsNextCursor(Struct):
    """Where the next request goes on."""

    topic_name: String = field()  # topic to begin with
    partition_index: Int32 = field()  # partition to begin with


class DescribeTopicPartitionsResponse(Response, to=DescribeTopicPartitionsRequest):
    """One page of topics."""

    throttle_time_ms: Int32 = field(ignorable=True)  # how long a quota held the answer back, or asks to wait
    topics: Array[DescribeTopicPartitionsResponseTopic] = field()  # one for each topic
    # where to go on, null at the end
    next_cursor: DescribeTopicPartitionsNextCursor | None = field(default=None)
