"""Rules of a consumer in a group, each broken in the client: the simulation of whole consumers has to notice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.client.consumer.consumer_offsets import ConsumerOffsets
from headrace.client.consumer.rebalance import Rebalances
from headrace.machines.consumer.fetcher import Fetcher
from headrace.machines.groups.classic import ClassicGroup
from headrace.machines.groups.membership import Change, Rebalance
from headrace.machines.groups.ownership import Ownership
from headrace.machines.producer.transactions import ConsumerGroupMetadata

from . import membership
from .mutation import Rules

MEMBERSHIP_RULES = Rules()
broken = MEMBERSHIP_RULES.broken


@broken("Consumer: a rebalance ends a call that has records", membership.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rebalances, "ends_call", lambda self, callback: False)


@broken("Consumer: a rebalance waits for the application", membership.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    kept: set[asyncio.Task[None]] = set()

    on_event = Rebalances.on_event

    def at_once(self: Rebalances, event: Any) -> None:
        if not isinstance(event, Rebalance):
            on_event(self, event)
            return
        self._machines.ownership.meet(event)
        self.handled = False
        kept.add(asyncio.get_running_loop().create_task(self._complete(event)))

    patch.setattr(Rebalances, "on_event", at_once)


@broken("Consumer: a transaction has the identity under which was read", membership.run_schedule, 700)
def _(patch: pytest.MonkeyPatch) -> None:
    def present(self: ConsumerOffsets) -> ConsumerGroupMetadata | None:
        group = self._machines.group
        return None if group is None else group.identity

    patch.setattr(ConsumerOffsets, "group_member", present)


@broken("Ownership: what moved is committed as the member that read it", membership.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ownership, "reader_of", lambda self, topic, partition: self.member)


@broken("Ownership: a member that was dropped keeps its identity", membership.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    meet = Ownership.meet

    def forgetful(self: Ownership, change: Any) -> None:
        meet(self, change)
        if change.change is Change.LOSE:
            self.leave()

    patch.setattr(Ownership, "meet", forgetful)


@broken("Fetcher: what was fetched for an assignment before is dropped", membership.run_schedule, 600)
def _(patch: pytest.MonkeyPatch) -> None:
    front = Fetcher._front

    def stale(self: Fetcher) -> Any:
        for fetched in self._queue:
            fetched.epoch = fetched.state.epoch
        return front(self)

    patch.setattr(Fetcher, "_front", stale)


@broken("Group: an eager member gives up what it has before it joins", membership.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClassicGroup, "_prepare", lambda self: self._go("prepared"))


@broken("Group: a cooperative member gives up what the plan took", membership.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    on_sync = ClassicGroup._on_sync

    def greedy(self: ClassicGroup, reply: Any, now: float) -> None:
        on_sync(self, reply, now)
        for event in self._events:
            if isinstance(event, Rebalance) and event.change is Change.REVOKE:
                event.partitions.clear()

    patch.setattr(ClassicGroup, "_on_sync", greedy)
