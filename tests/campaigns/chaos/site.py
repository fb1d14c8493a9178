"""Where it all happens: a cluster of real Apache Kafka with a topic, straight or behind the proxy."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from tools.kafka import KafkaCluster
from tools.kafka.cluster import free_ports
from tools.kafka.security import sasl_properties

from .proxy import Proxy

PARTITIONS: Final = 6
_PROPERTIES: Final = {
    "transaction.state.log.min.isr": "2",
    "broker.session.timeout.ms": "5000",  # a killed broker's partitions move, and it may come back, sooner
    "broker.heartbeat.interval.ms": "1000",
    "leader.imbalance.check.interval.seconds": "10",  # leaders go home again: more moves
    "unclean.leader.election.enable": "false",
    "group.consumer.session.timeout.ms": "6000",  # sessions end while a member is frozen
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.share.delivery.count.limit": "10",  # members are hurt often: none of the records shall be given up
    "group.share.partition.max.record.locks": "4000",
}


class ProxiedKafka(KafkaCluster):
    """A cluster with one listener more that is advertised at the ports of a proxy. Brokers speak straight.

    Args:
        listener: its name, SASL_PROXIED if clients have to authenticate there.

    Attributes:
        proxy_ports: for each broker the port to advertise, and the one that it listens on.
    """

    def __init__(self, nodes: int, properties: Mapping[str, str], listener: str) -> None:
        self._listener, self._protocol = listener, "SASL_PLAINTEXT" if listener.startswith("SASL") else "PLAINTEXT"
        super().__init__(nodes=nodes, listeners=(self._protocol,), properties=properties, heap_mb=384,
                         quick=True)  # they are started again and again
        ports = free_ports(2 * nodes)
        self.proxy_ports = {node: (ports.pop(), ports.pop()) for node in self.nodes}

    def _properties(self, node_id: int) -> dict[str, str]:
        properties = super()._properties(node_id)
        advertised, own = self.proxy_ports[node_id]
        properties["listeners"] += f",{self._listener}://127.0.0.1:{own}"
        properties["advertised.listeners"] += f",{self._listener}://127.0.0.1:{advertised}"
        properties["listener.security.protocol.map"] += f",{self._listener}:{self._protocol}"
        return properties | sasl_properties((self._listener,))

    @property
    def proxied_properties(self) -> dict[str, str]:
        """What a client needs to come in through the proxy, under librdkafka's names; but the servers."""
        properties = self.client_properties(self._protocol)
        del properties["bootstrap.servers"]
        return properties


class Site:
    """A running cluster, as a context manager.

    Args:
        nodes: 3, or 1 for a quick look.
        seed: of the proxy's chances.
        sasl: clients authenticate behind the proxy (SCRAM).

    Attributes:
        proxy: what `proxied_servers` leads through.
    """

    def __init__(self, nodes: int = 3, seed: object = None, *, sasl: bool = False) -> None:
        two = {"min.insync.replicas": "2", "share.coordinator.state.topic.min.isr": "2"}
        replicas = two if nodes > 1 else {"transaction.state.log.min.isr": "1"}
        self.cluster = ProxiedKafka(nodes, {**_PROPERTIES, **replicas}, "SASL_PROXIED" if sasl else "PROXIED")
        self.proxy = Proxy(self.cluster.proxy_ports, seed)
        self._stack = ExitStack()
        self._topics = 0

    def __enter__(self) -> Site:
        with ExitStack() as stack:
            stack.enter_context(self.proxy)
            stack.enter_context(self.cluster)
            self._admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    @property
    def nodes(self) -> list[int]:
        return list(self.cluster.nodes)

    @property
    def servers(self) -> str:
        """The brokers themselves."""
        return self.cluster.bootstrap_servers

    @property
    def proxied_servers(self) -> str:
        """The brokers behind the proxy."""
        return ",".join(f"127.0.0.1:{advertised}" for advertised, _ in self.cluster.proxy_ports.values())

    def way_in(self, fault: str) -> tuple[str, dict[str, str]]:
        """The servers that clients are given, and further properties: the proxy if the fault is one of its own."""
        if fault in ("garble", "proxy"):
            return self.proxied_servers, self.cluster.proxied_properties
        return self.servers, {}

    def make_topic(self) -> str:
        """A new topic of `PARTITIONS` partitions on all brokers."""
        self._topics += 1
        name = f"chaos-{self._topics}"
        self._admin.create_topics([NewTopic(name, PARTITIONS, len(self.nodes))])[name].result(60)
        give_up_at = time.monotonic() + 60
        while any(self.leader(name, partition) is None for partition in range(PARTITIONS)):
            assert time.monotonic() < give_up_at, f"{name} has no leaders"
            time.sleep(0.1)
        return name

    def leader(self, topic: str, partition: int) -> int | None:
        """The broker that leads a partition, as far as is known."""
        return self.leaders(topic).get((topic, partition))

    def leaders(self, topic: str) -> dict[tuple[str, int], int]:
        """The brokers that lead the partitions of a topic, as far as they are known."""
        try:
            partitions = self._admin.list_topics(topic, timeout=5).topics[topic].partitions
        except Exception:  # confluent_kafka's, while brokers come and go
            return {}
        return {(topic, number): each.leader for number, each in partitions.items() if each.leader in self.nodes}
