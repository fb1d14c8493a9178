"""Credentials, quotas and controllers, as administrators ask for them; the replies are compared with Kafka's in
`test_broker_answers_as_kafka_does`.
"""

from pathlib import Path

import confluent_kafka.admin as theirs
import pytest

from headrace import KafkaException
from headrace.admin import (
    AdminClient,
    QuotaEntity,
    QuotaFilter,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from headrace.testing import EmbeddedBroker
from tests.support.conversations_users import quorum
from tests.support.raw_client import RawClient

INFO = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)


def test_credentials_and_quotas_outlive_the_broker(tmp_path: Path) -> None:
    anybody = QuotaEntity(user="alice", client_id="")
    with EmbeddedBroker(data_dir=tmp_path) as broker, AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as a:
        a.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", INFO, b"secret")])["alice"].result()
        a.alter_client_quotas({anybody: {"producer_byte_rate": 1000.0}})[anybody].result()
    assert b"secret" not in (tmp_path / "cluster.json").read_bytes()
    with EmbeddedBroker(data_dir=tmp_path) as broker, AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as a:
        found = a.describe_user_scram_credentials(["alice"])["alice"].result()
        assert [(each.mechanism, each.iterations) for each in found.scram_credential_infos] == [
            (ScramMechanism.SCRAM_SHA_256, 4096)]
        assert a.describe_client_quotas(QuotaFilter(user="alice", client_id="")).result() == {
            anybody: {"producer_byte_rate": 1000.0}}
        a.alter_user_scram_credentials([UserScramCredentialDeletion("alice", INFO.mechanism)])["alice"].result()
        with pytest.raises(KafkaException, match="RESOURCE_NOT_FOUND"):
            a.describe_user_scram_credentials(["alice"])["alice"].result()
        assert a.describe_user_scram_credentials().result() == {}


def test_quotas_are_found_by_name_by_default_and_by_kind(broker: EmbeddedBroker) -> None:
    alice, both, nobody = QuotaEntity("alice"), QuotaEntity("alice", "c"), QuotaEntity("")
    rates = dict(zip((alice, both, nobody), (1.0, 2.0, 3.0), strict=True))
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        for future in admin.alter_client_quotas({one: {"producer_byte_rate": rates[one]} for one in rates}).values():
            future.result(10)
        for wanted, found in (
            (QuotaFilter(), {alice, both, nobody}), (QuotaFilter(QuotaFilter.ANY), {alice, both, nobody}),
            (QuotaFilter(QuotaFilter.ANY, strict=True), {alice, nobody}), (QuotaFilter("alice"), {alice, both}),
            (QuotaFilter("alice", strict=True), {alice}), (QuotaFilter(""), {nobody}),
            (QuotaFilter(client_id=QuotaFilter.ANY), {both}), (QuotaFilter("bob"), set()),
        ):
            told = admin.describe_client_quotas(wanted).result(10)
            assert told == {one: {"producer_byte_rate": rates[one]} for one in found}, wanted


def test_librdkafka_makes_shows_and_deletes_credentials(broker: EmbeddedBroker) -> None:
    admin = theirs.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    info = theirs.ScramCredentialInfo(theirs.ScramMechanism.SCRAM_SHA_512, 8192)
    for alteration, left in (
        (theirs.UserScramCredentialUpsertion("bob", info, b"secret"), {"bob": [8192]}),
        (theirs.UserScramCredentialDeletion("bob", info.mechanism), {}),
    ):
        admin.alter_user_scram_credentials([alteration])["bob"].result(10)
        found = admin.describe_user_scram_credentials().result(10)
        assert {user: [each.iterations for each in one.scram_credential_infos] for user, one in found.items()} == left


def test_all_nodes_vote_and_those_that_are_down_are_not_heard_of(three_nodes: EmbeddedBroker) -> None:
    three_nodes.stop_node(3)
    with RawClient(three_nodes) as client:
        reply = client.call(quorum("__cluster_metadata", 0), 2)
    (partition,) = reply.topics[0].partitions
    assert partition.leader_id == 1
    assert {each.replica_id: each.last_fetch_timestamp > 0 for each in partition.current_voters} == {
        1: True, 2: True, 3: False}
    assert [each.node_id for each in reply.nodes] == [1, 2, 3]
