"""`ReportRun`: the delivery reports of a batch while they are served. The plain twin.

It must not know who serves them. Read next: `headrace.buffers.closed_batch`, which makes the reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Any

from headrace.buffers.buffer_pool import BufferPool
from headrace.errors import KafkaError
from headrace.records.message import Message

__all__ = ["ReportRun"]

Report = tuple[Callable[..., Any], Message]


class ReportRun:
    """An iterator of the reports of a batch: callbacks and what they are called with.

    A signal may come between any two steps of a Python program. In the native twin `begin` is one step, and so is the
    way from a report that is taken in a `for` statement to its callback: no report is lost, and nothing counted twice.
    In this twin Ctrl-C may come in between.

    Args:
        reports: the reports; any iterator that `operator.length_hint` knows.
        error: why the records were not delivered, or None.
        pool: counts the records until the first of them is reported.
        messages: how many it counts.
        cost_bytes: bytes that it counts.
        passed_over: a class of callbacks that were called before; None for none.

    Attributes:
        error: as given.
        begun: the pool does not count the records any more.
    """

    __slots__ = ("_cost_bytes", "_messages", "_passed_over", "_pool", "_reports", "begun", "error")

    def __init__(self, reports: Iterator[Report], error: KafkaError | None, pool: BufferPool, messages: int,
                 cost_bytes: int, passed_over: type | None = None) -> None:
        self._reports = reports
        self.error = error
        self._pool, self._messages, self._cost_bytes = pool, messages, cost_bytes
        self._passed_over = passed_over
        self.begun = False

    def begin(self) -> bool:
        """Release what the pool counts; True the first time."""
        if self.begun:
            return False
        self.begun = True
        self._pool.release(self._messages, self._cost_bytes)
        return True

    def __iter__(self) -> ReportRun:
        return self

    def __next__(self) -> Report:
        for report in self._reports:
            if self._passed_over is None or not isinstance(report[0], self._passed_over):
                return report
        raise StopIteration

    def __length_hint__(self) -> int:
        return length_hint(self._reports)
