"""The simulation of exactly-once micro-batches: a driver, its tasks, their attempts, and the embedded broker.

One seed is one schedule: a query of a few micro-batches, of which Spark notes when they are planned and when they are
done; drivers that die at any moment and are started again, while their tasks may live on; tasks that die, are tried
again as another attempt, or as the same attempt of a stage that is tried again; tasks that start late; rows that are
not arranged by partition; and all the trouble of `whole_transactions`: lost, late and repeated requests and replies,
leaders and coordinators that move, transactions that take too long. An attempt writes its rows in an order of its own.

Claims are records of a topic in some schedules, of which only the order in its log is played. In the others a stage is
tried again only when each earlier attempt has ended and what it has sent has arrived, or has written to each of its
partitions: two first requests at the same moment are what a claim by description leaves open (decision 0037).

Checked are safety (each row is committed once, in the order in which the task that reported it wrote it, and
micro-batches follow each other in each partition) and progress (in the healed cluster the query comes to its end).

    python -m tests.campaigns.sim.whole --of joint-transactions --schedules 100000 --jobs 2
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from typing import Any

from headrace.errors import KafkaError as K
from headrace.errors import KafkaException
from headrace.machines.cluster.coordinator import TRANSACTION, CoordinatorFinder
from headrace.machines.joint import owner_steps
from headrace.machines.joint.conversation import Conversation, ConversationEnded, Steps
from headrace.machines.joint.joined_sequences import JoinedSequences
from headrace.machines.joint.joined_transaction import JoinedTransaction, JoinedTransactionFailed
from headrace.machines.joint.joint_transaction import CommittedMark
from headrace.machines.machine import ErrorEvent, Event, Machine
from headrace.machines.producer.batch_queue import BatchQueues
from headrace.machines.producer.sender import BatchDone, Limits, ProducerFailed, Sender
from headrace.spark.exactly_once import claims_topic, task_report, task_transaction
from headrace.spark.exactly_once.batch_marker import BatchMarker
from headrace.spark.exactly_once.spark_task import TaskIdentity
from headrace.spark.exactly_once.task_report import BegunBatch, TaskReport

from .model_batches import ModelBuffer
from .transactional_producer import TOPIC, Producer, Step
from .whole_transactions import WholeTransactions

_NAME, _QUERY = "x", "q"
_PATIENCE_S = 8.0
_TRIES = 3
Row = int


class Process(Producer):
    """A process with machines and a program.

    Attributes:
        ended: conversations that have come to their end, with result and error.
    """

    sim: JointTransactions
    name = _NAME

    def __init__(self, sim: JointTransactions) -> None:
        self.sim, self._rng = sim, sim.random
        self.machines: list[Machine] = []
        self.features_seen = sim.level
        self.txns, self.last_error = [], None
        self.fenced = self.finished = self.crashed = self._refreshing = False
        self.awake, self.due = True, math.inf
        self.known = {key: (each.leader if each.leader >= 0 else None, each.leader_epoch)
                      for key, each in sim.cluster.partitions.items()}
        self.ended: dict[Conversation, tuple[Any, K | None]] = {}
        self._finders: dict[tuple[int, str], CoordinatorFinder] = {}
        self.waits_for: Callable[[], bool] | None = None
        self._app = self._run()

    def _find(self, kind: int, key: str) -> CoordinatorFinder:
        if (kind, key) not in self._finders:
            self._finders[kind, key] = self._finder(kind, key)
        return self._finders[kind, key]

    def on_event(self, event: Event) -> None:
        if isinstance(event, ConversationEnded):
            self.sim.hold(event.conversation not in self.ended, "a conversation ended twice")
            self.ended[event.conversation] = event.result, event.error


class Task(Process):
    """One attempt of a task.

    Attributes:
        outcome: its report, or why it failed; None while it is at work.
        order: the rows of each partition, in the order in which it writes them.
    """

    def __init__(self, sim: JointTransactions, begun: BegunBatch, identity: TaskIdentity, rows: list[Row]) -> None:
        super().__init__(sim)
        rng = self._rng
        self.begun, self.identity = begun, identity
        self.rows = rng.sample(rows, len(rows))
        self.places = {row: sim.place(row) for row in rows}
        self.outcome: TaskReport | KafkaException | None = None
        self.order: dict[int, list[Row]] = defaultdict(list)
        self.reports: dict[Row, K | None] = {}
        batch_count = rng.choice([1, 2, 4]) if sim.cluster.largest > 8 else 8
        self.buffer = ModelBuffer(TOPIC, sim.partitions, batch_count, sim.sealed)
        self.joined = JoinedTransaction(
            lambda name: self._find(TRANSACTION, name), self, sim.request_timeout_s, sim.backoff)
        timeout_s = rng.choice([0.5, 2.0]) if sim.bounded else math.inf
        limits = Limits(-1, rng.choice([1, 2, 5]), 5000, sim.request_timeout_s, message_timeout_s=timeout_s)
        self.batch_queues = BatchQueues(self.buffer, rng.choice([0.0, 0.005]), timeout_s)
        self.sequences = JoinedSequences(self.joined)
        self.sender = Sender(self.batch_queues, self.sequences, self, limits, sim.backoff, self.joined)
        self.machines += [self.sender, self.joined]
        self.resume()

    def _run(self) -> Step:
        yield self._rng.choice([0.0, 0.0, 0.01, 0.3])
        try:
            if not task_transaction.begins(self.begun, self.identity):
                self.sim.counts["tasks that skipped"] += 1
                self.outcome = TaskReport(self.begun, self.identity.batch, True)
                return
            if self.rows:
                task_transaction.check_attempt(self.identity)
                if self.sim.claims is not None:
                    yield from self._claim(self.sim.claims)
        except KafkaException as refused:
            self.outcome = refused
            return
        self.joined.join(self.begun.transaction)
        yield from self._write()
        failed = self.joined.lost or next((error for error in self.reports.values() if error is not None), None)
        try:
            if failed is not None:
                raise KafkaException(failed)
            self.outcome = task_transaction.written(
                self.begun, self.identity, len(self.rows), self.sequences.written())
        except KafkaException as refused:
            self.outcome = refused

    def _claim(self, log: list[tuple[bytes, bytes]]) -> Generator[Any, None, None]:
        """As `ClaimsTopic.take`: the claim arrives some time, even if the task is dead by then."""
        transaction = self.begun.transaction
        work = f"{self.identity.partition} of {transaction.producer_id}, {transaction.epoch}"
        claim = work.encode(), str(self.sim.new_claim()).encode()
        self.sim.at(self._pause(), lambda: log.append(claim))
        yield lambda: claim in log
        yield self._pause()
        claims_topic.check_first(log[:log.index(claim) + 1], work, claim[1])

    def _write(self) -> Generator[Any, None, None]:
        for row in self.rows:
            partition = self.places[row]
            self.order[partition].append(row)
            self.buffer.append(partition, row, self.sim.now)
            if self._rng.random() < 0.2:
                yield self._pause()
        self.batch_queues.flushing = True
        yield lambda: len(self.reports) == len(self.rows)
        yield self._pause()  # the report takes its time as well

    def on_event(self, event: Event) -> None:
        if isinstance(event, BatchDone):
            opened: Any = event.batch.open
            for record in opened.records:
                self.sim.hold(record not in self.reports, f"row {record} was reported twice")
                self.reports[record] = event.error
        elif not isinstance(event, (ProducerFailed, JoinedTransactionFailed, ErrorEvent)):
            raise AssertionError(event)

    @property
    def has_written_everywhere(self) -> bool:
        """Whether each of its partitions has a record of it, so that a claim notices."""
        stored = {self.places[row] for row, error in self.reports.items() if error is None}
        return stored == set(self.places.values())


class Driver(Process):
    """What Spark's driver does with the sink; what it notes outlives it (`JointTransactions.done`)."""

    def __init__(self, sim: JointTransactions) -> None:
        super().__init__(sim)
        self.attempts: list[Task] = []
        self.resume()

    def _run(self) -> Step:
        sim = self.sim
        while sim.done < len(sim.batches):
            batch = sim.done
            begun = yield from self._begin()
            if begun is None or (reports := (yield from self._work(begun, batch))) is None:
                return
            if not (yield from self._commit(begun, reports)):
                return
            if self._rng.random() < 0.1 and sim.now < sim.heal_at:
                sim.counts["drivers that died before Spark's note"] += 1
                self.crash()
                return
            if not sim.finish(batch):
                return
            yield self._pause()

    def _converse(self, steps: Steps) -> Generator[Any, None, tuple[Any, K | None]]:
        talk = Conversation(steps, self._find, self.sim.request_timeout_s, self.sim.backoff, self.sim.now + _PATIENCE_S)
        self.machines.append(talk)
        yield lambda: talk in self.ended
        self.machines.remove(talk)
        return self.ended.pop(talk)

    def _begin(self) -> Generator[Any, None, BegunBatch | None]:
        found, error = yield from self._converse(
            owner_steps.begin(_NAME, self.sim.timeout_ms, self._features, group=_NAME))
        return None if error is not None else BegunBatch(*found, _NAME)

    def _work(self, begun: BegunBatch, batch: int) -> Generator[Any, None, list[TaskReport] | None]:
        """The reports of all tasks; None if the micro-batch has failed."""
        sim = self.sim
        shares = sim.shares(batch)
        attempts = self.attempts = [self._start(begun, batch, number, 0, rows) for number, rows in enumerate(shares)]
        tries = Counter[int]()
        while not all(isinstance(each.outcome, TaskReport) for each in attempts):
            yield lambda: any(each.outcome is None and each.crashed for each in attempts) or all(
                each.outcome is not None for each in attempts) or any(
                isinstance(each.outcome, KafkaException) for each in attempts) or sim.loses_an_executor(attempts)
            for number, each in enumerate(attempts):
                if isinstance(each.outcome, TaskReport):
                    continue
                gone = each.crashed or isinstance(each.outcome, KafkaException) or sim.lost_executor is each
                if not gone:
                    continue
                if isinstance(each.outcome, KafkaException):
                    each.crashed = True  # its producer is discarded; what it has sent may still arrive
                tries[number] += 1
                how = self._rng.choice(["fail", "attempt", "stage"])
                if how == "fail" or tries[number] >= _TRIES:
                    yield from self._abort(begun)
                    return None
                if how == "stage":
                    earlier = [task for task in sim.tasks_of(begun) if task.identity.partition == number]
                    yield lambda earlier=earlier: sim.claims is not None or all(map(sim.cannot_race, earlier))
                    sim.counts["stages that were tried again"] += 1
                sim.lost_executor = None
                attempts[number] = self._start(
                    begun, batch, number, tries[number] if how == "attempt" else 0, shares[number])
        return [each.outcome for each in attempts if isinstance(each.outcome, TaskReport)]

    def _start(self, begun: BegunBatch, batch: int, number: int, attempt: int, rows: list[Row]) -> Task:
        task = Task(self.sim, begun, TaskIdentity(BatchMarker(_QUERY, batch), number, attempt, 0, False), rows)
        self.sim.producers.append(task)
        if self._rng.random() < 0.15 and self.sim.now < self.sim.heal_at:
            self.sim.counts["tasks that died at work"] += 1
            self.sim.at(self._rng.choice([0.003, 0.02, 0.1, 0.4]), task.crash)
        return task

    def _commit(self, begun: BegunBatch, reports: list[TaskReport]) -> Generator[Any, None, bool]:
        """As `driver_transaction.commit`; False if the micro-batch has failed."""
        try:
            first = task_report.common_work(reports)
            if first is None or first.skipped:
                return True
            written = task_report.written_partitions(reports)
        except KafkaException:
            self.sim.counts["reports that do not fit"] += 1
            yield from self._abort(begun)
            return False
        if not written:
            return True
        number = 0 if begun.last is None else begun.last.number + 1
        assert first.batch is not None
        note = CommittedMark(number, first.batch.text())
        for steps in (owner_steps.check(begun.transaction, written),
                      owner_steps.mark(begun.transaction, _NAME, note, (TOPIC, 0)), owner_steps.end(begun.transaction)):
            _, error = yield from self._converse(steps)
            if error is not None:
                self.sim.counts[f"commits that failed: {error.name()}"] += 1
                yield from self._abort(begun)
                return False
            yield self._pause()
        self.sim.counts["micro-batches committed"] += 1
        return True

    def _abort(self, begun: BegunBatch) -> Generator[Any, None, None]:
        self.sim.counts["aborts"] += 1
        yield from self._converse(owner_steps.abort(begun.transaction, self.sim.timeout_ms))


class JointTransactions(WholeTransactions):
    """One schedule.

    Attributes:
        batches: the rows of each micro-batch.
        claims: those in the topic for claims; None where partitions are claimed by description alone.
        done: how many of them Spark has noted as done.
        lost_executor: an attempt that the driver has given up although it lives on.
    """

    def __init__(self, seed: int) -> None:
        self.done = 0
        self.batches: list[list[Row]] = []
        self._places: dict[Row, int] = {}
        self.orders: dict[tuple[int, int], list[list[Row]]] = defaultdict(list)
        self.lost_executor: Task | None = None
        self._sent: Counter[Producer] = Counter()
        super().__init__(seed)

    def _start(self) -> None:
        rng = self.random
        self.claims: list[tuple[bytes, bytes]] | None = [] if rng.random() < 0.3 else None
        self.arranged, self.wandering = rng.random() < 0.9, self.claims is not None or rng.random() < 0.3
        self.tasks = rng.choice([1, 2, 3])
        for _ in range(rng.choice([1, 2, 4])):
            rows = [self.new_record() for _ in range(rng.choice([0, 1, 3, 8]))]
            self._places |= {row: rng.randrange(self.partitions) for row in rows}
            self.batches.append(rows)
        self.producers = [Driver(self)]
        span = self.heal_at - 100.0
        for _ in range(rng.choice([0, 1, 2, 4])):
            self.at(rng.uniform(0, span), self._kill_driver)
        for _ in range(rng.choice([0, 0, 1, 3])):
            self.at(rng.uniform(0, span), self._kill_task)
        for _ in range(rng.choice([0, 0, 0, 1] if self.claims is None else [0, 1, 2])):
            self.at(rng.uniform(0, span) if self.claims is None else rng.uniform(0, 0.1), self._lose_executor)
        for moment in (0.4, 1.1):
            self.at(span * moment, self._second_driver)

    def place(self, row: Row) -> int:
        """Where an attempt writes a row: where it was arranged to be, or another partition of the same task."""
        arranged = self._places[row]
        if not self.wandering:
            return arranged
        own = [each for each in range(self.partitions) if each % self.tasks == arranged % self.tasks]
        return self.random.choice(own)

    def shares(self, batch: int) -> list[list[Row]]:
        """The rows of each task: all of a partition in one, but for a user who has not arranged them."""
        rows = self.batches[batch]
        if self.arranged or self.now > self.heal_at:
            return [[row for row in rows if self._places[row] % self.tasks == number] for number in range(self.tasks)]
        self.counts["rows that were not arranged"] += bool(rows)
        return [rows[number :: self.tasks] for number in range(self.tasks)]

    def finish(self, batch: int) -> bool:
        """Spark notes that a micro-batch is done; False for a driver that another one has overtaken."""
        if batch == self.done:
            self.done += 1
            return True
        return False

    # What goes wrong

    def _living(self, kind: type[Any]) -> list[Any]:
        return [each for each in self.producers if isinstance(each, kind) and not each.finished]

    def _kill_driver(self) -> None:
        for driver in self._living(Driver):
            self.counts["drivers killed"] += 1
            driver.crash()
            for task in self._living(Task):
                if self.random.random() < 0.5:  # the others do not know yet
                    task.crash()

    def _second_driver(self) -> None:
        """Somebody starts the query a second time."""
        if self.random.random() < 0.15 and self.now < self.heal_at:
            self.counts["second drivers"] += 1
            self.producers.append(Driver(self))

    def _kill_task(self) -> None:
        if living := self._living(Task):
            self.counts["tasks killed"] += 1
            self.random.choice(living).crash()

    def _lose_executor(self) -> None:
        if living := self._living(Task):
            self.lost_executor = self.random.choice(living)
            self.counts["executors that were given up alive"] += 1

    def loses_an_executor(self, attempts: list[Task]) -> bool:
        """Whether one of these attempts was given up."""
        return any(each is self.lost_executor for each in attempts)

    def tasks_of(self, begun: BegunBatch) -> list[Task]:
        """All attempts that were told to write into a transaction."""
        return [each for each in self.producers if isinstance(each, Task) and each.begun == begun]

    def cannot_race(self, task: Task) -> bool:
        """Whether another attempt that begins now finds what this one has written, or this one writes nothing more."""
        return task.has_written_everywhere or (task.finished and not self._sent[task])

    def new_claim(self) -> int:
        """A number that no other claim has."""
        self._claimed += 1
        return self._claimed

    def _arrives(self, delay_s: float, node: int, link: Any, send: Any) -> None:
        self._sent[link.producer] += 1

        def arrived() -> None:
            self._sent[link.producer] -= 1

        super()._arrives(delay_s, node, link, send)
        self.clock.after(delay_s, arrived)

    def _step(self) -> float:
        moment = super()._step()
        drivers = [each for each in self.producers if isinstance(each, Driver)]
        while waiting := [each for each in drivers if each.waits_for is not None and not each.finished
                          and each.waits_for()]:
            for each in waiting:
                each.awake = True
            moment = super()._step()
        if all(each.finished for each in drivers) and self.done < len(self.batches) and not self._starting:
            self._starting = True
            self.counts["drivers started again"] += 1
            self.at(self.random.choice([0.01, 0.3]), self._start_again)
        return moment

    _starting = False
    _claimed = 0

    def _start_again(self) -> None:
        self._starting = False
        self.producers.append(Driver(self))

    # The properties

    def _check(self) -> None:
        self.hold(self.done == len(self.batches), f"no progress: {self.done} of {len(self.batches)} micro-batches")
        batch_of = {row: number for number, rows in enumerate(self.batches) for row in rows}
        logs = {key[1]: log.committed() for key, log in self.cluster.partitions.items() if key[0] == TOPIC}
        seen = [row for rows in logs.values() for row in rows]
        self.counts["rows committed"] += len(seen)
        self.hold(len(seen) == len(set(seen)), f"committed twice: {sorted(row for row in seen if seen.count(row) > 1)}")
        self.hold(set(seen) == set(batch_of), f"missing: {sorted(set(batch_of) - set(seen))}")
        for key, log in self.cluster.partitions.items():
            self.hold(not log.undecided(), f"{key} has a transaction that nobody ends")
        for partition, rows in logs.items():
            self._check_order(partition, rows, [batch_of[row] for row in rows])

    def _check_order(self, partition: int, rows: list[Row], numbers: list[int]) -> None:
        self.hold(numbers == sorted(numbers), f"micro-batches out of order: {numbers}")
        orders = [each.order for each in self.producers if isinstance(each, Task)]
        for number in set(numbers):
            found = [row for row, own in zip(rows, numbers, strict=True) if own == number]
            self.hold(any(each.get(partition) == found for each in orders),
                      f"no attempt wrote {found} in this order to partition {partition}")


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return JointTransactions(seed).run()


__all__ = ["JointTransactions", "run_schedule"]
