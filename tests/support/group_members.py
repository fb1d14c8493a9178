"""Members of groups at an embedded broker, for the tests beside this file."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from headrace.client.consumer.consumer import Consumer
from headrace.client.producer.producer import Producer
from headrace.testing import EmbeddedBroker
from headrace.types.records import TopicPartition


def fill(broker: EmbeddedBroker, topic: str, count: int) -> None:
    """Write so many records to each of four partitions."""
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for partition in range(4):
            for i in range(count):
                producer.produce(topic, value=b"%d" % i, partition=partition)
        assert producer.flush(10) == 0


def consumer(broker: EmbeddedBroker, group: str, **properties: Any) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest",
                     "heartbeat.interval.ms": 100, "fetch.wait.max.ms": 50, **properties})


def held(*members: Consumer) -> list[int]:
    return [len(member.assignment()) for member in members]


def poll_until(condition: Callable[[], bool], *members: Consumer, timeout_s: float = 15.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"assigned: {held(*members)}"
        for member in members:
            member.poll(0.02)


def numbers(partitions: list[TopicPartition]) -> list[int]:
    return sorted(tp.partition for tp in partitions)
