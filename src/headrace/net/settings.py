"""What a connection is given: its settings, its owner, and how a stream to a broker is opened.

Knows sockets and TLS, no requests. Read next: `net.connection`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

from headrace.buffers import Lendable
from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster.in_flight import ClientRequest
from headrace.net.auth.mechanisms import MechanismSource, mechanism_source
from headrace.net.stats import ClientStats, DirectExchange
from headrace.net.timers import Clock
from headrace.slotted import field, slotted
from headrace.states import Transitions, from_each
from headrace.types.records import NodeAddress
from headrace.wire.schema import Struct

__all__ = [
    "CONNECTION_TRANSITIONS",
    "Borrower",
    "ConnectionOwner",
    "ConnectionSettings",
    "Connector",
    "ConnectionState",
    "Reader",
    "TakenBack",
    "connection_settings",
    "socket_connector",
]

Connector = Callable[[asyncio.BufferedProtocol, NodeAddress], Awaitable[None]]
"""Opens a stream (TLS included) to a broker and attaches the protocol to it, or raises."""

_NEXT_ADDRESS_AFTER_S = 0.25
_FAMILIES = {"any": socket.AF_UNSPEC, "v4": socket.AF_INET, "v6": socket.AF_INET6}


class ConnectionState(Enum):
    """Where a connection is in its life; it goes round from IDLE to IDLE as often as needed."""

    IDLE = "not connected"
    BACKOFF = "waiting to dial again"
    DIALLING = "still connecting"
    OPENING = "connected, but the broker has not answered yet"
    READY = "ready"
    CLOSING = "closing"


_CS = ConnectionState
CONNECTION_TRANSITIONS = Transitions("A connection", ConnectionState.IDLE, {
    (_CS.IDLE, "dial"): _CS.DIALLING,
    # A dial that was given up may still have made a socket; it is lost in the loop's next turn.
    **from_each((_CS.DIALLING, _CS.IDLE, _CS.BACKOFF), "connected", _CS.OPENING),
    (_CS.OPENING, "opened"): _CS.READY,
    (_CS.READY, "renew"): _CS.OPENING,
    **from_each((_CS.OPENING, _CS.READY), "close", _CS.CLOSING),
    **from_each(_CS, "lost", _CS.IDLE),
    (_CS.IDLE, "fail"): _CS.BACKOFF,
    (_CS.BACKOFF, "rested"): _CS.IDLE,
})
"""The only ways from one state to another."""


@slotted(frozen=True)
class ConnectionSettings:
    """What all connections of a client share. Times in seconds, sizes in bytes."""

    client_id: str
    software_version: str
    connector: Connector
    clock: Clock
    jitter: Callable[[], float]
    setup_timeout_s: float
    backoff_s: float
    backoff_max_s: float
    idle_s: float
    max_reply_bytes: int
    protocol: str
    mechanism: MechanismSource | None = None
    traffic: ClientStats = field(default_factory=ClientStats)


class Borrower(Protocol):
    """Writes requests of its own on a connection, from any thread, while the loop has none under way there.

    Other threads may take the replies as well, while they are lent too (decision 0053).

    Attributes:
        request_name: name of all its requests, for the statistics.
    """

    request_name: str

    @property
    def in_flight(self) -> int:
        """Requests that were written and await their replies."""
        ...

    @property
    def writes(self) -> bool:
        """False when nothing will be written any more: then it is ended."""
        ...

    def start(self, lent: Lendable, correlation_id: int, until: float) -> None:
        """Requests may be written.

        Args:
            lent: where to.
            correlation_id: of the next request.
            until: monotonic seconds after which none may be written.
        """

    def stop(self) -> tuple[int, list[tuple[ClientRequest, int]], bytes | None]:
        """No more may be written: the next correlation id, the requests in flight with the sizes of their frames, and
        what the kernel did not take, as it goes over the wire.
        """
        ...

    def take(self, data: memoryview, count: int) -> list[DirectExchange]:
        """So many bytes have come: the requests to which they are the usual replies; none if they are anything else."""
        ...

    def start_reading(self) -> None:
        """Bytes that come are the borrower's, from the first one of a reply on, until `stop_reading`."""

    def stop_reading(self) -> bytes:
        """Bytes that come are the loop's again. Those that have come and were not taken."""
        ...

    def answered(self) -> list[DirectExchange]:
        """The requests whose replies were taken by other threads, and were not told yet."""
        ...

    def end(self) -> None:
        """The connection is lost, or has no more use for it; `stop` was called."""


class Reader(Protocol):
    """Takes the replies to one request after the other on a connection, from another thread (decision 0052).

    Attributes:
        request_name: name of all its requests, for the statistics.
    """

    request_name: str

    def start(self, lent: Lendable, call: ClientRequest) -> None:
        """The connection is the reader's until `stop`.

        This request is in flight, nothing else is, and no byte of its reply has come.
        """

    def stop(self) -> TakenBack:
        """The socket is the loop's again."""
        ...


@slotted(eq=False)
class TakenBack:
    """What has become of a connection that was lent for reading.

    Attributes:
        call: the request that is in flight now.
        data: bytes that have come in answer to it.
        rest: bytes of it that the kernel did not take, as they go over the wire; None for none.
        exchanges, sent_bytes, reply_bytes: requests that were answered meanwhile, and bytes both ways.
    """

    call: ClientRequest
    data: bytes
    rest: bytes | None
    exchanges: int
    sent_bytes: int
    reply_bytes: int


class ConnectionOwner(Protocol):
    """The owner of a connection: the driver."""

    def on_reply(self, call: ClientRequest, reply: Struct | None) -> None:
        """A reply came, or a request that expects none was written."""

    def on_error(self, call: ClientRequest, error: KafkaError) -> None:
        """A request will not be answered."""

    def on_input(self) -> None:
        """All that came in one piece was handed over: decide what to do next."""

    def on_ready(self) -> None:
        """A connection may be used from now on."""

    def on_open(self) -> None:
        """A connection has been opened."""

    def on_late(self, waiting: Sequence[ClientRequest]) -> None:
        """A connection takes long to open, and these requests wait for it."""

    def on_lost(self, node: NodeAddress, error: KafkaError) -> None:
        """A connection could not be opened, or was lost while it was needed."""

    def on_hung_up(self) -> None:
        """The broker closed a connection that awaited no reply."""

    def on_silence(self, node: NodeAddress, since: float, reason: KafkaException) -> None:
        """A connection was given up because what was asked then, in monotonic seconds, got no reply."""


def socket_connector(tls: Callable[[], ssl.SSLContext] | None, config: Mapping[str, Any]) -> Connector:
    """Open real sockets: all addresses of a host are tried, IPv6 and IPv4 in turn on asyncio's own loops (RFC 8305).

    Args:
        tls: gives the settings for a connection; None for plaintext.
        config: the client's properties.
    """
    sizes = ((socket.SO_SNDBUF, config["socket.send.buffer.bytes"]),
             (socket.SO_RCVBUF, config["socket.receive.buffer.bytes"]))
    family = _FAMILIES[config["broker.address.family"]]

    async def connect(protocol: asyncio.BufferedProtocol, node: NodeAddress) -> None:
        loop = asyncio.get_running_loop()
        if tls is None:
            stream = protocol
        else:
            from headrace.net.tls_stream import TlsStream

            stream = secure = TlsStream(protocol, tls(), node.host)
        # With one address there is nothing to race, and a race that is cancelled forgets its socket (Python 3.11).
        # Only asyncio's own loops race at all; uvloop's, for one, tries one address after the other.
        race: dict[str, Any] = {}
        if isinstance(loop, asyncio.BaseEventLoop) and not _is_address(node.host):
            race["happy_eyeballs_delay"] = _NEXT_ADDRESS_AFTER_S
        transport, _ = await loop.create_connection(lambda: stream, node.host, node.port, family=family, **race)
        opened = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # it may be lost and closed again, which others tell better
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, config["socket.keepalive.enable"])
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, config["socket.nagle.disable"])
            for option, size in sizes:
                if size:
                    opened.setsockopt(socket.SOL_SOCKET, option, size)
        if tls is not None:
            await secure.begin()

    return connect


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            return bool(socket.inet_pton(family, host.partition("%")[0]))
    return False


def connection_settings(
    config: Mapping[str, Any], clock: Clock, connector: Connector | None, jitter: Callable[[], float]
) -> ConnectionSettings:
    """The settings that a client's properties ask for."""
    tls = None
    if config["security.protocol"] in ("ssl", "sasl_ssl"):
        from headrace.net.auth.tls import renewed_tls

        tls = renewed_tls(config)
    return ConnectionSettings(
        client_id=config["client.id"],
        software_version=sys.modules["headrace"].__release__,
        connector=connector or socket_connector(tls, config),
        clock=clock,
        jitter=jitter,
        setup_timeout_s=config["socket.connection.setup.timeout.ms"] / 1000.0,
        backoff_s=config["reconnect.backoff.ms"] / 1000.0,
        backoff_max_s=config["reconnect.backoff.max.ms"] / 1000.0,
        idle_s=config["connections.max.idle.ms"] / 1000.0 or float("inf"),
        max_reply_bytes=config["receive.message.max.bytes"],
        protocol=config["security.protocol"],
        mechanism=mechanism_source(config, clock, jitter),
    )
