"""Partitions as values: requests survive the wire in every version, replies are read by partition."""

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import partition_requests as admin
from headrace.types.admin import DeletedRecords, ListOffsetsResultInfo, OffsetSpec
from headrace.types.cluster_parts import PartitionReassignment
from headrace.types.records import TopicPartition
from headrace.wire.messages.admin.replicas import (
    AlterPartitionReassignmentsResponse,
    ElectionPartitionResult,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)
from headrace.wire.messages.admin.topics import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.support.travelling import travels

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_offsets_are_asked_for_by_topic_and_read_by_partition() -> None:
    specs = {("a", 0): OffsetSpec.earliest(), ("a", 1): OffsetSpec.latest(), ("b", 0): OffsetSpec.for_timestamp(99)}
    wanted = {TopicPartition(*key): spec.timestamp for key, spec in specs.items()}
    request = travels(admin.list_offsets(wanted, 1, 5.0), 2, 11)
    assert {(t.name, p.partition_index, p.timestamp) for t in request.topics for p in t.partitions} == {
        ("a", 0, -2), ("a", 1, -1), ("b", 0, 99)}
    reply = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="a", partitions=[
        ListOffsetsPartitionResponse(partition_index=0, offset=5, timestamp=-1, leader_epoch=2),
        ListOffsetsPartitionResponse(partition_index=1, error_code=6)])])
    results = admin.read_offsets(reply)
    assert results[TopicPartition("a", 0)] == ListOffsetsResultInfo(5, -1, 2)
    assert results[TopicPartition("a", 1)] == KafkaError.NOT_LEADER_FOR_PARTITION


def test_records_are_deleted_up_to_an_offset() -> None:
    request = travels(admin.delete_records({TopicPartition("a", 0): 7}, 1.0), 0, 2)
    assert request.topics[0].partitions[0].offset == 7
    reply = DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="a", partitions=[
        DeleteRecordsPartitionResult(partition_index=0, low_watermark=7)])])
    assert admin.read_deleted_records(reply) == {TopicPartition("a", 0): DeletedRecords(7)}


def test_an_election_of_all_leaves_out_partitions_that_needed_none() -> None:
    assert travels(admin.elect_leaders(1, None, 2.0), 1, 2).topic_partitions is None
    (topic,) = travels(admin.elect_leaders(0, [A0, A1], 2.0), 0, 2).topic_partitions
    assert (topic.topic, topic.partitions) == ("a", [0, 1])
    reply = ElectLeadersResponse(replica_election_results=[ReplicaElectionResult(topic="a", partition_result=[
        ElectionPartitionResult(partition_id=0, error_code=84), ElectionPartitionResult(partition_id=1)])])
    assert admin.read_elected(reply, True) == {A1: None}
    found = admin.read_elected(reply, False)
    assert found == {A0: KafkaError.ELECTION_NOT_NEEDED, A1: None}
    assert [(tp.error, tp.offset) for tp in found] == [(KafkaError.ELECTION_NOT_NEEDED, 0), (None, 0)]
    with pytest.raises(KafkaException, match="ALTER on the cluster"):
        admin.read_elected(ElectLeadersResponse(error_code=31), True)


def test_partitions_move_and_stop_moving() -> None:
    (topic,) = travels(admin.reassign({A0: [1, 2], A1: None}, 2.0), 0, 1).topics
    assert [(p.partition_index, p.replicas) for p in topic.partitions] == [(0, [1, 2]), (1, None)]
    reply = AlterPartitionReassignmentsResponse(responses=[ReassignableTopicResponse(name="a", partitions=[
        ReassignablePartitionResponse(partition_index=0), ReassignablePartitionResponse(
            partition_index=1, error_code=85)])])
    assert admin.read_reassigned(reply) == {A0: None, A1: KafkaError.NO_REASSIGNMENT_IN_PROGRESS}


def test_moves_are_listed_with_the_brokers_that_come_and_go() -> None:
    assert travels(admin.list_reassignments(None, 2.0), 0, 0).topics is None
    assert travels(admin.list_reassignments([A1], 2.0), 0, 0).topics[0].partition_indexes == [1]
    reply = ListPartitionReassignmentsResponse(topics=[OngoingTopicReassignment(name="a", partitions=[
        OngoingPartitionReassignment(partition_index=0, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1])])])
    assert admin.read_reassignments(reply) == {A0: PartitionReassignment([1, 2], [2], [1])}
