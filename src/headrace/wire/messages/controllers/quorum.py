"""Elections and snapshots of the metadata quorum (KIP-595, KIP-630, KIP-853). Only between controllers and brokers.

Read next: `wire.messages.controllers.brokers`.
"""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    Records,
    Request,
    Response,
    String,
    Struct,
    Uint16,
    Uuid,
    field,
)

__all__ = [
    "BeginQuorumEpochPartition", "BeginQuorumEpochRequest", "BeginQuorumEpochResponse", "BeginQuorumEpochTopic",
    "EndQuorumEpochPartition", "EndQuorumEpochRequest", "EndQuorumEpochResponse", "EndQuorumEpochTopic",
    "FetchSnapshotId", "FetchSnapshotLeader", "FetchSnapshotPartition", "FetchSnapshotRequest",
    "FetchSnapshotResponse", "FetchSnapshotResponsePartitionSnapshot", "FetchSnapshotResponseTopicSnapshot",
    "FetchSnapshotTopic", "LeaderEndpoint", "PreferredCandidate", "QuorumEndpoint", "QuorumEpochPartition",
    "QuorumEpochTopic", "UpdateRaftVoterKRaftVersionFeature", "UpdateRaftVoterLeader",
    "UpdateRaftVoterListener", "UpdateRaftVoterRequest", "UpdateRaftVoterResponse", "VotePartition",
    "VoteRequest", "VoteResponse", "VoteResponsePartition", "VoteResponseTopic", "VoteTopic",
]


class VotePartition(Struct):
    """The candidate and how far its log goes."""

    partition_index: Int32 = field()
    """Partition number."""
    replica_epoch: Int32 = field()
    """Epoch of the election."""
    replica_id: Int32 = field()
    """Node id of the candidate."""
    replica_directory_id: Uuid = field("1+", ignorable=True)
    """Id of the candidate's log directory."""
    voter_directory_id: Uuid = field("1+", ignorable=True)
    """Id of the voter's log directory."""
    last_offset_epoch: Int32 = field()
    """Epoch of the last record of the candidate's log."""
    last_offset: Int64 = field()
    """Offset behind the last record of the candidate's log."""
    pre_vote: Bool = field("2+")
    """Only a question whether there is a chance; nothing is decided (KIP-996)."""


class VoteTopic(Struct):
    """The topic of the metadata log."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[VotePartition] = field()
    """One entry for each partition."""


class VoteRequest(Request, key=52, versions="0-2", flexible="0+"):
    """Ask for a vote in an election (KIP-595). v1: directory ids (KIP-853). v2: pre-votes (KIP-996)."""

    cluster_id: String | None = field(default=None)
    """Id of the cluster, to be checked; null when it is not known."""
    voter_id: Int32 = field("1+", default=-1, ignorable=True)
    """Node id of the voter that is asked; -1 when not known."""
    topics: Array[VoteTopic] = field()
    """One entry for each topic."""


class VoteResponsePartition(Struct):
    """Whether the vote is given, and who leads."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    leader_id: Int32 = field()
    """Node id of the leader; -1 when it is not known."""
    leader_epoch: Int32 = field()
    """Leader epoch."""
    vote_granted: Bool = field()
    """The candidate has the vote."""


class VoteResponseTopic(Struct):
    """The answers for one topic."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[VoteResponsePartition] = field()
    """One entry for each partition."""


class QuorumEndpoint(Struct):
    """Where a leader named in this response listens (KIP-853)."""

    node_id: Int32 = field("1+")
    """Node id of the leader."""
    host: String = field("1+")
    """Name or address."""
    port: Uint16 = field("1+")
    """TCP port."""


class VoteResponse(Response, to=VoteRequest):
    """Whether the vote is given."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    topics: Array[VoteResponseTopic] = field()
    """One entry for each topic."""
    node_endpoints: Array[QuorumEndpoint] = field("1+", tag=0)
    """Where the leaders named above listen."""


class BeginQuorumEpochPartition(Struct):
    """The new leader."""

    partition_index: Int32 = field()
    """Partition number."""
    voter_directory_id: Uuid = field("1+", ignorable=True)
    """Id of the voter's log directory."""
    leader_id: Int32 = field()
    """Node id of the new leader."""
    leader_epoch: Int32 = field()
    """Epoch of the new leader."""


class BeginQuorumEpochTopic(Struct):
    """The topic of the metadata log."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[BeginQuorumEpochPartition] = field()
    """One entry for each partition."""


class LeaderEndpoint(Struct):
    """One listener of the leader (KIP-853)."""

    name: String = field("1+")
    """Name of the listener."""
    host: String = field("1+")
    """Name or address."""
    port: Uint16 = field("1+")
    """TCP port."""


class BeginQuorumEpochRequest(Request, key=53, versions="0-1", flexible="1+"):
    """A new leader of the quorum says that it leads (KIP-595). v1: directory ids and endpoints (KIP-853)."""

    cluster_id: String | None = field(default=None)
    """Id of the cluster, to be checked; null when it is not known."""
    voter_id: Int32 = field("1+", default=-1, ignorable=True)
    """Node id of the voter that the request is for; -1 when not known."""
    topics: Array[BeginQuorumEpochTopic] = field()
    """One entry for each topic."""
    leader_endpoints: Array[LeaderEndpoint] = field("1+", ignorable=True)
    """Where the leader listens."""


class QuorumEpochPartition(Struct):
    """Who leads, as the answering node knows it."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    leader_id: Int32 = field()
    """Node id of the leader; -1 when it is not known."""
    leader_epoch: Int32 = field()
    """Leader epoch."""


class QuorumEpochTopic(Struct):
    """The answers for one topic."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[QuorumEpochPartition] = field()
    """One entry for each partition."""


class BeginQuorumEpochResponse(Response, to=BeginQuorumEpochRequest):
    """Whether the new leader is followed."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    topics: Array[QuorumEpochTopic] = field()
    """One entry for each topic."""
    node_endpoints: Array[QuorumEndpoint] = field("1+", tag=0)
    """Where the leaders named above listen."""


class PreferredCandidate(Struct):
    """A voter that should stand for election soon."""

    candidate_id: Int32 = field("1+")
    """Node id of the voter."""
    candidate_directory_id: Uuid = field("1+")
    """Id of the voter's log directory."""


class EndQuorumEpochPartition(Struct):
    """The leader that steps down, and who should follow it."""

    partition_index: Int32 = field()
    """Partition number."""
    leader_id: Int32 = field()
    """Node id of the leader that steps down."""
    leader_epoch: Int32 = field()
    """Its epoch."""
    preferred_successors: Array[Int32] = field("0", ignorable=True)
    """Node ids of the voters that should stand for election, the best first."""
    preferred_candidates: Array[PreferredCandidate] = field("1+", ignorable=True)
    """The voters that should stand for election, the best first."""


class EndQuorumEpochTopic(Struct):
    """The topic of the metadata log."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[EndQuorumEpochPartition] = field()
    """One entry for each partition."""


class EndQuorumEpochRequest(Request, key=54, versions="0-1", flexible="1+"):
    """A leader of the quorum steps down (KIP-595). v1: directory ids and endpoints (KIP-853)."""

    cluster_id: String | None = field(default=None)
    """Id of the cluster, to be checked; null when it is not known."""
    topics: Array[EndQuorumEpochTopic] = field()
    """One entry for each topic."""
    leader_endpoints: Array[LeaderEndpoint] = field("1+", ignorable=True)
    """Where the leader listens."""


class EndQuorumEpochResponse(Response, to=EndQuorumEpochRequest):
    """Whether it was acknowledged."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    topics: Array[QuorumEpochTopic] = field()
    """One entry for each topic."""
    node_endpoints: Array[QuorumEndpoint] = field("1+", tag=0)
    """Where the leaders named above listen."""


class FetchSnapshotId(Struct):
    """What a snapshot is known by: the end of the log that it stands for."""

    end_offset: Int64 = field()
    """Offset behind the last record that it stands for."""
    epoch: Int32 = field()
    """Epoch of that record."""


class FetchSnapshotPartition(Struct):
    """The snapshot, and where to go on in it."""

    partition: Int32 = field()
    """Partition number."""
    current_leader_epoch: Int32 = field()
    """Leader epoch that the sender knows; -1 when not known."""
    snapshot_id: FetchSnapshotId = field()
    """Which snapshot."""
    position: Int64 = field()
    """Byte of the snapshot to go on from."""
    replica_directory_id: Uuid = field("1+", tag=0, ignorable=True)
    """Id of the sender's log directory."""


class FetchSnapshotTopic(Struct):
    """The topic of the metadata log."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[FetchSnapshotPartition] = field()
    """One entry for each partition."""


class FetchSnapshotRequest(Request, key=59, versions="0-1", flexible="0+"):
    """Read a part of a snapshot of the metadata log (KIP-630). v1: directory ids (KIP-853)."""

    cluster_id: String | None = field(default=None, tag=0)
    """Id of the cluster, to be checked; null when it is not known."""
    replica_id: Int32 = field(default=-1)
    """Node id of the one who asks."""
    max_bytes: Int32 = field(default=2**31 - 1)
    """Most bytes to answer with."""
    topics: Array[FetchSnapshotTopic] = field()
    """One entry for each topic."""


class FetchSnapshotLeader(Struct):
    """The leader of the quorum."""

    leader_id: Int32 = field()
    """Node id of the leader; -1 when it is not known."""
    leader_epoch: Int32 = field()
    """Leader epoch."""


class FetchSnapshotResponsePartitionSnapshot(Struct):
    """A part of a snapshot."""

    index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    snapshot_id: FetchSnapshotId = field()
    """Which snapshot."""
    current_leader: FetchSnapshotLeader = field(tag=0)
    """Who leads now, when this node does not."""
    size: Int64 = field()
    """Bytes of the whole snapshot."""
    position: Int64 = field()
    """Byte of the snapshot at which this part begins."""
    unaligned_records: Records = field()
    """Record batches; the first and the last may be cut."""


class FetchSnapshotResponseTopicSnapshot(Struct):
    """The parts for one topic."""

    name: String = field()
    """Name of the topic."""
    partitions: Array[FetchSnapshotResponsePartitionSnapshot] = field()
    """One entry for each partition."""


class FetchSnapshotResponse(Response, to=FetchSnapshotRequest):
    """A part of a snapshot."""

    throttle_time_ms: Int32 = field(ignorable=True)
    """Milliseconds that a quota held the answer back, or asks the sender to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    topics: Array[FetchSnapshotResponseTopicSnapshot] = field()
    """One entry for each topic."""
    node_endpoints: Array[QuorumEndpoint] = field("1+", tag=0)
    """Where the leaders named above listen."""


class UpdateRaftVoterListener(Struct):
    """One listener of the voter."""

    name: String = field()
    """Name of the listener."""
    host: String = field()
    """Name or address."""
    port: Uint16 = field()
    """TCP port."""


class UpdateRaftVoterKRaftVersionFeature(Struct):
    """The versions of the quorum's protocol that the voter can run."""

    min_supported_version: Int16 = field()
    """Lowest version."""
    max_supported_version: Int16 = field()
    """Highest version."""


class UpdateRaftVoterRequest(Request, key=82, versions="0", flexible="0+"):
    """A voter reports where it listens and what it can (KIP-853)."""

    cluster_id: String | None = field()
    """Id of the cluster, to be checked; null when it is not known."""
    current_leader_epoch: Int32 = field()
    """Leader epoch that the sender knows; -1 when not known."""
    voter_id: Int32 = field()
    """Node id of the voter."""
    voter_directory_id: Uuid = field()
    """Id of the voter's log directory."""
    listeners: Array[UpdateRaftVoterListener] = field()
    """Where the node listens."""
    k_raft_version_feature: UpdateRaftVoterKRaftVersionFeature = field()
    """Versions of the quorum's protocol that the voter can run."""


class UpdateRaftVoterLeader(Struct):
    """The leader of the quorum and where it listens."""

    leader_id: Int32 = field(default=-1)
    """Node id of the leader; -1 when it is not known."""
    leader_epoch: Int32 = field(default=-1)
    """Leader epoch."""
    host: String = field()
    """Name or address."""
    port: Int32 = field()
    """TCP port."""


class UpdateRaftVoterResponse(Response, to=UpdateRaftVoterRequest):
    """Whether the voter's entry was changed."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the sender to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    current_leader: UpdateRaftVoterLeader = field(tag=0)
    """Who leads now, when this node does not."""
