"""Looks up offsets at the leaders (`OffsetLookup`), and what that has in common with the group's (`Lookups`).

Both serve two kinds of callers in the same way: partitions of the subscription that wait for a start, and lookups
of the application. Passing errors are retried with a growing pause until the lookup's deadline.

Source: Java's `OffsetFetcher`, KIP-79, KIP-320. Read next: `machines.consumer.group_offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from headrace.errors import KafkaError
from headrace.machines.backoff import Pauses, RetryPolicy
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.offset_error_actions import (
    OF_CONNECTIONS,
    OF_LEADERS,
    OffsetErrorAction,
    offset_error_action,
)
from headrace.machines.consumer.subscription import EARLIEST, LATEST, Key, PartitionState, PositionPhase, Subscription
from headrace.machines.machine import Event, Send, because
from headrace.slotted import slotted
from headrace.types.records import OFFSET_INVALID, ConsumerGroupMetadata, TopicPartition, metadata_of
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headrace.wire.schema import Struct

__all__ = ["NEVER", "Found", "Lookup", "Lookups", "OffsetLookup", "PositionFailed"]

NEVER: Final = float("inf")

Found = Callable[[TopicPartition], None]
"""Called once per partition asked for: its offset, leader epoch and metadata, or its `error`."""


@slotted()
class PositionFailed(Event):
    """A partition got no start, or not yet; the application gets the error, and may seek."""

    topic: str
    partition: int
    error: KafkaError


@slotted(eq=False)
class Lookup:
    """One partition's offset, asked until it is found or `expires_at` is over."""

    topic: str
    partition: int
    timestamp: int
    expires_at: float
    found: Found
    not_before: float = 0.0
    attempts: int = 0
    flying: bool = False
    last_error: KafkaError | None = None
    seen: int = -1
    """Which picture of the cluster knew no leader for it first; -1 for none."""
    leaderless: bool = False
    """It waits for a leader, and may be sent as soon as there is one: the pause is between two looks for it."""
    refused_as: ConsumerGroupMetadata | None = None
    """The member that the coordinator did not know, or not with this epoch; None for none."""
    state: PartitionState | None = None
    """Whose start it is, while `epoch` is that of the state: its topic may still be made. None for the application."""
    epoch: int = 0
    told: KafkaError | None = None  # why the start was refused last, as the application knows

    @property
    def is_awaited(self) -> bool:
        """Whether the answer is wanted still: that of a start is not once the application has sought elsewhere."""
        return self.state is None or self.state.epoch == self.epoch

    @property
    def key(self) -> Key:
        """Its partition."""
        return (self.topic, self.partition)

    def back_off(self, now: float, pauses: Pauses, error: KafkaError | None = None) -> None:
        """It is asked again after a pause."""
        self.flying = False
        self.attempts += 1
        self.last_error = error
        self.not_before = pauses.until(self.attempts, now)

    def next_step(self, now: float) -> float:
        """When time alone changes something for it."""
        waits = self.not_before > now and not self.flying
        return min(self.not_before, self.expires_at) if waits else self.expires_at

    def expired(self, last_error: KafkaError | None) -> KafkaError:
        """Why it has no answer in time; `last_error` is of who had to be found before it could be asked."""
        what = "first offset" if self.timestamp == EARLIEST else "offset"
        why = because(self.last_error or last_error)
        return KafkaError(KafkaError._TIMED_OUT, f"The {what} of {self.topic}[{self.partition}] was not found in "
                          f"time: check that the topic exists and that brokers are up{why}")


class Lookups:
    """A machine of lookups, in order, each until it is answered.

    Args:
        subscription: partitions that may wait for a start.
        phase: that of those which get it here.
        timeout_s: seconds for one request.
        retries: how long to wait before something is asked again.
    """

    alone = idle = False  # others read what it decides

    def __init__(
        self, subscription: Subscription, phase: PositionPhase, timeout_s: float, retries: RetryPolicy
    ) -> None:
        self._subscription = subscription
        self._phase = phase
        self._timeout_s = timeout_s
        self._pauses = Pauses(retries.wait_s)
        self._open: dict[Lookup, None] = {}  # one of thousands is taken out as cheaply as one of two
        self._seen = -1
        self._deadline: float | None = None
        self._events: list[Event] = []

    def deadline(self) -> float | None:
        """When something is sent again or expires."""
        return self._deadline

    def events(self) -> list[Event]:
        """`PositionFailed` for partitions without a start, and what else a kind of lookup has to say."""
        events, self._events = self._events, []
        return events

    def _claim(self) -> None:
        """Take up the partitions that wait for a start, of those to which something has happened."""
        if self._seen == self._subscription.version:
            return
        changed = self._subscription.changed_since(self._seen)
        self._seen = self._subscription.version
        for state in self._subscription if changed is None else changed:
            if state.phase is self._phase and not state.busy:
                state.busy = True
                self._ask_start(state)

    def _ask_start(self, state: PartitionState) -> None:
        raise NotImplementedError

    def _open_start(self, state: PartitionState, timestamp: int, found: Found) -> None:
        lookup = Lookup(state.topic, state.partition, timestamp, NEVER, found, state=state, epoch=state.epoch)
        self._open[lookup] = None

    def _refuse(self, lookup: Lookup, error: KafkaError, now: float) -> None:
        """Ask again for a start, and let the application hear once: who gives rights gives them late."""
        if lookup.state is None or not lookup.is_awaited:
            self._answer(lookup, error=error)
            return
        if lookup.told != error:
            self._events.append(PositionFailed(lookup.topic, lookup.partition, error))
        lookup.told = error
        lookup.back_off(now, self._pauses, error)

    def _answer(self, lookup: Lookup, offset: int = OFFSET_INVALID, leader_epoch: int = -1,
                metadata: str | None = None, error: KafkaError | None = None) -> None:
        if lookup not in self._open:
            return
        del self._open[lookup]
        if lookup.is_awaited:
            tp = TopicPartition(lookup.topic, lookup.partition, offset, metadata_of(metadata),
                                None if leader_epoch < 0 else leader_epoch)
            tp.error = error
            lookup.found(tp)


class OffsetLookup(Lookups):
    """Asks leaders for offsets by timestamp, first and last included, and gives starts to partitions in phase RESET.

    Args:
        subscription: partitions that may wait for a start.
        metadata: knows the partitions' leaders.
        isolation_level: 0 or 1; with 1 the last offset is the last stable one.
        timeout_s: seconds for one request.
        retries: how long to wait before something is asked again.
    """

    def __init__(self, subscription: Subscription, metadata: Metadata, isolation_level: int, timeout_s: float,
                 retries: RetryPolicy) -> None:
        super().__init__(subscription, PositionPhase.RESET, timeout_s, retries)
        self._metadata = metadata
        self._isolation_level = isolation_level

    def ask(self, topic: str, partition: int, timestamp: int, expires_at: float, found: Found) -> None:
        """Look up the first offset whose record is at `timestamp` (ms, or EARLIEST, LATEST) or later."""
        self._open[Lookup(topic, partition, timestamp, expires_at, found)] = None

    def topics(self) -> set[str]:
        """The topics that are asked about."""
        return {lookup.topic for lookup in self._open}

    def poll(self, now: float) -> Iterator[Send]:
        """One request to each leader that is asked something."""
        self._claim()
        if not self._open:
            self._deadline = None
            return
        by_leader: dict[int, list[Lookup]] = {}
        in_flight = {lookup.key for lookup in self._open if lookup.flying}
        for lookup in list(self._open):
            if lookup.expires_at <= now:  # also while a request is under way: a silent broker has no more time
                self._answer(lookup, error=lookup.expired(self._metadata.last_error))
            elif lookup.flying or lookup.key in in_flight:
                continue  # a partition may be named once in a request: its other lookups wait for the reply
            elif (leader := self._metadata.leader(lookup.topic, lookup.partition)[0]) is None:
                self._look_for_leader(lookup, now)
            elif lookup.leaderless or lookup.not_before <= now:
                lookup.flying, lookup.leaderless = True, False
                in_flight.add(lookup.key)
                by_leader.setdefault(leader, []).append(lookup)
        self._deadline = min((at for lookup in self._open if (at := lookup.next_step(now)) < NEVER), default=None)
        for leader, lookups in by_leader.items():
            yield Send(leader, self._request(lookups), self._timeout_s, context=lookups)

    def _look_for_leader(self, lookup: Lookup, now: float) -> None:
        """Have a leader looked for. An application that asks is told once a new picture knows no such partition."""
        metadata = self._metadata
        missing = None if lookup.state is not None else metadata.missing(lookup.topic, lookup.partition)
        if missing is not None and -1 < lookup.seen < metadata.updates:
            self._answer(lookup, error=missing)
        elif lookup.not_before <= now:
            lookup.seen = metadata.updates if lookup.seen < 0 else lookup.seen
            metadata.want_topics([lookup.topic])
            metadata.refresh(now)
            lookup.back_off(now, self._pauses)
            lookup.leaderless = True

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """Answer what was found; ask again where a stale leader had no answer."""
        assert isinstance(reply, ListOffsetsResponse)
        waiting = {lookup.key: lookup for lookup in send.context}
        for topic in reply.topics:
            for data in topic.partitions:
                lookup = waiting.pop((topic.name, data.partition_index), None)
                if lookup is None:
                    continue
                if not data.error_code:
                    self._answer(lookup, data.offset, data.leader_epoch)
                elif offset_error_action(OF_LEADERS, data.error_code) is OffsetErrorAction.FAIL:
                    self._refuse(lookup, KafkaError(data.error_code), now)
                else:
                    self._metadata.refresh(now)
                    lookup.back_off(now, self._pauses, KafkaError(data.error_code))
        for lookup in waiting.values():
            lookup.back_off(now, self._pauses)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """Ask again, the leaders of that time, unless the error will not pass."""
        self._metadata.refresh(now)
        for lookup in send.context:
            if offset_error_action(OF_CONNECTIONS, error.code()) is OffsetErrorAction.RETRY:
                lookup.back_off(now, self._pauses, error)
            else:
                self._refuse(lookup, error, now)

    def _ask_start(self, state: PartitionState) -> None:
        self._ask_place(state, state.reset_timestamp)

    def _ask_place(self, state: PartitionState, timestamp: int, end: int | None = None) -> None:
        """`end` is known once the first offset is asked for, for a partition's last so many records."""
        def found(tp: TopicPartition) -> None:
            if timestamp >= 0 and tp.offset < 0:  # no record is that young
                self._ask_place(state, LATEST)
            elif state.tail and end is None:
                self._ask_place(state, EARLIEST, tp.offset)
            else:
                self._subscription.positioned(state, tp.offset if end is None else max(tp.offset, end - state.tail))

        self._open_start(state, timestamp, found)

    def _request(self, lookups: list[Lookup]) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        for lookup in lookups:
            entry = topics.get(lookup.topic)
            if entry is None:
                entry = topics[lookup.topic] = ListOffsetsTopic(name=lookup.topic, partitions=[])
            _, epoch = self._metadata.leader(lookup.topic, lookup.partition)
            entry.partitions.append(ListOffsetsPartition(
                partition_index=lookup.partition, current_leader_epoch=epoch, timestamp=lookup.timestamp))
        return ListOffsetsRequest(replica_id=-1, isolation_level=self._isolation_level, topics=list(topics.values()),
                                  timeout_ms=int(self._timeout_s * 1000))
