"""Records one by one to real Kafka and back, while brokers die: the threads that wait take reports and records."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict

import pytest

from headrace import Consumer, Producer
from tests.support.real_kafka import make_topic
from tools.kafka import KafkaCluster

PAUSE_S, PATIENCE_S = 0.003, 60.0


class OneByOne:
    """Writes records one by one, each a request, and reads them as they come."""

    def __init__(self, cluster: KafkaCluster, partitions: int, protocol: str) -> None:
        self.topic, self.partitions = make_topic(cluster, partitions), partitions
        self.producer = Producer({**cluster.connection, "linger.ms": 0, "message.timeout.ms": 120_000})
        self.consumer = Consumer({**cluster.connection, "group.id": self.topic, "group.protocol": protocol,
                                  "auto.offset.reset": "earliest"})
        self.consumer.subscribe([self.topic])
        self.written = self.stored = self.direct = self.direct_replies = 0
        self.read: dict[int | None, list[tuple[int | None, bytes | None]]] = defaultdict(list)
        self._stop = threading.Event()
        self._writer = threading.Thread(target=self._write)

    def _write(self) -> None:
        def stored(error: object, _message: object) -> None:
            assert error is None
            self.stored += 1

        while not self._stop.is_set():
            self.producer.produce(self.topic, b"%d" % self.written, partition=self.written % self.partitions,
                                  on_delivery=stored)
            self.written += 1
            self._serve(random.random())
            if (replies := self.producer._engine.replies) is not None:
                self.direct_replies += replies.ready
        assert self.producer.flush(PATIENCE_S) == 0

    def _serve(self, chance: float) -> None:
        """As applications do: wait for the report, or flush, or look and do something else."""
        if chance < 0.3:
            self.producer.poll(0.05)
        elif chance < 0.4:
            self.producer.flush(0.05)
        else:
            self.producer.poll(0)
            time.sleep(PAUSE_S if chance < 0.99 else 0.2)

    def run(self, seconds: float) -> None:
        """Write and read for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._take()

    def _take(self) -> None:
        message = self.consumer.poll(0.1 if random.random() < 0.9 else 0)
        if (direct := self.consumer._engine.machines.direct) is not None:
            self.direct += any(lane.lent for lane in direct.lanes.lanes)
        if message is not None:
            assert message.error() is None
            self.read[message.partition()].append((message.offset(), message.value()))

    def __enter__(self) -> OneByOne:
        self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._writer.join(PATIENCE_S)
        end = time.monotonic() + PATIENCE_S
        while sum(map(len, self.read.values())) < self.written and time.monotonic() < end:
            self._take()
        self.consumer.close()
        self.producer.close()
        assert self.stored == self.written
        for partition, records in self.read.items():
            assert partition is not None
            assert records == [(place, b"%d" % number) for place, number in enumerate(
                range(partition, self.written, self.partitions))]


@pytest.mark.parametrize("protocol", ["classic", pytest.param("consumer", marks=pytest.mark.slow)])
def test_a_broker_that_dies_and_comes_back_costs_no_record_and_brings_none_twice(
    own_kafka: KafkaCluster, protocol: str
) -> None:
    if protocol == "consumer" and own_kafka.version.startswith("3."):
        pytest.skip("groups that the coordinator plans for came with Kafka 4")
    with OneByOne(own_kafka, 3, protocol) as load:
        load.run(3)
        own_kafka.kill(1)
        load.run(0.5)
        own_kafka.restart(1)
        load.run(4)
        for _ in range(30):  # a slow machine needs longer to have read as much
            if load.direct <= 20 or load.direct_replies <= 20:
                load.run(1)
    assert load.direct > 20
    assert load.direct_replies > 20


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_three_brokers_that_die_in_turn_cost_no_record_and_bring_none_twice(three_brokers: KafkaCluster) -> None:
    with OneByOne(three_brokers, 6, "classic") as load:
        for node_id in three_brokers.nodes:
            load.run(4)
            three_brokers.kill(node_id)
            load.run(4)
            three_brokers.restart(node_id)
        load.run(5)
