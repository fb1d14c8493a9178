"""Positions whose records may be gone: a new leader is asked where its log and that of its predecessor part (KIP-320).

An unclean election makes a replica the leader that lacks records which were read already. Others will have their
offsets, so that a reader who just goes on leaves some of them out and does not know. Each batch carries the epoch of
the leader that wrote it; the new leader knows where that epoch ends in its own log.

`machines.consumer.fetch_plan` puts a position in doubt, and fetches nothing for it until it is confirmed. Where the log
ends before it, reading goes on from there if "auto.offset.reset" names a place (decision 0030). What was fetched before
is handed out first. This module must not know what a fetch holds, nor how an error reaches the application.

Source: Java's `OffsetFetcher.validatePositionsAsync` and `SubscriptionState.maybeCompleteValidation`.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.errors import KafkaError
from headrace.machines.backoff import Pauses, RetryPolicy
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.offset_error_actions import (
    OF_CONNECTIONS,
    OF_LEADERS,
    OffsetErrorAction,
    offset_error_action,
)
from headrace.machines.consumer.subscription import PartitionState, PositionPhase, Subscription
from headrace.machines.machine import Event, Send
from headrace.slotted import slotted
from headrace.wire.messages.consumer.fetch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.wire.schema import Struct

__all__ = ["LogTruncated", "PositionCheck"]

_CONSUMER = -1


@slotted()
class LogTruncated(Event):
    """Records that were read are not in the log any more.

    Attributes:
        error: `_LOG_TRUNCATION`; its text names the offset from which on they are gone.
        offset: the position before.
        goes_on: False when the partition is read no further until the application seeks.
    """

    topic: str
    partition: int
    error: KafkaError
    offset: int
    goes_on: bool


@slotted(eq=False)
class _Doubt:
    """A position that is compared, for as long as the partition's state has this `epoch`."""

    state: PartitionState
    epoch: int
    leader_epoch: int = -1
    not_before: float = 0.0
    attempts: int = 0
    flying: bool = False
    end: EpochEndOffset | None = None
    """The answer, once it is known that the log ends before the position."""

    @property
    def is_over(self) -> bool:
        return self.state.epoch != self.epoch or self.state.phase is not PositionPhase.VALIDATE


class PositionCheck:
    """Compares the positions of partitions in phase VALIDATE with the logs of their leaders.

    Args:
        subscription: the partitions.
        metadata: knows the partitions' leaders.
        timeout_s: seconds for one request.
        retries: how long to wait before a leader is asked again.
    """

    alone = idle = False  # others read what it decides

    def __init__(self, subscription: Subscription, metadata: Metadata, timeout_s: float, retries: RetryPolicy) -> None:
        self._subscription, self._metadata = subscription, metadata
        self._timeout_s, self._pauses = timeout_s, Pauses(retries.wait_s)
        self._doubts: list[_Doubt] = []
        self._events: list[Event] = []
        self._seen = -1
        self._deadline: float | None = None

    def poll(self, now: float) -> Iterator[Send]:
        """One request to each leader whose log is to be compared."""
        self._claim()
        self._deadline = None
        by_leader: dict[int, list[_Doubt]] = {}
        self._doubts = [doubt for doubt in self._doubts if not doubt.is_over]
        for doubt in self._doubts.copy():
            if doubt.end is not None:
                self._go_back(doubt, doubt.end)
            elif doubt.flying:
                continue
            elif doubt.not_before > now:
                self._deadline = min(doubt.not_before, self._deadline or doubt.not_before)
            else:
                leader, doubt.leader_epoch = self._metadata.leader(doubt.state.topic, doubt.state.partition)
                if leader is None:
                    self._ask_again(doubt, now)
                else:
                    by_leader.setdefault(leader, []).append(doubt)
        for leader, doubts in by_leader.items():
            yield Send(leader, _request(doubts), self._timeout_s, context=doubts)

    def deadline(self) -> float | None:
        """When the first leader is asked again."""
        return self._deadline

    def events(self) -> list[Event]:
        """`LogTruncated` for each partition that has lost records."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """Confirm positions, give them up, or look for the leader of that time."""
        assert isinstance(reply, OffsetForLeaderEpochResponse)
        waiting = {doubt.state.key: doubt for doubt in send.context}
        for topic in reply.topics:
            for end in topic.partitions:
                doubt = waiting.pop((topic.topic, end.partition), None)
                if doubt is not None:
                    self._on_end(doubt, end, now)
        for doubt in waiting.values():
            self._ask_again(doubt, now)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """Ask again, the leaders of that time; a broker that cannot answer such a question is believed."""
        for doubt in send.context:
            if offset_error_action(OF_CONNECTIONS, error.code()) is OffsetErrorAction.RETRY:
                self._ask_again(doubt, now)
            else:
                self._confirm(doubt)

    def _claim(self) -> None:
        """Take up the partitions that are in doubt, of those to which something has happened."""
        if self._seen == self._subscription.version:
            return
        changed = self._subscription.changed_since(self._seen)
        self._seen = self._subscription.version
        for state in self._subscription if changed is None else changed:
            if state.phase is PositionPhase.VALIDATE and not state.busy:
                state.busy = True
                self._doubts.append(_Doubt(state, state.epoch))

    def _ask_again(self, doubt: _Doubt, now: float) -> None:
        self._metadata.refresh(now)
        doubt.flying = False
        doubt.attempts += 1
        doubt.not_before = self._pauses.until(doubt.attempts, now)
        self._deadline = min(doubt.not_before, self._deadline or doubt.not_before)

    def _on_end(self, doubt: _Doubt, end: EpochEndOffset, now: float) -> None:
        doubt.flying = False
        if offset_error_action(OF_LEADERS, end.error_code) is OffsetErrorAction.MOVED:
            self._ask_again(doubt, now)
        elif end.error_code or end.end_offset >= doubt.state.fetch_offset:
            self._confirm(doubt)  # what a leader refuses to say it refuses to a fetch as well, which reports it
        elif not doubt.is_over:
            doubt.end = end
            self._go_back(doubt, end)

    def _confirm(self, doubt: _Doubt) -> None:
        if not doubt.is_over:
            doubt.state.busy = False
            doubt.state.checked_epoch = max(doubt.leader_epoch, doubt.state.checked_epoch)
            doubt.state.go("confirmed")
            self._subscription.changed(doubt.state)

    def _go_back(self, doubt: _Doubt, end: EpochEndOffset) -> None:
        """Leave a position behind the end of the log, as soon as all that was fetched before is handed out."""
        state = doubt.state
        if state.queued_bytes:
            return
        before, where = state.fetch_offset, f"{state.topic}[{state.partition}]"
        text = f"the new leader of {where} lacks records that were read, " + (
            f"those from offset {end.end_offset} to {before - 1}" if end.end_offset >= 0
            else f"it does not know where the log was the same up to offset {before - 1}")
        goes_on = self._subscription.step_back(state, end.end_offset, end.leader_epoch)
        then = "others have their offsets by now, or will have" if goes_on else (
            '"auto.offset.reset" is "error": seek() to the offset to go on from')
        self._events.append(LogTruncated(
            state.topic, state.partition, KafkaError(KafkaError._LOG_TRUNCATION, f"{text}; {then}"), before, goes_on))


def _request(doubts: list[_Doubt]) -> OffsetForLeaderEpochRequest:
    topics: dict[str, OffsetForLeaderTopic] = {}
    for doubt in doubts:
        doubt.flying = True
        topic = topics.setdefault(doubt.state.topic, OffsetForLeaderTopic(topic=doubt.state.topic, partitions=[]))
        topic.partitions.append(OffsetForLeaderPartition(
            partition=doubt.state.partition, current_leader_epoch=doubt.leader_epoch,
            leader_epoch=doubt.state.fetch_epoch))
    return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))
