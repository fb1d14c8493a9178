"""Batches that a broker refuses for their size, or for some of their records: what can be stored goes into new ones.

A batch that is too large becomes two halves (KIP-126). Of a batch with records that the broker names (KIP-467) these
fail, each for its own reason, and the rest becomes a batch again. The parts take the batch's place in the order.

Why their sequences (KIP-98) are safe: the refused attempt stored nothing. In the halves each record has the sequence
that it had, s to s+n-1 in two pieces, so what follows keeps its sequence, and if an earlier attempt of the whole was
stored after all, the broker refuses both halves as out of order and they are reported as of unknown fate. A rest has
fewer records than the batch had, and a gap would stand before what follows. But as the batch was not stored, nothing
behind it was, and `machines.producer.sequences` begins a new epoch for the rest and all that follows. Where an earlier
attempt may have been stored, or a transaction cannot be committed any more, the rest is not sent but fails as well.

It must not know requests or time. Read next: `machines.producer.sequences`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headrace.errors import KafkaError
from headrace.machines.producer.batch_queue import BATCH_TRANSITIONS, BatchQueues, BatchState, ProducerBatch
from headrace.machines.producer.message_sets import NO_HEADERS, places_with_headers
from headrace.machines.producer.sequences import increment_sequence
from headrace.wire.messages.producer.produce import PartitionProduceResponse

__all__ = ["TOO_LARGE", "split", "set_aside", "without_headers"]

TOO_LARGE: Final = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
"""Codes of a batch that is more than the broker's `max.message.bytes` or `segment.bytes`."""
_DIVIDE: Final = BATCH_TRANSITIONS.column("divide")


def split(
    batch: ProducerBatch, answer: PartitionProduceResponse, error: KafkaError, batch_queues: BatchQueues, now: float,
    transactional: bool,
) -> list[tuple[ProducerBatch, KafkaError]]:
    """Queue what can be stored of a settled batch.

    Args:
        batch: its last attempt stored nothing.
        answer: the refusal.
        error: the refusal as an error.
        batch_queues: queues the parts.
        now: monotonic seconds.
        transactional: it belongs to a transaction.

    Returns:
        What is to be given up, and why: the batch itself, or records of it, those with the same reason together.
    """
    if answer.error_code in TOO_LARGE:
        return [] if _halve(batch, error, batch_queues, now) else [(batch, error)]
    reasons = {
        record.batch_index: record.batch_index_error_message or error.str()
        for record in answer.record_errors if 0 <= record.batch_index < batch.count
    }
    return set_aside(batch, reasons, error, batch_queues, now, keep_rest=bool(reasons) and not transactional)


def set_aside(
    batch: ProducerBatch, reasons: Mapping[int, str], error: KafkaError, batch_queues: BatchQueues, now: float, *,
    keep_rest: bool = True,
) -> list[tuple[ProducerBatch, KafkaError]]:
    """Part a settled batch from records that cannot be stored, and queue the rest.

    Args:
        batch: its last attempt stored nothing.
        reasons: why, by the record's place in the batch.
        error: why the batch as a whole was not stored.
        batch_queues: queues the rest.
        now: monotonic seconds.
        keep_rest: False when the rest has to fail as well.

    Returns:
        What is to be given up, and why.
    """
    # The rest stands behind the records that fail, so that giving these up makes it start new sequences.
    order: list[str | None] = [*dict.fromkeys(reasons[index] for index in sorted(reasons))]
    if len(reasons) < batch.count:
        order.append(None)
    if len(order) == 1:
        return [(batch, _because(batch, order[0], error))]
    place = {reason: number for number, reason in enumerate(order)}
    made = _put_in_place(batch, [place[reasons.get(index)] for index in range(batch.count)], error)
    failed = []
    for reason, part in zip(order, made, strict=True):
        if reason is None and keep_rest and not batch.maybe_stored:
            batch_queues.insert(part, now)
        else:
            failed.append((part, _because(batch, reason, error)))
    return failed


def without_headers(
    batch: ProducerBatch, error: KafkaError, batch_queues: BatchQueues, now: float
) -> list[tuple[ProducerBatch, KafkaError]]:
    """Queue what can be stored of a settled batch whose request could not be written for an older broker.

    Returns:
        What is to be given up, and why, as `split`: the records with headers if the broker refuses those.
    """
    purged = batch.state is BatchState.PURGED
    if error.code() != KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT or batch.sealed is None or purged:
        return [(batch, error)]
    reasons = dict.fromkeys(places_with_headers(batch.sealed.data), NO_HEADERS)
    if reasons:
        return set_aside(batch, reasons, error, batch_queues, now)
    batch_queues.requeue(batch, now)  # another batch of the request was meant
    return []


def _halve(batch: ProducerBatch, error: KafkaError, batch_queues: BatchQueues, now: float) -> bool:
    """False if the batch is one record and has no halves."""
    if batch.count < 2:
        return False
    first = (batch.count + 1) // 2
    for part in _put_in_place(batch, [0] * first + [1] * (batch.count - first), error):
        batch_queues.insert(part, now)
    return True


def _because(batch: ProducerBatch, reason: str | None, error: KafkaError) -> KafkaError:
    if reason is None or reason == error.str():
        return error
    return KafkaError(error.code(), f"{batch.queue.topic}[{batch.queue.partition}]: {reason}")


def _put_in_place(batch: ProducerBatch, parts: Sequence[int], error: KafkaError) -> list[ProducerBatch]:
    """Divide a settled batch. The parts are not queued, but there is a place for each."""
    made = batch.open.split(parts)
    batch.state = _DIVIDE[batch.state]
    queue, sequence = batch.queue, batch.sequence
    for follower in queue.followers(batch):
        follower.position += len(made) - 1
    queue.next_position += len(made) - 1
    batches = []
    for place, part in enumerate(made):
        successor = ProducerBatch(queue, batch.position + place, part, batch.deadline)
        successor.attempts = 1  # as a retry it waits until nothing of its partition is in flight
        successor.last_error = error
        successor.maybe_stored, successor.void = batch.maybe_stored, batch.void
        successor.sequence = sequence
        if sequence >= 0:
            sequence = increment_sequence(sequence, part.count)
        batches.append(successor)
    return batches
