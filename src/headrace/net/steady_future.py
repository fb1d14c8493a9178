"""`SteadyFuture`: a `concurrent.futures.Future` between an application's threads and the loop's.

It must not know what the result is. Read next: `headrace.net.thread`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from headrace.buffers import FutureCondition

__all__ = ["SteadyFuture"]

_V = TypeVar("_V")
_log = logging.getLogger("headrace")
_FINISHED = "FINISHED"
_OVER = frozenset((_FINISHED, "CANCELLED", "CANCELLED_AND_NOTIFIED"))


class SteadyFuture(Future[_V]):
    """A future whose lock is not left locked by Ctrl-C: the loop, which all clients share, would wait for it.

    Who asks for the result does not take the lock at all: Python 3.14 lets Ctrl-C come between a lock and the `with`
    statement that is to release it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._condition: Any = FutureCondition()
        self._done_callbacks: list[Callable[[Any], object]] = []

    def done(self) -> bool:
        """As `Future.done`."""
        return self._state in _OVER

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """As `Future.add_done_callback`."""
        self._done_callbacks.append(fn)
        if self.done():
            self._invoke_callbacks()

    def _invoke_callbacks(self) -> None:
        # Whoever takes a callback out calls it: that is once, also where the future ends while one is added.
        while self._done_callbacks:
            try:
                callback = self._done_callbacks.pop(0)
            except IndexError:  # another thread was quicker
                return
            _call(callback, self)

    def result(self, timeout: float | None = None) -> _V:
        """As `Future.result`."""
        error = self.exception(timeout)
        if error is None:
            result: Any = self._result
            return result  # type: ignore[no-any-return]
        try:
            raise error
        finally:
            del self, error  # the traceback of the error must not lead back to it

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As `Future.exception`."""
        if not self.done():
            self._condition.sleep(self.done, timeout)
        if not self.done():
            raise TimeoutError
        if self._state != _FINISHED:
            raise CancelledError
        return self._exception


def _call(callback: Callable[[Any], object], future: Future[Any]) -> None:
    try:
        callback(future)
    except Exception:
        _log.exception("a callback of a future raised")
