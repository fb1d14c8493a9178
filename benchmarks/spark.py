"""Spark on real Kafka: our data source beside Spark's own JVM connector, in one session.

    python -m benchmarks.spark --records 5000000 --rounds 5

`read` is a batch read of a whole topic into Spark's `noop` sink; `write` is a range of numbers, as values of the given
size, through the sink, and through a Python sink that does nothing, which shows what Spark's Python API leaves.
`small` is the same with 500 rows in each of 1 and of 4 tasks, in the warm session. `first` is the first write of a
session, with a fresh process for each: the JVM's sink, a Python sink that does nothing, and ours. `pipeline` is the
demo's pipeline, as plain PySpark with each connector and as `headrace run`. `memory` compares the read with a source
that yields the same Arrow batches from memory, which it also does while it receives the bytes of the topic: no source
reads faster. `stream` is 40 micro-batches of 10,000 rows in 4 partitions, into `noop` and into Kafka. `available` is a
stream with `availableNow`, of the whole topic into `noop`: in one micro-batch, also beside the same rows from memory,
and in micro-batches of 500,000. `once` compares writes with the guarantee exactly_once with ours at least once: the
range, and the small micro-batches. `idle` is the CPU of all of Spark's processes while a query waits at the end of its
topic, in seconds per second.

Rounds are interleaved, in turning order; each connector warms up once before, writes at full size. Each row has a bar;
the exit status is 1 when one is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import brokers, report
from benchmarks.measure import answer, machine, run_child, version_of
from benchmarks.spark_flights import RUN, WAYS, Flights
from benchmarks.spark_session import MEMORY, NOTHING, ONCE, OURS, RECEIVED, SMALL_ROWS, THEIRS, Session
from benchmarks.spark_streams import BATCH_ROWS, BATCHES, LARGE_ROWS, all_available, idle, records, small_batches
from tools.kafka import NEWEST, VERSIONS, spark_connector_jars

ACTIONS = ("read", "memory", "write", "once", "small", "stream", "available", "idle", "first", "pipeline")
CONNECTORS = (OURS, THEIRS)
WARM_UP = 20_000
SMALL_TASKS = (1, 4)
IDLE_S = 20.0
_SEEN_S = 10.0
SMALL_TURNS = 7
"""Small writes in each round: they are over at once, and scatter."""


@dataclass(slots=True)
class Row:
    """What is compared: seconds of ours and of the other, over all rounds.

    Attributes:
        name: of the row.
        ours, theirs: what is compared with what.
        at_most: bar for ours : theirs in time; None for none.
        at_least: bar for theirs : ours, that is how many times as fast ours is; None for none.
        seconds_at_most: bar for ours alone; None for none.
        seconds: by what was measured.
    """

    name: str
    ours: str = OURS
    theirs: str = THEIRS
    at_most: float | None = None
    at_least: float | None = None
    seconds_at_most: float | None = None
    seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def slowness(self) -> float:
        return statistics.median(self.seconds[self.ours]) / statistics.median(self.seconds[self.theirs])

    @property
    def holds(self) -> bool:
        return (self.at_most is None or self.slowness <= self.at_most) and (
            self.at_least is None or 1 / self.slowness >= self.at_least) and (
            self.seconds_at_most is None or statistics.median(self.seconds[self.ours]) <= self.seconds_at_most)

    @property
    def bar(self) -> str:
        bars = (f"time <= {self.at_most:g}" if self.at_most else "", f"speed >= {self.at_least:g}" if self.at_least
                else "", f"ours <= {self.seconds_at_most:g}" if self.seconds_at_most else "")
        return ", ".join(filter(None, bars)) + ("" if self.holds else "  MISSED")


class Run:
    """One comparison: the arguments, the broker, the session, and what was measured so far."""

    def __init__(self, arguments: argparse.Namespace, broker: brokers.Broker) -> None:
        self.arguments = arguments
        self.broker = broker
        self.rows: list[Row] = []
        self._topics = 0

    def measure_all(self) -> None:
        """All actions that were asked for. Fresh sessions come first: this process has one for the rest."""
        if "first" in self.arguments.actions:
            self._first()
        if set(self.arguments.actions) == {"first"}:
            return
        session = Session(self.arguments.master, self.broker.bootstrap_servers, self.arguments.size)
        for action, measure in (("read", self._read), ("memory", self._memory), ("write", self._write),
                                ("once", self._once), ("small", self._small), ("stream", self._stream),
                                ("available", self._available), ("idle", self._idle), ("pipeline", self._pipeline)):
            if action in self.arguments.actions:
                measure(session)
        session.spark.stop()

    def _rounds(self, rows: Iterable[Row], ways: tuple[str, ...], measure: Callable[[str], float], *, rounds: int,
                about: str) -> None:
        """Measure each way in turn; rows share what they have in common."""
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        with report.Progress(rounds * len(ways)) as progress:
            for turn in range(rounds):
                first = turn % len(ways)
                for way in ways[first:] + ways[:first]:
                    progress.next(f"{about}, round {turn + 1}: {way}")
                    seconds[way].append(measure(way))
        for row in rows:
            row.seconds = seconds
            self.rows.append(row)

    def _topic(self, partitions: int) -> str:
        self._topics += 1
        name = f"topic-{self._topics}"
        self.broker.create_topic(name, partitions)
        return name

    def _filled(self, records: int, partitions: int | None = None) -> str:
        a = self.arguments
        partitions = partitions or a.partitions
        topic = self._topic(partitions)
        run_child("benchmarks.peers", {
            "client": "confluent-kafka", "action": "produce", "topic": topic, "warm_topic": topic, "profile": False,
            # The warm-up of the producer goes into the same topic and is counted.
            "records": records - 2_000, "size": a.size, "partitions": partitions, "settings": {},
            "bootstrap": self.broker.bootstrap_servers,
        })
        return topic

    def _read(self, session: Session) -> None:
        a, small, large = self.arguments, self._filled(WARM_UP), self._filled(self.arguments.records)
        for name in CONNECTORS:
            session.read(name, small, WARM_UP, check=True)  # measured reads are not counted: this one vouches for them
        self._rounds([Row(f"read {a.records:,} rows", at_least=3)], CONNECTORS,
                     lambda name: session.read(name, large, a.records, check=False), rounds=a.rounds, about="read")
        self.broker.delete_topic(large)

    def _memory(self, session: Session) -> None:
        a, topic = self.arguments, self._filled(self.arguments.records)

        def measure(name: str) -> float:
            if name == OURS:
                return session.read(name, topic, a.records, check=False)
            return session.read_memory(a.records, a.partitions, topic if name == RECEIVED else None)

        ways = (OURS, MEMORY, RECEIVED)
        for name in ways:
            measure(name)
        self._rounds([Row(f"read {a.records:,} rows, beside the same from memory", theirs=MEMORY, at_least=0.75),
                      Row("  the same from memory while their bytes are received and checked", ours=RECEIVED,
                          theirs=MEMORY)],
                     ways, measure, rounds=a.rounds, about="memory")
        self.broker.delete_topic(topic)

    def _stream(self, session: Session) -> None:
        a, topic = self.arguments, self._filled(records(), partitions=4)
        target = self._topic(4)
        for to, at_most, into in ((None, 1.4, "noop"), (target, 1.8, "Kafka")):
            for name in CONNECTORS:
                small_batches(session, name, topic, to)
            row = Row(f"a micro-batch of {BATCH_ROWS:,} rows into {into} (median of {BATCHES})", at_most=at_most)

            def measure(name: str, to: str | None = to) -> float:
                return statistics.median(small_batches(session, name, topic, to))

            self._rounds([row], CONNECTORS, measure, rounds=min(a.rounds, 3), about=f"stream into {into}")

    def _available(self, session: Session) -> None:
        a, small, large = self.arguments, self._filled(WARM_UP), self._filled(self.arguments.records)
        stream = f"a stream of {a.records:,} rows that are there"
        whole = [Row(stream, at_least=2.2), Row("  the same from memory", ours=MEMORY),
                 Row("  ours over the same from memory", theirs=MEMORY)]
        for limit, rows, ways in ((0, whole, (*CONNECTORS, MEMORY)),
                                  (LARGE_ROWS, [Row(f"{stream}, {LARGE_ROWS:,} at a time")], CONNECTORS)):
            def measure(name: str, limit: int = limit) -> float:
                return all_available(session, name, large, a.records, limit, a.partitions)

            for name in ways:
                all_available(session, name, small, WARM_UP, limit, a.partitions)
            self._rounds(rows, ways, measure, rounds=a.rounds, about=rows[0].name)
        self.broker.delete_topic(large)

    def _once(self, session: Session) -> None:
        a = self.arguments
        self._writes(session, Row(f"write {a.records:,} rows exactly once", ours=ONCE, theirs=OURS, at_most=1.1),
                     owned=True)
        topic, target = self._filled(records(), partitions=4), self._topic(4)
        for name in (OURS, ONCE):
            small_batches(session, name, topic, target)
        self._rounds([Row(f"a micro-batch of {BATCH_ROWS:,} rows exactly once", ours=ONCE, theirs=OURS)], (OURS, ONCE),
                     lambda name: statistics.median(small_batches(session, name, topic, target)),
                     rounds=min(a.rounds, 3), about="small batches exactly once")

    def _idle(self, session: Session) -> None:
        topic = self._topic(4)

        def measure(name: str) -> float:
            return max(idle(session, name, topic, IDLE_S, self.broker.cpu_s), 1e-4)

        self._rounds([Row("an idle query, CPU seconds per second", seconds_at_most=0.01)], CONNECTORS, measure,
                     rounds=min(self.arguments.rounds, 3), about="idle")

    def _write(self, session: Session) -> None:
        self._writes(session, Row(f"write {self.arguments.records:,} rows", at_least=2),
                     Row("  the same into a Python sink that does nothing", ours=NOTHING))

    def _writes(self, session: Session, *rows: Row, owned: bool = False) -> None:
        a, ways = self.arguments, tuple(dict.fromkeys(way for row in rows for way in (row.ours, row.theirs)))

        def measure(name: str) -> float:
            topic = self._topic(a.partitions)
            took_s = session.write(name, topic, a.records, a.partitions, owned=owned)
            written = 0 if name == NOTHING else a.records + (a.partitions if name == ONCE else 0)
            self._check(name, topic, a.partitions, written)
            self.broker.delete_topic(topic)
            return took_s

        for name in ways:  # as large as what is measured: the broker's code gets quicker for a while, too
            measure(name)
        self._rounds(rows, ways, measure, rounds=a.rounds, about=rows[0].name)

    def _check(self, name: str, topic: str, partitions: int, expected: int) -> None:
        deadline = time.monotonic() + _SEEN_S
        while (found := self.broker.record_count(topic, partitions)) != expected and time.monotonic() < deadline:
            time.sleep(0.05)  # a transaction is committed a moment before its partitions have been told
        if found != expected:
            raise RuntimeError(f"{name} wrote {found:,} records, expected {expected:,}")

    def _small(self, session: Session) -> None:
        a = self.arguments
        for tasks, at_most in zip(SMALL_TASKS, (1.5, 2.0), strict=True):
            topic = self._topic(tasks)
            ways = (*CONNECTORS, NOTHING)

            def write(name: str, topic: str = topic, tasks: int = tasks) -> float:
                return session.write(name, topic, SMALL_ROWS * tasks, tasks)

            for name in ways * 5:  # Spark's own code gets quicker for a while
                write(name)
            row = Row(f"write {SMALL_ROWS} rows in each of {tasks} task{'s' if tasks > 1 else ''}", at_most=at_most)
            self._rounds([row], ways, write, rounds=a.rounds * SMALL_TURNS, about=f"small, {tasks}")
            self._check("small writes", topic, tasks, (a.rounds * SMALL_TURNS + 5) * 2 * SMALL_ROWS * tasks)

    def _first(self) -> None:
        a, topic = self.arguments, self._topic(1)

        def measure(name: str) -> float:
            request = {"connector": name, "topic": topic, "master": a.master, "size": a.size,
                       "bootstrap": self.broker.bootstrap_servers}
            return float(run_child("benchmarks.spark", request)["seconds"])

        self._rounds([Row("first write of a session"), Row("  of which the Python API", ours=NOTHING),
                      Row("  ours over the Python API", theirs=NOTHING)],
                     (THEIRS, NOTHING, OURS), measure, rounds=min(a.rounds, 3), about="first")

    def _pipeline(self, session: Session) -> None:
        flights = Flights(session, self.broker)
        for way in WAYS:
            flights.run(way, check=True)
        self._rounds([Row("the demo's pipeline, plain PySpark", at_least=1.5),
                      Row("the demo's pipeline, declared", ours=RUN, at_least=2.2)],
                     WAYS, lambda way: flights.run(way, check=False), rounds=min(self.arguments.rounds, 3),
                     about="pipeline")

    def show(self) -> bool:
        """Print what was measured, and write it as JSON. True when every bar holds."""
        a = self.arguments
        versions = {name: version_of(name) for name in ("headrace", "pyspark", "pyarrow")}
        versions |= {jar.stem: "JVM connector" for jar in spark_connector_jars()}
        print(f"\n{self.broker.about}; Spark on {a.master}, values of {a.size} B, {a.partitions} partitions")
        print("; ".join(f"{name} {version}" for name, version in versions.items()))
        shown = []
        for row in self.rows:
            ours, theirs = row.seconds[row.ours], row.seconds[row.theirs]
            shown.append((row.name, f"{row.ours} {statistics.median(ours):.3f}", report.spread(ours),
                          f"{row.theirs} {statistics.median(theirs):.3f}", report.spread(theirs),
                          f"{row.slowness:.2f}", f"{1 / row.slowness:.2f}", row.bar))
        report.table("seconds, median of all rounds", ("", "ours", "spread", "against", "spread", "time ratio",
                                                       "times as fast", "bar"), shown)
        whole = {"machine": machine(), "broker": self.broker.about, "versions": versions, "master": a.master,
                 "records": a.records, "size_bytes": a.size, "partitions": a.partitions,
                 "rows": [{**asdict(row), "time_ratio": row.slowness, "holds": row.holds} for row in self.rows]}
        print(f"\nwritten to {report.write_json('spark', whole, a.json)}")
        return all(row.holds for row in self.rows)


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Run the comparison; 0 when every bar holds."""
    arguments = _parser().parse_args(argv)
    with brokers.kafka(arguments.kafka_version) as broker:
        run = Run(arguments, broker)
        run.measure_all()
        return 0 if run.show() else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=list(ACTIONS))
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path)
    return parser


def _first_write(request: dict[str, Any]) -> float:
    session = Session(request["master"], request["bootstrap"], request["size"])
    return session.write(request["connector"], request["topic"], SMALL_ROWS, 1)


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        answer(seconds=_first_write(json.loads(sys.argv[1])))
    else:
        sys.exit(main(sys.argv[1:]))
