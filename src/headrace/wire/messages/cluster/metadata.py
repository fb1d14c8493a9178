"""Where everything is: brokers, topics, partitions and their leaders.

Read next: `machines.cluster.metadata`, which keeps what these answer.
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

    topic_id: Uuid = field("10+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    name: String | None = field(nullable="10+")
    """Name of the topic; null when it is asked for by id."""


class MetadataRequest(Request, key=3, versions="0-13", flexible="9+"):
    """Ask for brokers and for the partitions of topics.

    v10: topic ids (KIP-516). v13: a top-level error (KIP-1102).
    """

    topics: Array[MetadataRequestTopic] | None = field(nullable="1+")
    """Topics to look up; null for all, empty for none (in version 0 for all)."""
    allow_auto_topic_creation: Bool = field("4+", default=True)
    """The broker may create topics that do not exist."""
    include_cluster_authorized_operations: Bool = field("8-10")
    """Ask for the allowed operations on the cluster."""
    include_topic_authorized_operations: Bool = field("8+")
    """Ask for the allowed operations on each topic."""


class MetadataResponseBroker(Struct):
    """A broker and where it listens for clients."""

    node_id: Int32 = field()
    """Node id of the broker."""
    host: String = field()
    """Name or address."""
    port: Int32 = field()
    """TCP port."""
    rack: String | None = field("1+", default=None, ignorable=True)
    """Rack of the broker; null when it has none."""


class MetadataResponsePartition(Struct):
    """A partition, its leader and its replicas."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    partition_index: Int32 = field()
    """Partition number."""
    leader_id: Int32 = field()
    """Node id of the leader; -1 when there is none."""
    leader_epoch: Int32 = field("7+", default=-1, ignorable=True)
    """Leader epoch; -1 when not known."""
    replica_nodes: Array[Int32] = field()
    """Node ids of the replicas."""
    isr_nodes: Array[Int32] = field()
    """Node ids of the replicas in sync."""
    offline_replicas: Array[Int32] = field("5+", ignorable=True)
    """Node ids of the replicas that are down."""


class MetadataResponseTopic(Struct):
    """A topic and its partitions."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    name: String | None = field(nullable="12+")
    """Name of the topic."""
    topic_id: Uuid = field("10+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    is_internal: Bool = field("1+", ignorable=True)
    """The topic is kept by Kafka itself."""
    partitions: Array[MetadataResponsePartition] = field()
    """One entry for each partition."""
    topic_authorized_operations: Int32 = field("8+", default=-(2**31))
    """Bits of the operations that the client may do; the lowest number when they were not asked for."""


class MetadataResponse(Response, to=MetadataRequest):
    """Brokers and topics as this broker sees them; another broker may know newer leaders."""

    throttle_time_ms: Int32 = field("3+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    brokers: Array[MetadataResponseBroker] = field()
    """Every broker that is alive."""
    cluster_id: String | None = field("2+", default=None, ignorable=True)
    """Id of the cluster; null when it is not known."""
    controller_id: Int32 = field("1+", default=-1, ignorable=True)
    """Node id of the controller; -1 when not known."""
    topics: Array[MetadataResponseTopic] = field()
    """One entry for each topic."""
    cluster_authorized_operations: Int32 = field("8-10", default=-(2**31))
    """Bits of the operations that the client may do; the lowest number when they were not asked for."""
    error_code: Int16 = field("13+", ignorable=True)
    """Error code; 0 when all went well."""


class DescribeClusterRequest(Request, key=60, versions="0-2", flexible="0+"):
    """Ask for the nodes of the cluster (KIP-700). v1: controllers too (KIP-919). v2: fenced brokers (KIP-1073)."""

    include_cluster_authorized_operations: Bool = field()
    """Ask for the allowed operations on the cluster."""
    endpoint_type: Int8 = field("1+", default=1)
    """Kind of nodes: 1 brokers, 2 controllers."""
    include_fenced_brokers: Bool = field("2+")
    """Ask for fenced brokers too."""


class DescribeClusterBroker(Struct):
    """A node of the cluster."""

    broker_id: Int32 = field()
    """Node id of the broker."""
    host: String = field()
    """Name or address."""
    port: Int32 = field()
    """TCP port."""
    rack: String | None = field(default=None)
    """Rack of the broker; null when it has none."""
    is_fenced: Bool = field("2+")
    """The broker is registered but may not serve."""


class DescribeClusterResponse(Response, to=DescribeClusterRequest):
    """The nodes of the cluster."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    endpoint_type: Int8 = field("1+", default=1)
    """Kind of nodes: 1 brokers, 2 controllers."""
    cluster_id: String = field()
    """Id of the cluster."""
    controller_id: Int32 = field(default=-1)
    """Node id of the controller; -1 when not known."""
    brokers: Array[DescribeClusterBroker] = field()
    """Every node of the asked kind."""
    cluster_authorized_operations: Int32 = field(default=-(2**31))
    """Bits of the operations that the client may do; the lowest number when they were not asked for."""


class TopicRequest(Struct):
    """A topic to describe."""

    name: String = field()
    """Name of the topic."""


class DescribeTopicPartitionsCursor(Struct):
    """Where to go on with a description that did not fit into one response."""

    topic_name: String = field()
    """Topic to begin with."""
    partition_index: Int32 = field()
    """Partition to begin with."""


class DescribeTopicPartitionsRequest(Request, key=75, versions="0", flexible="0+"):
    """Ask for topics page by page, with their eligible leaders (KIP-966)."""

    topics: Array[TopicRequest] = field()
    """One entry for each topic."""
    response_partition_limit: Int32 = field(default=2000)
    """Most partitions on a page."""
    cursor: DescribeTopicPartitionsCursor | None = field(default=None)
    """Where to go on; null for the beginning."""


class DescribeTopicPartitionsResponsePartition(Struct):
    """A partition, its leader, its replicas and who may lead next."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    partition_index: Int32 = field()
    """Partition number."""
    leader_id: Int32 = field()
    """Node id of the leader; -1 when there is none."""
    leader_epoch: Int32 = field(default=-1, ignorable=True)
    """Leader epoch; -1 when not known."""
    replica_nodes: Array[Int32] = field()
    """Node ids of the replicas."""
    isr_nodes: Array[Int32] = field()
    """Node ids of the replicas in sync."""
    eligible_leader_replicas: Array[Int32] | None = field(default=None)
    """Node ids of replicas that may lead without loss although not in sync; null when not kept."""
    last_known_elr: Array[Int32] | None = field(default=None)
    """Node ids of the last known eligible leaders; null when not kept."""
    offline_replicas: Array[Int32] = field(ignorable=True)
    """Node ids of the replicas that are down."""


class DescribeTopicPartitionsResponseTopic(Struct):
    """A topic and those of its partitions that are on this page."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    name: String | None = field()
    """Name of the topic."""
    topic_id: Uuid = field(ignorable=True)
    """Id of the topic; zero when it is not known."""
    is_internal: Bool = field(ignorable=True)
    """The topic is kept by Kafka itself."""
    partitions: Array[DescribeTopicPartitionsResponsePartition] = field()
    """One entry for each partition."""
    topic_authorized_operations: Int32 = field(default=-(2**31))
    """Bits of the operations that the client may do; the lowest number when they were not asked for."""


class DescribeTopicPartitionsNextCursor(Struct):
    """Where the next request goes on."""

    topic_name: String = field()
    """Topic to begin with."""
    partition_index: Int32 = field()
    """Partition to begin with."""


class DescribeTopicPartitionsResponse(Response, to=DescribeTopicPartitionsRequest):
    """One page of topics."""

    throttle_time_ms: Int32 = field(ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[DescribeTopicPartitionsResponseTopic] = field()
    """One entry for each topic."""
    next_cursor: DescribeTopicPartitionsNextCursor | None = field(default=None)
    """Where to go on; null at the end."""
