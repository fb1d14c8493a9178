"""Connections that come and go while the broker stops."""

import gc
import socket
import threading
import time
import warnings

import pytest

from headrace.testing import EmbeddedBroker


@pytest.mark.parametrize("nodes", [1, 2])
def test_what_connects_just_when_the_broker_stops_is_closed_by_it(nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda raised: left.append(str(raised.exc_value)))
    for _ in range(10):
        broker = EmbeddedBroker(nodes=nodes)
        broker.start()
        host, port = broker.bootstrap_servers.split(",")[-1].split(":")
        stopped = threading.Event()

        def connect(address: tuple[str, int] = (host, int(port)), stopped: threading.Event = stopped) -> None:
            clients = []
            while not stopped.is_set():
                try:
                    clients.append(socket.create_connection(address, 0.2))
                except OSError:
                    break
            for client in clients:
                client.close()

        connecting = threading.Thread(target=connect)
        connecting.start()
        time.sleep(0.01)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            broker.stop()
            stopped.set()
            connecting.join()
            gc.collect()
    assert left == []
