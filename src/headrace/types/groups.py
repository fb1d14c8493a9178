"""What is found of groups: consumers that share partitions, and share groups. confluent_kafka's classes and names.

Plain values without behaviour. Read next: `machines.admin.group_requests`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.arguments import member_of
from headrace.errors import KafkaError
from headrace.slotted import hashed_by
from headrace.types.acls import AclOperation, operations_of
from headrace.types.cluster import ConsumerGroupState, ConsumerGroupType, Node
from headrace.types.records import TopicPartition

__all__ = [
    "ConsumerGroupDescription",
    "ConsumerGroupListing",
    "ListConsumerGroupsResult",
    "ListedShareGroup",
    "MemberAssignment",
    "MemberDescription",
    "OffsetReset",
    "ShareGroupDescription",
    "SharePartitionOffset",
]


@hashed_by("group_id")
@dataclass
class ConsumerGroupListing:
    """A consumer group; state and type are None when the broker is too old to send them.

    A simple one only has offsets: nobody has ever been a member.

    Attributes:
        group_id: its name.
        is_simple_consumer_group: whether it only has offsets.
        state: of the group.
        type: classic, or planned by the brokers.
    """

    group_id: str
    is_simple_consumer_group: bool
    state: ConsumerGroupState | None = None
    type: ConsumerGroupType | None = None

    def __post_init__(self) -> None:
        self.state = _member_or_none(ConsumerGroupState, self.state, "state")
        self.type = _member_or_none(ConsumerGroupType, self.type, "type")


@hashed_by()
@dataclass
class ListConsumerGroupsResult:
    """The groups that were found, and the errors of brokers that could not be asked.

    Attributes:
        valid: the groups.
        errors: one for each broker that could not be asked, or one if none is known.
    """

    valid: list[ConsumerGroupListing] | None = None
    errors: list[KafkaError] | None = None


@hashed_by()
@dataclass
class MemberAssignment:
    """The partitions of a member.

    Attributes:
        topic_partitions: these.
    """

    topic_partitions: list[TopicPartition] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.topic_partitions = self.topic_partitions or []


@hashed_by("member_id")
@dataclass
class MemberDescription:
    """A member of a group; `target_assignment` is what it shall have, if the brokers plan for the group.

    Attributes:
        member_id: its id in the group.
        client_id: what it calls itself.
        host: where it is.
        assignment: what it has.
        group_instance_id: its name if it is a static member.
        target_assignment: what it shall have.
    """

    member_id: str
    client_id: str
    host: str
    assignment: MemberAssignment
    group_instance_id: str | None = None
    target_assignment: MemberAssignment | None = None


@hashed_by("group_id")
@dataclass
class ConsumerGroupDescription:
    """A consumer group, its members and its coordinator; what the client may do is None unless it was asked for.

    Attributes:
        group_id: its name.
        is_simple_consumer_group: whether it only has offsets, and no members.
        members: who is in it.
        partition_assignor: the strategy by which partitions are dealt.
        state: of the group.
        coordinator: the broker that keeps it.
        authorized_operations: what this client may do with it; None unless it was asked for.
        type: classic, or planned by the brokers.
    """

    group_id: str
    is_simple_consumer_group: bool
    members: list[MemberDescription]
    partition_assignor: str
    state: ConsumerGroupState | None
    coordinator: Node | None
    authorized_operations: list[AclOperation] | None = None
    type: ConsumerGroupType = ConsumerGroupType.UNKNOWN

    def __post_init__(self) -> None:
        self.state = _member_or_none(ConsumerGroupState, self.state, "state")
        self.type = member_of(ConsumerGroupType, self.type, "type")
        self.authorized_operations = operations_of(self.authorized_operations)


@dataclass(slots=True, frozen=True)
class OffsetReset:
    """Where a group's offset of a partition was, -1 for nowhere, and where it is set to.

    Attributes:
        before: the offset that the group had.
        after: the one that it gets.
    """

    before: int
    after: int


@dataclass
class ListedShareGroup:
    """A share group and its state: Stable, Empty or Dead."""

    group_id: str
    state: str


@dataclass
class ShareGroupDescription:
    """A share group, its members and its coordinator; what the client may do is None unless it was asked for.

    Attributes:
        group_id: its name.
        members: who is in it.
        assignor: the strategy by which partitions are dealt.
        state: of the group.
        coordinator: the broker that keeps it.
        authorized_operations: what this client may do with it; None unless it was asked for.
    """

    group_id: str
    members: list[MemberDescription]
    assignor: str
    state: str
    coordinator: Node | None
    authorized_operations: list[AclOperation] | None = None


@dataclass(slots=True, frozen=True)
class SharePartitionOffset:
    """Where a share group's records of a partition begin, and how many of them are left; -1 when that is unknown.

    Attributes:
        start_offset: of the first record that is not done with.
        lag: records that are left.
    """

    start_offset: int
    lag: int = -1


def _member_or_none(kind: Any, given: Any, name: str) -> Any:
    return None if given is None else member_of(kind, given, name)
