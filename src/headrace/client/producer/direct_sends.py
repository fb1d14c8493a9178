"""Lends connections to the threads that produce: a batch that is alone is sent by its own thread (decision 0027).

The sender says with `Lend` that nothing of a partition waits. Then its accumulator gets a way to the broker, and the
connection is lent to it while no request of the loop is under way there. Replies come to the loop, or, where the
application polls behind each record, to the thread that polls (decision 0053).
It must not know what a request looks like, nor when one may be sent. Read next: `headrace.buffers.lanes.direct_lane`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from headrace.buffers import DirectLane, DirectPartition, DirectReplies, Lendable, Polling, RecordAccumulator
from headrace.client.producer.reports import DeliveryReportQueue
from headrace.client.statistics import ProducerStatistics
from headrace.machines.cluster.in_flight import LAST_CORRELATION_ID, ClientRequest
from headrace.machines.producer.lone_batch import Lend, LoneLane
from headrace.machines.producer.sender import Sender
from headrace.net.connection import Connection
from headrace.net.driver import Driver
from headrace.net.stats import DirectExchange, request_name

__all__ = ["DirectSends"]

_POLLED = 3
"""So many replies in a row before each of which the application polled, and it takes the next ones by itself."""
_UNUSUAL = -20
"""Where that was wrong, so many more."""
_LOOK_S = 0.05
"""A reply that nobody has looked for in this time is the loop's. Its report waits for the next poll in any case."""
_IDLE_S = 1.0


class DirectSends:
    """Carries out `Lend` for one producer.

    Args:
        sender: decides what is lent, and takes what came of it.
        driver: has the connections.
        accumulators: by topic.
        deliveries: where reports are queued.
        statistics: counts what is stored.
        client_id: of the requests.
        call_soon: calls a function on the loop, from any thread.
        polling: how the producer is polled; None if replies are all the loop's.
        look_again: has threads that wait see that they may receive.

    Attributes:
        replies: where threads that poll take replies; None before the first time.
    """

    def __init__(self, sender: Sender, driver: Driver, accumulators: Mapping[str, RecordAccumulator],
                 deliveries: DeliveryReportQueue, statistics: ProducerStatistics, client_id: str,
                 call_soon: Callable[[Callable[[], object]], object], polling: Polling | None,
                 look_again: Callable[[], object]) -> None:
        self.sender, self._driver, self._accumulators = sender, driver, accumulators
        self._deliveries, self.statistics = deliveries, statistics
        self._client_id, self.call_soon, self._polling, self._look_again = client_id, call_soon, polling, look_again
        self._connections: dict[Connection, _LentConnection] = {}
        self._unusual: dict[Connection, int] = {}  # what `polled` was when they had nothing to write any more
        self._wake = -1
        self.replies: DirectReplies | None = None
        self._looking: asyncio.TimerHandle | None = None
        statistics.settle = self._count_replies

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
            lent = _LentConnection(effect, self, connection)
            lent.polled = self._unusual.pop(connection, 0)
        if not connection.lend(lent):
            return
        self._connections[connection] = lent
        before, behind, flexible = lane.exchange.request.around(effect.version, self._client_id)
        request = (lane.exchange.request.request.api_key, effect.version, before, behind, flexible)
        way = _Way(lane, effect.version, accumulator, lent)
        lent.ways[way] = None
        accumulator.lend(lane.queue.partition, DirectPartition(
            lent.lane, way, request, answer, effect.producer, effect.used_at))
        self.sender.on_lent(lane, way)

    def deliver_events(self) -> None:
        """Batches are done."""
        self._driver.deliver_events_of(self.sender)

    def forget(self, connection: Connection) -> None:
        """A connection is lost, or nothing is written there any more."""
        lent = self._connections.pop(connection, None)
        if lent is not None and lent.polled < 0:
            self._unusual[connection] = lent.polled

    # Replies that the threads that poll take

    @property
    def polls(self) -> int:
        """How often the application has polled."""
        return 0 if self._polling is None else self._polling.polls

    def lend_replies(self, connection: Connection) -> None:
        """Let the threads that poll take the replies, where reports are all that is waited for."""
        if self._polling is None or self._deliveries.only_errors:
            return
        if self.replies is None:
            try:
                self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            except OSError:  # the process has no file to spare
                return
            self.replies = self._polling.replies = self._deliveries.direct_replies(
                self._wake, lambda: self.call_soon(self._on_failed))
        if not self.replies.has_room or not connection.lend_replies():
            return
        if self._connections[connection].lane.failed:  # somebody waits for what is in flight who does not poll
            self.call_soon(self._on_failed)
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look_after)

    def _on_failed(self) -> None:
        """Something came, or was sent, that threads may not take by themselves."""
        for connection, lent in list(self._connections.items()):
            if lent.lane.failed:
                lent.polled = _UNUSUAL
                connection.take_back_replies()
        self._look_again()

    def _look_after(self) -> None:
        """See to what the threads have taken, and to what they have not."""
        assert self.replies is not None
        now, is_waited_for, self._looking = time.monotonic(), self.replies.waiting > 0, None
        for connection, lent in list(self._connections.items()):
            lane = lent.lane
            if not lane.is_read:
                continue
            connection.count_replies()
            if lane.in_flight:
                is_over = not is_waited_for and now - lane.looked_at > _LOOK_S
            else:
                is_over = now - lane.answered_at > _IDLE_S
            if is_over:
                lent.polled = 0
                connection.take_back_replies()
        if self._looking is None and any(lent.lane.is_read for lent in self._connections.values()):
            self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look_after)

    def _count_replies(self) -> None:
        for connection in self._connections:
            connection.count_replies()

    def end(self) -> None:
        """The producer's connections are closed. Also in a forked child, where they are another process's."""
        if self._looking is not None:
            self._looking.cancel()
        if self.replies is not None:
            self.replies.end()
        if self._wake >= 0:
            wake, self._wake = self._wake, -1
            with suppress(OSError):
                os.close(wake)


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
    """One connection as the threads that produce have it.

    Attributes:
        lane: where they send.
        ways: the partitions whose records they send there.
        request_name, in_flight, writes: see `net.settings.Borrower`.
        polled: replies in a row before each of which the application polled.
    """

    def __init__(self, effect: Lend, sends: DirectSends, connection: Connection) -> None:
        self.lane = DirectLane(effect.most, lambda: sends.call_soon(connection.take_back))
        self.ways: dict[_Way, None] = {}
        self.request_name = request_name(effect.lane.exchange.request.request)
        self._sends, self._connection = sends, connection
        self._polls = self.polled = 0

    @property
    def in_flight(self) -> int:
        """Batches that await their replies."""
        return self.lane.in_flight

    @property
    def writes(self) -> bool:
        """See `net.settings.Borrower`."""
        return bool(self.ways)

    def start(self, lent: Lendable, correlation_id: int, until: float) -> None:
        """See `net.settings.Borrower`."""
        self.lane.start(lent, correlation_id, until)

    def stop(self) -> tuple[int, list[tuple[ClientRequest, int]], bytes | None]:
        """See `net.settings.Borrower`."""
        in_flight, rest = self.lane.stop()
        sender, next_id = self._sends.sender, self.lane.correlation_id
        calls: list[tuple[ClientRequest, int]] = []
        for number, (way, opened, sealed, size_bytes, sent_at) in enumerate(in_flight, next_id - len(in_flight)):
            way.detach()
            send = sender.on_direct_taken_back(way.lane, opened, sealed)
            send.version, send.node_id = way.version, send.destination
            call = ClientRequest(sender, send, sent_at + send.timeout_s)
            call.correlation_id, call.written_at = number & LAST_CORRELATION_ID, sent_at
            calls.append((call, size_bytes))
        return next_id, calls, rest

    def take(self, data: memoryview, count: int) -> list[DirectExchange]:
        """See `net.settings.Borrower`."""
        sends, now, exchanges = self._sends, time.monotonic(), list[DirectExchange]()
        for way, opened, base_offset, log_append_ms, sent, received, sent_at in self.lane.take(data, count):
            sends.sender.on_direct_stored(way.lane, opened, base_offset, log_append_ms)
            sends.statistics.on_stored(way.lane.queue, opened.count, opened.size_bytes)
            exchanges.append(DirectExchange(sent, received, sent_at, now))
        if exchanges:
            polls = sends.polls
            self.polled = self.polled + 1 if polls != self._polls else min(self.polled, 0)
            self._polls = polls
            if self.polled >= _POLLED:
                sends.lend_replies(self._connection)
            sends.deliver_events()
        return exchanges

    def start_reading(self) -> None:
        """See `net.settings.Borrower`."""
        assert self._sends.replies is not None
        self.lane.read_by(self._sends.replies)

    def stop_reading(self) -> bytes:
        """See `net.settings.Borrower`."""
        return self.lane.read_by_loop()

    def answered(self) -> list[DirectExchange]:
        """See `net.settings.Borrower`."""
        sends, exchanges = self._sends, list[DirectExchange]()
        for way, count, size_bytes, base_offset, sent, received, written_at, now in self.lane.take_answered():
            sends.sender.on_direct_reported(way.lane, count, base_offset, written_at)
            sends.statistics.on_stored(way.lane.queue, count, size_bytes)
            exchanges.append(DirectExchange(sent, received, written_at, now))
        return exchanges

    def end(self) -> None:
        """See `net.settings.Borrower`."""
        self._sends.forget(self._connection)
        for way in list(self.ways):
            way.lane.queue.end_direct()

    def take_back(self) -> None:
        """The sender wants what is in flight."""
        if self.lane.in_flight or self.lane.is_read:
            self._connection.take_back()
