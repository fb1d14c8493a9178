"""Coordinators and the classic group protocol; and the bytes that members send each other through it.

The coordinator does not read subscriptions and assignments: `ConsumerProtocolSubscription` and
`ConsumerProtocolAssignment` travel as bytes within JoinGroup and SyncGroup, their version in two bytes before them
(`codec.encode_prefixed`); within a subscription, in turn, travels what Java's sticky assignors send each other.
Read next: `machines.groups.classic`, `machines.groups.assignors`.
"""

from __future__ import annotations

from headrace.wire.schema import (
    ApiMessage,
    Array,
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    Request,
    Response,
    String,
    Struct,
    field,
)

__all__ = [
    "AssignmentTopicPartition", "ConsumerProtocolAssignment", "ConsumerProtocolSubscription",
    "CooperativeStickyAssignorUserData", "Coordinator", "DeletableGroupResult", "DeleteGroupsRequest",
    "DeleteGroupsResponse", "DescribeGroupsRequest", "DescribeGroupsResponse", "DescribedGroup",
    "DescribedGroupMember", "FindCoordinatorRequest", "FindCoordinatorResponse", "HeartbeatRequest",
    "HeartbeatResponse", "JoinGroupRequest", "JoinGroupRequestProtocol", "JoinGroupResponse",
    "JoinGroupResponseMember", "LeaveGroupRequest", "LeaveGroupResponse", "ListGroupsRequest", "ListGroupsResponse",
    "ListedGroup", "MemberIdentity", "MemberResponse", "StickyAssignorUserData", "StickyTopicPartitions",
    "SubscriptionTopicPartition", "SyncGroupRequest", "SyncGroupRequestAssignment", "SyncGroupResponse",
]


class FindCoordinatorRequest(Request, key=10, versions="0-6", flexible="3+"):
    """Ask which broker looks after a group, transaction or share partition.

    v4: several at once (KIP-699). v6: share groups (KIP-932).
    """

    key: String = field("0-3")
    """Name of the group or of the transaction."""
    key_type: Int8 = field("1+")
    """What the keys are: 0 groups, 1 transactions, 2 share partitions."""
    coordinator_keys: Array[String] = field("4+")
    """Names of groups or transactions; group:topic-id:partition for share groups."""


class Coordinator(Struct):
    """The coordinator of one key."""

    key: String = field("4+")
    """Name that was asked for."""
    node_id: Int32 = field("4+")
    """Node id of the coordinator; -1 when there is none."""
    host: String = field("4+")
    """Name or address."""
    port: Int32 = field("4+")
    """TCP port."""
    error_code: Int16 = field("4+")
    """Error code; 0 when all went well."""
    error_message: String | None = field("4+", ignorable=True)
    """The error in words; null when there is none."""


class FindCoordinatorResponse(Response, to=FindCoordinatorRequest):
    """Coordinators: one in the fields up to version 3, several in `coordinators` from version 4 on."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field("0-3")
    """Error code; 0 when all went well."""
    error_message: String | None = field("1-3", ignorable=True)
    """The error in words; null when there is none."""
    node_id: Int32 = field("0-3")
    """Node id of the coordinator; -1 when there is none."""
    host: String = field("0-3")
    """Name or address."""
    port: Int32 = field("0-3")
    """TCP port."""
    coordinators: Array[Coordinator] = field("4+")
    """One entry for each key."""


class JoinGroupRequestProtocol(Struct):
    """An assignment strategy that the member offers."""

    name: String = field()
    """Name of the strategy, for example range."""
    metadata: Bytes = field()
    """Bytes of a `ConsumerProtocolSubscription` with its version before it."""


class JoinGroupRequest(Request, key=11, versions="0-9", flexible="6+"):
    """Become or stay a member; waits until the round of joining ends.

    v4: the member id is given first (KIP-394). v5: static membership (KIP-345). v8: a reason (KIP-800). v9:
    SkipAssignment (KIP-814).
    """

    group_id: String = field()
    """Name of the group."""
    session_timeout_ms: Int32 = field()
    """Milliseconds of silence after which the member counts as dead."""
    rebalance_timeout_ms: Int32 = field("1+", default=-1, ignorable=True)
    """Milliseconds that members may take to join again."""
    member_id: String = field()
    """Id that the coordinator gave the member; empty for a new one."""
    group_instance_id: String | None = field("5+", default=None)
    """Name of a static member; null for others."""
    protocol_type: String = field()
    """Type of the group: "consumer" for consumers."""
    protocols: Array[JoinGroupRequestProtocol] = field()
    """Strategies, the preferred first."""
    reason: String | None = field("8+", default=None, ignorable=True)
    """Why, in words for the broker's log."""


class JoinGroupResponseMember(Struct):
    """A member as the leader sees it."""

    member_id: String = field()
    """Id of the member."""
    group_instance_id: String | None = field("5+", default=None, ignorable=True)
    """Name of a static member; null for others."""
    metadata: Bytes = field()
    """Bytes of a `ConsumerProtocolSubscription` with its version before it."""


class JoinGroupResponse(Response, to=JoinGroupRequest):
    """The new generation. Only the leader learns the members, and plans for all of them."""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    generation_id: Int32 = field(default=-1)
    """Number of the round of joining (generation)."""
    protocol_type: String | None = field("7+", default=None, ignorable=True)
    """Type of the group: "consumer" for consumers."""
    protocol_name: String | None = field(nullable="7+")
    """Name of the chosen strategy."""
    leader: String = field()
    """Member id of the leader."""
    skip_assignment: Bool = field("9+")
    """The leader keeps the plan that is there."""
    member_id: String = field()
    """Id of the member from now on."""
    members: Array[JoinGroupResponseMember] = field()
    """Members of the group."""


class SyncGroupRequestAssignment(Struct):
    """What the leader planned for one member."""

    member_id: String = field()
    """Id of the member."""
    assignment: Bytes = field()
    """Bytes of a `ConsumerProtocolAssignment` with its version before it."""


class SyncGroupRequest(Request, key=14, versions="0-5", flexible="4+"):
    """Hand in the plan (leader) or ask for one's part of it (everyone)."""

    group_id: String = field()
    """Name of the group."""
    generation_id: Int32 = field()
    """Number of the round of joining (generation)."""
    member_id: String = field()
    """Id of the member."""
    group_instance_id: String | None = field("3+", default=None)
    """Name of a static member; null for others."""
    protocol_type: String | None = field("5+", default=None, ignorable=True)
    """Type of the group: "consumer" for consumers."""
    protocol_name: String | None = field("5+", default=None, ignorable=True)
    """Name of the chosen strategy."""
    assignments: Array[SyncGroupRequestAssignment] = field()
    """The plan: bytes for each member, from the leader only."""


class SyncGroupResponse(Response, to=SyncGroupRequest):
    """The member's part of the plan."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    protocol_type: String | None = field("5+", default=None, ignorable=True)
    """Type of the group: "consumer" for consumers."""
    protocol_name: String | None = field("5+", default=None, ignorable=True)
    """Name of the chosen strategy."""
    assignment: Bytes = field()
    """Bytes of a `ConsumerProtocolAssignment` with its version before it."""


class HeartbeatRequest(Request, key=12, versions="0-4", flexible="4+"):
    """Show that the member lives, and learn whether a new round of joining has begun."""

    group_id: String = field()
    """Name of the group."""
    generation_id: Int32 = field()
    """Number of the round of joining (generation)."""
    member_id: String = field()
    """Id of the member."""
    group_instance_id: String | None = field("3+", default=None)
    """Name of a static member; null for others."""


class HeartbeatResponse(Response, to=HeartbeatRequest):
    """Whether the member may go on as it is."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class MemberIdentity(Struct):
    """A member that leaves."""

    member_id: String = field("3+")
    """Id of the member; empty when `group_instance_id` says who it is."""
    group_instance_id: String | None = field("3+", default=None)
    """Name of a static member; null for others."""
    reason: String | None = field("5+", default=None, ignorable=True)
    """Why, in words for the broker's log."""


class LeaveGroupRequest(Request, key=13, versions="0-5", flexible="4+"):
    """Leave the group. v3: several members, for administration (KIP-345). v5: a reason (KIP-800)."""

    group_id: String = field()
    """Name of the group."""
    member_id: String = field("0-2")
    """Id of the member."""
    members: Array[MemberIdentity] = field("3+")
    """Who leaves."""


class MemberResponse(Struct):
    """Whether one member has left."""

    member_id: String = field("3+")
    """Id of the member."""
    group_instance_id: String | None = field("3+")
    """Name of a static member; null for others."""
    error_code: Int16 = field("3+")
    """Error code; 0 when all went well."""


class LeaveGroupResponse(Response, to=LeaveGroupRequest):
    """Whether the members have left."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    members: Array[MemberResponse] = field("3+")
    """One entry for each that wanted to leave."""


class DescribeGroupsRequest(Request, key=15, versions="0-6", flexible="5+"):
    """Ask about classic groups. v3: allowed operations. v6: GROUP_ID_NOT_FOUND (KIP-1043)."""

    groups: Array[String] = field()
    """Names of the groups."""
    include_authorized_operations: Bool = field("3+")
    """Ask for the allowed operations."""


class DescribedGroupMember(Struct):
    """A member of a described group."""

    member_id: String = field()
    """Id of the member."""
    group_instance_id: String | None = field("4+", default=None, ignorable=True)
    """Name of a static member; null for others."""
    client_id: String = field()
    """Name that the member gives itself."""
    client_host: String = field()
    """Address that the member connects from."""
    member_metadata: Bytes = field()
    """Bytes of a `ConsumerProtocolSubscription`."""
    member_assignment: Bytes = field()
    """Bytes of a `ConsumerProtocolAssignment`."""


class DescribedGroup(Struct):
    """One classic group."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field("6+", default=None)
    """The error in words; null when there is none."""
    group_id: String = field()
    """Name of the group."""
    group_state: String = field()
    """State of the group, for example Stable or Empty."""
    protocol_type: String = field()
    """Type of the group: "consumer" for consumers."""
    protocol_data: String = field()
    """Name of the chosen strategy."""
    members: Array[DescribedGroupMember] = field()
    """Members of the group."""
    authorized_operations: Int32 = field("3+", default=-(2**31))
    """Bits of the operations that the client may do; the lowest number when they were not asked for."""


class DescribeGroupsResponse(Response, to=DescribeGroupsRequest):
    """The groups asked for."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    groups: Array[DescribedGroup] = field()
    """One entry for each group."""


class ListGroupsRequest(Request, key=16, versions="0-5", flexible="3+"):
    """Ask for the groups that this broker coordinates. v4: by state (KIP-518). v5: by type (KIP-848)."""

    states_filter: Array[String] = field("4+")
    """Only groups in these states; empty for all."""
    types_filter: Array[String] = field("5+")
    """Only groups of these types; empty for all."""


class ListedGroup(Struct):
    """A group in short."""

    group_id: String = field()
    """Name of the group."""
    protocol_type: String = field()
    """Type of the group: "consumer" for consumers."""
    group_state: String = field("4+", ignorable=True)
    """State of the group, for example Stable or Empty."""
    group_type: String = field("5+", ignorable=True)
    """Type of the group, for example classic or consumer."""


class ListGroupsResponse(Response, to=ListGroupsRequest):
    """The groups that this broker coordinates."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    groups: Array[ListedGroup] = field()
    """One entry for each group."""


class DeleteGroupsRequest(Request, key=42, versions="0-3", flexible="2+"):
    """Delete empty groups and their positions (KIP-229)."""

    groups_names: Array[String] = field()
    """Names of the groups; Kafka's own spelling."""


class DeletableGroupResult(Struct):
    """Whether one group was deleted. v3: why not, in words."""

    group_id: String = field()
    """Name of the group."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field("3+", default=None, ignorable=True)
    """The error in words; null when there is none."""


class DeleteGroupsResponse(Response, to=DeleteGroupsRequest):
    """Whether each group was deleted."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    results: Array[DeletableGroupResult] = field()
    """One entry for each that was asked for."""


class SubscriptionTopicPartition(Struct):
    """Partitions of a topic that a member owns."""

    topic: String = field("1+")
    """Name of the topic."""
    partitions: Array[Int32] = field("1+")
    """Partition numbers."""


class ConsumerProtocolSubscription(ApiMessage, versions="0-3"):
    """What a member sends the leader.

    v1: owned partitions (KIP-429). v2: generation (KIP-792). v3: rack (KIP-881).
    """

    topics: Array[String] = field()
    """Names of the subscribed topics."""
    user_data: Bytes | None = field(default=None)
    """What the strategy sends besides."""
    owned_partitions: Array[SubscriptionTopicPartition] = field("1+", ignorable=True)
    """Partitions that the member holds now, by topic."""
    generation_id: Int32 = field("2+", default=-1, ignorable=True)
    """Round of joining in which the member got them; -1 when not known."""
    rack_id: String | None = field("3+", default=None, ignorable=True)
    """Rack of the member; null when it has none."""


class AssignmentTopicPartition(Struct):
    """Partitions of a topic that a member is given."""

    topic: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class ConsumerProtocolAssignment(ApiMessage, versions="0-3"):
    """What the leader gives a member."""

    assigned_partitions: Array[AssignmentTopicPartition] = field()
    """Partitions that the member is given, by topic."""
    user_data: Bytes | None = field(default=None)
    """What the strategy sends besides."""


class StickyTopicPartitions(Struct):
    """Partitions of a topic that a member held."""

    topic: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class StickyAssignorUserData(ApiMessage, versions="0-1"):
    """User data of Java's `StickyAssignor` in a subscription. The bytes have no version: try 1, then 0 (KIP-54).

    v1: generation (KIP-341).
    """

    previous_assignment: Array[StickyTopicPartitions] = field()
    """Partitions that the member held, by topic."""
    generation: Int32 = field("1+", default=-1, ignorable=True)
    """Round of joining in which it got them; -1 when not known."""


class CooperativeStickyAssignorUserData(ApiMessage, versions="0"):
    """User data of Java's `CooperativeStickyAssignor` in a subscription (KIP-429), which has the partitions already."""

    generation: Int32 = field()
    """Round of joining in which the member got its partitions."""
