"""Groups of Kafka Streams applications: their heartbeat, and the description of what they run (KIP-1071, KIP-1331).

Read next: `wire.messages.groups_next`, where such groups are described for administrators.
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
    "StreamsCopartitionGroup", "StreamsEndpoint", "StreamsEndpointPartitions", "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatResponse", "StreamsGroupTopologyDescriptionUpdateRequest",
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
    """Topology of the application, when joining; else null."""
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
