"""The transactional half of `AIOProducer`: the same calls as the blocking producer's, to be awaited.

    await producer.init_transactions()
    async with producer.transaction() as transaction:
        await producer.produce("out", b"value")
        await transaction.send_offsets(await consumer.position(await consumer.assignment()),
                                       await consumer.consumer_group_metadata())

A call that is cancelled, or out of time, has not stopped what it began: call it again to go on waiting.
It must not decide anything: `machines.producer.transactions` does. Read next: `client.producer.transaction_calls`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headrace.client.producer.producer_engine import Core
from headrace.client.producer.transaction_calls import TransactionCalls, not_configured, seconds
from headrace.errors import KafkaException
from headrace.machines.producer.transactions import ConsumerGroupMetadata, Operation
from headrace.types.records import TopicPartition

__all__ = ["AIOTransaction", "AIOTransactional"]


class AIOTransactional:
    """What an `AIOProducer` with a `transactional.id` can do.

    Errors are `KafkaException`s whose `KafkaError` says what to do: `retriable()` call it again, `txn_requires_abort()`
    call `abort_transaction()`, `fatal()` close the producer.
    """

    @property
    def _core(self) -> Core:
        raise NotImplementedError

    async def flush(self, timeout: float = -1) -> int:
        """Send everything now and wait for the reports."""
        raise NotImplementedError

    async def init_transactions(self, timeout: float = -1) -> None:
        """Take over the transactional id: older producers with it are fenced, what they left open is ended.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), or fatal.
        """
        calls = self._transactions("init_transactions")
        await calls.run(Operation.INIT, seconds(timeout))

    async def begin_transaction(self) -> None:
        """Open a transaction: what is produced from now on belongs to it.

        Raises:
            KafkaException: this is not the time for it (`_STATE`), or fatal.
        """
        await self._transactions("begin_transaction").begin()

    async def send_offsets_to_transaction(
        self, positions: list[TopicPartition], group_metadata: ConsumerGroupMetadata, timeout: float = -1
    ) -> None:
        """Commit a consumer's offsets with the transaction, or not at all.

        Args:
            positions: next offset to read of each partition; those without an offset are left out.
            group_metadata: `consumer_group_metadata()` of the consumer. Its `enable.auto.commit` must be off.
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), the transaction must be aborted, or fatal.
        """
        calls = self._transactions("send_offsets_to_transaction")
        await calls.add_offsets(positions, group_metadata, seconds(timeout))

    async def commit_transaction(self, timeout: float = -1) -> None:
        """Deliver what was produced, then commit.

        A record that was reported as failed, or purged, makes the commit fail: it is all or nothing.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), the transaction must be aborted, or fatal. Only if
                `error.maybe_applied` is set it may have been committed.
        """
        calls = self._transactions("commit_transaction")
        expires_at = time.monotonic() + seconds(timeout)
        calls.stop_taking()
        if await self.flush(timeout):
            raise KafkaException(calls.late("commit_transaction"))
        await calls.run(Operation.COMMIT, max(expires_at - time.monotonic(), 0.0))

    async def abort_transaction(self, timeout: float = -1) -> None:
        """Give up what was produced in the transaction; records that wait are reported as purged.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), or fatal.
        """
        calls = self._transactions("abort_transaction")
        await calls.run(Operation.ABORT, seconds(timeout))

    @asynccontextmanager
    async def transaction(self, timeout: float = -1) -> AsyncIterator[AIOTransaction]:
        """Begin a transaction; commit it at the end of the block, abort it if the block or the commit raises.

        A commit that is under way when it is cancelled, or out of time, can not be aborted and goes on.

        Args:
            timeout: seconds for the commit, and for the abort; negative waits as long as they take.

        Raises:
            KafkaException: the transaction was aborted for this reason, or, if it is fatal, nothing can be done.
        """
        await self.begin_transaction()
        try:
            yield AIOTransaction(self)
            await self.commit_transaction(timeout)
        except BaseException:
            if not self._core.closed and self._transactions("transaction").can_abort:
                await self.abort_transaction(timeout)
            raise

    def _transactions(self, call: str) -> TransactionCalls:
        calls = self._core.transactions
        if calls is None:
            raise KafkaException(not_configured(call))
        return calls


class AIOTransaction:
    """An open transaction of an `async with producer.transaction()` block."""

    def __init__(self, producer: AIOTransactional) -> None:
        self._producer = producer

    async def send_offsets(self, positions: list[TopicPartition], group_metadata: ConsumerGroupMetadata) -> None:
        """Commit a consumer's offsets with the transaction; see `AIOProducer.send_offsets_to_transaction`."""
        await self._producer.send_offsets_to_transaction(positions, group_metadata)
