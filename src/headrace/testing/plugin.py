"""The pytest plugin, found through the package's entry point: a broker, a registry, a topic, what was sent, the
traffic, and faults, as fixtures whose names begin with `headrace_`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.records import Message
    from headrace.testing.embedded import EmbeddedBroker
    from headrace.testing.wire_tap import FaultInjector, RecordedRequest

__all__ = ["headrace_broker", "headrace_faults", "headrace_registry", "headrace_sent", "headrace_topic",
           "headrace_traffic"]


@pytest.fixture
def headrace_broker() -> Iterator[EmbeddedBroker]:
    """A fresh embedded broker with one node, in memory, on a free loopback port; topics are made when first named."""
    from headrace.testing.embedded import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def headrace_registry() -> Iterator[EmbeddedBroker]:
    """As `headrace_broker`, with a Schema Registry: its address is `registry_url`."""
    from headrace.testing.embedded import EmbeddedBroker

    with EmbeddedBroker(registry=True) as broker:
        yield broker


@pytest.fixture
def headrace_topic(headrace_broker: EmbeddedBroker) -> str:
    """The name of a fresh topic with one partition on `headrace_broker`."""
    headrace_broker.create_topic("headrace-topic")
    return "headrace-topic"


@pytest.fixture
def headrace_sent(headrace_broker: EmbeddedBroker) -> Callable[..., list[Message]]:
    """`headrace_sent(topic, count=None, timeout=10.0)`: the records of a topic of `headrace_broker`, for assertions."""
    from headrace.testing.sent_records import sent_records

    return lambda topic, count=None, timeout=10.0: sent_records(headrace_broker, topic, count, timeout)


@pytest.fixture
def headrace_traffic(headrace_broker: EmbeddedBroker) -> Iterator[list[RecordedRequest]]:
    """The requests that came to `headrace_broker` since the test began; the list grows as they come."""
    from headrace.testing.wire_tap import recorded_traffic

    with recorded_traffic(headrace_broker) as traffic:
        yield traffic


@pytest.fixture
def headrace_faults(headrace_broker: EmbeddedBroker) -> Iterator[FaultInjector]:
    """Makes requests to `headrace_broker` go wrong; what is armed ends with the test."""
    from headrace.testing.wire_tap import FaultInjector

    injector = FaultInjector(headrace_broker)
    yield injector
    injector.clear()
