"""The one place in the broker that knows what time it is: it reads the clocks, and looks again when something is due.

The cluster decides and never waits; this gives it the time. After every call of the cluster `settle` must be called:
requests that can be answered now are answered, in the loop's next turn and all at once, and a timer is set for the next
deadline. On a simulated loop, with a wall clock that is given, all times are simulated.

Read next: `broker.deadlines` and `broker.purgatory`, what is looked after here.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from headrace.broker.cluster import BrokerCluster
from headrace.broker.deadlines import Now

__all__ = ["BrokerClock"]


class BrokerClock:
    """Gives the time to a cluster. All methods run on the broker's loop.

    Args:
        cluster: what is looked after.
        wall_ns: the wall clock, nanoseconds.
    """

    def __init__(self, cluster: BrokerCluster, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self._cluster = cluster
        self._wall_ns = wall_ns
        self._loop: asyncio.AbstractEventLoop
        self._monotonic: Callable[[], float]
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = math.inf
        self._looks_soon = False

    def start(self) -> None:
        """Use the loop that runs now; a second call changes nothing."""
        self._loop = asyncio.get_running_loop()
        self._monotonic = self._loop.time

    def now(self) -> Now:
        """What the clocks say."""
        return Now(self._monotonic(), self._wall_ns() // 1_000_000)

    def settle(self) -> None:
        """Something was done to the cluster: see to what follows from it."""
        cluster = self._cluster
        if cluster.purgatory.due and not self._looks_soon:
            self._looks_soon = True
            self._loop.call_soon(self._look)
        if cluster.deadlines.next_at < self._rings_at:
            self._stop_timer()
            self._rings_at = cluster.deadlines.next_at
            self._timer = self._loop.call_at(self._rings_at, self._ring)

    def close(self) -> None:
        """Do nothing any more when a time has come."""
        self._stop_timer()
        self._rings_at = -math.inf

    def _ring(self) -> None:
        self._rings_at = math.inf
        self._cluster.deadlines.run(self.now())
        self._look()

    def _look(self) -> None:
        """Look again at what is due, until nothing is."""
        self._looks_soon = False
        now = self.now()
        for delayed in self._cluster.purgatory.take_due():
            delayed.deliver(now)
        self.settle()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
