"""Seeded simulation of the produce path: accumulator, sequences and sender against a model broker.

One seed is one schedule: records, lost requests, lost replies, delays, connections that overtake each other, leaders
that move, brokers that restart. Afterwards everything heals. Checked are safety (nothing acknowledged is lost, nothing
is stored twice, order holds, each record is reported once) and progress (the healed cluster takes everything).

    python -m tests.sim.produce --schedules 100000 --jobs 2
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import sys
from collections.abc import Callable, Collection
from typing import Any
from uuid import UUID

from headrace.errors import KafkaError
from headrace.machines.accumulator import Accumulator, ProducerBatch
from headrace.machines.machine import Send
from headrace.machines.sender import BatchDone, Limits, Sender
from headrace.machines.sequences import Sequences
from headrace.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

from .campaign import Violation, run_campaign
from .model_broker import ModelCluster

TOPIC = "t"
TOPIC_ID = UUID(int=7)


class ModelSealed:
    """A sealed batch: `data` is what a broker sees, frozen at the time it is read."""

    def __init__(self, records: list[int]) -> None:
        self.records = tuple(records)
        self.size_bytes = 100 * len(records)
        self._stamp = (-1, -1, -1)

    def stamp(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool = False) -> None:
        self._stamp = (producer_id, epoch, base_sequence)

    @property
    def data(self) -> Any:
        return (*self._stamp, self.records)


class ModelOpen:
    def __init__(self, partition: int, opened_at: float) -> None:
        self.partition = partition
        self.opened_at = opened_at
        self.records: list[int] = []

    @property
    def count(self) -> int:
        return len(self.records)

    @property
    def size_bytes(self) -> int:
        return 100 * len(self.records)

    def divide(self, parts: list[int]) -> list[ModelOpen]:
        made = [ModelOpen(self.partition, self.opened_at) for _ in set(parts)]
        for part, record in zip(parts, self.records, strict=True):
            made[part].records.append(record)
        return made


class ModelBuffer:
    """The open batches of a topic, at most `batch_count` records each."""

    def __init__(self, partitions: int, batch_count: int) -> None:
        self._batch_count = batch_count
        self._open: list[list[ModelOpen]] = [[] for _ in range(partitions)]

    def append(self, partition: int, record: int, now: float) -> None:
        batches = self._open[partition]
        if not batches or batches[-1].count >= self._batch_count:
            batches.append(ModelOpen(partition, now))
        batches[-1].records.append(record)

    def ready(self, opened_before: float | None, held: Collection[int] = ()) -> list[ModelOpen]:
        taken = []
        for partition, batches in enumerate(self._open):
            while batches and (
                batches[0].count >= self._batch_count
                or (opened_before is not None and batches[0].opened_at <= opened_before and partition not in held)
            ):
                taken.append(batches.pop(0))
        return taken

    def next_deadline(self, linger_s: float, held: Collection[int] = ()) -> float | None:
        lingering = (b[0].opened_at + linger_s for partition, b in enumerate(self._open) if b and partition not in held)
        return min(lingering, default=None)


class Connection:
    """Requests to one broker, in order. When it is cut, what is on the way may still arrive."""

    def __init__(self) -> None:
        self.cut = False
        self.outstanding: list[Send] = []
        self.arrives_at = 0.0
        self.answers_at = 0.0


class Simulation:
    """One schedule. `run` raises `Violation` if a property does not hold."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = rng = random.Random(seed)
        self.now = 100.0
        self.heal_at = 100.0 + rng.choice([0.5, 2.0, 5.0])
        self.idempotent = rng.random() < 0.9
        self.bounded = rng.random() < 0.25  # records may time out
        self.faults = rng.choice([0.02, 0.1, 0.3])
        self.partitions = rng.choice([1, 1, 2, 3])
        poison = {rng.randrange(25)} if rng.random() < 0.15 else set()
        self.cluster = ModelCluster(rng, nodes=rng.choice([1, 2, 3]), partitions=self.partitions, poison=poison)
        self.cluster.forgetful = self.idempotent and rng.random() < 0.1
        self.buffer = ModelBuffer(self.partitions, rng.choice([1, 2, 4]))
        self.partition_of: dict[int, int] = {}
        self.reports: dict[int, BatchDone] = {}
        self.known_leaders = list(self.cluster.leaders)
        self.known_epochs = list(self.cluster.leader_epochs)
        self._refreshing = False
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._connections: dict[int, Connection] = {}
        self.sender = self._build()

    def _build(self) -> Sender:
        rng = self.random
        timeout_s = rng.choice([0.3, 1.0, 3.0]) if self.bounded else math.inf
        in_flight = rng.choice([1, 2, 5]) if self.idempotent else 1
        limits = Limits(-1, in_flight, rng.choice([700, 5000]), rng.choice([0.2, 1.0]), message_timeout_s=timeout_s)
        self.accumulator = Accumulator({TOPIC: self.buffer}, rng.choice([0.0, 0.005]), timeout_s, self._seal)
        sequences = Sequences(self.idempotent, 1.0, self._backoff)
        return Sender(self.accumulator, sequences, self, lambda topic: TOPIC_ID, limits, self._backoff)

    def _backoff(self, attempt: int) -> float:
        return min(0.01 * 2**attempt, 0.2) * (0.8 + 0.4 * self.random.random())

    def _seal(self, batch: ProducerBatch) -> None:
        opened: Any = batch.open
        sealed = ModelSealed(opened.records)
        if self.random.random() < 0.8:
            batch.sealed = sealed
        else:  # compressed in another thread
            self.at(0.003, lambda: setattr(batch, "sealed", sealed))

    # What the sender needs of metadata

    def leader(self, topic: str, partition: int) -> tuple[int | None, int]:
        return self.known_leaders[partition], self.known_epochs[partition]

    def refresh(self, now: float) -> None:
        if not self._refreshing:
            self._refreshing = True
            self.at(self.random.uniform(0.001, 0.05), self._refreshed)

    def _refreshed(self) -> None:
        self._refreshing = False
        for partition in range(self.partitions):
            self.update_leader(
                TOPIC, partition, self.cluster.leaders[partition], self.cluster.leader_epochs[partition], []
            )

    def update_leader(self, topic: str, partition: int, leader_id: int, leader_epoch: int, endpoints: Any = ()) -> bool:
        if leader_epoch <= self.known_epochs[partition]:
            return False
        self.known_leaders[partition], self.known_epochs[partition] = leader_id, leader_epoch
        return True

    # Time

    def at(self, delay_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + delay_s, next(self._order), action))

    @property
    def faulty(self) -> bool:
        return self.now < self.heal_at and self.random.random() < self.faults

    def run(self) -> None:
        records = self.random.choice([5, 12, 25])
        for _ in range(records):
            self.at(self.random.uniform(0, self.heal_at - 100.0) * self.random.random(), self.append)
        for _ in range(self.random.choice([0, 1, 3])):
            self.at(self.random.uniform(0, self.heal_at - 100.0), self.cluster.move_leader)
            self.at(self.random.uniform(0, self.heal_at - 100.0), self._restart_broker)
        for _ in range(self.random.choice([0, 1, 3])):
            self.at(self.random.uniform(0, self.heal_at - 100.0), self._cut_any)
        for _ in range(self.random.choice([1, 3]) if self.cluster.forgetful else 0):
            self.at(self.random.uniform(0, self.heal_at - 100.0), self.cluster.forget)
        self.at(self.heal_at - 100.0, self.cluster.heal)
        self._loop(records)
        self._check(records)

    def _loop(self, records: int) -> None:
        polled_for = -1.0
        for _ in range(20_000):
            self._step()
            if len(self.reports) == records and not self._events:
                return
            deadline = self.sender.deadline()
            event_at = self._events[0][0] if self._events else math.inf
            if deadline is not None and deadline <= self.now and polled_for == self.now:
                raise Violation(f"seed {self.seed}: the deadline stays in the past, the loop would spin")
            moment = min(event_at, deadline if deadline is not None else math.inf)
            if moment == math.inf or moment > self.heal_at + 60:
                break
            polled_for = self.now
            self.now = max(self.now, moment)
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
        missing = sorted(set(range(records)) - set(self.reports))
        if missing:
            raise Violation(f"seed {self.seed}: no progress, records {missing} were never reported")

    def _step(self) -> None:
        for send in self.sender.poll(self.now):
            self._transmit(send)
        for event in self.sender.events():
            if not isinstance(event, BatchDone):
                raise Violation(f"seed {self.seed}: {event}")
            opened: Any = event.batch.open
            for record in opened.records:
                if record in self.reports:
                    raise Violation(f"seed {self.seed}: record {record} was reported twice")
                self.reports[record] = event

    def append(self) -> None:
        # Records of a partition are appended in the order of their numbers.
        number = len(self.partition_of)
        partition = self.random.randrange(self.partitions)
        self.partition_of[number] = partition
        self.buffer.append(partition, number, self.now)

    # The network

    def _transmit(self, send: Send) -> None:
        for batch in send.context or ():
            self._hold(batch.attempts == 1 or batch.queue.in_flight[0] is batch, "a retry was sent into others' way")
        node = send.destination if send.destination >= 0 else self.random.choice(self.cluster.nodes)
        if node in self.cluster.down:
            refused = KafkaError(KafkaError._TRANSPORT, "refused")
            self.at(0.005, lambda: self.sender.on_error(send, refused, self.now))
            return
        connection = self._connections.get(node)
        if connection is None or connection.cut:
            connection = self._connections[node] = Connection()
        connection.outstanding.append(send)
        slow = self.random.choice([0.0005, 0.0005, 0.02, 0.3]) if self.faulty else 0.0005
        connection.arrives_at = max(self.now + slow, connection.arrives_at)
        self.at(connection.arrives_at - self.now, lambda: self._arrive(node, connection, send))
        self.at(send.timeout_s, lambda: self._time_out(connection, send))
        if self.faulty:
            self.at(self.random.uniform(0, 0.05), lambda: self._cut(connection))

    def _arrive(self, node: int, connection: Connection, send: Send) -> None:
        if node in self.cluster.down or (connection.cut and self.random.random() < 0.5):
            return
        reply = self._answer(node, send)
        slow = self.random.choice([0.0005, 0.05, 0.4]) if self.faulty else 0.0005
        connection.answers_at = max(self.now + slow, connection.answers_at)
        self.at(connection.answers_at - self.now, lambda: self._deliver(connection, send, reply))

    def _answer(self, node: int, send: Send) -> Any:
        if isinstance(send.request, InitProducerIdRequest):
            code = KafkaError.COORDINATOR_LOAD_IN_PROGRESS if self.faulty else 0
            return InitProducerIdResponse(error_code=code, producer_id=self.cluster.new_producer_id(), producer_epoch=0)
        request: Any = send.request
        answers = [
            self._partition_answer(node, data.index, data.records)
            for topic in request.topic_data
            for data in topic.partition_data
        ]
        return ProduceResponse(responses=[TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=answers)])

    def _partition_answer(self, node: int, index: int, records: Any) -> PartitionProduceResponse:
        code, offset = self.cluster.produce(node, index, records, faulty=self.faulty)
        answer = PartitionProduceResponse(index=index, error_code=code, base_offset=offset)
        if code == KafkaError.NOT_LEADER_FOR_PARTITION and self.random.random() < 0.5:
            answer.current_leader.leader_id = self.cluster.leaders[index]
            answer.current_leader.leader_epoch = self.cluster.leader_epochs[index]
        if code == KafkaError.INVALID_RECORD and self.cluster.names_poison:
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=f"record {place}")
                for place, record in enumerate(records[-1]) if record in self.cluster.poison
            ]
        return answer

    def _deliver(self, connection: Connection, send: Send, reply: Any) -> None:
        if not connection.cut and send in connection.outstanding:
            connection.outstanding.remove(send)
            self.sender.on_reply(send, reply, self.now)

    def _time_out(self, connection: Connection, send: Send) -> None:
        if not connection.cut and send in connection.outstanding:
            self._cut(connection, KafkaError(KafkaError._TIMED_OUT, "no answer", maybe_applied=True))

    def _cut(self, connection: Connection, error: KafkaError | None = None) -> None:
        if connection.cut:
            return
        connection.cut = True
        sends, connection.outstanding = connection.outstanding, []
        for send in sends:
            self.sender.on_error(send, error or KafkaError(KafkaError._TRANSPORT, "cut", maybe_applied=True), self.now)

    def _cut_any(self) -> None:
        if self._connections:
            self._cut(self.random.choice(list(self._connections.values())))

    def _restart_broker(self) -> None:
        node = self.random.choice(self.cluster.nodes)
        self.cluster.down.add(node)
        if node in self._connections:
            self._cut(self._connections[node])
        self.at(self.random.uniform(0.01, 1.0), lambda: self.cluster.down.discard(node))

    # The properties

    def _check(self, records: int) -> None:
        stored: dict[int, tuple[int, int]] = {}
        for partition, log in enumerate(self.cluster.logs):
            last = -1
            for offset, record in enumerate(log):
                if self.idempotent:
                    self._hold(record not in stored, f"record {record} is stored twice")
                    self._hold(record > last, f"record {record} is stored behind {last}")
                last = record
                stored[record] = (partition, offset)
        if self._certain:
            self._hold(self.cluster.highest_epoch == 0, "a new epoch was begun although no number was ever missing")
        for record in range(records):
            self._check_report(record, self.reports[record], stored)

    @property
    def _certain(self) -> bool:
        """Nothing can make a record fail for good."""
        return not (self.bounded or self.cluster.poison or self.cluster.forgetful)

    def _check_report(self, record: int, done: BatchDone, stored: dict[int, tuple[int, int]]) -> None:
        opened: Any = done.batch.open
        if done.error is None:
            self._hold(record in stored, f"record {record} was acknowledged and is lost")
            offset = done.base_offset + opened.records.index(record)
            exact = done.base_offset >= 0 and self.idempotent
            self._hold(not exact or stored[record][1] == offset, f"record {record} was reported at a wrong offset")
        elif record in stored:
            self._hold(done.error.maybe_applied, f"record {record} is stored and was reported as surely failed")
        if self._certain:
            self._hold(done.error is None, f"record {record} failed although the cluster healed: {done.error!r}")

    def _hold(self, holds: bool, text: str) -> None:
        if not holds:
            raise Violation(f"seed {self.seed}: {text}")


def run_schedule(seed: int) -> None:
    """Run one schedule; raises `Violation`."""
    Simulation(seed).run()


if __name__ == "__main__":
    sys.exit(run_campaign(run_schedule, "Simulate the produce path."))
