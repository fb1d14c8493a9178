"""`ClosedBatch`: a batch that left its `RecordAccumulator`, and the reports of its records. The plain twin.

It must not know brokers or retries. Read next: `headrace.buffers.record_accumulator`, which fills it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.buffers.buffer_pool import CALLBACK_BYTES, cost_of
from headrace.buffers.delivery_future import DeliveryFuture, ProduceResult
from headrace.buffers.refusals import count_parts
from headrace.errors import KafkaError, KafkaException
from headrace.records.builder import Batch, BatchBuilder
from headrace.records.message import Message, encode_headers

__all__ = ["ClosedBatch"]

_ANY_SIZE = sys.maxsize


class ClosedBatch:
    """A batch that was taken out of a `RecordAccumulator`: it takes no more records and is not sealed yet.

    Attributes:
        topic: topic name.
        partition: partition number.
        opened_at: monotonic seconds of the first record.
        cost_bytes: what its records cost of the `BufferPool`.
        data_bytes: what they cost without their callbacks.
        reports: the callback of each record, None where it has none; None if no record has one.
        has_deliveries: some records have a `DeliveryFuture`.
        runs: where records of other calls of `append_columns` begin: (index, listener of that call), with None where
            records without a listener begin again; None if no record has one.
    """

    __slots__ = (
        "_appended_at", "_builder", "_deliveries", "_listener", "_moved", "_records", "_result", "_watching",
        "cost_bytes", "data_bytes", "has_deliveries", "opened_at", "partition", "reports", "runs", "topic",
    )

    def __init__(self, topic: str, partition: int, opened_at: float, builder: BatchBuilder) -> None:
        self.topic = topic
        self.partition = partition
        self.opened_at = opened_at
        self.cost_bytes = self.data_bytes = 0
        self.reports: list[Any] | None = None
        self.runs: list[tuple[int, Any]] | None = None
        self._listener: Any = None
        self._appended_at: list[float] = []
        self._builder = builder
        self._result: ProduceResult | None = None
        self.has_deliveries = False
        self._deliveries = 0  # of which the cost is counted here
        self._watching: list[DeliveryFuture] = []  # those that are awaited
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

    def settle(self, result: ProduceResult) -> None:
        """Give the batch its outcome, for all that look at a `DeliveryFuture` of it, now or later."""
        self._result = result
        watching, self._watching = self._watching, []
        for delivery in watching:
            delivery.resolve()

    @property
    def settled(self) -> bool:
        """Whether the batch has its outcome."""
        return self._result is not None

    def place_of(self, index: int) -> tuple[ClosedBatch, int] | None:
        """Where the record at `index` is since the batch was divided; None while it was not."""
        return self._moved[index] if self._moved is not None else None

    def watch(self, delivery: DeliveryFuture) -> None:
        """Call `resolve()` of a delivery when the batch is settled."""
        self._watching.append(delivery)

    def message_at(self, index: int, appended_at: float) -> Message:
        """The delivered record at `index`, which was appended at that time.

        Raises:
            KafkaException: it was not delivered.
        """
        result = self._result
        assert result is not None
        if result.error is not None:
            result.retrieved = True
            raise KafkaException(result.error)
        if not self._records:
            self._records = list(self._builder.read_back(self.topic, self.partition))
        m = self._records[index]
        stamp = (2, result.timestamp_ms) if result.timestamp_type == 2 else m.timestamp()
        offset = result.base_offset + index if result.base_offset >= 0 else None
        return Message(self.topic, self.partition, offset, m.key(), m.value(), m.headers(), None, stamp,
                       max(result.at_s - appended_at, 0.0))

    def split(self, parts: Sequence[int]) -> list[ClosedBatch]:
        """The records in new batches, with their callbacks, listeners, times and costs; in each they keep their order.

        Args:
            parts: for each record the index of its new batch: 0, 1, ...

        Raises:
            ValueError: there is not one index for each record, or a new batch would be empty.
        """
        made = [ClosedBatch(self.topic, self.partition, self.opened_at, BatchBuilder(_ANY_SIZE, _ANY_SIZE))
                for _ in range(count_parts(parts, self.count))]
        records = self._builder.read_back(self.topic, self.partition)
        runs, listener = dict(self.runs or ()), None
        moved: list[tuple[ClosedBatch, int]] = []
        for index, (part, m) in enumerate(zip(parts, records, strict=True)):
            batch, headers = made[part], encode_headers(m.headers())
            batch.append(m.timestamp()[1], m.key(), m.value(), headers)
            size = cost_of(m.key(), m.value(), headers)
            batch.data_bytes += size
            batch.cost_bytes += size
            if self.reports is not None and index < len(self.reports) and self.reports[index] is not None:
                batch.report_to(self.reports[index], self._appended_at[index])
                batch.cost_bytes += CALLBACK_BYTES
            listener = runs.get(index, listener)
            batch.join_run(listener)
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

    def append(self, timestamp_ms: int, key: bytes | None, value: bytes | None,
               headers: list[tuple[bytes, bytes | None]]) -> bool:
        """Put a record into the open batch; False if it does not fit. The caller adds its cost to `cost_bytes`."""
        return self._builder.append(timestamp_ms, key, value, headers)

    def report_to(self, callback: Any, appended_at: float) -> None:
        """Keep the callback of the last record, which was appended at that time."""
        if self.reports is None:
            self.reports = []
        without = self.count - 1 - len(self.reports)
        self.reports += [None] * without + [callback]
        self._appended_at += [0.0] * without + [appended_at]

    def deliver_to(self, delivery: DeliveryFuture, appended_at: float) -> None:
        """The delivery is about the last record. It knows the batch, so that the batch need not know it."""
        delivery.place(self, self.count - 1, appended_at)
        self.has_deliveries = True
        self._deliveries += 1

    def join_run(self, listener: Any) -> None:
        """The last record came with this listener; a run begins where it is not that of the record before."""
        if listener is self._listener:
            return
        if self.runs is None:
            self.runs = []
        self.runs.append((self.count - 1, listener))
        self._listener = listener
