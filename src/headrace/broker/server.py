"""A listener's connections: bytes to requests, requests to handlers, replies to bytes, in the order of arrival.

A connection carries out one request at a time, as Kafka does: a long poll holds back what the client sends behind it.
Bytes that are no request close this connection and touch nothing else.

It knows no topics and no groups. Read next: `broker.dispatch`, the table of what is served.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from headrace.broker.apis.session import unsupported_api_versions
from headrace.broker.clock import BrokerClock
from headrace.broker.cluster import ApiCall, BrokerCluster
from headrace.broker.deadlines import Now
from headrace.broker.dispatch import handle
from headrace.broker.error_replies import error_response
from headrace.broker.faults import Action, Fault
from headrace.broker.purgatory import DelayedReply
from headrace.broker.storage.partition import ApiError
from headrace.errors import KafkaException, ProtocolError
from headrace.wire.frame import RequestFrame, UnsupportedRequest, decode_request, encode_response
from headrace.wire.frame_reader import FrameReader
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from headrace.wire.schema import Response

__all__ = ["ClientConnection", "Listener", "accept_no_more"]

_log = logging.getLogger("headrace.broker")
_FIRST_BYTES = 1 << 20
_COALESCED_BYTES = 32 << 10
_MAX_WAITING_FRAMES = 64
_MAX_WAITING_BYTES = 16 << 20
"""One frame more may be about to arrive: that is the most that a connection holds."""
_ACCEPT_STEPS = 5
"""Turns of the loop from accepting a connection to its protocol, with some to spare."""


async def accept_no_more(server: asyncio.Server) -> None:
    """Let what was accepted begin, then close a server: asyncio would lose what it accepts in the same turn."""
    with suppress(NotImplementedError):  # Windows
        for each in server.sockets:
            asyncio.get_running_loop().remove_reader(each.fileno())
    for _ in range(_ACCEPT_STEPS):
        await asyncio.sleep(0)
    server.close()


@dataclass(slots=True)
class Listener:
    """A node's open connections, and whether it accepts more."""

    node_id: int
    is_open: bool = True
    connections: set[ClientConnection] = field(default_factory=set)

    def shut(self) -> None:
        """End all connections, and those that were accepted and are about to begin."""
        self.is_open = False
        for connection in list(self.connections):
            connection.close()


class ClientConnection(asyncio.BufferedProtocol):
    """One client's connection.

    Args:
        cluster: what is served.
        listener: the node that the client connected to.
        clock: has the time, and looks after requests that wait.
    """

    def __init__(self, cluster: BrokerCluster, listener: Listener, clock: BrokerClock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._listener = listener
        self._node_id = listener.node_id
        self._receiver = FrameReader(cluster.settings.max_request_bytes, writable=True, trusted_bytes=_FIRST_BYTES)
        self._frames: deque[bytes | bytearray | memoryview] = deque()
        self._waiting: DelayedReply | asyncio.TimerHandle | None = None
        """A request that waits, and those behind it with it."""
        self._is_full = False
        self._is_silent = False
        self._reading_paused = False
        self._transport: asyncio.Transport
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection stands."""
        self._transport = cast("asyncio.Transport", transport)
        self._peer = (transport.get_extra_info("peername") or ("?",))[0]
        self._listener.connections.add(self)
        if not self._listener.is_open:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: the connection ended; what waits for it stops."""
        self._listener.connections.discard(self)
        self._frames.clear()
        if isinstance(self._waiting, DelayedReply):
            self._cluster.purgatory.remove(self._waiting)
        elif self._waiting is not None:
            self._waiting.cancel()
            self._cluster.faults.held.pop(self._waiting, None)
        self._cluster.connection_lost(self)
        self._clock.settle()

    def get_buffer(self, sizehint: int) -> memoryview:
        """asyncio: where to put the next bytes."""
        return self._receiver.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """asyncio: bytes came."""
        try:
            self._frames.extend(self._receiver.advance(nbytes))
        except ProtocolError as error:
            self._hang_up(str(error))
            return
        self._work()

    def pause_writing(self) -> None:
        """asyncio: the client does not take its replies; serve it no further."""
        self._is_full = True

    def resume_writing(self) -> None:
        """asyncio: the client reads again."""
        self._is_full = False
        self._work()

    def close(self) -> None:
        """End the connection without a reply, as a lost machine would."""
        self._transport.abort()

    def _work(self) -> None:
        while self._frames and self._waiting is None and not self._is_full and not self._is_silent:
            self._serve(self._frames.popleft())
        self._clock.settle()
        self._pace()

    def _pace(self) -> None:
        """Stop reading from a client that is far ahead."""
        ahead = len(self._frames) > _MAX_WAITING_FRAMES or sum(map(len, self._frames)) > _MAX_WAITING_BYTES
        if ahead is self._reading_paused or self._transport.is_closing():
            return
        self._reading_paused = ahead
        if ahead:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _serve(self, frame: bytes | bytearray | memoryview) -> None:
        try:
            received = decode_request(memoryview(frame))
            low, high = self._cluster.served.get(received.api_key, (0, -1))
            if not low <= received.version <= high:
                raise UnsupportedRequest(received.api_key, received.version, received.correlation_id,
                                         received.client_id)
        except UnsupportedRequest as unsupported:
            self._refuse_version(unsupported)
            return
        except (ProtocolError, KafkaException) as error:
            self._hang_up(str(error))
            return
        faults = self._cluster.faults
        fault = faults.take(received.request, self._node_id) if faults.armed else None
        if fault is None:
            self._answer(received)
        else:
            self._misbehave(fault, received)

    def _answer(self, received: RequestFrame, fault: Fault | None = None) -> None:
        """Carry a request out, and reply; where it must wait, when that is over."""
        call = ApiCall(self._cluster, self._node_id, received.version, received.client_id or "", self._peer,
                       self._clock.now(), self)
        try:
            result = handle(call, received.request)
            if isinstance(result, DelayedReply):
                self._wait(result, received, fault)
            else:
                self._reply(received, result, fault)
        except ApiError as error:
            self._hang_up(error.reason)
        except Exception:
            self._fail(received)

    def _wait(self, delayed: DelayedReply, received: RequestFrame, fault: Fault | None) -> None:
        """Look again when it is time, and serve nothing else on this connection until then."""
        def look_again(now: Now) -> None:
            try:
                result = delayed.look_again(now)
                if isinstance(result, DelayedReply):
                    return
                self._reply(received, result, fault)
            except Exception:
                self._fail(received)
            self._cluster.purgatory.remove(delayed)
            self._waiting = None
            self._go_on()

        delayed.deliver = look_again
        self._waiting = delayed
        self._cluster.purgatory.put(delayed)

    def _go_on(self) -> None:
        if self._transport.is_closing():
            self._clock.settle()
        else:
            self._work()

    def _reply(self, received: RequestFrame, response: Response | None, fault: Fault | None) -> None:
        if response is None or self._transport.is_closing():
            return
        if fault is not None and fault.action is Action.LATE_ERROR:
            response = error_response(received.request, fault.error_code)
        parts = encode_response(response, received.version, received.correlation_id)
        if fault is not None and fault.action is Action.LOSE_REPLY:
            self.close()
        elif fault is not None and fault.action is Action.CUT:
            whole = b"".join(parts)
            self._transport.write(whole[:len(whole) // 2])
            self._transport.close()
        elif fault is not None and fault.action is Action.GARBLE:
            self._transport.write(fault.garble(b"".join(parts)))
        else:
            self._write(parts)

    def _write(self, parts: list[bytes | memoryview]) -> None:
        """Small parts in one go; large ones as they are, since a join would copy them."""
        if sum(map(len, parts)) <= _COALESCED_BYTES:
            self._transport.write(b"".join(parts))
            return
        for part in parts:
            if self._transport.is_closing():  # the client went away amid its reply
                break
            self._transport.write(part)

    def _refuse_version(self, unsupported: UnsupportedRequest) -> None:
        served = self._cluster.served
        if unsupported.api_key != ApiVersionsRequest.api_key or unsupported.api_key not in served:
            self._hang_up(str(unsupported))
            return
        self._write(encode_response(unsupported_api_versions(served), 0, unsupported.correlation_id))

    def _misbehave(self, fault: Fault, received: RequestFrame) -> None:
        if fault.effect is not None:
            fault.effect(self._cluster)
        if fault.action is Action.DROP:
            self.close()
        elif fault.action is Action.SILENCE:
            self._is_silent = True
        elif fault.action is Action.DELAY:
            self._hold(received, fault.delay_s)
        elif fault.action is Action.ERROR:
            self._reply(received, error_response(received.request, fault.error_code), None)
        else:
            self._answer(received, fault)

    def _hold(self, received: RequestFrame, delay_s: float) -> None:
        """Carry a request out when its time has come, or when the faults are cleared."""
        def go_on() -> None:
            timer.cancel()
            del held[timer]
            self._waiting = None
            self._answer(received)
            self._go_on()

        held = self._cluster.faults.held
        self._waiting = timer = asyncio.get_running_loop().call_later(delay_s, go_on)
        held[timer] = go_on

    def _fail(self, received: RequestFrame) -> None:
        """A handler raised, which is a defect of the broker: log it, and let the other connections live."""
        _log.exception("node %d: %s v%d from %s failed", self._node_id, type(received.request).__name__,
                       received.version, self._peer)
        self.close()

    def _hang_up(self, reason: str) -> None:
        _log.info("node %d: closing the connection from %s: %s", self._node_id, self._peer, reason)
        self._frames.clear()
        self.close()
