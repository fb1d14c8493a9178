"""Clients that are not ours, at the embedded broker: what they all take for granted works."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import aiokafka
import confluent_kafka
import kafka
import pytest

from headrace.testing import EmbeddedBroker
from tests.support.kafka_python import KAFKA_PYTHON

pytestmark = [*KAFKA_PYTHON]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
COUNT = 200
Pairs = list[tuple[bytes, bytes]]


def pairs(mark: str) -> Pairs:
    return [(f"{mark}-key-{i}".encode(), f"{mark} value {i} ".encode() * 5) for i in range(COUNT)]


def produce_with_confluent(servers: str, topic: str, records: Pairs, codec: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 5,
                                         "enable.idempotence": True})
    failed = []
    for key, value in records:
        producer.produce(topic, value, key, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(10) == 0
    assert not failed


def produce_with_kafka_python(servers: str, topic: str, records: Pairs, codec: str) -> None:
    with closing(kafka.KafkaProducer(bootstrap_servers=servers, linger_ms=5,
                                     compression_type=None if codec == "none" else codec)) as producer:
        futures = [producer.send(topic, value, key) for key, value in records]
        producer.flush(10)
        assert all(future.get(5).offset >= 0 for future in futures)


def produce_with_aiokafka(servers: str, topic: str, records: Pairs, codec: str) -> None:
    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True,
                                             compression_type=None if codec == "none" else codec)
        await producer.start()
        try:
            sent = [await producer.send(topic, value, key) for key, value in records]
            await asyncio.gather(*sent)
        finally:
            await producer.stop()

    asyncio.run(run())


def consume_with_confluent(servers: str, topic: str, count: int) -> Pairs:
    with closing(confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "confluent",
                                           "auto.offset.reset": "earliest"})) as consumer:
        consumer.subscribe([topic])
        found: Pairs = []
        deadline = time.monotonic() + 15
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(count, 0.2):
                assert message.error() is None
                found.append((message.key(), message.value()))
        consumer.commit(asynchronous=False)
        return found


def consume_with_kafka_python(servers: str, topic: str, count: int) -> Pairs:
    with closing(kafka.KafkaConsumer(topic, bootstrap_servers=servers, group_id="kafka-python",
                                     auto_offset_reset="earliest")) as consumer:
        found: Pairs = []
        deadline = time.monotonic() + 15
        while len(found) < count and time.monotonic() < deadline:
            for records in consumer.poll(5000).values():  # one that ends while it joins loses its assignment
                found += [(record.key, record.value) for record in records]
        return found


def consume_with_aiokafka(servers: str, topic: str, count: int) -> Pairs:
    async def run() -> Pairs:
        consumer = aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=servers, group_id="aiokafka",
                                             auto_offset_reset="earliest")
        await consumer.start()
        try:
            found: Pairs = []
            async with asyncio.timeout(15):
                while len(found) < count:
                    record = await consumer.getone()
                    found.append((record.key, record.value))
            return found
        finally:
            await consumer.stop()

    return asyncio.run(run())


PRODUCERS = [produce_with_confluent, produce_with_kafka_python, produce_with_aiokafka]
CONSUMERS = [consume_with_confluent, consume_with_kafka_python, consume_with_aiokafka]


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(nodes=2) as broker:
        yield broker


@pytest.mark.parametrize("produce", PRODUCERS)
def test_every_client_reads_what_a_foreign_producer_writes_in_each_codec(
    shared: EmbeddedBroker, produce: Callable[[str, str, Pairs, str], None]
) -> None:
    topic = produce.__name__
    shared.create_topic(topic, 3)
    expected: Pairs = []
    for codec in CODECS:
        produce(shared.bootstrap_servers, topic, pairs(codec), codec)
        expected += pairs(codec)
    assert sum(shared.end_offsets(topic)) == len(expected)
    for consume in CONSUMERS:
        assert sorted(consume(shared.bootstrap_servers, topic, len(expected))) == sorted(expected), consume.__name__


def test_order_within_a_partition_is_the_producers(broker: EmbeddedBroker) -> None:
    records = [(b"same key", str(i).encode()) for i in range(COUNT)]
    broker.create_topic("ordered", 4)
    for produce in PRODUCERS:
        produce(broker.bootstrap_servers, "ordered", records, "lz4")
    found = consume_with_confluent(broker.bootstrap_servers, "ordered", 3 * COUNT)
    assert found == records * 3


def test_a_topic_appears_when_it_is_first_named(broker: EmbeddedBroker) -> None:
    produce_with_confluent(broker.bootstrap_servers, "unheard-of", pairs("x"), "none")
    assert broker.end_offsets("unheard-of") == [COUNT]


@contextmanager
def confluent_member(broker: EmbeddedBroker, topic: str, group: str) -> Iterator[confluent_kafka.Consumer]:
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "range", "session.timeout.ms": 6000, "heartbeat.interval.ms": 200})
    consumer.subscribe([topic])
    with closing(consumer):
        yield consumer


def test_kafka_python_and_confluent_share_a_group(broker: EmbeddedBroker) -> None:
    broker.create_topic("shared", 4)
    other = kafka.KafkaConsumer(
        "shared", bootstrap_servers=broker.bootstrap_servers, group_id="mixed", auto_offset_reset="earliest",
        partition_assignment_strategy=[kafka.coordinator.assignors.range.RangePartitionAssignor],
        session_timeout_ms=6000, heartbeat_interval_ms=200)
    with confluent_member(broker, "shared", "mixed") as first, closing(other):
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            first.poll(0.1)
            other.poll(100)
            if len(first.assignment()) == 2 and len(other.assignment()) == 2:
                break
        held = {(tp.topic, tp.partition) for tp in first.assignment()}
        held |= {(tp.topic, tp.partition) for tp in other.assignment()}
        assert held == {("shared", index) for index in range(4)}
        produce_with_confluent(broker.bootstrap_servers, "shared", pairs("m"), "none")
        found = 0
        while found < COUNT and time.monotonic() < deadline:
            found += sum(message.error() is None for message in first.consume(COUNT, 0.1))
            found += sum(len(records) for records in other.poll(100).values())
        assert found == COUNT


def test_a_member_that_leaves_hands_its_partitions_over(broker: EmbeddedBroker) -> None:
    broker.create_topic("handed", 2)
    with confluent_member(broker, "handed", "g") as stays:
        with confluent_member(broker, "handed", "g") as leaves:
            deadline = time.monotonic() + 15
            while (len(stays.assignment()), len(leaves.assignment())) != (1, 1) and time.monotonic() < deadline:
                stays.poll(0.05)
                leaves.poll(0.05)
            assert len(stays.assignment()) == 1
        while len(stays.assignment()) != 2 and time.monotonic() < deadline:
            stays.poll(0.05)
        assert len(stays.assignment()) == 2


def test_a_reader_goes_on_where_its_group_committed(broker: EmbeddedBroker) -> None:
    produce_with_confluent(broker.bootstrap_servers, "resumed", pairs("a"), "none")
    assert len(consume_with_confluent(broker.bootstrap_servers, "resumed", COUNT)) == COUNT
    produce_with_confluent(broker.bootstrap_servers, "resumed", pairs("b"), "none")
    assert consume_with_confluent(broker.bootstrap_servers, "resumed", COUNT) == pairs("b")
