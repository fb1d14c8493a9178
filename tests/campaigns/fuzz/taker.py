"""Takes values off the front of bytes, so that a fuzzer's input can say more than one thing. At the end all is zero."""

from __future__ import annotations

EXTREMES = (0, 1, -1, 2, 7, 8, 61, 255, 2**15, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63))


class Taker:
    """What is left of an input."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        """0 to 255."""
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1]

    def number(self) -> int:
        """A number of at most 64 bits: mostly small, and now and then an extreme."""
        first = self.byte()
        if first < 200:
            return first - 50
        if first < 200 + len(EXTREMES):
            return EXTREMES[first - 200]
        return int.from_bytes(self.piece(8).ljust(8, b"\0"), "little", signed=True)

    def piece(self, size: int | None = None) -> bytes:
        """Bytes: so many, or as many as a byte in front of them says."""
        if size is None:
            size = self.byte()
        data = self._data[self._at : self._at + size]
        self._at += len(data)
        return data

    def maybe_piece(self) -> bytes | None:
        """Bytes or None."""
        return None if self.byte() & 7 == 7 else self.piece()

    def rest(self) -> bytes:
        """All that is left."""
        return self.piece(len(self._data) - self._at)

    @property
    def more(self) -> bool:
        """True while something is left."""
        return self._at < len(self._data)
