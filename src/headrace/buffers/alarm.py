"""`Alarm`: a loop is told of a time by the thread that knows it, without a wake-up. The plain twin.

It must not know what is due then. Read next: `headrace.net.thread`, whose loops watch its file, and
`headrace.buffers.open_batches`, which sets it.
"""

from __future__ import annotations

import math

__all__ = ["Alarm"]


class Alarm:
    """A file that can be read from a time on, which any thread may set.

    Only the native twin has such a file, on Linux (timerfd); this one never rings.

    Attributes:
        exists: whether alarms ring here; without, none is to be made.
        file: descriptor, -1 for none.
        at: monotonic seconds, for which it was set last; `math.inf` before.

    Raises:
        OSError: the process has no file to spare.
    """

    __slots__ = ("at", "file")

    exists = False

    def __init__(self) -> None:
        self.file, self.at = -1, math.inf

    def set(self, at: float) -> None:
        """Ring at a time in monotonic seconds, at once if it is over; instead of any time before."""
        self.at = at

    def answer(self) -> None:
        """It has been heard: it is silent until it is set again."""

    def close(self) -> None:
        """It never rings again."""
        self.file = -1
