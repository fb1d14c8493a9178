"""Which broker coordinates a group or a transactional id. Read `node_id`, and call `invalidate()` when it moved.

Knows no sockets. Read next: `machines.groups.classic`, which waits for `node_id`. Source: KIP-699 and KIP-932 for the
newer forms of FindCoordinator (Java: `AbstractCoordinator`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.error_codes import lacking
from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.machine import ANY_NODE, REFUSALS, ErrorEvent, Event, Send
from headrace.wire.messages.groups.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse
from headrace.wire.schema import Struct

__all__ = ["ELECTING", "GROUP", "SHARE", "TRANSACTION", "CoordinatorFinder", "CoordinatorRefused", "coordinator_of",
           "find_coordinator"]

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2

_LAST_SINGLE_KEY_VERSION = 3
_REQUEST_TIMEOUT_S = 30.0
_WITHOUT_JITTER = RetryPolicy()
ELECTING: Final = (KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
                   KafkaError.NOT_COORDINATOR)
"""What FindCoordinator answers while there is no coordinator yet: it passes."""
_NAMES: Final = {GROUP: "group", TRANSACTION: "transactional id", SHARE: "share partition"}
_RIGHTS: Final = {KafkaError.GROUP_AUTHORIZATION_FAILED: "READ",
                  KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "WRITE"}


class CoordinatorRefused(ErrorEvent):
    """There is no coordinator, and time alone will not bring one: a right is missing, for example. Told once."""

    __slots__ = ()


def find_coordinator(kind: int, key: str, timeout_s: float) -> Send:
    """The request for one key. The form for single keys does for all kinds but share groups (KIP-932)."""
    if kind == SHARE:
        return Send(ANY_NODE, FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), timeout_s)
    return Send(ANY_NODE, FindCoordinatorRequest(key=key, key_type=kind), timeout_s, _LAST_SINGLE_KEY_VERSION)


def coordinator_of(reply: FindCoordinatorResponse) -> tuple[int | None, KafkaError | None]:
    """Broker id, or the error, out of the reply for one key, whatever its version."""
    found = reply.coordinators[0] if reply.coordinators else reply
    if found.error_code:
        return None, KafkaError(found.error_code, found.error_message or None)
    return found.node_id, None


class CoordinatorFinder:
    """The machine that looks for one coordinator until it has it, and again after `invalidate()`.

    Args:
        kind: `GROUP`, `TRANSACTION` or `SHARE`.
        key: group id or transactional id.
        retries: how long to wait before asking again.

    Attributes:
        retries: as given: who asks the coordinator waits likewise.
        node_id: the coordinator's broker id; None while it is being looked for.
        error: why there is none and will be none, for example a missing permission; None when there is hope.
        last_error: why the last attempt failed; None once one succeeded.
    """

    alone = idle = False  # others read what it decides

    def __init__(self, kind: int, key: str, *, retries: RetryPolicy = _WITHOUT_JITTER) -> None:
        self.node_id: int | None = None
        self.error: KafkaError | None = None
        self.last_error: KafkaError | None = None
        self._kind, self._key = kind, key
        self.retries = retries
        self._due: float | None = float("-inf")
        self._asked_at = float("-inf")
        self._in_flight = False
        self._failures = 0
        self._events: list[Event] = []

    def invalidate(self, now: float) -> None:
        """The broker is not the coordinator any more, or cannot be reached: look for it again."""
        self.node_id = None
        if not self._in_flight:
            self._due = max(now, self._asked_at + self.retries.first_s)

    def poll(self, now: float) -> Iterable[Send]:
        """Ask any broker when it is time."""
        if self._in_flight or self._due is None or self._due > now:
            return ()
        self._in_flight, self._due, self._asked_at = True, None, now
        return (find_coordinator(self._kind, self._key, _REQUEST_TIMEOUT_S),)

    def deadline(self) -> float | None:
        """When to ask again."""
        return None if self._in_flight else self._due

    def events(self) -> list[Event]:
        """Take the errors that time does not heal."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """A broker answered."""
        assert isinstance(reply, FindCoordinatorResponse)
        self._in_flight = False
        self.node_id, error = coordinator_of(reply)
        if error is None:
            self.error, self.last_error, self._failures = None, None, 0
        else:
            self._fail(error, now)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No answer: ask another broker after the backoff."""
        self._in_flight = False
        self._fail(error, now)

    def _fail(self, error: KafkaError, now: float) -> None:
        self.last_error = error
        if error.code() in REFUSALS and not error.retriable():
            self.error = error  # the connection has reported it
        elif not error.retriable() and error.code() > 0 and error.code() not in ELECTING and self.error != error:
            self.error = self._explained(error)
            self._events.append(CoordinatorRefused(self.error))
        self._failures += 1
        self._due = now + self.retries.wait_s(self._failures)

    def _explained(self, error: KafkaError) -> KafkaError:
        whose, said, right = f'{_NAMES[self._kind]} "{self._key}"', error.str(), _RIGHTS.get(error.code())
        text = lacking(said, f"{right} on {whose}") if right else f"{whose}: {said.rstrip('.')}"
        return KafkaError(error.code(), text)
