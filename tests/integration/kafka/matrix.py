"""All of `tests/integration/kafka` on every configuration: two versions of Apache Kafka, three brokers, four ways in.

    python -m tests.integration.kafka.matrix
    python -m tests.integration.kafka.matrix --only 3.9.2 oauthbearer --chaos

One configuration runs at a time, on a cluster that all its tests share. One line for each tells what passed, what
failed and what was left out and why; the names of failed tests stand below it, and all that pytest wrote in a file.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

from tests.support.configuration import GENERAL, LISTENERS, OLDER, Configuration
from tools.kafka.artifacts import cache_directory

_BROKERS = 3
_HERE = Path(__file__).parent
_FAILED = re.compile(r"^(?:FAILED|ERROR) .*$", re.MULTILINE)
_LEFT_OUT = re.compile(r"^deselected (\d+): (.*)$", re.MULTILINE)


class Outcome(NamedTuple):
    """What came of one configuration."""

    passed: int
    failed: int
    skipped: list[str]
    left_out: list[tuple[str, str]]
    seconds: float
    log: Path

    @property
    def good(self) -> bool:
        """Whether something ran and nothing failed."""
        return self.passed > 0 and self.failed == 0

    def line(self, wanted: Configuration) -> str:
        """The outcome in one line."""
        counts = [f"{self.passed} passed", f"{self.failed} failed"]
        if self.skipped:
            counts.append(f"{len(self.skipped)} skipped ({'; '.join(sorted(set(self.skipped)))})")
        left_out = "; ".join(f"{number} {reason}" for number, reason in self.left_out)
        total = sum(int(number) for number, _ in self.left_out)
        counts.append(f"{total} deselected" + (f" ({left_out})" if left_out else ""))
        return f"{wanted.version} {wanted.listener:<11} {', '.join(counts)}, {self.seconds:.0f} s"


def run(wanted: Configuration, chaos: bool, more: list[str]) -> Outcome:
    """Run all tests on one configuration."""
    directory = cache_directory() / "matrix"
    directory.mkdir(parents=True, exist_ok=True)
    log, report = (directory / f"{wanted.version}-{wanted.listener}.{kind}" for kind in ("log", "xml"))
    report.unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "pytest", str(_HERE), "-v", "-n", "0", f"--junit-xml={report}", "--kafka", wanted.version,
        "--brokers", str(wanted.brokers), "--listener", wanted.listener, *([] if chaos else ["--no-chaos"]), *more,
    ]
    started = time.monotonic()
    with log.open("w") as output:
        status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False, cwd=_HERE.parents[2],
                                env={**os.environ, "PYTHONUNBUFFERED": "1"}).returncode
    seconds = time.monotonic() - started
    cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = [skip.get("message", "") for case in cases if (skip := case.find("skipped")) is not None]
    if status and not failed:
        failed = 1  # it did not come to the tests, or not to their end
    return Outcome(len(cases) - failed - len(skipped), failed, skipped, _LEFT_OUT.findall(log.read_text()), seconds,
                   log)


def main(argv: list[str]) -> int:
    """Run the chosen configurations; 1 when something failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.integration.kafka.matrix", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", choices=(GENERAL, OLDER, *LISTENERS),
                        help="configurations of these versions and listeners only")
    parser.add_argument("--chaos", action="store_true", help="with the tests in which brokers die in turn")
    parser.add_argument("--pytest", default="", help="further arguments for pytest, in one string")
    arguments = parser.parse_args(argv)
    versions, ways = ([name for name in names if name in arguments.only or not {*names} & {*arguments.only}]
                      for names in ((OLDER, GENERAL), LISTENERS))
    bad = 0
    for version, way in itertools.product(versions, ways):
        wanted = Configuration(version, _BROKERS, way)
        outcome = run(wanted, arguments.chaos, arguments.pytest.split())
        print(outcome.line(wanted), flush=True)
        if not outcome.good:
            bad += 1
            print(*_FAILED.findall(outcome.log.read_text()), f"see {outcome.log}", sep="\n", flush=True)
    print(f"{len(versions) * len(ways)} configurations, {bad} with failures")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
