"""Produce and consume, side by side: ours, confluent-kafka, kafka-python, aiokafka.

    python -m benchmarks.clients --records 2000000 --rounds 5 --broker kafka

All clients use the same broker in the same run. Each measurement is a fresh process; rounds are interleaved, in turning
order, so that a machine that slows down slows all of them. `--profile` shows where our own CPU time goes instead.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import brokers, report
from benchmarks.measure import ChildError, Sample, machine, run_child, version_of
from benchmarks.peers import MEASURES, SETTINGS, WARM_UP
from tools.kafka import NEWEST, VERSIONS

REFERENCE = "confluent-kafka"
ACTIONS = ("produce", "consume", "consume-values")
SHARE = {"kafka-python": 0.05, "aiokafka": 0.1}
"""Part of the records that a slow client gets; it would take minutes otherwise."""
WARM_TOPIC = "warm-up"
FULL_TOPIC = "filled"


class Run:
    """One comparison: the arguments, the broker, and what was measured so far."""

    def __init__(self, arguments: argparse.Namespace, broker: brokers.Broker) -> None:
        self.arguments = arguments
        self.broker = broker
        self.settings = dict(row.split("=", 1) for row in arguments.setting)
        self.samples: dict[str, dict[str, list[Sample]]] = {
            action: {client: [] for client in arguments.clients} for action in arguments.actions
        }
        self.failures: dict[str, str] = {}

    def prepare(self) -> None:
        """Fill the topics that are read, with our producer's peer."""
        for topic in (WARM_TOPIC, FULL_TOPIC):
            self.broker.create_topic(topic, self.arguments.partitions)
        count = self.arguments.records if set(self.arguments.actions) - {"produce"} else WARM_UP
        self._measure(REFERENCE, "produce", FULL_TOPIC, count)
        found = self.broker.record_count(FULL_TOPIC, self.arguments.partitions)
        if found != count:
            raise RuntimeError(f"the filled topic has {found:,} records, expected {count:,}")

    def measure_all(self) -> None:
        """All rounds of all actions and clients."""
        clients = list(self.arguments.clients)
        with report.Progress(self.arguments.rounds * len(self.arguments.actions) * len(clients)) as progress:
            for turn in range(self.arguments.rounds):
                for action in self.arguments.actions:
                    first = turn % len(clients)
                    for client in clients[first:] + clients[:first]:
                        progress.next(f"round {turn + 1}: {client}, {action}")
                        if client not in self.failures:
                            self._measure_one(client, action)

    def _measure_one(self, client: str, action: str) -> None:
        count = max(int(self.arguments.records * SHARE.get(client, 1)), 10_000)
        count = min(count, self.arguments.records)
        try:
            if action == "produce":
                topic = f"produced-{client}-{len(self.samples[action][client])}"
                self.broker.create_topic(topic, self.arguments.partitions)
                sample = self._measure(client, action, topic, count)
                found = self.broker.record_count(topic, self.arguments.partitions)
                self.broker.delete_topic(topic)
                if found != count:
                    raise ChildError(f"{client} says it produced {count:,} records, the topic has {found:,}")
            else:
                sample = self._measure(client, action, FULL_TOPIC, count)
        except ChildError as error:
            if client == REFERENCE:
                raise
            self.failures[client] = str(error)
            print(f"{client} is left out: {error}", file=sys.stderr)
            return
        self.samples[action][client].append(sample)

    def _measure(self, client: str, action: str, topic: str, count: int) -> Sample:
        before = self.broker.cpu_s()
        sample = Sample(**run_child("benchmarks.peers", self.request(client, action, topic, count)))
        after = self.broker.cpu_s()
        if before is not None and after is not None:
            sample.broker_cpu_s = after - before
        return sample

    def request(self, client: str, action: str, topic: str, count: int, *, profile: bool = False) -> dict[str, Any]:
        """What a measured process is asked to do."""
        return {
            "client": client, "action": action, "topic": topic, "warm_topic": WARM_TOPIC, "records": count,
            "size": self.arguments.size, "partitions": self.arguments.partitions, "profile": profile,
            "bootstrap": self.broker.bootstrap_servers,
            "settings": self.settings if client in ("headrace", REFERENCE) else {},
        }

    def profile(self) -> None:
        """Print where our own CPU time goes, by function."""
        for action in self.arguments.actions:
            topic = FULL_TOPIC
            if action == "produce":
                topic = "profiled"
                self.broker.create_topic(topic, self.arguments.partitions)
            print(f"\n{action}, {self.arguments.records:,} records of {self.arguments.size} B")
            request = self.request("headrace", action, topic, self.arguments.records, profile=True)
            run_child("benchmarks.peers", request, show=True)

    def show(self) -> None:
        """Print what was measured, with all that it depends on, and write it as JSON."""
        a = self.arguments
        versions = {client: version_of(client) for client in a.clients}
        content: dict[str, Any] = {
            "machine": machine(), "broker": self.broker.about, "versions": versions, "settings": SETTINGS,
            "extra_settings": self.settings, "records": a.records, "size_bytes": a.size, "partitions": a.partitions,
            "failures": self.failures, "results": {},
        }
        print(f"\n{self.broker.about}; {a.partitions} partitions, values of {a.size} B, no keys, acks=all")
        print("; ".join(f"{client} {version}" for client, version in versions.items()))
        for client in a.clients:
            print(f"  {client}: {json.dumps({**SETTINGS[client], **self.settings})}")
        for action, rounds in self.samples.items():
            rows = report.summary(rounds, REFERENCE)
            content["results"][action] = rows
            report.client_table(f"{action} ({a.rounds} rounds, median)", rows, REFERENCE)
        print(f"\nwritten to {report.write_json('clients', content, a.json)}")


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Run the comparison; 0 when every client was measured."""
    arguments = _parser().parse_args(argv)
    arguments.clients = [client for client in arguments.clients if version_of(client)]
    with contextlib.ExitStack() as stack:
        made = brokers.embedded() if arguments.broker == "embedded" else brokers.kafka(arguments.kafka_version)
        run = Run(arguments, stack.enter_context(made))
        run.prepare()
        if arguments.profile:
            run.profile()
            return 0
        run.measure_all()
        run.show()
        return 1 if run.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clients", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--broker", choices=("kafka", "embedded"), default="kafka")
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--clients", nargs="+", choices=tuple(MEASURES), default=list(MEASURES))
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=list(ACTIONS[:2]))
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE",
                        help="a further property for ours and for confluent-kafka")
    parser.add_argument("--profile", action="store_true", help="profile ours by function; measure nothing")
    parser.add_argument("--json", type=Path, help="file for the result")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
