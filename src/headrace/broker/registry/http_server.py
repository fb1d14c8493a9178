"""HTTP/1.1 for the REST API, as small as it can be and with bounds on everything: one request at a time on each
connection.

Bytes that are no request are answered with 400 and the connection ends; so it does when a request is too large, comes
too slowly, or when nothing comes for a while. Read next: `broker.registry.rest_api`, which answers.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Final

from headrace.broker.registry.rest_api import RestReply
from headrace.broker.server import accept_no_more

__all__ = ["HttpServer"]

_log = logging.getLogger("headrace.broker.registry")
_MAX_HEAD: Final = 32 << 10
_MAX_BODY: Final = 16 << 20
_MAX_BODIES: Final = 64 << 20
"""Bytes of all bodies that are being received."""
_MAX_CONNECTIONS: Final = 500
_IDLE_S: Final = 120.0
_REQUEST_S: Final = 30.0
_REQUEST_LINE: Final = re.compile(r"([A-Z]{1,20}) (/[\x21-\x7e]*|http://[\x21-\x7e]+) HTTP/1\.([01])")
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*?)[ \t]*")
_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"

Answer = Callable[[str, str, bytes], RestReply]


class _BadRequestError(Exception):
    """The bytes are no request that is served: the status that says so."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason


class _Request:
    """The head of a request."""

    def __init__(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        found = _REQUEST_LINE.fullmatch(first)
        if found is None:
            raise _BadRequestError(HTTPStatus.BAD_REQUEST, "the first line is no request of HTTP/1.1")
        self.method, target, minor = found.groups()
        self.target = target if target.startswith("/") else "/" + target.partition("://")[2].partition("/")[2]
        self.headers = dict(map(_header, lines))
        if len(self.headers) < len(lines) and "content-length" in self.headers:
            lengths = {value for name, value in map(_header, lines) if name == "content-length"}
            if len(lengths) > 1:
                raise _BadRequestError(HTTPStatus.BAD_REQUEST, "there are two lengths")
        connection = self.headers.get("connection", "").lower()
        self.keeps = "close" not in connection and (minor == "1" or "keep-alive" in connection)

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks."""
        coding = self.headers.get("transfer-encoding")
        if coding is None:
            return False
        if coding.lower() != "chunked" or "content-length" in self.headers:
            raise _BadRequestError(HTTPStatus.BAD_REQUEST, "the only transfer encoding is chunked")
        return True

    @property
    def length(self) -> int:
        """Bytes of the body."""
        text = self.headers.get("content-length", "0")
        if not text.isdecimal() or not text.isascii() or len(text) > 15:
            raise _BadRequestError(HTTPStatus.BAD_REQUEST, "Content-Length is no number")
        return int(text)


class HttpServer:
    """Serves requests on one address. All methods run on the loop.

    Args:
        answer: method, target and body to a reply.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._bodies = _Bodies()

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port.

        Raises:
            OSError: the port is taken or the address is not this machine's.
        """
        self._server = await asyncio.start_server(self._connected, host, port, limit=_MAX_HEAD)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the listener and all connections."""
        if self._server is not None:
            await accept_no_more(self._server)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if len(self._tasks) <= _MAX_CONNECTIONS:
                await self._converse(reader, writer)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
            pass  # the client is gone, or is as good as gone, or the server stops
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await asyncio.wait_for(writer.wait_closed(), 1)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keeps = True
        while keeps:
            is_head = False
            try:
                async with asyncio.timeout(_IDLE_S):
                    head = await _head(reader)
                if head is None:
                    return
                async with asyncio.timeout(_REQUEST_S):
                    request = _Request(head)
                    is_head = request.method == "HEAD"
                    if request.headers.get("expect", "").lower() == "100-continue":
                        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    with self._bodies.one() as grow:
                        body = await _body(reader, request, grow)
                reply, keeps = self._answered(request, body), request.keeps
            except _BadRequestError as error:
                reply, keeps = _refusal(error.status, error.reason), False
            writer.write(_bytes(reply, keeps=keeps, is_head=is_head))
            async with asyncio.timeout(_REQUEST_S):
                await writer.drain()

    def _answered(self, request: _Request, body: bytes) -> RestReply:
        try:
            return self._answer("GET" if request.method == "HEAD" else request.method, request.target, body)
        except Exception:
            _log.exception("%s %s failed", request.method, request.target[:200])
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error")


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    """The head of the next request; None when the client has closed the connection before it."""
    try:
        return (await reader.readuntil(b"\r\n\r\n")).lstrip(b"\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise
        return None
    except asyncio.LimitOverrunError:
        raise _BadRequestError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                               f"a head may have {_MAX_HEAD} bytes") from None


class _Bodies:
    """How many bytes of bodies are being received, on all connections."""

    def __init__(self) -> None:
        self._held = 0

    @contextmanager
    def one(self) -> Iterator[Callable[[int], None]]:
        """Receive a body: what it gives is called with so many bytes before they are read."""
        own = 0

        def grow(size: int) -> None:
            nonlocal own
            if own + size > _MAX_BODY:
                raise _BadRequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {_MAX_BODY} bytes")
            if self._held + size > _MAX_BODIES:
                raise _BadRequestError(HTTPStatus.SERVICE_UNAVAILABLE, "too much is being received: try again")
            own += size
            self._held += size

        try:
            yield grow
        finally:
            self._held -= own


async def _body(reader: asyncio.StreamReader, request: _Request, grow: Callable[[int], None]) -> bytes:
    if not request.is_chunked:
        grow(request.length)
        return await reader.readexactly(request.length)
    body = bytearray()
    while size := _chunk_size(await _line(reader)):
        grow(size)
        body += await reader.readexactly(size)
        if await _line(reader):
            raise _BadRequestError(HTTPStatus.BAD_REQUEST, "a chunk is longer than it says")
    while await _line(reader):
        pass  # trailers, bounded by the time for a request
    return bytes(body)


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n")).removesuffix(b"\r\n")
    except asyncio.LimitOverrunError:
        raise _BadRequestError(HTTPStatus.BAD_REQUEST, "a line is too long") from None


def _chunk_size(line: bytes) -> int:
    text = line.partition(b";")[0].strip()
    if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", text):
        raise _BadRequestError(HTTPStatus.BAD_REQUEST, "the size of a chunk is no number")
    return int(text, 16)


def _header(line: str) -> tuple[str, str]:
    found = _HEADER.fullmatch(line)
    if found is None:
        raise _BadRequestError(HTTPStatus.BAD_REQUEST, "a line of the head is no header")
    return found[1].lower(), found[2]


def _refusal(status: HTTPStatus, reason: str) -> RestReply:
    return RestReply(status, f'{{"error_code":{int(status)},"message":"{reason}"}}')


def _bytes(reply: RestReply, *, keeps: bool, is_head: bool) -> bytes:
    body = reply.body.encode()
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = (f"HTTP/1.1 {reply.status} {phrase}", f"Content-Type: {_CONTENT_TYPE}", f"Content-Length: {len(body)}",
             *(() if keeps else ("Connection: close",)), "", "")
    return "\r\n".join(lines).encode() + (b"" if is_head else body)
