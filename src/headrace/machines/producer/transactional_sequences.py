"""Sequences of batches inside transactions: one producer id and epoch for all partitions, given by the coordinator.

Where `machines.producer.sequences` starts a partition again in its next epoch, here a batch that is given up dooms the
transaction: after the abort everything starts at zero in an epoch that the coordinator gives.

It must not know leaders or sockets. Read next: `machines.producer.transactions`, which decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

from headrace.errors import KafkaError
from headrace.machines.machine import Send
from headrace.machines.producer.batch_queue import PartitionQueue, ProducerBatch
from headrace.machines.producer.sequences import Sequences, restart

__all__ = ["OpenTransaction", "TransactionalSequences"]


class OpenTransaction(Protocol):
    """What records go into: the transactions of a producer, or one that others write into as well."""

    @property
    def transactional_id(self) -> str:
        """The name under which the coordinator knows it."""
        ...

    @property
    def producer_id(self) -> int:
        """What batches are stamped with; so is `epoch`."""
        ...

    @property
    def epoch(self) -> int:
        """Goes up whenever nothing older may be accepted any more."""
        ...

    @property
    def max_produce_version(self) -> int:
        """Highest version for produce requests."""
        ...

    @property
    def lost(self) -> KafkaError | None:
        """Why records that still wait will not be sent; None if they may be."""
        ...

    @property
    def last_error(self) -> KafkaError | None:
        """Why the last attempt of what is under way failed; None if it did not."""
        ...

    def admits(self, topic: str, partition: int) -> bool:
        """May batches for this partition be sent?"""
        ...

    def on_batch_stored(self) -> None:
        """A batch of the transaction is stored."""
        ...

    def on_batch_failed(self, error: KafkaError, *, sent: bool, uncertain: bool) -> None:
        """A batch of the transaction was given up. `sent`: it has a sequence; `uncertain`: it may get stored still."""
        ...

    def on_record_failed(self, error: KafkaError) -> None:
        """A record was reported as failed: what it belongs to cannot be committed."""
        ...

    def on_fatal(self, error: KafkaError) -> None:
        """A broker reports that this producer may not write any more."""
        ...


class TransactionalSequences(Sequences):
    """Gives batches their sequences inside a transaction.

    Args:
        transactions: knows the producer id, its epoch, and what may be sent.
    """

    transactional = True

    def __init__(self, transactions: OpenTransaction) -> None:
        super().__init__(True, 0.0, lambda attempt: 0.0)
        self.asks = False  # the coordinator gives the producer id
        self._transactions = transactions

    @property
    def last_error(self) -> KafkaError | None:
        """Why the coordinator has not done yet what it was asked for."""
        return self._transactions.last_error

    def poll(self, now: float) -> Iterator[Send]:
        """Nothing: the coordinator gives the producer id."""
        return iter(())

    def deadline(self) -> float:
        """Never."""
        return math.inf

    def allows(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """May this batch, the queue's first, be sent now?"""
        numbers = self._transactions
        if not numbers.admits(queue.topic, queue.partition):
            return False
        own = queue.partition_sequence
        if (own.producer_id, own.epoch) != (numbers.producer_id, numbers.epoch):
            own.producer_id, own.epoch = numbers.producer_id, numbers.epoch
            own.next_sequence, own.confirmed, own.needs_epoch_bump = self.first_sequence(queue), False, False
        if own.needs_epoch_bump:
            if queue.in_flight:
                return False
            restart(queue, own.epoch)
        return self.has_room(queue, batch)

    def first_sequence(self, queue: PartitionQueue) -> int:
        """Where sequences of a partition begin under a new epoch."""
        return 0

    def on_stored(self, queue: PartitionQueue) -> None:
        """The broker stored a batch: its sequence, and its place in the transaction, are settled."""
        super().on_stored(queue)
        self._transactions.on_batch_stored()

    def on_refused(self, batch: ProducerBatch, forgotten: bool = False) -> bool:
        """The broker refused a sequence: batches behind a missing one wait for its fate, the first one is given up.

        Unless the broker forgot the producer and nothing was lost: then sequences begin at zero, in the same epoch.
        """
        queue = batch.queue
        if not queue.is_first(batch):
            return True
        own = queue.partition_sequence
        own.needs_epoch_bump |= forgotten and batch.sequence > 0 and not batch.maybe_stored
        return own.needs_epoch_bump

    def on_given_up(self, batch: ProducerBatch, error: KafkaError) -> None:
        """A batch is reported as failed: the transaction cannot be committed."""
        self._transactions.on_batch_failed(error, sent=batch.sequence >= 0, uncertain=batch.maybe_stored)
