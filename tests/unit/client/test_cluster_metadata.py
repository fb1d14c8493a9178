"""The cluster as users see it, made of a Metadata reply."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.client.cluster_metadata import (
    BrokerMetadata,
    ClusterMetadata,
    GroupMember,
    GroupMetadata,
    PartitionMetadata,
    TopicMetadata,
    cluster_metadata,
)
from headrace.errors import KafkaError
from headrace.types.records import NodeAddress
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

REPLY = MetadataResponse(
    cluster_id="c", controller_id=2, brokers=[
        MetadataResponseBroker(node_id=1, host="one", port=9092),
        MetadataResponseBroker(node_id=2, host="two", port=9093)],
    topics=[
        MetadataResponseTopic(name="t", partitions=[
            MetadataResponsePartition(partition_index=1, leader_id=2, replica_nodes=[2, 1], isr_nodes=[2]),
            MetadataResponsePartition(partition_index=0, error_code=5, leader_id=-1, replica_nodes=[1])]),
        MetadataResponseTopic(name="gone", error_code=3)])


def test_brokers_are_found_by_their_id() -> None:
    made = cluster_metadata(REPLY)
    assert {number: str(broker) for number, broker in made.brokers.items()} == {1: "one:9092/1", 2: "two:9093/2"}
    assert (made.cluster_id, made.controller_id, str(made)) == ("c", 2, "c")


def test_partitions_are_found_by_their_number_and_have_their_replicas() -> None:
    topic = cluster_metadata(REPLY).topics["t"]
    assert topic.error is None
    assert sorted(topic.partitions) == [0, 1]
    there = topic.partitions[1]
    assert (there.id, there.leader, there.replicas, there.isrs, there.error) == (1, 2, [2, 1], [2], None)


def test_what_cannot_be_used_has_its_error() -> None:
    topics = cluster_metadata(REPLY).topics
    assert topics["gone"].error == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert topics["gone"].partitions == {}
    alone = topics["t"].partitions[0]
    assert (alone.leader, alone.error) == (-1, KafkaError(KafkaError.LEADER_NOT_AVAILABLE))


def test_what_users_change_is_not_what_was_read() -> None:
    made = cluster_metadata(REPLY)
    made.topics["t"].partitions[1].replicas.append(99)
    assert cluster_metadata(REPLY).topics["t"].partitions[1].replicas == [2, 1]


@pytest.mark.parametrize(("answered_by", "number", "name"), [
    (None, -1, None), (NodeAddress(2, "two", 9093), 2, "two:9093/2"),
    (NodeAddress(0, "zero", 9091), 0, "zero:9091/0"),
    (NodeAddress(-7, "boot", 9092), -1, "boot:9092/bootstrap"),
])
def test_who_answered_is_named(answered_by: NodeAddress | None, number: int, name: str | None) -> None:
    made = cluster_metadata(REPLY, answered_by)
    assert (made.orig_broker_id, made.orig_broker_name) == (number, name)


def test_what_nobody_knows_has_confluents_defaults_and_shares_nothing() -> None:
    assert (BrokerMetadata().id, BrokerMetadata().host, BrokerMetadata().port) == (-1, None, -1)
    assert (PartitionMetadata().id, PartitionMetadata().leader) == (-1, -1)
    assert (ClusterMetadata().controller_id, ClusterMetadata().orig_broker_id) == (-1, -1)
    assert (GroupMember().id, GroupMember().metadata) == (None, None)
    for made in (PartitionMetadata().replicas, TopicMetadata().partitions, ClusterMetadata().topics,
                 GroupMetadata().members):
        assert not made
    first, second = GroupMetadata(id="g"), GroupMetadata(id="g")
    first.members.append(GroupMember())
    assert (second.members, str(second)) == ([], "g")
    assert (str(PartitionMetadata(3)), str(TopicMetadata("t"))) == ("3", "t")


def test_a_notebook_shows_the_topics() -> None:
    made = cluster_metadata(REPLY)._repr_html_()
    assert "<caption>2 topics on 2 brokers</caption>" in made
    assert "<tr><td>t</td><td>2</td><td>2</td><td>2</td><td></td></tr>" in made
    assert made.index("<td>gone</td>") < made.index("<td>t</td>")


def test_partitions_that_nobody_has_looked_at_are_not_made() -> None:
    looked_at: list[str] = []

    class Watched(list[MetadataResponsePartition]):
        def __iter__(self) -> Iterator[MetadataResponsePartition]:
            looked_at.append("partitions")
            return super().__iter__()

    topic = MetadataResponseTopic(name="t", partitions=Watched([MetadataResponsePartition(partition_index=3)]))
    made = cluster_metadata(MetadataResponse(topics=[topic])).topics["t"]
    assert (made.topic, made.error, looked_at) == ("t", None, [])
    assert list(made.partitions) == [3]
    assert made.partitions is made.partitions
    assert looked_at == ["partitions"]
