"""What a controller on ZooKeeper sent its brokers. Kafka 4.0 removed these four APIs (KIP-500).

Read next: `wire.messages.controllers.quorum`, what took their place.
"""

from __future__ import annotations

from headrace.wire.schema import Array, Bool, Int8, Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

__all__ = [
    "ControlledShutdownRequest", "ControlledShutdownResponse", "LeaderAndIsrLiveLeader",
    "LeaderAndIsrPartitionError", "LeaderAndIsrPartitionState", "LeaderAndIsrRequest", "LeaderAndIsrResponse",
    "LeaderAndIsrTopicError", "LeaderAndIsrTopicState", "RemainingPartition", "StopReplicaPartitionError",
    "StopReplicaPartitionState", "StopReplicaPartitionV0", "StopReplicaRequest", "StopReplicaResponse",
    "StopReplicaTopicState", "StopReplicaTopicV1", "UpdateMetadataBroker", "UpdateMetadataEndpoint",
    "UpdateMetadataPartitionState", "UpdateMetadataRequest", "UpdateMetadataResponse",
    "UpdateMetadataTopicState",
]


class LeaderAndIsrPartitionState(Struct):
    """The leader and the replicas of one partition."""

    topic_name: String = field("0-1", ignorable=True)
    """Name of the topic."""
    partition_index: Int32 = field()
    """Partition number."""
    controller_epoch: Int32 = field()
    """Epoch of the controller."""
    leader: Int32 = field()
    """Node id of the leader; -1 when there is none, -2 when the topic is being deleted."""
    leader_epoch: Int32 = field()
    """Leader epoch."""
    isr: Array[Int32] = field()
    """Node ids of the replicas in sync."""
    partition_epoch: Int32 = field()
    """Grows with every change of the partition."""
    replicas: Array[Int32] = field()
    """Node ids of the replicas."""
    adding_replicas: Array[Int32] = field("3+", ignorable=True)
    """Node ids of the replicas that a reassignment adds."""
    removing_replicas: Array[Int32] = field("3+", ignorable=True)
    """Node ids of the replicas that a reassignment removes."""
    is_new: Bool = field("1+", ignorable=True)
    """The broker has not had this replica before."""
    leader_recovery_state: Int8 = field("6+")
    """1 while the partition recovers from an unclean election, else 0."""


class LeaderAndIsrTopicState(Struct):
    """Partitions of one topic."""

    topic_name: String = field("2+")
    """Name of the topic."""
    topic_id: Uuid = field("5+", ignorable=True)
    """Id of the topic."""
    partition_states: Array[LeaderAndIsrPartitionState] = field("2+")
    """One entry for each partition."""


class LeaderAndIsrLiveLeader(Struct):
    """A leader and where it listens."""

    broker_id: Int32 = field()
    """Node id of the leader."""
    host_name: String = field()
    """Name or address."""
    port: Int32 = field()
    """TCP port."""


class LeaderAndIsrRequest(Request, key=4, versions="0-7", flexible="4+"):
    """The controller announces leaders.

    v2: topics grouped (KIP-380). v3: reassignments (KIP-455). v5: topic ids (KIP-516). v6: recovery from unclean
    elections (KIP-704). v7: migration to KRaft (KIP-866).
    """

    controller_id: Int32 = field()
    """Node id of the controller."""
    is_k_raft_controller: Bool = field("7+")
    """A KRaft controller asks, in the middle of a migration (KIP-866)."""
    controller_epoch: Int32 = field()
    """Epoch of the controller."""
    broker_epoch: Int64 = field("2+", default=-1, ignorable=True)
    """Epoch of the broker, which its registration gave it; -1 when not known."""
    type: Int8 = field("5+")
    """0 not known, 1 some partitions changed, 2 every partition of the broker."""
    ungrouped_partition_states: Array[LeaderAndIsrPartitionState] = field("0-1")
    """One entry for each partition."""
    topic_states: Array[LeaderAndIsrTopicState] = field("2+")
    """One entry for each topic."""
    live_leaders: Array[LeaderAndIsrLiveLeader] = field()
    """Where the leaders named above listen."""


class LeaderAndIsrPartitionError(Struct):
    """What became of one partition."""

    topic_name: String = field("0-4", ignorable=True)
    """Name of the topic."""
    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class LeaderAndIsrTopicError(Struct):
    """The results for one topic."""

    topic_id: Uuid = field("5+")
    """Id of the topic."""
    partition_errors: Array[LeaderAndIsrPartitionError] = field("5+")
    """One entry for each partition."""


class LeaderAndIsrResponse(Response, to=LeaderAndIsrRequest):
    """What the broker could do of it."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    partition_errors: Array[LeaderAndIsrPartitionError] = field("0-4")
    """One entry for each partition."""
    topics: Array[LeaderAndIsrTopicError] = field("5+")
    """One entry for each topic."""


class StopReplicaPartitionV0(Struct):
    """A partition to stop."""

    topic_name: String = field("0")
    """Name of the topic."""
    partition_index: Int32 = field("0")
    """Partition number."""


class StopReplicaTopicV1(Struct):
    """Partitions of one topic to stop."""

    name: String = field("1-2")
    """Name of the topic."""
    partition_indexes: Array[Int32] = field("1-2")
    """Partition numbers."""


class StopReplicaPartitionState(Struct):
    """A partition to stop."""

    partition_index: Int32 = field("3+")
    """Partition number."""
    leader_epoch: Int32 = field("3+", default=-1)
    """Leader epoch; -1 when not known, -2 when the topic is being deleted."""
    delete_partition: Bool = field("3+")
    """Delete the data too."""


class StopReplicaTopicState(Struct):
    """Partitions of one topic to stop."""

    topic_name: String = field("3+")
    """Name of the topic."""
    partition_states: Array[StopReplicaPartitionState] = field("3+")
    """One entry for each partition."""


class StopReplicaRequest(Request, key=5, versions="0-4", flexible="2+"):
    """The controller tells a broker to stop replicas.

    v1: broker epoch (KIP-380). v3: leader epochs (KIP-570). v4: migration to KRaft (KIP-866).
    """

    controller_id: Int32 = field()
    """Node id of the controller."""
    is_k_raft_controller: Bool = field("4+")
    """A KRaft controller asks, in the middle of a migration (KIP-866)."""
    controller_epoch: Int32 = field()
    """Epoch of the controller."""
    broker_epoch: Int64 = field("1+", default=-1, ignorable=True)
    """Epoch of the broker, which its registration gave it; -1 when not known."""
    delete_partitions: Bool = field("0-2")
    """Delete the data too."""
    ungrouped_partitions: Array[StopReplicaPartitionV0] = field("0")
    """The partitions to stop."""
    topics: Array[StopReplicaTopicV1] = field("1-2")
    """One entry for each topic."""
    topic_states: Array[StopReplicaTopicState] = field("3+")
    """One entry for each topic."""


class StopReplicaPartitionError(Struct):
    """What became of one partition."""

    topic_name: String = field()
    """Name of the topic."""
    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class StopReplicaResponse(Response, to=StopReplicaRequest):
    """What the broker could do of it."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    partition_errors: Array[StopReplicaPartitionError] = field()
    """One entry for each partition."""


class UpdateMetadataPartitionState(Struct):
    """The leader and the replicas of one partition."""

    topic_name: String = field("0-4", ignorable=True)
    """Name of the topic."""
    partition_index: Int32 = field()
    """Partition number."""
    controller_epoch: Int32 = field()
    """Epoch of the controller."""
    leader: Int32 = field()
    """Node id of the leader; -1 when there is none, -2 when the topic is being deleted."""
    leader_epoch: Int32 = field()
    """Leader epoch."""
    isr: Array[Int32] = field()
    """Node ids of the replicas in sync."""
    zk_version: Int32 = field()
    """Grows with every change of the partition: its version in ZooKeeper."""
    replicas: Array[Int32] = field()
    """Node ids of the replicas."""
    offline_replicas: Array[Int32] = field("4+", ignorable=True)
    """Node ids of the replicas that are down."""


class UpdateMetadataTopicState(Struct):
    """Partitions of one topic."""

    topic_name: String = field("5+")
    """Name of the topic."""
    topic_id: Uuid = field("7+", ignorable=True)
    """Id of the topic."""
    partition_states: Array[UpdateMetadataPartitionState] = field("5+")
    """One entry for each partition."""


class UpdateMetadataEndpoint(Struct):
    """One listener of a broker."""

    port: Int32 = field("1+")
    """TCP port."""
    host: String = field("1+")
    """Name or address."""
    listener: String = field("3+", ignorable=True)
    """Name of the listener."""
    security_protocol: Int16 = field("1+")
    """Security protocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""


class UpdateMetadataBroker(Struct):
    """A broker that is alive."""

    id: Int32 = field()
    """Node id of the broker."""
    v0_host: String = field("0", ignorable=True)
    """Name or address."""
    v0_port: Int32 = field("0", ignorable=True)
    """TCP port."""
    endpoints: Array[UpdateMetadataEndpoint] = field("1+", ignorable=True)
    """Where the broker listens."""
    rack: String | None = field("2+", nullable="0+", ignorable=True)
    """Rack of the broker; null when it has none."""


class UpdateMetadataRequest(Request, key=6, versions="0-8", flexible="6+"):
    """The controller sends every broker the metadata of the cluster.

    v5: topics grouped (KIP-380). v7: topic ids (KIP-516). v8: migration to KRaft (KIP-866).
    """

    controller_id: Int32 = field()
    """Node id of the controller."""
    is_k_raft_controller: Bool = field("8+")
    """A KRaft controller asks, in the middle of a migration (KIP-866)."""
    type: Int8 = field("8+", tag=0)
    """0 not known, 1 some partitions changed, 2 every partition of the cluster."""
    controller_epoch: Int32 = field()
    """Epoch of the controller."""
    broker_epoch: Int64 = field("5+", default=-1, ignorable=True)
    """Epoch of the broker, which its registration gave it; -1 when not known."""
    ungrouped_partition_states: Array[UpdateMetadataPartitionState] = field("0-4")
    """One entry for each partition."""
    topic_states: Array[UpdateMetadataTopicState] = field("5+")
    """One entry for each topic."""
    live_brokers: Array[UpdateMetadataBroker] = field()
    """Every broker that is alive."""


class UpdateMetadataResponse(Response, to=UpdateMetadataRequest):
    """Whether it was taken over."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class ControlledShutdownRequest(Request, key=7, versions="0-3", flexible="3+"):
    """A broker asks to be relieved of its leaders before it stops.

    Version 0 is the only request that has header version 0, without a client id. v2: broker epoch (KIP-380).
    """

    broker_id: Int32 = field()
    """Node id of the broker."""
    broker_epoch: Int64 = field("2+", default=-1, ignorable=True)
    """Epoch of the broker, which its registration gave it; -1 when not known."""


class RemainingPartition(Struct):
    """A partition that the broker still leads."""

    topic_name: String = field()
    """Name of the topic."""
    partition_index: Int32 = field()
    """Partition number."""


class ControlledShutdownResponse(Response, to=ControlledShutdownRequest):
    """What the broker still leads."""

    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    remaining_partitions: Array[RemainingPartition] = field()
    """What the broker still leads."""
