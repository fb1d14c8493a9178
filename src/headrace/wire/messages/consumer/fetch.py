"""Reading record batches, and finding where a log diverged after an unclean election.

Read next: `machines.consumer.fetcher`.
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

    replica_id: Int32 = field("15+", default=-1)
    """Node id of a broker that asks; -1 for a client."""
    replica_epoch: Int64 = field("15+", default=-1)
    """Epoch of the broker; -1 for a consumer."""


class FetchPartition(Struct):
    """A partition to read, and from where."""

    partition: Int32 = field()
    """Partition number."""
    current_leader_epoch: Int32 = field("9+", default=-1, ignorable=True)
    """Leader epoch that the client knows; -1 for none; an outdated one is fenced."""
    fetch_offset: Int64 = field()
    """Offset to read from."""
    last_fetched_epoch: Int32 = field("12+", default=-1)
    """Leader epoch of the last record read; -1 for none."""
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    """First offset of a follower's log; -1 for a consumer."""
    partition_max_bytes: Int32 = field()
    """Most bytes to answer with for this partition."""
    replica_directory_id: Uuid = field("17+", tag=0, ignorable=True)
    """Id of a follower's log directory; zero for a consumer."""
    high_watermark: Int64 = field("18+", default=2**63 - 1, tag=1, ignorable=True)
    """High watermark that a follower knows."""


class FetchTopic(Struct):
    """A topic to read."""

    topic: String = field("0-12", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("13+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    partitions: Array[FetchPartition] = field()
    """One entry for each partition."""


class ForgottenTopic(Struct):
    """Partitions to leave out of the fetch session from now on (KIP-227)."""

    topic: String = field("7-12", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("13+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    partitions: Array[Int32] = field("7+")
    """Partition numbers."""


class FetchRequest(Request, key=1, versions="0-18", flexible="12+"):
    """Read record batches; waits at the broker until `min_bytes` are there.

    v4: isolation level. v7: fetch sessions (KIP-227). v9: leader epoch (KIP-320). v11: rack (KIP-392). v12:
    divergence found by the broker (KIP-595). v13: topic ids (KIP-516). v16: the new leader in the answer (KIP-951).
    """

    cluster_id: String | None = field("12+", default=None, tag=0, ignorable=True)
    """Id of the cluster; null when it is not known."""
    replica_id: Int32 = field("0-14", default=-1)
    """Node id of a broker that asks; -1 for a client."""
    replica_state: ReplicaState = field("15+", tag=1)
    """Who fetches, in place of `replica_id`."""
    max_wait_ms: Int32 = field()
    """Most milliseconds to wait at the broker for `min_bytes`."""
    min_bytes: Int32 = field()
    """Fewest bytes to answer with before the wait is over."""
    max_bytes: Int32 = field("3+", default=2**31 - 1, ignorable=True)
    """Most bytes to answer with; one batch is answered even when it is larger."""
    isolation_level: Int8 = field("4+", ignorable=True)
    """Which records: 0 all (read_uncommitted), 1 only committed ones (read_committed)."""
    session_id: Int32 = field("7+", ignorable=True)
    """Id of the fetch session; 0 for none."""
    session_epoch: Int32 = field("7+", default=-1, ignorable=True)
    """Number of the request in its session; 0 opens one, -1 for none."""
    topics: Array[FetchTopic] = field()
    """One entry for each topic."""
    forgotten_topics_data: Array[ForgottenTopic] = field("7+")
    """Partitions to drop from the session."""
    rack_id: String = field("11+", ignorable=True)
    """Rack of the client."""


class FetchEpochEndOffset(Struct):
    """Where an epoch of the leader ends: records after it are not those that the reader has."""

    epoch: Int32 = field("12+", default=-1)
    """Leader epoch; -1 for none."""
    end_offset: Int64 = field("12+", default=-1)
    """Offset behind the last record of the epoch."""


class LeaderIdAndEpoch(Struct):
    """The leader to fetch from instead (KIP-951)."""

    leader_id: Int32 = field("12+", default=-1)
    """Node id of the leader; -1 when there is none."""
    leader_epoch: Int32 = field("12+", default=-1)
    """Leader epoch; -1 when not known."""


class SnapshotId(Struct):
    """A snapshot of the metadata log; only for brokers."""

    end_offset: Int64 = field(default=-1)
    """Offset behind the last record of the snapshot."""
    epoch: Int32 = field(default=-1)
    """Leader epoch; -1 for none."""


class AbortedTransaction(Struct):
    """A transaction whose records are to be skipped from an offset on."""

    producer_id: Int64 = field("4+")
    """Producer id of the transaction."""
    first_offset: Int64 = field("4+")
    """Offset of the first record of the transaction."""


class PartitionData(Struct):
    """What was read from one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    high_watermark: Int64 = field()
    """Offset below which records are committed."""
    last_stable_offset: Int64 = field("4+", default=-1, ignorable=True)
    """Offset below which no transaction is open."""
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    """First offset of the log; -1 when not known."""
    diverging_epoch: FetchEpochEndOffset = field("12+", tag=0)
    """Where the logs part, when they do."""
    current_leader: LeaderIdAndEpoch = field("12+", tag=1)
    """Who leads now, when this broker does not."""
    snapshot_id: SnapshotId = field("12+", tag=2)
    """Snapshot to fetch instead; only for brokers."""
    aborted_transactions: Array[AbortedTransaction] | None = field("4+", ignorable=True)
    """Transactions aborted within these records, for read_committed; may be null."""
    preferred_read_replica: Int32 = field("11+", default=-1)
    """Node id of a nearer replica to fetch from (KIP-392); -1 for none."""
    records: Records | None = field()
    """Record batches, a view of the response."""


class FetchableTopicResponse(Struct):
    """What was read from one topic."""

    topic: String = field("0-12", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("13+", ignorable=True)
    """Id of the topic; zero when it is not known."""
    partitions: Array[PartitionData] = field()
    """One entry for each partition."""


class NodeEndpoint(Struct):
    """Where a leader named in this response listens (KIP-951)."""

    node_id: Int32 = field("16+")
    """Node id of the leader."""
    host: String = field("16+")
    """Name or address."""
    port: Int32 = field("16+")
    """TCP port."""
    rack: String | None = field("16+", default=None)
    """Rack of the broker; null when it has none."""


class FetchResponse(Response, to=FetchRequest):
    """Record batches.

    The last one of a partition may be cut short, and the first may begin before the asked offset.
    """

    throttle_time_ms: Int32 = field("1+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field("7+", ignorable=True)
    """Error code; 0 when all went well."""
    session_id: Int32 = field("7+")
    """Id of the fetch session; 0 for none."""
    responses: Array[FetchableTopicResponse] = field()
    """One entry for each topic."""
    node_endpoints: Array[NodeEndpoint] = field("16+", tag=0)
    """Where the leaders named above listen."""


class OffsetForLeaderPartition(Struct):
    """A partition and the last epoch that the reader knows."""

    partition: Int32 = field()
    """Partition number."""
    current_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    """Leader epoch that the client knows; -1 for none; an outdated one is fenced."""
    leader_epoch: Int32 = field()
    """Leader epoch; -1 when not known."""


class OffsetForLeaderTopic(Struct):
    """A topic to check."""

    topic: String = field()
    """Name of the topic."""
    partitions: Array[OffsetForLeaderPartition] = field()
    """One entry for each partition."""


class OffsetForLeaderEpochRequest(Request, key=23, versions="0-4", flexible="4+"):
    """Ask where an epoch ended, to find out whether records that were read have been lost (KIP-101, KIP-320)."""

    replica_id: Int32 = field("3+", default=-2, ignorable=True)
    """Node id of a broker that asks; -1 for a client, -2 for tools."""
    topics: Array[OffsetForLeaderTopic] = field()
    """One entry for each topic."""


class EpochEndOffset(Struct):
    """Where the largest epoch at or below the asked one ends."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    partition: Int32 = field()
    """Partition number."""
    leader_epoch: Int32 = field("1+", default=-1, ignorable=True)
    """Epoch that was found; -1 for none."""
    end_offset: Int64 = field(default=-1)
    """Offset behind the last record of the epoch."""


class OffsetForLeaderTopicResult(Struct):
    """The answers for one topic."""

    topic: String = field()
    """Name of the topic."""
    partitions: Array[EpochEndOffset] = field()
    """One entry for each partition."""


class OffsetForLeaderEpochResponse(Response, to=OffsetForLeaderEpochRequest):
    """The end of each asked epoch."""

    throttle_time_ms: Int32 = field("2+", ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    topics: Array[OffsetForLeaderTopicResult] = field()
    """One entry for each topic."""
