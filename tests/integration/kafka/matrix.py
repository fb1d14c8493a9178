"""All of `tests/integration/kafka` on every configuration: two versions of Apache Kafka, four ways in.

    python -m tests.integration.kafka.matrix
    python -m tests.integration.kafka.matrix --only 3.9.2 oauthbearer --chaos
    python -m tests.integration.kafka.matrix --of consumers --brokers 1 3 --only plaintext tls+scram

Three brokers run all of it, one broker what consumers do (`CONSUMERS`). One configuration runs at a time, on a cluster
that all its tests share. One line for each tells what passed, what failed and what was left out and why; the names of
failed tests stand below it, and all that pytest wrote in a file.
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

_BROKERS = (1, 3)
CONSUMERS = ("columns", "consumer_calls", "consumer_groups", "direct_fetches", "fetching", "group_rights", "groups",
             "racks", "records", "recreation", "share_groups", "share_members", "truncation", "waiting")
"""The files whose tests are about consumers: calls, groups of all three kinds, columns, fetching."""
PARTS = {"all": ("",), "consumers": CONSUMERS}
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
        return f"{name_of(wanted)}: {', '.join(counts)}, {self.seconds:.0f} s"


def name_of(wanted: Configuration) -> str:
    """One configuration, as a line begins."""
    return f"{wanted.version} {wanted.brokers} {wanted.listener:<11}".rstrip()


def files_of(part: str) -> list[str]:
    """The files, or the directory, with the tests of a part."""
    return [str(_HERE / f"test_kafka_{name}.py" if name else _HERE) for name in PARTS[part]]


def run(wanted: Configuration, part: str, chaos: bool, more: list[str]) -> Outcome:
    """Run the tests of a part on one configuration."""
    directory = cache_directory() / "matrix"
    directory.mkdir(parents=True, exist_ok=True)
    name = f"{part}-{wanted.version}-{wanted.brokers}-{wanted.listener}"
    log, report = (directory / f"{name}.{kind}" for kind in ("log", "xml"))
    report.unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "pytest", *files_of(part), "-v", "-n", "0", f"--junit-xml={report}",
        "--kafka", wanted.version, "--brokers", str(wanted.brokers), "--listener", wanted.listener,
        *([] if chaos else ["--no-chaos"]), *more,
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
    parser.add_argument("--of", choices=PARTS, help="the tests of this part, with the numbers of brokers of --brokers; "
                        "without it all with three brokers, and those of consumers with one")
    parser.add_argument("--brokers", nargs="+", type=int, default=_BROKERS, choices=_BROKERS)
    parser.add_argument("--chaos", action="store_true", help="with the tests in which brokers die in turn")
    parser.add_argument("--pytest", default="", help="further arguments for pytest, in one string")
    arguments = parser.parse_args(argv)
    versions, ways = ([name for name in names if name in arguments.only or not {*names} & {*arguments.only}]
                      for names in ((OLDER, GENERAL), LISTENERS))
    bad = count = 0
    for version, brokers, way in itertools.product(versions, arguments.brokers, ways):
        wanted = Configuration(version, brokers, way)
        part = arguments.of or ("all" if brokers == max(_BROKERS) else "consumers")
        outcome = run(wanted, part, arguments.chaos, arguments.pytest.split())
        print(outcome.line(wanted), flush=True)
        count += 1
        if not outcome.good:
            bad += 1
            print(*_FAILED.findall(outcome.log.read_text()), f"see {outcome.log}", sep="\n", flush=True)
    print(f"{count} configurations, {bad} with failures")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
