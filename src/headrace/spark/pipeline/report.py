"""The report of a run: one HTML file without links to anywhere, plots inside as SVG.

It says what happened, also when that is a failure or a stop half-way: the state stands at the top, and sums count what
Spark reported and nothing else.

matplotlib is imported inside the functions that draw. This module does not import pyspark.
"""

from __future__ import annotations

import html
import io
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import nan
from pathlib import Path
from typing import Any

from headrace.spark.pipeline.progress import History, Sample, percentile
from headrace.spark.pipeline.spec import PipelineSpec

__all__ = ["Check", "Outcome", "draw_plots", "write_report"]

_COLOURS = ("#0b6e99", "#d9822b", "#4c9f70", "#8e5ea2", "#c0392b", "#7f8c8d")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2733; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .3rem .7rem; border-bottom: 1px solid #dde3e8 }
th.text, td.text { text-align: left } th { font-weight: 600; color: #51606e }
.state { display: inline-block; padding: .15rem .6rem; border-radius: .3rem; color: #fff; background: #2e7d4f }
.state.bad { background: #b3392f } .note { color: #51606e } svg { width: 100%; height: auto }
"""


@dataclass(frozen=True, slots=True)
class Check:
    """A figure that was compared: what it should be and what it was found to be."""

    name: str
    expected: Any
    found: Any

    @property
    def equal(self) -> bool:
        """True when both are the same."""
        return bool(self.expected == self.found)


@dataclass(slots=True)
class Outcome:
    """What is known when a run is over.

    Attributes:
        state: "finished", "stopped by Ctrl-C", or "failed: " and the reason.
        started: when the run began.
        seconds: how long it took, start of Spark included.
        settings: name and value of what shaped the run.
        checks: totals that were compared with a plain computation; empty when nothing was.
        restarts: how often the query of each sink was started again after a failure; those that were.
    """

    state: str
    started: datetime
    seconds: float
    settings: dict[str, str] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    restarts: dict[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """True when the run finished or was stopped on request, and every check was equal."""
        return not self.state.startswith("failed") and all(check.equal for check in self.checks)


def write_report(path: Path, spec: PipelineSpec, history: History, outcome: Outcome) -> None:
    """Write the report as one HTML file.

    Args:
        path: file to write; its directory is made.
        spec: the pipeline that ran.
        history: its micro-batches.
        outcome: how it ended.
    """
    queries = [sink.name for sink in spec.sinks]
    parts = [
        f"<h1>{_text(spec.name)}</h1>",
        f'<p><span class="state{"" if outcome.good else " bad"}">{_text(outcome.state)}</span> '
        f'<span class="note">{outcome.started.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, '
        f"{outcome.seconds:.1f} s with the start of Spark</span></p>",
        _checks(outcome.checks),
        "<h2>Sinks</h2>", _sinks(spec, history, outcome),
        "<h2>Sources</h2>", _sources(spec, history),
        f'<p class="note">Each sink is a query of its own and reads the sources by itself.{_tables(spec)}</p>',
        *(f"<h2>{_text(title)}</h2>{svg}" for title, svg in draw_plots(history, queries)),
        "<h2>Settings</h2>", _table(("", "value"), [(n, v) for n, v in _settings(outcome).items()], text=2),
    ]
    body = "\n".join(parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_text(spec.name)}: report</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n",
        encoding="utf-8",
    )


def _text(value: object) -> str:
    return html.escape(f"{value:,}" if isinstance(value, int) else str(value))


def _table(head: Sequence[str], rows: Iterable[Sequence[object]], text: int = 1) -> str:
    """A table; the first `text` columns are words and stand left, the others are figures."""
    def cells(row: Sequence[object]) -> str:
        return "".join(f'<td{" class=text" if n < text else ""}>{_text(v)}</td>' for n, v in enumerate(row))

    titles = "".join(f'<th{" class=text" if n < text else ""}>{_text(name)}</th>' for n, name in enumerate(head))
    return f"<table><tr>{titles}</tr>{''.join(f'<tr>{cells(row)}</tr>' for row in rows)}</table>"


def _checks(checks: list[Check]) -> str:
    if not checks:
        return ""
    rows = [(c.name, c.expected, c.found, "equal" if c.equal else "DIFFERENT") for c in checks]
    return f"<h2>Checked totals</h2>{_table(('total', 'plain computation', 'read back', ''), rows)}"


def _sinks(spec: PipelineSpec, history: History, outcome: Outcome) -> str:
    """One column per sink: there are few sinks and many figures."""
    labels = ("written to", "format", "guarantee", "mode", "batches", "rows read", "rows written", "lag at the end",
              "late rows, dropped", "malformed values", "restarts", "rows/s within batches", "batch time, median",
              "batch time, longest")
    columns = [(sink.target, sink.stored_as, sink.promise, sink.mode,
                *_sums(history.of(sink.name), outcome.restarts.get(sink.name, 0))) for sink in spec.sinks]
    rows = [(label, *(column[number] for column in columns)) for number, label in enumerate(labels)]
    return _table(("", *(sink.name for sink in spec.sinks)), rows)


def _sums(samples: list[Sample], restarts: int) -> tuple[object, ...]:
    seconds = [sample.seconds for sample in samples]
    rows = sum(sample.rows_in for sample in samples)
    lag = samples[-1].lag if samples else None
    return (
        len(samples), rows, sum(s.rows_out for s in samples), "-" if lag is None else lag,
        sum(s.late for s in samples), sum(s.malformed for s in samples), restarts,
        f"{rows / sum(seconds):,.0f}" if sum(seconds) else "-",
        f"{percentile(seconds, 0.5):.2f} s", f"{max(seconds, default=0):.2f} s",
    )


def _sources(spec: PipelineSpec, history: History) -> str:
    formats = {each.topic: each.format for each in spec.inputs if each.topic}
    rows = [(topic, formats.get(topic, ""), query, count)
            for (query, topic), count in sorted(history.read_per_topic().items())]
    return _table(("topic", "format", "read by sink", "rows"), rows, text=3)


def _tables(spec: PipelineSpec) -> str:
    """One sentence about what was read whole."""
    tables = [f"{each.topic or each.file} ({each.format})" for each in spec.inputs if not each.streaming]
    return _text(f" Tables, held for all of them: {', '.join(tables)}.") if tables else ""


def _settings(outcome: Outcome) -> dict[str, str]:
    found = {"Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}"}
    for package in ("headrace", "pyspark", "pyarrow"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "from its source tree"
    return {**outcome.settings, **found}


def draw_plots(history: History, queries: Sequence[str]) -> list[tuple[str, str]]:
    """Title and SVG of each plot: throughput, lag and batch time over the run."""
    if not history.samples:
        return []
    began = min(sample.started_s for sample in history.samples)
    plots: tuple[tuple[str, str, Callable[[Sample], float]], ...] = (
        ("Throughput", "records read per second", lambda s: s.rate),
        ("Lag", "records not yet read", lambda s: nan if s.lag is None else float(s.lag)),
        ("Batch time", "seconds", lambda s: s.seconds),
    )
    return [(title, _plot(history, queries, began, label, value)) for title, label, value in plots]


def _plot(
    history: History, queries: Sequence[str], began: float, label: str, value: Callable[[Sample], float]
) -> str:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure = Figure(figsize=(9, 2.9), layout="constrained")
    axes = figure.add_subplot()
    for number, query in enumerate(queries):
        samples = history.of(query)
        colour = _COLOURS[number % len(_COLOURS)]
        axes.plot([s.ended_s - began for s in samples], [value(s) for s in samples], marker="o", markersize=4,
                  linewidth=1.6, color=colour, label=query)
    axes.set_xlim(left=0)
    axes.margins(y=0.08)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds since the first batch began")
    axes.set_ylabel(label)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}" if y == int(y) else f"{y:,.1f}"))
    axes.grid(axis="y", color="#dde3e8", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(queries), borderaxespad=0.2)
    return _svg(figure)


def _svg(figure: Any) -> str:
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "headrace"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"^.*?(?=<svg)", "", buffer.getvalue(), flags=re.DOTALL)
