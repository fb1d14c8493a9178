"""Time from `Consumer()` and `subscribe()` to the first record: ours and confluent-kafka.

    python -m benchmarks.joining --rounds 15

For a group that is new and one that has committed, under the classic protocol and KIP-848's, on a broker that waits for
no further members (group.initial.rebalance.delay.ms=0) and on one with its default of three seconds. `import` is done
before. `fresh`: the first consumer of a process; `warm`: the second, as in a service that opens them one after the
other. CPU is of the client's process. Fresh processes, interleaved rounds; the first, of each, is not counted. Bar:
ours takes no longer, in the median.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import brokers, report
from benchmarks.measure import Stopwatch, answer, machine, run_child, version_of
from benchmarks.peers import producer_class
from tools.kafka import NEWEST, VERSIONS

CLIENTS = ("headrace", "confluent-kafka")
MODULES = {"headrace": "headrace", "confluent-kafka": "confluent_kafka"}
PROTOCOLS = ("classic", "consumer")
GROUPS = ("new", "existing")
DELAYS_MS = (0, 3000)
SETTINGS = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
TOPIC, PARTITIONS, RECORDS = "joined", 4, 400
MOST = 1.0
"""What ours may take, in multiples of confluent-kafka's."""
_WAIT_S = 60.0

Row = tuple[int, str, str]
"""The broker's delay, the group protocol, and which group."""


def measure(request: dict[str, Any]) -> dict[str, float]:
    """The first consumer of this process, then one more of another group; seconds and CPU seconds of each."""
    consumer_class = import_module(MODULES[request["client"]]).Consumer
    fresh, warm = (_first_record(consumer_class, request, f"{request['group']}-{number}") for number in range(2))
    return {"fresh_s": fresh.wall_s, "fresh_cpu_s": fresh.cpu_s, "warm_s": warm.wall_s, "warm_cpu_s": warm.cpu_s}


def _first_record(consumer_class: Any, request: dict[str, Any], group: str) -> Stopwatch:
    properties = {**SETTINGS, "bootstrap.servers": request["bootstrap"], "group.id": group,
                  "group.protocol": request["protocol"]}
    if request["exists"]:
        _commit(properties)
    with Stopwatch() as watch:
        consumer = consumer_class(properties)
        consumer.subscribe([TOPIC])
        message = consumer.poll(_WAIT_S)
    if message is None or message.error() is not None:
        raise RuntimeError(f"no record: {message and message.error()}")
    if message.offset() != (1 if request["exists"] else 0):
        raise RuntimeError(f"the first record has offset {message.offset()}")
    consumer.close()
    return watch


def _commit(properties: dict[str, Any]) -> None:
    """Leave a group with an offset of each partition, as a member of another process that has gone."""
    run_child("benchmarks.joining", {"commit": properties})


def commit(properties: dict[str, Any]) -> dict[str, int]:
    """Commit the offset 1 of every partition as a member that leaves. confluent-kafka does it for all."""
    import confluent_kafka

    consumer = confluent_kafka.Consumer(properties)
    consumer.subscribe([TOPIC])
    message = consumer.poll(_WAIT_S)
    if message is None or message.error() is not None:
        raise RuntimeError(f"no record: {message and message.error()}")
    consumer.commit(offsets=[confluent_kafka.TopicPartition(TOPIC, p, 1) for p in range(PARTITIONS)],
                    asynchronous=False)
    consumer.close()
    return {"committed": PARTITIONS}


def fill(broker: brokers.Broker) -> None:
    """Make the topic that all read."""
    broker.create_topic(TOPIC, PARTITIONS)
    producer = producer_class("confluent-kafka")({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"v" * 100, partition=number % PARTITIONS)
    if producer.flush(30):
        raise RuntimeError("the topic could not be filled")


def measure_all(a: argparse.Namespace) -> tuple[dict[tuple[Row, str], list[dict[str, float]]], str]:
    """All rounds on all brokers; also what these are."""
    samples: dict[tuple[Row, str], list[dict[str, float]]] = {}
    about, numbers = "", iter(range(1_000_000))
    with report.Progress(len(a.delays) * (1 + a.rounds) * len(a.protocols) * len(GROUPS) * len(CLIENTS)) as progress:
        for delay in a.delays:
            properties = {"group.initial.rebalance.delay.ms": str(delay), "offsets.topic.num.partitions": "50"}
            with brokers.kafka(a.kafka_version, properties=properties) as broker:
                fill(broker)
                about = broker.about
                for turn in range(1 + a.rounds):
                    for protocol in a.protocols:
                        for group in GROUPS:
                            for client in CLIENTS if turn % 2 else reversed(CLIENTS):
                                what = f"{client}, {protocol}, {group} group, delay {delay} ms"
                                progress.next(f"round {turn}: {what}" if turn else f"getting warm: {what}")
                                found = run_child("benchmarks.joining", {
                                    "client": client, "protocol": protocol, "exists": group == "existing",
                                    "group": f"joining-{next(numbers)}", "bootstrap": broker.bootstrap_servers})
                                if turn:
                                    samples.setdefault(((delay, protocol, group), client), []).append(found)
    return samples, about


def show(a: argparse.Namespace, samples: dict[tuple[Row, str], list[dict[str, float]]], about: str) -> bool:
    """Print what was measured, and write it as JSON. True when every bar holds."""
    rows, missed, ratios = [], 0, []
    for row in dict.fromkeys(row for row, _ in samples):
        ours, theirs = (samples[row, client] for client in CLIENTS)
        for when in ("fresh", "warm"):
            mine, others = ([found[f"{when}_s"] * 1e3 for found in each] for each in (ours, theirs))
            ratio = statistics.median(mine) / statistics.median(others)
            missed += ratio > MOST
            ratios.append({"row": [*row, when], "ratio": ratio})
            cpu = [statistics.median(found[f"{when}_cpu_s"] for found in each) * 1e3 for each in (ours, theirs)]
            rows.append((f"{row[1]}, {row[2]} group, {when}", f"{row[0]:,}", f"{statistics.median(mine):.1f}",
                         report.spread(mine), f"{statistics.median(others):.1f}", report.spread(others),
                         f"{ratio:.2f}" + ("  MISSED" if ratio > MOST else ""), f"{cpu[0]:.1f}", f"{cpu[1]:.1f}"))
    print(f"\n{about}; {PARTITIONS} partitions")
    print("; ".join(f"{client} {version_of(client)}" for client in CLIENTS))
    report.table(f"subscribe to first record ({a.rounds} rounds, median; bar {MOST:g})",
                 ("", "delay ms", "ours ms", "spread", "confluent ms", "spread", "ratio", "our CPU ms",
                  "confluent CPU ms"), rows)
    content = {"machine": machine(), "broker": about, "ratios": ratios, "samples": [
        {"delay_ms": row[0], "protocol": row[1], "group": row[2], "client": client, "rounds": found}
        for (row, client), found in samples.items()]}
    print(f"\nwritten to {report.write_json('joining', content, a.json)}")
    return not missed


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Measure; 0 when every bar holds."""
    a = _parser().parse_args(argv)
    return 0 if show(a, *measure_all(a)) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.joining", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--delays", type=int, nargs="+", default=list(DELAYS_MS), metavar="MS",
                        help="group.initial.rebalance.delay.ms of the broker, one after the other")
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS))
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path)
    return parser


def _child(request: dict[str, Any]) -> None:
    answer(**(commit(request["commit"]) if "commit" in request else measure(request)))


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        _child(json.loads(sys.argv[1]))
    else:
        sys.exit(main(sys.argv[1:]))
