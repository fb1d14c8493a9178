"""What the tests on real Kafka share: a running cluster, topics on it, and reading them to the end."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient as ConfluentAdmin
from confluent_kafka.admin import NewTopic

from headrace import Consumer, Message
from tools.kafka import KafkaCluster, MissingJavaError, RegistryError

_NUMBERS = count()


def running(cluster: KafkaCluster) -> Iterator[KafkaCluster]:
    """Start a cluster for a fixture and close it after the tests."""
    try:
        cluster.start()
    except (MissingJavaError, RegistryError) as error:
        cluster.close()
        if os.environ.get("CI") == "true":
            pytest.fail(f"real Kafka is part of CI: {error}")
        pytest.skip(str(error))
    try:
        yield cluster
    finally:
        cluster.close()


def make_topic(cluster: KafkaCluster, partitions: int, **config: str) -> str:
    """Make a topic, with somebody else's client, and wait for its leaders."""
    name = f"topic-{next(_NUMBERS)}-{os.getpid()}"
    admin = ConfluentAdmin({**cluster.connection, "log_level": 0})
    replicas = min(3, len(cluster.nodes))
    admin.create_topics([NewTopic(name, partitions, replicas, config=config)])[name].result(30)
    until(lambda: len(((t := admin.list_topics(timeout=10).topics.get(name)) and t.partitions) or ()) == partitions)
    return name


def until(condition: Callable[[], Any], timeout_s: float = 30.0) -> None:
    """Wait for something that other processes bring about."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def read_all(cluster: KafkaCluster, topic: str, expected: int, **config: Any) -> list[Message]:
    """Read a topic from its beginning with our consumer, as a group of its own.

    Args:
        cluster: where the topic is.
        topic: its name.
        expected: how many records it must have.
        config: properties of the consumer; with `bootstrap.servers` among them, it comes as they say.
    """
    connection: dict[str, Any] = {} if "bootstrap.servers" in config else dict(cluster.connection)
    properties = {
        **connection, "group.id": f"reader-{next(_NUMBERS)}-{os.getpid()}", "auto.offset.reset": "earliest", **config,
    }
    with Consumer(properties) as consumer:
        consumer.subscribe([topic])
        return take(consumer, expected)


def take(consumer: Any, expected: int, timeout_s: float = 30.0) -> list[Any]:
    """Take exactly so many records; more or fewer is a failure."""
    found: list[Any] = []
    deadline = time.monotonic() + timeout_s
    while len(found) < expected:
        assert time.monotonic() < deadline, f"{len(found)} records of {expected}"
        found += consumer.consume(expected - len(found), 0.5)
    found += consumer.consume(1, 0.2)
    assert len(found) == expected, "there are more records than were written"
    return without_errors(found)


def without_errors(messages: Iterable[Any]) -> list[Any]:
    """The records, if none of them is an error."""
    found = list(messages)
    assert [m.error() for m in found if m.error() is not None] == []
    return found
