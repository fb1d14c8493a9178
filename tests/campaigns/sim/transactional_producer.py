"""A transactional producer in the simulation: its machines, and an application that writes, commits and aborts."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.errors import KafkaError as K
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import GROUP, TRANSACTION, CoordinatorFinder
from headrace.machines.machine import ErrorEvent, Event, Machine
from headrace.machines.producer.batch_queue import BatchQueues
from headrace.machines.producer.sender import BatchDone, Limits, ProducerFailed, Sender
from headrace.machines.producer.transactional_sequences import TransactionalSequences
from headrace.machines.producer.transactions import (
    ConsumerGroupMetadata,
    Operation,
    OperationDone,
    TransactionFailed,
    Transactions,
    TxnState,
)
from headrace.types.records import TopicPartition

from .model_batches import ModelBuffer

if TYPE_CHECKING:
    from .model_transactions import Key
    from .transactions import Simulation

TOPIC = "t"
TOPIC_ID = UUID(int=7)
Step = Generator[float | Callable[[], bool], None, None]
"""An application: yields seconds to sleep, or a condition to wait for."""


@dataclass
class Txn:
    """One transaction as the application knows it. `outcome` stays None when it cannot know."""

    records: dict[int, int] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    outcome: str | None = None


class Producer:
    """A transactional producer's machines, and the application on top of them.

    Attributes:
        name: its transactional id.
    """

    name = "x"

    def __init__(self, sim: Simulation, transactions: int, last: bool) -> None:
        self.sim, self._last = sim, last
        self._rng = rng = sim.random
        self._count = transactions
        self.machines: list[Machine] = []
        self.features_seen = sim.level
        self.reports: dict[int, K | None] = {}
        self.txns: list[Txn] = []
        self.results: dict[Operation, K | None] = {}
        self.fenced = False
        self.final: list[Txn] = []  # begun when the cluster had healed
        self.finished = False
        self._late: list[int] = []
        self.last_error: K | None = None  # as of metadata
        self._refreshing = False
        self.crashed = False
        self.awake, self.due = True, math.inf  # the machines are asked when something has happened to them, or then
        self.known: dict[Key, tuple[int | None, int]] = {
            key: (p.leader if p.leader >= 0 else None, p.leader_epoch) for key, p in sim.cluster.partitions.items()}
        self._generations = dict(sim.cluster.generations)
        batch_count = rng.choice([1, 2, 4]) if sim.cluster.largest > 8 else 8
        self.buffer = ModelBuffer(TOPIC, sim.partitions, batch_count, sim.sealed)
        self.machine = Transactions(
            self.name, sim.timeout_ms, self._finder(TRANSACTION, self.name), lambda group: self._finder(GROUP, group),
            self._features, sim.request_timeout_s, sim.backoff)
        timeout_s = rng.choice([0.5, 2.0]) if sim.bounded else math.inf
        limits = Limits(-1, rng.choice([1, 2, 5]), 5000, sim.request_timeout_s, message_timeout_s=timeout_s)
        self.batch_queues = BatchQueues(self.buffer, rng.choice([0.0, 0.005]), timeout_s)
        self.sender = Sender(self.batch_queues, TransactionalSequences(self.machine), self, limits,
                             sim.backoff, self.machine)
        self.machine.work = self.sender
        self.machines += [self.sender, self.machine]
        self._app = self._run()
        self.waits_for: Callable[[], bool] | None = None
        self.resume()

    # What the machines need

    def _finder(self, kind: int, key: str) -> CoordinatorFinder:
        finder = CoordinatorFinder(kind, key, retries=RetryPolicy(0.01, 0.1))
        self.machines.append(finder)
        return finder

    def _features(self) -> Mapping[str, int]:
        if self._rng.random() < 0.3:  # a connection was made anew meanwhile
            self.features_seen = self.sim.level
        gone = self.sim.faulty and self._rng.random() < 0.2
        return {"transaction.version": self.features_seen, "metadata.version": 30} if not gone else {}

    def leader(self, topic: str, partition: int) -> tuple[int | None, int]:
        return self.known[topic, partition]

    def topic_id(self, topic: str) -> UUID:
        return TOPIC_ID

    def refresh(self, now: float) -> None:
        if not self._refreshing:
            self._refreshing = True
            partitions = self.sim.cluster.partitions
            if self.sim.faulty:  # an answer that is old when it comes
                self.sim.counts["metadata late"] += 1
                seen = {key: (partition.leader, partition.leader_epoch) for key, partition in partitions.items()}
                self.sim.at(self._rng.uniform(0.001, 0.2), lambda: self._refreshed(seen))
            else:
                self.sim.at(self._rng.uniform(0.001, 0.05), lambda: self._refreshed(
                    {key: (partition.leader, partition.leader_epoch) for key, partition in partitions.items()}))

    def _refreshed(self, seen: dict[Key, tuple[int, int]]) -> None:
        self._refreshing = False
        for (topic, number), (leader, epoch) in seen.items():
            if topic == TOPIC and epoch > self.known[topic, number][1]:
                self.known[topic, number] = (leader if leader >= 0 else None, epoch)

    def missing(self, topic: str, partition: int) -> None:
        """No partition goes away."""

    def update_leader(self, topic: str, partition: int, leader_id: int, leader_epoch: int, endpoints: Any = ()) -> bool:
        if leader_epoch <= self.known[topic, partition][1]:
            return False
        self.known[topic, partition] = (leader_id, leader_epoch)
        return True

    # The application

    def resume(self) -> None:
        """Let the application go on if it can."""
        while not self.finished and (self.waits_for is None or self.waits_for()):
            self.waits_for = None
            try:
                wanted = next(self._app)
            except StopIteration:
                self.finished = True
                return
            if callable(wanted):
                self.waits_for = wanted
            else:
                self._sleep(wanted)

    def _sleep(self, delay_s: float) -> None:
        slept: list[bool] = []

        def wake() -> None:
            slept.append(True)
            self.awake = True

        self.sim.clock.after(delay_s, wake)
        self.waits_for = lambda: bool(slept)

    def _run(self) -> Step:
        if (yield from self._do(Operation.INIT)) is not None:
            return
        for _ in range(self._count):
            yield self._pause()
            if not (yield from self._transaction(Txn())):
                return
        if self._last:  # the cluster has healed by then: all must go well
            yield max(self.sim.heal_at - self.sim.now, 0.0) + 3.0
            for _ in range(2):
                self.final.append(txn := Txn())
                if not (yield from self._transaction(txn, final=True)):
                    return

    def crash(self) -> None:
        """Nothing of it goes on but its requests on the way."""
        if not self.finished:
            self.sim.counts["producers crashed"] += 1
            self.crashed = self.finished = True

    def _pause(self) -> float:
        return self._rng.choice([0.0, 0.001, 0.01, 0.3])

    def _do(self, operation: Operation) -> Generator[Any, None, K | None]:
        error = self.machine.begin(operation)
        if error is not None:
            return error
        if operation is Operation.ABORT:
            self.sender.purge(K(K._PURGE_QUEUE), K(K._PURGE_INFLIGHT, maybe_applied=True))
        yield lambda: operation in self.results
        return self.results.pop(operation)

    def _transaction(self, txn: Txn, final: bool = False) -> Generator[Any, None, bool]:
        """Write, then commit or abort; False if the producer cannot go on."""
        if self.machine.open() is not None:
            return False
        self.txns.append(txn)
        self._generations = dict(self.sim.cluster.generations)
        wants_commit = final or self._rng.random() < 0.75
        for _ in range(self._rng.choice([0, 1, 2, 4, 8])):
            self._produce(txn)
            if self._rng.random() < 0.3:
                yield self._pause()
            if self._rng.random() < self.sim.offsets_rate and (yield from self._send_offsets(txn)) is not None:
                wants_commit = False
                break
        if self._rng.random() < 0.03 and not final:
            self.sim.counts["purges"] += 1
            purge = K(K._PURGE_QUEUE) if self._rng.random() < 0.5 else None
            self.sender.purge(purge, None if purge else K(K._PURGE_INFLIGHT, maybe_applied=True))
        return (yield from self._end(txn, wants_commit, final))

    def _end(self, txn: Txn, wants_commit: bool, final: bool) -> Generator[Any, None, bool]:
        error: K | None = None
        if wants_commit:
            yield from self._flush(txn)
        if self._rng.random() < 0.1 and not final:
            self.sim.at(self._rng.choice([0.0, 0.0007, 0.002]), self._produce_late)
        if wants_commit:
            error = yield from self._do(Operation.COMMIT)
            if error is None:
                txn.outcome = "committed"
                return True
            if error.fatal():
                txn.outcome = None if error.maybe_applied else "aborted"
                return False
            self.sim.hold(error.txn_requires_abort(), f"the commit says neither fatal nor abort: {error!r}")
            txn.outcome = "aborted"
        error = yield from self._do(Operation.ABORT)
        txn.outcome = "aborted"  # whatever came of it: it was never to be committed
        return error is None

    def _flush(self, txn: Txn) -> Generator[Any, None, None]:
        self.batch_queues.collect(self.sim.now, everything=True)
        if self._rng.random() < 0.8:
            self.batch_queues.flushing = True
            yield lambda: all(record in self.reports for record in txn.records)
            self.batch_queues.flushing = False

    def _produce(self, txn: Txn) -> None:
        if self.machine.state is TxnState.IN_TRANSACTION:
            record, partition = self.sim.new_record(), self._rng.randrange(self.sim.partitions)
            txn.records[record] = partition
            self.buffer.append(partition, record, self.sim.now)

    def _produce_late(self) -> None:
        """Another thread produces while this one commits: the record may end up anywhere, but nothing is torn."""
        record = self.sim.new_record()
        self._late.append(record)
        self.buffer.append(self._rng.randrange(self.sim.partitions), record, self.sim.now)

    def _send_offsets(self, txn: Txn) -> Generator[Any, None, K | None]:
        group, offset = self._rng.choice(["g1", "g2"]), self.sim.new_record()
        member = ConsumerGroupMetadata(group, self._generations[group], "m")
        error = self.machine.add_offsets([TopicPartition("in", 0, offset)], member)
        if error is None:
            txn.offsets[group] = offset
            yield lambda: Operation.OFFSETS in self.results
            error = self.results.pop(Operation.OFFSETS)
        return error

    def on_event(self, event: Event) -> None:
        """What the client above the machines does."""
        if isinstance(event, BatchDone):
            opened: Any = event.batch.open
            for record in opened.records:
                self.sim.hold(record not in self.reports, f"record {record} was reported twice")
                self.reports[record] = event.error
        elif isinstance(event, OperationDone):
            self.sim.hold(event.operation not in self.results, f"{event.operation} ended twice")
            self.results[event.operation] = event.error
        elif isinstance(event, TransactionFailed):
            self.sender.fail_on(event.error if event.error.fatal() else None)
        elif not isinstance(event, (ProducerFailed, ErrorEvent)):
            raise AssertionError(event)
