"""`RecordAccumulator`: the open batches of one topic, where `produce()` puts records. The plain twin of the native one.

It must not know brokers, retries or sequences. Read next on the way out: `headrace.buffers.open_batches`, from which
the batches of all topics are taken.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from headrace.buffers.buffer_pool import CALLBACK_BYTES, OVERHEAD_BYTES, BufferPool, cost_of, queue_full
from headrace.buffers.closed_batch import ClosedBatch
from headrace.buffers.delivery_future import DeliveryFuture
from headrace.buffers.lanes.direct_lane import DirectPartition
from headrace.buffers.open_batches import OpenBatches
from headrace.buffers.refusals import milliseconds, no_partition, sums_of, too_large
from headrace.records.builder import BatchBuilder
from headrace.records.hashing import PARTITIONERS
from headrace.records.message import encode_headers, encode_text

__all__ = ["WAKE", "RecordAccumulator"]

WAKE = 1
"""Flag of `RecordAccumulator.append`: a batch is full, or was opened while `OpenBatches.next_deadline` knew of none."""

_NUMBERS_BYTES = 12  # of the varints of a record: about as many as there are at most
_MASK = (1 << 64) - 1


class RecordAccumulator:
    """The open batches of one topic.

    Records of one partition leave in the order of `append()`. Those that the partitioner leaves to chance take turns:
    all go to one partition, chosen at random, until it has got as much as fills a batch, or time is up (KIP-794).

    Args:
        topic: topic name.
        partition_count: number of partitions.
        buffer_pool: shared by all topics of a producer.
        open_batches: the same; None for a topic that is alone.
        partitioner: a name in `headrace.records.hashing.PARTITIONERS`.
        batch_bytes: size of a batch before compression.
        batch_count: most records of a batch.
        message_bytes: largest record: key, value, headers.
        turn_ms: longest turn, in milliseconds; 0 chooses at random for each record.
        seed: of the random choices; None takes the system's randomness.
        on_no_partition: called where a record is refused because there is no such partition: it may be a new one.

    Attributes:
        open_batches: where its batches are taken out.
        sticky: the partition whose turn it is; -1 if no record was left to chance yet, or the turn was ended.
        direct: the ways of partitions whose lone batches are sent at once.
    """

    def __init__(
        self,
        topic: str,
        partition_count: int,
        buffer_pool: BufferPool,
        open_batches: OpenBatches | None = None,
        *,
        partitioner: str = "consistent_random",
        batch_bytes: int = 1_000_000,
        batch_count: int = 10_000,
        message_bytes: int = 1_000_000,
        turn_ms: int = 900_000,
        seed: int | None = None,
        on_no_partition: Callable[[], object] = bool,
    ) -> None:
        self.topic = topic
        self.partition_count = partition_count
        self._on_no_partition = on_no_partition
        self._pool = buffer_pool
        self.open_batches = OpenBatches() if open_batches is None else open_batches
        self._lock = self.open_batches.lock
        self._hash, self._by_lot = PARTITIONERS[partitioner]
        self._batch_bytes = batch_bytes
        self._batch_count = batch_count
        self._message_bytes = message_bytes
        self._random = (int.from_bytes(os.urandom(8), "little") if seed is None else seed) or 1
        self._turn_ms = turn_ms
        self._turn_began_ms = self._turn_bytes = self._turn_count = 0
        self._sums: list[int] | None = None
        self.sticky = -1
        self._open: dict[int, ClosedBatch] = {}
        self.direct: dict[int, DirectPartition] = {}
        self._opened = -1  # the partition whose batch was opened last

    def append(
        self,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        timestamp_ms: int = 0,
        headers: Any = None,
        callback: Any = None,
        counted_bytes: int = -1,
    ) -> int:
        """Put a record behind the others of its partition.

        Args:
            value: bytes, str or None.
            key: bytes, str or None.
            partition: -1 lets the partitioner choose.
            timestamp_ms: milliseconds since the epoch, 0 for now.
            headers: a mapping or pairs.
            callback: kept for the delivery report.
            counted_bytes: what the pool counts for this record already, in place of which it counts what the record
                costs here: there is always room for it. -1: it is a new record.

        Returns:
            `WAKE` or 0, which it also is when the record is on its way to the broker already.

        Raises:
            BufferFullError: the pool is used up.
            KafkaException: the record is too large (`MSG_SIZE_TOO_LARGE`), or there is no such partition
                (`_UNKNOWN_PARTITION`).
            OverflowError: the partition is out of any range.
            TypeError: key, value or headers are of a wrong type.
            ValueError: the timestamp is negative.
        """
        return self.add(value, key, partition, milliseconds(timestamp_ms), headers, callback, counted_bytes)

    def add(
        self, value: Any, key: Any, partition: int, timestamp_ms: int, headers: Any, callback: Any,
        counted_bytes: int = -1,
    ) -> int:
        """`append`, with a timestamp that is an integer for sure."""
        woken = self.add_row(value, key, partition, timestamp_ms, headers, callback, None, counted_bytes)
        batches = self.open_batches
        if woken and self.direct and not batches.linger_s and not batches.codec and self._send_plain(self._opened):
            return 0
        return woken

    def lend(self, partition: int, way: DirectPartition | None = None) -> None:
        """Let threads that append send a partition's batch by themselves when it is alone; None ends that.

        What is in flight then is the lane's.
        """
        if way is not None:
            self.direct[partition] = way
        else:
            self.direct.pop(partition, None)

    def send(self, partition: int) -> bool:
        """Send the open batch of a partition from this thread, if that may; False if the loop has to."""
        return self._send_packed(partition) if self.open_batches.codec else self._send_plain(partition)

    def _send_plain(self, partition: int) -> bool:
        """The same where batches are not compressed, in one step."""
        with self._lock:
            way, batch = self.direct.get(partition), self._open.get(partition)
            if way is None or batch is None or self.open_batches.full or not way.lane.send(way, batch):
                return False
            del self._open[partition], self.open_batches.open[batch]
        return True

    def _send_packed(self, partition: int) -> bool:
        """The same where they are.

        Meanwhile the batch counts as full, so that nothing is sent which would overtake it, and the loop may take it,
        or end the way.
        """
        batches = self.open_batches
        with self._lock:
            way, batch = self.direct.get(partition), self._open.get(partition)
            if (way is None or batch is None or batches.full
                    or not way.lane.is_open(way, batch, time.monotonic())):
                return False
            self.close(batch)
        sealed = batch.seal(batches.codec, batches.level)
        with self._lock:
            if (batch not in batches.full or self.direct.get(partition) is not way
                    or not way.lane.send(way, batch, sealed)):
                return False
            del batches.full[batch]
        return True

    def add_row(
        self, value: Any, key: Any, partition: int, timestamp_ms: int, headers: Any, callback: Any, listener: Any,
        counted_bytes: int = -1,
    ) -> int:
        """`append`, for a row of columns as well."""
        raw_key, raw_value = encode_text(key, "key"), encode_text(value, "value")
        raw_headers = encode_headers(headers)
        size = cost_of(raw_key, raw_value, raw_headers)
        cost = size if callback is None else size + CALLBACK_BYTES
        self._check(size, partition, timestamp_ms)
        with self._lock:
            if counted_bytes < 0 and not self._pool.fits(1, cost):
                raise queue_full(self._pool)
            now_ms = time.time_ns() // 1_000_000
            at_random, woken = partition < 0 and self._is_at_random(raw_key), 0
            if at_random:
                woken = self._turn(size - OVERHEAD_BYTES, now_ms)
            if partition < 0:
                partition = self.sticky if at_random else self._place(raw_key)
            batch, opened = self._put(partition, timestamp_ms or now_ms, raw_key, raw_value, raw_headers, at_random)
            if counted_bytes >= 0:  # not before it is in a batch: what there was no memory for would wait for ever
                self._pool.recount(counted_bytes, cost)
            else:
                self._pool.count_in(1, cost)
            woken |= opened
            batch.cost_bytes += cost
            batch.data_bytes += size
            self._pool.ahead_bytes += size
            if isinstance(callback, DeliveryFuture):
                batch.deliver_to(callback, time.monotonic())
            elif callback is not None:
                batch.report_to(callback, time.monotonic())
            batch.join_run(listener)
            if batch.count >= self._batch_count:
                self.close(batch)
                woken = WAKE
        return woken

    def _check(self, cost: int, partition: int, timestamp_ms: int) -> None:
        if cost - OVERHEAD_BYTES > self._message_bytes:
            raise too_large(self.topic, cost - OVERHEAD_BYTES, self._message_bytes)
        if not -1 <= partition < self.partition_count or self.partition_count <= 0:
            self._on_no_partition()
            raise no_partition(self.topic, partition, self.partition_count)
        if timestamp_ms < 0:
            raise ValueError(f"timestamp must not be negative: {timestamp_ms}")

    def _put(self, partition: int, timestamp_ms: int, key: bytes | None, value: bytes | None,
             headers: list[tuple[bytes, bytes | None]], at_random: bool) -> tuple[ClosedBatch, int]:
        batch, woken = self._open.get(partition), 0
        used = batch.size_bytes if batch is not None else 0
        if batch is None or not batch.append(timestamp_ms, key, value, headers):
            if batch is not None:
                self.close(batch)
            builder = BatchBuilder(self._batch_bytes, self._batch_count)
            batch = ClosedBatch(self.topic, partition, time.monotonic(), builder)
            batch.append(timestamp_ms, key, value, headers)  # first: there is no batch without a record
            self.open_batches.open[batch] = self
            self._open[partition] = batch
            used, woken, self._opened = 0, 0 if self.open_batches.is_expected(batch.opened_at) else WAKE, partition
        if at_random:
            self._turn_bytes += batch.size_bytes - used
            self._turn_count += 1
        return batch, woken

    def _is_at_random(self, key: bytes | None) -> bool:
        """Whether neither the record nor its key decides where it goes, so that it takes part in a turn."""
        if key is None:
            return self._by_lot != "never"
        return self._by_lot == "any" or (not key and self._by_lot == "empty")

    def _turn(self, size: int, now_ms: int) -> int:
        """See to it that there is a turn with room for one more record. Returns `WAKE` if a batch is full thereby."""
        if (self.sticky >= 0 and self._turn_count < self._batch_count
                and self._turn_bytes + size + _NUMBERS_BYTES <= self._batch_bytes
                and 0 <= now_ms - self._turn_began_ms < self._turn_ms):
            return 0
        batch, woken = self._open.get(self.sticky), 0
        if batch is not None and batch.size_bytes + size + _NUMBERS_BYTES > self._batch_bytes:
            self.close(batch)
            woken = WAKE
        self.sticky = self._draw()
        self._turn_began_ms = now_ms
        self._turn_bytes = self._turn_count = 0
        return woken

    def _place(self, key: bytes | None) -> int:
        return self._draw() if self._hash is None else self._hash(key or b"") % self.partition_count

    def _draw(self) -> int:
        """A partition at random (xorshift64*)."""
        x = self._random
        x ^= x >> 12
        x ^= x << 25 & _MASK
        x ^= x >> 27
        self._random = x
        x = (x * 0x2545F4914F6CDD1D & _MASK) >> 32
        if self._sums is None:
            return x % self.partition_count
        return bisect_right(self._sums, x % self._sums[-1])

    def close(self, batch: ClosedBatch) -> None:
        """An open batch takes no more records. The caller holds the lock."""
        del self._open[batch.partition], self.open_batches.open[batch]
        self.open_batches.full[batch] = self

    def weigh(self, weights: Sequence[int] | None = None) -> None:
        """Set how likely each partition is to be drawn; the turn of one that is not to be drawn at all ends at once.

        Args:
            weights: of the partitions from 0 on; those that are left out weigh nothing. None: all weigh alike.

        Raises:
            ValueError: there are more weights than partitions, one is negative, or their sum is not in 1 to 2**31.
        """
        with self._lock:
            self._sums = None if weights is None else sums_of(weights, self.partition_count)
            if weights is not None and self.sticky >= 0 and not any(weights[self.sticky:self.sticky + 1]):
                self.sticky = -1

    def grow(self, partition_count: int) -> None:
        """Partitions were added to the topic."""
        with self._lock:
            self.partition_count = max(self.partition_count, partition_count)

    def shrink(self, partition_count: int) -> None:
        """The topic was made anew with fewer partitions. What is in batches of those that are gone stays there."""
        with self._lock:
            if 0 < partition_count < self.partition_count:
                self.partition_count = partition_count
                self._sums, self.sticky = None, -1  # they may be about partitions that are gone
