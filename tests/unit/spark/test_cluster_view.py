"""What a query's driver asks the brokers: about the topics that it reads, and about all of them only for a pattern."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.broker.settings import BrokerSettings
from headrace.errors import ConfigError
from headrace.spark import cluster
from headrace.spark.cluster import ClusterView
from headrace.spark.options import TopicSelection
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.cluster.metadata import MetadataRequest

TOPICS = {"a": 2, "ab": 1, "c": 1}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics=TOPICS, settings=BrokerSettings(auto_create_topics=True)) as broker:
        yield broker


@pytest.fixture
def asked(broker: EmbeddedBroker) -> Iterator[list[list[str] | None]]:
    """The topics of the metadata requests, None for all."""
    asked: list[list[str] | None] = []

    def note(request: MetadataRequest) -> bool:
        asked.append(None if request.topics is None else sorted(str(topic.name) for topic in request.topics))
        assert not request.topics or not request.allow_auto_topic_creation
        return False

    broker.add_fault(Fault(action=Action.DELAY, request=MetadataRequest, times=None, when=note))
    yield asked
    broker.clear_faults()


def view_of(broker: EmbeddedBroker, **subscription: Any) -> ClusterView:
    return ClusterView({"bootstrap.servers": broker.bootstrap_servers}, TopicSelection(**subscription))


@pytest.mark.parametrize(("subscription", "partitions"), [
    ({"topics": ("c", "a")}, [("a", 0), ("a", 1), ("c", 0)]),
    ({"assigned": (("a", 1), ("c", 0))}, [("a", 1), ("c", 0)]),
])
def test_a_query_asks_for_the_topics_that_it_reads_and_no_others(
    broker: EmbeddedBroker, asked: list[list[str] | None], monkeypatch: pytest.MonkeyPatch,
    subscription: dict[str, Any], partitions: list[tuple[str, int]],
) -> None:
    monkeypatch.setattr(cluster, "_FRESH_S", -1.0)  # each time as if a second had gone by
    view = view_of(broker, **subscription)
    assert view.partitions() == partitions
    for _ in range(3):
        assert view.ends() == dict.fromkeys(partitions, 0)
    assert view.earliest(partitions) == dict.fromkeys(partitions, 0)
    assert {topic for topics in asked for topic in (["all"] if topics is None else topics)} == {"a", "c"}


def test_a_query_with_a_pattern_asks_for_all_topics(broker: EmbeddedBroker, asked: list[list[str] | None]) -> None:
    view = view_of(broker, pattern="a.*")
    assert view.partitions() == [("a", 0), ("a", 1), ("ab", 0)]
    assert None in asked


@pytest.mark.parametrize(("subscription", "said"), [
    ({"topics": ("a", "nowhere")}, "topic nowhere does not exist"),
    ({"assigned": (("a", 2), ("nowhere", 0), ("c", 0))}, r"partition a\[2\], nowhere\[0\] does not exist"),
])
def test_what_is_not_there_is_named_at_once_and_not_made(
    broker: EmbeddedBroker, subscription: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        view_of(broker, **subscription).partitions()
    assert view_of(broker, pattern=".*").partitions() == sorted(
        (topic, partition) for topic, count in TOPICS.items() for partition in range(count))
