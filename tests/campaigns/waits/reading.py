"""Programs that read what comes now and then: each record comes soon, and once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from random import Random
from typing import Any

import pyarrow as pa

from headrace import Consumer, KafkaException, Message, Producer
from headrace.aio import AIOConsumer
from headrace.errors import WakeupError
from tests.campaigns.waits.outcome import Outcome
from tests.campaigns.waits.topics import made

LASTS_S = 2.0
_GIVEN_UP_S = 4.0
_WAYS = ("poll()", "poll(0)", "short poll()", "consume()", "short consume()", "for", "consume_arrow()", "async for",
         "await poll()")
_MEANWHILE = ("", "", "pauses", "commits", "is slow")


class Program:
    """A member of a group, alone in it, that waits for its first assignment; only then are records written.

    Args:
        bootstrap: the brokers.
        random: draws the program.
    """

    def __init__(self, bootstrap: str, random: Random) -> None:
        self._bootstrap, self._random = bootstrap, random
        self._topics = made(bootstrap, random, random.choice([(3, 1, 7), (3,), (1,)]))
        self._way = random.choice(_WAYS)
        self._meanwhile = random.choice(_MEANWHILE)
        few = self._way in ("for", "async for", "consume_arrow()")
        self._properties: dict[str, Any] = {
            "auto.offset.reset": "earliest", "group.protocol": random.choice(["classic", "consumer"]),
            "fetch.min.bytes": random.choice([1, 1, 1, 400]), "fetch.wait.max.ms": random.choice([500, 500, 50]),
            "isolation.level": random.choice(["read_committed", "read_uncommitted"]),
            "queued.max.messages.kbytes": random.choice([65_536, 65_536, 10]),
            "enable.partition.eof": not few and random.random() < 0.3}
        self._gap_s, self._linger_ms = random.choice([0.0005, 0.004, 0.02]), random.choice([0, 5])
        self._bursts = random.choice([(1,), (1, 1, 2, 3), (1, 50)])
        self._written, self._took = 0, list[float]()
        self._all_written, self._until = threading.Event(), 0.0
        self._writer = threading.Thread(target=self._write, args=(Random(random.random()),))

    def run(self) -> Outcome:
        """Read all of it, and wait a while for what does not come."""
        properties = {**self._properties, "bootstrap.servers": self._bootstrap, "group.id": self._topics[0]}
        if self._way in ("async for", "await poll()"):
            asyncio.run(self._read_async(properties))
        else:
            self._read(properties)
        self._writer.join()
        waits_s = self._properties["fetch.wait.max.ms"] / 1000 if self._properties["fetch.min.bytes"] > 1 else 0.0
        return Outcome(
            f"{self._way}, {self._meanwhile or 'nothing else'}, a gap of {self._gap_s} s, bursts of {self._bursts}, "
            f"linger.ms {self._linger_ms}, {self._topics}, {self._properties}",
            self._written, len(self._took), max(self._took, default=0.0) - waits_s)

    def _write(self, random: Random) -> None:
        with Producer({"bootstrap.servers": self._bootstrap, "linger.ms": self._linger_ms}) as producer:
            end = time.monotonic() + LASTS_S
            while time.monotonic() < end:
                for _ in range(random.choice(self._bursts)):
                    value = b"%.6f %s" % (time.monotonic(), b"x" * random.choice((10, 500)))
                    producer.produce(random.choice(self._topics), value, key=b"%d" % random.randrange(50))
                    self._written += 1
                producer.poll(0)
                time.sleep(random.random() * self._gap_s)
            producer.flush()
        self._all_written.set()

    def _begin(self) -> None:
        self._until = time.monotonic() + LASTS_S + _GIVEN_UP_S
        self._writer.start()

    def _is_over(self) -> bool:
        return (self._all_written.is_set() and len(self._took) >= self._written) or time.monotonic() > self._until

    def _take(self, message: Message | None) -> None:
        if message is not None and not message.error():
            self._take_value(message.value())

    def _take_value(self, value: bytes) -> None:
        self._took.append(time.monotonic() - float(value.split()[0]))

    def _read(self, properties: dict[str, Any]) -> None:
        consumer = Consumer(properties)
        consumer.subscribe(self._topics)
        while not consumer.assignment():
            consumer.poll(0.05)
        self._begin()
        if self._way == "for":
            waker = threading.Thread(target=self._wake, args=(consumer,))
            waker.start()
            with contextlib.suppress(WakeupError):
                for message in consumer:
                    self._take(message)
                    self._do_else(consumer)
            waker.join()
        while not self._is_over():
            self._read_once(consumer)
            self._do_else(consumer)
        consumer.close()

    def _wake(self, consumer: Consumer) -> None:
        """End a loop that waits in vain."""
        while not self._is_over():
            time.sleep(0.01)
        consumer.wakeup()

    def _read_once(self, consumer: Consumer) -> None:
        random, way = self._random, self._way
        if way.endswith("poll()") or way == "poll(0)":
            self._take(consumer.poll({"poll()": 1.0, "poll(0)": 0.0}.get(way, random.random() * 0.003)))
        elif way == "consume_arrow()":
            for value in pa.record_batch(consumer.consume_arrow(100, 0.05)).column("value").to_pylist():
                self._take_value(value)
        else:
            short = way == "short consume()"
            for message in consumer.consume(random.choice((1, 3, 500)) if short else 20,
                                            random.random() * 0.005 if short else 0.02):
                self._take(message)

    def _do_else(self, consumer: Consumer) -> None:
        drawn = self._random.random()
        if self._meanwhile == "pauses" and drawn < 0.02:
            one = consumer.assignment()[:1]
            consumer.pause(one)
            consumer.resume(one)
        elif self._meanwhile == "commits" and drawn < 0.05:
            with contextlib.suppress(KafkaException):  # there may be nothing to commit
                consumer.commit(asynchronous=True)
        elif self._meanwhile == "is slow" and drawn < 0.002:
            time.sleep(0.05)

    async def _read_async(self, properties: dict[str, Any]) -> None:
        consumer = AIOConsumer(properties)
        await consumer.subscribe(self._topics)
        while not await consumer.assignment():
            await consumer.poll(0.05)
        self._begin()
        if self._way == "await poll()":
            while not self._is_over():
                self._take(await consumer.poll(0.2))
        else:
            task = asyncio.create_task(self._loop(consumer))
            while not self._is_over():
                await asyncio.sleep(0.01)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await consumer.close()

    async def _loop(self, consumer: AIOConsumer) -> None:
        async for message in consumer:
            self._take(message)
