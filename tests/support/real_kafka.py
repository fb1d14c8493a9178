"""What the tests on real Kafka share: a running cluster, topics on it, and reading them to the end."""

import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient as ConfluentAdmin
from confluent_kafka.admin import NewTopic

from headrace import Consumer, Message
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.consumer.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.raw_client import RawClient
from tools.kafka import KafkaCluster, MissingJavaError, RegistryError

_NUMBERS = count()


def running(cluster: KafkaCluster) -> Iterator[KafkaCluster]:
    """Start a cluster for a fixture and close it after the tests."""
    try:
        with needed_in_ci():
            cluster.start()
        yield cluster
    finally:
        cluster.close()


@contextmanager
def frozen(cluster: KafkaCluster, node_id: int = 1) -> Iterator[None]:
    """Have a broker say nothing inside: what a client does there, it does before the broker has answered it."""
    cluster.pause(node_id)
    try:
        yield
    finally:
        cluster.resume(node_id)


@contextmanager
def needed_in_ci() -> Iterator[None]:
    """Start a real Kafka inside: what a machine lacks for one skips the test with the reason; with CI=true it fails."""
    try:
        yield
    except (MissingJavaError, RegistryError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"real Kafka is part of CI: {error}")
        pytest.skip(str(error))


def make_topic(cluster: KafkaCluster, partitions: int, **config: str) -> str:
    """Make a topic, with somebody else's client, and wait until every broker knows its leaders and they lead it."""
    name = f"topic-{next(_NUMBERS)}-{os.getpid()}"
    admin = ConfluentAdmin({**cluster.connection, "log_level": 0})
    replicas = min(3, len(cluster.nodes))
    admin.create_topics([NewTopic(name, partitions, replicas, config=config)])[name].result(30)
    for node_id in cluster.nodes:  # they are numbered from 1
        with RawClient(cluster.bootstrap_servers, node_id) as client:
            until(functools.partial(_is_ready, client, name, node_id, partitions))
    return name


def _is_ready(client: RawClient, topic: str, node_id: int, partitions: int) -> bool:
    """Whether a broker names a leader for each partition, and leads those of which it names itself."""
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (found,) = client.call(asked, 9).topics
    if len(found.partitions) != partitions or any(part.leader_id < 0 for part in found.partitions):
        return False
    own = [ListOffsetsPartition(partition_index=part.partition_index, timestamp=-1)
           for part in found.partitions if part.leader_id == node_id]
    reply = client.call(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=own)]), 5)
    return not any(part.error_code for each in reply.topics for part in each.partitions)


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
