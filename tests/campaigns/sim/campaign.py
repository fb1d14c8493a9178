"""Many schedules of a simulation: in parallel, with a progress line and counts at the end."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

_In, _Out = TypeVar("_In"), TypeVar("_Out")
Schedule = Callable[[int], Counter[str]]
"""Runs the schedule of a seed and returns how often what happened in it."""


class Violation(AssertionError):
    """A property does not hold; the text names the seed."""


class _Attempt:
    """Runs one seed; plain data, so that worker processes can have it."""

    def __init__(self, run_schedule: Schedule) -> None:
        self._run_schedule = run_schedule

    def __call__(self, seed: int) -> tuple[str, Counter[str]]:
        try:
            return "", self._run_schedule(seed)
        except Violation as violation:
            return str(violation), Counter()
        except Exception as error:
            return f"seed {seed}: {error!r}", Counter()


def first_violation(run_schedule: Schedule, seeds: Iterable[int], saying: str = "") -> tuple[int, str]:
    """Of the first finding whose text has `saying` in it: how many seeds it took, and the text; (0, "") for none."""
    attempt = _Attempt(run_schedule)
    for tried, seed in enumerate(seeds, 1):
        found, _ = attempt(seed)
        if found and saying in found:
            return tried, found
    return 0, ""


def hash_as_always(module: str) -> None:
    """Start the program anew if Python's hashes are random: sets of names would have another order in each run."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})


def each_of(work: Sequence[_In], function: Callable[[_In], _Out], jobs: int, share: int = 1) -> Iterator[_Out]:
    """What a function makes of each piece of work, in order.

    Args:
        work: the pieces.
        function: plain data, so that worker processes can have it.
        jobs: so many processes; with one it is this process, for one that has threads is not to be forked.
        share: pieces that a process gets at a time.
    """
    if jobs == 1:
        yield from map(function, work)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap(function, work, chunksize=share)


def run_campaign(run_schedule: Schedule, about: str, argv: list[str] | None = None) -> int:
    """Run many schedules with a progress line; the result, for `sys.exit`, says whether all held."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args(argv)
    seeds = range(options.first_seed, options.first_seed + options.schedules)
    started = shown = time.monotonic()
    failures, every_s = 0, 0.5 if sys.stdout.isatty() else 60.0
    counts: Counter[str] = Counter()
    share = max(1, min(50, len(seeds) // (4 * options.jobs)))  # so small that none is at work long after the others
    runs = each_of(seeds, _Attempt(run_schedule), options.jobs, share)
    for done, (failure, happened) in enumerate(runs, 1):
        counts.update(happened)
        if failure:
            failures += 1
            print(f"\r{failure}", file=sys.stderr)
        if time.monotonic() - shown > every_s:
            shown = time.monotonic()
            _show_progress(done, len(seeds), failures, shown - started)
    print("\r", end="")
    for what, times in sorted(counts.items()):
        print(f"{times:>14,} {what}")
    print(f"{len(seeds)} schedules, {failures} findings, {time.monotonic() - started:.0f} s, {options.jobs} jobs")
    return 1 if failures else 0


def _show_progress(done: int, total: int, failures: int, elapsed_s: float) -> None:
    bar = "#" * (40 * done // total)
    left_s = elapsed_s / done * (total - done)
    text = f"[{bar:<40}] {done}/{total} schedules, {failures} findings, {left_s:.0f} s left"
    if sys.stdout.isatty():
        print(f"\r{text} ", end="", flush=True)
    else:
        print(text, flush=True)
