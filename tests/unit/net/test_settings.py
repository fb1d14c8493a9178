"""What a connection is given: what the properties say is what it, and the system, is told."""

import asyncio
import socket
import ssl
from typing import Any

import pytest

from headrace.config import PRODUCER, Config
from headrace.net.settings import (
    CONNECTION_TRANSITIONS,
    ConnectionSettings,
    ConnectionState,
    connection_settings,
    socket_connector,
)
from headrace.types.records import NodeAddress

ON_BY_DEFAULT = {"socket.keepalive.enable": (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                 "socket.nagle.disable": (socket.IPPROTO_TCP, socket.TCP_NODELAY)}


class Socket(asyncio.BufferedProtocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return bytearray(1)


async def dial(host: str, **properties: Any) -> socket.socket:
    """The socket of a connection to a listener at 127.0.0.1; a copy, to be closed."""
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    protocol = Socket()
    try:
        config = Config(PRODUCER, {"bootstrap.servers": f"{host}:{port}", **properties})
        await socket_connector(None, config)(protocol, NodeAddress(-1, host, port))
        copy: socket.socket = protocol.transport.get_extra_info("socket").dup()
        protocol.transport.abort()
        return copy
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("name", ON_BY_DEFAULT)
def test_an_option_that_is_on_by_default_can_be_switched_off(name: str) -> None:
    for properties, expected in (({}, True), ({name: False}, False)):
        with asyncio.run(dial("127.0.0.1", **properties)) as stream:
            assert bool(stream.getsockopt(*ON_BY_DEFAULT[name])) is expected


def test_only_addresses_of_the_family_that_was_asked_for_are_dialled() -> None:
    for family in ("any", "v4"):
        with asyncio.run(dial("localhost", **{"broker.address.family": family})) as stream:
            assert stream.family is socket.AF_INET
    with pytest.raises(OSError):
        asyncio.run(dial("127.0.0.1", **{"broker.address.family": "v6"}))


@pytest.mark.parametrize(("name", "option"), [
    ("socket.send.buffer.bytes", socket.SO_SNDBUF), ("socket.receive.buffer.bytes", socket.SO_RCVBUF)])
def test_sizes_of_the_kernels_buffers_are_set_where_they_are_given(name: str, option: int) -> None:
    sizes = []
    for asked in (0, 20_000, 40_000):
        with asyncio.run(dial("127.0.0.1", **{name: asked})) as stream:
            sizes.append(stream.getsockopt(socket.SOL_SOCKET, option))
    assert sizes[1] in (20_000, 40_000)  # Linux doubles what it is asked for
    assert sizes[2] == 2 * sizes[1] != sizes[0]
    assert sizes[0] > sizes[1], "0 is no size: the system's own counts"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_that_nobody_listens_on_is_an_error_of_the_system(host: str) -> None:
    async def run() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and does not listen
            port = taken.getsockname()[1]
            config = Config(PRODUCER, {"bootstrap.servers": f"{host}:{port}", "broker.address.family": "v4"})
            with pytest.raises(ConnectionRefusedError):
                await socket_connector(None, config)(Socket(), NodeAddress(-1, host, port))

    asyncio.run(run())


# Settings


async def nowhere(protocol: asyncio.BufferedProtocol, node: NodeAddress) -> None:
    raise AssertionError


def settings(**properties: Any) -> ConnectionSettings:
    return connection_settings(Config(PRODUCER, {"bootstrap.servers": "b:1", **properties}), lambda: 7.0, nowhere,
                               lambda: 0.25)


@pytest.mark.parametrize(("name", "given", "field", "expected"), [
    ("client.id", "me", "client_id", "me"),
    ("socket.connection.setup.timeout.ms", 1500, "setup_timeout_s", 1.5),
    ("reconnect.backoff.ms", 20, "backoff_s", 0.02),
    ("reconnect.backoff.max.ms", 30_000, "backoff_max_s", 30.0),
    ("connections.max.idle.ms", 9000, "idle_s", 9.0),
    ("connections.max.idle.ms", 0, "idle_s", float("inf")),
    ("receive.message.max.bytes", 50_000_000, "max_reply_bytes", 50_000_000),
    ("security.protocol", "ssl", "protocol", "ssl"),
])
def test_each_setting_is_what_its_property_says_in_seconds_and_bytes(
    name: str, given: object, field: str, expected: object
) -> None:
    assert getattr(settings(**{name: given}), field) == expected
    assert name == "connections.max.idle.ms" or getattr(settings(), field) != expected


def test_clock_chance_and_the_way_to_brokers_are_those_that_are_given() -> None:
    made = settings()
    assert (made.clock(), made.jitter(), made.connector) == (7.0, 0.25, nowhere)


@pytest.mark.parametrize(("properties", "authenticates"), [
    ({}, False), ({"security.protocol": "ssl"}, False),
    ({"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}, True),
])
def test_there_is_a_mechanism_where_sasl_is_asked_for(properties: dict[str, str], authenticates: bool) -> None:
    assert (settings(**properties).mechanism is not None) is authenticates


def test_each_client_counts_for_itself() -> None:
    assert settings().traffic is not settings().traffic


def test_every_state_of_a_connection_leads_back_to_where_it_can_be_dialled() -> None:
    for state in ConnectionState:
        assert CONNECTION_TRANSITIONS.go(state, "lost") is ConnectionState.IDLE
    assert [state for state in ConnectionState if CONNECTION_TRANSITIONS.allows(state, "dial")] == [
        ConnectionState.IDLE]


def test_a_connection_that_is_lost_before_its_options_are_set_says_how_it_was_lost(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = asyncio.BaseEventLoop.create_connection

    async def lose(loop: Any, *arguments: Any, **options: Any) -> Any:
        transport, protocol = await opened(loop, *arguments, **options)
        transport.abort()
        while transport.get_extra_info("socket").fileno() >= 0:
            await asyncio.sleep(0)
        return transport, protocol

    async def run() -> None:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1")
        port = server.sockets[0].getsockname()[1]
        connect = socket_connector(
            ssl.create_default_context, Config(PRODUCER, {"bootstrap.servers": f"127.0.0.1:{port}"}))
        try:
            with pytest.raises(ConnectionResetError, match="during the TLS handshake"):
                await connect(Socket(), NodeAddress(-1, "127.0.0.1", port))
        finally:
            server.close()
            await server.wait_closed()

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", lose)
    asyncio.run(run())
