"""A consumer of 4, 1,000 and 10,000 partitions with as many records: CPU, rows/s and memory, beside confluent-kafka's.

    python -m benchmarks.many_partitions --records 2000000 --rounds 5

`join`: a new group, from `Consumer()` to the first record, and what the process has resident then. `read`: all records
from the beginning, `consume(10000)` by partitions that are assigned; every topic holds batches of 100 records, so that
only the partitions make a difference. `trickle`: records come one by one, each to another partition, and the rest is
idle; CPU for 1,000 records. Fresh processes, interleaved rounds; the first, of each, is the broker's, to be warm.

Bars: ours at 1,000 partitions costs at most 1.3 times the CPU of 4, in `read` and in `trickle`. A topic of 10,000
partitions is made in two steps, for one request to a KRaft controller may make no more than 9,999 records of metadata.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import brokers, report
from benchmarks.measure import ROOT, Stopwatch, answer, machine, run_child, version_of
from benchmarks.peers import CONFLUENT_CONSUMER, CONSUME_BATCH, CONSUMER, producer_class
from tools.kafka import NEWEST, VERSIONS

CLIENTS = ("headrace", "confluent-kafka")
MODULES = {"headrace": "headrace", "confluent-kafka": "confluent_kafka"}
ACTIONS = ("join", "read", "trickle")
SETTINGS = {"headrace": CONSUMER, "confluent-kafka": CONFLUENT_CONSUMER}
BATCH_RECORDS = 100
WARM_UP = 300
MOST = 1.3
"""What 1,000 partitions may cost, in multiples of 4."""
_PROPERTIES = {"log.index.size.max.bytes": "65536"}
"""A broker reserves the index of each partition in full: 10 MB of it by default."""
_WAIT_S = 120.0
_MIB = 1 << 20


def consumer_of(request: dict[str, Any], **more: Any) -> tuple[Any, Any]:
    """The client's module, and a consumer of it."""
    module: Any = import_module(MODULES[request["client"]])
    return module, module.Consumer({**SETTINGS[request["client"]], "bootstrap.servers": request["bootstrap"], **more})


def join(request: dict[str, Any]) -> dict[str, float]:
    """Subscribe as the only member of a new group, and wait for the first record."""
    assigned: list[int] = []
    import_module(MODULES[request["client"]]).Consumer  # noqa: B018 - some of a module is imported on first use
    with Stopwatch() as watch:
        _, consumer = consumer_of(request, **{"group.id": request["group"], "group.protocol": request["protocol"]})
        consumer.subscribe([request["topic"]], on_assign=lambda _, partitions: assigned.append(len(partitions)))
        message = consumer.poll(_WAIT_S)
    if message is None or message.error() is not None or sum(assigned) != request["partitions"]:
        raise RuntimeError(f"{assigned} partitions, {message and message.error()}")
    found = {"join_s": watch.wall_s, "join_cpu_s": watch.cpu_s, "rss_mb": _resident_bytes() / _MIB}
    consumer.close()
    return found


def read(request: dict[str, Any]) -> dict[str, float]:
    """Read all records, the second time by the clock."""
    module, consumer = consumer_of(request)

    def read_all() -> None:
        consumer.assign([module.TopicPartition(request["topic"], p, 0) for p in range(request["partitions"])])
        left = request["records"]
        while left:
            messages = consumer.consume(min(CONSUME_BATCH, left), _WAIT_S)
            if not messages or messages[-1].error() is not None:
                raise RuntimeError(f"{left} records are missing, {messages and messages[-1].error()}")
            left -= len(messages)

    read_all()
    with Stopwatch() as watch:
        read_all()
    consumer.close()
    sample = watch.sample(request["records"])
    return {"rows_per_s": sample.rows_per_s, "cpu_s_per_million": sample.cpu_s_per_million,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MIB}


def trickle(request: dict[str, Any]) -> dict[str, float]:
    """Read what comes, record by record, each of another partition."""
    module, consumer = consumer_of(request)
    consumer.assign([module.TopicPartition(request["topic"], p, module.OFFSET_END)
                     for p in range(request["partitions"])])

    def take(count: int) -> None:
        for _ in range(count):
            message = consumer.poll(_WAIT_S)
            if message is None or message.error() is not None:
                raise RuntimeError(f"no record: {message and message.error()}")

    count = int(request["seconds"] * request["rate"])
    with _feeder(request):
        take(WARM_UP)
        with Stopwatch() as watch:
            take(count)
    consumer.close()
    return {"trickle_cpu_ms": watch.cpu_s / count * 1e6}


@contextlib.contextmanager
def _feeder(request: dict[str, Any]) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.many_partitions", json.dumps({**request, "action": "feed"})], cwd=ROOT)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def feed(request: dict[str, Any]) -> None:
    """Send at a steady rate until somebody ends this process. confluent-kafka does it for all."""
    producer = producer_class("confluent-kafka")({"bootstrap.servers": request["bootstrap"], "linger.ms": 0})
    source, begin, number = random.Random(7), time.perf_counter(), 0
    while True:
        number += 1
        producer.poll(max(begin + number / request["rate"] - time.perf_counter(), 0))
        producer.produce(request["topic"], b"v" * request["size"], partition=source.randrange(request["partitions"]))


def fill(request: dict[str, Any]) -> dict[str, int]:
    """Send records in batches of the same size to one partition after the other; all are acknowledged."""
    failed: list[object] = []
    producer = producer_class("confluent-kafka")({
        "bootstrap.servers": request["bootstrap"], "linger.ms": 1000, "batch.num.messages": BATCH_RECORDS,
        "queue.buffering.max.messages": 1_000_000, "enable.idempotence": True,
        "on_delivery": lambda error, _: failed.append(error) if error else None, "delivery.report.only.error": True})
    value = b"v" * request["size"]
    for number in range(request["records"]):
        partition = number // BATCH_RECORDS % request["partitions"]
        while True:
            try:
                producer.produce(request["topic"], value, partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(300)
    if left or failed:
        raise RuntimeError(f"{left} records not sent, {len(failed)} failed: {failed[:1]}")
    return {"records": request["records"]}


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


MEASURES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "join": join, "read": read, "trickle": trickle, "fill": fill}


class Run:
    """One comparison: the arguments, the broker, and what was measured so far.

    Attributes:
        samples: by number of partitions and client, what each round found.
    """

    def __init__(self, arguments: argparse.Namespace, broker: brokers.Broker) -> None:
        self.arguments, self.broker, self._groups = arguments, broker, 0
        self.samples: dict[tuple[int, str], list[dict[str, float]]] = {
            (partitions, client): [] for partitions in arguments.partitions for client in arguments.clients}

    def prepare(self) -> None:
        """Make and fill the topics."""
        for partitions in self.arguments.partitions:
            print(f"filling {partitions:,} partitions", file=sys.stderr, flush=True)
            self.broker.create_topic(f"of-{partitions}", partitions)
            run_child("benchmarks.many_partitions", self._request("fill", partitions, ""))

    def measure_all(self) -> None:
        """All rounds."""
        report.measure_in_turns(
            self.samples, self.arguments.rounds, self.arguments.actions,
            lambda key: f"{key[1]}, {key[0]:,} partitions",
            lambda key, action: run_child("benchmarks.many_partitions", self._request(action, *key)))

    def _request(self, action: str, partitions: int, client: str) -> dict[str, Any]:
        a = self.arguments
        self._groups += 1
        return {"action": action, "client": client, "topic": f"of-{partitions}", "partitions": partitions,
                "records": a.records // BATCH_RECORDS * BATCH_RECORDS, "size": a.size, "seconds": a.seconds,
                "rate": a.rate, "protocol": a.protocol, "group": f"many-{self._groups}",
                "bootstrap": self.broker.bootstrap_servers}

    def show(self) -> bool:
        """Print what was measured, and write it as JSON. True when every bar holds."""
        a = self.arguments
        medians = {key: {name: statistics.median(row[name] for row in rows) for name in rows[0]}
                   for key, rows in self.samples.items()}
        print(f"\n{self.broker.about}; {a.records:,} records of {a.size} B in each topic, group protocol {a.protocol}")
        print("; ".join(f"{client} {version_of(client)}" for client in a.clients))
        table = [(f"{partitions:,}", client, *(_cell(name, found, medians, partitions, client) for name in HEADS))
                 for (partitions, client), found in medians.items()]
        report.table(f"many partitions ({a.rounds} rounds, median; in brackets: confluent-kafka's is 1)",
                     ("partitions", "client", *HEADS.values()), table)
        ratios = self._ratios(medians)
        missed = [name for name, ratio in ratios.items() if ratio > MOST]
        for name, ratio in ratios.items():
            print(f"{HEADS[name]} of ours, 1,000 : 4 partitions: {ratio:.2f} (bar {MOST:g})"
                  + (" MISSED" if name in missed else ""))
        content = {"machine": machine(), "broker": self.broker.about, "records": a.records, "size_bytes": a.size,
                   "samples": [{"partitions": partitions, "client": client, "rounds": rows}
                               for (partitions, client), rows in self.samples.items()], "ratios": ratios}
        print(f"\nwritten to {report.write_json('many_partitions', content, a.json)}")
        return not missed

    def _ratios(self, medians: dict[tuple[int, str], dict[str, float]]) -> dict[str, float]:
        few, many = (medians.get((partitions, CLIENTS[0])) for partitions in (4, 1000))
        if few is None or many is None:
            return {}
        return {name: many[name] / few[name] for name in ("cpu_s_per_million", "trickle_cpu_ms") if name in many}


HEADS = {"join_s": "join s", "join_cpu_s": "join CPU-s", "rss_mb": "joined MB", "rows_per_s": "rows/s",
         "cpu_s_per_million": "CPU-s per M", "peak_mb": "peak MB", "trickle_cpu_ms": "trickle CPU ms / 1,000"}


def _cell(name: str, found: dict[str, float], medians: dict[tuple[int, str], dict[str, float]], partitions: int,
          client: str) -> str:
    if name not in found:
        return "-"
    theirs = medians.get((partitions, CLIENTS[1]), {}).get(name)
    shown = f"{found[name]:,.0f}" if found[name] >= 100 else f"{found[name]:.3f}"
    return shown if client == CLIENTS[1] or not theirs else f"{shown} ({found[name] / theirs:.2f})"


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Measure; 0 when every bar holds."""
    a = _parser().parse_args(argv)
    with brokers.kafka(a.kafka_version, properties=_PROPERTIES) as broker:
        run = Run(a, broker)
        run.prepare()
        run.measure_all()
        return 0 if run.show() else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_partitions", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, nargs="+", default=[4, 1_000, 10_000])
    parser.add_argument("--records", type=int, default=2_000_000, help="in each topic")
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--rate", type=int, default=200, help="records per second of the trickle")
    parser.add_argument("--seconds", type=float, default=5, help="of the trickle")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=list(ACTIONS))
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path)
    return parser


def _child(request: dict[str, Any]) -> None:
    if request["action"] == "feed":
        feed(request)
    else:
        answer(**MEASURES[request["action"]](request))


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        _child(json.loads(sys.argv[1]))
    else:
        sys.exit(main(sys.argv[1:]))
