"""The broker's clock: deadlines are kept, and what waits is answered, whatever was done to the cluster."""

import asyncio
import uuid
from collections.abc import Coroutine
from typing import Any

from headrace.broker.clock import BrokerClock
from headrace.broker.cluster import BrokerCluster, BrokerNode
from headrace.broker.deadlines import Now
from headrace.broker.dispatch import served_by
from headrace.broker.purgatory import DelayedReply
from headrace.broker.settings import BrokerSettings
from headrace.testing.simulated_clock import SimulatedLoop


class Site:
    """A cluster on a simulated loop, and one request that waits."""

    def __init__(self) -> None:
        self.loop = SimulatedLoop()
        self.cluster = BrokerCluster([BrokerNode(1, "h", 1, True)], BrokerSettings(), served_by(BrokerSettings()),
                                     uuid.uuid4)
        self.clock = BrokerClock(self.cluster, lambda: 77)
        self.looked: list[Now] = []

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.loop.run(work)

    def wait(self, key: str, until: float | None = None) -> DelayedReply:
        self.clock.start()
        waiting = DelayedReply([key], until)
        waiting.deliver = self.looked.append
        self.cluster.purgatory.put(waiting)
        self.clock.settle()
        return waiting


def test_the_time_is_the_loops_and_the_wall_clocks() -> None:
    site = Site()

    async def work() -> None:
        site.clock.start()
        await asyncio.sleep(2.0)
        assert site.clock.now.ms == 77
        assert round(site.clock.now.s, 3) == 2.0

    site.run(work())


def test_what_is_woken_is_looked_at_in_the_next_turn_once_for_all_that_was_done() -> None:
    site = Site()

    async def work() -> None:
        site.wait("a")
        for _ in range(3):
            site.cluster.purgatory.wake("a")
            site.clock.settle()
        assert site.looked == []
        await asyncio.sleep(0)
        assert len(site.looked) == 1

    site.run(work())


def test_a_deadline_is_kept_also_one_that_comes_before_those_that_were_known() -> None:
    site = Site()

    async def work() -> None:
        site.wait("a", until=5.0)
        site.wait("b", until=2.0)
        await asyncio.sleep(10.0)
        assert [round(now.s, 3) for now in site.looked] == [2.0, 5.0]

    site.run(work())


def test_a_closed_clock_does_nothing_any_more() -> None:
    site = Site()

    async def work() -> None:
        site.wait("a", until=1.0)
        site.clock.close()
        site.clock.settle()
        await asyncio.sleep(5.0)
        assert site.looked == []

    site.run(work())
