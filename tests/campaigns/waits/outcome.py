"""What became of the records of one program."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """What became of the records of one program.

    Attributes:
        program: what it did, and with which settings.
        records: how many there were.
        came: how many were reported, or read; each time that one was counts.
        slowest_s: the longest that one of them took, in seconds.
        wrong: what else was wrong, in words.
    """

    program: str
    records: int
    came: int
    slowest_s: float
    wrong: str = ""

    def fault(self, most_s: float) -> str:
        """What is wrong with it if no record may take longer than that; nothing where all is well."""
        if self.wrong:
            return self.wrong
        if self.came < self.records:
            return f"{self.records - self.came} of {self.records} did not come"
        if self.came > self.records:
            return f"{self.came - self.records} came twice, of {self.records}"
        return f"one of {self.records} took {self.slowest_s:.2f} s" if self.slowest_s > most_s else ""
