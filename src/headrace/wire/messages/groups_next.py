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

    topic_id: Uuid = field()  # zero when it is not known
    partitions: Array[Int32] = field()  # partition numbers


class ConsumerGroupHeartbeatRequest(Request, key=68, versions="0-1", flexible="0+"):
    """Join, stay in or leave a group, all in one (KIP-848).

    v1: a regular expression, and a member id made by the client (KIP-1082). What has not changed since the last one
    may be null.
    """

    group_id: String = field()  # name of the group
    member_id: String = field()  # id that the coordinator gave the member; empty for a new one
    member_epoch: Int32 = field()  # epoch of the member; 0 joins, -1 leaves, -2 leaves for a while (static)
    instance_id: String | None = field(default=None)  # name of a static member, null for others
    rack_id: String | None = field(default=None)  # rack of the client
    rebalance_timeout_ms: Int32 = field(default=-1)  # how long members may take to join again
    # names of the topics; null when unchanged
    subscribed_topic_names: Array[String] | None = field(default=None)
    # RE2 pattern of topics; null when unchanged
    subscribed_topic_regex: String | None = field("1+", default=None)
    # strategy of the coordinator; null for its own choice or when unchanged
    server_assignor: String | None = field(default=None)
    # one for each topic; null when unchanged
    topic_partitions: Array[OwnedTopicPartitions] | None = field(default=None)


class AssignedTopicPartitions(Struct):
    """Partitions of a topic that the member is given."""

    topic_id: Uuid = field()  # zero when it is not known
    partitions: Array[Int32] = field()  # partition numbers


class MemberAssignment(Struct):
    """What the member is given."""

    topic_partitions: Array[AssignedTopicPartitions] = field()  # one for each topic


class ConsumerGroupHeartbeatResponse(Response, to=ConsumerGroupHeartbeatRequest):
    """The member's epoch, and its assignment when that has changed."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    # id that the coordinator gave the member; empty for a new one
    member_id: String | None = field(default=None)
    member_epoch: Int32 = field()  # epoch of a member of a KIP-848 group
    heartbeat_interval_ms: Int32 = field()  # send the next heartbeat after this time
    # bytes of a `ConsumerProtocolAssignment` with its version before it
    assignment: MemberAssignment | None = field(default=None)


class ConsumerGroupDescribeRequest(Request, key=69, versions="0-1", flexible="0+"):
    """Ask about KIP-848 consumer groups."""

    group_ids: Array[String] = field()  # names of the groups
    include_authorized_operations: Bool = field()  # ask for the allowed operations


class DescribedTopicPartitions(Struct):
    """Partitions of a topic."""

    topic_id: Uuid = field()  # zero when it is not known
    topic_name: String = field()  # topic to begin with
    partitions: Array[Int32] = field()  # partition numbers


class DescribedAssignment(Struct):
    """Partitions that a member has, or shall have."""

    topic_partitions: Array[DescribedTopicPartitions] = field()  # one for each topic


class DescribedConsumer(Struct):
    """A member of a consumer group."""

    member_id: String = field()  # id that the coordinator gave the member; empty for a new one
    instance_id: String | None = field(default=None)  # name of a static member, null for others
    rack_id: String | None = field(default=None)  # rack of the client
    member_epoch: Int32 = field()  # epoch of a member of a KIP-848 group
    client_id: String = field()  # name that the member gives itself
    client_host: String = field()  # address that the member connects from
    subscribed_topic_names: Array[String] = field()  # names of the topics; null when unchanged
    subscribed_topic_regex: String | None = field(default=None)  # RE2 pattern of topics; null when unchanged
    # bytes of a `ConsumerProtocolAssignment` with its version before it
    assignment: DescribedAssignment = field()
    target_assignment: DescribedAssignment = field()  # what the member shall have
    member_type: Int8 = field("1+", default=-1, ignorable=True)  # -1 unknown, 0 classic, 1 consumer


class DescribedConsumerGroup(Struct):
    """One consumer group."""

    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    group_id: String = field()  # name of the group
    group_state: String = field()  # for example Stable or Empty
    group_epoch: Int32 = field()  # grows when members or topics change
    assignment_epoch: Int32 = field()  # group epoch that the plan was made for
    assignor_name: String = field()  # the chosen strategy
    members: Array[DescribedConsumer] = field()  # members of the group
    # bits of the allowed operations; the lowest number when they were not asked for
    authorized_operations: Int32 = field(default=-(2**31))


class ConsumerGroupDescribeResponse(Response, to=ConsumerGroupDescribeRequest):
    """The groups asked for."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    groups: Array[DescribedConsumerGroup] = field()  # one for each group


class OffsetDeleteRequestPartition(Struct):
    """A partition whose position goes."""

    partition_index: Int32 = field()  # partition number


class OffsetDeleteRequestTopic(Struct):
    """A topic whose positions go."""

    name: String = field()  # name of the topic
    partitions: Array[OffsetDeleteRequestPartition] = field()  # one for each partition


class OffsetDeleteRequest(Request, key=47, versions="0"):
    """Delete a group's committed positions for topics that it does not read (KIP-496)."""

    group_id: String = field()  # name of the group
    topics: Array[OffsetDeleteRequestTopic] = field()  # one for each topic


class OffsetDeleteResponsePartition(Struct):
    """Whether one position is gone."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well


class OffsetDeleteResponseTopic(Struct):
    """Whether the positions of one topic are gone."""

    name: String = field()  # name of the topic
    partitions: Array[OffsetDeleteResponsePartition] = field()  # one for each partition


class OffsetDeleteResponse(Response, to=OffsetDeleteRequest):
    """Whether each position is gone."""

    error_code: Int16 = field()  # 0 when all went well
    throttle_time_ms: Int32 = field(ignorable=True)  # how long a quota held the answer back, or asks to wait
    topics: Array[OffsetDeleteResponseTopic] = field()  # one for each topic


class StreamsGroupDescribeRequest(Request, key=89, versions="0-1", flexible="0+"):
    """Ask about streams groups (KIP-1071). v1: the topology in full (KIP-1331)."""

    group_ids: Array[String] = field()  # names of the groups
    include_authorized_operations: Bool = field()  # ask for the allowed operations
    include_topology_description: Bool = field("1+")  # ask for the topology in full


class KeyValue(Struct):
    """A key and its value."""

    key: String = field()  # group id or transactional id
    value: String = field()  # value of the entry, null for its default or a secret


class TopicInfo(Struct):
    """An internal topic of a streams application."""

    name: String = field()  # name of the topic
    partitions: Int32 = field()  # number of partitions; 0 when it follows from the sources
    replication_factor: Int16 = field()  # number of replicas; 0 for the default
    topic_configs: Array[KeyValue] = field()  # configuration of the topic


class Subtopology(Struct):
    """A part of a topology that runs as tasks."""

    subtopology_id: String = field()  # id of the subtopology
    source_topics: Array[String] = field()  # topics that it reads
    repartition_sink_topics: Array[String] = field()  # repartition topics that it writes
    state_changelog_topics: Array[TopicInfo] = field()  # changelogs of its stores
    repartition_source_topics: Array[TopicInfo] = field()  # repartition topics that it reads


class Topology(Struct):
    """The topology that the group runs."""

    epoch: Int32 = field()  # leader epoch, -1 for none
    # one for each subtopology; null when not known
    subtopologies: Array[Subtopology] | None = field(default=None)


class Endpoint(Struct):
    """Where a member answers interactive queries."""

    host: String = field()  # name or address
    port: Uint16 = field()


class TaskOffset(Struct):
    """How far a task has come."""

    subtopology_id: String = field()  # id of the subtopology
    partition: Int32 = field()
    offset: Int64 = field()


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: String = field()  # id of the subtopology
    partitions: Array[Int32] = field()  # partition numbers


class StreamsAssignment(Struct):
    """Tasks that a member has, or shall have."""

    active_tasks: Array[TaskIds] = field()  # tasks that process
    standby_tasks: Array[TaskIds] = field()  # tasks that keep a copy
    warmup_tasks: Array[TaskIds] = field()  # tasks that catch up


class DescribedStreamsMember(Struct):
    """A member of a streams group."""

    member_id: String = field()  # id that the coordinator gave the member; empty for a new one
    member_epoch: Int32 = field()  # epoch of a member of a KIP-848 group
    instance_id: String | None = field(default=None)  # name of a static member, null for others
    rack_id: String | None = field(default=None)  # rack of the client
    client_id: String = field()  # name that the member gives itself
    client_host: String = field()  # address that the member connects from
    topology_epoch: Int32 = field()  # epoch of the member's topology
    process_id: String = field()  # id of the process, which may have several members
    # where it answers interactive queries, null for nowhere
    user_endpoint: Endpoint | None = field(default=None)
    client_tags: Array[KeyValue] = field()  # for rack awareness
    task_offsets: Array[TaskOffset] = field()  # how far each task has come
    task_end_offsets: Array[TaskOffset] = field()  # where the changelog of each task ends
    # bytes of a `ConsumerProtocolAssignment` with its version before it
    assignment: StreamsAssignment = field()
    target_assignment: StreamsAssignment = field()  # what the member shall have
    is_classic: Bool = field()  # the member has not changed over to the new protocol


class TopologyDescriptionNode(Struct):
    """A node of the processing graph."""

    name: String = field("1+")  # name of the node
    node_type: Int8 = field("1+")  # 1 source, 2 processor, 3 sink
    source_topics: Array[String] = field("1+")  # topics that it reads
    # topic that it writes, null when it is chosen for each record
    sink_topic: String | None = field("1+", default=None)
    stores: Array[String] = field("1+")  # names of its state stores
    successors: Array[String] = field("1+")  # names of the nodes that follow


class TopologyDescriptionSubtopology(Struct):
    """The nodes of one subtopology."""

    subtopology_id: String = field("1+")  # id of the subtopology
    nodes: Array[TopologyDescriptionNode] = field("1+")  # one for each node


class TopologyDescriptionGlobalStore(Struct):
    """A global store, its source and its processor."""

    source: TopologyDescriptionNode = field("1+")  # as in `config_source`
    processor: TopologyDescriptionNode = field("1+")  # node that fills the store


class TopologyDescription(Struct):
    """The processing graph of the application."""

    # one for each subtopology; null when not known
    subtopologies: Array[TopologyDescriptionSubtopology] = field("1+")
    global_stores: Array[TopologyDescriptionGlobalStore] = field("1+")  # stores that every instance has in full


class DescribedStreamsGroup(Struct):
    """One streams group."""

    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(default=None)  # the error in words, null when there is none
    group_id: String = field()  # name of the group
    group_state: String = field()  # for example Stable or Empty
    group_epoch: Int32 = field()  # grows when members or topics change
    assignment_epoch: Int32 = field()  # group epoch that the plan was made for
    topology: Topology | None = field(default=None)  # null when the group can not be described
    members: Array[DescribedStreamsMember] = field()  # members of the group
    # bits of the allowed operations; the lowest number when they were not asked for
    authorized_operations: Int32 = field(default=-(2**31))
    topology_description: TopologyDescription | None = field("1+", default=None)  # null unless the status is 3
    topology_description_status: Int8 = field("1+")  # 0 not asked for, 1 none recorded, 2 error, 3 there
    assignor_name: String | None = field("1+", default=None, ignorable=True)  # the chosen strategy


class StreamsGroupDescribeResponse(Response, to=StreamsGroupDescribeRequest):
    """The groups asked for."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    groups: Array[DescribedStreamsGroup] = field()  # one for each group
