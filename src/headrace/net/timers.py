"""Time and chance for the driver: monotonic seconds, alarms on the event loop, jitter. A simulation gives its own.

Knows nothing else. Read next: `net.driver`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Timers", "Clock", "in_time", "jitter", "monotonic"]

_T = TypeVar("_T")

Clock = Callable[[], float]
"""Gives seconds that never run backwards; the zero point has no meaning."""

monotonic: Clock = time.monotonic
"""The clock that asyncio's own loop uses."""

_FOREVER = float("inf")
_BITS = 53  # of a float's fraction


def jitter() -> float:
    """A number in [0, 1), of the system's: an application that seeds `random` gets its own sequence all the same."""
    return (int.from_bytes(os.urandom(7), "big") >> 56 - _BITS) / (1 << _BITS)


async def in_time(future: asyncio.Future[_T], timeout_s: float) -> _T:
    """What a future gives within so many seconds, and in the very turn of the loop in which they are over.

    `asyncio.timeout` alone throws the latter away: it cancels who waits although the future is done.

    Raises:
        TimeoutError: it gave nothing, and is cancelled.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await future
    except TimeoutError:
        if future.cancelled():
            raise
        return future.result()


class Timers:
    """Calls functions later; each function has at most one alarm, and setting it again moves it.

    Args:
        loop: the event loop that calls.
    """

    __slots__ = ("_handles", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handles: dict[Callable[[], None], asyncio.TimerHandle] = {}

    def set(self, action: Callable[[], None], wait_s: float) -> None:
        """Call `action` after so many seconds; with infinity never."""
        self.cancel(action)
        if wait_s != _FOREVER:
            self._handles[action] = self._loop.call_later(max(wait_s, 0.0), action)

    def cancel(self, action: Callable[[], None]) -> None:
        """Do not call it after all."""
        handle = self._handles.pop(action, None)
        if handle is not None:
            handle.cancel()

    def cancel_all(self) -> None:
        """Call nothing any more."""
        for action in list(self._handles):
            self.cancel(action)
