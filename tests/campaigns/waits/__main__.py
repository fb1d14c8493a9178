"""Runs random programs against an embedded broker, and says which left a record waiting, lost one or got one twice.

    python -m tests.campaigns.waits --seconds 300
    python -m tests.campaigns.waits --only producers --seed 7 --programs 20

Programs in which records come now and then, for that is where a wake-up that is missed shows: in bulk the next record
makes up for it. Producers never flush behind their last record; readers wait for theirs in every way that there is;
asyncio programs cancel their reads at any moment. Real threads, sockets and time: a program is drawn from the seed and
its number, but what happens in it is not repeated to the microsecond. A machine that is busy makes records late, so
give it `--late` seconds.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import random
import sys
import time

from headrace.testing import EmbeddedBroker
from tests.campaigns.waits import cancelled, producers, reading

KINDS = {"producers": producers.Program, "reading": reading.Program, "cancelled": cancelled.Program}


def main() -> int:
    """Print what was found; 1 when there was anything."""
    arguments = _parser().parse_args()
    logging.getLogger("headrace").setLevel(logging.ERROR)
    end, found, counts = time.monotonic() + arguments.seconds, 0, dict.fromkeys(arguments.only, 0)
    slowest = dict.fromkeys(arguments.only, 0.0)
    with EmbeddedBroker(nodes=2) as broker:
        for number in itertools.count():
            kind = arguments.only[number % len(arguments.only)]
            if time.monotonic() > end or number == arguments.programs:
                break
            drawn = random.Random(f"{kind} {arguments.seed} {number}")
            outcome = KINDS[kind](broker.bootstrap_servers, drawn).run()
            counts[kind] += 1
            slowest[kind] = max(slowest[kind], outcome.slowest_s)
            fault = outcome.fault(arguments.late)
            if fault:
                found += 1
                print(f"{kind}, seed {arguments.seed}, program {number}: {fault}\n  {outcome.program}", flush=True)
    for kind, count in counts.items():
        took = f", the slowest record took {slowest[kind]:.2f} s" if slowest[kind] else ""
        print(f"{count} programs of {kind}{took}")
    print(f"{found} findings")
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.waits", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="begin no program after so long (default 60)")
    parser.add_argument("--programs", type=int, help="run so many at most")
    parser.add_argument("--seed", type=int, default=0, help="draw other programs (default 0)")
    parser.add_argument("--late", type=float, default=0.7, help="what a record may take, in seconds (default 0.7)")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), help="kinds of programs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
