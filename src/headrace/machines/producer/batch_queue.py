"""The accumulator: batches on their way from `produce()` to the sender, one queue per partition, in order.

`produce()` appends to a `RecordAccumulator` in the caller's thread; here, on the loop's thread, batches that are full
or have lingered are queued. A queue keeps the order of `produce()` whatever is retried: everything else leans on that.

It must not know the wire, leaders or producer ids. Read next: `machines.producer.sender`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol
from uuid import UUID

from headrace.errors import KafkaError

__all__ = ["BatchQueues", "Buffer", "UnsealedBatch", "PartitionQueue", "ProducerBatch", "SealedBatch"]


class SealedBatch(Protocol):
    """What the producer needs of `records.Batch`: bytes that can be stamped with a producer id and sent."""

    @property
    def data(self) -> Any:
        """The batch as it goes on the wire."""
        ...

    @property
    def size_bytes(self) -> int:
        """Length of `data`."""
        ...

    def stamp(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool = False) -> None:
        """Write the idempotent producer's identity and number into the header (KIP-98)."""
        ...


class UnsealedBatch(Protocol):
    """What the producer needs of `records.ClosedBatch`: a batch that takes no more records and is not sealed yet."""

    partition: int
    opened_at: float
    count: int
    size_bytes: int


class Buffer(Protocol):
    """What the accumulator needs of `records.RecordAccumulator`."""

    def ready(self, opened_before: float | None, held: Collection[int] = ()) -> list[Any]:
        """Take out full batches, and open ones of partitions not held whose first record came by `opened_before`."""
        ...

    def next_deadline(self, linger_s: float, held: Collection[int] = ()) -> float | None:
        """When the oldest open batch of partitions not held has lingered."""
        ...


class ProducerBatch:
    """One batch between `produce()` and its delivery report (Java: `ProducerBatch`).

    Attributes:
        count: records in it.
        ordinal: place in its partition's order; retries return to it.
        deadline: monotonic seconds; reported as failed when it is not stored by then (KIP-91).
        sealed: the wire bytes; None while they are being made.
        attempts: times it was sent.
        sequence: number of its first record, -1 while it has none. It keeps its number through retries.
        stamped: the wire bytes have that number.
        uncertain: an earlier attempt may have been stored although no acknowledgement came.
        void: its number follows one that was never stored, so it cannot have been stored either.
        reported: its delivery report was made; nothing more may be said about it.
    """

    __slots__ = (
        "attempts", "count", "deadline", "last_error", "open", "ordinal", "queue", "reported", "sealed", "sequence",
        "stamped", "uncertain", "void",
    )

    def __init__(self, queue: PartitionQueue, ordinal: int, opened: UnsealedBatch, deadline: float) -> None:
        self.queue = queue
        self.ordinal = ordinal
        self.open = opened
        self.count = opened.count
        self.deadline = deadline
        self.sealed: SealedBatch | None = None
        self.attempts = 0
        self.last_error: KafkaError | None = None
        self.sequence = -1
        self.stamped = self.uncertain = self.void = self.reported = False

    @property
    def size_bytes(self) -> int:
        """Bytes on the wire once sealed, until then the size before compression."""
        return self.sealed.size_bytes if self.sealed is not None else self.open.size_bytes


class PartitionQueue:
    """The batches of one partition: those that wait, and those in flight, each in order.

    Attributes:
        retry_at: monotonic seconds; nothing is sent before (backoff).
        next_ordinal: place of the next batch.
        last_offset: where the last record is that was acknowledged; -1 when that is not known.
        producer_id, epoch, next_sequence, confirmed, closing, topic_id, looked_at: owned by `sequences`.
    """

    __slots__ = (
        "closing", "confirmed", "epoch", "in_flight", "last_offset", "looked_at", "next_ordinal", "next_sequence",
        "partition", "producer_id", "retry_at", "topic", "topic_id", "waiting",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.waiting: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.retry_at = -math.inf
        self.next_ordinal = 0
        self.last_offset = -1
        self.producer_id = -1
        self.epoch = -1
        self.next_sequence = 0
        self.confirmed = self.closing = False
        self.topic_id = UUID(int=0)
        self.looked_at = -math.inf

    def add(self, opened: UnsealedBatch, deadline: float) -> ProducerBatch:
        """Queue a new batch behind all others."""
        batch = ProducerBatch(self, self.next_ordinal, opened, deadline)
        self.next_ordinal += 1
        self.waiting.append(batch)
        return batch

    def sendable(self, now: float, limit: int) -> ProducerBatch | None:
        """The batch to send next, None if nothing may be sent now.

        A retry waits until nothing is in flight: what was sent behind it will be refused and has to return to its
        place first, and only then is the order certain again.
        """
        if not self.waiting or now < self.retry_at or len(self.in_flight) >= limit:
            return None
        head = self.waiting[0]
        if head.sealed is None or (head.attempts and self.in_flight):
            return None
        return head

    def take(self) -> ProducerBatch:
        """Move the first waiting batch into flight."""
        batch = self.waiting.popleft()
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def requeue(self, batch: ProducerBatch) -> None:
        """Put a batch that comes back for a retry into its old place in the order."""
        place = bisect_left(self.waiting, batch.ordinal, key=lambda other: other.ordinal)
        self.waiting.insert(place, batch)

    def followers(self, batch: ProducerBatch) -> Iterator[ProducerBatch]:
        """Unresolved batches that come after this one."""
        return (b for b in (*self.in_flight, *self.waiting) if b.ordinal > batch.ordinal)

    def is_first(self, batch: ProducerBatch) -> bool:
        """True when no earlier batch of the partition is unresolved."""
        return not any(b.ordinal < batch.ordinal for b in (*self.in_flight, *self.waiting))


class BatchQueues:
    """All queues of a producer.

    Args:
        buffers: the open batches by topic; others add to it.
        linger_s: seconds that a batch which is not full waits for more records.
        message_timeout_s: seconds from the first record of a batch until it is given up; `math.inf` for ever.
        seal: called once for each new batch; sets `batch.sealed`, at once or later (compression in another thread).

    Attributes:
        linger_s: as given.
        seal, message_timeout_s: as given; also for parts of batches, and for those that do not wait.
        flushing: while it is true, batches do not linger.
        hurry: the same, for the next time only.
        waits: queues with batches waiting, the one that was served longest ago first.
    """

    def __init__(
        self,
        buffers: Mapping[str, Buffer],
        linger_s: float,
        message_timeout_s: float,
        seal: Callable[[ProducerBatch], None],
    ) -> None:
        self._buffers = buffers
        self.flushing: object = False
        self.hurry = False
        self.linger_s, self.message_timeout_s = linger_s, message_timeout_s
        self.seal = seal
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        self.waits: dict[PartitionQueue, None] = {}
        self._held: dict[str, set[int]] = {}  # the same by topic: their open batch may grow until its turn comes

    def collect(self, now: float, everything: bool = False) -> bool:
        """Take batches that are full, have lingered, or are flushed out of the buffers into their queues.

        Returns True if there were any.
        """
        ready = self.ready(now, everything)
        self.enqueue(ready)
        return bool(ready)

    def ready(self, now: float, everything: bool = False) -> list[tuple[str, UnsealedBatch]]:
        """Take such batches out of the buffers, with their topics.

        While a partition has batches waiting, its open batch stays where it is and grows: behind a slow broker,
        batches get larger instead of more.
        """
        opened_before = math.inf if everything or self.flushing or self.hurry else now - self.linger_s
        self.hurry = False
        found: list[tuple[str, UnsealedBatch]] = []
        for topic, buffer in list(self._buffers.items()):
            for opened in buffer.ready(opened_before, () if everything else self._held.get(topic, ())):
                found.append((topic, opened))  # noqa: PERF401 - a comprehension would be a frame more in each step
        return found

    def enqueue(self, ready: Iterable[tuple[str, UnsealedBatch]]) -> None:
        """Queue batches behind the others of their partitions."""
        for topic, opened in ready:
            queue = self.queue(topic, opened.partition)
            self.has_waiting(queue)
            self.seal(queue.add(opened, opened.opened_at + self.message_timeout_s))

    def has_waiting(self, queue: PartitionQueue) -> None:
        """A batch was added to a queue and waits there."""
        self.waits[queue] = None
        self._held.setdefault(queue.topic, set()).add(queue.partition)

    def _served(self, queue: PartitionQueue) -> None:
        self.waits.pop(queue, None)
        if queue.waiting:
            self.waits[queue] = None  # at the end of the round
        else:
            self._held[queue.topic].discard(queue.partition)

    def queue(self, topic: str, partition: int) -> PartitionQueue:
        """The queue of a partition, made on first use."""
        key = (topic, partition)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = PartitionQueue(topic, partition)
        return queue

    def busy(self) -> list[PartitionQueue]:
        """Queues with batches waiting, the one that was served longest ago first."""
        return list(self.waits)

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """Move the first batch of a queue into flight; the queue goes to the end of the round."""
        batch = queue.take()
        self._served(queue)
        return batch

    def settle(self, batch: ProducerBatch) -> None:
        """An attempt has ended: the batch is no longer in flight."""
        batch.queue.in_flight.remove(batch)

    def requeue(self, batch: ProducerBatch, retry_at: float) -> None:
        """Send a settled batch again, not before `retry_at`."""
        queue = batch.queue
        queue.requeue(batch)
        queue.retry_at = max(queue.retry_at, retry_at)
        self.has_waiting(queue)

    def drop(self, batch: ProducerBatch) -> None:
        """Take a waiting batch out for good."""
        batch.queue.waiting.remove(batch)
        self._served(batch.queue)

    def expired(self, now: float) -> list[ProducerBatch]:
        """Waiting batches whose time is over. Those in flight are judged when their attempt ends."""
        expired: list[ProducerBatch] = []
        for queue in self.waits:
            if queue.waiting[0].deadline <= now:  # the first is the oldest
                expired += [batch for batch in queue.waiting if batch.deadline <= now]
        return expired

    def waiting(self) -> list[ProducerBatch]:
        """All queued batches that are not in flight, in order for each partition."""
        return [batch for queue in self.waits for batch in queue.waiting]

    def in_flight(self) -> list[ProducerBatch]:
        """All batches that were sent and await their answer."""
        return [batch for queue in self._queues.values() for batch in queue.in_flight]

    def deadline(self, now: float) -> float:
        """The next moment at which time alone changes something: a batch has lingered, may be retried, or is over."""
        soonest = math.inf
        for queue in self.waits:
            soonest = min(soonest, queue.waiting[0].deadline)
            if queue.retry_at > now:
                soonest = min(soonest, queue.retry_at)
        linger_s = 0.0 if self.flushing else self.linger_s
        for topic, buffer in self._buffers.items():
            if (lingered := buffer.next_deadline(linger_s, self._held.get(topic, ()))) is not None:
                soonest = min(soonest, lingered)
        return soonest
