"""Delivery reports on their way back: queued per batch by the loop, expanded and called where the caller serves them.

A record counts against the budget until its report is served, or, without a callback, until its batch is done. It must
not know sockets or asyncio. Read next: `client.sync.producer`, which serves them in `poll()`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from headrace.client.topic_buffers import FailedRecord
from headrace.errors import KafkaError
from headrace.machines.sender import BatchDone
from headrace.records import Budget, Message

__all__ = ["Deliveries"]

Callback = Callable[[KafkaError | None, Message], Any]


class Deliveries:
    """The queue of reports of one producer.

    Args:
        budget: released as records are done.
        only_errors: `delivery.report.only.error`.
        on_change: called on the loop when a report came or the budget shrank.

    Attributes:
        lost: why records without a callback were not delivered, the first time that it happened; None so far.
    """

    def __init__(self, budget: Budget, only_errors: bool, on_change: Callable[[], None]) -> None:
        self._budget = budget
        self._only_errors = only_errors
        self._on_change = on_change
        self.lost: KafkaError | None = None
        self._batches: deque[tuple[BatchDone, float]] = deque()
        self._calls: deque[tuple[Callback, tuple[KafkaError | None, Message]]] = deque()
        self._notices: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()

    def __len__(self) -> int:
        """Records whose callback is to be called and that the budget does not count any more."""
        return len(self._calls)

    @property
    def pending(self) -> bool:
        """True when `serve` has something to do."""
        return bool(self._calls or self._batches or self._notices)

    def add(self, done: BatchDone) -> None:
        """A batch is done. Called on the loop."""
        opened: Any = done.batch.open
        if opened.reports is None:
            self.lost = self.lost or done.error
        if opened.reports is None or (self._only_errors and done.error is None):
            self._budget.release(opened.count, opened.cost_bytes)
        else:
            self._batches.append((done, time.monotonic()))
        self._on_change()

    def add_failed(self, failed: FailedRecord) -> None:
        """A record never got into a batch. Called on the loop."""
        if failed.callback is not None:
            self._calls.append((failed.callback, (failed.message.error(), failed.message)))
        else:
            self.lost = self.lost or failed.message.error()
        if failed.cost_bytes is not None:
            self._budget.release(1, failed.cost_bytes)
        self._on_change()

    def add_notice(self, callback: Callable[..., Any], *arguments: Any) -> None:
        """Another callback to be called where reports are served (`error_cb`)."""
        self._notices.append((callback, arguments))
        self._on_change()

    def serve(self) -> int:
        """Call the callbacks that are due; returns how many. What a callback raises passes through; the rest stays."""
        served = 0
        while (due := self._next()) is not None:
            callback, arguments = due
            served += 1
            callback(*arguments)
        return served

    def _next(self) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
        while self.pending:
            try:
                if self._notices:
                    return self._notices.popleft()
                if not self._calls:
                    self._expand(*self._batches.popleft())
                return self._calls.popleft()
            except IndexError:  # another thread serves as well and was faster
                continue
        return None

    def _expand(self, done: BatchDone, at_s: float) -> None:
        opened: Any = done.batch.open
        reports = opened.messages(done.base_offset, done.timestamp_type, done.timestamp_ms, done.error, at_s)
        self._calls.extend((callback, (done.error, message)) for callback, message in reports)
        self._budget.release(opened.count, opened.cost_bytes)
