"""A conversation with coordinators: questions one after the other, each asked until it is answered.

What is asked next depends on the answers, so a conversation is written as a generator: it yields an `Ask`, is sent the
reply, and returns what came of all. A refusal that asking again does not cure is raised inside it, as a
`KafkaException`. Here is what all conversations have in common: who is asked, when again, and until when.

It must not know what is asked. Read next: `machines.joint.owner_steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.machine import REFUSALS, Event, Send, because
from headrace.machines.producer.transaction_errors import ErrorClass, class_of, gravest
from headrace.slotted import slotted
from headrace.wire.schema import Request, Struct

__all__ = ["Ask", "Conversation", "ConversationEnded", "Steps"]

_CONCURRENT_WAIT_S: Final = 0.02  # the markers of the transaction before are still being written
_CONCURRENT_TRIES: Final = 10
_NEVER: Final = float("inf")


@slotted(eq=False)
class Ask:
    """One question.

    Attributes:
        kind: whose coordinator is asked, `GROUP` or `TRANSACTION`.
        key: group or transactional id.
        request: the message. It does no harm to send it again, even if it was carried out before.
        codes: the error codes of a reply, 0 for none.
        max_version: highest version allowed.
    """

    kind: int
    key: str
    request: Request
    codes: Callable[[Any], list[int]]
    max_version: int | None = None


Steps = Generator[Ask, Any, Any]
"""A conversation: yields questions, is sent replies, returns a result."""


@slotted(eq=False)
class ConversationEnded(Event):
    """A conversation has come to its end; `error` is None when it did what it should."""

    conversation: Conversation
    result: Any
    error: KafkaError | None = None


class Conversation:
    """The machine of one conversation.

    Args:
        steps: what is asked.
        find: gives the machine that finds a coordinator, by its kind and key.
        request_timeout_s: seconds for one request.
        backoff_s: seconds to wait before attempt n (0, 1, ...), jitter included.
        until: monotonic seconds; the conversation fails then.
    """

    alone = idle = False  # others have to learn of its end

    def __init__(
        self, steps: Steps, find: Callable[[int, str], CoordinatorFinder], request_timeout_s: float,
        backoff_s: Callable[[int], float], until: float,
    ) -> None:
        self._steps = steps
        self._find = find
        self._request_timeout_s = request_timeout_s
        self._backoff_s = backoff_s
        self._until = until
        self._ask: Ask | None = None
        self._flying = False
        self._failures = 0
        self._due = -_NEVER
        self._last_error: KafkaError | None = None
        self._events: list[Event] = []
        self._go_on(lambda: next(steps))

    def _go_on(self, step: Callable[[], Ask]) -> None:
        self._failures, self._due = 0, -_NEVER
        try:
            self._ask = step()
        except StopIteration as ended:
            self._end(ended.value, None)
        except KafkaException as failed:
            self._end(None, failed.error)

    def _end(self, result: Any, error: KafkaError | None) -> None:
        self._ask = None
        self._events.append(ConversationEnded(self, result, error))

    def poll(self, now: float) -> Iterator[Send]:
        """Ask, or ask again."""
        ask = self._ask
        if ask is None or self._flying:
            return
        if now >= self._until:
            what = type(ask.request).__name__.removesuffix("Request")
            self._end(None, KafkaError(
                KafkaError._TIMED_OUT, f"{what} of {ask.key} was not answered in time{because(self._last_error)}"))
            return
        if now < self._due:
            return
        self._due = -_NEVER
        finder = self._find(ask.kind, ask.key)
        if finder.error is not None:
            self._refuse(finder.error)
        elif finder.node_id is not None:
            self._flying = True
            timeout_s = min(self._request_timeout_s, self._until - now)
            yield Send(finder.node_id, ask.request, timeout_s, ask.max_version, context=finder)

    def deadline(self) -> float | None:
        """When to ask again, or to give up."""
        if self._ask is None or self._flying:
            return None
        return self._until if self._due == -_NEVER else min(self._due, self._until)

    def events(self) -> list[Event]:
        """The end, once."""
        events, self._events = self._events, []
        return events

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """A coordinator answered."""
        self._flying = False
        if self._ask is None:
            return
        refusals = [code for code in self._ask.codes(reply) if code != KafkaError.NO_ERROR]
        if refusals:
            self._on_refusal(send, gravest(type(send.request), refusals), now)
        else:
            self._last_error = None
            self._go_on(lambda: self._steps.send(reply))

    def _on_refusal(self, send: Send, code: int, now: float) -> None:
        assert self._ask is not None
        kind = class_of(type(send.request), code)
        what = type(send.request).__name__.removesuffix("Request")
        error = KafkaError(code, f"{what} of {self._ask.key}: {KafkaError(code).str()}")
        if kind is ErrorClass.MOVED:
            send.context.invalidate(now)
            self._again(error, now)
        elif kind is ErrorClass.RETRY:
            short = code == KafkaError.CONCURRENT_TRANSACTIONS and self._failures < _CONCURRENT_TRIES
            self._again(error, now, _CONCURRENT_WAIT_S if short else None)
        else:
            self._refuse(error)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No answer came: ask again, wherever the coordinator is by then."""
        self._flying = False
        if self._ask is None:
            return
        if error.code() in (KafkaError._UNSUPPORTED_FEATURE, *REFUSALS) and not error.retriable():
            self._refuse(error)
            return
        send.context.invalidate(now)
        self._again(error, now)

    def _refuse(self, error: KafkaError) -> None:
        self._go_on(lambda: self._steps.throw(KafkaException(error)))

    def _again(self, error: KafkaError, now: float, wait_s: float | None = None) -> None:
        self._last_error = error
        self._due = now + (self._backoff_s(self._failures) if wait_s is None else wait_s)
        self._failures += 1
