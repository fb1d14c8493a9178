"""The embedded broker answers as Apache Kafka does: the same requests to both, in every version that both serve.

A difference that stays is written where the conversation is, or in `talk`. A machine without a JVM or without Maven
Central skips this and says why; with CI=true it fails instead.
"""

from collections.abc import Iterator
from itertools import count

import pytest

from headrace.broker.dispatch import SERVED, SERVICES
from headrace.broker.profiles import versions_of_kafka
from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from headrace.wire.schema import Request
from tests.support import (
    conversations_committed,
    conversations_configs,
    conversations_groups,
    conversations_planned,
    conversations_records,
    conversations_share,
    conversations_topics,
    conversations_transactions,
    conversations_users,
)
from tests.support.raw_client import RawClient
from tests.support.real_kafka import needed_in_ci
from tests.support.talk import LIMITS, Conversation, Talk, differences, wait_for_coordinators
from tools.kafka import KafkaCluster

RELEASES = ("4.4.0", "3.9.2")
CONVERSATIONS = [
    (kind, conversation)
    for module in (conversations_records, conversations_groups, conversations_topics, conversations_configs,
                   conversations_transactions, conversations_committed, conversations_planned, conversations_share,
                   conversations_users)
    for kind, conversations in module.CONVERSATIONS.items() for conversation in conversations]
NUMBERS = count()
each = pytest.mark.parametrize(("kind", "conversation"), CONVERSATIONS,
                               ids=[conversation.__name__ for _, conversation in CONVERSATIONS])
pytestmark = [pytest.mark.kafka]


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, KafkaCluster]]:
    """One broker of each release, from the first test that asks for it to the last of all."""
    started: dict[str, KafkaCluster] = {}
    yield started
    for cluster in started.values():
        cluster.close()


@pytest.fixture(params=RELEASES)
def kafka(request: pytest.FixtureRequest, clusters: dict[str, KafkaCluster]) -> KafkaCluster:
    """The broker of a release."""
    if request.param not in clusters:
        clusters[request.param] = started(KafkaCluster(request.param, heap_mb=384, quick=True))
    return clusters[request.param]


def started(cluster: KafkaCluster) -> KafkaCluster:
    try:
        with needed_in_ci():
            cluster.start()
        wait_for_coordinators(cluster.bootstrap_servers)
    except BaseException:
        cluster.close()
        raise
    return cluster


@pytest.fixture(scope="module")
def embedded() -> Iterator[dict[str, EmbeddedBroker]]:
    """One of ours for each of theirs, so that both have heard the same."""
    levels = {release: BrokerSettings.of_kafka(release).transaction_version for release in RELEASES}
    brokers = {release: EmbeddedBroker(settings=BrokerSettings(
        transaction_version=level, consumer_heartbeat_interval_ms=5000, share_heartbeat_interval_ms=5000))
               for release, level in levels.items()}
    for broker in brokers.values():
        broker.start()
    yield brokers
    for broker in brokers.values():
        broker.stop()


@pytest.fixture
def ours(kafka: KafkaCluster, embedded: dict[str, EmbeddedBroker]) -> EmbeddedBroker:
    return embedded[kafka.version]


def versions_of_both(kind: type[Request], conversation: Conversation, release: str) -> list[int]:
    """The versions in which a conversation is held with both brokers; none where the release has not the API."""
    offered = versions_of_kafka(release)[kind.__name__.removesuffix("Request")]
    only, since = LIMITS.get(conversation, ("", 0))
    if offered is None or not release.startswith(only):
        return []
    low, high = SERVED[kind.api_key]
    return list(range(max(offered[0], low, since), min(offered[1], high) + 1))


def telling_versions(kind: type[Request], conversation: Conversation, release: str) -> list[int]:
    """Few of them: the first, the last and the first that is flexible; of an older Kafka those that the newest dropped,
    and the last.
    """
    found = versions_of_both(kind, conversation, release)
    dropped = (versions_of_kafka(RELEASES[0])[kind.__name__.removesuffix("Request")] or (0, 0))[0]
    telling = {*found[:1], kind.flexible_version} if release == RELEASES[0] else set(range(dropped))
    return [version for version in found if version in telling or version == found[-1]]


def held(conversation: Conversation, servers: str, name: str, version: int) -> list[object]:
    talk = Talk(servers, name, version)
    try:
        conversation(talk)
    finally:
        talk.close()
    return talk.said


def compare(kafka: KafkaCluster, ours: EmbeddedBroker, conversation: Conversation, versions: list[int]) -> None:
    found: list[str] = []
    for version in versions:
        unlike: list[str] = []
        for _ in range(2):  # on a busy machine Kafka is late now and then; what differs once more does differ
            name = f"{conversation.__name__}-{kafka.version}-{version}-{next(NUMBERS)}"
            here = held(conversation, ours.bootstrap_servers, name, version)
            there = held(conversation, kafka.bootstrap_servers, name, version)
            unlike = [f"v{version} {line}" for line in differences(here, there)]
            if not unlike:
                break
        found += unlike
    assert not found, "\n".join(found[:40])


@each
def test_both_say_the_same(
    kafka: KafkaCluster, ours: EmbeddedBroker, kind: type[Request], conversation: Conversation
) -> None:
    compare(kafka, ours, conversation, telling_versions(kind, conversation, kafka.version))


@pytest.mark.slow
@each
def test_both_say_the_same_in_every_version(
    kafka: KafkaCluster, ours: EmbeddedBroker, kind: type[Request], conversation: Conversation
) -> None:
    compare(kafka, ours, conversation, versions_of_both(kind, conversation, kafka.version))


def test_api_versions_of_a_version_that_is_not_known_is_answered_alike(kafka: KafkaCluster) -> None:
    with EmbeddedBroker(settings=BrokerSettings.of_kafka(kafka.version)) as narrowed:
        replies = []
        for servers in (narrowed.bootstrap_servers, kafka.bootstrap_servers):
            with RawClient(servers) as client:
                client.socket.sendall(bytes.fromhex("0000000b 0012 0063 00000007 ffff 00"))
                replies.append(client.read_frame())
    assert replies[0] == replies[1]


def test_every_api_that_is_served_has_a_conversation_about_it() -> None:
    assert {kind for kind, _ in CONVERSATIONS} == set(SERVICES)


def test_the_profile_of_a_release_is_what_it_advertises(kafka: KafkaCluster) -> None:
    with RawClient(kafka.bootstrap_servers) as client:
        request = ApiVersionsRequest(client_software_name="headrace", client_software_version="0")
        advertised = {each.api_key: (each.min_version, each.max_version) for each in client.call(request, 3).api_keys}
    expected = {kind.api_key: versions_of_kafka(kafka.version)[kind.__name__.removesuffix("Request")]
                for kind in SERVICES}
    if kafka.version.startswith("4"):
        expected[0] = (0, expected[0][1] if expected[0] else 0)  # what Kafka 4 says of Produce, and does not keep
    assert {key: advertised.get(key) for key in expected} == expected
