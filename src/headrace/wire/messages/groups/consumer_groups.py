"""Groups in which the coordinator plans (KIP-848).

Read next: `wire.messages.groups.classic_groups` for the classic protocol.
"""

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
    "AssignedTopicPartitions", "ConsumerGroupDescribeRequest", "ConsumerGroupDescribeResponse",
    "ConsumerGroupHeartbeatRequest", "ConsumerGroupHeartbeatResponse", "DescribedAssignment", "DescribedConsumer",
    "DescribedConsumerGroup", "DescribedTopicPartitions", "HeartbeatAssignment", "OwnedTopicPartitions",
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


class HeartbeatAssignment(Struct):
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
    assignment: HeartbeatAssignment | None = field(default=None)
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

