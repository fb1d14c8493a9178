"""Offsets asked for and given: what the leaders know (`OffsetLookup`) and what the group knows (`GroupOffsets`).

Both serve two kinds of callers in the same way: partitions of the subscription that wait for a start, and questions
of the application. Passing errors are retried with a growing pause until the question's deadline. This module must not
know how members join a group; it reads their identity from `Membership`.

Source: Java's `OffsetFetcher` and `ConsumerCoordinator`, KIP-79, KIP-320. Read next: `machines.fetcher`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from headrace.errors import KafkaError
from headrace.machines.coordinator import CoordinatorFinder
from headrace.machines.machine import Event, Send
from headrace.machines.metadata import Metadata
from headrace.machines.subscription import EARLIEST, Key, PartitionState, Phase, Subscription
from headrace.slotted import slotted
from headrace.types import OFFSET_INVALID, TopicPartition
from headrace.wire.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from headrace.wire.schema import Struct

__all__ = ["Found", "GroupOffsets", "Membership", "OffsetLookup", "PositionFailed"]

_BACKOFF_S, _BACKOFF_MAX_S = 0.05, 1.0
_NEVER = float("inf")
_STALE_LEADER = frozenset({
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR, KafkaError.OFFSET_NOT_AVAILABLE,
})
_MOVED = frozenset({KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE})
_PASSING = frozenset({
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.REQUEST_TIMED_OUT, KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
})
_LOST = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._RESOLVE, KafkaError._UNKNOWN_BROKER})

Found = Callable[[TopicPartition], None]
"""Told once per partition asked for: its offset, leader epoch and metadata, or its `error`."""


@slotted()
class PositionFailed(Event):
    """A partition got no start; the application must be told, and may seek."""

    topic: str
    partition: int
    error: KafkaError


class Membership(Protocol):
    """Who this consumer is in its group; member id "" and generation -1 outside of one."""

    member_id: str
    generation: int
    instance_id: str | None


@slotted(eq=False)
class _Question:
    """One partition's offset, asked until it is found or `expires_at` is over."""

    topic: str
    partition: int
    timestamp: int
    expires_at: float
    found: Found
    not_before: float = 0.0
    attempts: int = 0
    flying: bool = False

    @property
    def key(self) -> Key:
        return (self.topic, self.partition)

    def back_off(self, now: float) -> None:
        self.flying = False
        self.attempts += 1
        self.not_before = now + min(_BACKOFF_MAX_S, _BACKOFF_S * 2 ** min(self.attempts, 6))


class OffsetLookup:
    """Asks leaders for offsets by timestamp, first and last included, and gives starts to partitions in phase RESET.

    Args:
        subscription: partitions that may wait for a start.
        metadata: who leads which partition.
        isolation_level: 0 or 1; with 1 the last offset is the last stable one.
        timeout_s: seconds for one request.
    """

    def __init__(self, subscription: Subscription, metadata: Metadata, isolation_level: int, timeout_s: float) -> None:
        self._subscription = subscription
        self._metadata = metadata
        self._isolation_level = isolation_level
        self._timeout_s = timeout_s
        self._open: list[_Question] = []
        self._seen = -1
        self._deadline: float | None = None
        self._events: list[Event] = []

    def ask(self, topic: str, partition: int, timestamp: int, expires_at: float, found: Found) -> None:
        """Look up the first offset whose record is at `timestamp` (ms, or EARLIEST, LATEST) or later."""
        self._open.append(_Question(topic, partition, timestamp, expires_at, found))

    def poll(self, now: float) -> Iterator[Send]:
        """One request to each leader that is asked something."""
        if self._seen != self._subscription.version:
            self._seen = self._subscription.version
            self._claim()
        if not self._open:
            self._deadline = None
            return
        by_leader: dict[int, list[_Question]] = {}
        for question in list(self._open):
            if question.flying or question.not_before > now:
                continue
            if question.expires_at <= now:
                self._answer(question, error=_expired(question))
                continue
            leader, _ = self._metadata.leader(question.topic, question.partition)
            if leader is None:
                self._metadata.want_topics([question.topic])
                self._metadata.refresh(now)
                question.back_off(now)
            else:
                question.flying = True
                by_leader.setdefault(leader, []).append(question)
        self._deadline = min((q.not_before for q in self._open if not q.flying), default=None)
        for leader, questions in by_leader.items():
            yield Send(leader, self._request(questions), self._timeout_s, context=questions)

    def deadline(self) -> float | None:
        """When the first question is asked again."""
        return self._deadline

    def events(self) -> list[Event]:
        """`PositionFailed` for partitions without a start."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """Answer what was found; ask again what a stale leader could not say."""
        assert isinstance(reply, ListOffsetsResponse)
        waiting = {question.key: question for question in send.context}
        for topic in reply.topics:
            for data in topic.partitions:
                question = waiting.pop((topic.name, data.partition_index), None)
                if question is None:
                    continue
                if data.error_code in _STALE_LEADER:
                    self._metadata.refresh(now)
                    question.back_off(now)
                elif data.error_code:
                    self._answer(question, error=KafkaError(data.error_code))
                else:
                    self._answer(question, data.offset, data.leader_epoch)
        for question in waiting.values():
            question.back_off(now)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """Ask again, from whoever leads then, unless the error will not pass."""
        self._metadata.refresh(now)
        for question in send.context:
            if error.code() in _LOST:
                question.back_off(now)
            else:
                self._answer(question, error=error)

    def _claim(self) -> None:
        """Take up the subscription's partitions that wait for the end or the beginning of the log."""
        for state in self._subscription:
            if state.phase is Phase.RESET and not state.busy:
                state.busy = True
                self.ask(state.topic, state.partition, state.reset_timestamp, _NEVER, self._start_of(state))

    def _start_of(self, state: PartitionState) -> Found:
        epoch = state.epoch

        def found(tp: TopicPartition) -> None:
            if state.epoch != epoch:
                return
            if tp.error is None:
                self._subscription.positioned(state, tp.offset)
            else:
                state.jump(Phase.FAILED)
                self._events.append(PositionFailed(state.topic, state.partition, tp.error))

        return found

    def _request(self, questions: list[_Question]) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        for question in questions:
            entry = topics.setdefault(question.topic, ListOffsetsTopic(name=question.topic, partitions=[]))
            _, epoch = self._metadata.leader(question.topic, question.partition)
            entry.partitions.append(ListOffsetsPartition(
                partition_index=question.partition, current_leader_epoch=epoch, timestamp=question.timestamp))
        return ListOffsetsRequest(replica_id=-1, isolation_level=self._isolation_level, topics=list(topics.values()),
                                  timeout_ms=int(self._timeout_s * 1000))

    def _answer(self, question: _Question, offset: int = OFFSET_INVALID, leader_epoch: int = -1,
                error: KafkaError | None = None) -> None:
        if question in self._open:
            self._open.remove(question)
            question.found(_answer_of(question, offset, leader_epoch, None, error))


class GroupOffsets:
    """Commits offsets to the group's coordinator and asks it for them; gives starts to partitions in phase COMMITTED.

    Args:
        group_id: the group.
        subscription: partitions that may wait for a start.
        finder: where the coordinator is.
        membership: this consumer's identity in the group, for fencing.
        isolation_level: with 1, offsets of open transactions are waited for (KIP-447).
        timeout_s: seconds for one request.
    """

    def __init__(self, group_id: str, subscription: Subscription, finder: CoordinatorFinder, membership: Membership,
                 isolation_level: int, timeout_s: float) -> None:
        self._group_id = group_id
        self._subscription = subscription
        self._finder = finder
        self._membership = membership
        self._require_stable = isolation_level == 1
        self._timeout_s = timeout_s
        self._questions: list[_Question] = []
        self._commits: list[_Commit] = []
        self._seen = -1
        self._deadline: float | None = None
        self._events: list[Event] = []

    def ask(self, partitions: Iterable[TopicPartition], expires_at: float, found: Found) -> None:
        """Ask for the committed offsets; `OFFSET_INVALID` where the group has none."""
        self._questions += [_Question(tp.topic, tp.partition, 0, expires_at, found) for tp in partitions]

    def commit(self, partitions: Iterable[TopicPartition], expires_at: float,
               done: Callable[[list[TopicPartition], KafkaError | None], None]) -> None:
        """Commit offsets. `done` gets the partitions, each with its own `error`, and the error of the whole commit."""
        self._commits.append(_Commit([_copy(tp) for tp in partitions], expires_at, done))

    @property
    def is_committing(self) -> bool:
        """Whether a commit is not answered yet."""
        return bool(self._commits)

    def poll(self, now: float) -> Iterator[Send]:
        """Commits first, in order and one at a time; then one request for all questions."""
        if self._seen != self._subscription.version:
            self._seen = self._subscription.version
            self._claim()
        self._deadline = None
        if not (self._questions or self._commits):
            return
        self._expire(now)
        coordinator = self._finder.node_id
        if coordinator is None:
            self._wake_at(min([c.expires_at for c in self._commits] + [q.expires_at for q in self._questions],
                              default=_NEVER))
            return
        if self._commits and not self._commits[0].flying:
            commit = self._commits[0]
            if commit.not_before > now:
                self._wake_at(commit.not_before)
            else:
                commit.flying = True
                yield Send(coordinator, self._commit_request(commit), self._timeout_s, max_version=9, context=commit)
        ready = [q for q in self._questions if not q.flying and q.not_before <= now]
        for question in self._questions:
            if not question.flying and question.not_before > now:
                self._wake_at(question.not_before)
        if ready:
            for question in ready:
                question.flying = True
            yield Send(coordinator, self._fetch_request(ready), self._timeout_s, max_version=7, context=ready)

    def deadline(self) -> float | None:
        """When something is sent again or expires."""
        return self._deadline

    def events(self) -> list[Event]:
        """`PositionFailed` for partitions without a start."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """Answer the commit or the questions, or try again."""
        if isinstance(reply, OffsetCommitResponse):
            self._on_committed(send.context, reply, now)
        else:
            assert isinstance(reply, OffsetFetchResponse)
            self._on_fetched(send.context, reply, now)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """Find the coordinator again and repeat; committing the same offsets twice does no harm."""
        self._finder.invalidate(now)
        if isinstance(send.context, _Commit):
            if error.code() in _LOST:
                send.context.back_off(now)
            else:
                self._finish(send.context, error)
            return
        for question in send.context:
            if error.code() in _LOST:
                question.back_off(now)
            else:
                self._answer(question, error=error)

    def _wake_at(self, when: float) -> None:
        if when != _NEVER and (self._deadline is None or when < self._deadline):
            self._deadline = when

    def _expire(self, now: float) -> None:
        for commit in [c for c in self._commits if c.expires_at <= now and not c.flying]:
            self._finish(commit, KafkaError(KafkaError._TIMED_OUT, f"Commit to group {self._group_id!r} timed out: no "
                                            "coordinator took it; check that brokers are up"))
        for question in [q for q in self._questions if q.expires_at <= now and not q.flying]:
            self._answer(question, error=_expired(question))

    # Committed offsets

    def _claim(self) -> None:
        for state in self._subscription:
            if state.phase is Phase.COMMITTED and not state.busy:
                state.busy = True
                self.ask([TopicPartition(state.topic, state.partition)], _NEVER, self._start_of(state))

    def _start_of(self, state: PartitionState) -> Found:
        epoch = state.epoch

        def found(tp: TopicPartition) -> None:
            if state.epoch != epoch:
                return
            if tp.error is None and tp.offset >= 0:
                state.committed = tp.offset
                self._subscription.positioned(state, tp.offset)
            elif tp.error is not None:
                state.jump(Phase.FAILED)
                self._events.append(PositionFailed(state.topic, state.partition, tp.error))
            elif not self._subscription.reset_by_policy(state):
                text = (f"{state.topic}[{state.partition}]: group {self._group_id!r} has no committed offset and "
                        '"auto.offset.reset" is "error": seek() to an offset, or commit one')
                self._events.append(PositionFailed(
                    state.topic, state.partition, KafkaError(KafkaError._AUTO_OFFSET_RESET, text)))

        return found

    def _fetch_request(self, questions: list[_Question]) -> OffsetFetchRequest:
        topics: dict[str, OffsetFetchRequestTopic] = {}
        for question in questions:
            entry = topics.setdefault(
                question.topic, OffsetFetchRequestTopic(name=question.topic, partition_indexes=[]))
            if question.partition not in entry.partition_indexes:
                entry.partition_indexes.append(question.partition)
        return OffsetFetchRequest(
            group_id=self._group_id, topics=list(topics.values()), require_stable=self._require_stable)

    def _on_fetched(self, questions: list[_Question], reply: OffsetFetchResponse, now: float) -> None:
        if reply.error_code:
            self._on_group_error(questions, reply.error_code, now)
            return
        found = {(t.name, p.partition_index): p for t in reply.topics for p in t.partitions}
        for question in questions:
            data = found.get(question.key)
            if data is None or data.error_code in _MOVED or data.error_code in _PASSING:
                self._on_group_error([question], data.error_code if data else 0, now)
            elif data.error_code:
                self._answer(question, error=KafkaError(data.error_code))
            elif data.committed_offset < 0:
                self._answer(question)
            else:
                self._answer(question, data.committed_offset, data.committed_leader_epoch, data.metadata)

    def _on_group_error(self, questions: list[_Question], code: int, now: float) -> None:
        if code in _MOVED:
            self._finder.invalidate(now)
        for question in questions:
            if code in _MOVED or code in _PASSING or code == 0:
                question.back_off(now)
            else:
                self._answer(question, error=KafkaError(code))

    def _answer(self, question: _Question, offset: int = OFFSET_INVALID, leader_epoch: int = -1,
                metadata: str | None = None, error: KafkaError | None = None) -> None:
        if question in self._questions:
            self._questions.remove(question)
            question.found(_answer_of(question, offset, leader_epoch, metadata, error))

    # Commits

    def _commit_request(self, commit: _Commit) -> OffsetCommitRequest:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for tp in commit.partitions:
            entry = topics.setdefault(tp.topic, OffsetCommitRequestTopic(name=tp.topic, partitions=[]))
            entry.partitions.append(OffsetCommitRequestPartition(
                partition_index=tp.partition, committed_offset=tp.offset, committed_metadata=tp.metadata or "",
                committed_leader_epoch=-1 if tp.leader_epoch is None else tp.leader_epoch))
        member = self._membership
        return OffsetCommitRequest(
            group_id=self._group_id, generation_id_or_member_epoch=member.generation, member_id=member.member_id,
            group_instance_id=member.instance_id if member.generation >= 0 else None, topics=list(topics.values()))

    def _on_committed(self, commit: _Commit, reply: OffsetCommitResponse, now: float) -> None:
        codes = {(t.name, p.partition_index): p.error_code for t in reply.topics for p in t.partitions}
        failed = {code for code in codes.values() if code}
        if failed & (_MOVED | _PASSING) and now < commit.expires_at:
            if failed & _MOVED:
                self._finder.invalidate(now)
            commit.back_off(now)
            return
        for tp in commit.partitions:
            code = codes.get((tp.topic, tp.partition), KafkaError._NO_OFFSET)
            tp.error = KafkaError(code) if code else None
            state = self._subscription.get(tp.topic, tp.partition)
            if tp.error is None and state is not None:
                state.committed = tp.offset
        first = min(failed, default=0)
        self._finish(commit, KafkaError(first, _commit_text(first, self._group_id)) if first else None)

    def _finish(self, commit: _Commit, error: KafkaError | None) -> None:
        self._commits.remove(commit)
        commit.done(commit.partitions, error)


@slotted(eq=False)
class _Commit:
    partitions: list[TopicPartition]
    expires_at: float
    done: Callable[[list[TopicPartition], KafkaError | None], None]
    not_before: float = 0.0
    attempts: int = 0
    flying: bool = False

    def back_off(self, now: float) -> None:
        self.flying = False
        self.attempts += 1
        self.not_before = now + min(_BACKOFF_MAX_S, _BACKOFF_S * 2 ** min(self.attempts, 6))


def _answer_of(question: _Question, offset: int, leader_epoch: int, metadata: str | None,
               error: KafkaError | None) -> TopicPartition:
    tp = TopicPartition(question.topic, question.partition, offset, metadata,
                        None if leader_epoch < 0 else leader_epoch)
    tp.error = error
    return tp


def _copy(tp: TopicPartition) -> TopicPartition:
    return TopicPartition(tp.topic, tp.partition, tp.offset, tp.metadata, tp.leader_epoch)


def _expired(question: _Question) -> KafkaError:
    what = "first offset" if question.timestamp == EARLIEST else "offset"
    return KafkaError(KafkaError._TIMED_OUT, f"The {what} of {question.topic}[{question.partition}] was not found in "
                      "time: check that the topic exists and that brokers are up")


def _commit_text(code: int, group_id: str) -> str:
    if code in (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID):
        return (f"Commit refused: this consumer is no longer that member of group {group_id!r} (poll more often than "
                "max.poll.interval.ms); its partitions may belong to others already")
    return f"Commit to group {group_id!r} failed: {KafkaError(code)}"
