"""Seeded simulation of consumers in a group, whole: clients, brokers and applications under one simulated clock.

One seed is one schedule. The consumers are real ones (`AIOConsumer`, all its machines, its connections), the cluster is
the embedded broker, the network is made of memory. On top are the applications (`application`): they collect with
`consume()`, work for a while, and commit what they have read, in a transaction or without; their rebalance callbacks
are slow, fail, and call back into the client. Workers come, go, are killed, are cut off for longer than their session,
and work for longer than they may; brokers stop, so that coordinators move, connections break. In the end all is healed.

Checked are safety (with transactions each record comes out once and in order; without, none is missing, no commit is
ahead of the work, none goes back; nobody reads a partition in a generation in which it is another's) and progress (in
the healed cluster all comes out).

    python -m tests.campaigns.sim.membership --schedules 100000 --jobs 2

These are classic groups; `planned_membership` has those that the coordinator plans for.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace.broker.coordinators.committed_offsets import Committed, OffsetStore
from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.partition import ApiError
from headrace.machines.producer.transactions import ConsumerGroupMetadata
from headrace.records import Message
from headrace.records.batch_writer import write_batch
from headrace.testing.memory_network import Connect, MemoryNetwork

from .application import GROUP, MAX_POLL_S, SESSION_S, TOPIC, Worker
from .campaign import Schedule, hash_as_always, run_campaign
from .whole_clients import WholeClients

STRATEGIES = ("range", "roundrobin", "cooperative-sticky")
HEARTBEAT_S = 0.25
_PARTITIONS = 3
_END_AT_S = 90.0


class Membership(WholeClients):
    """One schedule.

    Args:
        seed: of all that is left to chance.

    Attributes:
        strategies: how a group may share its partitions.
        ways: how the applications may commit.
        troubles_per_s: how many.
        strategy: how this one does.
        incremental: its rebalances change an assignment; else they replace it.
        commits: how the applications commit.
        troubled: faults may still come.
    """

    strategies: tuple[str, ...] = STRATEGIES
    ways: tuple[str, ...] = ("transactional", "transactional", "by hand", "late", "stored")
    troubles_per_s = 1.5

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.troubled = True
        self.strategy = self.chance.choice(self.strategies)
        self.incremental = self.strategy == "cooperative-sticky"
        self.commits = self.chance.choice(self.ways)
        self.written: dict[int, list[int]] = {partition: [] for partition in range(_PARTITIONS)}
        self._readers: dict[tuple[int, int], str] = {}
        self._sent = dict.fromkeys(range(_PARTITIONS), 0)
        self._workers: list[Worker] = []
        self._numbers = itertools.count(1)

    def _kind(self) -> str:
        return f"{self.strategy}, {self.commits}"

    def _let_go(self) -> None:
        self._workers.clear()  # the network leads here: consumers that nobody lets go would stay for ever

    async def _run(self) -> None:
        settings = BrokerSettings(consumer_heartbeat_interval_ms=int(HEARTBEAT_S * 1000),
                                  consumer_session_timeout_ms=int(SESSION_S * 1000))
        self.network = MemoryNetwork(self.chance.choice([1, 2, 3]), self.chance, settings,
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
        for _ in range(self.chance.choice([5, 15])):
            partition, count = self.chance.randrange(_PARTITIONS), self.chance.choice([1, 3, 10])
            first = self._sent[partition]
            batch = write_batch([(first + i, 0, None, b"%d" % (first + i), ()) for i in range(count)])
            self.network.append(TOPIC, partition, batch)
            self._sent[partition] += count
            await asyncio.sleep(self.chance.uniform(0, 0.8))

    # Trouble

    def _add(self) -> None:
        self._workers.append(Worker(self, next(self._numbers)))

    def closed_itself(self, worker: Worker) -> None:
        """A worker has closed its consumer in a callback: another takes its place."""
        if worker in self._workers and not worker.ending:
            self._workers.remove(worker)
            self._add()

    def connected(self, name: str) -> tuple[Mapping[str, Any], Connect]:
        """Properties of a consumer, and its way to the brokers."""
        return {
            "bootstrap.servers": self.network.servers, "group.id": GROUP, "client.id": name,
            "auto.offset.reset": "earliest", "enable.auto.commit": self.commits == "stored",
            "enable.auto.offset.store": False, "auto.commit.interval.ms": 200, "fetch.wait.max.ms": 500,
            "max.poll.interval.ms": int(MAX_POLL_S * 1000), "socket.timeout.ms": 1500, "reconnect.backoff.max.ms": 500,
            "max.partition.fetch.bytes": self.chance.choice([200, 10_000]), "error_cb": self.note_error,
            **self.membership(),
        }, self.network.way_of(name)

    def membership(self) -> Mapping[str, Any]:
        """Properties of a member of the group."""
        return {"partition.assignment.strategy": self.strategy, "session.timeout.ms": int(SESSION_S * 1000),
                "heartbeat.interval.ms": int(HEARTBEAT_S * 1000)}

    def troubles(self) -> Sequence[Callable[[Worker | None], Awaitable[None]]]:
        """What may happen."""
        return self._kill, self._end, self._join, self._freeze, self._cut, self._stop_a_node

    async def _hurt(self) -> None:
        heal_at = self.chance.choice([2.0, 4.0, 8.0])
        while self.loop.now < heal_at:
            await asyncio.sleep(self.chance.expovariate(self.troubles_per_s))
            what = self.chance.choice(self.troubles())
            await what(self.chance.choice(self._workers) if self._workers else None)
            self.counts[what.__name__.strip("_")] += 1
        if not self._workers:
            self._add()

    async def _kill(self, victim: Worker | None) -> None:
        if victim is not None:
            self._workers.remove(victim)
            self.network.cut_off(victim.name)
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
        """Neither it nor its connections move for a while."""
        if victim is not None:
            victim.going.clear()
            self.network.hold(victim.name, both_ways=self.chance.random() < 0.5)
            await asyncio.sleep(self.chance.choice([0.3, SESSION_S + 0.5, MAX_POLL_S + 1]))
            self.network.release(victim.name)
            victim.going.set()

    async def _cut(self, victim: Worker | None) -> None:
        self.network.cut(victim.name if victim is not None else None)

    async def _stop_a_node(self, victim: Worker | None) -> None:
        node_id = self.chance.choice(list(self.network.cluster.nodes))
        before = self.network.cluster.coordinator(GROUP)
        self.network.stop_node(node_id)
        self.counts["coordinator moved"] += self.network.cluster.coordinator(GROUP) is not before
        await asyncio.sleep(self.chance.uniform(0, 1.0))
        self.network.start_node(node_id)

    # What the applications do with what they read

    def count(self, what: str) -> None:
        """Something happened."""
        self.counts[what] += 1

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
        try:
            self.group.check_transactional_commit(member.member_id, member.instance_id, member.generation)
        except ApiError:
            self.counts["transactions aborted"] += 1
            return False
        self.counts["transactions committed"] += 1
        self.note_processed(records)
        self.network.cluster.offsets.commit(GROUP, [((TOPIC, p), Committed(offset)) for p, offset in nexts.items()])
        return True

    @property
    def group(self) -> Any:
        """The group, as its coordinator has it."""
        return self.network.cluster.groups.get(GROUP)

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
            self.hold(self.loop.now < _END_AT_S, f"no progress: committed {self._committed()} of {self._sent}")
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


def main(schedule: Schedule, module: str) -> int:
    """Run a campaign; a seed means the same schedule each time."""
    hash_as_always(module)
    logging.disable()  # what a consumer would tell its user
    return run_campaign(schedule, "Simulate consumers in a group, with their applications.")


if __name__ == "__main__":
    sys.exit(main(run_schedule, "tests.campaigns.sim.membership"))
