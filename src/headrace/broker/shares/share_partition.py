"""One partition as one share group sees it: who holds which records, and what became of the others.

A member gets records that are available: such as came back, then new ones. They are locked for it until it says what
became of them, or its time is over. Who releases a record, or loses it, gives it to the next member, as often as the
group allows. Records that came back several times are handed out in ever smaller numbers, the last time one by one, so
that one which members die of takes no others with it.

A leader that is new to the partition does not know who holds what: it hands it out again, with the same count.

It reads no logs and knows no requests. Read next: `broker.shares.in_flight`, `broker.shares.share_partitions`.
Source: KIP-932, KIP-1206, KIP-1222, Java's `SharePartition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from headrace.broker.deadlines import Deadlines, Now
from headrace.broker.shares.in_flight import (
    ACQUIRED,
    AVAILABLE,
    BatchPlace,
    InFlightRecords,
    Lock,
    RecordRun,
    SharedRecordState,
)
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaError

__all__ = ["GAP", "RENEW", "Acknowledgement", "AcquiredRun", "SharePartition", "ShareRules"]

GAP, _ACCEPT, _RELEASE, _REJECT, RENEW = range(5)
_TRIGGERS = {GAP: "reject", _ACCEPT: "accept", _RELEASE: "release", _REJECT: "reject", RENEW: "renew"}
_NEVER_SLOWED = 2
"""Most deliveries, with which records are never handed out in smaller numbers."""


class ShareRules(NamedTuple):
    """What a group's settings say.

    Attributes:
        lock_s: how long a member may hold a record, seconds.
        deliveries: how often a record is handed out at most.
        records: how many records from the first that is not done a group may be at.
    """

    lock_s: float
    deliveries: int
    records: int


class AcquiredRun(NamedTuple):
    """Records that a member got: first and last offset, and how often they were handed out, this time included."""

    first: int
    last: int
    deliveries: int


class Acknowledgement(NamedTuple):
    """What became of the records from one offset to another: one type for all, or one for each."""

    first: int
    last: int
    types: Sequence[int]

    def type_of(self, offset: int) -> int:
        """What became of one of them."""
        return self.types[offset - self.first if len(self.types) > 1 else 0]


class SharePartition:
    """What a group knows of a partition.

    Args:
        start_offset: where the group begins.
        rules: asks for the group's settings.
        deadlines: where the ends of locks are noted.
        changed: called when records may be available that were not, or what must be kept has changed.

    Attributes:
        records: those that the group is at.
        written_start: the first offset that was not done when something was last written down; -1 for never.
    """

    def __init__(self, start_offset: int, rules: Callable[[], ShareRules], deadlines: Deadlines,
                 changed: Callable[[SharePartition], None]) -> None:
        self.records = InFlightRecords(start_offset)
        self.written_start = -1
        self._rules, self._deadlines, self._changed = rules, deadlines, changed

    # Handing out

    @property
    def next_offset(self) -> int:
        """From where on the log is to be read for the next member."""
        return self.records.first_available

    @property
    def has_room(self) -> bool:
        """Whether a member may get something, if the log has it."""
        return self.next_offset < self.records.end_offset or len(self.records) < self._rules().records

    def acquire(
        self, member_id: str, batches: Sequence[BatchPlace], max_records: int, batch_size: int, now: Now, *,
        strict: bool
    ) -> list[AcquiredRun]:
        """Hand out records of what was read.

        Args:
            member_id: who gets them.
            batches: first and last offset of each batch that was read, in order; the first one has `next_offset`.
            max_records: where to stop.
            batch_size: records to hand out as one, unless they are of one batch.
            now: what the clocks say.
            strict: give no more than `max_records`; else the batch with the last of them is given whole.

        Returns:
            What it got, in order.
        """
        if not batches or max_records <= 0:
            return []
        acquired: list[AcquiredRun] = []
        slowed = self._acquire_again(acquired, member_id, batches, max_records, now, strict=strict)
        left = max_records - _count(acquired)
        if not slowed and left > 0:
            acquired += self._acquire_new(member_id, batches, left, batch_size, now, strict=strict)
        self.records.tidy()
        return acquired

    def _acquire_again(self, acquired: list[AcquiredRun], member_id: str, batches: Sequence[BatchPlace],
                       max_records: int, now: Now, *, strict: bool) -> bool:
        """Hand out what came back; whether nothing else is to be handed out with it."""
        free = [run for run in self.records.within(batches[0][0], batches[-1][1]) if run.state is AVAILABLE]
        for batch, runs in groupby(free, lambda run: run.batch):
            room = max_records - _count(acquired)
            if room <= 0:
                return True
            first = next(runs)
            most = self._most_of(first)
            limit = min(most, room) if strict else most
            for run in (first, *runs):
                if limit > 0:
                    part = self.records.within(run.first, min(run.last, run.first + limit - 1))[0]
                    acquired.append(self._hold(part, member_id, now))
                    limit -= part.count
            if most < _size(batch):
                return True
        return False

    def _most_of(self, run: RecordRun) -> int:
        """How many records of a run's batch may be handed out together."""
        most, size = self._rules().deliveries, _size(run.batch)
        slow_from = (most + 1) // 2
        if most <= _NEVER_SLOWED or run.deliveries < slow_from:
            return size
        return 1 if run.deliveries >= most - 1 else max(size >> (run.deliveries - slow_from + 1), 1)

    def _acquire_new(self, member_id: str, batches: Sequence[BatchPlace], left: int, batch_size: int, now: Now, *,
                     strict: bool) -> list[AcquiredRun]:
        """Hand out what nobody has had yet."""
        first = max(self.records.end_offset, batches[0][0])
        left = min(left, self._rules().records - len(self.records))
        new = [each for each in batches if each[1] >= first]
        if not new or left <= 0:
            return []
        last = min(first + left - 1, new[-1][1])
        whole = next(end for _, end in new if end >= last)
        found: list[AcquiredRun] = []
        for start, end in [(first, whole)] if strict else _portions(first, whole, new, batch_size):
            run = RecordRun(start, end, (start, end), AVAILABLE, 0)
            self.records.add(run)
            run = self.records.within(start, min(end, last) if strict else end)[0]
            found.append(self._hold(run, member_id, now))
        return found

    def _hold(self, run: RecordRun, member_id: str, now: Now) -> AcquiredRun:
        run.go("acquire", self._lock(member_id, run.count, now))
        run.deliveries += 1
        return AcquiredRun(run.first, run.last, run.deliveries)

    def _lock(self, member_id: str, count: int, now: Now) -> Lock:
        lock = Lock(member_id, count)
        lock.deadline = self._deadlines.at(now.s + self._rules().lock_s, lambda now: self._expire(lock))
        return lock

    # What became of them

    def acknowledge(self, member_id: str, said: Iterable[Acknowledgement], now: Now) -> None:
        """Take over what became of records: all of it, or nothing.

        Raises:
            ApiError: some of the records are not held by this member.
        """
        wanted: list[tuple[RecordRun, int]] = []
        before = -1
        for each in said:
            if each.first <= before:
                raise ApiError(KafkaError.INVALID_RECORD_STATE, f"Offset {each.first} is acknowledged twice")
            wanted += self._held(member_id, each)
            before = each.last
        for run, kind in wanted:
            if kind == RENEW:
                run.go("renew", self._lock(member_id, run.count, now))
            else:
                self._end(run, _TRIGGERS[kind])
        if any(kind != RENEW for _, kind in wanted):
            self._write()
        self.records.tidy()

    def _held(self, member_id: str, said: Acknowledgement) -> list[tuple[RecordRun, int]]:
        """The runs that are meant, cut where their types differ, with these."""
        records = self.records
        if said.last < records.start_offset:
            return []
        if not len(records):
            raise ApiError(KafkaError.INVALID_RECORD_STATE, "The records are not handed out")
        if said.last >= records.end_offset:
            raise ApiError(KafkaError.INVALID_REQUEST, "Some records were never handed out")
        found: list[tuple[RecordRun, int]] = []
        for first, last, kind in _by_type(said):
            for run in records.within(first, last):
                if run.state is not ACQUIRED or run.lock is None:
                    raise ApiError(KafkaError.INVALID_RECORD_STATE, f"Offset {run.first} is not held by anybody")
                if run.lock.member_id != member_id:
                    raise ApiError(KafkaError.INVALID_RECORD_STATE, f"Offset {run.first} is held by another member")
                found.append((run, kind))
        return found

    def _end(self, run: RecordRun, trigger: str) -> None:
        """A record is held no more; one that comes back has had its last delivery, perhaps."""
        if trigger == "release" and run.deliveries >= self._rules().deliveries:
            trigger = "give up"
        run.go(trigger)

    def release(self, member_id: str) -> None:
        """Give to others what a member holds."""
        self._come_back([run for run in self.records if run.lock is not None and run.lock.member_id == member_id])

    def _expire(self, lock: Lock) -> None:
        """The time of a lock is over."""
        self._come_back([run for run in self.records if run.lock is lock])

    def _come_back(self, runs: list[RecordRun]) -> None:
        for run in runs:
            self._end(run, "release")
        if runs:
            self._write()
            self.records.tidy()

    def _write(self) -> None:
        self.written_start = self.records.start_offset
        self._changed(self)

    # What happens to the partition

    def forget_holders(self) -> None:
        """Another leader has the partition: what was held comes again, and was not handed out as far as it knows."""
        for run in self.records:
            if run.state is ACQUIRED:
                run.go("release")
                run.deliveries -= 1
        self.records.tidy()

    def without(self, acquired: Iterable[AcquiredRun], left_out: Iterable[BatchPlace]) -> list[AcquiredRun]:
        """What was acquired but for some records, which nobody shall get: they are of aborted transactions."""
        rest = list(acquired)
        for first, last in left_out:
            for run in self.records.within(first, last):
                if not run.is_done:
                    run.go("leave out")
            rest = [part for each in rest for part in (each._replace(last=min(each.last, first - 1)),
                                                       each._replace(first=max(each.first, last + 1)))
                    if part.first <= part.last]
        self.records.tidy()
        return rest

    def kept(self) -> list[tuple[int, int, str, int]]:
        """First and last offset, state and deliveries of each run, as the next leader shall know them."""
        return [(run.first, run.last, AVAILABLE.name, run.deliveries - 1) if run.state is ACQUIRED else
                (run.first, run.last, run.state.name, run.deliveries) for run in self.records]

    def restore(self, runs: Iterable[tuple[int, int, str, int]]) -> None:
        """Bring back what was kept."""
        for first, last, state, deliveries in runs:
            self.records.add(RecordRun(first, last, (first, last), SharedRecordState[state], deliveries))
        self.records.tidy()


def _size(batch: BatchPlace) -> int:
    return batch[1] - batch[0] + 1


def _count(acquired: Iterable[AcquiredRun]) -> int:
    return sum(each.last - each.first + 1 for each in acquired)


def _portions(first: int, last: int, batches: Sequence[BatchPlace], size: int) -> list[BatchPlace]:
    """Whole batches together, until they have so many records."""
    found: list[BatchPlace] = []
    start = first
    for base, _ in batches:
        if start < base <= last and base - start >= size:
            found.append((start, base - 1))
            start = base
    return [*found, (start, last)]


def _by_type(said: Acknowledgement) -> list[tuple[int, int, int]]:
    """First offset, last offset and type of each part."""
    if len(said.types) == 1:
        return [(said.first, said.last, said.types[0])]
    found: list[tuple[int, int, int]] = []
    for offset, kind in enumerate(said.types, said.first):
        if found and found[-1][2] == kind:
            found[-1] = (found[-1][0], offset, kind)
        else:
            found.append((offset, offset, kind))
    return found
