"""The measured processes: each client produces to and consumes from one topic in its own best way.

Run by `benchmarks.clients` as `python -m benchmarks.peers REQUEST`, one process per measurement. ours and
confluent-kafka share their settings and their loop; the others get what their documentation advises for throughput.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

from benchmarks import profiler
from benchmarks.measure import Sample, Stopwatch, answer

WARM_UP = 2_000
"""Records that are moved before the clock starts."""
CONSUME_BATCH = 10_000

PRODUCER = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 20,
    "compression.type": "none",
    "queue.buffering.max.messages": 1_000_000,
}
CONSUMER = {
    "group.id": "benchmark",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "max.partition.fetch.bytes": 10_000_000,
}
CONFLUENT_CONSUMER = {
    **CONSUMER,
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 1_000_000,
    "fetch.queue.backoff.ms": 1,
}
KAFKA_PYTHON_PRODUCER = {"acks": "all", "enable_idempotence": True, "linger_ms": 20, "batch_size": 262_144}
AIOKAFKA_PRODUCER = {"acks": "all", "enable_idempotence": True, "linger_ms": 20, "max_batch_size": 262_144}
SLOW_CONSUMER = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest",
                 "max_partition_fetch_bytes": 10_000_000}


def values(count: int, size: int) -> Iterator[bytes]:
    """Values of `size` bytes; a thousand different ones in turn, which a codec cannot take for one."""
    source = random.Random(7)
    return itertools.islice(itertools.cycle([source.randbytes(size) for _ in range(1_000)]), count)


class Failures:
    """Counts the deliveries that failed; successful ones cost no callback."""

    def __init__(self) -> None:
        self.count = 0
        self.first: object = None

    def __call__(self, error: object, _message: object) -> None:
        if error is not None:
            self.count += 1
            self.first = self.first or error


def produce_all(producer: Any, topic: str, rows: Iterable[bytes]) -> int:
    """Produce all values with confluent-kafka's calls, waiting for room where there is none; returns what is left."""
    produce, poll = producer.produce, producer.poll
    for value in rows:
        while True:
            try:
                produce(topic, value)
                break
            except BufferError:
                poll(0.05)
    left: int = producer.flush(300)
    return left


def produce_confluent(client: str, request: dict[str, Any]) -> Sample:
    """confluent-kafka's API, which is ours as well."""
    failures = Failures()
    settings = {**PRODUCER, "bootstrap.servers": request["bootstrap"], "on_delivery": failures,
                "delivery.report.only.error": True, **request["settings"]}
    producer = producer_class(client)(settings)

    def send(topic: str, count: int) -> None:
        left = produce_all(producer, topic, values(count, request["size"]))
        if left or failures.count:
            raise RuntimeError(f"{left} records not sent, {failures.count} failed: {failures.first}")

    send(request["warm_topic"], WARM_UP)
    with profiler.maybe(request["profile"]), Stopwatch() as watch:
        send(request["topic"], request["records"])
    return watch.sample(request["records"])


def producer_class(client: str) -> Any:
    """`Producer` of ours or of confluent-kafka."""
    if client == "headrace":
        from headrace import Producer

        return Producer
    import confluent_kafka

    return confluent_kafka.Producer


def consume_confluent(client: str, request: dict[str, Any]) -> Sample:
    """consume(n), as confluent-kafka names it; `consume-values` takes each record's value as well."""
    settings = {"bootstrap.servers": request["bootstrap"], **request["settings"]}
    consumer: Any
    partition: Any
    if client == "headrace":
        from headrace import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer, partition, beginning = Consumer({**CONSUMER, **settings}), TopicPartition, OFFSET_BEGINNING
    else:
        import confluent_kafka

        consumer = confluent_kafka.Consumer({**CONFLUENT_CONSUMER, **settings})
        partition, beginning = confluent_kafka.TopicPartition, confluent_kafka.OFFSET_BEGINNING
    with_values = request["action"] == "consume-values"

    def read(topic: str, count: int) -> None:
        consumer.assign([partition(topic, p, beginning) for p in range(request["partitions"])])
        left, size = count, 0
        while left:
            messages = consumer.consume(min(CONSUME_BATCH, left), 30)
            if not messages:
                raise RuntimeError(f"no records for 30 s, {left} missing")
            if messages[-1].error() is not None:
                raise RuntimeError(messages[-1].error())
            if with_values:
                for message in messages:
                    size += len(message.value())
            left -= len(messages)
        if with_values and size != count * request["size"]:
            raise RuntimeError(f"{size} bytes of values, expected {count * request['size']}")

    read(request["warm_topic"], WARM_UP)
    with profiler.maybe(request["profile"]), Stopwatch() as watch:
        read(request["topic"], request["records"])
    consumer.close()
    return watch.sample(request["records"])


def produce_kafka_python(_client: str, request: dict[str, Any]) -> Sample:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=request["bootstrap"], **KAFKA_PYTHON_PRODUCER)

    def send(topic: str, count: int) -> None:
        last = None
        for value in values(count, request["size"]):
            last = producer.send(topic, value)
        producer.flush(300)
        if last is not None:
            last.get(30)

    send(request["warm_topic"], WARM_UP)
    with Stopwatch() as watch:
        send(request["topic"], request["records"])
    producer.close()
    return watch.sample(request["records"])


def consume_kafka_python(_client: str, request: dict[str, Any]) -> Sample:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=request["bootstrap"], max_poll_records=CONSUME_BATCH, **SLOW_CONSUMER)

    def read(topic: str, count: int) -> None:
        partitions = [TopicPartition(topic, p) for p in range(request["partitions"])]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        left = count
        while left > 0:
            left -= sum(map(len, consumer.poll(timeout_ms=1_000).values()))

    read(request["warm_topic"], WARM_UP)
    with Stopwatch() as watch:
        read(request["topic"], request["records"])
    consumer.close()
    return watch.sample(request["records"])


def produce_aiokafka(_client: str, request: dict[str, Any]) -> Sample:
    from aiokafka import AIOKafkaProducer

    async def run() -> Stopwatch:
        producer = AIOKafkaProducer(bootstrap_servers=request["bootstrap"], **AIOKAFKA_PRODUCER)
        await producer.start()

        async def send(topic: str, count: int) -> None:
            last = None
            for value in values(count, request["size"]):
                last = await producer.send(topic, value)
            await producer.flush()
            if last is not None:
                await last

        await send(request["warm_topic"], WARM_UP)
        with Stopwatch() as watch:
            await send(request["topic"], request["records"])
        await producer.stop()
        return watch

    return asyncio.run(run()).sample(request["records"])


def consume_aiokafka(_client: str, request: dict[str, Any]) -> Sample:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> Stopwatch:
        consumer = AIOKafkaConsumer(bootstrap_servers=request["bootstrap"], **SLOW_CONSUMER)
        await consumer.start()

        async def read(topic: str, count: int) -> None:
            partitions = [TopicPartition(topic, p) for p in range(request["partitions"])]
            consumer.assign(partitions)
            await consumer.seek_to_beginning(*partitions)
            left = count
            while left > 0:
                found = await consumer.getmany(timeout_ms=1_000, max_records=CONSUME_BATCH)
                left -= sum(map(len, found.values()))

        await read(request["warm_topic"], WARM_UP)
        with Stopwatch() as watch:
            await read(request["topic"], request["records"])
        await consumer.stop()
        return watch

    return asyncio.run(run()).sample(request["records"])


MEASURES: dict[str, tuple[Callable[..., Sample], Callable[..., Sample]]] = {
    "headrace": (produce_confluent, consume_confluent),
    "confluent-kafka": (produce_confluent, consume_confluent),
    "kafka-python": (produce_kafka_python, consume_kafka_python),
    "aiokafka": (produce_aiokafka, consume_aiokafka),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "headrace": {"produce": PRODUCER, "consume": CONSUMER},
    "confluent-kafka": {"produce": PRODUCER, "consume": CONFLUENT_CONSUMER},
    "kafka-python": {"produce": KAFKA_PYTHON_PRODUCER, "consume": SLOW_CONSUMER},
    "aiokafka": {"produce": AIOKAFKA_PRODUCER, "consume": SLOW_CONSUMER},
}


if __name__ == "__main__":
    REQUEST = json.loads(sys.argv[1])
    PRODUCE, CONSUME = MEASURES[REQUEST["client"]]
    MEASURE = PRODUCE if REQUEST["action"] == "produce" else CONSUME
    answer(**asdict(MEASURE(REQUEST["client"], REQUEST)))
