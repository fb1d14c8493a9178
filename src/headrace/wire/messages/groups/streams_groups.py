"""Groups of Kafka Streams applications: their heartbeat, and the description of what they run (KIP-1071, KIP-1331).

Read next: `wire.messages.groups.consumer_groups`.
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
    field,
)

__all__ = [
    "DescribedStreamsGroup", "DescribedStreamsMember", "DescribedSubtopology", "DescribedTopology",
    "DescribedTopologyDescription", "DescribedTopologyGlobalStore", "DescribedTopologyNode",
    "DescribedTopologySubtopology", "StreamsAssignment", "StreamsCopartitionGroup", "StreamsEndpoint",
    "StreamsEndpointPartitions", "StreamsGroupDescribeRequest", "StreamsGroupDescribeResponse",
    "StreamsGroupHeartbeatRequest", "StreamsGroupHeartbeatResponse", "StreamsGroupTopologyDescriptionUpdateRequest",
    "StreamsGroupTopologyDescriptionUpdateResponse", "StreamsKeyValue", "StreamsStatus", "StreamsSubtopology",
    "StreamsTaskIds", "StreamsTaskOffset", "StreamsTopicInfo", "StreamsTopicPartition", "StreamsTopology",
    "TopologyDescription", "TopologyDescriptionGlobalStore", "TopologyDescriptionNode",
    "TopologyDescriptionSubtopology",
]


class StreamsKeyValue(Struct):
    """A name and its value."""

    key: String = field()
    """The name."""
    value: String = field()
    """Its value."""


class StreamsTopicInfo(Struct):
    """A topic inside of an application."""

    name: String = field()
    """Name of the topic."""
    partitions: Int32 = field()
    """Number of partitions; 0 when it follows from other topics."""
    replication_factor: Int16 = field()
    """Number of replicas; 0 for the broker's default."""
    topic_configs: Array[StreamsKeyValue] = field()
    """Settings of the topic."""


class StreamsCopartitionGroup(Struct):
    """Source topics that must have the same number of partitions."""

    source_topics: Array[Int16] = field()
    """Positions in the subtopology's `source_topics`."""
    source_topic_regex: Array[Int16] = field()
    """Positions in the subtopology's `source_topic_regex`."""
    repartition_source_topics: Array[Int16] = field()
    """Positions in the subtopology's `repartition_source_topics`."""


class StreamsSubtopology(Struct):
    """A part of a topology that shares no state with the others; a task is one of its partitions."""

    subtopology_id: String = field()
    """Id of the subtopology."""
    source_topics: Array[String] = field()
    """Topics that are read."""
    source_topic_regex: Array[String] = field()
    """Regular expressions of topics that are read."""
    state_changelog_topics: Array[StreamsTopicInfo] = field()
    """Changelogs of its stores; the broker creates them."""
    repartition_sink_topics: Array[String] = field()
    """Repartition topics that it writes."""
    repartition_source_topics: Array[StreamsTopicInfo] = field()
    """Repartition topics that it reads; the broker creates them."""
    copartition_groups: Array[StreamsCopartitionGroup] = field()
    """Which topics must have the same number of partitions."""


class StreamsTopology(Struct):
    """The topology of an application, as much of it as assigning tasks needs."""

    epoch: Int32 = field()
    """Epoch of the topology."""
    subtopologies: Array[StreamsSubtopology] = field()
    """Parts of the topology."""


class StreamsTaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: String = field()
    """Id of the subtopology."""
    partitions: Array[Int32] = field()
    """Partition numbers of the tasks."""


class StreamsEndpoint(Struct):
    """Where an instance answers interactive queries."""

    host: String = field()
    """Name or address."""
    port: Uint16 = field()
    """TCP port."""


class StreamsTaskOffset(Struct):
    """How far a task has come in its changelog."""

    subtopology_id: String = field()
    """Id of the subtopology."""
    partition: Int32 = field()
    """Partition number."""
    offset: Int64 = field()
    """The offset."""


class StreamsGroupHeartbeatRequest(Request, key=88, versions="0-1", flexible="0+"):
    """Join, stay in or leave a streams group, and report its tasks (KIP-1071). v1: topology descriptions (KIP-1331)."""

    group_id: String = field()
    """Name of the group."""
    member_id: String = field()
    """Id of the member, which it made itself."""
    member_epoch: Int32 = field()
    """Epoch of the member; 0 joins, -1 leaves, -2 leaves for a restart of a static member."""
    endpoint_information_epoch: Int32 = field()
    """Last epoch of endpoints that the member has got."""
    instance_id: String | None = field(default=None)
    """Name of a static member; null when there is none or it did not change."""
    rack_id: String | None = field(default=None)
    """Rack of the member; null when it has none or it did not change."""
    rebalance_timeout_ms: Int32 = field(default=-1)
    """Milliseconds the member may take to give up tasks; -1 when unchanged."""
    topology: StreamsTopology | None = field(default=None)
    """DescribedTopology of the application, when joining; else null."""
    active_tasks: Array[StreamsTaskIds] | None = field(default=None)
    """Active tasks that the member holds; null when unchanged."""
    standby_tasks: Array[StreamsTaskIds] | None = field(default=None)
    """Standby tasks that the member holds; null when unchanged."""
    warmup_tasks: Array[StreamsTaskIds] | None = field(default=None)
    """Warm-up tasks that the member holds; null when unchanged."""
    process_id: String | None = field(default=None)
    """Process that the member belongs to; null when unchanged."""
    user_endpoint: StreamsEndpoint | None = field(default=None)
    """Where the process answers interactive queries; null when it does not, or unchanged."""
    client_tags: Array[StreamsKeyValue] | None = field(default=None)
    """Tags for spreading tasks over racks; null when unchanged."""
    task_offsets: Array[StreamsTaskOffset] | None = field(default=None)
    """How far tasks have come in their changelogs; null when unchanged."""
    task_end_offsets: Array[StreamsTaskOffset] | None = field(default=None)
    """Where the changelogs of tasks end; null when unchanged."""
    shutdown_application: Bool = field()
    """Every member of the group shall stop."""


class StreamsStatus(Struct):
    """Something about the group that the member should know."""

    status_code: Int8 = field()
    """Number of the status."""
    status_detail: String = field()
    """The status in words."""


class StreamsTopicPartition(Struct):
    """Partitions of one topic."""

    topic: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class StreamsEndpointPartitions(Struct):
    """The partitions whose state an endpoint holds."""

    user_endpoint: StreamsEndpoint = field()
    """The endpoint; several entries may name the same one."""
    active_partitions: Array[StreamsTopicPartition] = field()
    """Source partitions of its active tasks."""
    standby_partitions: Array[StreamsTopicPartition] = field()
    """Source partitions of its standby and warm-up tasks."""


class StreamsGroupHeartbeatResponse(Response, to=StreamsGroupHeartbeatRequest):
    """The member's epoch and, when they changed, its tasks."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the sender to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""
    member_id: String = field()
    """Id of the member, which it made itself."""
    member_epoch: Int32 = field()
    """Epoch of the member from now on."""
    heartbeat_interval_ms: Int32 = field()
    """Milliseconds until the next heartbeat."""
    acceptable_recovery_lag_legacy: Int32 = field("0")
    """The same as `acceptable_recovery_lag`, in 32 bits."""
    task_offset_interval_ms: Int32 = field()
    """Milliseconds between reports of task offsets."""
    acceptable_recovery_lag: Int64 = field("1+", default=-1, ignorable=True)
    """Largest lag in offsets at which a task may become active; -1 when the broker does not say."""
    status: Array[StreamsStatus] | None = field()
    """What the member should know about the group; may be null."""
    active_tasks: Array[StreamsTaskIds] | None = field(default=None)
    """Active tasks of the member; null when unchanged."""
    standby_tasks: Array[StreamsTaskIds] | None = field(default=None)
    """Standby tasks of the member; null when unchanged."""
    warmup_tasks: Array[StreamsTaskIds] | None = field(default=None)
    """Warm-up tasks of the member; null when unchanged."""
    topology_description_required: Bool = field("1+")
    """The broker lacks a current description: send StreamsGroupTopologyDescriptionUpdate."""
    endpoint_information_epoch: Int32 = field()
    """Epoch of the endpoints below."""
    partitions_by_user_endpoint: Array[StreamsEndpointPartitions] | None = field(default=None)
    """Endpoints and their partitions, one entry for each member; null when unchanged."""


class TopologyDescriptionNode(Struct):
    """A node of the processing graph."""

    name: String = field()
    """Name of the node."""
    node_type: Int8 = field()
    """1 source, 2 processor, 3 sink."""
    source_topics: Array[String] = field()
    """Topics that a source reads; empty when that is decided at run time."""
    sink_topic: String | None = field(default=None)
    """Topic that a sink writes; null when that is decided at run time."""
    stores: Array[String] = field()
    """State stores that a processor uses."""
    successors: Array[String] = field()
    """Names of the nodes behind this one."""


class TopologyDescriptionSubtopology(Struct):
    """One subtopology."""

    subtopology_id: String = field()
    """Id of the subtopology."""
    nodes: Array[TopologyDescriptionNode] = field()
    """Nodes of its graph."""


class TopologyDescriptionGlobalStore(Struct):
    """A store that every instance holds in full."""

    source: TopologyDescriptionNode = field()
    """Node that its records come from."""
    processor: TopologyDescriptionNode = field()
    """What fills it."""


class TopologyDescription(Struct):
    """A topology for people to read."""

    subtopologies: Array[TopologyDescriptionSubtopology] = field()
    """Parts of the topology."""
    global_stores: Array[TopologyDescriptionGlobalStore] = field()
    """Stores that every instance holds in full."""


class StreamsGroupTopologyDescriptionUpdateRequest(Request, key=93, versions="0", flexible="0+"):
    """Give the broker a description of the topology for administrators (KIP-1331)."""

    group_id: String = field()
    """Name of the group."""
    member_id: String = field()
    """Id of the member; one that the group does not have is answered with UNKNOWN_MEMBER_ID."""
    topology_epoch: Int32 = field()
    """Epoch of the topology."""
    topology_description: TopologyDescription = field()
    """The description."""


class StreamsGroupTopologyDescriptionUpdateResponse(Response, to=StreamsGroupTopologyDescriptionUpdateRequest):
    """Whether the description was kept."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the sender to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(default=None)
    """The error in words; null when there is none."""


class StreamsGroupDescribeRequest(Request, key=89, versions="0-1", flexible="0+"):
    """Ask about streams groups (KIP-1071). v1: the topology in full (KIP-1331)."""

    group_ids: Array[String] = field()
    """Names of the groups."""
    include_authorized_operations: Bool = field()
    """Ask for the allowed operations."""
    include_topology_description: Bool = field("1+")
    """Ask for the topology in full."""


class DescribedSubtopology(Struct):
    """A part of a topology that runs as tasks."""

    subtopology_id: String = field()
    """Id of the subtopology."""
    source_topics: Array[String] = field()
    """Topics that it reads."""
    repartition_sink_topics: Array[String] = field()
    """Repartition topics that it writes."""
    state_changelog_topics: Array[StreamsTopicInfo] = field()
    """Changelogs of its stores."""
    repartition_source_topics: Array[StreamsTopicInfo] = field()
    """Repartition topics that it reads."""


class DescribedTopology(Struct):
    """The topology that the group runs."""

    epoch: Int32 = field()
    """Epoch of the topology."""
    subtopologies: Array[DescribedSubtopology] | None = field(default=None)
    """One entry for each subtopology; null when not known."""


class StreamsAssignment(Struct):
    """Tasks that a member has, or shall have."""

    active_tasks: Array[StreamsTaskIds] = field()
    """Tasks that process."""
    standby_tasks: Array[StreamsTaskIds] = field()
    """Tasks that keep a copy."""
    warmup_tasks: Array[StreamsTaskIds] = field()
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
    user_endpoint: StreamsEndpoint | None = field(default=None)
    """Where it answers interactive queries; null when it does not."""
    client_tags: Array[StreamsKeyValue] = field()
    """Where the member runs, for rack awareness."""
    task_offsets: Array[StreamsTaskOffset] = field()
    """How far each task has come."""
    task_end_offsets: Array[StreamsTaskOffset] = field()
    """Where the changelog of each task ends."""
    assignment: StreamsAssignment = field()
    """Tasks that the member has."""
    target_assignment: StreamsAssignment = field()
    """Tasks that the member shall have."""
    is_classic: Bool = field()
    """The member has not changed over to the new protocol."""


class DescribedTopologyNode(Struct):
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


class DescribedTopologySubtopology(Struct):
    """The nodes of one subtopology."""

    subtopology_id: String = field("1+")
    """Id of the subtopology."""
    nodes: Array[DescribedTopologyNode] = field("1+")
    """One entry for each node."""


class DescribedTopologyGlobalStore(Struct):
    """A global store, its source and its processor."""

    source: DescribedTopologyNode = field("1+")
    """Node that its records come from."""
    processor: DescribedTopologyNode = field("1+")
    """Node that fills the store."""


class DescribedTopologyDescription(Struct):
    """The processing graph of the application."""

    subtopologies: Array[DescribedTopologySubtopology] = field("1+")
    """One entry for each subtopology; null when not known."""
    global_stores: Array[DescribedTopologyGlobalStore] = field("1+")
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
    topology: DescribedTopology | None = field(default=None)
    """DescribedTopology of the application; null when the group cannot be described."""
    members: Array[DescribedStreamsMember] = field()
    """Members of the group."""
    authorized_operations: Int32 = field(default=-(2**31))
    """Bits of the operations that the client may do; the lowest number when they were not asked for."""
    topology_description: DescribedTopologyDescription | None = field("1+", default=None)
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
