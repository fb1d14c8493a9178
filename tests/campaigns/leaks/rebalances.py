"""A group in which a member stays while another one joins and leaves, time and again: each is a rebalance."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from headrace import Consumer
from headrace.admin import AdminClient, NewTopic
from tests.campaigns.leaks.rounds import SETTLING_S, Left, Rounds

PARTITIONS = 4
PER_TURN = 2
"""Rebalances of a round: the other member joins, and it leaves."""
_NEW_EVERY = 10
_POLL_S = 0.002


class Rebalances(Rounds):
    """The member that stays is measured all the time; so is the other, of which each tenth turn makes a new one.

    Attributes:
        properties: those of members, by the kind of group.
    """

    properties: dict[str, Any]
    warm_up = 20
    may_differ = Left(threads=0, files=2, handles=6, tasks=0)
    """Both members are open at a look. Each may have had to fetch beside a fetch that waits, or not yet: a connection
    with its timers. What stays of each turn is more after ten of them."""

    def ways(self) -> tuple[Callable[[], None], ...]:
        topic = f"rebalanced-{uuid.uuid4().hex[:8]}"
        self._topic = topic
        self._conf = {"bootstrap.servers": self._brokers["plain"], "group.id": topic, **self.properties}
        with AdminClient({"bootstrap.servers": self._brokers["plain"]}) as admin:
            admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(30)
        self._changes = 0
        self._stays, self._other = Consumer(self._conf), Consumer(self._conf)
        self._stays.subscribe([topic], on_assign=self._changed, on_revoke=self._changed)
        self._until(lambda: len(self._stays.assignment()) == PARTITIONS)
        self._turns = 0
        return (self.turn,)

    def _changed(self, _consumer: Consumer, _partitions: Any) -> None:
        self._changes += 1

    def turn(self) -> None:
        """The other member joins, gets its part, and leaves; the first one gives that up and has all again."""
        self._turns += 1
        if self._turns % _NEW_EVERY == 0:
            self._other.close()
            self._other = Consumer(self._conf)
        before = self._changes
        self._other.subscribe([self._topic])
        self._until(lambda: len(self._other.assignment()) == PARTITIONS // 2 == len(self._stays.assignment()))
        self._other.unsubscribe()
        self._until(lambda: len(self._stays.assignment()) == PARTITIONS)
        assert self._changes >= before + PER_TURN, "its callbacks were not called"

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 6 * SETTLING_S
        while not condition():
            assert time.monotonic() < deadline, [self._stays.health(), self._other.health()]
            for member in (self._stays, self._other):
                message = member.poll(_POLL_S)
                assert message is None, message

    def close(self) -> None:
        self._other.close()
        self._stays.close()
        super().close()


_SOON = {"heartbeat.interval.ms": 10, "session.timeout.ms": 30_000}


class EagerRebalances(Rebalances):
    """All members give everything up in each rebalance."""

    properties = {**_SOON, "partition.assignment.strategy": "range"}


class CooperativeRebalances(Rebalances):
    """Members give up only what another one gets."""

    properties = {**_SOON, "partition.assignment.strategy": "cooperative-sticky"}


class PlannedRebalances(Rebalances):
    """The coordinator plans (KIP-848)."""

    properties = {"group.protocol": "consumer"}


KINDS: dict[str, type[Rebalances]] = {
    "eager": EagerRebalances, "cooperative": CooperativeRebalances, "planned": PlannedRebalances}
