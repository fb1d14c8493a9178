"""Requests that cannot be answered yet, and what each of them waits for.

A handler that must wait returns a `DelayedReply`: the keys of what it waits for, until when, and how to look again. The
name is Kafka's (`DelayedOperationPurgatory`). The server puts the request here, and what changes calls `wake(key)`. The
server then takes what is due, looks again, and answers or lets it wait on. Nothing here waits by itself.

Read next: `broker.apis.fetch` for a request that waits for bytes, `broker.coordinators.classic_groups` for one that
waits for others, `broker.clock` for who looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from headrace.broker.deadlines import Deadline, Deadlines, Now
from headrace.wire.schema import Response

__all__ = ["DelayedReply", "Purgatory"]

LookAgain = Callable[[Now], "Response | DelayedReply | None"]


class DelayedReply:
    """A request that waits.

    Attributes:
        keys: it is looked at again when one of them changes.
        until: it is looked at again then at the latest, in monotonic seconds; None when only a change can help.
        look_again: gives the reply, itself to wait on, or None when there will be no reply.
        is_settled: its reply is known, or its connection has ended.
        deliver: given by the server of the request; called when it is due.
    """

    __slots__ = ("deadline", "deliver", "is_due", "is_settled", "keys", "look_again", "until")

    def __init__(self, keys: Sequence[Hashable] = (), until: float | None = None,
                 look_again: LookAgain | None = None) -> None:
        self.keys = keys
        self.until = until
        self.look_again = look_again or self._wait_on
        self.is_due = self.is_settled = False
        self.deadline: Deadline | None = None
        self.deliver: Callable[[Now], None] = _to_nobody

    def _wait_on(self, now: Now) -> DelayedReply:
        """For a request that is answered by `Purgatory.answer` only."""
        return self


def _to_nobody(now: Now) -> None:
    """Nobody waits for this reply."""


class Purgatory:
    """All requests that wait, by what they wait for.

    Args:
        deadlines: where their times are noted.

    Attributes:
        due: what must be looked at again.
    """

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._waiting: dict[Hashable, dict[DelayedReply, None]] = {}
        self.due: list[DelayedReply] = []

    def put(self, delayed: DelayedReply) -> None:
        """Let a request wait, until it is removed."""
        for key in delayed.keys:
            self._waiting.setdefault(key, {})[delayed] = None
        if delayed.until is not None:
            delayed.deadline = self._deadlines.at(delayed.until, lambda now: self._is_due(delayed))

    def wake(self, key: Hashable) -> None:
        """Something has changed: let those that wait for it look again."""
        for delayed in self._waiting.get(key, ()):
            self._is_due(delayed)

    def answer(self, delayed: DelayedReply, reply: Response | None) -> None:
        """Give a request its reply, or None to let it go without one; unless it has one, or nobody waits for it."""
        if not delayed.is_settled:
            delayed.look_again = lambda now: reply
            self._is_due(delayed)
            delayed.is_settled = True

    def take_due(self) -> list[DelayedReply]:
        """What must be looked at again, in the order in which it was woken. It waits on unless it is removed."""
        due, self.due = self.due, []
        for delayed in due:
            delayed.is_due = False
        return due

    def remove(self, delayed: DelayedReply) -> None:
        """The reply was given, or nobody waits for it any more."""
        delayed.is_settled = True
        if delayed.deadline is not None:
            delayed.deadline.cancel()
        for key in delayed.keys:
            waiting = self._waiting.get(key)
            if waiting is not None:
                waiting.pop(delayed, None)
                if not waiting:
                    del self._waiting[key]

    def _is_due(self, delayed: DelayedReply) -> None:
        if not delayed.is_due and not delayed.is_settled:
            delayed.is_due = True
            self.due.append(delayed)
