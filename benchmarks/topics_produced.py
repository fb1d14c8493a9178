"""A producer of 10 and of 1,000 topics: bulk, one record at a time, and topics that are new; beside confluent-kafka's.

    python -m benchmarks.topics_produced --topics 10 1000 --rounds 5

`new`: the first record for each topic, one topic after the other, with `flush()` behind each. `first`: the same for all
topics at once, and one `flush()`. `bulk`: records for topics by turns, and `flush()`. `one`: a record for any of the
topics, and `flush()`, again and again. `paced`: such records, 200 a second, and `poll(0)` behind each. Seconds and CPU
seconds, of `one` and `paced` for 1,000 records. Fresh processes, interleaved rounds; the first, of each, is the
broker's, to be warm.

Bar: with each number of topics, `new`, `first` and `bulk` of ours take no longer than confluent-kafka's.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import brokers, report
from benchmarks.many_topics import names_of, prepare
from benchmarks.measure import Stopwatch, answer, machine, run_child, version_of
from benchmarks.peers import producer_class
from tools.kafka import NEWEST, VERSIONS

CLIENTS = ("headrace", "confluent-kafka")
MODULES = {"headrace": "headrace", "confluent-kafka": "confluent_kafka"}
ACTIONS = ("new", "first", "bulk", "one", "paced")
BARRED = ("new", "first", "bulk")
MOST = 1.0
"""What ours may take, in multiples of confluent-kafka's time."""
_RATE = 200
_WAIT_S = 120.0


class Topics:
    """A producer, and the names of its topics.

    Attributes:
        failed: errors of records.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.names = names_of(request["topics"])
        self._value = b"v" * request["size"]
        self.failed: list[object] = []
        import_module(MODULES[request["client"]]).Producer  # noqa: B018 - some of a module is imported on first use
        self.producer = producer_class(request["client"])({
            "bootstrap.servers": request["bootstrap"], "enable.idempotence": True,
            "on_delivery": lambda error, _: self.failed.append(error) if error else None})

    def send(self, names: Iterable[str], *, flushing: bool = False, rate: int = 0) -> None:
        """A record for each of the names, and a flush behind all, or behind each."""
        producer, value, begin = self.producer, self._value, time.perf_counter()
        for number, name in enumerate(names):
            producer.produce(name, value)
            if flushing:
                producer.flush(_WAIT_S)
            elif rate:
                producer.poll(0)
                time.sleep(max(begin + (number + 1) / rate - time.perf_counter(), 0))
            elif number % 1_000 == 0:
                producer.poll(0)
        if producer.flush(_WAIT_S) or self.failed:
            raise RuntimeError(f"{len(producer)} records not sent, {len(self.failed)} failed: {self.failed[:1]}")

    def any_of_them(self, count: int) -> list[str]:
        """Names by chance, the same each time."""
        return random.Random(7).choices(self.names, k=count)

    def known(self) -> Topics:
        """This, when each topic has its record."""
        self.send(self.names)
        return self


def measured(request: dict[str, Any]) -> dict[str, float]:
    """What an action takes, in seconds and CPU seconds."""
    topics, action, per = Topics(request), request["action"], 1.0
    names = topics.names
    if action == "bulk":
        names = topics.known().any_of_them(request["records"])
    elif action in ("one", "paced"):
        names, per = topics.known().any_of_them(request["few"]), 1_000 / request["few"]
    with Stopwatch() as watch:
        topics.send(names, flushing=action in ("new", "one"), rate=_RATE if action == "paced" else 0)
    return {f"{action}_s": watch.wall_s * per, f"{action}_cpu_s": watch.cpu_s * per}


class Run:
    """One comparison: the arguments, the broker, and what was measured so far.

    Attributes:
        samples: by number of topics and client, what each round found.
    """

    def __init__(self, arguments: argparse.Namespace, broker: brokers.Broker) -> None:
        self.arguments, self.broker = arguments, broker
        self.samples: dict[tuple[int, str], list[dict[str, float]]] = {
            (topics, client): [] for topics in arguments.topics for client in arguments.clients}

    def measure_all(self) -> None:
        """Make the topics; then all rounds."""
        prepare(self.broker.bootstrap_servers, max(self.arguments.topics))
        report.measure_in_turns(
            self.samples, self.arguments.rounds, self.arguments.actions, lambda key: f"{key[1]}, {key[0]:,} topics",
            lambda key, action: self._measured(*key, action))

    def _measured(self, topics: int, client: str, action: str) -> dict[str, Any]:
        a = self.arguments
        return run_child("benchmarks.topics_produced", {
            "action": action, "client": client, "topics": topics, "records": a.records, "few": a.few,
            "size": a.size, "bootstrap": self.broker.bootstrap_servers})

    def show(self) -> bool:
        """Print what was measured, and write it as JSON. True when every bar holds."""
        a = self.arguments
        medians = {key: {name: statistics.median(row[name] for row in rows) for name in rows[0]}
                   for key, rows in self.samples.items()}
        heads = [f"{action}_{kind}" for action in a.actions for kind in ("s", "cpu_s")]
        print(f"\n{self.broker.about}; {a.records:,} records of {a.size} B in bulk")
        print("; ".join(f"{client} {version_of(client)}" for client in a.clients))
        report.table(f"topics produced to ({a.rounds} rounds, median; in brackets: confluent-kafka's is 1)",
                     ("topics", "client", *(head.replace("_cpu_s", " CPU-s").replace("_s", " s") for head in heads)),
                     [(f"{topics:,}", client, *(_cell(found[head], medians.get((topics, CLIENTS[1])), head)
                                                for head in heads)) for (topics, client), found in medians.items()])
        missed = [f"{topics:,} topics, {action}" for (topics, client), found in medians.items() if client == CLIENTS[0]
                  for action in a.actions if action in BARRED and (topics, CLIENTS[1]) in medians
                  and found[f"{action}_s"] > MOST * medians[topics, CLIENTS[1]][f"{action}_s"]]
        print("MISSED: " + "; ".join(missed) if missed else "no bar was missed")
        content = {"machine": machine(), "broker": self.broker.about, "records": a.records, "size_bytes": a.size,
                   "samples": [{"topics": topics, "client": client, "rounds": rows}
                               for (topics, client), rows in self.samples.items()]}
        print(f"\nwritten to {report.write_json('topics_produced', content, a.json)}")
        return not missed


def _cell(value: float, theirs: dict[str, float] | None, head: str) -> str:
    return f"{value:.3f}" if theirs is None else f"{value:.3f} ({value / theirs[head]:.2f})"


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Measure; 0 when every bar holds."""
    a = _parser().parse_args(argv)
    with brokers.kafka(a.kafka_version) as broker:
        run = Run(a, broker)
        run.measure_all()
        return 0 if run.show() else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.topics_produced", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, nargs="+", default=[10, 1_000])
    parser.add_argument("--records", type=int, default=100_000, help="in bulk")
    parser.add_argument("--few", type=int, default=1_000, help="records that are sent one by one")
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=list(ACTIONS))
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        answer(**measured(json.loads(sys.argv[1])))
    else:
        sys.exit(main(sys.argv[1:]))
