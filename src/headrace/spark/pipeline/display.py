"""The live display of a run: a table on a terminal, one plain line per micro-batch elsewhere.

This module knows samples only. Read next: `headrace.cli.run`, which feeds it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, Protocol

from headrace.spark.pipeline.declared import PipelineSpec
from headrace.spark.pipeline.progress import History, Sample

__all__ = ["Display", "LiveDisplay", "PlainDisplay", "make_display", "plain_line"]

_FIGURES: Final = ("batch", "rows/s", "time", "read", "written", "lag")


class Display(Protocol):
    """Shows how a run goes; a context manager."""

    def update(self, fresh: Iterable[Sample], history: History) -> None:
        """Show the batches that ended since the last call."""
        ...

    def note(self, text: str) -> None:
        """Show one line beside the figures."""
        ...

    def __enter__(self) -> Display: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        ...


def make_display(spec: PipelineSpec) -> Display:
    """A table when standard output is a terminal and `rich` is installed, else plain lines."""
    if sys.stdout.isatty():
        try:
            return LiveDisplay(spec)
        except ImportError:
            pass
    return PlainDisplay()


def plain_line(sample: Sample, total: int) -> str:
    """One line for a finished micro-batch; `total` is what the query has read so far."""
    rows = "row" if sample.rows_in == 1 else "rows"
    return (
        f"{sample.query}: batch {sample.batch_id}, {sample.rows_in:,} {rows} in {sample.seconds:.1f} s "
        f"({sample.rate:,.0f} rows/s), {total:,} read in all, {sample.rows_out:,} written, lag "
        f"{_lag(sample, 'unknown')}"
    )


def _lag(sample: Sample, unknown: str) -> str:
    return unknown if sample.lag is None else f"{sample.lag:,}"


class PlainDisplay:
    """One line per micro-batch: for logs, pipes and CI."""

    def update(self, fresh: Iterable[Sample], history: History) -> None:
        """Print the batches that ended since the last call."""
        for sample in fresh:
            total = sum(each.rows_in for each in history.of(sample.query) if each.batch_id <= sample.batch_id)
            print(plain_line(sample, total), flush=True)

    def note(self, text: str) -> None:
        """Print one line."""
        print(text, flush=True)

    def __enter__(self) -> PlainDisplay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None


class LiveDisplay:
    """A table with one row per sink that is drawn over itself."""

    def __init__(self, spec: PipelineSpec) -> None:
        from rich.live import Live

        self._spec = spec
        self._note = ""
        self._history = History()
        self._began = time.monotonic()
        self._live = Live(get_renderable=self.table, refresh_per_second=4)

    def update(self, fresh: Iterable[Sample], history: History) -> None:
        """Draw the table anew at the next tick."""
        self._history = history

    def note(self, text: str) -> None:
        """Show one line under the table."""
        self._note = text

    def table(self) -> Any:
        """The table as it is now, for `rich`."""
        from rich.table import Table

        passed = int(time.monotonic() - self._began)
        table = Table(title=f"{self._spec.name}  {passed // 60}:{passed % 60:02}",
                      caption=self._note or "Ctrl-C stops it")
        table.add_column("sink")
        for name in _FIGURES:
            table.add_column(name, justify="right", no_wrap=True)
        for sink in self._spec.sinks:
            words = f"{sink.name}\n{sink.target}\n{sink.stored_as}, {sink.promise}"
            table.add_row(words, *self._cells(self._history.of(sink.name)), end_section=True)
        return table

    def _cells(self, samples: list[Sample]) -> list[str]:
        if not samples:
            return ["starting", "", "", "", "", ""]
        last = samples[-1]
        return [
            str(last.batch_id), f"{last.rate:,.0f}", f"{last.seconds:.1f} s", f"{sum(s.rows_in for s in samples):,}",
            f"{sum(s.rows_out for s in samples):,}", _lag(last, "-"),
        ]

    def __enter__(self) -> LiveDisplay:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.__exit__(kind, error, at)
