"""Requests about the cluster, its features, controllers and directories, and what their replies mean: pure functions.

Read next: `client.admin.cluster_calls`, which sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin.admin_results import (
    failure,
    key_of,
    milliseconds,
    numbers_by_topic,
    operations,
    raise_failure,
    uuid_of,
)
from headrace.types.admin import DescribeClusterResult
from headrace.types.cluster import Node
from headrace.types.cluster_parts import (
    FeatureMetadata,
    LogDirDescription,
    QuorumInfo,
    QuorumReplicaState,
    ReplicaInfo,
)
from headrace.types.records import TopicPartition, Uuid
from headrace.wire.messages.admin import nodes as wire
from headrace.wire.messages.admin import replicas
from headrace.wire.messages.cluster.metadata import (
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from headrace.wire.messages.cluster.session import ApiVersionsResponse

__all__ = [
    "add_voter",
    "describe_log_dirs",
    "describe_old_cluster",
    "describe_quorum",
    "move_replicas",
    "read_api_versions",
    "read_cluster",
    "read_features",
    "read_log_dirs",
    "read_moved_replicas",
    "read_old_cluster",
    "read_quorum",
    "read_updated_features",
    "remove_voter",
    "update_features",
]

_METADATA_TOPIC = "__cluster_metadata"
_ALTER = "ALTER on the cluster"
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3


def read_cluster(reply: DescribeClusterResponse) -> DescribeClusterResult:
    """The cluster and its brokers.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("the cluster", reply.error_code, reply.error_message, "DESCRIBE on the cluster")
    nodes = {b.broker_id: Node(b.broker_id, b.host, b.port, b.rack) for b in reply.brokers}
    return DescribeClusterResult(nodes.get(reply.controller_id), list(nodes.values()), reply.cluster_id,
                                 operations(reply.cluster_authorized_operations))


def describe_old_cluster(authorized_operations: bool) -> MetadataRequest:
    """Ask a broker from before Kafka 2.8 for the cluster."""
    return MetadataRequest(topics=[], allow_auto_topic_creation=False,
                           include_cluster_authorized_operations=authorized_operations)


def read_old_cluster(reply: MetadataResponse) -> DescribeClusterResult:
    """The cluster as such a broker sees it."""
    nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in reply.brokers}
    return DescribeClusterResult(nodes.get(reply.controller_id), list(nodes.values()), reply.cluster_id,
                                 operations(reply.cluster_authorized_operations))


def read_features(reply: ApiVersionsResponse) -> FeatureMetadata:
    """The features that a broker tells with its versions.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("features", reply.error_code)
    return FeatureMetadata(
        {each.name: each.max_version_level for each in reply.finalized_features},
        {each.name: (each.min_version, each.max_version) for each in reply.supported_features},
        reply.finalized_features_epoch if reply.finalized_features_epoch >= 0 else None)


def read_api_versions(reply: ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    """The versions that a broker understands, by API key.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("versions", reply.error_code)
    return {each.api_key: (each.min_version, each.max_version) for each in reply.api_keys}


def update_features(
    levels: Mapping[str, int], downgrade: bool, unsafe: bool, timeout_s: float, validate_only: bool
) -> wire.UpdateFeaturesRequest:
    """Ask for other levels; 0 takes a feature out of use."""
    kind = _UNSAFE_DOWNGRADE if unsafe else _SAFE_DOWNGRADE if downgrade else _UPGRADE
    return wire.UpdateFeaturesRequest(
        timeout_ms=milliseconds(timeout_s), validate_only=validate_only,
        feature_updates=[
            wire.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level in levels.items()])


def read_updated_features(
    reply: wire.UpdateFeaturesResponse, names: Iterable[str]
) -> dict[str, KafkaError | None]:
    """How it ended for each feature; newer brokers answer for all at once.

    Raises:
        KafkaException: none was changed because of an error.
    """
    raise_failure("features", reply.error_code, reply.error_message, _ALTER)
    found: dict[str, KafkaError | None] = dict.fromkeys(names)
    found |= {each.feature: failure(f'feature "{each.feature}"', each.error_code, each.error_message, _ALTER)
              for each in reply.results}
    return found


def describe_quorum() -> wire.DescribeQuorumRequest:
    """Ask how the controllers stand."""
    return wire.DescribeQuorumRequest(topics=[
        wire.QuorumTopic(topic_name=_METADATA_TOPIC, partitions=[wire.QuorumPartition(partition_index=0)])])


def read_quorum(reply: wire.DescribeQuorumResponse) -> QuorumInfo:
    """How they stand.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("the quorum", reply.error_code, reply.error_message, "DESCRIBE on the cluster")
    for topic in reply.topics:
        for part in topic.partitions:
            raise_failure("the quorum", part.error_code, part.error_message, "DESCRIBE on the cluster")
            return QuorumInfo(part.leader_id, part.leader_epoch, part.high_watermark,
                              [_replica(each) for each in part.current_voters],
                              [_replica(each) for each in part.observers])
    raise KafkaException(KafkaError(KafkaError._FAIL, "the quorum: the broker's answer does not mention it"))


def _replica(state: wire.QuorumReplica) -> QuorumReplicaState:
    directory = uuid_of(state.replica_directory_id) if state.replica_directory_id.int else None
    return QuorumReplicaState(state.replica_id, state.log_end_offset, state.last_fetch_timestamp,
                              state.last_caught_up_timestamp, directory)


def add_voter(
    voter_id: int, directory_id: Uuid, endpoints: Mapping[str, tuple[str, int]], timeout_s: float
) -> wire.AddRaftVoterRequest:
    """Ask to make a controller a voter; it listens at the endpoints, by listener name."""
    return wire.AddRaftVoterRequest(
        cluster_id=None, timeout_ms=milliseconds(timeout_s), voter_id=voter_id,
        voter_directory_id=UUID(int=int(directory_id)),
        listeners=[wire.VoterListener(name=name, host=host, port=port) for name, (host, port) in endpoints.items()])


def remove_voter(voter_id: int, directory_id: Uuid) -> wire.RemoveRaftVoterRequest:
    """Ask to take the vote from a controller."""
    return wire.RemoveRaftVoterRequest(cluster_id=None, voter_id=voter_id,
                                       voter_directory_id=UUID(int=int(directory_id)))


def describe_log_dirs(partitions: Iterable[TopicPartition] | None) -> replicas.DescribeLogDirsRequest:
    """Ask one broker what lies in its directories; without partitions, all that does."""
    topics = None if partitions is None else [
        replicas.DescribableLogDirTopic(topic=topic, partitions=numbers)
        for topic, numbers in numbers_by_topic(partitions).items()]
    return replicas.DescribeLogDirsRequest(topics=topics)


def read_log_dirs(reply: replicas.DescribeLogDirsResponse) -> dict[str, LogDirDescription | KafkaError]:
    """The directories of a broker by path.

    Raises:
        KafkaException: there is no answer because of an error.
    """
    raise_failure("log directories", reply.error_code, None, "DESCRIBE on the cluster")
    if not reply.results:  # how brokers up to version 2 of the request refuse
        raise_failure("log directories", KafkaError.CLUSTER_AUTHORIZATION_FAILED, None, "DESCRIBE on the cluster")
    return {each.log_dir: failure(f'directory "{each.log_dir}"', each.error_code) or _directory(each)
            for each in reply.results}


def _directory(result: replicas.DescribeLogDirsResult) -> LogDirDescription:
    found = {TopicPartition(topic.name, part.partition_index):
             ReplicaInfo(part.partition_size, part.offset_lag, part.is_future_key)
             for topic in result.topics for part in topic.partitions}
    return LogDirDescription(found, result.total_bytes, result.usable_bytes, result.is_cordoned)


def move_replicas(places: Mapping[TopicPartition, str]) -> replicas.AlterReplicaLogDirsRequest:
    """Ask one broker to move replicas to other directories, given by path."""
    by_path: dict[str, list[TopicPartition]] = {}
    for tp, path in places.items():
        by_path.setdefault(path, []).append(tp)
    return replicas.AlterReplicaLogDirsRequest(dirs=[
        replicas.AlterReplicaLogDir(path=path, topics=[
            replicas.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
            for topic, numbers in numbers_by_topic(partitions).items()])
        for path, partitions in by_path.items()])


def read_moved_replicas(reply: replicas.AlterReplicaLogDirsResponse) -> dict[TopicPartition, KafkaError | None]:
    """Whether each replica is on its way."""
    found: dict[TopicPartition, Any] = {}
    for topic in reply.results:
        for part in topic.partitions:
            tp = TopicPartition(topic.topic_name, part.partition_index)
            found[tp] = failure(key_of(tp), part.error_code, None, _ALTER)
    return found
