"""What a partition remembers of each producer: its epoch, its last five batches and its open transaction (KIP-98).

With it a batch that comes again, because its reply was lost, is answered and not stored twice, and a batch that comes
too early is refused, so that the records of one producer stay in order. Five is the number of requests that a producer
may have in flight. Where transactions are open, readers of committed records stop before the first of them, and where
they were aborted, readers learn which records to leave out.

The state needs no file of its own: every batch header in the log carries it.

Source: `org.apache.kafka.storage.internals.log.ProducerAppendInfo`, `ProducerStateEntry`, `TransactionIndex`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from headrace.errors import KafkaError
from headrace.records import BatchInfo

__all__ = ["AbortedSpan", "Marker", "ProducerStates", "Remembered"]

_REMEMBERED_BATCHES = 5
_SEQUENCES = 1 << 31
_OWN_EPOCHS_FROM = 2


class Remembered(NamedTuple):
    """One batch of a producer that is in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


class Marker(NamedTuple):
    """The end of a producer's transaction.

    Attributes:
        version: 2 when every transaction has an epoch of its own (KIP-890), so that an epoch that has ended cannot
            end again.
    """

    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int
    version: int = 0


class AbortedSpan(NamedTuple):
    """Records of a producer that readers of committed records leave out: from the first offset to its marker.

    Attributes:
        stable_offset: the last stable offset once the marker was written: what begins behind it is listed behind it.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    stable_offset: int


class _Producer:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "id", "open_since", "timestamp_ms")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.id = producer_id
        self.epoch = epoch
        self.batches: deque[Remembered] = deque(maxlen=_REMEMBERED_BATCHES)
        self.timestamp_ms = -1
        """Of the last batch or marker."""
        self.coordinator_epoch = -1
        """Of the coordinator that wrote the last marker."""
        self.open_since = -1
        """First offset of the open transaction."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    def begin_epoch(self, epoch: int) -> None:
        """Sequences begin anew with an epoch."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


_NOBODY = _Producer(-1, -1)


class ProducerStates:
    """The producers of one partition."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self._open: dict[int, int] = {}
        """First offset of each open transaction, by producer id, the oldest first."""
        self._aborted: list[AbortedSpan] = []

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

    def check(self, info: BatchInfo, *, own_epochs: bool = False) -> int:
        """Whether a new batch may follow what is known of its producer.

        Args:
            info: the batch's header.
            own_epochs: it is the first one of a transaction that has an epoch of its own, so it must begin with 0.

        Returns:
            0, INVALID_PRODUCER_EPOCH for a producer that was replaced by one of a higher epoch,
            OUT_OF_ORDER_SEQUENCE_NUMBER when batches before it are missing, or INVALID_TXN_STATE for a batch outside
            of the transaction that its producer has open.
        """
        producer = self._producers.get(info.producer_id)
        if producer is None:
            # Never seen, or forgotten: any sequence may start (KIP-360).
            return KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER if own_epochs and info.base_sequence else 0
        if info.epoch < producer.epoch:
            return KafkaError.INVALID_PRODUCER_EPOCH
        expected = 0 if info.epoch > producer.epoch else (producer.last_sequence + 1) % _SEQUENCES
        if info.base_sequence != expected:
            return KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
        return KafkaError.INVALID_TXN_STATE if producer.open_since >= 0 and not info.is_transactional else 0

    def check_marker(self, marker: Marker) -> int:
        """Whether a transaction may be ended.

        Returns:
            0, INVALID_PRODUCER_EPOCH for a marker that comes too late, or TRANSACTION_COORDINATOR_FENCED for one of a
            coordinator that was replaced.
        """
        producer = self._producers.get(marker.producer_id, _NOBODY)
        is_late = marker.epoch < producer.epoch
        if marker.version >= _OWN_EPOCHS_FROM and marker.epoch == producer.epoch:
            is_late = producer.open_since >= 0  # else the same marker again
        if is_late:
            return KafkaError.INVALID_PRODUCER_EPOCH
        return KafkaError.TRANSACTION_COORDINATOR_FENCED if marker.coordinator_epoch < producer.coordinator_epoch else 0

    def record(self, info: BatchInfo, base_offset: int) -> None:
        """Remember a batch that was stored at `base_offset`."""
        producer = self._producers.get(info.producer_id)
        if producer is None:
            producer = self._producers[info.producer_id] = _Producer(info.producer_id, info.epoch)
        producer.begin_epoch(info.epoch)
        producer.batches.append(Remembered(info.base_sequence, last_sequence(info), base_offset, info.max_timestamp))
        producer.timestamp_ms = info.max_timestamp
        if info.is_transactional and producer.open_since < 0:
            producer.open_since = self._open[info.producer_id] = base_offset

    def end(self, marker: Marker, offset: int, timestamp_ms: int) -> None:
        """Remember a marker that was stored at `offset`."""
        producer = self._producers.get(marker.producer_id)
        if producer is None:
            producer = self._producers[marker.producer_id] = _Producer(marker.producer_id, marker.epoch)
        producer.begin_epoch(marker.epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.timestamp_ms = timestamp_ms
        first_offset, producer.open_since = producer.open_since, -1
        if self._open.pop(marker.producer_id, None) is not None and not marker.commit:
            self._aborted.append(AbortedSpan(marker.producer_id, first_offset, offset,
                                                    self.first_unstable(offset + 1)))

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Whether a producer of this epoch has a transaction open here."""
        producer = self._producers.get(producer_id)
        return producer is not None and producer.open_since >= 0 and producer.epoch == epoch

    def has_ended(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of this epoch has been ended here, and none was begun since."""
        producer = self._producers.get(producer_id)
        return (producer is not None and producer.epoch == epoch and producer.open_since < 0
                and producer.coordinator_epoch >= 0)

    def first_unstable(self, end_offset: int) -> int:
        """First offset of the oldest open transaction; `end_offset` when none is open."""
        return next(iter(self._open.values()), end_offset)

    def aborted(self, offset: int, end_offset: int) -> Iterator[AbortedSpan]:
        """The aborted transactions with records from `offset` up to `end_offset`, in the order of their markers."""
        start = bisect_left(self._aborted, offset, key=lambda each: each.last_offset)
        for each in self._aborted[start:]:
            if each.first_offset < end_offset:
                yield each
            if each.stable_offset >= end_offset:
                return

    def forget_aborted(self, start_offset: int) -> None:
        """Forget aborted transactions whose records are all gone."""
        del self._aborted[:bisect_left(self._aborted, start_offset, key=lambda each: each.last_offset)]


def last_sequence(info: BatchInfo) -> int:
    """The sequence number of a batch's last record; numbers wrap after 2^31 - 1."""
    return (info.base_sequence + info.count - 1) % _SEQUENCES
