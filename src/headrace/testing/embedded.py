"""An embedded broker on a thread of its own, steered from the test's thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from headrace.broker.broker import Broker
from headrace.broker.cluster import BrokerCluster
from headrace.broker.faults import Fault
from headrace.broker.settings import BrokerSettings
from headrace.interpreter import has_threads
from headrace.net.thread import new_loop

__all__ = ["EmbeddedBroker"]

Result = TypeVar("Result")

_NOT_RUNNING = "the embedded broker does not run: use it in a with block, or call start() first"


class EmbeddedBroker:
    """A broker for the length of a `with` block, on free loopback ports.

    Args:
        nodes: how many node ids; their numbers begin at 1.
        data_dir: where to keep the data; None keeps it in memory.
        topics: topics to make, with their numbers of partitions.
        settings: how the broker behaves.
        port: port of the first node; 0 takes free ones.
        registry: serve a Schema Registry too, on a free loopback port: its state is the topic `_schemas`.

    Raises:
        OSError: a port or the data directory is in use.
        ValueError: `settings.api_versions` names what is not served.
        RuntimeError: there are no threads, for gevent or eventlet has taken their place.
    """

    def __init__(
        self, *, nodes: int = 1, data_dir: str | Path | None = None, topics: Mapping[str, int] | None = None,
        settings: BrokerSettings | None = None, port: int = 0, registry: bool = False,
    ) -> None:
        if not has_threads():
            raise RuntimeError(
                "gevent or eventlet has taken the place of threads, and the broker's loop and its clients' need one "
                "each: start it in a process of its own, `headrace broker`")
        self._broker = Broker(nodes=nodes, data_dir=data_dir, settings=settings, port=port,
                              registry=("127.0.0.1", 0) if registry else None)
        self._topics = dict(topics or {})
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="headrace-broker", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Value for the clients' `bootstrap.servers`.

        Raises:
            RuntimeError: the broker was not started.
        """
        self._check_begun()
        return self._broker.bootstrap_servers

    @property
    def registry_url(self) -> str:
        """Value for the registry clients' `url`; empty where no registry is served.

        Raises:
            RuntimeError: the broker was not started.
        """
        self._check_begun()
        return self._broker.registry_url

    def start(self) -> None:
        """Listen, and make the topics that are not there."""
        self._thread.start()
        try:
            self._await(self._broker.start())
        except OSError:
            self._end_loop()
            raise
        for name, partitions in self._topics.items():
            if name not in self._broker.cluster.catalog.topics:
                self.create_topic(name, partitions)

    def stop(self) -> None:
        """End the broker and its thread; a second call does nothing."""
        if self._thread.is_alive():
            self._await(self._broker.stop())
            self._end_loop()
        self._loop.close()

    def create_topic(self, name: str, partitions: int = 1, replication_factor: int | None = None,
                     configs: Mapping[str, str] | None = None) -> None:
        """Make a topic.

        Raises:
            Refused: the name or a number is not allowed, or the topic exists.
            RuntimeError: the broker does not run, as of all calls below.
        """
        self.apply(lambda cluster: cluster.catalog.create(
            name, partitions, replication_factor or cluster.default_replication_factor, dict(configs or {})))

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Let another node lead a partition."""
        self.apply(lambda cluster: cluster.move_leader(topic, partition, node_id))

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition; -1 when none does."""
        return self.apply(lambda cluster: cluster.catalog.topics[topic].partitions[partition].leader_id)

    def end_offsets(self, topic: str) -> list[int]:
        """The log end offset of every partition of a topic."""
        return self.apply(lambda cluster: [each.log.end_offset for each in cluster.catalog.topics[topic].partitions])

    def stop_node(self, node_id: int) -> None:
        """Take a node away without warning; others lead its partitions."""
        self._await(self._broker.stop_node(node_id))

    def start_node(self, node_id: int) -> None:
        """Bring a stopped node back."""
        self._await(self._broker.start_node(node_id))

    def add_fault(self, fault: Fault) -> None:
        """Arm a fault; see `headrace.broker.faults`."""
        self.apply(lambda cluster: cluster.faults.add(fault))

    def clear_faults(self) -> None:
        """Disarm all faults, and let go on what a delay holds up."""
        self.apply(lambda cluster: cluster.faults.clear())

    def apply(self, action: Callable[[BrokerCluster], Result]) -> Result:
        """Run a function on the broker's own thread, where its state may be touched.

        Args:
            action: gets the cluster; must not block.

        Returns:
            What it returned.
        """
        async def run() -> Result:
            return self._broker.apply(action)

        return self._await(run())

    def _check_begun(self) -> None:
        if self._thread.ident is None:
            raise RuntimeError(_NOT_RUNNING)

    def _await(self, work: Coroutine[Any, Any, Result]) -> Result:
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError(_NOT_RUNNING)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
