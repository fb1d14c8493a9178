"""Sequences of a participant's batches: each partition begins where others have ended, as a rule at zero.

It must not know leaders or sockets. Read next: `machines.producer.transactional_sequences`.
"""

from __future__ import annotations

from headrace.errors import KafkaError
from headrace.machines.joint.joined_transaction import LET_ONE_WRITE, JoinedTransaction
from headrace.machines.joint.joint_transaction import Written
from headrace.machines.producer.batch_queue import PartitionQueue, ProducerBatch
from headrace.machines.producer.sequences import next_sequence, restart
from headrace.machines.producer.transactional_sequences import TransactionalSequences

__all__ = ["JoinedSequences"]

_NO_EPOCH = -1


class JoinedSequences(TransactionalSequences):
    """Gives batches their sequences in a transaction that others write into as well.

    Args:
        transaction: knows the producer id, its epoch, and what may be sent.
    """

    def __init__(self, transaction: JoinedTransaction) -> None:
        super().__init__(transaction)
        self._joined = transaction
        self._times = 0
        self._queues: dict[tuple[str, int], PartitionQueue] = {}

    def allows(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """May this batch, the queue's first, be sent now?"""
        if self._times != self._joined.joined:
            self._times = self._joined.joined
            self._queues = {}
        if (queue.topic, queue.partition) not in self._queues:
            self._queues[queue.topic, queue.partition] = queue
            restart(queue, _NO_EPOCH)
        return super().allows(queue, batch)

    def first_sequence(self, queue: PartitionQueue) -> int:
        """Where others have ended in this transaction."""
        return self._joined.before(queue.topic, queue.partition)

    def refusal(self, error: KafkaError) -> KafkaError:
        """Two that claimed a partition at the same moment: the leader took the records of the other one."""
        if error.code() != KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return error
        return KafkaError(KafkaError._CONFLICT, f"{error.str().rstrip('.')}. {LET_ONE_WRITE}")

    def written(self) -> Written:
        """Records in the joined transaction by topic and partition; all of them are stored once nothing waits."""
        if self._times != self._joined.joined:
            return {}
        return {key: count for key, queue in self._queues.items()
                if (count := next_sequence(queue) - self._joined.before(*key)) > 0}
