"""Medians, spreads and ratios of measured rounds: as a table for people and as JSON for later."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.measure import Sample

_Key = TypeVar("_Key")
_Row = TypeVar("_Row")

DIRECTORY = Path(__file__).parents[1] / ".benchmarks"


def chosen(rows: Sequence[_Row], parts: Sequence[str], name_of: Callable[[_Row], str]) -> list[_Row]:
    """The rows that have one of the texts in their name; all when no text is given.

    Raises:
        SystemExit: no row has one of them in its name.
    """
    for part in parts:
        if not any(part in name_of(row) for row in rows):
            sys.exit(f"no row has {part!r} in its name; there are: {'; '.join(map(name_of, rows))}")
    return [row for row in rows if not parts or any(part in name_of(row) for part in parts)]


def measure_in_turns(samples: Mapping[_Key, list[dict[str, float]]], rounds: int, actions: Sequence[str],
                     about: Callable[[_Key], str], measure: Callable[[_Key, str], Mapping[str, float]]) -> None:
    """Fill the samples: rounds in turning order, and one before them that is not kept, for the broker to be warm.

    Args:
        samples: by what is compared, what each round found.
        rounds: how many are kept.
        actions: what is measured in each.
        about: names what is compared.
        measure: the figures of one action.
    """
    with Progress((1 + rounds) * len(samples) * len(actions)) as progress:
        for turn in range(1 + rounds):
            for key in list(samples) if turn % 2 else reversed(list(samples)):
                found: dict[str, float] = {}
                for action in actions:
                    name = f"{about(key)}, {action}"
                    progress.next(f"round {turn}: {name}" if turn else f"getting warm: {name}")
                    found |= measure(key, action)
                if turn:
                    samples[key].append(found)


def spread(values: Sequence[float]) -> str:
    """The lowest and the highest value, as deviations from the median in percent."""
    middle = statistics.median(values) or 1.0
    return f"{(min(values) / middle - 1) * 100:+.0f}/{(max(values) / middle - 1) * 100:+.0f} %"


def summary(rounds: Mapping[str, Sequence[Sample]], reference: str) -> list[dict[str, Any]]:
    """One row per client: medians, and ratios of medians to the reference client's."""
    rows = [_row(client, samples) for client, samples in rounds.items() if samples]
    base = next((row for row in rows if row["client"] == reference), None)
    for row in rows:
        if base is not None:
            row["rows_ratio"] = row["rows_per_s"] / base["rows_per_s"]
            row["cpu_ratio"] = row["cpu_s_per_million"] / base["cpu_s_per_million"]
    return rows


def _row(client: str, samples: Sequence[Sample]) -> dict[str, Any]:
    rates = [sample.rows_per_s for sample in samples]
    cpu = [sample.cpu_s_per_million for sample in samples]
    broker = [sample.broker_cpu_s_per_million for sample in samples]
    known = [value for value in broker if value is not None]
    return {
        "client": client,
        "rounds": len(samples),
        "records": samples[0].records,
        "rows_per_s": statistics.median(rates),
        "rows_spread": spread(rates),
        "cpu_s_per_million": statistics.median(cpu),
        "cpu_spread": spread(cpu),
        "broker_cpu_s_per_million": statistics.median(known) if known else None,
        "samples": [asdict(sample) for sample in samples],
    }


def client_table(title: str, rows: Sequence[Mapping[str, Any]], reference: str) -> None:
    """Print the rows of `summary`."""
    head = ("client", "records", "rows/s", "spread", "CPU-s per M", "spread", "broker CPU-s per M",
            f"rows/s : {reference}", f"CPU : {reference}")
    table(title, head, [
        (
            str(row["client"]), f"{row['records']:,}", f"{row['rows_per_s']:,.0f}", row["rows_spread"],
            f"{row['cpu_s_per_million']:.3f}", row["cpu_spread"], _number(row["broker_cpu_s_per_million"]),
            _number(row.get("rows_ratio")), _number(row.get("cpu_ratio"), 3),
        )
        for row in rows
    ])


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: by rich on a terminal when it is installed, else in plain text."""
    print()
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
        except ImportError:
            pass
        else:
            drawn = Table(*head, title=title, title_justify="left")
            for row in rows:
                drawn.add_row(*row)
            Console().print(drawn)
            return
    widths = [max(len(str(line[i])) for line in (head, *rows)) for i in range(len(head))]
    print(title)
    for line in (head, *rows):
        print("  " + "  ".join(str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                               for i, (cell, width) in enumerate(zip(line, widths, strict=True))))


def write_json(name: str, content: Mapping[str, Any], path: Path | None = None) -> Path:
    """Write the whole result; into `.benchmarks/` by default."""
    if path is None:
        DIRECTORY.mkdir(exist_ok=True)
        path = DIRECTORY / f"{name}-{content['machine']['time'].replace(':', '')}.json"
    path.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    return path


class Progress:
    """Says which measurement is running: a bar by rich on a terminal, else one line for each."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            try:
                from rich.console import Console
                from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
                from rich.progress import Progress as Bar
            except ImportError:
                return self
            self._bar = Bar(TextColumn("{task.description:<44}"), BarColumn(), MofNCompleteColumn(),
                            TimeElapsedColumn(), console=Console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def next(self, about: str) -> None:
        """The measurement `about` begins."""
        if self._bar is not None:
            self._bar.update(self._task, description=about, completed=self._done)
        else:
            print(f"[{self._done + 1}/{self._total}] {about}", file=sys.stderr, flush=True)
        self._done += 1
