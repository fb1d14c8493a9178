"""The way of a batch that its own thread sends: no wake-up, no turn of the loop (decision 0027). The plain twins.

While a connection has nothing under way, the loop lends it to a `DirectLane`, and for each partition that was quiet a
`DirectPartition` to its accumulator. The thread of `produce()` then writes the request by itself if its batch is alone.
The loop reads the reply, and takes the connection back before it does anything else on it.

A plain step can be interrupted by Ctrl-C half way, so clients lend nothing where there is no native module.
It must not know what the bytes around the records mean. Read next: `headrace.client.producer.direct_sends`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any, Final

from headrace.buffers.closed_batch import ClosedBatch

__all__ = ["DirectLane", "DirectPartition"]

_MOST_BYTES: Final = 16_384
_MOST_STEM: Final = 1_019
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
    """

    __slots__ = ("api", "epoch", "expected", "flexible", "lane", "owner", "producer_id", "sequence", "stem", "tail",
                 "version")

    def __init__(self, lane: DirectLane, owner: Any, request: tuple[int, int, bytes, bytes, bool],
                 reply: tuple[bytes, bytes], producer: tuple[int, int, int]) -> None:
        self.lane, self.owner = lane, owner
        self.api, self.version, self.stem, self.tail, self.flexible = request
        self.expected = reply
        self.producer_id, self.epoch, self.sequence = producer


class DirectLane:
    """One connection for batches that their own threads send, one at a time.

    Args:
        on_rest: called, in the thread that sends, when the kernel took only a part of a request; nothing more is sent
            then.

    Attributes:
        correlation_id: of the next request.
        size_bytes: of the last frame that was written.
    """

    __slots__ = ("_file", "_in_flight", "_on_rest", "_rest", "_until", "correlation_id", "size_bytes")

    def __init__(self, on_rest: Callable[[], object]) -> None:
        self._file, self._until, self.correlation_id, self.size_bytes = -1, 0.0, 0, 0
        self._in_flight: tuple[DirectPartition, ClosedBatch, Any] | None = None
        self._rest: bytes | None = None
        self._on_rest = on_rest

    @property
    def in_flight(self) -> bool:
        """A batch was sent and awaits its reply."""
        return self._in_flight is not None

    def start(self, file: int, correlation_id: int, until: float) -> None:
        """Let batches be sent.

        Args:
            file: descriptor of the connection's socket, which nobody else writes to from now on.
            correlation_id: of the next request.
            until: monotonic seconds; batches opened later are not sent.
        """
        self._file, self.correlation_id, self._until = file, correlation_id, until

    def stop(self) -> tuple[Any, ClosedBatch, Any, bytes | None] | None:
        """Let no more be sent.

        Returns:
            What is in flight, None for nothing: the partition's owner, the batch, the same sealed, and the bytes of its
            request that the kernel did not take, None for none.
        """
        self._file, in_flight, rest = -1, self._in_flight, self._rest
        self._in_flight = self._rest = None
        return None if in_flight is None else (in_flight[0].owner, in_flight[1], in_flight[2], rest)

    def send(self, way: DirectPartition, batch: ClosedBatch) -> bool:
        """Write the request with a batch of records; False if it has to go the general way."""
        if (self._file < 0 or self._in_flight is not None or batch.opened_at >= self._until
                or batch.size_bytes > _MOST_BYTES or len(way.stem) > _MOST_STEM):
            return False
        sealed = batch.seal()
        sealed.stamp(way.producer_id, way.epoch, way.sequence if way.producer_id >= 0 else -1)
        size = sealed.size_bytes
        middle = way.stem + (_varint(size + 1) if way.flexible else struct.pack(">i", size))
        whole = _START.size + len(middle) + size + len(way.tail)
        start = _START.pack(whole - 4, way.api, way.version, self.correlation_id)
        parts: list[bytes | bytearray] = [start, middle, sealed.data, way.tail]
        try:
            sent = os.writev(self._file, parts)
        except OSError:  # no room, or the connection is gone: whoever comes next finds out
            return False
        self._in_flight, self.size_bytes = (way, batch, sealed), whole
        self.correlation_id = self.correlation_id + 1 & _MASK
        if way.producer_id >= 0:
            way.sequence = way.sequence + batch.count & _MASK
        if sent < whole:
            self._file, self._rest = -1, b"".join(parts)[sent:]
            self._on_rest()
        return True

    def take(self, data: memoryview, count: int) -> tuple[Any, ClosedBatch, int, int] | None:
        """What was stored, if the bytes that have come are the usual reply to what is in flight, whole.

        Args:
            data: where the bytes were received, from the first one of a frame on.
            count: how many have come.

        Returns:
            The partition's owner, the batch, its base offset, and its log append time in milliseconds, -1 for none.
            None if the reply is to be read in the general way: nothing has changed then.
        """
        if self._in_flight is None or self._rest is not None:
            return None
        way, batch, _ = self._in_flight
        before, after = way.expected
        first = _REPLY.size + len(before)
        if (count != first + _OFFSETS.size + len(after)
                or _REPLY.unpack_from(data) != (count - 4, self.correlation_id - 1 & _MASK)
                or data[_REPLY.size:first] != before or data[count - len(after):count] != after):
            return None
        base_offset, log_append_time_ms, _ = _OFFSETS.unpack_from(data, first)
        self._in_flight = None
        return way.owner, batch, base_offset, log_append_time_ms


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*written, number))
