"""Exactly once, proved: `python -m tests.campaigns.spark_once`. A table at the end; status 1 on a finding.

Real Apache Kafka and real Spark. A query copies numbered records from topic to topic in small micro-batches; it is hurt
in each way of `faults.py`, started again until the input is finished, and what came out is read by another client at
read_committed. With `--guarantee at_least_once` the same must find copies: the campaign sees what it looks for.
`--record` keeps the rows for the page on guarantees.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import groupby

from tests.campaigns.chaos.etl.report import print_table
from tools.kafka import NEWEST, VERSIONS

from .case import AT_LEAST_ONCE, EXACTLY_ONCE, FOREACH_BATCH, Case, Result
from .faults import FAULTS, MASTERS, STANDALONE
from .record import keep, row_of
from .site import OnceSite
from .standalone import Standalone

MUTATIONS = ("no marker",)
"""Rules of the protocol that can be left out, to see that `killed after EndTxn` notices it."""


def run_case(site: OnceSite, name: str, master: str, how: str, mutation: str = "") -> Result:
    """Hurt one query, let it finish, and compare."""
    result, began = Result(name, site.cluster.version, master, how), time.monotonic()
    with ExitStack() as stack:
        standalone = stack.enter_context(Standalone()) if master == STANDALONE else None
        case = stack.enter_context(Case(
            site, standalone.url if standalone else master, how, standalone=standalone, mutation=mutation))
        try:
            FAULTS[name].hurt(case)
            case.finish()
            result.verdict = case.verdict()
        except (TimeoutError, AssertionError) as late:
            case.keep()
            case.notes.append(str(late))
        result.restarts, result.notes = case.restarts, "; ".join([*case.notes, *case.attempts()])
    result.seconds = time.monotonic() - began
    return result


def cases(names: Iterable[str], masters: Iterable[str], how: str) -> list[tuple[str, str]]:
    """Faults and masters that go together; those first that need one broker only."""
    names = [name for name in names if how != AT_LEAST_ONCE or not FAULTS[name].transactions]
    found = [(name, master) for master in masters for name in names if master in FAULTS[name].masters]
    return sorted(found, key=lambda case: FAULTS[case[0]].nodes)


def show(results: Iterable[Result]) -> None:
    """One line for each case."""
    rows = [row_of(each) for each in results]
    print_table([tuple(rows[0]), *(tuple("" if cell is None else cell for cell in row.values()) for row in rows)])
    for each in results:
        if each.notes:
            print(f"  {each.name}: {each.notes}")
    sys.stdout.flush()


def main(argv: Iterable[str] | None = None) -> int:
    """Run all that is asked for; the exit status says whether there was a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.spark_once", description=__doc__)
    parser.add_argument("--kafka", choices=VERSIONS, default=NEWEST)
    parser.add_argument("--master", choices=MASTERS, nargs="+", default=MASTERS)
    parser.add_argument("--faults", choices=tuple(FAULTS), nargs="+", default=tuple(FAULTS))
    parser.add_argument("--guarantee", choices=(EXACTLY_ONCE, AT_LEAST_ONCE), default=EXACTLY_ONCE)
    parser.add_argument("--foreach-batch", action="store_true", help="two topics in one transaction, by foreachBatch")
    parser.add_argument("--mutation", choices=MUTATIONS, default="", help="a rule that is left out: copies are found")
    parser.add_argument("--rows", type=int, default=4000,
                        help="of the input; a micro-batch has 400, and some faults take ten of them")
    parser.add_argument("--record", action="store_true", help="keep each row, and show it on the page on guarantees")
    options = parser.parse_args(None if argv is None else list(argv))
    how = FOREACH_BATCH if options.foreach_batch else options.guarantee
    results: list[Result] = []
    for nodes, several in groupby(cases(options.faults, options.master, how), lambda case: FAULTS[case[0]].nodes):
        with OnceSite(options.kafka, nodes, options.rows) as site:
            for name, master in several:
                results.append(run_case(site, name, master, how, options.mutation))
                show(results[-1:])
                if options.record:
                    keep(results[-1])
    if results:
        show(results)
    findings = sum(each.findings for each in results)
    print(f"{len(results)} cases, {findings} findings")
    return 1 if findings else 0
