"""What short pieces of code cost in this process: CPU time, several implementations of the same thing side by side.

A round repeats the code until the clock can measure it. Rounds are interleaved, in turning order, so that a machine
that slows down slows all of them. The best round is what the code costs; the median shows how quiet the machine was.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.measure import machine, version_of

OURS = "headrace"
PEERS = ("kafka-python", "aiokafka")
Action = Callable[[], object]


@dataclass(slots=True)
class Case:
    """One thing to do.

    Attributes:
        name: what is done.
        actions: what to run, by client; clients that cannot do it are left out.
        per: items that one call handles; costs are those of one item.
        notes: why somebody cannot.
        rounds_ns: what was measured: CPU nanoseconds per item of every round, by implementation.
    """

    name: str
    actions: Mapping[str, Action]
    per: int = 1
    notes: dict[str, str] = field(default_factory=dict)
    rounds_ns: dict[str, list[float]] = field(default_factory=dict)

    def best_ns(self, who: str) -> float | None:
        """CPU nanoseconds per item of the best round; None for somebody who cannot do it."""
        rounds = self.rounds_ns.get(who)
        return min(rounds) if rounds else None

    def median_ns(self, who: str) -> float | None:
        """CPU nanoseconds per item of the median round; None for somebody who cannot do it."""
        rounds = self.rounds_ns.get(who)
        return statistics.median(rounds) if rounds else None

    def ratio(self) -> float | None:
        """How many times what ours costs the cheapest peer takes; None without ours or without a peer."""
        ours = self.best_ns(OURS)
        peers = [cost for who in PEERS if (cost := self.best_ns(who)) is not None]
        return min(peers) / ours if ours and peers else None


@dataclass(slots=True)
class Effort:
    """How long to measure: rounds of at least `round_s` of CPU each."""

    rounds: int
    round_s: float


QUICK = Effort(1, 0.0)


def arguments_of(name: str, about: str | None, argv: Sequence[str],
                 extend: Callable[[argparse.ArgumentParser], object] | None = None) -> argparse.Namespace:
    """Read the options that all benchmarks of this kind have; `extend` adds further ones."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="measurements of each (default: 9)")
    parser.add_argument("--quick", action="store_true", help="see that it runs; the figures mean nothing")
    parser.add_argument("--json", type=Path, help="file for the result")
    if extend is not None:
        extend(parser)
    return parser.parse_args(argv)


def effort_of(arguments: argparse.Namespace) -> Effort:
    """What `--rounds` and `--quick` ask for."""
    return QUICK if arguments.quick else Effort(arguments.rounds, 0.03)


def measure(cases: Sequence[Case], effort: Effort) -> None:
    """Fill `rounds_ns` of all cases. Every action runs once before its first round, to be warm."""
    repeats = [{who: _repeats(action, effort.round_s) for who, action in case.actions.items()} for case in cases]
    gc.collect()
    gc.freeze()  # what lives by now is not looked at by collections within a round
    try:
        for turn in range(effort.rounds):
            for case, counts in zip(cases, repeats, strict=True):
                names = list(case.actions)
                first = turn % (len(names) or 1)
                for who in names[first:] + names[:first]:
                    took_ns = _round_ns(case.actions[who], counts[who])
                    case.rounds_ns.setdefault(who, []).append(took_ns / counts[who] / case.per)
    finally:
        gc.unfreeze()


def _repeats(action: Action, round_s: float) -> int:
    _round_ns(action, 1)
    return max(1, round(round_s * 1e9 / max(_round_ns(action, 1), 1)))


def _round_ns(action: Action, times: int) -> int:
    repeat = range(times)
    start = time.process_time_ns()
    for _ in repeat:
        action()
    return time.process_time_ns() - start


def show(title: str, cases: Iterable[Case], unit: str) -> None:
    """Print a table: best and (median) of everybody, and how many times ours the best peer costs."""
    cases = list(cases)
    scale = {"ns": 1.0, "us": 1e3, "ms": 1e6}[unit]
    everybody = [OURS, *PEERS, *sorted({who for case in cases for who in case.actions} - {OURS, *PEERS})]
    head = ["", *(f"{who}, {unit}" for who in everybody), "best peer : ours"]
    report.table(title, head, [
        [case.name, *(_cell(case, who, scale) for who in everybody), _times(case.ratio())] for case in cases
    ])
    for note in dict.fromkeys(f"{who}: {why}" for case in cases for who, why in case.notes.items()):
        print(f"  - {note}")


def _cell(case: Case, who: str, scale: float) -> str:
    best, median = case.best_ns(who), case.median_ns(who)
    return "-" if best is None or median is None else f"{best / scale:,.1f} ({median / scale:,.1f})"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f}"


def about(effort: Effort, further: str = "") -> None:
    """Print what all tables of a run have in common."""
    print(f"best round (median) of {effort.rounds}, CPU time{further}")
    print("; ".join(f"{who} {version_of(who) or 'is not installed'}" for who in (OURS, *PEERS)))


def write(name: str, tables: Mapping[str, Iterable[Case]], rounds: int, path: Path | None, **further: Any) -> None:
    """Write the tables as JSON when a file was named."""
    if path is None:
        return
    results = {
        title: [{"name": case.name, "per": case.per, "notes": case.notes, "rounds_ns": case.rounds_ns,
                 "best_ns": {who: case.best_ns(who) for who in case.rounds_ns}, "best_peer_to_ours": case.ratio()}
                for case in cases]
        for title, cases in tables.items()
    }
    content = {"machine": machine(), "versions": {who: version_of(who) for who in (OURS, *PEERS)},
               "rounds": rounds, "results": results, **further}
    print(f"\nwritten to {report.write_json(name, content, path)}")
