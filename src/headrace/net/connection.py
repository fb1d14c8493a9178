"""One broker's connection: dialled when it is first needed, dialled again with backoff, closed when idle.

Out: `submit()` writes a request when the conversation is open and the kernel has room; else it waits, uncopied.
Back: `buffer_updated()` cuts the bytes into frames, matches each with its request and hands it to the driver.

It must not know what the requests mean. Read next: `machines.cluster.in_flight` for the order of replies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import cast

from headrace.errors import KafkaError, KafkaException
from headrace.machines.backoff import backoff_s
from headrace.machines.cluster.handshake import FIRST_VERSION, HandshakeRestartError
from headrace.machines.cluster.in_flight import LAST_CORRELATION_ID, ClientRequest, InFlightRequests
from headrace.machines.machine import Send, because
from headrace.net.errors import (
    CANCELLED,
    Phase,
    connection_error,
    history,
    is_garbled,
    no_memory,
    no_reply,
    request_error,
    setup_timeout,
)
from headrace.net.settings import (
    CONNECTION_TRANSITIONS,
    Borrower,
    ConnectionOwner,
    ConnectionSettings,
    ConnectionState,
    Reader,
)
from headrace.net.setup import ConnectionSetup
from headrace.net.stream import FrameWriter, Inlet, reply_reader
from headrace.net.timers import Timers
from headrace.types.records import NodeAddress

__all__ = ["Connection"]

_LENT_S = 30.0
"""The longest time for which it is lent: what is decided once for many requests is looked at as often as this."""
_LATE_S = 2.0
"""What may go to any broker waits no longer than this for a connection to open."""


class Connection(asyncio.BufferedProtocol):
    """The way to one broker, over as many sockets as it takes, one after the other.

    Args:
        node: the broker.
        settings: what all connections share.
        owner: receives replies and errors.

    Attributes:
        state: where it is in its life.
        failures: attempts to open it that failed in a row.
        last_error: why it is not open; None while it is, or before the first attempt.
        features: finalized feature levels, as the broker gave them.
        pipeline: the requests in flight.
        dialling: the task that opened it last, or is at it.
        late: it is being opened for longer than others need.
    """

    def __init__(self, node: NodeAddress, settings: ConnectionSettings, owner: ConnectionOwner) -> None:
        self.node = node
        self._name = f"{node.host}:{node.port}"
        self.state = CONNECTION_TRANSITIONS.first
        self.failures = 0
        self.last_error: KafkaError | None = None
        self.late = False
        self.features: dict[str, int] = {}
        self._settings, self._owner, self._traffic = settings, owner, settings.traffic.of(node)
        self._traffic.connections.add(self)
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[ClientRequest] = deque()
        self.pipeline = InFlightRequests(settings.client_id)
        self._opening = ConnectionSetup(settings, node, FIRST_VERSION, self)
        self._outlet: FrameWriter | None = None
        self._reader = reply_reader(settings.max_reply_bytes)
        self._inlet: Inlet | None = None
        self.dialling: asyncio.Task[None] | None = None
        self._closing_for: KafkaException | None = None
        self._failing_since = self._used_at = settings.clock()
        self._alarms, self._expires_at = Timers(self._loop), float("inf")
        self._borrower: Borrower | None = None
        self._lent = False  # the borrower may write now, or the reader reads
        self._lent_to: Reader | None = None
        self._replies_lent = False  # the borrower has what comes as well
        self._proved = self._paused = False  # on the present socket a request was answered; the kernel has no room
        self._outdated = False  # the credentials have changed since it was dialled
        self._throttled_until = 0.0  # until then the broker reads nothing from the present socket

    @property
    def queued(self) -> tuple[int, int]:
        """Requests waiting, and in flight."""
        borrowed = 0
        if self._lent:
            borrowed = 1 if self._borrower is None else self._borrower.in_flight
        return len(self._waiting), len(self.pipeline) + borrowed

    @property
    def load(self) -> int:
        """Requests waiting or in flight."""
        return sum(self.queued)

    def _go(self, trigger: str) -> None:
        self.state = CONNECTION_TRANSITIONS.go(self.state, trigger)

    # Out: from the driver to the socket.

    def submit(self, call: ClientRequest) -> None:
        """Write a request now, or as soon as the connection is ready. The owner receives its reply or error."""
        if self._lent:
            self.take_back()
        outlet = self._outlet
        if self.state is not ConnectionState.READY or self._paused or outlet is None:
            self._wait(call)
            return
        send = call.send
        try:
            version = self._opening.versions.get((type(send.request), send.max_version))
            send.version = self._opening.version(send) if version is None else version
            parts = self.pipeline.push(call)
        except KafkaException as error:
            self._owner.on_error(call, error.error)
            return
        call.written_at = self._settings.clock()
        outlet.write(parts)
        self._traffic.on_sent(send.request, sum(map(len, parts)))
        if call.written_at < self._throttled_until:
            call.wait_longer(self._throttled_until - call.written_at)
        if call.deadline + call.grace_s < self._expires_at:
            self._expire_by(call.reply_by())
        if not send.expects_reply and not self._paused:
            self._settle()

    def _wait(self, call: ClientRequest) -> None:
        self._waiting.append(call)
        self._expire_by(call.deadline)
        if self.state is ConnectionState.IDLE:
            self._dial()

    def withdraw(self, call: ClientRequest) -> KafkaError:
        """Stop waiting for a call; one that is written stays in flight. Returns why it did not get its reply."""
        if call.correlation_id >= 0:
            text = f"{self._name}: no reply to {type(call.send.request).__name__}{because(self.last_error)}"
            return KafkaError(KafkaError._TIMED_OUT, text, maybe_applied=True)
        with suppress(ValueError):  # the connection was lost in this very turn, and nobody took its error
            self._waiting.remove(call)
        return self.last_error or KafkaError(KafkaError._TIMED_OUT, f"{self._name}: {self.state.value}")

    def _settle(self) -> None:
        """Requests that get no reply are done as soon as the kernel has them."""
        for call in self.pipeline.sent():
            self._owner.on_reply(call, None)

    # Lending: the threads that produce write by themselves while nothing of the loop is under way (decision 0027).

    def lend(self, borrower: Borrower) -> bool:
        """Let somebody else write requests here, always when no other is under way, until the connection is lost.

        Returns:
            False if that cannot be: the socket is not open, or the loop has something to write.
        """
        if self.state is not ConnectionState.READY or self._outlet is None or self._outlet.lendable is None:
            return False
        assert self._borrower in (None, borrower), "one borrower has it until it is lost"
        self._borrower = borrower
        self._lend_again()
        return True

    def take_back(self) -> None:
        """From now on only the loop reads and writes; what others wrote is in flight as any other request."""
        if not self._lent:
            return
        self._lent = False
        if self._borrower is None:
            self._take_back_reading()
            return
        self.take_back_replies()
        self.pipeline.next_id, calls, rest = self._borrower.stop()
        for call, size_bytes in calls:
            self.pipeline.in_flight.append(call)
            self._traffic.on_sent(call.send.request, size_bytes)
            self._expire_by(call.reply_by())
        if self._outlet is not None:
            self._outlet.take_back(rest)

    def lend_replies(self) -> bool:
        """Let the borrower have what comes, until that or the connection is taken back (decision 0053).

        Returns:
            False if that cannot be: it does not have the connection, or a part of a reply has come.
        """
        if (not self._lent or self._borrower is None or self._replies_lent or self._inlet is None
                or self._reader.free is None or not self._inlet.empty):
            return False
        self._inlet.close()
        self._replies_lent = True
        self._borrower.start_reading()
        return True

    def take_back_replies(self) -> None:
        """What comes is the loop's again, and what has come meanwhile is counted; the borrower may still write."""
        if not self._replies_lent:
            return
        assert self._borrower is not None
        self._replies_lent = False
        data = self._borrower.stop_reading()
        self.count_replies()
        self._read_again(data)

    def count_replies(self) -> None:
        """Count what the borrower has taken."""
        assert self._borrower is not None
        answered = self._borrower.answered()
        if answered:
            self._used_at = answered[-1].answered_at
            self._traffic.on_exchanges(self._borrower.request_name, answered)

    def lend_reading(self, reader: Reader, send: Send) -> bool:
        """Let somebody else take the reply to the only request in flight, and send what follows (decision 0052).

        Returns:
            False if that cannot be: this is not the only request, or its reply has begun to come.
        """
        if (self._lent or self._borrower is not None or self.state is not ConnectionState.READY or self._paused
                or self._outlet is None or self._inlet is None or self._waiting
                or len(self.pipeline.in_flight) != 1 or self.pipeline.in_flight[0].send is not send
                or self._reader.free is None or not self._inlet.empty or (lent := self._outlet.lendable) is None):
            return False
        self._expire_by(self._settings.clock() + _LENT_S)
        call = self.pipeline.in_flight.popleft()
        self._inlet.close()
        self._lent, self._lent_to = True, reader
        reader.start(lent, call)
        return True

    def _take_back_reading(self) -> None:
        assert self._lent_to is not None
        reader, self._lent_to = self._lent_to, None
        taken = reader.stop()
        call = taken.call
        self.pipeline.next_id = 0 if call.correlation_id == LAST_CORRELATION_ID else call.correlation_id + 1
        self.pipeline.in_flight.append(call)
        self._used_at = call.written_at
        self._expire_by(call.reply_by())
        self._traffic.on_taken_back(reader.request_name, taken.exchanges, taken.sent_bytes, taken.reply_bytes)
        if self._outlet is not None:
            self._outlet.take_back(taken.rest)
        self._read_again(taken.data)

    def _read_again(self, data: bytes) -> None:
        """The loop reads again. These bytes have come: they are in front of what it receives, and in a step alone."""
        if self._outlet is None or self._inlet is None:
            return
        if data:
            self._loop.call_soon(self._on_left_over, self._outlet, data)
        self._inlet.open()

    def _on_left_over(self, outlet: FrameWriter, data: bytes) -> None:
        """Bytes that came while the connection was lent, and were not taken."""
        left = memoryview(data)
        while left and self._outlet is outlet:  # still the same socket
            buffer = self.get_buffer(-1)
            count = min(len(left), len(buffer))
            buffer[:count] = left[:count]
            left = left[count:]
            self.buffer_updated(count)

    def _lend_again(self) -> None:
        """Let the borrower write if nothing else is under way."""
        if (self._lent or self._borrower is None or self.pipeline or self._waiting or self._paused
                or self.state is not ConnectionState.READY or self._outlet is None
                or (lent := self._outlet.lendable) is None):
            return
        now = self._settings.clock()
        self._expire_by(now + _LENT_S)  # sees to replies that do not come; nothing is written behind it
        self._lent = True
        self._borrower.start(lent, self.pipeline.next_id, self._expires_at)

    def pause_writing(self) -> None:
        """The kernel takes no more for now (called by asyncio)."""
        self._paused = True

    def resume_writing(self) -> None:
        """The kernel has all that was written (called by asyncio): go on with what waits."""
        self._paused = self._outlet is None or not self._outlet.resume()
        if not self._paused:
            self._settle()
        while self._waiting and self.state is ConnectionState.READY and not self._paused:
            self.submit(self._waiting.popleft())

    # Opening: dial, then run the handshake until it is ready.

    def _dial(self, first_version: int = FIRST_VERSION) -> None:
        self._go("dial")
        self._closing_for, self._proved, self._outdated, self._throttled_until = None, False, False, 0.0
        self._used_at = self._settings.clock()
        self._traffic.connects += 1
        self._reader = reply_reader(self._settings.max_reply_bytes, known=self._traffic.rx > 0)
        self._opening = ConnectionSetup(self._settings, self.node, first_version, self)
        self.dialling = self._loop.create_task(self._connect())
        self.dialling.add_done_callback(self._on_dialled)
        self._alarms.set(self._on_setup_timeout, self._settings.setup_timeout_s)
        self._alarms.set(self._on_late, _LATE_S)

    def log_in_anew(self) -> None:
        """There are other credentials: dial at once, and forget it where those before are refused."""
        if self.state is ConnectionState.BACKOFF:
            self._alarms.cancel(self._on_backoff_over)
            self._on_backoff_over()
        else:
            self._outdated = True

    async def _connect(self) -> None:
        try:
            await self._opening.prepare()
            await self._settings.connector(self, self.node)
        except Exception as error:  # whatever the resolver, the socket or TLS raise ends this attempt
            if self.state is ConnectionState.DIALLING:
                self._lost(error)

    def _on_dialled(self, dialled: asyncio.Task[None]) -> None:
        """A dial is over. Others than this connection may cancel it, with all tasks of their loop: dial again later."""
        if dialled is self.dialling and dialled.cancelled() and self.state is ConnectionState.DIALLING:
            self._lost(CANCELLED)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open (called by asyncio)."""
        stream = cast("asyncio.Transport", transport)  # uvloop's are none by their class
        self._go("connected")
        self._outlet, self._inlet, self._paused = FrameWriter(stream), Inlet(stream), False
        self._opening.begin(self._outlet)

    def on_open(self) -> None:
        """The handshake is done (called by the opening): write what has waited."""
        self._go("opened")
        self.features = self._opening.handshake.features
        self._alarms.cancel(self._on_setup_timeout)
        self._alarms.cancel(self._on_late)
        self.late = False
        self._on_idle()
        if not self._paused:
            self.resume_writing()
        self._owner.on_open()

    def on_pause(self) -> None:
        """SASL is renewed (called by the opening): what is written is still answered, the rest waits."""
        self.take_back()
        self._go("renew")
        self._alarms.set(self._on_setup_timeout, self._settings.setup_timeout_s)

    # Back: from the socket to the driver.

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes belong (called by asyncio)."""
        return self._reader.free or self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have arrived (called by asyncio): hand out the replies that are now complete."""
        if self._lent and self._borrower is not None:
            free = self._reader.free
            if free is not None and (answered := self._borrower.take(free, nbytes)):
                self._used_at = answered[-1].answered_at
                self._traffic.on_exchanges(self._borrower.request_name, answered)
                return
            self.take_back()
        pipeline = self.pipeline
        if pipeline.in_flight or pipeline.unflushed or self._waiting:
            self._used_at = self._settings.clock()
        whole = self._reader.whole(nbytes)
        try:
            for frame in self._reader.advance(nbytes) if whole is None else (whole,):
                if self.state is ConnectionState.READY or (self.state is ConnectionState.OPENING and pipeline):
                    call, reply = pipeline.take(frame)
                    if not self._proved:
                        self._prove()
                    now = self._settings.clock()
                    if throttled_s := self._traffic.answered(call, reply, frame, now):
                        self._throttled_until = now + throttled_s
                        pipeline.wait_longer(throttled_s)
                    self._owner.on_reply(call, reply)
                elif self.state is ConnectionState.OPENING:
                    self._opening.on_frame(frame)
        except KafkaException as error:
            self.close(error)
        except MemoryError:
            self.close(no_memory())
        if whole is None and self._inlet is not None:
            self._inlet.follow(self._reader.left)
        if self._borrower is not None:
            if self._borrower.writes:
                self._lend_again()
            else:
                self._end_lending()
        self._owner.on_input()

    def _prove(self) -> None:
        """The first reply is here. A port that wants SASL lets us come this far and then hangs up."""
        self._proved, self.failures, self.last_error = True, 0, None
        self._owner.on_ready()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone (called by asyncio)."""
        self._end_lending()
        if self._outlet is not None:
            self._outlet.lost()
        self._outlet = self._inlet = None
        self._traffic.disconnects += 1
        cancelled = self.dialling is not None and self.dialling.cancelled()  # asyncio has closed what it had opened
        self._lost(self._closing_for or (CANCELLED if cancelled else exc))

    # Ending: one way out, whatever the cause.

    def _end_lending(self) -> None:
        self.take_back()
        if self._borrower is not None:
            borrower, self._borrower = self._borrower, None
            borrower.end()

    def close(self, reason: KafkaException) -> None:
        """Close the socket, if there is one, and fail all that waits for it."""
        if self.state is ConnectionState.CLOSING:
            # Its socket is gone in a moment: for the first reason, unless that was to dial anew.
            self._outdated = False
            if isinstance(self._closing_for, HandshakeRestartError):
                self._closing_for = reason
            return
        self._end_lending()
        self._closing_for = reason
        self._opening.stop()
        if self._outlet is not None:
            self._go("close")
            self._outlet.abort()
            return
        if self.dialling is not None:
            self.dialling.cancel()
        self._lost(reason)

    def _lost(self, cause: BaseException | None) -> None:
        phase, garbled = self._opening.phase(self._proved or self._reader.pending), is_garbled(cause)
        quiet = self._opening.handshake.ready and not self.load and not garbled
        self._opening.stop()
        self._alarms.cancel_all()
        self._go("lost")
        self.late = False
        self._expires_at = float("inf")
        if isinstance(cause, HandshakeRestartError):
            self._dial(first_version=0)
            return
        if self._outdated and phase in (Phase.SASL, Phase.RENEWAL) and not self.pipeline:
            self._dial()
            return
        if garbled or not (phase is Phase.OPEN or quiet):
            self._back_off()
        error = connection_error(cause, self._name, phase, self._settings.protocol,
                                 history=history(self.failures, self._settings.clock() - self._failing_since))
        calls, self._waiting = (*self.pipeline.drain(), *self._waiting), deque()
        for call in calls:
            self._owner.on_error(call, request_error(error, cause, written=call.correlation_id >= 0))
        if cause is CANCELLED:
            pass
        elif not quiet:
            self.last_error = request_error(error, cause, written=False)
            self._owner.on_lost(self.node, error)
        elif self._closing_for is None:
            self._owner.on_hung_up()
        self._owner.on_input()

    def _back_off(self) -> None:
        self.failures += 1
        if self.failures == 1:
            self._failing_since = self._settings.clock()
        first_s, limit_s = self._settings.backoff_s, self._settings.backoff_max_s
        self._go("fail")
        self._alarms.set(self._on_backoff_over, backoff_s(self.failures, first_s, limit_s, self._settings.jitter()))

    def _on_backoff_over(self) -> None:
        if self.state is not ConnectionState.BACKOFF:  # a dial that was given up made a socket all the same
            return
        self._go("rested")
        if self._waiting:
            self._dial()

    def _on_setup_timeout(self) -> None:
        if self.pipeline:  # SASL is renewed behind a request that the broker holds back
            self._alarms.set(self._on_setup_timeout, self._settings.setup_timeout_s)
        else:
            self.close(setup_timeout(self._settings.setup_timeout_s, self.state.value))

    def _on_late(self) -> None:
        self.late = True
        self.offer()

    def doubt(self, since: float, reason: KafkaException) -> None:
        """The broker says nothing on another connection: this one may be as dead, unless something has come since.

        What a broker holds back for minutes, as JoinGroup, would be waited for that long.
        """
        self.take_back()
        if self.state is ConnectionState.READY and self._used_at < since:
            self.close(reason)

    def offer(self) -> None:
        """Others may have what waits here."""
        self._owner.on_late(tuple(self._waiting))

    def _on_idle(self) -> None:
        self.take_back()
        left_s = self._used_at + self._settings.idle_s - self._settings.clock()
        if left_s <= 0 and not self.load and self.state is ConnectionState.READY:
            self.close(KafkaException(KafkaError(KafkaError._TRANSPORT, "closed because it was not used")))
        else:
            self._alarms.set(self._on_idle, max(left_s, 0.1))

    def _expire_by(self, when: float) -> None:
        if when < self._expires_at:
            self._expires_at = when
            self._alarms.set(self._on_expiry, when - self._settings.clock())

    def _on_expiry(self) -> None:
        self.take_back()
        now, self._expires_at = self._settings.clock(), float("inf")
        for call in [call for call in self._waiting if call.deadline <= now]:
            why = self.withdraw(call).str()
            self._owner.on_error(call, KafkaError(
                KafkaError._TIMED_OUT, f"not sent within {call.send.timeout_s:g} s: {why}"))
        overdue = self.pipeline.overdue(now)
        if overdue is not None:
            reason = no_reply(overdue, self.last_error)
            self.close(reason)
            self._owner.on_silence(self.node, overdue.written_at, reason)
        else:
            left = [call.deadline for call in self._waiting] + [self.pipeline.deadline() or float("inf")]
            self._expire_by(min(left))
        self._owner.on_input()
