"""Many schedules of a simulation: in parallel, with a progress line and counts at the end."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable


class Violation(AssertionError):
    """A property does not hold; the text names the seed."""


class _Attempt:
    """Runs one seed; plain data, so that worker processes can have it."""

    def __init__(self, run_schedule: Callable[[int], None]) -> None:
        self._run_schedule = run_schedule

    def __call__(self, seed: int) -> str | None:
        try:
            self._run_schedule(seed)
        except Violation as violation:
            return str(violation)
        except Exception as error:
            return f"seed {seed}: {error!r}"
        return None


def violation_within(run_schedule: Callable[[int], None], schedules: int, saying: str = "") -> str:
    """The first finding among so many schedules whose text has `saying` in it; empty if there is none."""
    attempt = _Attempt(run_schedule)
    return next((found for seed in range(schedules) if saying in (found := attempt(seed) or "") and found), "")


def run_campaign(run_schedule: Callable[[int], None], about: str, argv: list[str] | None = None) -> int:
    """Run many schedules with a progress line; the result, for `sys.exit`, says whether all held."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args(argv)
    seeds = range(options.first_seed, options.first_seed + options.schedules)
    started, failures, shown = time.monotonic(), 0, 0.0
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for done, failure in enumerate(pool.imap_unordered(_Attempt(run_schedule), seeds, chunksize=50), 1):
            if failure is not None:
                failures += 1
                print(f"\r{failure}", file=sys.stderr)
            if sys.stdout.isatty() and time.monotonic() - shown > 0.5:
                shown = time.monotonic()
                _show_progress(done, len(seeds), failures, shown - started)
    print(f"\r{len(seeds)} schedules, {failures} findings, {time.monotonic() - started:.0f} s, {options.jobs} jobs")
    return 1 if failures else 0


def _show_progress(done: int, total: int, failures: int, elapsed_s: float) -> None:
    bar = "#" * (40 * done // total)
    left_s = elapsed_s / done * (total - done)
    print(f"\r[{bar:<40}] {done}/{total} schedules, {failures} findings, {left_s:.0f} s left ", end="", flush=True)
