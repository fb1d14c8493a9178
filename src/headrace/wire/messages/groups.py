"""TODO"""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    Message,
    Request,
    Response,
    String,
    Struct,
    field,
)

__all__ = [
    "AssignmentTopicPartition", "ConsumerProtocolAssignment", "ConsumerProtocolSubscription", "Coordinator",
    "DeletableGroupResult", "DeleteGroupsRequest", "DeleteGroupsResponse", "DescribeGroupsRequest",
    "DescribeGroupsResponse", "DescribedGroup", "DescribedGroupMember", "FindCoordinatorRequest",
    "FindCoordinatorResponse", "HeartbeatRequest", "HeartbeatResponse", "JoinGroupRequest", "JoinGroupRequestProtocol",
    "JoinGroupResponse", "JoinGroupResponseMember", "LeaveGroupRequest", "LeaveGroupResponse", "ListGroupsRequest",
    "ListGroupsResponse", "ListedGroup", "MemberIdentity", "MemberResponse", "SubscriptionTopicPartition",
    "SyncGroupRequest", "SyncGroupRequestAssignment", "SyncGroupResponse",
]


class FindCoordinatorRequest(Request, key=10, versions="0-6", flexible="3+"):
    """TODO FindCoordinatorRequest"""

    key: String = field("0-3")
    key_type: Int8 = field("1+")
    coordinator_keys: Array[String] = field("4+")


class Coordinator(Struct):
    """TODO Coordinator"""

    key: String = field("4+")
    node_id: Int32 = field("4+")
    host: String = field("4+")
    port: Int32 = field("4+")
    error_code: Int16 = field("4+")
    error_message: String | None = field("4+", ignorable=True)


class FindCoordinatorResponse(Response, to=FindCoordinatorRequest):
    """TODO FindCoordinatorResponse"""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("0-3")
    error_message: String | None = field("1-3", ignorable=True)
    node_id: Int32 = field("0-3")
    host: String = field("0-3")
    port: Int32 = field("0-3")
    coordinators: Array[Coordinator] = field("4+")


class JoinGroupRequestProtocol(Struct):
    """TODO JoinGroupRequestProtocol"""

    name: String = field()
    metadata: Bytes = field()


class JoinGroupRequest(Request, key=11, versions="0-9", flexible="6+"):
    """TODO JoinGroupRequest"""

    group_id: String = field()
    session_timeout_ms: Int32 = field()
    rebalance_timeout_ms: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String = field()
    group_instance_id: String | None = field("5+", default=None)
    protocol_type: String = field()
    protocols: Array[JoinGroupRequestProtocol] = field()
    reason: String | None = field("8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    """TODO JoinGroupResponseMember"""

    member_id: String = field()
    group_instance_id: String | None = field("5+", default=None, ignorable=True)
    metadata: Bytes = field()


class JoinGroupResponse(Response, to=JoinGroupRequest):
    """TODO JoinGroupResponse"""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    error_code: Int16 = field()
    generation_id: Int32 = field(default=-1)
    protocol_type: String | None = field("7+", default=None, ignorable=True)
    protocol_name: String | None = field(nullable="7+")
    leader: String = field()
    skip_assignment: Bool = field("9+")
    member_id: String = field()
    members: Array[JoinGroupResponseMember] = field()


class SyncGroupRequestAssignment(Struct):
    """TODO SyncGroupRequestAssignment"""

    member_id: String = field()
    assignment: Bytes = field()


class SyncGroupRequest(Request, key=14, versions="0-5", flexible="4+"):
    """TODO SyncGroupRequest"""

    group_id: String = field()
    generation_id: Int32 = field()
    member_id: String = field()
    group_instance_id: String | None = field("3+", default=None)
    protocol_type: String | None = field("5+", default=None, ignorable=True)
    protocol_name: String | None = field("5+", default=None, ignorable=True)
    assignments: Array[SyncGroupRequestAssignment] = field()


class SyncGroupResponse(Response, to=SyncGroupRequest):
    """TODO SyncGroupResponse"""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field()
    protocol_type: String | None = field("5+", default=None, ignorable=True)
    protocol_name: String | None = field("5+", default=None, ignorable=True)
    assignment: Bytes = field()


class HeartbeatRequest(Request, key=12, versions="0-4", flexible="4+"):
    """TODO HeartbeatRequest"""

    group_id: String = field()
    generation_id: Int32 = field()
    member_id: String = field()
    group_instance_id: String | None = field("3+", default=None)


class HeartbeatResponse(Response, to=HeartbeatRequest):
    """TODO HeartbeatResponse"""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field()


class MemberIdentity(Struct):
    """TODO MemberIdentity"""

    member_id: String = field("3+")
    group_instance_id: String | None = field("3+", default=None)
    reason: String | None = field("5+", default=None, ignorable=True)


class LeaveGroupRequest(Request, key=13, versions="0-5", flexible="4+"):
    """TODO LeaveGroupRequest"""

    group_id: String = field()
    member_id: String = field("0-2")
    members: Array[MemberIdentity] = field("3+")


class MemberResponse(Struct):
    """TODO MemberResponse"""

    member_id: String = field("3+")
    group_instance_id: String | None = field("3+")
    error_code: Int16 = field("3+")


class LeaveGroupResponse(Response, to=LeaveGroupRequest):
    """TODO LeaveGroupResponse"""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field()
    members: Array[MemberResponse] = field("3+")


class DescribeGroupsRequest(Request, key=15, versions="0-6", flexible="5+"):
    """TODO DescribeGroupsRequest"""

    groups: Array[String] = field()
    include_authorized_operations: Bool = field("3+")


class DescribedGroupMember(Struct):
    """TODO DescribedGroupMember"""

    member_id: String = field()
    group_instance_id: String | None = field("4+", default=None, ignorable=True)
    client_id: String = field()
    client_host: String = field()
    member_metadata: Bytes = field()
    member_assignment: Bytes = field()


class DescribedGroup(Struct):
    """TODO DescribedGroup"""

    error_code: Int16 = field()
    error_message: String | None = field("6+", default=None)
    group_id: String = field()
    group_state: String = field()
    protocol_type: String = field()
    protocol_data: String = field()
    members: Array[DescribedGroupMember] = field()
    authorized_operations: Int32 = field("3+", default=-(2**31))


class DescribeGroupsResponse(Response, to=DescribeGroupsRequest):
    """TODO DescribeGroupsResponse"""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    groups: Array[DescribedGroup] = field()


class ListGroupsRequest(Request, key=16, versions="0-5", flexible="3+"):
    """TODO ListGroupsRequest"""

    states_filter: Array[String] = field("4+")
    types_filter: Array[String] = field("5+")


class ListedGroup(Struct):
    """TODO ListedGroup"""

    group_id: String = field()
    protocol_type: String = field()
    group_state: String = field("4+", ignorable=True)
    group_type: String = field("5+", ignorable=True)


class ListGroupsResponse(Response, to=ListGroupsRequest):
    """TODO ListGroupsResponse"""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field()
    groups: Array[ListedGroup] = field()


class DeleteGroupsRequest(Request, key=42, versions="0-3", flexible="2+"):
    """TODO DeleteGroupsRequest"""

    groups_names: Array[String] = field()


class DeletableGroupResult(Struct):
    """TODO DeletableGroupResult"""

    group_id: String = field()
    error_code: Int16 = field()
    error_message: String | None = field("3+", default=None, ignorable=True)


class DeleteGroupsResponse(Response, to=DeleteGroupsRequest):
    """TODO DeleteGroupsResponse"""

    throttle_time_ms: Int32 = field()
    results: Array[DeletableGroupResult] = field()


class SubscriptionTopicPartition(Struct):
    """TODO SubscriptionTopicPartition"""

    topic: String = field("1+")
    partitions: Array[Int32] = field("1+")


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """TODO ConsumerProtocolSubscription"""

    topics: Array[String] = field()
    user_data: Bytes | None = field(default=None)
    owned_partitions: Array[SubscriptionTopicPartition] = field("1+", ignorable=True)
    generation_id: Int32 = field("2+", default=-1, ignorable=True)
    rack_id: String | None = field("3+", default=None, ignorable=True)


class AssignmentTopicPartition(Struct):
    """TODO AssignmentTopicPartition"""

    topic: String = field()
    partitions: Array[Int32] = field()


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """TODO ConsumerProtocolAssignment"""

    assigned_partitions: Array[AssignmentTopicPartition] = field()
    user_data: Bytes | None = field(default=None)
