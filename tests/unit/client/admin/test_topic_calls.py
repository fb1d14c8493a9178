"""Calls about topics: what librdkafka refuses is refused here, before anything is sent; what is described is right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace import KafkaError, KafkaException, TopicCollection
from headrace.admin import AdminClient, NewPartitions, NewTopic
from headrace.testing import EmbeddedBroker

PATIENCE_S = 10


@pytest.fixture(scope="module")
def admin() -> Iterator[AdminClient]:
    with (EmbeddedBroker(topics={"one": 1, "two": 2}) as broker,
          AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as made):
        yield made


@pytest.mark.parametrize("topic", [
    NewTopic("t", -2), NewTopic("t", 100_001), NewTopic("t", 1, -2), NewTopic("t", 1, 10_001),
    NewTopic("t", 2, 1, [[1], [2]]), NewTopic("t", 2, replica_assignment=[[1]]), NewTopic("t", replica_assignment=[[]]),
], ids=lambda topic: f"{topic.num_partitions},{topic.replication_factor},{topic.replica_assignment}")
def test_counts_and_assignments_that_make_no_sense_are_refused(admin: AdminClient, topic: NewTopic) -> None:
    with pytest.raises(ValueError, match=r"NewTopic\(topic=t"):
        admin.create_topics([topic])


@pytest.mark.parametrize("given", [(0,), (100_001,), (2, []), (2, [[1], [1], [1]]), (2, [[]])])
def test_partitions_that_make_no_sense_are_refused(admin: AdminClient, given: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"NewPartitions\(topic=t"):
        admin.create_partitions([NewPartitions("t", *given)])


def test_a_topic_is_described_with_its_partitions_and_one_that_is_not_there_with_an_error(admin: AdminClient) -> None:
    found = admin.describe_topics(TopicCollection(["two", "nowhere"]))
    assert set(found) == {"two", "nowhere"}
    topic = found["two"].result(PATIENCE_S)
    assert [part.id for part in topic.partitions] == [0, 1]
    assert all(part.leader is not None and part.leader in part.replicas == part.isr for part in topic.partitions)
    assert (topic.name, topic.is_internal, topic.authorized_operations) == ("two", False, None)
    assert int(topic.topic_id) != 0
    with pytest.raises(KafkaException) as missing:
        found["nowhere"].result(PATIENCE_S)
    assert missing.value.error == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_no_topics_are_described_without_a_request(admin: AdminClient) -> None:
    assert admin.describe_topics(TopicCollection([])) == {}


@pytest.mark.parametrize(("given", "error"), [
    (["t"], TypeError), (TopicCollection([""]), ValueError), (None, TypeError)])
def test_only_a_collection_of_names_is_described(admin: AdminClient, given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        admin.describe_topics(given)


def test_the_id_of_the_cluster_is_that_of_its_description(admin: AdminClient) -> None:
    assert admin.cluster_id(PATIENCE_S) == admin.describe_cluster().result(PATIENCE_S).cluster_id
    assert admin.list_topics(timeout=PATIENCE_S).cluster_id == admin.cluster_id()
