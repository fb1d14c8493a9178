"""Batches on their way from `produce()` to the sender, one queue per partition, in order.

`produce()` appends to a `RecordAccumulator` in the caller's thread; here, on the loop's thread, batches that are full
or have lingered are queued. A queue keeps the order of `produce()` whatever is retried: everything else leans on that.

A batch gets its wire bytes (it is *sealed*) where it is queued. Compression takes long, so it is left
to a thread: `unsealed` are the batches for which the sender asks for it. `BATCH_TRANSITIONS` is the table of what may
happen to a batch.

It must not know the wire, leaders or producer ids. Read next: `machines.producer.sender`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Protocol

from headrace.errors import KafkaError
from headrace.machines.producer.partition_sequence import PartitionSequence
from headrace.states import Transitions, from_each

__all__ = [
    "BATCH_TRANSITIONS", "BatchQueues", "BatchSource", "BatchState", "DirectSend", "PartitionQueue", "ProducerBatch",
    "SealedBatch", "UnsealedBatch",
]


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
        """Write the idempotent producer's identity and the sequence into the header (KIP-98)."""
        ...


class UnsealedBatch(Protocol):
    """What the producer needs of `buffers.ClosedBatch`: a batch that takes no more records and is not sealed yet."""

    topic: str
    partition: int
    opened_at: float

    @property
    def count(self) -> int:
        """Records in it."""
        ...

    @property
    def size_bytes(self) -> int:
        """Its size before compression."""
        ...

    def seal(self, codec: int = 0, level: int = -1) -> SealedBatch:
        """The wire bytes. Callable from any thread; with a codec it takes long."""
        ...

    def split(self, parts: Sequence[int]) -> list[Any]:
        """Divide the records over new batches: which part each goes to."""
        ...


class BatchSource(Protocol):
    """What the queues need of `buffers.OpenBatches`. What is held are partitions, by topic."""

    def ready(self, opened_before: float | None, held: Mapping[str, Collection[int]]) -> list[Any]:
        """Take out full batches, and open ones of partitions not held whose first record came by `opened_before`."""
        ...

    def next_deadline(self, linger_s: float, held: Mapping[str, Collection[int]]) -> float | None:
        """When the oldest open batch of partitions not held has lingered."""
        ...

    @property
    def rings(self) -> bool:
        """Behind a batch that leaves alone, what lingers has the sender polled without `next_deadline`."""
        ...

    def send_lone(self, opened_before: float) -> bool:
        """Send the only batch that `ready` would take out directly, where its partition is lent; True if it is sent."""
        ...


class DirectSend(Protocol):
    """Threads that produce may send a partition's batches by themselves while they are alone (decision 0027)."""

    def take_back(self) -> None:
        """What is in flight on the connection becomes the sender's."""
        ...

    def end(self) -> None:
        """They may no more; and `take_back`."""
        ...


class BatchState(Enum):
    """Where a batch is on its way."""

    CLOSED = "takes no more records; its wire bytes are still to be made"
    SEALING = "is being compressed"
    QUEUED = "waits to be sent"
    IN_FLIGHT = "was sent: the answer is awaited"
    PURGED = "was sent and reported as failed: the answer is awaited for its sequence only"
    STORED = "is acknowledged"
    FAILED = "is given up"
    DIVIDED = "has given its place to its parts"

    __hash__ = object.__hash__  # `Enum` has one in Python, which would be a call for each change


_IN_QUEUE: Final = (BatchState.CLOSED, BatchState.SEALING, BatchState.QUEUED)
_SENT: Final = (BatchState.IN_FLIGHT, BatchState.PURGED)
_NOTHING_HELD: Final[dict[str, set[int]]] = {}

BATCH_TRANSITIONS: Final = Transitions("A batch", BatchState.CLOSED, {
    (BatchState.CLOSED, "seal"): BatchState.SEALING,
    **from_each((BatchState.CLOSED, BatchState.SEALING), "sealed", BatchState.QUEUED),
    (BatchState.QUEUED, "send"): BatchState.IN_FLIGHT,
    (BatchState.IN_FLIGHT, "retry"): BatchState.QUEUED,
    (BatchState.IN_FLIGHT, "divide"): BatchState.DIVIDED,
    (BatchState.IN_FLIGHT, "purge"): BatchState.PURGED,
    **from_each(_SENT, "store", BatchState.STORED),
    **from_each((*_IN_QUEUE, *_SENT), "give up", BatchState.FAILED),
})
"""The only ways of a batch. STORED, FAILED and DIVIDED are the end; a report is made on the way to PURGED, or else to
STORED or FAILED, and so once."""

_SEAL: Final = BATCH_TRANSITIONS.column("seal")
_SEALED: Final = BATCH_TRANSITIONS.column("sealed")
_SEND: Final = BATCH_TRANSITIONS.column("send")
_RETRY: Final = BATCH_TRANSITIONS.column("retry")


class ProducerBatch:
    """One batch between `produce()` and its delivery report (Java: `ProducerBatch`).

    Attributes:
        state: where it is on its way, and so whether it was reported; changed by `BATCH_TRANSITIONS` only.
        count: records in it.
        position: place in its partition's order; retries return to it.
        deadline: monotonic seconds; reported as failed when it is not stored by then (KIP-91).
        sealed: the wire bytes; None before it was QUEUED.
        attempts: times it was sent.
        sequence: that of its first record, -1 while it has none. It stays the same through retries.
        stamped: the wire bytes have that sequence; not yet those of a part, which inherits its sequence.
        maybe_stored: an earlier attempt may have been stored although no acknowledgement came.
        void: its sequence follows one that was never stored, so it cannot have been stored either.
    """

    __slots__ = (
        "attempts", "count", "deadline", "last_error", "maybe_stored", "open", "position", "queue", "sealed",
        "sequence", "stamped", "state", "void",
    )

    def __init__(self, queue: PartitionQueue, position: int, opened: UnsealedBatch, deadline: float) -> None:
        self.state = BatchState.CLOSED
        self.queue = queue
        self.position = position
        self.open = opened
        self.count = opened.count
        self.deadline = deadline
        self.sealed: SealedBatch | None = None
        self.attempts = 0
        self.last_error: KafkaError | None = None
        self.sequence = -1
        self.stamped = self.maybe_stored = self.void = False

    @property
    def size_bytes(self) -> int:
        """Bytes on the wire once sealed, until then the size before compression."""
        return self.sealed.size_bytes if self.sealed is not None else self.open.size_bytes


class PartitionQueue:
    """The batches of one partition: those that wait, and those in flight, each in order.

    Attributes:
        retry_at: monotonic seconds; nothing is sent before (backoff).
        next_position: place of the next batch.
        last_error: why the last attempt failed, until a batch is stored; it is in the way of those behind as well.
        last_offset: where the last record is that was acknowledged; -1 when that is not known.
        partition_sequence: its sequences. Only `sequences` reads and writes it.
        direct: nothing of the partition waits or is in flight here, and its batches need not come here; None mostly.
    """

    __slots__ = (
        "direct", "in_flight", "last_error", "last_offset", "next_position", "partition", "partition_sequence",
        "retry_at", "topic", "waiting",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.waiting: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.retry_at = -math.inf
        self.next_position = 0
        self.last_error: KafkaError | None = None
        self.last_offset = -1
        self.partition_sequence = PartitionSequence()
        self.direct: DirectSend | None = None

    def end_direct(self) -> None:
        """From now on all batches come here."""
        if self.direct is not None:
            direct, self.direct = self.direct, None
            direct.end()

    def add_sent(self, opened: UnsealedBatch, sealed: SealedBatch | None, deadline: float) -> ProducerBatch:
        """A batch that was sent without having been queued is in flight, or was until now."""
        batch = ProducerBatch(self, self.next_position, opened, deadline)
        self.next_position += 1
        batch.sealed, batch.attempts = sealed, 1
        batch.state = _SEND[_SEALED[batch.state]]
        self.in_flight.append(batch)
        return batch

    def add(self, opened: UnsealedBatch, deadline: float) -> ProducerBatch:
        """Queue a new batch behind all others."""
        if self.direct is not None:
            self.end_direct()
        batch = ProducerBatch(self, self.next_position, opened, deadline)
        self.next_position += 1
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
        if head.state is not BatchState.QUEUED or (head.attempts and self.in_flight):
            return None
        return head

    def take(self) -> ProducerBatch:
        """Move the first waiting batch into flight."""
        batch = self.waiting.popleft()
        batch.state = _SEND[batch.state]
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def requeue(self, batch: ProducerBatch) -> None:
        """Put a batch that comes back for a retry into its old place in the order."""
        batch.state = _RETRY[batch.state]
        self.insert(batch)

    def insert(self, batch: ProducerBatch) -> None:
        """Put a batch into its place in the order of those that wait."""
        place = bisect_left(self.waiting, batch.position, key=lambda other: other.position)
        self.waiting.insert(place, batch)

    def followers(self, batch: ProducerBatch) -> Iterator[ProducerBatch]:
        """Unresolved batches that come after this one."""
        return (b for b in (*self.in_flight, *self.waiting) if b.position > batch.position)

    def is_first(self, batch: ProducerBatch) -> bool:
        """True when no earlier batch of the partition is unresolved."""
        return not any(b.position < batch.position for b in (*self.in_flight, *self.waiting))


class BatchQueues:
    """All queues of a producer.

    Args:
        source: the open batches of all topics; others add to it.
        linger_s: seconds that a batch which is not full waits for more records.
        message_timeout_s: seconds from the first record of a batch until it is given up; `math.inf` for ever.
        codec, level: how wire bytes are compressed; 0: not at all.
        at_once_bytes: batches that are not larger are compressed here: a thread for that would cost more.

    Attributes:
        linger_s, message_timeout_s: as given.
        unsealed: CLOSED batches that are to be compressed, in order; `start_sealing` takes them.
        flushing: while it is true, batches do not linger.
        collect_all_once: batches do not linger the next time that they are collected.
        waits: queues with batches waiting, the one that was served longest ago first.
    """

    def __init__(
        self,
        source: BatchSource,
        linger_s: float,
        message_timeout_s: float,
        codec: int = 0,
        level: int = -1,
        at_once_bytes: int = 8192,
    ) -> None:
        self._source = source
        self._at_once_bytes = at_once_bytes
        self.flushing: object = False
        self.collect_all_once = False
        self.linger_s, self.message_timeout_s = linger_s, message_timeout_s
        self.codec, self.level = codec, level
        self.unsealed: dict[ProducerBatch, None] = {}
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        self.waits: dict[PartitionQueue, None] = {}
        self._held: dict[str, set[int]] = {}  # their partitions by topic: an open batch may grow until its turn comes

    def collect(self, now: float, everything: bool = False) -> bool:
        """Take batches that are full, have lingered, or are flushed out of the buffers into their queues.

        Returns True if there were any.
        """
        ready = self.ready(now, everything)
        self.enqueue(ready)
        return bool(ready)

    def ready(self, now: float, everything: bool = False) -> list[UnsealedBatch]:
        """Take such batches out of the buffers.

        While a partition has batches waiting, its open batch stays where it is and grows: behind a slow broker,
        batches get larger instead of more.
        """
        at_once = everything or self.flushing or self.collect_all_once
        self.collect_all_once = False
        return self._source.ready(math.inf if at_once else now - self.linger_s,
                                  _NOTHING_HELD if everything else self._held)

    @property
    def times_lingering(self) -> bool:
        """Whether only `deadline` says when a batch that is opened now has lingered."""
        return self.linger_s > 0.0 and not self._source.rings

    def send_lone(self, now: float) -> bool:
        """Send the only batch that has lingered directly, where its partition is lent; True if it is sent.

        Without lingering, unless it is compressed, and while somebody flushes, the thread that produces has done so
        where that may be.
        """
        if self.flushing or self.collect_all_once or not (self.linger_s or self.codec):
            return False
        return self._source.send_lone(now - self.linger_s)

    def enqueue(self, ready: Iterable[UnsealedBatch]) -> None:
        """Queue batches behind the others of their partitions."""
        for opened in ready:
            queue = self.queue(opened.topic, opened.partition)
            self.has_waiting(queue)
            self.seal(queue.add(opened, opened.opened_at + self.message_timeout_s))

    def seal(self, batch: ProducerBatch) -> None:
        """Give a queued batch its wire bytes, at once unless they are many and are compressed."""
        if self.codec and batch.open.size_bytes > self._at_once_bytes:
            self.unsealed[batch] = None
        else:
            batch.sealed = batch.open.seal(self.codec, self.level)
            batch.state = _SEALED[batch.state]

    def start_sealing(self) -> list[ProducerBatch]:
        """Take the batches that are to be compressed; the caller has that done."""
        taken = list(self.unsealed)
        self.unsealed.clear()
        for batch in taken:
            batch.state = _SEAL[batch.state]
        return taken

    def on_sealed(self, batch: ProducerBatch, sealed: SealedBatch) -> None:
        """A batch was compressed; nothing happens if it was given up meanwhile."""
        if batch.state is BatchState.SEALING:
            batch.sealed = sealed
            batch.state = _SEALED[batch.state]

    def has_waiting(self, queue: PartitionQueue) -> None:
        """A batch was added to a queue and waits there."""
        self.waits[queue] = None
        self._held.setdefault(queue.topic, set()).add(queue.partition)

    def _served(self, queue: PartitionQueue) -> None:
        self.waits.pop(queue, None)
        if queue.waiting:
            self.waits[queue] = None  # at the end of the round
        else:
            held = self._held[queue.topic]
            held.discard(queue.partition)
            if not held:
                del self._held[queue.topic]

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

    def insert(self, part: ProducerBatch, retry_at: float) -> None:
        """Queue a part of a settled batch in the place that it has, to be sent not before `retry_at`."""
        queue = part.queue
        queue.insert(part)
        queue.retry_at = max(queue.retry_at, retry_at)
        self.has_waiting(queue)
        self.seal(part)

    def drop(self, batch: ProducerBatch) -> None:
        """Take a waiting batch out for good."""
        self.unsealed.pop(batch, None)
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
        lingered = self._source.next_deadline(0.0 if self.flushing else self.linger_s, self._held)
        return soonest if lingered is None else min(soonest, lingered)
