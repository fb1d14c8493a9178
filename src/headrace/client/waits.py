"""How a client waits, on a thread or on a loop. Rules, which are generators, define once what it waits for.

A rule yields a `Wait`, or a coroutine for the client's loop, whose result it is given. A blocking face runs the rule
with `ThreadWaits`, an asyncio face with `LoopWaits` (decision 0017). What ends a wait early, as Ctrl-C, `wakeup()` and
a cancelled task do, is raised in the rule where it waits, so that the rule can clean up.
It must not know what is waited for. Read next: `client.producer.producer_calls`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from sys import is_finalizing
from typing import Any, Protocol, TypeVar

from headrace.buffers import FutureCondition, SpinWait, implementation
from headrace.errors import WakeupError
from headrace.interpreter import has_gil, has_threads
from headrace.net.thread import SLICE_S, LoopCall, LoopThread, too_late
from headrace.slotted import slotted

__all__ = [
    "TURN", "TURNS_S", "DirectWait", "LoopWaits", "Meanwhile", "SteadyFuture", "Steps", "ThreadWaits", "Wait",
    "deadline", "running_loop", "seconds", "submit", "threads_may_receive",
]

T = TypeVar("T")
TURNS_S = 0.01
"""How long calls of an asyncio client that need not wait may follow one another, before other tasks have a turn."""
_MEANWHILE_S = 0.05
_FINISHED = "FINISHED"
_OVER = frozenset((_FINISHED, "CANCELLED", "CANCELLED_AND_NOTIFIED"))
_log = logging.getLogger("headrace")

Meanwhile = Callable[[], object]


class DirectWait(Protocol):
    """Makes happen what is waited for, in the thread that waits."""

    @property
    def ready(self) -> bool:
        """False while there is nothing to do; the thread sleeps then."""
        ...

    def receive(self, timeout_s: float, awake: threading.Lock | None = None) -> None:
        """Wait so long at most, until something has happened, until `wake`, or until this is not `ready` any more.

        Args:
            timeout_s: seconds.
            awake: released for this thread, before `wake` is called for all of them.
        """
        ...

    def wake(self) -> None:
        """End `receive`, or the next one. From any thread, and from signal handlers."""
        ...


def threads_may_receive() -> bool:
    """Whether a thread that waits may read a socket in the loop's place: in one native step, and woken by a file.

    Without the GIL two threads may be in the middle of one step; then only the loop touches a connection.
    """
    return implementation == "native" and hasattr(os, "eventfd") and has_gil() and has_threads()


@slotted(eq=False)
class Wait:
    """A wait until something has happened, or until its time is over.

    Attributes:
        happened: whether it has, on any thread. The code that makes it true calls `notify()` of the waits.
        until: monotonic seconds.
        watch_until: monotonic seconds; a thread does not sleep before, for it may happen sooner than it wakes up.
        meanwhile: what a thread that waits may do by itself; None for nothing.
    """

    happened: Callable[[], Any]
    until: float = math.inf
    watch_until: float = 0.0
    meanwhile: DirectWait | None = None


Steps = Generator[Wait | Coroutine[Any, Any, Any], Any, T]
"""A rule: it yields what it waits for."""

TURN = Wait(lambda: True)
"""No wait at all; on a loop, other tasks have a turn."""


def seconds(timeout: float | None) -> float:
    """What a call's `timeout` means: None and negative ones never end.

    Raises:
        TypeError: it is no number.
    """
    if timeout is None:
        return math.inf
    try:
        return math.inf if timeout < 0 else timeout
    except TypeError:
        raise TypeError(f"timeout must be a number of seconds, not {type(timeout).__name__}") from None


def deadline(timeout: float | None) -> float:
    """When a call's `timeout` is over, in monotonic seconds."""
    return time.monotonic() + seconds(timeout)


class _Sleeper:
    """One thread that waits."""

    __slots__ = ("_awake", "happened")

    def __init__(self, happened: Callable[[], Any]) -> None:
        self.happened = happened
        self._awake = threading.Lock()
        self._awake.acquire()

    def sleep(self, timeout_s: float) -> None:
        """Wait for `wake`, also for one that came before."""
        self._awake.acquire(timeout=timeout_s)

    def wake(self) -> None:
        """It has happened. From any thread."""
        try:
            self._awake.release()
        except RuntimeError:  # it is awake already
            pass


class _Receiver(_Sleeper):
    """One thread that waits, and receives by itself meanwhile."""

    __slots__ = ("_direct",)

    def __init__(self, happened: Callable[[], Any], direct: DirectWait) -> None:
        self.happened, self._direct = happened, direct  # as there, without its frame
        self._awake = threading.Lock()
        self._awake.acquire()

    def sleep(self, timeout_s: float) -> None:
        """As `_Sleeper.sleep`; it may come back early."""
        if self._direct.ready:
            self._direct.receive(timeout_s, self._awake)
        else:
            super().sleep(timeout_s)

    def wake(self) -> None:
        """As `_Sleeper.wake`."""
        super().wake()
        self._direct.wake()


class _Wakeup:
    """Whether an application has asked for the end of a wait. From any thread, and from signal handlers: no locks.

    Attributes:
        asked: not empty when it has.
    """

    def __init__(self) -> None:
        self.asked: deque[None] = deque(maxlen=1)

    def ask(self) -> None:
        self.asked.append(None)

    def forget(self) -> None:
        self.asked.clear()

    def heed(self) -> None:
        """Raise `WakeupError` if it was asked for: once, in one thread."""
        if self.asked:
            with suppress(IndexError):  # another thread was quicker
                self.asked.pop()
                raise WakeupError("wakeup() was called")


class ThreadWaits:
    """Waits on the caller's thread for what a background loop does.

    Args:
        thread: runs the loop.

    Attributes:
        thread: as given.
        wakeup: ends a wait, or the next one, or what else heeds it.
    """

    def __init__(self, thread: LoopThread) -> None:
        self.thread = thread
        self.wakeup = _Wakeup()
        self._sleepers: dict[_Sleeper, None] = {}
        self._spin_wait = SpinWait()
        self._watches = has_threads()

    def may_wait(self) -> bool:
        """False on the loop's own thread, which would wait for itself."""
        return not self.thread.is_here()

    def step_aside(self) -> bool:
        """Let the loop come to the end of its turn, where no wait is to be; see `LoopTurns.step_aside`."""
        return self.thread.turns.step_aside()

    def wake(self) -> None:
        """End the wait of a thread with `WakeupError`, or the next wait. From any thread, and from signal handlers."""
        self.wakeup.ask()
        self._spin_wait.notify()
        for sleeper in list(self._sleepers):
            sleeper.wake()

    def run(self, steps: Steps[T], meanwhile: Meanwhile | None = None, *, gives_up: bool = False) -> T:
        """Run a rule to its end.

        Args:
            steps: the rule.
            meanwhile: called every twentieth of a second of each wait, and at its end. What it raises ends the wait.
            gives_up: `wake` also ends the rule's work on the loop; else that comes to its end first.
        """
        call: Callable[..., Any] = self.call_until_woken if gives_up else self.call
        wait: Any = None
        try:
            while True:
                try:
                    if wait is None:
                        wait = next(steps)
                    while True:
                        if isinstance(wait, Wait):
                            self.wait(wait, meanwhile)
                            wait = steps.send(None)
                        else:
                            wait = steps.send(call(wait, meanwhile))
                except StopIteration:
                    raise
                except BaseException as error:  # the rule's own is raised once more: it has ended
                    wait = steps.throw(error)
        except StopIteration as ended:
            result: T = ended.value
            return result

    def call(self, work: Coroutine[Any, Any, T], meanwhile: Meanwhile | None = None) -> T:
        """Run a coroutine on the loop and wait for its result. An interrupt cancels it."""
        return self.thread.call(work) if meanwhile is None else self.call_until_woken(work, meanwhile)

    def call_until_woken(self, work: Coroutine[Any, Any, T], meanwhile: Meanwhile | None = None) -> T:
        """As `call`; `wake` ends it as well, and cancels the coroutine."""
        if self.thread.is_here():
            return self.thread.call(work)  # which says why that cannot be
        call = LoopCall(self.thread, work, self.notify)
        try:
            call.start()
            self.wait(Wait(lambda: call.done), meanwhile)
            return call.result()
        finally:
            call.give_up()

    def do(self, action: Callable[..., T], *arguments: Any) -> T:
        """Call a function on the loop and wait for its result."""
        return self.thread.call(_done(action, *arguments))

    def wait(self, wait: Wait, meanwhile: Meanwhile | None = None) -> None:
        """Sleep until something has happened, and no longer; or until the time is over."""
        happened, until = wait.happened, wait.until
        if wait.watch_until and self._watches and (wait.meanwhile is None or not wait.meanwhile.ready):
            watch_until = min(wait.watch_until, until)
            while not happened() and (left_s := watch_until - time.monotonic()) > 0:
                self._spin_wait.wait(happened, left_s)
            if watch_until == until:
                return
        sleeper = _Sleeper(happened) if wait.meanwhile is None else _Receiver(happened, wait.meanwhile)
        # Python 3.14 takes the jump behind an `if` at a loop's end for a step that cannot raise: Ctrl-C there would not
        # come to `finally`. So something is called in any case.
        longest_s, look = (SLICE_S, bool) if meanwhile is None else (_MEANWHILE_S, meanwhile)
        try:
            self._sleepers[sleeper] = None
            while not happened() and (left_s := until - time.monotonic()) > 0:
                if self.wakeup.asked:
                    self.wakeup.heed()
                if is_finalizing():
                    raise too_late()
                sleeper.sleep(min(left_s, longest_s))
                look()
        finally:
            self._sleepers.pop(sleeper, None)

    def look_again(self) -> None:
        """Have threads that sleep see whether they may do something by themselves."""
        for sleeper in list(self._sleepers):
            sleeper.wake()

    def notify(self) -> None:
        """Something may have happened. Cheap unless a thread waits for it: only waking a thread is not."""
        self._spin_wait.notify()
        if self._sleepers:
            for sleeper in list(self._sleepers):
                if sleeper.happened():
                    sleeper.wake()


async def _done(action: Callable[..., T], *arguments: Any) -> T:
    return action(*arguments)


class SteadyFuture(Future[T]):
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

    def result(self, timeout: float | None = None) -> T:
        """As `Future.result`."""
        error = self.exception(timeout)
        if error is None:
            found: Any = self._result
            return found  # type: ignore[no-any-return]
        try:
            raise error
        finally:
            del self, error  # the traceback of the error must not lead back to it

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As `Future.exception`."""
        if not self.done():
            if is_finalizing():
                raise too_late()
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


def submit(thread: LoopThread, work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the loop of a thread. Returns its future at once; cancelling that cancels the coroutine."""
    future: SteadyFuture[T] = SteadyFuture()
    call = LoopCall(thread, work, lambda: _hand_over(future, call))
    future.add_done_callback(lambda done: call.give_up() if done.cancelled() else None)
    call.start()
    return future


def _hand_over(future: Future[Any], call: LoopCall[Any]) -> None:
    """The outcome of a call, for who has its future."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call.result())
    except BaseException as error:
        future.set_exception(error)


def running_loop() -> asyncio.AbstractEventLoop:
    """The loop of the task that calls this, for a client that is to live there.

    Raises:
        RuntimeError: none runs.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError("no running event loop: asyncio's clients are made and used in coroutines that asyncio "
                           "runs, as asyncio.run(main()) does") from None


class LoopWaits:
    """Waits in tasks of the loop that the client runs on.

    Attributes:
        loop: the only loop whose tasks may wait, since the client's sockets are there; None while it has none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self.wakeup = _Wakeup()
        self._sleepers: dict[asyncio.Future[None], Callable[[], Any]] = {}
        self._turn_at = 0.0

    def may_wait(self) -> bool:
        """True: a task may always wait."""
        return True

    def step_aside(self) -> bool:
        """False: this is the loop's turn."""
        return False

    def running_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of this task, which must be the client's.

        Raises:
            RuntimeError: it is another one: a wait there would never end.
        """
        running = running_loop()
        if self.loop is not None and self.loop is not running:
            raise RuntimeError("this client lives on another event loop, the one that ran when it was first used: make "
                               "a client on each loop; other threads call asyncio.run_coroutine_threadsafe()")
        return running

    async def run(self, steps: Steps[T]) -> T:
        """Run a rule to its end. A task that is cancelled meanwhile is cancelled where the rule waits.

        Raises:
            RuntimeError: this task is on another loop than the client.
        """
        self.running_loop()
        try:
            wait = next(steps)
            while True:
                try:
                    while True:
                        wait = steps.send(await (self.wait(wait) if isinstance(wait, Wait) else wait))
                except StopIteration:
                    raise
                except BaseException as error:  # the rule's own is raised once more: it has ended
                    wait = steps.throw(error)
        except StopIteration as ended:
            result: T = ended.value
            return result

    async def give_turn(self) -> None:
        """Let other tasks have a turn now and then, in front of what may be there at once."""
        now = time.monotonic()
        if now >= self._turn_at:
            self._turn_at = now + TURNS_S
            await asyncio.sleep(0)

    async def then_turn(self, work: Awaitable[T]) -> T:
        """Do something that need not wait, then let other tasks have a turn now and then.

        Not in front of it: what tasks do that begin one behind the other, as of `asyncio.gather`, stays in that order.
        """
        try:
            done = await work
        except Exception:  # who tries again at once would hold the loop up
            await self.give_turn()
            raise
        await self.give_turn()
        return done

    async def wait(self, wait: Wait) -> None:
        """Sleep until something has happened, or until the time is over. Others have a turn in any case."""
        if wait.happened() or wait.until <= time.monotonic():
            await asyncio.sleep(0)
            return
        while not wait.happened() and (left_s := wait.until - time.monotonic()) > 0:
            self.wakeup.heed()
            asleep: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._sleepers[asleep] = wait.happened
            try:
                async with asyncio.timeout(None if left_s == math.inf else left_s):
                    await asleep
            except TimeoutError:
                return
            finally:
                del self._sleepers[asleep]

    def wake(self) -> None:
        """End the wait of one task with `WakeupError`, or the next wait. On the loop."""
        self.wakeup.ask()
        for asleep in self._sleepers:
            if not asleep.done():
                asleep.set_result(None)

    def notify(self) -> None:
        """Something may have happened. On the loop."""
        for asleep, happened in self._sleepers.items():
            if not asleep.done() and happened():
                asleep.set_result(None)
