"""Frames out of a stream of bytes: a length of four bytes, then as many bytes. Client, broker and tests read with it.

A small frame is copied once out of a common buffer; a large one is received straight into memory of its own. So each
frame is one object that lives as long as anyone looks into it, and no longer keeps others alive. This module knows
neither sockets nor what is in a frame. Read next: `wire.frame`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from headrace.errors import ProtocolError

__all__ = ["FrameReader"]

_SHARED_BYTES: Final = 65_536
_PREFIX_BYTES: Final = 4
_SHOWN_BYTES: Final = 80

Refuse = Callable[[int, bytes, bool], Exception]


class FrameReader:
    """Cuts a stream into frames.

    Use it as asyncio's `BufferedProtocol` does: `buffer()` to read into, then all of `advance()`; or `feed()` bytes.

    Args:
        max_bytes: longest frame that is accepted.
        writable: small frames are `bytearray` instead of `bytes`, and large ones can be written to: a log patches
            batches in place.
        trusted_bytes: memory that a length alone may take; beyond that it grows as bytes come.
        memory: makes that of a large frame from its size, when `trusted_bytes` has no say.
        refuse: makes the error for a bad length, from the length, the first bytes, and whether frames came before.
        begun: the other side has sent frames before, on another stream.

    Attributes:
        free: what `buffer()` would say while no frame has begun; None while one has.
    """

    __slots__ = (
        "_begun", "_end", "_filled", "_large", "_large_bytes", "_max_bytes", "_memory", "_refuse", "_shared", "_start",
        "_trusted_bytes", "_view", "_writable", "free",
    )

    def __init__(
        self, max_bytes: int, *, writable: bool = False, trusted_bytes: int | None = None,
        memory: Callable[[int], bytearray] = bytearray, refuse: Refuse | None = None, begun: bool = False,
    ) -> None:
        self._max_bytes = max_bytes
        self._writable = writable
        self._trusted_bytes = trusted_bytes
        self._memory = memory
        self._refuse = refuse
        self._begun = begun  # a length has come that can be one
        self._shared = bytearray(_SHARED_BYTES)
        self._view = memoryview(self._shared)
        self.free: memoryview | None = self._view
        self._start = self._end = 0  # received and not yet handed out: [start, end)
        self._large: bytearray | None = None
        self._large_bytes = self._filled = 0

    def buffer(self) -> memoryview:
        """Where the next bytes belong; never empty."""
        large = self._large
        if large is None:
            return self._view[self._end:]
        if self._filled == len(large):
            large.extend(bytes(min(self._large_bytes - self._filled, self._filled)))
        return memoryview(large)[self._filled:]

    def whole(self, count: int) -> bytes | None:
        """So many bytes have arrived. If they are one small frame and nothing else, as most are, that is given.

        Else nothing is done, and `advance` is to be called.
        """
        size = count - _PREFIX_BYTES
        if (self.free is None or self._writable or not 0 <= size <= self._max_bytes
                or int.from_bytes(self._view[:_PREFIX_BYTES], "big") != size):
            return None
        self._begun = True
        return bytes(self._view[_PREFIX_BYTES:count])

    def advance(self, count: int) -> Iterator[bytes | bytearray | memoryview]:
        """So many bytes have arrived in `buffer()`. Gives the frames that are now complete, without their lengths.

        Raises:
            ProtocolError: behind them a length is negative or beyond the limit, or what `refuse` makes of it. The
                stream can be read no further.
        """
        if self._large is not None:
            self._filled += count
            if self._filled == self._large_bytes:
                large, self._large, self.free = self._large, None, self._view
                yield large if self._writable else memoryview(large).toreadonly()
            return
        self._end += count
        self.free = None
        while self._end - self._start >= _PREFIX_BYTES:
            body = self._start + _PREFIX_BYTES
            size = int.from_bytes(self._view[self._start:body], "big", signed=True)
            if not 0 <= size <= self._max_bytes:
                raise self._refusal(size)
            self._begun = True
            if self._end - body < size:
                if size > _SHARED_BYTES - _PREFIX_BYTES:
                    self._begin_large(size, body)
                break
            self._start = body + size
            yield self._shared[body:self._start] if self._writable else bytes(self._view[body:self._start])
        if self._start == self._end:
            self._start = self._end = 0
            self.free = self._view if self._large is None else None
        elif self._start:
            self._compact()

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes | bytearray | memoryview]:
        """Take received bytes; the frames that they complete.

        Raises:
            ProtocolError: as `advance`.
        """
        frames: list[bytes | bytearray | memoryview] = []
        rest = memoryview(data)
        while rest:
            room = self.buffer()
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            room.release()  # what it is a view of may have to grow
            frames += self.advance(count)
            rest = rest[count:]
        return frames

    @property
    def left(self) -> int:
        """Bytes of a large frame that are still to come; 0 when none has begun."""
        return 0 if self._large is None else self._large_bytes - self._filled

    @property
    def pending(self) -> bool:
        """A frame has begun and is not whole."""
        return self._large is not None or self._end > self._start

    def _begin_large(self, size: int, body: int) -> None:
        self._filled = self._end - body
        if self._trusted_bytes is None:
            self._large = self._memory(size)
        else:
            self._large = bytearray(max(min(size, self._trusted_bytes), self._filled))
        self._large_bytes = size
        memoryview(self._large)[:self._filled] = self._view[body:self._end]
        self._start = self._end = 0

    def _compact(self) -> None:
        """Move an incomplete frame to the front, so that it always fits."""
        left = self._end - self._start
        self._view[:left] = bytes(self._view[self._start:self._end])
        self._start, self._end = 0, left

    def _refusal(self, size: int) -> Exception:
        if self._refuse is not None:
            first = bytes(self._view[self._start:min(self._start + _SHOWN_BYTES, self._end)])
            return self._refuse(size, first, self._begun)
        return ProtocolError(f"a frame of {size} bytes; 0 to {self._max_bytes} are allowed")
