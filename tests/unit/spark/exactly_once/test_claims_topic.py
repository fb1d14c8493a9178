"""Of the attempts that claim one piece of work in a topic, one has it."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from headrace import KafkaException, Producer
from headrace.admin import AdminClient, ConfigResource, ResourceType
from headrace.broker.settings import BrokerSettings
from headrace.client.consumer.kept_readers import KeptReaders
from headrace.client.producer.kept_producers import KeptProducers
from headrace.errors import KafkaError
from headrace.spark.exactly_once import claims_topic
from headrace.spark.exactly_once.claims_topic import open_claims
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import ProduceRequest

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(settings=BrokerSettings(default_partitions=3)) as broker:
        yield broker


@pytest.fixture(scope="module")
def client(broker):
    return {"bootstrap.servers": broker.bootstrap_servers}


def is_granted(claims, client, work):
    try:
        claims.take(client, work)
    except KafkaException as refused:
        if "another attempt has claimed it" in str(refused):
            return False
        raise
    return True


def test_of_attempts_that_ask_at_the_same_moment_one_is_granted_the_work(client):
    claims = open_claims(client, "together")
    with ThreadPoolExecutor(8) as threads:
        granted = list(threads.map(lambda number: is_granted(claims, client, f"task {number % 3}"), range(24)))
    assert [sum(granted[task::3]) for task in range(3)] == [1, 1, 1]


def test_an_attempt_that_comes_later_is_refused(client):
    claims = open_claims(client, "later")
    assert [is_granted(claims, client, "task 0") for _ in range(3)] == [True, False, False]


def test_claims_of_an_earlier_transaction_do_not_count(client):
    assert is_granted(open_claims(client, "again"), client, "task 0")
    assert is_granted(open_claims(client, "again"), client, "task 0")


def test_the_topic_is_created_with_one_partition_and_used_again(client):
    open_claims(client, "made")
    first = open_claims(client, "made").start
    with AdminClient(client) as admin:
        assert len(admin.list_topics("made").topics["made"].partitions) == 1
        topic = ConfigResource(ResourceType.TOPIC, "made")
        assert admin.describe_configs([topic])[topic].result(10)["retention.ms"].value == "86400000"
    assert (first, open_claims(client, "made").start) == (2, 3)


def test_two_drivers_may_create_the_topic_at_the_same_moment(client, monkeypatch):
    """Each finds none; the later one uses what the other has made."""
    open_claims(client, "both")
    make = claims_topic._create
    monkeypatch.setattr(Producer, "list_topics", lambda *_, **__: SimpleNamespace(topics={
        "both": SimpleNamespace(error=KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))}))
    asked = []
    monkeypatch.setattr(claims_topic, "_create", lambda *given: (asked.append(given), make(*given)))
    assert open_claims(client, "both").start == 2
    assert asked


def test_a_topic_that_cannot_be_created_is_named_with_the_remedy(client):
    with pytest.raises(KafkaException, match=r"create no such name with one partition, or name another by "
                                             r"exactlyOnce\.claimsTopic"):
        open_claims(client, "no such name")


def test_a_claim_that_brokers_do_not_take_is_not_granted(broker, client):
    claims = open_claims(client, "refused")
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.INVALID_RECORD))
    with pytest.raises(KafkaException) as caught:
        claims.take(client, "task 0")
    assert caught.value.error.code() == KafkaError.INVALID_RECORD


def test_all_claims_of_a_process_go_over_the_connections_of_the_first(client, monkeypatch):
    made = []

    class Producers(KeptProducers):
        def make(self, properties):
            made.append("producer")
            return super().make(properties)

    class Readers(KeptReaders):
        def make(self, properties):
            made.append("reader")
            return super().make(properties)

    monkeypatch.setattr(claims_topic, "_PRODUCERS", Producers())
    monkeypatch.setattr(claims_topic, "_READERS", Readers())
    claims = open_claims(client, "kept")
    assert [is_granted(claims, client, f"task {number % 2}") for number in range(3)] == [True, True, False]
    assert made == ["producer", "reader"]


def test_interceptors_and_partitioners_of_the_rows_are_not_those_of_claims(client):
    def first(*_):
        raise AssertionError("asked for the partition of a claim")

    given = {**client, "interceptor.classes": "a.module.that:IsNot", "partitioner": first}
    assert is_granted(open_claims(given, "plain"), given, "task 0")


def test_records_of_others_in_the_topic_are_passed_over(client):
    claims = open_claims(client, "shared")
    with Producer(client) as producer:
        for number in range(1000):
            producer.produce("shared", b"v%d" % number, b"task 1", partition=0)
        producer.produce("shared", None, None, partition=0)
    assert is_granted(claims, client, "task 0")
    assert not is_granted(claims, client, "task 1")
