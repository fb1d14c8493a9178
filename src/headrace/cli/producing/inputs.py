"""Files and standard input as chunks of bytes.

A file is read directly. Everything that can keep its reader waiting is read on a thread, so that the main thread goes
on serving reports and notices Ctrl-C. What has come is handed on at once: no wait for a chunk to be full.
"""

from __future__ import annotations

import os
import queue
import stat
import sys
import threading
from collections.abc import Callable, Iterator

__all__ = ["ProduceInput", "open_input"]

_CHUNK_BYTES = 1 << 20
_AHEAD = 4  # chunks
_SLICE_S = 0.05


class ProduceInput:
    """An open input.

    Args:
        name: for the user.
        descriptor: open file descriptor; closed with the input unless it is that of standard input.

    Attributes:
        size: bytes of a file, None when that is not known.
        is_terminal: somebody types.
    """

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(21, "Is a directory: name the files in it")
        self._is_file = stat.S_ISREG(status.st_mode)
        self.size = status.st_size if self._is_file else None
        self.is_terminal = os.isatty(descriptor)

    def chunks(self, idle: Callable[[], None]) -> Iterator[bytes]:
        """All bytes.

        Args:
            idle: called again and again while there is nothing; what it raises ends the reading.

        Raises:
            OSError: it cannot be read.
        """
        if self._is_file:
            while chunk := os.read(self._descriptor, _CHUNK_BYTES):
                yield chunk
            return
        ready: queue.Queue[bytes | OSError] = queue.Queue(_AHEAD)
        threading.Thread(target=self._read_ahead, args=(ready,), name="headrace-input", daemon=True).start()
        while True:
            try:
                found = ready.get(timeout=_SLICE_S)
            except queue.Empty:
                idle()
                continue
            if isinstance(found, OSError):
                raise found
            if not found:
                return
            yield found

    def _read_ahead(self, ready: queue.Queue[bytes | OSError]) -> None:
        try:
            while chunk := os.read(self._descriptor, _CHUNK_BYTES):
                ready.put(chunk)
            ready.put(b"")
        except OSError as error:
            ready.put(error)

    def close(self) -> None:
        """Close a file. A pipe is left alone: the thread may be reading it."""
        if self._is_file and self._descriptor > 2:
            os.close(self._descriptor)


def open_input(name: str) -> ProduceInput:
    """Open a file, or standard input for ``-``.

    Raises:
        OSError: it cannot be opened.
    """
    if name == "-":
        if sys.stdin is None:
            raise OSError(9, "standard input is closed")
        return ProduceInput("stdin", sys.stdin.fileno())
    descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        return ProduceInput(name, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
