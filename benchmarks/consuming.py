"""Every way to read: ours beside what confluent-kafka and franz-go have in its place, on real Kafka.

    python -m benchmarks.consuming --records 2000000 --rounds 5

All clients read the same topic on the same broker, each in a fresh process that reads a few records first; rounds are
interleaved. CPU is of the client's process, all its threads included. The exit status is 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import brokers, profiler, report
from benchmarks.measure import ChildError, Sample, Stopwatch, answer, machine, run_child, version_of
from benchmarks.peers import CONFLUENT_CONSUMER, CONSUME_BATCH, CONSUMER, WARM_UP
from benchmarks.receiving import measure_receiving
from tools.foreign import program
from tools.kafka import NEWEST, VERSIONS

TOPIC, WARM_TOPIC = "filled", "warm-up"
PARTITIONS = 4
PATIENCE_S = 30
Way = tuple[str, str]
"""A client and its way to read."""


@dataclass(frozen=True)
class Row:
    """Ours, its peer, and what is asked of the two.

    Attributes:
        name: as it is shown.
        way: ours.
        peer: what it is compared with.
        cpu, speed: bars, in multiples of the peer's: at most, and at least.
        cpu_s: bar in CPU seconds per million records of 100 B.
    """

    name: str
    way: Way
    peer: Way
    cpu: float
    speed: float | None = None
    cpu_s: float | None = None


OURS, CONFLUENT = "headrace", "confluent-kafka"
GO = "franz-go"
NO_CLIENT = "no client"
FLOORS = ((NO_CLIENT, "bytes received"), (NO_CLIENT, "received whole, checked"))
"""What every client pays, and one that checks what it hands out: see `benchmarks.receiving`."""
ROWS = (
    Row("consume(10000)", (OURS, "consume"), (CONFLUENT, "consume"), 1 / 7, 4),
    Row("poll()", (OURS, "poll"), (CONFLUENT, "poll"), 1 / 4, 3),
    Row("for message in consumer", (OURS, "iterate"), (CONFLUENT, "poll"), 1 / 4, 3),
    Row("async for", (OURS, "async for"), (CONFLUENT, "poll"), 1 / 3),
    Row("await consume(10000)", (OURS, "await consume"), (OURS, "consume"), 1.1, 0.9),
    Row("consume_arrow()", (OURS, "arrow"), (GO, "poll"), 1, cpu_s=0.05),
)


def read_by_calls(way: str, consumer: Any, count: int) -> None:
    """Read so many records on this thread."""
    if way == "poll":
        poll = consumer.poll
        for _ in range(count):
            if (message := poll(PATIENCE_S)) is None or message.error() is not None:
                raise RuntimeError(f"no record: {message and message.error()}")
        return
    if way == "iterate":
        for _, message in zip(range(count), consumer, strict=False):
            if message.error() is not None:
                raise RuntimeError(message.error())
        return
    left = count
    while left:
        if way == "arrow":
            found = len(consumer.consume_arrow(min(100_000, left), PATIENCE_S))
        else:
            found = len(consumer.consume(min(CONSUME_BATCH, left), PATIENCE_S))
        if not found:
            raise RuntimeError(f"no records for {PATIENCE_S} s, {left:,} missing")
        left -= found


async def read_on_a_loop(way: str, consumer: Any, count: int) -> None:
    """Read so many records in this task."""
    left = count
    if way == "async for":
        async for _ in consumer:
            left -= 1
            if not left:
                return
    while left:
        found = len(await consumer.consume(min(CONSUME_BATCH, left), PATIENCE_S))
        if not found:
            raise RuntimeError(f"no records for {PATIENCE_S} s, {left:,} missing")
        left -= found


def measure(request: dict[str, Any]) -> Sample:
    """Read the topic once, in a process of its own."""
    client, way, count = request["client"], request["way"], request["records"]
    if client == NO_CLIENT:
        return measure_receiving({**request, "topic": TOPIC, "partitions": PARTITIONS, "kept": way != FLOORS[0][1],
                                  "fetch_bytes": CONSUMER["max.partition.fetch.bytes"]})
    module: Any = import_module(client.replace("confluent-kafka", "confluent_kafka"))
    properties = {**(CONSUMER if client == OURS else CONFLUENT_CONSUMER), "bootstrap.servers": request["bootstrap"]}

    def all_of(topic: str) -> list[Any]:
        return [module.TopicPartition(topic, number, module.OFFSET_BEGINNING) for number in range(PARTITIONS)]

    async def on_a_loop() -> Sample:
        async with import_module("headrace.aio").AIOConsumer(properties) as consumer:
            await consumer.assign(all_of(WARM_TOPIC))
            await read_on_a_loop(way, consumer, WARM_UP)
            await consumer.assign(all_of(TOPIC))
            with profiler.maybe(request["profile"]), Stopwatch() as watch:
                await read_on_a_loop(way, consumer, count)
            return watch.sample(count)

    if way in ("async for", "await consume"):
        return asyncio.run(on_a_loop())
    consumer = module.Consumer(properties)
    consumer.assign(all_of(WARM_TOPIC))
    read_by_calls(way, consumer, WARM_UP)
    consumer.assign(all_of(TOPIC))
    with profiler.maybe(request["profile"]), Stopwatch() as watch:
        read_by_calls(way, consumer, count)
    consumer.close()
    return watch.sample(count)


def measure_go(request: dict[str, Any]) -> Sample:
    """The same with franz-go."""
    command = {"op": "read_speed", "servers": request["bootstrap"], "topic": TOPIC, "source": WARM_TOPIC,
               "count": request["records"], "partitions": PARTITIONS}
    done = subprocess.run(program(GO).command, input=json.dumps(command) + "\n", capture_output=True, text=True,
                          check=False)
    found = json.loads(done.stdout or "{}")
    if "ok" not in found:
        raise ChildError(f"franz-go: {found.get('error') or done.stderr}")
    return Sample(**found["ok"])


class Run:
    """One comparison.

    Args:
        arguments: of the command.
        broker: what all read from.
    """

    def __init__(self, arguments: argparse.Namespace, broker: brokers.Broker) -> None:
        self.arguments, self.broker = arguments, broker
        self.rows = report.chosen(ROWS, arguments.rows, lambda row: row.name)
        self.ways = list(dict.fromkeys(way for row in self.rows for way in (row.way, row.peer)))
        self.ways += FLOORS
        self.samples: dict[Way, list[Sample]] = {way: [] for way in self.ways}

    def fill(self) -> None:
        """Write what is read."""
        for topic, count in ((WARM_TOPIC, WARM_UP), (TOPIC, self.arguments.records)):
            self.broker.create_topic(topic, PARTITIONS)
            run_child("benchmarks.peers", {
                "client": CONFLUENT, "action": "produce", "topic": topic, "warm_topic": WARM_TOPIC, "records": count,
                "size": self.arguments.size, "partitions": PARTITIONS, "profile": False,
                "bootstrap": self.broker.bootstrap_servers, "settings": {},
            })

    def measure_all(self) -> None:
        """All rounds of all ways."""
        with report.Progress(self.arguments.rounds * len(self.ways)) as progress:
            for turn in range(self.arguments.rounds):
                first = turn % len(self.ways)
                for way in self.ways[first:] + self.ways[:first]:
                    progress.next(f"round {turn + 1}: {way[0]}, {way[1]}")
                    self.samples[way].append(self._measure(way))

    def _measure(self, way: Way, profile: bool = False) -> Sample:
        request = {"bootstrap": self.broker.bootstrap_servers, "client": way[0], "way": way[1],
                   "records": self.arguments.records, "profile": profile}
        return measure_go(request) if way[0] == GO else Sample(
            **run_child("benchmarks.consuming", request, show=profile))

    def profile(self) -> None:
        """Print where our own CPU time goes, by function."""
        for way in self.ways:
            if way[0] == OURS:
                print(f"\n{way[1]}")
                self._measure(way, profile=True)

    def show(self) -> bool:
        """Print what was measured, and write it as JSON. True when every bar holds."""
        a, missed = self.arguments, []
        cpu = {way: statistics.median(s.cpu_s_per_million for s in found) for way, found in self.samples.items()}
        speed = {way: statistics.median(s.rows_per_s for s in found) for way, found in self.samples.items()}
        print(f"\n{self.broker.about}; {a.records:,} records of {a.size} B, {PARTITIONS} partitions, {a.rounds} rounds")
        print("; ".join(f"{client} {version_of(client)}" for client in (OURS, CONFLUENT)))
        report.table("median", ("client", "way", "rows/s", "CPU-s per M", "spread"), [
            (*way, f"{speed[way]:,.0f}", f"{cpu[way]:.3f}",
             report.spread([s.cpu_s_per_million for s in self.samples[way]])) for way in self.ways])
        rows = []
        for row in self.rows:
            found = {"cpu": cpu[row.way] / cpu[row.peer], "speed": speed[row.way] / speed[row.peer],
                     "cpu_s": cpu[row.way]}
            bars = {"cpu": row.cpu, "speed": row.speed, "cpu_s": row.cpu_s if a.size == 100 else None}
            late = [n for n, bar in bars.items() if bar and (found[n] < bar if n == "speed" else found[n] > bar)]
            missed += [(row.name, name) for name in late]
            rows.append((row.name, f"{row.peer[0]}, {row.peer[1]}", f"{found['cpu']:.3f}", f"{found['speed']:.2f}",
                         "; ".join(f"{name} {'>=' if name == 'speed' else '<='} {bar:.3g}"
                                   + ("  MISSED" if name in late else "") for name, bar in bars.items() if bar)))
        for floor in FLOORS:  # beside what our first row is beside: what a client that costs nothing would show
            peer = self.rows[0].peer
            rows.append((", ".join(floor), ", ".join(peer), f"{cpu[floor] / cpu[peer]:.3f}",
                         f"{speed[floor] / speed[peer]:.2f}", ""))
        report.table("ratios", ("ours", "beside", "CPU", "speed", "bars"), rows)
        content = {"machine": machine(), "broker": self.broker.about, "records": a.records, "size_bytes": a.size,
                   "samples": {"/".join(way): list(map(asdict, found)) for way, found in self.samples.items()},
                   "missed": missed}
        print(f"\nwritten to {report.write_json('consuming', content, a.json)}")
        return not missed


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Run the comparison; 0 when every bar holds."""
    arguments = _parser().parse_args(argv)
    with brokers.kafka(arguments.kafka_version) as broker:
        run = Run(arguments, broker)
        run.fill()
        if arguments.profile:
            run.profile()
            return 0
        run.measure_all()
        return 0 if run.show() else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.consuming", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="only rows with one of these in their name")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--profile", action="store_true", help="profile ours by function; measure nothing")
    parser.add_argument("--json", type=Path, help="file for the result")
    return parser


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        answer(**asdict(measure(json.loads(sys.argv[1]))))
    else:
        sys.exit(main(sys.argv[1:]))
