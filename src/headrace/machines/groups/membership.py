"""What a consumer asks of its group, whatever kind of group that is; `machines.groups.classic` is one kind.

A membership is a machine. It reports changes as `Rebalance` events and then waits for `callback_done`, because an
application may commit or look up its own offsets first; one event is on its way at a time. The client above reports
when the application reads; `machines.groups.ownership` keeps as which member offsets are committed. This module must
not know how members join, or what the application's callbacks do.

Read next: `machines.groups.classic`, `machines.groups.consumer_group`, and `machines.groups.group_protocols`, which
chooses the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, Protocol

from headrace.config import Config
from headrace.errors import KafkaError
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Key, Subscription
from headrace.machines.machine import Event, Machine
from headrace.slotted import slotted
from headrace.types.records import ConsumerGroupMetadata, TopicPartition

__all__ = ["Change", "EpochMoved", "GroupFailed", "Left", "MemberRefused", "Membership", "MembershipFactory",
           "Rebalance", "heartbeat_timeout_s"]

_INTERVALS_PER_REQUEST: Final = 3
_SHORTEST_TIMEOUT_S: Final = 10.0


def heartbeat_timeout_s(interval_s: float, request_timeout_s: float) -> float:
    """How long a heartbeat waits where the coordinator says how often one is due: for some intervals.

    One that is not answered by then is sent again, to the coordinator of then, before the session is over.

    Args:
        interval_s: between heartbeats, in seconds.
        request_timeout_s: the longest wait for any answer, in seconds.
    """
    return min(max(_SHORTEST_TIMEOUT_S, _INTERVALS_PER_REQUEST * interval_s), request_timeout_s)


class Change(Enum):
    """What happens to the partitions of a `Rebalance`."""

    ASSIGN = "assigned"
    REVOKE = "revoked"
    LOSE = "lost"


@slotted()
class Rebalance(Event):
    """Partitions come or go. The client answers with `Membership.callback_done`.

    Attributes:
        incremental: the partitions are a change to the assignment; else they are all of it.
        generation, member_id: of this consumer in the group while it deals with the change; -1 and "" when it was
            dropped.
    """

    change: Change
    partitions: list[TopicPartition]
    incremental: bool
    generation: int
    member_id: str


@slotted()
class EpochMoved(Event):
    """The group has a newer generation of this member, which keeps what it holds: it acts as that from now on."""

    generation: int
    member_id: str


@slotted()
class GroupFailed(Event):
    """The group refuses this member; the application gets the error. Fatal errors end the membership."""

    error: KafkaError


@slotted()
class MemberRefused(Event):
    """The coordinator refused a request about offsets because it does not know this member, or not any more."""

    member: ConsumerGroupMetadata


@slotted()
class Left(Event):
    """The member has left the group after `leave()`."""


class Membership(Machine, Protocol):
    """One member of one group.

    Attributes:
        application_at: an input: when the application last came back from `poll()`; infinity while it is inside.
        stalled: the member left because the application did not poll. It comes back at the next `poll()`, for which
            the client has to wake the machines.
        resolves_patterns: patterns are matched here, and not by the coordinator: every topic must be known.
        member_id: its id; "" while it has none. One that chooses it itself has it before it is a member.
    """

    application_at: float
    member_id: str
    stalled: bool
    resolves_patterns: bool

    @property
    def state(self) -> Enum:
        """Where this member stands: a short name, and its value in words."""
        ...

    @property
    def answered_at(self) -> float | None:
        """When the coordinator last answered this member, in monotonic seconds; None before."""
        ...

    @property
    def identity(self) -> ConsumerGroupMetadata:
        """This member's id and generation, the newest that it knows; generation -1 and "" while it is no member."""
        ...

    @property
    def is_outside(self) -> bool:
        """Whether it neither is a member nor becomes one: before `subscribe`, and after `leave`."""
        ...

    @property
    def owned(self) -> frozenset[Key]:
        """The partitions that this member holds."""
        ...

    @property
    def planned_topics(self) -> frozenset[str]:
        """The topics that this member watches for other members."""
        ...

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Become a member that reads these topics, or read these instead of those of before.

        Args:
            topics: names; one that starts with ``^`` is a regular expression.
            now: monotonic seconds; "max.poll.interval.ms" begins to run, unless the application is inside of `poll()`.

        Raises:
            KafkaException: `_INVALID_ARG` for an empty name or a malformed pattern.
        """
        ...

    def callback_done(self, now: float) -> None:
        """The application has dealt with the last `Rebalance`."""
        ...

    def enforce_rebalance(self, reason: str) -> None:
        """Have the group rebalance, where members decide on that."""
        ...

    def doubt(self, member: ConsumerGroupMetadata) -> None:
        """Something of this member was refused: if that is still who it is, it asks the coordinator at once.

        A request about offsets may have crossed a rebalance: only the answer to a heartbeat says that it was dropped.
        """
        ...

    def leave(self) -> None:
        """Leave the group; `Left` follows. What is owned, and the subscription, must have been given up before."""
        ...


MembershipFactory = Callable[[Config, Subscription, Metadata, CoordinatorFinder], Membership]
"""Makes the member of the group that a consumer's properties name.

Called with the properties, the topics asked for, what is known of them, and where the group's coordinator is.
"""
