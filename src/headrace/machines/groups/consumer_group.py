"""Membership in a group in which the coordinator plans (KIP-848): one kind of request joins, stays, and leaves.

It is what `machines.groups.membership` asks of every kind of group. Each heartbeat carries the member's epoch and what
has changed since the last one; the reply may carry an assignment. What it takes away is given up first, and only when
the coordinator has learned of that are the partitions another member's. So there is no plan to make here, and no round
to wait for. This module must not know what the application's callbacks do.

Source: KIP-848, KIP-1082, Java's `ConsumerMembershipManager` and `ConsumerHeartbeatRequestManager`.
Read next: `machines.groups.consumer_group_error_actions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Final
from uuid import UUID

from headrace.config import Config
from headrace.errors import KafkaError
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Key, Subscription
from headrace.machines.groups.consumer_group_error_actions import MemberErrorAction, member_error_action
from headrace.machines.groups.membership import (
    Change,
    EpochMoved,
    GroupFailed,
    Left,
    Rebalance,
    heartbeat_timeout_s,
)
from headrace.machines.machine import ANY_NODE, Event, Send
from headrace.states import Transitions, from_each
from headrace.types.records import ConsumerGroupMetadata, TopicPartition
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from headrace.wire.messages.groups.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OwnedTopicPartitions,
)
from headrace.wire.schema import Request, Struct

__all__ = ["TRANSITIONS", "ConsumerGroup", "MemberState"]

_NO_GENERATION: Final = -1
_JOINS, _LEAVES, _LEAVES_FOR_A_WHILE = 0, -1, -2
"""Member epochs that stand for something else."""
_PATTERNS_FROM: Final = 1
"""Version of ConsumerGroupHeartbeat from which on the coordinator matches patterns."""
_NEVER: Final = float("inf")
_FIRST_INTERVAL_S: Final = 5.0
_REPORT_BACKOFF_S: Final = 5.0
"""Pause after an error that only time, the user or an administrator can mend."""

TopicKey = tuple[UUID, int]
"""A partition as the coordinator names it: the id of its topic, and its number."""

_NOTHING: Final[tuple[int, frozenset[TopicKey]]] = (0, frozenset())


class MemberState(Enum):
    """Where this member stands."""

    OUTSIDE = "not in the group"
    JOINING = "a heartbeat that joins is to be sent, or sent"
    STABLE = "a member, with what it was given as far as that is known"
    REVOKING = "the application gives up what was taken away"
    ASSIGNING = "the application takes up what was given"
    LOSING = "the application learns that its partitions are lost"
    STALLED = "left because the application did not poll"
    LEAVING = "the last heartbeat is to be sent, or sent"
    ENDED = "the group refuses this member for good: nothing can be done"


_S = MemberState
_ANY_MEMBER = (_S.JOINING, _S.STABLE, _S.REVOKING, _S.ASSIGNING)

TRANSITIONS: Final = Transitions("A member of a group that the coordinator plans for", _S.OUTSIDE, {
    (_S.OUTSIDE, "subscribe"): _S.JOINING,
    (_S.JOINING, "joined"): _S.STABLE,
    (_S.STABLE, "revoke"): _S.REVOKING,
    (_S.STABLE, "assign"): _S.ASSIGNING,
    (_S.REVOKING, "done"): _S.STABLE,
    (_S.ASSIGNING, "done"): _S.STABLE,
    (_S.LOSING, "rejoin"): _S.JOINING,
    (_S.LOSING, "stalled"): _S.STALLED,
    (_S.STALLED, "polled"): _S.JOINING,
    (_S.LEAVING, "left"): _S.OUTSIDE,
    **from_each(_ANY_MEMBER, "lost", _S.LOSING),
    **from_each(_ANY_MEMBER, "refused", _S.ENDED),
    **from_each((*_ANY_MEMBER, _S.LOSING, _S.STALLED, _S.ENDED), "leave", _S.LEAVING),
})
"""The only ways from one state to another."""


class ConsumerGroup:
    """One member of one group that the coordinator plans for: a `Membership`.

    Args:
        config: a consumer's configuration with a group id.
        subscription: the topics asked for.
        metadata: names and partitions of the topics.
        finder: where the coordinator is.
        new_uuid: makes the member's id, which it keeps as long as it lives.
    """

    alone = idle = False  # others read what it decides

    def __init__(self, config: Config, subscription: Subscription, metadata: Metadata, finder: CoordinatorFinder,
                 new_uuid: Callable[[], UUID]) -> None:
        self.member_id = str(new_uuid())
        self.epoch = _JOINS
        self.instance_id: str | None = config["group.instance.id"] or None
        self.state = TRANSITIONS.first
        self.stalled = False
        self.resolves_patterns = False
        self.application_at = _NEVER
        self._group_id: str = config["group.id"]
        self._rack: str | None = config["client.rack"] or None
        self._assignor: str | None = config["group.remote.assignor"] or None
        self._max_poll_s = config.seconds("max.poll.interval.ms")
        self._request_timeout_s = config.seconds("socket.timeout.ms")
        self._retries = finder.retries
        self._subscription = subscription
        self._metadata = metadata
        self._finder = finder
        self._names: dict[UUID, str] = {}  # of what is owned, or to be owned
        self._unnamed: set[UUID] = set()  # topics that were assigned, and whose names are not known
        self._wanted: object = None  # what was asked of the metadata for
        self._owned: frozenset[TopicKey] = frozenset()
        self._target: frozenset[TopicKey] | None = None  # None before the first assignment of a membership
        self._has_revoked = False  # the application expects to hear how its rebalance ends
        self._is_settled = True  # there is nothing to give up or to take up
        self._changing: frozenset[TopicKey] = frozenset()  # what the callback that is running is about
        self._assignments = 0  # received in this membership
        self._held: tuple[int, frozenset[TopicKey]] = _NOTHING  # after how many of them it holds what
        self._said: dict[str, Any] | None = None  # what the coordinator knows of this member; None: nothing for sure
        self._to_say: tuple[object, dict[str, Any]] = (None, {})  # what it should know, and what that was made from
        self._round = object()  # answers to an earlier membership than this are ignored
        self._reports = False  # a heartbeat that says what it holds waits for its answer
        self._is_known = False  # the coordinator may have this member on its books
        self._farewell = False  # it is to be taken off them although this member goes on
        self._asks_application = False
        self._lost = False
        self.answered_at: float | None = None
        self._flying = False
        self._interval_s = _FIRST_INTERVAL_S
        self._next_heartbeat = 0.0
        self._not_before = 0.0
        self._attempts = 0
        self._seeking_names = False
        self._names_not_before = 0.0
        self._name_attempts = 0
        self._deadline: float | None = None
        self._reported_late_at = _NEVER  # `application_at` when the application was last reported as late
        self._events: list[Event] = []

    # What the client calls

    @property
    def identity(self) -> ConsumerGroupMetadata:
        """This member's id and epoch, the newest that it knows."""
        if self.epoch <= _JOINS:
            return ConsumerGroupMetadata(self._group_id, instance_id=self.instance_id)
        return ConsumerGroupMetadata(self._group_id, self.epoch, self.member_id, self.instance_id)

    @property
    def is_outside(self) -> bool:
        """Whether it neither is a member nor becomes one."""
        return self.state is _S.OUTSIDE

    @property
    def owned(self) -> frozenset[Key]:
        """The partitions that this member holds."""
        return self._keys(self._owned)

    @property
    def planned_topics(self) -> frozenset[str]:
        """The topics that this member holds partitions of, or will."""
        return frozenset(self._names.values()) if self._subscription.is_subscribed else frozenset()

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Become a member that reads these topics, or read these instead of those of before."""
        begins = not self._subscription.is_subscribed
        self._subscription.subscribe(topics)
        if begins:
            self.application_at = now

    def callback_done(self, now: float) -> None:
        """The application has dealt with the last `Rebalance`."""
        if not self._asks_application:
            return
        self._asks_application = False
        if self.state is _S.REVOKING:
            self._owned -= self._changing
        elif self.state is _S.ASSIGNING:
            self._owned |= self._changing
        if self._lost:
            self._report_lost(now)
        elif self.state in (_S.REVOKING, _S.ASSIGNING):
            self._held = (self._assignments, self._owned)
            self._go("done")
        elif self.state is _S.LOSING:
            self._begin_again(now)

    def enforce_rebalance(self, reason: str) -> None:
        """Nothing: the coordinator decides when to rebalance."""

    def doubt(self, member: ConsumerGroupMetadata) -> None:
        """The next heartbeat is due, if this is still who it is."""
        if member == self.identity:
            self._next_heartbeat = 0.0

    def leave(self) -> None:
        """Leave the group; `Left` follows. What is owned must have been given up before."""
        self._owned = frozenset()
        self._asks_application = self._lost = False
        if self.state in (_S.OUTSIDE, _S.LEAVING):
            self._events.append(Left())
        else:
            self._go("leave")
            self._forget_member()

    # The machine

    def poll(self, now: float) -> Iterator[Send]:
        """The next heartbeat of the membership, and the question for names of topics."""
        if self._subscription.is_subscribed and self.state is _S.OUTSIDE:
            self._go("subscribe")
        if self.state in _ANY_MEMBER:
            self._want()
            self._check_application(now)
        elif self.state is _S.STALLED and now - self.application_at < self._max_poll_s:
            self._go("polled")
        if self.state is _S.STABLE and self._target is not None and not self._is_settled:
            self._reconcile(self._target)
        yield from self._requests(now)
        self._deadline = self._next_deadline(now)

    def _requests(self, now: float) -> Iterator[Send]:
        coordinator = self._finder.node_id
        if self.state is _S.LEAVING and not self._flying:
            yield from self._leave(coordinator)
        if self._unnamed and not self._seeking_names and now >= self._names_not_before:
            yield self._ask_names()
        if coordinator is None:
            return
        if self._farewell:
            yield self._leave_request(coordinator)
        if self._beats and not self._flying and now >= self._due_at:
            yield self._heartbeat(coordinator)

    def deadline(self) -> float | None:
        """The next heartbeat, retry, or the end of the application's time."""
        return self._deadline

    @property
    def _beats(self) -> bool:
        return self.state in _ANY_MEMBER and not self._lost and not self._matches_nothing

    @property
    def _matches_nothing(self) -> bool:
        """A coordinator that matches no patterns (Kafka 3.9) lets nobody join who names no topic."""
        return self.resolves_patterns and self.epoch == _JOINS and not self._news()["subscribed_topic_names"]

    @property
    def _due_at(self) -> float:
        """When the next heartbeat is to be sent: at once where there is news, unless the last one was refused."""
        has_news = self._said is None or self._said != self._news()
        return self._not_before if has_news else max(self._not_before, self._next_heartbeat)

    def _next_deadline(self, now: float) -> float | None:
        times = []
        if self.state in _ANY_MEMBER:
            times = [self.application_at + self._max_poll_s]
            if self._beats and not self._flying:
                times.append(self._due_at)
        if self._unnamed and not self._seeking_names:
            times.append(self._names_not_before)
        # A time that has passed is waiting for an input: a reply, the coordinator, the application.
        return min((time for time in times if now < time != _NEVER), default=None)

    def events(self) -> list[Event]:
        """What the client must do or learn."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """Take what the coordinator says of this member, or a topic's name."""
        if isinstance(reply, MetadataResponse):
            self._on_names(reply, now)
        elif send.context is not self._round:
            return  # the answer to a membership that was given up
        elif self.state is _S.LEAVING:
            self._on_left()
        else:
            assert isinstance(reply, ConsumerGroupHeartbeatResponse)
            assert isinstance(send.request, ConsumerGroupHeartbeatRequest)
            self._flying = False
            if reply.error_code == KafkaError.INVALID_REQUEST and self.resolves_patterns and not (
                    send.request.member_epoch or send.request.subscribed_topic_names):
                self._said = None  # it waits for a topic that matches
                self._retry(now)
            elif reply.error_code:
                self._on_refusal(KafkaError(reply.error_code, reply.error_message or None), now)
            else:
                self.answered_at = now
                self._on_heartbeat(reply, now)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """The coordinator did not answer: look for it again, and say everything once more."""
        if isinstance(send.request, MetadataRequest):
            self._ask_names_again(now)
            return
        self._finder.invalidate(now)
        if send.context is not self._round:
            return
        if self.state is _S.LEAVING:
            self._on_left()
            return
        self._flying, self._said = False, None
        self._make_way()
        if member_error_action(error.code()) is MemberErrorAction.FATAL:
            self._end(error)
        else:
            self._retry(now)

    def _go(self, trigger: str) -> None:
        self.state = TRANSITIONS.go(self.state, trigger)
        self.stalled = self.state is _S.STALLED

    # Heartbeats

    def _news(self) -> dict[str, Any]:
        """What the coordinator has to know of this member, by the request's fields."""
        joins = self.epoch == _JOINS
        updates = self._metadata.updates if self.resolves_patterns else 0
        source = (self._subscription.names, self._subscription.patterns, self.resolves_patterns, updates, joins,
                  self._held)
        if self._to_say[0] != source:
            names, pattern = self._topics()
            self._to_say = (source, {
                "rack_id": self._rack, "rebalance_timeout_ms": int(self._max_poll_s * 1000),
                "subscribed_topic_names": sorted(names), "subscribed_topic_regex": pattern,
                "server_assignor": self._assignor, "topic_partitions": _NOTHING if joins else self._held,
            })
        return self._to_say[1]

    def _topics(self) -> tuple[frozenset[str], str]:
        """The names and the one pattern to ask for."""
        patterns = self._subscription.patterns
        if self.resolves_patterns or not patterns:
            return self._matching(), ""
        return self._subscription.names, "|".join(each.pattern for each in patterns)

    def _heartbeat(self, coordinator: int) -> Send:
        """All that has changed since the coordinator took a heartbeat last; all there is when that is not sure."""
        self._flying = self._is_known = True
        say, said = self._news(), self._said or {}
        changed = {name: value for name, value in say.items() if name not in said or said[name] != value}
        self._reports = "topic_partitions" in changed
        if self._reports:
            changed["topic_partitions"] = _by_topic(self._in_use if self.epoch != _JOINS else ())
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance_id,
            **changed)
        self._said = say  # until an error: then nothing is sure
        return Send(coordinator, request, heartbeat_timeout_s(self._interval_s, self._request_timeout_s),
                    context=self._round, for_version=self._for_version)

    @property
    def _is_understood(self) -> bool:
        """Whether the coordinator has answered what this member said last of what it holds."""
        return self._said is not None and not self._reports and self._said["topic_partitions"] == self._held

    @property
    def _in_use(self) -> frozenset[TopicKey]:
        """What the application has, or is being given: nobody else may have it."""
        return self._owned | self._changing if self.state is _S.ASSIGNING else self._owned

    def _for_version(self, request: Request, version: int) -> Request:
        """A coordinator that does not match patterns is told the names that match."""
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        if version >= _PATTERNS_FROM or request.subscribed_topic_regex is None:
            return request
        if request.subscribed_topic_regex:
            self.resolves_patterns = True
            request.subscribed_topic_names = sorted(self._matching())
            self._said = None
        request.subscribed_topic_regex = None
        return request

    def _matching(self) -> frozenset[str]:
        return self._subscription.matching(self._metadata.cluster.topics)

    def _on_heartbeat(self, reply: ConsumerGroupHeartbeatResponse, now: float) -> None:
        self._attempts, self._not_before, self._reports = 0, 0.0, False
        self._interval_s = reply.heartbeat_interval_ms / 1000
        self._next_heartbeat = now + self._interval_s
        if reply.member_epoch != self.epoch:
            self.epoch = reply.member_epoch
            self._events.append(EpochMoved(self.epoch, self.member_id))
        if reply.assignment is not None:
            self._target = frozenset(
                (topic.topic_id, index) for topic in reply.assignment.topic_partitions for index in topic.partitions)
            self._assignments += 1
            self._is_settled = False
        if self.state is _S.JOINING:
            self._go("joined")

    def _on_refusal(self, error: KafkaError, now: float) -> None:
        self._said = None
        action = member_error_action(error.code(), joins=self.epoch == _JOINS)
        if action is MemberErrorAction.LOST:
            self._lose(now)
        elif action is MemberErrorAction.FATAL:
            self._end(error)
        elif action is MemberErrorAction.REFUSED:
            text = f"Group {self._group_id!r} refused this member: {error.str()}"
            self._events.append(GroupFailed(KafkaError(error.code(), text)))
            self._not_before = now + _REPORT_BACKOFF_S
        else:
            if action is MemberErrorAction.MOVED:
                self._finder.invalidate(now)
            self._retry(now)

    def _retry(self, now: float) -> None:
        self._attempts += 1
        self._not_before = now + self._retries.wait_s(self._attempts)

    def _check_application(self, now: float) -> None:
        if now - self.application_at < self._max_poll_s or self._reported_late_at == self.application_at:
            return  # in time, or it has not come back since
        self._reported_late_at = self.application_at
        text = (f"The application did not poll for {self._max_poll_s:g} s (max.poll.interval.ms): left group "
                f"{self._group_id!r}; poll more often, or raise the limit")
        self._events.append(GroupFailed(KafkaError(KafkaError._MAX_POLL_EXCEEDED, text)))
        self._farewell = self._is_known
        self._lose(now)

    # What is owned

    def _want(self) -> None:
        """Keep the topics in the picture that are asked for by name, and all where patterns are matched here."""
        wanted = (self._subscription.names, self._subscription.patterns, self.resolves_patterns)
        if wanted != self._wanted:
            self._wanted = wanted
            if self.resolves_patterns:
                self._metadata.want_all(bool(self._subscription.patterns))
            self._metadata.want_topics(sorted(self._subscription.names))

    def _reconcile(self, target: frozenset[TopicKey]) -> None:
        """Give up what was taken away; then take up what was given, as far as its topics' names are known.

        The coordinator may give to another what this member says that it does not hold. So nothing is taken up while a
        heartbeat that says so is to be sent, waits for its answer, or had none: that has the newest assignment.
        """
        self._name_topics()
        gone = self._owned - target
        new = frozenset(key for key in target - self._owned if key[0] in self._names)
        if new and not gone and not self._is_understood:
            return
        if gone:
            self._has_revoked = True
            self._go("revoke")
            self._ask(Change.REVOKE, gone)
        elif new or self._has_revoked:
            self._has_revoked = False
            self._go("assign")
            self._ask(Change.ASSIGN, new)
        else:
            self._held = (self._assignments, self._owned)
            self._is_settled = not self._unnamed

    def _name_topics(self) -> None:
        wanted = {topic_id for topic_id, _ in self._owned.union(self._target or ())}
        known = {**self._metadata.cluster.names, **self._names}
        self._names = {topic_id: known[topic_id] for topic_id in wanted if topic_id in known}
        self._unnamed = wanted - self._names.keys()

    def _ask_names(self) -> Send:
        self._seeking_names = True
        topics = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in sorted(self._unnamed)]
        return Send(ANY_NODE, MetadataRequest(topics=topics, allow_auto_topic_creation=False),
                    self._request_timeout_s)

    def _on_names(self, reply: MetadataResponse, now: float) -> None:
        found = {topic.topic_id: topic.name for topic in reply.topics if not topic.error_code and topic.name}
        self._names |= {topic_id: found[topic_id] for topic_id in self._unnamed if topic_id in found}
        self._unnamed -= self._names.keys()
        self._metadata.want_topics(sorted(self._names.values()))
        self._seeking_names = False
        if self._unnamed:
            self._ask_names_again(now)
        else:
            self._name_attempts = 0

    def _ask_names_again(self, now: float) -> None:
        self._seeking_names = False
        self._name_attempts += 1
        self._names_not_before = now + self._retries.wait_s(self._name_attempts)

    def _keys(self, partitions: Iterable[TopicKey]) -> frozenset[Key]:
        return frozenset((self._names[topic_id], index) for topic_id, index in partitions)

    def _ask(self, change: Change, partitions: frozenset[TopicKey]) -> None:
        self._changing = partitions
        self._asks_application = True
        named = [TopicPartition(topic, index) for topic, index in sorted(self._keys(partitions))]
        identity = self.identity
        self._events.append(Rebalance(change, named, True, identity.generation, identity.member_id))

    # Being dropped, and leaving

    def _lose(self, now: float) -> None:
        """This member was dropped: its partitions may belong to others already."""
        if self.state is _S.JOINING:
            self._retry(now)
        self._forget_member()
        self._make_way()
        if self._asks_application:
            self._lost = True  # reported when the application is back from its callback
        else:
            self._report_lost(now)

    def _make_way(self) -> None:
        """The coordinator may have a static member on its books, and lets nobody join under its name before it is away.

        That goes for the member itself, if its joining was not answered or its epoch was fenced.
        """
        if self.instance_id is not None and self.epoch == _JOINS:
            self._farewell = self._is_known

    def _report_lost(self, now: float) -> None:
        self._lost = False
        self._go("lost")
        if self._owned:
            self._ask_to_drop()
        else:
            self._begin_again(now)

    def _begin_again(self, now: float) -> None:
        self._go("stalled" if self.application_at + self._max_poll_s <= now else "rejoin")

    def _ask_to_drop(self) -> None:
        self._ask(Change.LOSE, self._owned)
        self._owned = frozenset()

    def _forget_member(self) -> None:
        self.epoch = _JOINS
        self._round = object()
        self._flying = self._has_revoked = False
        self._target, self._is_settled = None, True
        self._unnamed.clear()
        self._said, self._assignments, self._held = None, 0, _NOTHING

    def _end(self, error: KafkaError) -> None:
        """Nothing that this member does can help: it gives up what it has, and asks no more."""
        if self._asks_application and self.state is _S.ASSIGNING:
            self._owned |= self._changing
        elif self._asks_application and self.state is _S.REVOKING:
            self._owned -= self._changing
        self._forget_member()
        self._go("refused")
        self._is_known = False
        self._events.append(GroupFailed(KafkaError(error.code(), self._why_ended(error), fatal=True)))
        if self._owned:  # it is reported now, behind the callback that may be running
            self._ask_to_drop()

    def _why_ended(self, error: KafkaError) -> str:
        if error.code() == KafkaError.FENCED_INSTANCE_ID:
            return (f"Another consumer joined group {self._group_id!r} with group.instance.id {self.instance_id!r}: "
                    "each needs its own; close this one")
        if error.code() in (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION):
            return (f"Group {self._group_id!r}: the brokers do not offer the protocol of KIP-848 "
                    f"({error.str()}). \"group.protocol\": \"consumer\" needs Apache Kafka 4.0 or later with the "
                    'feature group.version 1: set "group.protocol" to "classic", or upgrade the brokers')
        return f"Group {self._group_id!r} refused this member for good: {error.str()}"

    def _leave(self, coordinator: int | None) -> Iterator[Send]:
        """A static member leaves for a while: a restart before its session ends finds its place."""
        if coordinator is None or not self._is_known:
            self._on_left()
        else:
            self._flying = True
            yield self._leave_request(coordinator)

    def _leave_request(self, coordinator: int) -> Send:
        self._is_known = self._farewell = False
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, instance_id=self.instance_id,
            member_epoch=_LEAVES if self.instance_id is None else _LEAVES_FOR_A_WHILE)
        context = self._round if self.state is _S.LEAVING else None
        return Send(coordinator, request, self._request_timeout_s, context=context)

    def _on_left(self) -> None:
        self._flying = False
        self._forget_member()
        self._names.clear()
        self._go("left")
        self._events.append(Left())


def _by_topic(partitions: Iterable[TopicKey]) -> list[OwnedTopicPartitions]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return [OwnedTopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in topics.items()]
