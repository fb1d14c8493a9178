"""`RecordAccumulator`: the open batches of one topic, where `produce()` puts records. The plain twin of the native one.

It must not know brokers, retries or sequence numbers: whoever takes batches out of it keeps their order per partition.
Read next on the way out: `headrace.machines.producer.batch_queue`.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from headrace.errors import BufferFullError, KafkaError, KafkaException
from headrace.records.builder import Batch, BatchBuilder
from headrace.records.delivery import DeliveryFuture, ProduceResult
from headrace.records.hashing import PARTITIONERS
from headrace.records.message import Message, encode_headers, encode_text

__all__ = [
    "CALLBACK_BYTES", "OVERHEAD_BYTES", "WAKE", "BufferPool", "ClosedBatch", "ProduceFastPath", "RecordAccumulator",
]

WAKE = 1
"""Flag of `RecordAccumulator.append`: a batch is full, or one was opened and `next_deadline` said that none was."""

AHEAD_BYTES = 16 << 20
"""What keeps brokers busy until more comes; memory that comes back from them is cheaper than new."""

OVERHEAD_BYTES = 16
"""What a record costs of a `BufferPool` beyond its key, value and headers."""
CALLBACK_BYTES = 512
"""What its callback costs: a function that knows its record takes about 370 bytes, our note of it up to 25."""

_NUMBERS_BYTES = 12  # of the numbers of a record: about as many as there are at most
_MOST_WEIGHT = 1 << 31
_INT32 = 1 << 31
_MASK = (1 << 64) - 1
_ANY_SIZE = sys.maxsize


class BufferPool:
    """How many records, and bytes of them, may wait in a producer at one time.

    Args:
        max_messages: most records; 0 for no limit.
        max_bytes: most bytes of keys, values, headers, `OVERHEAD_BYTES` a record and `CALLBACK_BYTES` a callback.

    Attributes:
        messages: records that wait now.
        bytes: what they cost.
        ahead_bytes: what those of them cost, without callbacks, that no broker has answered for yet.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.max_messages = max_messages or 1 << 62
        self.max_bytes = max_bytes
        self.messages = 0
        self.bytes = self.ahead_bytes = 0
        self._lock = threading.Lock()

    @property
    def is_far_ahead(self) -> bool:
        """So much waits for brokers that more would make nothing faster; who has more in hand may wait as well."""
        return self.ahead_bytes > AHEAD_BYTES

    @property
    def is_roomy(self) -> bool:
        """A sixteenth is free: enough to be worth waking whoever has many records in hand."""
        return self.messages <= self.max_messages - self.max_messages // 16 and (
            self.bytes <= self.max_bytes - self.max_bytes // 16)

    def take(self, messages: int, size_bytes: int) -> bool:
        """Count records in; False, and nothing is counted, if they do not fit. One record alone always fits."""
        with self._lock:
            if self.messages and (
                self.messages + messages > self.max_messages or self.bytes + size_bytes > self.max_bytes
            ):
                return False
            self.messages += messages
            self.bytes += size_bytes
            return True

    def release(self, messages: int, size_bytes: int) -> None:
        """Count records out."""
        with self._lock:
            self.messages -= messages
            self.bytes -= size_bytes

    def answer(self, data_bytes: int) -> None:
        """Brokers are done with a batch; its reports may still wait."""
        with self._lock:
            self.ahead_bytes -= data_bytes


class ClosedBatch:
    """A batch that was taken out of a `RecordAccumulator`: it takes no more records and is not sealed yet.

    Attributes:
        topic: topic name.
        partition: partition number.
        opened_at: monotonic seconds of the first record.
        cost_bytes: what its records cost of the `BufferPool`.
        data_bytes: the same without their callbacks.
        reports: the callback of each record, None where it has none; None if no record has one.
        has_deliveries: some records have a `DeliveryFuture`.
        runs: where records of other calls of `append_columns` begin: (index, teller of that call), with None where
            records without a teller begin again; None if no record has one.
    """

    __slots__ = (
        "_appended_at", "_builder", "_deliveries", "_fate", "_moved", "_records", "_teller", "_watching",
        "cost_bytes", "data_bytes", "has_deliveries", "opened_at", "partition", "reports", "runs", "topic",
    )

    def __init__(self, topic: str, partition: int, opened_at: float, builder: BatchBuilder) -> None:
        self.topic = topic
        self.partition = partition
        self.opened_at = opened_at
        self.cost_bytes = self.data_bytes = 0
        self.reports: list[Any] | None = None
        self.runs: list[tuple[int, Any]] | None = None
        self._teller: Any = None
        self._appended_at: list[float] = []
        self._builder = builder
        self._fate: ProduceResult | None = None
        self.has_deliveries = False
        self._deliveries = 0  # of which the cost is counted here
        self._watching: list[DeliveryFuture] = []  # those that somebody looks at
        self._moved: list[tuple[ClosedBatch, int]] | None = None  # where each record is since the batch was divided
        self._records: list[Message] = []  # once one was asked for

    @property
    def count(self) -> int:
        """Records in the batch."""
        return self._builder.count

    @property
    def size_bytes(self) -> int:
        """Size of the batch before compression."""
        return self._builder.size_bytes

    def seal(self, codec: int = 0, level: int = -1) -> Batch:
        """Make the batch's bytes; once only."""
        return self._builder.seal(codec, level)

    def messages(
        self, base_offset: int, timestamp_type: int, timestamp_ms: int, error: KafkaError | None, now_s: float
    ) -> Iterator[tuple[Callable[..., Any], Message]]:
        """The delivery reports of the records that have a callback, in order; text comes back as bytes.

        `operator.length_hint` of the iterator says how many are left.

        Args:
            base_offset: offset of the batch's first record, negative when it is not known.
            timestamp_type: 2 when the broker set the timestamps to `timestamp_ms`; otherwise the records' own stand.
            timestamp_ms: the broker's timestamp.
            error: why the batch was not delivered, or None.
            now_s: monotonic seconds, for the latency.
        """
        if self.reports is None:
            return iter(())
        made = []
        records = self._builder.read_back(self.topic, self.partition)
        for index, (callback, since, m) in enumerate(zip(self.reports, self._appended_at, records, strict=False)):
            if callback is None:
                continue
            stamp = (2, timestamp_ms) if timestamp_type == 2 else m.timestamp()
            offset = base_offset + index if base_offset >= 0 else None
            made.append((callback, Message(self.topic, self.partition, offset, m.key(), m.value(), m.headers(), error,
                                           stamp, max(now_s - since, 0.0))))
        return iter(made)

    def settle(self, fate: ProduceResult) -> None:
        """Say what became of the batch to those who look at a `DeliveryFuture` of it, now or later."""
        self._fate = fate
        watching, self._watching = self._watching, []
        for delivery in watching:
            delivery.resolve()

    @property
    def settled(self) -> bool:
        """Whether it is known what became of the batch."""
        return self._fate is not None

    def place_of(self, index: int) -> tuple[ClosedBatch, int] | None:
        """Where the record at `index` is since the batch was divided; None while it was not."""
        return self._moved[index] if self._moved is not None else None

    def watch(self, delivery: DeliveryFuture) -> None:
        """Tell a delivery when the batch is settled."""
        self._watching.append(delivery)

    def message_at(self, index: int, appended_at: float) -> Message:
        """The delivered record at `index`, which was appended at that time.

        Raises:
            KafkaException: it was not delivered.
        """
        fate = self._fate
        assert fate is not None
        if fate.error is not None:
            fate.heard = True
            raise KafkaException(fate.error)
        if not self._records:
            self._records = list(self._builder.read_back(self.topic, self.partition))
        m = self._records[index]
        stamp = (2, fate.timestamp_ms) if fate.timestamp_type == 2 else m.timestamp()
        offset = fate.base_offset + index if fate.base_offset >= 0 else None
        return Message(self.topic, self.partition, offset, m.key(), m.value(), m.headers(), None, stamp,
                       max(fate.at_s - appended_at, 0.0))

    def split(self, parts: Sequence[int]) -> list[ClosedBatch]:
        """The records in new batches, with their callbacks, tellers, times and costs; in each they keep their order.

        Args:
            parts: for each record the number of its new batch: 0, 1, ...

        Raises:
            ValueError: there is not one number for each record, or a new batch would be empty.
        """
        made = [ClosedBatch(self.topic, self.partition, self.opened_at, BatchBuilder(_ANY_SIZE, _ANY_SIZE))
                for _ in range(count_parts(parts, self.count))]
        records = self._builder.read_back(self.topic, self.partition)
        runs, teller = dict(self.runs or ()), None
        moved: list[tuple[ClosedBatch, int]] = []
        for index, (part, m) in enumerate(zip(parts, records, strict=True)):
            batch, headers = made[part], encode_headers(m.headers())
            batch._builder.append(m.timestamp()[1], m.key(), m.value(), headers)
            size = cost_of(m.key(), m.value(), headers)
            batch.data_bytes += size
            batch.cost_bytes += size
            if self.reports is not None and index < len(self.reports) and self.reports[index] is not None:
                batch._report_to(self.reports[index], self._appended_at[index])
                batch.cost_bytes += CALLBACK_BYTES
            teller = runs.get(index, teller)
            if teller is not batch._teller:
                batch._begin_run(teller)
            batch.has_deliveries = self.has_deliveries
            moved.append((batch, batch.count - 1))
        if self.has_deliveries:
            self._moved = moved
            made[0]._deliveries = self._deliveries  # which records have one is not known: only the sum has to be right
            made[0].cost_bytes += CALLBACK_BYTES * self._deliveries
            watching, self._watching = self._watching, []
            for delivery in watching:
                delivery.is_settled()  # finds its new place
                delivery.wait()
        return made

    def _report_to(self, callback: Any, appended_at: float) -> None:
        """Keep the callback of the last record."""
        if self.reports is None:
            self.reports = []
        without = self.count - 1 - len(self.reports)
        self.reports += [None] * without + [callback]
        self._appended_at += [0.0] * without + [appended_at]

    def _deliver_to(self, delivery: DeliveryFuture, appended_at: float) -> None:
        """The delivery is about the last record. It knows the batch, so that the batch need not know it."""
        delivery.place(self, self.count - 1, appended_at)
        self.has_deliveries = True
        self._deliveries += 1

    def _begin_run(self, teller: Any) -> None:
        """The last record is the first of other rows than the one before."""
        if self.runs is None:
            self.runs = []
        self.runs.append((self.count - 1, teller))
        self._teller = teller


class RecordAccumulator:
    """The open batches of one topic.

    Records of one partition leave in the order of `append()`. Those that the partitioner leaves to chance take turns:
    all go to one partition, chosen by lot, until it has got as much as fills a batch, or time is up (KIP-794).

    Args:
        topic: topic name.
        partition_count: number of partitions.
        budget: shared by all topics of a producer.
        partitioner: a name in `headrace.records.hashing.PARTITIONERS`.
        batch_bytes: size of a batch before compression.
        batch_count: most records of a batch.
        message_bytes: largest record: key, value, headers.
        turn_ms: longest turn, in milliseconds; 0 draws a lot for each record.
        seed: for the choice by lot; None takes the system's randomness.

    Attributes:
        sticky: the partition whose turn it is; -1 if no record was left to chance yet, or the turn was ended.
    """

    def __init__(
        self,
        topic: str,
        partition_count: int,
        budget: BufferPool,
        *,
        partitioner: str = "consistent_random",
        batch_bytes: int = 1_000_000,
        batch_count: int = 10_000,
        message_bytes: int = 1_000_000,
        turn_ms: int = 900_000,
        seed: int | None = None,
    ) -> None:
        self.topic = topic
        self.partition_count = partition_count
        self._budget = budget
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
        self._full: list[ClosedBatch] = []
        self._timed = False  # whoever takes batches out comes by itself before one that is opened now has lingered
        self._lock = threading.Lock()

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
    ) -> int:
        """Put a record behind the others of its partition.

        Args:
            value: bytes, str or None.
            key: bytes, str or None.
            partition: -1 lets the partitioner choose.
            timestamp_ms: milliseconds since the epoch, 0 for now.
            headers: a mapping or pairs.
            callback: kept for the delivery report.

        Returns:
            `WAKE` or 0.

        Raises:
            BufferFullError: the budget is used up.
            KafkaException: the record is too large (`MSG_SIZE_TOO_LARGE`), or there is no such partition
                (`_UNKNOWN_PARTITION`).
            OverflowError: the partition's number is out of any range.
            TypeError: key, value or headers are of a wrong type.
            ValueError: the timestamp is negative.
        """
        return self.add_row(value, key, partition, timestamp_ms, headers, callback, None)

    def add_row(
        self, value: Any, key: Any, partition: int, timestamp_ms: int, headers: Any, callback: Any, teller: Any
    ) -> int:
        """`append`, for a row of columns as well."""
        raw_key, raw_value = encode_text(key, "key"), encode_text(value, "value")
        raw_headers = encode_headers(headers)
        size = cost_of(raw_key, raw_value, raw_headers)
        cost = size if callback is None else size + CALLBACK_BYTES
        self._check(size, partition, timestamp_ms)
        with self._lock:
            if not self._budget.take(1, cost):
                raise queue_full(self._budget)
            now_ms = time.time_ns() // 1_000_000
            by_lot, woken = partition < 0 and self._is_by_lot(raw_key), 0
            if by_lot:
                woken = self._turn(size - OVERHEAD_BYTES, now_ms)
            if partition < 0:
                partition = self.sticky if by_lot else self._place(raw_key)
            batch, opened = self._put(partition, timestamp_ms or now_ms, raw_key, raw_value, raw_headers, by_lot)
            woken |= opened
            batch.cost_bytes += cost
            batch.data_bytes += size
            self._budget.ahead_bytes += size
            if isinstance(callback, DeliveryFuture):
                batch._deliver_to(callback, time.monotonic())
            elif callback is not None:
                batch._report_to(callback, time.monotonic())
            if teller is not batch._teller:
                batch._begin_run(teller)
            if batch.count >= self._batch_count:
                self._close(batch)
                woken = WAKE
        return woken

    def _check(self, cost: int, partition: int, timestamp_ms: int) -> None:
        if cost - OVERHEAD_BYTES > self._message_bytes:
            raise too_large(self.topic, cost - OVERHEAD_BYTES, self._message_bytes)
        if not -1 <= partition < self.partition_count or self.partition_count <= 0:
            raise no_partition(self.topic, partition, self.partition_count)
        if timestamp_ms < 0:
            raise ValueError(f"timestamp must not be negative: {timestamp_ms}")

    def _put(self, partition: int, timestamp_ms: int, key: bytes | None, value: bytes | None,
             headers: list[tuple[bytes, bytes | None]], by_lot: bool) -> tuple[ClosedBatch, int]:
        batch, woken = self._open.get(partition), 0
        used = batch.size_bytes if batch is not None else 0
        if batch is None or not batch._builder.append(timestamp_ms, key, value, headers):
            if batch is not None:
                self._close(batch)
            builder = BatchBuilder(self._batch_bytes, self._batch_count)
            batch = self._open[partition] = ClosedBatch(self.topic, partition, time.monotonic(), builder)
            builder.append(timestamp_ms, key, value, headers)
            used, woken = 0, 0 if self._timed else WAKE
        if by_lot:
            self._turn_bytes += batch.size_bytes - used
            self._turn_count += 1
        return batch, woken

    def _is_by_lot(self, key: bytes | None) -> bool:
        """Whether a record has no say in where it goes, but takes part in a turn."""
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
        """A partition by lot (xorshift64*)."""
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
        """Say how likely each partition shall be drawn; the turn of one that is not to be drawn at all ends at once.

        Args:
            weights: of the partitions from 0 on; those that are left out weigh nothing. None: all weigh the same.

        Raises:
            ValueError: there are more weights than partitions, one is negative, or their sum is not in 1 to 2**31.
        """
        with self._lock:
            self._sums = None if weights is None else sums_of(weights, self.partition_count)
            if weights is not None and self.sticky >= 0 and not any(weights[self.sticky:self.sticky + 1]):
                self.sticky = -1

    def ready(self, opened_before: float | None = None, held: Collection[int] = ()) -> list[ClosedBatch]:
        """Take out the batches that are due, in order per partition.

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
        return full

    def next_deadline(self, linger_s: float, held: Collection[int] = ()) -> float | None:
        """When the oldest open batch has lingered, in monotonic seconds; -inf if a full one waits, None if none.

        Args:
            linger_s: seconds that a batch stays open.
            held: partitions that do not count, as in `ready`.

        Whoever asks comes back by itself at that time, and is not woken for batches that are opened meanwhile.
        """
        with self._lock:
            oldest = min((b.opened_at for b in self._open.values() if b.partition not in held), default=None)
            self._timed = bool(self._full) or oldest is not None
            if self._full:
                return -math.inf
            return None if oldest is None else oldest + linger_s

    def grow(self, partition_count: int) -> None:
        """Partitions were added to the topic."""
        with self._lock:
            self.partition_count = max(self.partition_count, partition_count)


class ProduceFastPath:
    """`Producer.produce` with what it needs at hand; anything unusual is left to `otherwise`.

    Args:
        open: buffers by topic.
        otherwise: called as otherwise(topic, value, key, partition, timestamp_ms, headers, callback) for a topic that
            is not in `open`, and when the budget is used up.
        wake: called when the loop has something to do.
        default: callback of records that are given none.
    """

    __slots__ = ("_default", "_open", "_otherwise", "_wake")

    def __init__(
        self, open: dict[str, RecordAccumulator], otherwise: Callable[..., object], wake: Callable[[], object],
        default: Callable[..., object] | None = None,
    ) -> None:
        self._open = open
        self._otherwise = otherwise
        self._wake = wake
        self._default = default

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: Callable[..., object] | None = None,
        on_delivery: Callable[..., object] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Put a record on its way; see `headrace.Producer.produce`."""
        report_to = callback or on_delivery or self._default
        buffer = self._open.get(topic)
        try:
            if buffer is not None:
                if buffer.append(value, key, partition, timestamp, headers, report_to):
                    self._wake()
                return
        except BufferFullError:
            pass
        self._otherwise(topic, value, key, partition, timestamp, headers, report_to)


def cost_of(key: bytes | None, value: bytes | None, headers: list[tuple[bytes, bytes | None]]) -> int:
    """What a record costs of the budget, in bytes."""
    return OVERHEAD_BYTES + len(key or b"") + len(value or b"") + sum(
        len(name) + len(content or b"") for name, content in headers)


def sums_of(weights: Sequence[int], partition_count: int) -> list[int]:
    """The sum of the weights up to each partition.

    Raises:
        ValueError: see `RecordAccumulator.weigh`.
    """
    sums = list(itertools.accumulate(weights))
    if len(sums) > partition_count or min(weights, default=-1) < 0 or not 0 < sums[-1] <= _MOST_WEIGHT:
        raise ValueError(f"weights of {len(sums)} partitions of {partition_count} must not be negative, and their sum "
                         f"be 1 to {_MOST_WEIGHT}")
    return sums


def count_parts(parts: Sequence[int], count: int) -> int:
    """How many batches `ClosedBatch.split` is to make.

    Raises:
        ValueError: see there.
    """
    numbers = set(parts)
    if len(parts) != count or numbers != set(range(len(numbers))):
        raise ValueError(f"{len(parts)} numbers of parts for {count} records; each part from 0 on needs a record")
    return len(numbers)


def queue_full(budget: BufferPool) -> BufferFullError:
    """The error of a used-up budget."""
    return BufferFullError(
        f"Local: Queue full: {budget.messages} messages ({budget.bytes} bytes) wait for delivery; call poll() and try "
        "again, or raise queue.buffering.max.messages or queue.buffering.max.kbytes")


def too_large(topic: str, size: int, limit: int) -> KafkaException:
    """The error of a record that no broker would take."""
    return KafkaException(KafkaError(
        KafkaError.MSG_SIZE_TOO_LARGE,
        f"a record of {size} bytes for {topic} is larger than message.max.bytes ({limit})"))


def no_partition(topic: str, partition: int, count: int | None) -> Exception:
    """The error of a partition that the topic does not have; `count` is how many it has, None if nobody knows yet."""
    if not -_INT32 <= partition < _INT32:
        return OverflowError(f"partition {partition} of {topic} is out of range: no topic has so many")
    known = "" if count is None else f": it has {count}"
    remedy = "; give -1 to let the partitioner choose" if partition < -1 else ""
    return KafkaException(KafkaError(
        KafkaError._UNKNOWN_PARTITION, f"{topic} has no partition {partition}{known}{remedy}"))
