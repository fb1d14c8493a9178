"""Calls about the cluster: brokers, features, directories; what a broker does not offer is told as such."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace import KafkaError, KafkaException, Uuid
from headrace.admin import AdminClient
from headrace.broker.settings import BrokerSettings
from headrace.client.admin.admin_calls import AdminCalls
from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.testing import EmbeddedBroker
from headrace.types.records import TopicPartition
from headrace.wire.messages.admin import nodes as wire
from tests.support.scripted_broker import ScriptedBroker, admin_config

PATIENCE_S = 10


@pytest.fixture(scope="module")
def admin() -> Iterator[AdminClient]:
    with (EmbeddedBroker(topics={"t": 1}) as broker,
          AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as made):
        yield made


def test_the_cluster_is_described(admin: AdminClient) -> None:
    found = admin.describe_cluster(include_authorized_operations=True).result(PATIENCE_S)
    assert found.controller in found.nodes
    with pytest.raises(TypeError):
        admin.describe_cluster(include_authorized_operations="yes")  # type: ignore[arg-type]


def test_directories_are_described_by_broker(admin: AdminClient) -> None:
    (node,) = admin.describe_cluster().result(PATIENCE_S).nodes
    found = admin.describe_log_dirs([node.id, 99], request_timeout=0.5)
    (directory,) = found[node.id].result(PATIENCE_S).values()
    assert not isinstance(directory, KafkaError)
    assert TopicPartition("t", 0) in directory.replicas
    with pytest.raises(KafkaException):
        found[99].result(PATIENCE_S)


@pytest.mark.parametrize("release", ["0.11", "2.0"])
def test_a_broker_from_before_its_own_request_is_described_too(release: str) -> None:
    with (EmbeddedBroker(settings=BrokerSettings.of_kafka(release)) as old,
          AdminClient({"bootstrap.servers": old.bootstrap_servers}) as admin):
        found = admin.describe_cluster().result(PATIENCE_S)
        assert found.controller in found.nodes
        assert found.authorized_operations is None


NOT_SERVED: list[Callable[[AdminClient], Any]] = [
    lambda admin: admin.unregister_broker(9), lambda admin: admin.update_features({"f": 1})["f"],
    lambda admin: admin.remove_raft_voter(1, Uuid(0, 1)), lambda admin: admin.describe_delegation_tokens()]


@pytest.mark.parametrize("call", NOT_SERVED)
def test_what_the_embedded_broker_does_not_offer_is_told_at_once(
    admin: AdminClient, call: Callable[[AdminClient], Any]
) -> None:
    with pytest.raises(KafkaException) as refused:
        call(admin).result(PATIENCE_S)
    assert refused.value.error.code() in (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION)


def test_a_replica_stays_in_the_one_directory_and_no_other_is_there(admin: AdminClient) -> None:
    place = TopicPartition("t", 0)
    (node,) = admin.describe_cluster().result(PATIENCE_S).nodes
    (path,) = admin.describe_log_dirs([node.id])[node.id].result(PATIENCE_S)
    assert admin.alter_replica_log_dirs(node.id, {place: path})[place].result(PATIENCE_S) is None
    with pytest.raises(KafkaException) as refused:
        admin.alter_replica_log_dirs(node.id, {place: "/nowhere"})[place].result(PATIENCE_S)
    assert refused.value.error.code() == KafkaError.LOG_DIR_NOT_FOUND


def test_features_and_controllers_are_asked_for_and_changed() -> None:
    async def run() -> None:
        broker = ScriptedBroker(node1=("one", 1))
        part = wire.DescribedQuorumPartition(leader_id=3, leader_epoch=1, high_watermark=5)
        broker.on(wire.DescribeQuorumRequest, wire.DescribeQuorumResponse(topics=[
            wire.DescribedQuorumTopic(topic_name="__cluster_metadata", partitions=[part])]))
        broker.on(wire.UpdateFeaturesRequest, wire.UpdateFeaturesResponse())
        broker.on(wire.AddRaftVoterRequest, wire.AddRaftVoterResponse())
        broker.on(wire.RemoveRaftVoterRequest, wire.RemoveRaftVoterResponse(error_code=31))
        broker.on(wire.UnregisterBrokerRequest, wire.UnregisterBrokerResponse(error_code=102))
        core = ClientCore(Config(ADMIN, admin_config()), connector=broker.connector)
        admin = AdminCalls(core)
        assert (await admin.describe_metadata_quorum()).leader_id == 3
        assert (await admin.describe_features()).finalized == {}
        understood = await admin.describe_api_versions()
        assert understood[3][0] <= understood[3][1]
        assert understood == await admin.describe_api_versions(1)
        assert await admin.update_features({"f": 2}).results() == {"f": None}
        await admin.add_raft_voter(3, Uuid(0, 1), {"CONTROLLER": ("h", 1)})
        with pytest.raises(KafkaException, match="needs ALTER on the cluster"):
            await admin.remove_raft_voter(3, Uuid(0, 1))
        with pytest.raises(KafkaException, match="broker 9"):
            await admin.unregister_broker(9)
        await core.close()

    asyncio.run(run())
