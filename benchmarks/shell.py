"""Lines into a topic and out of it: `headrace produce` and `consume` beside kcat, from files and into files.

    python -m benchmarks.shell --lines 5000000 --rounds 3

Lines of 100 bytes on real Kafka, four partitions, both tools as they are when nothing is set but the topic. Each run is
a process, from its start to its end; CPU is of that process. Interleaved rounds; the median of the rounds counts. Needs
a JVM and kcat. Bars: as many lines a second, and no more CPU.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import brokers, report
from benchmarks.measure import ROOT, ChildError, Sample, machine, version_of
from tools.kafka import NEWEST, VERSIONS

TOOLS = ("headrace", "kcat")
ACTIONS = ("produce", "consume")
PARTITIONS = 4
LINE_BYTES = 100
TOPIC = "lines"
_NOISE = 1.05
"""What two runs of the same may differ by."""


def write_lines(path: Path, count: int) -> None:
    """Lines that differ, newline included."""
    filling = "x" * (LINE_BYTES - 12)
    with path.open("w") as file:
        for first in range(0, count, 10_000):
            file.writelines(f"{number:010} {filling}\n" for number in range(first, min(first + 10_000, count)))


def command(tool: str, action: str, servers: str, path: Path) -> list[str]:
    """What is run."""
    ours = [sys.executable, "-m", "headrace.cli", action, TOPIC]
    return {
        ("headrace", "produce"): [*ours, str(path), "-b", servers, "-q"],
        ("headrace", "consume"): [*ours, "-e", "-b", servers, "-q"],
        ("kcat", "produce"): ["kcat", "-P", "-b", servers, "-t", TOPIC, "-l", str(path)],
        ("kcat", "consume"): ["kcat", "-C", "-b", servers, "-t", TOPIC, "-o", "beginning", "-e", "-q"],
    }[tool, action]


def measured(words: Sequence[str], out: Path, records: int) -> Sample:
    """Run a process; its output goes to a file."""
    with out.open("wb") as file:
        began = time.perf_counter()
        process = subprocess.Popen(words, stdout=file, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise ChildError(f"{' '.join(words)} ended with {process.returncode}")
    return Sample(records, wall_s, used.ru_utime + used.ru_stime)


def measure_all(a: argparse.Namespace, broker: brokers.Broker, folder: Path) -> dict[str, dict[str, list[Sample]]]:
    """All rounds, by action and tool."""
    found: dict[str, dict[str, list[Sample]]] = {action: {tool: [] for tool in TOOLS} for action in ACTIONS}
    given, out = folder / "lines.txt", folder / "out.txt"
    write_lines(given, a.lines)
    with report.Progress(a.rounds * len(TOOLS) * len(ACTIONS)) as progress:
        for number in range(a.rounds):
            for action in ACTIONS:
                for tool in TOOLS if number % 2 else reversed(TOOLS):
                    progress.next(f"round {number + 1}: {tool} {action}")
                    if action == "produce":
                        if any(found[action].values()):
                            broker.delete_topic(TOPIC)
                        broker.create_topic(TOPIC, PARTITIONS)
                    words = command(tool, action, broker.bootstrap_servers, given)
                    found[action][tool].append(measured(words, out, a.lines))
                    _check(a, action, broker, out)
    return found


def _check(a: argparse.Namespace, action: str, broker: brokers.Broker, out: Path) -> None:
    there = broker.record_count(TOPIC, PARTITIONS)
    size = out.stat().st_size
    if there != a.lines or (action == "consume" and size != a.lines * LINE_BYTES):
        raise ChildError(f"{there:,} records and {size:,} bytes, of {a.lines:,} lines")


def show(a: argparse.Namespace, about: str, found: dict[str, dict[str, list[Sample]]]) -> bool:
    """Print what was measured, and write it as JSON. True when the bars hold."""
    kcat = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
    versions = [line.split(" - ")[0] for line in kcat.splitlines() if line.startswith("Version")]
    print(f"\n{about}; headrace {version_of('headrace')}, kcat {' '.join(versions)}")
    medians = {(action, tool): (statistics.median(each.rows_per_s for each in samples),
                                statistics.median(each.cpu_s_per_million for each in samples))
               for action, tools in found.items() for tool, samples in tools.items()}
    report.table(f"{a.lines:,} lines of {LINE_BYTES} bytes ({a.rounds} rounds, median)",
                 ("action", "tool", "lines/s", "CPU-s per million", "spread of time"),
                 [(action, tool, f"{rows:,.0f}", f"{cpu_s:.3f}",
                   report.spread([each.wall_s for each in found[action][tool]]))
                  for (action, tool), (rows, cpu_s) in medians.items()])
    ratios, missed = dict[str, dict[str, float]](), False
    for action in ACTIONS:
        (rows, cpu_s), (peer_rows, peer_cpu_s) = medians[action, "headrace"], medians[action, "kcat"]
        ratios[action] = {"lines/s": rows / peer_rows, "cpu": cpu_s / peer_cpu_s}
        misses = rows * _NOISE < peer_rows or cpu_s > peer_cpu_s * _NOISE
        missed |= misses
        print(f"{action}: {rows / peer_rows:.2f} of kcat's lines a second for {cpu_s / peer_cpu_s:.2f} of its CPU"
              f"{', MISSED' if misses else ''}")
    content = {"machine": machine(), "broker": about, "lines": a.lines, "ratios": ratios, "rounds": {
        action: {tool: [{"wall_s": each.wall_s, "cpu_s": each.cpu_s} for each in samples]
                 for tool, samples in tools.items()} for action, tools in found.items()}}
    print(f"\nwritten to {report.write_json('shell', content, a.json)}")
    return not missed


@brokers.failures_told()
def main(argv: list[str]) -> int:
    """Measure; 0 when the bars hold."""
    a = _parser().parse_args(argv)
    if shutil.which("kcat") is None:
        raise ChildError("there is no kcat here: install it from the distribution's packages")
    with tempfile.TemporaryDirectory() as folder, brokers.kafka(a.kafka_version) as broker:
        return 0 if show(a, broker.about, measure_all(a, broker, Path(folder))) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shell", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kafka-version", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
