"""The simulation of groups that the coordinator plans for (KIP-848): members' machines and the embedded broker.

It is `whole_groups` with `ConsumerGroup` in the place of `ClassicGroup`: the same troubles, other promises. Members may
stand at different epochs, so checked are: no partition is held by two members of the group at once; the group takes a
commit from nobody but who has the partition; and in the healed cluster all members come to the epoch of the newest
plan, stay there, and have all partitions between them.

    python -m tests.campaigns.sim.whole --of planned-groups --schedules 100000 --jobs 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from headrace.broker.coordinators.planned_groups import AWAY, JOINS, PlannedGroup, PlannedMember
from headrace.config import CONSUMER, Config
from headrace.machines.consumer.subscription import Key, Subscription
from headrace.machines.groups.consumer_group import ConsumerGroup, MemberState
from headrace.types.records import ConsumerGroupMetadata
from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest
from headrace.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest
from headrace.wire.schema import Request

from .whole_groups import NAME, Member, WholeGroups

_ASSIGNORS = {assignor: Config(CONSUMER, {
    "bootstrap.servers": "h:1", "group.id": NAME, "group.protocol": "consumer", "group.remote.assignor": assignor,
    "max.poll.interval.ms": 3000, "socket.timeout.ms": 1000}) for assignor in ("", "uniform", "range")}


class LedMember(Member):
    """A member of a group that the coordinator plans for, and its application."""

    def membership(self, subscription: Subscription) -> ConsumerGroup:
        """The machine that is a member."""
        config = _ASSIGNORS[self.sim.random.choice(list(_ASSIGNORS))]
        return ConsumerGroup(config, subscription, self.metadata, self.finder,
                             lambda: UUID(int=self.sim.random.getrandbits(128)))

    @property
    def is_at_work(self) -> bool:
        """Whether it is a member that reads."""
        return not self.gone and self.group.epoch > 0 and self.group.state in (
            MemberState.STABLE, MemberState.REVOKING, MemberState.ASSIGNING)

    @property
    def is_refused(self) -> bool:
        """Whether the group takes it no more."""
        return bool(self.group.state is MemberState.ENDED)

    @property
    def is_silent(self) -> bool:
        """Such a member waits for what the coordinator says, as Java's does."""
        return False

    def is_late(self, request: Any) -> bool:
        """Whether a request is of an earlier membership than the present one."""
        return bool(request.member_epoch != self.group.epoch)

    def questions(self, who: ConsumerGroupMetadata, keys: Iterable[Key]) -> Iterator[Request]:
        """What it asks its group about offsets: as a member, where it is."""
        yield from super().questions(who, keys)
        yield OffsetFetchRequest(groups=[OffsetFetchRequestGroup(
            group_id=NAME, member_id=who.member_id, member_epoch=who.generation, topics=None)])


class WholePlannedGroups(WholeGroups):
    """One schedule. `run` raises `Violation` if a property does not hold."""

    member = LedMember
    of_group: tuple[type[Request], ...] = (FindCoordinatorRequest, ConsumerGroupHeartbeatRequest)
    refusable: tuple[type[Request], ...] = (ConsumerGroupHeartbeatRequest, OffsetCommitRequest, OffsetFetchRequest)
    # With Kafka, too, an old heartbeat that says what a member held in the epoch before passes for a new one, if it
    # comes behind that: what it does not name is given to another.
    carries_out_late = False

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.static = self.random.choice([0.0, 0.0, 0.5, 1.0])
        self._committed_by: dict[Key, tuple[str, int]] = {}
        self.is_rude = False  # the group takes commits of its members, whatever they have; with Kafka, too

    @property
    def _group(self) -> PlannedGroup | None:
        return self.brokers.cluster.planned_groups.get(NAME)

    @property
    def generation(self) -> int:
        """The epoch of the newest plan; -1 for none, and while there is none for what has changed."""
        group = self._group
        return -1 if group is None or group.epoch != group.planned_epoch else group.planned_epoch

    @property
    def is_settled(self) -> bool:
        """Whether all have arrived at the newest plan, and nothing is on its way."""
        return (super().is_settled and self._group is not None and self._group.state == "Stable"
                and all(each.group.state is MemberState.STABLE for each in self.members))

    def objection_to_member(self, request: Any) -> str:
        """Why the group has to refuse a member."""
        group = self._group
        members: dict[str, Any] = {} if group is None else group.members
        if isinstance(request, OffsetFetchRequest):
            asks = request.groups[0]
            return _objection_to_epoch(members.get(asks.member_id or ""), (asks.member_epoch,), exact=True)
        if isinstance(request, OffsetCommitRequest):
            return _objection_to_epoch(members.get(request.member_id))
        epoch, holders = request.member_epoch, {each.instance_id: each for each in members.values()}
        holder = holders.get(request.instance_id) if request.instance_id is not None else None
        if epoch == JOINS:
            return "under the name of one who has not left" if holder is not None and holder.epoch != AWAY else ""
        if epoch > JOINS and holder is not None and holder.id != request.member_id:
            return "of one whose name is another's"
        return _objection_to_epoch(members.get(request.member_id), (epoch,)) if epoch > JOINS else ""

    def urge(self) -> None:
        """Such a group needs nobody to help it."""

    def note_owned(self, member: Member) -> None:
        """What a member of the group holds is held by no other member of it."""
        group = self._group
        if group is None or member.group.member_id not in group.members:
            return  # it was dropped, and has not heard of that
        for other in self.members:
            if other is not member and other.group.member_id in group.members:
                both = member.group.owned & other.group.owned
                self.hold(not both, f"{sorted(both)} are of {member.number} and of {other.number}")

    def note_commit(self, request: OffsetCommitRequest, reply: Any) -> None:
        """Who commits has the partition; and who had it before comes no more."""
        group, who = self._group, request.member_id
        assert group is not None
        for place in self.taken(reply):
            epoch = request.generation_id_or_member_epoch
            key = (self.brokers.cluster.catalog.topics[place[0]].id, place[1])
            others = [each.id for each in group.members.values() if each.id != who and key in each.held]
            self.hold(not others, f"{place} was committed by {who}, and is of {others}")
            before, at = self._committed_by.get(place, (who, epoch))
            replaced = request.group_instance_id is not None and before not in group.members
            self.hold(who == before or epoch > at or (replaced and epoch == at),
                      f"{place} was committed by {before} in epoch {at}, and after that by {who} in {epoch}")
            self._committed_by[place] = (who, max(epoch, at) if who == before else epoch)


def _objection_to_epoch(member: PlannedMember | None, epochs: tuple[int, ...] = (), *, exact: bool = False) -> str:
    """Why a member is to be refused: the group does not know it, or not at that epoch nor the one before."""
    if member is None:
        return "of whom the group does not know"
    known = (member.epoch,) if exact else (member.epoch, member.previous_epoch)
    return "" if all(epoch in known for epoch in epochs) else "of another epoch"


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return WholePlannedGroups(seed).run()
