"""A broker that dies, freezes or comes back, under load: nothing is lost, doubled or out of order."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable

import pytest

from headrace import KafkaError, Message, Producer
from tests.support.real_kafka import make_topic, read_all, until
from tools.kafka import KafkaCluster


class Load:
    """An idempotent producer that writes numbered records to every partition until it is told to stop."""

    def __init__(self, cluster: KafkaCluster, topic: str, partitions: int, rate: int = 2_000) -> None:
        self.acknowledged: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.errors: list[KafkaError] = []
        self.written = 0
        self._topic, self._partitions, self._rate = topic, partitions, rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(cluster.connection,))

    def _run(self, connection: dict[str, str]) -> None:
        config = {**connection, "message.timeout.ms": 120_000, "linger.ms": 5,
                  "request.timeout.ms": 5_000}
        with Producer(config) as producer:
            while not self._stop.is_set():
                for _ in range(self._rate // 20):
                    number = self.written
                    producer.produce(self._topic, str(number).encode(), partition=number % self._partitions,
                                     on_delivery=lambda error, m, number=number: self._report(error, m, number))
                    self.written += 1
                producer.poll(0.05)
            assert producer.flush(100) == 0

    def _report(self, error: KafkaError | None, message: Message, number: int) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.acknowledged[message.partition()].append((message.offset(), number))

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def through(self, disturb: Callable[[], object]) -> None:
        """Run the load before, while and after something happens to the cluster."""
        self._thread.start()
        try:
            until(lambda: self.count > 1_000)
            disturb()
            before = self.count
            until(lambda: self.count > before + 2_000, timeout_s=60)
        finally:
            self._stop.set()
            self._thread.join(110)
        assert not self._thread.is_alive()


def check(cluster: KafkaCluster, topic: str, load: Load) -> None:
    """Every record is there once, in order, where its report says."""
    assert load.errors == []
    assert load.count == load.written
    by_partition: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for message in read_all(cluster, topic, load.written):
        by_partition[message.partition()].append((message.offset(), int(message.value())))
    for partition, records in by_partition.items():
        numbers = [number for _, number in records]
        assert numbers == sorted(set(numbers)), f"partition {partition} has records twice or out of order"
        assert sorted(load.acknowledged[partition]) == records


def test_one_broker_killed_and_started_again_under_load(own_kafka: KafkaCluster) -> None:
    topic = make_topic(own_kafka, 3)

    def disturb() -> None:
        own_kafka.kill(1)
        time.sleep(0.5)
        own_kafka.restart(1)

    load = Load(own_kafka, topic, 3)
    load.through(disturb)
    check(own_kafka, topic, load)


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_each_of_three_brokers_killed_and_started_again_under_load(three_brokers: KafkaCluster) -> None:
    topic = make_topic(three_brokers, 6)

    def disturb() -> None:
        for node_id in three_brokers.nodes:
            three_brokers.kill(node_id)
            time.sleep(2)
            three_brokers.restart(node_id)
            time.sleep(3)  # the replicas catch up, so that two in sync remain when the next one goes

    load = Load(three_brokers, topic, 6)
    load.through(disturb)
    check(three_brokers, topic, load)


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a_leader_that_freezes_is_replaced_under_load(three_brokers: KafkaCluster) -> None:
    topic = make_topic(three_brokers, 6)

    def disturb() -> None:
        three_brokers.pause(2)
        time.sleep(15)
        three_brokers.resume(2)
        time.sleep(3)

    load = Load(three_brokers, topic, 6)
    load.through(disturb)
    check(three_brokers, topic, load)
