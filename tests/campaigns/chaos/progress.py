"""Time: how fast to write, and how long nothing has moved."""

from __future__ import annotations

import time
from collections import Counter


class Progress:
    """When something was last stored, and the longest time without.

    Attributes:
        begun: something was stored.
    """

    def __init__(self) -> None:
        self.begun = False
        self.longest_s = 0.0
        self._last = time.monotonic()

    def moved(self) -> None:
        now = time.monotonic()
        if self.begun:
            self.longest_s = max(self.longest_s, now - self._last)
        self._last, self.begun = now, True

    @property
    def idle_s(self) -> float:
        return time.monotonic() - self._last


def listed(counts: Counter[str]) -> str:
    """What happened how often, in one line."""
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


class Backpressure:
    """So many records a second, at most a second's worth at once."""

    def __init__(self, rate: float) -> None:
        self._rate, self._credit, self._asked_at = rate, 0.0, time.monotonic()

    def due(self) -> int:
        """How many records may be sent now."""
        now = time.monotonic()
        self._credit = min(self._rate, self._credit + (now - self._asked_at) * self._rate)
        self._asked_at, count = now, int(self._credit)
        self._credit -= count
        return count
