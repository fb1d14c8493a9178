"""Offsets of a partition: which of them have a record, and which of those a worker has worked on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator


class Offsets:
    """Those that have a record; transactions leave gaps.

    Args:
        offsets: in order.
    """

    def __init__(self, offsets: Iterable[int]) -> None:
        self._offsets = list(offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[int]:
        return iter(self._offsets)

    def between(self, first: int, end: int) -> int:
        """How many records there are from `first` on, up to `end`, which is not among them."""
        return max(bisect_left(self._offsets, end) - bisect_left(self._offsets, first), 0)


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets, from a first one up to an end, in order and without overlaps."""
    whole: list[tuple[int, int]] = []
    for first, end in sorted(spans):
        if whole and first <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(whole[-1][1], end))
        else:
            whole.append((first, end))
    return whole


def covered(there: Offsets, spans: list[tuple[int, int]], first: int, end: int) -> int:
    """How many records from `first` up to `end` lie in merged spans."""
    return sum(there.between(max(begin, first), min(stop, end)) for begin, stop in spans)
