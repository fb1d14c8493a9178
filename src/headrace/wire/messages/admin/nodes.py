"""The controllers' quorum, features, and nodes that leave for ever.

Read next: `wire.messages.admin.configs`.
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
    Uint16,
    Uuid,
    field,
)

__all__ = [
    "AddRaftVoterRequest", "AddRaftVoterResponse", "DescribeQuorumRequest", "DescribeQuorumResponse",
    "DescribedQuorumPartition", "DescribedQuorumTopic", "FeatureUpdateKey", "QuorumListener", "QuorumNode",
    "QuorumPartition", "QuorumReplica", "QuorumTopic", "RemoveRaftVoterRequest", "RemoveRaftVoterResponse",
    "UnregisterBrokerRequest", "UnregisterBrokerResponse", "UnregisterControllerRequest",
    "UnregisterControllerResponse", "UpdatableFeatureResult", "UpdateFeaturesRequest", "UpdateFeaturesResponse",
    "VoterListener",
]


class QuorumPartition(Struct):
    """A partition of the metadata log."""

    partition_index: Int32 = field()
    """Partition number."""


class QuorumTopic(Struct):
    """The metadata topic."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[QuorumPartition] = field()
    """One entry for each partition."""


class DescribeQuorumRequest(Request, key=55, versions="0-2", flexible="0+"):
    """Ask how the controllers' quorum stands (KIP-595).

    v1: times (KIP-836). v2: directories and listeners (KIP-853).
    """

    topics: Array[QuorumTopic] = field()
    """One entry for each topic."""


class QuorumReplica(Struct):
    """A voter or observer and how far it has come."""

    replica_id: Int32 = field()
    """Node id of the replica."""
    replica_directory_id: Uuid = field("2+")
    """Id of the replica's log directory; zero when not known."""
    log_end_offset: Int64 = field()
    """How far the replica has come; -1 when not known."""
    last_fetch_timestamp: Int64 = field("1+", default=-1, ignorable=True)
    """When it last fetched, in milliseconds since 1970."""
    last_caught_up_timestamp: Int64 = field("1+", default=-1, ignorable=True)
    """When it last had everything, in milliseconds since 1970."""


class DescribedQuorumPartition(Struct):
    """The quorum of one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field("2+", ignorable=True)
    """The error in words; null when there is none."""
    leader_id: Int32 = field()
    """Node id of the leader; -1 when there is none."""
    leader_epoch: Int32 = field()
    """Leader epoch; -1 when not known."""
    high_watermark: Int64 = field()
    """Offset below which records are committed."""
    current_voters: Array[QuorumReplica] = field()
    """Controllers that vote."""
    observers: Array[QuorumReplica] = field()
    """Nodes that only follow."""


class DescribedQuorumTopic(Struct):
    """The quorum of the metadata topic."""

    topic_name: String = field()
    """Name of the topic."""
    partitions: Array[DescribedQuorumPartition] = field()
    """One entry for each partition."""


class QuorumListener(Struct):
    """Where a controller listens."""

    name: String = field("2+")
    """Name of the listener."""
    host: String = field("2+")
    """Name or address."""
    port: Uint16 = field("2+")
    """TCP port."""


class QuorumNode(Struct):
    """A controller."""

    node_id: Int32 = field("2+")
    """Node id of the controller."""
    listeners: Array[QuorumListener] = field("2+")
    """Where the node listens."""


class DescribeQuorumResponse(Response, to=DescribeQuorumRequest):
    """The quorum."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field("2+", ignorable=True)
    """The error in words; null when there is none."""
    topics: Array[DescribedQuorumTopic] = field()
    """One entry for each topic."""
    nodes: Array[QuorumNode] = field("2+")
    """One entry for each node."""


class FeatureUpdateKey(Struct):
    """A feature and the level that it shall have."""

    feature: String = field()
    """Name of the feature."""
    max_version_level: Int16 = field()
    """Level to finalize; below 1 deletes the feature."""
    allow_downgrade: Bool = field("0")
    """The level may go down."""
    upgrade_type: Int8 = field("1+", default=1)
    """What is allowed: 1 upgrade only, 2 safe downgrade, 3 unsafe downgrade."""


class UpdateFeaturesRequest(Request, key=57, versions="0-2", flexible="0+"):
    """Raise or lower finalized features (KIP-584).

    v1: kinds of downgrade (KIP-778). v2: one error for all (KIP-1022).
    """

    timeout_ms: Int32 = field(default=60000)
    """Milliseconds that the broker may take."""
    feature_updates: Array[FeatureUpdateKey] = field()
    """One entry for each feature."""
    validate_only: Bool = field("1+")
    """Check the request and change nothing."""


class UpdatableFeatureResult(Struct):
    """Whether one feature was changed."""

    feature: String = field()
    """Name of the feature."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""


class UpdateFeaturesResponse(Response, to=UpdateFeaturesRequest):
    """Whether the features were changed."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
    results: Array[UpdatableFeatureResult] = field("0-1", ignorable=True)
    """One entry for each that was asked for."""


class UnregisterBrokerRequest(Request, key=64, versions="0", flexible="0+"):
    """Forget a broker that will not come back (KIP-500)."""

    broker_id: Int32 = field()
    """Node id of the broker to forget."""


class UnregisterBrokerResponse(Response, to=UnregisterBrokerRequest):
    """Whether the broker was forgotten."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""


class VoterListener(Struct):
    """Where the new voter listens."""

    name: String = field()
    """Name of the listener."""
    host: String = field()
    """Name or address."""
    port: Uint16 = field()
    """TCP port."""


class AddRaftVoterRequest(Request, key=80, versions="0-1", flexible="0+"):
    """Make a controller a voter (KIP-853). v1: when to answer (KIP-1186)."""

    cluster_id: String | None = field()
    """Id of the cluster; null when it is not known."""
    timeout_ms: Int32 = field()
    """Milliseconds that the broker may take."""
    voter_id: Int32 = field()
    """Node id of the controller."""
    voter_directory_id: Uuid = field()
    """Id of its log directory."""
    listeners: Array[VoterListener] = field()
    """Where the node listens."""
    ack_when_committed: Bool = field("1+", default=True)
    """Answer when the change is committed, not when it is written."""


class AddRaftVoterResponse(Response, to=AddRaftVoterRequest):
    """Whether the controller is a voter now."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(ignorable=True)
    """The error in words; null when there is none."""


class RemoveRaftVoterRequest(Request, key=81, versions="0", flexible="0+"):
    """Take the vote from a controller (KIP-853)."""

    cluster_id: String | None = field()
    """Id of the cluster; null when it is not known."""
    voter_id: Int32 = field()
    """Node id of the controller."""
    voter_directory_id: Uuid = field()
    """Id of its log directory."""


class RemoveRaftVoterResponse(Response, to=RemoveRaftVoterRequest):
    """Whether the controller is no voter any more."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field(ignorable=True)
    """The error in words; null when there is none."""


class UnregisterControllerRequest(Request, key=94, versions="0", flexible="0+"):
    """Forget a controller that will not come back (KIP-1312)."""

    controller_id: Int32 = field()
    """Node id of the controller to forget."""


class UnregisterControllerResponse(Response, to=UnregisterControllerRequest):
    """Whether the controller was forgotten."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the client to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""
