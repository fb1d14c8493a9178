"""What a partition remembers of each idempotent producer: its epoch and its last five batches (KIP-98).

With it a batch that comes again, because its reply was lost, is answered and not stored twice, and a batch that comes
too early is refused, so that the records of one producer stay in order. Five is the number of requests that a producer
may have in flight. The state needs no file of its own: every batch header in the log carries it.

Source: `org.apache.kafka.storage.internals.log.ProducerAppendInfo`, `ProducerStateEntry`.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from headrace.errors import KafkaError
from headrace.records import BatchInfo

__all__ = ["ProducerStates", "Remembered"]

_REMEMBERED_BATCHES = 5
_SEQUENCES = 1 << 31


class Remembered(NamedTuple):
    """One batch of a producer that is in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


class _Producer:
    __slots__ = ("batches", "epoch", "id")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.id = producer_id
        self.epoch = epoch
        self.batches: deque[Remembered] = deque(maxlen=_REMEMBERED_BATCHES)

    @property
    def last(self) -> Remembered:
        return self.batches[-1]


class ProducerStates:
    """The idempotent producers of one partition."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def known(self) -> list[_Producer]:
        """Every producer that has written here."""
        return list(self._producers.values())

    def duplicate(self, info: BatchInfo) -> Remembered | None:
        """The batch that `info` repeats, if it is one of the producer's last five."""
        producer = self._producers.get(info.producer_id)
        if producer is None or producer.epoch != info.epoch:
            return None
        last = last_sequence(info)
        for batch in producer.batches:
            if batch.first_sequence == info.base_sequence and batch.last_sequence == last:
                return batch
        return None

    def check(self, info: BatchInfo) -> int:
        """Whether a new batch may follow what is known of its producer.

        Returns:
            0, INVALID_PRODUCER_EPOCH for a producer that was replaced by one of a higher epoch, or
            OUT_OF_ORDER_SEQUENCE_NUMBER when batches before it are missing.
        """
        producer = self._producers.get(info.producer_id)
        if producer is None:
            return 0  # never seen, or forgotten: any sequence may start (KIP-360)
        if info.epoch < producer.epoch:
            return KafkaError.INVALID_PRODUCER_EPOCH
        if info.epoch > producer.epoch:
            expected = 0
        else:
            expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCES if producer.batches else info.base_sequence
        return 0 if info.base_sequence == expected else KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER

    def record(self, info: BatchInfo, base_offset: int) -> None:
        """Remember a batch that was stored at `base_offset`."""
        producer = self._producers.get(info.producer_id)
        if producer is None or producer.epoch != info.epoch:
            producer = self._producers[info.producer_id] = _Producer(info.producer_id, info.epoch)
        producer.batches.append(Remembered(info.base_sequence, last_sequence(info), base_offset, info.max_timestamp))


def last_sequence(info: BatchInfo) -> int:
    """The sequence number of a batch's last record; numbers wrap after 2^31 - 1."""
    return (info.base_sequence + info.count - 1) % _SEQUENCES
