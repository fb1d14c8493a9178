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
from headrace.broker.server import ClientConnection, Listener
from headrace.broker.settings import BrokerSettings
from headrace.testing.simulated_clock import SimulatedLoop
from headrace.wire.frame import encode_request
from headrace.wire.messages.consumer.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.schema import Request
from tests.support.raw_client import batch_of, produce_request


class Site:
    """A cluster on a simulated loop, and one request that waits."""

    def __init__(self) -> None:
        self.loop = SimulatedLoop()
        self.cluster = BrokerCluster([BrokerNode(1, "h", 1, True)], BrokerSettings(), served_by(BrokerSettings()),
                                     uuid.uuid4)
        self.clock = BrokerClock(self.cluster, lambda: 77_000_000)
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
        assert site.clock.now().ms == 77
        assert round(site.clock.now().s, 3) == 2.0

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


class Transport(asyncio.Transport):
    """Keeps what the broker says."""

    def __init__(self) -> None:
        super().__init__()
        self.said = bytearray()

    def write(self, data: Any) -> None:
        self.said += data

    def is_closing(self) -> bool:
        return False


def connected(site: Site, transport: asyncio.Transport) -> ClientConnection:
    connection = ClientConnection(site.cluster, Listener(1), site.clock)
    connection.connection_made(transport)
    return connection


def feed(connection: ClientConnection, request: Request, version: int) -> None:
    frame = b"".join(encode_request(request, version, 1, "c"))
    while frame:
        room = connection.get_buffer(len(frame))
        taken = min(len(room), len(frame))
        room[:taken] = frame[:taken]
        connection.buffer_updated(taken)
        frame = frame[taken:]


def fetch(partitions: int, most_bytes: int) -> FetchRequest:
    return FetchRequest(max_wait_ms=5000, min_bytes=1, max_bytes=most_bytes, topics=[FetchTopic(topic="t", partitions=[
        FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=most_bytes) for number in
        range(partitions)])])


def test_a_fetch_misses_no_append_that_comes_in_the_same_turn_of_the_loop() -> None:
    site = Site()

    async def work() -> None:
        site.clock.start()
        site.cluster.catalog.create("t", 1, 1)
        heard = Transport()
        feed(connected(site, heard), fetch(1, 1000), 11)
        feed(connected(site, Transport()), produce_request("t", 0, batch_of([b"a"])), 9)
        assert not heard.said
        await asyncio.sleep(0.001)
        assert heard.said

    site.run(work())


def test_a_client_that_goes_away_amid_a_long_reply_is_sent_no_more_of_it() -> None:
    class Broken(Transport):
        """Breaks as soon as something is written."""

        writes = 0

        def write(self, data: Any) -> None:
            self.writes += 1

        def is_closing(self) -> bool:
            return self.writes > 0

    site = Site()

    async def work() -> None:
        site.clock.start()
        site.cluster.catalog.create("t", 4, 1)
        writer, broken = connected(site, Transport()), Broken()
        for partition in range(4):
            feed(writer, produce_request("t", partition, batch_of([bytes(300_000)])), 9)
        feed(connected(site, broken), fetch(4, 2_000_000), 11)
        assert broken.writes == 1

    site.run(work())
