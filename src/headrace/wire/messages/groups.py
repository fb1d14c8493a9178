"""Classic consumer groups, and the structures that their members exchange."""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Bytes,
    Embedded,
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
    "ConsumerProtocolAssignment",
    "ConsumerProtocolAssignmentTopicPartition",
    "ConsumerProtocolSubscription",
    "Coordinator",
    "DeletableGroupResult",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribedGroup",
    "DescribedGroupMember",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "JoinGroupRequest",
    "JoinGroupRequestProtocol",
    "JoinGroupResponse",
    "JoinGroupResponseMember",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListedGroup",
    "MemberIdentity",
    "MemberResponse",
    "SyncGroupRequest",
    "SyncGroupRequestAssignment",
    "SyncGroupResponse",
    "TopicPartition",
]


class FindCoordinatorRequest(Request, key=10, versions="0-6", flexible="3+"):
    """Ask who coordinates a group or transactional id; v4 takes several keys (KIP-699)."""

    key: String = field("0-3")
    key_type: Int8 = field("1+", default=0)
    coordinator_keys: Array[String] = field("4+")


class Coordinator(Struct):
    """One entry: coordinator."""

    key: String = field("4+")
    node_id: Int32 = field("4+")
    host: String = field("4+")
    port: Int32 = field("4+")
    error_code: Int16 = field("4+")
    error_message: String | None = field("4+", nullable="4+", ignorable=True)


class FindCoordinatorResponse(Response, key=10, versions="0-6", flexible="3+"):
    """Answer to `FindCoordinatorRequest`."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("0-3")
    error_message: String | None = field("1-3", nullable="1-3", ignorable=True)
    node_id: Int32 = field("0-3")
    host: String = field("0-3")
    port: Int32 = field("0-3")
    coordinators: Array[Coordinator] = field("4+")


FindCoordinatorRequest.response_type = FindCoordinatorResponse


class JoinGroupRequestProtocol(Struct):
    """One entry: join group request protocol."""

    name: String = field()
    metadata: Bytes = field()


class JoinGroupRequest(Request, key=11, versions="0-9", flexible="6+"):
    """Enter a classic group's rebalance; v4 asks for a member id first (KIP-394), v5 static members (KIP-345)."""

    group_id: String = field()
    session_timeout_ms: Int32 = field()
    rebalance_timeout_ms: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String = field()
    group_instance_id: String | None = field("5+", default=None, nullable="5+")
    protocol_type: String = field()
    protocols: Array[JoinGroupRequestProtocol] = field()
    reason: String | None = field("8+", default=None, nullable="8+", ignorable=True)


class JoinGroupResponseMember(Struct):
    """One entry: join group response member."""

    member_id: String = field()
    group_instance_id: String | None = field("5+", default=None, nullable="5+", ignorable=True)
    metadata: Bytes = field()


class JoinGroupResponse(Response, key=11, versions="0-9", flexible="6+"):
    """Answer to `JoinGroupRequest`."""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    error_code: Int16 = field()
    generation_id: Int32 = field(default=-1)
    protocol_type: String | None = field("7+", default=None, nullable="7+", ignorable=True)
    protocol_name: String | None = field(nullable="7+")
    leader: String = field()
    skip_assignment: Bool = field("9+")
    member_id: String = field()
    members: Array[JoinGroupResponseMember] = field()


JoinGroupRequest.response_type = JoinGroupResponse


class SyncGroupRequestAssignment(Struct):
    """One entry: sync group request assignment."""

    member_id: String = field()
    assignment: Bytes = field()


class SyncGroupRequest(Request, key=14, versions="0-5", flexible="4+"):
    """Hand out (the leader) and receive assignments."""

    group_id: String = field()
    generation_id: Int32 = field()
    member_id: String = field()
    group_instance_id: String | None = field("3+", default=None, nullable="3+")
    protocol_type: String | None = field("5+", default=None, nullable="5+", ignorable=True)
    protocol_name: String | None = field("5+", default=None, nullable="5+", ignorable=True)
    assignments: Array[SyncGroupRequestAssignment] = field()


class SyncGroupResponse(Response, key=14, versions="0-5", flexible="4+"):
    """Answer to `SyncGroupRequest`."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field()
    protocol_type: String | None = field("5+", default=None, nullable="5+", ignorable=True)
    protocol_name: String | None = field("5+", default=None, nullable="5+", ignorable=True)
    assignment: Bytes = field()


SyncGroupRequest.response_type = SyncGroupResponse


class HeartbeatRequest(Request, key=12, versions="0-4", flexible="4+"):
    """Tell the coordinator that the member lives."""

    group_id: String = field()
    generation_id: Int32 = field()
    member_id: String = field()
    group_instance_id: String | None = field("3+", default=None, nullable="3+")


class HeartbeatResponse(Response, key=12, versions="0-4", flexible="4+"):
    """Answer to `HeartbeatRequest`."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field()


HeartbeatRequest.response_type = HeartbeatResponse


class MemberIdentity(Struct):
    """One entry: member identity."""

    member_id: String = field("3+")
    group_instance_id: String | None = field("3+", default=None, nullable="3+")
    reason: String | None = field("5+", default=None, nullable="5+", ignorable=True)


class LeaveGroupRequest(Request, key=13, versions="0-5", flexible="4+"):
    """Leave a group; v3 takes several members."""

    group_id: String = field()
    member_id: String = field("0-2")
    members: Array[MemberIdentity] = field("3+")


class MemberResponse(Struct):
    """One entry: member response."""

    member_id: String = field("3+")
    group_instance_id: String | None = field("3+", nullable="3+")
    error_code: Int16 = field("3+")


class LeaveGroupResponse(Response, key=13, versions="0-5", flexible="4+"):
    """Answer to `LeaveGroupRequest`."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field()
    members: Array[MemberResponse] = field("3+")


LeaveGroupRequest.response_type = LeaveGroupResponse


class DescribeGroupsRequest(Request, key=15, versions="0-6", flexible="5+"):
    """Ask for the state and members of classic groups."""

    groups: Array[String] = field()
    include_authorized_operations: Bool = field("3+")


class DescribedGroupMember(Struct):
    """One entry: described group member."""

    member_id: String = field()
    group_instance_id: String | None = field("4+", default=None, nullable="4+", ignorable=True)
    client_id: String = field()
    client_host: String = field()
    member_metadata: Bytes = field()
    member_assignment: Bytes = field()


class DescribedGroup(Struct):
    """One entry: described group."""

    error_code: Int16 = field()
    error_message: String | None = field("6+", default=None, nullable="6+")
    group_id: String = field()
    group_state: String = field()
    protocol_type: String = field()
    protocol_data: String = field()
    members: Array[DescribedGroupMember] = field()
    authorized_operations: Int32 = field("3+", default=-2147483648)


class DescribeGroupsResponse(Response, key=15, versions="0-6", flexible="5+"):
    """Answer to `DescribeGroupsRequest`."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    groups: Array[DescribedGroup] = field()


DescribeGroupsRequest.response_type = DescribeGroupsResponse


class ListGroupsRequest(Request, key=16, versions="0-5", flexible="3+"):
    """Ask a broker for the groups it coordinates."""

    states_filter: Array[String] = field("4+")
    types_filter: Array[String] = field("5+")


class ListedGroup(Struct):
    """One entry: listed group."""

    group_id: String = field()
    protocol_type: String = field()
    group_state: String = field("4+", ignorable=True)
    group_type: String = field("5+", ignorable=True)


class ListGroupsResponse(Response, key=16, versions="0-5", flexible="3+"):
    """Answer to `ListGroupsRequest`."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field()
    groups: Array[ListedGroup] = field()


ListGroupsRequest.response_type = ListGroupsResponse


class DeleteGroupsRequest(Request, key=42, versions="0-3", flexible="2+"):
    """Delete empty groups."""

    groups_names: Array[String] = field()


class DeletableGroupResult(Struct):
    """One entry: deletable group result."""

    group_id: String = field()
    error_code: Int16 = field()
    error_message: String | None = field("3+", default=None, nullable="3+", ignorable=True)


class DeleteGroupsResponse(Response, key=42, versions="0-3", flexible="2+"):
    """Answer to `DeleteGroupsRequest`."""

    throttle_time_ms: Int32 = field()
    results: Array[DeletableGroupResult] = field()


DeleteGroupsRequest.response_type = DeleteGroupsResponse


class TopicPartition(Struct):
    """One entry: topic partition."""

    topic: String = field("1+")
    partitions: Array[Int32] = field("1+")


class ConsumerProtocolSubscription(Embedded, versions="0-3", flexible="none"):
    """What a member of a consumer group wants; v1 owned partitions (KIP-429), v2 generation (KIP-792), v3 rack
    (KIP-881).
    """

    topics: Array[String] = field()
    user_data: Bytes | None = field(default=None, nullable="0+")
    owned_partitions: Array[TopicPartition] = field("1+", ignorable=True)
    generation_id: Int32 = field("2+", default=-1, ignorable=True)
    rack_id: String | None = field("3+", default=None, nullable="3+", ignorable=True)


class ConsumerProtocolAssignmentTopicPartition(Struct):
    """One entry: topic partition."""

    topic: String = field()
    partitions: Array[Int32] = field()


class ConsumerProtocolAssignment(Embedded, versions="0-3", flexible="none"):
    """The partitions that a member of a consumer group is given."""

    assigned_partitions: Array[ConsumerProtocolAssignmentTopicPartition] = field()
    user_data: Bytes | None = field(default=None, nullable="0+")
