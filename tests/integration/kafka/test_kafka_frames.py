"""Frames at a real Kafka: what is written comes back, between any bounds, and what was aborted does not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import confluent_kafka
import polars
import pyarrow as pa
import pytest

from headrace import KafkaException, Producer, read_topic, write_topic
from headrace.admin import AdminClient
from headrace.types.records import TopicPartition
from tests.support.real_kafka import make_topic
from tools.kafka import KafkaCluster

COUNT = 20_000
BEGAN_MS = 1_700_000_000_000


def read(kafka: KafkaCluster, topic: str, **more: Any) -> pa.Table:
    return read_topic(topic, kafka.connection, **more)


def numbers(table: pa.Table) -> Sequence[int]:
    return [int(value) for value in table["value"].to_pylist()]


@pytest.fixture(scope="module")
def written(kafka: KafkaCluster) -> str:
    """A topic of two partitions; row n is in partition n % 2, one millisecond after the row before."""
    topic = make_topic(kafka, 2)
    frame = polars.DataFrame({
        "customer": [f"c{n % 7}" for n in range(COUNT)], "value": [str(n) for n in range(COUNT)],
        "at": [BEGAN_MS + n for n in range(COUNT)], "where": [n % 2 for n in range(COUNT)]})
    assert write_topic(frame, topic, {**kafka.connection, "compression.type": "zstd"}, key="customer",
                       timestamp="at", partition="where") == COUNT
    return topic


def test_another_client_reads_the_frame(kafka: KafkaCluster, written: str) -> None:
    consumer = confluent_kafka.Consumer({**kafka.connection, "group.id": "frames"})
    consumer.assign([confluent_kafka.TopicPartition(written, 1, 0)])
    first, second = consumer.consume(2, 30)
    consumer.close()
    assert [(m.key(), m.value(), m.timestamp()[1]) for m in (first, second)] == [
        (b"c1", b"1", BEGAN_MS + 1), (b"c3", b"3", BEGAN_MS + 3)]


def test_a_topic_is_read_between_offsets_and_times(kafka: KafkaCluster, written: str) -> None:
    assert numbers(read(kafka, written)) == [*range(0, COUNT, 2), *range(1, COUNT, 2)]
    assert numbers(read(kafka, written, start=-2, partitions=[1])) == [COUNT - 3, COUNT - 1]
    assert numbers(read(kafka, written, start=10, end=12)) == [20, 22, 21, 23]
    began = datetime.fromtimestamp(BEGAN_MS / 1000, UTC)
    assert numbers(read(kafka, written, start=began.replace(second=began.second + 1), limit=2)) == [1000, 1002]
    assert read(kafka, written, end=began).num_rows == 0


def test_what_was_aborted_and_what_is_open_are_left_out(kafka: KafkaCluster) -> None:
    topic = make_topic(kafka, 1)
    with Producer({**kafka.connection, "transactional.id": topic}) as producer:
        producer.init_transactions(30)
        for value, commit in (("1", True), ("2", False), ("3", True)):
            producer.begin_transaction()
            producer.produce(topic, value)
            producer.flush()
            (producer.commit_transaction if commit else producer.abort_transaction)(30)
        producer.begin_transaction()
        producer.produce(topic, "4")
        producer.flush()
        assert numbers(read(kafka, topic)) == [1, 3]
        assert numbers(read_topic(topic, {**kafka.connection, "isolation.level": "read_uncommitted"})) == [1, 2, 3, 4]
        producer.abort_transaction(30)


def test_records_that_are_gone_are_said_to_be(kafka: KafkaCluster) -> None:
    topic = make_topic(kafka, 1)
    assert write_topic(pa.table({"value": ["0", "1", "2"]}), topic, kafka.connection) == 3
    with AdminClient(kafka.connection) as admin:
        (gone,) = admin.delete_records([TopicPartition(topic, 0, 2)]).values()
        gone.result(30)
    assert numbers(read(kafka, topic)) == [2]
    with pytest.raises(KafkaException, match=topic):
        read(kafka, topic, start=1)
