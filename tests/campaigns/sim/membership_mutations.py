"""Rules of a consumer in a group, each broken in the client: the simulation of whole consumers has to notice."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Generator
from typing import Any

import pytest

from headrace.client.consumer.consumer_machines import Callback
from headrace.client.consumer.consumer_offsets import ConsumerOffsets
from headrace.client.consumer.rebalance import Rebalances
from headrace.machines.consumer.fetcher import Fetcher
from headrace.machines.consumer.group_offsets import GroupOffsets
from headrace.machines.groups.classic import ClassicGroup
from headrace.machines.groups.membership import Change, Rebalance
from headrace.machines.groups.ownership import Ownership
from headrace.machines.producer.transactions import ConsumerGroupMetadata

from . import background_commits, handed_over, membership, planned_membership
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


@broken("Consumer: a callback that raises does not hold up the group", membership.run_schedule, 100, "no progress")
def _(patch: pytest.MonkeyPatch) -> None:
    def run(self: Rebalances, callback: Any) -> Generator[Any, Any, None]:
        self.handled, self.running = False, True
        if callback.rebalance is not None:
            self.incremental = callback.rebalance.incremental
            self._machines.ownership.meet(callback.rebalance)
        result = callback.function(*callback.arguments)
        if inspect.isawaitable(result):
            yield _awaited(result)
        if callback.rebalance is not None:
            yield self._complete(callback.rebalance)
        self.running = False

    patch.setattr(Rebalances, "run", run)


async def _awaited(begun: Any) -> Any:
    return await begun


@broken("Consumer: what a callback has assigned or given up is not done once more", membership.run_schedule, 100)
def _(patch: pytest.MonkeyPatch) -> None:
    complete = Rebalances._complete

    async def again(self: Rebalances, callback: Callback, event: Rebalance, commits: bool = True) -> None:
        self.handled = False
        await complete(self, callback, event, commits)

    patch.setattr(Rebalances, "_complete", again)


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


@broken("Commits: an outdated epoch is renewed where the partition has stayed, and nowhere else",
        background_commits.run_schedule, 1000, "set back")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupOffsets, "_tenures", lambda self, partitions: [])
    # What was given up is given up at once unless it is on the wire, and so hardly ever renewed.
    patch.setattr(GroupOffsets, "_give_up_released", lambda self: None)


@broken("Commits: a partition that came back starts behind what its member is committing still",
        background_commits.run_schedule, 12_000, "set back")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupOffsets, "_being_committed", lambda self: set())


@broken("Commits: what is handed over was committed", handed_over.run_schedule, 50, "came twice")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerOffsets, "commit_stored", _nothing)


@broken("Commits: what the application gives up by itself is committed", handed_over.run_schedule, 300, "came twice")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerOffsets, "commit_given_up", lambda self, stored: None)


@broken("Commits: a rebalance waits for what was given up to be committed", handed_over.run_schedule, 600, "came twice")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerOffsets, "settle", _nothing)


@broken("Ownership: a newer epoch of a member is the application's at once", planned_membership.run_schedule, 300)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ownership, "advance", lambda self, moved: None)


async def _nothing(self: Any, *, leaves: bool) -> None:
    pass


_KEPT_IN_BOTH = (
    "Consumer: a rebalance ends a call that has records",
    "Consumer: a rebalance waits for the application",
    "Consumer: a callback that raises does not hold up the group",
    "Consumer: what a callback has assigned or given up is not done once more",
    "Ownership: what moved is committed as the member that read it",
    "Fetcher: what was fetched for an assignment before is dropped",
)
for _rule in [rule for rule in MEMBERSHIP_RULES if rule.rule in _KEPT_IN_BOTH]:
    broken(f"{_rule.rule} (a group that the coordinator plans for)", planned_membership.run_schedule, _rule.within,
           _rule.saying)(_rule.break_it)
