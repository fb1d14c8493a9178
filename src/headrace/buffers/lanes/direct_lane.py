"""The way of batches that their own threads send: no wake-up, no turn of the loop (decision 0027). The plain twins.

While a connection has nothing under way, the loop lends it to a `DirectLane`, and for each partition that was quiet a
`DirectPartition` to its accumulator. The thread of `produce()` then writes a request for each record by itself, while
few are in flight. The loop reads the replies, or the threads that serve reports do, through the `DirectReplies` of all
lanes (decision 0053). The loop takes the connection back before it does anything else on it.

A plain step can be interrupted by Ctrl-C half way, so clients lend nothing where there is no native module.
It must not know what the bytes around the records mean. Read next: `headrace.client.producer.direct_sends`.
"""

from __future__ import annotations

import os
import select
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from headrace.buffers.buffer_pool import BufferPool
from headrace.buffers.closed_batch import ClosedBatch
from headrace.buffers.lanes.tls_pipe import Lendable, pipe_of
from headrace.buffers.report_run import ReportRun
from headrace.records.builder import Batch

__all__ = ["DirectLane", "DirectPartition", "DirectReplies", "uvarint"]

_MOST_BYTES: Final = 16_384
_MOST_STEM: Final = 1_019
_QUIET_S: Final = 30.0
"""A partition that was not used for so long goes the general way, which looks whether its leader still knows it."""
_MOST_REPLIES: Final = 2_048
_MOST_LANES: Final = 15
_MASK: Final = (1 << 31) - 1
_START = struct.Struct(">ihhi")  # length, API, version, correlation id
_REPLY = struct.Struct(">ii")
_OFFSETS = struct.Struct(">qqq")  # base offset, log append time, log start offset


class DirectPartition:
    """What all direct requests of one partition have in common.

    Args:
        lane: the connection to its leader.
        owner: handed back with each batch.
        request: API, version, the bytes before the length of the records and those behind the records, and whether that
            length is a varint and one more than it is.
        reply: the bytes of the expected reply before its three offsets, and behind them.
        producer: producer id, epoch and next sequence; -1 for a producer that is not idempotent.
        used_at: monotonic seconds; when a batch of the partition was sent last.
    """

    __slots__ = ("api", "epoch", "expected", "flexible", "lane", "owner", "producer_id", "sequence", "stem", "tail",
                 "used_at", "version")

    def __init__(self, lane: DirectLane, owner: Any, request: tuple[int, int, bytes, bytes, bool],
                 reply: tuple[bytes, bytes], producer: tuple[int, int, int], used_at: float) -> None:
        self.lane, self.owner, self.used_at = lane, owner, used_at
        self.api, self.version, self.stem, self.tail, self.flexible = request
        self.expected = reply
        self.producer_id, self.epoch, self.sequence = producer

    def length(self, sealed: Batch) -> bytes:
        """The length of the records, as it is written."""
        return uvarint(sealed.size_bytes + 1) if self.flexible else struct.pack(">i", sealed.size_bytes)

    def frame_bytes(self, sealed: Batch) -> int:
        """Size of the frame with a batch."""
        return _START.size + len(self.stem) + len(self.length(sealed)) + sealed.size_bytes + len(self.tail)

    def reply_bytes(self) -> int:
        """The length of the usual reply."""
        before, after = self.expected
        return _REPLY.size + len(before) + _OFFSETS.size + len(after)

    def measure(self, data: memoryview | bytes, correlation_id: int) -> int:
        """The length of the usual reply, if the bytes begin with one; else 0."""
        before, after = self.expected
        first, size = _REPLY.size + len(before), self.reply_bytes()
        usual = (len(data) >= size and _REPLY.unpack_from(data) == (size - 4, correlation_id)
                 and data[_REPLY.size:first] == before and data[size - len(after):size] == after)
        return size if usual else 0


class DirectLane:
    """One connection for batches that their own threads send.

    Args:
        most: so many may be in flight.
        on_rest: called, in the thread that sends, when the kernel took only a part of a request; nothing more is sent
            then.

    Attributes:
        correlation_id: of the next request.
        in_flight: batches that were sent and await their reply.
        is_read: other threads than the loop's read the replies.
        failed: the loop has to read: something unusual came, or somebody waits for a batch who does not serve reports.
        looked_at, answered_at: monotonic seconds; when such a thread looked for replies last, and when it took one.
    """

    __slots__ = ("_answered", "_batches", "_data", "_most", "_on_rest", "_pipe", "_replies", "_rest", "_sends",
                 "_until", "answered_at", "correlation_id", "failed", "looked_at", "told")

    def __init__(self, most: int, on_rest: Callable[[], object]) -> None:
        self._pipe = pipe_of(-1)
        self._sends, self._until, self.correlation_id = False, 0.0, 0
        self._most, self._on_rest = most, on_rest
        self._replies = _nobody
        self.failed = self.told = False
        self.looked_at = self.answered_at = 0.0
        self._data = bytearray()
        self._answered: list[tuple[Any, int, int, int, int, int, float, float]] = []
        self._batches: deque[tuple[DirectPartition, ClosedBatch, Any, float]] = deque()
        self._rest: bytes | None = None

    @property
    def in_flight(self) -> int:
        """Batches that were sent and await their reply."""
        return len(self._batches)

    def start(self, lent: Lendable, correlation_id: int, until: float) -> None:
        """Let batches be sent.

        Args:
            lent: the connection, which nobody else writes to from now on.
            correlation_id: of the next request.
            until: monotonic seconds after which nothing is sent.
        """
        self._pipe, self.correlation_id, self._until = pipe_of(lent), correlation_id, until
        self._sends = True
        self._pipe.begin_sending()

    def stop(self) -> tuple[list[tuple[Any, ClosedBatch, Any, int, float]], bytes | None]:
        """Let no more be sent.

        Returns:
            What is in flight, oldest first: the partition's owner, the batch, the same sealed, the size of its frame,
            and when it was sent, in monotonic seconds. And the bytes that the kernel did not take, as they go over the
            wire, None for none.
        """
        batches = [(way.owner, batch, sealed, way.frame_bytes(sealed), sent_at)
                   for way, batch, sealed, sent_at in self._batches]
        self._sends = False
        rest, self._rest = self._pipe.end_sending() or self._rest, None
        self._batches.clear()
        return batches, rest

    def is_open(self, way: DirectPartition, batch: ClosedBatch, now_s: float) -> bool:
        """Whether a batch may be sent."""
        return (self._sends and len(self._batches) < self._most and now_s < self._until
                and now_s - way.used_at <= _QUIET_S and batch.size_bytes <= _MOST_BYTES and len(way.stem) <= _MOST_STEM)

    def send(self, way: DirectPartition, batch: ClosedBatch, packed: Batch | None = None) -> bool:
        """Write the request with a batch of records; False if it has to go the general way.

        Args:
            way: the partition's.
            batch: what is sent.
            packed: the same, sealed already.
        """
        now = time.monotonic()  # a batch that has lingered was opened long ago
        if not self.is_open(way, batch, now):
            return False
        sealed = packed or batch.seal()
        sealed.stamp(way.producer_id, way.epoch, way.sequence)
        whole = way.frame_bytes(sealed)
        start = _START.pack(whole - 4, way.api, way.version, self.correlation_id)
        frame = b"".join((start, way.stem, way.length(sealed), sealed.data, way.tail))
        sent = self._pipe.put(frame)
        if not sent:
            return False
        self._batches.append((way, batch, sealed, now))
        self.correlation_id = self.correlation_id + 1 & _MASK
        way.used_at = now
        if way.producer_id >= 0:
            way.sequence = way.sequence + batch.count & _MASK
        if self.is_read and not self._replies.serves(batch):
            self.failed = True
        if sent < whole:
            self._sends, self._rest = False, frame[sent:]
        if sent < whole or not self._pipe.push():
            self._on_rest()
        elif self.failed and not self.told:
            self._replies.tell()
        return True

    def take(self, data: memoryview, count: int) -> list[tuple[Any, ClosedBatch, int, int, int, int, float]]:
        """What was stored, if the bytes that have come are the usual replies to what is in flight, each of them whole.

        Args:
            data: where the bytes were received, from the first one of a frame on.
            count: how many have come.

        Returns:
            For each reply the partition's owner, the batch, its base offset, its log append time in milliseconds, -1
            for none, the sizes of the frame that it was sent in and of the reply's, and when it was sent, in monotonic
            seconds. Nothing, with nothing changed, if the bytes are to be read in the general way.
        """
        if self._rest is not None:
            return []
        rest, replies = data[:count], 0
        offsets: list[tuple[int, int]] = []
        while rest and replies < len(self._batches):
            way = self._batches[replies][0]
            size = way.measure(rest, self.correlation_id - len(self._batches) + replies & _MASK)
            if not size:
                return []
            base_offset, log_append_ms, _ = _OFFSETS.unpack_from(rest, _REPLY.size + len(way.expected[0]))
            offsets.append((base_offset, log_append_ms))
            rest, replies = rest[size:], replies + 1
        if rest:
            return []
        stored = [self._batches.popleft() for _ in range(replies)]
        return [(way.owner, batch, *where, way.frame_bytes(sealed), way.reply_bytes(), sent_at)
                for (way, batch, sealed, sent_at), where in zip(stored, offsets, strict=True)]

    # Replies that other threads than the loop's read

    @property
    def is_read(self) -> bool:
        """Other threads than the loop's read the replies."""
        return self._replies is not _nobody

    def read_by(self, replies: DirectReplies) -> None:
        """Let other threads read the replies, from the first byte of one on. It has failed if they may not.

        Args:
            replies: takes them. The loop does not read the connection from now on.
        """
        self._pipe.begin_receiving()
        self._data.clear()
        self.failed, self.told = not all(replies.serves(batch) for _, batch, _, _ in self._batches), False
        self.looked_at = self.answered_at = time.monotonic()
        self._replies = replies
        replies.lanes.append(self)

    def read_by_loop(self) -> bytes:
        """Have the loop read again. Returns the bytes that have come and were not taken."""
        if not self.is_read:
            return b""
        replies, self._replies = self._replies, _nobody
        self.failed = False
        with suppress(ValueError):  # they have ended
            replies.lanes.remove(self)
        replies.wake()
        opened = self._pipe.end_receiving()  # first: another thread may be about to take some of it
        return bytes(self._data) + opened

    def take_answered(self) -> list[tuple[Any, int, int, int, int, int, float, float]]:
        """What other threads have taken since the last call.

        Returns:
            For each reply the partition's owner, records and bytes of the batch, its base offset, sizes of request and
            reply in bytes, and when these were sent and taken, in monotonic seconds.
        """
        answered, self._answered = self._answered, []
        return answered

    def receive(self, to: DirectReplies) -> bool:
        """Bytes may have come: take the replies that are whole. False if the loop has to read."""
        self.looked_at = now = time.monotonic()
        self._pipe.pull()
        received = self._pipe.take(_MOST_REPLIES - len(self._data)) if self._replies is to else None
        if received is None:
            return True
        self._data += received
        while self._data and received and self._replies is to:
            if not self._batches or self._rest is not None:
                return False
            way, batch, sealed, sent_at = self._batches[0]
            data, whole = bytes(self._data), way.reply_bytes()
            if not way.measure(data, self.correlation_id - len(self._batches) & _MASK):  # or the rest is still to come
                return len(data) < whole and (len(data) < 4 or _REPLY.unpack_from(data.ljust(8))[0] == whole - 4)
            base_offset, log_append_ms, _ = _OFFSETS.unpack_from(data, _REPLY.size + len(way.expected[0]))
            to.report(batch, base_offset, log_append_ms, now)
            self._answered.append((way.owner, batch.count, batch.size_bytes, base_offset, way.frame_bytes(sealed),
                                   whole, sent_at, now))
            self.answered_at = now
            self._batches.popleft()
            del self._data[:whole]
        return len(received) > 0


class DirectReplies:
    """Where threads that serve reports take the replies to direct batches.

    Args:
        runs: where reports are queued.
        pool: counts the records.
        others: a class of callbacks that are not served as reports.
        wake: an eventfd that ends a wait, this object's until `end`.
        on_failed: called, in the thread that looks or sends, when the loop has to read replies again.
        on_done: called, in the thread that looks, when batches without callbacks are done: the pool has room.

    Attributes:
        lanes: the connections.
        waiting: threads that wait for replies.
    """

    __slots__ = ("_on_done", "_on_failed", "_others", "_pool", "_runs", "_taken", "_unreported", "_wake", "lanes",
                 "waiting")

    def __init__(self, runs: deque[ReportRun], pool: BufferPool, others: type, wake: int,
                 on_failed: Callable[[], object], on_done: Callable[[], object]) -> None:
        self._runs, self._pool, self._others, self._wake = runs, pool, others, wake
        self._on_failed, self._on_done = on_failed, on_done
        self._taken, self._unreported = 0, False
        self.lanes: list[DirectLane] = []
        self.waiting = 0

    @property
    def ready(self) -> bool:
        """Whether replies may come here, and none of them is to be read by the loop."""
        return bool(self.lanes) and not any(lane.failed for lane in self.lanes)

    @property
    def has_room(self) -> bool:
        """Whether one connection more can be waited for."""
        return len(self.lanes) < _MOST_LANES

    def serves(self, batch: ClosedBatch) -> bool:
        """Whether nobody waits for the batch but who serves reports."""
        return not batch.has_deliveries and batch.runs is None and not any(
            isinstance(callback, self._others) for callback in batch.reports or ())

    def report(self, batch: ClosedBatch, base_offset: int, log_append_ms: int, now_s: float) -> None:
        """Queue the reports of a batch that is stored; one without callbacks does not count any more."""
        if batch.reports is not None:
            reports = batch.messages(base_offset, 2 if log_append_ms >= 0 else 1, log_append_ms, None, now_s)
            self._runs.append(ReportRun(reports, None, self._pool, batch.count, batch.cost_bytes))
        else:
            self._pool.release(batch.count, batch.cost_bytes)
            self._unreported = True
        self._pool.answer(batch.data_bytes)
        self._taken += 1

    def wake(self) -> None:
        """End the wait of `receive`, or the next one. From any thread, and from signal handlers."""
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def end(self) -> None:
        """The connections and the eventfd are not used any more."""
        self._wake = -1
        self.lanes.clear()

    def look(self) -> None:
        """Take what has come, without waiting."""
        self._read_all(idle=False)

    def tell(self) -> None:
        """Have the loop take back those that failed."""
        self._on_failed()
        for lane in self.lanes:
            lane.told = lane.failed

    def _read_all(self, *, idle: bool) -> None:
        """Take what has come, also where nothing is in flight if so wanted; tell who has to know."""
        failed = False
        for lane in self.lanes.copy():
            if not lane.failed and (lane.in_flight or idle) and not lane.receive(self):
                lane.failed = True
            failed |= lane.failed and not lane.told
        if failed:
            self.tell()
        if self._unreported:
            self._on_done()
            self._unreported = False

    def receive(self, timeout_s: float, awake: threading.Lock | None = None) -> None:
        """Wait for replies and take them, until one is there, or reports to serve, or `wake`, or the time is over.

        What has come is taken in any case.

        Args:
            timeout_s: seconds.
            awake: this thread's; if it can be acquired there is no wait. It is released before `wake` is called: that
                ends the waits of all threads, but not those that begin a moment later.
        """
        until, taken = time.monotonic() + timeout_s, self._taken
        while self.ready and not self._runs and self._taken == taken:
            left_s, wake = max(until - time.monotonic(), 0.0), self._wake
            self.waiting += 1  # from here on nobody empties the eventfd in front of this thread
            if awake is not None and awake.acquire(blocking=False):
                self.waiting -= 1
                return
            found, _, _ = select.select([wake, *(lane._pipe.file for lane in self.lanes)], [], [], left_s)
            self.waiting -= 1
            if wake in found and not self.waiting:  # else others have not seen it yet
                with suppress(BlockingIOError):
                    os.eventfd_read(wake)
            self._read_all(idle=True)
            if wake in found or not left_s:
                return


_nobody: Any = object()


def uvarint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*written, number))
