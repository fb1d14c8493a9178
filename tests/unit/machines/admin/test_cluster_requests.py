"""The cluster as values: brokers, features, controllers and directories."""

from uuid import UUID

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.machines.admin import cluster_requests as admin
from headrace.types.acls import AclOperation
from headrace.types.cluster_parts import LogDirDescription, QuorumReplicaState, ReplicaInfo
from headrace.types.records import TopicPartition, Uuid
from headrace.wire.messages.admin import nodes as wire
from headrace.wire.messages.admin import replicas
from headrace.wire.messages.cluster.metadata import DescribeClusterBroker, DescribeClusterResponse
from headrace.wire.messages.cluster.session import ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from tests.support.travelling import travels

A0 = TopicPartition("a", 0)


def test_the_controller_is_one_of_the_brokers() -> None:
    brokers = [DescribeClusterBroker(broker_id=1, host="one", port=1),
               DescribeClusterBroker(broker_id=2, host="two", port=2, rack="r")]
    found = admin.read_cluster(DescribeClusterResponse(
        cluster_id="c", controller_id=2, brokers=brokers, cluster_authorized_operations=1 << 7))
    assert found.controller == found.nodes[1]
    assert (found.cluster_id, found.nodes[1].rack, found.authorized_operations) == ("c", "r", [AclOperation.ALTER])
    with pytest.raises(KafkaException, match="DESCRIBE on the cluster"):
        admin.read_cluster(DescribeClusterResponse(error_code=31))


def test_features_have_the_level_in_use_and_those_that_are_possible() -> None:
    found = admin.read_features(ApiVersionsResponse(
        supported_features=[SupportedFeatureKey(name="f", min_version=1, max_version=4)],
        finalized_features=[FinalizedFeatureKey(name="f", max_version_level=2, min_version_level=2)],
        finalized_features_epoch=9))
    assert (found.finalized, found.supported, found.finalized_epoch) == ({"f": 2}, {"f": (1, 4)}, 9)


@pytest.mark.parametrize(("downgrade", "unsafe", "kind"), [(False, False, 1), (True, False, 2), (True, True, 3)])
def test_how_far_a_level_may_go_down_is_told(downgrade: bool, unsafe: bool, kind: int) -> None:
    request = travels(admin.update_features({"f": 3}, downgrade, unsafe, 1.0, True), 1, 2)
    assert (request.feature_updates[0].max_version_level, request.feature_updates[0].upgrade_type) == (3, kind)
    assert request.validate_only


def test_newer_brokers_answer_for_all_features_at_once() -> None:
    assert admin.read_updated_features(wire.UpdateFeaturesResponse(), ["f", "g"]) == {"f": None, "g": None}
    reply = wire.UpdateFeaturesResponse(results=[wire.UpdatableFeatureResult(feature="f", error_code=95)])
    assert admin.read_updated_features(reply, ["f", "g"]) == {"f": KafkaError(95), "g": None}


def test_controllers_are_described_with_what_is_known_of_them() -> None:
    assert travels(admin.describe_quorum(), 0, 2).topics[0].topic_name == "__cluster_metadata"
    part = wire.DescribedQuorumPartition(
        leader_id=1, leader_epoch=4, high_watermark=99,
        current_voters=[wire.QuorumReplica(replica_id=1, replica_directory_id=UUID(int=5), log_end_offset=100)],
        observers=[wire.QuorumReplica(replica_id=2, log_end_offset=90)])
    found = admin.read_quorum(wire.DescribeQuorumResponse(topics=[
        wire.DescribedQuorumTopic(topic_name="__cluster_metadata", partitions=[part])]))
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 4, 99)
    assert found.voters == [QuorumReplicaState(1, 100, directory_id=Uuid(0, 5))]
    assert found.observers == [QuorumReplicaState(2, 90)]
    with pytest.raises(KafkaException, match="does not mention"):
        admin.read_quorum(wire.DescribeQuorumResponse())


def test_voters_come_and_go_by_id_and_directory() -> None:
    added = travels(admin.add_voter(3, Uuid(1, 2), {"CONTROLLER": ("h", 9093)}, 1.0), 0, 1)
    assert (added.voter_id, added.voter_directory_id.int, added.listeners[0].port) == (3, 2**64 + 2, 9093)
    assert travels(admin.remove_voter(3, Uuid(1, 2)), 0, 0).voter_directory_id.int == 2**64 + 2


def test_directories_are_described_by_path() -> None:
    assert travels(admin.describe_log_dirs(None), 1, 5).topics is None
    assert travels(admin.describe_log_dirs([A0]), 1, 5).topics[0].partitions == [0]
    reply = replicas.DescribeLogDirsResponse(results=[
        replicas.DescribeLogDirsResult(log_dir="/d", total_bytes=10, usable_bytes=5, topics=[
            replicas.DescribeLogDirsTopic(name="a", partitions=[replicas.DescribeLogDirsPartition(
                partition_index=0, partition_size=7, offset_lag=1)])]),
        replicas.DescribeLogDirsResult(log_dir="/e", error_code=57)])
    found = admin.read_log_dirs(reply)
    assert found["/d"] == LogDirDescription({A0: ReplicaInfo(7, 1, False)}, 10, 5)
    assert found["/e"] == KafkaError.LOG_DIR_NOT_FOUND


def test_old_brokers_refuse_to_show_directories_without_words() -> None:
    with pytest.raises(KafkaException, match="DESCRIBE on the cluster"):
        admin.read_log_dirs(replicas.DescribeLogDirsResponse(results=[]))


def test_replicas_move_by_path() -> None:
    (place,) = travels(admin.move_replicas({A0: "/e"}), 1, 2).dirs
    assert (place.path, place.topics[0].name, place.topics[0].partitions) == ("/e", "a", [0])
    reply = replicas.AlterReplicaLogDirsResponse(results=[replicas.AlterReplicaLogDirTopicResult(
        topic_name="a", partitions=[replicas.AlterReplicaLogDirPartitionResult(partition_index=0, error_code=57)])])
    assert admin.read_moved_replicas(reply) == {A0: KafkaError.LOG_DIR_NOT_FOUND}
