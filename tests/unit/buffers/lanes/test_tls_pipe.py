"""A TLS connection that is lent: what waits in plain, what goes over the wire, and who may use the session when."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headrace.buffers.lanes.tls_pipe import pipe_of
from tests.support.quickest import assert_quick

from .ends import TlsEnd, connected, twin_of

PATIENCE_S = 10.0


@pytest.fixture(params=["plain, TLS", "native, TLS"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, Any, TlsEnd]]:
    ours, pipe, theirs = connected(twin_of(request))
    theirs.settimeout(PATIENCE_S)
    yield ours, pipe, theirs
    ours.close()
    theirs.close()


def pulled(pipe: Any, size: int = 1 << 20) -> bytes | None:
    """What is taken as soon as there is something."""
    until = time.monotonic() + PATIENCE_S
    while True:
        pipe.pull()
        taken: bytes | None = pipe.take(size)
        if taken is not None or time.monotonic() > until:
            return taken
        time.sleep(0.001)


def exactly(theirs: TlsEnd, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += theirs.recv(size - len(data))
    return data


def test_what_is_put_waits_until_it_is_pushed_and_then_arrives_in_order(ends: Any) -> None:
    _, pipe, theirs = ends
    pipe.begin_sending()
    assert (pipe.put(b"one "), pipe.put(b"two")) == (4, 3)
    theirs.settimeout(0.02)
    with pytest.raises(TimeoutError):
        theirs.recv(1)
    theirs.settimeout(PATIENCE_S)
    assert pipe.push()
    assert exactly(theirs, 7) == b"one two"
    assert pipe.push()  # nothing to do


def test_what_came_is_pulled_and_taken_in_parts(ends: Any) -> None:
    _, pipe, theirs = ends
    pipe.begin_receiving()
    pipe.pull()
    assert pipe.take(9) is None
    theirs.sendall(b"some bytes")
    assert pulled(pipe, 4) == b"some"
    assert pipe.take(100) == b" bytes"
    assert pipe.take(100) is None


def test_half_a_tls_record_is_nothing_yet(ends: Any) -> None:
    _, pipe, theirs = ends
    pipe.begin_receiving()
    sealed = theirs.sealed(b"whole")
    theirs.socket.sendall(sealed[:9])
    time.sleep(0.01)
    pipe.pull()
    assert pipe.take(9) is None
    assert not pipe.unread
    theirs.socket.sendall(sealed[9:])
    assert pulled(pipe) == b"whole"


def test_what_others_have_not_sent_is_given_back_sealed_and_precedes_what_the_loop_writes(ends: Any) -> None:
    ours, pipe, theirs = ends
    pipe.begin_sending()
    pipe.put(b"queued, ")
    rest = pipe.end_sending()
    assert pipe.put(b"no more") == 0
    assert pipe.push()
    ours.sendall(rest)
    ours.sendall(pipe.seal(b"written"))
    assert exactly(theirs, 15) == b"queued, written"
    pipe.begin_sending()
    assert pipe.end_sending() is None


def test_what_was_opened_and_not_taken_is_given_back(ends: Any) -> None:
    _, pipe, theirs = ends
    pipe.begin_receiving()
    theirs.sendall(b"some bytes")
    assert pulled(pipe, 4) == b"some"
    assert pipe.end_receiving() == b" bytes"
    theirs.sendall(b"later")
    time.sleep(0.01)
    pipe.pull()
    assert pipe.take(9) is None  # the loop receives


def test_the_loop_reads_nothing_while_others_receive(ends: Any) -> None:
    ours, pipe, theirs = ends
    view = memoryview(bytearray(100))
    theirs.sendall(b"bytes")
    time.sleep(0.01)
    pipe.feed(ours.recv(1000))
    assert pipe.unread
    pipe.begin_receiving()
    assert pipe.read_into(view) == 0
    assert pipe.end_receiving() == b""
    assert pipe.read_into(view) == 5
    assert view[:5] == b"bytes"
    assert pipe.read_into(view) == 0


def test_what_the_kernel_did_not_take_is_left_and_no_more_is_put_behind_it(ends: Any) -> None:
    ours, pipe, theirs = ends
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    pipe.begin_sending()
    size, piece = 0, os.urandom(9_000)
    while pipe.put(piece) and size < 50_000_000:
        size += len(piece)
        if not pipe.push():
            break
    assert pipe.put(b"more") == 0
    assert not pipe.push()
    rest = pipe.end_sending()
    assert rest
    ours.setblocking(True)
    writing = threading.Thread(target=ours.sendall, args=(rest,))
    writing.start()
    assert exactly(theirs, size) == piece * (size // len(piece))
    writing.join()


def test_more_than_a_few_frames_are_not_queued(ends: Any) -> None:
    _, pipe, _ = ends
    pipe.begin_sending()
    assert pipe.put(bytes(65_536)) == 65_536
    assert pipe.put(b"x") == 0


@pytest.mark.parametrize("how", ["the socket ends", "TLS says so"])
def test_the_end_is_told_behind_what_came_before_it(ends: Any, how: str) -> None:
    _, pipe, theirs = ends
    pipe.begin_receiving()
    theirs.sendall(b"last")
    if how == "TLS says so":
        with pytest.raises(ssl.SSLWantReadError):
            theirs.session.unwrap()
        theirs.socket.sendall(theirs.outgoing.read())
    else:
        theirs.shutdown(socket.SHUT_WR)
    assert pulled(pipe) == b"last"
    assert pulled(pipe) == b""
    assert pipe.ended == (how == "TLS says so")
    assert pipe.error is None


def test_bytes_that_are_no_tls_are_an_error_and_the_end(ends: Any) -> None:
    _, pipe, theirs = ends
    pipe.begin_sending()
    pipe.begin_receiving()
    theirs.socket.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert pulled(pipe) == b""
    assert isinstance(pipe.error, ssl.SSLError)
    assert pipe.put(b"in vain") == 0


def test_the_loop_is_told_of_bytes_that_are_no_tls(ends: Any) -> None:
    _, pipe, _ = ends
    pipe.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(ssl.SSLError):
        pipe.read_into(memoryview(bytearray(10)))


def test_threads_that_send_and_a_loop_that_reads_share_one_session(ends: Any) -> None:
    """As a connection is that is lent for writing only: nobody gets into another's way, in either direction."""
    ours, pipe, theirs = ends
    count, sent, received = 2_000, list[bytes](), bytearray()
    theirs.settimeout(PATIENCE_S)
    pipe.begin_sending()
    lock = threading.Lock()

    def send(name: int) -> None:
        for number in range(count):
            piece = b"%d %06d\n" % (name, number)
            while True:
                with lock:
                    if pipe.put(piece):
                        sent.append(piece)
                        break
            pipe.push()

    def answer() -> None:
        for number in range(count):
            theirs.sendall(b"%06d\n" % number)

    def read() -> None:
        view = memoryview(bytearray(65_536))
        ours.setblocking(False)
        while len(received) < 7 * count:
            try:
                data = ours.recv(65_536)
            except BlockingIOError:
                continue
            pipe.feed(data)
            while size := pipe.read_into(view):
                received.extend(view[:size])

    threads = [threading.Thread(target=target, args=arguments, daemon=True)
               for target, arguments in ((send, (1,)), (send, (2,)), (answer, ()), (read, ()))]
    for thread in threads:
        thread.start()
    arrived = exactly(theirs, 2 * count * 9)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert arrived == b"".join(sent)
    assert bytes(received) == b"".join(b"%06d\n" % number for number in range(count))


@contextmanager
def stubbed(native: Any, make: Callable[[ssl.MemoryBIO], Any]) -> Iterator[tuple[Any, Any, socket.socket]]:
    """A pipe with the session that is made of what it writes to, that session, and the far end of the socket."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = make(outgoing)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield native.TlsPipe(session, incoming, outgoing, ours.fileno()), session, theirs


class Interrupted:
    """A session in whose `write` the handler of a signal runs."""

    def __init__(self, outgoing: ssl.MemoryBIO) -> None:
        self.handler: Callable[[], object] = bool
        self._outgoing = outgoing

    def write(self, data: bytes) -> int:
        handler, self.handler = self.handler, bool
        handler()
        return self._outgoing.write(data)

    def pending(self) -> int:
        return 0


def test_a_handler_that_sends_while_its_thread_is_at_it_does_not_wait_and_ends_the_way(native: Any) -> None:
    def sent_after_s() -> float:
        told = list[Any]()
        with stubbed(native, Interrupted) as (pipe, session, theirs):
            pipe.begin_sending()
            pipe.begin_receiving()

            def handler() -> None:
                told.append(pipe.put(b"handler"))
                told.append(pipe.push())
                pipe.pull()
                told.append(pipe.take(9))

            session.handler = handler
            began = time.monotonic()
            pipe.put(b"program")
            pipe.push()
            after_s = time.monotonic() - began
            assert told == [7, False, b""]
            assert isinstance(pipe.error, ConnectionAbortedError)
            assert pipe.put(b"more") == 0
            assert pipe.end_sending() is None
            assert theirs.recv(20) == b"programhandler"  # nothing is mixed up
            return after_s

    assert_quick(sent_after_s, 0.5)


class Raising:
    """A session in whose calls the handler of a signal raises: in `write` behind its work, in `read` as well."""

    def __init__(self, outgoing: ssl.MemoryBIO, error: BaseException) -> None:
        self.error: BaseException | None = error
        self._outgoing = outgoing

    def _raise(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error

    def write(self, data: bytes) -> int:
        count = self._outgoing.write(data)
        self._raise()
        return count

    def read(self, size: int, buffer: bytearray) -> int:
        self._raise()
        raise ssl.SSLWantReadError

    def pending(self) -> int:
        return 0


class Alarm(Exception):
    """What a program's handler of SIGALRM raises."""


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Alarm()], ids=["Ctrl-C", "alarm"])
def test_what_a_handler_raises_while_bytes_are_sealed_comes_out_and_no_byte_is_lost(native: Any, error: Any) -> None:
    with stubbed(native, lambda outgoing: Raising(outgoing, error)) as (pipe, _, theirs):
        pipe.begin_sending()
        pipe.put(b"one ")
        with pytest.raises(type(error)):
            pipe.push()
        pipe.put(b"two")
        assert pipe.push()
        assert theirs.recv(20) == b"one two"
        assert pipe.error is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Alarm()], ids=["Ctrl-C", "alarm"])
def test_what_a_handler_raises_while_bytes_are_opened_comes_out_and_ends_the_way(native: Any, error: Any) -> None:
    with stubbed(native, lambda outgoing: Raising(outgoing, error)) as (pipe, _, theirs):
        pipe.begin_receiving()
        theirs.sendall(b"sealed")
        with pytest.raises(type(error)):
            pipe.pull()
        assert isinstance(pipe.error, ConnectionAbortedError)
        assert pipe.take(9) == b""


class Stuck:
    """A session whose calls do not come back until they may: a handler of a signal runs in one, for instance."""

    def __init__(self, outgoing: ssl.MemoryBIO) -> None:
        self.entered, self.may_go = threading.Event(), threading.Event()
        self._outgoing = outgoing

    def write(self, data: bytes) -> int:
        self.entered.set()
        assert self.may_go.wait(PATIENCE_S)
        return self._outgoing.write(data)

    def pending(self) -> int:
        return 0


def test_who_does_not_come_back_holds_up_the_loop_for_a_second_and_then_writes_nowhere(native: Any) -> None:
    """The loop gives the connection up, and the descriptor may soon be another's."""
    with stubbed(native, Stuck) as (pipe, session, theirs):
        pipe.begin_sending()
        pipe.put(b"late")
        pushing = threading.Thread(target=pipe.push)
        pushing.start()
        assert session.entered.wait(PATIENCE_S)
        began = time.monotonic()
        assert pipe.end_sending() is None
        assert 0.9 < time.monotonic() - began < PATIENCE_S
        assert isinstance(pipe.error, ConnectionAbortedError)
        with pytest.raises(ConnectionAbortedError):
            pipe.seal(b"of no use")
        session.may_go.set()
        pushing.join(PATIENCE_S)
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(9)


def test_a_socket_without_tls_has_the_same_calls() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    pipe = pipe_of(ours.fileno())
    pipe.begin_sending()
    pipe.begin_receiving()
    assert (pipe.put(b"out"), pipe.push(), theirs.recv(9)) == (3, True, b"out")
    pipe.pull()
    assert pipe.take(9) is None
    theirs.sendall(b"back")
    assert (pipe.take(2), pipe.take(9)) == (b"ba", b"ck")
    theirs.close()
    assert pipe.take(9) == b""
    assert (pipe.put(b"x"), pipe.end_sending(), pipe.end_receiving()) == (0, None, b"")
    ours.close()
