"""Records of a partition that a share group is at: runs of neighbours in one state, from the first that is not done.

A run is a few numbers, however many records it stands for; neighbours in the same state become one again. Runs know the
batch in which they were handed out first, because brokers hand out, and slow down, by these batches.

It knows no members' sessions, no logs and no time. Read next: `broker.shares.share_partition`.
Source: KIP-932, Java's `InFlightBatch` and `RecordState`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from headrace.broker.deadlines import Deadline
from headrace.states import Transitions

__all__ = ["SHARED_RECORD_TRANSITIONS", "BatchPlace", "InFlightRecords", "Lock", "RecordRun", "SharedRecordState"]


class SharedRecordState(Enum):
    """What is known of a record."""

    AVAILABLE = "the next member that asks gets it"
    ACQUIRED = "a member holds it, until its lock is over"
    ACKNOWLEDGED = "a member has processed it"
    ARCHIVED = "nobody shall process it any more"


AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = SharedRecordState

SHARED_RECORD_TRANSITIONS = Transitions("A record of a share group", AVAILABLE, {
    (AVAILABLE, "acquire"): ACQUIRED,
    (ACQUIRED, "accept"): ACKNOWLEDGED,
    (ACQUIRED, "reject"): ARCHIVED,
    (ACQUIRED, "release"): AVAILABLE,
    (ACQUIRED, "give up"): ARCHIVED,
    (ACQUIRED, "renew"): ACQUIRED,
    (AVAILABLE, "leave out"): ARCHIVED,
    (ACQUIRED, "leave out"): ARCHIVED,
})
"""The only ways from one state to another. "give up" follows a delivery that was the last one allowed."""


@dataclass(slots=True, eq=False)
class Lock:
    """What one member has got at one time, for as long as it may hold it.

    Attributes:
        member_id: who holds it.
        records: how many of the records are still held by it.
        deadline: when its time is over.
    """

    member_id: str
    records: int
    deadline: Deadline | None = None

    def let_go(self, count: int) -> None:
        """So many of its records are held by it no more; with the last one its deadline is off."""
        self.records -= count
        if not self.records and self.deadline is not None:
            self.deadline.cancel()


BatchPlace = tuple[int, int]
"""First and last offset of records that were handed out together the first time."""


@dataclass(slots=True, eq=False)
class RecordRun:
    """Neighbours in one state.

    Attributes:
        first: offset of the first one.
        last: offset of the last one.
        batch: where they were handed out first.
        state: what is known of them.
        deliveries: how often they were handed out.
        lock: under which they are held; None unless they are acquired.
    """

    first: int
    last: int
    batch: BatchPlace
    state: SharedRecordState
    deliveries: int
    lock: Lock | None = None

    @property
    def count(self) -> int:
        """How many records they are."""
        return self.last - self.first + 1

    @property
    def is_done(self) -> bool:
        """Whether nobody will get them again."""
        return self.state in (ACKNOWLEDGED, ARCHIVED)

    def go(self, trigger: str, lock: Lock | None = None) -> None:
        """Bring them into the state that follows, under another lock or none."""
        self.state = SHARED_RECORD_TRANSITIONS.go(self.state, trigger)
        if self.lock is not None:
            self.lock.let_go(self.count)
        self.lock = lock

    def is_like(self, other: RecordRun) -> bool:
        """Whether nothing but offsets makes a difference between the two."""
        return (self.state, self.deliveries, self.batch, self.lock) == (
            other.state, other.deliveries, other.batch, other.lock)


class InFlightRecords:
    """Runs without gaps between them, in order.

    Args:
        start_offset: of the first record to come.

    Attributes:
        start_offset: the first record that is not done.
        end_offset: behind the last record that was ever handed out.
    """

    def __init__(self, start_offset: int) -> None:
        self.start_offset = self.end_offset = start_offset
        self._runs: list[RecordRun] = []

    def __iter__(self) -> Iterator[RecordRun]:
        return iter(self._runs)

    def __len__(self) -> int:
        return self.end_offset - self.start_offset

    @property
    def first_available(self) -> int:
        """The first record that a member may get; the end where there is none."""
        return next((run.first for run in self._runs if run.state is AVAILABLE), self.end_offset)

    @property
    def done(self) -> int:
        """How many of those from the first that is not done are done."""
        return sum(run.count for run in self._runs if run.is_done)

    def add(self, run: RecordRun) -> None:
        """Records behind all others."""
        self._runs.append(run)
        self.end_offset = run.last + 1

    def within(self, first: int, last: int) -> list[RecordRun]:
        """The runs from one offset to another, both included; those that reach beyond are cut."""
        first, last = max(first, self.start_offset), min(last, self.end_offset - 1)
        return self._runs[self._cut(first):self._cut(last + 1)] if first <= last else []

    def _cut(self, offset: int) -> int:
        """Where in the list the run is that begins at an offset, which must not be before the first one."""
        place = bisect_right(self._runs, offset, key=lambda run: run.first) - 1
        if place < 0 or self._runs[place].last < offset:
            return place + 1
        run = self._runs[place]
        if run.first == offset:
            return place
        self._runs.insert(place + 1, RecordRun(offset, run.last, run.batch, run.state, run.deliveries, run.lock))
        run.last = offset - 1
        return place + 1

    def tidy(self) -> None:
        """Let go what is done at the beginning, and make one run of neighbours that are alike."""
        kept: list[RecordRun] = []
        for run in self._runs:
            if not kept and run.is_done:
                self.start_offset = run.last + 1
            elif kept and kept[-1].is_like(run):
                kept[-1].last = run.last
            else:
                kept.append(run)
        self._runs = kept
        self.start_offset = kept[0].first if kept else max(self.start_offset, self.end_offset)
        self.end_offset = max(self.end_offset, self.start_offset)

    def skip_to(self, offset: int) -> None:
        """Records before an offset are in the log no more."""
        for run in self.within(self.start_offset, offset - 1):
            if not run.is_done:
                run.go("leave out")
        self.start_offset = max(self.start_offset, offset)
        self.end_offset = max(self.end_offset, offset)
        self.tidy()
