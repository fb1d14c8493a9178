"""Groups in which the coordinator plans (KIP-848, KIP-1071), and deleting committed offsets.

Read next: `wire.messages.groups` for the classic protocol.
"""

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
    Uint16,
    Uuid,
    field,
)

__all__ = [
    "AssignedTopicPartitions", "ConsumerGroupDescribeRequest", "ConsumerGroupDescribeResponse",
    "ConsumerGroupHeartbeatRequest", "ConsumerGroupHeartbeatResponse", "DescribedAssignment", "DescribedConsumer",
    "DescribedConsumerGroup", "DescribedStreamsGroup", "DescribedStreamsMember", "DescribedTopicPartitions", "Endpoint",
    "KeyValue", "MemberAssignment", "OffsetDeleteRequest", "OffsetDeleteRequestPartition", "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse", "OffsetDeleteResponsePartition", "OffsetDeleteResponseTopic", "OwnedTopicPartitions",
    "StreamsAssignment", "StreamsGroupDescribeRequest", "StreamsGroupDescribeResponse", "Subtopology", "TaskIds",
    "TaskOffset", "TopicInfo", "Topology", "TopologyDescription", "TopologyDescriptionGlobalStore",
    "TopologyDescriptionNode", "TopologyDescriptionSubtopology",
]


class OwnedTopicPartitions(Struct):
    """Partitions of a topic that the member holds."""

    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class ConsumerGroupHeartbeatRequest(Request, key=68, versions="0-1", flexible="0+"):
    """Join, stay in or leave a group, all in one (KIP-848).

    v1: a regular expression, and a member id made by the client (KIP-1082). What has not changed since the last one
    may be null.
    """

    group_id: String = field()
    """Name of the group."""
    member_id: String = field()
    """Id of the member: its own from version 1 on, before from the coordinator and empty for a new one."""
    member_epoch: Int32 = field()
    """Epoch of the member; 0 joins, -1 leaves, -2 leaves for a while (static)."""
    instance_id: String | None = field(default=None)
    """Name of a static member; null for others."""
    rack_id: String | None = field(default=None)
    """Rack of the client."""
    rebalance_timeout_ms: Int32 = field(default=-1)
    """Milliseconds that members may take to join again."""
    subscribed_topic_names: Array[String] | None = field(default=None)
    """Names of the topics; null when unchanged."""
    subscribed_topic_regex: String | None = field("1+", default=None)
    """RE2 pattern of topics; null when unchanged."""
    server_assignor: String | None = field(default=None)
    """Strategy of the coordinator; null for its own choice or when unchanged."""
    topic_partitions: Array[OwnedTopicPartitions] | None = field(default=None)
    """Partitions that the member holds, by topic; null when unchanged."""


class AssignedTopicPartitions(Struct):
    """Partitions of a topic that the member is given."""

    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class MemberAssignment(Struct):
    """What the member is given."""

    topic_partitions: Array[AssignedTopicPartitions] = field()
    """One entry for each topic."""


class ConsumerGroupHeartbeatResponse(Response, to=ConsumerGroupHeartbeatRequest):
    """The member's epoch, and its assignment when that has changed."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    member_id: String | None = field(default=None)
    """Id of the member; null when the member made it."""
    member_epoch: Int32 = field()
    """Epoch of the member from now on."""
    heartbeat_interval_ms: Int32 = field()
    """Milliseconds until the next heartbeat."""
    assignment: MemberAssignment | None = field(default=None)
    """Partitions that the member shall have; null when unchanged."""


class ConsumerGroupDescribeRequest(Request, key=69, versions="0-1", flexible="0+"):
    """Ask about KIP-848 consumer groups."""

    group_ids: Array[String] = field()
    """Names of the groups."""
    include_authorized_operations: Bool = field()
    """Ask for the allowed operations."""


class DescribedTopicPartitions(Struct):
    """Partitions of a topic."""

    topic_id: Uuid = field()
    """Id of the topic; zero when it is not known."""
    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class DescribedAssignment(Struct):
    """Partitions that a member has, or shall have."""

    topic_partitions: Array[DescribedTopicPartitions] = field()
    """One entry for each topic."""


class DescribedConsumer(Struct):
    """A member of a consumer group."""

    member_id: String = field()
    """Id of the member."""
    instance_id: String | None = field(default=None)
    """Name of a static member; null for others."""
    rack_id: String | None = field(default=None)
    """Rack of the client."""
    member_epoch: Int32 = field()
    """Epoch of the member."""
    client_id: String = field()
    """Name that the member gives itself."""
    client_host: String = field()
    """Address that the member connects from."""
    subscribed_topic_names: Array[String] = field()
    """Names of the topics that the member wants."""
    subscribed_topic_regex: String | None = field(default=None)
    """RE2 pattern of the topics that the member wants; null for none."""
    assignment: DescribedAssignment = field()
    """Partitions that the member has."""
    target_assignment: DescribedAssignment = field()
    """Partitions that the member shall have."""
    member_type: Int8 = field("1+", default=-1, ignorable=True)
    """Protocol of the member: -1 unknown, 0 classic, 1 consumer."""


class DescribedConsumerGroup(Struct):
    """One consumer group."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    group_id: String = field()
    """Name of the group."""
    group_state: String = field()
    """State of the group, for example Stable or Empty."""
    group_epoch: Int32 = field()
    """Grows when members or topics change."""
    assignment_epoch: Int32 = field()
    """Group epoch that the plan was made for."""
    assignor_name: String = field()
    """Name of the chosen strategy."""
    members: Array[DescribedConsumer] = field()
    """Members of the group."""
    authorized_operations: Int32 = field(default=-(2**31))
    """Bits of the operations that the client may do; the lowest number when they were not asked for."""


class ConsumerGroupDescribeResponse(Response, to=ConsumerGroupDescribeRequest):
    """The groups asked for."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    groups: Array[DescribedConsumerGroup] = field()
    """One entry for each group."""


class OffsetDeleteRequestPartition(Struct):
    """A partition whose position goes."""

    partition_index: Int32 = field()
    """Partition number."""


class OffsetDeleteRequestTopic(Struct):
    """A topic whose positions go."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[OffsetDeleteRequestPartition] = field()
    """One entry for each partition."""


class OffsetDeleteRequest(Request, key=47, versions="0"):
    """Delete a group's committed positions for topics that it does not read (KIP-496)."""

    group_id: String = field()
    """Name of the group."""
    topics: Array[OffsetDeleteRequestTopic] = field()
    """One entry for each topic."""


class OffsetDeleteResponsePartition(Struct):
    """Whether one position is gone."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class OffsetDeleteResponseTopic(Struct):
    """Whether the positions of one topic are gone."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[OffsetDeleteResponsePartition] = field()
    """One entry for each partition."""


class OffsetDeleteResponse(Response, to=OffsetDeleteRequest):
    """Whether each position is gone."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    throttle_time_ms: Int32 = field(ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[OffsetDeleteResponseTopic] = field()
    """One entry for each topic."""


class StreamsGroupDescribeRequest(Request, key=89, versions="0-1", flexible="0+"):
    """Ask about streams groups (KIP-1071). v1: the topology in full (KIP-1331)."""

    group_ids: Array[String] = field()
    """Names of the groups."""
    include_authorized_operations: Bool = field()
    """Ask for the allowed operations."""
    include_topology_description: Bool = field("1+")
    """Ask for the topology in full."""


class KeyValue(Struct):
    """A key and its value."""

    key: String = field()
    """The name."""
    value: String = field()
    """Its value."""


class TopicInfo(Struct):
    """An internal topic of a streams application."""

    name: String = field()
    """Name of the topic."""
    partitions: Int32 = field()
    """Number of partitions; 0 when it follows from the sources."""
    replication_factor: Int16 = field()
    """Number of replicas; 0 for the default."""
    topic_configs: Array[KeyValue] = field()
    """Configuration of the topic."""


class Subtopology(Struct):
    """A part of a topology that runs as tasks."""

    subtopology_id: String = field()
    """Id of the subtopology."""
    source_topics: Array[String] = field()
    """Topics that it reads."""
    repartition_sink_topics: Array[String] = field()
    """Repartition topics that it writes."""
    state_changelog_topics: Array[TopicInfo] = field()
    """Changelogs of its stores."""
    repartition_source_topics: Array[TopicInfo] = field()
    """Repartition topics that it reads."""


class Topology(Struct):
    """The topology that the group runs."""

    epoch: Int32 = field()
    """Epoch of the topology."""
    subtopologies: Array[Subtopology] | None = field(default=None)
    """One entry for each subtopology; null when not known."""


class Endpoint(Struct):
    """Where a member answers interactive queries."""

    host: String = field()
    """Name or address."""
    port: Uint16 = field()
    """TCP port."""


class TaskOffset(Struct):
    """How far a task has come."""

    subtopology_id: String = field()
    """Id of the subtopology."""
    partition: Int32 = field()
    """Partition number."""
    offset: Int64 = field()
    """How far the task has come."""


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: String = field()
    """Id of the subtopology."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class StreamsAssignment(Struct):
    """Tasks that a member has, or shall have."""

    active_tasks: Array[TaskIds] = field()
    """Tasks that process."""
    standby_tasks: Array[TaskIds] = field()
    """Tasks that keep a copy."""
    warmup_tasks: Array[TaskIds] = field()
    """Tasks that catch up."""


class DescribedStreamsMember(Struct):
    """A member of a streams group."""

    member_id: String = field()
    """Id of the member."""
    member_epoch: Int32 = field()
    """Epoch of the member."""
    instance_id: String | None = field(default=None)
    """Name of a static member; null for others."""
    rack_id: String | None = field(default=None)
    """Rack of the client."""
    client_id: String = field()
    """Name that the member gives itself."""
    client_host: String = field()
    """Address that the member connects from."""
    topology_epoch: Int32 = field()
    """Epoch of the member's topology."""
    process_id: String = field()
    """Id of the process, which may have several members."""
    user_endpoint: Endpoint | None = field(default=None)
    """Where it answers interactive queries; null for nowhere."""
    client_tags: Array[KeyValue] = field()
    """Where the member runs, for rack awareness."""
    task_offsets: Array[TaskOffset] = field()
    """How far each task has come."""
    task_end_offsets: Array[TaskOffset] = field()
    """Where the changelog of each task ends."""
    assignment: StreamsAssignment = field()
    """Tasks that the member has."""
    target_assignment: StreamsAssignment = field()
    """Tasks that the member shall have."""
    is_classic: Bool = field()
    """The member has not changed over to the new protocol."""


class TopologyDescriptionNode(Struct):
    """A node of the processing graph."""

    name: String = field("1+")
    """Name of the node."""
    node_type: Int8 = field("1+")
    """Kind of node: 1 source, 2 processor, 3 sink."""
    source_topics: Array[String] = field("1+")
    """Topics that it reads."""
    sink_topic: String | None = field("1+", default=None)
    """Topic that it writes; null when it is chosen for each record."""
    stores: Array[String] = field("1+")
    """Names of its state stores."""
    successors: Array[String] = field("1+")
    """Names of the nodes that follow."""


class TopologyDescriptionSubtopology(Struct):
    """The nodes of one subtopology."""

    subtopology_id: String = field("1+")
    """Id of the subtopology."""
    nodes: Array[TopologyDescriptionNode] = field("1+")
    """One entry for each node."""


class TopologyDescriptionGlobalStore(Struct):
    """A global store, its source and its processor."""

    source: TopologyDescriptionNode = field("1+")
    """Node that its records come from."""
    processor: TopologyDescriptionNode = field("1+")
    """Node that fills the store."""


class TopologyDescription(Struct):
    """The processing graph of the application."""

    subtopologies: Array[TopologyDescriptionSubtopology] = field("1+")
    """One entry for each subtopology; null when not known."""
    global_stores: Array[TopologyDescriptionGlobalStore] = field("1+")
    """Stores that every instance has in full."""


class DescribedStreamsGroup(Struct):
    """One streams group."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    group_id: String = field()
    """Name of the group."""
    group_state: String = field()
    """State of the group, for example Stable or Empty."""
    group_epoch: Int32 = field()
    """Grows when members or topics change."""
    assignment_epoch: Int32 = field()
    """Group epoch that the plan was made for."""
    topology: Topology | None = field(default=None)
    """Topology of the application; null when the group can not be described."""
    members: Array[DescribedStreamsMember] = field()
    """Members of the group."""
    authorized_operations: Int32 = field(default=-(2**31))
    """Bits of the operations that the client may do; the lowest number when they were not asked for."""
    topology_description: TopologyDescription | None = field("1+", default=None)
    """The description; null unless the status is 3."""
    topology_description_status: Int8 = field("1+")
    """State of the description: 0 not asked for, 1 none recorded, 2 error, 3 there."""
    assignor_name: String | None = field("1+", default=None, ignorable=True)
    """Name of the chosen strategy."""


class StreamsGroupDescribeResponse(Response, to=StreamsGroupDescribeRequest):
    """The groups asked for."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    groups: Array[DescribedStreamsGroup] = field()
    """One entry for each group."""
