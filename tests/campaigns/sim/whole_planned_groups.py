"""The simulation of groups that the coordinator plans for (KIP-848): members' machines and the embedded broker.

It is `whole_groups` with `ConsumerGroup` in the place of `ClassicGroup`: the same troubles, other promises. Members may
stand at different epochs, so checked are: no partition is held by two members of the group at once; the group takes a
commit from nobody but who has the partition; and in the healed cluster all members come to the epoch of the newest
plan, stay there, and have all partitions between them.

    python -m tests.campaigns.sim.whole --of planned-groups --schedules 100000 --jobs 2
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from headrace.broker.coordinators.planned_groups import PlannedGroup
from headrace.config import CONSUMER, Config
from headrace.machines.consumer.subscription import Subscription
from headrace.machines.groups.consumer_group import ConsumerGroup, MemberState
from headrace.wire.messages.consumer.offsets import OffsetCommitRequest
from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest
from headrace.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest
from headrace.wire.schema import Request

from .whole_groups import NAME, TOPIC, Member, WholeGroups

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


class WholePlannedGroups(WholeGroups):
    """One schedule. `run` raises `Violation` if a property does not hold."""

    member = LedMember
    of_group: tuple[type[Request], ...] = (FindCoordinatorRequest, ConsumerGroupHeartbeatRequest)
    # With Kafka, too, an old heartbeat that says what a member held in the epoch before passes for a new one, if it
    # comes behind that: what it does not name is given to another.
    carries_out_late = False

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.static = self.random.choice([0.0, 0.0, 0.5])
        self._committed_by: dict[int, tuple[str, int]] = {}

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
        for part in reply.topics[0].partitions:
            self.counts["commits refused" if part.error_code else "commits"] += 1
            if part.error_code:
                continue
            epoch, place = request.generation_id_or_member_epoch, part.partition_index
            topic_id = self.brokers.cluster.catalog.topics[TOPIC].id
            others = [each.id for each in group.members.values() if each.id != who and (topic_id, place) in each.held]
            self.hold(not others, f"{place} was committed by {who}, and is of {others}")
            before, at = self._committed_by.get(place, (who, epoch))
            self.hold(who == before or epoch > at,
                      f"{place} was committed by {before} in epoch {at}, and after that by {who} in {epoch}")
            self._committed_by[place] = (who, max(epoch, at) if who == before else epoch)


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return WholePlannedGroups(seed).run()
