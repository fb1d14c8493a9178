"""Time that is a number: a clock with a list of what happens when, and an asyncio loop on such a clock.

What runs here must not wait for anything else: no sockets, no threads. Minutes pass in milliseconds, and the same code
does the same thing each time. `SimulatedClock` drives machines and the broker without asyncio; `SimulatedLoop` runs
whole clients.

Read next: `testing.memory_network`.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["DeadlockError", "LivelockError", "SimulatedClock", "SimulatedLoop"]

Result = TypeVar("Result")
_MOST_TURNS = 300_000
_TURN_S = 1e-7
"""What a turn of the loop takes: a wait that is over but for a rounding error would else never end."""


class DeadlockError(Exception):
    """Nothing will ever happen again, and the work is not done."""


class LivelockError(Exception):
    """The same happens again and again."""


class SimulatedClock:
    """A clock, and what happens when.

    Attributes:
        now: monotonic seconds.
        happened: how many actions were done.
    """

    def __init__(self, now: float = 100.0) -> None:
        self.now = now
        self.happened = 0
        self._began = now
        self._actions: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()

    @property
    def wall_ms(self) -> int:
        """The wall clock, milliseconds: a moment in 2023 and what has passed since."""
        return 1_700_000_000_000 + int((self.now - self._began) * 1000)

    def after(self, delay_s: float, action: Callable[[], object]) -> None:
        """Do something later; of the same time in the order in which it was asked for."""
        heapq.heappush(self._actions, (self.now + delay_s, next(self._order), action))

    def next(self) -> float:
        """When something happens next; infinity when nothing does."""
        return self._actions[0][0] if self._actions else math.inf

    def go_to(self, moment: float) -> None:
        """Let it be `moment`, and do what is due by then."""
        self.now = max(self.now, moment)
        while self._actions and self._actions[0][0] <= self.now:
            self.happened += 1
            heapq.heappop(self._actions)[2]()


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
    """An asyncio loop: when nothing is left to do now, it is the time of the next timer.

    Attributes:
        now: its time, in seconds.
        failures: what asyncio's exception handler got.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.failures: list[dict[str, Any]] = []
        self._selector = _Timers(self)
        self._clock_resolution = 1e-9
        self.set_exception_handler(lambda _, context: self.failures.append(context))

    def time(self) -> float:
        """asyncio: what time it is."""
        return self.now

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run until the work is done; what is left then is cancelled.

        Raises:
            DeadlockError: nothing will ever happen again.
            LivelockError: it does not come to an end.
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
