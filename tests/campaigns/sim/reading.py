"""Seeded simulation of a reader without a group, whole: client, brokers and application under one simulated clock.

One seed is one schedule. The consumer is a real one that reads one partition or three. Records come, and go from the
front of the log: those that the consumer has fetched and not handed out, those that it stands at, all. The application
reads with `poll()` or `consume()`, stands still, pauses, resumes and seeks, also to where nothing is. Brokers stop,
connections break and stand still. In the end all is healed, and records still come and go.

Checked are safety (what is read is in order, begins where it was sought, and leaves out only what was gone) and
progress (in the healed cluster each record that is there is read within seconds). Nothing helps along: without a group
there are no heartbeats, and the metadata are minutes old.

    python -m tests.campaigns.sim.reading --schedules 100000 --jobs 2
"""

from __future__ import annotations

import asyncio
import logging
import sys
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable

from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.partition import Partition
from headrace.records import Message
from headrace.records.batch_writer import write_batch
from headrace.testing.memory_network import MemoryNetwork
from headrace.types.records import TopicPartition

from .application import TOPIC, Consumer
from .campaign import hash_as_always, run_campaign
from .whole_clients import WholeClients

_NAME = "reader"
_TROUBLES_PER_S = 3.0
_HEALED_S = 4.0
"""What was on the wire, or is backed off, when the last trouble ended, is over then."""
_PATIENCE_S = 3.0


class _Place:
    """Where the application is in a partition.

    Attributes:
        next: offset of the record that is to come.
        is_lost: it was not in the log at some time since: a reset may lead anywhere that its policy allows.
        paused: nothing is to come.
    """

    def __init__(self) -> None:
        self.next, self.is_lost, self.paused = 0, False, False


class Reading(WholeClients):
    """One schedule."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._policy = self.chance.choice(["earliest", "earliest", "latest"])
        self._way = self.chance.choice(["poll", "consume", "both"])
        self._places = [_Place() for _ in range(self.chance.choice([1, 3]))]
        self._going = asyncio.Event()
        self._wishes: list[Callable[[], Awaitable[None]]] = []
        self._troubled, self._is_ending = True, False

    def _kind(self) -> str:
        return f"{self._policy}, {self._way}, of {len(self._places)}"

    async def _run(self) -> None:
        self.network = MemoryNetwork(self.chance.choice([1, 2, 3]), self.chance, BrokerSettings(),
                                     lambda: uuid.UUID(int=self.chance.getrandbits(128)))
        self.network.slowness_s = self.chance.choice([0.001, 0.02, 0.1])
        self.network.cluster.catalog.create(TOPIC, len(self._places), len(self.network.cluster.nodes))
        self._consumer = Consumer({
            "bootstrap.servers": self.network.servers, "client.id": _NAME, "socket.timeout.ms": 1500,
            "auto.offset.reset": self._policy, "fetch.wait.max.ms": 500,
            "reconnect.backoff.max.ms": 500, "max.partition.fetch.bytes": self.chance.choice([200, 10_000]),
            "queued.max.messages.kbytes": 1 if self.chance.random() < 0.3 else 65_536, "error_cb": self.note_error,
        }, self.network.way_of(_NAME), self.chance)
        await self._consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(len(self._places))])
        self._going.set()
        application = self.loop.create_task(self._read())
        await self._hurt()
        self._troubled = False
        await asyncio.sleep(_HEALED_S)
        for _ in range(5):
            await self._come_and_go()
        self._is_ending = True
        await application
        await self._consumer.close()
        self.network.close()

    def _let_go(self) -> None:
        del self._consumer

    # The application

    async def _read(self) -> None:
        while not self._is_ending and self._violation is None:
            await self._going.wait()
            while self._wishes:
                await self._wishes.pop(0)()
            timeout_s = self.chance.choice([0.0, 0.05, 0.3])
            if self._way == "poll" or (self._way == "both" and self.chance.random() < 0.5):
                message = await self._consumer.poll(timeout_s)
                records = [] if message is None else [message]
            else:
                records = await self._consumer.consume(self.chance.choice([1, 3, 100]), timeout_s)
            for each in records:
                self._note(each)
            await asyncio.sleep(self.chance.choice([0.0, 0.0, 0.01, 0.2]) if self._troubled and records else 0.01)

    def _note(self, message: Message) -> None:
        number, offset = message.partition() or 0, message.offset() or 0
        self.hold(message.error() is None, f"an error was read: {message.error()}")
        place, start = self._places[number], self._log(number).log.start_offset
        self.hold(not place.paused, f"{number}@{offset} was read while it was paused")
        if not place.is_lost:
            self.hold(offset == place.next, f"{number}@{offset} was read where {place.next} was to come")
        elif self._policy == "earliest":
            self.hold(offset <= max(place.next, start), f"{number}@{offset} was read: the log begins at {start}")
        place.next, place.is_lost = offset + 1, place.next < start and offset + 1 < start
        self.counts["records"] += 1

    # What happens

    def _log(self, number: int) -> Partition:
        return self.network.cluster.catalog.topics[TOPIC].partitions[number]

    def _add(self, number: int, count: int) -> None:
        self.network.append(TOPIC, number, write_batch([(i, 0, None, b"%d" % i, ()) for i in range(count)]))

    def _delete(self, number: int, offset: int) -> None:
        partition, place = self._log(number), self._places[number]
        self.network.apply(lambda cluster: partition.advance_start(offset))
        place.is_lost = place.is_lost or place.next < partition.log.start_offset

    async def _hurt(self) -> None:
        heal_at = self.chance.choice([2.0, 4.0, 8.0])
        while self.loop.now < heal_at:
            await asyncio.sleep(self.chance.expovariate(_TROUBLES_PER_S))
            what = self.chance.choice([self._write, self._write, self._forget, self._seek, self._pause, self._resume,
                                       self._stand_still, self._freeze, self._cut, self._stop_a_node])
            await what(self.chance.randrange(len(self._places)))
            self.counts[what.__name__.strip("_")] += 1
        for number in range(len(self._places)):
            await self._resume(number)

    async def _write(self, number: int) -> None:
        for _ in range(self.chance.choice([1, 4])):
            self._add(number, self.chance.choice([1, 3, 10]))

    async def _forget(self, number: int) -> None:
        start, end = self._log(number).log.start_offset, self._log(number).log.end_offset
        self._delete(number, self.chance.choice([end, self.chance.randint(start, end)]))

    async def _seek(self, number: int) -> None:
        log, place = self._log(number).log, self._places[number]
        offset = self.chance.choice([log.start_offset, log.end_offset, self.chance.randint(0, log.end_offset + 5)])

        async def seek() -> None:
            await self._consumer.seek(TopicPartition(TOPIC, number, offset))
            place.next, place.is_lost = offset, not log.start_offset <= offset <= log.end_offset

        self._wishes.append(seek)

    async def _pause(self, number: int) -> None:
        async def pause() -> None:
            await self._consumer.pause([TopicPartition(TOPIC, number)])
            self._places[number].paused = True

        self._wishes.append(pause)

    async def _resume(self, number: int) -> None:
        async def resume() -> None:
            await self._consumer.resume([TopicPartition(TOPIC, number)])
            self._places[number].paused = False

        self._wishes.append(resume)

    async def _stand_still(self, number: int) -> None:
        self._going.clear()
        await asyncio.sleep(self.chance.choice([0.1, 1.0]))
        self._going.set()

    async def _freeze(self, number: int) -> None:
        self.network.hold(_NAME, both_ways=self.chance.random() < 0.5)
        await asyncio.sleep(self.chance.choice([0.3, 2.0]))
        self.network.release(_NAME)

    async def _cut(self, number: int) -> None:
        self.network.cut(_NAME)

    async def _stop_a_node(self, number: int) -> None:
        node_id = self.chance.choice(list(self.network.cluster.nodes))
        self.network.stop_node(node_id)
        await asyncio.sleep(self.chance.uniform(0, 1.0))
        self.network.start_node(node_id)

    # The end

    async def _come_and_go(self) -> None:
        """Records come and go while the application stands still, or does not; then it reads what is there."""
        if self.chance.random() < 0.7:
            self._going.clear()
        for number in range(len(self._places)):
            await self._write(number)
            await asyncio.sleep(self.chance.choice([0.0, 0.3, 1.0]))
            if self.chance.random() < 0.5:
                await self._forget(number)
                self.counts["gone while healed"] += 1
            if self.chance.random() < 0.5:
                await self._write(number)
        self._going.set()
        until = self.loop.now + _PATIENCE_S
        while not all(map(self._is_read, range(len(self._places)))) and self._violation is None:
            late = [f"{n}@{self._places[n].next} of {self._log(n).log.start_offset} to {self._log(n).log.end_offset}"
                    for n in range(len(self._places)) if not self._is_read(n)]
            self.hold(self.loop.now < until, f"no progress: {', '.join(late)}")
            await asyncio.sleep(0.1)

    def _is_read(self, number: int) -> bool:
        log, place = self._log(number).log, self._places[number]
        return place.next == log.end_offset or log.start_offset == log.end_offset or (
            place.is_lost and self._policy == "latest")


def run_schedule(seed: int) -> Counter[str]:
    """Run one schedule; raises `Violation`."""
    return Reading(seed).run()


if __name__ == "__main__":
    hash_as_always("tests.campaigns.sim.reading")
    logging.disable()  # what a consumer would tell its user
    sys.exit(run_campaign(run_schedule, "Simulate a reader whose records go."))
