"""TLS over a plain stream of any loop, with a session that can be lent with its socket (decision 0058).

asyncio keeps the session of its own TLS to itself. This one is asked by the loop like any transport, and by the threads
that send and receive on a lent connection through its `TlsPipe`. It must not know what the bytes mean.
Read next: `headrace.buffers.lanes.tls_pipe`; `net.stream` for frames.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final, cast

from headrace.buffers import TlsPipe

__all__ = ["TlsStream"]

_RECEIVED_BYTES: Final = 262_144


class TlsStream(asyncio.BufferedProtocol, asyncio.Transport):
    """The protocol of a plain transport, and the transport of another protocol.

    Args:
        protocol: what the plain bytes are for.
        context: the TLS settings.
        host: whose certificate is expected.

    Attributes:
        pipe: seals and opens; there from `connection_made` on.
    """

    pipe: TlsPipe
    _below: asyncio.Transport

    def __init__(self, protocol: asyncio.BufferedProtocol, context: ssl.SSLContext, host: str) -> None:
        asyncio.Transport.__init__(self)
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._shaken: asyncio.Future[None] = self._loop.create_future()
        self._view = memoryview(bytearray(_RECEIVED_BYTES))
        self._begun = False  # the protocol knows of this stream
        self._failure: Exception | None = None

    async def begin(self) -> None:
        """Wait for the handshake, then hand the stream to the protocol.

        Raises:
            ssl.SSLError: there is no agreement, or the certificate is not as expected.
            ConnectionError: the other side hung up.
        """
        try:
            await self._shaken
        except BaseException:
            self._below.abort()
            raise
        if self._below.is_closing():
            raise ConnectionResetError("closed right after the TLS handshake")
        self._begun = True
        self._protocol.connection_made(self)
        self._deliver()

    # The protocol of the stream below

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open (called by asyncio)."""
        self._below = cast("asyncio.Transport", transport)  # uvloop's are none by their class
        self.pipe = TlsPipe(self._session, self._incoming, self._outgoing, transport.get_extra_info("socket").fileno())
        self._shake_hands()

    def _shake_hands(self) -> None:
        failure: Exception | None = None
        over = True
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            over = False
        except ssl.SSLError as error:
            failure = error
        if self._outgoing.pending:
            self._below.write(self._outgoing.read())  # also what is wrong, for the broker's log
        if over:
            self._end_handshake(failure)

    def _end_handshake(self, failure: Exception | None) -> None:
        if self._shaken.done():
            return
        if failure is None:
            self._shaken.set_result(None)
        else:
            self._shaken.set_exception(failure)
            self._shaken.exception()  # the attempt to connect may be given up: nobody asks

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes belong (called by asyncio)."""
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have arrived (called by asyncio)."""
        self.pipe.feed(self._view[:nbytes])
        if self._begun:
            self._deliver()
        elif not self._shaken.done():
            self._shake_hands()

    def eof_received(self) -> bool:
        """The other side sends no more (called by asyncio): neither do we."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone (called by asyncio)."""
        self._end_handshake(exc or ConnectionResetError("closed during the TLS handshake"))
        if self._begun:
            self._protocol.connection_lost(self._failure or exc)

    def pause_writing(self) -> None:
        """The kernel takes no more for now (called by asyncio)."""
        if self._begun:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """The kernel has all that was written (called by asyncio)."""
        if self._begun:
            self._protocol.resume_writing()

    def _deliver(self) -> None:
        """Hand over what has come, until somebody else receives."""
        pipe, protocol = self.pipe, self._protocol
        while not self._below.is_closing():
            try:
                count = pipe.read_into(cast("memoryview", protocol.get_buffer(-1)))
            except ssl.SSLError as error:
                self._fail(error)
                return
            if not count:
                if pipe.ended:
                    self._below.close()
                return
            protocol.buffer_updated(count)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._below.abort()

    # The transport of the protocol above

    def write(self, data: Any) -> None:
        """Seal and write bytes."""
        if self._below.is_closing():
            return
        try:
            self._below.write(self.pipe.seal(data))
        except ssl.SSLError as error:
            self._fail(error)

    def take_back(self, sealed: bytes | None) -> None:
        """Others have used the session, and this has to go over the wire now."""
        if sealed and not self._below.is_closing():
            self._below.write(sealed)
        if self.pipe.error is not None:
            self._fail(self.pipe.error)

    def pause_reading(self) -> None:
        """Do not wake the loop: somebody else receives."""
        self._below.pause_reading()

    def resume_reading(self) -> None:
        """Wake the loop again, also for what has come and was not opened; the end may have been seen already."""
        self._below.resume_reading()
        if self.pipe.error is not None:
            self._fail(self.pipe.error)
        elif self.pipe.ended:
            self._below.close()
        elif self.pipe.unread:
            self._loop.call_soon(self._deliver)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known of the connection."""
        own = {"ssl_object": self._session, "tls_pipe": self.pipe}
        return own[name] if name in own else self._below.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """True when nothing more will be written."""
        return self._below.is_closing()

    def get_write_buffer_size(self) -> int:
        """Bytes that the kernel does not have yet."""
        return self._below.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """When the protocol is told to pause."""
        self._below.set_write_buffer_limits(high, low)

    def close(self) -> None:
        """Close the socket when all is written."""
        self._below.close()

    def abort(self) -> None:
        """Close the socket, whatever waits."""
        self._below.abort()
