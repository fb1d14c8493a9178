"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: groups that the coordinator plans for (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.broker.cluster import GROUP_OPERATIONS, ApiCall
from headrace.broker.coordinators.planned_groups import AWAY, JOINS, PlannedGroup, PlannedMember
from headrace.broker.coordinators.target_assignors import ASSIGNORS, TopicIndex, by_topic
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError
from headrace.wire.messages.groups.consumer_groups import (
    AssignedTopicPartitions,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedTopicPartitions,
    HeartbeatAssignment,
)

__all__ = ["SERVES", "consumer_group_describe", "consumer_group_heartbeat"]

_OWN_ID_FROM = 1
_LEAVES = -1
_MEMBER_OF_CONSUMER = 1


def consumer_group_heartbeat(
    call: ApiCall, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Join, stay in or leave a group."""
    try:
        if not call.cluster.settings.group_version:
            raise ApiError(KafkaError.UNSUPPORTED_VERSION)
        _check(call, request)
        call.check_coordinator(request.group_id)
        if request.member_epoch in (_LEAVES, AWAY):
            _leaving_group(call, request.group_id).leave(
                request.member_id, request.instance_id, request.member_epoch)
            return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        if not request.member_id:
            request.member_id = str(call.cluster.new_uuid())
        client = (call.client_id, call.client_host)
        group = _group(call, request.group_id, joins=request.member_epoch == JOINS)
        try:
            member, tell = group.heartbeat(request, client, call.now)
        finally:
            call.cluster.planned_groups.remove_unused(request.group_id)
    except ApiError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.reason)
    assignment = HeartbeatAssignment(topic_partitions=[
        AssignedTopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(member.assigned)]) if tell else None
    return ConsumerGroupHeartbeatResponse(
        member_id=member.id, member_epoch=member.epoch, assignment=assignment,
        heartbeat_interval_ms=call.cluster.settings.consumer_heartbeat_interval_ms)


def _check(call: ApiCall, request: ConsumerGroupHeartbeatRequest) -> None:
    """What can be seen without the group."""
    epoch = request.member_epoch
    needs_id = call.version >= _OWN_ID_FROM or epoch != JOINS
    faults = (
        (needs_id and not request.member_id, "MemberId can't be empty"),
        (not request.group_id, "GroupId can't be empty"),
        (request.instance_id == "", "InstanceId can't be empty"),
        (request.rack_id == "", "RackId can't be empty"),
        (epoch < AWAY, "MemberEpoch is invalid"),
        (epoch == AWAY and request.instance_id is None, "InstanceId can't be null"),
        (epoch == JOINS and request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request"),
        (epoch == JOINS and request.topic_partitions != [], "TopicPartitions must be empty when (re-)joining"),
        (epoch == JOINS and request.subscribed_topic_names is None and not request.subscribed_topic_regex,
         "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining"),
    )
    for is_wrong, text in faults:
        if is_wrong:
            raise ApiError(KafkaError.INVALID_REQUEST, text)
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        raise ApiError(KafkaError.UNSUPPORTED_ASSIGNOR, f"ServerAssignor {request.server_assignor} is not supported. "
                       f"Supported assignors: {', '.join(ASSIGNORS)}")


def _leaving_group(call: ApiCall, group_id: str) -> PlannedGroup:
    group = call.cluster.planned_groups.get(group_id)
    if group is None:
        raise ApiError(KafkaError.GROUP_ID_NOT_FOUND, f"Group {group_id} not found")
    return group


def _group(call: ApiCall, group_id: str, *, joins: bool) -> PlannedGroup:
    """The group; who joins makes one, also of a classic group whose members are all gone."""
    if not joins:
        return _leaving_group(call, group_id)
    classic = call.cluster.groups.get(group_id)
    if (classic is not None and classic.members) or call.cluster.share_groups.get(group_id) is not None:
        raise ApiError(KafkaError.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group")
    call.cluster.groups.remove(group_id)
    return call.cluster.planned_groups.get_or_make(group_id)


def consumer_group_describe(call: ApiCall, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    """Epochs, members, what they have and shall have."""
    reply = ConsumerGroupDescribeResponse(groups=[_described(call, group_id) for group_id in request.group_ids])
    for each in reply.groups:
        if request.include_authorized_operations and not each.error_code:
            each.authorized_operations = GROUP_OPERATIONS
    return reply


def _described(call: ApiCall, group_id: str) -> DescribedConsumerGroup:
    found = DescribedConsumerGroup(error_code=0, group_id=group_id, group_state="", group_epoch=0, assignment_epoch=0,
                                   assignor_name="", members=[])
    try:
        if not call.cluster.settings.group_version:
            raise ApiError(KafkaError.UNSUPPORTED_VERSION)
        if not group_id:
            raise ApiError(KafkaError.INVALID_GROUP_ID)
        call.check_coordinator(group_id)
        group = call.cluster.planned_groups.get(group_id)
        if group is None:
            raise ApiError(KafkaError.GROUP_ID_NOT_FOUND,
                           f"Group {group_id} is not a consumer group." if call.cluster.kind_of(group_id)
                           else f"Group {group_id} not found.")
    except ApiError as error:
        found.error_code, found.error_message = error.code, error.reason
        return found
    found.group_state, found.group_epoch = group.state, group.epoch
    found.assignment_epoch, found.assignor_name = group.planned_epoch, group.assignor
    found.members = [_described_member(call, group, member) for member in group.members.values()]
    return found


def _described_member(call: ApiCall, group: PlannedGroup, member: PlannedMember) -> DescribedConsumer:
    return DescribedConsumer(
        member_id=member.id, instance_id=member.instance_id, rack_id=member.rack_id, member_epoch=member.epoch,
        client_id=member.client_id, client_host=f"/{member.client_host}", subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.pattern, assignment=_described_partitions(call, member.held),
        target_assignment=_described_partitions(call, group.plan.get(member.id, ())), member_type=_MEMBER_OF_CONSUMER)


def _described_partitions(call: ApiCall, partitions: Iterable[TopicIndex]) -> DescribedAssignment:
    by_id = call.cluster.catalog.by_id
    return DescribedAssignment(topic_partitions=[
        DescribedTopicPartitions(topic_id=topic_id, topic_name=by_id[topic_id].name, partitions=numbers)
        for topic_id, numbers in by_topic(partitions) if topic_id in by_id])


SERVES = (
    ServedApi(ConsumerGroupHeartbeatRequest, consumer_group_heartbeat,
              "A group is of one kind: members of classic groups are not taken over, nor given back. Plans are made at "
              "once, also of patterns. Racks are kept and shown, but nothing follows from them. After a restart groups "
              "have no members: these join again."),
    ServedApi(ConsumerGroupDescribeRequest, consumer_group_describe),
)
