"""What administration asks of several nodes and of a disk: elections, directories, offsets that go, producers."""

from pathlib import Path

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.admin import AdminClient
from headrace.errors import KafkaError, KafkaException
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.admin.replicas import (
    AlterPartitionReassignmentsRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ElectLeadersTopic,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from headrace.wire.messages.producer.transactions import DescribeProducersRequest, ProducersTopicRequest
from tests.support.raw_client import RawClient, batch_of

PREFERRED, ANY = 0, 1


def elect(broker: EmbeddedBroker, kind: int, partitions: list[int] | None) -> dict[int, int]:
    """Error code by partition."""
    wanted = None if partitions is None else [ElectLeadersTopic(topic="t", partitions=partitions)]
    with RawClient(broker) as client:
        reply = client.call(ElectLeadersRequest(election_type=kind, topic_partitions=wanted))
    assert reply.error_code == 0
    return {each.partition_id: each.error_code for topic in reply.replica_election_results
            for each in topic.partition_result}


def leaders(broker: EmbeddedBroker) -> list[int]:
    return [broker.leader("t", index) for index in range(3)]


def test_preferred_leaders_lead_again_when_they_are_elected(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 3, 3)
    first = leaders(three_nodes)
    three_nodes.stop_node(2)
    moved = first.index(2)
    assert 2 not in leaders(three_nodes)
    assert elect(three_nodes, PREFERRED, [moved]) == {moved: KafkaError.PREFERRED_LEADER_NOT_AVAILABLE}
    assert elect(three_nodes, ANY, [moved]) == {moved: KafkaError.ELECTION_NOT_NEEDED}
    three_nodes.start_node(2)
    assert leaders(three_nodes) != first
    assert elect(three_nodes, PREFERRED, None) == {moved: 0}
    assert leaders(three_nodes) == first
    assert elect(three_nodes, PREFERRED, [0, 1, 9]) == {
        0: KafkaError.ELECTION_NOT_NEEDED, 1: KafkaError.ELECTION_NOT_NEEDED, 9: KafkaError.UNKNOWN_TOPIC_OR_PART}


def test_without_any_replica_there_is_nobody_to_elect(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 3, 1)
    gone = leaders(three_nodes).index(3)
    three_nodes.stop_node(3)
    assert elect(three_nodes, ANY, [gone]) == {gone: KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_a_directory_shows_its_replicas_and_its_volume(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path, topics={"t": 2, "u": 1}) as broker, RawClient(broker) as client:
        batch = batch_of([b"a" * 1000])
        client.produce("t", 1, batch)
        (found,) = client.call(DescribeLogDirsRequest(topics=None)).results
        assert found.log_dir == str(tmp_path)
        assert found.total_bytes >= found.usable_bytes > 0
        assert {(topic.name, part.partition_index): part.partition_size
                for topic in found.topics for part in topic.partitions} == {
            ("t", 0): 0, ("t", 1): len(batch), ("u", 0): 0}


def test_memory_has_no_volume(broker: EmbeddedBroker) -> None:
    with RawClient(broker) as client:
        (found,) = client.call(DescribeLogDirsRequest(topics=None)).results
        assert (found.log_dir, found.total_bytes, found.usable_bytes) == ("memory", -1, -1)


def test_nothing_is_ever_being_moved(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with RawClient(broker) as client:
        assert client.call(ListPartitionReassignmentsRequest(topics=None)).topics == []


def test_replicas_are_put_elsewhere_and_the_leader_with_them_and_readers_go_on(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 1, 1)
    new = [each for each in (3, 2, 1) if each != three_nodes.leader("t", 0)]
    conf = {"bootstrap.servers": three_nodes.bootstrap_servers}
    with Producer(conf) as producer, Consumer({**conf, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        admin, place = AdminClient(conf), TopicPartition("t", 0)
        consumer.assign([place])
        producer.produce("t", b"before")
        producer.flush(10)
        assert [each.value() for each in consumer.consume(1, 10)] == [b"before"]
        admin.alter_partition_reassignments({place: new})[place].result(10)
        found = admin.list_topics("t", 10).topics["t"].partitions[0]
        assert (found.leader, found.replicas, found.isrs) == (new[0], new, new)
        assert admin.list_partition_reassignments().result(10) == {}
        producer.produce("t", b"behind")
        assert producer.flush(10) == 0
        assert [each.value() for each in consumer.consume(1, 10)] == [b"behind"]
        with pytest.raises(KafkaException) as refused:
            admin.alter_partition_reassignments({place: [7]})[place].result(10)
        assert refused.value.error.code() == KafkaError.INVALID_REPLICA_ASSIGNMENT
        with pytest.raises(KafkaException) as refused:
            admin.alter_partition_reassignments({place: None})[place].result(10)
        assert refused.value.error.code() == KafkaError.NO_REASSIGNMENT_IN_PROGRESS


def test_replicas_that_were_put_elsewhere_are_there_after_a_restart(tmp_path: Path) -> None:
    for turn in range(2):
        with EmbeddedBroker(data_dir=tmp_path, nodes=2) as broker:
            admin, place = AdminClient({"bootstrap.servers": broker.bootstrap_servers}), TopicPartition("t", 0)
            if not turn:
                broker.create_topic("t", 1, 1)
                admin.alter_partition_reassignments({place: [2, 1]})[place].result(10)
            assert admin.list_topics("t", 10).topics["t"].partitions[0].replicas == [2, 1]


def test_replicas_that_wait_for_a_node_have_no_leader_until_it_is_up(three_nodes: EmbeddedBroker) -> None:
    three_nodes.create_topic("t", 3, 1)
    with RawClient(three_nodes) as client:
        three_nodes.stop_node(3)
        client.call(AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=[
            ReassignablePartition(partition_index=index, replicas=[3]) for index in range(3)])]))
    assert leaders(three_nodes) == [-1, -1, -1]
    three_nodes.start_node(3)
    assert leaders(three_nodes) == [3, 3, 3]


def committed(client: RawClient) -> list[int]:
    reply = client.call(OffsetFetchRequest(group_id="g", topics=[
        OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])], groups=[]), 7)
    return [part.committed_offset for part in reply.topics[0].partitions]


def test_deleted_offsets_stay_deleted_over_a_restart(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path, topics={"t": 2}) as broker, RawClient(broker) as client:
        client.call(OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[
            OffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata="")
            for index in (0, 1)])]), 8)
        reply = client.call(OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name="t", partitions=[
            OffsetDeleteRequestPartition(partition_index=0)])]))
        assert (reply.error_code, reply.topics[0].partitions[0].error_code) == (0, 0)
        assert committed(client) == [-1, 7]
    with EmbeddedBroker(data_dir=tmp_path) as broker, RawClient(broker) as client:
        assert committed(client) == [-1, 7]


def test_producers_are_known_again_after_a_restart(tmp_path: Path) -> None:
    request = DescribeProducersRequest(topics=[ProducersTopicRequest(name="t", partition_indexes=[0])])
    with EmbeddedBroker(data_dir=tmp_path, topics={"t": 1}) as broker, RawClient(broker) as client:
        number = client.producer_id()
        client.produce("t", 0, batch_of([b"a", b"b"], number, 0, 0, timestamp_ms=1_700_000_000_000))
        before = client.call(request)
        (known,) = before.topics[0].partitions[0].active_producers
        assert (known.producer_id, known.last_sequence, known.last_timestamp) == (number, 1, 1_700_000_000_000)
    with EmbeddedBroker(data_dir=tmp_path) as broker, RawClient(broker) as client:
        assert client.call(request) == before
