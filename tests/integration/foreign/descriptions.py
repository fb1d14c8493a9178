"""What a coordinator says of a group: DescribeGroups, ConsumerGroupDescribe or ShareGroupDescribe, sent by hand.

Members are named by their client ids, which the tests choose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from headrace.machines.groups.assignors import read_assignment
from headrace.wire import codec
from headrace.wire.messages.groups.classic_groups import ConsumerProtocolSubscription, DescribeGroupsRequest
from headrace.wire.messages.groups.consumer_groups import ConsumerGroupDescribeRequest
from headrace.wire.messages.groups.share_groups import ShareGroupDescribeRequest
from tests.support.raw_client import RawClient

Key = tuple[str, int]
_KINDS = {0: "classic", 1: "consumer"}


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member as its coordinator knows it.

    Attributes:
        held: its partitions.
        kind: the protocol that it speaks: classic, consumer or share.
        instance: its name if it is a static one.
        subscription: what it sent to the leader of a classic group, and `version`, in which it did.
    """

    held: frozenset[Key]
    kind: str
    instance: str | None = None
    version: int = -1
    subscription: ConsumerProtocolSubscription | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """A group: its kind, its state, the assignor in use, and its members."""

    kind: str = ""
    state: str = ""
    assignor: str = ""
    members: dict[str, DescribedMember] = field(default_factory=dict)

    @property
    def held(self) -> dict[str, frozenset[Key]]:
        """Partitions by member."""
        return {name: member.held for name, member in self.members.items()}


def describe(servers: str, group: str, *, shares: bool = False) -> Description:
    """A group; nothing is known of one that is not there.

    Args:
        servers: a broker that coordinates it.
        group: its name.
        shares: it is a share group; else it is one of the two others.
    """
    with RawClient(servers) as client:
        for ask in (_shared,) if shares else (_planned, _classic):
            found = ask(client, group)
            if found is not None:
                return found
    return Description()


def _planned(client: RawClient, group: str) -> Description | None:
    [found] = client.call(ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups
    if found.error_code:
        return None
    return Description("consumer", found.group_state, found.assignor_name, {
        each.client_id: DescribedMember(
            _held((entry.topic_name, entry.partitions) for entry in each.assignment.topic_partitions),
            _KINDS[each.member_type], each.instance_id)
        for each in found.members})


def _shared(client: RawClient, group: str) -> Description | None:
    [found] = client.call(ShareGroupDescribeRequest(group_ids=[group]), 1).groups
    if found.error_code:
        return None
    return Description("share", found.group_state, found.assignor_name, {
        each.client_id: DescribedMember(
            _held((entry.topic_name, entry.partitions) for entry in each.assignment.topic_partitions), "share")
        for each in found.members})


def _classic(client: RawClient, group: str) -> Description | None:
    [found] = client.call(DescribeGroupsRequest(groups=[group]), 5).groups
    if found.error_code or not found.members:
        return None
    return Description("classic", found.group_state, found.protocol_data, dict(map(_classic_member, found.members)))


def _classic_member(each: Any) -> tuple[str, DescribedMember]:
    version, subscription = -1, None
    if each.member_metadata:
        version = int.from_bytes(each.member_metadata[:2], "big")
        subscription = codec.decode(ConsumerProtocolSubscription, each.member_metadata[2:], version)
    return each.client_id, DescribedMember(frozenset(read_assignment(each.member_assignment)), "classic",
                                           each.group_instance_id, version, subscription)


def _held(entries: Iterable[tuple[str, list[int]]]) -> frozenset[Key]:
    return frozenset((topic, partition) for topic, partitions in entries for partition in partitions)
