"""Columns at a real Kafka, read by confluent_kafka."""

import confluent_kafka
import pyarrow as pa

from headrace import Producer
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
