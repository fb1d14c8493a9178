"""The proxy hurts connections as it says: else a run of chaos would show nothing."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from headrace.wire.api import API
from tests.support.garbage import GARBAGE, HALF
from tools.kafka.cluster import free_ports

from .garble import KINDS, PHASES, TURNED, phase_of
from .proxy import Proxy, Way

FRAME = (100).to_bytes(4, "big") + bytes(range(100))


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """In front of a server that sends everything back."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=echo, args=(client,), daemon=True).start()

        def echo(client: socket.socket) -> None:
            with client:
                try:
                    while data := client.recv(65_536):
                        client.sendall(data)
                except OSError:
                    pass

        threading.Thread(target=serve, daemon=True).start()
        [port] = free_ports(1)
        with Proxy({1: (port, server.getsockname()[1])}, seed=1) as made:
            yield made
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def client(proxy: Proxy) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", proxy._ports[1][0]), timeout=10) as made:
        assert exchange(made) == FRAME
        yield made


def exchange(client: socket.socket) -> bytes:
    """Send a frame; what comes back until it is whole or the connection ends."""
    client.sendall(FRAME)
    return rest(client)


def rest(client: socket.socket) -> bytes:
    found = b""
    while len(found) < len(FRAME) and (data := client.recv(65_536)):
        found += data
    return found


def test_connections_end_in_good_order(proxy: Proxy, client: socket.socket) -> None:
    proxy.end_links(1, reset=False)
    assert client.recv(1) == b""
    assert proxy.counts == {"connections dropped": 1}


def test_connections_are_reset(proxy: Proxy, client: socket.socket) -> None:
    proxy.end_links(1, reset=True)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert proxy.counts == {"connections reset": 1}


@pytest.mark.parametrize("way", list(Way))
def test_a_frame_is_cut_in_the_middle(proxy: Proxy, client: socket.socket, way: Way) -> None:
    proxy.cut(1, way)
    found = b""
    client.sendall(FRAME)
    try:
        while data := client.recv(65_536):
            found += data
    except ConnectionResetError:
        pass
    assert found == FRAME[:len(found)]
    assert len(found) < len(FRAME)
    assert proxy.counts == {f"{way.value} cut": 1}
    with socket.create_connection(("127.0.0.1", proxy._ports[1][0]), timeout=10) as another:
        assert exchange(another) == FRAME  # once only


def test_bytes_are_late(proxy: Proxy, client: socket.socket) -> None:
    proxy.delay(1, 0.1)
    started = time.monotonic()
    assert exchange(client) == FRAME
    assert time.monotonic() - started >= 0.2
    proxy.delay(1, 0)
    assert proxy.counts == {"delays": 1}


@pytest.mark.parametrize("ways", [tuple(Way), (Way.OUT,), (Way.BACK,)])
@pytest.mark.parametrize("lose", [False, True])
def test_a_black_hole_holds_back_what_comes_in_and_may_lose_it(
    proxy: Proxy, client: socket.socket, ways: tuple[Way, ...], lose: bool
) -> None:
    proxy.shut(1, *ways)
    client.sendall(FRAME)
    client.settimeout(0.1)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.settimeout(10)
    proxy.reopen(1, lose=lose)
    if lose:
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    else:
        assert rest(client) == FRAME


def asking(api_key: int, number: int = 5) -> bytes:
    """A request; the server sends it back, so that it is its own answer with these two numbers in front."""
    body = struct.pack(">hhi", api_key, 0, number) + bytes(20)
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [3, 1000])
def test_the_next_answer_in_a_phase_is_garbled_and_no_other(proxy: Proxy, kind: str, step: int) -> None:
    proxy.garbling = True
    proxy.garble(1, "producer id", kind)
    with socket.create_connection(("127.0.0.1", proxy._ports[1][0]), timeout=10) as made:
        metadata, producer_id = asking(3), asking(22)
        ends = kind in (HALF, TURNED)  # the connection: nobody would take what comes behind it
        sent = metadata + producer_id + (b"" if ends else metadata)
        for at in range(0, len(sent), step):
            made.sendall(sent[at:at + step])
            time.sleep(0.001 if step < 10 else 0)
        found = b""
        while (ends or not found.endswith(metadata) or len(found) <= len(metadata)) and (data := made.recv(65_536)):
            found += data
    assert found.startswith(metadata)
    garbage = found[len(metadata):] if ends else found[len(metadata):-len(metadata)]
    assert garbage != producer_id
    if kind in GARBAGE:
        assert garbage == GARBAGE[kind](producer_id)
    assert proxy.counts == {"garbled of producer id": 1}


def test_every_request_of_a_client_has_its_phase() -> None:
    phases = {api.name: phase_of(key) for key, api in API.items()}
    assert {name for name, phase in phases.items() if phase} >= {
        "ApiVersions", "SaslHandshake", "SaslAuthenticate", "Metadata", "InitProducerId", "Produce", "Fetch",
        "ListOffsets", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit",
        "OffsetFetch", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"}
    assert set(phases.values()) == {*PHASES, ""}
