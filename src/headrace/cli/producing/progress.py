"""The bar on a terminal: bytes of files, or what came so far from a pipe. Elsewhere there is nothing to see.

`rich` draws it (`pip install 'headrace[cli]'`); without it there is no bar.
"""

from __future__ import annotations

import sys
import time
from typing import Any

__all__ = ["Progress"]

_EVERY_S = 0.1


class Progress:
    """Shows how far the work is. A context manager.

    Args:
        topic: where the records go.
        total: bytes or rows that there are, None when that is not known.
        shown: draw at all.
        unit: "bytes", "rows" or "records".
        command: for the lines that are shown.
        counted: what is counted beside the total; None for nothing.

    Attributes:
        total: as the argument; it may be set until the bar is shown.
    """

    def __init__(
        self, topic: str, total: int | None, shown: bool, unit: str = "bytes", command: str = "produce",
        counted: str | None = "stored",
    ) -> None:
        self._topic, self.total = topic, total
        self._shown = shown
        self._unit, self._counted = unit, counted
        self._command = command
        self._bar: Any = None
        self._next_at = 0.0
        self._trouble = ""

    def update(self, done: int, stored: int) -> None:
        """Draw, if the last time is not too recent.

        Args:
            done: of the total.
            stored: what is counted beside it.
        """
        if self._bar is not None and (now := time.monotonic()) >= self._next_at:
            self._next_at = now + _EVERY_S
            self._bar.update(self._task, completed=done, stored=stored, refresh=True)

    def note(self, text: str) -> None:
        """Show one line, above the bar if there is one."""
        if self._bar is not None and self._bar.live.is_started:
            self._bar.console.print(f"headrace {self._command}: {text}", markup=False, highlight=False, soft_wrap=True)
        else:
            print(f"headrace {self._command}: {text}", file=sys.stderr, flush=True)

    def note_trouble(self, text: str) -> None:
        """Show one line, unless it is what was shown last: clients tell of each try anew."""
        if text != self._trouble:
            self._trouble = text
            self.note(text)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Progress:
        if self._shown:
            try:
                self._bar = _bar(self._unit, self.total, self._counted)
            except ImportError:
                return self
            self._task = self._bar.add_task(self._topic, total=self.total, stored=0)
            self._bar.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _bar(unit: str, total: int | None, counted: str | None) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress

    known = (BarColumn(), DownloadColumn() if unit == "bytes" else MofNCompleteColumn(), TimeRemainingColumn())
    amount = DownloadColumn() if unit == "bytes" else TextColumn("{task.completed:,.0f} " + unit)
    unknown = (SpinnerColumn(), amount, TimeElapsedColumn())
    beside = [] if counted is None else [TextColumn("{task.fields[stored]:,} " + counted)]
    return RichProgress(TextColumn("{task.description}"), *(unknown if total is None else known),
                        *beside, console=Console(stderr=True), auto_refresh=False, transient=True)
