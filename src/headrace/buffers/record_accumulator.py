"""`RecordAccumulator`: the open batches of one topic, where `produce()` puts records. The plain twin of the native one.

It must not know brokers, retries or sequences: the code that takes batches out keeps their order per partition.
Read next on the way out: `headrace.machines.producer.batch_queue`.
"""

from __future__ import annotations

import math
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import Any

from headrace.buffers.buffer_pool import CALLBACK_BYTES, OVERHEAD_BYTES, BufferPool, cost_of, queue_full
from headrace.buffers.closed_batch import ClosedBatch
from headrace.buffers.delivery_future import DeliveryFuture
from headrace.buffers.lanes.direct_lane import DirectPartition
from headrace.buffers.refusals import milliseconds, no_partition, sums_of, too_large
from headrace.records.builder import BatchBuilder
from headrace.records.hashing import PARTITIONERS
from headrace.records.message import encode_headers, encode_text

__all__ = ["WAKE", "RecordAccumulator"]

WAKE = 1
"""Flag of `RecordAccumulator.append`: a batch is full, or one was opened while `next_deadline` knew of none."""

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
        partitioner: a name in `headrace.records.hashing.PARTITIONERS`.
        batch_bytes: size of a batch before compression.
        batch_count: most records of a batch.
        message_bytes: largest record: key, value, headers.
        turn_ms: longest turn, in milliseconds; 0 chooses at random for each record.
        linger_s: seconds that a batch which is opened waits for more records, also where the thread that appends might
            send it.
        seed: of the random choices; None takes the system's randomness.
        on_no_partition: called where a record is refused because there is no such partition: it may be a new one.

    Attributes:
        sticky: the partition whose turn it is; -1 if no record was left to chance yet, or the turn was ended.
    """

    def __init__(
        self,
        topic: str,
        partition_count: int,
        buffer_pool: BufferPool,
        *,
        partitioner: str = "consistent_random",
        batch_bytes: int = 1_000_000,
        batch_count: int = 10_000,
        message_bytes: int = 1_000_000,
        turn_ms: int = 900_000,
        linger_s: float = 0.0,
        seed: int | None = None,
        on_no_partition: Callable[[], object] = bool,
    ) -> None:
        self.topic = topic
        self.partition_count = partition_count
        self._on_no_partition = on_no_partition
        self._pool = buffer_pool
        self._hash, self._by_lot = PARTITIONERS[partitioner]
        self._batch_bytes = batch_bytes
        self._batch_count = batch_count
        self._message_bytes = message_bytes
        self._random = (int.from_bytes(os.urandom(8), "little") if seed is None else seed) or 1
        self._turn_ms = turn_ms
        self._linger_s = linger_s
        self._flushed_at = self._flushed_before = -math.inf  # monotonic seconds: when `send_open` sent a batch
        self._turn_began_ms = self._turn_bytes = self._turn_count = 0
        self._sums: list[int] | None = None
        self.sticky = -1
        self._open: dict[int, ClosedBatch] = {}
        self._full: list[ClosedBatch] = []
        self._timed = False  # the next `ready` comes without a wake-up before a batch that is opened now has lingered
        self._lock = threading.Lock()
        self._direct: dict[int, DirectPartition] = {}  # the ways of partitions whose lone batches are sent at once
        self._opened = -1  # the partition whose batch was opened last

    @property
    def has_full(self) -> bool:
        """A full batch waits to be taken out."""
        return bool(self._full)

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
        if woken and self._direct and not self._linger_s and self._send_directly(self._opened):
            return 0
        return woken

    def send_open(self) -> bool:
        """Send the open batches from this thread, without waiting for more records; False if the loop has to."""
        if self._full:
            return False
        for partition in list(self._open):
            if not self._send_directly(partition):
                return False
            self._flushed_before, self._flushed_at = self._flushed_at, time.monotonic()
        return True

    def lend(self, partition: int, way: DirectPartition | None = None) -> None:
        """Let threads that append send a partition's batch by themselves when it is alone; None ends that.

        What is in flight then is the lane's.
        """
        if way is not None:
            self._direct[partition] = way
        else:
            self._direct.pop(partition, None)

    def _send_directly(self, partition: int) -> bool:
        """Send the open batch of a partition from this thread, if that may; False if the loop has to."""
        with self._lock:
            way, batch = self._direct.get(partition), self._open.get(partition)
            if way is None or batch is None or self._full or not way.lane.send(way, batch):
                return False
            del self._open[partition]
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
            if counted_bytes >= 0:
                self._pool.recount(counted_bytes, cost)
            elif not self._pool.take(1, cost):
                raise queue_full(self._pool)
            now_ms = time.time_ns() // 1_000_000
            at_random, woken = partition < 0 and self._is_at_random(raw_key), 0
            if at_random:
                woken = self._turn(size - OVERHEAD_BYTES, now_ms)
            if partition < 0:
                partition = self.sticky if at_random else self._place(raw_key)
            batch, opened = self._put(partition, timestamp_ms or now_ms, raw_key, raw_value, raw_headers, at_random)
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
                self._close(batch)
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
                self._close(batch)
            builder = BatchBuilder(self._batch_bytes, self._batch_count)
            batch = self._open[partition] = ClosedBatch(self.topic, partition, time.monotonic(), builder)
            batch.append(timestamp_ms, key, value, headers)
            used, woken, self._opened = 0, 0 if self._timed else WAKE, partition
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
            self._close(batch)
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

    def _close(self, batch: ClosedBatch) -> None:
        del self._open[batch.partition]
        self._full.append(batch)

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

    def ready(self, opened_before: float | None = None, held: Collection[int] = ()) -> list[ClosedBatch]:
        """Take out the batches that are due, in order per partition.

        What is sent directly would overtake them: that ends for their partitions (`lend`).

        Args:
            opened_before: monotonic seconds; open batches whose first record came at or before it are taken as well,
                all with `math.inf`, none with None.
            held: partitions whose open batch stays, because earlier ones cannot be sent yet and it may still grow.
        """
        with self._lock:
            if opened_before is not None:
                for batch in [b for b in self._open.values() if b.opened_at <= opened_before]:
                    if batch.partition not in held:
                        self._close(batch)
            full, self._full = self._full, []
            for batch in full:
                self._direct.pop(batch.partition, None)
        return full

    def next_deadline(self, linger_s: float, held: Collection[int] = ()) -> float | None:
        """When the oldest open batch has lingered, in monotonic seconds; -inf if a full one waits, None if none.

        Args:
            linger_s: seconds that a batch stays open.
            held: partitions that do not count, as in `ready`.

        The caller comes back by itself at that time, and is not woken for batches that are opened meanwhile. Where they
        are sent by `send_open` one after the other, that is a time in which none can have lingered: who flushes behind
        each record would wake the caller for nothing each time.
        """
        with self._lock:
            oldest = min((b.opened_at for b in self._open.values() if b.partition not in held), default=None)
            self._timed = bool(self._full) or oldest is not None
            if self._full:
                return -math.inf
            if oldest is not None:
                return oldest + linger_s
            now = time.monotonic()
            self._timed = now - self._flushed_before < self._linger_s
            return now + self._linger_s if self._timed else None

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
