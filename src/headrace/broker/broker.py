"""The embedded broker from outside: start it, stop it, and change its cluster while it runs.

Several node ids are several listeners in one process over one set of logs; leaders are spread over them and move when a
node stops. Everything runs on one event loop; `headrace.testing.EmbeddedBroker` gives it a thread of its own.

Read next: `broker.server` for a request's way in, `broker.cluster` for what the nodes share.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from headrace.broker.clock import BrokerClock
from headrace.broker.cluster import BrokerCluster, BrokerNode
from headrace.broker.dispatch import served_by
from headrace.broker.server import ClientConnection, Listener, accept_no_more
from headrace.broker.settings import BrokerSettings

if TYPE_CHECKING:
    from headrace.broker.registry.http_server import HttpServer

__all__ = ["Broker"]

Result = TypeVar("Result")
_BACKLOG = 512


class Broker:
    """A cluster of embedded nodes. All methods run on the loop that `start` ran on.

    Args:
        host: address to listen on. The default is loopback, because there is no authentication.
        port: port of the first node, the others follow; 0 takes free ones.
        nodes: how many node ids, from 1 on.
        data_dir: where to keep the data; None keeps it in memory.
        settings: how the broker behaves.
        advertised_host: the name under which clients connect; `host` when None.
        registry: host and port of a Schema Registry to serve as well; port 0 takes a free one.

    Raises:
        ValueError: `settings.api_versions` names what is not served.
        OSError: another broker has the data directory.
    """

    def __init__(
        self, *, host: str = "127.0.0.1", port: int = 0, nodes: int = 1, data_dir: str | Path | None = None,
        settings: BrokerSettings | None = None, advertised_host: str | None = None,
        registry: tuple[str, int] | None = None,
    ) -> None:
        self._host = host
        self._directory = None if data_dir is None else Path(data_dir)
        self._lock: IO[str] | None = None
        if self._directory is not None:
            self._lock = _lock(self._directory)
        known = [
            BrokerNode(number + 1, advertised_host or host, port + number if port else 0) for number in range(nodes)
        ]
        settings = settings or BrokerSettings()
        self.cluster = BrokerCluster(known, settings, served_by(settings), uuid.uuid4, self._directory)
        self._clock = BrokerClock(self.cluster)
        self._open: dict[int, tuple[asyncio.Server, Listener]] = {}
        self._registry_address = registry
        self._registry: HttpServer | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect: HOST:PORT of every node, separated by commas."""
        return ",".join(f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}"
                        for node in self.cluster.nodes.values())

    @property
    def registry_url(self) -> str:
        """Where the Schema Registry listens; empty where there is none."""
        if self._registry_address is None:
            return ""
        host, port = self._registry_address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def start(self) -> None:
        """Listen, on every node, and as a registry.

        Raises:
            OSError: a port is taken or the address is not this machine's.
        """
        try:
            for node_id in self.cluster.nodes:
                await self.start_node(node_id)
            await self._start_registry()
        except OSError:
            await self.stop()
            raise

    async def start_node(self, node_id: int) -> None:
        """Let a stopped node listen again, on the port that it had."""
        node = self.cluster.nodes[node_id]
        loop = asyncio.get_running_loop()
        listener = Listener(node_id)
        self._clock.start()
        with _named(self._host, node.port):
            server = await loop.create_server(lambda: ClientConnection(self.cluster, listener, self._clock),
                                              self._host, node.port, backlog=_BACKLOG)
        self._open[node_id] = server, listener
        node.port = server.sockets[0].getsockname()[1]
        self._node_went(node_id, up=True)

    async def stop_node(self, node_id: int) -> None:
        """Stop a node as if its machine were lost: connections end, the next replicas lead its partitions."""
        server, listener = self._open.pop(node_id)
        self._node_went(node_id, up=False)
        await _shut(server, listener)

    async def stop(self) -> None:
        """Close every listener, connection and file."""
        opened, self._open = self._open, {}
        if self._registry is not None:
            await self._registry.stop()
        await asyncio.gather(*(_shut(server, listener) for server, listener in opened.values()))
        self._clock.close()
        self.cluster.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def apply(self, action: Callable[[BrokerCluster], Result]) -> Result:
        """Do something to the cluster from outside, and see to what follows from it; returns what `action` returned."""
        try:
            return action(self.cluster)
        finally:
            self._clock.settle()

    async def _start_registry(self) -> None:
        if self._registry_address is None:
            return
        from headrace.broker.registry.http_server import HttpServer
        from headrace.broker.registry.rest_api import RegistryApi

        api = RegistryApi(self.cluster)
        self._registry = HttpServer(lambda method, target, body: self.apply(
            lambda cluster: api.handle(method, target, body, self._clock.now().ms)))
        host, port = self._registry_address
        with _named(host, port):
            self._registry_address = host, await self._registry.start(host, port)

    def _node_went(self, node_id: int, *, up: bool) -> None:
        self.apply(lambda cluster: cluster.node_went(node_id, self._clock.now(), up=up))


@contextmanager
def _named(host: str, port: int) -> Iterator[None]:
    """What fails inside is listening there: the error says so.

    Raises:
        OSError: it failed.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or isinstance(error, socket.gaierror):
            why = error.strerror or str(error)
        else:
            why = os.strerror(error.errno)
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {why}") from error


async def _shut(server: asyncio.Server, listener: Listener) -> None:
    """Let connections learn that they are closed, and those just accepted that the node is gone."""
    listener.shut()
    await accept_no_more(server)


def _lock(directory: Path) -> IO[str]:
    """Hold the data directory, so that two brokers never write to one.

    Raises:
        OSError: another broker has it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    file = (directory / "lock").open("w")
    if os.name == "posix":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise OSError(f"{directory} is in use by another broker; stop it, or give this one its own "
                          "directory") from error
    return file
