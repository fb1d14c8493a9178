"""`headrace groups lag`: how far groups are behind, once, or again and again on a terminal."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from headrace.cli.administration.group_commands.group_offsets import GroupPartition
from headrace.cli.shared.output import Column, print_rows
from headrace.cli.shared.parsers import number, seconds
from headrace.errors import DependencyError

if TYPE_CHECKING:
    from headrace.cli.shared.subcommands import Session

__all__ = ["LAGGING", "LagHistory", "add_watch_options", "show_lag", "sparkline"]

LAGGING: Final = (
    Column("group", "its id"), Column("topic", "its name"), Column("partitions", "how many of it the group reads"),
    Column("committed", "sum of the group's offsets"), Column("end", "sum of the offsets that the next records get"),
    Column("lag", "sum of what lies between; null where the group has no offset"),
    Column("most", "the lag of the partition that is furthest behind", wide=True),
    Column("unread", "partitions without a member", wide=True),
)
"""What `groups lag` prints."""
_BARS: Final = "▁▂▃▄▅▆▇█"
_KEPT: Final = 60
_Found = Mapping[str, Sequence[GroupPartition]]


def add_watch_options(parser: argparse.ArgumentParser) -> None:
    """Add --watch and what goes with it."""
    parser.add_argument("-w", "--watch", action="store_true", help="look again and again until Ctrl-C: a live view on "
                        "a terminal (needs headrace[cli]), rows elsewhere")
    parser.add_argument("--interval", type=seconds, default=2.0, metavar="TIME",
                        help="between two looks (default: 2s)")
    parser.add_argument("--count", type=number(1), metavar="N", help="end after so many looks")


def show_lag(session: Session, look: Callable[[], _Found]) -> None:
    """Print lag once, or watch it.

    Args:
        session: the run.
        look: asks the cluster; partitions by group.
    """
    given = session.given
    if not given.watch:
        session.show(lag_rows(look()))
    elif session.for_people and sys.stdout.isatty():
        _live(look, given.interval, given.count)
    else:
        _repeated(session, look)


def lag_rows(found: _Found) -> list[dict[str, Any]]:
    """A row for each group and topic."""
    rows = list[dict[str, Any]]()
    for group, partitions in found.items():
        for topic in dict.fromkeys(each.where.topic for each in partitions):
            parts = [each for each in partitions if each.where.topic == topic]
            lags = [each.lag for each in parts if each.lag is not None]
            rows.append({
                "group": group, "topic": topic, "partitions": len(parts),
                "committed": sum(each.committed or 0 for each in parts), "end": sum(each.end or 0 for each in parts),
                "lag": sum(lags) if lags else None, "most": max(lags, default=None),
                "unread": sum(each.member is None for each in parts),
            })
    return rows


class LagHistory:
    """The last lags of each group and topic, for rates and sparklines."""

    def __init__(self) -> None:
        self._looks: dict[tuple[str, str], deque[tuple[float, int, int]]] = {}

    def add(self, at_s: float, rows: Sequence[Mapping[str, Any]]) -> None:
        """Note a look.

        Args:
            at_s: when it was, by a monotonic clock.
            rows: what was seen.
        """
        for row in rows:
            kept = self._looks.setdefault((row["group"], row["topic"]), deque(maxlen=_KEPT))
            kept.append((at_s, row["lag"] or 0, row["committed"]))

    def lags(self, group: str, topic: str) -> list[int]:
        """The lags so far, the oldest first."""
        return [lag for _, lag, _ in self._looks.get((group, topic), ())]

    def rate(self, group: str, topic: str) -> float:
        """Records that the group got further per second, between the last two looks."""
        looks = self._looks.get((group, topic))
        if looks is None or len(looks) == 1:
            return 0.0
        (before_s, _, before), (after_s, _, after) = looks[-2], looks[-1]
        return max(after - before, 0) / (after_s - before_s) if after_s > before_s else 0.0


def sparkline(numbers: Sequence[int]) -> str:
    """Numbers as bars, the largest as the highest one."""
    most = max(numbers, default=0)
    return "".join(_BARS[each * (len(_BARS) - 1) // most if most else 0] for each in numbers)


def lag_table(rows: Sequence[Mapping[str, Any]], history: LagHistory) -> Any:
    """The live view: a table for rich."""
    from rich.table import Table

    table = Table(title="lag")
    for name in ("group", "topic"):
        table.add_column(name)
    for name in ("partitions", "end", "lag", "records/s"):
        table.add_column(name, justify="right")
    table.add_column("the last looks", min_width=20)
    for row in rows:
        group, topic, lag = row["group"], row["topic"], row["lag"]
        table.add_row(group, topic, str(row["partitions"]), f"{row['end']:,}", "-" if lag is None else f"{lag:,}",
                      f"{history.rate(group, topic):,.0f}", sparkline(history.lags(group, topic)[-40:]),
                      style="red" if lag and lag == max(history.lags(group, topic)) else "")
    return table


def _live(look: Callable[[], _Found], interval_s: float, count: int | None) -> None:
    try:
        from rich.live import Live
    except ImportError:
        raise DependencyError("the live view needs rich: pip install 'headrace[cli]'; `-o tsv --watch` does without"
                              ) from None
    history = LagHistory()
    with Live(auto_refresh=False) as live:
        seen = 0
        while count is None or seen < count:
            rows = lag_rows(look())
            history.add(time.monotonic(), rows)
            live.update(lag_table(rows, history), refresh=True)
            seen += 1
            if seen != count:
                time.sleep(interval_s)


def _repeated(session: Session, look: Callable[[], _Found]) -> None:
    """Rows, again and again; JSON is one object a line here, for a document would never end."""
    import json

    given, seen = session.given, 0
    while given.count is None or seen < given.count:
        rows = lag_rows(look())
        if given.output == "json":
            for row in rows:
                print(json.dumps(row, ensure_ascii=False))
        else:
            print_rows(given.output, LAGGING, rows, header=not seen or session.for_people)
        sys.stdout.flush()
        seen += 1
        if seen != given.count:
            time.sleep(given.interval)
