"""Looks up offsets at the leaders (`OffsetLookup`), and the group's at its coordinator, and commits (`GroupOffsets`).

Both serve two kinds of callers in the same way: partitions of the subscription that wait for a start, and lookups
of the application. Passing errors are retried with a growing pause until the lookup's deadline. This module must not
know how members join a group; `machines.groups.ownership` says as whom a partition's offset is committed.

Source: Java's `OffsetFetcher` and `ConsumerCoordinator`, KIP-79, KIP-320. Read next: `machines.consumer.fetcher`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Set
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.offset_error_actions import (
    OF_COMMITS,
    OF_CONNECTIONS,
    OF_FETCHES,
    OF_LEADERS,
    OffsetErrorAction,
    offset_error_action,
)
from headrace.machines.consumer.offset_fetch import CommittedOffsetsQuestion
from headrace.machines.consumer.subscription import EARLIEST, LATEST, Key, PartitionState, PositionPhase, Subscription
from headrace.machines.groups.ownership import Ownership
from headrace.machines.machine import Event, Send, because
from headrace.slotted import slotted
from headrace.types.records import OFFSET_INVALID, ConsumerGroupMetadata, TopicPartition, metadata_of
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from headrace.wire.schema import Struct

if TYPE_CHECKING:  # who reads without a group does not commit
    from headrace.machines.consumer.pending_commit import Committed, PendingCommit

__all__ = ["Found", "GroupOffsets", "OffsetLookup", "PositionFailed"]

_NEVER = float("inf")
_NO_ID = UUID(int=0)
_LAST_COMMIT_BY_NAME = 9
"""From version 10 on topics go by id, so that a deleted topic's offset cannot fall to a new one with its name."""

_REPLACED = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID,
             KafkaError.STALE_MEMBER_EPOCH, KafkaError.FENCED_MEMBER_EPOCH)

Found = Callable[[TopicPartition], None]
"""Called once per partition asked for: its offset, leader epoch and metadata, or its `error`."""


@slotted()
class PositionFailed(Event):
    """A partition got no start, or not yet; the application gets the error, and may seek."""

    topic: str
    partition: int
    error: KafkaError


@slotted(eq=False)
class _Lookup:
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

    def put_off(self, error: KafkaError, now: float, retries: RetryPolicy, events: list[Event]) -> bool:
        """Ask again for a start that is refused, and let the application hear once; False if nobody waits for one."""
        if self.state is None or self.state.epoch != self.epoch:
            return False
        if self.told != error:
            events.append(PositionFailed(self.topic, self.partition, error))
        self.told = error
        self.back_off(now, retries, error)  # for who gives rights gives them late
        return True

    @property
    def key(self) -> Key:
        return (self.topic, self.partition)

    def back_off(self, now: float, retries: RetryPolicy, error: KafkaError | None = None) -> None:
        self.flying = False
        self.attempts += 1
        self.last_error = error
        self.not_before = now + retries.wait_s(self.attempts)


class OffsetLookup:
    """Asks leaders for offsets by timestamp, first and last included, and gives starts to partitions in phase RESET.

    Args:
        subscription: partitions that may wait for a start.
        metadata: knows the partitions' leaders.
        isolation_level: 0 or 1; with 1 the last offset is the last stable one.
        timeout_s: seconds for one request.
        retries: how long to wait before something is asked again.
    """

    alone = idle = False  # others read what it decides

    def __init__(self, subscription: Subscription, metadata: Metadata, isolation_level: int, timeout_s: float,
                 retries: RetryPolicy) -> None:
        self._subscription = subscription
        self._metadata = metadata
        self._isolation_level = isolation_level
        self._timeout_s = timeout_s
        self._retries = retries
        self._open: dict[_Lookup, None] = {}  # in order; one of thousands is taken out as cheaply as one of two
        self._seen = -1
        self._deadline: float | None = None
        self._events: list[Event] = []

    def ask(self, topic: str, partition: int, timestamp: int, expires_at: float, found: Found) -> None:
        """Look up the first offset whose record is at `timestamp` (ms, or EARLIEST, LATEST) or later."""
        self._open[_Lookup(topic, partition, timestamp, expires_at, found)] = None

    def topics(self) -> set[str]:
        """The topics that are asked about."""
        return {lookup.topic for lookup in self._open}

    def poll(self, now: float) -> Iterator[Send]:
        """One request to each leader that is asked something."""
        if self._seen != self._subscription.version:
            self._seen = self._subscription.version
            self._claim()
        if not self._open:
            self._deadline = None
            return
        by_leader: dict[int, list[_Lookup]] = {}
        in_flight = {lookup.key for lookup in self._open if lookup.flying}
        for lookup in list(self._open):
            if lookup.expires_at <= now:  # also while a request is under way: a silent broker has no more time
                self._answer(lookup, error=_expired(lookup, self._metadata.last_error))
            elif lookup.flying or lookup.key in in_flight:
                continue  # a partition may be named once in a request: its other lookups wait for the reply
            elif (leader := self._metadata.leader(lookup.topic, lookup.partition)[0]) is None:
                self._look_for_leader(lookup, now)
            elif lookup.leaderless or lookup.not_before <= now:
                lookup.flying, lookup.leaderless = True, False
                in_flight.add(lookup.key)
                by_leader.setdefault(leader, []).append(lookup)
        self._deadline = min((at for lookup in self._open if (at := _next_step(lookup, now)) < _NEVER), default=None)
        for leader, lookups in by_leader.items():
            yield Send(leader, self._request(lookups), self._timeout_s, context=lookups)

    def _look_for_leader(self, lookup: _Lookup, now: float) -> None:
        """Have a leader looked for. An application that asks is told once a new picture knows no such partition."""
        metadata = self._metadata
        missing = None if lookup.state is not None else metadata.missing(lookup.topic, lookup.partition)
        if missing is not None and -1 < lookup.seen < metadata.updates:
            self._answer(lookup, error=missing)
        elif lookup.not_before <= now:
            lookup.seen = metadata.updates if lookup.seen < 0 else lookup.seen
            metadata.want_topics([lookup.topic])
            metadata.refresh(now)
            lookup.back_off(now, self._retries)
            lookup.leaderless = True

    def deadline(self) -> float | None:
        """When the first lookup is sent again."""
        return self._deadline

    def events(self) -> list[Event]:
        """`PositionFailed` for partitions without a start."""
        events, self._events = self._events, []
        return events

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
                    lookup.back_off(now, self._retries)
        for lookup in waiting.values():
            lookup.back_off(now, self._retries)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """Ask again, the leaders of that time, unless the error will not pass."""
        self._metadata.refresh(now)
        for lookup in send.context:
            if offset_error_action(OF_CONNECTIONS, error.code()) is OffsetErrorAction.RETRY:
                lookup.back_off(now, self._retries, error)
            else:
                self._refuse(lookup, error, now)

    def _refuse(self, lookup: _Lookup, error: KafkaError, now: float) -> None:
        if not lookup.put_off(error, now, self._retries, self._events):
            self._answer(lookup, error=error)

    def _claim(self) -> None:
        """Take up the subscription's partitions that wait for the end or the beginning of the log."""
        for state in self._subscription:
            if state.phase is PositionPhase.RESET and not state.busy:
                state.busy = True
                self._ask_start(state, state.reset_timestamp)

    def _ask_start(self, state: PartitionState, timestamp: int, end: int | None = None) -> None:
        """Look up where a partition starts; `end` is known once the first offset is asked for, for its last so many."""
        lookup = _Lookup(
            state.topic, state.partition, timestamp, _NEVER, self._start_of(state, timestamp, end), state=state,
            epoch=state.epoch)
        self._open[lookup] = None

    def _start_of(self, state: PartitionState, timestamp: int, end: int | None) -> Found:
        epoch = state.epoch

        def found(tp: TopicPartition) -> None:
            if state.epoch != epoch:
                return
            if timestamp >= 0 and tp.offset < 0:  # no record is that young
                self._ask_start(state, LATEST)
            elif state.tail and end is None:
                self._ask_start(state, EARLIEST, tp.offset)
            else:
                self._subscription.positioned(state, tp.offset if end is None else max(tp.offset, end - state.tail))

        return found

    def _request(self, lookups: list[_Lookup]) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        for lookup in lookups:
            entry = topics.setdefault(lookup.topic, ListOffsetsTopic(name=lookup.topic, partitions=[]))
            _, epoch = self._metadata.leader(lookup.topic, lookup.partition)
            entry.partitions.append(ListOffsetsPartition(
                partition_index=lookup.partition, current_leader_epoch=epoch, timestamp=lookup.timestamp))
        return ListOffsetsRequest(replica_id=-1, isolation_level=self._isolation_level, topics=list(topics.values()),
                                  timeout_ms=int(self._timeout_s * 1000))

    def _answer(self, lookup: _Lookup, offset: int = OFFSET_INVALID, leader_epoch: int = -1,
                error: KafkaError | None = None) -> None:
        if lookup in self._open:
            del self._open[lookup]
            lookup.found(_answer_of(lookup, offset, leader_epoch, None, error))


class GroupOffsets:
    """Commits offsets to the group's coordinator and asks it for them; gives starts to partitions in phase COMMITTED.

    Args:
        group_id: the group.
        subscription: partitions that may wait for a start.
        finder: where the coordinator is.
        ownership: as which member of the group a partition's offset is committed.
        isolation_level: with 1, offsets of open transactions are waited for (KIP-447).
        timeout_s: seconds for one request.
        retries: how long to wait before something is asked again.
        is_planned: the coordinator plans for the group (KIP-848): who asks for offsets names itself, and what was given
            up is not committed any more.

    Attributes:
        doubted: topics that some brokers do not know any more. If the coordinator does not either, it is believed.
    """

    alone = idle = False  # others read what it decides

    def __init__(self, group_id: str, subscription: Subscription, finder: CoordinatorFinder, ownership: Ownership,
                 isolation_level: int, timeout_s: float, retries: RetryPolicy, *, is_planned: bool = False,
                 ) -> None:
        self._group_id = group_id
        self._subscription = subscription
        self._finder = finder
        self._ownership = ownership
        self._require_stable = isolation_level == 1
        self._timeout_s = timeout_s
        self._retries = retries
        self._is_planned = is_planned
        self.doubted: Set[str] = frozenset()
        self._lookups: dict[_Lookup, None] = {}
        self._commits: list[PendingCommit] = []
        self._seen = -1
        self._deadline: float | None = None
        self._events: list[Event] = []

    def ask(self, partitions: Iterable[TopicPartition], expires_at: float, found: Found) -> None:
        """Ask for the committed offsets; `OFFSET_INVALID` where the group has none."""
        self._lookups.update((_Lookup(tp.topic, tp.partition, 0, expires_at, found), None) for tp in partitions)

    def commit(self, partitions: Iterable[TopicPartition], expires_at: float, done: Committed) -> None:
        """Commit offsets, each as the member that read its partition."""
        from headrace.machines.consumer.pending_commit import PendingCommit

        copies = [TopicPartition(tp.topic, tp.partition, tp.offset, tp.metadata, tp.leader_epoch) for tp in partitions]
        by_member: dict[tuple[ConsumerGroupMetadata, bool], list[TopicPartition]] = {}
        for tp in copies:
            key = tp.topic, tp.partition  # what was given up is apart: it may be refused
            by_member.setdefault((self._ownership.reader_of(*key), self._ownership.holds(*key)), []).append(tp)
        if len(by_member) > 1:
            done = _all_of(len(by_member), copies, done)
        for (member, holds), theirs in by_member.items():
            added = PendingCommit(member, holds, theirs, self._tenures(theirs), expires_at, done)
            if not (self._commits and self._commits[-1].join(added)):
                self._commits.append(added)

    def forget(self, topics: Collection[str]) -> None:
        """These topics are gone, or others have their names by now: what is not committed to them yet will not be."""
        for commit in self._commits:
            commit.forgotten |= {topic for topic, _ in commit.keys if topic in topics}

    @property
    def is_committing(self) -> bool:
        """Whether a commit is not answered yet."""
        return bool(self._commits)

    def poll(self, now: float) -> Iterator[Send]:
        """Commits first, in order and one request at a time; then one request for all lookups."""
        if self._seen != self._subscription.version:
            self._seen = self._subscription.version
            self._claim()
        self._deadline = None
        self._give_up_forgotten()
        self._give_up_released()
        if not (self._lookups or self._commits):
            return
        self._expire(now)
        coordinator = self._finder.node_id
        if coordinator is None:
            self._give_up_refused()
            self._wake_at(min([c.expires_at for c in self._commits] + [q.expires_at for q in self._lookups],
                              default=_NEVER))
            return
        if self._commits and not self._commits[0].flying:
            commit = self._commits[0]
            if commit.not_before > now:
                self._wake_at(commit.not_before)
            else:
                commit.flying = True
                request = self._commit_request(commit)
                by_id = all(topic.topic_id != _NO_ID for topic in request.topics)
                yield Send(coordinator, request, self._timeout_s, max_version=None if by_id else _LAST_COMMIT_BY_NAME,
                           context=commit)
        held = self._being_committed() if self._lookups else ()
        yield from self._fetches(coordinator, [
            q for q in self._lookups if not q.flying and q.not_before <= now and not (q.state and q.key in held)])
        for lookup in self._lookups:
            self._wake_at(_next_step(lookup, now))

    def deadline(self) -> float | None:
        """When something is sent again or expires."""
        return self._deadline

    def events(self) -> list[Event]:
        """`PositionFailed` for partitions without a start."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """Answer the commit or the lookups, or try again."""
        if isinstance(reply, OffsetCommitResponse):
            assert isinstance(send.request, OffsetCommitRequest)
            self._on_committed(send.context, send.request, reply, now)
        else:
            assert isinstance(reply, OffsetFetchResponse)
            lookups, question = send.context
            self._on_fetched(lookups, question, reply, now)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """Find the coordinator again and repeat; committing the same offsets twice does no harm."""
        self._finder.invalidate(now)
        if isinstance(send.request, OffsetCommitRequest):
            if offset_error_action(OF_CONNECTIONS, error.code()) is OffsetErrorAction.RETRY:
                send.context.back_off(now, self._retries, error)
            else:
                self._fail(send.context, error)
            return
        for lookup in send.context[0]:
            if offset_error_action(OF_CONNECTIONS, error.code()) is OffsetErrorAction.RETRY:
                lookup.back_off(now, self._retries, error)
            else:
                self._refuse(lookup, error, now)

    def _wake_at(self, when: float) -> None:
        if when != _NEVER and (self._deadline is None or when < self._deadline):
            self._deadline = when

    def _expire(self, now: float) -> None:
        for commit in [c for c in self._commits if c.expires_at <= now and not c.flying]:
            self._fail(commit, KafkaError(
                KafkaError._TIMED_OUT, f"Commit to group {self._group_id!r} timed out: no coordinator took it; check "
                f"that brokers are up{because(commit.last_error or self._finder.last_error)}"))
        for lookup in [q for q in self._lookups if q.expires_at <= now]:
            self._answer(lookup, error=_expired(lookup, self._finder.last_error))

    def _give_up_refused(self) -> None:
        """Nobody has to wait for a group that refuses this user; positions do, for who gives rights gives them late."""
        refusal = self._finder.error
        if refusal is None:
            return
        for commit in [c for c in self._commits if not c.flying]:
            self._fail(commit, refusal)
        for lookup in [q for q in self._lookups if q.expires_at != _NEVER]:
            self._answer(lookup, error=refusal)

    # Committed offsets

    def _claim(self) -> None:
        for state in self._subscription:
            if state.phase is PositionPhase.COMMITTED and not state.busy:
                state.busy = True
                self._lookups[_Lookup(
                    state.topic, state.partition, 0, _NEVER, self._start_of(state), state=state,
                    epoch=state.epoch)] = None

    def _being_committed(self) -> set[Key]:
        """Their starts wait: a partition that came back starts behind what was done with it before."""
        return {key for commit in self._commits for key in commit.keys}

    def _start_of(self, state: PartitionState) -> Found:
        epoch = state.epoch

        def found(tp: TopicPartition) -> None:
            if state.epoch != epoch:
                return
            if tp.error is None and tp.offset >= 0:
                state.committed = tp.offset
                self._subscription.positioned(state, tp.offset, tp.leader_epoch)
            elif not self._subscription.reset_by_policy(state):
                text = (f"{state.topic}[{state.partition}]: group {self._group_id!r} has no committed offset and "
                        '"auto.offset.reset" is "error": seek() to an offset, or commit one')
                self._events.append(PositionFailed(
                    state.topic, state.partition, KafkaError(KafkaError._AUTO_OFFSET_RESET, text)))

        return found

    def _fetches(self, coordinator: int, lookups: list[_Lookup]) -> Iterator[Send]:
        """As the member that the application is. One that was dropped learns that only when its application reads
        again, and may ask for offsets before: then the coordinator is asked as by anybody. Starts wait for the member.
        """
        member = self._ownership.member
        for refused, asks in ((False, member), (True, ConsumerGroupMetadata(self._group_id))):
            theirs = [q for q in lookups if (q.refused_as == member and q.state is None) is refused]
            if theirs:
                yield self._fetch(coordinator, theirs, asks)

    def _fetch(self, coordinator: int, lookups: list[_Lookup], member: ConsumerGroupMetadata) -> Send:
        numbers: dict[str, dict[int, None]] = {}  # each partition once
        ids: dict[str, UUID] = {}
        for lookup in lookups:
            lookup.flying = True
            numbers.setdefault(lookup.topic, {})[lookup.partition] = None
            state = self._subscription.get(*lookup.key)
            if state is not None and state.topic_id is not None:
                ids[lookup.topic] = state.topic_id
        topics = {topic: list(each) for topic, each in numbers.items()}
        question = CommittedOffsetsQuestion(topics, ids, member if self._is_planned else None)
        return Send(coordinator, question.request(self._group_id, require_stable=self._require_stable),
                    self._timeout_s, question.max_version, context=(lookups, question),
                    for_version=question.for_version)

    def _on_fetched(self, lookups: list[_Lookup], question: CommittedOffsetsQuestion, reply: OffsetFetchResponse,
                    now: float) -> None:
        code, found = question.answers(reply)
        if code:
            self._on_group_error(lookups, question, code, now)
            return
        for lookup in lookups:
            data = found.get(lookup.key)
            if data is None or data.error_code:
                self._on_group_error([lookup], question, data.error_code if data else KafkaError.NO_ERROR, now)
            elif data.committed_offset < 0:
                self._answer(lookup)
            else:
                self._answer(lookup, data.committed_offset, data.committed_leader_epoch, data.metadata)

    def _on_group_error(
        self, lookups: list[_Lookup], question: CommittedOffsetsQuestion, code: int, now: float
    ) -> None:
        action = offset_error_action(OF_FETCHES, code)
        if action is OffsetErrorAction.MOVED:
            self._finder.invalidate(now)
        for lookup in lookups:
            if action is OffsetErrorAction.FAIL:
                self._refuse(lookup, KafkaError(code), now)
            else:
                lookup.refused_as = question.member if action is OffsetErrorAction.RENEW else lookup.refused_as
                lookup.back_off(now, self._retries)

    def _refuse(self, lookup: _Lookup, error: KafkaError, now: float) -> None:
        if not lookup.put_off(error, now, self._retries, self._events):
            self._answer(lookup, error=error)

    def _answer(self, lookup: _Lookup, offset: int = OFFSET_INVALID, leader_epoch: int = -1,
                metadata: str | None = None, error: KafkaError | None = None) -> None:
        if lookup in self._lookups:
            del self._lookups[lookup]
            lookup.found(_answer_of(lookup, offset, leader_epoch, metadata, error))

    # Commits

    def _commit_request(self, commit: PendingCommit) -> OffsetCommitRequest:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for tp in commit.partitions:
            if tp.topic in commit.forgotten:
                continue
            state = self._subscription.get(tp.topic, tp.partition)
            topic_id = state.topic_id if state is not None and state.topic_id is not None else _NO_ID
            entry = topics.setdefault(
                tp.topic, OffsetCommitRequestTopic(name=tp.topic, topic_id=topic_id, partitions=[]))
            entry.partitions.append(OffsetCommitRequestPartition(
                partition_index=tp.partition, committed_offset=tp.offset, committed_metadata=tp.metadata or "",
                committed_leader_epoch=-1 if tp.leader_epoch is None else tp.leader_epoch))
        member = commit.member
        return OffsetCommitRequest(
            group_id=self._group_id, generation_id_or_member_epoch=member.generation, member_id=member.member_id,
            group_instance_id=member.instance_id if member.generation >= 0 else None, topics=list(topics.values()))

    def _on_committed(
        self, commit: PendingCommit, request: OffsetCommitRequest, reply: OffsetCommitResponse, now: float
    ) -> None:
        names = {topic.topic_id: topic.name for topic in request.topics}
        codes = {(t.name or names.get(t.topic_id, ""), p.partition_index): p.error_code
                 for t in reply.topics for p in t.partitions}
        failed = {code for (topic, _), code in codes.items() if code and topic not in commit.forgotten
                  and not (code == KafkaError.UNKNOWN_TOPIC_ID and topic in self.doubted)}
        actions = {offset_error_action(OF_COMMITS, code) for code in failed}
        if OffsetErrorAction.RENEW in actions and not self._renew(commit):
            actions = {OffsetErrorAction.FAIL}
        if actions - {OffsetErrorAction.FAIL} and now < commit.expires_at:
            if OffsetErrorAction.MOVED in actions:
                self._finder.invalidate(now)
            commit.back_off(now, self._retries)
            return
        for tp in commit.partitions:
            missing = KafkaError.UNKNOWN_TOPIC_OR_PART if tp.topic in commit.forgotten else KafkaError._NO_OFFSET
            code = codes.get((tp.topic, tp.partition), missing)
            tp.error = KafkaError(code) if code else None
            state = self._subscription.get(tp.topic, tp.partition)
            if tp.error is None and state is not None and tp.topic not in commit.forgotten:
                state.committed = tp.offset
        failures = [(tp, tp.error.code()) for tp in commit.partitions
                    if tp.error is not None and tp.topic not in commit.forgotten]
        self._finish(commit, _commit_error(*failures[0], self._group_id) if failures else None)

    def _renew(self, commit: PendingCommit) -> bool:
        """Go on as the member that the application is by now, unless it gave one of the partitions up meanwhile.

        One that came back since counts as given up: another may have read it in between, and committed. In an eager
        group each rebalance gives all of them up.
        """
        commit.member = self._ownership.member
        return (self._ownership.goes_on and commit.member.generation >= 0
                and commit.tenures == self._tenures(commit.partitions)
                and all(self._ownership.holds(tp.topic, tp.partition) for tp in commit.partitions))

    def _tenures(self, partitions: Iterable[TopicPartition]) -> list[tuple[int, int]]:
        return [self._ownership.tenure(tp.topic, tp.partition) for tp in partitions]

    def _fail(self, commit: PendingCommit, error: KafkaError) -> None:
        for tp in commit.partitions:
            tp.error = error
        self._finish(commit, error)

    def _give_up_forgotten(self) -> None:
        for commit in [commit for commit in self._commits if commit.all_forgotten and not commit.flying]:
            self._fail(commit, KafkaError(
                KafkaError.UNKNOWN_TOPIC_OR_PART, f"Commit to group {self._group_id!r} failed: the topics are gone"))

    def _give_up_released(self) -> None:
        """A coordinator that plans takes a partition from a member without a new epoch while it takes more from it.
        The epoch alone would let in what sets the next owner back.
        """
        for commit in [*self._commits] if self._is_planned else ():
            gone = [tp for tp in commit.partitions if self._ownership.gave_up(commit.member, tp.topic, tp.partition)]
            if gone and not commit.flying:
                self._fail(commit, _commit_error(gone[0], KafkaError.STALE_MEMBER_EPOCH, self._group_id))

    def _finish(self, commit: PendingCommit, error: KafkaError | None) -> None:
        self._commits.remove(commit)
        commit.finish(error)


def _all_of(count: int, partitions: list[TopicPartition], done: Committed) -> Committed:
    """Calls `done` once, when all `count` parts of a commit have ended, with the first error."""
    errors: list[KafkaError | None] = []

    def part_done(_: list[TopicPartition], error: KafkaError | None) -> None:
        errors.append(error)
        if len(errors) == count:
            done(partitions, next((error for error in errors if error is not None), None))

    return part_done


def _answer_of(lookup: _Lookup, offset: int, leader_epoch: int, metadata: str | None,
               error: KafkaError | None) -> TopicPartition:
    tp = TopicPartition(lookup.topic, lookup.partition, offset, metadata_of(metadata),
                        None if leader_epoch < 0 else leader_epoch)
    tp.error = error
    return tp


def _next_step(lookup: _Lookup, now: float) -> float:
    """When time alone changes something for a lookup."""
    waits = lookup.not_before > now and not lookup.flying
    return min(lookup.not_before, lookup.expires_at) if waits else lookup.expires_at


def _expired(lookup: _Lookup, last_error: KafkaError | None) -> KafkaError:
    what = "first offset" if lookup.timestamp == EARLIEST else "offset"
    why = because(lookup.last_error or last_error)
    return KafkaError(KafkaError._TIMED_OUT, f"The {what} of {lookup.topic}[{lookup.partition}] was not found in "
                      f"time: check that the topic exists and that brokers are up{why}")


def _commit_error(failed: TopicPartition, code: int, group_id: str) -> KafkaError:
    """The error of a commit of which a partition failed."""
    if code in _REPLACED:
        return KafkaError(code, f"Commit refused: this consumer is no longer that member of group {group_id!r} (poll "
                          "more often than max.poll.interval.ms); its partitions may belong to others already")
    place = f"{failed.topic}[{failed.partition}]"
    return KafkaError(code, f"Commit to group {group_id!r} failed for {place}: {KafkaError(code)}")
