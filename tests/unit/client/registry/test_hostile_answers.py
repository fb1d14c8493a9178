"""Servers that send without an end, or what is no HTTP: an error, in the client's time, and little memory."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import pytest

from headrace.client.registry import answers
from headrace.client.registry.answers import Answer, read, refusal
from headrace.errors import SchemaRegistryError
from headrace.schema_registry import AsyncSchemaRegistryClient, SchemaRegistryClient

TIMEOUT_S = 0.5
MOST_BYTES = 20_000_000
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "a line of the head": (OK, b"a" * 65536),
    "headers": (OK, b"a: b\r\n" * 5000),
    "the status": (b"HTTP/1.1 200 ", b"O" * 65536),
    "answers that are to be followed by another": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 1000),
    "blank lines": (b"", b"\r\n" * 10000),
    "noise": (b"", bytes(range(256)) * 100),
    "a chunk's extension": (CHUNKED, b"1;" + b"x" * 65536),
    "chunks": (CHUNKED, b"1\r\n[\r\n" * 10000),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n" * 5000),
    "a body": (OK + b"\r\n", b"[" * 65536),
    "a body that says how long it is": (OK + b"Content-Length: 99999999999999\r\n\r\n", b"[" * 65536),
    "a length": (OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", b"[" * 65536),
    "a body in an encoding": (OK + b"Content-Encoding: gzip\r\n\r\n", b"x" * 65536),
    "a body in a transfer encoding": (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", b"1\r\nx\r\n" * 10000),
    "another protocol": (b"HTTP/2 200\r\n\r\n", b"x" * 65536),
    "an error": (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"[" * 65536),
}


@contextmanager
def server(parts: Iterable[bytes]) -> Iterator[str]:
    """A server that sends the same to whoever asks. Gives its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    sent = list(itertools.islice(parts, 2))

    def send(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(65536)
            client.sendall(sent[0])
            while True:
                client.sendall(sent[1])

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=send, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that is reached soon; `test_http_transport` reads to the true one."""
    monkeypatch.setattr(answers, "MOST_ANSWER_BYTES", 1_000_000)


@pytest.mark.parametrize("parts", ENDLESS.values(), ids=ENDLESS)
def test_what_has_no_end_is_an_error_in_time(parts: tuple[bytes, bytes]) -> None:
    with server(parts) as url, SchemaRegistryClient({"url": url, "timeout": TIMEOUT_S, "max.retries": 1}) as client:
        tracemalloc.start()
        began = time.monotonic()
        try:
            with pytest.raises(SchemaRegistryError):
                client.get_subjects()
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert time.monotonic() - began < 40 * TIMEOUT_S
    assert most < MOST_BYTES


@pytest.mark.parametrize("name", ["a body", "headers", "hints"])
def test_awaited_it_is_the_same(name: str) -> None:
    async def ask(url: str) -> None:
        async with AsyncSchemaRegistryClient({"url": url, "timeout": TIMEOUT_S, "max.retries": 1}) as client:
            with pytest.raises(SchemaRegistryError):
                await client.get_subjects()

    with server(ENDLESS[name]) as url:
        began = time.monotonic()
        asyncio.run(ask(url))
    assert time.monotonic() - began < 40 * TIMEOUT_S


def test_json_that_would_take_much_more_memory_than_bytes_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_ANSWER_VALUES", 1000)
    assert len(read(Answer(200, b"[" + b"{}," * 1000 + b"1]", {}))) == 1001
    body = b"[" + b"{}," * 1001 + b"1]"
    with pytest.raises(SchemaRegistryError, match="more than 1000 values"):
        read(Answer(200, body, {}))
    assert refusal(Answer(500, b'{"message": "m", "all": %s}' % body, {})).error_message.startswith("Unknown")
