"""Delivery reports on their way back: queued per batch by the loop, expanded and called where the caller serves them.

Callbacks that are `IoThreadCallback` do not wait for that: the loop calls them when their batch is done.

A record counts in the `BufferPool` until its report is served, or, without a callback, until its batch is done. Its
future is resolved after that: who waited for it finds room. It must not know sockets or asyncio. Read next:
`client.producer.producer`, which serves reports in `poll()`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Any, Protocol

from headrace.buffers import BufferPool, DirectReplies, LoopTurns, Polling, ProduceResult, ReportRun, ServeFastPath
from headrace.client.producer.topics import FailedRecord
from headrace.errors import KafkaError
from headrace.machines.producer.sender import BatchDone
from headrace.records import Message

__all__ = ["IoThreadCallback", "DeliveryReportQueue", "ReportListener"]

Callback = Callable[[KafkaError | None, Message], Any]
_Notice = Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]


class IoThreadCallback:
    """Base class of callbacks that the loop calls by itself, whatever `delivery.report.only.error` says.

    They must not wait and must not raise.
    """

    __slots__ = ()

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """The record is done; or, without a message, what was waited for has come."""
        raise NotImplementedError

    def resolve(self) -> None:
        """The record does not count any more: resolve its future."""


class ReportListener(Protocol):
    """Called with the outcome of rows of columns, batch by batch; on the loop. It must not wait and must not raise."""

    def on_rows_done(self, error: KafkaError | None, rows: int) -> None:
        """`rows` more rows are stored, or, with an error, given up."""


class DeliveryReportQueue:
    """The queue of reports of one producer.

    Args:
        buffer_pool: released as records are done.
        only_errors: `delivery.report.only.error`.
        on_change: called on the loop when a report came or the pool shrank.

    Attributes:
        only_errors: drop the reports of delivered records.
        has_at_once: some callbacks are `IoThreadCallback`; to be set before the first such record is appended.
        settling: the loop resolves futures of records that count no more.
        on_unretrieved: called with errors never retrieved from a `DeliveryFuture`; None while there are none such.
        on_served: called, on the thread that serves, when that made room, and when its last callback has returned.
    """

    def __init__(self, buffer_pool: BufferPool, only_errors: bool, on_change: Callable[[], None]) -> None:
        self._buffer_pool = buffer_pool
        self.only_errors = only_errors
        self.has_at_once = False
        self._on_change = on_change
        self.settling = False
        self.on_unretrieved: Callable[[KafkaError], object] | None = None
        self.on_served: Callable[[], object] = _nothing
        self._runs: deque[ReportRun] = deque()
        self._notices: deque[_Notice] = deque()  # each gives one
        self._callers: set[int] = set()  # threads that are calling callbacks

    def __len__(self) -> int:
        """Records whose callback is to be called and that the pool does not count any more."""
        return sum(length_hint(run) for run in self._runs.copy() if run.begun)

    def waiting(self) -> int:
        """Callbacks that wait for `serve`."""
        return sum(map(length_hint, self._runs.copy())) + len(self._notices)

    @property
    def pending(self) -> bool:
        """True when `serve` has something to do."""
        return bool(self._runs or self._notices)

    def fast_path(self, polling: Polling, turns: LoopTurns, client: Any,
                  otherwise: Callable[[Any], int]) -> ServeFastPath:
        """`poll()` for a client: what is not due needs no look from here."""
        return ServeFastPath(polling, (self._runs, self._notices), turns, client, otherwise)

    def direct_replies(self, wake: int, on_failed: Callable[[], object]) -> DirectReplies:
        """Where threads that serve take replies by themselves; arguments as there."""
        return DirectReplies(self._runs, self._buffer_pool, IoThreadCallback, wake, on_failed, self._on_change)

    def in_callback(self) -> bool:
        """True in a callback: on a thread that is calling them."""
        return threading.get_ident() in self._callers

    def called_elsewhere(self) -> bool:
        """True while another thread is calling callbacks."""
        return self.callers > self.in_callback()

    @property
    def callers(self) -> int:
        """How many threads are calling callbacks."""
        return len(self._callers)

    def add(self, done: BatchDone) -> None:
        """A batch is done. Called on the loop."""
        opened: Any = done.batch.open
        now = time.monotonic()
        at_once, later = self._who_calls(opened.reports)
        later = later and not (self.only_errors and done.error is None)
        if at_once:
            self._report_at_once(done, now)
        self._buffer_pool.answer(opened.data_bytes)
        self.settling = True
        if not later:
            self._buffer_pool.release(opened.count, opened.cost_bytes)
        if opened.runs is not None:
            _notify_listeners(opened, done.error)
        if opened.has_deliveries and self.on_unretrieved is not None:
            opened.settle(ProduceResult(done.base_offset, done.timestamp_type, done.timestamp_ms, done.error, now,
                                        self.on_unretrieved))
        if at_once:
            for callback in opened.reports:
                if isinstance(callback, IoThreadCallback):
                    callback.resolve()
        self.settling = False
        if later:
            reports = opened.messages(done.base_offset, done.timestamp_type, done.timestamp_ms, done.error, now)
            self._runs.append(ReportRun(reports, done.error, self._buffer_pool, opened.count, opened.cost_bytes,
                                        IoThreadCallback if self.has_at_once else None))
        self._on_change()

    def _who_calls(self, callbacks: list[Callback | None] | None) -> tuple[bool, bool]:
        """Whether the loop calls some of a batch's callbacks itself, and whether `serve` calls some."""
        if callbacks is None or not self.has_at_once:
            return False, callbacks is not None
        at_once = sum(isinstance(callback, IoThreadCallback) for callback in callbacks)
        return at_once > 0, len(callbacks) - callbacks.count(None) > at_once

    def _report_at_once(self, done: BatchDone, now: float) -> None:
        """Call what must not wait."""
        opened: Any = done.batch.open
        with self._calling():
            for callback, message in opened.messages(
                    done.base_offset, done.timestamp_type, done.timestamp_ms, done.error, now):
                if isinstance(callback, IoThreadCallback):
                    callback(done.error, message)

    def add_failed(self, failed: FailedRecord) -> None:
        """A record never got into a batch. Called on the loop."""
        messages, cost_bytes = (0, 0) if failed.cost_bytes is None else (1, failed.cost_bytes)
        if failed.callback is not None and not isinstance(failed.callback, IoThreadCallback):
            report = iter([(failed.callback, failed.message)])
            self._runs.append(ReportRun(report, failed.error, self._buffer_pool, messages, cost_bytes))
        else:
            if failed.callback is not None:
                failed.callback(failed.error, failed.message)
            self.settling = True
            self._buffer_pool.release(messages, cost_bytes)
            if failed.callback is not None:
                failed.callback.resolve()
            self.settling = False
        self._on_change()

    def add_notice(self, callback: Callable[..., Any], *arguments: Any) -> None:
        """Another callback to be called where reports are served (`error_cb`)."""
        self._notices.append(iter([(callback, arguments)]))
        self._on_change()

    def serve(self) -> int:
        """Call the callbacks that are due; returns how many. What a callback raises passes through; the rest stays."""
        if not (self._runs or self._notices):  # `pending`, without a call: many ask all the time
            return 0
        here = threading.get_ident()
        if here in self._callers:  # a callback serves
            return self._serve()
        try:
            try:
                self._callers.add(here)
                return self._serve()
            finally:
                self._callers.discard(here)
        finally:
            try:
                self.on_served()
            except BaseException:  # Ctrl-C just when it began: other threads wait for this
                self.on_served()
                raise

    @contextlib.contextmanager
    def _calling(self) -> Iterator[None]:
        here = threading.get_ident()
        if here in self._callers:  # a callback serves
            yield
            return
        self._callers.add(here)
        try:
            yield
        finally:
            self._callers.discard(here)
            self.on_served()

    def _serve(self) -> int:
        # Ctrl-C may come after any call. What is taken in a `for` statement is given to its callback before, and what
        # was begun is found again by the next `serve`.
        served = 0
        while self._runs or self._notices:
            try:
                next_up: ReportRun | _Notice = (self._notices or self._runs)[0]
            except IndexError:  # another thread serves too and was faster
                continue
            if isinstance(next_up, ReportRun):
                if next_up.begin():
                    self.on_served()
                error = next_up.error
                for call, message in next_up:
                    served += 1
                    call(error, message)
                _drop(self._runs, next_up)
            else:
                for callback, arguments in next_up:
                    served += 1
                    callback(*arguments)
                _drop(self._notices, next_up)
        return served


def _drop(queue: deque[Any], ended: object) -> None:
    with contextlib.suppress(ValueError):  # another thread, or a callback that serves, has dropped it
        queue.remove(ended)


def _nothing() -> None:
    """For producers where no thread waits but the one that serves."""


def _notify_listeners(opened: Any, error: KafkaError | None) -> None:
    ends = [first for first, _ in opened.runs[1:]] + [opened.count]
    for (first, listener), end in zip(opened.runs, ends, strict=True):
        if listener is not None:
            listener.on_rows_done(error, end - first)

