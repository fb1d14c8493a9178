"""What administration asks about nodes: directories, elections, controllers, moving replicas, producers; and access
rules, which this broker does not have.
"""

from __future__ import annotations

from headrace.broker.cluster import ApiCall
from headrace.broker.served_api import ServedApi
from headrace.broker.storage.catalog import Topic
from headrace.broker.storage.partition import NO_LEADER, ApiError, Partition
from headrace.errors import KafkaError
from headrace.wire.messages.admin.nodes import (
    DescribedQuorumPartition,
    DescribedQuorumTopic,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumListener,
    QuorumNode,
    QuorumReplica,
)
from headrace.wire.messages.admin.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
    ElectionPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopic,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)
from headrace.wire.messages.admin.security import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from headrace.wire.messages.producer.transactions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducersPartitionResponse,
    ProducerState,
    ProducersTopicRequest,
    ProducersTopicResponse,
)
from headrace.wire.schema import ZERO_UUID

__all__ = ["SERVES", "alter_partition_reassignments", "alter_replica_log_dirs", "create_acls", "delete_acls",
           "describe_acls", "describe_log_dirs", "describe_producers", "describe_quorum", "elect_leaders",
           "list_partition_reassignments"]

_NO_IDS = 1 << 15
_PREFERRED, _ANY = 0, 1
_LISTENERS_FROM = 2
"""Version of DescribeQuorum from which on it says where controllers listen."""
_METADATA = "__cluster_metadata"
"""Where controllers of Kafka keep what this broker keeps elsewhere."""
_NO_RULES = "There are no access rules here: everybody may do everything"


def describe_log_dirs(call: ApiCall, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """The one directory of this node, and the sizes of the replicas in it."""
    wanted = request.topics
    if wanted is None:
        wanted = [DescribableLogDirTopic(topic=topic.name, partitions=list(range(len(topic.partitions))))
                  for topic in call.cluster.catalog.topics.values()]
    topics = [DescribeLogDirsTopic(name=each.topic, partitions=_sizes(call, each)) for each in wanted]
    total, free = call.cluster.catalog.volume_bytes()
    return DescribeLogDirsResponse(error_code=0, results=[DescribeLogDirsResult(
        error_code=0, log_dir=call.cluster.catalog.place, topics=[each for each in topics if each.partitions],
        total_bytes=total, usable_bytes=free)])


def _sizes(call: ApiCall, wanted: DescribableLogDirTopic) -> list[DescribeLogDirsPartition]:
    topic = call.cluster.catalog.topics.get(wanted.topic)
    return [DescribeLogDirsPartition(partition_index=each.index, partition_size=each.log.size_bytes, offset_lag=0,
                                     is_future_key=False)
            for each in (topic.partitions if topic else [])
            if each.index in wanted.partitions and call.node_id in each.replicas]


def alter_replica_log_dirs(call: ApiCall, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """All replicas are in the one directory already; there is no other."""
    found: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for wanted in request.dirs:
        is_here = wanted.path == call.cluster.catalog.place
        for topic in wanted.topics:
            for index in topic.partitions:
                code = _stays(call, topic.name, index) if is_here else KafkaError.LOG_DIR_NOT_FOUND
                found.setdefault(topic.name, []).append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=parts)
                                                for name, parts in found.items()])


def _stays(call: ApiCall, name: str, index: int) -> int:
    try:
        partition = _partition(call.topic(name, ZERO_UUID, _NO_IDS), index)
    except ApiError as error:
        return error.code
    return 0 if call.node_id in partition.replicas else KafkaError.NOT_LEADER_FOR_PARTITION


def elect_leaders(call: ApiCall, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Give partitions back to their preferred replica, or to any that is up."""
    wanted = request.topic_partitions
    every = wanted is None
    if wanted is None:
        wanted = [ElectLeadersTopic(topic=topic.name, partitions=list(range(len(topic.partitions))))
                  for topic in call.cluster.catalog.topics.values()]
    results = []
    for each in wanted:
        found = [_elect(call, each.topic, index, request.election_type) for index in each.partitions]
        # Of all partitions only those are named in which something happened.
        found = [one for one in found if not every or one.error_code != KafkaError.ELECTION_NOT_NEEDED]
        results.append(ReplicaElectionResult(topic=each.topic, partition_result=found))
    call.cluster.catalog.save()
    return ElectLeadersResponse(error_code=0, replica_election_results=results)


def _elect(call: ApiCall, name: str, index: int, kind: int) -> ElectionPartitionResult:
    result = ElectionPartitionResult(partition_id=index, error_code=0, error_message=None)
    try:
        if kind not in (_PREFERRED, _ANY):
            raise ApiError(KafkaError.INVALID_REQUEST, f"Election type {kind} is not known")
        partition = _partition(call.topic(name, ZERO_UUID, _NO_IDS), index)
        preferred = partition.replicas[0]
        if partition.leader_id == preferred or (kind == _ANY and partition.leader_id != NO_LEADER):
            raise ApiError(KafkaError.ELECTION_NOT_NEEDED)
        if not call.cluster.is_up(preferred):
            raise ApiError(KafkaError.PREFERRED_LEADER_NOT_AVAILABLE if kind == _PREFERRED
                          else KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE)
        partition.lead(preferred)
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.reason
    return result


def _partition(topic: Topic, index: int) -> Partition:
    if not 0 <= index < len(topic.partitions):
        raise ApiError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    return topic.partitions[index]


def describe_quorum(call: ApiCall, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Every node votes, and the controller leads: of a log that nobody sees, so that it stays empty."""
    asked = [(topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions]
    if asked != [(_METADATA, 0)]:
        return DescribeQuorumResponse(error_code=0, error_message="", nodes=[], topics=[
            DescribedQuorumTopic(topic_name=topic.topic_name, partitions=[
                _quorum(each.partition_index, KafkaError.UNKNOWN_TOPIC_OR_PART, 0, []) for each in topic.partitions])
            for topic in request.topics])
    nodes = call.cluster.nodes.values()
    return DescribeQuorumResponse(
        error_code=0, error_message="",
        topics=[DescribedQuorumTopic(topic_name=_METADATA, partitions=[_quorum(0, 0, call.cluster.controller_id, [
            _voter(each.id, call.now.ms if each.is_up else -1) for each in nodes])])],
        nodes=[QuorumNode(node_id=each.id, listeners=[
            QuorumListener(name="CONTROLLER", host=each.host, port=each.port)])
               for each in (nodes if call.version >= _LISTENERS_FROM else ())])


def _quorum(index: int, error_code: int, leader_id: int, voters: list[QuorumReplica]) -> DescribedQuorumPartition:
    return DescribedQuorumPartition(partition_index=index, error_code=error_code, error_message="",
                                    leader_id=leader_id, leader_epoch=0, high_watermark=0, current_voters=voters,
                                    observers=[])


def _voter(node_id: int, seen_ms: int) -> QuorumReplica:
    return QuorumReplica(replica_id=node_id, replica_directory_id=ZERO_UUID, log_end_offset=0,
                         last_fetch_timestamp=seen_ms, last_caught_up_timestamp=seen_ms)


def alter_partition_reassignments(
    call: ApiCall, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Put replicas elsewhere, which is done at once: they share one log."""
    may_change = request.allow_replication_factor_change
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change, error_code=0, error_message=None if request.topics else "",
        responses=[
            ReassignableTopicResponse(name=topic.name, partitions=[
                _reassign(call, topic.name, each, may_change) for each in topic.partitions])
            for topic in request.topics])


def _reassign(
    call: ApiCall, name: str, wanted: ReassignablePartition, may_change: bool
) -> ReassignablePartitionResponse:
    result = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_code=0, error_message=None)
    try:
        partition = _partition(call.topic(name, ZERO_UUID, _NO_IDS), wanted.partition_index)
        if wanted.replicas is None:
            raise ApiError(KafkaError.NO_REASSIGNMENT_IN_PROGRESS)
        call.cluster.reassign(partition, wanted.replicas, may_change_factor=may_change)
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.reason
    return result


def list_partition_reassignments(
    call: ApiCall, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Nothing: replicas share one log, and are where they were put at once."""
    return ListPartitionReassignmentsResponse(error_code=0, error_message=None, topics=[])


def describe_producers(call: ApiCall, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """The producers that partitions know, and their open transactions (KIP-664)."""
    return DescribeProducersResponse(topics=[ProducersTopicResponse(name=topic.name, partitions=[
        _producers(call, topic, index) for index in topic.partition_indexes]) for topic in request.topics])


def _producers(call: ApiCall, wanted: ProducersTopicRequest, index: int) -> ProducersPartitionResponse:
    reply = ProducersPartitionResponse(partition_index=index, error_code=0, active_producers=[])
    try:
        partition = call.led_partition(call.topic(wanted.name, ZERO_UUID, _NO_IDS), index)
    except ApiError as error:
        reply.error_code, reply.error_message = error.code, error.reason
        return reply
    reply.active_producers = [
        ProducerState(producer_id=each.id, producer_epoch=each.epoch, last_sequence=each.last_sequence,
                      last_timestamp=each.timestamp_ms, coordinator_epoch=each.coordinator_epoch,
                      current_txn_start_offset=each.open_since)
        for each in partition.producers.known()]
    return reply


def describe_acls(call: ApiCall, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """There are no access rules, as in a Kafka without an authorizer."""
    return DescribeAclsResponse(error_code=KafkaError.SECURITY_DISABLED, error_message=_NO_RULES, resources=[])


def create_acls(call: ApiCall, request: CreateAclsRequest) -> CreateAclsResponse:
    """There are no access rules."""
    return CreateAclsResponse(results=[AclCreationResult(error_code=KafkaError.SECURITY_DISABLED,
                                                         error_message=_NO_RULES) for _ in request.creations])


def delete_acls(call: ApiCall, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """There are no access rules."""
    return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(
        error_code=KafkaError.SECURITY_DISABLED, error_message=_NO_RULES, matching_acls=[]) for _ in request.filters])


SERVES = (
    ServedApi(DescribeProducersRequest, describe_producers, "Producers never expire."),
    ServedApi(DescribeLogDirsRequest, describe_log_dirs, "One directory, or `memory`."),
    ServedApi(AlterReplicaLogDirsRequest, alter_replica_log_dirs, "There is no other directory to move to."),
    ServedApi(ElectLeadersRequest, elect_leaders, "No election is unclean: all replicas are in sync."),
    ServedApi(DescribeQuorumRequest, describe_quorum,
              "All nodes vote, and the log of the cluster's metadata is shown empty."),
    ServedApi(AlterPartitionReassignmentsRequest, alter_partition_reassignments,
              "Replicas are where they were put at once, also on a node that is down."),
    ServedApi(ListPartitionReassignmentsRequest, list_partition_reassignments, "Always empty."),
    ServedApi(DescribeAclsRequest, describe_acls, "Always SECURITY_DISABLED, as in Kafka without an authorizer."),
    ServedApi(CreateAclsRequest, create_acls, "Always SECURITY_DISABLED."),
    ServedApi(DeleteAclsRequest, delete_acls, "Always SECURITY_DISABLED."),
)
