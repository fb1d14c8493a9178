"""What is asked about credentials, quotas and controllers, in all versions: for `test_broker_answers_as_kafka_does`."""

from collections.abc import Mapping

from headrace.wire.messages.admin.nodes import DescribeQuorumRequest, QuorumPartition, QuorumTopic
from headrace.wire.messages.admin.quotas import (
    AlterableQuotaEntity,
    AlterableQuotaEntry,
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    QuotaFilterComponent,
    QuotaOperation,
)
from headrace.wire.messages.admin.security import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from headrace.wire.schema import Request
from tests.support.talk import Conversation, Talk

NAMED, DEFAULT, ANY = range(3)


def users(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])


def delete(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def upsert(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt" * 4,
                                    salted_password=b"p" * 32)


def credentials_are_made_and_shown(talk: Talk) -> None:
    name = talk.name
    changes: list[list[ScramCredentialDeletion | ScramCredentialUpsertion]] = [
        [upsert(name)], [upsert(name, 2, 16384)], [upsert(name, 1, 5000)], [delete(name)], [delete(name)],
        [delete(name), upsert(name)], [upsert(name)], [delete(name), upsert(name)], [delete(name, 2), upsert(name)],
        [upsert(name), upsert(name)], [delete(name), delete(name)], [upsert(name), upsert(name, 2)],
        [upsert(name, 1, 5), upsert(name)], [delete(name, 2)],
        [upsert(name), upsert(f"{name}-2")], [upsert(name, 3)], [delete(name, 0)],
        [upsert("")], [delete("")], [upsert(name, 1, 4095)], [upsert(name, 1, 16385)], [upsert(name, 1, -1)],
        [upsert(name, 2), upsert(name, 1, 1)], [delete(name), delete(f"{name}-2")], [],
    ]
    for each in changes:
        talk.catch_up(talk.ask(AlterUserScramCredentialsRequest(
            deletions=[one for one in each if isinstance(one, ScramCredentialDeletion)],
            upsertions=[one for one in each if isinstance(one, ScramCredentialUpsertion)])))
        talk.note(talk.call(users(name, f"{name}-2")), 0)


def credentials_of_users_who_are_named_otherwise(talk: Talk) -> None:
    for mechanism in (1, 2):
        talk.catch_up(talk.call(AlterUserScramCredentialsRequest(
            deletions=[], upsertions=[upsert(talk.name, mechanism)])))
    for names in ((talk.name,), (talk.name, talk.name), ("nobody",), ("",), ("nobody", "nobody"),
                  (talk.name, "nobody")):
        talk.ask(users(*names))
    for everybody in (None, []):
        reply = talk.call(DescribeUserScramCredentialsRequest(users=everybody))
        reply.results = [each for each in reply.results if each.user == talk.name]
        talk.note(reply, 0)


def quotas(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(strict=strict, components=[
        QuotaFilterComponent(entity_type=kind, match_type=match, match=name) for kind, match, name in components])


def quota(entity: Mapping[str, str | None], **values: float | None) -> AlterableQuotaEntry:
    return AlterableQuotaEntry(
        entity=[AlterableQuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[QuotaOperation(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()])


def alter(*entries: AlterableQuotaEntry, check: bool = False) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=list(entries), validate_only=check)


def quotas_are_set_and_removed(talk: Talk) -> None:
    user, both = {"user": talk.name}, {"user": talk.name, "client-id": "c"}
    requests = [
        alter(quota(user, producer_byte_rate=1000.0), check=True), alter(quota(user, producer_byte_rate=1000.0)),
        alter(quota(user, consumer_byte_rate=5.0, producer_byte_rate=None)),
        alter(quota(user, request_percentage=0.5, controller_mutation_rate=1.25)),
        alter(quota(both, producer_byte_rate=2.0), quota({"user": talk.name, "client-id": None}, request_percentage=9)),
        alter(quota(user, producer_byte_rate=None)), alter(quota(user, consumer_byte_rate=None)),
        alter(quota(user, nonsense=1.0)), alter(quota(user, nonsense=None)), alter(quota(user)), alter(),
        alter(quota(user, producer_byte_rate=0.0)), alter(quota(user, producer_byte_rate=-1.0)),
        alter(quota(user, producer_byte_rate=1.5)), alter(quota(user, producer_byte_rate=1e30)),
        alter(quota(user, request_percentage=-0.5)), alter(quota(user, connection_creation_rate=1.0)),
        alter(quota(user, producer_byte_rate=7.0, nonsense=1.0)), alter(quota({}, producer_byte_rate=7.0)),
        alter(quota({"user": ""}, producer_byte_rate=7.0)), alter(quota({"group": talk.name}, producer_byte_rate=7.0)),
        alter(quota({"user": talk.name, "ip": "10.0.0.1"}, producer_byte_rate=7.0)),
        alter(quota({"ip": "10.0.0.1"}, producer_byte_rate=7.0)),
        alter(quota({"ip": "10.0.0.1"}, connection_creation_rate=7.5)),
        alter(quota({"ip": "10.0.0.1"}, connection_creation_rate=7.0)),
        alter(quota({"ip": "10.0.0.1"}, connection_creation_rate=None)),
        alter(quota({"ip": "no address"}, connection_creation_rate=7.0)),
    ]
    for request in requests:
        talk.catch_up(talk.ask(request))
        talk.note(talk.call(quotas(("user", NAMED, talk.name))), 1)
    twice = quota(user, producer_byte_rate=3.0)
    twice.entity *= 2
    talk.ask(alter(twice))


def quotas_that_fit_are_shown(talk: Talk) -> None:
    user, client = talk.name, f"{talk.name}-c"
    for entity in ({"user": user}, {"client-id": client}, {"user": user, "client-id": client},
                   {"user": user, "client-id": None}, {"user": None, "client-id": client}):
        talk.catch_up(talk.call(alter(quota(entity, producer_byte_rate=3.0)), talk.version))
    for strict in (False, True):
        for components in (
            [("user", NAMED, user)], [("client-id", NAMED, client)], [("user", NAMED, "nobody")],
            [("user", NAMED, user), ("client-id", NAMED, client)],
            [("user", NAMED, user), ("client-id", DEFAULT, None)], [("user", NAMED, user), ("client-id", ANY, None)],
            [("user", DEFAULT, None), ("client-id", NAMED, client)],
            [("user", ANY, None), ("client-id", NAMED, client)], [("ip", ANY, None)], [("", ANY, None)],
            [("group", ANY, None)], [("user", 7, None)], [("user", NAMED, None)], [("user", ANY, user)],
            [("user", DEFAULT, user)], [("user", ANY, None)] * 2, [("user", NAMED, user), ("ip", ANY, None)],
        ):
            talk.ask(quotas(*components, strict=strict))


def quorum(topic: str, *partitions: int) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(topics=[QuorumTopic(
        topic_name=topic, partitions=[QuorumPartition(partition_index=each) for each in partitions])])


def the_quorum_is_described(talk: Talk) -> None:
    reply = talk.call(quorum("__cluster_metadata", 0), talk.version)
    partition = reply.topics[0].partitions[0]
    assert partition.leader_epoch >= 0
    assert partition.high_watermark >= 0
    for voter in partition.current_voters:
        assert voter.log_end_offset >= 0
        voter.log_end_offset = 0
        if talk.version >= 1:
            assert min(voter.last_fetch_timestamp, voter.last_caught_up_timestamp) > 1_750_000_000_000
            voter.last_fetch_timestamp = voter.last_caught_up_timestamp = -1
    partition.leader_epoch = partition.high_watermark = 0
    talk.note(reply, talk.version)
    for topic, partitions in (("__cluster_metadata", (1,)), ("__cluster_metadata", (0, 1)), ("nowhere", (0,)),
                              ("__cluster_metadata", ())):
        talk.ask(quorum(topic, *partitions))
    talk.ask(DescribeQuorumRequest(topics=[]))


CONVERSATIONS: dict[type[Request], list[Conversation]] = {
    AlterUserScramCredentialsRequest: [credentials_are_made_and_shown],
    DescribeUserScramCredentialsRequest: [credentials_of_users_who_are_named_otherwise],
    AlterClientQuotasRequest: [quotas_are_set_and_removed],
    DescribeClientQuotasRequest: [quotas_that_fit_are_shown],
    DescribeQuorumRequest: [the_quorum_is_described],
}
