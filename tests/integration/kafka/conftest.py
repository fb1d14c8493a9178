"""Clusters of real Apache Kafka for the tests, started once for all of them; options say of which kind.

A machine without a JVM or without Maven Central skips these tests and says why; with CI=true it fails instead.
Read next: `configuration`.
"""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from headrace import Producer
from headrace.admin import AdminClient, NewTopic
from tests.support.configuration import Configuration, add_options, configuration, meaningless
from tests.support.real_kafka import make_topic, running
from tests.support.rights import with_rules
from tools.kafka import KafkaCluster

_DESELECTED = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the version, the number of brokers and the listener be chosen."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Know the marker of the longest tests."""
    config.addinivalue_line("markers", "chaos: brokers die or freeze in turn, for minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what lies here: it needs a JVM.

    What has nothing to say about the chosen configuration goes.
    """
    here = os.path.dirname(__file__)
    reasons: dict[pytest.Item, str] = {}
    for item in items:
        if str(item.path).startswith(here + os.sep):
            item.add_marker(pytest.mark.kafka)
            reason = meaningless(item, config)
            if reason is not None:
                reasons[item] = reason
    if reasons:
        config.hook.pytest_deselected(items=list(reasons))
        items[:] = [item for item in items if item not in reasons]
        config.stash[_DESELECTED] = Counter(reasons.values())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was left out, and why."""
    for reason, number in config.stash.get(_DESELECTED, Counter()).items():
        terminalreporter.write_line(f"deselected {number}: {reason}")


@pytest.fixture(scope="session")
def configured(pytestconfig: pytest.Config) -> Configuration:
    """What the options say."""
    return configuration(pytestconfig)


@pytest.fixture(scope="session")
def kafka(configured: Configuration) -> Iterator[KafkaCluster]:
    """The configured cluster; shared, so tests must not hurt it."""
    yield from running(configured.cluster())


@pytest.fixture
def own_kafka(configured: Configuration) -> Iterator[KafkaCluster]:
    """One broker for one test, which may kill it."""
    yield from running(configured.cluster(brokers=1))


@pytest.fixture
def three_brokers(configured: Configuration) -> Iterator[KafkaCluster]:
    """Three brokers for one test, which may kill them."""
    yield from running(configured.cluster(brokers=3))


@pytest.fixture(scope="session")
def secured() -> Iterator[KafkaCluster]:
    """A broker with access rules, and a topic "orders" with the record "one"; see `tests.support.rights`."""
    for cluster in running(with_rules()):
        with AdminClient(cluster.client_properties()) as admin, Producer(cluster.client_properties()) as producer:
            admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)
            producer.produce("orders", "one")
        yield cluster


@pytest.fixture
def topic(kafka: KafkaCluster) -> str:
    """A new topic of 3 partitions on the shared broker."""
    return make_topic(kafka, 3)
