"""A broker for tests of the driver: it answers as the test says, in memory or on a loopback socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from headrace.types.records import NodeAddress
from headrace.wire.api import API
from headrace.wire.frame import RequestFrame, decode_request, encode_response
from headrace.wire.frame_reader import FrameReader
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from headrace.wire.messages.cluster.session import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.schema import Response

SILENCE = "say nothing"
HANG_UP = "close the connection"
Answer = Response | bytes | str
Script = Callable[[RequestFrame], Answer]


def api_versions(frame: RequestFrame) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=a.key, min_version=a.min_version, max_version=a.max_version) for a in API.values()]
    return ApiVersionsResponse(api_keys=keys)


class ScriptedBroker:
    """Answers each request by the function registered for its type; all requests are kept in `seen`."""

    def __init__(self, **brokers: tuple[str, int]) -> None:
        self.seen: list[RequestFrame] = []
        self.connections = 0
        self.lost = 0
        self.transports: list[MemoryTransport] = []
        self.open: list[Peer] = []
        self.ends: set[asyncio.Transport] = set()
        self.nodes = {int(name.removeprefix("node")): address for name, address in brokers.items()}
        self.scripts: dict[type[Any], Script] = {ApiVersionsRequest: api_versions, MetadataRequest: self.metadata}

    def metadata(self, frame: RequestFrame) -> MetadataResponse:
        brokers = [MetadataResponseBroker(node_id=i, host=host, port=port) for i, (host, port) in self.nodes.items()]
        return MetadataResponse(brokers=brokers, controller_id=min(self.nodes, default=-1), cluster_id="test",
                                topics=[])

    def on(self, request_type: type[Any], script: Script | Answer) -> None:
        self.scripts[request_type] = script if callable(script) else lambda frame: script

    def count(self, request_type: type[Any]) -> int:
        return sum(isinstance(frame.request, request_type) for frame in self.seen)

    async def connector(self, protocol: asyncio.BufferedProtocol, node: NodeAddress) -> None:
        """Connect in memory."""
        self.connections += 1
        transport = MemoryTransport(protocol)
        self.transports.append(transport)
        transport.peer = Peer(self, transport.deliver, transport.hang_up)
        protocol.connection_made(transport)

    async def listen(self, tls: ssl.SSLContext | None = None) -> tuple[asyncio.Server, int]:
        """Listen on a free loopback port."""
        server = await asyncio.get_running_loop().create_server(lambda: PeerProtocol(self), "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        self.nodes = self.nodes or {1: ("127.0.0.1", port)}
        return server, port

    async def shut(self, server: asyncio.Server) -> None:
        """Close a server and its connections, those included that were just accepted, before their loop ends."""
        for each in server.sockets:
            asyncio.get_running_loop().remove_reader(each.fileno())
        for _ in range(10):
            for transport in self.ends:
                transport.abort()
            await asyncio.sleep(0)
        server.close()


class Peer:
    """The broker's end of one connection."""

    def __init__(self, broker: ScriptedBroker, send: Callable[[bytes], None], hang_up: Callable[[], None]) -> None:
        self.broker, self.send, self.hang_up = broker, send, hang_up
        self.splitter = FrameReader(100_000_000)
        broker.open.append(self)

    def feed(self, data: bytes) -> None:
        for raw in self.splitter.feed(data):
            frame = decode_request(raw)
            self.broker.seen.append(frame)
            answer = self.broker.scripts[type(frame.request)](frame)
            if answer is HANG_UP:
                self.hang_up()
            elif isinstance(answer, bytes):
                self.send(answer)
            elif answer is not SILENCE:
                assert isinstance(answer, Response)
                self.answer(frame, answer)

    def answer(self, frame: RequestFrame, response: Response) -> None:
        self.send(b"".join(encode_response(response, frame.version, frame.correlation_id)))


class PeerProtocol(asyncio.Protocol):
    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.broker.connections += 1
        self.transport = transport
        self.broker.ends.add(transport)
        self.peer = Peer(self.broker, transport.write, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self.broker.lost += 1
        self.broker.ends.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.peer.feed(data)


class MemoryTransport(asyncio.Transport):
    """The client's end of a connection in memory; everything takes one turn of the loop."""

    peer: Peer

    def __init__(self, protocol: asyncio.BufferedProtocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.closed = self.paused = False
        self.kept = b""
        self.loop = asyncio.get_running_loop()

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False
        kept, self.kept = self.kept, b""
        self.deliver(kept)

    def write(self, data: Any) -> None:
        if not self.closed:
            self.loop.call_soon(self.peer.feed, bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits here."""

    def get_write_buffer_size(self) -> int:
        return 0

    def deliver(self, data: bytes) -> None:
        self.loop.call_soon(self.deliver_now, data)

    def deliver_now(self, data: bytes) -> None:
        if self.paused:
            self.kept += data
            return
        while data and not self.closed:
            space = self.protocol.get_buffer(-1)
            count = min(len(space), len(data))
            space[:count] = data[:count]
            self.protocol.buffer_updated(count)
            data = data[count:]

    def hang_up(self) -> None:
        self.loop.call_soon(self.abort)

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            self.loop.call_soon(self.protocol.connection_lost, None)

    close = abort

    def is_closing(self) -> bool:
        return self.closed


def admin_config(port: int = 9092, host: str = "broker", **properties: Any) -> Mapping[str, Any]:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return {"bootstrap.servers": f"{host}:{port}", **named}
