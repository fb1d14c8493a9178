"""Memory of a consumer that reads on and on from real Kafka, in each of the ways to read.

    python -m tests.campaigns.memory.reading --records 50000000

A topic of a tenth of the records (`--topic-records`) is read again and again by `seek`: by `consume(10000)`, by
`poll()` in a loop, by `consume_arrow()`, and under asyncio. Each way is a process of its own, which looks at its
resident memory a hundred times. Printed are the largest of these figures, the slope of the line through those after the
first fifth, and by how much the median of the last fifth is above that of the second; more than `GROWTH_BYTES` is an
error (exit status 1).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from headrace import Consumer, Producer, TopicPartition
from headrace.aio import AIOConsumer
from tests.campaigns.memory.application import status
from tools.kafka import NEWEST, VERSIONS, KafkaCluster

WAYS = ("consume", "poll", "arrow", "asyncio")
GROWTH_BYTES = 4 << 20
"""What the median may have risen by at the end: blocks of the allocator, not of each record."""
TOPIC, PARTITIONS, VALUE_BYTES = "read-on-and-on", 4, 100
QUEUE_KIB = 16 << 10
_SAMPLES = 100
_LIST = 10_000
_WAIT_S = 30.0
_MIB = 1 << 20

Sample = tuple[int, int]
"""Records read so far, and resident bytes."""


class Reader:
    """Reads a topic on and on, and looks at its memory.

    Args:
        case: `bootstrap`, `way`, `records` to read, `topic_records` that there are.
    """

    def __init__(self, case: dict[str, Any]) -> None:
        self.way, self.records, self.topic_records = case["way"], case["records"], case["topic_records"]
        self.properties = {"bootstrap.servers": case["bootstrap"], "group.id": "reading", "enable.auto.commit": True,
                           "auto.commit.interval.ms": 1000, "auto.offset.reset": "earliest",
                           "queued.max.messages.kbytes": QUEUE_KIB}
        self.samples: list[Sample] = []
        self.read = 0

    def run(self) -> list[Sample]:
        """Read all, and give the samples."""
        if self.way == "asyncio":
            asyncio.run(self.read_asyncio())
        else:
            self.read_blocking()
        return self.samples

    def read_blocking(self) -> None:
        """As fast as one way goes; behind the last record of the topic back to the first ones."""
        with Consumer(self.properties) as consumer:
            consumer.assign(beginnings())
            take = self._taker(consumer)
            while self.read < self.records:
                self.count(take())
                if self.read % self.topic_records == 0:
                    for start in beginnings():
                        consumer.seek(start)

    def _taker(self, consumer: Consumer) -> Callable[[], int]:
        """What reads some records and gives their number."""
        def poll() -> int:
            message = consumer.poll(_WAIT_S)
            assert message is not None
            assert message.error() is None
            return 1

        def consume() -> int:
            messages = consumer.consume(min(_LIST, self.left), _WAIT_S)
            assert all(message.error() is None for message in messages)
            return len(messages)

        def arrow() -> int:
            return consumer.consume_arrow(min(_LIST, self.left), _WAIT_S).num_rows

        return {"poll": poll, "consume": consume, "arrow": arrow}[self.way]

    async def read_asyncio(self) -> None:
        async with AIOConsumer(self.properties) as consumer:
            await consumer.assign(beginnings())
            while self.read < self.records:
                messages = await consumer.consume(min(_LIST, self.left), _WAIT_S)
                assert all(message.error() is None for message in messages)
                self.count(len(messages))
                if self.read % self.topic_records == 0:
                    for start in beginnings():
                        await consumer.seek(start)

    @property
    def left(self) -> int:
        """Records until the end of the topic."""
        return self.topic_records - self.read % self.topic_records

    def count(self, records: int) -> None:
        """So many more were read."""
        assert records, f"no records for {_WAIT_S:g} s after {self.read:,}"
        self.read += records
        if self.read * _SAMPLES >= self.records * (len(self.samples) + 1):
            self.samples.append((self.read, status("VmRSS")))


def beginnings() -> list[TopicPartition]:
    return [TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)]


def slope(samples: list[Sample]) -> float:
    """Bytes per record of the line through the samples after the first fifth (least squares)."""
    later = samples[len(samples) // 5:]
    middle_x, middle_y = (statistics.fmean(sample[axis] for sample in later) for axis in (0, 1))
    square = sum((x - middle_x) ** 2 for x, _ in later)
    return sum((x - middle_x) * (y - middle_y) for x, y in later) / square if square else 0.0


def growth(samples: list[Sample]) -> float:
    """Bytes by which the median of the last fifth is above that of the second fifth."""
    fifth = max(len(samples) // 5, 1)
    second, last = ([size for _, size in part] for part in (samples[fifth:2 * fifth], samples[-fifth:]))
    return statistics.median(last) - statistics.median(second or last)


def measure(bootstrap: str, way: str, records: int, topic_records: int) -> list[Sample]:
    """Read so many records in one way, in a process of its own."""
    case = {"bootstrap": bootstrap, "way": way, "records": records, "topic_records": topic_records}
    told = subprocess.run([sys.executable, "-m", "tests.campaigns.memory.reading", json.dumps(case)], check=True,
                          stdout=subprocess.PIPE)
    return [(read, size) for read, size in json.loads(told.stdout)]


def fill(bootstrap: str, records: int) -> None:
    """Write the topic; it must be there."""
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(records):
            while True:
                try:
                    producer.produce(TOPIC, bytes(VALUE_BYTES), partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)


@contextlib.contextmanager
def filled_kafka(version: str, records: int) -> Iterator[str]:
    """A real broker with the topic; gives its address."""
    with KafkaCluster(version, 1, heap_mb=1024, properties={"num.partitions": str(PARTITIONS)}) as cluster:
        fill(cluster.bootstrap_servers, records)
        yield cluster.bootstrap_servers


def show(way: str, samples: list[Sample]) -> bool:
    """Print what one way takes; True when it does not grow."""
    grown = growth(samples)
    print(f"{way:8} {samples[-1][0]:>12,} records: at most {max(size for _, size in samples) / _MIB:6.1f} MiB, "
          f"slope {slope(samples) * 1e6 / 1024:+8.2f} KiB per million records, from the second to the last fifth "
          f"{grown / _MIB:+5.2f} MiB: {'flat' if grown <= GROWTH_BYTES else 'IT GROWS'}", flush=True)
    return grown <= GROWTH_BYTES


def main() -> int:
    """Measure all ways; 1 when one grows."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.memory.reading", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000, help="for each way (default: %(default)s)")
    parser.add_argument("--topic-records", type=int, help="in the topic (default: a tenth of --records)")
    parser.add_argument("--only", choices=WAYS, action="append", help="this way, may be repeated")
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    arguments = parser.parse_args()
    held = arguments.topic_records or arguments.records // 10
    assert held % PARTITIONS == 0, f"records of the topic must be a multiple of {PARTITIONS}"
    with filled_kafka(arguments.kafka_version, held) as bootstrap:
        flat = [show(way, measure(bootstrap, way, arguments.records, held)) for way in arguments.only or WAYS]
    return 0 if all(flat) else 1


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        print(json.dumps(Reader(json.loads(sys.argv[1])).run()))
    else:
        sys.exit(main())
