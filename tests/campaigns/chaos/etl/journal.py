"""What a worker writes down while it works, and how it is read again. A line that a kill cut off counts for nothing.

Times are those of the machine's monotonic clock, which all processes share. Records are written down as runs: a list of
a partition, the first offset, the last one, and how many records there are.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

Event = dict[str, Any]
"""Has `at`, in seconds, and `what`; more depends on what it is."""
READ: Final = "read"
"""Records came out of a call: `runs`, `member`, `generation`; of a share group, `runs` have the delivery count last."""
COMMIT: Final = "commit"
"""Offsets may be committed from now on: `number`, `offsets`, and the `runs` that were worked on for them."""
DONE: Final = "done"
"""What became of the commit with that `number`: `outcome`."""
COMMITTED: Final = "committed"


class Run(NamedTuple):
    """Records of one partition that came one behind the other."""

    partition: int
    first: int
    last: int
    count: int


class Journal:
    """Writes events to standard output, and counts them by name."""

    def write(self, what: str, **more: Any) -> None:
        """One event, as of now."""
        print(json.dumps({"at": time.monotonic(), "what": what, **more}, separators=(",", ":")), flush=True)


def runs_of(messages: Iterable[Any]) -> list[Run]:
    """The runs in which messages came. One that goes back, in its partition, begins a new run."""
    runs: list[Run] = []
    newest: dict[int, int] = {}
    for message in messages:
        partition, offset = message.partition(), message.offset()
        place = newest.get(partition)
        if place is not None and offset > runs[place].last:
            runs[place] = Run(partition, runs[place].first, offset, runs[place].count + 1)
        else:
            newest[partition] = len(runs)
            runs.append(Run(partition, offset, offset, 1))
    return runs


def deliveries_of(messages: Iterable[Any]) -> list[Run]:
    """Runs without a gap of records that were delivered equally often, which `count` says here."""
    runs: list[Run] = []
    for message in messages:
        partition, offset, count = message.partition(), message.offset(), message.delivery_count()
        if runs and (partition, offset, count) == (runs[-1].partition, runs[-1].last + 1, runs[-1].count):
            runs[-1] = runs[-1]._replace(last=offset)
        else:
            runs.append(Run(partition, offset, offset, count))
    return runs


@dataclass
class Story:
    """One worker, from its start to its end.

    Attributes:
        name: of the worker.
        events: what it wrote down.
        frozen: when it stood still: from, until.
        killed_at: when it was killed; None if it ended by itself.
    """

    name: str
    events: list[Event]
    frozen: list[tuple[float, float]] = field(default_factory=list)
    killed_at: float | None = None

    def frozen_at(self, begin: float, end: float) -> float | None:
        """When it first froze in this time."""
        return next((since for since, _ in self.frozen if begin <= since < end), None)

    def woke_up_in(self, begin: float, end: float) -> bool:
        return any(begin <= until <= end for _, until in self.frozen)


def heed_signals(end: Callable[[], object], state: Callable[[], object]) -> None:
    """Let SIGTERM end a worker, and SIGUSR1 say where it is.

    Args:
        end: asks the worker to end.
        state: what else there is to say.
    """
    def tell(*_: object) -> None:
        faulthandler.dump_traceback(all_threads=True)
        print(state(), file=sys.stderr, flush=True)

    signal.signal(signal.SIGTERM, lambda *_: end())
    signal.signal(signal.SIGUSR1, tell)


def read_journal(path: Path) -> list[Event]:
    """All events of a journal."""
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("}\n")]
