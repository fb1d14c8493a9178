"""Clients that are held to old Kafkas' requests, down to 0.8: message sets, first versions, and all between."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import confluent_kafka
import confluent_kafka.admin
import pytest

from tests.support.kafka_python import KAFKA_PYTHON
from tools.kafka import KafkaCluster

from .conftest import FRANZ_GO, LIBRDKAFKA, OURS, Clients, make_topic, running
from .history import COUNT, GROUPS_FROM, PARTITIONS, TIMES_FROM, Exchanging, administer, codecs, exchange, number, share
from .kafka_python import KafkaPythonClient
from .python_client import PythonClient
from .sites import Site

pytestmark = [*KAFKA_PYTHON]
RELEASES = ("v0.8.0", "v0.8.1", "v0.8.2", "v0.9.0", "v0.10.0", "v0.10.1", "v0.10.2", "v0.11.0", "v1.0", "v1.1", "v2.0",
            "v2.1", "v2.2", "v2.3", "v2.4", "v2.5", "v2.6", "v2.7", "v2.8", "v3.0", "v3.1", "v3.2", "v3.3", "v3.4",
            "v3.5", "v3.6", "v3.7", "v3.8", "v3.9", "v4.0", "v4.1", "v4.2", "v4.3", "v4.4")
MILESTONES = ("v0.8.0", "v0.9.0", "v0.10.0", "v0.11.0", "v2.1", "v2.4", "v3.0", "v4.0")
"""Releases that changed much; the others are walked through in the long tests."""

KAFKA_PYTHON = "kafka-python"
_NUMBERS = count()


@pytest.fixture(scope="session")
def old_kafka() -> Iterator[Site]:
    """The last Kafka that takes the requests of all releases before 4."""
    yield from running(KafkaCluster("3.9.2", quick=True))


def new_topic(clients: Clients, site: Site) -> str:
    topic = f"versions-{next(_NUMBERS)}"
    make_topic(clients, site, topic, PARTITIONS)
    return topic


def franz_go_of(release: str, clients: Clients, site: Site) -> list[tuple[str, object]]:
    """franz-go as of a release: it writes, reads, shares and administers; the answers of the last."""
    topic, numbers, client = new_topic(clients, site), number(release), clients[FRANZ_GO]
    exchange(client, clients[OURS], site, topic, numbers, codecs(numbers), version=release)
    if numbers >= GROUPS_FROM:
        share(client, site, topic, 2 * COUNT * len(codecs(numbers)), version=release)
    return [(op, answer if not isinstance(answer, str) else answer.replace(topic, "TOPIC"))
            for op, answer in administer(client, site, topic, numbers, version=release)]


def test_the_releases_are_all_that_franz_go_knows(clients: Clients) -> None:
    assert tuple(reversed(clients[FRANZ_GO].ask("versions"))) == RELEASES


@pytest.mark.parametrize("release", MILESTONES)
def test_franz_go_as_of_a_release_is_served(clients: Clients, embedded: Site, release: str) -> None:
    answers = franz_go_of(release, clients, embedded)
    refusals = [answer for _, answer in answers if isinstance(answer, str)]
    assert all(answer.removeprefix("error ").isdigit() for answer in refusals), answers


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_franz_go_as_of_any_release_is_answered_as_by_kafka(
    request: pytest.FixtureRequest, clients: Clients, embedded: Site, release: str
) -> None:
    real: Site = request.getfixturevalue("kafka" if number(release) >= (4, 0) else "old_kafka")
    assert franz_go_of(release, clients, embedded) == franz_go_of(release, clients, real)


def old_client(name: str, release: str) -> Exchanging:
    """A client that takes a broker for one of an old release, which it does not ask."""
    if name == LIBRDKAFKA:
        return PythonClient(confluent_kafka, confluent_kafka.admin, {
            "log_level": 0, "api.version.request": False, "broker.version.fallback": release})
    return KafkaPythonClient(number(release))


@pytest.mark.parametrize("where", ["embedded", pytest.param("old_kafka", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "release"), [
    (LIBRDKAFKA, "0.8.2"), (LIBRDKAFKA, "0.9.0"), (LIBRDKAFKA, "0.10.0"), (LIBRDKAFKA, "0.10.1"),
    (KAFKA_PYTHON, "0.8.2"), (KAFKA_PYTHON, "0.9"), (KAFKA_PYTHON, "0.10.0"), (KAFKA_PYTHON, "0.10.1"),
    (KAFKA_PYTHON, "0.11"), (KAFKA_PYTHON, "1.0"), (KAFKA_PYTHON, "2.0"), (KAFKA_PYTHON, "2.1"),
])
def test_a_client_that_expects_an_old_broker_is_served(
    request: pytest.FixtureRequest, clients: Clients, where: str, name: str, release: str
) -> None:
    site: Site = request.getfixturevalue(where)
    topic, numbers, client = new_topic(clients, site), number(release), old_client(name, release)
    # librdkafka writes LZ4 for brokers before 0.10 too, with the wrong checksum of those days.
    names = codecs(numbers) + (("lz4",) if name == LIBRDKAFKA and numbers < TIMES_FROM else ())
    exchange(client, clients[OURS], site, topic, numbers, names)
    if numbers >= GROUPS_FROM:
        share(client, site, topic, 2 * COUNT * len(names))
