"""Replicas: where they lie, who leads, and how they move.

Read next: `wire.messages.admin.nodes`.
"""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    String,
    Struct,
    field,
)

__all__ = [
    "AlterPartitionReassignmentsRequest", "AlterPartitionReassignmentsResponse", "AlterReplicaLogDir",
    "AlterReplicaLogDirPartitionResult", "AlterReplicaLogDirTopic", "AlterReplicaLogDirTopicResult",
    "AlterReplicaLogDirsRequest", "AlterReplicaLogDirsResponse", "DescribableLogDirTopic",
    "DescribeLogDirsPartition", "DescribeLogDirsRequest", "DescribeLogDirsResponse", "DescribeLogDirsResult",
    "DescribeLogDirsTopic", "ElectLeadersRequest", "ElectLeadersResponse", "ElectLeadersTopic",
    "ElectionPartitionResult", "ListPartitionReassignmentsRequest", "ListPartitionReassignmentsResponse",
    "ListPartitionReassignmentsTopics", "OngoingPartitionReassignment", "OngoingTopicReassignment",
    "ReassignablePartition", "ReassignablePartitionResponse", "ReassignableTopic", "ReassignableTopicResponse",
    "ReplicaElectionResult",
]


class AlterReplicaLogDirTopic(Struct):
    """Partitions of a topic to move."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class AlterReplicaLogDir(Struct):
    """A directory and what moves into it."""

    path: String = field()
    """Path of the directory."""
    topics: Array[AlterReplicaLogDirTopic] = field()
    """One entry for each topic."""


class AlterReplicaLogDirsRequest(Request, key=34, versions="0-2", flexible="2+"):
    """Move replicas between the directories of one broker (KIP-113)."""

    dirs: Array[AlterReplicaLogDir] = field()
    """Log directories and what goes there."""


class AlterReplicaLogDirPartitionResult(Struct):
    """Whether one partition is on its way."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class AlterReplicaLogDirTopicResult(Struct):
    """Whether the partitions of one topic are on their way."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[AlterReplicaLogDirPartitionResult] = field()
    """One entry for each partition."""


class AlterReplicaLogDirsResponse(Response, to=AlterReplicaLogDirsRequest):
    """Whether each partition is on its way."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    results: Array[AlterReplicaLogDirTopicResult] = field()
    """One entry for each that was asked for."""


class DescribableLogDirTopic(Struct):
    """Partitions of a topic to look at."""

    topic: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class DescribeLogDirsRequest(Request, key=35, versions="0-5", flexible="2+"):
    """Ask what lies in the directories of one broker (KIP-113).

    v4: free space (KIP-827). v5: cordoned ones (KIP-1066).
    """

    topics: Array[DescribableLogDirTopic] | None = field()
    """Topics and partitions; null for all."""


class DescribeLogDirsPartition(Struct):
    """One replica in a directory."""

    partition_index: Int32 = field()
    """Partition number."""
    partition_size: Int64 = field()
    """Bytes in the log."""
    offset_lag: Int64 = field()
    """Records that the replica is behind."""
    is_future_key: Bool = field()
    """The replica is being moved here."""


class DescribeLogDirsTopic(Struct):
    """The replicas of one topic in a directory."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[DescribeLogDirsPartition] = field()
    """One entry for each partition."""


class DescribeLogDirsResult(Struct):
    """One directory."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    log_dir: String = field()
    """Path of the directory."""
    topics: Array[DescribeLogDirsTopic] = field()
    """One entry for each topic."""
    total_bytes: Int64 = field("4+", default=-1, ignorable=True)
    """Size of the volume; -1 when not known."""
    usable_bytes: Int64 = field("4+", default=-1, ignorable=True)
    """Free bytes of the volume; -1 when not known."""
    is_cordoned: Bool = field("5+", ignorable=True)
    """No new replicas are placed here."""


class DescribeLogDirsResponse(Response, to=DescribeLogDirsRequest):
    """The directories of the broker."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field("3+", ignorable=True)
    """Error code; 0 when all went well."""
    results: Array[DescribeLogDirsResult] = field()
    """One entry for each that was asked for."""


class ElectLeadersTopic(Struct):
    """Partitions of a topic."""

    topic: String = field()
    """Name of the topic."""
    partitions: Array[Int32] = field()
    """Partition numbers."""


class ElectLeadersRequest(Request, key=43, versions="0-2", flexible="2+"):
    """Give partitions their preferred leader, or any at all (KIP-183, KIP-460)."""

    election_type: Int8 = field("1+")
    """Which leader: 0 the preferred one, 1 any replica, even one that is not in sync."""
    topic_partitions: Array[ElectLeadersTopic] | None = field()
    """Topics and partitions; null for all."""
    timeout_ms: Int32 = field(default=60000)
    """Milliseconds that the broker may take."""


class ElectionPartitionResult(Struct):
    """Whether one partition has got its leader."""

    partition_id: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""


class ReplicaElectionResult(Struct):
    """Whether the partitions of one topic have got their leaders."""

    topic: String = field()
    """Name of the topic."""
    partition_result: Array[ElectionPartitionResult] = field()
    """One entry for each partition."""


class ElectLeadersResponse(Response, to=ElectLeadersRequest):
    """Whether each partition has got its leader."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field("1+")
    """Error code; 0 when all went well."""
    replica_election_results: Array[ReplicaElectionResult] = field()
    """One entry for each topic."""


class ReassignablePartition(Struct):
    """A partition and its new replicas."""

    partition_index: Int32 = field()
    """Partition number."""
    replicas: Array[Int32] | None = field(default=None)
    """Node ids of the new replicas; null stops a move."""


class ReassignableTopic(Struct):
    """A topic whose partitions move."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[ReassignablePartition] = field()
    """One entry for each partition."""


class AlterPartitionReassignmentsRequest(Request, key=45, versions="0-1", flexible="0+"):
    """Move partitions to other brokers, or stop that (KIP-455).

    v1: the number of replicas is kept unless allowed (KIP-860).
    """

    timeout_ms: Int32 = field(default=60000)
    """Milliseconds that the broker may take."""
    allow_replication_factor_change: Bool = field("1+", default=True)
    """The number of replicas may change."""
    topics: Array[ReassignableTopic] = field()
    """One entry for each topic."""


class ReassignablePartitionResponse(Struct):
    """Whether one partition moves."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""


class ReassignableTopicResponse(Struct):
    """Whether the partitions of one topic move."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[ReassignablePartitionResponse] = field()
    """One entry for each partition."""


class AlterPartitionReassignmentsResponse(Response, to=AlterPartitionReassignmentsRequest):
    """Whether each partition moves."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    allow_replication_factor_change: Bool = field("1+", default=True, ignorable=True)
    """As in the request."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    responses: Array[ReassignableTopicResponse] = field()
    """One entry for each topic."""


class ListPartitionReassignmentsTopics(Struct):
    """Partitions of a topic to look up."""

    name: String = field()
    """Name of the topic."""
    partition_indexes: Array[Int32] = field()
    """Partition numbers."""


class ListPartitionReassignmentsRequest(Request, key=46, versions="0", flexible="0+"):
    """Ask which partitions are moving (KIP-455)."""

    timeout_ms: Int32 = field(default=60000)
    """Milliseconds that the broker may take."""
    topics: Array[ListPartitionReassignmentsTopics] | None = field(default=None)
    """Topics and partitions; null for all."""


class OngoingPartitionReassignment(Struct):
    """A partition that is moving."""

    partition_index: Int32 = field()
    """Partition number."""
    replicas: Array[Int32] = field()
    """Node ids of the replicas."""
    adding_replicas: Array[Int32] = field()
    """Node ids of the replicas that come."""
    removing_replicas: Array[Int32] = field()
    """Node ids of the replicas that go."""


class OngoingTopicReassignment(Struct):
    """A topic with moving partitions."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[OngoingPartitionReassignment] = field()
    """One entry for each partition."""


class ListPartitionReassignmentsResponse(Response, to=ListPartitionReassignmentsRequest):
    """The partitions that are moving."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    topics: Array[OngoingTopicReassignment] = field()
    """One entry for each topic."""

