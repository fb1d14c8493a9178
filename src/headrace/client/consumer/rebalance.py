"""Rebalances as the application meets them: its callbacks, what they leave undone, and the end of the membership.

A rebalance waits in the queue of callbacks, with a callback or without, until the application comes in: partitions come
and go in its own thread only (decision 0011). Coroutines run on the loop's thread. It must not know what kind of group
there is. Read next: `machines.groups.membership`, `machines.groups.ownership`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from headrace.client.consumer.consumer_machines import Callback, ConsumerMachines
from headrace.client.consumer.consumer_offsets import ConsumerOffsets, Partitions
from headrace.client.waits import Steps
from headrace.machines.groups.membership import Change, Left, Rebalance
from headrace.types.records import TopicPartition

__all__ = ["RebalanceCallback", "Rebalances"]

RebalanceCallback = Callable[[Any, Partitions], Any]
"""Called as callback(consumer, partitions); the asyncio consumer also takes coroutine functions."""

_LEAVE_TIMEOUT_S = 5.0


class Rebalances:
    """Callbacks of an application for partitions that come and go.

    Args:
        machines: those of the consumer.
        offsets: commits before partitions are given up.
        awaits: callbacks may be coroutine functions.

    Attributes:
        callbacks: what the application gave with its subscription.
        handled: a rebalance callback has changed the assignment itself.
        incremental: the group's rebalances change an assignment, others replace it; None before the first of them.
        running: code of the application runs, or what it left undone is done.
        loses: that code is told that partitions were lost: nothing of them can be committed.
        met_at: when the application has met the last rebalance, in monotonic seconds; None before.
    """

    def __init__(self, machines: ConsumerMachines, offsets: ConsumerOffsets, awaits: bool) -> None:
        self._machines, self._offsets, self._awaits = machines, offsets, awaits
        self.callbacks: dict[Change, Callable[[Partitions], Any] | None] = {}
        self.handled = False
        self.incremental: bool | None = None
        self.running = self.loses = False
        self.met_at: float | None = None
        self._left: asyncio.Future[None] | None = None
        self._told: dict[Callback, None] = {}  # code that runs, one in the other, to hear what comes or goes

    def on_event(self, event: Rebalance | Left) -> None:
        """A membership has something for the application (loop's thread)."""
        if isinstance(event, Rebalance):
            self._machines.ownership.expect(event)
            tells = event.partitions or event.change is Change.ASSIGN  # who had none has lost none
            function = self.callbacks.get(event.change) if tells else None
            self._machines.queue(Callback(function or _no_callback, (event.partitions,), event))
        elif self._left is not None and not self._left.done():
            self._left.set_result(None)

    def ends_call(self, callback: Callback) -> bool:
        """Whether a call that has records ends before this, so that none hands out records of two assignments."""
        return callback.rebalance is not None or callback.is_report

    def run_next(self) -> Steps[None]:
        """Run the callback that has waited longest.

        Ctrl-C may come after any call: the callback waits again then, or the group goes on as if it had returned.
        """
        waiting = self._machines.callbacks
        yield from self.run(waiting[0], waiting.popleft)

    def run(self, callback: Callback, begin: Callable[[], object] = bool) -> Steps[None]:
        """Run a callback, and let the group go on if it was for a rebalance.

        Args:
            callback: the callback.
            begin: called at the moment from which on it counts as called.
        """
        if callback.completed:  # the group was left meanwhile
            begin()
            return
        begun = self.handled = False
        self.running = True
        self.loses = callback.rebalance is not None and callback.rebalance.change is Change.LOSE
        try:
            if callback.rebalance is not None:
                self.incremental = callback.rebalance.incremental
                self._machines.ownership.meet(callback.rebalance)
            begun = True
            begin()
            if callback.rebalance is not None or callback.leaves:
                self._told[callback] = None
            result = callback.function(*callback.arguments)
            if self._awaits and inspect.isawaitable(result):
                yield _result_of(result)
        finally:
            self._told.pop(callback, None)
            try:
                if begun and callback.rebalance is not None:
                    yield self._complete(callback, callback.rebalance)
            except BaseException:  # interrupted while offsets are committed: that is waited for no longer
                if callback.rebalance is not None:
                    yield self._complete(callback, callback.rebalance, commits=False)
                raise
            finally:
                self.running = self.loses = False

    async def _complete(self, callback: Callback, event: Rebalance, commits: bool = True) -> None:
        """Do what the application's callback left undone, and let the group go on; once."""
        if event.change is Change.REVOKE and commits and not callback.completed:
            await self._offsets.commit_stored(leaves=False)
            if self.handled:  # what the application has given up by itself
                await self._offsets.settle(leaves=False)
        if callback.completed:
            return
        callback.completed = True
        before = self._machines.subscription.states
        if not self.handled:
            self._apply(event)
        self._machines.ownership.part(event)
        self._machines.require_group().callback_done(self._machines.clock())
        self._machines.assignment_changed(before)
        self._offsets.start_auto_commit()
        self.met_at = self._machines.clock()

    def _apply(self, event: Rebalance) -> None:
        subscription = self._machines.subscription
        if event.change is not Change.ASSIGN:
            subscription.remove(tp for tp in event.partitions if subscription.get(tp.topic, tp.partition) is not None)
        elif event.incremental:
            subscription.add(event.partitions)
        else:
            subscription.assign(event.partitions)

    # The end of the membership

    def revocation(self) -> list[Callback]:
        """The callbacks to run before the group is left. Other rebalances are not met any more.

        The application has come in: what it commits now carries the identity of the newest rebalance.
        """
        machines, lost, others = self._machines, [], []
        for _ in range(len(machines.callbacks)):  # the loop may add some meanwhile
            waiting = machines.callbacks.popleft()
            if waiting.rebalance is not None:
                machines.ownership.meet(waiting.rebalance)
                lost += [waiting] if waiting.rebalance.change is Change.LOSE else []
            elif not waiting.is_report:
                others.append(waiting)
        machines.callbacks.extendleft(reversed(others))
        if not machines.usable:
            return []
        function, held = self.callbacks.get(Change.REVOKE), self._held()
        return lost if function is None or not held else [Callback(function, (held,), leaves=True)]

    def _held(self) -> Partitions:
        """What the group gave the application, as far as it was told: a callback for that may leave the group.

        Also what the application has stopped reading by itself, as in confluent_kafka: it is the member's still.
        """
        group = self._machines.group
        held = {key: TopicPartition(*key) for key in sorted(group.owned if group is not None else ())}
        for callback in list(self._told):
            gains = callback.rebalance is not None and callback.rebalance.change is Change.ASSIGN
            for tp in callback.arguments[0]:
                if gains:
                    held[tp.topic, tp.partition] = tp
                else:
                    held.pop((tp.topic, tp.partition), None)
        return list(held.values())

    def leave(self) -> Steps[None]:
        """As `leave_group`. Who interrupts that does not wait for brokers, but has left as well."""
        try:
            yield self.leave_group()
        except BaseException:
            yield self.leave_group(waits=False)
            raise

    async def leave_group(self, waits: bool = True) -> None:
        """Commit what is stored, wait for what is being committed, give everything up, and leave the group.

        Args:
            waits: for brokers. Without that nothing is committed.
        """
        machines, group = self._machines, self._machines.group
        if waits:
            await self._offsets.commit_stored(leaves=True)
            await self._offsets.settle(leaves=True)
        self.handled, self.incremental = True, None  # a rebalance callback may have asked for this
        machines.subscription.assign([])
        machines.subscription.subscribe([])
        machines.want_topics()
        if group is None:
            return
        machines.ownership.leave()
        if group.is_outside:
            return
        left = self._left = asyncio.get_running_loop().create_future()
        group.leave()
        for waiting in machines.callbacks.copy():  # what came behind `revocation`: none of it holds any more
            waiting.completed |= waiting.rebalance is not None
        machines.wake()
        if not waits:
            return
        with suppress(TimeoutError):  # the group finds out by itself when the session ends
            async with asyncio.timeout(_LEAVE_TIMEOUT_S):  # wait_for() of Python 3.11 can swallow that it is cancelled
                await left
        self._left = None


async def _result_of(begun: Awaitable[Any]) -> Any:
    return await begun


def _no_callback(partitions: Partitions) -> None:
    """Takes the place of a rebalance callback that the application did not give."""
