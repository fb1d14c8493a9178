"""What became of records, on its way to the broker that handed them out.

Plain values: it must not know sessions' numbers, requests or time. Read next: `machines.share.share_session`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol
from uuid import UUID

from headrace.errors import KafkaError
from headrace.machines.consumer.subscription import Key
from headrace.machines.machine import Event
from headrace.slotted import slotted

__all__ = [
    "GAP", "RELEASE", "RENEW", "Acknowledged", "Acknowledgements", "HoldingSession", "Run", "batches_of", "gaps_in",
]

GAP: Final = 0
"""Of an offset that was acquired and has no record: it was compacted away, or is a transaction's marker."""
RELEASE: Final = 2
RENEW: Final = 4

Run = tuple[int, int, int]
"""First offset, last offset, and what became of the records or how often they were delivered."""


class HoldingSession(Protocol):
    """The session in which records were acquired: they are held as long as it lasts.

    Attributes:
        node: id of the broker.
        lost: it has ended.
    """

    node: int
    lost: bool


@slotted(eq=False)
class Acknowledgements:
    """What became of records of one partition that were acquired in one session.

    Attributes:
        key: the partition.
        topic_id: its topic's id.
        session: the session in which they were acquired.
        types: by offset; see `headrace.types.share.AcknowledgeType`.
        runs: first offset, last offset and type of what the application does not know of: gaps, and records that it
            never got.
        give_up_at: monotonic seconds: it is not sent again then; set when it was refused first.
    """

    key: Key
    topic_id: UUID
    session: HoldingSession
    types: Mapping[int, int]
    runs: Sequence[Run] = ()
    give_up_at: float = 0.0

    @property
    def renews(self) -> bool:
        """Whether some of the records are to be held for longer."""
        return RENEW in self.types.values()


@slotted()
class Acknowledged(Event):
    """A broker has answered acknowledgements, or will not.

    Attributes:
        key: the partition.
        offsets: of the records.
        error: why they do not hold; None when they do.
    """

    key: Key
    offsets: frozenset[int]
    error: KafkaError | None


def batches_of(parts: Iterable[Acknowledgements]) -> list[tuple[int, int, list[int]]]:
    """First and last offset of each run of one partition, and what became of it: one type for all, or one for each.

    They are in order and do not overlap, as brokers want them; of two words about a record the later one counts.
    """
    types: dict[int, int] = {}
    batches: list[tuple[int, int, list[int]]] = []
    for part in parts:
        types.update(part.types)
        batches += [(first, last, [kind]) for first, last, kind in part.runs]
    runs: list[tuple[int, list[int]]] = []
    following = -1
    for offset in sorted(types):
        if offset != following:
            runs.append((offset, []))
        runs[-1][1].append(types[offset])
        following = offset + 1
    batches += [(first, first + len(found) - 1, found if len(set(found)) > 1 else found[:1]) for first, found in runs]
    return sorted(batches)


def gaps_in(ranges: Iterable[Run], start: int, end: int, offsets: Iterable[int]) -> list[Run]:
    """The parts of ranges from one offset up to, and without, another that are not among some offsets, as gaps.

    Args:
        ranges: first offset, last offset, and anything; in order.
        start: where to begin.
        end: where to stop.
        offsets: those that are there, in order.
    """
    gaps: list[Run] = []
    present = [*offsets, end]
    at = 0
    for first, last, _ in ranges:
        free, last = max(first, start), min(last, end - 1)
        while free <= last:
            while present[at] < free:
                at += 1
            if present[at] > free:
                gaps.append((free, min(present[at] - 1, last), GAP))
            free = present[at] + 1
    return gaps
