"""Cuts the bytes of one direction into frames, and finds the next frame again after bytes that are missing.

A gap inside a frame costs that frame and no other: its length says where the next one begins. After a gap across the
end of a frame, or in a connection that was begun before the capture, `find` looks for the next plausible frame.

Read next: `exchange`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headrace.decode.capture.tcp import Piece, Stamp
from headrace.decode.messages.bodies import MAX_FRAME_BYTES

__all__ = ["Finder", "Framer", "Lost", "RawFrame"]

Finder = Callable[[bytearray, int], tuple[int, bool]]
"""Looks for a frame from a place on: (place, True) where one begins, (place, False) when everything in front of the
place can be thrown away and more bytes are needed."""

_PREFIX = 4
_OFTEN = 1 << 16  # up to this size the buffer is looked through whenever bytes come; after that, ever more rarely


class RawFrame(NamedTuple):
    """A frame without its prefix.

    Attributes:
        data: its bytes, up to the first that is missing.
        size: how many it should have.
        is_last: the connection, or the capture, ended within it: nothing is damaged.
        stamp: when and where its last byte, or what shows a gap in it, was captured.
    """

    data: bytes
    size: int
    stamp: Stamp
    is_last: bool = False


class Lost(NamedTuple):
    """Bytes that belong to no frame which can be read. `is_damage` is False where that had to be so."""

    reason: str
    stamp: Stamp
    is_damage: bool


class Framer:
    """One direction of a connection.

    Args:
        find: finds the next frame where the place of it is not known.
        in_step: the first byte is the first of a frame.
    """

    def __init__(self, find: Finder, *, in_step: bool) -> None:
        self._find = find
        self._in_step = in_step
        self._buffer = bytearray()
        self._skip = 0  # bytes of a frame with a gap that are still to come
        self._passed = 0  # bytes that were looked through for a frame
        self._look_at = 0  # size of the buffer at which to look again
        self._stamp = Stamp(None, 0, 0)

    @property
    def buffered(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self._buffer)

    def push(self, piece: Piece) -> list[RawFrame | Lost]:
        """Take the next bytes, or learn that some are missing."""
        self._stamp = piece.stamp
        if piece.data is None:
            return self._gap(piece.size)
        data = piece.data
        if self._skip:
            passed = min(self._skip, len(data))
            self._skip -= passed
            data = data[passed:]
        self._buffer += data
        return self._frames()

    def flush(self) -> list[RawFrame | Lost]:
        """Nothing more comes."""
        self._look_at = 0
        found = self._frames()
        found += self._unfinished(is_last=True) if self._in_step else []
        self._passed += len(self._buffer) if not self._in_step else 0
        self._buffer.clear()
        return found + self._passed_over()

    def _frames(self) -> list[RawFrame | Lost]:
        found: list[RawFrame | Lost] = []
        buffer, at = self._buffer, 0
        while len(buffer) - at >= _PREFIX:
            if not self._in_step:
                if len(buffer) < self._look_at:
                    break
                place, self._in_step = self._find(buffer, at)
                self._passed += place - at
                at = place
                if not self._in_step:
                    left = len(buffer) - at
                    self._look_at = left + left // 2 if left > _OFTEN else 0
                    break
                found += self._passed_over()
            size = int.from_bytes(buffer[at:at + _PREFIX], "big", signed=True)
            if not 0 <= size <= MAX_FRAME_BYTES:
                found.append(Lost(f"a frame of {size} bytes cannot be: looking for the next", self._stamp, True))
                self._in_step = False
                at += 1
                self._passed += 1
                continue
            stop = at + _PREFIX + size
            if stop > len(buffer):
                break
            found.append(RawFrame(bytes(memoryview(buffer)[at + _PREFIX:stop]), size, self._stamp))
            at = stop
        del buffer[:at]
        return found

    def _gap(self, size: int) -> list[RawFrame | Lost]:
        found: list[RawFrame | Lost] = [Lost(f"{size} bytes are missing", self._stamp, True)]
        if not self._in_step:
            self._passed += len(self._buffer)
            self._buffer.clear()
            return found
        if self._skip:
            left = self._skip - size
            self._skip = max(left, 0)
            self._in_step = left >= 0
            return found
        frame_left = self._left_of_frame()
        found += self._unfinished(is_last=False)
        self._buffer.clear()
        self._in_step = frame_left >= size
        self._skip = frame_left - size if self._in_step else 0
        return found

    def _left_of_frame(self) -> int:
        if len(self._buffer) < _PREFIX:
            return 0
        return _PREFIX + int.from_bytes(self._buffer[:_PREFIX], "big") - len(self._buffer)

    def _unfinished(self, *, is_last: bool) -> list[RawFrame | Lost]:
        """The frame that has begun, as far as it is there."""
        if len(self._buffer) > _PREFIX:
            size = int.from_bytes(self._buffer[:_PREFIX], "big")
            return [RawFrame(bytes(self._buffer[_PREFIX:]), size, self._stamp, is_last)]
        return []

    def _passed_over(self) -> list[RawFrame | Lost]:
        passed, self._passed = self._passed, 0
        return [Lost(f"{passed} bytes were passed over to the next frame", self._stamp, False)] if passed else []
