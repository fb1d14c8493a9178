"""Lends connections to the threads that produce: a batch that is alone is sent by its own thread (decision 0027).

The sender says with `Lend` that nothing of a partition waits. Then its accumulator gets a way to the broker, and the
connection is lent to it while no request of the loop is under way there. Replies come to the loop, as all do.
It must not know what a request looks like, nor when one may be sent. Read next: `headrace.buffers.direct_lane`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.buffers import DirectLane, DirectPartition, RecordAccumulator
from headrace.machines.cluster.in_flight import LAST_CORRELATION_ID, ClientRequest
from headrace.machines.producer.lone_batch import Lend, LoneLane
from headrace.machines.producer.sender import Sender
from headrace.net.connection import Connection
from headrace.net.driver import Driver
from headrace.net.stats import request_name

__all__ = ["DirectSends"]


class DirectSends:
    """Carries out `Lend` for one producer.

    Args:
        sender: decides what is lent, and takes what came of it.
        driver: has the connections.
        accumulators: by topic.
        client_id: of the requests.
        call_soon: calls a function on the loop, from any thread.
    """

    def __init__(self, sender: Sender, driver: Driver, accumulators: Mapping[str, RecordAccumulator], client_id: str,
                 call_soon: Callable[[Callable[[], object]], object]) -> None:
        self._sender, self._driver, self._accumulators = sender, driver, accumulators
        self._client_id, self._call_soon = client_id, call_soon
        self._connections: dict[Connection, _LentConnection] = {}

    def lend(self, effect: Lend) -> None:
        """Let the partition's lone batches be sent by their threads, where the connection to its leader can be lent."""
        lane = effect.lane
        connection = self._driver.connection(lane.leader, lane.exchange.request.request)
        accumulator = self._accumulators.get(lane.queue.topic)
        answer = lane.exchange.reply.around(effect.version)
        if connection is None or accumulator is None or answer is None:
            return
        lent = self._connections.get(connection)
        if lent is None:
            lent = _LentConnection(effect, self._sender, self._driver, connection, self._call_soon, self._connections)
        if not connection.lend(lent):
            return
        self._connections[connection] = lent
        before, behind, flexible = lane.exchange.request.around(effect.version, self._client_id)
        request = (lane.exchange.request.request.api_key, effect.version, before, behind, flexible)
        way = _Way(lane, effect.version, accumulator, lent)
        lent.ways[way] = None
        accumulator.lend(lane.queue.partition, DirectPartition(
            lent.lane, way, request, answer, effect.producer, effect.used_at))
        self._sender.on_lent(lane, way)


class _Way:
    """One partition that is lent.

    Attributes:
        lane: what its batches have in common.
        version: of their requests.
    """

    __slots__ = ("_accumulator", "_lent", "lane", "version")

    def __init__(self, lane: LoneLane, version: int, accumulator: RecordAccumulator, lent: _LentConnection) -> None:
        self.lane, self.version = lane, version
        self._accumulator, self._lent = accumulator, lent

    def take_back(self) -> None:
        """What is in flight on the connection becomes the sender's."""
        self._lent.take_back()

    def end(self) -> None:
        """Nothing more is sent directly; what is in flight becomes the sender's."""
        self.detach()
        self._lent.take_back()

    def detach(self) -> None:
        """Nothing more is sent directly."""
        self._accumulator.lend(self.lane.queue.partition)
        self._lent.ways.pop(self, None)


class _LentConnection:
    """One connection as the threads that produce have it."""

    def __init__(self, effect: Lend, sender: Sender, driver: Driver, connection: Connection,
                 call_soon: Callable[[Callable[[], object]], object],
                 connections: dict[Connection, _LentConnection]) -> None:
        self.lane = DirectLane(effect.most, lambda: call_soon(connection.take_back))
        self.ways: dict[_Way, None] = {}
        self.request_name = request_name(effect.lane.exchange.request.request)
        self._sender, self._driver, self._connection, self._connections = sender, driver, connection, connections

    @property
    def in_flight(self) -> int:
        """Batches that await their replies."""
        return self.lane.in_flight

    def start(self, file: int, correlation_id: int, until: float) -> None:
        """See `net.settings.Borrower`."""
        self.lane.start(file, correlation_id, until)

    def stop(self) -> tuple[int, list[tuple[ClientRequest, int]], bytes | None]:
        """See `net.settings.Borrower`."""
        in_flight, rest = self.lane.stop()
        next_id, calls = self.lane.correlation_id, []
        for number, (way, opened, sealed, size_bytes) in enumerate(in_flight, next_id - len(in_flight)):
            way.detach()
            send = self._sender.on_direct_taken_back(way.lane, opened, sealed)
            send.version, send.node_id = way.version, send.destination
            call = ClientRequest(self._sender, send, opened.opened_at + send.timeout_s)
            call.correlation_id, call.written_at = number & LAST_CORRELATION_ID, opened.opened_at
            calls.append((call, size_bytes))
        return next_id, calls, rest

    def take(self, data: memoryview, count: int) -> list[tuple[int, float]]:
        """See `net.settings.Borrower`."""
        answered = []
        for way, opened, base_offset, log_append_ms, size_bytes in self.lane.take(data, count):
            self._sender.on_direct_stored(way.lane, opened, base_offset, log_append_ms)
            answered.append((size_bytes, opened.opened_at))
        if answered:
            self._driver.deliver_events_of(self._sender)
        return answered

    def end(self) -> None:
        """See `net.settings.Borrower`."""
        self._connections.pop(self._connection, None)
        for way in list(self.ways):
            way.lane.queue.end_direct()

    def take_back(self) -> None:
        """The sender wants what is in flight."""
        if self.lane.in_flight:
            self._connection.take_back()
