"""Seeded simulation of consumers in a group, whole: clients, brokers and applications under one simulated clock.

One seed is one schedule. The consumers are real ones (`AIOConsumer`, all its machines, its connections), the cluster is
the embedded broker, the network is made of memory. On top are the applications: they collect with `consume()`, work
for a while, and commit what they have read, in a transaction or without, with slow and failing rebalance callbacks.
Workers come, go, are killed, are cut off for longer than their session, and work for longer than they may; brokers
stop, connections break. In the end all is healed.

Checked are safety (with transactions each record comes out once and in order; without, none is missing, no commit is
ahead of the work, none goes back; nobody reads a partition in a generation in which it is another's) and progress (in
the healed cluster all comes out).

    python -m tests.campaigns.sim.membership --schedules 10000 --jobs 2
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import sys
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from headrace.aio import AIOConsumer
from headrace.broker.coordinators.committed_offsets import Committed, OffsetStore
from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.partition import ApiError
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.consumer.consumer_engine import ConsumerEngine
from headrace.client.waits import LoopWaits, Wait
from headrace.errors import KafkaException
from headrace.machines.producer.transactions import ConsumerGroupMetadata
from headrace.records import Message, PollFastPath
from headrace.records.batch_writer import write_batch
from headrace.testing.memory_network import Connect, MemoryNetwork
from headrace.testing.simulated_clock import DeadlockError, LivelockError, SimulatedLoop
from headrace.types.records import TopicPartition

from .campaign import Violation, run_campaign

TOPIC, GROUP = "t", "g"
STRATEGIES = ("range", "roundrobin", "cooperative-sticky")
_PARTITIONS = 3
_HEAL_AT_S = 20.0
_END_AT_S = 120.0
_SESSION_S, _MAX_POLL_S = 2.0, 4.0


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
                await asyncio.wait_for(self._told.wait(), None if left_s == float("inf") else left_s)

    def notify(self) -> None:
        self._told.set()


class Consumer(AIOConsumer):
    """A real consumer in the simulated network."""

    def __init__(self, config: Mapping[str, Any], connect: Connect, chance: random.Random) -> None:
        clock = asyncio.get_running_loop().time
        self._waits = SimulatedWaits(clock)
        self._running, self._fast_path = 0, PollFastPath(weakref.ref(self), AIOConsumer._next)
        self._given = ApplicationCallbacks(self)
        self._engine = ConsumerEngine(
            config, self, self._given, self._waits.notify, awaits=True, connector=connect, clock=clock,
            jitter=chance.random)

    async def vanish(self) -> None:
        """End without a word to anybody."""
        self._engine.machines.closed = True
        await self._engine.machines.client.close()


class Worker:
    """An application with a consumer. A new one begins where the group stands.

    Args:
        sim: what it belongs to.
        number: its number.
    """

    def __init__(self, sim: Membership, number: int) -> None:
        self.sim, self.name, self.chance = sim, f"worker-{number}", sim.chance
        self.going = asyncio.Event()
        self.going.set()
        self.ending = False
        self._processed: dict[int, int] = {}
        self._uncommitted: set[int] = set()
        calls_back = self.chance.random() < 0.5
        self._callbacks = {"on_assign": self._on_assign}
        if calls_back:
            self._callbacks |= {"on_revoke": self._on_change, "on_lost": self._on_change}
        self.consumer = Consumer({
            "bootstrap.servers": sim.network.servers, "group.id": GROUP, "client.id": self.name,
            "partition.assignment.strategy": sim.strategy, "auto.offset.reset": "earliest",
            "enable.auto.commit": sim.commits == "stored", "enable.auto.offset.store": False,
            "auto.commit.interval.ms": 200,
            "session.timeout.ms": int(_SESSION_S * 1000), "heartbeat.interval.ms": 300,
            "max.poll.interval.ms": int(_MAX_POLL_S * 1000), "fetch.wait.max.ms": 100,
            "max.partition.fetch.bytes": sim.chance.choice([200, 10_000]), "socket.timeout.ms": 3000,
            "reconnect.backoff.max.ms": 500, "error_cb": lambda error: None,
        }, sim.network.way_of(self.name), sim.chance)
        self.task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        await self.consumer.subscribe([TOPIC], **self._callbacks)
        while not self.ending:
            await self.going.wait()
            try:
                messages = await self.consumer.consume(self.chance.choice([1, 5, 100]), self.chance.uniform(0.05, 2))
            except Raised:
                continue
            records = [each for each in messages if each.error() is None]
            if not records:
                if self._uncommitted:
                    await self._commit_late()  # what is still ours is taken once the rebalance is over
                continue
            member = await self.consumer.consumer_group_metadata()
            assert member is not None
            self.sim.note_read(self.name, member, records)
            await self._pause()
            await self._finish(member, records)
        with suppress(Raised):
            await self.consumer.close()

    async def _pause(self) -> None:
        """Work: mostly quick, sometimes longer than `max.poll.interval.ms` allows."""
        slow = self.sim.troubled and self.chance.random() < 0.02
        await asyncio.sleep(_MAX_POLL_S + 1 if slow else self.chance.uniform(0, 0.2))
        await self.going.wait()

    async def _finish(self, member: ConsumerGroupMetadata, records: list[Message]) -> None:
        nexts = {each.partition() or 0: (each.offset() or 0) + 1 for each in records}
        if self.sim.commits == "transactional":
            if not self.sim.transact(member, records, nexts):
                await self._rewind()
            return
        self.sim.note_processed(records)
        self._processed.update(nexts)
        if self.sim.commits == "by hand":
            await self._commit([TopicPartition(TOPIC, partition, offset) for partition, offset in nexts.items()])
        elif self.sim.commits == "stored":
            with suppress(KafkaException):  # it is not ours any more
                await self.consumer.store_offsets(
                    offsets=[TopicPartition(TOPIC, partition, offset) for partition, offset in nexts.items()])
        elif self.sim.commits == "late":
            await self._commit_late()

    async def _commit_late(self) -> None:
        """Commit all that was read, what has moved elsewhere since included."""
        await self._commit([TopicPartition(TOPIC, *each) for each in self._processed.items()])

    async def _commit(self, offsets: list[TopicPartition]) -> None:
        if not offsets:
            return
        self._uncommitted |= {each.partition for each in offsets}
        with suppress(KafkaException):
            done = await self.consumer.commit(offsets=offsets, asynchronous=False) or []
            self._uncommitted -= {each.partition for each in done if each.error is None}

    async def _rewind(self) -> None:
        """The transaction was aborted: go back to where the group stands, with what is still ours."""
        while True:
            with suppress(KafkaException):
                found = await self.consumer.committed(await self.consumer.assignment(), 5.0)
                if all(each.error is None for each in found):
                    break
        for each in found:
            with suppress(KafkaException):
                await self.consumer.seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))

    async def _on_assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """What comes back begins where the group stands: what was read before says nothing any more."""
        for tp in partitions:
            self._processed.pop(tp.partition, None)
            self._uncommitted.discard(tp.partition)
        await self._on_change(consumer, partitions)

    async def _on_change(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        dice = self.chance.random()
        if dice < 0.3:
            await asyncio.sleep(self.chance.uniform(0, 0.5))
        elif dice < 0.4:
            self.sim.counts["callbacks raised"] += 1
            raise Raised
        elif dice < 0.6 and self.sim.commits in ("by hand", "late"):
            await self._commit([TopicPartition(tp.topic, tp.partition, self._processed[tp.partition])
                                for tp in partitions if tp.partition in self._processed])

    # What happens to it

    async def kill(self) -> None:
        """Its process is gone."""
        self.sim.network.cut_off(self.name)
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.consumer.vanish()

    async def freeze(self, seconds: float, both_ways: bool) -> None:
        """Neither it nor its connections move for a while."""
        self.going.clear()
        self.sim.network.hold(self.name, both_ways=both_ways)
        await asyncio.sleep(seconds)
        self.sim.network.release(self.name)
        self.going.set()


class Membership:
    """One schedule.

    Args:
        seed: of all that is left to chance.

    Attributes:
        troubled: faults may still come.
        counts: what happened, by name.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.troubled = True
        self.strategy = self.chance.choice(STRATEGIES)
        self.commits = self.chance.choice(["transactional", "transactional", "by hand", "late", "stored"])
        self.written: dict[int, list[int]] = {partition: [] for partition in range(_PARTITIONS)}
        self._readers: dict[tuple[int, int], str] = {}
        self._sent = dict.fromkeys(range(_PARTITIONS), 0)
        self._workers: list[Worker] = []
        self._numbers = itertools.count(1)
        self._violation: Violation | None = None
        self.loop = SimulatedLoop()

    def run(self) -> Counter[str]:
        """Run it; raises `Violation`."""
        try:
            self.loop.run(self._run())
        except (DeadlockError, LivelockError) as stuck:
            self.hold(False, f"no progress: {type(stuck).__name__}")
        if self._violation is not None:
            raise self._violation
        for failure in self.loop.failures:
            self.hold(False, f"unhandled: {failure.get('message')}: {failure.get('exception')!r}")
        return self.counts

    def hold(self, holds: bool, otherwise: str) -> None:
        """Check a property. The first that does not hold ends the schedule, wherever it was noticed."""
        if not holds:
            where = f"seed {self.seed} ({self.strategy}, {self.commits}) at {self.loop.now:.3f} s"
            self._violation = self._violation or Violation(f"{where}: {otherwise}")
            raise self._violation

    async def _run(self) -> None:
        self.network = MemoryNetwork(self.chance.choice([1, 2]), self.chance, BrokerSettings(),
                                     lambda: uuid.UUID(int=self.chance.getrandbits(128)))
        self.network.slowness_s = self.chance.choice([0.001, 0.02, 0.1])
        self._watch(self.network.cluster.offsets)
        self.network.cluster.catalog.create(TOPIC, _PARTITIONS, len(self.network.cluster.nodes))
        for _ in range(self.chance.choice([1, 2, 3])):
            self._add()
        feeding = self.loop.create_task(self._feed())
        await self._hurt()
        self.troubled = False
        await feeding
        await self._settle()
        for worker in self._workers:
            worker.ending = True
        await asyncio.gather(*(worker.task for worker in self._workers))
        self._check()
        self.network.close()

    async def _feed(self) -> None:
        for _ in range(self.chance.choice([10, 30])):
            partition, count = self.chance.randrange(_PARTITIONS), self.chance.choice([1, 3, 10])
            first = self._sent[partition]
            batch = write_batch([(first + i, 0, None, b"%d" % (first + i), ()) for i in range(count)])
            self.network.append(TOPIC, partition, batch)
            self._sent[partition] += count
            await asyncio.sleep(self.chance.uniform(0, 1.2))

    # Trouble

    def _add(self) -> None:
        self._workers.append(Worker(self, next(self._numbers)))

    async def _hurt(self) -> None:
        while self.loop.now < _HEAL_AT_S:
            await asyncio.sleep(self.chance.expovariate(1.0))
            what = self.chance.choice((self._kill, self._end, self._join, self._freeze, self._cut, self._stop_a_node))
            await what(self.chance.choice(self._workers) if self._workers else None)
            self.counts[what.__name__.strip("_")] += 1
        if not self._workers:
            self._add()

    async def _kill(self, victim: Worker | None) -> None:
        if victim is not None:
            self._workers.remove(victim)
            await victim.kill()
            self._add()

    async def _end(self, victim: Worker | None) -> None:
        if victim is not None:
            self._workers.remove(victim)
            victim.ending = True
            await asyncio.gather(victim.task)

    async def _join(self, victim: Worker | None) -> None:
        if len(self._workers) < 4:
            self._add()

    async def _freeze(self, victim: Worker | None) -> None:
        if victim is not None:
            await victim.freeze(self.chance.choice([0.5, _SESSION_S + 1, _MAX_POLL_S + 3]), self.chance.random() < 0.5)

    async def _cut(self, victim: Worker | None) -> None:
        self.network.cut(victim.name if victim is not None else None)

    async def _stop_a_node(self, victim: Worker | None) -> None:
        node_id = self.chance.choice(list(self.network.cluster.nodes))
        self.network.stop_node(node_id)
        await asyncio.sleep(self.chance.uniform(0, 2.0))
        self.network.start_node(node_id)

    # What the applications do with what they read

    def note_read(self, worker: str, member: ConsumerGroupMetadata, records: list[Message]) -> None:
        """An application got records, as a member of a generation."""
        last: dict[int, int] = {}
        for each in records:
            partition, offset = each.partition() or 0, each.offset() or 0
            owner = self._readers.setdefault((member.generation, partition), worker)
            self.hold(owner == worker, f"{owner} and {worker} read {partition} in generation {member.generation}")
            self.hold(offset > last.get(partition, -1), f"one call has {partition}@{offset} out of order, or twice")
            last[partition] = offset

    def transact(self, member: ConsumerGroupMetadata, records: list[Message], nexts: dict[int, int]) -> bool:
        """Write records and commit their offsets, both or neither; False if the group refuses the member (KIP-447)."""
        group = self.network.cluster.groups.get(GROUP)
        assert group is not None
        try:
            group.check_transactional_commit(member.member_id, member.instance_id, member.generation)
        except ApiError:
            self.counts["transactions aborted"] += 1
            return False
        self.counts["transactions committed"] += 1
        self.note_processed(records)
        self.network.cluster.offsets.commit(GROUP, [((TOPIC, p), Committed(offset)) for p, offset in nexts.items()])
        return True

    def note_processed(self, records: list[Message]) -> None:
        """An application is done with records."""
        for each in records:
            self.written[each.partition() or 0].append(each.offset() or 0)

    # The end

    def _committed(self) -> dict[int, int]:
        found = self.network.cluster.offsets.fetch(GROUP)
        return {p: found[TOPIC, p].offset if (TOPIC, p) in found else 0 for p in range(_PARTITIONS)}

    async def _settle(self) -> None:
        """Until the group has committed all."""
        while self._committed() != self._sent and self._violation is None:
            self.hold(self.loop.now < _END_AT_S, f"committed {self._committed()} of {self._sent}")
            await asyncio.sleep(0.5)

    def _watch(self, store: OffsetStore) -> None:
        """Look at each commit that the broker lets in."""
        commit = store.commit

        def watched(group: str, entries: Iterable[tuple[tuple[str, int], Committed]]) -> None:
            entries = list(entries)
            for (_, partition), committed in entries:
                self._check_commit(partition, committed.offset)
            commit(group, entries)

        store.commit = watched  # type: ignore[method-assign]

    def _check_commit(self, partition: int, offset: int) -> None:
        before, done = self._committed()[partition], set(self.written[partition])
        self.hold(offset >= before, f"{partition} was set back from {before} to {offset}")
        self.hold(done.issuperset(range(offset)), f"{partition} is committed to {offset}, ahead of the work")

    def _check(self) -> None:
        for partition, offsets in self.written.items():
            wanted = list(range(self._sent[partition]))
            if self.commits == "transactional":
                self.hold(offsets == wanted, f"{partition} came out as {offsets}")
            else:
                self.hold(sorted(set(offsets)) == wanted, f"of {partition} only {sorted(set(offsets))} came out")
            self.counts["records"] += len(wanted)


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return Membership(seed).run()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # so that a seed means the same schedule each time
        os.execve(sys.executable, [sys.executable, "-m", "tests.campaigns.sim.membership", *sys.argv[1:]],
                  {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(run_campaign(run_schedule, "Simulate consumers in a group, with their applications."))
