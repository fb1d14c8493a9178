"""A simulated producer of records without a key: buffer, balance, accumulator and sender against brokers of any speed.

Each broker serves one request after the other, in a time of its own, or freezes. They check what brokers check: numbers
without a gap, and what comes twice is stored once.

The brokers stay a model: what is looked at is the time they take, and the embedded broker takes none under a simulated
clock. What it stores is looked at by `whole_produce`.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from headrace.buffers import buffer_pool, closed_batch, record_accumulator
from headrace.errors import KafkaError
from headrace.machines.cluster.metadata import Cluster, PartitionInfo, TopicInfo
from headrace.machines.machine import Send
from headrace.machines.producer.batch_queue import BatchQueues, ProducerBatch
from headrace.machines.producer.partitioner import PartitionLoadStats
from headrace.machines.producer.sender import BatchDone, Limits, Sender
from headrace.machines.producer.sequences import Sequences
from headrace.types.records import NodeAddress
from headrace.wire.messages.producer.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

TOPIC, TOPIC_ID = "t", UUID(int=7)
_LIMITS = Limits(request_timeout_s=1.0)


class Picture:
    """What is known of the cluster; partition n is led by the n-th of `leaders`."""

    def __init__(self, leaders: Iterable[int | None]) -> None:
        self.updates = 0
        self.last_error = None
        self.lead(leaders)

    def lead(self, leaders: Iterable[int | None]) -> None:
        """Broker n is in rack n."""
        nodes = {number: NodeAddress(number, "h", 9, f"rack {number}") for number in (1, 2, 3)}
        partitions = {number: PartitionInfo(leader, 1) for number, leader in enumerate(leaders)}
        self.cluster = Cluster(nodes, topics={TOPIC: TopicInfo(TOPIC, partitions=partitions)})
        self.updates += 1

    def leader(self, topic: str, partition: int) -> tuple[int | None, int]:
        return self.cluster.topics[topic].partitions[partition].leader_id, 1

    def topic_id(self, topic: str) -> UUID:
        return TOPIC_ID

    def refresh(self, now: float) -> None:
        """Nothing moves unless `lead` says so."""

    def missing(self, topic: str, partition: int) -> None:
        """No partition goes away."""

    def update_leader(self, *hint: Any) -> bool:
        return False


class Broker:
    """Serves one request after the other."""

    def __init__(self, seconds_per_request: float) -> None:
        self.seconds_per_request = seconds_per_request
        self.frozen = False
        self.free_at = 0.0
        self.waiting: list[Send] = []


def _sealed(opened: Any, codec: int = 0, level: int = -1) -> Any:
    """Takes the place of `ClosedBatch.seal`: nobody looks at the bytes."""
    return SimpleNamespace(data=b"", size_bytes=opened.size_bytes, stamp=lambda *fields: None)


class Simulation:
    """One producer.

    Args:
        monkeypatch: gives the buffer the simulated time.
        leaders: by partition, the broker that leads it.
        seconds: by broker, what one request takes.
        seed: for the lots.
        batch_bytes, linger_s, turn_ms: of the producer.
        how: further arguments of `PartitionLoadStats`.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, leaders: Iterable[int | None], seconds: dict[int, float], *,
        seed: int = 12345, batch_bytes: int = 16_384, linger_s: float = 0.005, turn_ms: int = 10, **how: Any,
    ) -> None:
        self.now = 100.0
        monkeypatch.setattr(record_accumulator, "time", SimpleNamespace(
            monotonic=lambda: self.now, time_ns=lambda: int(self.now * 1e9)))
        monkeypatch.setattr(closed_batch.ClosedBatch, "seal", _sealed)
        self.picture = Picture(leaders)
        self.brokers = {number: Broker(each) for number, each in seconds.items()}
        count = len(self.picture.cluster.topics[TOPIC].partitions)
        self.logs: list[list[int]] = [[] for _ in range(count)]
        self.expected: list[tuple[int, int]] = [(-1, 0)] * count
        self.placed = [0] * count
        self.reports: dict[int, KafkaError | None] = {}
        pool = buffer_pool.BufferPool(0, 1 << 40)
        self.buffer = record_accumulator.RecordAccumulator(
            TOPIC, count, pool, seed=seed, batch_bytes=batch_bytes, turn_ms=turn_ms)
        batch_queues = BatchQueues(self.buffer.open_batches, linger_s, math.inf)
        self.sender = Sender(batch_queues, Sequences(True, 1.0, lambda attempt: 0.05), self.picture,
                             _LIMITS, lambda attempt: 0.05)
        self.balance = PartitionLoadStats({TOPIC: self.buffer}, batch_queues, self.picture, **how)
        self._produced = itertools.count()
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def produce(self, seconds: float, per_ms: int = 2, size: int = 200) -> list[int]:
        """Produce for a while; how many records went to each partition."""
        before = list(self.placed)
        for _ in range(round(seconds * 1000)):
            for _ in range(per_ms):
                number = next(self._produced)
                self.buffer.append(b"%0*d" % (size, number))
                self.placed[self.buffer.sticky] += 1
            self.run(0.001)
        return [now - then for now, then in zip(self.placed, before, strict=True)]

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        while True:
            self._step()
            deadlines = [d for machine in (self.sender, self.balance) if (d := machine.deadline()) is not None]
            moment = min([until, *deadlines, *(at for at, _, _ in self._events[:1])])
            if moment >= until:
                self.now = until
                return
            self.now = max(moment, self.now + 1e-6)
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()

    def _at(self, moment: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._order), action))

    def _step(self) -> None:
        for send in self.sender.poll(self.now):
            self._transmit(send)
        assert list(self.balance.poll(self.now)) == []
        for event in self.sender.events():
            assert isinstance(event, BatchDone)
            for number in self._numbers(event.batch):
                assert number not in self.reports
                self.reports[number] = event.error

    def _transmit(self, send: Send) -> None:
        if isinstance(send.request, InitProducerIdRequest):
            reply = InitProducerIdResponse(error_code=0, producer_id=1, producer_epoch=0)
            self._at(self.now, lambda: self.sender.on_reply(send, reply, self.now))
            return
        broker = self.brokers[send.destination]
        broker.waiting.append(send)
        self._at(self.now + send.timeout_s, lambda: self._time_out(broker, send))
        self._serve_later(broker, send)

    def _serve_later(self, broker: Broker, send: Send) -> None:
        broker.free_at = max(broker.free_at, self.now) + broker.seconds_per_request
        self._at(broker.free_at, lambda: self._serve(broker, send))

    def _serve(self, broker: Broker, send: Send) -> None:
        if send not in broker.waiting:
            return
        if broker.frozen:
            self._at(self.now + 0.01, lambda: self._serve(broker, send))
            return
        broker.waiting.remove(send)
        self.sender.on_reply(send, self._store(send), self.now)

    def _time_out(self, broker: Broker, send: Send) -> None:
        """The connection closes: nothing on it is answered, and half of it has arrived."""
        if send not in broker.waiting:
            return
        lost, broker.waiting = broker.waiting, []
        for index, each in enumerate(lost):
            if index < len(lost) // 2:
                self._store(each)
            self.sender.on_error(each, KafkaError(KafkaError._TIMED_OUT, "", maybe_applied=True), self.now)

    def _store(self, send: Send) -> ProduceResponse:
        answers = []
        for batch in send.context:
            partition = batch.queue.partition
            _, following = self.expected[partition]
            assert batch.sequence <= following, "a number is missing"
            if batch.sequence == following:
                self.logs[partition] += self._numbers(batch)
                self.expected[partition] = (batch.sequence, following + batch.count)
            answers.append(PartitionProduceResponse(index=partition, error_code=0, base_offset=0))
        return ProduceResponse(responses=[TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=answers)])

    def _numbers(self, batch: ProducerBatch) -> list[int]:
        opened: Any = batch.open
        return [int(m.value()) for m in opened._builder.read_back(TOPIC, opened.partition)]

    def finish(self) -> None:
        """Everybody answers from now on: everything is stored once, in order, and reported."""
        for broker in self.brokers.values():
            broker.frozen, broker.seconds_per_request = False, 0.0001
        self.run(30)
        count = next(self._produced)
        assert sorted(itertools.chain(*self.logs)) == list(range(count))
        assert all(log == sorted(log) for log in self.logs)
        assert self.reports == dict.fromkeys(range(count))
        assert [len(log) for log in self.logs] == self.placed
