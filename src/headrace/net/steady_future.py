"""`SteadyFuture`: a `concurrent.futures.Future` between an application's threads and the loop's.

It must not know what the result is. Read next: `headrace.net.thread`.
"""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from headrace.buffers import FutureCondition

__all__ = ["SteadyFuture"]

_V = TypeVar("_V")
_FINISHED = "FINISHED"
_OVER = frozenset((_FINISHED, "CANCELLED", "CANCELLED_AND_NOTIFIED"))


class SteadyFuture(Future[_V]):
    """A future whose lock is not left locked by Ctrl-C: the loop, which all clients share, would wait for it.

    Who waits for the result does not take the lock at all: Python 3.14 lets Ctrl-C come between a lock and the `with`
    statement that is to release it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._condition: Any = FutureCondition()

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
        if not self._is_over():
            self._condition.sleep(self._is_over, timeout)
        if not self._is_over():
            raise TimeoutError
        if self._state != _FINISHED:
            raise CancelledError
        return self._exception

    def _is_over(self) -> bool:
        return self._state in _OVER
