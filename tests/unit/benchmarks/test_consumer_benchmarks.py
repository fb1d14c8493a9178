"""The benchmarks of consumers that join, and of many partitions, run: small, at the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from benchmarks import joining, many_partitions
from benchmarks.measure import run_child
from headrace import Producer
from headrace.testing import EmbeddedBroker

PARTITIONS, RECORDS = 40, 2000
GROUPS = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"many": PARTITIONS, joining.TOPIC: joining.PARTITIONS}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(2 * joining.PARTITIONS):
                producer.produce(joining.TOPIC, b"value", partition=number % joining.PARTITIONS)
        many_partitions.fill(request(broker))
        yield broker


def request(broker: EmbeddedBroker, **more: Any) -> dict[str, Any]:
    return {"bootstrap": broker.bootstrap_servers, "topic": "many", "partitions": PARTITIONS, "records": RECORDS,
            "size": 10, "seconds": 0.1, "rate": 2000, "protocol": "classic", "group": f"group {next(GROUPS)}", **more}


@pytest.mark.parametrize("client", many_partitions.CLIENTS)
def test_many_partitions_are_joined_and_read_by_both_clients(broker: EmbeddedBroker, client: str) -> None:
    found = {}
    for action in ("trickle", "join", "read"):
        found |= run_child("benchmarks.many_partitions", request(broker, action=action, client=client))
    assert found.keys() == many_partitions.HEADS.keys()
    assert all(figure > 0 for figure in found.values())


@pytest.mark.parametrize("client", joining.CLIENTS)
@pytest.mark.parametrize("exists", [False, True], ids=["new group", "existing group"])
def test_the_first_record_of_a_group_is_timed(broker: EmbeddedBroker, client: str, exists: bool) -> None:
    found = run_child("benchmarks.joining", request(broker, client=client, exists=exists))
    assert found.keys() == {"fresh_s", "fresh_cpu_s", "warm_s", "warm_cpu_s"}
    assert all(figure > 0 for figure in found.values())
