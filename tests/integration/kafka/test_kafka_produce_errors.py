"""Which error codes a real Kafka answers to which produce requests, and what the producer makes of refusals by ACLs.

The requests are sent byte by byte, because no producer would send most of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.admin import AdminClient as ConfluentAdmin

from headrace import Consumer, KafkaError, KafkaException, Producer, ProducerRecord, ThrottleEvent
from headrace.errors import FatalError
from headrace.records import NONE, BatchBuilder
from headrace.wire.messages.admin.quotas import (
    AlterableQuotaEntity,
    AlterableQuotaEntry,
    AlterClientQuotasRequest,
    QuotaOperation,
)
from headrace.wire.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.producer.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.configuration import Configuration
from tests.support.raw_client import RawClient, batch_of, produce_request
from tests.support.real_kafka import frozen, make_topic, running, until
from tools.kafka import KafkaCluster

HOUR_MS = 3_600_000
VERSIONS = [3, 5, 8, 9, 11]
"""With topics' names, as far as Kafka 3.9 knows them; between them lie those that brought nothing new to errors."""


@pytest.fixture(scope="module")
def strict(configured: Configuration) -> Iterator[KafkaCluster]:
    """One broker that takes ACLs seriously and, without any, lets everybody do everything."""
    yield from running(KafkaCluster(configured.version, heap_mb=384, quick=True, properties={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true"}))


@pytest.fixture
def raw(strict: KafkaCluster) -> Iterator[RawClient]:
    with RawClient(strict.bootstrap_servers) as client:
        yield client


def now_ms() -> int:
    return int(time.time() * 1000)


def fresh(*values: bytes, **numbers: Any) -> bytes:
    """A batch with the time of now."""
    return batch_of(list(values) or [b"v"], timestamp_ms=now_ms(), **numbers)


def code_of(client: RawClient, request: ProduceRequest, version: int = 9) -> int:
    """The one code that all partitions of the answer have."""
    reply = client.call(request, version)
    (code,) = {part.error_code for topic in reply.responses for part in topic.partition_responses}
    assert isinstance(code, int)
    return code


def code(client: RawClient, topic: str, batch: bytes, version: int = 9) -> int:
    return code_of(client, produce_request(topic, 0, batch), version)


def new_producer_id(client: RawClient) -> int:
    found: list[int] = []

    def given() -> bool:
        try:
            found.append(client.producer_id())
        except AssertionError:  # the coordinator is not there yet
            return False
        return True

    until(given)
    return found[0]


# Codes of batches


@pytest.mark.parametrize("produce", VERSIONS)
def test_a_number_of_acks_that_does_not_exist_is_refused_for_every_partition(
    strict: KafkaCluster, raw: RawClient, produce: int
) -> None:
    topics = [make_topic(strict, 2) for _ in range(2)]
    for acks in (2, -2):
        request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[
            TopicProduceData(name=topic, partition_data=[
                PartitionProduceData(index=index, records=fresh()) for index in range(2)]) for topic in topics])
        assert code_of(raw, request, produce) == KafkaError.INVALID_REQUIRED_ACKS


@pytest.mark.parametrize("produce", VERSIONS)
def test_damaged_and_strange_batches_are_corrupt_or_invalid(
    strict: KafkaCluster, raw: RawClient, produce: int
) -> None:
    topic, good = make_topic(strict, 1), fresh(b"a", b"b")
    assert code(raw, topic, good[:17] + b"\0\0\0\0" + good[21:], produce) == KafkaError.INVALID_MSG  # the checksum
    assert code(raw, topic, good[:16] + b"\x05" + good[17:], produce) == KafkaError.INVALID_MSG  # the magic
    assert code(raw, topic, good[:-3], produce) == KafkaError.INVALID_RECORD  # the size
    assert code(raw, topic, good, produce) == 0


@pytest.mark.parametrize("produce", VERSIONS)
def test_a_topic_or_partition_that_is_not_there_is_unknown(strict: KafkaCluster, raw: RawClient, produce: int) -> None:
    topic = make_topic(strict, 1)
    assert code(raw, "nowhere", fresh(), produce) == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert code_of(raw, produce_request(topic, 7, fresh()), produce) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_batches_beyond_the_topics_limits_are_too_large(strict: KafkaCluster, raw: RawClient) -> None:
    small = make_topic(strict, 1, **{"max.message.bytes": "300"})
    assert code(raw, small, fresh(b"x" * 400)) == KafkaError.MSG_SIZE_TOO_LARGE
    short = make_topic(strict, 1, **{"max.message.bytes": "5000000", "segment.bytes": "1048576"})
    assert code(raw, short, fresh(b"x" * 1_000_000, b"y" * 40_000)) == 0
    assert code(raw, short, large()) == KafkaError.RECORD_LIST_TOO_LARGE


def large() -> bytes:
    """A batch of one record that is larger than a segment of 1 MiB."""
    builder = BatchBuilder(4 << 20, 1)
    assert builder.append(now_ms(), None, b"x" * 2_000_000, [])
    return bytes(builder.seal(NONE).data)


def test_timestamps_too_far_from_the_brokers_clock_are_refused(strict: KafkaCluster, raw: RawClient) -> None:
    topic = make_topic(strict, 1, **{"message.timestamp.before.max.ms": str(HOUR_MS),
                                     "message.timestamp.after.max.ms": str(HOUR_MS)})
    for shift_ms in (-2 * HOUR_MS, 2 * HOUR_MS):
        assert code(raw, topic, batch_of([b"v"], timestamp_ms=now_ms() + shift_ms)) == KafkaError.INVALID_TIMESTAMP
    assert code(raw, topic, fresh()) == 0


def test_the_records_at_fault_are_named_by_their_place_from_version_8_on(strict: KafkaCluster, raw: RawClient) -> None:
    topic = make_topic(strict, 1, **{"cleanup.policy": "compact"})  # refuses records without a key
    for version in (7, 8, 11):
        part = raw.produce(topic, 0, fresh(b"0", b"1"), version)
        named = [(each.batch_index, bool(each.batch_index_error_message)) for each in part.record_errors]
        assert part.error_code == KafkaError.INVALID_RECORD
        assert named == ([] if version < 8 else [(0, True), (1, True)])
        assert bool(part.error_message) == (version >= 8)


# What an answer says


def test_an_answer_tells_offset_time_and_where_the_log_begins(strict: KafkaCluster, raw: RawClient) -> None:
    plain, stamped = make_topic(strict, 1), make_topic(strict, 1, **{"message.timestamp.type": "LogAppendTime"})
    for number, version in enumerate((3, 5, 9, 11)):
        part = raw.produce(plain, 0, fresh(b"a", b"b"), version)
        assert (part.base_offset, part.log_append_time_ms) == (2 * number, -1)
        assert part.log_start_offset == (0 if version >= 5 else -1)
        before = now_ms()
        part = raw.produce(stamped, 0, fresh(b"a"), version)
        assert part.base_offset == number
        assert before - 1000 <= part.log_append_time_ms <= now_ms() + 1000


def test_without_acks_there_is_no_answer_and_errors_close_the_connection(strict: KafkaCluster) -> None:
    topic = make_topic(strict, 1)
    with RawClient(strict.bootstrap_servers) as client:
        client.send(produce_request(topic, 0, fresh(), acks=0), 9)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        assert client.call(asked, 9).topics[0].name == topic  # the next answer is that to the next question
        client.send(produce_request(topic, 7, fresh(), acks=0), 9)
        assert client.is_closed()


def test_numbers_that_are_repeated_missing_or_of_an_old_epoch(strict: KafkaCluster, raw: RawClient) -> None:
    topic, producer_id = make_topic(strict, 1), new_producer_id(raw)

    def send(sequence: int, epoch: int = 0, count: int = 1) -> tuple[int, int]:
        batch = fresh(*[b"v"] * count, producer_id=producer_id, epoch=epoch, sequence=sequence)
        part = raw.produce(topic, 0, batch)
        return part.error_code, part.base_offset

    assert send(0, count=2) == (0, 0)
    assert send(2) == (0, 2)
    assert send(0, count=2) == (0, 0)  # the same answer again, and nothing is stored twice
    refused = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(9) == (refused, -1)  # 3 comes after 2
    assert [send(3 + number) for number in range(6)] == [(0, 3 + number) for number in range(6)]
    assert send(0, count=2) == (refused, -1)  # older than the five that are remembered
    assert send(0, epoch=1) == (0, 9)
    assert send(9) == (KafkaError.INVALID_PRODUCER_EPOCH, -1)


# Internal topics


def test_only_the_client_id_of_the_brokers_admin_client_may_write_to_internal_topics(strict: KafkaCluster) -> None:
    servers = {"bootstrap.servers": strict.bootstrap_servers}
    with Consumer({**servers, "group.id": "makes-the-topic"}) as consumer:
        consumer.subscribe([make_topic(strict, 1)])
        consumer.poll(0.5)  # the coordinator makes its topic
    for client_id in ("", "headrace", "__admin_client"):
        given = {"client.id": client_id} if client_id else {}
        with Producer({**servers, **given}) as producer:
            sent = producer.send(ProducerRecord("__consumer_offsets", b"", b"", 0))
            if client_id == "__admin_client":
                assert sent.result(10).has_offset()
                continue
            with pytest.raises(KafkaException) as caught:
                sent.result(10)
            assert caught.value.error == KafkaError.TOPIC_EXCEPTION


# ACLs


@contextmanager
def denied(cluster: KafkaCluster, *rules: tuple[ResourceType, str, AclOperation]) -> Iterator[None]:
    """Deny everybody something, for the length of a block."""
    admin = ConfluentAdmin({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    bindings = [(kind, name, ResourcePatternType.LITERAL, "User:*", "*", what, permission)
                for permission, operation in ((AclPermissionType.ALLOW, AclOperation.ALL),
                                              (AclPermissionType.DENY, None))
                for kind, name, denial in rules for what in [operation or denial]]
    for binding in bindings:  # first all is allowed: with an ACL of its own a resource is closed to everybody else
        admin.create_acls([AclBinding(*binding)])[AclBinding(*binding)].result(10)
    time.sleep(0.5)  # the broker hears of it from the controller
    try:
        yield
    finally:
        for binding in reversed(bindings):
            admin.delete_acls([AclBindingFilter(*binding)])[AclBindingFilter(*binding)].result(10)


def test_a_topic_that_may_not_be_written_fails_its_records_and_no_others(strict: KafkaCluster) -> None:
    closed, free = make_topic(strict, 2), make_topic(strict, 1)
    found: list[tuple[str | None, KafkaError | None]] = []
    with Producer({"bootstrap.servers": strict.bootstrap_servers}) as producer:
        with denied(strict, (ResourceType.TOPIC, closed, AclOperation.WRITE)):
            for topic, partition in ((closed, 0), (closed, 1), (free, 0)):
                producer.produce(topic, b"v", partition=partition, on_delivery=lambda error, message: found.append(
                    (message.topic(), error)))
            assert producer.flush(10) == 0
        assert sorted(found, key=str) == sorted([
            (closed, KafkaError.TOPIC_AUTHORIZATION_FAILED), (closed, KafkaError.TOPIC_AUTHORIZATION_FAILED),
            (free, None)], key=str)


def test_a_producer_that_may_not_be_idempotent_fails_as_a_whole(strict: KafkaCluster) -> None:
    topic = make_topic(strict, 1)
    found: list[KafkaError | None] = []
    rules = ((ResourceType.BROKER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE),
             (ResourceType.TOPIC, "*", AclOperation.WRITE))
    with denied(strict, *rules):
        with frozen(strict):
            producer = Producer({"bootstrap.servers": strict.bootstrap_servers})
            producer.produce(topic, b"v", on_delivery=lambda error, message: found.append(error))
        with producer:
            assert producer.flush(10) == 0
            assert found == [KafkaError.CLUSTER_AUTHORIZATION_FAILED]
            with pytest.raises(FatalError, match="cannot go on"):
                producer.produce(topic, b"v")


def test_a_transactional_id_that_may_not_be_used_fails_every_record(strict: KafkaCluster) -> None:
    topic = make_topic(strict, 2)
    found: list[KafkaError | None] = []
    with Producer({"bootstrap.servers": strict.bootstrap_servers, "transactional.id": topic}) as producer:
        producer.init_transactions(30)
        producer.begin_transaction()
        with denied(strict, (ResourceType.TRANSACTIONAL_ID, topic, AclOperation.WRITE)):
            for partition in range(2):
                producer.produce(topic, b"v", partition=partition,
                                 on_delivery=lambda error, message: found.append(error))
            assert producer.flush(10) == 0
            with pytest.raises(KafkaException):
                producer.commit_transaction(10)
    assert found == [KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2


# Quotas


def test_a_producer_beyond_its_quota_is_told_to_wait_and_waits(strict: KafkaCluster, raw: RawClient) -> None:
    limited = AlterClientQuotasRequest(validate_only=False, entries=[AlterableQuotaEntry(
        entity=[AlterableQuotaEntity(entity_type="client-id", entity_name="fast")],
        ops=[QuotaOperation(key="producer_byte_rate", value=50_000.0, remove=False)])])
    assert raw.call(limited).entries[0].error_code == 0
    topic, told = make_topic(strict, 1), list[ThrottleEvent]()
    conf = {"bootstrap.servers": strict.bootstrap_servers, "client.id": "fast", "throttle_cb": told.append}
    with Producer(conf) as producer:
        for _ in range(30):
            producer.produce(topic, bytes(50_000), partition=0)
            began_at = time.monotonic()
            assert producer.flush(60) == 0
            if told:
                break
        producer.produce(topic, b"last", partition=0)
        assert producer.flush(60) == 0
        waited_s = time.monotonic() - began_at
    assert told[0].broker_id == 1
    assert waited_s >= told[0].throttle_time > 0
