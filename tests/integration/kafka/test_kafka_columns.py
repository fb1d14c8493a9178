"""Columns at a real Kafka, read by confluent_kafka."""

from typing import Any

import confluent_kafka
import pyarrow as pa

from headrace import Consumer, Producer
from tests.support.real_kafka import make_topic
from tools.kafka import KafkaCluster


def test_another_client_reads_the_columns(kafka: KafkaCluster) -> None:
    topic = make_topic(kafka, 2)
    entry = pa.struct([("key", pa.string()), ("value", pa.binary())])
    count = 30_000
    table = pa.table({
        "value": pa.array([None if n % 7 == 0 else f"value {n}" for n in range(count)], pa.string_view()),
        "key": pa.array([f"{n}".encode() for n in range(count)]),
        "headers": pa.array([[{"key": "n", "value": b"%d" % n}] for n in range(count)], pa.list_(entry)),
        "timestamp": pa.array([1_700_000_000_000 + n for n in range(count)], pa.timestamp("ms")),
        "partition": pa.array([n % 2 for n in range(count)], pa.int16()),
    })
    with Producer({**kafka.connection, "compression.type": "lz4"}) as producer:
        assert producer.produce_arrow(topic, table).result(60) == count
    consumer = confluent_kafka.Consumer({**kafka.connection, "group.id": topic})
    consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in (0, 1)])
    found: dict[tuple[int, int], tuple[object, ...]] = {}
    while len(found) < count:
        messages = consumer.consume(10_000, 30)
        assert messages
        for m in messages:
            assert m.error() is None
            found[m.partition(), m.offset()] = (m.key(), m.value(), m.headers(), m.timestamp()[1])
    consumer.close()
    assert found == {(n % 2, n // 2): (
        b"%d" % n, None if n % 7 == 0 else f"value {n}".encode(), [("n", b"%d" % n)], 1_700_000_000_000 + n)
        for n in range(count)}


def test_what_another_client_wrote_is_read_as_columns_committed_and_counted_as_lag(kafka: KafkaCluster) -> None:
    topic, count = make_topic(kafka, 3), 30_000
    producer = confluent_kafka.Producer({**kafka.connection, "compression.type": "zstd"})
    for n in range(count):
        producer.produce(topic, b"value %d" % n, key=b"%d" % n if n % 3 else None, partition=n % 3,
                         timestamp=1_700_000_000_000 + n, headers=[("n", b"%d" % n)] if n % 2 else None)
        producer.poll(0)
    assert producer.flush(60) == 0
    config = {**kafka.connection, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    rows: list[dict[str, Any]] = []
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        rows += pa.record_batch(consumer.consume_arrow(1000, 60)).to_pylist()
        assert sum(behind or 0 for behind in consumer.lag().values()) > 0
        while len(rows) < count:
            rows += pa.record_batch(consumer.consume_arrow(7000, 1)).to_pylist()
        assert set(consumer.lag().values()) == {0}
        assert consumer.health().group_state == "stable"
        consumer.commit(asynchronous=False)
        held = consumer.assignment()
        assert {tp.offset for tp in consumer.committed(held, 30)} == {count // 3}
    read = {(row["partition"], row["offset"]): row for row in rows}
    assert len(read) == len(rows) == count
    for n in range(count):
        row = read[n % 3, n // 3]
        assert (row["topic"], row["key"], row["value"]) == (topic, b"%d" % n if n % 3 else None, b"value %d" % n)
        assert row["headers"] == ([{"name": "n", "value": b"%d" % n}] if n % 2 else None)
        assert round(row["timestamp"].timestamp() * 1000) == 1_700_000_000_000 + n
