"""Commits offsets to the group's coordinator, and asks it for them.

This module must not know how members join a group; `machines.groups.ownership` says as whom a partition's offset is
committed. Who reads without a group does not load it.

Source: Java's `ConsumerCoordinator`. Read next: `machines.consumer.fetcher`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from types import MappingProxyType
from typing import Final
from uuid import UUID

from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.consumer.offset_error_actions import (
    OF_COMMITS,
    OF_CONNECTIONS,
    OF_FETCHES,
    OffsetErrorAction,
    offset_error_action,
)
from headrace.machines.consumer.offset_fetch import CommittedOffsetsQuestion
from headrace.machines.consumer.offsets import NEVER, Found, Lookup, Lookups, PositionFailed
from headrace.machines.consumer.pending_commit import Committed, PendingCommit
from headrace.machines.consumer.subscription import Key, PartitionState, PositionPhase, Subscription
from headrace.machines.groups.membership import MemberRefused
from headrace.machines.groups.ownership import Ownership
from headrace.machines.machine import Send, because
from headrace.types.records import ConsumerGroupMetadata, TopicPartition
from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from headrace.wire.schema import Struct

__all__ = ["GroupOffsets"]

_NO_ID: Final = UUID(int=0)
_LAST_COMMIT_BY_NAME: Final = 9
"""From version 10 on topics go by id, so that a deleted topic's offset cannot fall to a new one with its name."""

_REPLACED: Final = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.STALE_MEMBER_EPOCH,
                    KafkaError.FENCED_MEMBER_EPOCH)
_TOO_NEW: Final = (KafkaError.UNKNOWN_TOPIC_ID, KafkaError.UNKNOWN_TOPIC_OR_PART)
_BRIEFLY: Final = 2
"""So often a coordinator is asked again that may hear of a topic or partition later than its leader."""
_ASKS_ANOTHER: Final = (OffsetErrorAction.MOVED, OffsetErrorAction.RETRY)
_OF_MEMBERS: Final = {*_REPLACED, KafkaError.FENCED_INSTANCE_ID}
"""The member may have lost its partitions without knowing: its next heartbeat could be a minute away."""


class GroupOffsets(Lookups):
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

    def __init__(self, group_id: str, subscription: Subscription, finder: CoordinatorFinder, ownership: Ownership,
                 isolation_level: int, timeout_s: float, retries: RetryPolicy, *, is_planned: bool = False,
                 ) -> None:
        super().__init__(subscription, PositionPhase.COMMITTED, timeout_s, retries)
        self._group_id = group_id
        self._finder = finder
        self._ownership = ownership
        self._require_stable = isolation_level == 1
        self._is_planned = is_planned
        self.doubted: Set[str] = frozenset()
        self._commits: list[PendingCommit] = []

    def ask(self, partitions: Iterable[TopicPartition], expires_at: float, found: Found) -> None:
        """Ask for the committed offsets; `OFFSET_INVALID` where the group has none."""
        self._open.update((Lookup(tp.topic, tp.partition, 0, expires_at, found), None) for tp in partitions)

    def commit(self, partitions: Iterable[TopicPartition], expires_at: float, done: Committed,
               stored: Mapping[Key, int] = MappingProxyType({})) -> None:
        """Commit offsets, each as the member that read its partition.

        Args:
            partitions: with their offsets.
            expires_at: in monotonic seconds; fails then.
            done: told what became of it.
            stored: what was stored of a partition when this was asked for, where that is not what is committed.
        """
        copies = [TopicPartition(tp.topic, tp.partition, tp.offset, tp.metadata, tp.leader_epoch) for tp in partitions]
        by_member: dict[tuple[ConsumerGroupMetadata, bool], list[TopicPartition]] = {}
        for tp in copies:
            key = tp.topic, tp.partition  # what was given up is apart: it may be refused
            by_member.setdefault((self._ownership.reader_of(*key), self._ownership.holds(*key)), []).append(tp)
        if len(by_member) > 1:
            done = _all_of(len(by_member), copies, done)
        for (member, holds), theirs in by_member.items():
            added = PendingCommit(member, holds, theirs, self._tenures(theirs), stored, expires_at, done)
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

    @property
    def _is_under_way(self) -> bool:
        """Whether a commit is on the wire: those behind it wait for it."""
        return bool(self._commits) and self._commits[0].flying

    def poll(self, now: float) -> Iterator[Send]:
        """Commits first, in order and one request at a time; then one request for all lookups."""
        self._claim()
        self._deadline = None
        self._give_up_forgotten()
        self._give_up_released()
        if not (self._open or self._commits):
            return
        self._expire(now)
        coordinator = self._finder.node_id
        if coordinator is None:
            self._give_up_refused()
            self._wake_at(min([c.expires_at for c in self._commits if not self._is_under_way]
                              + [q.expires_at for q in self._open], default=NEVER))
            return
        if self._commits and not self._is_under_way:
            commit = self._commits[0]
            if commit.not_before > now:
                self._wake_at(commit.not_before)
            else:
                commit.flying = True
                request = self._commit_request(commit)
                by_id = all(topic.topic_id != _NO_ID for topic in request.topics)
                yield Send(coordinator, request, self._timeout_s, max_version=None if by_id else _LAST_COMMIT_BY_NAME,
                           context=commit)
        held = self._being_committed() if self._open else ()
        yield from self._fetches(coordinator, [
            q for q in self._open if not q.flying and q.not_before <= now and not (q.state and q.key in held)])
        for lookup in self._open:
            self._wake_at(lookup.next_step(now))

    def hurry(self, expires_at: float) -> None:
        """Who ends waits no longer for what is not committed yet."""
        for commit in self._commits:
            commit.expires_at = min(commit.expires_at, expires_at)

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
            self._make_up(now)
            if offset_error_action(OF_CONNECTIONS, error.code()) is OffsetErrorAction.RETRY:
                send.context.back_off(now, self._pauses, error)
            else:
                self._fail(send.context, error)
            return
        for lookup in send.context[0]:
            if offset_error_action(OF_CONNECTIONS, error.code()) is OffsetErrorAction.RETRY:
                lookup.back_off(now, self._pauses, error)
            else:
                self._refuse(lookup, error, now)

    def _wake_at(self, when: float) -> None:
        if when != NEVER and (self._deadline is None or when < self._deadline):
            self._deadline = when

    def _make_up(self, now: float, behind: int = 0) -> None:
        """A broker that stood still may have used up the time of what was on the wire, and of what waits behind it:
        they have some more, to ask whoever coordinates by now.
        """
        for commit in self._commits[behind:]:
            commit.make_up(now)

    def _expire(self, now: float) -> None:
        for commit in [c for c in self._commits if c.expires_at <= now and not self._is_under_way]:
            self._fail(commit, KafkaError(
                KafkaError._TIMED_OUT, f"Commit to group {self._group_id!r} timed out: no coordinator took it; check "
                f"that brokers are up{because(commit.last_error or self._finder.last_error)}"))
        for lookup in [q for q in self._open if q.expires_at <= now]:
            self._answer(lookup, error=lookup.expired(self._finder.last_error))

    def _give_up_refused(self) -> None:
        """Nobody has to wait for a group that refuses this user; positions do, for who gives rights gives them late."""
        refusal = self._finder.error
        if refusal is None:
            return
        for commit in [c for c in self._commits if not c.flying]:
            self._fail(commit, refusal)
        for lookup in [q for q in self._open if q.expires_at != NEVER]:
            self._answer(lookup, error=refusal)

    # Committed offsets

    def _being_committed(self) -> set[Key]:
        """Their starts wait: a partition that came back starts behind what was done with it before."""
        return {key for commit in self._commits for key in commit.keys}

    def _ask_start(self, state: PartitionState) -> None:
        def found(tp: TopicPartition) -> None:
            if tp.offset >= 0:
                state.committed = state.settled = tp.offset
                self._subscription.positioned(state, tp.offset, tp.leader_epoch)
            elif not self._subscription.reset_by_policy(state):
                text = (f"{state.topic}[{state.partition}]: group {self._group_id!r} has no committed offset and "
                        '"auto.offset.reset" is "error": seek() to an offset, or commit one')
                self._events.append(PositionFailed(
                    state.topic, state.partition, KafkaError(KafkaError._AUTO_OFFSET_RESET, text)))

        self._open_start(state, 0, found)

    def _fetches(self, coordinator: int, lookups: list[Lookup]) -> Iterator[Send]:
        """As the member that the application is. One that was dropped learns that only when its application reads
        again, and may ask for offsets before: then the coordinator is asked as by anybody. Starts wait for the member.
        """
        member = self._ownership.member
        for refused, asks in ((False, member), (True, ConsumerGroupMetadata(self._group_id))):
            theirs = [q for q in lookups if (q.refused_as == member and q.state is None) is refused]
            if theirs:
                yield self._fetch(coordinator, theirs, asks)

    def _fetch(self, coordinator: int, lookups: list[Lookup], member: ConsumerGroupMetadata) -> Send:
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

    def _on_fetched(self, lookups: list[Lookup], question: CommittedOffsetsQuestion, reply: OffsetFetchResponse,
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
        self, lookups: list[Lookup], question: CommittedOffsetsQuestion, code: int, now: float
    ) -> None:
        action = offset_error_action(OF_FETCHES, code)
        if action is OffsetErrorAction.MOVED:
            self._finder.invalidate(now)
        elif action is OffsetErrorAction.RENEW and question.member is not None:
            self._events.append(MemberRefused(question.member))
        for lookup in lookups:
            if action is OffsetErrorAction.FAIL:
                self._refuse(lookup, KafkaError(code), now)
            else:
                lookup.refused_as = question.member if action is OffsetErrorAction.RENEW else lookup.refused_as
                lookup.back_off(now, self._pauses, KafkaError(code) if code else None)

    # Commits

    def _commit_request(self, commit: PendingCommit) -> OffsetCommitRequest:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for tp in commit.partitions:
            if tp.topic in commit.forgotten:
                continue
            entry = topics.get(tp.topic)
            if entry is None:
                state = self._subscription.get(tp.topic, tp.partition)
                topic_id = state.topic_id if state is not None and state.topic_id is not None else _NO_ID
                entry = topics[tp.topic] = OffsetCommitRequestTopic(name=tp.topic, topic_id=topic_id, partitions=[])
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
                  and not (code in _TOO_NEW and topic in self.doubted)}
        if not failed.isdisjoint(_OF_MEMBERS):
            self._events.append(MemberRefused(commit.member))
        actions = {offset_error_action(OF_COMMITS, code) for code in failed}
        if OffsetErrorAction.RENEW in actions and not self._renew(commit):
            actions = {OffsetErrorAction.FAIL}
        if commit.attempts >= _BRIEFLY:
            actions -= {OffsetErrorAction.RETRY_BRIEFLY}
        self._make_up(now, behind=0 if not actions.isdisjoint(_ASKS_ANOTHER) else 1)
        if actions - {OffsetErrorAction.FAIL} and now < commit.expires_at:
            if OffsetErrorAction.MOVED in actions:
                self._finder.invalidate(now)
            commit.back_off(now, self._pauses, KafkaError(min(failed)))
            return
        for tp in commit.partitions:
            missing = KafkaError.UNKNOWN_TOPIC_OR_PART if tp.topic in commit.forgotten else KafkaError._NO_OFFSET
            code = codes.get((tp.topic, tp.partition), missing)
            tp.error = KafkaError(code) if code else None
            state = self._subscription.get(tp.topic, tp.partition)
            if tp.error is None and state is not None and tp.topic not in commit.forgotten:
                state.committed, state.settled = tp.offset, commit.settles(state.key)
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


def _commit_error(failed: TopicPartition, code: int, group_id: str) -> KafkaError:
    """The error of a commit of which a partition failed."""
    if code == KafkaError.FENCED_INSTANCE_ID:  # as `poll()` says it: this member never comes back
        return KafkaError(code, f"Commit refused: another consumer joined group {group_id!r} with the same "
                          "group.instance.id: each needs its own; close this one", fatal=True)
    if code in _REPLACED:
        return KafkaError(code, f"Commit refused: this consumer is no longer that member of group {group_id!r} (poll "
                          "more often than max.poll.interval.ms); its partitions may belong to others already")
    place = f"{failed.topic}[{failed.partition}]"
    return KafkaError(code, f"Commit to group {group_id!r} failed for {place}: {KafkaError(code)}")
