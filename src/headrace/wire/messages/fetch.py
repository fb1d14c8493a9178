"""TODO"""

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
    "AbortedTransaction", "FetchPartition", "FetchRequest", "FetchResponse", "FetchResponseEpochEndOffset",
    "FetchTopic", "FetchableTopicResponse", "ForgottenTopic", "LeaderIdAndEpoch", "NodeEndpoint",
    "OffsetForLeaderEpochRequest", "OffsetForLeaderEpochResponse", "OffsetForLeaderEpochResponseEpochEndOffset",
    "OffsetForLeaderPartition", "OffsetForLeaderTopic", "OffsetForLeaderTopicResult", "PartitionData", "ReplicaState",
    "SnapshotId",
]


class ReplicaState(Struct):
    """TODO ReplicaState"""

    replica_id: Int32 = field("15+", default=-1)
    replica_epoch: Int64 = field("15+", default=-1)


class FetchPartition(Struct):
    """TODO FetchPartition"""

    partition: Int32 = field()
    current_leader_epoch: Int32 = field("9+", default=-1, ignorable=True)
    fetch_offset: Int64 = field()
    last_fetched_epoch: Int32 = field("12+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: Int32 = field()
    replica_directory_id: Uuid = field("17+", tag=0, ignorable=True)
    high_watermark: Int64 = field("18+", default=2**63 - 1, tag=1, ignorable=True)


class FetchTopic(Struct):
    """TODO FetchTopic"""

    topic: String = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: Array[FetchPartition] = field()


class ForgottenTopic(Struct):
    """TODO ForgottenTopic"""

    topic: String = field("7-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: Array[Int32] = field("7+")


class FetchRequest(Request, key=1, versions="0-18", flexible="12+"):
    """TODO FetchRequest"""

    cluster_id: String | None = field("12+", default=None, tag=0, ignorable=True)
    replica_id: Int32 = field("0-14", default=-1)
    replica_state: ReplicaState = field("15+", tag=1)
    max_wait_ms: Int32 = field()
    min_bytes: Int32 = field()
    max_bytes: Int32 = field("3+", default=2**31 - 1, ignorable=True)
    isolation_level: Int8 = field("4+", ignorable=True)
    session_id: Int32 = field("7+", ignorable=True)
    session_epoch: Int32 = field("7+", default=-1, ignorable=True)
    topics: Array[FetchTopic] = field()
    forgotten_topics_data: Array[ForgottenTopic] = field("7+")
    rack_id: String = field("11+", ignorable=True)


class FetchResponseEpochEndOffset(Struct):
    """TODO FetchResponseEpochEndOffset"""

    epoch: Int32 = field("12+", default=-1)
    end_offset: Int64 = field("12+", default=-1)


class LeaderIdAndEpoch(Struct):
    """TODO LeaderIdAndEpoch"""

    leader_id: Int32 = field("12+", default=-1)
    leader_epoch: Int32 = field("12+", default=-1)


class SnapshotId(Struct):
    """TODO SnapshotId"""

    end_offset: Int64 = field(default=-1)
    epoch: Int32 = field(default=-1)


class AbortedTransaction(Struct):
    """TODO AbortedTransaction"""

    producer_id: Int64 = field("4+")
    first_offset: Int64 = field("4+")


class PartitionData(Struct):
    """TODO PartitionData"""

    partition_index: Int32 = field()
    error_code: Int16 = field()
    high_watermark: Int64 = field()
    last_stable_offset: Int64 = field("4+", default=-1, ignorable=True)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: FetchResponseEpochEndOffset = field("12+", tag=0)
    current_leader: LeaderIdAndEpoch = field("12+", tag=1)
    snapshot_id: SnapshotId = field("12+", tag=2)
    aborted_transactions: Array[AbortedTransaction] | None = field("4+", ignorable=True)
    preferred_read_replica: Int32 = field("11+", default=-1)
    records: Records | None = field()


class FetchableTopicResponse(Struct):
    """TODO FetchableTopicResponse"""

    topic: String = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: Array[PartitionData] = field()


class NodeEndpoint(Struct):
    """TODO NodeEndpoint"""

    node_id: Int32 = field("16+")
    host: String = field("16+")
    port: Int32 = field("16+")
    rack: String | None = field("16+", default=None)


class FetchResponse(Response, to=FetchRequest):
    """TODO FetchResponse"""

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("7+", ignorable=True)
    session_id: Int32 = field("7+")
    responses: Array[FetchableTopicResponse] = field()
    node_endpoints: Array[NodeEndpoint] = field("16+", tag=0)


class OffsetForLeaderPartition(Struct):
    """TODO OffsetForLeaderPartition"""

    partition: Int32 = field()
    current_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    leader_epoch: Int32 = field()


class OffsetForLeaderTopic(Struct):
    """TODO OffsetForLeaderTopic"""

    topic: String = field()
    partitions: Array[OffsetForLeaderPartition] = field()


class OffsetForLeaderEpochRequest(Request, key=23, versions="0-4", flexible="4+"):
    """TODO OffsetForLeaderEpochRequest"""

    replica_id: Int32 = field("3+", default=-2, ignorable=True)
    topics: Array[OffsetForLeaderTopic] = field()


class OffsetForLeaderEpochResponseEpochEndOffset(Struct):
    """TODO OffsetForLeaderEpochResponseEpochEndOffset"""

    error_code: Int16 = field()
    partition: Int32 = field()
    leader_epoch: Int32 = field("1+", default=-1, ignorable=True)
    end_offset: Int64 = field(default=-1)


class OffsetForLeaderTopicResult(Struct):
    """TODO OffsetForLeaderTopicResult"""

    topic: String = field()
    partitions: Array[OffsetForLeaderEpochResponseEpochEndOffset] = field()


class OffsetForLeaderEpochResponse(Response, to=OffsetForLeaderEpochRequest):
    """TODO OffsetForLeaderEpochResponse"""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: Array[OffsetForLeaderTopicResult] = field()
