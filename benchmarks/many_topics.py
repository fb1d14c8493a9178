"""10,000 topics listed and described: our admin client, confluent-kafka's and Java's.

    python -m benchmarks.many_topics --topics 10000 --rounds 5

`list`: all topics. `describe`: all of them, by name. `configs`: the configurations of 1,000. Fresh processes,
interleaved rounds, and three turns in each: the first is cold, the last is what a service sees. CPU is of the client's
process. Needs a JDK. Bar: ours lists and describes in no longer than Java's, both together, in the median of the last
turns. Java lists names alone, the others partitions as well; and of configurations it does not ask for what they hide
(synonyms), as the others do.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import brokers, report
from benchmarks.measure import Stopwatch, answer, machine, run_child, version_of
from tools.kafka import NEWEST, VERSIONS
from tools.kafka.artifacts import class_path
from tools.kafka.java import TOOLS_VERSION, find_java

CLIENTS = ("headrace", "confluent-kafka", "java")
MODULES = {"headrace": "headrace", "confluent-kafka": "confluent_kafka"}
ACTIONS = ("list", "describe", "configs")
TURNS = 3
BARRED = ("list", "describe")
MOST = 1.0
"""What ours may take, in multiples of Java's."""
_PREFIX = "one-of-many-"
_AT_ONCE = 1000
_WAIT_S = 120.0
_JAVA = Path(__file__).with_name("ManyTopics.java")

Turn = dict[str, dict[str, float]]
"""By action: seconds and CPU seconds; of Java, requests and bytes received as well."""


def names_of(topics: int) -> list[str]:
    """The names of so many topics."""
    return [f"{_PREFIX}{number:05}" for number in range(topics)]


def prepare(bootstrap: str, topics: int) -> None:
    """Make topics of one partition, and wait until the broker lists them."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    names = names_of(topics)
    for first in range(0, topics, _AT_ONCE):
        new = [NewTopic(name, 1, 1) for name in names[first:first + _AT_ONCE]]
        for future in admin.create_topics(new, request_timeout=_WAIT_S).values():
            future.result(_WAIT_S)
    deadline = time.monotonic() + _WAIT_S
    while len(admin.list_topics(timeout=_WAIT_S).topics) < topics:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topics} topics are not there after {_WAIT_S:g} s")
        time.sleep(0.1)


def measure(request: dict[str, Any]) -> list[Turn]:
    """The turns of a Python client."""
    module = import_module(MODULES[request["client"]])
    classes = import_module(f"{module.__name__}.admin")
    admin = classes.AdminClient({"bootstrap.servers": request["bootstrap"]})
    admin.list_topics(f"{_PREFIX}{0:05}", timeout=_WAIT_S)
    turns: list[Turn] = []
    for _ in range(request["turns"]):
        with Stopwatch() as listing:
            names = [name for name in admin.list_topics(timeout=_WAIT_S).topics if name.startswith(_PREFIX)]
        with Stopwatch() as describing:
            topics = [future.result(_WAIT_S) for future in admin.describe_topics(
                module.TopicCollection(names), request_timeout=_WAIT_S).values()]
        resources = [classes.ConfigResource(classes.ConfigResource.Type.TOPIC, name)
                     for name in names[:request["configs"]]]
        with Stopwatch() as reading:
            configs = [future.result(_WAIT_S) for future in admin.describe_configs(
                resources, request_timeout=_WAIT_S).values()]
        _check(request, len(names), len(topics), len(configs))
        turns.append({action: {"wall_s": watch.wall_s, "cpu_s": watch.cpu_s}
                      for action, watch in zip(ACTIONS, (listing, describing, reading), strict=True)})
    return turns


def _check(request: dict[str, Any], *found: int) -> None:
    expected = request["topics"], request["topics"], request["configs"]
    if found != expected:
        raise RuntimeError(f"{found} answers, and not {expected}")


def java(request: dict[str, Any]) -> list[Turn]:
    """The turns of Java's client, which compiles its program first."""
    command = [find_java(), "-cp", class_path(TOOLS_VERSION), str(_JAVA), request["bootstrap"],
               *(str(request[name]) for name in ("topics", "configs", "turns"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{_JAVA.name}:\n" + "\n".join(done.stderr.splitlines()[-15:]))
    turns: list[Turn] = json.loads(done.stdout.strip().splitlines()[-1])["turns"]
    return turns


def measure_all(a: argparse.Namespace, bootstrap: str) -> dict[str, list[list[Turn]]]:
    """All rounds, by client."""
    found: dict[str, list[list[Turn]]] = {client: [] for client in a.clients}
    request = {"bootstrap": bootstrap, "topics": a.topics, "configs": min(a.configs, a.topics), "turns": TURNS}
    with report.Progress(a.rounds * len(a.clients)) as progress:
        for number in range(a.rounds):
            for client in a.clients if number % 2 else reversed(a.clients):
                progress.next(f"round {number + 1}: {client}")
                found[client].append(java(request) if client == "java" else run_child(
                    "benchmarks.many_topics", {**request, "client": client})["turns"])
    return found


def show(a: argparse.Namespace, about: str, found: dict[str, list[list[Turn]]]) -> bool:
    """Print what was measured, and write it as JSON. True when the bar holds."""
    def median(client: str, turn: int, action: str, figure: str) -> float:
        return statistics.median(turns[turn][action][figure] for turns in found[client])

    print(f"\n{about}; {a.topics:,} topics")
    print("; ".join(f"{client} {TOOLS_VERSION if client == 'java' else version_of(client)}" for client in a.clients))
    report.table(f"many topics ({a.rounds} rounds, median)",
                 ("action", "client", "cold s", "cold CPU-s", "warm s", "warm CPU-s"),
                 [(action, client, *(f"{median(client, turn, action, figure):.3f}"
                                     for turn in (0, -1) for figure in ("wall_s", "cpu_s")))
                  for action in ACTIONS for client in a.clients])
    def taken_s(client: str, *actions: str) -> float:
        return sum(median(client, -1, action, "wall_s") for action in actions)

    both = {"headrace", "java"} <= set(a.clients)
    ratios = {name: taken_s("headrace", *actions) / taken_s("java", *actions)
              for name, actions in (("list and describe", BARRED), ("configs", ("configs",))) if both}
    missed = ratios.get("list and describe", 0) > MOST
    for name, ratio in ratios.items():
        print(f"{name}: ours takes {ratio:.2f} of Java's time")
    print(f"list and describe: the bar is {MOST:g}{', MISSED' if missed else ''}" if both else "")
    content = {"machine": machine(), "broker": about, "topics": a.topics, "rounds": found, "ratios": ratios}
    print(f"\nwritten to {report.write_json('many_topics', content, a.json)}")
    return not missed


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Measure; 0 when the bar holds."""
    a = _parser().parse_args(argv)
    with brokers.kafka(a.kafka_version, properties={"log.index.size.max.bytes": "4096"}) as broker:
        prepare(broker.bootstrap_servers, a.topics)
        return 0 if show(a, broker.about, measure_all(a, broker.bootstrap_servers)) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_topics", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--configs", type=int, default=1_000, help="topics whose configurations are read")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        answer(turns=measure(json.loads(sys.argv[1])))
    else:
        sys.exit(main(sys.argv[1:]))
