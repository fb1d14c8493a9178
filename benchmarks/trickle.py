"""Few records a second, each a request of its own: CPU and latency of ours, confluent-kafka and aiokafka.

    python -m benchmarks.trickle --rate 500 --seconds 8 --rounds 5
    python -m benchmarks.trickle --nodes 3 --partitions 6

`produce` sends at a steady rate with linger 0 and serves the reports before each record, as a service would; then it
sends as often and waits in `poll()` for each report, which gives the latency from the call to the acknowledgement.
`consume` reads what a process of its own sends at that rate; its
latency is from that process's call to the record in the application. CPU is of the client's process alone, for 1,000
records. With several partitions each record goes to another one.
Fresh processes, interleaved rounds; the first two, of each, are the brokers', to be warm. The exit status is 1 when a
bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import brokers, report
from benchmarks.measure import ROOT, Stopwatch, answer, machine, run_child, version_of
from benchmarks.peers import producer_class
from tools.kafka import NEWEST, VERSIONS

CLIENTS = ("headrace", "confluent-kafka", "aiokafka")
ACTIONS = ("produce", "consume")
PRODUCER = {"acks": "all", "enable.idempotence": True, "linger.ms": 0}
CONSUMER = {"group.id": "trickle", "enable.auto.commit": False, "auto.offset.reset": "latest"}
TOPIC = "trickle"
WARM_UP = 300
_BROKERS_ROUNDS = 2
BARS = {(action, name): bar for action in ACTIONS for name, bar in (("cpu_ms", 1.2), ("p50_ms", 1.0), ("p99_ms", 1.0))}
"""Upper bound of our time, in multiples of confluent-kafka's."""


class Latencies:
    """Times in seconds, the first ones left out."""

    def __init__(self) -> None:
        self.all: list[float] = []

    def cuts(self) -> dict[str, float]:
        """Quantiles in milliseconds."""
        cuts = statistics.quantiles(self.all, n=100)
        return {"p50_ms": cuts[49] * 1e3, "p99_ms": cuts[98] * 1e3}


def produce(request: dict[str, Any]) -> dict[str, float]:
    """Send at a steady rate through the API that ours and confluent-kafka share."""
    producer = producer_class(request["client"])({**PRODUCER, "bootstrap.servers": request["bootstrap"]})
    value, latencies, clock = b"v" * request["size"], Latencies(), time.perf_counter

    def done(error: object, sent: float) -> None:
        if error is not None:
            raise RuntimeError(error)
        latencies.all.append(clock() - sent)

    def send_one(number: int) -> None:
        sent = clock()
        producer.produce(TOPIC, value, partition=number % request["partitions"],
                         on_delivery=lambda error, _m: done(error, sent))

    def send(count: int) -> None:
        begin = clock()
        for number in range(count):
            _sleep_until(begin + number / request["rate"])
            producer.poll(0)
            send_one(number)
        producer.flush(30)

    cpu_ms = _measured(send, latencies, request)["cpu_ms"]
    latencies.all.clear()
    begin = clock()
    for number in range(_records(request) // 2):
        _sleep_until(begin + number / request["rate"])
        send_one(number)
        while producer.poll(1) == 0:
            pass
    return {"cpu_ms": cpu_ms, **latencies.cuts()}


def _sleep_until(due: float) -> None:
    if (wait := due - time.perf_counter()) > 0:
        time.sleep(wait)  # confluent-kafka's poll() of less than a millisecond does not sleep


def produce_aiokafka(request: dict[str, Any]) -> dict[str, float]:
    """The same with aiokafka: each record's future is awaited by itself."""
    from aiokafka import AIOKafkaProducer

    async def run() -> dict[str, float]:
        producer = AIOKafkaProducer(bootstrap_servers=request["bootstrap"], acks="all", enable_idempotence=True)
        await producer.start()
        value, latencies, clock = b"v" * request["size"], Latencies(), time.perf_counter

        async def one(partition: int) -> None:
            sent = clock()
            await producer.send_and_wait(TOPIC, value, partition=partition)
            latencies.all.append(clock() - sent)

        async def send(count: int) -> None:
            begin, tasks = clock(), set()
            for number in range(count):
                due = begin + number / request["rate"]
                if (wait := due - clock()) > 0:
                    await asyncio.sleep(wait)
                tasks.add(task := asyncio.create_task(one(number % request["partitions"])))
                task.add_done_callback(tasks.discard)
            await asyncio.gather(*tasks)

        found = await _measured_awaiting(send, latencies, request)
        await producer.stop()
        return found

    return asyncio.run(run())


def consume(request: dict[str, Any]) -> dict[str, float]:
    """Read records as they come, through the API that ours and confluent-kafka share."""
    module: Any = import_module("headrace" if request["client"] == "headrace" else "confluent_kafka")
    consumer = module.Consumer({**CONSUMER, "bootstrap.servers": request["bootstrap"]})
    latencies = Latencies()

    def read(count: int) -> None:
        for _ in range(count):
            message = consumer.poll(30)
            if message is None or message.error() is not None:
                raise RuntimeError(f"no record: {message and message.error()}")
            latencies.all.append(time.time() - struct.unpack_from("d", message.value())[0])

    partitions = range(request["partitions"])
    consumer.assign([module.TopicPartition(
        TOPIC, each, consumer.get_watermark_offsets(module.TopicPartition(TOPIC, each), 30)[1]) for each in partitions])
    with _feeder(request):
        found = _measured(read, latencies, request)
    consumer.close()
    return found


def consume_aiokafka(request: dict[str, Any]) -> dict[str, float]:
    """The same with aiokafka."""
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> dict[str, float]:
        consumer = AIOKafkaConsumer(bootstrap_servers=request["bootstrap"], enable_auto_commit=False)
        await consumer.start()
        partitions, latencies = [TopicPartition(TOPIC, each) for each in range(request["partitions"])], Latencies()
        consumer.assign(partitions)
        await consumer.seek_to_end(*partitions)
        for each in partitions:
            await consumer.position(each)

        async def read(count: int) -> None:
            for _ in range(count):
                message = await consumer.getone()
                latencies.all.append(time.time() - struct.unpack_from("d", message.value)[0])

        with _feeder(request):
            found = await _measured_awaiting(read, latencies, request)
        await consumer.stop()
        return found

    return asyncio.run(run())


def feed(request: dict[str, Any]) -> None:
    """What consumers read: the time of the call and some bytes, at a steady rate. confluent-kafka sends it for all."""
    producer = producer_class("confluent-kafka")({**PRODUCER, "bootstrap.servers": request["bootstrap"]})
    rest, begin = b"v" * (request["size"] - 8), time.perf_counter()
    for number in range(WARM_UP + _records(request)):
        if (wait := begin + number / request["rate"] - time.perf_counter()) > 0:
            producer.poll(wait)
        producer.produce(TOPIC, struct.pack("d", time.time()) + rest, partition=number % request["partitions"])
    producer.flush(30)


def _feeder(request: dict[str, Any]) -> contextlib.ExitStack:
    stack = contextlib.ExitStack()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.trickle", json.dumps({**request, "action": "feed"})],
                               cwd=ROOT)
    stack.callback(process.wait)
    return stack


def _records(request: dict[str, Any]) -> int:
    return int(request["seconds"] * request["rate"])


def _measured(move: Callable[[int], None], latencies: Latencies, request: dict[str, Any]) -> dict[str, float]:
    move(WARM_UP)
    latencies.all.clear()
    with Stopwatch() as watch:
        move(_records(request))
    return {"cpu_ms": watch.cpu_s / _records(request) * 1e6, **latencies.cuts()}


async def _measured_awaiting(
    move: Callable[[int], Awaitable[None]], latencies: Latencies, request: dict[str, Any]
) -> dict[str, float]:
    await move(WARM_UP)
    latencies.all.clear()
    with Stopwatch() as watch:
        await move(_records(request))
    return {"cpu_ms": watch.cpu_s / _records(request) * 1e6, **latencies.cuts()}


MEASURES: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, float]]] = {
    ("produce", "headrace"): produce, ("produce", "confluent-kafka"): produce,
    ("produce", "aiokafka"): produce_aiokafka,
    ("consume", "headrace"): consume, ("consume", "confluent-kafka"): consume,
    ("consume", "aiokafka"): consume_aiokafka,
}


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Measure all clients both ways; 0 when every bar holds."""
    a = _parser().parse_args(argv)
    samples: dict[str, dict[str, list[dict[str, Any]]]] = {action: {c: [] for c in a.clients} for action in a.actions}
    with brokers.kafka(a.kafka_version, a.nodes) as broker:
        broker.create_topic(TOPIC, a.partitions)
        request = {"bootstrap": broker.bootstrap_servers, "seconds": a.seconds, "rate": a.rate, "size": a.size,
                   "partitions": a.partitions}
        with report.Progress((_BROKERS_ROUNDS + a.rounds) * len(a.clients) * len(a.actions)) as progress:
            for turn in range(1 - _BROKERS_ROUNDS, 1 + a.rounds):
                for action in a.actions:
                    for client in a.clients if turn % 2 == 0 else reversed(a.clients):
                        progress.next(f"round {turn}: {client}, {action}" if turn > 0 else f"{client}: getting warm")
                        sample = run_child("benchmarks.trickle", {**request, "action": action, "client": client})
                        if turn > 0:
                            samples[action][client].append(sample)
        about = broker.about
    return 0 if _show(a, about, samples) else 1


def _show(a: argparse.Namespace, about: str, samples: dict[str, dict[str, list[dict[str, Any]]]]) -> bool:
    """Print what was measured, and write it as JSON. True when every bar holds."""
    names = ("cpu_ms", "p50_ms", "p99_ms")
    medians = {action: {client: {n: statistics.median(s[n] for s in rows) for n in names}
                        for client, rows in clients.items()} for action, clients in samples.items()}
    print(f"\n{about}; {a.rate:,} records/s of {a.size} B for {a.seconds:g} s, {a.partitions} partitions")
    print("; ".join(f"{client} {version_of(client)}" for client in a.clients))
    missed = []
    for action, clients in medians.items():
        theirs = clients.get("confluent-kafka")
        rows = []
        for client, m in clients.items():
            ratios = {n: m[n] / theirs[n] for n in names} if theirs else {}
            bars = {n: BARS[action, n] for n in names if client == "headrace" and (action, n) in BARS}
            missed += [(action, n) for n, bar in bars.items() if ratios and ratios[n] > bar]
            rows.append((client, f"{m['cpu_ms']:.0f}", report.spread([s["cpu_ms"] for s in samples[action][client]]),
                         f"{m['p50_ms']:.3f}", f"{m['p99_ms']:.2f}",
                         *(f"{ratios[n]:.2f}" if ratios else "" for n in names),
                         ", ".join(f"{n.partition('_')[0]} <= {bar:g}" + ("  MISSED" if (action, n) in missed else "")
                                   for n, bar in bars.items())))
        report.table(f"{action} ({a.rounds} rounds, median)", ("client", "CPU ms / 1,000", "spread", "p50 ms", "p99 ms",
                                                               "CPU ratio", "p50 ratio", "p99 ratio", "bars"), rows)
    content = {"machine": machine(), "broker": about, "rate": a.rate, "seconds": a.seconds, "size_bytes": a.size,
               "partitions": a.partitions, "medians": medians, "samples": samples, "missed": missed}
    print(f"\nwritten to {report.write_json('trickle', content, a.json)}")
    return not missed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trickle", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=500, help="records per second")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=1, help="brokers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=list(ACTIONS))
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path)
    return parser


def _child(request: dict[str, Any]) -> None:
    if request["action"] == "feed":
        feed(request)
    else:
        answer(**MEASURES[request["action"], request["client"]](request))


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        _child(json.loads(sys.argv[1]))
    else:
        sys.exit(main(sys.argv[1:]))
