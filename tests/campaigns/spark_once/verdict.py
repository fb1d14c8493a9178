"""What came out, against what went in: numbers by partition. Knows no client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

Log = Mapping[int, Iterable[int]]
"""The numbers of a topic's records, by partition, in the order of the log."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reader of committed records found.

    Attributes:
        expected: numbers that went in.
        committed: records that came out.
        twice: records more than there are different numbers.
        missing: numbers that did not come out.
        foreign: records in another partition than they were sent to, or never sent.
        disordered: records behind a later one of their partition; not looked for where rows were shuffled.
        aborted: records that only a reader of uncommitted ones finds.
    """

    expected: int
    committed: int
    twice: int
    missing: int
    foreign: int
    disordered: int
    aborted: int

    @property
    def findings(self) -> int:
        """What is wrong."""
        return self.twice + self.missing + self.foreign + self.disordered


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """One for several topics."""
    return Verdict(*map(sum, zip(*map(astuple, verdicts), strict=True)))


def verdict_of(sent: Log, committed: Log, uncommitted: int, *, ordered: bool) -> Verdict:
    """Compare two topics.

    Args:
        sent: what went in.
        committed: what came out, at read_committed.
        uncommitted: records that came out at read_uncommitted.
        ordered: each partition's records must come in the order in which they went in.
    """
    expected = {partition: list(numbers) for partition, numbers in sent.items()}
    found = {partition: list(numbers) for partition, numbers in committed.items()}
    twice = missing = foreign = disordered = 0
    for partition in expected.keys() | found.keys():
        wanted, there = set(expected.get(partition, ())), Counter(found.get(partition, ()))
        foreign += sum(count for number, count in there.items() if number not in wanted)
        twice += sum(count - 1 for number, count in there.items() if number in wanted)
        missing += len(wanted - there.keys())
        disordered += _disordered([n for n in found.get(partition, []) if n in wanted]) if ordered else 0
    count = sum(map(len, found.values()))
    return Verdict(sum(map(len, expected.values())), count, twice, missing, foreign, disordered, uncommitted - count)


def _disordered(numbers: list[int]) -> int:
    """How many first occurrences lie behind a greater number."""
    seen: set[int] = set()
    behind, greatest = 0, -1
    for number in numbers:
        behind += number < greatest and number not in seen
        greatest = max(greatest, number)
        seen.add(number)
    return behind
