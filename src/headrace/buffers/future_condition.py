"""`FutureCondition`: what guards a future, and wakes who waits for it. The plain twin.

It must not know what a future is. Read next: `headrace.client.waits`.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import Any

__all__ = ["FutureCondition"]


class FutureCondition(Condition):
    """A `threading.Condition` that a signal cannot leave locked.

    Ctrl-C comes between two steps of a Python program, and so between the moment at which `Condition` has its lock and
    the `with` statement that is to release it: nobody gets that lock any more, not even the loop. The native twin takes
    and releases its lock in one step. In this twin it can happen.

    Args:
        lock: a reentrant lock that several conditions share; None for one of its own.
    """

    def __init__(self, lock: Any = None) -> None:
        super().__init__(lock)

    def sleep(self, over: Callable[[], bool], timeout: float | None = None) -> None:
        """Wait until what makes `over` true calls `notify_all`; in the native twin without the lock, at no time."""
        with self:
            if not over():
                self.wait(timeout)
