"""Share groups (KIP-932): members, epochs, and which partitions each of them reads.

The group's epoch grows with each change of members, subscriptions or topics; for each epoch there is a plan, and a
member is at it with its next heartbeat: nobody has to give up anything before, because a partition may have several
readers. A topic that is new to the group is made known to the leaders of its partitions first, behind the heartbeat
that named it, so that it is in the next plan.

It knows no sockets and no clock. Read next: `broker.coordinators.share_assignor`, `broker.apis.share_groups`.
Source: KIP-932, Java's `ShareGroup` and `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from headrace.broker.coordinators.group_configs import GroupConfigs
from headrace.broker.coordinators.share_assignor import simple
from headrace.broker.coordinators.target_assignors import TopicIndex
from headrace.broker.deadlines import Deadline, Deadlines, Now
from headrace.broker.settings import BrokerSettings
from headrace.broker.shares.share_partitions import ShareKey, SharePartitions
from headrace.broker.storage.catalog import Catalog
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError
from headrace.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest

__all__ = ["JOINS_SHARING", "SharingGroup", "SharingGroups", "SharingMember"]

JOINS_SHARING = 0
"""Epoch that stands for a member that joins."""
_FIRST_EPOCH = 1
_NOTHING: frozenset[TopicIndex] = frozenset()


@dataclass(slots=True, eq=False)
class SharingMember:
    """A member of a share group.

    Attributes:
        epoch: of the plan that it follows.
        previous_epoch: the one before, which it names when a reply was lost.
        assigned: what it reads.
    """

    id: str
    client_id: str
    client_host: str
    rack_id: str | None = None
    topics: frozenset[str] = frozenset()
    epoch: int = JOINS_SHARING
    previous_epoch: int = JOINS_SHARING
    assigned: frozenset[TopicIndex] = _NOTHING
    session: Deadline | None = None


class SharingGroup:
    """One group.

    Args:
        group_id: its name.
        parent: what all groups share.

    Attributes:
        epoch: grows with every change that needs another plan.
        planned_epoch: the epoch that the plan was made for.
        plan: who shall read what, by member id.
    """

    def __init__(self, group_id: str, parent: SharingGroups) -> None:
        self.id = group_id
        self.epoch = self.planned_epoch = _FIRST_EPOCH
        self.members: dict[str, SharingMember] = {}
        self.plan: dict[str, frozenset[TopicIndex]] = {}
        self._parts: dict[UUID, list[int]] = {}
        self._parent = parent

    @property
    def state(self) -> str:
        """The group's state, under Kafka's name."""
        return "Stable" if self.members else "Empty"

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: tuple[str, str], now: Now
    ) -> tuple[SharingMember, bool]:
        """A member joins, or shows that it lives, and says what has changed.

        Args:
            request: what it sent; it does not leave.
            client: client id and host.
            now: what the clocks say.

        Returns:
            The member, and whether it is to be told what it reads.

        Raises:
            ApiError: the member is unknown or fenced, or the group is full.
        """
        member = self._member_of(request, client)
        before, parts = member.topics, self._known_parts()
        if request.subscribed_topic_names is not None:
            member.topics = frozenset(request.subscribed_topic_names)
        member.rack_id = request.rack_id or member.rack_id
        if before != member.topics or self._parts != parts:
            self.epoch += 1
        if self.epoch > self.planned_epoch:
            self._make_plan()
        had = member.assigned
        if member.epoch != self.planned_epoch:
            member.previous_epoch, member.epoch = member.epoch, self.planned_epoch
            member.assigned = self.plan.get(member.id, _NOTHING)
        self._parent.prepare(self)
        self._touch(member, now)
        is_full = request.member_epoch == JOINS_SHARING or request.subscribed_topic_names is not None
        return member, is_full or member.assigned != had

    def _member_of(self, request: ShareGroupHeartbeatRequest, client: tuple[str, str]) -> SharingMember:
        if request.member_epoch == JOINS_SHARING:
            known = self.members.get(request.member_id)
            if known is None:
                self._parent.check_size(self)
                known = self.members[request.member_id] = SharingMember(request.member_id, *client)
            return known
        member = self.member(request.member_id)
        if request.member_epoch not in (member.epoch, member.previous_epoch):
            raise ApiError(KafkaError.FENCED_MEMBER_EPOCH, f"The member has epoch {request.member_epoch}, the group "
                           f"coordinator knows {member.epoch}: it must abandon all its partitions and rejoin")
        return member

    def member(self, member_id: str) -> SharingMember:
        """The member that a request comes from.

        Raises:
            ApiError: there is none of this id.
        """
        if member_id not in self.members:
            raise ApiError(KafkaError.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}")
        return self.members[member_id]

    # The plan

    def topic_ids(self, member: SharingMember) -> frozenset[UUID]:
        """The topics that a member reads and that are there."""
        topics = self._parent.catalog.topics
        return frozenset(topics[name].id for name in member.topics if name in topics)

    def wanted(self) -> list[TopicIndex]:
        """All partitions that are read."""
        ids = frozenset[UUID]().union(*(self.topic_ids(member) for member in self.members.values()))
        by_id = self._parent.catalog.by_id
        return [(topic_id, part.index) for topic_id in sorted(ids) for part in by_id[topic_id].partitions]

    def _known_parts(self) -> dict[UUID, list[int]]:
        """The partitions that are read, and that their leaders know of."""
        found: dict[UUID, list[int]] = {}
        for topic_id, index in self.wanted():
            if self._parent.is_prepared(self.id, topic_id, index):
                found.setdefault(topic_id, []).append(index)
        return found

    def _make_plan(self) -> None:
        self._parts = self._known_parts()
        self.plan = simple({member.id: self.topic_ids(member) for member in self.members.values()}, self.plan,
                           self._parts)
        self.planned_epoch = self.epoch

    # Staying and going

    def _touch(self, member: SharingMember, now: Now) -> None:
        if member.session is not None:
            member.session.cancel()
        member.session = self._parent.deadlines.at(now.s + self._parent.session_s(self.id),
                                                   lambda now: self.drop(member))

    def drop(self, member: SharingMember) -> None:
        """A member is none any more. What it holds at the leaders of partitions is theirs to release."""
        if self.members.pop(member.id, None) is None:
            return
        self.plan.pop(member.id, None)
        if member.session is not None:
            member.session.cancel()
        self.epoch += 1
        if not self.members:
            self.planned_epoch, self._parts = self.epoch, {}
            self._parent.emptied(self)


class SharingGroups:
    """All share groups of the cluster.

    Args:
        settings: the broker's limits.
        configs: what is set on groups.
        deadlines: where they note when time alone changes them.
        catalog: the topics.
        shares: what the leaders know.
    """

    def __init__(self, settings: BrokerSettings, configs: GroupConfigs, deadlines: Deadlines, catalog: Catalog,
                 shares: SharePartitions) -> None:
        self._settings, self._configs, self._shares = settings, configs, shares
        self.deadlines, self.catalog = deadlines, catalog
        self._groups: dict[str, SharingGroup] = {}

    def get(self, group_id: str) -> SharingGroup | None:
        """The group, if it has ever had members and was not deleted; after a restart, if it had partitions."""
        found = self._groups.get(group_id)
        if found is None and self._shares.of_group(group_id):
            return self.get_or_make(group_id)
        return found

    def get_or_make(self, group_id: str) -> SharingGroup:
        """The group; a new, empty one where there is none."""
        return self._groups.setdefault(group_id, SharingGroup(group_id, self))

    def remove_unused(self, group_id: str) -> None:
        """Forget a group that nobody has ever joined."""
        group = self._groups[group_id]
        if not group.members and group.epoch == _FIRST_EPOCH and not self._shares.of_group(group_id):
            del self._groups[group_id]

    def remove(self, group_id: str) -> None:
        """Forget a group, and where it stands."""
        self._shares.forget(self._shares.of_group(group_id))
        self._groups.pop(group_id, None)

    def all(self) -> list[SharingGroup]:
        """Every group."""
        return [self.get_or_make(group_id) for group_id in dict.fromkeys([*self._groups, *self._shares.groups()])]

    def close(self) -> None:
        """Let the members of all groups go."""
        for group in self._groups.values():
            for member in list(group.members.values()):
                group.drop(member)
        self._groups.clear()

    # For the groups

    def check_size(self, group: SharingGroup) -> None:
        """Whether one more may join.

        Raises:
            ApiError: the group is full.
        """
        if len(group.members) >= self._settings.share_group_max_size:
            raise ApiError(KafkaError.GROUP_MAX_SIZE_REACHED, f"The group has {len(group.members)} members already")

    def session_s(self, group_id: str) -> float:
        """How long a member may be silent, seconds."""
        return self._configs.number(group_id, "share.session.timeout.ms") / 1000

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members of a group are to be heard of."""
        return self._configs.number(group_id, "share.heartbeat.interval.ms")

    def prepare(self, group: SharingGroup) -> None:
        """Let the leaders of all partitions that a group reads know of it."""
        self._shares.prepare(_keys(group.id, group.wanted()))

    def emptied(self, group: SharingGroup) -> None:
        """The last member of a group is gone."""
        self._shares.begin_anew(group.id)

    def is_prepared(self, group_id: str, topic_id: UUID, index: int) -> bool:
        """Whether the leader of a partition knows of a group."""
        return self._shares.knows(ShareKey(group_id, topic_id, index))


def _keys(group_id: str, partitions: Iterable[TopicIndex]) -> list[ShareKey]:
    return [ShareKey(group_id, *each) for each in partitions]
