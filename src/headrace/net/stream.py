"""A socket's bytes: what refuses to be a reply, and frames on their way out with as few copies as asyncio allows.

This module knows no requests. Read next: `net.connection`; `wire.frame_reader` for the way in.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from headrace.buffers import Lendable, TlsPipe
from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.records import FrameMemory
from headrace.wire.frame_reader import FrameReader

if TYPE_CHECKING:
    from headrace.net.tls_stream import TlsStream

__all__ = ["FrameWriter", "Inlet", "reply_reader"]

_JOIN_BYTES = 65_536
_PIECE_BYTES = 1_024
_FEW_PARTS = 16  # go out as they are
_GATHERED_BYTES = 2_000_000
_ROOM_BYTES = 4_000_000  # and as much again: the kernel gives a socket twice what it has to gather
_SCARCE_BYTES = 65_536
_MOST_PARTS = 1_024  # IOV_MAX of Linux
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")  # an alert, a handshake


def reply_reader(max_bytes: int, known: bool = False) -> FrameReader:
    """What cuts a broker's bytes into replies.

    Args:
        max_bytes: longest reply that is accepted.
        known: this broker has sent replies before, on another connection.
    """
    def refuse(size: int, first: bytes, begun: bool) -> KafkaException:
        """What is wrong; only a web server's own first line is shown, for other bytes may be anybody's data."""
        if first[:2] in _TLS_RECORDS:
            text = ('the port speaks TLS, this client plaintext: set "security.protocol" to "ssl", "sasl_ssl" with '
                    "SASL")
            # A server that begins with TLS is no plaintext broker, though perhaps in front of one. Else it is damage.
            return ProtocolError(text) if begun else KafkaException(KafkaError(KafkaError._SSL, text, retriable=True))
        if first.startswith(b"HTTP"):
            line = "".join(c if c.isprintable() else " " for c in first.partition(b"\r")[0].decode("ascii", "replace"))
            return ProtocolError(f"this is a web server, not a Kafka broker (it says {line!r}): correct the port, or "
                                 "see to the balancer in front of the brokers")
        if size < 0:
            return ProtocolError(f"a reply of {size} bytes: check that this is the port of a Kafka broker")
        return ProtocolError(f"a reply of {size} bytes is beyond the limit of {max_bytes}: raise "
                             '"receive.message.max.bytes", or check that this is the port of a Kafka broker')

    return FrameReader(max_bytes, memory=FrameMemory, refuse=refuse, begun=known)


class Inlet:
    """Whether the loop is woken when bytes come, and how many the kernel gathers of a large frame before it does.

    A wake-up costs as much as 100 KB. The kernel wakes the loop for less where the socket has no room for more, or
    ends. Only Linux does (decision 0031).

    Args:
        transport: the socket's.
    """

    __slots__ = ("_mark", "_pipe", "_socket", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._mark, self._transport = 0, transport
        self._pipe: TlsPipe | None = transport.get_extra_info("tls_pipe")
        self._socket = None
        if sys.platform == "linux" and transport.get_extra_info("ssl_object") is None:
            self._socket = transport.get_extra_info("socket")

    def follow(self, left: int) -> None:
        """So many bytes of a large frame are still to come; 0 for none."""
        mark = min(left, _GATHERED_BYTES) if left > _SCARCE_BYTES else 1
        if self._socket is None or (mark == 1 and self._mark <= 1):
            return
        try:
            if mark != self._mark:
                if not self._mark:  # the first time: have the kernel make room for what comes while this is read
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _ROOM_BYTES)
                self._mark = mark
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, mark)
            if mark > 1:
                # Now, not when the kernel's timer for it is over: a sender with a small buffer waits for it.
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        except OSError:  # the socket is closed, or the kernel knows no such thing
            self._socket = None

    @property
    def empty(self) -> bool:
        """All that has come was handed over."""
        return self._pipe is None or not self._pipe.unread

    def close(self) -> None:
        """Do not wake the loop: somebody else reads."""
        self._transport.pause_reading()

    def open(self) -> None:
        """Wake the loop again."""
        if not self._transport.is_closing():
            self._transport.resume_reading()


class FrameWriter:
    """The way out of one socket. What the kernel has no room for waits here, uncopied.

    asyncio before Python 3.12 copies what it cannot send at once; later ones do not report that `writelines()` has left
    something, and fail on a connection that is gone. So without TLS the parts of a frame go to the kernel from here,
    in one call, and asyncio gets a small first piece of what is left, and calls back when that is gone.

    Args:
        transport: the socket's. Its protocol calls `resume()` in `resume_writing()`.
    """

    __slots__ = ("_file", "_pipe", "_rest", "_shared", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._rest: list[bytes | memoryview] = []
        self._shared = False  # asyncio has got some bytes and may still have them
        opened = transport.get_extra_info("socket")
        plain = opened is not None and transport.get_extra_info("ssl_object") is None
        self._file = opened.fileno() if plain and hasattr(os, "writev") else -1
        self._pipe: TlsPipe | None = transport.get_extra_info("tls_pipe")
        transport.set_write_buffer_limits(high=0, low=0)

    @property
    def lendable(self) -> Lendable | None:
        """What others may write to past asyncio; None while asyncio has something to write."""
        if self.full:
            return None
        if self._pipe is not None:
            return self._pipe
        return self._file if self._file >= 0 else None

    @property
    def full(self) -> bool:
        """The kernel does not have all that was written."""
        return bool(self._rest or self._transport.get_write_buffer_size())

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        """Write the parts of a frame in order; small neighbours go out together, large ones uncopied."""
        if self._rest:
            self._rest += parts
        elif self._file < 0 or (self._shared and self._transport.get_write_buffer_size()):
            for run in parts if len(parts) == 1 else _runs(parts):
                self._transport.write(run)
        else:
            self._shared = False
            if len(parts) > _FEW_PARTS:
                parts = _runs(parts)
            try:  # as `resume` does, without its frames
                sent = os.writev(self._file, parts)
            except OSError:
                sent = 0
            if sent < sum(map(len, parts)):
                self._rest = _behind(parts, sent)
                self.resume()

    def take_back(self, rest: bytes | None) -> None:
        """Others have written, and the kernel did not take this of it: through TLS it is sealed already."""
        if self._pipe is not None:
            cast("TlsStream", self._transport).take_back(rest)
        elif rest is not None:
            self.write([rest])

    def resume(self) -> bool:
        """Write what waits; False if the kernel has no room for all of it."""
        while self._rest:
            if self._transport.is_closing():  # perhaps since the last piece
                self._rest = []
                break
            self._rest = _behind(self._rest, _send(self._file, self._rest))
            if self._rest:
                first, self._shared = memoryview(self._rest[0]), True
                self._transport.write(first[:_PIECE_BYTES])
                self._rest = _behind(self._rest, min(len(first), _PIECE_BYTES))
                if self._transport.get_write_buffer_size():
                    return False
        return True

    def lost(self) -> None:
        """The socket is gone, and its file descriptor may soon be another's."""
        self._file, self._pipe = -1, None

    def abort(self) -> None:
        """Close the socket, whatever waits."""
        self._transport.abort()


def _send(file: int, parts: Sequence[bytes | memoryview]) -> int:
    try:
        return os.writev(file, parts[:_MOST_PARTS])
    except OSError:  # no room, or the connection is gone: asyncio finds out which
        return 0


def _behind(parts: Sequence[bytes | memoryview], size: int) -> list[bytes | memoryview]:
    """What is left of the parts behind the first `size` bytes."""
    for index, part in enumerate(parts):
        if size < len(part):
            return [memoryview(part)[size:], *parts[index + 1:]]
        size -= len(part)
    return []


def _runs(parts: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
    """Join parts up to a size where a copy is cheaper than a system call."""
    runs: list[bytes | memoryview] = []
    small: list[bytes | memoryview] = []
    size = 0
    for part in parts:
        if size + len(part) > _JOIN_BYTES and small:
            runs.append(b"".join(small))
            small, size = [], 0
        if len(part) > _JOIN_BYTES:
            runs.append(part)
        else:
            small.append(part)
            size += len(part)
    if small:
        runs.append(b"".join(small))
    return runs
