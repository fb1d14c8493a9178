"""Ranges of message versions, written as Kafka's schemas write them: ``"0-13"``, ``"3+"``, ``"2"``."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ALL", "NEVER", "Versions"]

ALL: Final = "0+"
_NO_END: Final = 0x7FFF


class Versions(NamedTuple):
    """An inclusive range of versions."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read ``"0-13"``, ``"3+"`` or ``"2"``."""
        if text.endswith("+"):
            return cls(int(text[:-1]), _NO_END)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __str__(self) -> str:
        return f"{self.low}+" if self.high == _NO_END else f"{self.low}-{self.high}"

    def holds(self, version: int) -> bool:
        """True when `version` lies in the range."""
        return self.low <= version <= self.high


NEVER: Final = Versions(1, 0)
"""The empty range."""
