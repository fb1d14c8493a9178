"""Ranges of message versions, written as Kafka's schemas write them: ``"0-13"``, ``"3+"``, ``"2"``."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.wire.field import NO_END, bounds

__all__ = ["NEVER", "Versions"]


class Versions(NamedTuple):
    """An inclusive range of versions."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read ``"0-13"``, ``"3+"`` or ``"2"``."""
        return cls(*bounds(text))

    def __str__(self) -> str:
        return f"{self.low}+" if self.high == NO_END else f"{self.low}-{self.high}"

    def holds(self, version: int) -> bool:
        """True when `version` lies in the range."""
        return self.low <= version <= self.high


NEVER: Final = Versions(1, 0)
"""The empty range."""
