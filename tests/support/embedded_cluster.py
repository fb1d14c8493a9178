"""An embedded broker in the clothes of a real cluster, so that programs that were written for one run on the other."""

from __future__ import annotations

from typing import Any, Self

from headrace.testing import BrokerSettings, EmbeddedBroker


class EmbeddedCluster:
    """A running cluster with the names of `tools.kafka.KafkaCluster` that tests use.

    Args:
        nodes: how many.
        settings: of the broker.

    Attributes:
        nodes: the numbers of all.
    """

    def __init__(self, nodes: int = 1, **settings: Any) -> None:
        self.broker = EmbeddedBroker(nodes=nodes, settings=BrokerSettings(**settings))
        self.nodes = list(range(1, nodes + 1))

    def __enter__(self) -> Self:
        self.broker.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self.broker.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Where clients begin."""
        return self.broker.bootstrap_servers

    @property
    def connection(self) -> dict[str, str]:
        """Properties with which clients connect."""
        return {"bootstrap.servers": self.bootstrap_servers}

    def kill(self, node_id: int) -> None:
        """A node is lost."""
        self.broker.stop_node(node_id)
