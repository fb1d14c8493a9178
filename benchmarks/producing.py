"""All that producing is measured by, in one run at one real broker: ours, confluent-kafka, franz-go.

    python -m benchmarks.producing --records 2000000 --rounds 5

Each row is one way to produce; its bar says what ours may cost against the reference of that row. Each measurement is a
fresh process; rounds are interleaved, in turning order, so that a machine that slows down slows all of them. acks=all,
idempotent, linger 20 ms, 4 partitions, each of which has a record before the clock starts: a broker makes its files
then. The exit status is 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

from benchmarks import brokers, report
from benchmarks.measure import ChildError, Sample, Stopwatch, answer, machine, run_child, version_of
from benchmarks.peers import PRODUCER, WARM_UP, produce_all, producer_class
from benchmarks.peers import values as random_values
from tools.foreign import MissingClientError, program
from tools.kafka import NEWEST, VERSIONS

OURS, THEIRS, FRANZ = "headrace", "confluent-kafka", "franz-go"
POLL_EVERY = 1_000
WARM_TOPIC = "warm-up"
CODECS = ("gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to produce.

    Attributes:
        work: a key of `WORK`.
        size: bytes of a value.
        partitions: of the topic.
        settings: further properties.
        share: part of the records that this way gets.
    """

    work: str
    size: int = 100
    partitions: int = 4
    settings: dict[str, str] = field(default_factory=dict)
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """What is compared.

    Attributes:
        name: of the row.
        ours: how we do it.
        against: (client, how it does it).
        cpu: at most this ratio of CPU seconds per record.
        rate: at least this ratio of records a second.
    """

    name: str
    ours: Way
    against: tuple[str, Way]
    cpu: float | None = None
    rate: float | None = None


PLAIN, CALLBACK = Way("plain"), Way("callback")
ROWS = (
    Row("100 B", PLAIN, (THEIRS, PLAIN), 1 / 3, 2.5),
    Row("100 B, delivery callback", CALLBACK, (THEIRS, CALLBACK), 1 / 2, 2.0),
    Row("100 B, callback, poll(0) each", Way("callback-poll"), (THEIRS, Way("callback-poll")), 1 / 2, 2.0),
    *(Row(f"100 B, {codec}", way, (THEIRS, way), 1 / 2, 1.0)
      for codec in CODECS for way in [Way("text", settings={"compression.type": codec}, share=0.5)]),
    Row("1 KB", Way("plain", 1_000), (THEIRS, Way("plain", 1_000)), 1 / 2, 1.0),
    Row("asyncio", Way("asyncio"), (OURS, PLAIN), 1.1, 0.9),
    Row("asyncio, all awaited", Way("asyncio-awaited"), (OURS, CALLBACK), 1.1, 0.9),
    Row("Arrow", Way("arrow"), (THEIRS, PLAIN), 1 / 10),
    Row("1,000 partitions", Way("plain", partitions=1_000), (OURS, PLAIN), 1.3),
    Row("100 B, franz-go", PLAIN, (FRANZ, PLAIN), 1.0),
)


# The measured processes

def text_values(count: int, size: int) -> Iterator[bytes]:
    """Values as an application has them: JSON with a few fields, no two alike for long."""
    made = [json.dumps({"id": number * 7919 % 1_000_003, "city": f"city-{number % 97}", "amount": number * 31 % 9_973,
                        "note": "x" * (number % 7)}).encode().ljust(size, b" ")[:size] for number in range(10_000)]
    return islice(cycle(made), count)


Send = Callable[[str, Iterable[bytes]], None]


class _Reports:
    """A delivery callback that counts."""

    def __init__(self) -> None:
        self.delivered = self.failed = 0

    def __call__(self, error: object, _message: object) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.failed += 1


def _plain(producer: Any, reports: _Reports) -> Send:
    def send(topic: str, values: Iterable[bytes]) -> None:
        _all_out(produce_all(producer, topic, values), reports)
    return send


def _with_callback(poll_every: int) -> Callable[[Any, _Reports], Send]:
    def make(producer: Any, reports: _Reports) -> Send:
        def send(topic: str, values: Iterable[bytes]) -> None:
            produce, poll, before, number = producer.produce, producer.poll, reports.delivered, 0
            for number, value in enumerate(values, 1):
                while True:
                    try:
                        produce(topic, value, on_delivery=reports)
                        break
                    except BufferError:
                        poll(0.05)
                if poll_every == 1 or not number % poll_every:
                    poll(0)
            _all_out(producer.flush(300), reports)
            if reports.delivered - before != number:
                raise RuntimeError(f"{reports.delivered - before} reports for {number} records")
        return send
    return make


def _all_out(left: int, reports: _Reports) -> None:
    if left or reports.failed:
        raise RuntimeError(f"{left} records not sent, {reports.failed} failed")


def _begin_partitions(producer: Any, request: dict[str, Any]) -> int:
    """Put a record into each partition; returns how many are left."""
    for partition in range(request["partitions"]):
        producer.produce(request["topic"], b"", partition=partition)
    left: int = producer.flush(60)
    return left


def _measure_sync(make: Callable[[Any, _Reports], Send]) -> Callable[[dict[str, Any]], Sample]:
    def measure(request: dict[str, Any]) -> Sample:
        reports, values = _Reports(), text_values if request["work"] == "text" else random_values
        settings = {**PRODUCER, "bootstrap.servers": request["bootstrap"], **request["settings"]}
        if request["work"] in ("plain", "text"):  # failures must not be lost, and successes cost no callback
            settings |= {"on_delivery": reports, "delivery.report.only.error": True}
        producer = producer_class(request["client"])(settings)
        _all_out(_begin_partitions(producer, request), reports)
        reports.delivered = 0
        send = make(producer, reports)
        send(WARM_TOPIC, values(WARM_UP, request["size"]))
        with Stopwatch() as watch:
            send(request["topic"], values(request["records"], request["size"]))
        return watch.sample(request["records"])
    return measure


def _measure_asyncio(request: dict[str, Any]) -> Sample:
    from headrace.aio import AIOProducer

    awaited = request["work"] == "asyncio-awaited"

    async def run() -> Stopwatch:
        async with AIOProducer({**PRODUCER, "bootstrap.servers": request["bootstrap"]}) as producer:
            async def send(topic: str, values: Iterable[bytes]) -> None:
                produce = producer.produce
                if awaited:
                    waiting: deque[Any] = deque()
                    for value in values:
                        waiting.append(await produce(topic, value))
                        if len(waiting) > 100 * POLL_EVERY:
                            await waiting.popleft()
                    await producer.flush()
                    for delivery in waiting:
                        await delivery
                else:
                    for value in values:
                        await produce(topic, value)
                    await producer.flush()

            for partition in range(request["partitions"]):
                await producer.produce(request["topic"], b"", partition=partition)
            await producer.flush()
            asyncio.get_running_loop().set_exception_handler(lambda _, context: sys.exit(str(context)))
            await send(WARM_TOPIC, random_values(WARM_UP, request["size"]))
            with Stopwatch() as watch:
                await send(request["topic"], random_values(request["records"], request["size"]))
            return watch

    return asyncio.run(run()).sample(request["records"])


def _measure_arrow(request: dict[str, Any]) -> Sample:
    import pyarrow as pa

    from headrace import Producer

    producer = Producer({**PRODUCER, "bootstrap.servers": request["bootstrap"]})
    warm = pa.table({"value": list(random_values(WARM_UP, request["size"]))})
    table = pa.table({"value": list(random_values(request["records"], request["size"]))})
    _begin_partitions(producer, request)
    producer.produce_arrow(WARM_TOPIC, warm).result(60)
    with Stopwatch() as watch:
        stored = producer.produce_arrow(request["topic"], table)
        producer.flush(300)
        if stored.result(1) != request["records"]:
            raise RuntimeError("rows are missing")
    producer.close()
    return watch.sample(request["records"])


WORK: dict[str, Callable[[dict[str, Any]], Sample]] = {
    "plain": _measure_sync(_plain),
    "text": _measure_sync(_plain),
    "callback": _measure_sync(_with_callback(POLL_EVERY)),
    "callback-poll": _measure_sync(_with_callback(1)),
    "asyncio": _measure_asyncio,
    "asyncio-awaited": _measure_asyncio,
    "arrow": _measure_arrow,
}


# The run

Measured = tuple[str, str]
"""A client and a way, as text: equal ones are measured once for all rows."""


class Run:
    """One comparison: the arguments, the broker, and what was measured so far."""

    def __init__(self, arguments: argparse.Namespace, broker: brokers.Broker) -> None:
        self.arguments = arguments
        self.broker = broker
        self.rows = report.chosen(ROWS, arguments.rows, lambda row: row.name)
        self.ways: dict[Measured, Way] = {}
        for row in self.rows:
            for client, way in ((OURS, row.ours), row.against):
                self.ways[client, str(way)] = way
        self.samples: dict[Measured, list[Sample]] = {key: [] for key in self.ways}
        self.failures: dict[str, str] = {}
        self._numbers = count()

    def measure_all(self) -> None:
        """All rounds of all ways."""
        self.broker.create_topic(WARM_TOPIC, 4)
        keys = list(self.ways)
        self._measure(THEIRS, str(PLAIN), PLAIN)  # the first run is the broker's, to be warm
        for samples in self.samples.values():
            samples.clear()
        with report.Progress(self.arguments.rounds * len(keys)) as progress:
            for turn in range(self.arguments.rounds):
                first = turn * 5 % len(keys)
                for client, text in keys[first:] + keys[:first]:
                    way = self.ways[client, text]
                    progress.next(f"round {turn + 1}: {client}, {way.work} {way.size} B {way.settings or ''}")
                    if client not in self.failures:
                        self._measure(client, text, way)

    def _measure(self, client: str, text: str, way: Way) -> None:
        topic = f"produced-{next(self._numbers)}"
        records = int(self.arguments.records * way.share)
        self.broker.create_topic(topic, way.partitions)
        before = self.broker.cpu_s()
        request = {"client": client, "work": way.work, "topic": topic, "records": records, "size": way.size,
                   "partitions": way.partitions, "settings": way.settings,
                   "bootstrap": self.broker.bootstrap_servers}
        try:
            made = _franz_go(request) if client == FRANZ else run_child("benchmarks.producing", request)
        except MissingClientError as error:
            self.failures[client] = str(error)
            return
        sample, after = Sample(**made), self.broker.cpu_s()
        if before is not None and after is not None:
            sample.broker_cpu_s = after - before
        found = self.broker.record_count(topic, way.partitions) - (0 if client == FRANZ else way.partitions)
        self.broker.delete_topic(topic)
        if found != records:
            raise ChildError(f"{client} says it produced {records:,} records, the topic has {found:,}")
        self.samples.setdefault((client, text), []).append(sample)

    def show(self) -> bool:
        """Print what was measured, and write it as JSON. True when every bar holds."""
        a, shown, content = self.arguments, [], []
        good = True
        for row in self.rows:
            client, way = row.against
            ours, theirs = self.samples[OURS, str(row.ours)], self.samples[client, str(way)]
            if not theirs:
                shown.append((row.name, *["-"] * 5, "", self.failures[client]))
                continue
            mine, other = _Median(ours), _Median(theirs)
            cpu, rate = mine.cpu / other.cpu, mine.rate / other.rate
            holds = (row.cpu is None or cpu <= row.cpu) and (row.rate is None or rate >= row.rate)
            good &= holds
            bars = [f"CPU <= {row.cpu:.2f}" if row.cpu else "", f"rate >= {row.rate:g}" if row.rate else ""]
            against = client if client != OURS else f"ours, {way.work}"
            shown.append((row.name, f"{mine.rate:,.0f}", f"{mine.cpu:.3f}", mine.spread,
                          f"{against} {other.rate:,.0f} / {other.cpu:.3f} {other.spread}", f"{rate:.2f}", f"{cpu:.3f}",
                          ", ".join(filter(None, bars)) + ("" if holds else "  MISSED")))
            content.append({"row": row.name, "against": against, "cpu_ratio": cpu, "rate_ratio": rate, "holds": holds,
                            "cpu_bar": row.cpu, "rate_bar": row.rate, "ours": [asdict(s) for s in ours],
                            "theirs": [asdict(s) for s in theirs]})
        versions = {client: version_of(client) for client in (OURS, THEIRS)}
        print(f"\n{self.broker.about}; {a.records:,} records, {json.dumps(PRODUCER)}")
        print("; ".join(f"{client} {version}" for client, version in versions.items()))
        report.table(f"producing ({a.rounds} rounds, median; CPU-s per million records and its spread)",
                     ("", "rows/s", "CPU-s", "spread", "against: rows/s / CPU-s", "rows/s ratio", "CPU ratio", "bar"),
                     shown)
        whole = {"machine": machine(), "broker": self.broker.about, "versions": versions, "settings": PRODUCER,
                 "records": a.records, "rows": content}
        print(f"\nwritten to {report.write_json('producing', whole, a.json)}")
        return good


class _Median:
    """The middle of some rounds."""

    def __init__(self, samples: list[Sample]) -> None:
        costs = [sample.cpu_s_per_million for sample in samples]
        self.cpu = statistics.median(costs)
        self.rate = statistics.median(sample.rows_per_s for sample in samples)
        self.spread = report.spread(costs)


def _franz_go(request: dict[str, Any]) -> dict[str, Any]:
    client = program(FRANZ)
    command = {"op": "speed", "servers": request["bootstrap"], "topic": request["topic"], "source": WARM_TOPIC,
               "count": request["records"], "size": request["size"],
               "codec": request["settings"].get("compression.type", "none")}
    done = subprocess.run(client.command, input=json.dumps(command) + "\n", capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout or "{}")
    if "ok" not in answer:
        raise ChildError(f"franz-go: {answer.get('error') or done.stderr}")
    return dict(answer["ok"])


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Run the comparison; 0 when every bar holds."""
    arguments = _parser().parse_args(argv)
    with brokers.kafka(arguments.kafka_version) as broker:
        run = Run(arguments, broker)
        run.measure_all()
        return 0 if run.show() else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.producing", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="only rows with one of these in their name")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path, help="file for the result")
    return parser


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        REQUEST = json.loads(sys.argv[1])
        answer(**asdict(WORK[REQUEST["work"]](REQUEST)))
    else:
        sys.exit(main(sys.argv[1:]))
