"""`SpinWait`: a thread's wait for what another thread does in a moment. The plain twin.

It must not know what is waited for. Read next: `headrace.client.waits`, which waits with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["SpinWait"]


class SpinWait:
    """Lets a thread see at once what another has done, for waits that are hardly longer than it takes to wake up.

    The native twin watches without the GIL, and is given it as soon as something has happened; this one sleeps.
    """

    __slots__ = ("_condition",)

    def __init__(self) -> None:
        self._condition = threading.Condition()

    def wait(self, happened: Callable[[], Any], timeout_s: float) -> None:
        """Wait until `notify()` is called; not at all if it has happened. It may return earlier.

        Args:
            happened: returns whether it has happened already.
            timeout_s: longest wait, in seconds.
        """
        with self._condition:
            if not happened():
                self._condition.wait(timeout_s)

    def notify(self) -> None:
        """Something has happened: the waiting thread goes on before the caller does."""
        with self._condition:
            self._condition.notify_all()
