"""Records through real Kafka: what goes in comes out, by whatever client at either end."""

import collections
import time
from typing import Any

import confluent_kafka
import pytest

from headrace import TIMESTAMP_CREATE_TIME, Consumer, KafkaError, Message, Producer, TopicPartition
from tests.support.real_kafka import read_all, take
from tools.kafka import KafkaCluster

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def produce(cluster: KafkaCluster, topic: str, records: list[dict[str, Any]], **config: Any) -> list[Message]:
    reports: list[tuple[KafkaError | None, Message]] = []
    with Producer({**cluster.connection, **config}) as producer:
        for record in records:
            producer.produce(topic, **record, on_delivery=lambda error, message: reports.append((error, message)))
        assert producer.flush(30) == 0
    assert [error for error, _ in reports if error is not None] == []
    return [message for _, message in reports]


def test_a_record_comes_back_with_everything_it_was_given(kafka: KafkaCluster, topic: str) -> None:
    headers = [("a", b"1"), ("a", b"2"), ("none", None)]
    (report,) = produce(kafka, topic, [{"value": b"v", "key": b"k", "headers": headers, "timestamp": 1_700_000_000_123,
                                        "partition": 2}])
    (message,) = read_all(kafka, topic, 1)
    assert (message.value(), message.key(), message.headers()) == (b"v", b"k", headers)
    assert message.timestamp() == (TIMESTAMP_CREATE_TIME, 1_700_000_000_123)
    assert (message.topic(), message.partition(), message.offset()) == (topic, 2, 0)
    assert (report.topic(), report.partition(), report.offset()) == (topic, 2, 0)


def test_null_and_empty_are_different_values(kafka: KafkaCluster, topic: str) -> None:
    produce(kafka, topic, [{"value": None, "key": b"", "partition": 0}, {"value": b"", "key": None, "partition": 0}])
    assert [(m.key(), m.value()) for m in read_all(kafka, topic, 2)] == [(b"", None), (None, b"")]


def test_a_timestamp_that_was_not_given_is_now(kafka: KafkaCluster, topic: str) -> None:
    before_ms = int(time.time() * 1000)
    produce(kafka, topic, [{"value": b"v"}])
    (message,) = read_all(kafka, topic, 1)
    assert before_ms <= message.timestamp()[1] <= int(time.time() * 1000)


@pytest.mark.parametrize("codec", CODECS)
def test_many_records_keep_their_order_in_each_partition(kafka: KafkaCluster, topic: str, codec: str) -> None:
    total = 20_000
    written = [{"value": f"{i:08d}".encode() * 8, "key": str(i % 100).encode()} for i in range(total)]
    reports = produce(kafka, topic, written, **{"compression.type": codec, "queue.buffering.max.messages": total})
    messages = read_all(kafka, topic, total)
    by_key: dict[bytes, list[bytes]] = collections.defaultdict(list)
    for message in messages:
        by_key[message.key()].append(message.value())
    assert len(by_key) == 100
    assert all(values == sorted(values) and len(values) == total // 100 for values in by_key.values())
    places = [(m.partition(), m.offset()) for m in reports]
    assert len(set(places)) == total
    assert sorted(places) == sorted((m.partition(), m.offset()) for m in messages)


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_reads_what_we_write(kafka: KafkaCluster, topic: str, codec: str) -> None:
    written = [{"value": f"{i}".encode() * 50, "key": b"k", "headers": [("i", str(i).encode())]} for i in range(2_000)]
    produce(kafka, topic, written, **{"compression.type": codec})
    consumer = confluent_kafka.Consumer({**kafka.connection, "group.id": f"lr-{topic}",
                                         "auto.offset.reset": "earliest", "check.crcs": True})
    consumer.subscribe([topic])
    found = take(consumer, len(written))
    consumer.close()
    assert [(m.value(), m.key(), m.headers()) for m in found] == [(r["value"], r["key"], r["headers"]) for r in written]


@pytest.mark.parametrize("codec", CODECS)
def test_we_read_what_librdkafka_writes(kafka: KafkaCluster, topic: str, codec: str) -> None:
    producer = confluent_kafka.Producer({**kafka.connection, "compression.type": codec,
                                         "linger.ms": 50})
    for i in range(2_000):
        producer.produce(topic, f"{i}".encode() * 50, b"k", headers=[("i", str(i).encode())])
    assert producer.flush(30) == 0
    found = read_all(kafka, topic, 2_000)
    assert [m.value() for m in found] == [f"{i}".encode() * 50 for i in range(2_000)]
    assert found[7].headers() == [("i", b"7")]


def test_both_clients_send_a_key_to_the_same_partition(kafka: KafkaCluster, topic: str) -> None:
    keys = [f"key-{i}".encode() for i in range(50)]
    ours = {m.key(): m.partition() for m in produce(kafka, topic, [{"value": b"", "key": key} for key in keys])}
    theirs: dict[bytes, int] = {}
    producer = confluent_kafka.Producer(kafka.connection)
    for key in keys:
        producer.produce(topic, b"", key, on_delivery=lambda _e, m: theirs.update({m.key(): m.partition()}))
    producer.flush(30)
    assert ours == theirs


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_setting_delivers(kafka: KafkaCluster, topic: str, acks: str) -> None:
    # What is sent without acknowledgement to a leader that does not know of the topic yet is lost: let it know first.
    produce(kafka, topic, [{"value": b"first", "partition": index} for index in range(3)])
    produce(kafka, topic, [{"value": b"v"}] * 100, acks=acks, **{"enable.idempotence": acks == "all"})
    assert len(read_all(kafka, topic, 103)) == 103


def test_a_record_that_is_too_large_for_the_topic_is_reported(kafka: KafkaCluster, topic: str) -> None:
    reports: list[KafkaError | None] = []
    with Producer({**kafka.connection, "message.max.bytes": 5_000_000}) as producer:
        producer.produce(topic, b"x" * 2_000_000, on_delivery=lambda error, _m: reports.append(error))
        producer.flush(30)
    assert [error is not None and error.code() for error in reports] == [KafkaError.MSG_SIZE_TOO_LARGE]


def test_reading_can_start_anywhere_and_seek_back(kafka: KafkaCluster, topic: str) -> None:
    produce(kafka, topic, [{"value": str(i).encode(), "partition": 1, "timestamp": 1_000 + i} for i in range(100)])
    with Consumer({**kafka.connection, "group.id": topic}) as consumer:
        consumer.assign([TopicPartition(topic, 1, 40)])
        assert [m.offset() for m in consumer.consume(10, 10)] == list(range(40, 50))
        consumer.seek(TopicPartition(topic, 1, 5))
        assert [m.offset() for m in consumer.consume(3, 10)] == [5, 6, 7]
        assert consumer.get_watermark_offsets(TopicPartition(topic, 1), 10) == (0, 100)
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 1, 1_030)], 10)
        assert found.offset == 30
        assert consumer.position([TopicPartition(topic, 1)])[0].offset == 8
