"""The application that is measured, in a process of its own: it hands over records to a producer, whatever happens.

Or it reads them with a consumer.

    python -m tests.campaigns.memory.application '{"way": "produce", ...}'

It prints one line of JSON: what it handed over and what became of that, and its memory.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import sys
import time
from collections import Counter
from typing import Any

from headrace import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, ProducerRecord, TopicPartition
from headrace.aio import AIOConsumer, AIOProducer
from headrace.errors import BufferFullError
from headrace.records import Message

TOPIC = "t"
FULL, FULL_PARTITIONS = "full", 4
"""A topic of which a consumer may not fetch all ahead."""
TABLE_ROWS = 10_000
_LIST = 500
_STILL_S = 2.0


class Application:
    """One way to hand over records.

    Args:
        case: `way`, `records`, `value_bytes`, `random`, `keys`, `topic`, `paused`, `properties`, as `__main__` gives
            them.
    """

    def __init__(self, case: dict[str, Any]) -> None:
        self.records: int = case["records"]
        self.value = os.urandom(case["value_bytes"]) if case.get("random") else bytes(case["value_bytes"])
        self.topic: str = case.get("topic", TOPIC)
        self.keys: int = case.get("keys", 0)
        self.properties: dict[str, Any] = case["properties"]
        self.paused = range(case.get("paused", False))
        self.told: Counter[str] = Counter()
        self.full = 0

    def key(self, number: int) -> bytes | None:
        return b"%d" % (number % self.keys) if self.keys else None

    def produce(self, closures: bool) -> None:
        """confluent_kafka's loop: `produce()`, and `poll()` when the buffer is full."""
        with self.producer() as producer:
            for number in range(self.records):
                callback = self.closure(number) if closures else None
                while True:
                    try:
                        producer.produce(self.topic, self.value, self.key(number), on_delivery=callback)
                        break
                    except BufferError:
                        self.full += 1
                        producer.poll(0.01)
            producer.flush()

    def closure(self, number: int) -> Any:
        """A function of its own for each record."""
        def told(error: KafkaError | None, message: Any) -> None:
            self.told[error.name() if error is not None else "stored"] += number >= 0

        return told

    def send(self) -> None:
        """Java's loop: `send()`, which blocks while there is no room."""
        with self.producer() as producer:
            for number in range(self.records):
                while True:
                    try:
                        producer.send(ProducerRecord(self.topic, self.value, self.key(number)))
                        break
                    except BufferFullError:
                        self.full += 1
            producer.flush()

    def arrow(self) -> None:
        """Whole columns."""
        import pyarrow as pa

        table = pa.table({"value": pa.array([self.value] * TABLE_ROWS, pa.binary())})
        with self.producer() as producer:
            for _ in range(self.records // TABLE_ROWS):
                producer.produce_arrow(self.topic, table)
            producer.flush()

    async def asyncio(self) -> None:
        """`await produce()`; nobody looks at what becomes of the records."""
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with AIOProducer(self.properties) as producer:
            await self.until_known(producer)
            begin()
            for number in range(self.records):
                await producer.produce(self.topic, self.value, self.key(number))
            await producer.flush()

    async def until_known(self, producer: AIOProducer) -> None:
        await producer.list_topics(self.topic, 10)

    def consume(self, stands_still: bool) -> None:
        """Read the topic over and over, or nothing at first."""
        with Consumer(self.properties) as reader:
            reader.list_topics(self.topic, 10)
            begin()
            reader.assign(self.beginnings())
            reader.pause([TopicPartition(self.topic, partition) for partition in self.paused])
            time.sleep(_STILL_S if stands_still else 0.0)
            while self.told["read"] < self.records:
                if not self.count(reader.consume(_LIST, 0.2)):
                    for start in self.beginnings():
                        reader.seek(start)

    async def consume_asyncio(self) -> None:
        async with AIOConsumer(self.properties) as reader:
            await reader.list_topics(self.topic, 10)
            begin()
            await reader.assign(self.beginnings())
            while self.told["read"] < self.records:
                if not self.count(await reader.consume(_LIST, 0.2)):
                    for start in self.beginnings():
                        await reader.seek(start)

    def beginnings(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, partition, OFFSET_BEGINNING) for partition in range(FULL_PARTITIONS)]

    def count(self, messages: list[Message]) -> int:
        assert all(message.error() is None for message in messages)
        self.told["read"] += len(messages)
        return len(messages)

    def producer(self) -> Producer:
        """A producer that knows the cluster. What it takes from now on is measured."""
        made = Producer(self.properties)
        made.list_topics(self.topic, 10)
        begin()
        return made

    def run(self, way: str) -> None:
        """Hand over all records and wait until each has met its end."""
        match way:
            case "produce":
                self.produce(closures=False)
            case "closures":
                self.produce(closures=True)
            case "send":
                self.send()
            case "arrow":
                self.arrow()
            case "asyncio":
                asyncio.run(self.asyncio())
            case "consume" | "stand still":
                self.consume(way == "stand still")
            case "consume asyncio":
                asyncio.run(self.consume_asyncio())


_baseline = 0


def begin() -> None:
    """From now on memory counts: forget the peak so far."""
    global _baseline
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    _baseline = status("VmRSS")


def status(name: str) -> int:
    """A figure of the kernel about this process, in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))


def main() -> None:
    case = json.loads(sys.argv[1])
    application = Application(case)
    started = time.monotonic()
    try:
        application.run(case["way"])
    except KafkaException as error:
        application.told[f"ended by {error}"] += 1
    peak = status("VmHWM")
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    print(json.dumps({
        "baseline": _baseline, "peak": peak, "left": status("VmRSS"), "full": application.full,
        "told": application.told, "seconds": time.monotonic() - started,
    }))


if __name__ == "__main__":
    main()
