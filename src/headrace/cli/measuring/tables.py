"""What `headrace perf` shows: a line each second, and a table at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.cli.measuring.figures import PERCENTILES, LoadOutcome

__all__ = ["final_table", "second_line"]


def second_line(client: str, second: dict[str, Any], verb: str = "sent") -> str:
    """The figures of one second; the verb says what was done with the records."""
    line = (f"{client:<15} {second['second']:5.1f} s  {second['sent']:>13,} {verb}  "
            f"{second['rate']:>11,.0f} records/s  {second['mb_rate']:>8,.1f} MB/s")
    if second["latencies_ms"]:
        half, *_, longest = second["latencies_ms"]
        line += f"  p50 {_ms(half)}  p99 {_ms(second['latencies_ms'][PERCENTILES.index(99.0)])}  max {_ms(longest)} ms"
    return line


def final_table(outcomes: dict[str, LoadOutcome], reference: str) -> list[str]:
    """A row for each client; with several clients also how they compare with the first."""
    compared = len(outcomes) > 1
    head = ["client", "records", "records/s", *(["x"] if compared else []), "MB/s", "CPU s/M",
            *(["x"] if compared else []), *(f"p{percent:g}" for percent in PERCENTILES), "mean", "max ms", "failed"]
    ours = outcomes[reference]
    rows = [head]
    for client, found in outcomes.items():
        times = [_ms(time) for time in found.latencies_ms] or ["-"] * (len(PERCENTILES) + 2)
        rows.append([
            client, f"{found.records:,}", f"{found.rate:,.0f}", *([_ratio(found.rate, ours.rate)] if compared else []),
            f"{found.mb_rate:,.1f}", f"{found.cpu_s_per_million:,.2f}",
            *([_ratio(found.cpu_s_per_million, ours.cpu_s_per_million)] if compared else []), *times,
            f"{found.failed:,}"])
    lines = _aligned(rows)
    if compared:
        lines.append(f"x: that client's figure divided by {reference}'s. CPU s/M: CPU seconds per million records.")
    else:
        lines.append("CPU s/M: CPU seconds of the client's process per million records.")
    return lines


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) if place == 0 else cell.rjust(width)
                       for place, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _ratio(theirs: float, ours: float) -> str:
    return f"{theirs / ours:.2f}" if ours else "-"


def _ms(time: float) -> str:
    return f"{time:,.0f}" if time >= 1000 else f"{time:.3g}"
