"""Reading records, and finding where logs diverged."""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    field,
)

__all__ = [
    "AbortedTransaction",
    "EpochEndOffset",
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "FetchTopic",
    "FetchableTopicResponse",
    "ForgottenTopic",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "OffsetForLeaderEpochEpochEndOffset",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "OffsetForLeaderPartition",
    "OffsetForLeaderTopic",
    "OffsetForLeaderTopicResult",
    "PartitionData",
    "ReplicaState",
    "SnapshotId",
]


class ReplicaState(Struct):
    """One entry: replica state."""

    replica_id: Int32 = field("15+", default=-1)
    replica_epoch: Int64 = field("15+", default=-1)


class FetchPartition(Struct):
    """One entry: fetch partition."""

    partition: Int32 = field()
    current_leader_epoch: Int32 = field("9+", default=-1, ignorable=True)
    fetch_offset: Int64 = field()
    last_fetched_epoch: Int32 = field("12+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: Int32 = field()
    replica_directory_id: Uuid = field("17+", tag=0, tagged="17+", ignorable=True)
    high_watermark: Int64 = field("18+", default=9223372036854775807, tag=1, tagged="18+", ignorable=True)


class FetchTopic(Struct):
    """One entry: fetch topic."""

    topic: String = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: Array[FetchPartition] = field()


class ForgottenTopic(Struct):
    """One entry: forgotten topic."""

    topic: String = field("7-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: Array[Int32] = field("7+")


class FetchRequest(Request, key=1, versions="0-18", flexible="12+"):
    """Read record batches. v4 isolation level, v7 sessions (KIP-227), v9 leader epoch, v11 rack (KIP-392), v12
    divergence (KIP-320), v13 topic ids.
    """

    cluster_id: String | None = field("12+", default=None, nullable="12+", tag=0, tagged="12+", ignorable=True)
    replica_id: Int32 = field("0-14", default=-1)
    replica_state: ReplicaState = field("15+", tag=1, tagged="15+")
    max_wait_ms: Int32 = field()
    min_bytes: Int32 = field()
    max_bytes: Int32 = field("3+", default=2147483647, ignorable=True)
    isolation_level: Int8 = field("4+", default=0, ignorable=True)
    session_id: Int32 = field("7+", default=0, ignorable=True)
    session_epoch: Int32 = field("7+", default=-1, ignorable=True)
    topics: Array[FetchTopic] = field()
    forgotten_topics_data: Array[ForgottenTopic] = field("7+")
    rack_id: String = field("11+", ignorable=True)


class EpochEndOffset(Struct):
    """One entry: epoch end offset."""

    epoch: Int32 = field("12+", default=-1)
    end_offset: Int64 = field("12+", default=-1)


class LeaderIdAndEpoch(Struct):
    """One entry: leader id and epoch."""

    leader_id: Int32 = field("12+", default=-1)
    leader_epoch: Int32 = field("12+", default=-1)


class SnapshotId(Struct):
    """One entry: snapshot id."""

    end_offset: Int64 = field(default=-1)
    epoch: Int32 = field(default=-1)


class AbortedTransaction(Struct):
    """One entry: aborted transaction."""

    producer_id: Int64 = field("4+")
    first_offset: Int64 = field("4+")


class PartitionData(Struct):
    """One entry: partition data."""

    partition_index: Int32 = field()
    error_code: Int16 = field()
    high_watermark: Int64 = field()
    last_stable_offset: Int64 = field("4+", default=-1, ignorable=True)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field("12+", tag=0, tagged="12+")
    current_leader: LeaderIdAndEpoch = field("12+", tag=1, tagged="12+")
    snapshot_id: SnapshotId = field("12+", tag=2, tagged="12+")
    aborted_transactions: Array[AbortedTransaction] | None = field("4+", nullable="4+", ignorable=True)
    preferred_read_replica: Int32 = field("11+", default=-1)
    records: Records | None = field(nullable="0+")


class FetchableTopicResponse(Struct):
    """One entry: fetchable topic response."""

    topic: String = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: Array[PartitionData] = field()


class NodeEndpoint(Struct):
    """One entry: node endpoint."""

    node_id: Int32 = field("16+")
    host: String = field("16+")
    port: Int32 = field("16+")
    rack: String | None = field("16+", default=None, nullable="16+")


class FetchResponse(Response, key=1, versions="0-18", flexible="12+"):
    """Answer to `FetchRequest`."""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("7+", ignorable=True)
    session_id: Int32 = field("7+", default=0)
    responses: Array[FetchableTopicResponse] = field()
    node_endpoints: Array[NodeEndpoint] = field("16+", tag=0, tagged="16+")


FetchRequest.response_type = FetchResponse


class OffsetForLeaderPartition(Struct):
    """One entry: offset for leader partition."""

    partition: Int32 = field()
    current_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    leader_epoch: Int32 = field()


class OffsetForLeaderTopic(Struct):
    """One entry: offset for leader topic."""

    topic: String = field()
    partitions: Array[OffsetForLeaderPartition] = field()


class OffsetForLeaderEpochRequest(Request, key=23, versions="0-4", flexible="4+"):
    """Ask where a leader epoch ended, to notice truncation (KIP-320)."""

    replica_id: Int32 = field("3+", default=-2, ignorable=True)
    topics: Array[OffsetForLeaderTopic] = field()


class OffsetForLeaderEpochEpochEndOffset(Struct):
    """One entry: epoch end offset."""

    error_code: Int16 = field()
    partition: Int32 = field()
    leader_epoch: Int32 = field("1+", default=-1, ignorable=True)
    end_offset: Int64 = field(default=-1)


class OffsetForLeaderTopicResult(Struct):
    """One entry: offset for leader topic result."""

    topic: String = field()
    partitions: Array[OffsetForLeaderEpochEpochEndOffset] = field()


class OffsetForLeaderEpochResponse(Response, key=23, versions="0-4", flexible="4+"):
    """Answer to `OffsetForLeaderEpochRequest`."""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: Array[OffsetForLeaderTopicResult] = field()


OffsetForLeaderEpochRequest.response_type = OffsetForLeaderEpochResponse
