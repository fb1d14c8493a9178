"""One direction of a TCP connection, put together: segments in any order in, bytes and gaps in order out.

What was sent again is left out, overlaps are cut (the first copy counts), and segments that came too early wait. A gap
is declared when it cannot be filled any more: the receiver has acknowledged what lies behind it and a second has
passed, too much is waiting, or the capture ends.

Read next: `framing`.
"""

from __future__ import annotations

from bisect import insort
from typing import NamedTuple

__all__ = ["Piece", "Stamp", "Stream"]

_HALF, _FULL = 1 << 31, 1 << 32
_PATIENCE_NS = 10**9
_MAX_EARLY = 1 << 14


class Stamp(NamedTuple):
    """When and where bytes were captured: nanoseconds since the epoch, number of the packet, byte of the capture."""

    time: int | None
    packet: int
    position: int


class Piece(NamedTuple):
    """The next bytes of a direction, or how many are missing here when `data` is None."""

    size: int
    data: bytes | None
    stamp: Stamp


class _Early(NamedTuple):
    start: int
    order: int
    end: int
    data: bytes | None
    stamp: Stamp


class Stream:
    """One direction of a connection.

    Args:
        first: sequence number of the first byte; None takes that of the first segment.
        max_waiting: most bytes that may wait for one that is missing.

    Attributes:
        waiting: bytes that wait now.
    """

    def __init__(self, first: int | None = None, max_waiting: int = 8 << 20) -> None:
        self._next = first  # sequence number of the next byte, counted on beyond 32 bits
        self._early: list[_Early] = []
        self.waiting = 0
        self._count = 0
        self._max_waiting = max_waiting
        self._acknowledged = -1

    def has_all(self, end: int) -> bool:
        """True when everything in front of a sequence number has come."""
        return self._next is None or self._unwrapped(end % _FULL) <= self._next

    def push(self, sequence: int, data: bytes, missing: int, stamp: Stamp) -> list[Piece]:
        """Take a segment.

        Args:
            sequence: sequence number of its first byte.
            data: its bytes.
            missing: bytes behind them that were not captured.
            stamp: when and where.
        """
        if self._next is None:
            self._next = sequence
        start = self._unwrapped(sequence)
        if data:
            self._add(start, start + len(data), data, stamp)
        if missing:
            self._add(start + len(data), start + len(data) + missing, None, stamp)
        pieces = self._ready()
        while self.waiting > self._max_waiting or len(self._early) > _MAX_EARLY:
            pieces += self._skip()
        return pieces

    def acknowledge(self, number: int, time: int | None) -> list[Piece]:
        """The receiver has everything up to here: what is missing before was lost by the capture, not on the way."""
        if self._next is None:
            return []
        self._acknowledged = max(self._acknowledged, self._unwrapped(number))
        pieces: list[Piece] = []
        while self._early and self._acknowledged >= self._early[0].start and time is not None:
            since = self._early[0].stamp.time
            if since is None or time - since < _PATIENCE_NS:
                break
            pieces += self._skip()
        return pieces

    def flush(self) -> list[Piece]:
        """Nothing more comes: everything that waits, with gaps between."""
        pieces: list[Piece] = []
        while self._early:
            pieces += self._skip()
        return pieces

    def _unwrapped(self, sequence: int) -> int:
        assert self._next is not None
        return self._next + ((sequence - self._next + _HALF) % _FULL) - _HALF

    def _add(self, start: int, end: int, data: bytes | None, stamp: Stamp) -> None:
        assert self._next is not None
        if end > self._next:
            self._count += 1
            insort(self._early, _Early(start, self._count, end, data, stamp))
            self.waiting += end - start

    def _ready(self) -> list[Piece]:
        assert self._next is not None
        pieces: list[Piece] = []
        done = 0
        for start, _, end, data, stamp in self._early:
            if start > self._next:
                break
            done += 1
            self.waiting -= end - start
            if end > self._next:
                pieces.append(Piece(end - self._next, None if data is None else data[self._next - start:], stamp))
                self._next = end
        del self._early[:done]
        return pieces

    def _skip(self) -> list[Piece]:
        assert self._next is not None
        first = self._early[0]
        gap = Piece(first.start - self._next, None, first.stamp)
        self._next = first.start
        return [gap, *self._ready()]
