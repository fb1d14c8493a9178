"""Clusters of real Apache Kafka for the tests, started once for all of them.

A machine without a JVM or without Maven Central skips these tests and says why; with CI=true it fails instead.
"""

import os
from collections.abc import Iterator

import pytest
from real_kafka import GENERAL, make_topic, running

from tools.kafka import KafkaCluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here: it needs a JVM, and in a parallel run one worker with one cluster is enough."""
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here + os.sep):
            item.add_marker(pytest.mark.kafka)
            item.add_marker(pytest.mark.xdist_group("kafka"))


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaCluster]:
    """One broker with a plaintext and a TLS listener; shared, so tests must not hurt it."""
    yield from running(KafkaCluster(GENERAL, listeners=("SSL",)))


@pytest.fixture
def own_kafka() -> Iterator[KafkaCluster]:
    """One broker for one test, which may kill it."""
    yield from running(KafkaCluster(GENERAL))


@pytest.fixture
def three_brokers() -> Iterator[KafkaCluster]:
    """Three brokers for one test, which may kill them."""
    yield from running(KafkaCluster(GENERAL, 3, properties={"min.insync.replicas": "2"}))


@pytest.fixture
def topic(kafka: KafkaCluster) -> str:
    """A new topic of 3 partitions on the shared broker."""
    return make_topic(kafka, 3)
