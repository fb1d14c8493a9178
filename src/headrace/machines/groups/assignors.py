"""Which member gets which partition: the plans that a classic group's leader makes, and the bytes that they exchange.

Every function here is pure: members and partition counts in, an assignment out. The bytes are those of Java's
`ConsumerProtocol`, so that members of any client share a group. This module must not know how groups are joined.

Source: Java's `RangeAssignor`, `RoundRobinAssignor`, `StickyAssignor`, `CooperativeStickyAssignor`; KIP-54, KIP-341,
KIP-429, KIP-792, KIP-881.
Read next: `machines.groups.classic`.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from headrace.errors import ProtocolError
from headrace.machines.cluster.metadata import Cluster
from headrace.machines.consumer.subscription import Key
from headrace.slotted import slotted
from headrace.wire import codec
from headrace.wire.messages.groups import classic_groups as wire

__all__ = [
    "ASSIGNORS",
    "NO_RACKS",
    "Assignment",
    "Assignor",
    "MemberSubscription",
    "Racks",
    "cooperative_user_data",
    "racks_of",
    "read_assignment",
    "read_member",
    "sticky_user_data",
    "write_assignment",
    "write_subscription",
]

Assignment = dict[str, list[Key]]
"""Partitions by member id. Every member has an entry."""

Racks = Mapping[Key, frozenset[str]]
"""The racks in which partitions have replicas; those of which nothing is known are left out."""
NO_RACKS: Final[Racks] = {}
_NOWHERE: Final = frozenset[str]()

_SUBSCRIPTION_VERSION, _ASSIGNMENT_VERSION, _STICKY_VERSION = 3, 1, 1
_VERSION = struct.Struct(">h")
_GENERATION = struct.Struct(">i")


@slotted()
class MemberSubscription:
    """One member of the group, as its subscription describes it.

    Attributes:
        owned: partitions it got in `generation`. Under a cooperative assignor it still holds them; under `sticky` it
            has given them up, and may get them again.
    """

    member_id: str
    topics: frozenset[str]
    owned: tuple[Key, ...] = ()
    generation: int = -1
    instance_id: str | None = None
    rack: str | None = None

    @property
    def order(self) -> tuple[bool, str]:
        """Static members first, by instance id, so that a restart does not reorder them."""
        return (self.instance_id is None, self.instance_id or self.member_id)


@slotted(frozen=True)
class Assignor:
    """A plan by name.

    Attributes:
        cooperative: members keep their partitions while the group rebalances.
        remembers: members give them up, and say in their user data what they had.
    """

    name: str
    plan: Callable[[Sequence[MemberSubscription], Mapping[str, int], Racks], Assignment]
    cooperative: bool = False
    remembers: bool = False


def assign_range(
    members: Sequence[MemberSubscription], partition_counts: Mapping[str, int], racks: Racks = NO_RACKS
) -> Assignment:
    """Give each member a run of neighbouring partitions of every topic; the first members get one more.

    Where partitions differ in their racks, a member gets those with a replica in its own first (KIP-881). Topics with
    as many partitions and the same readers are dealt alike, so that what belongs together stays together.
    """
    plan: Assignment = {member.member_id: [] for member in members}
    readers_of = _readers(members, partition_counts)
    alike: dict[tuple[int, tuple[str, ...]], list[str]] = defaultdict(list)
    for topic, readers in sorted(readers_of.items()):
        alike[partition_counts[topic], tuple(member.member_id for member in readers)].append(topic)
    for (count, _), topics in alike.items():
        places = [_racks_of_all(topics, number, racks) for number in range(count)] if racks else [_NOWHERE] * count
        owners = _deal_runs(readers_of[topics[0]], places)
        for topic in topics:
            for partition, owner in enumerate(owners):
                plan[owner.member_id].append((topic, partition))
    return plan


def racks_of(cluster: Cluster, members: Iterable[MemberSubscription], topics: Iterable[str]) -> Racks:
    """Where the topics' partitions have replicas, if a member says where it is (KIP-881)."""
    if not any(member.rack for member in members):
        return NO_RACKS
    rack_of = {node.id: node.rack for node in cluster.nodes.values()}
    return {(topic, number): frozenset(rack for node in partition.replicas if (rack := rack_of.get(node)))
            for topic in topics if topic in cluster.topics
            for number, partition in cluster.topics[topic].partitions.items()}


def _racks_of_all(topics: Sequence[str], partition: int, racks: Racks) -> frozenset[str]:
    """The racks in which each of these topics has a replica of a partition."""
    return frozenset.intersection(*(racks.get((topic, partition), _NOWHERE) for topic in topics))


def _deal_runs(readers: Sequence[MemberSubscription], places: Sequence[frozenset[str]]) -> list[MemberSubscription]:
    """The reader of each partition, whose racks are given: as many for each but for one more."""
    size, extra = divmod(len(places), len(readers))
    owners: dict[int, MemberSubscription] = {}
    held = [0] * len(readers)

    def deal(partition: int, reader: int) -> bool:
        nonlocal extra
        if held[reader] > size or (held[reader] == size and not extra):
            return False
        extra -= held[reader] == size
        held[reader] += 1
        owners[partition] = readers[reader]
        return True

    if len(set(places)) > 1:
        near: dict[str | None, list[int]] = defaultdict(list)
        for partition, racks in enumerate(places):
            for rack in racks:
                near[rack].append(partition)
        for reader, member in enumerate(readers):
            for partition in near.get(member.rack, ()):
                if partition not in owners and not deal(partition, reader):
                    break
    reader = 0
    for partition in range(len(places)):
        while partition not in owners and not deal(partition, reader):
            reader += 1
    return [owners[partition] for partition in range(len(places))]


def assign_round_robin(
    members: Sequence[MemberSubscription], partition_counts: Mapping[str, int], _racks: Racks = NO_RACKS
) -> Assignment:
    """Deal all partitions of all topics to the members in turn, skipping those that do not read the topic."""
    plan: Assignment = {member.member_id: [] for member in members}
    ring = sorted(members, key=lambda member: member.order)
    turn = 0
    for topic in sorted(_readers(members, partition_counts)):
        for partition in range(partition_counts[topic]):
            while topic not in ring[turn % len(ring)].topics:
                turn += 1
            plan[ring[turn % len(ring)].member_id].append((topic, partition))
            turn += 1
    return plan


def assign_sticky(
    members: Sequence[MemberSubscription], partition_counts: Mapping[str, int], racks: Racks = NO_RACKS
) -> Assignment:
    """Balance the group while moving as few partitions as possible, all in one step: nobody holds any of them now."""
    return _sticky(members, partition_counts, _owners(members, partition_counts), racks)


def assign_cooperative_sticky(
    members: Sequence[MemberSubscription], partition_counts: Mapping[str, int], racks: Racks = NO_RACKS
) -> Assignment:
    """Balance the group while moving as few partitions as possible, and move none in one step.

    What nobody holds goes to members with a replica in their rack while these have room (KIP-881).

    A partition that changes its owner is left out of the plan: the owner gives it up first, and the rebalance that
    follows hands it out (KIP-429).
    """
    owners = _owners(members, partition_counts)
    plan = _sticky(members, partition_counts, owners, racks)
    for member_id, partitions in plan.items():
        plan[member_id] = [key for key in partitions if owners.get(key, member_id) == member_id]
    return plan


ASSIGNORS: dict[str, Assignor] = {
    "range": Assignor("range", assign_range),
    "roundrobin": Assignor("roundrobin", assign_round_robin),
    "sticky": Assignor("sticky", assign_sticky, remembers=True),
    "cooperative-sticky": Assignor("cooperative-sticky", assign_cooperative_sticky, cooperative=True),
}


# The sticky plan


def _owners(members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]) -> dict[Key, str]:
    """The member that holds each partition. Of two that claim one the newer generation is right, of equal ones none."""
    claims: dict[Key, list[MemberSubscription]] = defaultdict(list)
    for member in members:
        for topic, partition in member.owned:
            if topic in member.topics and partition < partition_counts.get(topic, 0):
                claims[topic, partition].append(member)
    owners: dict[Key, str] = {}
    for key, claimants in claims.items():
        newest = max(member.generation for member in claimants)
        right = [member for member in claimants if member.generation == newest]
        if len(right) == 1:
            owners[key] = right[0].member_id
    return owners


def _sticky(
    members: Sequence[MemberSubscription], partition_counts: Mapping[str, int], owners: Mapping[Key, str], racks: Racks
) -> Assignment:
    """Start from what members hold, hand out the rest to the least loaded, near ones first, level out, bring near."""
    table = _Table(members, racks)
    readers = _readers(members, partition_counts)
    keys = [(topic, partition) for topic in sorted(readers) for partition in range(partition_counts[topic])]
    for key in keys:
        if key in owners:
            table.give(key, owners[key])
    free = [key for key in keys if key not in owners]
    fair_share = -(-len(keys) // (len(members) or 1))

    def reluctance(member_id: str, key: Key) -> tuple[bool, int]:
        load = table.load(member_id)
        return (load >= fair_share or not table.is_near(key, member_id) if key in racks else False), load

    for key in sorted(free, key=lambda key: len(readers[key[0]])):  # those that few may read have the least choice
        table.give(key, min(table.readers(key[0]), key=lambda member_id: reluctance(member_id, key)))
    table.level()
    if racks:
        table.bring_near()
    return table.plan


class _Table:
    """A plan in the making: which topics each member reads and where it is, and what it has so far."""

    __slots__ = ("members", "plan", "racks")

    def __init__(self, members: Iterable[MemberSubscription], racks: Racks) -> None:
        self.members = {member.member_id: member for member in sorted(members, key=lambda member: member.order)}
        self.racks = racks
        self.plan: Assignment = {member_id: [] for member_id in self.members}

    def load(self, member_id: str) -> int:
        return len(self.plan[member_id])

    def reads(self, member_id: str, key: Key) -> bool:
        return key[0] in self.members[member_id].topics

    def readers(self, topic: str) -> list[str]:
        return [member_id for member_id, member in self.members.items() if topic in member.topics]

    def is_near(self, key: Key, member_id: str) -> bool:
        """A replica is in the member's rack."""
        return self.members[member_id].rack in self.racks.get(key, _NOWHERE)

    def give(self, key: Key, member_id: str) -> None:
        self.plan[member_id].append(key)

    def level(self) -> None:
        """Move partitions, one by one, from the most to the least loaded, until no move makes a pair more even.

        One by one: who gave several at once would have to be given others' in turn.
        """
        while any(map(self._give_one_away, sorted(self.plan, key=self.load, reverse=True))):
            pass

    def _give_one_away(self, giver: str) -> bool:
        held, seen = self.plan[giver], set[str]()
        for index in range(len(held) - 1, -1, -1):
            topic = held[index][0]
            if topic in seen:
                continue  # its readers are known to have enough
            seen.add(topic)
            taker = min(self.readers(topic), key=self.load)
            if self.load(taker) + 1 < len(held):
                self.give(held.pop(index), taker)
                return True
        return False

    def bring_near(self) -> None:
        """Let members exchange partitions until no exchange brings more of them near their readers (KIP-881).

        Near comes before sticky, or a group whose members came one by one would stay far for ever. Even comes before
        near: who takes a partition gives one for it, or has fewer than the giver.
        """
        while self._exchange():
            pass

    def _exchange(self) -> bool:
        """Bring near what can be. The most loaded go first: who can take nothing of them can of nobody like them."""
        for member_id, held in self.plan.items():
            held.sort(key=lambda key: (self.is_near(key, member_id), key))  # far ones are given back first
        takers: dict[object, list[str]] = {}
        exchanged = False
        for giver in sorted(self.plan, key=self.load, reverse=True):
            like = self.members[giver].rack, self.members[giver].topics
            for key in [key for key in self.plan[giver] if not self.is_near(key, giver)]:
                for rack in sorted(self.racks.get(key, _NOWHERE)):
                    if (rack, like) not in takers:
                        takers[rack, like] = [who for who, member in self.members.items() if member.rack == rack]
                    if self._bring_one_near(key, giver, takers[rack, like]):
                        exchanged = True
                        break
        return exchanged

    def _bring_one_near(self, key: Key, giver: str, takers: list[str]) -> bool:
        """Let one of the takers have a partition. Those that can take nothing from the giver are struck off."""
        for taker in takers.copy():
            fewer = self.load(taker) < self.load(giver)
            back = None if fewer else self._in_return(taker, giver)
            if back is None and not fewer:
                takers.remove(taker)
            elif self.reads(taker, key):
                self._move(key, giver, taker)
                if back is not None:
                    self._move(back, taker, giver)
                return True
        return False

    def _in_return(self, taker: str, giver: str) -> Key | None:
        """What the taker may give for a partition: nothing that is near it and far from the giver."""
        return next((key for key in self.plan[taker] if self.reads(giver, key) and (
            self.is_near(key, giver) or not self.is_near(key, taker))), None)

    def _move(self, key: Key, giver: str, taker: str) -> None:
        self.plan[giver].remove(key)
        self.give(key, taker)


def _readers(
    members: Iterable[MemberSubscription], partition_counts: Mapping[str, int]
) -> dict[str, list[MemberSubscription]]:
    """Members by topic, in their order; topics without partitions are left out."""
    readers: dict[str, list[MemberSubscription]] = defaultdict(list)
    for member in sorted(members, key=lambda member: member.order):
        for topic in member.topics:
            if partition_counts.get(topic, 0) > 0:
                readers[topic].append(member)
    return readers


# The bytes


def write_subscription(
    topics: Iterable[str], owned: Iterable[Key], generation: int, rack: str | None, user_data: bytes | None = None
) -> bytes:
    """A member's subscription as JoinGroup carries it.

    Args:
        topics: what it reads.
        owned: partitions that it holds.
        generation: the one in which it got them.
        rack: where it is.
        user_data: what the assignor sends besides. A leader of librdkafka's sends it back with the assignment; where
            there is any, Kafka takes the assignor for one that KIP-848 cannot replace, and the group cannot migrate.
    """
    message = wire.ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=[
            wire.SubscriptionTopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in _by_topic(owned).items()
        ],
        generation_id=generation,
        rack_id=rack,
    )
    return _VERSION.pack(_SUBSCRIPTION_VERSION) + codec.encode(message, _SUBSCRIPTION_VERSION)


def cooperative_user_data(generation: int) -> bytes:
    """In which generation a member of a `cooperative-sticky` group got what it holds."""
    return _GENERATION.pack(generation)


def sticky_user_data(had: Iterable[Key], generation: int) -> bytes:
    """What a member of a `sticky` group had, and in which generation it got that."""
    return codec.encode(wire.StickyAssignorUserData(
        previous_assignment=[wire.StickyTopicPartitions(topic=topic, partitions=partitions)
                             for topic, partitions in _by_topic(had).items()],
        generation=generation), _STICKY_VERSION)


def read_member(
    member_id: str, instance_id: str | None, data: bytes | memoryview, *, remembers: bool = False
) -> MemberSubscription:
    """A member from its subscription.

    Args:
        member_id: its id.
        instance_id: its name if it is a static one.
        data: the subscription.
        remembers: what it had is in its user data (`Assignor.remembers`).

    Raises:
        ProtocolError: the bytes are no subscription.
    """
    version = _version(data)
    message = codec.decode(
        wire.ConsumerProtocolSubscription, memoryview(data)[_VERSION.size:], min(version, _SUBSCRIPTION_VERSION))
    topics = frozenset(message.topics)
    if remembers:
        owned, generation = _read_sticky_user_data(message.user_data or b"")
        return MemberSubscription(member_id, topics, owned, generation, instance_id, message.rack_id)
    generation = message.generation_id
    if generation < 0 and message.user_data is not None and len(message.user_data) == _GENERATION.size:
        (generation,) = _GENERATION.unpack(message.user_data)
    return MemberSubscription(member_id, topics, _keys(message.owned_partitions), generation, instance_id,
                              message.rack_id)


def _read_sticky_user_data(data: bytes | memoryview) -> tuple[tuple[Key, ...], int]:
    """What a member had, and its generation. The bytes have no version; those of neither say nothing."""
    for version in range(_STICKY_VERSION, -1, -1):
        try:
            message = codec.decode(wire.StickyAssignorUserData, data, version)
        except ProtocolError:
            continue
        return _keys(message.previous_assignment), message.generation
    return (), -1


def write_assignment(partitions: Iterable[Key]) -> bytes:
    """One member's partitions as SyncGroup carries them."""
    message = wire.ConsumerProtocolAssignment(assigned_partitions=[
        wire.AssignmentTopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in _by_topic(partitions).items()
    ])
    return _VERSION.pack(_ASSIGNMENT_VERSION) + codec.encode(message, _ASSIGNMENT_VERSION)


def read_assignment(data: bytes | memoryview) -> list[Key]:
    """The partitions that the leader gave; none for an empty answer.

    Raises:
        ProtocolError: the bytes are no assignment.
    """
    if not data:
        return []
    version = _version(data)
    message = codec.decode(wire.ConsumerProtocolAssignment, memoryview(data)[_VERSION.size:], min(version, 3))
    return list(_keys(message.assigned_partitions))


def _version(data: bytes | memoryview) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError(f"{len(data)} bytes are no consumer protocol message")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise ProtocolError(f"{version} is no version of the consumer protocol")
    return version


def _keys(entries: Iterable[Any]) -> tuple[Key, ...]:
    """Of one of the messages' lists of topics with partitions."""
    return tuple((entry.topic, partition) for entry in entries for partition in entry.partitions)


def _by_topic(partitions: Iterable[Key]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(partitions):
        topics[topic].append(partition)
    return topics
