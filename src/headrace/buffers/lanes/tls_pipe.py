"""A TLS connection without its socket, so that it can be lent with it (decision 0058). The plain twin.

A session of OpenSSL is for one thread at a time, and its calls let other threads run. What must be one step, to send a
request or to take a reply, therefore touches only what waits here in plain: bytes that are to be sealed, and bytes that
were opened. To seal, to open and to use the socket is another step, under this object's lock, which anybody may do.

It must not know what the bytes mean. Read next: `headrace.net.tls_stream`, `headrace.buffers.lanes.direct_lane`.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from typing import Any, Final

__all__ = ["Lendable", "SocketPipe", "TlsPipe", "pipe_of"]

_MOST_QUEUED: Final = 65_536
_PIECE: Final = 16_384


class TlsPipe:
    """What is to be sent is sealed here, and what came is opened.

    The loop feeds and reads, and seals what it writes. While the connection is lent, others do so with the socket.

    Args:
        session: the session, behind its handshake when it is used.
        incoming, outgoing: the memory that the session reads from and writes to.
        file: descriptor of the socket.

    Attributes:
        file: as given.
        ended: the other side has said that it sends no more.
        error: what the session failed of, or None. It is of no use then.
    """

    __slots__ = ("_incoming", "_inside", "_lock", "_outgoing", "_over", "_queued", "_receives", "_sends", "_session",
                 "_unsent", "ended", "error", "file")

    def __init__(self, session: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, file: int) -> None:
        self._session: Any = getattr(session, "_sslobj", session)  # without a frame of Python for each call
        self._incoming, self._outgoing, self.file = incoming, outgoing, file
        self._lock = threading.Lock()
        self._receives = self._sends = False  # others than the loop do
        self._queued, self._inside = bytearray(), bytearray()
        self._unsent = b""
        self._over = False  # nothing more will be pulled
        self.ended = False
        self.error: Exception | None = None

    # The loop's

    def feed(self, data: memoryview | bytes) -> None:
        """These bytes came over the wire."""
        with self._lock:
            self._incoming.write(data)

    def read_into(self, view: memoryview) -> int:
        """Open what has come, as much as there is room for: how many bytes; 0 for none, or while others receive.

        Raises:
            ssl.SSLError: it cannot be opened.
        """
        filled = 0
        with self._lock:
            while filled < len(view) and not self._receives and self._unread():
                try:
                    count = self._session.read(len(view) - filled, view[filled:])
                except ssl.SSLWantReadError:
                    break
                if not count:
                    self.ended = True
                    break
                filled += count
        return filled

    def seal(self, data: bytes | bytearray | memoryview) -> bytes:
        """What goes over the wire for these bytes.

        Raises:
            ssl.SSLError: it cannot be had.
        """
        with self._lock:
            self._session.write(data)
            return self._outgoing.read()

    @property
    def unread(self) -> bool:
        """Something has come that `read_into` would look at."""
        with self._lock:
            return self._unread()

    def _unread(self) -> bool:
        return bool(self._incoming.pending or self._session.pending()) and not self.ended

    # Lent

    def begin_sending(self) -> None:
        """Others send, by `put` and `push`."""
        self._sends = True

    def end_sending(self) -> bytes | None:
        """The loop sends again: what has to go over the wire before anything else; None for nothing."""
        with self._lock:
            self._sends = False
            try:
                self._seal_queued()
            except Exception as error:
                self.error = error
            unsent, self._unsent = self._unsent + self._outgoing.read(), b""
            return unsent or None

    def begin_receiving(self) -> None:
        """Others receive, by `pull` and `take`. Nothing is unread."""
        self._receives, self._over = True, False

    def end_receiving(self) -> bytes:
        """The loop receives again: what was opened and not taken."""
        with self._lock:
            self._receives = False
            inside = bytes(self._inside)
            self._inside.clear()
            return inside

    def put(self, data: bytes) -> int:
        """Queue bytes for `push`: all of them or, where that cannot be, none; how many."""
        if not self._sends or self._unsent or self.error is not None or len(self._queued) + len(data) > _MOST_QUEUED:
            return 0
        self._queued += data
        return len(data)

    def push(self) -> bool:
        """Seal and send what is queued. False if the loop has to do the rest."""
        with self._lock:
            if not self._sends:
                return True
            try:
                self._seal_queued()
            except ssl.SSLError as error:
                self.error = error
                return False
            data = self._unsent + self._outgoing.read()
            self._unsent = data[SocketPipe(self.file).put(data):]
            return not self._unsent

    def pull(self) -> None:
        """Receive and open what is there, for `take`."""
        with self._lock:
            if self._receives and not self._inside:
                data = SocketPipe(self.file).take(_PIECE)
                try:
                    if data:
                        self._incoming.write(data)
                    self._open()
                except ssl.SSLError as error:
                    self.error = error
                self._over = data == b"" or self.ended or self.error is not None

    def take(self, size: int) -> bytes | None:
        """What was pulled, at most so many bytes; if there is nothing, None for not yet, empty at the end."""
        taken = bytes(self._inside[:size])
        del self._inside[:size]
        return taken or (b"" if self._over else None)

    def _open(self) -> None:
        while self._unread():
            try:
                data = self._session.read(_PIECE)
            except ssl.SSLWantReadError:
                return
            self.ended = not data
            self._inside += data

    def _seal_queued(self) -> None:
        if self._queued:
            data = bytes(self._queued)
            self._queued.clear()
            self._session.write(data)


class SocketPipe:
    """A connection without TLS, with the same calls: nothing waits in between.

    Args:
        file: descriptor of the socket.
    """

    __slots__ = ("file",)

    def __init__(self, file: int) -> None:
        self.file = file

    def begin_sending(self) -> None:
        """Nothing is to be done."""

    def end_sending(self) -> None:
        """Nothing is left here."""

    def begin_receiving(self) -> None:
        """Nothing is to be done."""

    def end_receiving(self) -> bytes:
        """Nothing is left here."""
        return b""

    def put(self, data: bytes) -> int:
        """Send: how many bytes are on their way; 0 where none can be."""
        with self._shared() as shared:
            try:
                return shared.send(data, socket.MSG_DONTWAIT)
            except OSError:  # no room, or the connection is gone: whoever comes next finds out
                return 0

    def push(self) -> bool:
        """True: all that was put is sent, as far as it can be."""
        return True

    def pull(self) -> None:
        """Nothing is to be done: `take` receives."""

    def take(self, size: int) -> bytes | None:
        """What has come, at most so many bytes: None for nothing yet, empty at the end or where the socket is gone."""
        with self._shared() as shared:
            try:
                return shared.recv(size, socket.MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                return None
            except OSError:
                return b""

    def _shared(self) -> socket.socket:
        return socket.socket(fileno=os.dup(self.file))


Lendable = int | TlsPipe
"""A connection as it is lent: the descriptor of its socket, or what is between that and the plain bytes."""


def pipe_of(lent: Lendable) -> SocketPipe | TlsPipe:
    """What sends and receives on a connection that is lent."""
    return SocketPipe(lent) if isinstance(lent, int) else lent
