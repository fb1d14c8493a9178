"""What a machine is: it decides and never waits. Every client machine has this shape, and one driver runs them all.

A machine knows no socket, no clock, no thread and no randomness: time comes in as `now` (monotonic seconds), nonces
and jitter are injected. So a simulator can run millions of schedules of lost, late and repeated replies.

Read next: `machines.cluster.metadata` for a small machine, `net.driver` for its caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from headrace.errors import KafkaError
from headrace.slotted import slotted
from headrace.wire.schema import Request, Struct
from headrace.wire.templates import ExchangeTemplate

__all__ = [
    "ANY_NODE", "ANY_VERSION", "CONTROLLER", "LOST", "REFUSALS", "Effect", "ErrorEvent", "Event", "ForVersion",
    "Machine", "Send", "because",
]

ForVersion = Callable[[Request, int], Request]
"""Makes of a request what is written in a version."""
ANY_NODE: Final = -1
"""Destination: any broker, the least loaded one that is connected."""
CONTROLLER: Final = -2
"""Destination: the broker that the metadata names as controller (any broker forwards in KRaft)."""
ANY_VERSION: Final = 32_767
"""Highest version of a request: whichever both sides know."""
LOST: Final = (KafkaError._TRANSPORT, KafkaError._RESOLVE, KafkaError._UNKNOWN_BROKER)
"""Errors of the way to a broker: another attempt may get through."""
REFUSALS: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL)
"""Errors of a broker that does not let this client in. It is dialled again with backoff, but no call should wait.

One that is retriable may come from a proxy in front of the broker: no reason to give up.
"""


class Effect:
    """Something that a machine wants done. The driver carries out `Send`; all else the client above it does."""

    __slots__ = ()


@slotted(eq=False)
class Send(Effect):
    """A request that a machine wants on the wire.

    Attributes:
        destination: a broker id, `ANY_NODE` or `CONTROLLER`.
        request: the message. Fields that the negotiated version lacks are dropped where Kafka calls them ignorable.
        timeout_s: seconds from hand-over to the reply, connecting included.
        max_version: the highest version the machine allows (for example 12 when a topic id is not known).
        expects_reply: False for Produce with acks=0; `on_reply` is then called with None once it is written.
        context: the machine's own note, untouched by the driver.
        for_version: called as for_version(request, version) when the version is negotiated; returns what is written.
            What it raises (`KafkaException`) becomes the error of the request.
        template: writes the request and reads the usual reply without the codec; None for most requests. Its request is
            `request`.
        beside: go by a connection of its own, because the broker holds another request of this kind back.
        most_s: seconds that may become of `timeout_s` where the broker makes this client wait.
        version: set by the driver when the version is negotiated; -1 until then.
        node_id: set by the driver: the broker that the request went to; -1 until then.
    """

    destination: int
    request: Request
    timeout_s: float
    max_version: int | None = None
    expects_reply: bool = True
    context: Any = None
    for_version: ForVersion | None = None
    template: ExchangeTemplate | None = None
    beside: bool = False
    most_s: float = math.inf
    version: int = -1
    node_id: int = -1


class Event:
    """Something that the client above must learn. Each machine defines its own subclasses, slotted dataclasses."""

    __slots__ = ()


@slotted()
class ErrorEvent(Event):
    """Something went wrong that belongs to no single record or call; the client hands it to `error_cb`."""

    error: KafkaError


def because(last_error: KafkaError | None) -> str:
    """The end of a text about time that ran out: why the last attempt failed, if one did."""
    return "" if last_error is None else f"; last error: {last_error.str()}"


class Machine(Protocol):
    """Decides; never waits. `now` is monotonic seconds, given by the caller.

    The driver calls `poll`, then `events`, then sleeps until `deadline` or the next input. All calls come from one
    thread; none may block. Each `Send` yielded by `poll` gets exactly one `on_reply` or `on_error`. What comes
    of another `Effect` (decision 0025) is an input with a name of its own.

    A machine is polled after its own replies and errors, at its deadline, and after the driver was woken for it or for
    all. Whatever else changes what it decides must wake it: the machine that changed it by not being `alone`, others by
    waking the driver (decision 0022).
    """

    @property
    def alone(self) -> bool:
        """True while nothing that happened to it, or that it did, concerns another machine; else all are polled."""
        ...

    @property
    def idle(self) -> bool:
        """True when what happened to it last has left nothing to do and moved no deadline.

        After a reply it need not be polled then, though it may have events. After a poll it has none, and is asked for
        neither events nor a deadline.
        """
        ...

    def poll(self, now: float) -> Iterable[Effect]:
        """Requests to send now, and what else is to be done."""
        ...

    def deadline(self) -> float | None:
        """Call `poll` again then; None when only an input can change anything. After `poll(now)`: None or > now."""
        ...

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """The broker answered `send`. `reply` is None only where `expects_reply` was False."""
        ...

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No reply will come: lost or refused connection, timeout, unknown node, unsupported version.

        `error.maybe_applied` is True where the request may have reached the broker. `_TRANSPORT`, `_TIMED_OUT`,
        `_RESOLVE` and `_UNKNOWN_BROKER` are passing; `_UNSUPPORTED_FEATURE`, `_AUTHENTICATION` and `_SSL` are not. An
        answer that could not be read is `_TRANSPORT`, as is every other end of a connection (`net.errors`).
        """
        ...

    def events(self) -> list[Event]:
        """Take what happened since the last call; empties the machine's list."""
        ...
