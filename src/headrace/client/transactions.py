"""What the faces of a transactional producer call: each operation becomes one that can be awaited, and awaited again.

An operation that its caller gave up waiting for goes on; the same call made again waits for the same one, as librdkafka
documents it. All runs on the loop. It must not know what a coordinator says: `machines.transactions` decides.
Read next: `machines.transactions`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable

from headrace.client.base import ClientCore
from headrace.client.topic_buffers import TopicBuffers
from headrace.config import Config
from headrace.errors import FatalError, KafkaError, KafkaException
from headrace.machines.backoff import backoff_s
from headrace.machines.coordinator import GROUP, TRANSACTION, CoordinatorFinder
from headrace.machines.machine import Event
from headrace.machines.transactions import (
    GroupMember,
    Operation,
    OperationDone,
    TransactionFailed,
    Transactions,
    Work,
)
from headrace.types import TopicPartition

__all__ = ["TransactionCalls"]

_OUTSIDE = KafkaError(KafkaError._STATE, "a transactional producer takes records between begin_transaction() and "
                      "commit_transaction() or abort_transaction() only")


class TransactionCalls:
    """The transactions of one producer.

    Args:
        config: the producer's properties.
        client: runs the machines.
        buffers: take records only while a transaction is open.

    Attributes:
        machine: decides; the sender asks it as well.
    """

    _purge: Callable[[], None]

    def __init__(self, config: Config, client: ClientCore, buffers: TopicBuffers) -> None:
        self._client = client
        self._buffers = buffers
        self._backoff = (config.seconds("retry.backoff.ms"), config.seconds("retry.backoff.max.ms"))
        self._running: dict[Operation, asyncio.Future[None]] = {}
        finder = CoordinatorFinder(TRANSACTION, config["transactional.id"], jitter=random.random)
        client.add(finder)
        self.machine = Transactions(
            config["transactional.id"], config["transaction.timeout.ms"], finder, self._find_group,
            lambda: client.driver.features, config.seconds("socket.timeout.ms"), self._wait_s)
        buffers.refuse(KafkaException(_OUTSIDE))

    def start(self, work: Work, purge: Callable[[], None]) -> None:
        """The sender exists: begin to run. `purge` gives up all records."""
        self.machine.work, self._purge = work, purge
        self._client.add(self.machine)

    def _wait_s(self, attempt: int) -> float:
        return backoff_s(attempt + 1, *self._backoff, random.random())

    def _find_group(self, group_id: str) -> CoordinatorFinder:
        finder = CoordinatorFinder(GROUP, group_id, jitter=random.random)
        self._client.add(finder)
        return finder

    async def run(self, operation: Operation) -> None:
        """Initialise, commit or abort, and wait for the end of it.

        Raises:
            KafkaException: it failed; its error says whether to retry, to abort, or to give up (fatal).
        """
        await self._wait_for(operation, lambda: self._begin(operation))

    def _begin(self, operation: Operation) -> KafkaError | None:
        error = self.machine.begin(operation)
        if error is None and operation is Operation.ABORT:
            self._purge()
        return error

    async def add_offsets(self, offsets: Iterable[TopicPartition], member: GroupMember) -> None:
        """Make a consumer's offsets part of the transaction.

        Raises:
            KafkaException: it failed; its error says whether to abort, or to give up (fatal).
        """
        await self._wait_for(Operation.OFFSETS, lambda: self.machine.add_offsets(offsets, member))

    async def begin(self) -> None:
        """Open a transaction: records are taken from now on.

        Raises:
            KafkaException: this is not the time for it.
        """
        error = self.machine.open()
        if error is not None:
            raise _raised(error)
        self._buffers.admit()

    def stop_taking(self) -> None:
        """The transaction is about to end: no more records. From any thread."""
        self._buffers.refuse(KafkaException(_OUTSIDE))

    async def _wait_for(self, operation: Operation, begin: Callable[[], KafkaError | None]) -> None:
        running = self._running.get(operation)
        if running is None:
            error = begin()
            if error is not None:
                raise _raised(error)
            running = self._running[operation] = asyncio.get_running_loop().create_future()
            running.add_done_callback(_look_at)
            self._client.wake()
        await asyncio.shield(running)

    def on_event(self, event: Event) -> bool:
        """Take an event of the machine; True if it was one."""
        if isinstance(event, OperationDone):
            running = self._running.pop(event.operation, None)
            if running is None or running.done():
                return True
            if event.error is None:
                running.set_result(None)
            else:
                running.set_exception(_raised(event.error))
            return True
        if isinstance(event, TransactionFailed):
            self._buffers.refuse(_raised(event.error))
            return True
        return False

    def close(self, error: KafkaError) -> None:
        """The producer is gone: what is under way ends with the error."""
        for operation in list(self._running):
            self.on_event(OperationDone(operation, error))


def _raised(error: KafkaError) -> KafkaException:
    return FatalError(error) if error.fatal() else KafkaException(error)


def _look_at(future: asyncio.Future[None]) -> None:
    """The caller may have stopped waiting: an exception that nobody sees is no defect."""
    if not future.cancelled():
        future.exception()
