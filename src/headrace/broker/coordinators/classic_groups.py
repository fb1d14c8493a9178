"""Classic consumer groups: who is a member, which generation it is, what each member was assigned.

A group has states (`GROUP_TRANSITIONS`): members join, the leader assigns, and all is stable until a member comes, goes
or changes. Members that wait are delayed replies; members that do not answer in
time are taken out. What the members' metadata and assignments mean is not looked at.

It knows no sockets, no topics and no clock. Read next: `broker.apis.groups`.
Source: KIP-62, KIP-345 (static members), KIP-394 (member ids first), Java's `ClassicGroup`.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from uuid import UUID

from headrace.broker.deadlines import Deadline, Deadlines, Now
from headrace.broker.purgatory import DelayedReply, Purgatory
from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError
from headrace.states import Transitions, from_each
from headrace.wire.messages.groups.classic_groups import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupRequest,
    SyncGroupResponse,
)

__all__ = ["GROUP_TRANSITIONS", "Group", "Groups", "Member", "GroupState", "join_error_response"]

_MEMBER_ID_FROM = 4
_NO_NAME_FROM = 7
_SKIP_ASSIGNMENT_FROM = 9


class GroupState(Enum):
    """The state of a group; the values are Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


GROUP_TRANSITIONS = Transitions("A classic group", GroupState.EMPTY, {
    **from_each((GroupState.EMPTY, GroupState.COMPLETING, GroupState.STABLE), "rebalance", GroupState.PREPARING),
    (GroupState.PREPARING, "all joined"): GroupState.COMPLETING,
    (GroupState.PREPARING, "all left"): GroupState.EMPTY,
    (GroupState.COMPLETING, "assigned"): GroupState.STABLE,
})
"""The only ways from one state to another."""


@dataclass(slots=True, eq=False)
class Member:
    """A member of a group.

    Attributes:
        protocols: the assignors it can use, best first, each with its metadata.
        version: of the JoinGroup request that it sent last.
        joining: set while it waits for the next generation.
        syncing: set while it waits for its assignment.
        expires_at: when it is dropped, unless a request of it comes before; monotonic seconds.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_s: float
    rebalance_s: float
    protocols: dict[str, bytes]
    version: int = 0
    assignment: bytes = b""
    joining: DelayedReply | None = None
    syncing: DelayedReply | None = None
    expires_at: float = 0.0
    expiry: Deadline | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a request of it lies here, which is a sign of life."""
        return any(each is not None and not each.is_settled for each in (self.joining, self.syncing))


class Group:
    """One group.

    Args:
        group_id: its name.
        settings: the broker's limits.
        deadlines: where it notes when time alone changes it.
        purgatory: where the members' requests wait.
        new_uuid: makes what is unique in a member id.
    """

    def __init__(self, group_id: str, settings: BrokerSettings, deadlines: Deadlines, purgatory: Purgatory,
                 new_uuid: Callable[[], UUID]) -> None:
        self.id = group_id
        self.state = GROUP_TRANSITIONS.first
        self.generation = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self._instances: dict[str, str] = {}
        self._pending: dict[str, Deadline] = {}
        """Member ids that were given out and did not join yet."""
        self._settings = settings
        self._deadlines = deadlines
        self._purgatory = purgatory
        self._new_uuid = new_uuid
        self._next_step: Deadline | None = None
        self._is_gathering = False

    # -- joining

    def join(self, request: JoinGroupRequest, version: int, client: tuple[str, str],
             now: Now) -> JoinGroupResponse | DelayedReply:
        """A member joins, or joins again.

        Args:
            request: what it sent.
            version: of the request.
            client: client id and host.
            now: what the clocks say.

        Returns:
            The reply, if need be delayed until every member of the generation is there.

        Raises:
            ApiError: the member is unknown or fenced, or its protocols do not fit the others'.
        """
        protocols = {each.name: bytes(each.metadata) for each in request.protocols}
        self._check_protocols(request, protocols)
        if request.member_id == "":
            return self._join_new(request, version, client, protocols, now)
        if (expiry := self._pending.pop(request.member_id, None)) is not None:
            expiry.cancel()
            return self._rebalance_with(self._add(request.member_id, request, version, client, protocols, now), now)
        member = self.member(request.member_id, request.group_instance_id)
        return self._join_again(member, request, version, protocols, now)

    def _join_new(
        self, request: JoinGroupRequest, version: int, client: tuple[str, str], protocols: dict[str, bytes], now: Now
    ) -> JoinGroupResponse | DelayedReply:
        instance = request.group_instance_id
        member_id = f"{instance or client[0]}-{self._new_uuid()}"
        if instance is not None and instance in self._instances:
            return self._replace(self.members[self._instances[instance]], member_id, request, version, protocols, now)
        if instance is None and version >= _MEMBER_ID_FROM:
            self._pending[member_id] = self._deadlines.at(now.s + request.session_timeout_ms / 1000,
                                                          lambda now: self._forget_pending(member_id, now))
            return join_error_response(KafkaError.MEMBER_ID_REQUIRED, member_id, version)
        return self._rebalance_with(self._add(member_id, request, version, client, protocols, now), now)

    def _join_again(
        self, member: Member, request: JoinGroupRequest, version: int, protocols: dict[str, bytes], now: Now
    ) -> JoinGroupResponse | DelayedReply:
        is_same = protocols == member.protocols
        self._update(member, request, version, protocols, now)
        if is_same and (self.state is GroupState.COMPLETING
                        or (self.state is GroupState.STABLE and member.id != self.leader)):
            return self._joined(member)
        return self._rebalance_with(member, now)

    def _replace(
        self, member: Member, member_id: str, request: JoinGroupRequest, version: int, protocols: dict[str, bytes],
        now: Now
    ) -> JoinGroupResponse | DelayedReply:
        """A static member is back under a new member id: the old one is fenced; nothing moves if nothing changed."""
        old_id, was_leader = member.id, member.id == self.leader
        self._fail(member, KafkaError.FENCED_INSTANCE_ID)
        self.members = {member_id if key == old_id else key: each for key, each in self.members.items()}
        member.id = member_id
        self._instances[str(member.instance_id)] = member_id
        if was_leader:
            self.leader = member_id
        self._update(member, request, version, protocols, now)
        # As in Kafka only another assignor counts: a member that comes back no longer knows what it owned.
        if self.state is not GroupState.STABLE or self._vote() != self.protocol_name:
            return self._rebalance_with(member, now)
        reply = self._joined(member)
        if was_leader and version >= _SKIP_ASSIGNMENT_FROM:
            reply.skip_assignment = True
        elif was_leader:
            reply.leader, reply.members = old_id, []  # so that it does not assign anew (KIP-814)
        return reply

    def _add(
        self, member_id: str, request: JoinGroupRequest, version: int, client: tuple[str, str],
        protocols: dict[str, bytes], now: Now
    ) -> Member:
        member = Member(member_id, request.group_instance_id, *client, session_s=0, rebalance_s=0, protocols=protocols)
        self.members[member_id] = member
        if member.instance_id is not None:
            self._instances[member.instance_id] = member_id
        self.protocol_type = request.protocol_type
        self._update(member, request, version, protocols, now)
        return member

    def _update(self, member: Member, request: JoinGroupRequest, version: int, protocols: dict[str, bytes],
                now: Now) -> None:
        member.protocols, member.version = protocols, version
        member.session_s = request.session_timeout_ms / 1000
        timeout_ms = request.rebalance_timeout_ms
        member.rebalance_s = (timeout_ms if timeout_ms >= 0 else request.session_timeout_ms) / 1000
        self.touch(member, now)

    def _check_protocols(self, request: JoinGroupRequest, protocols: dict[str, bytes]) -> None:
        """A member must have an assignor that all have, itself as it joined before among them, as in Kafka."""
        if not protocols or not request.protocol_type:
            raise ApiError(KafkaError.INCONSISTENT_GROUP_PROTOCOL)
        if self.members and (request.protocol_type != self.protocol_type
                             or not set(protocols).intersection(*(each.protocols for each in self.members.values()))):
            raise ApiError(KafkaError.INCONSISTENT_GROUP_PROTOCOL)

    # -- rebalancing

    def _rebalance_with(self, member: Member, now: Now) -> DelayedReply:
        """The member waits for the next generation, which is begun unless it has begun."""
        if member.joining is not None:
            self._purgatory.answer(member.joining, None)  # the member asks again: it has given the first request up
        member.joining = waiting = DelayedReply()
        if self.state is not GroupState.PREPARING:
            self._prepare(now)
        self._complete_join_if_all_are_here(now)
        return waiting

    def _prepare(self, now: Now) -> None:
        """Begin a rebalance: members that wait for an assignment must join again."""
        was_empty = self.state is GroupState.EMPTY
        self._go("rebalance")
        for member in self.members.values():
            self._answer_sync(member, SyncGroupResponse(error_code=KafkaError.REBALANCE_IN_PROGRESS, assignment=b""))
        delay_s = self._settings.initial_rebalance_delay_ms / 1000
        self._is_gathering = was_empty and delay_s > 0
        self._after(delay_s if self._is_gathering else self._rebalance_s(), self._join_time_is_up, now)

    def _complete_join_if_all_are_here(self, now: Now) -> None:
        if (self.state is GroupState.PREPARING and not self._pending and not self._is_gathering
                and all(member.joining is not None for member in self.members.values())):
            self._complete_join(now)

    def _join_time_is_up(self, now: Now) -> None:
        if self._is_gathering:
            self._is_gathering = False
            self._after(self._rebalance_s(), self._join_time_is_up, now)
            self._complete_join_if_all_are_here(now)
            return
        for member in list(self.members.values()):
            if member.joining is None and member.instance_id is None:
                self._drop(member)
        if self.members and all(member.joining is None for member in self.members.values()):
            self._after(self._rebalance_s(), self._join_time_is_up, now)  # static members only, all away: wait on
            return
        self._complete_join(now)

    def _complete_join(self, now: Now) -> None:
        """All are here: a new generation begins, and the leader is asked to assign."""
        self._stop_waiting()
        self.generation += 1
        if not self.members:
            self._go("all left")
            self.leader = self.protocol_name = None
            return
        self._go("all joined")
        self.protocol_name = self._vote()
        joined = [member for member in self.members.values() if member.joining is not None]
        if self.leader not in {member.id for member in joined}:
            self.leader = joined[0].id
        for member in joined:
            waiting, member.joining = member.joining, None
            if waiting is not None:
                self._purgatory.answer(waiting, self._joined(member))
            self.touch(member, now)
        self._after(self._rebalance_s(), self._sync_time_is_up, now)

    def _vote(self) -> str:
        """The assignor that all can use and most like best."""
        first, *others = self.members.values()
        common = [name for name in first.protocols if all(name in each.protocols for each in others)]
        votes = Counter(next(name for name in each.protocols if name in common) for each in self.members.values())
        return max(common, key=lambda name: votes[name])

    def _joined(self, member: Member) -> JoinGroupResponse:
        name = self.protocol_name or ""
        roster = [JoinGroupResponseMember(member_id=each.id, group_instance_id=each.instance_id,
                                          metadata=each.protocols.get(name, b"")) for each in self.members.values()]
        return JoinGroupResponse(
            error_code=0, generation_id=self.generation, protocol_type=self.protocol_type, protocol_name=name,
            leader=self.leader or "", member_id=member.id, members=roster if member.id == self.leader else [])

    # -- assigning

    def sync(self, request: SyncGroupRequest, now: Now) -> SyncGroupResponse | DelayedReply:
        """A member asks for its assignment; the leader brings everyone's.

        Returns:
            The reply, if need be delayed until the leader has assigned.

        Raises:
            ApiError: the member or its generation is not the present one, or a rebalance is on.
        """
        member = self.member(request.member_id, request.group_instance_id)
        self.check_generation(request.generation_id)
        if (request.protocol_type not in (None, self.protocol_type)
                or request.protocol_name not in (None, self.protocol_name)):
            raise ApiError(KafkaError.INCONSISTENT_GROUP_PROTOCOL)
        if self.state is GroupState.PREPARING:
            raise ApiError(KafkaError.REBALANCE_IN_PROGRESS)
        self.touch(member, now)
        if self.state is GroupState.STABLE:
            member.syncing = None
            return self._assigned(member)
        member.syncing = waiting = DelayedReply()
        if member.id == self.leader:
            self._assign({each.member_id: bytes(each.assignment) for each in request.assignments}, now)
        return waiting

    def _assign(self, assignments: dict[str, bytes], now: Now) -> None:
        self._go("assigned")
        self._stop_waiting()
        for member in self.members.values():
            member.assignment = assignments.get(member.id, b"")
            self._answer_sync(member, self._assigned(member))
            self.touch(member, now)

    def _assigned(self, member: Member) -> SyncGroupResponse:
        return SyncGroupResponse(error_code=0, protocol_type=self.protocol_type, protocol_name=self.protocol_name,
                                 assignment=member.assignment)

    def _answer_sync(self, member: Member, reply: SyncGroupResponse) -> None:
        """Answer a member that waits for its assignment."""
        waiting, member.syncing = member.syncing, None
        if waiting is not None:
            self._purgatory.answer(waiting, reply)

    def _sync_time_is_up(self, now: Now) -> None:
        """The leader did not assign in time: members that did not ask for an assignment are dropped."""
        for member in list(self.members.values()):
            if member.syncing is None:
                self._drop(member)
        self._prepare(now)
        self._complete_join_if_all_are_here(now)

    def subscribed_topics(self) -> set[str]:
        """The topics that the members read, as far as their metadata can be read."""
        return {topic for member in self.members.values() for metadata in member.protocols.values()
                for topic in _topics_of(metadata)}

    # -- staying and going

    def member(self, member_id: str, instance_id: str | None) -> Member:
        """The member that a request comes from.

        Raises:
            ApiError: there is none of this id, or its place was taken by another of the same instance id.
        """
        if instance_id is not None:
            if instance_id not in self._instances:
                raise ApiError(KafkaError.UNKNOWN_MEMBER_ID)
            if self._instances[instance_id] != member_id:
                raise ApiError(KafkaError.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise ApiError(KafkaError.UNKNOWN_MEMBER_ID)
        return self.members[member_id]

    def check_generation(self, generation: int) -> None:
        """Refuse a member that names an earlier generation."""
        if generation != self.generation:
            raise ApiError(KafkaError.ILLEGAL_GENERATION)

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now: Now) -> None:
        """A sign of life.

        Raises:
            ApiError: the member is not of this generation, or must join again.
        """
        member = self.member(member_id, instance_id)
        self.check_generation(generation)
        self.touch(member, now)
        if self.state is GroupState.PREPARING:
            raise ApiError(KafkaError.REBALANCE_IN_PROGRESS)

    def check_transactional_commit(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Whether offsets may be committed in a transaction: by a present member, or without naming one, as old clients
        do (KIP-447).

        Raises:
            ApiError: the member is not, or no longer, one.
        """
        is_member = bool(generation >= 0 or member_id or instance_id is not None)
        if is_member and (generation >= 0 or self.members):
            self.member(member_id, instance_id)
            self.check_generation(generation)

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, now: Now) -> None:
        """Whether offsets may be committed: by a present member, or, without members, by anyone outside of a group.

        Raises:
            ApiError: neither is so.
        """
        if generation < 0 and not self.members:
            return
        member = self.member(member_id, instance_id)
        self.check_generation(generation)
        self.touch(member, now)
        if self.state is GroupState.COMPLETING:
            raise ApiError(KafkaError.REBALANCE_IN_PROGRESS)

    def leave(self, member_id: str, instance_id: str | None, now: Now) -> None:
        """A member leaves; with an instance id alone, the member that holds it.

        Raises:
            ApiError: there is no such member.
        """
        if (expiry := self._pending.pop(member_id, None)) is not None:
            expiry.cancel()
        else:
            if instance_id is not None and not member_id:
                member_id = self._instances.get(instance_id, "")
            self._drop(self.member(member_id, instance_id))
        self._after_departure(now)

    def touch(self, member: Member, now: Now) -> None:
        """Record that the member is alive."""
        member.expires_at = now.s + member.session_s
        if member.expiry is None or member.expiry.when > member.expires_at:
            if member.expiry is not None:
                member.expiry.cancel()
            self._watch(member)

    def _watch(self, member: Member) -> None:
        member.expiry = self._deadlines.at(member.expires_at, lambda now: self._session_ends(member, now))

    def _session_ends(self, member: Member, now: Now) -> None:
        """The deadline is set once and not at every heartbeat: now it is seen whether the time is really up."""
        if member.is_waiting:
            member.expires_at = now.s + member.session_s
        if member.expires_at > now.s:
            self._watch(member)
        else:
            self._drop(member)
            self._after_departure(now)

    def _drop(self, member: Member) -> None:
        del self.members[member.id]
        if member.instance_id is not None:
            self._instances.pop(member.instance_id, None)
        if member.expiry is not None:
            member.expiry.cancel()
        if member.id == self.leader:
            self.leader = None
        self._fail(member, KafkaError.UNKNOWN_MEMBER_ID)

    def _fail(self, member: Member, code: int) -> None:
        """Answer what a member waits for with an error."""
        joining, member.joining = member.joining, None
        if joining is not None:
            self._purgatory.answer(joining, join_error_response(code, member.id, member.version))
        self._answer_sync(member, SyncGroupResponse(error_code=code, assignment=b""))

    def _after_departure(self, now: Now) -> None:
        if self.state in (GroupState.COMPLETING, GroupState.STABLE):
            self._prepare(now)
        if not self.members and not self._pending:
            self._is_gathering = False
        self._complete_join_if_all_are_here(now)

    def _forget_pending(self, member_id: str, now: Now) -> None:
        if self._pending.pop(member_id, None) is not None:
            self._complete_join_if_all_are_here(now)

    def close(self) -> None:
        """Let all members go, and do nothing more."""
        self._stop_waiting()
        for expiry in self._pending.values():
            expiry.cancel()
        for member in list(self.members.values()):
            self._drop(member)

    def _go(self, trigger: str) -> None:
        self.state = GROUP_TRANSITIONS.go(self.state, trigger)

    def _rebalance_s(self) -> float:
        return max((member.rebalance_s for member in self.members.values()), default=0.0)

    def _after(self, seconds: float, action: Callable[[Now], None], now: Now) -> None:
        self._stop_waiting()
        self._next_step = self._deadlines.at(now.s + seconds, action)

    def _stop_waiting(self) -> None:
        if self._next_step is not None:
            self._next_step.cancel()
            self._next_step = None


class Groups:
    """All groups of the cluster.

    Args:
        settings: the broker's limits.
        deadlines: where they note when time alone changes them.
        purgatory: where the members' requests wait.
        new_uuid: makes what is unique in a member id.
    """

    def __init__(self, settings: BrokerSettings, deadlines: Deadlines, purgatory: Purgatory,
                 new_uuid: Callable[[], UUID]) -> None:
        self._make = partial(Group, settings=settings, deadlines=deadlines, purgatory=purgatory, new_uuid=new_uuid)
        self._groups: dict[str, Group] = {}

    def get(self, group_id: str) -> Group | None:
        """The group, if it has ever had members and was not deleted."""
        return self._groups.get(group_id)

    def get_or_make(self, group_id: str) -> Group:
        """The group; a new, empty one where there is none."""
        return self._groups.get(group_id) or self._groups.setdefault(group_id, self._make(group_id))

    def remove(self, group_id: str) -> None:
        """Forget a group."""
        self._groups.pop(group_id, None)

    def all(self) -> list[Group]:
        """Every group."""
        return list(self._groups.values())

    def close(self) -> None:
        """Let the members of all groups go."""
        for group in self._groups.values():
            group.close()
        self._groups.clear()


def join_error_response(code: int, member_id: str, version: int) -> JoinGroupResponse:
    """The reply to a member that is not let in."""
    return JoinGroupResponse(error_code=code, protocol_name=None if version >= _NO_NAME_FROM else "", leader="",
                             member_id=member_id, members=[])


def _topics_of(subscription: bytes) -> list[str]:
    """The topics in a consumer's metadata: version, count, names; none where it is something else."""
    topics = []
    try:
        (count,) = struct.unpack_from(">i", subscription, 2)
        position = 6
        for _ in range(count):
            (size,) = struct.unpack_from(">H", subscription, position)
            position += 2 + size
            topics.append(subscription[position - size:position].decode())
    except (struct.error, UnicodeDecodeError):
        return []
    return topics
