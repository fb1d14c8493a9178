"""Options of the sockets to brokers: what the properties say is what the system is told."""

import asyncio
import socket
from typing import Any

import pytest

from headrace.config import PRODUCER, Config
from headrace.net.settings import socket_connector
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
