"""This tree beside an older commit of it: every row of the other benchmarks, ours alone, interleaved in one run.

    python -m benchmarks.compare 394dfe6 --rounds 5
    python -m benchmarks.compare HEAD~3 producing --records 500000

The older commit is checked out and built under `.cache/compared`. Both are measured by this tree's programs, at the
same broker, in fresh processes that take turns; so a change of a few percent can be seen on a machine that is not
quiet. A row's ratio is the median over the rounds of new : old, pair by pair. The exit status is 1 when a row costs
more CPU, or takes more time, than the bars allow.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks import brokers, imports, report
from benchmarks.measure import ROOT, Sample, answer, machine, run_child
from benchmarks.producing import OURS, ROWS, WARM_TOPIC, Way
from benchmarks.spark_session import SMALL_ROWS, Session, cpu_of_all_s
from tools.kafka import NEWEST, VERSIONS

PARTS = ("imports", "producing", "clients", "latency", "trickle", "spark")
BARS = {"cpu": 1.03, "time": 1.03, "p50": 1.03}
"""What a row may cost, new : old."""
FULL_TOPIC = "filled"
SPARK_WARM_UP = 20_000
SMALL_WRITES = 15
IMPORTS = (imports.IMPORT, f"{OURS}, Producer and Consumer", imports.FIRST,
           imports.FIRST_CONSUMER, imports.MESSAGES)
"""Rows of `benchmarks.imports`."""

Measure = Callable[[Path], dict[str, float]]
"""Measures the package in a `src` folder once: names of figures to figures, less is better."""


@dataclass(slots=True)
class Row:
    """One thing that is measured in both trees.

    Attributes:
        name: of the row.
        measure: how.
        old, new: the figures of each round.
    """

    name: str
    measure: Measure
    old: list[dict[str, float]] = field(default_factory=list)
    new: list[dict[str, float]] = field(default_factory=list)

    def ratios(self) -> dict[str, float]:
        """Median of new : old, pair by pair, for each figure."""
        pairs = list(zip(self.old, self.new, strict=True))
        return {name: statistics.median(new[name] / old[name] for old, new in pairs) for name in self.new[0]}


class Comparison:
    """What is compared, and where.

    Args:
        arguments: of the command line.
        broker: that both use.
        old: the `src` folder of the older commit.
        compiled: a folder for compiled files.
    """

    def __init__(self, arguments: argparse.Namespace, broker: brokers.Broker, old: Path, compiled: str) -> None:
        self.arguments, self.broker, self._old, self._compiled = arguments, broker, old, compiled
        self._numbers = count()
        makers = {"imports": self._imports, "producing": self._producing, "clients": self._clients,
                  "latency": self._latency, "trickle": self._trickle, "spark": self._spark}
        self.rows = [row for part in PARTS if part in arguments.parts for row in makers[part]()
                     if not arguments.only or any(text in row.name for text in arguments.only)]

    def run(self) -> None:
        """All rounds; before the first one each row is measured once, so that the broker and the files are warm."""
        trees = (self._old, ROOT / "src")
        with report.Progress((1 + self.arguments.rounds) * len(self.rows)) as progress:
            for turn in range(1 + self.arguments.rounds):
                for row in self.rows:
                    progress.next(f"round {turn}: {row.name}" if turn else f"getting warm: {row.name}")
                    order = trees if turn % 2 else trees[::-1]
                    found = {tree: row.measure(tree) for tree in (order if turn else order[:1])}
                    if turn:
                        row.old.append(found[trees[0]])
                        row.new.append(found[trees[1]])

    # The rows

    def _imports(self) -> Iterator[Row]:
        for name in IMPORTS:
            def measure(source: Path, name: str = name) -> dict[str, float]:
                code = imports.all_messages(source) if name == imports.MESSAGES else imports.ROWS[name]
                environment = imports.compiled_files_in(self._compiled, source)
                return {"cpu": statistics.median(imports.cpu_ns(code, environment) for _ in range(7)) / 1e9}

            yield Row(name, measure)

    def _producing(self) -> Iterator[Row]:
        self.broker.create_topic(WARM_TOPIC, 4)
        ways = {str(row.ours): row for row in ROWS}
        for row in ways.values():
            def measure(source: Path, way: Way = row.ours) -> dict[str, float]:
                topic, records = f"produced-{next(self._numbers)}", int(self.arguments.records * way.share)
                self.broker.create_topic(topic, way.partitions)
                request = {"client": OURS, "work": way.work, "topic": topic, "records": records, "size": way.size,
                           "partitions": way.partitions, "settings": way.settings,
                           "bootstrap": self.broker.bootstrap_servers}
                found = _of_sample(Sample(**run_child("benchmarks.producing", request, source=source)))
                self.broker.delete_topic(topic)
                return found

            yield Row(f"produce {row.name}", measure)

    def _clients(self) -> Iterator[Row]:
        self.broker.create_topic(FULL_TOPIC, 4)
        request = {"client": "confluent-kafka", "action": "produce", "topic": FULL_TOPIC, "warm_topic": FULL_TOPIC,
                   "records": self.arguments.records, "size": 100, "partitions": 4, "profile": False, "settings": {},
                   "bootstrap": self.broker.bootstrap_servers}
        run_child("benchmarks.peers", request)
        for action in ("consume", "consume-values"):
            def measure(source: Path, action: str = action) -> dict[str, float]:
                asked = {**request, "client": OURS, "action": action}
                return _of_sample(Sample(**run_child("benchmarks.peers", asked, source=source)))

            yield Row(action, measure)

    def _latency(self) -> Iterator[Row]:
        self.broker.create_topic("latency", 1)

        def measure(source: Path) -> dict[str, float]:
            request = {"client": OURS, "bootstrap": self.broker.bootstrap_servers, "seconds": self.arguments.seconds,
                       "rate": 1_000, "size": 100}
            found = run_child("benchmarks.latency", request, source=source)
            return {"cpu": found["cpu_s"], "p50": found["p50_ms"]}

        yield Row("latency at 1,000 records/s", measure)

    def _trickle(self) -> Iterator[Row]:
        self.broker.create_topic("trickle", 1)
        for action in ("produce", "consume"):
            def measure(source: Path, action: str = action) -> dict[str, float]:
                request = {"client": OURS, "action": action, "bootstrap": self.broker.bootstrap_servers,
                           "seconds": self.arguments.seconds, "rate": 500, "size": 100}
                found = run_child("benchmarks.trickle", request, source=source)
                return {"cpu": found["cpu_ms"], "p50": found["p50_ms"]}

            yield Row(f"trickle, {action}", measure)

    def _spark(self) -> Iterator[Row]:
        self.broker.create_topic("spark-small", 4)
        rows: dict[Path, dict[str, float]] = {}
        names = ("write", "small 1", "small 4", "read")

        def measure_all(source: Path, name: str) -> dict[str, float]:
            if name == names[0]:  # one session measures all
                topic = f"spark-{next(self._numbers)}"
                self.broker.create_topic(topic, 4)
                rows[source] = run_child("benchmarks.compare", {
                    "bootstrap": self.broker.bootstrap_servers, "topic": topic, "records": self.arguments.records,
                }, source=source)
                self.broker.delete_topic(topic)
            found = rows[source]
            return {"time": found[name], **({"cpu": found["cpu"]} if name == names[0] else {})}

        for name in names:
            def measure(source: Path, name: str = name) -> dict[str, float]:
                return measure_all(source, name)

            yield Row(f"spark, {name}", measure)

    def show(self) -> bool:
        """Print what was measured, and write it as JSON. True when every bar holds."""
        shown, good = [], True
        for row in self.rows:
            for figure, ratio in row.ratios().items():
                bar = BARS.get(figure)
                holds = bar is None or ratio <= bar
                good &= holds
                old, new = ([sample[figure] for sample in samples] for samples in (row.old, row.new))
                shown.append((row.name, figure, f"{statistics.median(old):.4g}", report.spread(old),
                              f"{statistics.median(new):.4g}", report.spread(new), f"{ratio:.3f}",
                              "" if bar is None else f"<= {bar:g}" + ("" if holds else "  MISSED")))
        report.table(f"this tree : {self.arguments.commit} ({self.arguments.rounds} rounds, medians)",
                     ("", "figure", "old", "spread", "new", "spread", "new : old", "bar"), shown)
        whole = {"machine": machine(), "broker": self.broker.about, "commit": self.arguments.commit, "rows": [
            {"row": row.name, "old": row.old, "new": row.new, "ratios": row.ratios()} for row in self.rows]}
        print(f"\nwritten to {report.write_json('compare', whole, self.arguments.json)}")
        return good


def _of_sample(sample: Sample) -> dict[str, float]:
    return {"cpu": sample.cpu_s_per_million, "time": sample.wall_s}


def checked_out(commit: str) -> Path:
    """The `src` folder of a commit, with its native modules built."""
    def git(*words: str) -> str:
        return subprocess.run(("git", *words), cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()

    folder = ROOT / ".cache" / "compared" / git("rev-parse", "--short=12", commit)
    if not (folder / ".built").exists():
        folder.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(("git", "archive", commit), cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(("tar", "-x"), cwd=folder, input=archive, check=True)
        subprocess.run((sys.executable, "setup.py", "-q", "build_ext", "--inplace"), cwd=folder, check=True,
                       capture_output=True)
        (folder / ".built").touch()
    return folder / "src"


def spark_figures(request: dict[str, Any]) -> dict[str, float]:
    """One session: warm, then writes, small writes and reads; seconds of each, and the CPU of all its processes."""
    session, topic = Session("local[2]", request["bootstrap"], 100), request["topic"]
    for tasks in (1, 4):
        session.write(OURS, "spark-small", SPARK_WARM_UP, tasks)
    before = cpu_of_all_s()
    figures = {"write": session.write(OURS, topic, request["records"], 4)}
    session.read(OURS, "spark-small", 0, check=False)
    figures["read"] = session.read(OURS, topic, request["records"], check=False)
    for tasks in (1, 4):
        figures[f"small {tasks}"] = statistics.median(
            session.write(OURS, "spark-small", SMALL_ROWS * tasks, tasks) for _ in range(SMALL_WRITES))
    figures["cpu"] = cpu_of_all_s() - before
    session.spark.stop()
    return figures


@brokers.failures_told(subprocess.CalledProcessError)
def main(argv: list[str]) -> int:
    """Compare; 0 when every bar holds."""
    arguments = _parser().parse_args(argv)
    arguments.parts = arguments.parts or list(PARTS)
    old = checked_out(arguments.commit)
    with brokers.kafka(arguments.kafka_version) as broker, tempfile.TemporaryDirectory() as compiled:
        comparison = Comparison(arguments, broker, old, compiled)
        comparison.run()
        return 0 if comparison.show() else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="what is compared with, as git names it")
    parser.add_argument("parts", nargs="*", metavar="part", choices=[[], *PARTS],
                        help=f"only these of {', '.join(PARTS)}")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="only rows with one of these in their name")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=5, help="of latency and trickle")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path, help="file for the result")
    return parser


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        answer(**spark_figures(json.loads(sys.argv[1])))
    else:
        sys.exit(main(sys.argv[1:]))
