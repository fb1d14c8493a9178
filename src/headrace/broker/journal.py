"""A file of JSON lines: what happened, one line each, read again from the start when the broker begins.

A line is written through to the operating system before what it says is acknowledged; a torn last line is something
that nobody was told of. It knows nothing of what the lines mean. Read next: `broker.offsets`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["Journal"]


class Journal:
    """Lines that outlive the broker.

    Args:
        path: the file; None keeps nothing.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._fd = -1

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

    def begin(self, entries: Iterable[Any]) -> None:
        """Write the file anew, without its history, and go on behind it."""
        if self._path is None:
            return
        draft = self._path.with_suffix(".draft")
        self._fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        self.append(entries)
        os.replace(draft, self._path)

    def append(self, entries: Iterable[Any]) -> None:
        """Write lines through; a full disk leaves the file as it was, so that no line is torn in its middle.

        Raises:
            OSError: the disk refused.
        """
        if self._fd < 0:
            return
        data = memoryview("".join(f"{json.dumps(entry)}\n" for entry in entries).encode())
        size = os.fstat(self._fd).st_size
        try:
            while data:
                data = data[os.write(self._fd, data):]
        except OSError:
            os.ftruncate(self._fd, size)
            raise

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
