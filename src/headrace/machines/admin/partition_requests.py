"""Requests about partitions: offsets, deleted records, leaders, moves; and what their replies mean: pure functions.

A reply is read into a dict from what was asked for to its result, or to the `KafkaError` that it ended with.
Read next: `client.admin.partition_calls`, which sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.errors import KafkaError
from headrace.machines.admin.admin_results import (
    by_topic,
    failure,
    key_of,
    milliseconds,
    numbers_by_topic,
    raise_failure,
)
from headrace.types.admin import DeletedRecords, ListOffsetsResultInfo
from headrace.types.cluster_parts import PartitionReassignment
from headrace.types.records import TopicPartition
from headrace.wire.messages.admin import replicas
from headrace.wire.messages.admin import topics as admin_topics
from headrace.wire.messages.consumer import offsets

__all__ = [
    "delete_records",
    "elect_leaders",
    "list_offsets",
    "list_reassignments",
    "reassign",
    "read_deleted_records",
    "read_elected",
    "read_offsets",
    "read_reassigned",
    "read_reassignments",
]

_CONSUMER_REPLICA = -1
_NOT_NEEDED = 84
"""ELECTION_NOT_NEEDED: the leader is the one that was to be elected."""


def list_offsets(
    wanted: Mapping[TopicPartition, int], isolation_level: int, timeout_s: float
) -> offsets.ListOffsetsRequest:
    """Ask one leader for the offsets at some times; negative times have a meaning of their own."""
    return offsets.ListOffsetsRequest(
        replica_id=_CONSUMER_REPLICA,
        isolation_level=isolation_level,
        topics=[
            offsets.ListOffsetsTopic(
                name=topic,
                partitions=[offsets.ListOffsetsPartition(partition_index=tp.partition, timestamp=timestamp)
                            for tp, timestamp in partitions],
            )
            for topic, partitions in by_topic(wanted).items()
        ],
        timeout_ms=milliseconds(timeout_s),
    )


def read_offsets(reply: offsets.ListOffsetsResponse) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
    """The offset of each partition."""
    return {
        TopicPartition(topic.name, p.partition_index):
            _ended(topic.name, p.partition_index, p.error_code, None, "DESCRIBE")
            or ListOffsetsResultInfo(p.offset, p.timestamp, p.leader_epoch)
        for topic in reply.topics for p in topic.partitions
    }


def delete_records(wanted: Mapping[TopicPartition, int], timeout_s: float) -> admin_topics.DeleteRecordsRequest:
    """Ask one leader to drop the records before some offsets; -1 means all."""
    return admin_topics.DeleteRecordsRequest(
        topics=[
            admin_topics.DeleteRecordsTopic(
                name=topic,
                partitions=[admin_topics.DeleteRecordsPartition(partition_index=tp.partition, offset=offset)
                            for tp, offset in partitions],
            )
            for topic, partitions in by_topic(wanted).items()
        ],
        timeout_ms=milliseconds(timeout_s),
    )


def read_deleted_records(
    reply: admin_topics.DeleteRecordsResponse,
) -> dict[TopicPartition, DeletedRecords | KafkaError]:
    """The new beginning of each partition."""
    return {
        TopicPartition(topic.name, p.partition_index):
            _ended(topic.name, p.partition_index, p.error_code, None, "DELETE") or DeletedRecords(p.low_watermark)
        for topic in reply.topics for p in topic.partitions
    }


def elect_leaders(
    kind: int, partitions: Iterable[TopicPartition] | None, timeout_s: float
) -> replicas.ElectLeadersRequest:
    """Ask for leaders: 0 for the preferred ones, 1 for any; without partitions, of all that need one."""
    topics = None if partitions is None else [
        replicas.ElectLeadersTopic(topic=topic, partitions=numbers)
        for topic, numbers in numbers_by_topic(partitions).items()]
    return replicas.ElectLeadersRequest(election_type=kind, topic_partitions=topics,
                                        timeout_ms=milliseconds(timeout_s))


def read_elected(reply: replicas.ElectLeadersResponse, asked_for_all: bool) -> dict[TopicPartition, KafkaError | None]:
    """How each election ended; of all partitions, only those that had one. The keys have it too, as in confluent_kafka.

    Raises:
        KafkaException: there was none because of an error.
    """
    raise_failure("the election", reply.error_code, None, "ALTER on the cluster")
    found: dict[TopicPartition, KafkaError | None] = {}
    for topic in reply.replica_election_results:
        for p in topic.partition_result:
            if not (asked_for_all and p.error_code == _NOT_NEEDED):
                tp = TopicPartition(topic.topic, p.partition_id, 0)
                tp.error = found[tp] = failure(key_of(tp), p.error_code, p.error_message, "ALTER on the cluster")
    return found


def reassign(
    moves: Mapping[TopicPartition, list[int] | None], timeout_s: float
) -> replicas.AlterPartitionReassignmentsRequest:
    """Ask to move partitions to other brokers; None stops a move."""
    return replicas.AlterPartitionReassignmentsRequest(
        timeout_ms=milliseconds(timeout_s),
        topics=[
            replicas.ReassignableTopic(name=topic, partitions=[
                replicas.ReassignablePartition(partition_index=tp.partition, replicas=brokers)
                for tp, brokers in partitions])
            for topic, partitions in by_topic(moves).items()
        ])


def read_reassigned(
    reply: replicas.AlterPartitionReassignmentsResponse,
) -> dict[TopicPartition, KafkaError | None]:
    """Whether each partition is on its way.

    Raises:
        KafkaException: none is because of an error.
    """
    raise_failure("moving partitions", reply.error_code, reply.error_message, "ALTER on the cluster")
    return {
        TopicPartition(topic.name, p.partition_index):
            failure(f"{topic.name}[{p.partition_index}]", p.error_code, p.error_message, "ALTER on the cluster")
        for topic in reply.responses for p in topic.partitions
    }


def list_reassignments(
    partitions: Iterable[TopicPartition] | None, timeout_s: float
) -> replicas.ListPartitionReassignmentsRequest:
    """Ask which partitions move; without partitions, of all."""
    topics = None if partitions is None else [
        replicas.ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
        for topic, numbers in numbers_by_topic(partitions).items()]
    return replicas.ListPartitionReassignmentsRequest(timeout_ms=milliseconds(timeout_s), topics=topics)


def read_reassignments(
    reply: replicas.ListPartitionReassignmentsResponse,
) -> dict[TopicPartition, PartitionReassignment]:
    """The partitions that move.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("moves of partitions", reply.error_code, reply.error_message, "DESCRIBE on the cluster")
    return {
        TopicPartition(topic.name, p.partition_index):
            PartitionReassignment(list(p.replicas), list(p.adding_replicas), list(p.removing_replicas))
        for topic in reply.topics for p in topic.partitions
    }


def _ended(topic: str, partition: int, code: int, message: str | None, operation: str) -> KafkaError | None:
    return failure(key_of(TopicPartition(topic, partition)), code, message, f'{operation} on topic "{topic}"')
