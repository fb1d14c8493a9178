"""A cluster of real Apache Kafka brokers on this machine: start, stop, kill, restart, freeze.

    with KafkaCluster(version="4.4.0", nodes=3) as cluster:
        Producer({"bootstrap.servers": cluster.bootstrap_servers})

Every node is broker and controller (KRaft) and listens on free loopback ports. Nothing here uses headrace: the tool
must not depend on what it is there to test. Read next: `tools.kafka.node`, `tools.kafka.security`.
"""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import random
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tools.jvm_options import short_lived
from tools.kafka.access import ALLOWED_URLS, client_properties, java_properties, write_properties
from tools.kafka.java import find_java, java_tool
from tools.kafka.node import KafkaStartError, Node
from tools.kafka.security import (
    LISTENERS,
    Certificates,
    Issuer,
    make_certificates,
    make_issuer,
    oidc_properties,
    sasl_properties,
    scram_arguments,
    tls_properties,
)
from tools.kafka.token_endpoint import TokenEndpoint

NEWEST: Final = "4.4.0"
_HOST: Final = "127.0.0.1"
_READY_TIMEOUT_S: Final = 90.0
_PORTS: Final = range(20_000, 32_000)
"""Below the ports that the system gives to outgoing connections, so that a stopped node finds its own port again."""
_given: Final[deque[int]] = deque(maxlen=len(_PORTS) // 2)
"""Ports of earlier calls, which their servers may not listen on yet."""


class KafkaCluster:
    """Brokers of one version of Apache Kafka; a context manager that starts them and takes everything away again.

    Args:
        version: "4.4.0", "4.3.1" or "3.9.2".
        nodes: number of brokers, 1 or 3 as a rule.
        listeners: listeners of each broker, names of `tools.kafka.security.LISTENERS`. PLAINTEXT is always there.
        properties: further broker properties, or others than the chosen ones.
        directory: where everything is kept; a temporary directory, removed by `close`, when None.
        heap_mb: heap of each broker, in MiB.
        quick: brokers that start in half the time and never become fast: for tests, not for benchmarks.
        jvm_options: further options of each broker's JVM.
        clients: the listener that `connection` and `java_tool` lead to; it need not be among `listeners`.
        racks: the brokers' racks, one for each; they have none without.
    """

    def __init__(
        self,
        version: str = NEWEST,
        nodes: int = 1,
        *,
        listeners: Sequence[str] = ("PLAINTEXT",),
        properties: Mapping[str, str] | None = None,
        directory: Path | None = None,
        heap_mb: int = 512,
        quick: bool = False,
        jvm_options: Sequence[str] = (),
        clients: str = "PLAINTEXT",
        racks: Sequence[str] = (),
    ) -> None:
        unknown = {*listeners, clients} - set(LISTENERS)
        if unknown:
            raise ValueError(f"unknown listeners {sorted(unknown)}; there are {', '.join(LISTENERS)}")
        self.version = version
        self.clients = clients
        self.listeners = tuple(dict.fromkeys(("PLAINTEXT", *listeners, clients)))
        self.certificates: Certificates | None = None
        self.issuer: Issuer | None = None
        self._tokens: TokenEndpoint | None = None
        self._temporary = directory is None
        self.directory = directory if directory is not None else Path(tempfile.mkdtemp(prefix="headrace-kafka-"))
        self._overrides = dict(properties or {})
        self._racks = dict(enumerate(racks, 1))
        self._ports = free_ports(nodes * (len(self.listeners) + 1))
        if quick:
            jvm_options = (*short_lived(f"kafka-{version}"), *jvm_options)
        self.nodes = {
            i: Node(i, version, self.directory / f"node-{i}", heap_mb, keep=not self._temporary,
                    jvm_options=jvm_options)
            for i in range(1, nodes + 1)
        }

    @property
    def bootstrap_servers(self) -> str:
        """All brokers' plaintext listeners, as `bootstrap.servers` takes them."""
        return self.bootstrap("PLAINTEXT")

    def bootstrap(self, listener: str) -> str:
        """All brokers' listeners of one name, as `bootstrap.servers` takes them."""
        return ",".join(f"{_HOST}:{self._port(node_id, listener)}" for node_id in self.nodes)

    def client_properties(self, listener: str = "PLAINTEXT", mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
        """Properties, under librdkafka's names, with which a client reaches one of the listeners."""
        return {"bootstrap.servers": self.bootstrap(listener),
                **client_properties(listener, mechanism, self.certificates, self._token_url(listener))}

    @property
    def connection(self) -> dict[str, str]:
        """Properties, under librdkafka's names, with which clients are meant to come."""
        return self.client_properties(self.clients, self._mechanism)

    def java_tool(
        self, program: str, *arguments: str, stdin: str | bytes | None = None, timeout_s: float = 120.0
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one of Kafka's own programs on this cluster, as a client like all others; see `tools.kafka.java`."""
        url = self._token_url(self.clients)
        given = java_properties(self.clients, self._mechanism, self.certificates, url)
        return java_tool(
            program, "--bootstrap-server", self.bootstrap(self.clients), "--command-config",
            str(write_properties(self.directory / "client.properties", given)), *arguments,
            stdin=stdin, timeout_s=timeout_s, options=[f"-D{ALLOWED_URLS}={url}"] if url else [],
        )

    @property
    def tokens(self) -> TokenEndpoint:
        """Where signed tokens for the listener OIDC are made out; it serves from now on."""
        if self._tokens is None:
            assert self.issuer is not None
            assert self.certificates is not None
            self._tokens = TokenEndpoint(self.issuer, self.certificates)
        return self._tokens

    @property
    def _mechanism(self) -> str:
        return "OAUTHBEARER" if self.clients == "OIDC" else "SCRAM-SHA-256"

    def _token_url(self, listener: str) -> str | None:
        return self.tokens.url if listener == "OIDC" else None

    def start(self, *, outlive: bool = False) -> Self:
        """Format the nodes, start them, and wait until every broker is known to every other.

        Args:
            outlive: leave the brokers running when this process ends.

        Raises:
            MissingJavaError: no Java.
            RegistryError: the jars cannot be had.
            KafkaStartError: a broker does not come up; the text shows why.
        """
        find_java()
        try:
            self._format()
            for node in self.nodes.values():
                node.start(outlive=outlive)
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def wait_ready(self, timeout_s: float = _READY_TIMEOUT_S) -> None:
        """Wait until each running broker answers and lists all running brokers."""
        running = [node for node in self.nodes.values() if node.pid is not None]
        deadline = time.monotonic() + timeout_s
        for node in running:
            port = self._port(node.node_id, "PLAINTEXT")
            while _known_brokers(port) < len(running):
                node.require_alive()
                if time.monotonic() > deadline:
                    raise KafkaStartError(
                        f"node {node.node_id} is not ready after {timeout_s:.0f} s; the end of {node.log}:\n"
                        f"{node.log_tail()}"
                    )
                time.sleep(0.1)

    def stop(self, node_id: int) -> None:
        """Stop one broker in good order."""
        self.nodes[node_id].stop()

    def kill(self, node_id: int) -> None:
        """Kill one broker at once, as a power cut would."""
        self.nodes[node_id].kill()

    def pause(self, node_id: int) -> None:
        """Freeze one broker: its connections stay open and nothing answers."""
        self.nodes[node_id].pause()

    def resume(self, node_id: int) -> None:
        """Let a frozen broker go on."""
        self.nodes[node_id].resume()

    def restart(self, node_id: int, *, outlive: bool = False, wait: bool = True) -> None:
        """Start a stopped or killed broker again, on its old port and data; stop it first when it runs."""
        node = self.nodes[node_id]
        node.stop()
        node.start(outlive=outlive)
        if wait:
            self.wait_ready()

    def cpu_s(self) -> float:
        """CPU seconds that all running brokers have used."""
        return sum(node.cpu_s() for node in self.nodes.values())

    def close(self) -> None:
        """Stop all brokers; data in a temporary directory is removed with them."""
        if self._tokens is not None:
            self._tokens.close()
            self._tokens = None
        end: Callable[[Node], None] = Node.kill if self._temporary else Node.stop
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(end, self.nodes.values()))
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _port(self, node_id: int, listener: str) -> int:
        row = (*self.listeners, "CONTROLLER")
        return self._ports[(node_id - 1) * len(row) + row.index(listener)]

    def _format(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        # Never with a dash in front: the formatting tool would take it for an option.
        cluster_id = "K" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:].rstrip("=")
        sasl = any(name.startswith("SASL") for name in self.listeners)
        if any(LISTENERS[name].endswith("SSL") for name in self.listeners):
            self.certificates = make_certificates(self.directory)
        if "OIDC" in self.listeners:
            self.issuer = make_issuer(self.directory)

        def format_one(node: Node) -> None:
            node.format(cluster_id, self._properties(node.node_id), scram_arguments() if sasl else ())

        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(format_one, self.nodes.values()))

    def _properties(self, node_id: int) -> dict[str, str]:
        addresses = {name: f"{name}://{_HOST}:{self._port(node_id, name)}" for name in (*self.listeners, "CONTROLLER")}
        advertised = ",".join(addresses[name] for name in self.listeners)
        replicas = str(min(3, len(self.nodes)))
        properties = {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "controller.quorum.voters": ",".join(f"{i}@{_HOST}:{self._port(i, 'CONTROLLER')}" for i in self.nodes),
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(addresses.values()),
            "advertised.listeners": advertised,
            "listener.security.protocol.map": ",".join(
                f"{name}:{LISTENERS[name]}" for name in self.listeners) + ",CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": "1",
            # Few partitions of the internal topics, no waiting for more members: tests are quicker.
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
            "group.consumer.assignment.interval.ms": "0",
            "group.share.assignment.interval.ms": "0",
            # For share groups that ask for it.
            "group.share.min.heartbeat.interval.ms": "100",
            "group.share.min.record.lock.duration.ms": "1000",
            "group.share.min.session.timeout.ms": "1000",
            "default.replication.factor": replicas,
        }
        if node_id in self._racks:
            properties["broker.rack"] = self._racks[node_id]
        if self.certificates is not None:
            properties |= tls_properties(self.certificates)
        if self.issuer is not None:
            properties |= oidc_properties(self.issuer)
        return properties | sasl_properties(self.listeners) | self._overrides


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on. They differ, also from those of the calls before: a server may not listen yet."""
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        for port in random.sample(_PORTS, len(_PORTS)):
            if port in _given:
                continue
            sock = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                sock.bind((_HOST, port))
                found.append(port)
            if len(found) == count:
                _given.extend(found)
                return found
    raise KafkaStartError(f"there are no {count} free ports between {_PORTS.start} and {_PORTS.stop}")


def _known_brokers(port: int) -> int:
    """Ask one broker for Metadata v1 of no topic, by hand; 0 when it does not answer.

    Returns:
        The number of brokers in the answer, or 0 as long as there is no controller.
    """
    client = b"headrace-tools"
    body = struct.pack(f">hhih{len(client)}si", 3, 1, 7, len(client), client, 0)
    try:
        with socket.create_connection((_HOST, port), timeout=2) as sock, sock.makefile("rb") as reply:
            sock.sendall(struct.pack(">i", len(body)) + body)
            (size,) = struct.unpack(">i", reply.read(4))
            frame = reply.read(size)
        (count,) = struct.unpack_from(">i", frame, 4)
        (controller,) = struct.unpack_from(">i", frame, len(frame) - 8)
    except (OSError, struct.error):
        return 0
    return int(count) if controller >= 0 else 0
