"""The transactional half of `Producer`: confluent_kafka's calls, and a context manager.

    producer.init_transactions()
    with producer.transaction() as transaction:
        producer.produce("out", b"value")
        transaction.send_offsets(consumer.position(consumer.assignment()), consumer.consumer_group_metadata())

It must not decide anything: `machines.producer.transactions` does. Read next: `client.producer.transaction_calls`.
"""

from __future__ import annotations

import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.client.producer.producer_engine import Core
from headrace.client.producer.topics import producer_closed
from headrace.client.producer.transaction_calls import TransactionCalls, not_configured, seconds
from headrace.errors import KafkaException
from headrace.machines.producer.transactions import ConsumerGroupMetadata, Operation
from headrace.net.thread import LoopThread
from headrace.types.records import TopicPartition

__all__ = ["Transaction", "Transactional"]


class Transactional:
    """What a `Producer` with a `transactional.id` can do.

    Errors are `KafkaException`s whose `KafkaError` says what to do: `retriable()` call it again, `txn_requires_abort()`
    call `abort_transaction()`, `fatal()` close the producer.
    """

    _core: Core
    _thread: LoopThread

    def init_transactions(self, timeout: float = -1) -> None:
        """Take over the transactional id: older producers with it are fenced, what they left open is ended.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), or fatal.
        """
        calls = self._transactions("init_transactions")
        self._hear(calls, Operation.INIT, calls.run(Operation.INIT, seconds(timeout)))

    def begin_transaction(self) -> None:
        """Open a transaction: what is produced from now on belongs to it.

        Raises:
            KafkaException: this is not the time for it (`_STATE`), or fatal.
        """
        self._thread.call(self._transactions("begin_transaction").begin())

    def send_offsets_to_transaction(
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
        self._hear(calls, Operation.OFFSETS, calls.add_offsets(positions, group_metadata, seconds(timeout)))

    def commit_transaction(self, timeout: float = -1) -> None:
        """Deliver what was produced, call the callbacks, then commit.

        A record that was reported as failed, or purged, makes the commit fail: it is all or nothing.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), the transaction must be aborted, or fatal. Only if
                `error.maybe_applied` is set it may have been committed.
        """
        calls, expires_at = self._transactions("commit_transaction"), time.monotonic() + seconds(timeout)
        calls.stop_taking()
        if self._flush(expires_at):
            raise KafkaException(calls.late("commit_transaction"))
        self._hear(calls, Operation.COMMIT, calls.run(Operation.COMMIT, max(expires_at - time.monotonic(), 0.0)))

    def abort_transaction(self, timeout: float = -1) -> None:
        """Give up what was produced in the transaction; records that wait are reported as purged.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), or fatal.
        """
        calls = self._transactions("abort_transaction")
        try:
            self._hear(calls, Operation.ABORT, calls.run(Operation.ABORT, seconds(timeout)))
        finally:
            self._core.deliveries.serve()

    @contextmanager
    def transaction(self, timeout: float = -1) -> Iterator[Transaction]:
        """Begin a transaction; commit it at the end of the block, abort it if the block or the commit raises.

        A commit that is under way when it is interrupted, or out of time, can not be aborted and goes on.

        Args:
            timeout: seconds for the commit, and for the abort; negative waits as long as they take.

        Raises:
            KafkaException: the transaction was aborted for this reason, or, if it is fatal, nothing can be done.
        """
        self.begin_transaction()
        try:
            yield Transaction(self)
            self.commit_transaction(timeout)
        except BaseException:
            if not self._core.closed and self._transactions("transaction").can_abort:
                self.abort_transaction(timeout)
            raise

    def _leave(self) -> None:
        """Before the producer is closed: abort what is open."""
        if self._core.transactions is not None:
            self._thread.call(self._core.transactions.leave())

    def _flush(self, expires_at: float) -> int:
        raise NotImplementedError

    def _transactions(self, call: str) -> TransactionCalls:
        calls = self._core.transactions
        if self._core.closed:
            raise producer_closed()
        if calls is None:
            raise KafkaException(not_configured(call))
        return calls

    def _hear(self, calls: TransactionCalls, operation: Operation, work: Coroutine[Any, Any, None]) -> None:
        try:
            self._thread.call(work)
        except KafkaException:
            raise
        except BaseException:  # a signal's, perhaps just when the end was to be heard
            self._thread.call(calls.not_heard(operation))
            raise


class Transaction:
    """An open transaction of a `with producer.transaction()` block."""

    def __init__(self, producer: Transactional) -> None:
        self._producer = producer

    def send_offsets(self, positions: list[TopicPartition], group_metadata: ConsumerGroupMetadata) -> None:
        """Commit a consumer's offsets with the transaction; see `Producer.send_offsets_to_transaction`."""
        self._producer.send_offsets_to_transaction(positions, group_metadata)
