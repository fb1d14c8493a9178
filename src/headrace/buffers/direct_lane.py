"""The way of batches that their own threads send: no wake-up, no turn of the loop (decision 0027). The plain twins.

While a connection has nothing under way, the loop lends it to a `DirectLane`, and for each partition that was quiet a
`DirectPartition` to its accumulator. The thread of `produce()` then writes a request for each record by itself, while
few are in flight. The loop reads the replies, and takes the connection back before it does anything else on it.

A plain step can be interrupted by Ctrl-C half way, so clients lend nothing where there is no native module.
It must not know what the bytes around the records mean. Read next: `headrace.client.producer.direct_sends`.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from headrace.buffers.closed_batch import ClosedBatch

__all__ = ["DirectLane", "DirectPartition", "uvarint"]

_MOST_BYTES: Final = 16_384
_MOST_STEM: Final = 1_019
_QUIET_S: Final = 30.0
"""A partition that was not used for so long goes the general way, which looks whether its leader still knows it."""
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

    def length(self, batch: ClosedBatch) -> bytes:
        """The length of the records, as it is written."""
        return uvarint(batch.size_bytes + 1) if self.flexible else struct.pack(">i", batch.size_bytes)

    def frame_bytes(self, batch: ClosedBatch) -> int:
        """Size of the frame with a batch."""
        return _START.size + len(self.stem) + len(self.length(batch)) + batch.size_bytes + len(self.tail)

    def measure(self, data: memoryview, correlation_id: int) -> int:
        """The length of the usual reply, if the bytes begin with one; else 0."""
        before, after = self.expected
        first = _REPLY.size + len(before)
        size = first + _OFFSETS.size + len(after)
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
    """

    __slots__ = ("_batches", "_file", "_most", "_on_rest", "_rest", "_until", "correlation_id")

    def __init__(self, most: int, on_rest: Callable[[], object]) -> None:
        self._file, self._until, self.correlation_id = -1, 0.0, 0
        self._most, self._on_rest = most, on_rest
        self._batches: deque[tuple[DirectPartition, ClosedBatch, Any]] = deque()
        self._rest: bytes | None = None

    @property
    def in_flight(self) -> int:
        """Batches that were sent and await their reply."""
        return len(self._batches)

    def start(self, file: int, correlation_id: int, until: float) -> None:
        """Let batches be sent.

        Args:
            file: descriptor of the connection's socket, which nobody else writes to from now on.
            correlation_id: of the next request.
            until: monotonic seconds; batches opened later are not sent.
        """
        self._file, self.correlation_id, self._until = file, correlation_id, until

    def stop(self) -> tuple[list[tuple[Any, ClosedBatch, Any, int]], bytes | None]:
        """Let no more be sent.

        Returns:
            What is in flight, oldest first: the partition's owner, the batch, the same sealed, the size of its frame.
            And the bytes of the last request that the kernel did not take, None for none.
        """
        batches = [(way.owner, batch, sealed, way.frame_bytes(batch)) for way, batch, sealed in self._batches]
        rest = self._rest
        self._file, self._rest = -1, None
        self._batches.clear()
        return batches, rest

    def send(self, way: DirectPartition, batch: ClosedBatch) -> bool:
        """Write the request with a batch of records; False if it has to go the general way."""
        if (self._file < 0 or len(self._batches) == self._most or batch.opened_at >= self._until
                or batch.opened_at - way.used_at > _QUIET_S or batch.size_bytes > _MOST_BYTES
                or len(way.stem) > _MOST_STEM):
            return False
        sealed = batch.seal()
        sealed.stamp(way.producer_id, way.epoch, way.sequence)
        whole = way.frame_bytes(batch)
        start = _START.pack(whole - 4, way.api, way.version, self.correlation_id)
        parts: list[bytes | bytearray] = [start, way.stem, way.length(batch), sealed.data, way.tail]
        try:
            sent = os.writev(self._file, parts)
        except OSError:  # no room, or the connection is gone: whoever comes next finds out
            return False
        self._batches.append((way, batch, sealed))
        self.correlation_id = self.correlation_id + 1 & _MASK
        way.used_at = batch.opened_at
        if way.producer_id >= 0:
            way.sequence = way.sequence + batch.count & _MASK
        if sent < whole:
            self._file, self._rest = -1, b"".join(parts)[sent:]
            self._on_rest()
        return True

    def take(self, data: memoryview, count: int) -> list[tuple[Any, ClosedBatch, int, int, int]]:
        """What was stored, if the bytes that have come are the usual replies to what is in flight, each of them whole.

        Args:
            data: where the bytes were received, from the first one of a frame on.
            count: how many have come.

        Returns:
            For each reply the partition's owner, the batch, its base offset, its log append time in milliseconds, -1
            for none, and the size of the frame that it was sent in. Nothing, with nothing changed, if the bytes are to
            be read in the general way.
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
        return [(way.owner, batch, *where, way.frame_bytes(batch))
                for (way, batch, _), where in zip(stored, offsets, strict=True)]


def uvarint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*written, number))
