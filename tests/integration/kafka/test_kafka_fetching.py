"""What a consumer takes from real Kafka at a time: partitions by turns, bounded ahead, and past damage."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from headrace import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from tests.support.real_kafka import make_topic, take, until
from tools.kafka import KafkaCluster

SIZE = 1_000


def fill(cluster: KafkaCluster, topic: str, partitions: int, each: int, batch: int = 10) -> None:
    """So many records for each partition, in batches of so many."""
    with Producer({**cluster.connection, "batch.num.messages": batch}) as producer:
        for partition in range(partitions):
            for number in range(each):
                producer.produce(topic, b"%09d" % number + b"." * (SIZE - 9), partition=partition)
        assert producer.flush(60) == 0


def reader(cluster: KafkaCluster, topic: str, partitions: int, **more: Any) -> Consumer:
    consumer = Consumer({**cluster.connection, "fetch.wait.max.ms": 100, "auto.offset.reset": "earliest",
                         **{name.replace("_", "."): value for name, value in more.items()}})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    return consumer


def fetches(consumer: Consumer) -> int:
    return sum(broker["req"].get("Fetch", 0) for broker in consumer.metrics()["brokers"].values())


@pytest.mark.parametrize("most_bytes", [20_000, 5_000_000])
def test_of_fifty_partitions_none_starves(kafka: KafkaCluster, most_bytes: int) -> None:
    partitions, each = 50, 40
    topic = make_topic(kafka, partitions)
    fill(kafka, topic, partitions, each)
    read: Counter[int | None] = Counter()
    behind: dict[int, int] = {}  # when the first partition of a broker is read to its end; no broker waits for another
    with reader(kafka, topic, partitions, fetch_max_bytes=most_bytes, max_partition_fetch_bytes=10_500) as consumer:
        found = consumer.list_topics(topic).topics[topic].partitions
        leaders = {number: partition.leader for number, partition in found.items()}
        while read.total() < partitions * each:
            for message in consumer.consume(10, 10):
                assert message.error() is None
                read[message.partition()] += 1
            for leader in leaders.values():
                of_it = [read[partition] for partition, its_leader in leaders.items() if its_leader == leader]
                if leader not in behind and max(of_it) == each:
                    behind[leader] = each - min(of_it)
    assert max(behind.values()) <= each // 2, f"so many of {each} records is one behind: {behind}"


def test_no_reply_is_larger_than_it_may_be(kafka: KafkaCluster) -> None:
    partitions, each, most_bytes = 3, 300, 30_000
    topic = make_topic(kafka, partitions)
    fill(kafka, topic, partitions, each)
    with reader(kafka, topic, partitions, fetch_max_bytes=most_bytes) as consumer:
        take(consumer, partitions * each)
        assert fetches(consumer) >= partitions * each * SIZE // (most_bytes + 11 * SIZE)


def test_what_is_fetched_ahead_of_the_application_is_bounded_in_bytes(kafka: KafkaCluster) -> None:
    partitions, each, budget_kb, most = 3, 2_000, 256, 50_000
    topic = make_topic(kafka, partitions)
    fill(kafka, topic, partitions, each)
    with reader(kafka, topic, partitions, queued_max_messages_kbytes=budget_kb,
                max_partition_fetch_bytes=most) as consumer:
        def ahead() -> int:
            found = consumer.metrics()["topics"].get(topic, {"partitions": {}})["partitions"].values()
            return sum(max(part["next_offset"] - max(part["app_offset"], 0), 0) for part in found) * SIZE

        read, most_ahead = 0, 0
        while read < partitions * each:
            seen = [-1, ahead()]
            while seen[-1] != seen[-2] or (not seen[-1] and read == 0):
                time.sleep(0.05)
                seen.append(ahead())
            most_ahead = max(most_ahead, *seen)
            read += len(consumer.consume(500, 10))
    assert most_ahead > budget_kb * 1024 // 2, "it does fetch ahead"
    assert most_ahead <= budget_kb * 1024 + len(kafka.nodes) * most


def test_aborted_records_are_left_out_and_offsets_go_on_behind_them(kafka: KafkaCluster) -> None:
    topic = make_topic(kafka, 1)
    with Producer({**kafka.connection, "transactional.id": topic}) as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            for each in range(20):
                producer.produce(topic, b"%d %d" % (number, each), partition=0)
            if number % 2:
                producer.flush(30)
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    for isolation, kept in (("read_committed", (0, 2, 4)), ("read_uncommitted", tuple(range(6)))):
        with reader(kafka, topic, 1, isolation_level=isolation) as consumer:
            messages = take(consumer, 20 * len(kept))
            assert [m.value() for m in messages] == [b"%d %d" % (n, e) for n in kept for e in range(20)]
            assert all(a.offset() < b.offset() for a, b in pairwise(messages))
            end = consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)[1]
            assert end == 6 * 21, "each transaction ends with a marker"
            assert consumer.poll(1.0) is None
            assert consumer.position([TopicPartition(topic, 0)])[0].offset == end


@pytest.mark.slow
def test_a_damaged_batch_is_told_with_its_place_and_can_be_passed(own_kafka: KafkaCluster) -> None:
    topic = make_topic(own_kafka, 1)
    fill(own_kafka, topic, 1, 30)
    own_kafka.stop(1)
    [log] = (own_kafka.directory / "node-1").rglob(f"{topic}-0/*.log")
    data = bytearray(log.read_bytes())
    at = data.index(b"%09d" % 15)
    data[at + 20] ^= 1
    log.write_bytes(data)
    own_kafka.restart(1)
    with reader(own_kafka, topic, 1, check_crcs=True) as consumer:
        found: list[Any] = []
        until(lambda: found.extend(consumer.consume(100, 0.2)) or any(m.error() for m in found))
        damage = found.pop()
        assert [m.offset() for m in found] == list(range(10)), "all in front of it is handed out first"
        assert (damage.error(), damage.partition(), damage.offset()) == (KafkaError.INVALID_MSG, 0, 10)
        assert "seek() past the damage" in damage.error().str()
        assert consumer.poll(0.5) is None
        assert consumer.position([TopicPartition(topic, 0)])[0].offset == 10
        consumer.seek(TopicPartition(topic, 0, 20))
        assert [m.offset() for m in take(consumer, 10)] == list(range(20, 30))


def test_a_fetch_that_the_broker_holds_back_keeps_nothing_else_waiting(kafka: KafkaCluster) -> None:
    topic = make_topic(kafka, 3)
    fill(kafka, topic, 3, 5)
    held_ms = 20_000
    with Consumer({**kafka.connection, "fetch.wait.max.ms": held_ms, "enable.partition.eof": True}) as consumer:
        def read(partition: int) -> list[Any]:
            return sorted((message.partition(), message.offset()) for message in consumer.consume(5, 10))

        def hold() -> None:
            """Every fetch is held back: all is read, which the broker says once."""
            message = consumer.poll(10)
            assert message is not None
            assert message.error() == KafkaError._PARTITION_EOF

        began = time.monotonic()
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert read(0) == [(0, offset) for offset in range(5)]
        hold()
        consumer.incremental_assign([TopicPartition(topic, 1, OFFSET_BEGINNING)])
        assert read(1) == [(1, offset) for offset in range(5)]
        hold()
        consumer.assign([TopicPartition(topic, 2, OFFSET_BEGINNING)])
        assert read(2) == [(2, offset) for offset in range(5)]
        hold()
        consumer.seek(TopicPartition(topic, 2, 4))
        assert [message.offset() for message in consumer.consume(1, 10)] == [4]
        assert time.monotonic() - began < held_ms / 1000 / 2
