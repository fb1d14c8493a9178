"""The requests in flight on one connection: a broker answers them in the order in which it received them.

Those that get no answer (acks=0) are in flight until the kernel has their bytes.

A reply that is not the next one expected means that the stream is broken, and the connection must be closed.
A request that is overdue closes the connection as well, because every later reply would have to wait behind it.

This module knows no sockets: it makes and reads frames. Read next: `net.connection`, which moves them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from headrace.errors import KafkaError, ProtocolError
from headrace.machines.machine import Send
from headrace.slotted import slotted
from headrace.wire.frame import decode_answer, encode_request
from headrace.wire.schema import Struct

__all__ = ["LAST_CORRELATION_ID", "ClientRequest", "Caller", "InFlightRequests"]

LAST_CORRELATION_ID = 2**31 - 1
"""After it comes 0."""


class Caller(Protocol):
    """Receiver of a reply or error: a machine, or a one-shot call."""

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """The reply came."""
        ...

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No reply will come."""
        ...


@slotted(eq=False)
class ClientRequest:
    """A request on its way: its sender, and until when it may wait.

    Attributes:
        caller: receives the reply or the error, exactly once.
        send: the request.
        deadline: monotonic seconds; a request that is not yet written fails then.
        grace_s: seconds beyond the deadline before a written request counts as lost and costs the connection. One-shot
            calls have it, whose caller may be impatient while the connection serves others too, and who is throttled.
        correlation_id, written_at: set when the request is written; the latter is monotonic seconds.
    """

    caller: Caller
    send: Send
    deadline: float
    grace_s: float = 0.0
    correlation_id: int = -1
    written_at: float = 0.0

    def reply_by(self) -> float:
        """Monotonic seconds at which a written request counts as lost."""
        return self.deadline + self.grace_s

    def wait_longer(self, seconds: float) -> None:
        """The broker does not read it for so long, or what it may wait at most."""
        self.grace_s = max(min(self.grace_s + seconds, self.send.most_s - self.send.timeout_s), self.grace_s)


class InFlightRequests:
    """Requests written on one connection and not yet answered, oldest first.

    Args:
        client_id: sent in every request header.

    Attributes:
        in_flight: requests whose reply is awaited, oldest first.
        unflushed: requests that get no reply and whose bytes the kernel does not have yet.
        unanswered: the kernel has some that get no reply.
        next_id: correlation id of the next request.
        on_paid: called when nothing is `owed` any more.
    """

    __slots__ = ("_client_id", "in_flight", "next_id", "on_paid", "unanswered", "unflushed")

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self.next_id = 0
        self.in_flight: deque[ClientRequest] = deque()
        self.unflushed: list[ClientRequest] = []
        self.unanswered = False
        self.on_paid: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self.in_flight) + len(self.unflushed)

    def push(self, call: ClientRequest) -> list[bytes | memoryview]:
        """Frame a request, whose version is set, and expect its reply after those already in flight, if it gets one.

        Returns:
            The parts of the frame, in order; large ones are views of the caller's own bytes.

        Raises:
            KafkaException: the request cannot be written in its version. Nothing is in flight then.
        """
        send = call.send
        template = send.template
        if template is not None and send.version >= template.first_version:
            parts = template.request.frame(send.version, self.next_id, self._client_id)
        else:
            request = send.request if send.for_version is None else send.for_version(send.request, send.version)
            parts = encode_request(request, send.version, self.next_id, self._client_id)
        call.correlation_id = self.next_id
        self.next_id = 0 if self.next_id == LAST_CORRELATION_ID else self.next_id + 1
        (self.in_flight if send.expects_reply else self.unflushed).append(call)
        return parts

    def sent(self) -> list[ClientRequest]:
        """Take the requests that get no reply: the kernel has the bytes of all that was written."""
        calls, self.unflushed = self.unflushed, []
        self.unanswered |= bool(calls)
        return calls

    @property
    def owed(self) -> bool:
        """A reply will come to a connection that has sent requests without replies, and has sent all of their bytes.

        Closing it before could lose some of them: a kernel that receives bytes on a closed socket drops those that it
        has not sent yet.
        """
        return self.unanswered and bool(self.in_flight) and not self.unflushed

    def take(self, frame: bytes | bytearray | memoryview) -> tuple[ClientRequest, Struct]:
        """Match a reply with the oldest request in flight.

        Raises:
            ProtocolError: nothing is awaited, it answers another request, or it cannot be decoded. The call stays in
                flight, so that it fails with the connection.
        """
        if not self.in_flight:
            raise ProtocolError("the broker sent a reply that no request asked for")
        call = self.in_flight[0]
        send = call.send
        reply: Struct | None = None
        template = send.template
        if template is not None and send.version >= template.first_version:
            reply = template.reply.read(frame, send.version, call.correlation_id)
        if reply is None:
            reply = decode_answer(type(send.request), send.version, call.correlation_id, frame)
        self.in_flight.popleft()
        if self.on_paid is not None:
            self._call_if_paid()
        return call, reply

    def _call_if_paid(self) -> None:
        if self.on_paid is not None and not self.owed:
            self.on_paid()

    def deadline(self) -> float | None:
        """When the first of the requests in flight counts as lost, monotonic seconds."""
        return min((call.reply_by() for call in self._all()), default=None)

    def overdue(self, now: float) -> ClientRequest | None:
        """A request in flight whose reply did not come in time."""
        return next((call for call in self._all() if call.reply_by() <= now), None)

    def wait_longer(self, seconds: float) -> None:
        """The broker reads nothing for so long: it slows this client down (KIP-219). Nothing is late for that."""
        for call in self._all():
            call.wait_longer(seconds)

    def drain(self) -> list[ClientRequest]:
        """Take all requests in flight: the connection is gone."""
        calls = list(self._all())
        self.in_flight.clear()
        self.unflushed.clear()
        self._call_if_paid()
        return calls

    def _all(self) -> tuple[ClientRequest, ...]:
        return (*self.in_flight, *self.unflushed)
