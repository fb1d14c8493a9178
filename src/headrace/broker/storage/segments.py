"""Where a log's bytes lie: a block of memory, or a file. Append at the end, read any range; nothing else.

A segment knows no batches and no offsets; `broker.storage.log` does. A memory segment is an anonymous map, so that a
large one costs only the pages that were written, and a reader gets a view of it without a copy. A file segment writes
through to the operating system before `append` returns: what was acknowledged survives the end of the process, however
sudden.
"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path
from typing import Protocol

from headrace.interpreter import SteadyLock

__all__ = ["FileSegment", "MemorySegment", "Segment"]

_LARGEST_BLOCK = 32 << 20
_MOST_OPEN = 256
"""Files that are open at once: many systems let a process have 1,024, and its connections need some of them."""
_using = SteadyLock()
"""Held while a file is used, so that no other thread, with a broker of its own, closes it to open another."""


class Segment(Protocol):
    """What a log needs of a segment."""

    size: int
    """Bytes that were appended."""

    def has_room(self, count: int) -> bool:
        """Whether `count` more bytes fit."""

    def append(self, data: memoryview) -> None:
        """Store `data` at the end, all of it or nothing."""

    def read(self, start: int, end: int) -> bytes | memoryview:
        """The bytes from position `start` to `end`; later appends do not change them."""

    def truncate(self, size: int) -> None:
        """Forget everything from position `size` on."""

    def close(self) -> None:
        """Let go of the memory or the file; what was stored in a file stays."""

    def delete(self) -> None:
        """Close, and remove what was stored."""


class MemorySegment:
    """A block of memory. Blocks of one log double in size up to 32 MiB, so that small topics stay small.

    Args:
        capacity: bytes that fit.
    """

    def __init__(self, capacity: int) -> None:
        self.size = 0
        self.capacity = capacity
        self._view = memoryview(mmap.mmap(-1, capacity))

    @classmethod
    def after(cls, previous: MemorySegment | None, needed: int) -> MemorySegment:
        """The next block of a log, at least `needed` bytes large."""
        usual = 256 << 10 if previous is None else min(previous.capacity * 2, _LARGEST_BLOCK)
        return cls(max(usual, needed))

    def has_room(self, count: int) -> bool:
        """Whether `count` more bytes fit."""
        return self.size + count <= self.capacity

    def append(self, data: memoryview) -> None:
        """Copy `data` to the end."""
        end = self.size + len(data)
        self._view[self.size:end] = data
        self.size = end

    def read(self, start: int, end: int) -> memoryview:
        """A view of the block: no copy. It keeps the block alive, even when the log has let go of it."""
        return self._view[start:end].toreadonly()

    def truncate(self, size: int) -> None:
        """Forget everything from position `size` on."""
        self.size = size

    def close(self) -> None:
        """Nothing to do: the last view frees the block."""

    def delete(self) -> None:
        """Nothing to do: the last view frees the block."""


class FileSegment:
    """A file, written through at every append.

    Args:
        path: the file; made when it does not exist.
        capacity: bytes after which the log starts a new segment. One larger batch still fits an empty segment.
    """

    def __init__(self, path: Path, capacity: int) -> None:
        self.path = path
        self.capacity = capacity
        self._fd, self._is_closed = -1, False
        with _using:
            self.size = os.fstat(self._file(os.O_CREAT)).st_size

    def has_room(self, count: int) -> bool:
        """Whether `count` more bytes fit."""
        return self.size == 0 or self.size + count <= self.capacity

    def append(self, data: memoryview) -> None:
        """Write `data` at the end. A full disk leaves the file as it was.

        Raises:
            OSError: the operating system refused.
        """
        position = self.size
        with _using:
            file = self._file()
            try:
                while data:
                    written = _write_at(file, data, position)
                    data, position = data[written:], position + written
            except OSError:
                os.ftruncate(file, self.size)
                raise
        self.size = position

    def read(self, start: int, end: int) -> bytes:
        """The bytes, from the page cache as a rule."""
        with _using:
            return _read_at(self._file(), end - start, start)

    def truncate(self, size: int) -> None:
        """Cut the file."""
        with _using:
            os.ftruncate(self._file(), size)
        self.size = size

    def close(self) -> None:
        """Close the file; calling it twice does no harm."""
        with _using:
            self._is_closed = True
            self._let_go()

    def delete(self) -> None:
        """Close and remove the file."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _file(self, flags: int = 0) -> int:
        """The file, opened again if it has not been used for long."""
        if self._is_closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(self.path))
        if self._fd < 0:
            self._fd = os.open(self.path, os.O_RDWR | flags | getattr(os, "O_BINARY", 0), 0o644)
        _open.pop(self, None)
        _open[self] = None
        if len(_open) > _MOST_OPEN:
            next(iter(_open))._let_go()
        return self._fd

    def _let_go(self) -> None:
        _open.pop(self, None)
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


_open: dict[FileSegment, None] = {}  # whose files are open, those that were used last at the end


def _write_at(fd: int, data: memoryview, position: int) -> int:
    if hasattr(os, "pwrite"):
        return os.pwrite(fd, data, position)
    os.lseek(fd, position, os.SEEK_SET)  # Windows; one thread alone has the file
    return os.write(fd, data)


def _read_at(fd: int, count: int, position: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, count, position)
    os.lseek(fd, position, os.SEEK_SET)
    return os.read(fd, count)
