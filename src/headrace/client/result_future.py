"""`ResultFuture`: a `concurrent.futures.Future` that costs little, for calls that give ten thousand of them.

A `threading.Condition` is a dozen objects that the garbage collector goes over; here one is made for the futures that
somebody waits for, which are few. Results are handed over together: a thread that waits for the first would else be
woken to ask for each while it is set, and the two would take turns at the lock. Read next: `client.admin.admin_client`.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from threading import Condition
from typing import Any, Final, TypeAlias, TypeVar

from headrace.errors import KafkaError, KafkaException

__all__ = ["Ends", "ResultFuture", "end_each", "end_together"]

_V = TypeVar("_V")
Ends: TypeAlias = Iterable[tuple[Any, Any]]
"""Futures with their results; of a failure that is the `KafkaError` or the exception."""
_FIELDS: Final = vars(Future())
_BLANK: Final = [(name, value) for name, value in _FIELDS.items() if not isinstance(value, list | Condition)]
_LISTS: Final = tuple(name for name, value in _FIELDS.items() if isinstance(value, list))


class ResultFuture(Future[_V]):
    """A future of one of many results.

    Args:
        lock: that of all futures of the call.
    """

    def __init__(self, lock: Any) -> None:
        # Not Future's own: it makes a condition, in more time than all the rest takes.
        for name, value in _BLANK:
            setattr(self, name, value)
        for name in _LISTS:
            setattr(self, name, [])
        self._condition: Any = _LateCondition(lock)

    @property
    def calls_back(self) -> bool:
        """Whether somebody is to be called back. It stays so only under the lock."""
        return bool(vars(self)["_done_callbacks"])


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


def end_each(ends: Ends) -> None:
    """Hand results to futures, asyncio's or others, one by one; those that are done already stay as they are."""
    for future, result in ends:
        if future.done():
            continue
        if isinstance(result, KafkaError):
            future.set_exception(KafkaException(result))
        elif isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


def end_together(lock: Any, ends: Ends) -> None:
    """Hand results to `ResultFuture`s under their lock, so that who waits finds all of them.

    Callbacks are called without it: one that waits for another thread must not keep that from a result.
    """
    called_back: list[tuple[Any, Any]] = []
    with lock:
        for end in ends:
            if end[0].calls_back:
                called_back.append(end)
            else:
                end_each((end,))
    end_each(called_back)
