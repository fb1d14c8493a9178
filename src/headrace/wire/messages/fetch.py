"""Reading record batches, and finding where a log diverged after an unclean election.

Read next: `machines.fetcher`.
"""

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
    "AbortedTransaction", "EpochEndOffset", "FetchEpochEndOffset", "FetchPartition", "FetchRequest", "FetchResponse",
    "FetchTopic", "FetchableTopicResponse", "ForgottenTopic", "LeaderIdAndEpoch", "NodeEndpoint",
    "OffsetForLeaderEpochRequest", "OffsetForLeaderEpochResponse", "OffsetForLeaderPartition", "OffsetForLeaderTopic",
    "OffsetForLeaderTopicResult", "PartitionData", "ReplicaState", "SnapshotId",
]


class ReplicaState(Struct):
    """Who fetches, when it is a broker."""

    replica_id: Int32 = field("15+", default=-1)  # node id of a broker that asks, -1 for a client
    replica_epoch: Int64 = field("15+", default=-1)  # epoch of the broker, -1 for a consumer


class FetchPartition(Struct):
    """A partition to read, and from where."""

    partition: Int32 = field()
    # leader epoch that the client knows, -1 for none; an outdated one is fenced
    current_leader_epoch: Int32 = field("9+", default=-1, ignorable=True)
    fetch_offset: Int64 = field()  # offset to read from
    last_fetched_epoch: Int32 = field("12+", default=-1)  # leader epoch of the last record read, -1 for none
    # first offset of a follower's log; -1 for a consumer
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: Int32 = field()  # most bytes to answer with for this partition
    # directory of a follower; zero for a consumer
    replica_directory_id: Uuid = field("17+", tag=0, ignorable=True)
    high_watermark: Int64 = field("18+", default=2**63 - 1, tag=1, ignorable=True)  # as a follower knows it


class FetchTopic(Struct):
    """A topic to read."""

    topic: String = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)  # zero when it is not known
    partitions: Array[FetchPartition] = field()  # one for each partition


class ForgottenTopic(Struct):
    """Partitions to leave out of the fetch session from now on (KIP-227)."""

    topic: String = field("7-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)  # zero when it is not known
    partitions: Array[Int32] = field("7+")  # partition numbers


class FetchRequest(Request, key=1, versions="0-18", flexible="12+"):
    """Read record batches; waits at the broker until `min_bytes` are there.

    v4: isolation level. v7: fetch sessions (KIP-227). v9: leader epoch (KIP-320). v11: rack (KIP-392). v12:
    divergence found by the broker (KIP-595). v13: topic ids (KIP-516). v16: the new leader in the answer (KIP-951).
    """

    cluster_id: String | None = field("12+", default=None, tag=0, ignorable=True)  # null when it is not known
    replica_id: Int32 = field("0-14", default=-1)  # node id of a broker that asks, -1 for a client
    replica_state: ReplicaState = field("15+", tag=1)  # in place of `replica_id`
    max_wait_ms: Int32 = field()  # longest wait at the broker
    min_bytes: Int32 = field()  # fewest bytes to answer with before the wait is over
    # most bytes to answer with; one batch is answered even when it is larger
    max_bytes: Int32 = field("3+", default=2**31 - 1, ignorable=True)
    isolation_level: Int8 = field("4+", ignorable=True)  # 0 read_uncommitted, 1 read_committed
    session_id: Int32 = field("7+", ignorable=True)  # 0 for no session
    # number of the request in its session, 0 for a new one, -1 for none
    session_epoch: Int32 = field("7+", default=-1, ignorable=True)
    topics: Array[FetchTopic] = field()  # one for each topic
    forgotten_topics_data: Array[ForgottenTopic] = field("7+")  # partitions to drop from the session
    rack_id: String = field("11+", ignorable=True)  # rack of the client


class FetchEpochEndOffset(Struct):
    """Where an epoch of the leader ends: records after it are not those that the reader has."""

    epoch: Int32 = field("12+", default=-1)  # leader epoch, -1 for none
    end_offset: Int64 = field("12+", default=-1)  # offset behind the last record of the epoch


class LeaderIdAndEpoch(Struct):
    """The leader to fetch from instead (KIP-951)."""

    leader_id: Int32 = field("12+", default=-1)  # node id of the leader, -1 when there is none
    leader_epoch: Int32 = field("12+", default=-1)  # leader epoch, -1 when not known


class SnapshotId(Struct):
    """A snapshot of the metadata log; only for brokers."""

    end_offset: Int64 = field(default=-1)  # offset behind the last record of the snapshot
    epoch: Int32 = field(default=-1)  # leader epoch, -1 for none


class AbortedTransaction(Struct):
    """A transaction whose records are to be skipped from an offset on."""

    producer_id: Int64 = field("4+")
    first_offset: Int64 = field("4+")  # offset of the first record of the transaction


class PartitionData(Struct):
    """What was read from one partition."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well
    high_watermark: Int64 = field()  # offset below which records are committed
    # offset below which no transaction is open
    last_stable_offset: Int64 = field("4+", default=-1, ignorable=True)
    # first offset of the log, -1 when not known
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: FetchEpochEndOffset = field("12+", tag=0)  # where the logs part, when they do
    current_leader: LeaderIdAndEpoch = field("12+", tag=1)  # who leads now, when this broker does not
    snapshot_id: SnapshotId = field("12+", tag=2)  # only for brokers
    # transactions aborted within these records, for read_committed; may be null
    aborted_transactions: Array[AbortedTransaction] | None = field("4+", ignorable=True)
    # node id of a nearer replica to fetch from (KIP-392), -1 for none
    preferred_read_replica: Int32 = field("11+", default=-1)
    records: Records | None = field()  # record batches, a view of the response


class FetchableTopicResponse(Struct):
    """What was read from one topic."""

    topic: String = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)  # zero when it is not known
    partitions: Array[PartitionData] = field()  # one for each partition


class NodeEndpoint(Struct):
    """Where a leader named in this response listens (KIP-951)."""

    node_id: Int32 = field("16+")
    host: String = field("16+")  # name or address
    port: Int32 = field("16+")
    rack: String | None = field("16+", default=None)  # rack of the broker, null when it has none


class FetchResponse(Response, to=FetchRequest):
    """Record batches.

    The last one of a partition may be cut short, and the first may begin before the asked offset.
    """

    # how long a quota held the answer back, or asks to wait
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("7+", ignorable=True)  # 0 when all went well
    session_id: Int32 = field("7+")  # 0 for no session
    responses: Array[FetchableTopicResponse] = field()  # one for each topic
    node_endpoints: Array[NodeEndpoint] = field("16+", tag=0)  # where the leaders named above listen


class OffsetForLeaderPartition(Struct):
    """A partition and the last epoch that the reader knows."""

    partition: Int32 = field()
    # leader epoch that the client knows, -1 for none; an outdated one is fenced
    current_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    leader_epoch: Int32 = field()  # leader epoch, -1 when not known


class OffsetForLeaderTopic(Struct):
    """A topic to check."""

    topic: String = field()
    partitions: Array[OffsetForLeaderPartition] = field()  # one for each partition


class OffsetForLeaderEpochRequest(Request, key=23, versions="0-4", flexible="4+"):
    """Ask where an epoch ended, to find out whether records that were read have been lost (KIP-101, KIP-320)."""

    # node id of a broker that asks, -1 for a client
    replica_id: Int32 = field("3+", default=-2, ignorable=True)
    topics: Array[OffsetForLeaderTopic] = field()  # one for each topic


class EpochEndOffset(Struct):
    """Where the largest epoch at or below the asked one ends."""

    error_code: Int16 = field()  # 0 when all went well
    partition: Int32 = field()
    leader_epoch: Int32 = field("1+", default=-1, ignorable=True)  # epoch that was found, -1 for none
    end_offset: Int64 = field(default=-1)  # offset behind the last record of the epoch


class OffsetForLeaderTopicResult(Struct):
    """The answers for one topic."""

    topic: String = field()
    partitions: Array[EpochEndOffset] = field()  # one for each partition


class OffsetForLeaderEpochResponse(Response, to=OffsetForLeaderEpochRequest):
    """The end of each asked epoch."""

    # how long a quota held the answer back, or asks to wait
    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: Array[OffsetForLeaderTopicResult] = field()  # one for each topic
