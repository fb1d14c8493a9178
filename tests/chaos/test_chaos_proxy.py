"""The proxy hurts connections as it says: else a run of chaos would show nothing."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tools.kafka.cluster import free_ports

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
