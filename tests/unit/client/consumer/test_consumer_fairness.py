"""No partition starves another, whichever call reads, and what waits in the queue is bounded over many partitions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.testing import EmbeddedBroker

pa = pytest.importorskip("pyarrow")

BACKLOG, FEW, OTHERS = 60_000, 20, 15
SIZE = 100
MANY = 80


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"uneven": 1 + OTHERS, "many": MANY}) as broker:
        # A batch comes whole if it is the first of a reply: on a busy machine it would be larger than all limits.
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 0,
                       "batch.size": 50_000}) as producer:
            for _ in range(BACKLOG):
                producer.produce("uneven", b"x" * SIZE, partition=0)
            for partition in range(1, 1 + OTHERS):
                for _ in range(FEW):
                    producer.produce("uneven", b"y" * SIZE, partition=partition)
            for partition in range(MANY):
                for _ in range(20):
                    producer.produce("many", b"z" * 1000, partition=partition)
            assert producer.flush(60) == 0
        yield broker


def properties(broker: EmbeddedBroker, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50,
            "max.partition.fetch.bytes": 100_000, **{name.replace("_", "."): value for name, value in more.items()}}


def by_poll(reader: Consumer) -> list[int]:
    message = reader.poll(10)
    assert message is not None
    assert message.error() is None
    return [message.partition() or 0]


def by_consume(reader: Consumer) -> list[int]:
    return [message.partition() or 0 for message in reader.consume(100, 10)]


def by_columns(reader: Consumer) -> list[int]:
    partitions: list[int] = pa.record_batch(reader.consume_arrow(100, 10))["partition"].to_pylist()
    return partitions


@pytest.mark.parametrize("read", [by_poll, by_consume, by_columns])
@pytest.mark.parametrize("most_bytes", [52_428_800, 150_000])
def test_a_partition_with_a_large_backlog_does_not_starve_others(
    broker: EmbeddedBroker, read: Any, most_bytes: int
) -> None:
    seen: list[int] = []
    with Consumer(properties(broker, fetch_max_bytes=most_bytes)) as reader:
        reader.assign([TopicPartition("uneven", partition, 0) for partition in range(1 + OTHERS)])
        while len(seen) < BACKLOG // 2 and len(set(seen)) < 1 + OTHERS:
            seen += read(reader)
    last = len(seen)
    assert set(seen) == set(range(1 + OTHERS))
    replies = 8 + 2  # that one partition may have in the queue, and those on the wire
    assert last <= replies * 100_000 // SIZE + OTHERS * FEW


def test_what_waits_is_bounded_over_many_partitions(broker: EmbeddedBroker) -> None:
    budget, most = 256, 30_000
    config = properties(broker, queued_max_messages_kbytes=budget, max_partition_fetch_bytes=most)
    with Consumer(config) as reader:
        reader.assign([TopicPartition("many", partition, 0) for partition in range(MANY)])
        queued: list[int] = []
        read = 0
        while read < MANY * 20:
            before = -1
            while (now := waiting(reader)) != before:  # until it fetches no more
                before = now
                time.sleep(0.03)
            queued.append(now)
            read += len(reader.consume(100, 10))
    assert max(queued) > budget * 1024 // 2, "it fetches ahead"
    assert max(queued) <= budget * 1024 + most


def waiting(reader: Consumer) -> int:
    """Bytes of records that were fetched and not read, without what surrounds them."""
    partitions = reader.metrics()["topics"]["many"]["partitions"].values()
    return sum(max(found["next_offset"] - max(found["app_offset"], 0), 0) * 1000 for found in partitions)
