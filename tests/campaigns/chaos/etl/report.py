"""What is told of a chain: numbers of each stage as a table, all runs as another, and everything as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.campaigns.chaos.progress import listed

from .share_verdict import SHARE_VIOLATIONS
from .verdict import VIOLATIONS

Stage = dict[str, int]
"""Numbers of one group, by name."""
_FIRST: Final = ("workers", "records before")
_LAST: Final = ("records behind", "copies behind")


@dataclass
class Result:
    """One run.

    Attributes:
        name: of the kinds of faults, groups and guarantees.
        seconds: how long it took, with the end.
        sent: records that were written into the chain.
        out: different records that came out.
        copies: records that came out once more.
        stages: numbers of each group.
        workers: what was done to workers.
        brokers: what was done to brokers.
        violations: by kind.
        notes: why it is not over, and other things to know.
    """

    name: str
    seconds: float = 0.0
    sent: int = 0
    out: int = 0
    copies: int = 0
    stages: list[Stage] = field(default_factory=list)
    workers: Counter[str] = field(default_factory=Counter)
    brokers: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def show(self) -> None:
        """Print it."""
        print(f"{self.name}: {self.seconds:.0f} s; workers: {listed(self.workers)}; brokers: {listed(self.brokers)}")
        print(f"  records: {self.sent} sent, {self.out} came out, {self.copies} copies of them")
        names = sorted({name for stage in self.stages for name in stage}, key=_order)
        rows = [(name, *(stage.get(name, 0) for stage in self.stages)) for name in names]
        print_table([("", *(f"group {1 + place}" for place in range(len(self.stages)))), *rows])
        for note in self.notes:
            print(f"  {note}")
        kinds = VIOLATIONS if not any("deliveries" in stage for stage in self.stages) else (
            "missing", "damaged", *SHARE_VIOLATIONS, "not over")
        print("  violations: " + ", ".join(f"{self.violations[kind]} {kind}" for kind in kinds), flush=True)


def _order(name: str) -> tuple[int, str]:
    """What goes in comes first, and what comes out comes last."""
    if name in _FIRST:
        return _FIRST.index(name) - len(_FIRST), name
    return 1 + _LAST.index(name) if name in _LAST else 0, name


def print_table(rows: Sequence[Sequence[object]]) -> None:
    """Print columns, the first one to the left and numbers to the right."""
    texts = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for first, *others in texts:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        print("  " + "  ".join(cells).rstrip())


def show_all(results: Iterable[Result]) -> None:
    """One line for each run."""
    rows: list[Sequence[object]] = [
        ("chain", "seconds", "records", "missing", "copies", "faults", "brokers killed", "rebalances", "violations")]
    rows += [(result.name, round(result.seconds), result.sent, result.sent - result.out, result.copies,
              result.workers.total(), result.brokers.total(),
              sum(stage.get("assignments met", 0) for stage in result.stages), result.violations.total())
             for result in results]
    if len(rows) > 1:
        print_table(rows)


def write_json(path: Path, results: Iterable[Result]) -> None:
    """Everything that is known of each run."""
    def plain(result: Result) -> dict[str, Any]:
        return {**asdict(result), "workers": dict(result.workers), "brokers": dict(result.brokers),
                "violations": dict(result.violations)}

    path.write_text(json.dumps([plain(result) for result in results], indent=1) + "\n")
