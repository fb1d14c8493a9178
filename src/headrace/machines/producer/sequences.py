"""Sequences, which make retries safe: a producer id for the client, an epoch and sequences per partition (KIP-98).

A broker stores a batch only if its sequence follows the last one, and recognises the last five; so a batch keeps its
sequence through all retries, and what may have been stored is never sent under a new one. When sequences cannot go on
(a batch was given up), the partition *needs an epoch bump*: batches with a sequence are resolved first, then it starts
again at zero in the next epoch (KIP-360). Epochs are per partition here: brokers compare them per partition, and so one
partition's trouble does not stop the others.

It must not know leaders or sockets. Read next: `machines.producer.sender`, which asks here before it sends and after
each answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from headrace.errors import KafkaError
from headrace.machines.machine import ANY_NODE, REFUSALS, Send
from headrace.machines.producer.batch_queue import PartitionQueue, ProducerBatch
from headrace.machines.producer.partition_sequence import PartitionSequence
from headrace.wire.messages.producer.produce import InitProducerIdRequest, InitProducerIdResponse

__all__ = ["MAX_EPOCH", "Sequences", "increment_sequence", "next_sequence", "producer_state", "restart", "topic_id"]

MAX_EPOCH: Final = 32_767
_SEQUENCE_MASK: Final = 0x7FFFFFFF  # after 2^31 - 1 comes 0
_RECOGNISED: Final = 5  # batches per producer and partition that a broker remembers
_SILENCE_S: Final = 60.0  # far less than brokers remember a silent producer (producer.id.expiration.ms)
_TRANSACTION_TIMEOUT_MS: Final = 2_147_483_647  # without a transactional id the broker ignores it


class Sequences:
    """Gives batches their sequences and decides what a refusal means for those behind.

    Args:
        enabled: False for `enable.idempotence=false`; then batches have no sequence and every rule says "go on".
        request_timeout_s: seconds for an InitProducerId request.
        backoff_s: seconds to wait before attempt n (0, 1, ...) of InitProducerId.

    Attributes:
        transactional: batches belong to transactions.
        asks: a producer id is needed, and no broker was asked for it yet.
    """

    transactional = False

    def __init__(self, enabled: bool, request_timeout_s: float, backoff_s: Callable[[int], float]) -> None:
        self.enabled = enabled
        self._request_timeout_s = request_timeout_s
        self._backoff_s = backoff_s
        self._producer_id = -1
        self._epoch = -1
        self._asking = False
        self.asks = enabled
        self._attempts = 0
        self._ask_at = 0.0
        self._last_error: KafkaError | None = None

    # The producer id

    @property
    def last_error(self) -> KafkaError | None:
        """Why there is no producer id yet; None if no attempt has failed, or it is there."""
        return self._last_error

    def poll(self, now: float) -> Iterator[Send]:
        """Ask for a producer id if one is needed."""
        if not self.asks or now < self._ask_at:
            return
        self._asking, self.asks = True, False
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS)
        yield Send(ANY_NODE, request, self._request_timeout_s)

    def deadline(self) -> float:
        """When to ask again; infinity for not before something happens."""
        return self._ask_at if self.asks else math.inf

    def on_reply(self, reply: InitProducerIdResponse, now: float) -> KafkaError | None:
        """Take the producer id; returns an error that no retry can cure."""
        if reply.error_code:
            return self.on_error(KafkaError(reply.error_code), now)
        self._asking, self._last_error = False, None
        self._attempts = 0
        self._producer_id, self._epoch = reply.producer_id, reply.producer_epoch
        return None

    def on_error(self, error: KafkaError, now: float) -> KafkaError | None:
        """No producer id came: ask again later, or return the error when that is useless."""
        if error.code() == KafkaError._UNSUPPORTED_FEATURE:
            error = KafkaError(error.code(), "the brokers are older than Kafka 0.11 and cannot tell repeated records: "
                               "set enable.idempotence to false, and some may be stored twice")
        elif error.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
            error = KafkaError(error.code(), f"{error.str().rstrip('.')}; an idempotent producer needs WRITE on a "
                               "topic, or IDEMPOTENT_WRITE on the cluster")
        self._asking, self._last_error, self.asks = False, error, True
        self._ask_at = now + self._backoff_s(self._attempts)
        self._attempts += 1
        return None if error.retriable() or error.code() in REFUSALS else error

    # The sequences of a partition

    def allows(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """May this batch, the queue's first, be sent now?"""
        if not self.enabled:
            return True
        own = queue.partition_sequence
        if own.needs_epoch_bump:
            if queue.in_flight:
                return False
            if batch.sequence >= 0 and not batch.void:
                return True
            restart(queue, own.epoch + 1)
        if batch.sequence < 0 and not ((own.producer_id >= 0 and own.epoch <= MAX_EPOCH) or self._identify(own)):
            return False
        return not queue.in_flight or self.has_room(queue, batch)

    def check_known(self, queue: PartitionQueue, topic_id: UUID, now: float) -> None:
        """Notice that the leader may hold nothing of this producer any more: the topic is another one by that name, or
        was silent for so long that the producer may have been forgotten.

        Args:
            queue: of the batch that may be sent.
            topic_id: of the topic as it is known now; zero while it is not.
            now: monotonic seconds.
        """
        own = queue.partition_sequence
        if (topic_id is not own.topic_id and topic_id != own.topic_id) or now - own.looked_at > _SILENCE_S:
            own.confirmed = False
            if not queue.in_flight:  # or what the topic before still stores would be taken for stored in the new one
                own.topic_id = topic_id
        own.looked_at = now

    def has_room(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """May the batch follow those in flight?

        A broker that holds nothing of this producer accepts any sequence: until the first batch is stored, a second one
        could overtake it. And it recognises a repeated batch among the last five only: an unresolved one must not get
        older than that.
        """
        if not queue.in_flight:
            return True
        oldest = min(other.position for other in queue.in_flight)
        return queue.partition_sequence.confirmed and batch.position - oldest < _RECOGNISED

    def assign_sequence(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Give a batch its sequence, once; retries keep it, and parts of a batch have theirs from it."""
        if batch.stamped or not self.enabled:
            return
        own = queue.partition_sequence
        if batch.sequence < 0:
            batch.sequence = own.next_sequence
            own.next_sequence = increment_sequence(batch.sequence, batch.count)
        batch.stamped = True
        if batch.sealed is not None:
            batch.sealed.stamp(own.producer_id, own.epoch, batch.sequence, self.transactional)

    def assign_alone(self, queue: PartitionQueue, batch: ProducerBatch, topic_id: UUID, now: float) -> bool:
        """Give a new, sealed batch its sequence if its partition has nothing in flight and no sequence is in question.

        What `check_known`, `allows` and `assign_sequence` do then. Returns False where they have to look; nothing is
        changed then.
        """
        if not self.enabled:
            return True
        own = queue.partition_sequence
        if (own.needs_epoch_bump or own.producer_id < 0 or own.epoch > MAX_EPOCH or own.topic_id is not topic_id
                or now - own.looked_at > _SILENCE_S or batch.sealed is None):
            return False
        own.looked_at = now
        batch.sequence = own.next_sequence
        own.next_sequence = (batch.sequence + batch.count) & _SEQUENCE_MASK
        batch.stamped = True
        batch.sealed.stamp(own.producer_id, own.epoch, batch.sequence, False)
        return True

    def assign_sent(self, batch: ProducerBatch, now: float) -> None:
        """A batch was sent directly, with the next sequence."""
        if self.enabled:
            batch.sequence, batch.stamped = batch.queue.partition_sequence.next_sequence, True
            self.skip(batch.queue, batch.count, now)

    def skip(self, queue: PartitionQueue, count: int, now: float) -> None:
        """So many records of a partition were sent directly, with the next sequences."""
        if self.enabled:
            own = queue.partition_sequence
            own.looked_at = now
            own.next_sequence = (own.next_sequence + count) & _SEQUENCE_MASK

    def next_of(self, queue: PartitionQueue) -> tuple[int, int, int] | None:
        """Producer id, epoch and sequence of a partition's next batch, -1 for a producer that is not idempotent.

        None while the leader is not known to hold batches of this producer, or sequences are in question.
        """
        own = queue.partition_sequence
        if not self.enabled:
            return -1, -1, -1
        if own.needs_epoch_bump or own.producer_id < 0 or not own.confirmed:
            return None
        return own.producer_id, own.epoch, own.next_sequence

    def on_stored(self, queue: PartitionQueue) -> None:
        """The broker stored a batch, so it now knows this producer."""
        queue.partition_sequence.confirmed = True

    def on_refused(self, batch: ProducerBatch, forgotten: bool = False) -> bool:
        """The broker refused the sequence of a settled batch. Returns True to send it again, False to give it up.

        Args:
            batch: what was refused.
            forgotten: the broker forgot the producer because all that it wrote was deleted in time: nothing is lost.
                Here it makes no difference, for the next epoch begins at zero whatever the broker remembers (KIP-360).

        Only the first unresolved batch says something about the partition; those behind are refused because it is
        missing. If an earlier attempt of the first may have been stored, a new sequence could store it twice.
        """
        queue = batch.queue
        if batch.void or not queue.is_first(batch):
            return True
        if batch.maybe_stored:
            return False
        batch.void = True
        self._end_numbers(batch)
        return True

    def refusal(self, error: KafkaError) -> KafkaError:
        """What to report for a batch whose sequence was refused for good, where the broker said `error`."""
        return error

    def on_given_up(self, batch: ProducerBatch, error: KafkaError) -> None:
        """A settled or waiting batch is reported as failed and will not be sent again."""
        if self.enabled and batch.sequence >= 0:
            self._end_numbers(batch)

    def _end_numbers(self, batch: ProducerBatch) -> None:
        batch.queue.partition_sequence.needs_epoch_bump = True
        if batch.void or not batch.maybe_stored:  # surely not stored, and so nothing that follows it
            for follower in batch.queue.followers(batch):
                if follower.sequence >= 0:
                    follower.void = True

    def _identify(self, own: PartitionSequence) -> bool:
        """Give the partition a producer id with epochs left; False while it must wait for one."""
        if own.producer_id == self._producer_id:
            self._producer_id = -1  # its epochs are used up: `poll` asks for another
            self.asks = not self._asking
        if self._producer_id < 0:
            return False
        own.producer_id, own.epoch = self._producer_id, self._epoch
        return True


def increment_sequence(sequence: int, count: int) -> int:
    """The sequence that follows those of `count` records."""
    return (sequence + count) & _SEQUENCE_MASK


def restart(queue: PartitionQueue, epoch: int) -> None:
    """All batches with a sequence are resolved: begin at zero, as a rule in the next epoch."""
    for batch in queue.waiting:
        batch.sequence = -1
        batch.stamped = batch.void = batch.maybe_stored = False
    own = queue.partition_sequence
    own.epoch = epoch
    own.next_sequence = 0
    own.needs_epoch_bump = own.confirmed = False


def next_sequence(queue: PartitionQueue) -> int:
    """The sequence of the partition's next record: how many have one, if they began at zero."""
    return queue.partition_sequence.next_sequence


def topic_id(queue: PartitionQueue) -> UUID:
    """The topic's id when a batch of the partition was last about to be sent; zero while it was not known."""
    return queue.partition_sequence.topic_id


def producer_state(queue: PartitionQueue) -> tuple[int, int]:
    """Producer id and epoch under which the partition's batches have their sequences; -1 before the first."""
    own = queue.partition_sequence
    return own.producer_id, own.epoch
