"""Some records on their way from an input to the producer, column by column, and where in the input they stood."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["SLICE_RECORDS", "Headers", "Malformed", "Places", "Slice", "well_formed"]

SLICE_RECORDS = 1_000
"""Most records of a slice, and so the most that go out between Ctrl-C and its effect."""

Headers = list[tuple[str, bytes | None]]
Malformed = Callable[[int, str], bool]
"""Called with the position of what is no record, and why. True when nothing behind it is to be read."""

_T = TypeVar("_T")


def well_formed(
    numbered: Iterable[tuple[int, bytes]], parse: Callable[[bytes], _T], malformed: Malformed
) -> tuple[list[tuple[int, bytes, _T]], bool]:
    """Lines that are records: their positions, themselves, and what `parse` makes of them; and whether to read no more.

    Args:
        numbered: positions and lines.
        parse: raises ValueError for a line that is no record; the text says why.
        malformed: called with those.
    """
    found: list[tuple[int, bytes, _T]] = []
    for number, line in numbered:
        try:
            parsed = parse(line)
        except ValueError as error:
            if malformed(number, str(error)):
                return found, True
            continue
        found.append((number, line, parsed))
    return found, False


class Places:
    """Numbers that stand for a line of one of several inputs, so that one number is all a record has to carry."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._names: list[str] = []
        self._last = 0

    def begin(self, name: str) -> int:
        """A further input begins. Returns what is to be added to its line numbers, which begin at 1."""
        self._starts.append(self._last)
        self._names.append(name)
        return self._last

    def reached(self, number: int) -> None:
        """So far have lines been numbered."""
        self._last = max(self._last, number)

    def where(self, first: int, end: int | None = None) -> str:
        """A line, or the lines from `first` to before `end`, in words."""
        index = bisect_right(self._starts, first - 1) - 1
        start, name = self._starts[index], self._names[index]
        if end is None or end == first + 1:
            return f"{name}:{first - start}"
        return f"{name}:{first - start}-{end - 1 - start}"


@dataclass(slots=True)
class Slice:
    """Records, one column for each part; a column that is None is the same for all records, as the options say.

    Attributes:
        lines: position of each record, as `Places` numbers them.
        values: values; None is a tombstone.
        keys: keys.
        partitions: partition numbers, -1 for the partitioner's choice.
        timestamps: milliseconds since the epoch, 0 for now.
        headers: headers.
        raw: the lines as they were read, for --tee.
    """

    lines: Sequence[int]
    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    partitions: list[int] | None = None
    timestamps: list[int] | None = None
    headers: list[Headers] | None = None
    raw: list[bytes] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def part(self, first: int, end: int) -> Slice:
        """The records from `first` to before `end`."""
        if first == 0 and end >= len(self):
            return self
        cut = slice(first, end)
        return Slice(self.lines[cut], self.values[cut], self.keys and self.keys[cut],
                     self.partitions and self.partitions[cut], self.timestamps and self.timestamps[cut],
                     self.headers and self.headers[cut], self.raw and self.raw[cut])

    @property
    def size_bytes(self) -> int:
        """Bytes of values and keys."""
        size = sum(map(len, filter(None, self.values)))
        return size + sum(map(len, filter(None, self.keys))) if self.keys else size
