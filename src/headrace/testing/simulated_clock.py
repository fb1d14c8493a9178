"""An asyncio loop whose time is a number: when nothing is left to do now, it is the time of the next timer.

What runs on it must not wait for anything but the loop: no sockets, no threads. Minutes pass in milliseconds, and the
same code does the same thing each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
_MOST_TURNS = 300_000
_TURN_S = 1e-7
"""What a turn of the loop takes: a wait that is over but for a rounding error would else never end."""


class DeadlockError(Exception):
    """Nothing will ever happen again, and the work is not done."""


class LivelockError(Exception):
    """The same happens again and again."""


class _Timers:
    """In place of the selector: waits for a timer by moving the clock."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise DeadlockError
        self._turns += 1
        if self._turns > _MOST_TURNS:
            raise LivelockError
        self._loop.now += max(timeout, 0.0) + _TURN_S
        return []

    def begin(self) -> None:
        """Count the loop's turns anew."""
        self._turns = 0

    def close(self) -> None:
        pass


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop. `now` is its time, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.failures: list[dict[str, Any]] = []
        self._selector = _Timers(self)
        self._clock_resolution = 1e-9
        self.set_exception_handler(lambda _, context: self.failures.append(context))

    def time(self) -> float:
        return self.now

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run until the work is done; what is left then is cancelled.

        Raises:
            DeadlockError: nothing will ever happen again.
        """
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(work)
        finally:
            left = asyncio.all_tasks(self)
            for task in left:
                task.cancel()
            self._selector.begin()
            self.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            asyncio.set_event_loop(None)
            self.close()
