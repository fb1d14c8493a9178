"""The long run: `python -m tests.campaigns.hostile --frames 1000000 --jobs 2`. Counts at the end; status 1 on a
finding.

A finding prints the seed of its round, which `--round` runs again, and its bytes.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from .cases import ROUND, Tally, run_round
from .fattest import FattestFrame, fattest_frame
from .readers import LIMIT, MAX_SECONDS, MEMORY_BASE, MEMORY_MULTIPLE, Slowest

_WORKER_BYTES = 2 << 30
_ROUND_SECONDS = 300


class Summary:
    """All rounds together."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.read = self.refused = self.most_memory = self.peak = 0
        self.slowest = Slowest(0.0, "", 0)
        self.findings = 0

    def add(self, tally: Tally) -> None:
        self.kinds += tally.kinds
        self.read += tally.read
        self.refused += tally.refused
        self.slowest = max(self.slowest, tally.slowest)
        self.most_memory = max(self.most_memory, tally.most_memory)
        self.peak = max(self.peak, tally.peak)
        if tally.finding:
            self.findings += 1
            show_finding(tally)

    def show(self, seconds: float, fattest: FattestFrame) -> None:
        total = sum(self.kinds.values())
        print(f"\n{total} cases in {seconds:.0f} s: " + ", ".join(
            f"{count} {kind}" for kind, count in sorted(self.kinds.items())))
        print(f"{self.read + self.refused} reads: {self.read} read, {self.refused} refused, {self.findings} findings")
        print(f"slowest: {self.slowest.seconds * 1000:.0f} ms of {self.slowest.what} for {self.slowest.size} bytes "
              f"(bound {MAX_SECONDS * 1000:.0f} ms)")
        print(f"memory: one read raised the peak by {self.most_memory >> 20} MiB at most (bound {MEMORY_BASE >> 20} "
              f"MiB + {MEMORY_MULTIPLE} x (input + {LIMIT >> 10} KiB)); a worker's peak is {self.peak >> 20} MiB")
        print(f"densest frame: {fattest.name} v{fattest.version} takes {fattest.multiple:.0f} times its bytes")


def show_finding(tally: Tally) -> None:
    """All that is needed to have it again."""
    print(f"\nFINDING {tally.finding}\n  again: python -m tests.campaigns.hostile --round {tally.seed}\n"
          f"  bytes: {tally.data.hex()}", file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Run; the exit status says whether there was a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.hostile", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000, help="cases to make")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--seed", default=str(time.time_ns()), help="of all rounds; the time when left out")
    parser.add_argument("--round", help="run only the round of this seed")
    options = parser.parse_args(argv)
    if options.round:
        tally = run_round(options.round)
        if tally.finding:
            show_finding(tally)
        return 1 if tally.finding else 0
    summary, began = Summary(), time.monotonic()
    seeds = [f"{options.seed}/{index}" for index in range(-(-options.frames // ROUND))]
    try:
        for done, tally in enumerate(_run_all(seeds, options.jobs), 1):
            summary.add(tally)
            _show_progress(done, len(seeds), summary.findings, time.monotonic() - began)
    except BrokenProcessPool as error:
        print(f"\nFINDING a worker died or hung: {error}", file=sys.stderr)
        summary.findings += 1
    summary.show(time.monotonic() - began, fattest_frame())
    return 1 if summary.findings else 0


def _run_all(seeds: list[str], jobs: int) -> Iterator[Tally]:
    """The rounds' tallies as they come; names the rounds under way when a worker dies."""
    waiting, under_way = iter(seeds), dict[Future[Tally], str]()
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _limit_worker) as pool:
        while True:
            for seed in waiting:
                under_way[pool.submit(_run_watched, seed)] = seed
                if len(under_way) >= 2 * jobs:
                    break
            if not under_way:
                return
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                try:
                    yield future.result()
                except BrokenProcessPool:
                    raise BrokenProcessPool(f"the rounds under way were {sorted(under_way.values())}") from None
                del under_way[future]


def _run_watched(seed: str) -> Tally:
    faulthandler.dump_traceback_later(_ROUND_SECONDS, exit=True)
    try:
        return run_round(seed)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _limit_worker() -> None:
    """Memory beyond what any case may take is refused, so that a bomb is a finding and not a dead machine."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_WORKER_BYTES, _WORKER_BYTES))


def _show_progress(done: int, total: int, findings: int, elapsed_s: float) -> None:
    bar = "#" * (40 * done // total)
    left_s = elapsed_s / done * (total - done)
    print(f"\r[{bar:<40}] {done}/{total} rounds of {ROUND}, {findings} findings, {left_s:.0f} s left ", end="",
          flush=True)
