"""Every call of an administrator at a real Kafka with access rules.

A user who may do all has it done; one who may do nothing is told which right is missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import confluent_kafka
import confluent_kafka.admin
import pytest

import headrace
import headrace.admin
from headrace import (
    Consumer,
    ConsumerGroupTopicPartitions,
    ElectionType,
    KafkaError,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from headrace.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    QuotaEntity,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tests.support.configuration import GENERAL, OLDER
from tests.support.real_kafka import running, until
from tests.support.told import settled
from tools.kafka import KafkaCluster
from tools.kafka.security import USERS

PATIENCE_S = 30
ADMIN, NOBODY = sorted(USERS)[:2]
T0 = TopicPartition("t", 0)
RULE = AclBinding("topic", "ruled", "literal", "User:x", "*", "read", "allow")
ALL_RULES = AclBindingFilter("topic", "ruled", "any", None, None, "any", "any")
INFO = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
SET = AlterConfigOpType.SET
TOPIC, GROUP, CLUSTER = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
                         KafkaError.CLUSTER_AUTHORIZATION_FAILED)
TXN = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class Case(NamedTuple):
    """A call, and what somebody lacks who may do nothing.

    Attributes:
        call: begins it.
        code: of the refusal.
        right: what the refusal says is needed.
        answer: the error that one gets who may do all, where the cluster has nothing to do.
    """

    call: Callable[[AdminClient], Any]
    code: int
    right: str
    answer: int | None = None


def resource(kind: str = "topic", name: str = "t", **given: Any) -> ConfigResource:
    return ConfigResource(kind, name, incremental_configs=[
        ConfigEntry("retention.ms", "600000", incremental_operation=SET)], **given)


CASES: dict[str, Case] = {
    "create_topics": Case(lambda a: a.create_topics([NewTopic("made", 1)]), TOPIC,
                          'CREATE on topic "made" or on the cluster'),
    "create_partitions": Case(lambda a: a.create_partitions([NewPartitions("grows", 4)], validate_only=True), TOPIC,
                              'ALTER on topic "grows"'),
    "describe_topics": Case(lambda a: a.describe_topics(TopicCollection(["t"]), include_authorized_operations=True),
                            TOPIC, 'DESCRIBE on topic "t"'),
    "delete_topics": Case(lambda a: a.delete_topics(["goes"]), TOPIC, 'DELETE on topic "goes"'),
    "list_offsets": Case(lambda a: a.list_offsets({T0: OffsetSpec.latest()}), TOPIC, 'DESCRIBE on topic "t"'),
    "delete_records": Case(lambda a: a.delete_records([TopicPartition("t", 0, 1)]), TOPIC, 'on topic "t"'),
    "elect_leaders": Case(lambda a: a.elect_leaders(ElectionType.PREFERRED, [T0]), CLUSTER, "ALTER on the cluster"),
    "alter_partition_reassignments": Case(lambda a: a.alter_partition_reassignments({T0: [1]}), CLUSTER,
                                          "ALTER on the cluster"),
    "list_partition_reassignments": Case(lambda a: a.list_partition_reassignments([T0]), CLUSTER,
                                         "DESCRIBE on the cluster"),
    "describe_configs": Case(lambda a: a.describe_configs([resource()]), TOPIC, 'DESCRIBE_CONFIGS on topic "t"'),
    "describe_configs of a broker": Case(lambda a: a.describe_configs([resource("broker", "1")]), CLUSTER,
                                         "DESCRIBE_CONFIGS on the cluster"),
    "alter_configs": Case(lambda a: a.alter_configs([resource(set_config={"retention.ms": "700000"})]), TOPIC,
                          'ALTER_CONFIGS on topic "t"'),
    "incremental_alter_configs": Case(lambda a: a.incremental_alter_configs([resource()]), TOPIC,
                                      'ALTER_CONFIGS on topic "t"'),
    "list_config_resources": Case(lambda a: a.list_config_resources(), CLUSTER, "DESCRIBE_CONFIGS on the cluster"),
    "create_acls": Case(lambda a: a.create_acls([RULE]), CLUSTER, "ALTER on the cluster"),
    "describe_acls": Case(lambda a: a.describe_acls(ALL_RULES), CLUSTER, "DESCRIBE on the cluster"),
    "delete_acls": Case(lambda a: a.delete_acls([ALL_RULES]), CLUSTER, "ALTER on the cluster"),
    "describe_consumer_groups": Case(
        lambda a: a.describe_consumer_groups(["g"], include_authorized_operations=True), GROUP,
        'DESCRIBE on group "g"'),
    "remove_members_from_consumer_group": Case(lambda a: a.remove_members_from_consumer_group("g"), GROUP,
                                               'on group "g"'),
    "list_consumer_group_offsets": Case(
        lambda a: a.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")]), GROUP, 'DESCRIBE on group "g"'),
    "alter_consumer_group_offsets": Case(
        lambda a: a.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, 2)])]),
        GROUP, 'on group "g"'),
    "reset_consumer_group_offsets": Case(lambda a: a.reset_consumer_group_offsets("g", to=OffsetSpec.latest()), GROUP,
                                         'on group "g"'),
    "delete_consumer_group_offsets": Case(lambda a: a.delete_consumer_group_offsets("g", [T0]), GROUP,
                                          'on group "g"'),
    "delete_consumer_groups": Case(lambda a: a.delete_consumer_groups(["h"]), GROUP, 'on group "h"'),
    "describe_metadata_quorum": Case(lambda a: a.describe_metadata_quorum(), CLUSTER, "DESCRIBE on the cluster"),
    "update_features": Case(lambda a: a.update_features({"metadata.version": 30}, validate_only=True), CLUSTER,
                            "ALTER on the cluster", KafkaError.INVALID_UPDATE_VERSION),
    "add_raft_voter": Case(lambda a: a.add_raft_voter(9, Uuid(1, 2), {"CONTROLLER": ("127.0.0.1", 1)}), CLUSTER,
                           "ALTER on the cluster", KafkaError.UNSUPPORTED_VERSION),
    "remove_raft_voter": Case(lambda a: a.remove_raft_voter(9, Uuid(1, 2)), CLUSTER, "ALTER on the cluster",
                              KafkaError.UNSUPPORTED_VERSION),
    "unregister_broker": Case(lambda a: a.unregister_broker(99), CLUSTER, "ALTER on the cluster",
                              KafkaError.BROKER_ID_NOT_REGISTERED),
    "describe_log_dirs": Case(lambda a: a.describe_log_dirs([1]), CLUSTER, "DESCRIBE on the cluster"),
    "alter_replica_log_dirs": Case(lambda a: a.alter_replica_log_dirs(1, {T0: "/nowhere"}), CLUSTER,
                                   "ALTER on the cluster", KafkaError.LOG_DIR_NOT_FOUND),
    "describe_transactions": Case(lambda a: a.describe_transactions(["x"]), TXN, 'DESCRIBE on transactional id "x"'),
    "describe_producers": Case(lambda a: a.describe_producers([T0]), TOPIC, 'on topic "t"'),
    "abort_transaction": Case(lambda a: a.abort_transaction(T0, 12345), TOPIC, 'on topic "t"',
                              KafkaError.INVALID_TXN_STATE),
    "fence_producers": Case(lambda a: a.fence_producers(["x"]), TXN, 'on transactional id "x"'),
    "describe_user_scram_credentials": Case(lambda a: a.describe_user_scram_credentials([ADMIN]), CLUSTER,
                                            "DESCRIBE on the cluster"),
    "alter_user_scram_credentials": Case(
        lambda a: a.alter_user_scram_credentials([UserScramCredentialUpsertion("new", INFO, b"secret")]), CLUSTER,
        "ALTER on the cluster"),
    "describe_client_quotas": Case(lambda a: a.describe_client_quotas(), CLUSTER, "DESCRIBE_CONFIGS on the cluster"),
    "alter_client_quotas": Case(
        lambda a: a.alter_client_quotas({QuotaEntity("new"): {"producer_byte_rate": 1e9}}), CLUSTER,
        "ALTER_CONFIGS on the cluster"),
    "describe_share_groups": Case(lambda a: a.describe_share_groups(["s"]), GROUP, 'DESCRIBE on group "s"'),
    "list_share_group_offsets": Case(lambda a: a.list_share_group_offsets("s"), GROUP, 'DESCRIBE on group "s"'),
    "alter_share_group_offsets": Case(lambda a: a.alter_share_group_offsets("s", {T0: 1}), GROUP, 'on group "s"'),
    "delete_share_group_offsets": Case(lambda a: a.delete_share_group_offsets("s", ["t"]), GROUP, 'on group "s"'),
    "delete_share_groups": Case(lambda a: a.delete_share_groups(["s"]), GROUP, 'on group "s"'),
}
NOT_IN_3 = {name for name in CASES if "share_group" in name} | {"list_config_resources"}


def outcomes(begun: Any) -> list[BaseException | None]:
    """The error of each thing that a call concerns, None where it went well."""
    if isinstance(begun, Future):
        error = begun.exception(PATIENCE_S)
        inner = begun.result() if error is None else None
        return [error] if error is not None or not isinstance(inner, dict) else [
            each if isinstance(each, BaseException) else None for each in inner.values()]
    return [future.exception(PATIENCE_S) for future in begun.values()]


@pytest.fixture(scope="module", params=[GENERAL, pytest.param(OLDER, marks=pytest.mark.slow)])
def secured(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """One broker with access rules, where users come by SCRAM and only one of them may do all."""
    for cluster in running(KafkaCluster(request.param, quick=True, listeners=("SASL_PLAINTEXT",), properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{ADMIN}", "delegation.token.secret.key": "a secret of this cluster",
            "group.coordinator.rebalance.protocols": "classic,consumer"})):
        prepare(cluster)
        yield cluster


def prepare(cluster: KafkaCluster) -> None:
    """Topics, a group, a share group and a transactional id, made by the broker's own user."""
    with AdminClient(cluster.client_properties()) as admin:
        topics = admin.create_topics([NewTopic(name, 2) for name in ("t", "grows", "goes")])
        assert outcomes(topics) == [None] * 3
        with Producer({**cluster.client_properties(), "transactional.id": "x"}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number in range(5):
                producer.produce("t", str(number), partition=0)
            producer.commit_transaction()
        for group in "gh":
            offsets = ConsumerGroupTopicPartitions(group, [TopicPartition("t", 0, 1)])
            until(lambda offsets=offsets: outcomes(admin.alter_consumer_group_offsets([offsets])) == [None])
        if not cluster.version.startswith("3."):
            with ShareConsumer({**cluster.client_properties(), "group.id": "s"}) as consumer:
                consumer.subscribe(["t"])
                until(lambda: consumer.poll(0.1) is not None and outcomes(admin.describe_share_groups(["s"])) == [None])


def client(cluster: KafkaCluster, user: str) -> AdminClient:
    return AdminClient({**cluster.client_properties("SASL_PLAINTEXT", "SCRAM-SHA-256"), "sasl.username": user,
                        "sasl.password": USERS[user]})


def known(cluster: KafkaCluster) -> dict[str, Case]:
    return {name: case for name, case in CASES.items()
            if not (cluster.version.startswith("3.") and name in NOT_IN_3)}


@pytest.mark.filterwarnings("ignore:.*incremental_alter_configs:DeprecationWarning")
def test_who_may_do_nothing_is_told_which_right_is_missing(secured: KafkaCluster) -> None:
    wrong = {}
    with client(secured, NOBODY) as admin:
        for name, case in known(secured).items():
            for error in outcomes(case.call(admin)):
                told = error.error if isinstance(error, KafkaException) else None
                if told is None or told.code() != case.code or not told.str().endswith(case.right):
                    wrong[name] = str(error)
    assert wrong == {}


@pytest.mark.filterwarnings("ignore:.*incremental_alter_configs:DeprecationWarning")
def test_who_may_do_all_has_it_done(secured: KafkaCluster) -> None:
    wrong = {}
    with client(secured, ADMIN) as admin:
        for name, case in known(secured).items():
            for error in outcomes(case.call(admin)):
                code = error.error.code() if isinstance(error, KafkaException) else None
                if code not in (case.answer, KafkaError.ELECTION_NOT_NEEDED if "elect" in name else case.answer):
                    wrong[name] = str(error)
    assert wrong == {}


def test_what_may_be_done_is_told_with_what_is_described(secured: KafkaCluster) -> None:
    with client(secured, ADMIN) as admin, client(secured, NOBODY) as nobody:
        cluster = admin.describe_cluster(include_authorized_operations=True).result(PATIENCE_S)
        assert {AclOperation.ALTER, AclOperation.CREATE} <= set(cluster.authorized_operations or ())
        topic = admin.describe_topics(TopicCollection(["grows"]), include_authorized_operations=True)["grows"]
        assert {AclOperation.READ, AclOperation.DELETE} <= set(topic.result(PATIENCE_S).authorized_operations or ())
        assert admin.describe_topics(TopicCollection(["grows"]))["grows"].result().authorized_operations is None
        assert not nobody.describe_cluster(include_authorized_operations=True).result(PATIENCE_S).authorized_operations
        assert nobody.list_topics(timeout=PATIENCE_S).topics == {}
        assert nobody.list_consumer_groups().result(PATIENCE_S).valid == []
        assert admin.describe_features().result(PATIENCE_S).finalized["metadata.version"] > 0


def test_a_user_is_made_allowed_and_forgotten(secured: KafkaCluster) -> None:
    rule = AclBinding("topic", "grows", "literal", "User:guest", "*", "describe", "allow")
    properties = {**secured.client_properties("SASL_PLAINTEXT", "SCRAM-SHA-256"), "sasl.username": "guest",
                  "sasl.password": "pässword"}
    with client(secured, ADMIN) as admin:
        made = UserScramCredentialUpsertion("guest", INFO, "pässword".encode())
        assert outcomes(admin.alter_user_scram_credentials([made])) == [None]
        assert outcomes(admin.create_acls([rule])) == [None]
        with AdminClient(properties) as guest:
            until(lambda: outcomes(guest.describe_topics(TopicCollection(["grows"]))) == [None])
            assert set(guest.list_topics(timeout=PATIENCE_S).topics) == {"grows"}
        gone = AclBindingFilter("topic", "grows", "match", "User:guest", None, "any", "any")
        assert admin.delete_acls([gone])[gone].result(PATIENCE_S) == [rule]
        deletion = UserScramCredentialDeletion("guest", ScramMechanism.SCRAM_SHA_256)
        assert outcomes(admin.alter_user_scram_credentials([deletion])) == [None]
        with pytest.raises(KafkaException) as missing:
            until(lambda: admin.describe_user_scram_credentials(["guest"])["guest"].result(PATIENCE_S) is None, 5)
        assert missing.value.error == KafkaError.RESOURCE_NOT_FOUND


def test_the_program_of_the_page_lets_a_user_read_one_topic(secured: KafkaCluster) -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/admin.md").read_text()
    (program,) = (each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "AclBinding(" in each)
    servers = secured.client_properties()["bootstrap.servers"]
    exec(compile(program.replace("localhost:9092", servers), "admin.md", "exec"), {"print": lambda *told: None})
    reader = {**secured.client_properties("SASL_PLAINTEXT", "SCRAM-SHA-256"), "sasl.username": "reader",
              "sasl.password": "a password"}
    with client(secured, ADMIN) as admin, AdminClient(reader) as guest:
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(PATIENCE_S)
        until(lambda: set(guest.list_topics(timeout=PATIENCE_S).topics) == {"orders"})
        until(lambda: QuotaEntity("reader") in admin.describe_client_quotas().result(PATIENCE_S))


def story(kafka: ModuleType, servers: str, name: str) -> Iterator[Any]:
    """What an administrator does with the calls that both packages have, and what comes of it."""
    of = kafka.admin
    admin = of.AdminClient({"bootstrap.servers": servers})
    where, elsewhere = kafka.TopicPartition(name, 0), kafka.TopicPartition(name, 1)
    resource = of.ConfigResource("topic", name)
    group, topic = kafka.ConsumerGroupTopicPartitions, kafka.TopicCollection([name])
    yield admin.create_topics([of.NewTopic(name, 2, config={"retention.ms": "86400000"})])
    with headrace.Producer({"bootstrap.servers": servers}) as producer:
        for number in range(10):
            producer.produce(name, str(number), partition=0, timestamp=1000 + number)
    until(lambda: admin.describe_topics(topic)[name].exception(PATIENCE_S) is None)
    yield {"a topic": admin.describe_topics(topic, include_authorized_operations=True)[name]}
    change = of.ConfigResource("topic", name, incremental_configs=[
        of.ConfigEntry("cleanup.policy", "compact", incremental_operation=of.AlterConfigOpType.APPEND),
        of.ConfigEntry("retention.ms", None, incremental_operation=of.AlterConfigOpType.DELETE)])
    yield admin.incremental_alter_configs([change])
    until(lambda: "compact" in admin.describe_configs([resource])[resource].result(PATIENCE_S)["cleanup.policy"].value)
    entries = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    yield [(key, entry.value, int(entry.source), entry.is_default, entry.is_read_only, sorted(entry.synonyms))
           for key, entry in sorted(entries.items())]
    yield admin.list_offsets({where: of.OffsetSpec.latest(), elsewhere: of.OffsetSpec.earliest()})
    yield admin.list_offsets({where: of.OffsetSpec.for_timestamp(1004)})
    yield admin.delete_records([kafka.TopicPartition(name, 0, 3)])
    yield admin.delete_records([kafka.TopicPartition(name, 0, 99)])
    yield admin.list_offsets({where: of.OffsetSpec.earliest()})
    until(lambda: admin.describe_consumer_groups([name])[name].exception(PATIENCE_S) is None)
    yield admin.alter_consumer_group_offsets([group(name, [kafka.TopicPartition(name, 0, 5)])])
    yield admin.list_consumer_group_offsets([group(name)])
    yield admin.list_consumer_group_offsets([group(name, [where, elsewhere])])
    yield admin.describe_consumer_groups([name], include_authorized_operations=True)
    found = admin.list_consumer_groups(states={kafka.ConsumerGroupState.EMPTY}).result(PATIENCE_S)
    yield [(each.is_simple_consumer_group, each.state.name, each.type.name)
           for each in found.valid if each.group_id == name]
    yield admin.delete_consumer_groups([name])
    yield admin.delete_consumer_groups([name])
    rule = of.AclBinding("topic", name, "prefixed", "User:x", "*", "write", "deny")
    wanted = of.AclBindingFilter("any", name, "any", None, None, "any", "any")
    yield admin.create_acls([rule])
    until(lambda: admin.describe_acls(wanted).result(PATIENCE_S) != [])
    yield [repr(each) for each in admin.describe_acls(wanted).result(PATIENCE_S)]
    yield {str(each): list(map(repr, gone.result(PATIENCE_S))) for each, gone in admin.delete_acls([wanted]).items()}
    info = of.ScramCredentialInfo(of.ScramMechanism.SCRAM_SHA_512, 4096)
    yield admin.alter_user_scram_credentials([of.UserScramCredentialUpsertion(name, info, b"secret")])
    until(lambda: admin.describe_user_scram_credentials([name])[name].exception(PATIENCE_S) is None)
    yield admin.describe_user_scram_credentials([name])
    yield admin.describe_user_scram_credentials([name, "nobody"])
    yield admin.alter_user_scram_credentials([of.UserScramCredentialDeletion(name, info.mechanism)])
    yield {str(each).partition(",offset")[0]: error.code() for each, error in admin.elect_leaders(
        kafka.ElectionType.PREFERRED, [where]).result(PATIENCE_S).items()}
    yield {"the cluster": admin.describe_cluster(include_authorized_operations=True)}
    yield admin.create_partitions([of.NewPartitions(name, 1)])
    yield admin.delete_topics([name])
    until(lambda: name not in admin.list_topics(timeout=PATIENCE_S).topics)
    yield admin.delete_topics([name])


def plain(part: Any, name: str) -> str:
    """A part of the story, without what differs from one to the next: the topic's name and its id."""
    futures = isinstance(part, dict) and all(hasattr(each, "result") for each in part.values())
    shown = settled(part) if futures else part
    for topic in shown.values() if isinstance(shown, dict) else ():
        if isinstance(topic, dict):
            topic.pop("topic_id", None)
    return str(shown).replace(name, "NAME")


def test_an_administrators_story_is_the_same_with_confluent_kafka(secured: KafkaCluster) -> None:
    servers = secured.client_properties()["bootstrap.servers"]
    theirs, ours = ([plain(part, name) for part in story(package, servers, name)] for package, name in (
        (confluent_kafka, f"story-theirs-{os.getpid()}"), (headrace, f"story-ours-{os.getpid()}")))
    assert ours == theirs


def test_a_delegation_token_lives_until_it_is_ended(secured: KafkaCluster) -> None:
    with client(secured, ADMIN) as admin:
        token = admin.create_delegation_token(renewers=[f"User:{NOBODY}"], max_lifetime=3600).result(PATIENCE_S)
        assert (token.owner, token.renewers) == (f"User:{ADMIN}", [f"User:{NOBODY}"])
        until(lambda: [each.token_id for each in admin.describe_delegation_tokens().result(PATIENCE_S)] == [
            token.token_id])
        assert admin.renew_delegation_token(token.hmac, period=60).result(PATIENCE_S) <= token.ends
        admin.expire_delegation_token(token.hmac).result(PATIENCE_S)
        until(lambda: admin.describe_delegation_tokens().result(PATIENCE_S) == [])


def test_quotas_are_found_by_whom_they_are_for(secured: KafkaCluster) -> None:
    with client(secured, ADMIN) as admin:
        entity = QuotaEntity(f"user-{os.getpid()}", "")
        assert outcomes(admin.alter_client_quotas({entity: {"consumer_byte_rate": 5e6}})) == [None]
        until(lambda: admin.describe_client_quotas().result(PATIENCE_S).get(entity) == {"consumer_byte_rate": 5e6})
        assert outcomes(admin.alter_client_quotas({entity: {"consumer_byte_rate": None}})) == [None]
        until(lambda: entity not in admin.describe_client_quotas().result(PATIENCE_S))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_of_both_kinds_are_described_with_their_members(secured: KafkaCluster, protocol: str) -> None:
    with client(secured, ADMIN) as admin, Consumer({**secured.client_properties(), "group.id": f"of-{protocol}",
                                                  "group.protocol": protocol}) as consumer:
        consumer.subscribe(["grows"])
        until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 2)
        group = admin.describe_consumer_groups([f"of-{protocol}"])[f"of-{protocol}"].result(PATIENCE_S)
        assert group.type.name.lower() == protocol
        assert sorted(tp.partition for tp in group.members[0].assignment.topic_partitions) == [0, 1]
        listed = admin.list_consumer_groups(types={group.type}).result(PATIENCE_S)
        assert f"of-{protocol}" in {each.group_id for each in listed.valid or ()}
