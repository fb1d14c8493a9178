"""Every version that is advertised is answered, in that version; what is not advertised closes the connection."""

from collections.abc import Iterator

import pytest

from headrace.broker.dispatch import SERVED, SERVICES
from headrace.errors import KafkaError
from headrace.records.legacy.conversion import downgrade
from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.wire.frame import decode_response
from headrace.wire.messages.admin import configs as admin_configs
from headrace.wire.messages.admin import replicas as admin_cluster
from headrace.wire.messages.admin import security as admin_security
from headrace.wire.messages.admin import topics as admin_topics
from headrace.wire.messages.cluster import metadata, session
from headrace.wire.messages.consumer import fetch, offsets
from headrace.wire.messages.groups import classic_groups as groups
from headrace.wire.messages.groups import consumer_groups, share_groups
from headrace.wire.messages.producer import produce, transactions
from headrace.wire.schema import Request
from tests.support.raw_client import ASK_VERSIONS, RawClient, batch_of, produce_request


@pytest.fixture(scope="module")
def served() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1}) as broker, RawClient(broker) as client:
        client.produce("t", 0, batch_of([b"a", b"b"]))
        client.call(request_of(offsets.OffsetCommitRequest, 8, broker), 8)  # there is a group, whatever is asked first
        yield broker


def topic_id(broker: EmbeddedBroker) -> object:
    return broker.apply(lambda cluster: cluster.catalog.topics["t"].id)


def request_of(kind: type[Request], version: int, broker: EmbeddedBroker) -> Request:
    """A useful request of each type, with what its version has."""
    topic = topic_id(broker)
    match kind.__name__.removesuffix("Request"):
        case "Produce":
            batch = batch_of([b"c"])
            records = batch if version >= 3 else downgrade(batch, 0 if version < 2 else 1)
            request = produce_request("t", 0, records)
            request.topic_data[0].topic_id = topic  # type: ignore[assignment]
            return request
        case "Fetch":
            return fetch.FetchRequest(max_wait_ms=0, min_bytes=1, topics=[fetch.FetchTopic(
                topic="t", topic_id=topic, partitions=[  # type: ignore[arg-type]
                    fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)])])
        case "ListOffsets":
            return offsets.ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[offsets.ListOffsetsTopic(
                name="t", partitions=[offsets.ListOffsetsPartition(partition_index=0, timestamp=-2)])])
        case "Metadata":
            return metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="t")])
        case "OffsetCommit":
            return offsets.OffsetCommitRequest(group_id="g", topics=[offsets.OffsetCommitRequestTopic(
                name="t", topic_id=topic, partitions=[offsets.OffsetCommitRequestPartition(  # type: ignore[arg-type]
                    partition_index=0, committed_offset=1, committed_metadata="")])])
        case "OffsetFetch" if version < 8:
            return offsets.OffsetFetchRequest(group_id="g", topics=[offsets.OffsetFetchRequestTopic(
                name="t", partition_indexes=[0])], groups=[])
        case "OffsetFetch":
            return offsets.OffsetFetchRequest(groups=[offsets.OffsetFetchRequestGroup(group_id="g", topics=None)])
        case "FindCoordinator":
            keys = ["g"] if version >= 4 else []
            return groups.FindCoordinatorRequest(key="" if keys else "g", coordinator_keys=keys)
        case "JoinGroup":
            protocols = [groups.JoinGroupRequestProtocol(name="range", metadata=b"")]
            return groups.JoinGroupRequest(group_id=f"j{version}", session_timeout_ms=10000, member_id="",
                                           protocol_type="consumer", protocols=protocols)
        case "LeaveGroup":
            leaving = [groups.MemberIdentity(member_id="nobody")] if version >= 3 else []
            return groups.LeaveGroupRequest(group_id="g", member_id="" if leaving else "nobody", members=leaving)
        case "SyncGroup":
            return groups.SyncGroupRequest(group_id="g", generation_id=1, member_id="nobody", assignments=[])
        case "Heartbeat":
            return groups.HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody")
        case "ConsumerGroupHeartbeat":
            return consumer_groups.ConsumerGroupHeartbeatRequest(
                group_id=f"planned {version}", member_id="me", member_epoch=0, rebalance_timeout_ms=1000,
                subscribed_topic_names=["t"], topic_partitions=[])
        case "ShareGroupHeartbeat":
            return share_groups.ShareGroupHeartbeatRequest(
                group_id="shared", member_id="me", member_epoch=0, subscribed_topic_names=["t"])
        case "ShareFetch":
            return share_groups.ShareFetchRequest(group_id="shared", member_id="me", topics=[
                share_groups.ShareFetchTopic(topic_id=topic, partitions=[  # type: ignore[arg-type]
                    share_groups.ShareFetchPartition(partition_index=0)])])
        case "ShareAcknowledge":
            return share_groups.ShareAcknowledgeRequest(group_id="shared", member_id="me", share_session_epoch=-1)
        case "AlterShareGroupOffsets":
            return share_groups.AlterShareGroupOffsetsRequest(group_id="shared by nobody")
        case "DeleteShareGroupOffsets":
            return share_groups.DeleteShareGroupOffsetsRequest(group_id="shared by nobody")
        case "DescribeGroups":
            return groups.DescribeGroupsRequest(groups=["g", "none"])
        case "DeleteGroups":
            return groups.DeleteGroupsRequest(groups_names=["none"])
        case "CreateTopics":
            return admin_topics.CreateTopicsRequest(topics=[admin_topics.CreatableTopic(
                name=f"made-in-{version}", num_partitions=1, replication_factor=1, assignments=[], configs=[])])
        case "DeleteTopics":
            names, states = (["none"], []) if version < 6 else ([], [admin_topics.DeleteTopicState(name="none")])
            return admin_topics.DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=0)
        case "DeleteRecords":
            return admin_topics.DeleteRecordsRequest(timeout_ms=0, topics=[admin_topics.DeleteRecordsTopic(
                name="t", partitions=[admin_topics.DeleteRecordsPartition(partition_index=0, offset=0)])])
        case "CreatePartitions":
            return admin_topics.CreatePartitionsRequest(timeout_ms=0, topics=[
                admin_topics.CreatePartitionsTopic(name="none", count=3, assignments=None)])
        case "InitProducerId":
            return produce.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        case "AddOffsetsToTxn":
            return transactions.AddOffsetsToTxnRequest(transactional_id="nobody", group_id="g")
        case "EndTxn":
            return transactions.EndTxnRequest(transactional_id="nobody")
        case "OffsetForLeaderEpoch":
            return fetch.OffsetForLeaderEpochRequest(topics=[fetch.OffsetForLeaderTopic(topic="t", partitions=[
                fetch.OffsetForLeaderPartition(partition=0, leader_epoch=0)])])
        case "DescribeConfigs":
            return admin_configs.DescribeConfigsRequest(resources=[
                admin_configs.DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None),
                admin_configs.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)])
        case "AlterConfigs":
            return admin_configs.AlterConfigsRequest(validate_only=True, resources=[
                admin_configs.AlterConfigsResource(resource_type=2, resource_name="t", configs=[])])
        case "IncrementalAlterConfigs":
            return admin_configs.IncrementalAlterConfigsRequest(validate_only=True, resources=[])
        case "DescribeTopicPartitions":
            return metadata.DescribeTopicPartitionsRequest(topics=[metadata.TopicRequest(name="t")])
        case "ApiVersions":
            return ASK_VERSIONS
        case "OffsetDelete":
            return offsets.OffsetDeleteRequest(group_id="g", topics=[])
        case "DescribeLogDirs":
            return admin_cluster.DescribeLogDirsRequest(topics=None)
        case "ElectLeaders":
            return admin_cluster.ElectLeadersRequest(topic_partitions=None)
        case "DescribeAcls":
            return admin_security.DescribeAclsRequest(
                resource_type_filter=1, resource_name_filter=None, principal_filter=None, host_filter=None,
                operation=1, permission_type=1)
        case _:
            return kind()


@pytest.mark.parametrize(("kind", "version"), [
    (kind, version) for kind in SERVICES for version in range(SERVED[kind.api_key][0], SERVED[kind.api_key][1] + 1)
], ids=lambda value: value.__name__ if isinstance(value, type) else f"v{value}")
def test_every_advertised_version_is_answered(served: EmbeddedBroker, kind: type[Request], version: int) -> None:
    with RawClient(served) as client:
        reply = client.call(request_of(kind, version, served), version)
    code = getattr(reply, "error_code", 0)
    assert code in (0, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.MEMBER_ID_REQUIRED,
                    KafkaError.INCONSISTENT_GROUP_PROTOCOL, KafkaError.SECURITY_DISABLED,
                    KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.SHARE_SESSION_NOT_FOUND)


def test_all_versions_from_0_up_are_served() -> None:
    assert {kind.__name__.removesuffix("Request"): SERVED[kind.api_key] for kind in SERVICES} == {
        "ApiVersions": (0, 5), "Metadata": (0, 13), "DescribeCluster": (0, 2), "DescribeTopicPartitions": (0, 0),
        "Produce": (0, 13), "InitProducerId": (0, 5), "Fetch": (0, 18), "ListOffsets": (0, 11),
        "OffsetForLeaderEpoch": (0, 4), "FindCoordinator": (0, 6), "JoinGroup": (0, 9), "SyncGroup": (0, 5),
        "Heartbeat": (0, 4), "LeaveGroup": (0, 5), "OffsetCommit": (0, 10), "OffsetFetch": (0, 10),
        "DescribeGroups": (0, 6), "ListGroups": (0, 5), "DeleteGroups": (0, 3), "CreateTopics": (0, 7),
        "DeleteTopics": (0, 6), "CreatePartitions": (0, 3), "DeleteRecords": (0, 2), "DescribeConfigs": (0, 4),
        "AlterConfigs": (0, 2), "IncrementalAlterConfigs": (0, 1),
        "ConsumerGroupHeartbeat": (0, 1), "ConsumerGroupDescribe": (0, 1),
        "ShareGroupHeartbeat": (1, 1), "ShareGroupDescribe": (1, 1), "ShareFetch": (1, 2), "ShareAcknowledge": (1, 2),
        "DescribeShareGroupOffsets": (0, 1), "AlterShareGroupOffsets": (0, 0), "DeleteShareGroupOffsets": (0, 0),
        "ListConfigResources": (0, 1), "OffsetDelete": (0, 0), "DescribeProducers": (0, 0), "DescribeLogDirs": (0, 5),
        "AlterReplicaLogDirs": (0, 2), "ElectLeaders": (0, 2), "AlterPartitionReassignments": (0, 1),
        "ListPartitionReassignments": (0, 0), "DescribeAcls": (0, 3), "CreateAcls": (0, 3),
        "DeleteAcls": (0, 3), "AddPartitionsToTxn": (0, 5), "AddOffsetsToTxn": (0, 4), "TxnOffsetCommit": (0, 6),
        "EndTxn": (0, 5), "WriteTxnMarkers": (0, 2), "DescribeTransactions": (0, 0), "ListTransactions": (0, 2),
        "DescribeUserScramCredentials": (0, 0), "AlterUserScramCredentials": (0, 0), "DescribeClientQuotas": (0, 1),
        "AlterClientQuotas": (0, 1), "DescribeQuorum": (0, 2),
    }


def test_a_broker_like_kafka_4_lists_produce_from_zero_and_refuses_it_below_three() -> None:
    with (EmbeddedBroker(topics={"t": 1}, settings=BrokerSettings.of_kafka("4.4")) as broker,
          RawClient(broker) as client):
        reply = client.call(ASK_VERSIONS)
        assert next((each.min_version, each.max_version) for each in reply.api_keys if each.api_key == 0) == (0, 13)
        client.send(produce_request("t", 0, batch_of([b"x"])), 2)
        assert client.is_closed()


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(served: EmbeddedBroker) -> None:
    with RawClient(served) as client:
        client.socket.sendall(bytes.fromhex("0000000a 0012 0063 00000007 ffff"))
        correlation, reply = decode_response(session.ApiVersionsRequest, 0, client.read_frame())
        assert correlation == 7
        assert isinstance(reply, session.ApiVersionsResponse)
        assert reply.error_code == KafkaError.UNSUPPORTED_VERSION
        assert [(each.api_key, each.max_version) for each in reply.api_keys] == [(18, 5)]
        assert client.call(ASK_VERSIONS, 0).error_code == 0


def test_a_client_of_another_cluster_is_told_to_bootstrap_again(served: EmbeddedBroker) -> None:
    with RawClient(served) as client:
        reply = client.call(session.ApiVersionsRequest(
            client_software_name="raw", client_software_version="1.0", cluster_id="another", node_id=1), 5)
    assert reply.error_code == KafkaError.REBOOTSTRAP_REQUIRED


@pytest.mark.parametrize(("settings", "levels"), [
    (BrokerSettings(), {"transaction.version": 2, "group.version": 1, "share.version": 1}),
    (BrokerSettings(group_version=0, share_version=0, transaction_version=0), {}),
    (BrokerSettings.of_kafka("4.0"), {"transaction.version": 2, "group.version": 1}),
    (BrokerSettings.of_kafka("3.9"), {}),
])
def test_the_features_that_are_on_are_named(settings: BrokerSettings, levels: dict[str, int]) -> None:
    with EmbeddedBroker(settings=settings) as broker, RawClient(broker) as client:
        reply = client.call(ASK_VERSIONS, 3)
    assert {each.name: each.max_version_level for each in reply.finalized_features} == levels
