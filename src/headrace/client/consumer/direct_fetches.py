"""Lends a consumer's connections to the thread that waits for records: it takes replies by itself (decision 0052).

The fetcher says with `LendFetch` that little comes of a broker at a time. Then the connection is lent to a `FetchLane`
until something unusual comes, or the loop wants it back. It must not know what a request looks like, nor when one may
be sent. Read next: `headrace.buffers.lanes.fetch_lane`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from headrace.buffers import FetchLane, FetchLanes, Lendable
from headrace.machines.cluster.in_flight import ClientRequest
from headrace.machines.consumer.fetch_lending import FetchLending, LendFetch
from headrace.machines.consumer.subscription import PositionPhase
from headrace.machines.machine import Effect
from headrace.net.connection import Connection
from headrace.net.driver import Driver
from headrace.net.settings import TakenBack
from headrace.net.stats import request_name

__all__ = ["DirectFetches"]


class DirectFetches:
    """Carries out `LendFetch` for one consumer.

    Args:
        lending: decides what is lent.
        driver: has the connections.
        client_id: of the requests.
        call_soon: calls a function on the loop, from any thread.
        look_again: has threads that sleep see that they may receive.

    Attributes:
        lanes: where the thread that waits receives.
    """

    def __init__(self, lending: FetchLending, driver: Driver, client_id: str,
                 call_soon: Callable[[Callable[[], object]], object], look_again: Callable[[], object]) -> None:
        self._lending, self._driver, self._client_id = lending, driver, client_id
        self._call_soon, self.look_again = call_soon, look_again
        self.lanes = lending.lanes = FetchLanes(lending.queue, lending.make)
        self._wake = -1
        self._readers: dict[int, _LentFetches] = {}

    def carry_out(self, effect: Effect) -> None:
        """Let the thread that waits take the replies, if the connection can be lent."""
        assert isinstance(effect, LendFetch)
        send = effect.send
        reader, connection = self._reader(send.destination), self._driver.connection(send.node_id, send.request)
        if reader is None or connection is None or not self._can_be_woken():
            return
        shapes = effect.lone.shapes(send.version, self._client_id)
        if shapes is None:
            return
        reader.prepare(effect, shapes, connection)
        if connection.lend_reading(reader, send):
            self._lending.on_lent(effect, connection.take_back)

    def _reader(self, node: int) -> _LentFetches | None:
        """Who reads from a broker; None where there are too many."""
        reader = self._readers.get(node)
        if reader is None and self.lanes.has_room:
            reader = self._readers[node] = _LentFetches(self, self._lending)
            self.lanes.lanes.append(reader.lane)
        return reader

    def _can_be_woken(self) -> bool:
        """Whether there is a file for it; False where the process has no more."""
        if self._wake < 0:
            with suppress(OSError):
                self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
                self.lanes.begin(self._wake)
        return self._wake >= 0

    # In the thread that waits: see `client.waits.DirectWait`

    @property
    def ready(self) -> bool:
        """Whether a connection is lent, or is to be given back."""
        return self.lanes.ready

    def receive(self, timeout_s: float, _awake: object = None) -> None:
        """Wait for records, at most so many seconds. What is unusual goes to the loop, which then notifies.

        One thread at a time reads a consumer: nobody else takes its wake-ups.
        """
        if self.lanes.receive(timeout_s):
            for reader in list(self._readers.values()):
                lane, connection = reader.lane, reader.connection
                if lane.failed and not lane.told and connection is not None:
                    self._call_soon(connection.take_back)
                    lane.told = True  # only now: who is interrupted before says it once more

    def wake(self) -> None:
        """End `receive`, or the next one."""
        self.lanes.wake()

    # On the loop

    def end(self) -> None:
        """The consumer's connections are closed."""
        self.lanes.end()
        if self._wake >= 0:
            wake, self._wake = self._wake, -1
            os.close(wake)


class _LentFetches:
    """What is lent of one broker: see `net.settings.Reader`.

    Attributes:
        lane: takes the replies.
        connection: on which they come.
        request_name: see there.
    """

    def __init__(self, to: DirectFetches, lending: FetchLending) -> None:
        self._to, self._lending = to, lending
        self.lane = FetchLane()
        self.request_name = "Fetch"
        self.connection: Connection | None = None
        self._effect: LendFetch | None = None
        self._shapes: Any = None
        self._call: ClientRequest | None = None

    def prepare(self, effect: LendFetch, shapes: Any, connection: Connection) -> None:
        """The connection may be lent next."""
        self._effect, self._shapes, self.connection = effect, shapes, connection

    def start(self, lent: Lendable, call: ClientRequest) -> None:
        """See `net.settings.Reader`."""
        effect = self._effect
        assert effect is not None
        self._call, self.request_name = call, request_name(call.send.request)
        self.lane.start(lent, self._shapes, (effect.topic, effect.known, PositionPhase.FETCH),
                        (call.correlation_id, effect.session_epoch, effect.partition, call.written_at))
        self._to.look_again()

    def stop(self) -> TakenBack:
        """See `net.settings.Reader`."""
        lane, call = self.lane, self._call
        assert call is not None
        self._call = None
        failed = lane.failed
        data, rest = lane.stop()
        self._to.wake()
        node = call.send.destination
        if lane.exchanges:
            before = call
            call = ClientRequest(before.caller, before.send, lane.written_at + before.send.timeout_s)
            call.correlation_id, call.written_at = lane.correlation_id, lane.written_at
        self._lending.on_taken_back(node, lane.session_epoch, lane.partition, failed=failed)
        return TakenBack(call, data, rest, lane.exchanges, lane.sent_bytes, lane.reply_bytes)
