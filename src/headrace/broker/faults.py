"""Faults on request: what a test asks the broker to do wrong.

A fault matches requests and says what happens to them. Faults are tried in the order in which they were added; the
first that matches acts, and is gone after `times` requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headrace.wire.schema import Request

__all__ = ["Action", "Fault", "Faults"]


class Action(Enum):
    """What happens to a matching request."""

    DROP = "drop"
    """The connection is closed and the request is not carried out."""
    LOSE_REPLY = "lose_reply"
    """The request is carried out, then the connection is closed instead of a reply."""
    CUT = "cut"
    """The request is carried out, half of the reply is sent, then the connection is closed."""
    GARBLE = "garble"
    """The request is carried out, and what `garble` makes of its reply is sent; the connection stays open."""
    SILENCE = "silence"
    """The request is not carried out, and nothing ever comes back on this connection."""
    DELAY = "delay"
    """The request waits `delay_s`, or until all faults are cleared; later ones of the connection wait behind it."""
    PASS = "pass"
    """Nothing but the fault's `effect`; the request is carried out as without the fault."""
    ERROR = "error"
    """The request is not carried out; every part of its reply says `error_code`."""
    LATE_ERROR = "late_error"
    """The request is carried out; every part of its reply says `error_code`, as if that was found out afterwards."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """One fault.

    Args:
        action: what to do.
        request: type of request that it is for; None for all.
        node_id: node that it is for; None for all.
        times: how often; None for always.
        after: how many matching requests pass before the first.
        delay_s: seconds, for `DELAY`.
        error_code: Kafka's code, for `ERROR` and `LATE_ERROR`.
        garble: for `GARBLE`: gets the reply's bytes, its length in front, and gives those that are sent.
        when: further condition on the request.
        effect: done to the cluster first, whatever the action: move a leader at the third produce request, say.
    """

    action: Action
    request: type[Request] | None = None
    node_id: int | None = None
    times: int | None = 1
    after: int = 0
    delay_s: float = 0.0
    error_code: int = 0
    garble: Callable[[bytes], bytes] = bytes
    when: Callable[[Any], bool] | None = None
    effect: Callable[[Any], None] | None = None

    def matches(self, request: Request, node_id: int) -> bool:
        """Whether this fault is for that request."""
        return ((self.request is None or isinstance(request, self.request))
                and self.node_id in (None, node_id)
                and (self.when is None or self.when(request)))


class Faults:
    """The faults that wait for their request, `armed`, and the timers of requests that are held up, `held`."""

    def __init__(self) -> None:
        self.armed: list[Fault] = []
        self.held: dict[object, Callable[[], None]] = {}
        """By timer, what carries the request out."""

    def add(self, fault: Fault) -> None:
        """Arm a fault."""
        self.armed.append(fault)

    def clear(self) -> None:
        """Disarm all, and let go on what is held up."""
        self.armed.clear()
        for go_on in list(self.held.values()):
            go_on()

    def take(self, request: Request, node_id: int) -> Fault | None:
        """The fault that acts on this request, if any; counts it."""
        for fault in self.armed:
            if fault.matches(request, node_id):
                if fault.after > 0:
                    fault.after -= 1
                    continue
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times <= 0:
                        self.armed.remove(fault)
                return fault
        return None
