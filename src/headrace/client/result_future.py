"""`ResultFuture`: a `concurrent.futures.Future` that costs little, for calls that give ten thousand of them.

A `threading.Condition` is a dozen objects that the garbage collector goes over; here one is made for the futures that
somebody waits for, which are few. Read next: `client.admin.admin_client`.
"""

from __future__ import annotations

from concurrent.futures import Future
from threading import Condition
from typing import Any, TypeVar

__all__ = ["ResultFuture"]

_V = TypeVar("_V")


class ResultFuture(Future[_V]):
    """A future of one of many results.

    Args:
        lock: that of all futures of the call.
    """

    def __init__(self, lock: Any) -> None:
        super().__init__()
        self._condition: Any = _LateCondition(lock)


class _LateCondition:
    """A condition that is made when somebody waits. What a future does with it is done under its lock."""

    __slots__ = ("_condition", "_lock")

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._condition: Condition | None = None

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    def acquire(self) -> None:
        """Take the lock, as `concurrent.futures.wait` does."""
        self._lock.acquire()

    def release(self) -> None:
        """Give it back."""
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until this future is done; False if it is not within so many seconds."""
        if self._condition is None:
            self._condition = Condition(self._lock)
        return self._condition.wait(timeout)

    def notify_all(self) -> None:
        """Wake who waits."""
        if self._condition is not None:
            self._condition.notify_all()
