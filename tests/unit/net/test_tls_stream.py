"""TLS over a plain stream: the handshake, its failures, bytes both ways, and the ends of connections."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace.net.tls_stream import TlsStream
from tests.support.tls import tls_contexts

PATIENCE_S = 10.0
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a client, and of a server that it trusts."""
    return tls_contexts()


class Reader(asyncio.BufferedProtocol):
    """Keeps what comes, and what is told."""

    def __init__(self) -> None:
        self.received, self.told = bytearray(), list[str]()
        self.transport: Any = None
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.changed = asyncio.Event()
        self._buffer = bytearray(10_000)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._buffer[:nbytes]
        self.changed.set()

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")
        self.changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


async def dialled(client: ssl.SSLContext, port: int, host: str = "localhost") -> Reader:
    reader = Reader()
    loop = asyncio.get_running_loop()
    _, stream = await loop.create_connection(lambda: TlsStream(reader, client, host), "127.0.0.1", port)
    await asyncio.wait_for(stream.begin(), PATIENCE_S)
    return reader


def served(contexts: Any, serve: Serve, main: Callable[[int], Awaitable[None]], tls: bool = True) -> None:
    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=contexts[1] if tls else None)
        async with server:
            await main(server.sockets[0].getsockname()[1])

    asyncio.run(run())


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


def test_bytes_go_both_ways_in_order(contexts: Any) -> None:
    async def main(port: int) -> None:
        reader = await dialled(contexts[0], port)
        pieces = [bytes([index % 256]) * (index * 37 % 5_000) for index in range(1_000)]
        for piece in pieces:
            reader.transport.write(piece)
        whole = b"".join(pieces)
        await reader.until(lambda: len(reader.received) == len(whole))
        assert reader.received == whole
        assert reader.transport.get_extra_info("ssl_object").version() == "TLSv1.3"
        assert reader.transport.get_extra_info("socket").fileno() == reader.transport.pipe.file
        reader.transport.abort()
        assert await reader.lost is None
        reader.transport.write(b"in vain")

    served(contexts, echo, main)


def test_a_protocol_is_told_when_the_kernel_has_no_room_and_when_it_has_taken_all(contexts: Any) -> None:
    async def main(port: int) -> None:
        reader = await dialled(contexts[0], port)
        reader.transport.set_write_buffer_limits(high=0, low=0)
        piece = bytes(3_000_000)
        reader.transport.write(piece)
        reader.transport.write(piece)
        assert reader.told == ["pause"]
        assert reader.transport.get_write_buffer_size() > 0
        await reader.until(lambda: reader.told == ["pause", "resume"] and len(reader.received) == 2 * len(piece))
        assert reader.transport.get_write_buffer_size() == 0
        reader.transport.close()
        await reader.lost

    served(contexts, echo, main)


def test_a_stream_that_is_not_read_keeps_its_bytes(contexts: Any) -> None:
    async def main(port: int) -> None:
        reader = await dialled(contexts[0], port)
        reader.transport.pause_reading()
        reader.transport.write(b"x" * 100_000)
        await asyncio.sleep(0.05)
        assert reader.received == b""
        reader.transport.resume_reading()
        await reader.until(lambda: len(reader.received) == 100_000)
        reader.transport.abort()

    served(contexts, echo, main)


def test_a_certificate_for_another_host_is_refused_and_the_server_is_told(contexts: Any) -> None:
    told: asyncio.Future[str]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = contexts[1].wrap_bio(incoming, outgoing, server_side=True)
        while data := await reader.read(65_536):
            incoming.write(data)
            try:
                session.do_handshake()
                session.read(1)
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
            except ssl.SSLError as error:
                told.set_result(str(error.reason))
        writer.close()

    async def main(port: int) -> None:
        nonlocal told
        told = asyncio.get_running_loop().create_future()
        with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
            await dialled(contexts[0], port, "elsewhere")
        assert "CERTIFICATE" in await asyncio.wait_for(told, PATIENCE_S)

    served(contexts, serve, main, tls=False)


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.close()


async def talk_plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await writer.drain()
    await reader.read()
    writer.close()


async def be_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


@pytest.mark.parametrize(("serve", "error"), [(hang_up, ConnectionError), (talk_plain, ssl.SSLError)])
def test_who_does_not_speak_tls_ends_the_handshake(contexts: Any, serve: Serve, error: type[Exception]) -> None:
    async def main(port: int) -> None:
        with pytest.raises(error):
            await dialled(contexts[0], port)

    served(contexts, serve, main, tls=False)


def test_a_handshake_that_is_given_up_closes_the_socket(contexts: Any) -> None:
    async def main(port: int) -> None:
        protocol = Reader()
        loop = asyncio.get_running_loop()
        transport, stream = await loop.create_connection(
            lambda: TlsStream(protocol, contexts[0], "localhost"), "127.0.0.1", port)
        beginning = asyncio.ensure_future(stream.begin())
        await asyncio.sleep(0.02)
        beginning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await beginning
        assert transport.is_closing()
        await asyncio.sleep(0)
        assert protocol.transport is None
        assert not protocol.lost.done()  # it never had it

    served(contexts, be_silent, main, tls=False)


@pytest.mark.parametrize("how", ["TLS says so", "the socket ends", "no TLS any more"])
def test_the_end_of_a_stream_is_told_once_behind_all_that_came(contexts: Any, how: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"last")
        await writer.drain()
        await reader.readexactly(1)
        if how == "TLS says so":
            writer.close()
        else:
            with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as below:
                if how == "no TLS any more":
                    below.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                else:
                    below.shutdown(socket.SHUT_RDWR)
            writer.transport.abort()

    async def main(port: int) -> None:
        reader = await dialled(contexts[0], port)
        await reader.until(lambda: reader.received == b"last")
        reader.transport.write(b"!")
        lost = await asyncio.wait_for(reader.lost, PATIENCE_S)
        assert isinstance(lost, ssl.SSLError) == (how == "no TLS any more")
        assert reader.transport.is_closing()

    served(contexts, serve, main)


def test_what_others_left_to_be_sent_and_their_failures_are_taken_over(contexts: Any) -> None:
    async def main(port: int) -> None:
        reader = await dialled(contexts[0], port)
        pipe = reader.transport.pipe
        pipe.begin_sending()
        pipe.put(b"theirs, ")
        reader.transport.take_back(pipe.end_sending())
        reader.transport.write(b"ours")
        await reader.until(lambda: reader.received == b"theirs, ours")
        reader.transport.pause_reading()
        reader.transport.write(b" and more")
        await asyncio.sleep(0.05)
        with socket.socket(fileno=os.dup(pipe.file)) as shared:
            pipe.feed(shared.recv(1_000))  # what others received and did not open
        assert pipe.unread
        reader.transport.resume_reading()
        await reader.until(lambda: reader.received == b"theirs, ours and more")
        reader.transport.pause_reading()
        pipe.begin_receiving()
        pipe.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        reader.transport.write(b"?")
        async with asyncio.timeout(PATIENCE_S):
            while pipe.error is None:
                pipe.pull()
                await asyncio.sleep(0.001)
        pipe.end_receiving()
        reader.transport.resume_reading()
        assert isinstance(await reader.lost, ssl.SSLError)

    served(contexts, echo, main)
