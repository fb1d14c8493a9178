"""Clients find leaders and coordinators among several nodes, and find them again when a node goes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.testing import EmbeddedBroker

from .client import Record
from .conftest import CLIENTS, Clients
from .samples import TIME_MS

NODES = 3
PARTITIONS = 6
COUNT = 60


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(nodes=NODES) as broker:
        yield broker


def records(mark: str) -> list[Record]:
    return [Record(index % PARTITIONS, TIME_MS, None, f"{mark}-{index}".encode()) for index in range(COUNT)]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_is_led_to_the_right_node_and_on_when_that_goes(
    clients: Clients, three_nodes: EmbeddedBroker, name: str
) -> None:
    client, servers, topic = clients[name], three_nodes.bootstrap_servers, f"led-{name}"
    three_nodes.create_topic(topic, PARTITIONS, configs={"retention.ms": "-1"})
    assert {three_nodes.leader(topic, partition) for partition in range(PARTITIONS)} == set(range(1, NODES + 1))
    client.produce(servers, topic, records("before"), idempotent=True)
    groups = [f"{topic}-{number}" for number in range(2)]
    for group in groups:
        assert len(client.consume(servers, [topic], COUNT, group=group)) == COUNT
    three_nodes.stop_node(2)
    try:
        client.produce(servers, topic, records("after"), idempotent=True)
        for group in groups:
            again = client.consume(servers, [topic], COUNT, group=group)
            assert sorted(str(record.value) for record in again.values()) == sorted(
                str(record.value) for record in records("after"))
    finally:
        three_nodes.start_node(2)
