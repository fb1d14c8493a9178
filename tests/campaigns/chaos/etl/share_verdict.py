"""What is wrong with a share group, from what its workers wrote down. Knows no client.

A record is delivered, and delivered again until it is accepted; its delivery count is one at first and grows by one
each time. Two things a worker cannot see. Records that were on their way to a worker when it was killed, ended or
frozen, or when their broker went away, were delivered and nobody wrote it down: the count then grows by more. And a new
leader does not know what the old one had handed out since the last acknowledgement: the count then does not grow. So
each such step must have a fault behind it, and is counted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from .journal import READ, Run, Story
from .spans import Offsets, merged

SHARE_VIOLATIONS: Final = (
    "never accepted",  # and the group is done with it
    "accepted twice",  # as brokers said
    "delivered after acceptance",
    "miscounted",  # a delivery count that did not grow by one, and no fault behind it
)
LOCK_S: Final = 15.0
_AROUND_S: Final = 2.0
"""A fault has an effect on what was under way shortly before, and after, it is written down."""

Place = tuple[int, int]


class Delivery(NamedTuple):
    """A record was handed to a worker."""

    at: float
    count: int
    story: Story


class Faults:
    """When something happened that delivery counts may show.

    Args:
        spans: from, until, in seconds of the monotonic clock.
    """

    def __init__(self, spans: Iterable[tuple[float, float]]) -> None:
        self._spans = merged((since, until + _AROUND_S) for since, until in spans)

    def between(self, begin: float, end: float) -> bool:
        place = bisect_right(self._spans, (end, float("inf")))
        return place > 0 and self._spans[place - 1][1] >= begin


class ShareCheck:
    """One share group with the partitions of its topic.

    Args:
        stories: of all its workers.
        source: which offsets of each partition have a record.
        members: when workers of the group were killed and ended, and from when to when they were frozen.
        leaders: when leaders of the topic changed.

    Attributes:
        numbers: deliveries, and what else there is to tell.
    """

    def __init__(self, stories: list[Story], source: dict[int, Offsets], members: Faults, leaders: Faults) -> None:
        self.violations: Counter[str] = Counter()
        self.numbers: Counter[str] = Counter()
        self._stories, self._source, self._members, self._leaders = stories, source, members, leaders
        self._deliveries: dict[Place, list[Delivery]] = defaultdict(list)
        self._accepted: dict[Place, list[tuple[float, Story]]] = defaultdict(list)
        self._unanswered: set[Place] = set()

    def run(self) -> Counter[str]:
        """Check everything; counts by kind of violation."""
        for story in self._stories:
            self._read(story)
        for place in places_of(self._source):
            self._check_acceptance(place)
            self._check_counts(place)
        return +self.violations

    def _read(self, story: Story) -> None:
        open_: set[Place] = set()
        for event in story.events:
            if event["what"] == READ:
                for run in _runs(event["runs"]):
                    for offset in range(run.first, run.last + 1):
                        self._deliveries[run.partition, offset].append(Delivery(event["at"], run.count, story))
            elif event["what"] == "accept":
                open_ |= set(_places(event["runs"]))
            elif event["what"] == "answer":
                for place in _places(event["runs"]):
                    if place in open_ and event["error"] is None:
                        self._accepted[place].append((event["at"], story))
                    elif event["error"] is not None:
                        self.numbers[f"refused: {event['error']}"] += 1
                    if event["error"] is None or event["error"] == "INVALID_RECORD_STATE":
                        open_.discard(place)
        self._unanswered |= open_

    def _check_acceptance(self, place: Place) -> None:
        deliveries, accepted = self._deliveries[place], self._accepted[place]
        deliveries.sort(key=lambda delivery: delivery.at)
        self.numbers["deliveries"] += len(deliveries)
        self.numbers["delivered again"] += max(len(deliveries) - 1, 0)
        self.numbers["accepted"] += bool(accepted)
        in_time = sum(not self._is_late(at, story, deliveries) for at, story in accepted)
        self.violations["accepted twice"] += max(in_time - 1, 0)
        self.numbers["accepted once more, too late"] += max(len(accepted) - max(in_time, 1), 0)
        if not accepted:
            self.numbers["accepted, answer not seen"] += place in self._unanswered
            self.violations["never accepted"] += place not in self._unanswered
        else:
            late = [each for each in deliveries if each.at > min(at for at, _ in accepted) and not _is_stale(each)]
            self.violations["delivered after acceptance"] += len(late)

    def _is_late(self, at: float, story: Story, deliveries: list[Delivery]) -> bool:
        """Whether a worker may have had the record no more. Brokers confirm what lies before the group's start, too."""
        had = max((each for each in deliveries if each.story is story and each.at <= at), key=lambda each: each.at)
        return at - had.at >= LOCK_S or _is_stale(had) or self._leaders.between(had.at - _AROUND_S, at)

    def _check_counts(self, place: Place) -> None:
        before, count = float("-inf"), 0
        for delivery in self._deliveries[place]:
            if _is_stale(delivery):  # it had this before it was frozen
                self.numbers["handed out after a freeze"] += 1
                continue
            since, until = before - _AROUND_S, delivery.at + _AROUND_S
            step = delivery.count - count
            if step == 1:
                self.numbers["counts that grew by one"] += 1
            elif step > 1:
                self.numbers["counts that grew by more"] += 1
                self.violations["miscounted"] += not (
                    self._members.between(since, until) or self._leaders.between(since, until))
            else:
                self.numbers["counts that a new leader did not know"] += 1
                self.violations["miscounted"] += delivery.count < 1 or not self._leaders.between(since, until)
            before, count = delivery.at, delivery.count


def places_of(source: dict[int, Offsets]) -> Iterator[Place]:
    """Partition and offset of each record."""
    for partition, there in source.items():
        for offset in there:
            yield partition, offset


def _is_stale(delivery: Delivery) -> bool:
    return delivery.story.woke_up_in(delivery.at - LOCK_S - _AROUND_S, delivery.at)


def _places(runs: Iterable[list[int]]) -> Iterator[Place]:
    for run in _runs(runs):
        for offset in range(run.first, run.last + 1):
            yield run.partition, offset


def _runs(runs: Iterable[list[int]]) -> Iterator[Run]:
    for run in runs:
        yield Run(*run)
