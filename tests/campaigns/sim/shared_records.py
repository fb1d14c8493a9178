"""What a simulation of share groups knows of each record, besides the broker: who holds it, how often it was handed
out, and whether it is done.

It sees what the leaders of partitions are asked and what they answer, and says what must not be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.broker.deadlines import Now
from headrace.broker.shares.share_partition import Acknowledgement, AcquiredRun, SharePartition, ShareRules
from headrace.broker.storage.partition import ApiError, Partition

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4

Place = tuple[int, int]
"""Partition and offset."""


class Holding(NamedTuple):
    """Who holds a record: until when, seconds, and given to it by the leader of which epoch."""

    member_id: str
    until: float
    epoch: int


@dataclass
class KnownRecord:
    """One record.

    Attributes:
        deliveries: how often it was handed out.
        holding: who holds it, or held it last and has not given it back.
        done: why nobody may get it any more; empty while somebody may.
    """

    deliveries: int = 0
    holding: Holding | None = None
    done: str = ""


class SharedRecords:
    """All records of a schedule.

    Args:
        rules: of the group.
        batch: most records of a batch, which are handed out together.
        hold: called with whether something is as it must be, and what is wrong if not.
        counts: how often what happened.
    """

    def __init__(self, rules: ShareRules, batch: int, hold: Callable[[bool, str], None], counts: Counter[str]) -> None:
        self._rules, self._batch, self._hold, self._counts = rules, batch, hold, counts
        self._records: dict[Place, KnownRecord] = {}
        self._watched: dict[int, SharePartition] = {}

    def of(self, place: Place) -> KnownRecord:
        """What is known of a record."""
        return self._records.setdefault(place, KnownRecord())

    def is_over(self, place: Place) -> bool:
        """Whether a record is done, or was handed out as often as allowed; a late word about it is not refused."""
        known = self.of(place)
        return bool(known.done) or known.deliveries >= self._rules.deliveries

    def watch(self, share: SharePartition, partition: Partition) -> None:
        """See what a leader is asked about a partition from now on."""
        if self._watched.get(partition.index) is share:
            return
        self._watched[partition.index] = share
        _wrap(share, "acquire", lambda acquire: lambda member_id, *given, **named: self._acquired(
            share, partition, member_id, given[-1], acquire(member_id, *given, **named)))
        _wrap(share, "acknowledge", lambda acknowledge: lambda member_id, said, now: self._acknowledged(
            partition, member_id, list(said), now, acknowledge))
        _wrap(share, "release", lambda release: lambda member_id: self._released(
            share, partition, member_id, release))

    def held_by(self, member_id: str, partition: Partition) -> list[int]:
        """Offsets of what a member has not given back to a partition's leader."""
        return [offset for (index, offset), each in self._records.items()
                if index == partition.index and each.holding is not None and each.holding.member_id == member_id
                and each.holding.epoch == partition.leader_epoch]

    def left(self, partitions: Iterable[Partition]) -> list[Place]:
        """Records that may still be handed out."""
        return [(partition.index, offset) for partition in partitions for offset in range(partition.log.end_offset)
                if not self.is_over((partition.index, offset))]

    def _acquired(self, share: SharePartition, partition: Partition, member_id: str, now: Now,
                  runs: list[AcquiredRun]) -> list[AcquiredRun]:
        self._hold(len(share.records) <= self._rules.records + self._batch, f"{len(share.records)} records are locked")
        for first, last, deliveries in runs:
            for offset in range(first, last + 1):
                self._counts["records handed out"] += 1
                self._counts["records handed out again"] += deliveries > 1
                self._take((partition.index, offset), deliveries, Holding(
                    member_id, now.s + self._rules.lock_s, partition.leader_epoch))
                self._hold(offset < partition.log.end_offset, f"{partition.index}@{offset} was never written")
        return runs

    def _take(self, place: Place, deliveries: int, holding: Holding) -> None:
        known, at = self.of(place), holding.until - self._rules.lock_s
        self._hold(not known.done, f"{place} is handed out to {holding.member_id} after it was {known.done}")
        before = known.holding
        moved = before is not None and before.epoch != holding.epoch
        if before is not None and not moved:
            self._hold(before.until <= at, f"{place} is handed out to {holding.member_id} while {before} holds it")
            self._counts["locks that were over"] += 1
        self._counts["records of another leader"] += moved
        # A new leader does not know that a record was handed out of which nothing was heard.
        allowed = {known.deliveries, known.deliveries + 1} if moved else {known.deliveries + 1}
        self._hold(deliveries in allowed, f"{place} was delivered {known.deliveries} times, and then as {deliveries}")
        self._hold(deliveries <= self._rules.deliveries, f"{place} is delivered {deliveries} times")
        known.deliveries, known.holding = deliveries, holding

    def _acknowledged(self, partition: Partition, member_id: str, said: list[Acknowledgement], now: Now,
                      acknowledge: Callable[[str, list[Acknowledgement], Now], None]) -> None:
        words = {(partition.index, offset): each.type_of(offset)
                 for each in said for offset in range(each.first, each.last + 1)}
        words = {place: kind for place, kind in words.items() if self._is_counted(place)}
        held = [place for place in words if self._is_held(place, partition, member_id, now)]
        try:
            acknowledge(member_id, said, now)
        except ApiError:
            self._counts["acknowledgements refused"] += 1
            self._hold(not held or len(held) < len(words), f"{member_id} may not acknowledge {held}, which it holds")
            raise
        self._hold(len(held) == len(words),
                   f"{member_id} acknowledges {sorted(words.keys() - set(held))}, which it does not hold")
        for place, kind in words.items():
            self._note(place, kind, member_id, now)

    def _is_counted(self, place: Place) -> bool:
        """What is said of records before the first that is not done is passed over."""
        share = self._watched[place[0]]
        return place[1] >= share.records.start_offset

    def _is_held(self, place: Place, partition: Partition, member_id: str, now: Now) -> bool:
        holding = self.of(place).holding
        return (holding is not None and holding.member_id == member_id and now.s < holding.until
                and holding.epoch == partition.leader_epoch)

    def _note(self, place: Place, kind: int, member_id: str, now: Now) -> None:
        known = self.of(place)
        assert known.holding is not None
        if kind == RENEW:
            self._counts["records renewed"] += 1
            known.holding = known.holding._replace(until=now.s + self._rules.lock_s)
            return
        known.holding = None
        if kind == RELEASE:
            self._counts["records released"] += 1
        else:
            self._counts["records accepted" if kind == ACCEPT else "records rejected"] += 1
            known.done = f"{'accepted' if kind == ACCEPT else 'rejected'} by {member_id}"

    def _released(self, share: SharePartition, partition: Partition, member_id: str,
                  release: Callable[[str], None]) -> None:
        release(member_id)
        self._hold(all(run.lock is None or run.lock.member_id != member_id for run in share.records),
                   f"{member_id} holds records after its session")
        for offset in self.held_by(member_id, partition):
            self._counts["records of sessions that ended"] += 1
            self.of((partition.index, offset)).holding = None


def _wrap(share: SharePartition, name: str, around: Callable[[Any], Any]) -> None:
    setattr(share, name, around(getattr(share, name)))
