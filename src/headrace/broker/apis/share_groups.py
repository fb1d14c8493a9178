"""ShareGroupHeartbeat and ShareGroupDescribe: who shares a group's partitions (KIP-932)."""

from __future__ import annotations

from headrace.broker.cluster import GROUP_OPERATIONS, ApiCall
from headrace.broker.coordinators.share_assignor import SIMPLE
from headrace.broker.coordinators.sharing_groups import JOINS_SHARING, SharingGroup, SharingMember
from headrace.broker.coordinators.target_assignors import by_topic
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError
from headrace.wire.messages.groups.consumer_groups import (
    AssignedTopicPartitions,
    DescribedAssignment,
    DescribedTopicPartitions,
    HeartbeatAssignment,
)
from headrace.wire.messages.groups.share_groups import (
    DescribedShareGroup,
    DescribedShareMember,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

__all__ = ["SERVES", "share_group_describe", "share_group_heartbeat", "sharing_group"]

_LEAVES = -1


def share_group_heartbeat(call: ApiCall, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    """Join, stay in or leave a share group."""
    try:
        if not call.cluster.settings.share_version:
            raise ApiError(KafkaError.UNSUPPORTED_VERSION)
        _check(request)
        call.check_coordinator(request.group_id)
        if request.member_epoch == _LEAVES:
            group = sharing_group(call, request.group_id)
            group.drop(group.member(request.member_id))
            return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=_LEAVES)
        group = _group(call, request.group_id, joins=request.member_epoch == JOINS_SHARING)
        try:
            member, tell = group.heartbeat(request, (call.client_id, call.client_host), call.now)
        finally:
            call.cluster.share_groups.remove_unused(request.group_id)
    except ApiError as error:
        return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.reason)
    assignment = HeartbeatAssignment(topic_partitions=[
        AssignedTopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(member.assigned)]) if tell else None
    return ShareGroupHeartbeatResponse(
        member_id=member.id, member_epoch=member.epoch, assignment=assignment,
        heartbeat_interval_ms=call.cluster.share_groups.heartbeat_interval_ms(request.group_id))


def _check(request: ShareGroupHeartbeatRequest) -> None:
    """What can be seen without the group."""
    faults = (
        (not request.member_id, "MemberId can't be empty"),
        (not request.group_id.strip(), "GroupId can't be empty"),
        (request.rack_id == "", "RackId can't be empty"),
        (request.member_epoch < _LEAVES, "MemberEpoch is invalid"),
        (request.member_epoch == JOINS_SHARING and not request.subscribed_topic_names,
         "SubscribedTopicNames must be set in first request"),
    )
    for is_wrong, text in faults:
        if is_wrong:
            raise ApiError(KafkaError.INVALID_REQUEST, text)


def sharing_group(call: ApiCall, group_id: str) -> SharingGroup:
    """The share group of this name.

    Raises:
        ApiError: there is none.
    """
    group = call.cluster.share_groups.get(group_id)
    if group is None:
        raise ApiError(KafkaError.GROUP_ID_NOT_FOUND, f"Group {group_id} not found")
    return group


def _group(call: ApiCall, group_id: str, *, joins: bool) -> SharingGroup:
    """The group; who joins makes one, unless a group of another kind has the name."""
    if not joins:
        return sharing_group(call, group_id)
    check_name_is_free(call, group_id)
    return call.cluster.share_groups.get_or_make(group_id)


def check_name_is_free(call: ApiCall, group_id: str) -> None:
    """Whether a share group has this name or may have it.

    Raises:
        ApiError: a group of another kind has it.
    """
    if call.cluster.kind_of(group_id) not in ("", "share"):
        raise ApiError(KafkaError.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group")


def share_group_describe(call: ApiCall, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Members, what each reads, and the epochs of share groups."""
    found = [_described(call, group_id) for group_id in request.group_ids]
    for each in found:
        if request.include_authorized_operations and not each.error_code:
            each.authorized_operations = GROUP_OPERATIONS
    return ShareGroupDescribeResponse(groups=found)


def _described(call: ApiCall, group_id: str) -> DescribedShareGroup:
    found = DescribedShareGroup(group_id=group_id, error_code=0, group_state="", assignor_name="", members=[])
    try:
        if not group_id:
            raise ApiError(KafkaError.INVALID_GROUP_ID)
        call.check_coordinator(group_id)
        group = sharing_group(call, group_id)
    except ApiError as error:
        found.error_code, found.error_message = error.code, error.reason
        return found
    found.group_state, found.group_epoch = group.state, group.epoch
    found.assignment_epoch, found.assignor_name = group.planned_epoch, SIMPLE
    found.members = [_described_member(call, member) for member in group.members.values()]
    return found


def _described_member(call: ApiCall, member: SharingMember) -> DescribedShareMember:
    by_id = call.cluster.catalog.by_id
    assignment = DescribedAssignment(topic_partitions=[
        DescribedTopicPartitions(topic_id=topic_id, topic_name=by_id[topic_id].name, partitions=numbers)
        for topic_id, numbers in by_topic(member.assigned) if topic_id in by_id])
    return DescribedShareMember(
        member_id=member.id, rack_id=member.rack_id, member_epoch=member.epoch, client_id=member.client_id,
        client_host=f"/{member.client_host}", subscribed_topic_names=sorted(member.topics), assignment=assignment)


SERVES = (
    ServedApi(ShareGroupHeartbeatRequest, share_group_heartbeat,
              "Plans are made at once. Racks are kept and shown, but nothing follows from them."),
    ServedApi(ShareGroupDescribeRequest, share_group_describe),
)
