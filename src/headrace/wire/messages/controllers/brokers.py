"""What brokers report to the controller (KIP-631 and others). Only between brokers and controllers.

Read next: `wire.messages.controllers.brokers_before_4`.
"""

from __future__ import annotations

from headrace.wire.schema import (
    ApiMessage,
    Array,
    Bool,
    Bytes,
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
    "AllocateProducerIdsRequest", "AllocateProducerIdsResponse", "AlterPartitionBroker",
    "AlterPartitionPartition", "AlterPartitionRequest", "AlterPartitionResponse",
    "AlterPartitionResponsePartition", "AlterPartitionResponseTopic", "AlterPartitionTopic",
    "AssignReplicasToDirsDirectory", "AssignReplicasToDirsPartition", "AssignReplicasToDirsRequest",
    "AssignReplicasToDirsResponse", "AssignReplicasToDirsResponseDirectory",
    "AssignReplicasToDirsResponsePartition", "AssignReplicasToDirsResponseTopic", "AssignReplicasToDirsTopic",
    "BrokerHeartbeatRequest", "BrokerHeartbeatResponse", "BrokerRegistrationRequest",
    "BrokerRegistrationResponse", "ControllerRegistrationRequest", "ControllerRegistrationResponse",
    "DefaultPrincipalData", "EnvelopeRequest", "EnvelopeResponse", "RegisteredFeature", "RegisteredListener",
]


class AlterPartitionBroker(Struct):
    """A replica in sync and the epoch of its broker (KIP-903)."""

    broker_id: Int32 = field("3+")
    """Node id of the broker."""
    broker_epoch: Int64 = field("3+", default=-1)
    """Epoch of the broker, which its registration gave it; -1 when not known."""


class AlterPartitionPartition(Struct):
    """The replicas that shall be in sync."""

    partition_index: Int32 = field()
    """Partition number."""
    leader_epoch: Int32 = field()
    """Leader epoch."""
    new_isr: Array[Int32] = field("0-2")
    """Node ids of the replicas that are in sync."""
    new_isr_with_epochs: Array[AlterPartitionBroker] = field("3+")
    """The replicas that are in sync."""
    leader_recovery_state: Int8 = field("1+")
    """1 while the partition recovers from an unclean election, else 0."""
    partition_epoch: Int32 = field()
    """Epoch of the partition that the leader knows."""


class AlterPartitionTopic(Struct):
    """Partitions of one topic."""

    topic_name: String = field("0-1", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("2+", ignorable=True)
    """Id of the topic."""
    partitions: Array[AlterPartitionPartition] = field()
    """One entry for each partition."""


class AlterPartitionRequest(Request, key=56, versions="0-3", flexible="0+"):
    """A leader changes who is in sync (KIP-497).

    v1: recovery from unclean elections (KIP-704). v2: topic ids (KIP-841). v3: broker epochs (KIP-903).
    """

    broker_id: Int32 = field()
    """Node id of the broker."""
    broker_epoch: Int64 = field(default=-1)
    """Epoch of the broker, which its registration gave it; -1 when not known."""
    topics: Array[AlterPartitionTopic] = field()
    """One entry for each topic."""


class AlterPartitionResponsePartition(Struct):
    """The state of one partition."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    leader_id: Int32 = field()
    """Node id of the leader; -1 when it is not known."""
    leader_epoch: Int32 = field()
    """Leader epoch."""
    isr: Array[Int32] = field()
    """Node ids of the replicas in sync."""
    leader_recovery_state: Int8 = field("1+", ignorable=True)
    """1 while the partition recovers from an unclean election, else 0."""
    partition_epoch: Int32 = field()
    """Grows with every change of the partition."""


class AlterPartitionResponseTopic(Struct):
    """Partitions of one topic."""

    topic_name: String = field("0-1", ignorable=True)
    """Name of the topic."""
    topic_id: Uuid = field("2+", ignorable=True)
    """Id of the topic."""
    partitions: Array[AlterPartitionResponsePartition] = field()
    """One entry for each partition."""


class AlterPartitionResponse(Response, to=AlterPartitionRequest):
    """The state of each partition after the change."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the sender to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    topics: Array[AlterPartitionResponseTopic] = field()
    """One entry for each topic."""


class RegisteredListener(Struct):
    """One listener of the node."""

    name: String = field()
    """Name of the listener."""
    host: String = field()
    """Name or address."""
    port: Uint16 = field()
    """TCP port."""
    security_protocol: Int16 = field()
    """Security protocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""


class RegisteredFeature(Struct):
    """A feature and the levels of it that the node can run at (KIP-584)."""

    name: String = field()
    """Name of the feature."""
    min_supported_version: Int16 = field()
    """Lowest level."""
    max_supported_version: Int16 = field()
    """Highest level."""


class BrokerRegistrationRequest(Request, key=62, versions="0-4", flexible="0+"):
    """A broker registers with the controller (KIP-631).

    v1: migration from ZooKeeper (KIP-866). v2: log directories (KIP-858). v3: the epoch before (KIP-966). v4:
    features from level 0 on (KIP-1022).
    """

    broker_id: Int32 = field()
    """Node id of the broker."""
    cluster_id: String = field()
    """Id of the cluster that the broker belongs to."""
    incarnation_id: Uuid = field()
    """Made anew with each start of the process."""
    listeners: Array[RegisteredListener] = field()
    """Where the node listens."""
    features: Array[RegisteredFeature] = field()
    """Features that the node knows. Versions 0-3 leave out those that begin at level 0."""
    rack: String | None = field()
    """Rack of the broker; null when it has none."""
    is_migrating_zk_broker: Bool = field("1+")
    """The broker is still on ZooKeeper and ready to migrate (KIP-866)."""
    log_dirs: Array[Uuid] = field("2+", ignorable=True)
    """Ids of the log directories that work."""
    previous_broker_epoch: Int64 = field("3+", default=-1, ignorable=True)
    """Epoch before the last clean shutdown; -1 when there was none."""


class BrokerRegistrationResponse(Response, to=BrokerRegistrationRequest):
    """The broker's epoch."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the sender to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    broker_epoch: Int64 = field(default=-1)
    """Epoch that the broker got; -1 when it got none."""


class BrokerHeartbeatRequest(Request, key=63, versions="0-2", flexible="0+"):
    """A broker says that it lives (KIP-631). v1: failed log directories (KIP-858). v2: cordoned ones (KIP-1066)."""

    broker_id: Int32 = field()
    """Node id of the broker."""
    broker_epoch: Int64 = field(default=-1)
    """Epoch of the broker, which its registration gave it; -1 when not known."""
    current_metadata_offset: Int64 = field()
    """How far the broker has come in the metadata log."""
    want_fence: Bool = field()
    """The broker asks to be fenced."""
    want_shut_down: Bool = field()
    """The broker asks to stop."""
    offline_log_dirs: Array[Uuid] = field("1+", tag=0)
    """Ids of the log directories that failed."""
    cordoned_log_dirs: Array[Uuid] | None = field("2+", default=None, tag=1)
    """Ids of the log directories that take no new partitions; null before the broker knows."""


class BrokerHeartbeatResponse(Response, to=BrokerHeartbeatRequest):
    """What the controller thinks of the broker."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the sender to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    is_caught_up: Bool = field()
    """The broker knows nearly all metadata."""
    is_fenced: Bool = field(default=True)
    """The broker is fenced."""
    should_shut_down: Bool = field()
    """The broker may stop now."""


class AllocateProducerIdsRequest(Request, key=67, versions="0", flexible="0+"):
    """A broker asks for a range of producer ids to give away (KIP-730)."""

    broker_id: Int32 = field()
    """Node id of the broker."""
    broker_epoch: Int64 = field(default=-1)
    """Epoch of the broker, which its registration gave it; -1 when not known."""


class AllocateProducerIdsResponse(Response, to=AllocateProducerIdsRequest):
    """A range of producer ids."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the sender to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    producer_id_start: Int64 = field()
    """First id of the range."""
    producer_id_len: Int32 = field()
    """How many ids there are."""


class ControllerRegistrationRequest(Request, key=70, versions="0", flexible="0+"):
    """A controller registers with the active one (KIP-919)."""

    controller_id: Int32 = field()
    """Node id of the controller."""
    incarnation_id: Uuid = field()
    """Made anew with each start of the process."""
    zk_migration_ready: Bool = field()
    """The controller is set up for a migration from ZooKeeper (KIP-866)."""
    listeners: Array[RegisteredListener] = field()
    """Where the node listens."""
    features: Array[RegisteredFeature] = field()
    """Features that the controller knows."""


class ControllerRegistrationResponse(Response, to=ControllerRegistrationRequest):
    """Whether the registration was accepted."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the sender to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    error_message: String | None = field()
    """The error in words; null when there is none."""


class AssignReplicasToDirsPartition(Struct):
    """One replica."""

    partition_index: Int32 = field()
    """Partition number."""


class AssignReplicasToDirsTopic(Struct):
    """Replicas of one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[AssignReplicasToDirsPartition] = field()
    """One entry for each partition."""


class AssignReplicasToDirsDirectory(Struct):
    """A log directory and the replicas in it."""

    id: Uuid = field()
    """Id of the log directory."""
    topics: Array[AssignReplicasToDirsTopic] = field()
    """One entry for each topic."""


class AssignReplicasToDirsRequest(Request, key=73, versions="0", flexible="0+"):
    """A broker reports in which log directories its replicas are (KIP-858)."""

    broker_id: Int32 = field()
    """Node id of the broker."""
    broker_epoch: Int64 = field(default=-1)
    """Epoch of the broker, which its registration gave it; -1 when not known."""
    directories: Array[AssignReplicasToDirsDirectory] = field()
    """One entry for each log directory."""


class AssignReplicasToDirsResponsePartition(Struct):
    """What became of one replica."""

    partition_index: Int32 = field()
    """Partition number."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class AssignReplicasToDirsResponseTopic(Struct):
    """The results for one topic."""

    topic_id: Uuid = field()
    """Id of the topic."""
    partitions: Array[AssignReplicasToDirsResponsePartition] = field()
    """One entry for each partition."""


class AssignReplicasToDirsResponseDirectory(Struct):
    """The results for one log directory."""

    id: Uuid = field()
    """Id of the log directory."""
    topics: Array[AssignReplicasToDirsResponseTopic] = field()
    """One entry for each topic."""


class AssignReplicasToDirsResponse(Response, to=AssignReplicasToDirsRequest):
    """What became of each replica."""

    throttle_time_ms: Int32 = field()
    """Milliseconds that a quota held the answer back, or asks the sender to wait."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""
    directories: Array[AssignReplicasToDirsResponseDirectory] = field()
    """One entry for each log directory."""


class EnvelopeRequest(Request, key=58, versions="0", flexible="0+"):
    """A broker forwards a client's request to the controller (KIP-590)."""

    request_data: Bytes = field()
    """The client's request with its header."""
    request_principal: Bytes | None = field()
    """Who the client is: `DefaultPrincipalData` unless the broker is set up otherwise; may be null."""
    client_host_address: Bytes = field()
    """Address of the client: 4 or 16 bytes."""


class EnvelopeResponse(Response, to=EnvelopeRequest):
    """The controller's answer to the client."""

    response_data: Bytes | None = field(default=None)
    """The answer with its header; null after an error."""
    error_code: Int16 = field()
    """Error code; 0 when all went well."""


class DefaultPrincipalData(ApiMessage, versions="0", flexible="0+"):
    """Who a client is, inside of an envelope (KIP-590). Its version stands before it as an int16."""

    type: String = field()
    """Kind of the principal: User."""
    name: String = field()
    """Name of the principal."""
    token_authenticated: Bool = field()
    """The client showed a delegation token."""
