"""Time as the broker is given it: what the clocks say, and what is to be done when a time has come.

Nothing in the broker reads a clock or waits, but for its server: a deadline is an entry in a list that says when, and
the owner of the clock looks at `next_at` and calls `run()`. So the whole broker runs under a simulated clock.

It knows nothing of what is done. Read next: `broker.purgatory`; `broker.clock`, which has the clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

__all__ = ["Deadline", "Deadlines", "Now"]

_MANY_CANCELLED = 64


class Now(NamedTuple):
    """What the clocks say: monotonic seconds, for waiting, and wall-clock milliseconds, for records and journals."""

    s: float
    ms: int


class Deadline:
    """Something that is to be done at a time, unless it is cancelled before.

    Attributes:
        when: monotonic seconds.
    """

    __slots__ = ("_action", "_list", "when")

    def __init__(self, when: float, action: Callable[[Now], None], deadlines: Deadlines) -> None:
        self.when = when
        self._action: Callable[[Now], None] | None = action
        self._list = deadlines

    @property
    def is_pending(self) -> bool:
        """Whether it is still to be done."""
        return self._action is not None

    def cancel(self) -> None:
        """Do nothing at that time; a second call, or one after it, changes nothing."""
        if self._action is not None:
            self._action = None
            self._list.note_cancelled()

    def take(self) -> Callable[[Now], None] | None:
        """What is to be done, once; None when it was cancelled or done."""
        action, self._action = self._action, None
        return action


class Deadlines:
    """All that is to be done later, the earliest first; of the same time in the order in which it was asked for.

    Attributes:
        next_at: when `run` must be called; infinity when nothing is to be done.
    """

    def __init__(self) -> None:
        self.next_at = math.inf
        self._heap: list[tuple[float, int, Deadline]] = []
        self._order = 0
        self._cancelled = 0

    def at(self, when: float, action: Callable[[Now], None]) -> Deadline:
        """Do something at a time, in monotonic seconds; it is called with what the clocks say then."""
        deadline = Deadline(when, action, self)
        self._order += 1
        heappush(self._heap, (when, self._order, deadline))
        self.next_at = self._heap[0][0]
        return deadline

    def run(self, now: Now) -> None:
        """Do what is due."""
        while self._heap and self._heap[0][0] <= now.s:
            action = heappop(self._heap)[2].take()
            if action is None:
                self._cancelled -= 1
            else:
                action(now)
        self.next_at = self._heap[0][0] if self._heap else math.inf

    def note_cancelled(self) -> None:
        """One of the deadlines was cancelled: when most are, they are let go."""
        self._cancelled += 1
        if self._cancelled > max(_MANY_CANCELLED, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if entry[2].is_pending]
            heapify(self._heap)
            self._cancelled = 0
