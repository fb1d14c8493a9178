"""What the interpreter does by itself in the middle of something, kept from where it does harm.

The garbage collector runs after so many new objects, on the guess that some of them are garbage already. Of a reply
that becomes a hundred thousand objects none is, and looking at them and at all else takes as long as making them.

Ctrl-C runs its handler, in the main thread, between two steps of a program.
"""

from __future__ import annotations

import _thread
import gc
import sys
from _thread import RLock
from collections.abc import Callable
from functools import wraps
from types import BuiltinFunctionType
from typing import Any, ParamSpec, TypeVar

__all__ = ["SteadyLock", "has_gil", "has_threads", "uncollected"]

_P = ParamSpec("_P")
_T = TypeVar("_T")
_SLICE_S = 0.25
_RLOCK: Any = RLock  # may be extended in CPython, whatever type checkers are told


def has_gil() -> bool:
    """Whether one thread at a time runs Python."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def has_threads() -> bool:
    """Whether threads are the system's. Where gevent or eventlet has taken their place, they take turns within one.

    Then a wait that Python does not see holds all of them up, the one that is waited for as well.
    """
    return isinstance(_thread.start_new_thread, BuiltinFunctionType)


def uncollected(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a function run without the collector, which goes on behind it. One that was off before stays off.

    It is for short functions that wait for nothing: all threads do without the collector meanwhile.
    """
    @wraps(function)
    def call(*given: _P.args, **named: _P.kwargs) -> _T:
        if not gc.isenabled():
            return function(*given, **named)
        try:  # first: Ctrl-C may come behind any call
            gc.disable()
            return function(*given, **named)
        finally:
            gc.enable()

    return call


class SteadyLock(_RLOCK):  # type: ignore[misc]
    """A `threading.RLock` that Ctrl-C does not leave locked, for what several threads use.

    CPython 3.14 lets a signal come when `with` has taken a lock and not yet begun its block (gh-148874): nobody gives
    that lock back. Signals come behind calls, but not behind what a `for` statement calls.

    Nor does it hold up the interpreter's end: threads that do not run any more then have it no longer.
    """

    __slots__ = ()

    def __enter__(self) -> bool:
        while True:
            for taken in map(self.acquire, (True,), (_SLICE_S,)):
                if taken:
                    return True  # no call may stand in between
            if sys.is_finalizing():
                self.after_fork()

    def after_fork(self) -> None:
        """Another thread may have held it, which is not here to release it: in a forked child, and at the end."""
        self._at_fork_reinit()
