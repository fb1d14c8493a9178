"""HTTP/1.1 as the registry serves it: what clients send, and what nobody should."""

import asyncio
import gc
import logging
import socket
import time
from collections.abc import Iterator

import pytest

from headrace.broker.registry import http_server
from headrace.broker.registry.http_server import HttpServer
from headrace.broker.registry.rest_api import RestReply
from headrace.testing import EmbeddedBroker


@pytest.fixture(scope="module")
def registry() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(registry=True) as broker:
        yield broker


def connected(registry: EmbeddedBroker) -> socket.socket:
    host, _, port = registry.registry_url.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def talk(registry: EmbeddedBroker, *sent: bytes, closes: bool = False) -> bytes:
    """Everything that comes back for what is sent; the connection ends when the server ends it."""
    with connected(registry) as client:
        for each in sent:
            client.sendall(each)
        if closes:
            client.shutdown(socket.SHUT_WR)
        received = b""
        while part := client.recv(65536):
            received += part
        return received


def test_a_connection_serves_one_request_after_the_other(registry: EmbeddedBroker) -> None:
    answer = talk(registry, b"GET /schemas/types HTTP/1.1\r\nHost: x\r\n\r\nGET /subjects?deleted=true HTTP/1.1\r\n"
                  b"Host: x\r\nConnection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert b"Content-Type: application/vnd.schemaregistry.v1+json" in answer
    assert answer.endswith(b"\r\n\r\n[]")


@pytest.mark.parametrize(("path", "status"), [(b"/subjects", b"200 OK"), (b"/nowhere", b"404 Not Found")])
def test_who_asks_for_the_head_alone_gets_what_get_would_say_without_the_body(
    registry: EmbeddedBroker, path: bytes, status: bytes,
) -> None:
    answer = talk(registry, b"HEAD " + path + b" HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n"
                  b"Connection: close\r\n\r\n")
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert b"Content-Length: 0" not in head
    assert rest.startswith(b"HTTP/1.1 200 OK")


def test_http_1_0_ends_after_the_answer(registry: EmbeddedBroker) -> None:
    assert talk(registry, b"GET / HTTP/1.0\r\n\r\n").endswith(b"Connection: close\r\n\r\n{}")


def test_a_body_may_come_in_chunks_and_in_pieces(registry: EmbeddedBroker) -> None:
    head = (b"POST /compatibility/subjects/s/versions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
            b"Connection: close\r\n\r\n")
    body = b'6;x=y\r\n{"sche\r\nf\r\nma": "\\"int\\""}\r\n0\r\nTrailer: x\r\n\r\n'
    answer = talk(registry, *(bytes([byte]) for byte in head + body))
    assert answer.endswith(b'{"is_compatible":true}')


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(registry: EmbeddedBroker) -> None:
    answer = talk(registry, b"POST /subjects/s HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
                  b"Connection: close\r\n\r\n", b"{}")
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found")


@pytest.mark.parametrize(("sent", "status"), [
    (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
    (b"GET / HTTP/2.0\r\n\r\n", 400),
    (b"GET  / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nno header\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nA: " + b"x" * 40_000 + b"\r\n\r\n", 431),
    (b"A" * 40_000, 431),
    (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nContent-Length: 9999999999999999\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
    (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", 413),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", 400),
])
def test_what_is_no_request_is_refused_and_the_connection_ends(
    registry: EmbeddedBroker, sent: bytes, status: int
) -> None:
    answer = talk(registry, sent)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert f'"error_code":{status}'.encode() in answer


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab"])
def test_a_client_that_goes_in_the_middle_is_let_go(registry: EmbeddedBroker, sent: bytes) -> None:
    assert talk(registry, sent, closes=True) == b""


def test_a_client_that_is_too_slow_is_let_go(registry: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_REQUEST_S", 0.05)
    monkeypatch.setattr(http_server, "_IDLE_S", 0.05)
    started = time.monotonic()
    assert talk(registry, b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab") == b""
    assert talk(registry) == b""
    assert time.monotonic() - started < 5


def test_more_connections_than_are_allowed_are_closed(
    registry: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_MAX_CONNECTIONS", 1)
    with connected(registry) as first:
        first.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert first.recv(1000).startswith(b"HTTP/1.1 200")
        assert talk(registry) == b""


@pytest.mark.parametrize("size", [b"Content-Length: 60", b"Transfer-Encoding: chunked"])
def test_more_bodies_at_once_than_memory_is_for_are_sent_away_and_may_come_again(
    registry: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, size: bytes
) -> None:
    monkeypatch.setattr(http_server, "_MAX_BODIES", 100)
    head = b"POST /subjects/s HTTP/1.1\r\nConnection: close\r\n"
    body = b"3c\r\n" + b"x" * 60 + b"\r\n0\r\n\r\n" if b"chunked" in size else b"x" * 60
    with connected(registry) as first:
        first.sendall(head + b"Expect: 100-continue\r\nContent-Length: 60\r\n\r\n")
        assert first.recv(1000).startswith(b"HTTP/1.1 100")  # its body is waited for
        answer = talk(registry, head + size + b"\r\n\r\n", body)
        assert answer.startswith(b"HTTP/1.1 503 ")
        first.sendall(b"x" * 60)
        assert first.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert talk(registry, head + size + b"\r\n\r\n", body).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("body", [b"[" * 5_000_000, b'{"a":' * 1_000_000, b'"' * 5_000_000, b'{"schema":"' * 400_000])
def test_a_body_that_is_deep_or_long_is_refused_in_little_time(registry: EmbeddedBroker, body: bytes) -> None:
    head = b"POST /subjects/s/versions HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    started = time.process_time()
    assert talk(registry, head, body).startswith(b"HTTP/1.1 400 ")
    assert time.process_time() - started < 10


def test_an_answer_that_fails_is_500_and_the_server_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def answer(method: str, target: str, body: bytes) -> RestReply:
        raise ZeroDivisionError(target)

    async def ask() -> bytes:
        server = HttpServer(answer)
        port = await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 2)
        received = await reader.readuntil(b"Error\"}") + await reader.readuntil(b"Error\"}")
        await server.stop()
        writer.close()
        return received

    with caplog.at_level(logging.CRITICAL, "headrace.broker.registry"):
        assert asyncio.run(ask()).count(b"HTTP/1.1 500") == 2


@pytest.mark.parametrize("turns", range(6))
def test_what_connects_just_when_the_server_stops_is_closed_by_it(turns: int) -> None:
    async def run() -> None:
        server = HttpServer(lambda method, target, body: RestReply(200, "{}"))
        port = await server.start("127.0.0.1", 0)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.stop()
            await asyncio.sleep(0)
            client.settimeout(5)
            try:
                assert client.recv(1) == b""
            except ConnectionError:
                pass  # nobody has accepted it

    asyncio.run(run())
    gc.collect()  # an open transport would be told of here
