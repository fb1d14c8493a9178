"""Time from `produce()` to the delivery report at 1,000 records a second, linger 0, acks=all: ours and confluent-kafka.

    python -m benchmarks.latency --seconds 10 --rounds 5

The caller serves reports with `poll()` between two records, as a service would. Fresh processes, interleaved rounds;
the first, of each client, is the broker's, to be warm, and is not counted. The exit status is 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import brokers, report
from benchmarks.measure import Stopwatch, answer, machine, run_child, version_of
from benchmarks.peers import producer_class
from tools.kafka import NEWEST, VERSIONS

CLIENTS = ("headrace", "confluent-kafka")
SETTINGS = {"acks": "all", "enable.idempotence": True, "linger.ms": 0}
TOPIC = "latency"
WARM_UP_S = 1.0
BARS = {"p50_ms": 2.0, "p99_ms": 1.0}
"""Upper bound of our time, in multiples of confluent-kafka's."""


def measure(request: dict[str, Any]) -> dict[str, float]:
    """Send at a steady rate; the times of all records after the warm-up, as quantiles in milliseconds."""
    producer = producer_class(request["client"])({**SETTINGS, "bootstrap.servers": request["bootstrap"]})
    value = b"v" * request["size"]
    clock = time.perf_counter
    times: list[float] = []

    def send_for(seconds: float) -> None:
        begin = clock()
        for number in range(int(seconds * request["rate"])):
            due = begin + number / request["rate"]
            while (wait := due - clock()) > 0:
                producer.poll(wait)
            sent = clock()
            producer.produce(TOPIC, value, on_delivery=lambda error, _m, sent=sent: done(error, sent))
        producer.flush(30)

    def done(error: object, sent: float) -> None:
        if error is not None:
            raise RuntimeError(error)
        times.append(clock() - sent)

    send_for(WARM_UP_S)
    times.clear()
    with Stopwatch() as watch:
        send_for(request["seconds"])
    expected = int(request["seconds"] * request["rate"])
    if len(times) != expected:
        raise RuntimeError(f"{len(times)} reports for {expected} records")
    cuts = statistics.quantiles(times, n=1000)
    return {"p50_ms": cuts[499] * 1e3, "p99_ms": cuts[989] * 1e3, "p999_ms": cuts[998] * 1e3,
            "cpu_s": watch.cpu_s, "wall_s": watch.wall_s}


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Measure both clients; 0 when every bar holds."""
    a = _parser().parse_args(argv)
    samples: dict[str, list[dict[str, Any]]] = {client: [] for client in CLIENTS}
    with contextlib.ExitStack() as stack:
        made = brokers.embedded() if a.broker == "embedded" else brokers.kafka(a.kafka_version)
        broker = stack.enter_context(made)
        broker.create_topic(TOPIC, 1)
        request = {"bootstrap": broker.bootstrap_servers, "seconds": a.seconds, "rate": a.rate, "size": a.size}
        with report.Progress((1 + a.rounds) * len(CLIENTS)) as progress:
            for turn in range(1 + a.rounds):
                for client in CLIENTS if turn % 2 == 0 else reversed(CLIENTS):
                    progress.next(f"round {turn}: {client}, latency" if turn else f"{client}: the broker gets warm")
                    sample = run_child("benchmarks.latency", {**request, "client": client})
                    if turn:
                        samples[client].append(sample)
        about = broker.about
    return 0 if _show(a, about, samples) else 1


def _show(a: argparse.Namespace, about: str, samples: dict[str, list[dict[str, Any]]]) -> bool:
    """Print what was measured, and write it as JSON. True when every bar holds."""
    names = ("p50_ms", "p99_ms", "p999_ms", "cpu_s")
    medians = {c: {n: statistics.median(s[n] for s in rows) for n in names} for c, rows in samples.items()}
    versions = {client: version_of(client) for client in CLIENTS}
    print(f"\n{about}; {a.rate:,} records/s of {a.size} B for {a.seconds:g} s, {json.dumps(SETTINGS)}")
    print("; ".join(f"{client} {version}" for client, version in versions.items()))
    report.table(
        f"produce() to delivery report ({a.rounds} rounds, median)",
        ("client", "p50 ms", "spread", "p99 ms", "spread", "p99.9 ms", "CPU-s"),
        [(c, f"{m['p50_ms']:.3f}", report.spread([s["p50_ms"] for s in samples[c]]), f"{m['p99_ms']:.2f}",
          report.spread([s["p99_ms"] for s in samples[c]]), f"{m['p999_ms']:.2f}", f"{m['cpu_s']:.2f}")
         for c, m in medians.items()],
    )
    ours, theirs = (medians[client] for client in CLIENTS)
    ratios = {name: ours[name] / theirs[name] for name in names}
    missed = [name for name, bar in BARS.items() if ratios[name] > bar]
    print("\nours : theirs  " + "  ".join(
        name.removesuffix("_ms") + f" {ratio:.2f}" + (f" (bar {BARS[name]:g})" if name in BARS else "")
        + (" MISSED" if name in missed else "") for name, ratio in ratios.items()))
    content = {"machine": machine(), "broker": about, "versions": versions, "settings": SETTINGS, "medians": medians,
               "samples": samples, "rate": a.rate, "seconds": a.seconds, "size_bytes": a.size, "bars": BARS,
               "ratios": ratios}
    print(f"written to {report.write_json('latency', content, a.json)}")
    return not missed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=1_000, help="records per second")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--broker", choices=("kafka", "embedded"), default="kafka")
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        answer(**measure(json.loads(sys.argv[1])))
    else:
        sys.exit(main(sys.argv[1:]))
