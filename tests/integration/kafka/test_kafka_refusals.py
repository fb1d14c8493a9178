"""What a real Kafka refuses: batches in parts, records by name, and topics that are made anew."""

import time
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient as ConfluentAdmin
from confluent_kafka.admin import NewTopic

from headrace import KafkaError, Producer
from tests.support.real_kafka import make_topic, read_all
from tools.kafka import KafkaCluster

Found = list[tuple[bytes | None, KafkaError | None, int | None]]


def send(producer: Producer, topic: str, records: list[dict[str, Any]]) -> Found:
    found: Found = []
    for record in records:
        producer.produce(topic, **record, partition=0, on_delivery=lambda error, message: found.append(
            (message.value(), error, message.offset())))
    assert producer.flush(30) == 0
    return found


def admin_of(kafka: KafkaCluster) -> Any:
    return ConfluentAdmin({**kafka.connection, "log_level": 0})


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_compacted_topic_refuses_records_without_a_key_and_no_other(kafka: KafkaCluster, idempotent: bool) -> None:
    topic = make_topic(kafka, 1, **{"cleanup.policy": "compact"})
    records = [{"value": b"%d" % n, "key": None if n in (2, 3, 7) else b"k%d" % n} for n in range(10)]
    with Producer({**kafka.connection, "linger.ms": 100,
                   "enable.idempotence": idempotent}) as producer:
        for _ in range(2):
            found = send(producer, topic, records)
            errors = {value: error for value, error, _ in found if error}
            assert set(errors) == {b"2", b"3", b"7"}
            assert {error.code() for error in errors.values()} == {KafkaError.INVALID_RECORD}
            assert "key" in errors[b"2"].str()
    assert [m.value() for m in read_all(kafka, topic, 14)] == [b"%d" % n for n in (0, 1, 4, 5, 6, 8, 9)] * 2


@pytest.mark.parametrize(("limits", "size"), [
    ({"max.message.bytes": "3000"}, 500), ({"segment.bytes": "1048576", "max.message.bytes": "5000000"}, 200_000)])
def test_batches_that_are_too_large_go_in_parts(kafka: KafkaCluster, limits: dict[str, str], size: int) -> None:
    topic = make_topic(kafka, 1, **limits)
    records = [{"value": b"%03d" % n + b"." * size} for n in range(40)]
    with Producer({**kafka.connection, "linger.ms": 100, "batch.size": 4_000_000,
                   "message.max.bytes": 5_000_000}) as producer:
        found = send(producer, topic, records)
        assert [(error, offset) for _, error, offset in found] == [(None, n) for n in range(40)]
        ((_, error, _),) = send(producer, topic, [{"value": b"x" * (size * 8)}])
        assert error is not None
        assert error.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
        assert [offset for _, _, offset in send(producer, topic, records)] == list(range(40, 80))


@pytest.mark.parametrize("idempotent", [True, False])
def test_records_follow_a_topic_that_was_deleted_and_made_again(kafka: KafkaCluster, idempotent: bool) -> None:
    topic, admin = make_topic(kafka, 1), admin_of(kafka)
    with Producer({**kafka.connection, "enable.idempotence": idempotent}) as producer:
        assert [offset for _, _, offset in send(producer, topic, [{"value": b"a"}, {"value": b"b"}])] == [0, 1]
        admin.delete_topics([topic])[topic].result(30)
        time.sleep(1)
        admin.create_topics([NewTopic(topic, 1, len(kafka.nodes))])[topic].result(30)
        assert send(producer, topic, [{"value": b"c"}]) == [(b"c", None, 0)]
        assert send(producer, topic, [{"value": b"d"}]) == [(b"d", None, 1)]
    assert [m.value() for m in read_all(kafka, topic, 2)] == [b"c", b"d"]
