"""One background thread with an event loop for all synchronous clients of the process.

It is made on first use and made anew after a fork, for threads do not survive one; clients made before it do not
either. Knows nothing of Kafka. Read next: `client.sync`.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["LoopThread", "loop_thread"]

_T = TypeVar("_T")
_SLICE_S = 0.05
"""Waits are cut into slices, because Python delivers Ctrl-C to the main thread only between them on some platforms."""


class LoopThread:
    """A daemon thread that runs an event loop until the process ends."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="headrace", daemon=True)
        self._thread.start()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that runs on the thread."""
        return self._loop

    def call(self, work: Coroutine[Any, Any, _T], timeout_s: float | None = None) -> _T:
        """Run a coroutine on the loop and wait for its result. Ctrl-C interrupts the wait and cancels the coroutine.

        Args:
            work: the coroutine.
            timeout_s: seconds to wait; None waits for as long as it takes.

        Raises:
            TimeoutError: it took longer; the coroutine is cancelled.
            RuntimeError: called from the loop's own thread, where waiting would never end.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a synchronous client was called on the loop that it waits for: use headrace.aio there")
        future = self.submit(work)
        end = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        try:
            while True:
                try:
                    return future.result(min(_SLICE_S, max(end - time.monotonic(), 0.0)))
                except TimeoutError:
                    if future.done() or time.monotonic() >= end:
                        raise
        finally:
            future.cancel()

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Run a coroutine on the loop. Returns its future at once."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call_soon(self, action: Callable[..., object], *args: Any) -> None:
        """Call a function in the loop's next turn."""
        self._loop.call_soon_threadsafe(action, *args)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


_current: LoopThread | None = None
_guard = threading.Lock()


def loop_thread() -> LoopThread:
    """The process's loop thread."""
    global _current
    with _guard:
        if _current is None:
            _current = LoopThread()
        return _current


def _forget_after_fork() -> None:
    """The child has no copy of the thread. The parent's loop is left alone: its sockets belong to the parent."""
    global _current, _guard
    _current = None
    _guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
