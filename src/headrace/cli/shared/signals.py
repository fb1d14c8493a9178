"""Ctrl-C and SIGTERM for commands that end in an orderly way."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["InterruptedReadingError", "SignalStop", "name_of", "told_of_signals"]

_WATCHED = (signal.SIGINT, signal.SIGTERM)
_SAME_S = 0.5  # one Ctrl-C may come twice: to the process and to its group


def name_of(number: int) -> str:
    """What the user calls a signal."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


@contextmanager
def told_of_signals(handler: Callable[[int], None]) -> Iterator[None]:
    """Call a function with the number of each SIGINT and SIGTERM; what stood there before comes back in the end."""
    def on_signal(number: int, _frame: FrameType | None) -> None:
        handler(number)

    before: dict[int, Any] = {number: signal.signal(number, on_signal) for number in _WATCHED}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class InterruptedReadingError(KeyboardInterrupt):
    """A signal came while nothing was half done."""


class SignalStop:
    """The first signal asks a command to stop in an orderly way, a second one stops it at once.

    Args:
        at_once: the signals that do so when they come second.

    Attributes:
        number: the signal that came last, 0 for none.
        reading: nothing is half done, so the first signal may raise `InterruptedReadingError`.
    """

    def __init__(self, at_once: Collection[int] = _WATCHED) -> None:
        self.number = 0
        self.reading = False
        self._at_once = at_once
        self._came_at = 0.0

    def told(self, number: int) -> None:
        """A signal came; for `told_of_signals`.

        Raises:
            InterruptedReadingError: it is the first one, and nothing is half done.
            KeyboardInterrupt: it is another one.
        """
        now = time.monotonic()
        if number in self._at_once and self._came_at and now - self._came_at > _SAME_S:
            raise KeyboardInterrupt
        first, self._came_at = not self._came_at, self._came_at or now
        self.number = number
        if first and self.reading:
            raise InterruptedReadingError

    @property
    def status(self) -> int:
        """The exit status of a process that the signal has stopped, as shells count."""
        return 128 + self.number

    @property
    def name(self) -> str:
        """What the user calls the signal."""
        return name_of(self.number)
