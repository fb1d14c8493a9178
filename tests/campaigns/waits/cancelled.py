"""Asyncio programs whose reads are cancelled at any moment: nothing is lost by it, and nothing comes twice."""

from __future__ import annotations

import asyncio
import threading
import time
from random import Random
from typing import Any

import pyarrow as pa

from headrace import Message, Producer
from headrace.aio import AIOConsumer
from tests.campaigns.waits.outcome import Outcome
from tests.campaigns.waits.topics import made

_GIVEN_UP_S = 30.0
_WAYS = ("await poll()", "await poll(0)", "await consume()", "await consume(timeout=0)", "anext()", "async for",
         "await consume_arrow()")


class Program:
    """One consumer, alone in its group, that is closed and made anew now and then; each partition's order is checked.

    Args:
        bootstrap: the brokers.
        random: draws the program.
    """

    def __init__(self, bootstrap: str, random: Random) -> None:
        self._bootstrap, self._random = bootstrap, random
        self._next = [0] * random.choice([1, 3])
        self._topic = made(bootstrap, random, [len(self._next)])[0]
        self._records, self._size = random.choice([200, 1_000, 3_000]), random.choice([10, 300, 5_000])
        self._pause_s = random.choice([0.0, 1 / 2_000, 1 / 20_000])
        self._ways = random.sample(_WAYS, random.randint(1, 4))
        self._soon_s = random.choice([0.0003, 0.002, 0.01])
        self._properties: dict[str, Any] = {
            "group.protocol": random.choice(["classic", "consumer"]),
            "max.partition.fetch.bytes": random.choice([1_000, 20_000, 1_048_576])}
        self._writing = {"linger.ms": random.choice([0, 2]), "compression.type": random.choice(["none", "lz4"])}
        self._wrong = ""

    def run(self) -> Outcome:
        """Read all of it, by calls most of which are cancelled."""
        return asyncio.run(self._run())

    async def _run(self) -> Outcome:
        writer = threading.Thread(target=self._write)
        writer.start()
        consumer, until = await self._consumer(), time.monotonic() + _GIVEN_UP_S
        while sum(self._next) < self._records and not self._wrong and time.monotonic() < until:
            if self._random.random() < 0.002:  # what is committed is what was handed out
                await consumer.close()
                consumer = await self._consumer()
            await self._read_once(consumer)
        if not self._wrong:
            self._take(await consumer.poll(0.05))
        await consumer.close()
        await asyncio.to_thread(writer.join)
        return Outcome(f"{self._ways}, {len(self._next)} partitions, {self._size} bytes, a pause of {self._pause_s} s, "
                       f"cancelled within {self._soon_s} s, {self._properties}, {self._writing}",
                       self._records, sum(self._next), 0.0, self._wrong)

    def _write(self) -> None:
        with Producer({"bootstrap.servers": self._bootstrap, **self._writing}) as producer:
            for number in range(self._records):
                producer.produce(self._topic, b"x" * self._size, partition=number % len(self._next))
                time.sleep(self._pause_s)

    async def _consumer(self) -> AIOConsumer:
        consumer = AIOConsumer({**self._properties, "bootstrap.servers": self._bootstrap, "group.id": self._topic,
                                "auto.offset.reset": "earliest"})
        await consumer.subscribe([self._topic])
        return consumer

    async def _read_once(self, consumer: AIOConsumer) -> None:
        random, way = self._random, self._random.choice(self._ways)
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._read(consumer, way))
        ending = random.random()
        if ending < 0.7:
            loop.call_later(random.random() * self._soon_s, task.cancel)
        elif ending < 0.8:
            await asyncio.sleep(0 if ending < 0.75 else 0.0001)
            task.cancel()
        try:
            async with asyncio.timeout(0.5):
                await task
        except (asyncio.CancelledError, TimeoutError):
            pass

    async def _read(self, consumer: AIOConsumer, way: str) -> None:
        random = self._random
        timeout = 0.0 if way.endswith("0)") else random.choice([0.001, 1.0])
        if way.startswith("await poll("):
            self._take(await consumer.poll(timeout))
        elif way.startswith("await consume("):
            for message in await consumer.consume(random.choice([1, 10, 500]), timeout):
                self._take(message)
        elif way == "await consume_arrow()":
            batch = pa.record_batch(await consumer.consume_arrow(random.choice([10, 500]), timeout))
            for partition, offset in zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True):
                self._take_offset(partition, offset)
        else:
            async for message in consumer:
                self._take(message)
                if way == "anext()" or random.random() < 0.2:
                    break

    def _take(self, message: Message | None) -> None:
        if message is not None and message.error():
            self._wrong = self._wrong or str(message.error())
        elif message is not None:
            self._take_offset(message.partition(), message.offset())

    def _take_offset(self, partition: int, offset: int) -> None:
        expected = self._next[partition]
        if offset != expected and not self._wrong:
            self._wrong = f"offset {offset} of partition {partition} came in place of {expected}"
        self._next[partition] += 1
