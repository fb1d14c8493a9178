"""The operations of a transactional producer: each becomes one that can be awaited, and awaited again.

An operation that its caller gave up waiting for goes on; the same call made again waits for the same one, or returns
how it ended meanwhile, as librdkafka documents it. All runs on the loop but what is marked "from any thread".
It must not know a coordinator's answers: `machines.producer.transactions` decides.
Read next: `machines.producer.transactions`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from headrace.client.core import ClientCore
from headrace.client.producer.topics import TopicAccumulators, producer_closed
from headrace.config import Config
from headrace.errors import FatalError, KafkaError, KafkaException
from headrace.machines.cluster.coordinator import GROUP, TRANSACTION, CoordinatorFinder
from headrace.machines.machine import Event, because
from headrace.machines.producer.transactional_sequences import TransactionalSequences
from headrace.machines.producer.transactions import (
    TXN_TRANSITIONS,
    Operation,
    OperationDone,
    TransactionFailed,
    Transactions,
    TxnState,
    Work,
)
from headrace.types.records import ConsumerGroupMetadata, TopicPartition

__all__ = ["TransactionCalls", "not_configured"]

_OUTSIDE = KafkaError(KafkaError._STATE, "a transactional producer takes records between begin_transaction() and "
                      "commit_transaction() or abort_transaction() only")


class OperationOutcome(asyncio.Future[None]):
    """An operation's outcome. It is kept until it is returned to the application, whose calls may run out of time.

    Attributes:
        delivered: it was returned to a caller.
        awaited: a caller waits for the end, and it will be returned to that one.
    """

    delivered = False
    awaited = False

    async def ended(self) -> None:
        """Wait for the end. A caller that is cancelled meanwhile does not stop the operation."""
        if not self.done():
            await asyncio.wait((self,))


class TransactionCalls:
    """The transactions of one producer.

    Args:
        config: the producer's properties.
        client: runs the machines.
        accumulators: take records only while a transaction is open.

    Attributes:
        machine: decides; the sender asks it as well.
        operation: what a call of an application does, by its name.
    """

    operation = Operation
    _purge: Callable[[bool, bool], None]

    def __init__(self, config: Config, client: ClientCore, accumulators: TopicAccumulators) -> None:
        self._client = client
        self._accumulators = accumulators
        self._timeout_s = config.seconds("transaction.timeout.ms")
        self._outcomes: dict[Operation, OperationOutcome] = {}
        self._asked_offsets: object = None
        self._leaving = False
        finder = CoordinatorFinder(TRANSACTION, config["transactional.id"], retries=self._client.retries)
        client.add(finder)
        self.machine = Transactions(
            config["transactional.id"], config["transaction.timeout.ms"], finder, self._find_group,
            lambda: client.driver.features, config.seconds("socket.timeout.ms"), self._wait_s)
        accumulators.refuse(_outside)

    def start(self, work: Work, purge: Callable[[bool, bool], None]) -> None:
        """The sender exists: begin to run. `purge` gives up records that wait, and those in flight."""
        self.machine.work, self._purge = work, purge
        self._client.add(self.machine)

    def sequences(self) -> TransactionalSequences:
        """What numbers the batches of the transactions."""
        return TransactionalSequences(self.machine)

    def _wait_s(self, attempt: int) -> float:
        return self._client.retries.wait_s(attempt + 1)

    def _find_group(self, group_id: str) -> CoordinatorFinder:
        finder = CoordinatorFinder(GROUP, group_id, retries=self._client.retries)
        self._client.add(finder)
        return finder

    async def run(self, operation: Operation, timeout_s: float) -> None:
        """Initialise, commit or abort, or go on waiting for it; return how it ended.

        Args:
            operation: any but `OFFSETS`.
            timeout_s: seconds to wait. Even if there are none, it begins.

        Raises:
            KafkaException: it failed, or this is not the time for it; the error says whether to retry, to abort, or to
                give up (fatal). `_TIMED_OUT`: it goes on. `_PREV_IN_PROGRESS`: another thread or task waits for it.
                `_CONFLICT`: another operation is under way, or its end was not returned to any call yet.
        """
        await self._wait_for(operation, self._outcome_of(operation, lambda: self._begin(operation)), timeout_s)

    def _begin(self, operation: Operation) -> KafkaError | None:
        error = self.machine.begin(operation)
        if error is None:
            self._asked_offsets = None
        if error is None and operation is Operation.ABORT:
            if not self._leaving:  # else a closed producer refuses them
                self._accumulators.refuse(_outside)
            self._purge(True, True)
        return error

    async def add_offsets(
        self, positions: list[TopicPartition], member: ConsumerGroupMetadata, timeout_s: float
    ) -> None:
        """Make a consumer's offsets part of the transaction, as `run` does; positions without an offset are left out.

        Raises:
            KafkaException: as of `run`; `_CONFLICT` also while other offsets are still on their way.
        """
        offsets = [tp for tp in positions if tp.offset >= 0]
        if not offsets:
            return
        asked = (member, [(tp.topic, tp.partition, tp.offset) for tp in offsets])
        before = self._undelivered(Operation.OFFSETS)
        if before is not None and asked != self._asked_offsets:
            if not before.done():
                raise KafkaException(KafkaError(KafkaError._CONFLICT, "send_offsets_to_transaction() is under way with "
                                                "other offsets: call it again with those first"))
            before.delivered = True  # had those failed, nothing but an abort would be possible
        self._asked_offsets = asked
        outcome = self._outcome_of(Operation.OFFSETS, lambda: self.machine.add_offsets(offsets, member))
        await self._wait_for(Operation.OFFSETS, outcome, timeout_s)

    async def begin(self) -> None:
        """Open a transaction: records are taken from now on. What became of operations before is forgotten.

        Raises:
            ClientClosedError: the producer is closed.
            KafkaException: this is not the time for it.
        """
        if self._leaving:
            raise producer_closed()
        error = self.machine.open()
        if error is not None:
            raise _raised(error)
        self._outcomes.clear()
        self._accumulators.admit()

    def stop_taking(self) -> None:
        """The transaction is about to be committed: no more records. From any thread.

        Raises:
            KafkaException: it cannot be committed any more.
        """
        if self._undelivered(Operation.COMMIT) is not None:
            return  # it is about to be returned to the caller
        if self.machine.error is not None:
            raise _raised(self.machine.error)
        if self.machine.state is TxnState.IN_TRANSACTION:
            self._accumulators.refuse(_outside)

    @property
    def can_abort(self) -> bool:
        """True when a transaction is open and not about to be committed. From any thread."""
        may_abort = TXN_TRANSITIONS.allows(self.machine.state, Operation.ABORT.value)
        return may_abort and self._undelivered(Operation.COMMIT) is None

    async def leave(self) -> None:
        """The producer is about to be closed: abort what is open, so that readers need not wait for it.

        Takes `transaction.timeout.ms` at most: after that the coordinator has aborted it by itself.
        """
        self._leaving = True
        under_way = Operation.COMMIT if self.machine.state is TxnState.COMMITTING else Operation.ABORT
        for operation, outcome in self._outcomes.items():
            outcome.delivered |= operation is not under_way
        if self.can_abort or self._undelivered(under_way) is not None:
            with suppress(KafkaException, TimeoutError):
                async with asyncio.timeout(self._timeout_s):
                    await self._outcome_of(under_way, lambda: self._begin(under_way)).ended()
        self._purge(True, True)  # what came too late for it

    async def not_delivered(self, operation: Operation) -> None:
        """A caller on another thread was interrupted: perhaps the operation's end was not returned to it."""
        if operation in self._outcomes:
            self._outcomes[operation].delivered = False

    async def _wait_for(self, operation: Operation, outcome: OperationOutcome, timeout_s: float) -> None:
        if outcome.awaited:
            raise KafkaException(KafkaError(
                KafkaError._PREV_IN_PROGRESS, f"{operation.value}() is under way: another thread or task waits for it",
                retriable=True))
        outcome.awaited = True
        try:
            async with asyncio.timeout(None if timeout_s == math.inf else timeout_s):
                await outcome.ended()
        except TimeoutError:
            if not outcome.done():
                raise KafkaException(self.late(operation.value)) from None
        finally:
            outcome.awaited = False
        outcome.delivered = True
        outcome.result()

    def late(self, call: str) -> KafkaError:
        """A call ran out of time; what it began goes on. From any thread."""
        why = because(self.machine.last_error)
        return KafkaError(KafkaError._TIMED_OUT, f"{call}() is not done yet: call it again to go on waiting{why}",
                          retriable=True)

    def on_record_failed(self, error: KafkaError) -> None:
        """A record failed before it was in a batch."""
        self.machine.on_record_failed(error)
        self._client.wake()

    def _outcome_of(self, operation: Operation, begin: Callable[[], KafkaError | None]) -> OperationOutcome:
        outcome = self._undelivered(operation)
        if outcome is None:
            error = self._conflict(operation) or begin()
            if error is not None:
                raise _raised(error)
            outcome = self._outcomes[operation] = OperationOutcome(loop=asyncio.get_running_loop())
            outcome.add_done_callback(_look_at)
            self._client.wake()
        return outcome

    def _undelivered(self, operation: Operation) -> OperationOutcome | None:
        """The operation if it is under way, or if its end was not returned to any call yet."""
        outcome = self._outcomes.get(operation)
        return None if outcome is None or outcome.delivered else outcome

    def _conflict(self, operation: Operation) -> KafkaError | None:
        """Why an operation must wait: another one's end is to be returned first.

        Not that of offsets: if they failed, nothing but an abort is possible anyway.
        """
        for other in (Operation.INIT, Operation.COMMIT, Operation.ABORT):
            outcome = self._undelivered(other)
            if other is not operation and outcome is not None:
                now = "has ended meanwhile: call it again to learn how" if outcome.done() else "is under way"
                return KafkaError(KafkaError._CONFLICT, f"{operation.value}() cannot be called now: {other.value}() "
                                  f"{now}", retriable=True)
        return None

    def on_event(self, event: Event) -> KafkaError | None:
        """Take an event, if it is one of the machine's. Returns why no more records may be produced, if it says so."""
        if isinstance(event, TransactionFailed):
            self._accumulators.refuse(partial(_raised, event.error))
            return event.error
        if isinstance(event, OperationDone):
            outcome = self._outcomes.get(event.operation)
            if outcome is not None and not outcome.done():
                if event.error is None:
                    outcome.set_result(None)
                else:
                    outcome.set_exception(_raised(event.error))
        return None

    def close(self, error: KafkaError) -> None:
        """The producer is gone: what is under way ends with the error."""
        for operation in list(self._outcomes):
            self.on_event(OperationDone(operation, error))


def not_configured(call: str) -> KafkaError:
    """A call that only a transactional producer has."""
    return KafkaError(
        KafkaError._NOT_CONFIGURED, f'{call}() needs the property "transactional.id": give the producer one')


def _outside() -> KafkaException:
    return KafkaException(_OUTSIDE)


def _raised(error: KafkaError) -> KafkaException:
    return FatalError(error) if error.fatal() else KafkaException(error)


def _look_at(future: asyncio.Future[None]) -> None:
    """The caller may have stopped waiting: an exception that is never retrieved is no defect."""
    if not future.cancelled():
        future.exception()
