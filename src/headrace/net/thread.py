"""One background thread with an event loop for all synchronous clients of the process.

It is made on first use and made anew after a fork, for threads do not survive one; clients made before it do not
either. Knows nothing of Kafka. Read next: `client.waits`.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, Generic, TypeVar

from headrace.buffers import Alarm, LoopTurn, LoopTurns
from headrace.errors import ClientClosedError
from headrace.interpreter import SteadyLock, has_gil, has_threads

__all__ = ["FORKED", "SLICE_S", "LoopAlarm", "LoopCall", "LoopThread", "loop_thread", "new_loop", "stepping_aside",
           "too_late", "waking", "yielding_to"]

_T = TypeVar("_T")
FORKED = ("the client was made before this process was forked: sockets and threads do not survive a fork, make a new "
          "client in the child process")
SLICE_S = 0.05 if os.name == "nt" else 3600.0
"""The longest that a wait lasts in one piece: on Windows, Python delivers Ctrl-C only between two of them."""


def too_late() -> ClientClosedError:
    """The error of who waits for the loop when only the main thread runs any more, for the last `__del__` methods."""
    return ClientClosedError(
        "the interpreter ends, and no thread but this one runs any more: flush and close clients before, in a with "
        "block or in a function that is registered with atexit")


class LoopWakeup:
    """Calls functions on a loop from other threads: `call_soon_threadsafe` with half of its system calls.

    Args:
        loop: the loop, which does not run yet.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._calls: deque[Callable[[], object]] = deque()
        self._file = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        loop.add_reader(self._file, self._answer)

    def ring(self, action: Callable[[], object]) -> None:
        """Call a function in the loop's next turn. What it raises is logged."""
        self._calls.append(action)
        os.eventfd_write(self._file, 1)

    def _answer(self) -> None:
        os.eventfd_read(self._file)
        try:
            for _ in range(len(self._calls)):  # not those that come meanwhile: sockets have their turn in between
                self._calls.popleft()()
        finally:
            if self._calls:  # those behind one that has raised, which the loop logs, or that came meanwhile
                os.eventfd_write(self._file, 1)


class LoopAlarm:
    """Calls a function on a loop at a time that any thread may set, without a wake-up for that.

    Args:
        loop: the loop.
        action: the function. What it raises is logged.

    Attributes:
        alarm: what is set.

    Raises:
        OSError: the process has no file to spare.
        NotImplementedError: the loop cannot watch files.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, action: Callable[[], object]) -> None:
        self.alarm, self._loop, self._action = Alarm(), loop, action
        loop.add_reader(self.alarm.file, self._answer)
        self._turns = _turns
        self._turns.watch(self.alarm)

    def _answer(self) -> None:
        self.alarm.answer()
        self._action()

    def close(self) -> None:
        """Call it no more. On the loop, when no thread sets the alarm any more."""
        if self.alarm.file >= 0:
            self._turns.unwatch(self.alarm)
            self._loop.remove_reader(self.alarm.file)
            self.alarm.close()


class LoopThread:
    """A daemon thread that runs an event loop until the process ends.

    Attributes:
        turns: with it who calls often and never waits steps aside for the thread, and for others with a `new_loop`.
        wake: calls a function that takes nothing in the loop's next turn.
        forked: this is a child process, in which the thread does not run.
    """

    def __init__(self) -> None:
        self.forked = False
        self.turns = _turns
        self._loop = new_loop()
        self.wake: Callable[[Callable[[], object]], object] = (
            LoopWakeup(self._loop).ring if hasattr(os, "eventfd") else self._loop.call_soon_threadsafe)
        self._thread = threading.Thread(target=self._run, name="headrace", daemon=True)
        self._thread.start()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that runs on the thread."""
        return self._loop

    def is_here(self) -> bool:
        """True on the thread itself."""
        return threading.current_thread() is self._thread

    def call(self, work: Coroutine[Any, Any, _T], timeout_s: float | None = None) -> _T:
        """Run a coroutine on the loop and wait for its result. Ctrl-C interrupts the wait and cancels the coroutine.

        Args:
            work: the coroutine.
            timeout_s: seconds to wait; None waits for as long as it takes.

        Raises:
            TimeoutError: it took longer; the coroutine is cancelled.
            RuntimeError: called from the loop's own thread, where waiting would never end.
            ClientClosedError: the thread is another process's.
        """
        if self.is_here():
            work.close()
            raise RuntimeError("a synchronous client was called on the loop that it waits for: use headrace.aio there")
        if sys.is_finalizing():
            work.close()
            raise too_late()
        awake = threading.Lock()
        awake.acquire()
        call = LoopCall(self, work, awake.release)
        end = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        try:
            call.start()
            while not call.done and (left_s := end - time.monotonic()) > 0:
                awake.acquire(timeout=min(SLICE_S, left_s))
            if not call.done:
                raise TimeoutError
            return call.result()
        finally:
            call.give_up()

    def call_soon(self, action: Callable[..., object], *args: Any) -> None:
        """Call a function in the loop's next turn."""
        self._loop.call_soon_threadsafe(action, *args)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


class LoopCall(Generic[_T]):
    """A coroutine that a thread has the loop run. Nothing of it is locked: Ctrl-C may come between any two steps.

    Args:
        thread: runs the loop.
        work: the coroutine.
        on_done: called on the loop when it has ended, unless it was given up.

    Attributes:
        done: it has ended, and `result()` says how.
    """

    __slots__ = ("_error", "_given_up", "_on_done", "_result", "_task", "_thread", "_work", "done")

    def __init__(self, thread: LoopThread, work: Coroutine[Any, Any, _T], on_done: Callable[[], object]) -> None:
        self._thread, self._work, self._on_done = thread, work, on_done
        self._task: asyncio.Task[_T] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        self._given_up = self.done = False

    def start(self) -> None:
        """Have the loop begin; once. In a forked child, where nothing ever would, it is refused."""
        if self._thread.forked:
            self._work.close()
            self._given_up = self.done = True
            raise ClientClosedError(FORKED)
        self._thread.wake(self._begin)

    def result(self) -> _T:
        """What the coroutine returned; raises what it raised. To be asked once."""
        error, self._error = self._error, None  # its traceback leads here: they would keep each other
        if error is None:
            result: _T = self._result
            return result
        try:
            raise error
        finally:
            del error

    def give_up(self) -> None:
        """Nobody waits any more: what has not ended is cancelled, and what has not begun never does."""
        if not self.done:
            self._given_up = True
            self._thread.wake(self._cancel)

    def _begin(self) -> None:
        if not self._given_up:
            self._task = self._thread.loop.create_task(self._work)
            self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[_T]) -> None:
        # The loop lets go of the task: Python finalises it with code that would swallow another thread's Ctrl-C.
        self._task = None
        if task.cancelled():
            self._error = CancelledError()
        else:
            self._error = task.exception()
            self._result = None if self._error is not None else task.result()
        self.done = True
        self._on_done()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        elif not self.done and getcoroutinestate(self._work) == CORO_CREATED:
            self._work.close()


_current: LoopThread | None = None
_guard = SteadyLock()
_turns = LoopTurns()


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for a thread of ours, for which who calls often and never waits steps aside."""
    if not (_turns.selects and has_gil() and has_threads() and hasattr(selectors, "EpollSelector")):
        return asyncio.new_event_loop()

    class TurnSelector(selectors.EpollSelector):
        """Waits as the loop's own selector does, and says meanwhile that its thread has nothing to do."""

        def __init__(self, turn: LoopTurn) -> None:
            super().__init__()
            self._turn, self._keys = turn, dict[int, selectors.SelectorKey]()
            # Without a frame of Python in each turn.
            self.select = partial(turn.select, self.fileno(), self._keys)  # type: ignore[method-assign]

        def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            key = super().register(fileobj, events, data)
            self._keys[key.fd] = key
            return key

        def unregister(self, fileobj: Any) -> selectors.SelectorKey:
            key = super().unregister(fileobj)
            self._keys.pop(key.fd, None)
            return key

        def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            key = super().modify(fileobj, events, data)
            self._keys[key.fd] = key
            return key

        def close(self) -> None:
            self._turn.end()
            super().close()

    return asyncio.SelectorEventLoop(TurnSelector(LoopTurn(_turns)))


def loop_thread() -> LoopThread:
    """The process's loop thread."""
    global _current
    if (found := _current) is not None:  # without the lock, in front of which Ctrl-C may come
        return found
    with _guard:
        if _current is None:
            _current = LoopThread()
        return _current


def waking(loop: asyncio.AbstractEventLoop) -> Callable[[Callable[[], object]], object]:
    """The fastest way to have functions called on a loop from other threads."""
    ours = _ours(loop)
    return loop.call_soon_threadsafe if ours is None else ours.wake


def stepping_aside(loop: asyncio.AbstractEventLoop) -> Callable[[], object]:
    """Lets other threads have the processor first; not on an application's own loop, whose work comes next there."""
    return _nothing if _ours(loop) is None else getattr(os, "sched_yield", _nothing)


def yielding_to(loop: asyncio.AbstractEventLoop) -> Callable[[], bool]:
    """Lets a loop's thread come to the end of its turn, from others; see `LoopTurns.step_aside`."""
    ours = _ours(loop)
    return _nothing if ours is None else ours.turns.step_aside


def _ours(loop: asyncio.AbstractEventLoop) -> LoopThread | None:
    """The process's loop thread, if this is its loop."""
    return _current if _current is not None and _current.loop is loop else None


def _nothing() -> bool:
    """Lets no thread go first: on other loops, and on systems without such a call."""
    return False


def _forget_after_fork() -> None:
    """The child has no copy of the thread. The parent's loop is left alone: its sockets belong to the parent."""
    global _current, _guard, _turns
    if _current is not None:
        _current.forked = True
    _current = None
    _guard = SteadyLock()
    _turns = LoopTurns()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
