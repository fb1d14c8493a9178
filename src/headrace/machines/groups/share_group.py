"""Membership in a share group: one kind of request joins, stays, subscribes and leaves (KIP-932).

Members of a share group own nothing: each may get records of each partition that it is told to fetch from, beside
others. So partitions come and go without the application, and this is a smaller thing than
`machines.groups.membership`. It must not know sessions or records.

Source: Java's `ShareMembershipManager` and `ShareHeartbeatRequestManager`. Read next: `machines.share.share_fetcher`,
which fetches from what is assigned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final
from uuid import UUID

from headrace.config import Config
from headrace.errors import KafkaError
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Key
from headrace.machines.groups.membership import GroupFailed, Left, heartbeat_timeout_s
from headrace.machines.groups.share_group_error_actions import ShareGroupErrorAction, share_group_error_action
from headrace.machines.machine import Event, Send
from headrace.states import Transitions, from_each
from headrace.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from headrace.wire.schema import Struct

__all__ = ["SHARE_MEMBER_TRANSITIONS", "ShareGroup", "ShareMemberState"]

_JOIN_EPOCH: Final = 0
_LEAVE_EPOCH: Final = -1
_NEVER: Final = float("inf")
_FIRST_INTERVAL_S: Final = 5.0
"""Between heartbeats, until the coordinator has said what it wants."""
_QUICK_HEARTBEATS: Final = 6
"""So many heartbeats of a new member without partitions come soon: the coordinator plans while it answers the first."""
_REPORT_BACKOFF_S: Final = 5.0
"""Pause after an error that only the user or an administrator can mend."""
_NO_SHARE_GROUPS: Final = (
    "the brokers have no share groups: they need Kafka 4.1 or later, and the feature share.version at level 1 or "
    "higher (kafka-features.sh upgrade --feature share.version=1)")


class ShareMemberState(Enum):
    """Where this member stands."""

    OUTSIDE = "not in the group"
    JOINING = "the first heartbeat is to be sent, or sent"
    STABLE = "member of the group"
    STALLED = "left because the application did not poll"
    LEAVING = "the last heartbeat is to be sent, or sent"
    FAILED = "the brokers have no share groups: nothing can be done"


_M = ShareMemberState
SHARE_MEMBER_TRANSITIONS: Final = Transitions("A member of a share group", _M.OUTSIDE, {
    (_M.OUTSIDE, "subscribe"): _M.JOINING,
    (_M.JOINING, "joined"): _M.STABLE,
    (_M.STABLE, "dropped"): _M.JOINING,
    (_M.STALLED, "polled"): _M.JOINING,
    (_M.LEAVING, "left"): _M.OUTSIDE,
    **from_each((_M.JOINING, _M.STABLE), "stalled", _M.STALLED),
    **from_each((_M.JOINING, _M.STABLE), "unsupported", _M.FAILED),
    **from_each((_M.JOINING, _M.STABLE, _M.STALLED, _M.FAILED), "leave", _M.LEAVING),
})
"""The only ways from one state to another."""


class ShareGroup:
    """The machine that is one member of one share group.

    Args:
        config: a share consumer's configuration.
        metadata: names of topics, which the coordinator calls by their ids.
        finder: where the coordinator is.
        member_id: what this member calls itself in front of the brokers; unique.

    Attributes:
        application_at: an input: when the application last came back from `poll()`; infinity while it is inside.
        epoch: of this member; 0 while it is none.
        member_id: as given.
        state: where it stands.
        topics: what is subscribed to.
        failure: why there is no membership and will be none; None while there is hope.
    """

    alone = idle = False  # the fetcher reads the assignment

    def __init__(self, config: Config, metadata: Metadata, finder: CoordinatorFinder, member_id: str) -> None:
        self.application_at = _NEVER
        self.epoch = _JOIN_EPOCH
        self.member_id = member_id
        self.state = SHARE_MEMBER_TRANSITIONS.first
        self.topics: tuple[str, ...] = ()
        self.failure: KafkaError | None = None
        self._group_id: str = config["group.id"]
        self._rack: str | None = config["client.rack"] or None
        self._max_poll_s = config.seconds("max.poll.interval.ms")
        self._request_timeout_s = config.seconds("socket.timeout.ms")
        self._retries = finder.retries
        self._metadata, self._finder = metadata, finder
        self._told: tuple[str, ...] | None = None  # the topics that the coordinator knows of
        self._assigned: dict[UUID, list[int]] = {}
        self._assignment: dict[Key, UUID] = {}
        self._resolved_at = -1  # of the metadata's pictures, the one from which the ids have got their names
        self._farewell = False  # to be sent by a member that is stalled
        self._flying: Send | None = None
        self._interval_s = _FIRST_INTERVAL_S
        self._quick = 0
        self._attempts = 0
        self._due = 0.0
        self._events: list[Event] = []

    # What the client calls

    @property
    def is_outside(self) -> bool:
        """Whether it neither is a member nor becomes one."""
        return self.state is ShareMemberState.OUTSIDE

    @property
    def stalled(self) -> bool:
        """The member left because the application did not poll. The next `poll()` has to wake the machines."""
        return self.state is ShareMemberState.STALLED

    @property
    def assignment(self) -> Mapping[Key, UUID]:
        """The partitions to fetch from, with their topics' ids. A new mapping when it has changed."""
        return self._assignment

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Become a member that reads these topics, or read these instead of those of before."""
        self.topics = tuple(topics)
        self._due = now
        if self.state is ShareMemberState.OUTSIDE:
            self._go("subscribe")
            if self.application_at == _NEVER:
                self.application_at = now

    def leave(self) -> None:
        """Leave the group; `Left` follows. Sessions must have been closed before: they end with the membership."""
        self.topics = ()
        if self.state is ShareMemberState.OUTSIDE:
            self._events.append(Left())
        elif self.state is not ShareMemberState.LEAVING:
            may_be_member = self.epoch > _JOIN_EPOCH or self._flying is not None
            self._go("leave")
            self._forget()
            self._flying = None
            self._farewell = may_be_member

    # The machine

    def poll(self, now: float) -> Iterator[Send]:
        """The next heartbeat, when it is due."""
        self._resolve(now)
        if self.state in (ShareMemberState.JOINING, ShareMemberState.STABLE):
            self._check_application(now)
        elif self.state is ShareMemberState.STALLED and now - self.application_at < self._max_poll_s:
            self._go("polled")
            self._due = now
        coordinator = self._finder.node_id
        if self.state is ShareMemberState.LEAVING and self._flying is None and (
                coordinator is None or not self._farewell):
            self._on_left()
        if coordinator is None:
            return
        if self._farewell:
            self._farewell = False
            yield self._send(coordinator, ShareGroupHeartbeatRequest(
                group_id=self._group_id, member_id=self.member_id, member_epoch=_LEAVE_EPOCH))
        elif self._beats and self._flying is None and now >= self._due:
            yield self._heartbeat(coordinator)

    def deadline(self) -> float | None:
        """The next heartbeat, or the end of the application's time."""
        if not self._beats:
            return None
        times = [self.application_at + self._max_poll_s]
        if self._flying is None and self._finder.node_id is not None:
            times.append(self._due)
        return min(times) if min(times) != _NEVER else None

    def events(self) -> list[Event]:
        """What the client must do or learn."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """The coordinator answered."""
        assert isinstance(reply, ShareGroupHeartbeatResponse)
        if send is not self._flying:
            return  # of a membership that was given up
        self._flying = None
        if self.state is ShareMemberState.LEAVING:
            self._on_left()
        elif not self._beats or _is_farewell(send):
            return  # the coordinator knows that the stalled member left
        elif reply.error_code:
            self._on_error_code(reply, now)
        else:
            self._on_heartbeat(send, reply, now)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """The coordinator did not answer: look for it again and go on."""
        if send is not self._flying:
            return
        self._flying = None
        if self.state is ShareMemberState.LEAVING:
            self._on_left()
        elif not self._beats or _is_farewell(send):
            return
        elif error.code() == KafkaError._UNSUPPORTED_FEATURE:
            self._fail()
        else:
            self._finder.invalidate(now)
            self._retry(now)

    def _go(self, trigger: str) -> None:
        self.state = SHARE_MEMBER_TRANSITIONS.go(self.state, trigger)

    @property
    def _beats(self) -> bool:
        return self.state in (ShareMemberState.JOINING, ShareMemberState.STABLE)

    # Heartbeats

    def _heartbeat(self, coordinator: int) -> Send:
        joins = self.epoch == _JOIN_EPOCH
        told = list(self.topics) if joins or self.topics != self._told else None
        return self._send(coordinator, ShareGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=self.epoch,
            rack_id=self._rack if joins else None, subscribed_topic_names=told))

    def _send(self, coordinator: int, request: ShareGroupHeartbeatRequest) -> Send:
        timeout_s = heartbeat_timeout_s(self._interval_s, self._request_timeout_s)
        self._flying = Send(coordinator, request, timeout_s, context=self.topics)
        return self._flying

    def _on_heartbeat(self, send: Send, reply: ShareGroupHeartbeatResponse, now: float) -> None:
        self._attempts = 0
        self._told, self.epoch = send.context, reply.member_epoch
        self._interval_s = reply.heartbeat_interval_ms / 1000.0
        if self.state is ShareMemberState.JOINING:
            self._go("joined")
            self._quick = _QUICK_HEARTBEATS
        if reply.assignment is not None:
            self._assigned = {part.topic_id: part.partitions for part in reply.assignment.topic_partitions}
            self._resolved_at = -1
            self._resolve(now)
        self._due = now + self._pause_s()

    def _pause_s(self) -> float:
        """Until the next heartbeat. It comes soon where the coordinator cannot have been ready yet."""
        if self.topics != self._told:
            return 0.0
        if self._assigned or not self._quick:
            return self._interval_s
        self._quick -= 1
        return min(self._retries.wait_s(_QUICK_HEARTBEATS - self._quick), self._interval_s)

    def _on_error_code(self, reply: ShareGroupHeartbeatResponse, now: float) -> None:
        code = reply.error_code
        action = share_group_error_action(code)
        if action is ShareGroupErrorAction.UNSUPPORTED:
            self._fail()
        elif action is ShareGroupErrorAction.DROPPED:
            if self.state is ShareMemberState.STABLE:
                self._go("dropped")
                self._forget()
                self._due = now
            else:
                self._retry(now)
        elif action is ShareGroupErrorAction.REFUSED:
            reason = reply.error_message or KafkaError(code).str()
            self._events.append(GroupFailed(KafkaError(
                code, f"Share group {self._group_id!r} refused this member: {reason}")))
            self._due = now + _REPORT_BACKOFF_S
        else:
            if action is ShareGroupErrorAction.MOVED:
                self._finder.invalidate(now)
            self._retry(now)

    def _retry(self, now: float) -> None:
        self._told = None  # so that the coordinator says again what an answer said that did not come
        self._attempts += 1
        self._due = now + self._retries.wait_s(self._attempts)

    def _fail(self) -> None:
        self._go("unsupported")
        self._forget()
        self.failure = KafkaError(KafkaError._UNSUPPORTED_FEATURE, _NO_SHARE_GROUPS, fatal=True)
        self._events.append(GroupFailed(self.failure))

    # Coming and going

    def _check_application(self, now: float) -> None:
        if now - self.application_at < self._max_poll_s:
            return
        text = (f"The application did not poll for {self._max_poll_s:g} s (max.poll.interval.ms): left share group "
                f"{self._group_id!r}, and others get the records it holds; poll more often, or raise the limit")
        self._events.append(GroupFailed(KafkaError(KafkaError._MAX_POLL_EXCEEDED, text)))
        self._farewell = self.epoch > _JOIN_EPOCH or self._flying is not None
        self._flying = None
        self._go("stalled")
        self._forget()

    def _forget(self) -> None:
        self.epoch, self._told = _JOIN_EPOCH, None
        self._assigned, self._assignment = {}, {}

    def _on_left(self) -> None:
        self._go("left")
        self._farewell = False
        self.failure = None
        self.application_at = _NEVER
        self._events.append(Left())

    def _resolve(self, now: float) -> None:
        """Name the assigned topics, as far as the metadata knows them."""
        if self._resolved_at == self._metadata.updates:
            return
        self._resolved_at = self._metadata.updates
        names = self._metadata.cluster.names
        found = {(names[topic_id], partition): topic_id for topic_id, partitions in self._assigned.items()
                 if topic_id in names for partition in partitions}
        if found != self._assignment:
            self._assignment = found
        if any(topic_id not in names for topic_id in self._assigned):
            self._metadata.refresh(now)


def _is_farewell(send: Send) -> bool:
    assert isinstance(send.request, ShareGroupHeartbeatRequest)
    return send.request.member_epoch == _LEAVE_EPOCH
