"""What is paused stays so until it is resumed, whatever happens to the assignment: as in confluent_kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

import headrace
from headrace.testing import EmbeddedBroker

PATIENCE_S, NOTHING_S = 20.0, 0.5
both = pytest.mark.parametrize("package", [headrace, confluent_kafka])


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker(topics={"t": 2}) as broker:
        with headrace.Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(40):
                producer.produce("t", b"x", partition=number % 2)
        yield broker.bootstrap_servers


@pytest.fixture
def consumer(package: Any, servers: str) -> Iterator[Any]:
    made = package.Consumer({"bootstrap.servers": servers, "group.id": f"{package.__name__}",
                             "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    yield made
    made.close()


def first(package: Any, partition: int) -> Any:
    return package.TopicPartition("t", partition, 0)


def reads(consumer: Any) -> bool:
    return consumer.poll(PATIENCE_S) is not None


@both
def test_a_partition_that_is_assigned_again_is_still_paused(package: Any, consumer: Any) -> None:
    consumer.assign([first(package, 0)])
    assert reads(consumer)
    consumer.pause([first(package, 0)])
    consumer.assign([first(package, 0)])
    assert consumer.poll(NOTHING_S) is None
    consumer.unassign()
    consumer.assign([first(package, 0)])
    assert consumer.poll(NOTHING_S) is None
    consumer.incremental_unassign([first(package, 0)])
    consumer.incremental_assign([first(package, 0)])
    assert consumer.poll(NOTHING_S) is None
    consumer.resume([first(package, 0)])
    assert reads(consumer)


@both
def test_what_was_given_up_is_resumed_for_later(package: Any, consumer: Any) -> None:
    consumer.assign([first(package, 0)])
    assert reads(consumer)
    consumer.pause([first(package, 0)])
    consumer.unassign()
    consumer.resume([first(package, 0)])
    consumer.assign([first(package, 0)])
    assert reads(consumer)
