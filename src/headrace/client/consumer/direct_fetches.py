"""Lends a consumer's connection to the thread that waits for records: it takes replies by itself (decision 0052).

The fetcher says with `LendFetch` that a broker's replies come one record at a time. Then the connection is lent to the
consumer's `FetchLane` until something unusual comes, or the loop wants it back. It must not know what a request looks
like, nor when one may be sent. Read next: `headrace.buffers.fetch_lane`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from headrace.buffers import FetchLane
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
        lane: where the thread that waits receives.
        request_name: see `net.settings.Reader`.
    """

    def __init__(self, lending: FetchLending, driver: Driver, client_id: str,
                 call_soon: Callable[[Callable[[], object]], object], look_again: Callable[[], object]) -> None:
        self._lending, self._driver, self._client_id = lending, driver, client_id
        self._call_soon, self._look_again = call_soon, look_again
        self.lane = lending.lane = FetchLane()
        self.request_name = "Fetch"
        self._wake, self._told = -1, False
        self._effect: LendFetch | None = None
        self._shapes: Any = None
        self._connection: Connection | None = None
        self._call: ClientRequest | None = None

    def carry_out(self, effect: Effect) -> None:
        """Let the thread that waits take the replies, if the connection can be lent."""
        assert isinstance(effect, LendFetch)
        send = effect.send
        connection = self._driver.connection(send.node_id, send.request)
        shapes = effect.lone.shapes(send.version, self._client_id)
        if connection is None or shapes is None or not self._can_be_woken():
            return
        self._effect, self._shapes, self._connection = effect, shapes, connection
        if connection.lend_reading(self, send):
            self._lending.on_lent(effect, connection.take_back)

    def _can_be_woken(self) -> bool:
        """Whether there is a file for it; False where the process has no more."""
        if self._wake < 0:
            with suppress(OSError):
                self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        return self._wake >= 0

    def start(self, file: int, call: ClientRequest) -> None:
        """See `net.settings.Reader`."""
        effect = self._effect
        assert effect is not None
        self._call, self.request_name = call, request_name(call.send.request)
        self._told = False
        self.lane.start(file, self._wake, self._shapes, (effect.topic, effect.known, PositionPhase.FETCH),
                        (call.correlation_id, effect.session_epoch, effect.partition, call.written_at))
        self._look_again()

    def stop(self) -> TakenBack:
        """See `net.settings.Reader`."""
        lane, before = self.lane, self._call
        assert before is not None
        failed = lane.failed
        data, rest = lane.stop()
        call, self._call = before, None
        if lane.exchanges:
            call = ClientRequest(before.caller, before.send, lane.written_at + before.send.timeout_s)
            call.correlation_id, call.written_at = lane.correlation_id, lane.written_at
        self._lending.on_taken_back(lane.session_epoch, lane.partition, failed=failed)
        return TakenBack(call, data, rest, lane.exchanges, lane.sent_bytes, lane.reply_bytes)

    # In the thread that waits: see `client.waits.DirectWait`

    @property
    def ready(self) -> bool:
        """Whether the connection is lent, or is to be given back."""
        lane = self.lane
        return lane.lent or (lane.failed and not self._told)

    def receive(self, timeout_s: float, _awake: object = None) -> None:
        """Wait for records, at most so many seconds. What is unusual goes to the loop, which then notifies.

        One thread at a time reads a consumer: nobody else takes its wake-ups.
        """
        lane = self.lane
        if lane.lent:
            lane.receive(timeout_s)
        if lane.failed and self._connection is not None:
            self._call_soon(self._connection.take_back)
            self._told = True  # only now: who is interrupted before says it once more

    def wake(self) -> None:
        """End `receive`, or the next one."""
        self.lane.wake()

    # On the loop

    def end(self) -> None:
        """The consumer's connections are closed."""
        self.lane.end()
        if self._wake >= 0:
            wake, self._wake = self._wake, -1
            os.close(wake)
