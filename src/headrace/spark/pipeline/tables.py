"""The tables of a pipeline: read once, held in Spark's cache, and read anew when they ask for it (decision 0016).

A query reads what it joins with in each of its micro-batches, and every query by itself; a held table is read once for
all of them. This module starts no query. Read next: `headrace.spark.pipeline.run`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import headrace.spark.spark_required  # noqa: F401 - the check is what it is for

from pyspark.sql import DataFrame

from headrace.spark.pipeline.spec import Input

__all__ = ["HeldTables"]

_NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class _Held:
    """A table as it was read; `due_s` is when to read it anew, monotonic seconds."""

    frame: DataFrame
    due_s: float


class HeldTables:
    """The tables that a run holds.

    Args:
        read: reads a table; nothing of it is read before Spark needs it.
        clock: monotonic seconds.
    """

    def __init__(self, read: Callable[[Input], DataFrame], clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._held: dict[str, _Held] = {}

    @property
    def due(self) -> bool:
        """True when a table is to be read anew. No query may run then that joins with it."""
        return any(held.due_s <= self._clock() for held in self._held.values())

    def frame(self, table: Input) -> DataFrame:
        """The table. All of it is read here, the first time and when it is due, unless `read_ahead` has done so."""
        if not self._is_fresh(table):
            self._read_now(table)
        return self._held[table.name].frame

    def read_ahead(self, tables: Iterable[Input]) -> None:
        """Read those that are not held, or due, side by side. One that fails is left to `frame`, which raises."""
        wanted = [table for table in tables if not self._is_fresh(table)]
        if len(wanted) > 1:
            with ThreadPoolExecutor(len(wanted), "headrace-tables") as pool:
                for table in wanted:
                    pool.submit(self._read_now, table)

    def _is_fresh(self, table: Input) -> bool:
        held = self._held.get(table.name)
        return held is not None and self._clock() < held.due_s

    def _read_now(self, table: Input) -> None:
        due_s = self._clock() + table.refresh_s if table.refresh_s else _NEVER
        held = self._held.pop(table.name, None)
        if held is not None:
            held.frame.unpersist()  # before: Spark would find it where a file is read anew
        frame = self._read(table).persist()
        frame.count()  # so that Spark knows its size before it plans the first join
        self._held[table.name] = _Held(frame, due_s)

    def close(self) -> None:
        """Hold nothing any more."""
        for held in self._held.values():
            held.frame.unpersist()
        self._held.clear()
