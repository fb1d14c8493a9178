"""Every client at every broker: five clients, the embedded broker and a real Kafka, each started once.

A machine without Node.js, Go or a JDK skips the tests of that client and says why; with CI=true they fail instead.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest

import headrace
import headrace.admin
from headrace.testing import BrokerSettings, EmbeddedBroker
from tools.foreign import MissingClientError, Program, program
from tools.kafka import KafkaCluster, MissingJavaError, RegistryError

from .client import Client, ForeignError, ProcessClient
from .python_client import PythonClient
from .sites import EmbeddedSite, KafkaSite, Site

_ROOT = Path(__file__).parents[3]
SESSION_MS = 6_000
"""Of members of groups that the coordinator plans for; classic ones choose their own."""
_GROUPS = {"group.min.session.timeout.ms": "1000", **{
    f"group.{kind}.{name}": str(value) for kind in ("consumer", "share") for name, value in (
        ("heartbeat.interval.ms", 200), ("min.heartbeat.interval.ms", 200), ("session.timeout.ms", SESSION_MS),
        ("min.session.timeout.ms", SESSION_MS))}}
KAFKA_LATER = pytest.mark.parametrize(
    "site", ["embedded", pytest.param("kafka", marks=pytest.mark.slow)], indirect=True)
"""The embedded broker belongs to `make test`, real Kafka to `make long`."""
OURS, LIBRDKAFKA, KAFKAJS, FRANZ_GO, JAVA = CLIENTS = ("headrace", "librdkafka", "kafkajs", "franz-go", "java")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here: it needs a JVM."""
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here + os.sep):
            item.add_marker(pytest.mark.kafka)


def unavailable(reason: str) -> None:
    """Skip a test that this machine cannot run; in CI it is a failure."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


class Clients:
    """The clients by name, each begun when it is first needed."""

    def __init__(self) -> None:
        self._running: dict[str, Client] = {}
        self._alone: list[Client] = []

    def __getitem__(self, name: str) -> Client:
        if name not in self._running:
            try:
                self._running[name] = _start(name)
            except MissingClientError as error:
                unavailable(f"{name}: {error}")
        return self._running[name]

    def available(self) -> list[str]:
        """Names of the clients that this machine has; in CI it must have all."""
        found = []
        for name in CLIENTS:
            try:
                self._running[name] = self._running.get(name) or _start(name)
            except MissingClientError as error:
                if os.environ.get("CI") == "true":
                    pytest.fail(f"{name}: {error}")
            else:
                found.append(name)
        return found

    def alone(self, name: str) -> Client:
        """A client of this name in a process of its own, for one test: its `close` kills it."""
        try:
            self._alone.append(ProcessClient(_program(name)))
        except MissingClientError as error:
            unavailable(f"{name}: {error}")
        return self._alone[-1]

    def close(self) -> None:
        """End them all."""
        for client in (*self._running.values(), *self._alone):
            client.close()


def make_topic(clients: Clients, site: Site, topic: str, partitions: int) -> None:
    """Make a topic that keeps records whose times lie years ago, and wait until the broker knows it."""
    client = clients[LIBRDKAFKA]
    client.ask("create_topic", servers=site.servers, topic=topic, partitions=partitions,
               configs={"retention.ms": "-1"})
    deadline = time.monotonic() + 20
    while len(_partitions(client, site, topic)) < partitions:
        assert time.monotonic() < deadline, f"{topic} does not come"
        time.sleep(0.02)


def _partitions(client: Client, site: Site, topic: str) -> list[Any]:
    try:
        partitions: list[Any] = client.ask("describe_topic", servers=site.servers, topic=topic)["partitions"]
        return partitions
    except ForeignError:
        return []


def _start(name: str) -> Client:
    if name == OURS:
        return PythonClient(headrace, headrace.admin, {})
    if name == LIBRDKAFKA:
        return PythonClient(confluent_kafka, confluent_kafka.admin, {"log_level": 0, "client.id": "librdkafka"})
    return ProcessClient(program(name))


def _program(name: str) -> Program:
    modules = {OURS: "headrace", LIBRDKAFKA: "confluent_kafka"}
    if name not in modules:
        return program(name)
    return Program([sys.executable, "-m", f"{__package__}.python_client", modules[name]],
                   {"PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), *sys.path)))})


@pytest.fixture(scope="session")
def clients() -> Iterator[Clients]:
    """All clients."""
    pool = Clients()
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def embedded() -> Iterator[Site]:
    """The embedded broker."""
    settings = BrokerSettings(consumer_heartbeat_interval_ms=200, consumer_session_timeout_ms=SESSION_MS,
                              share_heartbeat_interval_ms=200, share_session_timeout_ms=SESSION_MS)
    with EmbeddedBroker(settings=settings) as broker:
        yield EmbeddedSite(broker)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Site]:
    """The newest real Kafka."""
    yield from running(KafkaCluster(quick=True, properties=_GROUPS))


def running(cluster: KafkaCluster) -> Iterator[Site]:
    """Start a cluster for a fixture and close it after the tests."""
    try:
        cluster.start()
    except (MissingJavaError, RegistryError) as error:
        cluster.close()
        unavailable(str(error))
    try:
        yield KafkaSite(cluster)
    finally:
        cluster.close()


@pytest.fixture(scope="session", params=["embedded", "kafka"])
def site(request: pytest.FixtureRequest) -> Site:
    """Each of the two brokers in turn."""
    found: Site = request.getfixturevalue(request.param)
    return found
