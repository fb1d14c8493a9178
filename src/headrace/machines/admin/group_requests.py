"""Requests about consumer groups and their members, and what their replies mean: pure functions.

Read next: `client.admin.group_calls`, which sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.errors import KafkaError, ProtocolError
from headrace.machines.admin.admin_results import failure, operations
from headrace.machines.groups.assignors import read_assignment
from headrace.types.cluster import ConsumerGroupState, ConsumerGroupType, Node
from headrace.types.groups import (
    ConsumerGroupDescription,
    ConsumerGroupListing,
    MemberAssignment,
    MemberDescription,
)
from headrace.types.records import TopicPartition
from headrace.wire.messages.groups import classic_groups as classic
from headrace.wire.messages.groups import consumer_groups as planned

__all__ = [
    "classic_description",
    "delete_groups",
    "describe_classic",
    "describe_planned",
    "list_groups",
    "listing",
    "partitions_of",
    "planned_description",
    "read_deleted_groups",
    "read_removed",
    "remove_members",
]

_CONSUMER = "consumer"
_STATES = {
    "PreparingRebalance": ConsumerGroupState.PREPARING_REBALANCING,
    "CompletingRebalance": ConsumerGroupState.COMPLETING_REBALANCING,
    "Stable": ConsumerGroupState.STABLE,
    "Dead": ConsumerGroupState.DEAD,
    "Empty": ConsumerGroupState.EMPTY,
}
_NAMES = {state: name for name, state in _STATES.items()}
_TYPES = {"consumer": ConsumerGroupType.CONSUMER, "classic": ConsumerGroupType.CLASSIC}


def list_groups(
    states: Iterable[ConsumerGroupState], types: Iterable[ConsumerGroupType]
) -> classic.ListGroupsRequest:
    """Ask one broker for the groups that it coordinates, in some states and of some types."""
    return classic.ListGroupsRequest(
        states_filter=sorted(_NAMES.get(state, "Unknown") for state in states),
        types_filter=sorted(kind.name.lower() for kind in types))


def listing(group: classic.ListedGroup) -> ConsumerGroupListing | None:
    """What a reply says of one group; None of one that does not consume."""
    kind = group.group_type.lower()
    if group.protocol_type not in ("", _CONSUMER) or kind not in ("", *_TYPES):
        return None
    return ConsumerGroupListing(
        group.group_id, not group.protocol_type, _state(group.group_state) if group.group_state else None,
        _TYPES[kind] if kind else None)


def describe_planned(ids: Sequence[str], authorized_operations: bool) -> planned.ConsumerGroupDescribeRequest:
    """Ask a coordinator for the groups that it plans for (KIP-848)."""
    return planned.ConsumerGroupDescribeRequest(group_ids=list(ids),
                                                include_authorized_operations=authorized_operations)


def planned_description(
    group: planned.DescribedConsumerGroup, coordinator: Node | None
) -> ConsumerGroupDescription | KafkaError:
    """What a reply says of a group that the coordinator plans for."""
    members = [
        MemberDescription(m.member_id, m.client_id, m.client_host, partitions_of(m.assignment), m.instance_id,
                          partitions_of(m.target_assignment))
        for m in group.members
    ]
    return _ended(group.group_id, group.error_code, group.error_message, "DESCRIBE") or ConsumerGroupDescription(
        group.group_id, False, members, group.assignor_name, _state(group.group_state), coordinator,
        operations(group.authorized_operations), ConsumerGroupType.CONSUMER)


def partitions_of(assignment: planned.DescribedAssignment) -> MemberAssignment:
    """The partitions of a member that a coordinator plans for."""
    return MemberAssignment([TopicPartition(topic.topic_name, number)
                             for topic in assignment.topic_partitions for number in topic.partitions])


def describe_classic(ids: Sequence[str], authorized_operations: bool) -> classic.DescribeGroupsRequest:
    """Ask a coordinator for groups whose members plan for themselves."""
    return classic.DescribeGroupsRequest(groups=list(ids), include_authorized_operations=authorized_operations)


def classic_description(
    group: classic.DescribedGroup, coordinator: Node | None
) -> ConsumerGroupDescription | KafkaError:
    """What a reply says of a classic group."""
    members = [
        MemberDescription(m.member_id, m.client_id, m.client_host, _classic_assignment(m.member_assignment),
                          m.group_instance_id)
        for m in group.members
    ]
    return _ended(group.group_id, group.error_code, group.error_message, "DESCRIBE") or ConsumerGroupDescription(
        group.group_id, not group.protocol_type, members, group.protocol_data, _state(group.group_state), coordinator,
        operations(group.authorized_operations), ConsumerGroupType.CLASSIC)


def _classic_assignment(data: bytes | memoryview) -> MemberAssignment:
    try:
        return MemberAssignment([TopicPartition(*key) for key in read_assignment(data)])
    except ProtocolError:  # a group of another protocol, as Connect's workers: what its members have is no partitions
        return MemberAssignment()


def delete_groups(ids: Sequence[str]) -> classic.DeleteGroupsRequest:
    """Ask a coordinator to delete groups, of any type."""
    return classic.DeleteGroupsRequest(groups_names=list(ids))


def read_deleted_groups(reply: classic.DeleteGroupsResponse) -> dict[str, KafkaError | None]:
    """How the deletion of each group ended."""
    return {group.group_id: _ended(group.group_id, group.error_code, group.error_message, "DELETE")
            for group in reply.results}


def remove_members(group_id: str, instances: Sequence[str], members: Sequence[str], reason: str
                   ) -> classic.LeaveGroupRequest:
    """Ask a coordinator to put members out: static ones by instance id, others by member id."""
    identities = [classic.MemberIdentity(group_instance_id=each, reason=reason) for each in instances]
    identities += [classic.MemberIdentity(member_id=each, reason=reason) for each in members]
    return classic.LeaveGroupRequest(group_id=group_id, members=identities)


def read_removed(reply: classic.LeaveGroupResponse, group_id: str) -> dict[str, KafkaError | None]:
    """How it ended for each instance id or member id."""
    whole = _ended(group_id, reply.error_code, None, "READ")
    return {each.group_instance_id or each.member_id: whole or failure(
                f'member "{each.group_instance_id or each.member_id}"', each.error_code) for each in reply.members}


def _state(name: str) -> ConsumerGroupState:
    return _STATES.get(name, ConsumerGroupState.UNKNOWN)


def _ended(group_id: str, code: int, message: str | None, operation: str) -> KafkaError | None:
    return failure(f'group "{group_id}"', code, message, f'{operation} on group "{group_id}"')
