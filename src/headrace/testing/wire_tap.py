"""Requests of clients as an embedded broker gets them: written down, and gone wrong on request, by Kafka's names.

Read next: `headrace.broker.faults`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.broker.faults import Action, Fault

if TYPE_CHECKING:
    from headrace.testing.embedded import EmbeddedBroker

__all__ = ["FaultInjector", "RecordedRequest", "recorded_traffic"]


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that came.

    Attributes:
        api: Kafka's name of it, such as `Produce`.
        request: its fields, by the names in snake_case that Kafka's protocol gives them.
    """

    api: str
    request: Any


@contextmanager
def recorded_traffic(broker: EmbeddedBroker) -> Iterator[list[RecordedRequest]]:
    """The requests that a broker gets within a `with` block, in the order in which they come.

        with recorded_traffic(broker) as traffic:
            producer.flush()
        assert [each.api for each in traffic].count("Produce") == 1

    `EmbeddedBroker.clear_faults()` ends it as well.
    """
    traffic: list[RecordedRequest] = []

    def note(request: Any) -> bool:
        traffic.append(RecordedRequest(type(request).__name__.removesuffix("Request"), request))
        return False

    # Faults are tried in turn, and the first that matches ends that: this one is the first, and matches none.
    tap = Fault(action=Action.PASS, times=None, when=note)
    broker.apply(lambda cluster: cluster.faults.armed.insert(0, tap))
    try:
        yield traffic
    finally:
        broker.apply(lambda cluster: cluster.faults.armed.remove(tap) if tap in cluster.faults.armed else None)


class FaultInjector:
    """Makes requests go wrong: each call arms one fault for the next requests of a kind.

    Args:
        broker: where they go wrong.
    """

    def __init__(self, broker: EmbeddedBroker) -> None:
        self._broker = broker

    def error(self, api: str, code: int, times: int | None = 1, after: int = 0) -> None:
        """Answer with an error of Kafka's, such as `KafkaError.NOT_LEADER_FOR_PARTITION`, and do nothing.

        Args:
            api: Kafka's name of the request, such as `Produce`.
            code: the error's number.
            times: how often; None for always.
            after: how many such requests pass before.

        Raises:
            ValueError: the broker serves no such request.
        """
        self._arm(api, Action.ERROR, times, after, error_code=code)

    def drop(self, api: str, times: int | None = 1, after: int = 0) -> None:
        """Close the connection instead of doing what is asked for. Arguments as those of `error`."""
        self._arm(api, Action.DROP, times, after)

    def lose_reply(self, api: str, times: int | None = 1, after: int = 0) -> None:
        """Do what is asked for, and close the connection instead of saying so. Arguments as those of `error`."""
        self._arm(api, Action.LOSE_REPLY, times, after)

    def delay(self, api: str, seconds: float, times: int | None = 1, after: int = 0) -> None:
        """Do what is asked for so many seconds later; `clear` lets go. The other arguments as those of `error`."""
        self._arm(api, Action.DELAY, times, after, delay_s=seconds)

    def clear(self) -> None:
        """Nothing goes wrong any more, and what is held up goes on."""
        self._broker.clear_faults()

    def _arm(self, api: str, action: Action, times: int | None, after: int, **more: Any) -> None:
        from headrace.broker.dispatch import SERVICES

        known = {kind.__name__.removesuffix("Request"): kind for kind in SERVICES}
        if api not in known:
            close = difflib.get_close_matches(api, known, n=1)
            raise ValueError(f"the broker serves no request {api!r}" + (f"; did you mean {close[0]!r}?" if close else
                                                                       f": there are {', '.join(sorted(known))}"))
        self._broker.add_fault(Fault(action=action, request=known[api], times=times, after=after, **more))
