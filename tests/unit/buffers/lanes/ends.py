"""Two ends of a connection for the tests of lanes: plain, and with TLS, whose near end is lent as a `TlsPipe`."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import pytest

from tests.support.tls import tls_contexts
from tests.support.twins import Twin

__all__ = ["WAYS", "TlsEnd", "connected", "twin_of"]


WAYS = [f"{kind}, {way}" for kind in ("plain", "native") for way in ("no TLS", "TLS")]


def twin_of(request: pytest.FixtureRequest) -> Any:
    """The twin of a fixture with the parameters `WAYS`: its lanes are lent sockets, or connections with TLS."""
    kind, _, way = request.param.partition(", ")
    return Twin(request.param, {**vars(request.getfixturevalue(kind)), "over_tls": way == "TLS"})


class TlsEnd:
    """The far end, with as much of a socket's calls as the tests need.

    Attributes:
        socket: below the TLS.
        session, incoming, outgoing: of the far end.
    """

    def __init__(self, below: socket.socket) -> None:
        self.socket = below
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = tls_contexts()[1].wrap_bio(self.incoming, self.outgoing, server_side=True)
        self._opened = bytearray()
        self.setblocking, self.settimeout, self.fileno = below.setblocking, below.settimeout, below.fileno
        self.shutdown = below.shutdown

    def sealed(self, data: bytes) -> bytes:
        """The bytes as they go over the wire."""
        self.session.write(data)
        return self.outgoing.read()

    def sendall(self, data: bytes) -> None:
        self.socket.sendall(self.sealed(data))

    def recv(self, size: int) -> bytes:
        while not self._opened:
            data = self.socket.recv(1 << 20)
            if not data:
                return b""
            self.incoming.write(data)
            try:
                while self.incoming.pending or self.session.pending():
                    self._opened += self.session.read(1 << 20)
            except ssl.SSLWantReadError:
                pass
        taken = bytes(self._opened[:size])
        del self._opened[:size]
        return taken

    def close(self) -> None:
        self.socket.close()


def connected(twin: Any) -> tuple[socket.socket, Any, Any]:
    """The near socket, what is lent of it, and the far end. TCP: other kinds take a frame whole or not at all."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs = listener.accept()[0]
    if not getattr(twin, "over_tls", False):
        ours.setblocking(False)
        return ours, ours.fileno(), theirs
    end = TlsEnd(theirs)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = tls_contexts()[0].wrap_bio(incoming, outgoing, server_hostname="localhost")
    for _ in range(4):
        for each in (session, end.session):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                pass
        end.incoming.write(outgoing.read())
        incoming.write(end.outgoing.read())
    assert session.version() == end.session.version() == "TLSv1.3"
    ours.setblocking(False)
    return ours, twin.TlsPipe(session, incoming, outgoing, ours.fileno()), end
