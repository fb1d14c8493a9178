"""Disks, leaders, replicas, quotas, features and the controllers' quorum.

Read next: `wire.messages.admin_configs`.
"""

from __future__ import annotations

from headrace.wire.schema import (
    Array,
    Bool,
    Float64,
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
    "AddRaftVoterRequest", "AddRaftVoterResponse", "AlterClientQuotasRequest", "AlterClientQuotasResponse",
    "AlterPartitionReassignmentsRequest", "AlterPartitionReassignmentsResponse", "AlterReplicaLogDir",
    "AlterReplicaLogDirPartitionResult", "AlterReplicaLogDirTopic", "AlterReplicaLogDirTopicResult",
    "AlterReplicaLogDirsRequest", "AlterReplicaLogDirsResponse", "AlterableQuotaEntity", "AlterableQuotaEntry",
    "AlteredQuotaEntity", "AlteredQuotaEntry", "ConfigResource", "DescribableLogDirTopic",
    "DescribeClientQuotasRequest", "DescribeClientQuotasResponse", "DescribeLogDirsPartition", "DescribeLogDirsRequest",
    "DescribeLogDirsResponse", "DescribeLogDirsResult", "DescribeLogDirsTopic", "DescribeQuorumRequest",
    "DescribeQuorumResponse", "DescribedQuorumPartition", "DescribedQuorumTopic", "DescribedQuotaEntity",
    "DescribedQuotaEntry", "DescribedQuotaValue", "ElectLeadersRequest", "ElectLeadersResponse", "ElectLeadersTopic",
    "ElectionPartitionResult", "FeatureUpdateKey", "ListConfigResourcesRequest", "ListConfigResourcesResponse",
    "ListPartitionReassignmentsRequest", "ListPartitionReassignmentsResponse", "ListPartitionReassignmentsTopics",
    "OngoingPartitionReassignment", "OngoingTopicReassignment", "QuorumListener", "QuorumNode", "QuorumPartition",
    "QuorumReplica", "QuorumTopic", "QuotaFilterComponent", "QuotaOperation", "ReassignablePartition",
    "ReassignablePartitionResponse", "ReassignableTopic", "ReassignableTopicResponse", "RemoveRaftVoterRequest",
    "RemoveRaftVoterResponse", "ReplicaElectionResult", "UnregisterBrokerRequest", "UnregisterBrokerResponse",
    "UnregisterControllerRequest", "UnregisterControllerResponse", "UpdatableFeatureResult", "UpdateFeaturesRequest",
    "UpdateFeaturesResponse", "VoterListener",
]


class AlterReplicaLogDirTopic(Struct):
    """Partitions of a topic to move."""

    name: String = field()  # name of the topic
    partitions: Array[Int32] = field()  # partition numbers


class AlterReplicaLogDir(Struct):
    """A directory and what moves into it."""

    path: String = field()  # the directory
    topics: Array[AlterReplicaLogDirTopic] = field()  # one for each topic


class AlterReplicaLogDirsRequest(Request, key=34, versions="0-2", flexible="2+"):
    """Move replicas between the directories of one broker (KIP-113)."""

    dirs: Array[AlterReplicaLogDir] = field()  # one for each directory


class AlterReplicaLogDirPartitionResult(Struct):
    """Whether one partition is on its way."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well


class AlterReplicaLogDirTopicResult(Struct):
    """Whether the partitions of one topic are on their way."""

    topic_name: String = field()  # topic to begin with
    partitions: Array[AlterReplicaLogDirPartitionResult] = field()  # one for each partition


class AlterReplicaLogDirsResponse(Response, to=AlterReplicaLogDirsRequest):
    """Whether each partition is on its way."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    results: Array[AlterReplicaLogDirTopicResult] = field()  # one for each that was asked for


class DescribableLogDirTopic(Struct):
    """Partitions of a topic to look at."""

    topic: String = field()
    partitions: Array[Int32] = field()  # partition numbers


class DescribeLogDirsRequest(Request, key=35, versions="0-5", flexible="2+"):
    """Ask what lies in the directories of one broker (KIP-113).

    v4: free space (KIP-827). v5: cordoned ones (KIP-1066).
    """

    topics: Array[DescribableLogDirTopic] | None = field()  # null for all


class DescribeLogDirsPartition(Struct):
    """One replica in a directory."""

    partition_index: Int32 = field()  # partition number
    partition_size: Int64 = field()  # bytes in the log
    offset_lag: Int64 = field()  # records that the replica is behind
    is_future_key: Bool = field()  # the replica is being moved here


class DescribeLogDirsTopic(Struct):
    """The replicas of one topic in a directory."""

    name: String = field()  # name of the topic
    partitions: Array[DescribeLogDirsPartition] = field()  # one for each partition


class DescribeLogDirsResult(Struct):
    """One directory."""

    error_code: Int16 = field()  # 0 when all went well
    log_dir: String = field()  # the directory
    topics: Array[DescribeLogDirsTopic] = field()  # one for each topic
    total_bytes: Int64 = field("4+", default=-1, ignorable=True)  # size of the volume, -1 when not known
    usable_bytes: Int64 = field("4+", default=-1, ignorable=True)  # free bytes of the volume, -1 when not known
    is_cordoned: Bool = field("5+", ignorable=True)  # no new replicas are placed here


class DescribeLogDirsResponse(Response, to=DescribeLogDirsRequest):
    """The directories of the broker."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field("3+", ignorable=True)  # 0 when all went well
    results: Array[DescribeLogDirsResult] = field()  # one for each that was asked for


class ElectLeadersTopic(Struct):
    """Partitions of a topic."""

    topic: String = field()
    partitions: Array[Int32] = field()  # partition numbers


class ElectLeadersRequest(Request, key=43, versions="0-2", flexible="2+"):
    """Give partitions their preferred leader, or any at all (KIP-183, KIP-460)."""

    election_type: Int8 = field("1+")  # 0 preferred leader, 1 any replica, even one not in sync
    topic_partitions: Array[ElectLeadersTopic] | None = field()  # null for all
    timeout_ms: Int32 = field(default=60000)  # how long the broker may take


class ElectionPartitionResult(Struct):
    """Whether one partition has got its leader."""

    partition_id: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none


class ReplicaElectionResult(Struct):
    """Whether the partitions of one topic have got their leaders."""

    topic: String = field()
    partition_result: Array[ElectionPartitionResult] = field()  # one for each partition


class ElectLeadersResponse(Response, to=ElectLeadersRequest):
    """Whether each partition has got its leader."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field("1+")  # 0 when all went well
    replica_election_results: Array[ReplicaElectionResult] = field()  # one for each topic


class ReassignablePartition(Struct):
    """A partition and its new replicas."""

    partition_index: Int32 = field()  # partition number
    replicas: Array[Int32] | None = field(default=None)  # node ids of the new replicas; null stops a move


class ReassignableTopic(Struct):
    """A topic whose partitions move."""

    name: String = field()  # name of the topic
    partitions: Array[ReassignablePartition] = field()  # one for each partition


class AlterPartitionReassignmentsRequest(Request, key=45, versions="0-1", flexible="0+"):
    """Move partitions to other brokers, or stop that (KIP-455).

    v1: the number of replicas is kept unless allowed (KIP-860).
    """

    timeout_ms: Int32 = field(default=60000)  # how long the broker may take
    allow_replication_factor_change: Bool = field("1+", default=True)  # the number of replicas may change
    topics: Array[ReassignableTopic] = field()  # one for each topic


class ReassignablePartitionResponse(Struct):
    """Whether one partition moves."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none


class ReassignableTopicResponse(Struct):
    """Whether the partitions of one topic move."""

    name: String = field()  # name of the topic
    partitions: Array[ReassignablePartitionResponse] = field()  # one for each partition


class AlterPartitionReassignmentsResponse(Response, to=AlterPartitionReassignmentsRequest):
    """Whether each partition moves."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    # the number of replicas may change
    allow_replication_factor_change: Bool = field("1+", default=True, ignorable=True)
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none
    responses: Array[ReassignableTopicResponse] = field()  # one for each topic


class ListPartitionReassignmentsTopics(Struct):
    """Partitions of a topic to look up."""

    name: String = field()  # name of the topic
    partition_indexes: Array[Int32] = field()  # partition numbers


class ListPartitionReassignmentsRequest(Request, key=46, versions="0", flexible="0+"):
    """Ask which partitions are moving (KIP-455)."""

    timeout_ms: Int32 = field(default=60000)  # how long the broker may take
    topics: Array[ListPartitionReassignmentsTopics] | None = field(default=None)  # null for all


class OngoingPartitionReassignment(Struct):
    """A partition that is moving."""

    partition_index: Int32 = field()  # partition number
    replicas: Array[Int32] = field()  # node ids of the replicas
    adding_replicas: Array[Int32] = field()  # node ids of the replicas that come
    removing_replicas: Array[Int32] = field()  # node ids of the replicas that go


class OngoingTopicReassignment(Struct):
    """A topic with moving partitions."""

    name: String = field()  # name of the topic
    partitions: Array[OngoingPartitionReassignment] = field()  # one for each partition


class ListPartitionReassignmentsResponse(Response, to=ListPartitionReassignmentsRequest):
    """The partitions that are moving."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none
    topics: Array[OngoingTopicReassignment] = field()  # one for each topic


class QuotaFilterComponent(Struct):
    """What an entity must have to fit."""

    entity_type: String = field()  # user, client-id or ip
    match_type: Int8 = field()  # 0 this name, 1 the default, 2 any name
    match: String | None = field()  # the name, for `match_type` 0


class DescribeClientQuotasRequest(Request, key=48, versions="0-1", flexible="1+"):
    """Ask for quotas (KIP-546)."""

    components: Array[QuotaFilterComponent] = field()  # what an entity must have
    strict: Bool = field()  # leave out entities that have more than the filter names


class DescribedQuotaEntity(Struct):
    """A part of an entity: a user, a client id or an address."""

    entity_type: String = field()  # user, client-id or ip
    entity_name: String | None = field()  # null for the default


class DescribedQuotaValue(Struct):
    """One quota."""

    key: String = field()  # name of the quota, for example producer_byte_rate
    value: Float64 = field()  # value of the quota


class DescribedQuotaEntry(Struct):
    """The quotas of one entity."""

    entity: Array[DescribedQuotaEntity] = field()  # the parts that make the entity
    values: Array[DescribedQuotaValue] = field()  # one for each quota


class DescribeClientQuotasResponse(Response, to=DescribeClientQuotasRequest):
    """The quotas that fit."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none
    entries: Array[DescribedQuotaEntry] | None = field()  # one for each entity


class AlterableQuotaEntity(Struct):
    """A part of an entity: a user, a client id or an address."""

    entity_type: String = field()  # user, client-id or ip
    entity_name: String | None = field()  # null for the default


class QuotaOperation(Struct):
    """One quota to set or remove."""

    key: String = field()  # name of the quota, for example producer_byte_rate
    value: Float64 = field()  # value of the quota
    remove: Bool = field()  # remove the quota rather than set it


class AlterableQuotaEntry(Struct):
    """An entity and what happens to its quotas."""

    entity: Array[AlterableQuotaEntity] = field()  # the parts that make the entity
    ops: Array[QuotaOperation] = field()  # quotas to set or remove


class AlterClientQuotasRequest(Request, key=49, versions="0-1", flexible="1+"):
    """Set and remove quotas (KIP-546)."""

    entries: Array[AlterableQuotaEntry] = field()  # one for each entity
    validate_only: Bool = field()  # check the request and change nothing


class AlteredQuotaEntity(Struct):
    """A part of an entity: a user, a client id or an address."""

    entity_type: String = field()  # user, client-id or ip
    entity_name: String | None = field()  # null for the default


class AlteredQuotaEntry(Struct):
    """Whether the quotas of one entity were changed."""

    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none
    entity: Array[AlteredQuotaEntity] = field()  # the parts that make the entity


class AlterClientQuotasResponse(Response, to=AlterClientQuotasRequest):
    """Whether the quotas of each entity were changed."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    entries: Array[AlteredQuotaEntry] = field()  # one for each entity


class QuorumPartition(Struct):
    """A partition of the metadata log."""

    partition_index: Int32 = field()  # partition number


class QuorumTopic(Struct):
    """The metadata topic."""

    topic_name: String = field()  # topic to begin with
    partitions: Array[QuorumPartition] = field()  # one for each partition


class DescribeQuorumRequest(Request, key=55, versions="0-2", flexible="0+"):
    """Ask how the controllers' quorum stands (KIP-595).

    v1: times (KIP-836). v2: directories and listeners (KIP-853).
    """

    topics: Array[QuorumTopic] = field()  # one for each topic


class QuorumReplica(Struct):
    """A voter or observer and how far it has come."""

    replica_id: Int32 = field()  # node id of a broker that asks, -1 for a client
    replica_directory_id: Uuid = field("2+")  # directory of a follower; zero for a consumer
    log_end_offset: Int64 = field()  # how far the replica has come, -1 when not known
    # when it last fetched, in milliseconds since the epoch
    last_fetch_timestamp: Int64 = field("1+", default=-1, ignorable=True)
    # when it last had everything, in milliseconds since the epoch
    last_caught_up_timestamp: Int64 = field("1+", default=-1, ignorable=True)


class DescribedQuorumPartition(Struct):
    """The quorum of one partition."""

    partition_index: Int32 = field()  # partition number
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field("2+", ignorable=True)  # the error in words, null when there is none
    leader_id: Int32 = field()  # node id of the leader, -1 when there is none
    leader_epoch: Int32 = field()  # leader epoch, -1 when not known
    high_watermark: Int64 = field()  # offset below which records are committed
    current_voters: Array[QuorumReplica] = field()  # controllers that vote
    observers: Array[QuorumReplica] = field()  # nodes that only follow


class DescribedQuorumTopic(Struct):
    """The quorum of the metadata topic."""

    topic_name: String = field()  # topic to begin with
    partitions: Array[DescribedQuorumPartition] = field()  # one for each partition


class QuorumListener(Struct):
    """Where a controller listens."""

    name: String = field("2+")  # name of the listener
    host: String = field("2+")  # name or address
    port: Uint16 = field("2+")


class QuorumNode(Struct):
    """A controller."""

    node_id: Int32 = field("2+")
    listeners: Array[QuorumListener] = field("2+")  # where it listens


class DescribeQuorumResponse(Response, to=DescribeQuorumRequest):
    """The quorum."""

    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field("2+", ignorable=True)  # the error in words, null when there is none
    topics: Array[DescribedQuorumTopic] = field()  # one for each topic
    nodes: Array[QuorumNode] = field("2+")  # one for each node


class FeatureUpdateKey(Struct):
    """A feature and the level that it shall have."""

    feature: String = field()  # name of the feature
    max_version_level: Int16 = field()  # the level to finalize; below 1 deletes it
    allow_downgrade: Bool = field("0")  # the level may go down
    upgrade_type: Int8 = field("1+", default=1)  # 1 upgrade only, 2 safe downgrade, 3 unsafe downgrade


class UpdateFeaturesRequest(Request, key=57, versions="0-2", flexible="0+"):
    """Raise or lower finalized features (KIP-584).

    v1: kinds of downgrade (KIP-778). v2: one error for all (KIP-1022).
    """

    timeout_ms: Int32 = field(default=60000)  # how long the broker may take
    feature_updates: Array[FeatureUpdateKey] = field()  # one for each feature
    validate_only: Bool = field("1+")  # check the request and change nothing


class UpdatableFeatureResult(Struct):
    """Whether one feature was changed."""

    feature: String = field()  # name of the feature
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none


class UpdateFeaturesResponse(Response, to=UpdateFeaturesRequest):
    """Whether the features were changed."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none
    results: Array[UpdatableFeatureResult] = field("0-1", ignorable=True)  # one for each that was asked for


class UnregisterBrokerRequest(Request, key=64, versions="0", flexible="0+"):
    """Forget a broker that will not come back (KIP-500)."""

    broker_id: Int32 = field()


class UnregisterBrokerResponse(Response, to=UnregisterBrokerRequest):
    """Whether the broker was forgotten."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none


class VoterListener(Struct):
    """Where the new voter listens."""

    name: String = field()  # name of the listener
    host: String = field()  # name or address
    port: Uint16 = field()


class AddRaftVoterRequest(Request, key=80, versions="0-1", flexible="0+"):
    """Make a controller a voter (KIP-853). v1: when to answer (KIP-1186)."""

    cluster_id: String | None = field()  # null when it is not known
    timeout_ms: Int32 = field()  # how long the broker may take
    voter_id: Int32 = field()  # node id of the controller
    voter_directory_id: Uuid = field()  # id of its log directory
    listeners: Array[VoterListener] = field()  # where it listens
    # answer when the change is committed, not when it is written
    ack_when_committed: Bool = field("1+", default=True)


class AddRaftVoterResponse(Response, to=AddRaftVoterRequest):
    """Whether the controller is a voter now."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(ignorable=True)  # the error in words, null when there is none


class RemoveRaftVoterRequest(Request, key=81, versions="0", flexible="0+"):
    """Take the vote from a controller (KIP-853)."""

    cluster_id: String | None = field()  # null when it is not known
    voter_id: Int32 = field()  # node id of the controller
    voter_directory_id: Uuid = field()  # id of its log directory


class RemoveRaftVoterResponse(Response, to=RemoveRaftVoterRequest):
    """Whether the controller is no voter any more."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field(ignorable=True)  # the error in words, null when there is none


class UnregisterControllerRequest(Request, key=94, versions="0", flexible="0+"):
    """Forget a controller that will not come back (KIP-1312)."""

    controller_id: Int32 = field()  # node id of the controller, -1 when not known


class UnregisterControllerResponse(Response, to=UnregisterControllerRequest):
    """Whether the controller was forgotten."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    error_message: String | None = field()  # the error in words, null when there is none


class ListConfigResourcesRequest(Request, key=74, versions="0-1", flexible="0+"):
    """Ask which resources have configuration of their own (KIP-714). v1: of any type (KIP-1142)."""

    resource_types: Array[Int8] = field("1+")  # types wanted; empty for those that can be configured


class ConfigResource(Struct):
    """A resource with configuration."""

    resource_name: String = field()  # name of the resource
    # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_type: Int8 = field("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Response, to=ListConfigResourcesRequest):
    """The resources found."""

    throttle_time_ms: Int32 = field()  # how long a quota held the answer back, or asks to wait
    error_code: Int16 = field()  # 0 when all went well
    config_resources: Array[ConfigResource] = field()  # one for each resource
