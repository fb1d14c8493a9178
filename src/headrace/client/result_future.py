"""`ResultFuture`: a `concurrent.futures.Future` that costs little, for calls that give ten thousand of them.

A `Future` is two dozen objects that the garbage collector goes over, most of them a `threading.Condition`'s. Here what
all have in the beginning is the class's, and the rest is made for the futures that somebody waits for, which are few.
Results are handed over together: a thread that waits for the first would else be woken to ask for each while it is set,
and the two would take turns at the lock (decision 0047). Read next: `client.admin.admin_client`.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from threading import Condition
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from headrace.buffers import FutureCondition
from headrace.errors import KafkaError, KafkaException

__all__ = ["Ends", "ResultFuture", "end_each", "end_together"]

_V = TypeVar("_V")
Ends: TypeAlias = Iterable[tuple[Any, Any]]
"""Futures with their results; of a failure that is the `KafkaError` or the exception."""
_FRESH: Final = vars(Future())
_LISTS: Final = frozenset(name for name, value in _FRESH.items() if isinstance(value, list))
_PENDING: Final = "PENDING"
_FINISHED: Final = "FINISHED"
_CANCELLED: Final = "CANCELLED"


class ResultFuture(Future[_V]):
    """A future of one of many results.

    Args:
        lock: that of all futures of the call.
    """

    _watched = False  # somebody has looked at it in a way that needs more than its state

    def __init__(self, lock: Any) -> None:
        # Not Future's own: it makes a condition, in more time than all the rest takes.
        self._lock = lock

    if not TYPE_CHECKING:  # a type checker would take any name for one of a future's
        def __getattr__(self, name: str) -> Any:
            """Make what is asked for the first time: the condition, the lists of those who wait or are called back."""
            if name == "_condition":
                made = FutureCondition(self._lock)
            elif name in _LISTS:
                made = []
            else:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            # Before the lock is taken for whatever is done with it: `end` sees this, or its result is seen.
            self._watched = True
            return vars(self).setdefault(name, made)  # of two threads that ask at once, both get the same

    def result(self, timeout: float | None = None) -> _V:
        """As `Future.result`; without the lock once it is there."""
        if self._state == _FINISHED and self._exception is None:
            found: Any = self._result
            return found  # type: ignore[no-any-return]
        return super().result(timeout)

    def end(self, result: Any) -> bool:
        """Set a result or an error, as `end_each`, under the lock. False, and not done, if it calls somebody back."""
        if self._watched or isinstance(result, Exception):
            if vars(self).get("_done_callbacks"):
                return False
            end_each(((self, result),))
        elif self._state == _PENDING:
            self._result = result
            self._state = _FINISHED  # behind the result: `result` reads without the lock
        return True


for _name, _value in _FRESH.items():
    if not isinstance(_value, list | Condition):
        setattr(ResultFuture, _name, _value)
# CPython keeps attributes without a dict for each future as long as an early one has had all of their names.
_early: ResultFuture[Any] = ResultFuture(None)
for _name in (*_FRESH, "_watched"):
    setattr(_early, _name, None)


def end_each(ends: Ends) -> None:
    """Hand results to futures, asyncio's or others, one by one; those that are done already stay as they are.

    Who waits for several in `concurrent.futures.wait()` is not told of one that was cancelled until now.
    """
    for future, result in ends:
        if future.done():
            if isinstance(future, Future) and future._state == _CANCELLED:
                future.set_running_or_notify_cancel()
        elif isinstance(result, KafkaError):
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
        for future, result in ends:
            if not future.end(result):
                called_back.append((future, result))
    end_each(called_back)
