"""Applications with a consumer each, as the simulation of whole consumers has them.

A worker collects with `consume()`, works for a while, and commits what it has read. What happens to it meanwhile is
its schedule's choice. What it does in its rebalance callbacks is chosen there: nothing, too much, something that
fails, or calls back into the client (`WORK`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol
from uuid import UUID

from headrace.aio import AIOConsumer
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.consumer.consumer_engine import ConsumerEngine
from headrace.client.waits import LoopWaits, Wait
from headrace.config import Config
from headrace.errors import KafkaException
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Subscription
from headrace.machines.groups.consumer_group import ConsumerGroup
from headrace.machines.groups.group_protocols import membership_of
from headrace.machines.groups.membership import Change, Membership
from headrace.machines.producer.transactions import ConsumerGroupMetadata
from headrace.records import Message, PollFastPath
from headrace.testing.memory_network import Connect
from headrace.types.records import TopicPartition

TOPIC, GROUP = "t", "g"
SESSION_S, MAX_POLL_S = 1.0, 2.0
_LOOKUP_S = 1.0
Partitions = list[TopicPartition]


class Raised(Exception):
    """What a rebalance callback raises."""


class SimulatedWaits(LoopWaits):
    """Waits of one task under the simulated clock.

    Args:
        clock: gives its time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock, self._told = clock, asyncio.Event()

    async def wait(self, wait: Wait) -> None:
        if not wait.happened():
            self._told.clear()
            with suppress(TimeoutError):
                left_s = wait.until - self._clock()
                async with asyncio.timeout(None if left_s == float("inf") else left_s):
                    await self._told.wait()

    def notify(self) -> None:
        self._told.set()


class Consumer(AIOConsumer):
    """A real consumer in the simulated network."""

    def __init__(self, config: Mapping[str, Any], connect: Connect, chance: random.Random) -> None:
        def member(config: Config, subscription: Subscription, metadata: Metadata,
                   finder: CoordinatorFinder) -> Membership:
            if config["group.protocol"] == "classic":
                return membership_of(config, subscription, metadata, finder)
            return ConsumerGroup(config, subscription, metadata, finder, lambda: UUID(int=chance.getrandbits(128)))

        clock = asyncio.get_running_loop().time
        self._waits = SimulatedWaits(clock)
        self._running, self._fast_path = 0, PollFastPath(AIOConsumer._next)
        self._given = ApplicationCallbacks(self)
        self._consumer = ConsumerEngine(
            config, self._given, self._waits.notify, awaits=True, connector=connect, clock=clock,
            jitter=chance.random, membership=member)

    async def vanish(self) -> None:
        """End without a word to anybody."""
        self._engine.machines.closed = True
        await self._engine.machines.client.close()


class Schedule(Protocol):
    """What a worker belongs to.

    Attributes:
        chance: what it does.
        troubled: it may still do too much.
        commits: how it commits.
        incremental: its group's rebalances change an assignment; else they replace it.
    """

    chance: random.Random
    troubled: bool
    commits: str
    incremental: bool

    def count(self, what: str) -> None:
        """Something happened."""

    def connected(self, name: str) -> tuple[Mapping[str, Any], Connect]:
        """Properties of a consumer, and its way to the brokers."""

    def note_read(self, worker: str, member: ConsumerGroupMetadata, records: list[Message]) -> None:
        """It got records, as a member of a generation."""

    def note_processed(self, records: list[Message]) -> None:
        """It is done with records."""

    def transact(self, member: ConsumerGroupMetadata, records: list[Message], nexts: dict[int, int]) -> bool:
        """It writes records and commits their offsets, both or neither; False for neither."""

    def closed_itself(self, worker: Worker) -> None:
        """It is at its end, which nobody else wanted."""


class Worker:
    """An application with a consumer. A new one begins where the group stands.

    Args:
        sim: what it belongs to.
        number: its number.

    Attributes:
        going: it is not frozen.
        ending: it ends when it comes to that.
    """

    def __init__(self, sim: Schedule, number: int) -> None:
        self.sim, self.name, self.chance = sim, f"worker-{number}", sim.chance
        self.going = asyncio.Event()
        self.going.set()
        self.ending = False
        self._processed: dict[int, int] = {}
        self._uncommitted: set[int] = set()
        self._paused: set[int] = set()
        self._is_subscribed = self._is_closed = self._must_rewind = self._is_called_back = False
        self._callbacks: dict[str, Callable[..., Awaitable[None]]] = {"on_assign": self._on_assign}
        if self.chance.random() < 0.6:
            self._callbacks |= {"on_revoke": self._on_revoke, "on_lost": self._on_lost}
        properties, connect = sim.connected(self.name)
        self.consumer = Consumer(properties, connect, sim.chance)
        self.task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        while not (self.ending or self._is_closed):
            await self.going.wait()
            try:
                await self._turn()
            except Raised:
                continue
        if self._is_closed:
            self.sim.closed_itself(self)
        with suppress(Raised):
            await self.consumer.close()

    async def _turn(self) -> None:
        if not self._is_subscribed:
            await self._subscribe()
        if self._must_rewind and not await self._rewind():
            await self.consumer.consume(0, 0.1)  # that meets a rebalance, if this is why it cannot
            return
        messages = await self.consumer.consume(self.chance.choice([1, 5, 100]), self.chance.uniform(0.05, 1))
        records = [each for each in messages if each.error() is None]
        if records:
            member = await self.consumer.consumer_group_metadata()
            assert member is not None
            self.sim.note_read(self.name, member, records)
            await self._pause()
            await self._finish(member, records)
        elif self._uncommitted and not self._is_closed:
            await self._commit_late()  # what is still ours is taken once the rebalance is over
        if self._paused and not self._is_closed:
            await self._resume()

    async def _subscribe(self) -> None:
        self._is_subscribed = True
        await self.consumer.subscribe([TOPIC], **self._callbacks)

    async def _pause(self) -> None:
        """Work: mostly quick, sometimes longer than `max.poll.interval.ms` allows."""
        slow = self.sim.troubled and self.chance.random() < 0.02
        await asyncio.sleep(MAX_POLL_S + 1 if slow else self.chance.uniform(0, 0.2))
        await self.going.wait()

    async def _finish(self, member: ConsumerGroupMetadata, records: list[Message]) -> None:
        nexts = {each.partition() or 0: (each.offset() or 0) + 1 for each in records}
        if self.sim.commits == "transactional":
            self._must_rewind = not self.sim.transact(member, records, nexts)
            return
        self.sim.note_processed(records)
        self._processed.update(nexts)
        if self.sim.commits in ("by hand", "in the background"):
            await self._commit([TopicPartition(TOPIC, partition, offset) for partition, offset in nexts.items()],
                               asynchronous=self.sim.commits == "in the background")
        elif self.sim.commits == "stored":
            with suppress(KafkaException):  # it is not ours any more
                await self.consumer.store_offsets(
                    offsets=[TopicPartition(TOPIC, partition, offset) for partition, offset in nexts.items()])
        elif self.sim.commits == "late":
            await self._commit_late()

    async def _commit_late(self) -> None:
        """Commit all that was read, what has moved elsewhere since included."""
        await self._commit([TopicPartition(TOPIC, *each) for each in self._processed.items()])

    async def _commit(self, offsets: Partitions, *, asynchronous: bool = False) -> None:
        if not offsets:
            return
        self._uncommitted |= {each.partition for each in offsets}
        with suppress(KafkaException):
            done = await self.consumer.commit(offsets=offsets, asynchronous=asynchronous) or []
            self._uncommitted -= {each.partition for each in done if each.error is None}

    async def _rewind(self) -> bool:
        """The transaction was aborted: go back to where the group stands, with what is still ours."""
        with suppress(KafkaException):
            found = await self.consumer.committed(await self.consumer.assignment(), _LOOKUP_S)
            if all(each.error is None for each in found):
                for each in found:
                    await self.consumer.seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))
                self._must_rewind = False
        return not self._must_rewind

    async def _resume(self) -> None:
        paused, self._paused = self._paused, set()
        await self.consumer.resume([TopicPartition(TOPIC, each) for each in paused])  # also what was given up since

    # Rebalances

    async def _on_assign(self, consumer: Any, partitions: Partitions) -> None:
        """What comes back begins where the group stands: what was read before says nothing any more."""
        for tp in partitions:
            self._processed.pop(tp.partition, None)
            self._uncommitted.discard(tp.partition)
        await self._on_change(Change.ASSIGN, partitions)

    async def _on_revoke(self, consumer: Any, partitions: Partitions) -> None:
        await self._on_change(Change.REVOKE, partitions)

    async def _on_lost(self, consumer: Any, partitions: Partitions) -> None:
        await self._on_change(Change.LOSE, partitions)

    async def _on_change(self, change: Change, partitions: Partitions) -> None:
        work = self.chance.choice(_OFTEN if self._is_called_back or self.chance.random() < 0.5 else WORK)
        if self._is_called_back and work in _ONCE:
            return
        was_called_back, self._is_called_back = self._is_called_back, True
        self.sim.count(f"callbacks: {work.__name__.strip('_')}")
        try:
            with suppress(KafkaException):
                await work(self, change, partitions)
        finally:
            self._is_called_back = was_called_back

    async def _nothing(self, change: Change, partitions: Partitions) -> None:
        pass

    async def _slow(self, change: Change, partitions: Partitions) -> None:
        late = self.sim.troubled and self.chance.random() < 0.2
        await asyncio.sleep(MAX_POLL_S + 0.5 if late else self.chance.uniform(0, 0.3))

    async def _raises(self, change: Change, partitions: Partitions) -> None:
        if self.chance.random() < 0.3:
            await self._changes_assignment(change, partitions)
        raise Raised

    async def _commits(self, change: Change, partitions: Partitions) -> None:
        if self.sim.commits in ("by hand", "late"):
            await self._commit([TopicPartition(tp.topic, tp.partition, self._processed[tp.partition])
                                for tp in partitions if tp.partition in self._processed],
                               asynchronous=self.chance.random() < 0.3)

    async def _looks(self, change: Change, partitions: Partitions) -> None:
        """Ask the client all that can be asked without a change."""
        await self.consumer.position(await self.consumer.assignment())
        await self.consumer.lag()
        await self.consumer.health()
        await self.consumer.memberid()
        await self.consumer.committed(partitions, _LOOKUP_S)
        for tp in partitions[:1]:
            await self.consumer.get_watermark_offsets(tp, _LOOKUP_S)

    async def _changes_assignment(self, change: Change, partitions: Partitions) -> None:
        """Take up, from where the group stands, or give up, instead of the client."""
        if change is Change.ASSIGN:
            found = await self.consumer.committed(partitions, _LOOKUP_S)
            if all(each.error is None for each in found):
                await self._take_up([TopicPartition(each.topic, each.partition, max(each.offset, 0)) for each in found])
        elif self.sim.incremental:
            await self.consumer.incremental_unassign(partitions)
        else:
            await self.consumer.unassign()

    async def _take_up(self, partitions: Partitions) -> None:
        if self.sim.incremental:
            await self.consumer.incremental_assign(partitions)
        else:
            await self.consumer.assign(partitions)

    async def _seeks(self, change: Change, partitions: Partitions) -> None:
        """Go to where the group stands, behind an assignment of one's own; or to where one stands."""
        if change is Change.ASSIGN:
            found = await self.consumer.committed(partitions, _LOOKUP_S)
            if all(each.error is None for each in found):
                await self._take_up(partitions)
                for each in found:
                    await self.consumer.seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))
        else:
            for tp in await self.consumer.position(partitions):
                if tp.offset >= 0:
                    await self.consumer.seek(tp)

    async def _pauses(self, change: Change, partitions: Partitions) -> None:
        if change is Change.ASSIGN:
            await self._take_up(partitions)
        await self.consumer.pause(partitions)
        self._paused |= {tp.partition for tp in partitions}

    async def _unsubscribes(self, change: Change, partitions: Partitions) -> None:
        await self.consumer.unsubscribe()
        self._processed.clear()  # as a new member it may not speak of what it read as the one before
        self._uncommitted.clear()
        self._is_subscribed = False
        if self.chance.random() < 0.5:
            await self._subscribe()

    async def _subscribes(self, change: Change, partitions: Partitions) -> None:
        await self._subscribe()

    async def _closes(self, change: Change, partitions: Partitions) -> None:
        if self.sim.troubled:
            self._is_closed = True
            await self.consumer.close()

    # What happens to it

    async def kill(self) -> None:
        """Its process is gone."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.consumer.vanish()


WORK = (
    Worker._slow, Worker._raises, Worker._commits, Worker._looks, Worker._changes_assignment, Worker._seeks,
    Worker._pauses, Worker._unsubscribes, Worker._subscribes, Worker._closes,
)
"""What a callback may do."""
_OFTEN = (Worker._nothing, Worker._slow, Worker._commits)
_ONCE = (Worker._raises, Worker._unsubscribes, Worker._subscribes, Worker._closes)
"""What it does not do inside of another."""
