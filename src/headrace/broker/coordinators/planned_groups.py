"""Groups that the coordinator plans for (KIP-848): members, epochs, and who gives up what before another gets it.

The group's epoch grows with each change of members, subscriptions or topics; for each epoch there is a plan. A member
is led to its part of it by its heartbeats: it first gives up what is another's, and gets the epoch of the plan when
nothing is left to give up; what another still holds it gets when that has let go. So each partition has one owner at
any time, and members of one group may stand at different epochs.

It knows no sockets and no clock. Read next: `broker.coordinators.target_assignors`, `broker.apis.consumer_groups`.
Source: KIP-848, KIP-1251, Java's `CurrentAssignmentBuilder` and `GroupMetadataManager`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from uuid import UUID

from headrace.broker.coordinators.target_assignors import ASSIGNORS, DEFAULT_ASSIGNOR, TopicIndex, Wish
from headrace.broker.deadlines import Deadline, Deadlines, Now
from headrace.broker.pattern_re2 import Pattern, PatternError
from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.catalog import Catalog
from headrace.broker.storage.journal import Journal
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError
from headrace.states import Transitions, from_each
from headrace.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest

__all__ = ["AWAY", "JOINS", "MEMBER_TRANSITIONS", "PlannedGroup", "PlannedGroups", "PlannedMember", "MemberProgress"]

JOINS, _LEAVES, AWAY = 0, -1, -2
"""Epochs that stand for something else: a member joins, leaves, or is away for a while (static ones)."""
_FIRST_EPOCH = 1
_COMMITS_FROM = 9
"""Version of OffsetCommit from which on a member of such a group may commit."""
_NOTHING: frozenset[TopicIndex] = frozenset()


class MemberProgress(Enum):
    """How far a member is on its way to its part of the plan."""

    STABLE = "it has its part"
    REVOKING = "it has to give up what is another's"
    WAITING = "it has given up, and waits for what others hold"


MEMBER_TRANSITIONS = Transitions("A member of a group that the broker plans for", MemberProgress.STABLE, {
    **from_each(MemberProgress, "must give up", MemberProgress.REVOKING),
    **from_each(MemberProgress, "must wait", MemberProgress.WAITING),
    **from_each(MemberProgress, "arrived", MemberProgress.STABLE),
})
"""The only ways from one state to another."""


@dataclass(slots=True, eq=False)
class PlannedMember:
    """A member of a group.

    Attributes:
        rebalance_s: how long it may take to give something up.
        epoch: of the plan that it follows; `AWAY` for a static member that left for a while.
        previous_epoch: the one before, which it names when a reply was lost.
        assigned: what it has, and may have as far as the plan goes.
        revoking: what it has to give up, and holds until it says that it has not.
        since: in which epoch it got what it has.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rack_id: str | None = None
    rebalance_s: float = 0.0
    topics: frozenset[str] = frozenset()
    pattern: str = ""
    compiled: Pattern | None = None
    assignor: str | None = None
    epoch: int = JOINS
    previous_epoch: int = -1
    progress: MemberProgress = MEMBER_TRANSITIONS.first
    assigned: frozenset[TopicIndex] = _NOTHING
    revoking: frozenset[TopicIndex] = _NOTHING
    since: dict[TopicIndex, int] = field(default_factory=dict)
    session: Deadline | None = None
    patience: Deadline | None = None

    @property
    def held(self) -> frozenset[TopicIndex]:
        """What nobody else may have."""
        return self.assigned | self.revoking


class PlannedGroup:
    """One group.

    Args:
        group_id: its name.
        settings: the broker's limits.
        deadlines: where it notes when time alone changes it.
        catalog: the topics.

    Attributes:
        epoch: grows with every change that needs another plan.
        planned_epoch: the epoch that the plan was made for.
        plan: who shall have what, by member id.
    """

    def __init__(self, group_id: str, settings: BrokerSettings, deadlines: Deadlines, catalog: Catalog) -> None:
        self.id = group_id
        self.epoch = self.planned_epoch = _FIRST_EPOCH
        self._chosen = DEFAULT_ASSIGNOR
        self.members: dict[str, PlannedMember] = {}
        self.plan: dict[str, frozenset[TopicIndex]] = {}
        self._instances: dict[str, str] = {}
        self._counts: dict[UUID, int] = {}
        self._settings = settings
        self._deadlines = deadlines
        self._catalog = catalog

    @property
    def state(self) -> str:
        """The group's state, under Kafka's name."""
        if not self.members:
            return "Empty"
        if self.epoch > self.planned_epoch:
            return "Assigning"
        settled = all(member.progress is MemberProgress.STABLE and member.epoch == self.planned_epoch
                      for member in self.members.values())
        return "Stable" if settled else "Reconciling"

    # Heartbeats

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: tuple[str, str], now: Now
    ) -> tuple[PlannedMember, bool]:
        """A member joins, or shows that it lives, and says what has changed.

        Args:
            request: what it sent; it does not leave.
            client: client id and host.
            now: what the clocks say.

        Returns:
            The member, and whether it is to be told what it has.

        Raises:
            ApiError: the member is unknown or fenced, or what it says cannot be.
        """
        pattern = _compiled(request.subscribed_topic_regex)
        owned = None if request.topic_partitions is None else frozenset(
            (topic.topic_id, index) for topic in request.topic_partitions for index in topic.partitions)
        member = self._member_of(request, owned, client)
        changed = self._update(member, request, pattern)
        counts, assignor = self._count(), self.assignor
        if changed or counts != self._counts or assignor != self._chosen:
            self.epoch += 1
            self._counts, self._chosen = counts, assignor
        if self.epoch > self.planned_epoch:
            self._make_plan()
        had = member.assigned
        self._lead(member, owned, now)
        self._touch(member, now)
        is_full = request.member_epoch == JOINS or (
            request.rebalance_timeout_ms != -1 and owned is not None
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None))
        return member, is_full or member.assigned != had

    def _member_of(
        self, request: ConsumerGroupHeartbeatRequest, owned: frozenset[TopicIndex] | None, client: tuple[str, str]
    ) -> PlannedMember:
        if request.member_epoch == JOINS:
            return self._joining(request, client)
        member = self.member(request.member_id, request.instance_id)
        self._check_epoch(member, request.member_epoch, owned)
        return member

    def _joining(self, request: ConsumerGroupHeartbeatRequest, client: tuple[str, str]) -> PlannedMember:
        """A new member; one that is there already, and joins again; or a static one under another member id."""
        known = self.members.get(request.member_id)
        if known is None and len(self.members) >= self._settings.consumer_group_max_size:
            raise ApiError(KafkaError.GROUP_MAX_SIZE_REACHED, f"The group has {len(self.members)} members already")
        holder_id = self._instances.get(request.instance_id or "")
        if holder_id is not None and self.members[holder_id].epoch != AWAY:
            raise ApiError(KafkaError.UNRELEASED_INSTANCE_ID, f"Static member {request.member_id} with instance id "
                           f"{request.instance_id} cannot join the group because the instance id is owned by "
                           f"{holder_id} member")
        if holder_id is not None:
            return self._take_place(self.members[holder_id], request.member_id, client)
        if known is None:
            known = self.members[request.member_id] = PlannedMember(request.member_id, request.instance_id, *client)
            if request.instance_id is not None:
                self._instances[request.instance_id] = known.id
        return known

    def _take_place(self, member: PlannedMember, member_id: str, client: tuple[str, str]) -> PlannedMember:
        """A static member is back, perhaps under another id: it has what it had, and nothing moves."""
        self.members = {member_id if key == member.id else key: each for key, each in self.members.items()}
        self.plan[member_id] = self.plan.pop(member.id, _NOTHING)
        self._instances[str(member.instance_id)] = member.id = member_id
        member.client_id, member.client_host = client
        member.epoch, member.previous_epoch, member.revoking = JOINS, -1, _NOTHING
        return member

    def member(self, member_id: str, instance_id: str | None) -> PlannedMember:
        """The member that a request comes from.

        Raises:
            ApiError: there is none of this id, or its place was taken by another of the same instance id.
        """
        if instance_id is not None:
            if instance_id not in self._instances:
                raise ApiError(KafkaError.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown")
            holder_id = self._instances[instance_id]
            if holder_id != member_id:
                raise ApiError(KafkaError.FENCED_INSTANCE_ID, f"Static member {member_id} with instance id "
                               f"{instance_id} was fenced by member {holder_id}")
        if member_id not in self.members:
            raise ApiError(KafkaError.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}")
        return self.members[member_id]

    def _check_epoch(self, member: PlannedMember, epoch: int, owned: frozenset[TopicIndex] | None) -> None:
        """Fence a member that follows no plan of this group; one that missed a reply may name the epoch before."""
        missed_a_reply = epoch == member.previous_epoch and owned is not None and owned <= member.assigned
        if epoch != member.epoch and not missed_a_reply:
            raise ApiError(KafkaError.FENCED_MEMBER_EPOCH, f"The member has epoch {epoch}, the group coordinator knows "
                           f"{member.epoch}: it must abandon all its partitions and rejoin")

    def _update(self, member: PlannedMember, request: ConsumerGroupHeartbeatRequest, pattern: Pattern | None) -> bool:
        """Take over what is said; whether the member reads other topics by that."""
        before = member.topics, member.pattern
        if request.subscribed_topic_names is not None:
            member.topics = frozenset(request.subscribed_topic_names)
        if request.subscribed_topic_regex is not None:
            member.pattern, member.compiled = request.subscribed_topic_regex, pattern
        if request.rebalance_timeout_ms != -1:
            member.rebalance_s = request.rebalance_timeout_ms / 1000
        member.rack_id = request.rack_id or member.rack_id
        member.assignor = request.server_assignor or member.assignor
        return before != (member.topics, member.pattern)

    # The plan

    def _topic_ids(self, member: PlannedMember) -> frozenset[UUID]:
        topics = self._catalog.topics
        found = {topics[name].id for name in member.topics if name in topics}
        if member.compiled is not None:
            found |= {topic.id for name, topic in topics.items() if member.compiled.matches(name)}
        return frozenset(found)

    def _count(self) -> dict[UUID, int]:
        """The topics that are read, and how many partitions they have."""
        ids = frozenset[UUID]().union(*(self._topic_ids(member) for member in self.members.values()))
        return {topic_id: len(self._catalog.by_id[topic_id].partitions) for topic_id in ids}

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for."""
        wanted = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        return wanted.most_common(1)[0][0] if wanted else DEFAULT_ASSIGNOR

    def _make_plan(self) -> None:
        wishes = {
            member.id: Wish(self._topic_ids(member), self.plan.get(member.id, _NOTHING),
                            member.instance_id or member.id)
            for member in self.members.values()}
        self.plan = ASSIGNORS[self._chosen](wishes, self._counts)
        self.planned_epoch = self.epoch

    def _lead(self, member: PlannedMember, owned: frozenset[TopicIndex] | None, now: Now) -> None:
        """One step of a member to its part of the plan. `owned` is what it says that it holds; None: as before."""
        if member.progress is MemberProgress.STABLE and member.epoch == self.planned_epoch:
            return
        if member.progress is MemberProgress.REVOKING and (owned is None or owned & member.revoking):
            return
        goal = self.plan.get(member.id, _NOTHING)
        gone = member.assigned - goal
        if gone and (owned is None or owned & gone):
            member.assigned, member.revoking = member.assigned & goal, gone
            self._move(member, "must give up")
            self._expect_revocation(member, now)
            return
        others = frozenset[TopicIndex]().union(*(each.held for each in self.members.values() if each is not member))
        member.assigned, member.revoking = (member.assigned & goal) | (goal - others), _NOTHING
        if member.epoch != self.planned_epoch:
            member.previous_epoch, member.epoch = member.epoch, self.planned_epoch
        member.since = {key: member.since.get(key, member.epoch) for key in member.assigned}
        self._move(member, "arrived" if member.assigned == goal else "must wait")

    def _move(self, member: PlannedMember, trigger: str) -> None:
        member.progress = MEMBER_TRANSITIONS.go(member.progress, trigger)
        if member.patience is not None:
            member.patience.cancel()

    def _expect_revocation(self, member: PlannedMember, now: Now) -> None:
        """Who does not give up in time what is another's is a member no more."""
        member.patience = self._deadlines.at(now.s + member.rebalance_s, lambda now: self.drop(member))

    # Staying and going

    def _touch(self, member: PlannedMember, now: Now) -> None:
        if member.session is not None:
            member.session.cancel()
        member.session = self._deadlines.at(now.s + self._settings.consumer_session_timeout_ms / 1000,
                                            lambda now: self.drop(member))

    def leave(self, member_id: str, instance_id: str | None, epoch: int) -> None:
        """A member goes, for good or, a static one, for a while.

        Raises:
            ApiError: there is no such member.
        """
        member = self.member(member_id, instance_id)
        if epoch == AWAY:
            member.previous_epoch, member.epoch = member.epoch, AWAY
        else:
            self.drop(member)

    def drop(self, member: PlannedMember) -> None:
        """A member is none any more: what it had is free."""
        if self.members.pop(member.id, None) is None:
            return
        self.plan.pop(member.id, None)
        if member.instance_id is not None:
            self._instances.pop(member.instance_id, None)
        for deadline in (member.session, member.patience):
            if deadline is not None:
                deadline.cancel()
        self.epoch += 1
        if not self.members:
            self.planned_epoch, self._counts, self._chosen = self.epoch, {}, DEFAULT_ASSIGNOR

    def close(self) -> None:
        """Let all members go."""
        for member in list(self.members.values()):
            self.drop(member)

    # Offsets

    def check_commit(self, member_id: str, epoch: int, partitions: Iterable[TopicIndex], version: int) -> None:
        """Whether offsets may be committed: by a present member, or, without members, by anyone outside of a group.

        A member may name an earlier epoch for partitions that it has had since then (KIP-1251).

        Args:
            member_id: who commits.
            epoch: its epoch, as it says; negative for nobody.
            partitions: what for.
            version: of OffsetCommit.

        Raises:
            ApiError: neither is so.
        """
        if epoch < 0 and not self.members:
            return
        member = self.member(member_id, None)
        if version < _COMMITS_FROM:
            raise ApiError(KafkaError.UNSUPPORTED_VERSION)
        if epoch > member.epoch or (epoch < member.epoch and any(
                member.since.get(key, epoch + 1) > epoch for key in partitions)):
            raise ApiError(KafkaError.STALE_MEMBER_EPOCH)

    def check_transactional_commit(self, member_id: str, instance_id: str | None, epoch: int) -> None:
        """Whether offsets may be committed in a transaction: by a present member, or without naming one (KIP-447).

        Raises:
            ApiError: the member is none, or has another epoch, which such a request knows as a generation.
        """
        if (member_id, instance_id) == ("", None) and epoch < 0:
            return
        if epoch != self.member(member_id, instance_id).epoch:
            raise ApiError(KafkaError.ILLEGAL_GENERATION)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Whether offsets may be read: by anyone who names no member, and by one in its present epoch.

        Raises:
            ApiError: the member is none, or has another epoch.
        """
        if member_id is None and epoch < 0:
            return
        if self.member(member_id or "", None).epoch != epoch:
            raise ApiError(KafkaError.STALE_MEMBER_EPOCH)

    def subscribed_topics(self) -> set[str]:
        """The topics that the members read."""
        return {self._catalog.by_id[topic_id].name for topic_id in self._count()}


class PlannedGroups:
    """All such groups of the cluster.

    Their names are kept, not their members: those of before a restart hear then that they are none and join again. Of a
    group that is not there they would hear what librdkafka and Java take for the end.

    Args:
        settings: the broker's limits.
        deadlines: where they note when time alone changes them.
        catalog: the topics.
        path: the journal; None keeps all in memory.
    """

    def __init__(self, settings: BrokerSettings, deadlines: Deadlines, catalog: Catalog,
                 path: Path | None = None) -> None:
        self._settings, self._deadlines, self._catalog = settings, deadlines, catalog
        self._groups: dict[str, PlannedGroup] = {}
        self._journal = Journal(path, lambda: [[group_id] for group_id in self._groups])
        for group_id, *gone in self._journal.read():
            if gone:
                self.remove(group_id)
            else:
                kept = self.get_or_make(group_id)
                kept.epoch = kept.planned_epoch = _FIRST_EPOCH + 1
        self._journal.begin()

    def get(self, group_id: str) -> PlannedGroup | None:
        """The group, if it has ever had members and was not deleted."""
        return self._groups.get(group_id)

    def get_or_make(self, group_id: str) -> PlannedGroup:
        """The group; a new, empty one where there is none."""
        found = self._groups.get(group_id)
        if found is None:
            self._journal.append([[group_id]])
            found = self._groups[group_id] = PlannedGroup(group_id, self._settings, self._deadlines, self._catalog)
        return found

    def remove_unused(self, group_id: str) -> None:
        """Forget a group that nobody has ever joined."""
        if not self._groups[group_id].members and self._groups[group_id].epoch == _FIRST_EPOCH:
            self.remove(group_id)

    def remove(self, group_id: str) -> None:
        """Forget a group."""
        if group_id in self._groups:
            self._journal.append([[group_id, None]])
            del self._groups[group_id]

    def all(self) -> list[PlannedGroup]:
        """Every group."""
        return list(self._groups.values())

    def close(self) -> None:
        """Let the members of all groups go."""
        self._journal.close()
        for group in self._groups.values():
            group.close()
        self._groups.clear()


def _compiled(pattern: str | None) -> Pattern | None:
    if not pattern:
        return None
    try:
        return Pattern(pattern)
    except PatternError as error:
        raise ApiError(KafkaError.INVALID_REGULAR_EXPRESSION,
                       f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}") from None
