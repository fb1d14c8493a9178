"""Membership in a classic consumer group: join, sync, heartbeat, leave, and the rebalances in between.

It is what `machines.groups.membership` asks of every kind of group. Eager groups give everything up before they join;
cooperative ones keep their partitions and give up only what moves (KIP-429). This module must not know what the
application's callbacks do.

Source: Java's `AbstractCoordinator` and `ConsumerCoordinator`; KIP-62, KIP-345, KIP-394, KIP-429, KIP-800, KIP-814.
Read next: `machines.groups.assignors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

from headrace.config import Config
from headrace.errors import KafkaError, ProtocolError
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Key, Subscription
from headrace.machines.groups.assignors import (
    ASSIGNORS,
    cooperative_user_data,
    racks_of,
    read_assignment,
    read_member,
    sticky_user_data,
    write_assignment,
    write_subscription,
)
from headrace.machines.groups.classic_error_actions import GroupErrorAction, group_error_action
from headrace.machines.groups.membership import Change, EpochMoved, GroupFailed, Left, Rebalance
from headrace.machines.machine import Event, Send
from headrace.states import Transitions, from_each
from headrace.types.records import ConsumerGroupMetadata, TopicPartition
from headrace.wire.messages.groups import classic_groups as wire
from headrace.wire.schema import Request, Struct

__all__ = ["TRANSITIONS", "ClassicGroup", "JoinState"]

_NO_GENERATION: Final = -1
_NEVER: Final = float("inf")
_JOIN_SLACK_S: Final = 5.0
"""The coordinator answers JoinGroup within the rebalance timeout; the request waits a little longer."""
_HEARTBEAT_SHARE: Final = 2 / 3  # of a session; what is left of it is for a coordinator that moved to another broker
_MEMBERS_FROM: Final = 3
"""From this version of LeaveGroup on several members can leave (KIP-345); before Kafka 2.4 there was room for one."""
_NEW_ID_S: Final = 1.0
"""So long after its first JoinGroup a member that leaves waits for the id that it gets: it gives that back."""
_REPORT_BACKOFF_S: Final = 5.0
"""Pause after an error that only the user or an administrator can mend."""


class JoinState(Enum):
    """Where this member stands."""

    OUTSIDE = "not in the group"
    PREPARING = "the application gives partitions up before the member joins"
    JOINING = "JoinGroup is to be sent, or sent"
    SYNCING = "SyncGroup is sent: the leader's plan is awaited"
    REVOKING = "the application gives up what the plan took away"
    ASSIGNING = "the application takes up what the plan gave"
    STABLE = "member of the current generation"
    LOSING = "the application learns that its partitions are lost"
    STALLED = "left because the application did not poll"
    LEAVING = "LeaveGroup is sent"
    FENCED = "another member took this instance id: nothing can be done"


_ANY_MEMBER = (
    JoinState.PREPARING,
    JoinState.JOINING,
    JoinState.SYNCING,
    JoinState.REVOKING,
    JoinState.ASSIGNING,
    JoinState.STABLE,
)

TRANSITIONS: Final = Transitions("A member of a classic group", JoinState.OUTSIDE, {
    (JoinState.OUTSIDE, "subscribe"): JoinState.PREPARING,
    (JoinState.PREPARING, "prepared"): JoinState.JOINING,
    (JoinState.JOINING, "joined"): JoinState.SYNCING,
    (JoinState.JOINING, "retry"): JoinState.JOINING,
    (JoinState.SYNCING, "retry"): JoinState.JOINING,
    (JoinState.SYNCING, "revoke"): JoinState.REVOKING,
    (JoinState.SYNCING, "assign"): JoinState.ASSIGNING,
    (JoinState.REVOKING, "assign"): JoinState.ASSIGNING,
    (JoinState.ASSIGNING, "settled"): JoinState.STABLE,
    (JoinState.STABLE, "rejoin"): JoinState.PREPARING,
    (JoinState.LOSING, "rejoin"): JoinState.PREPARING,
    (JoinState.LOSING, "stalled"): JoinState.STALLED,
    (JoinState.STALLED, "polled"): JoinState.PREPARING,
    (JoinState.LEAVING, "left"): JoinState.OUTSIDE,
    **from_each(_ANY_MEMBER, "lost", JoinState.LOSING),
    **from_each((*_ANY_MEMBER, JoinState.LOSING), "fenced", JoinState.FENCED),
    **from_each((*_ANY_MEMBER, JoinState.LOSING, JoinState.STALLED, JoinState.FENCED), "leave", JoinState.LEAVING),
})
"""The only ways from one state to another."""


class ClassicGroup:
    """One member of one classic group: a `Membership`.

    Args:
        config: a consumer's configuration with a group id.
        subscription: the topics asked for.
        metadata: partitions of the topics.
        finder: where the coordinator is.
    """

    alone = idle = False  # others read what it decides

    def __init__(self, config: Config, subscription: Subscription, metadata: Metadata,
                 finder: CoordinatorFinder) -> None:
        self.member_id = ""
        self.generation = _NO_GENERATION
        self.instance_id: str | None = config["group.instance.id"] or None
        self.state = TRANSITIONS.first
        self.stalled = False
        self.resolves_patterns = True
        self.application_at = _NEVER
        self._group_id: str = config["group.id"]
        self._rack: str | None = config["client.rack"] or None
        self._strategies: tuple[str, ...] = config["partition.assignment.strategy"]
        self._without_internal: bool = config["exclude.internal.topics"]
        self.cooperative = all(ASSIGNORS[name].cooperative for name in self._strategies)
        self._session_timeout_s = config.seconds("session.timeout.ms")
        self._heartbeat_s = config.seconds("heartbeat.interval.ms")
        self._max_poll_s = config.seconds("max.poll.interval.ms")
        self._request_timeout_s = config.seconds("socket.timeout.ms")
        self._retries = finder.retries
        self._subscription = subscription
        self._metadata = metadata
        self._finder = finder
        self._owned: frozenset[Key] = frozenset()
        self._target: frozenset[Key] = frozenset()
        self._had: tuple[frozenset[Key], int] = (frozenset(), _NO_GENERATION)  # what the last plan gave, and which
        self._joined_topics: frozenset[str] = frozenset()
        self._planned_counts: dict[str, int] | None = None  # what the plan was made for; None when not the leader
        self._plan_to_send: list[wire.SyncGroupRequestAssignment] = []
        self._came_back_alone = False  # a static member without others: nobody plans what it could have by now
        self._round: object = None  # answers to an earlier round than this are ignored
        self._farewell = ""  # member id to take off the group's books although this member goes on
        self._protocol = ""
        self._rejoin_reason = ""
        self._asks_application = False
        self._lost = False
        self._flying = False
        self._id_due = _NEVER  # the end of a wait for an id that is to be given back
        self._heartbeat_of: tuple[int, str] | None = None
        self._next_heartbeat = 0.0
        self._answered_at = 0.0
        self._deadline: float | None = None
        self._not_before = 0.0
        self._attempts = 0
        self._seen: object = None
        self._reported_late_at = _NEVER  # `application_at` when the application was last reported as late
        self._events: list[Event] = []

    # What the client calls

    @property
    def answered_at(self) -> float | None:
        """When the coordinator last answered this member, in monotonic seconds; None before."""
        return self._answered_at or None

    @property
    def identity(self) -> ConsumerGroupMetadata:
        """This member's id and generation, the newest that it knows."""
        return ConsumerGroupMetadata(self._group_id, self.generation, self.member_id, self.instance_id)

    @property
    def is_outside(self) -> bool:
        """Whether it neither is a member nor becomes one."""
        return self.state is JoinState.OUTSIDE

    @property
    def owned(self) -> frozenset[Key]:
        """The partitions that this member holds."""
        return self._owned

    @property
    def planned_topics(self) -> frozenset[str]:
        """The topics that this member watches for all members, while it is the leader."""
        return frozenset(self._planned_counts or ()) if self._subscription.is_subscribed else frozenset()

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Become a member that reads these topics, or read these instead of those of before."""
        begins = not self._subscription.is_subscribed
        self._subscription.subscribe(topics)
        if begins:
            self.application_at = now
        elif self._subscription.patterns:  # another one may match topics that came since all were asked for
            self._metadata.refresh(now)

    def callback_done(self, now: float) -> None:
        """The application has dealt with the last `Rebalance`."""
        if not self._asks_application:
            return
        self._asks_application = False
        if self.state in (JoinState.PREPARING, JoinState.ASSIGNING):
            self._owned = self._target
        elif self.state is JoinState.REVOKING:
            self._owned &= self._target
        if self._lost:
            self._report_lost()
        elif self.state is JoinState.PREPARING:
            self._go("prepared")
        elif self.state is JoinState.REVOKING:
            self._rejoin_reason = self._rejoin_reason or "cooperative rebalance: revoked partitions are free"
            self._assign()
        elif self.state is JoinState.ASSIGNING:
            self._go("settled")
        elif self.state is JoinState.LOSING:
            self._go("stalled" if self.application_at + self._max_poll_s <= now else "rejoin")

    def enforce_rebalance(self, reason: str) -> None:
        """Join again and say why (KIP-568); nothing while the group rebalances anyway."""
        if self.state is JoinState.STABLE:
            self._rejoin_reason = self._rejoin_reason or reason

    def doubt(self, member: ConsumerGroupMetadata) -> None:
        """The next heartbeat is due, if this is still who it is."""
        if member == self.identity:
            self._next_heartbeat = 0.0

    def leave(self) -> None:
        """Leave the group; `Left` follows. What is owned must have been given up before."""
        self._owned = self._target = frozenset()
        self._had = frozenset(), _NO_GENERATION
        self._asks_application = self._lost = False
        if self.state in (JoinState.OUTSIDE, JoinState.LEAVING):
            self._events.append(Left())
        else:
            joins_first = self._flying and self.state is JoinState.JOINING and not self.member_id
            self._go("leave")
            if not joins_first or self.instance_id is not None:  # else the group would wait for the id's owner
                self._flying, self._id_due, self._round = False, _NEVER, object()

    # The machine

    def poll(self, now: float) -> Iterator[Send]:
        """The next request of the membership, and heartbeats."""
        if self._subscription.is_subscribed:
            self._watch_topics()
        if self._is_member:
            self._check_application(now)
        elif self.state is JoinState.STALLED and now - self.application_at < self._max_poll_s:
            self._go("polled")
        if self.state is JoinState.PREPARING and not self._asks_application:
            self._prepare()
        elif self.state is JoinState.STABLE:
            self._on_stable()
        yield from self._requests(now)
        self._deadline = self._next_deadline(now)

    def _requests(self, now: float) -> Iterator[Send]:
        coordinator = self._finder.node_id
        if self.state is JoinState.LEAVING and (not self._flying or now >= self._id_due):
            yield from self._leave(coordinator)
        if coordinator is None:
            return
        if self._farewell:
            yield self._leave_request(coordinator, self._farewell)
            self._farewell = ""
        if self.state is JoinState.JOINING and not self._flying and now >= self._not_before and self._topics_known():
            self._id_due = now + _NEW_ID_S
            yield self._join(coordinator)
        elif self.state is JoinState.SYNCING and not self._flying:
            yield self._sync(coordinator)
        elif self._beats and self._heartbeat_of != self._membership and now >= self._next_heartbeat:
            yield self._heartbeat(coordinator, now)

    def deadline(self) -> float | None:
        """The next heartbeat, retry, or the end of the application's time."""
        return self._deadline

    def _next_deadline(self, now: float) -> float | None:
        times = [self.application_at + self._max_poll_s] if self._is_member else []
        if self._beats:
            times += (self._next_heartbeat, self._answered_at + self._session_timeout_s)
        if self.state is JoinState.JOINING:
            times.append(self._not_before)
        elif self.state is JoinState.LEAVING:
            times.append(self._id_due)
        # A time that has passed is waiting for an input: a reply, the coordinator, the metadata.
        return min((time for time in times if now < time != _NEVER), default=None)

    def events(self) -> list[Event]:
        """What the client must do or learn."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """Take the next step of the round, or of the membership."""
        if isinstance(reply, wire.HeartbeatResponse):
            self._heartbeat_ended(send)
            self._on_heartbeat(reply.error_code, send, now)
        elif isinstance(reply, wire.LeaveGroupResponse):
            self._on_left()
        elif send.context is not self._round:  # the answer to a round that was given up
            if (isinstance(send.request, wire.JoinGroupRequest) and isinstance(reply, wire.JoinGroupResponse)
                    and not send.request.member_id and self.instance_id is None):
                self._farewell = reply.member_id  # a new id, or "": the group would wait for its owner
        elif isinstance(reply, wire.JoinGroupResponse):
            self._flying = False
            if self.state is JoinState.LEAVING:
                self.member_id = reply.member_id
            else:
                self._on_join(reply, now)
        elif isinstance(reply, wire.SyncGroupResponse):
            self._flying = False
            self._on_sync(reply, now)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """The coordinator did not answer: look for it again and go on from the present state."""
        self._finder.invalidate(now)
        if isinstance(send.request, wire.HeartbeatRequest):
            self._heartbeat_ended(send)
            self._next_heartbeat = now + self._retries.first_s
        elif isinstance(send.request, wire.LeaveGroupRequest):
            self._on_left()
        elif send.context is self._round:
            self._flying = False
            if self.state in (JoinState.JOINING, JoinState.SYNCING):
                self._retry(now, error if error.code() == KafkaError._UNSUPPORTED_FEATURE else None)

    def _go(self, trigger: str) -> None:
        self.state = TRANSITIONS.go(self.state, trigger)
        self.stalled = self.state is JoinState.STALLED

    @property
    def _is_member(self) -> bool:
        return self.state in _ANY_MEMBER

    @property
    def _membership(self) -> tuple[int, str]:
        """What heartbeats are for. A static member that comes back has another id in the same generation."""
        return self.generation, self.member_id

    @property
    def _beats(self) -> bool:
        return self.generation >= 0 and self.state in (
            JoinState.PREPARING, JoinState.REVOKING, JoinState.ASSIGNING, JoinState.STABLE)

    # Why to rebalance

    def _watch_topics(self) -> None:
        """Join when there is something to read, and again when the topics or their partitions change."""
        if self.state is JoinState.OUTSIDE:
            self._go("subscribe")
            self._want()
        seen = (self._metadata.updates, self._subscription.names, self._subscription.patterns)
        if self.state is not JoinState.STABLE or self._rejoin_reason or seen == self._seen:
            return
        self._seen = seen
        if self._topics() != self._joined_topics:
            self._want()
            self._rejoin_reason = "the subscription changed"
        elif self._planned_counts is not None and self._counts(self._planned_counts) != self._planned_counts:
            self._rejoin_reason = "the partitions of a topic changed"

    def _want(self) -> None:
        self._metadata.want_all(bool(self._subscription.patterns))
        self._metadata.want_topics(sorted(self._subscription.names))

    def _topics(self) -> frozenset[str]:
        topics = self._metadata.cluster.topics
        return self._subscription.matching(
            name for name, info in topics.items() if not (self._without_internal and info.is_internal))

    def _topics_known(self) -> bool:
        """Whether the metadata has been asked for everything subscribed, so that the first plan is a full one."""
        known = self._metadata.cluster.topics
        if self._subscription.patterns:
            return self._metadata.updates > 0
        return all(name in known for name in self._subscription.names)

    def _counts(self, topics: Iterable[str]) -> dict[str, int]:
        known = self._metadata.cluster.topics
        return {topic: len(known[topic].partitions) if topic in known else 0 for topic in topics}

    def _check_application(self, now: float) -> None:
        if now - self.application_at >= self._max_poll_s:
            if self._reported_late_at == self.application_at:
                return  # it has not come back since
            self._reported_late_at = self.application_at
            text = (f"The application did not poll for {self._max_poll_s:g} s (max.poll.interval.ms): left group "
                    f"{self._group_id!r}; poll more often, or raise the limit")
            self._events.append(GroupFailed(KafkaError(KafkaError._MAX_POLL_EXCEEDED, text)))
            self._farewell = "" if self.instance_id else self.member_id
            self._lose()
        elif self._beats and now - self._answered_at >= self._session_timeout_s:
            self._lose()

    def _on_stable(self) -> None:
        if self._lost:
            self._lose()
        elif self._rejoin_reason:
            self._go("rejoin")
            self._prepare()

    def _lose(self) -> None:
        """This member was dropped: its partitions may belong to others already."""
        self._forget_member()
        if self._asks_application:
            self._lost = True  # reported when the application is back from its callback
        else:
            self._report_lost()

    def _report_lost(self) -> None:
        self._lost = self._flying = False
        self._go("lost")
        self._ask_to_drop()

    def _ask_to_drop(self) -> None:
        lost, self._owned, self._target = self._owned, frozenset(), frozenset()
        self._ask(Change.LOSE, lost)

    def _forget_member(self) -> None:
        self.generation = _NO_GENERATION
        self.member_id = ""
        self._round = object()

    # What the application has to do

    def _ask(self, change: Change, keys: Iterable[Key]) -> None:
        partitions = [TopicPartition(topic, partition) for topic, partition in sorted(keys)]
        self._asks_application = True
        self._events.append(Rebalance(change, partitions, self.cooperative, self.generation, self.member_id))

    def _prepare(self) -> None:
        """Give up before joining: everything in an eager group, what is not subscribed any more in a cooperative."""
        if self.cooperative:
            topics = self._topics()
            self._target = frozenset(key for key in self._owned if key[0] in topics)
        else:
            self._target = frozenset()
        gone = self._owned - self._target
        if gone:
            self._ask(Change.REVOKE, gone)
        else:
            self._go("prepared")

    def _assign(self) -> None:
        self._go("assign")
        self._ask(Change.ASSIGN, self._target - self._owned)

    # Joining

    def _join(self, coordinator: int) -> Send:
        self._flying = True
        self._round = object()
        self._joined_topics = self._topics()
        request = wire.JoinGroupRequest(
            group_id=self._group_id, session_timeout_ms=int(self._session_timeout_s * 1000),
            rebalance_timeout_ms=int(self._max_poll_s * 1000), member_id=self.member_id,
            group_instance_id=self.instance_id, protocol_type="consumer",
            reason=self._rejoin_reason or None, protocols=[
                wire.JoinGroupRequestProtocol(name=name, metadata=self._offer(name)) for name in self._strategies],
        )
        return Send(coordinator, request, self._max_poll_s + _JOIN_SLACK_S, context=self._round)

    def _offer(self, name: str) -> bytes:
        """What this member says of itself to a leader that plans with an assignor."""
        assignor, user_data = ASSIGNORS[name], None
        if assignor.remembers:
            user_data = sticky_user_data(*self._had)
        elif assignor.cooperative:
            user_data = cooperative_user_data(self.generation)
        return write_subscription(self._joined_topics, self._owned, self.generation, self._rack, user_data)

    def _on_join(self, reply: wire.JoinGroupResponse, now: float) -> None:
        code = reply.error_code
        if code == KafkaError.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
        elif code:
            self._on_round_error(code, now)
        else:
            self._attempts = 0
            self._rejoin_reason = ""
            self.member_id, self.generation = reply.member_id, reply.generation_id
            self._protocol = reply.protocol_name or ""
            self._answered_at = now
            self._came_back_alone = reply.skip_assignment and len(reply.members) == 1
            self._go("joined")
            try:
                if self._protocol not in self._strategies:
                    raise ProtocolError(f"the coordinator of group {self._group_id!r} chose {self._protocol!r}, which "
                                        "this member did not offer")
                plan = self._plan(reply) if reply.leader == reply.member_id else None
            except ProtocolError as error:
                self._go("retry")
                self._retry(now, error.error)
                return
            if plan is None:
                self._planned_counts = None
            self._plan_to_send = plan or []

    def _plan(self, reply: wire.JoinGroupResponse) -> list[wire.SyncGroupRequestAssignment]:
        """The leader's part: the assignment of each member."""
        assignor = ASSIGNORS[self._protocol]
        members = [read_member(m.member_id, m.group_instance_id, m.metadata, remembers=assignor.remembers)
                   for m in reply.members]
        topics = frozenset[str]().union(*(member.topics for member in members))
        self._metadata.want_topics(sorted(topics))
        self._planned_counts = self._counts(topics)
        if reply.skip_assignment:
            return []
        plan = assignor.plan(members, self._planned_counts, racks_of(self._metadata.cluster, members, topics))
        return [wire.SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(keys))
                for member_id, keys in plan.items()]

    def _sync(self, coordinator: int) -> Send:
        self._flying = True
        request = wire.SyncGroupRequest(
            group_id=self._group_id, generation_id=self.generation, member_id=self.member_id,
            group_instance_id=self.instance_id, protocol_type="consumer", protocol_name=self._protocol,
            assignments=self._plan_to_send)
        return Send(coordinator, request, self._max_poll_s + _JOIN_SLACK_S, context=self._round)

    def _on_sync(self, reply: wire.SyncGroupResponse, now: float) -> None:
        if reply.error_code:
            self._on_round_error(reply.error_code, now)
            return
        try:
            given = frozenset(read_assignment(reply.assignment))
        except ProtocolError as error:
            self._retry(now, error.error)
            return
        target = frozenset(key for key in given if key[0] in self._joined_topics)
        if target != given or (self._came_back_alone and len(target) < sum(self._counts(self._joined_topics).values())):
            self._rejoin_reason = "the static member had something else than it asks for"
        self._attempts = 0
        self._answered_at = now
        self._next_heartbeat = now + self._heartbeat_s
        self._target = target
        self._had = target, self.generation
        if self.cooperative and self._owned:  # until the application meets what follows, it holds what it held
            self._events.append(EpochMoved(self.generation, self.member_id))
        gone = self._owned - target
        if gone:
            self._go("revoke")
            self._ask(Change.REVOKE, gone)
        else:
            self._assign()

    def _on_round_error(self, code: int, now: float) -> None:
        """JoinGroup or SyncGroup was refused."""
        action = group_error_action(code)
        if action is GroupErrorAction.DROPPED and self._owned:
            self._lose()
        elif action is GroupErrorAction.DROPPED:
            self._forget_member()
            self._retry(now, None, at_once=self._attempts == 0)
        elif action is GroupErrorAction.FENCED:
            self._fence()
        elif action is GroupErrorAction.MOVED:
            self._finder.invalidate(now)
            self._retry(now, None)
        elif action is not GroupErrorAction.REFUSED:
            self._retry(now, None, at_once=action is GroupErrorAction.REBALANCE)
        else:
            text = f"Group {self._group_id!r} refused this member: {KafkaError(code).str()}"
            self._retry(now, KafkaError(code, text))

    def _retry(self, now: float, report: KafkaError | None, at_once: bool = False) -> None:
        self._go("retry")
        self._flying = False
        self._attempts += 1
        pause = self._retries.wait_s(self._attempts)
        if report is not None:
            pause = _REPORT_BACKOFF_S
            self._events.append(GroupFailed(report))
        self._not_before = now if at_once else now + pause

    def _fence(self) -> None:
        text = (f"Another consumer joined group {self._group_id!r} with group.instance.id {self.instance_id!r}: each "
                "needs its own; close this one")
        self._forget_member()
        self._go("fenced")
        self._events.append(GroupFailed(KafkaError(KafkaError.FENCED_INSTANCE_ID, text, fatal=True)))
        self._lost = False  # it is reported now, behind the callback that may be running
        self._ask_to_drop()

    # Staying and leaving

    def _heartbeat(self, coordinator: int, now: float) -> Send:
        self._heartbeat_of = self._membership
        self._next_heartbeat = now + self._heartbeat_s
        request = wire.HeartbeatRequest(
            group_id=self._group_id, generation_id=self.generation, member_id=self.member_id,
            group_instance_id=self.instance_id)
        return Send(coordinator, request, min(_HEARTBEAT_SHARE * self._session_timeout_s, self._request_timeout_s),
                    context=self._heartbeat_of)

    def _heartbeat_ended(self, send: Send) -> None:
        if send.context == self._heartbeat_of:
            self._heartbeat_of = None

    def _on_heartbeat(self, code: int, send: Send, now: float) -> None:
        if send.context != self._membership or not self._is_member:
            return
        if self.state is JoinState.JOINING:
            return  # perhaps JoinGroup, which has a connection of its own, came first: its answer is what counts
        action = group_error_action(code) if code else None
        if action in (None, GroupErrorAction.REBALANCE):
            self._answered_at = now
            if action and self.state in (JoinState.STABLE, JoinState.ASSIGNING, JoinState.REVOKING):
                self._rejoin_reason = self._rejoin_reason or "the group rebalances"
        elif action is GroupErrorAction.MOVED:
            self._finder.invalidate(now)
            self._next_heartbeat = now
        elif action is GroupErrorAction.DROPPED:
            self._lose()
        elif action is GroupErrorAction.FENCED:
            self._fence()
        elif action is GroupErrorAction.REFUSED:
            self._events.append(GroupFailed(KafkaError(code)))

    def _leave(self, coordinator: int | None) -> Iterator[Send]:
        """A static member stays on the books until its session ends, so that a restart finds its place."""
        if not self.member_id or self.instance_id is not None or coordinator is None:
            self._on_left()
        else:
            self._flying, self._id_due = True, _NEVER
            yield self._leave_request(coordinator, self.member_id)

    def _leave_request(self, coordinator: int, member_id: str) -> Send:
        member = wire.MemberIdentity(member_id=member_id, reason="the consumer is done")

        def for_version(request: Request, version: int) -> Request:
            several = version >= _MEMBERS_FROM
            return request if several else wire.LeaveGroupRequest(group_id=self._group_id, member_id=member_id)

        return Send(coordinator, wire.LeaveGroupRequest(group_id=self._group_id, members=[member]),
                    self._request_timeout_s, for_version=for_version)

    def _on_left(self) -> None:
        if self.state is not JoinState.LEAVING:
            return
        self._forget_member()
        self._flying, self._id_due, self._round = False, _NEVER, object()
        self._go("left")
        self._events.append(Left())

