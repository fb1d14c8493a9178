"""The cyclic garbage collector, kept from looking again and again at what is being made.

It runs after so many new objects, on the guess that some of them are garbage already. Of a reply that becomes a hundred
thousand objects none is, and looking at them and at all else takes as long as making them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["uncollected"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def uncollected(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a function run without the collector, which goes on behind it. One that was off before stays off.

    It is for short functions that wait for nothing: all threads do without the collector meanwhile.
    """
    @wraps(function)
    def call(*given: _P.args, **named: _P.kwargs) -> _T:
        if not gc.isenabled():
            return function(*given, **named)
        gc.disable()
        try:
            return function(*given, **named)
        finally:
            gc.enable()

    return call
