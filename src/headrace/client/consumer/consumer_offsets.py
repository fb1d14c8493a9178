"""A consumer's offsets as its application knows them: positions, commits by hand and by the clock, lookups.

Coroutines run on the loop's thread; `positions`, `cached_watermarks`, `store` and `group_member` belong to the
application's. `machines.groups.ownership` decides as which member a partition's offset is committed. It must not know
callbacks or rebalances.

Read next: `machines.consumer.group_offsets`.
"""

from __future__ import annotations

import asyncio
import operator
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from headrace.arguments import instance_of, list_of
from headrace.client.consumer.consumer_machines import CONSUMER_CLOSED, ConsumerMachines
from headrace.client.waits import seconds
from headrace.errors import ClientClosedError, CommitError, KafkaError, KafkaException
from headrace.machines.consumer.subscription import EARLIEST, LATEST, Key, PartitionState
from headrace.records import Message
from headrace.types.records import OFFSET_END, OFFSET_INVALID, ConsumerGroupMetadata, TopicPartition

__all__ = ["ConsumerOffsets", "Partitions", "by_place"]

Partitions = list[TopicPartition]

by_place = operator.attrgetter("topic", "partition")
"""The order of partitions: as they sort by themselves, at less cost."""

_LAST_COMMIT_TIMEOUT_S = 5.0
_REBALANCE_COMMIT_TIMEOUT_S = 30.0
"""A coordinator that died is replaced after 10 to 20; until then no rebalance goes on that could miss this member."""
_COMMIT_TIMEOUT_S = 60.0
_NOTHING_TO_COMMIT = KafkaError(KafkaError._NO_OFFSET, "Commit failed: no new offset is stored")


class _Commit(NamedTuple):
    """One commit.

    Args:
        offsets: what has an offset.
        given: all that was given, or is assigned.
        stored: what is stored of each partition by now, where that is not what is committed.
    """

    offsets: Partitions
    given: Partitions
    stored: Mapping[Key, int] = MappingProxyType({})


class ConsumerOffsets:
    """The application's calls about offsets.

    Args:
        machines: those of the consumer.
    """

    def __init__(self, machines: ConsumerMachines) -> None:
        self._machines = machines
        self._config, self._subscription = machines.config, machines.subscription
        self._timer: asyncio.TimerHandle | None = None
        self._asked: deque[_Commit] = deque()  # commits that the loop has not begun yet
        self._is_told = False  # the loop, of these
        self._begun: dict[object, Partitions] = {}  # commits that nobody waits for, until `on_commit` is due
        self._settled: asyncio.Future[None] | None = None

    # The application's thread

    def group_member(self) -> ConsumerGroupMetadata | None:
        """The member that this consumer was when the application last read; None without a "group.id".

        A rebalance may have come since, in the background. Offsets of what was read before it must not pass as those
        of the new generation: another consumer may have the partitions by now (KIP-447).
        """
        self._machines.check_open()
        return None if self._machines.group is None else self._machines.ownership.member

    def positions(self, partitions: Partitions) -> Partitions:
        """The offset of the next record of each partition."""
        self._machines.check_open()
        found = []
        for tp in list_of(TopicPartition, partitions, "partitions"):
            state = self._subscription.get(tp.topic, tp.partition)
            offset, epoch = (OFFSET_INVALID, -1) if state is None else (state.position, state.leader_epoch)
            found.append(TopicPartition(tp.topic, tp.partition, offset, tp.metadata, epoch))
        return found

    def store(self, message: Message | None, offsets: Partitions | None) -> None:
        """Choose what the next commit covers. Partitions that are gone do not keep the others from being stored."""
        self._machines.check_open()
        given = _offsets_of(message, offsets, "store")
        if given is None:
            raise ValueError("expected either message or offsets")
        if self._config["enable.auto.offset.store"]:
            raise KafkaException(KafkaError(
                KafkaError._INVALID_ARG, 'store_offsets() needs "enable.auto.offset.store": false'))
        refusals: list[KafkaException] = []
        for tp in given:
            try:
                state = self._subscription.require(tp.topic, tp.partition)
            except KafkaException as refusal:
                tp.error = refusal.error
                refusals.append(refusal)
            else:
                tp.error, state.stored_metadata, state.stored = None, tp.metadata, tp.offset
                state.stored_epoch = tp.leader_epoch
        if refusals and len(refusals) == len(given):
            raise refusals[-1]

    def cached_watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """What `watermarks` gives, as of the last fetch; `OFFSET_INVALID` where nothing is known."""
        self._machines.check_open()
        instance_of(TopicPartition, partition, "partition")
        state = self._subscription.get(partition.topic, partition.partition)
        if state is None or state.high_watermark < 0:
            return OFFSET_INVALID, OFFSET_INVALID
        return state.log_start, state.high_watermark

    # Commits

    def ask_to_commit(self, message: Message | None, offsets: Partitions | None) -> bool:
        """Have the offset after a message, or offsets, or what is stored committed; `on_commit` is called then.

        From the application's thread: who commits behind each record would else wait for the loop each time.

        Returns:
            Whether `begin_commits` is to be called on the loop.
        """
        commit = self._to_commit(message, offsets)
        if not commit.offsets:
            self._on_committed(commit.given or _of_each([*self._subscription], []), _NOTHING_TO_COMMIT)
            return False
        self._asked.append(commit)
        if self._is_told:
            return False
        self._is_told = True
        return True

    def begin_commits(self) -> None:
        """Begin what was asked for."""
        self._is_told = False  # first: who asks from here on tells it again
        while self._asked:
            self._begin_commit(self._asked.popleft())

    async def commit(self, message: Message | None, offsets: Partitions | None) -> Partitions:
        """Commit the offset after a message, or offsets, or what is stored, and wait for it."""
        commit = self._to_commit(message, offsets)
        if not commit.offsets:
            raise KafkaException(_NOTHING_TO_COMMIT)
        return await self._commit_and_wait(commit)

    def _to_commit(self, message: Message | None, offsets: Partitions | None) -> _Commit:
        """What was given, or is stored: copies in order, for the application may change them."""
        self._machines.check_open()
        self._machines.require_group()
        given = _offsets_of(message, offsets, "commit")
        if given is None:
            return self._stored()
        given = [TopicPartition(tp.topic, tp.partition, tp.offset, tp.metadata, tp.leader_epoch) for tp in given]
        given.sort(key=by_place)
        stored = {state.key: state.stored for tp in given
                  if (state := self._subscription.get(tp.topic, tp.partition)) is not None}
        return _Commit([tp for tp in given if tp.offset >= 0], given, stored)

    def _stored(self) -> _Commit:
        """What is stored and not committed yet; if anything is, also all that is assigned, others `OFFSET_INVALID`."""
        assigned = [*self._subscription]  # once: it may change meanwhile
        stored = sorted(self._subscription.to_commit(assigned), key=by_place)
        return _Commit(stored, _of_each(assigned, stored) if 0 < len(stored) < len(assigned) else stored)

    def _begin_commit(self, commit: _Commit) -> None:
        """Commit those of what was given that have offsets; `on_commit` is called with the result."""
        begun = object()
        self._begun[begun] = given = commit.given

        def on_done(committed: Partitions, error: KafkaError | None) -> None:
            if self._begun.pop(begun, None) is not None:
                self._on_committed(_all_given(given, committed), error)
            if not self._begun and self._settled is not None:
                _resolve(self._settled, None)

        self._machines.group_offsets.commit(
            commit.offsets, self._machines.clock() + _COMMIT_TIMEOUT_S, on_done, commit.stored)
        self._machines.wake()

    async def _commit_and_wait(self, commit: _Commit, timeout_s: float = _COMMIT_TIMEOUT_S) -> Partitions:
        """Commit those of what was given that have offsets; raises `CommitError` when one was not committed."""
        outcome: asyncio.Future[tuple[Partitions, KafkaError | None]] = self._machines.client.future()
        self._machines.group_offsets.commit(
            commit.offsets, self._machines.clock() + timeout_s,
            lambda done, error: _resolve(outcome, (done, error)), commit.stored)
        self._machines.wake()
        done, error = await outcome
        partitions = _all_given(commit.given, done)
        if error == KafkaError._DESTROY:
            raise _failure(error)
        if error is not None:
            raise CommitError(error, partitions)
        return partitions

    async def settle(self, *, leaves: bool) -> None:
        """Wait, for a while, until all that was begun is committed, or will not be. What is on the wire is answered."""
        self.begin_commits()
        if self._begun and not self._machines.client.closed:
            self._settled = self._machines.client.future()
            self._machines.group_offsets.hurry(self._machines.clock() + _patience_s(leaves))
            self._machines.wake()
            await self._settled
            self._settled = None

    def end(self) -> None:
        """The client is closed: what is not committed by now will not be, and `on_commit` is told."""
        left = [*self._begun.values(), *(commit.given for commit in self._asked)]
        self._begun = {}
        self._asked.clear()
        for given in left:
            self._on_committed(given, KafkaError(KafkaError._DESTROY, "Commit failed: the consumer was closed"))

    async def commit_stored(self, *, leaves: bool) -> None:
        """Commit before partitions are given up; a failure, which `on_commit` gets as well, stops nothing.

        Args:
            leaves: the group is left. In a rebalance there is more time: what is not committed is read twice.
        """
        machines = self._machines
        if machines.group is None or not self._config["enable.auto.commit"] or machines.client.closed:
            return  # closed: in the callback in front of which this stands
        stored = self._stored()
        if stored.offsets:
            try:
                self._on_committed(await self._commit_and_wait(stored, _patience_s(leaves)), None)
            except KafkaException as failure:
                self._on_committed(stored.given, failure.error)

    def commit_given_up(self, stored: Partitions) -> None:
        """Commit what was stored of partitions that the application gives up, if that is done by itself.

        Nobody waits for it but a rebalance, and who leaves the group.
        """
        if stored and self._machines.group is not None and self._config["enable.auto.commit"]:
            self._begin_commit(_Commit(stored, stored))

    def start_auto_commit(self) -> None:
        """Commit what is stored after "auto.commit.interval.ms", and so on, if that is asked for."""
        interval_s = self._config.seconds("auto.commit.interval.ms") if self._config["enable.auto.commit"] else 0.0
        if self._timer is None and self._machines.group is not None and interval_s:
            self._timer = asyncio.get_running_loop().call_later(interval_s, self._auto_commit)

    def stop_auto_commit(self) -> None:
        """Commit nothing by the clock any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _auto_commit(self) -> None:
        self._timer = None
        group, stored = self._machines.group, self._stored()
        # While a rebalance waits for the application the group would refuse what was read before it.
        met = group is not None and group.identity.generation == self._machines.ownership.member.generation
        if stored.offsets and met and not self._machines.group_offsets.is_committing:
            self._begin_commit(stored)
        self.start_auto_commit()

    def _on_committed(self, partitions: Partitions, error: KafkaError | None) -> None:
        on_commit = self._config["on_commit"]
        if on_commit is not None:
            self._machines.notify(on_commit, error, partitions)

    # Lookups

    async def committed(self, partitions: Partitions, timeout: float | None) -> Partitions:
        """What the group has for these partitions."""
        self._machines.check_open()
        partitions = list_of(TopicPartition, partitions, "partitions")
        self._machines.require_group()
        ask = self._machines.group_offsets.ask
        return _some_found(await self._ask(
            partitions, timeout, lambda tp, expires_at, found: ask([tp], expires_at, found)))

    async def watermarks(self, partition: TopicPartition, timeout: float | None) -> tuple[int, int]:
        """The first offset of a partition, and the one after its last record."""
        self._machines.check_open()
        instance_of(TopicPartition, partition, "partition")
        ends = [TopicPartition(partition.topic, partition.partition, at) for at in (EARLIEST, LATEST)]
        low, high = await self._look_up(ends, timeout)
        for found in (low, high):
            if found.error is not None:
                raise _failure(found.error)
        return low.offset, high.offset

    async def at_times(self, partitions: Partitions, timeout: float | None) -> Partitions:
        """The first offset at or after the time (ms) in each partition's `offset`; `OFFSET_END` when none is."""
        self._machines.check_open()
        if partitions == []:
            raise KafkaException(KafkaError(
                KafkaError._INVALID_ARG, "offsets_for_times() takes at least one partition"))
        found = _some_found(await self._look_up(partitions, timeout))
        for tp, asked in zip(found, partitions, strict=True):
            if tp.error is not None:
                tp.offset = asked.offset
            elif tp.offset < 0:
                tp.offset = OFFSET_END
        return found

    async def _look_up(self, partitions: Partitions, timeout: float | None) -> Partitions:
        """What the leaders have at the times in `offset`, EARLIEST and LATEST included."""
        self._machines.check_open()
        partitions = list_of(TopicPartition, partitions, "partitions")
        self._machines.client.metadata.want_topics(sorted({tp.topic for tp in partitions}))
        ask = self._machines.lookup.ask
        try:
            return await self._ask(partitions, timeout, lambda tp, expires_at, found: ask(
                tp.topic, tp.partition, tp.offset, expires_at, found))
        finally:
            self._machines.want_topics()

    async def _ask(
        self, partitions: Partitions, timeout: float | None,
        ask: Callable[[TopicPartition, float, Callable[[TopicPartition], None]], None],
    ) -> Partitions:
        expires_at = self._machines.clock() + seconds(timeout)
        if not partitions:
            return []
        answered: asyncio.Future[None] = self._machines.client.future()  # one for all: a future costs more than a look
        answers: dict[int, TopicPartition] = {}

        def answer(place: int, found: TopicPartition) -> None:
            answers[place] = found
            if len(answers) == len(partitions):
                _resolve(answered, None)

        for place, tp in enumerate(partitions):
            ask(tp, expires_at, partial(answer, place))
        self._machines.wake()
        await answered
        return [answers[place] for place in range(len(partitions))]


def _patience_s(leaves: bool) -> float:
    return _LAST_COMMIT_TIMEOUT_S if leaves else _REBALANCE_COMMIT_TIMEOUT_S


def _resolve(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _of_each(assigned: Iterable[PartitionState], stored: Partitions) -> Partitions:
    """What is stored of each assigned partition, in order; `OFFSET_INVALID` where nothing is."""
    offsets = {(tp.topic, tp.partition): tp for tp in stored}
    return sorted((offsets.get(state.key) or TopicPartition(*state.key) for state in assigned), key=by_place)


def _all_given(given: Partitions, committed: Partitions) -> Partitions:
    """What was committed, and those that have no offset, in the order in which they were given."""
    done = iter(committed)
    return [next(done) if tp.offset >= 0 else TopicPartition(tp.topic, tp.partition, tp.offset, tp.metadata)
            for tp in given]


def _some_found(answers: Partitions) -> Partitions:
    """Answers, unless each of them is an error: then the first is raised."""
    first = answers[0].error if answers else None
    if first is not None and all(tp.error is not None for tp in answers):
        raise _failure(first)
    return answers


def _failure(error: KafkaError) -> KafkaException:
    """Who waits while the consumer is closed hears what a later call hears."""
    return ClientClosedError(CONSUMER_CLOSED) if error == KafkaError._DESTROY else KafkaException(error)


def _offsets_of(message: Message | None, offsets: Partitions | None, verb: str) -> Partitions | None:
    """The offsets that `commit` and `store_offsets` were given, in either form; None for none."""
    if message is not None and offsets is not None:
        raise ValueError("message and offsets are mutually exclusive")
    if message is None:
        return None if offsets is None else list_of(TopicPartition, offsets, "offsets")
    error = instance_of(Message, message, "message").error()
    if error is not None:
        raise KafkaException(KafkaError(
            KafkaError._INVALID_ARG, f"Cannot {verb} offsets for message with error: '{error.str()}'"))
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if topic is None or partition is None:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "The message has no topic and partition"))
    following = OFFSET_INVALID if offset is None else offset + 1
    return [TopicPartition(topic, partition, following, None, message.leader_epoch())]
