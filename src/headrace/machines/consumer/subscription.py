"""What a consumer reads: the topics it asked for, the partitions it has, and where it stands in each of them.

`Subscription` is shared by the machines of one consumer: the group sets the partitions, the offset machines give
them a start, the fetcher moves them on. It must not know who sends requests or why. The application's thread may read
and move a partition's `position` and `stored` while the loop's thread does the rest; every such step is one
assignment, and `epoch` tells data that was fetched for an older position from current data.

Read next: `machines.consumer.fetcher`.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from uuid import UUID

from headrace.errors import KafkaError, KafkaException
from headrace.records import PollFastPath, ReadPosition
from headrace.states import Transitions, from_each
from headrace.types.records import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    TopicPartition,
)

__all__ = ["EARLIEST", "LATEST", "POSITION_TRANSITIONS", "Key", "PartitionState", "PositionPhase", "Subscription"]

Key = tuple[str, int]
"""Topic and partition: the dictionary key of everything that belongs to one partition."""

EARLIEST, LATEST = -2, -1
"""Special timestamps of ListOffsets: the first offset, and the one after the last."""

_RESETS = {"earliest": EARLIEST, "latest": LATEST, "error": None}
_MOST_CHANGES = 1000
"""Changes of single partitions that are kept for machines that have not looked since: with more they look at all."""
_TAIL = -2000
"""librdkafka's OFFSET_TAIL(n) is this less n: the last n offsets of the partition."""


class PositionPhase(Enum):
    """How a partition gets its start. `COMMITTED`, `RESET` and `VALIDATE` end in `FETCH` or `FAILED`."""

    COMMITTED = "waits for the group's committed offset"
    RESET = "waits for the first or last offset of the log"
    FETCH = "has a position and is fetched"
    VALIDATE = "has a position that is compared with the log of a new leader"
    FAILED = "is not fetched: the application gets an error, and must seek"


_P = PositionPhase
POSITION_TRANSITIONS = Transitions("The position of a partition", PositionPhase.COMMITTED, {
    **from_each(_P, "seek", _P.FETCH),
    **from_each(_P, "ask the group", _P.COMMITTED),
    **from_each(_P, "reset", _P.RESET),
    **from_each((_P.COMMITTED, _P.RESET), "found", _P.FETCH),
    (_P.FETCH, "new leader"): _P.VALIDATE,
    (_P.VALIDATE, "confirmed"): _P.FETCH,
    (_P.VALIDATE, "truncated"): _P.FETCH,
    **from_each((_P.FETCH, _P.VALIDATE, _P.FAILED), "damaged", _P.FAILED),
    **from_each((_P.FETCH, _P.FAILED), "out of range", _P.FAILED),
    **from_each(_P, "no reset", _P.FAILED),
    **from_each(_P, "taken away", _P.FAILED),
    **{(phase, "ask again"): phase for phase in (_P.COMMITTED, _P.RESET, _P.FAILED)},
})
"""The only ways from one phase to another. "no reset": `auto.offset.reset` says that it is an error."""


class PartitionState(ReadPosition):
    """One assigned partition.

    Attributes:
        epoch: grows with every jump (seek, reset, removal); data fetched under an older epoch is stale.
        phase: see `PositionPhase`; `busy` is True while a lookup for it is on the wire.
        reset_timestamp: what to ask the leader for in phase `RESET`; `tail`: how far in front of it to start.
        position: next offset to hand out; `OFFSET_INVALID` until it is known.
        fetch_offset: next offset to fetch; ahead of `position` by what waits in the fetcher.
        leader_epoch: epoch of the last batch handed out, -1 when unknown (KIP-320).
        fetch_epoch: epoch of the record in front of `fetch_offset`, -1 when unknown.
        checked_epoch: the newest epoch of a leader whose log is known to have that record; -1 before the first.
        stop_offset: not fetched from here on; None for no end.
        stored: offset for the next commit, and `committed` the last one that the group acknowledged.
        settled: what was stored, up to `committed`, when that commit was asked for: while it is, nothing is to commit.
        stored_epoch: of the record in front of `stored`, where the application said so; None for `leader_epoch`.
        high_watermark, last_stable, log_start: as of the last fetch; -1 when unknown.
        received_bytes, released_bytes: fetched so far, and of that consumed or out of date, one writer each; and
        received_records, released_records.
        retry_at: not fetched or looked up before this time, in monotonic seconds; `attempts` failed in a row.
        replica: follower to read from until `replica_until` (KIP-392); -1 for the leader.
        topic_id: id of the topic in which the position holds (KIP-516); None while it is not known.
        left_out: not fetched for now, because too much of it waits in the queue.
        gone: the topic is not there any more, so that nothing can be committed to it.
        fast_path: hands out its records past the fetcher; closed when something happens to the partition. None mostly.
    """

    __slots__ = (
        "attempts", "busy", "checked_epoch", "committed", "eof_offset", "epoch", "fast_path", "fetch_epoch",
        "fetch_offset", "gone", "high_watermark", "last_stable", "leader_epoch", "left_out", "log_start", "partition",
        "paused", "phase", "received_bytes", "received_records", "released_bytes", "released_records", "replica",
        "replica_until", "reset_timestamp", "retry_at", "settled", "stop_offset", "stored_epoch", "stored_metadata",
        "tail", "topic", "topic_id",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.epoch = 0
        self.phase = POSITION_TRANSITIONS.first
        self.busy = False
        self.reset_timestamp = LATEST
        self.tail = 0
        self.position = OFFSET_INVALID
        self.fetch_offset = OFFSET_INVALID
        self.leader_epoch = self.fetch_epoch = self.checked_epoch = -1
        self.stop_offset: int | None = None
        self.paused = False
        self.stored = OFFSET_INVALID
        self.stored_epoch: int | None = None
        self.stored_metadata: str | None = None
        self.committed = self.settled = OFFSET_INVALID
        self.high_watermark = self.last_stable = self.log_start = -1
        self.eof_offset = -1
        self.received_bytes = self.received_records = 0
        self.released_bytes = self.released_records = 0
        self.retry_at = 0.0
        self.attempts = 0
        self.replica = -1
        self.replica_until = 0.0
        self.topic_id: UUID | None = None
        self.left_out = False
        self.gone = False
        self.fast_path: PollFastPath | None = None

    @property
    def key(self) -> Key:
        """Topic and partition."""
        return (self.topic, self.partition)

    @property
    def queued_bytes(self) -> int:
        """Bytes that were fetched and are not consumed yet."""
        return self.received_bytes - self.released_bytes

    def go(self, trigger: str) -> None:
        """Another phase; the position and what was fetched for it stay."""
        self.phase = POSITION_TRANSITIONS.go(self.phase, trigger)

    def interrupt(self) -> None:
        """The next record comes through the fetcher, which looks at everything."""
        if self.fast_path is not None:
            self.fast_path.close()
            self.fast_path = None

    def jump(self, trigger: str, offset: int = OFFSET_INVALID, leader_epoch: int | None = None) -> None:
        """Another phase, and another position; everything fetched for the present one becomes stale.

        Args:
            trigger: see `POSITION_TRANSITIONS`.
            offset: the position, if it is known.
            leader_epoch: of the record in front of it, if that is known (KIP-320).
        """
        self.epoch += 1
        self.interrupt()  # only now: who looks at the epoch first is closed here
        self.phase = POSITION_TRANSITIONS.go(self.phase, trigger)
        self.busy = False
        self.position = self.fetch_offset = offset
        self.eof_offset = self.leader_epoch = self.checked_epoch = -1
        self.fetch_epoch = -1 if leader_epoch is None else leader_epoch
        self.released_bytes, self.released_records = self.received_bytes, self.received_records
        self.retry_at, self.attempts = 0.0, 0

    def __repr__(self) -> str:
        return f"PartitionState({self.topic}[{self.partition}] {self.phase.name} @{self.position})"


class Subscription:
    """The topics asked for and the partitions assigned.

    Args:
        group_id: the group whose committed offsets are the start; "" for none.
        reset: `auto.offset.reset`: "earliest", "latest", "error", or milliseconds before the present (KIP-1106).
        wall_ms: the time of day in milliseconds, for the last of these.
    """

    def __init__(self, group_id: str, reset: str | int, wall_ms: Callable[[], int] = lambda: 0) -> None:
        self._group_id = group_id
        self._reset = reset
        self._wall_ms = wall_ms
        self.states: Mapping[Key, PartitionState] = {}
        """The assigned partitions. Replaced, never changed: other threads may be iterating."""
        self.names: frozenset[str] = frozenset()
        self.patterns: tuple[re.Pattern[str], ...] = ()
        self._topics_had: set[str] = set()
        self._paused: set[Key] = set()
        self.left_records = self.left_bytes = 0
        """What was fetched of partitions that have been taken away."""
        self.version = 0
        """Grows with every change that a machine should look at: assignment, seek, pause."""
        self._changes: deque[PartitionState] = deque(maxlen=_MOST_CHANGES)

    # What has changed

    def changed(self, *states: PartitionState) -> None:
        """Something has happened to these partitions that machines should look at."""
        self._changes.extend(states)
        self.version += len(states)

    def changed_since(self, version: int) -> Sequence[PartitionState] | None:
        """The partitions to which something has happened since a version, in order, those that were taken away too.

        Who changes thousands of partitions one by one would else have all of them looked at each time.

        Returns:
            None where all are to be looked at.
        """
        count = self.version - version
        return None if count > len(self._changes) else [*itertools.islice(reversed(self._changes), count)][::-1]

    def _all_changed(self) -> None:
        self._changes.clear()
        self.version += 1

    # The topics asked for

    def subscribe(self, topics: Iterable[str]) -> None:
        """Replace the subscription. A name that starts with ``^`` is a regular expression.

        Raises:
            KafkaException: `_INVALID_ARG` for an empty name or a malformed pattern.
            UnicodeEncodeError: a name has surrogates.
        """
        names, patterns = set(), []
        for topic in topics:
            topic.encode()
            if topic.startswith("^"):
                patterns.append(_compile(topic))
            elif topic:
                names.add(topic)
            else:
                raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "subscribe() got an empty topic name"))
        self.names, self.patterns = frozenset(names), tuple(patterns)
        self._all_changed()

    @property
    def is_subscribed(self) -> bool:
        """Whether `subscribe` was called with at least one topic since the last `subscribe([])`."""
        return bool(self.names or self.patterns)

    def matching(self, known: Iterable[str]) -> frozenset[str]:
        """The subscribed topic names: those given by name, and the known ones that a pattern matches."""
        if not self.patterns:
            return self.names
        found = (name for name in known if any(pattern.search(name) for pattern in self.patterns))
        return self.names.union(found)

    # The partitions assigned

    def __iter__(self) -> Iterator[PartitionState]:
        return iter(self.states.values())

    def __len__(self) -> int:
        return len(self.states)

    def get(self, topic: str, partition: int) -> PartitionState | None:
        """The state of an assigned partition, None when it is not assigned."""
        return self.states.get((topic, partition))

    def require(self, topic: str, partition: int, code: int | None = None) -> PartitionState:
        """The state of an assigned partition.

        Raises:
            KafkaException: it is not assigned: `code`, else `_UNKNOWN_PARTITION` when no partition of its topic ever
                was, else `_STATE`.
        """
        state = self.states.get((topic, partition))
        if state is None:
            if code is None:
                code = KafkaError._STATE if topic in self._topics_had else KafkaError._UNKNOWN_PARTITION
            text = f"{topic}[{partition}] is not assigned to this consumer: call assign(), or wait for the group"
            raise KafkaException(KafkaError(code, text))
        return state

    def topics(self) -> set[str]:
        """Topics with an assigned partition."""
        return {topic for topic, _ in self.states}

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the whole assignment.

        Raises:
            KafkaException: as by `add`.
        """
        before, self.states = self.states, self._added(partitions, {})
        for state in before.values():
            self._take_away(state)
        self._all_changed()

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign more partitions; each starts at its `offset`, logical offsets included.

        Raises:
            KafkaException: `_CONFLICT` when one is already assigned, `_INVALID_ARG` when one is given twice, or an
                offset is none to start from; nothing is changed then.
        """
        added = self._added(partitions, self.states)
        self.states = {**self.states, **added}
        self.changed(*added.values())

    def _added(self, partitions: Iterable[TopicPartition], taken: Mapping[Key, PartitionState]
               ) -> dict[Key, PartitionState]:
        """States of new partitions. All are looked at before one is started: machines hear of each that is."""
        wanted: dict[Key, TopicPartition] = {}
        for tp in partitions:
            key = (tp.topic, tp.partition)
            if key in wanted:
                raise KafkaException(KafkaError(
                    KafkaError._INVALID_ARG, f"{tp.topic}[{tp.partition}] is given twice"))
            if key in taken:
                raise KafkaException(KafkaError(
                    KafkaError._CONFLICT, f"{tp.topic}[{tp.partition}] is already assigned"))
            _check_start(tp.offset)
            wanted[key] = tp
        added = {key: PartitionState(*key) for key in wanted}
        for key, state in added.items():
            state.paused = key in self._paused
            self._start(state, wanted[key].offset, wanted[key].leader_epoch)
        self._topics_had.update(topic for topic, _ in added)
        return added

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Take partitions away.

        Raises:
            KafkaException: `_INVALID_ARG` when one is not assigned; nothing is changed then.
        """
        gone = [self.require(tp.topic, tp.partition, KafkaError._INVALID_ARG) for tp in partitions]
        left = dict(self.states)
        for state in gone:
            left.pop(state.key, None)
            self._take_away(state)
        self.states = left
        self.changed(*gone)

    def _take_away(self, state: PartitionState) -> None:
        state.jump("taken away")
        self.left_records += state.received_records
        self.left_bytes += state.received_bytes

    def seek(self, topic: str, partition: int, offset: int, leader_epoch: int | None = None) -> None:
        """Move an assigned partition to an absolute or logical offset.

        Args:
            topic: its topic.
            partition: its number.
            offset: the next to be read.
            leader_epoch: of the record in front of it; None when that is not known.

        Raises:
            KafkaException: it is not assigned, as `require()`; `_INVALID_ARG` for an offset that is none to start from.
        """
        state = self.require(topic, partition)
        _check_start(offset)
        self._start(state, offset, leader_epoch)
        self.changed(state)

    def set_paused(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        """Stop or go on handing out records of those partitions of whose topics any was ever assigned.

        As in librdkafka they stay paused when they are given up and come back, until they are resumed, there or here.
        """
        keys = [(tp.topic, tp.partition) for tp in partitions]
        self._paused.difference_update(keys)
        if paused:
            self._paused.update(key for key in keys if key[0] in self._topics_had)
        for key in self.states.keys() & keys:
            state = self.states[key]
            state.paused = paused
            state.interrupt()
            self.changed(state)

    # Where to start

    def _start(self, state: PartitionState, offset: int, leader_epoch: int | None) -> None:
        if offset >= 0:
            state.jump("seek", offset, leader_epoch)
        elif offset in (OFFSET_BEGINNING, OFFSET_END):
            self.reset(state, EARLIEST if offset == OFFSET_BEGINNING else LATEST)
        elif offset <= _TAIL:
            self.reset(state, LATEST, _TAIL - offset)
        elif self._group_id:  # OFFSET_STORED and OFFSET_INVALID
            state.jump("ask the group")
        else:
            self.reset_by_policy(state)

    def reset(self, state: PartitionState, timestamp: int, tail: int = 0) -> None:
        """Have the position looked up: `EARLIEST`, `LATEST` or so many offsets in front of it, or a time (ms)."""
        state.jump("reset")
        state.reset_timestamp, state.tail = timestamp, tail
        self.changed(state)

    def reset_by_policy(self, state: PartitionState) -> bool:
        """Do what `auto.offset.reset` says; False when it says that this is an error."""
        if isinstance(self._reset, int):
            self.reset(state, max(self._wall_ms() - self._reset, 0))
            return True
        timestamp = _RESETS[self._reset]
        if timestamp is None:
            state.jump("no reset")
            self.changed(state)
            return False
        self.reset(state, timestamp)
        return True

    def step_back(self, state: PartitionState, end: int, leader_epoch: int) -> bool:
        """The log ends in front of the position, at `end`, or at an offset that nobody knows (-1).

        Returns:
            False when there is no position to go on from, because `auto.offset.reset` says that this is an error.
        """
        before = state.leader_epoch
        if end < 0 or self._reset == "error":
            goes_on = self.reset_by_policy(state)
            state.leader_epoch = before  # committed with what is stored, it tells the next reader of the same
            return goes_on
        state.jump("truncated", end, leader_epoch)
        state.stored, state.leader_epoch = min(state.stored, end), leader_epoch
        state.stored_epoch = None
        self.changed(state)
        return True

    def start_again(self, state: PartitionState) -> bool:
        """The topic is another one by now: nothing of the old one's offsets holds.

        Returns:
            False when there is no position to go on from, because `auto.offset.reset` says that this is an error.
        """
        state.stored = state.committed = state.settled = OFFSET_INVALID
        state.stored_epoch = state.stored_metadata = None
        state.high_watermark = state.last_stable = state.log_start = state.replica = -1
        if state.phase in (PositionPhase.FETCH, PositionPhase.VALIDATE):
            return self.reset_by_policy(state)
        state.jump("ask again")  # what is on its way may be an answer about the old one
        self.changed(state)
        return True

    def positioned(self, state: PartitionState, offset: int, leader_epoch: int | None = None) -> None:
        """A lookup found where to start, and the epoch of the record in front of it where that is known."""
        state.jump("found", offset, leader_epoch)
        self.changed(state)

    # Offsets to commit

    def to_commit(self, among: Iterable[PartitionState] | None = None) -> list[TopicPartition]:
        """Stored offsets that no commit has covered yet, of all partitions or of some."""
        return [
            TopicPartition(s.topic, s.partition, s.stored, s.stored_metadata,
                           s.leader_epoch if s.stored_epoch is None else s.stored_epoch)
            for s in (self.states.values() if among is None else among)
            if s.stored >= 0 and s.stored != s.settled and not s.gone
        ]

    def positions(self) -> list[TopicPartition]:
        """Every assigned partition with its position."""
        return [TopicPartition(s.topic, s.partition, s.position) for s in self.states.values()]


def _check_start(offset: int) -> None:
    if _TAIL < offset < 0 and offset not in (OFFSET_BEGINNING, OFFSET_END, OFFSET_STORED, OFFSET_INVALID):
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, f"{offset} is not an offset to start from"))


def _compile(pattern: str) -> re.Pattern[str]:
    if "[[:" in pattern:  # to Python a set of these characters, which matches something else, silently
        raise KafkaException(KafkaError(
            KafkaError._INVALID_ARG, f"Invalid pattern {pattern!r} in subscribe(): it is one of Python's re, which has "
            "no POSIX classes: write [a-zA-Z] for [[:alpha:]]"))
    try:
        return re.compile(pattern)
    except re.error as cause:
        text = f"Invalid pattern {pattern!r} in subscribe(): {cause}"
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text)) from None
