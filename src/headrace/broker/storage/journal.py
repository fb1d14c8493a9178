"""A file of JSON lines: what happened, one line each, read again from the start when the broker begins.

A line is written through to the operating system before what it says is acknowledged; a torn last line was
never acknowledged. It knows nothing of what the lines mean. Read next: `broker.coordinators.committed_offsets`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["Journal"]


_LARGEST_HISTORY_BYTES = 32 << 20


class Journal:
    """Lines that outlive the broker.

    Args:
        path: the file; None keeps nothing.
        entries: gives what the lines must say for the present state; history is left out when it grows large.
    """

    def __init__(self, path: Path | None, entries: Callable[[], Iterable[Any]]) -> None:
        self._path = path
        self._entries = entries
        self._fd = -1
        self._history_bytes = 0

    def read(self) -> Iterator[Any]:
        """What the file says, in order; torn lines are left out."""
        if self._path is None or not self._path.exists():
            return
        for line in self._path.read_bytes().split(b"\n")[:-1]:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # a line torn by a sudden end, with a later one behind it
            yield entry

    def begin(self) -> None:
        """Write the file anew, without its history, and go on behind it.

        Raises:
            OSError: the disk refused; the file is as it was.
        """
        if self._path is None:
            return
        draft = self._path.with_suffix(".draft")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        try:
            _write(fd, self._entries())
            os.replace(draft, self._path)
        except OSError:
            os.close(fd)
            raise
        self.close()
        self._fd, self._history_bytes = fd, 0

    def append(self, entries: Iterable[Any]) -> None:
        """Write lines through, which become part of the state after that.

        Raises:
            OSError: the disk refused; the file is as it was.
        """
        if self._fd < 0:
            return
        if self._history_bytes > _LARGEST_HISTORY_BYTES:
            self.begin()
        self._history_bytes += _write(self._fd, entries)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _write(fd: int, entries: Iterable[Any]) -> int:
    """Write lines, all or, on a full disk, none, so that no line is torn in its middle; how many bytes they have."""
    text = memoryview("".join(f"{json.dumps(entry)}\n" for entry in entries).encode())
    size, left = os.fstat(fd).st_size, text
    try:
        while left:
            left = left[os.write(fd, left):]
    except OSError:
        os.ftruncate(fd, size)
        raise
    return len(text)
