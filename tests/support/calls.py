"""Counts Python calls, which is exact on any machine: what a record costs where each is a request of its own."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from headrace.net.thread import loop_thread


class Calls:
    """Calls of Python functions since `counted` began.

    Attributes:
        loop: on the thread of the loop, by function.
        here: on the caller's thread.
    """

    def __init__(self) -> None:
        self.loop: Counter[str] = Counter()
        self.here: Counter[str] = Counter()

    def shown(self, records: int) -> str:
        """The functions that are called most, with calls per record."""
        counters = (("loop", self.loop), ("here", self.here))
        return "\n".join(f"{where:>5} {count / records:7.2f}  {name}"
                         for where, counter in counters for name, count in counter.most_common(120))


def _counting(counter: Counter[str]) -> Callable[[FrameType, str, Any], None]:
    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            counter[f"{code.co_filename.rpartition('/')[2]}:{code.co_qualname}"] += 1

    return profile


@contextmanager
def counted() -> Iterator[Calls]:
    """Count the calls of this thread, and of the thread that all blocking clients share.

    The collector rests meanwhile: what it ends is other tests'.
    """
    calls, thread = Calls(), loop_thread()

    async def begin() -> None:
        sys.setprofile(_counting(calls.loop))

    async def end() -> None:
        sys.setprofile(None)

    gc.collect()
    gc.disable()
    thread.call(begin())
    sys.setprofile(_counting(calls.here))
    try:
        yield calls
    finally:
        sys.setprofile(None)
        thread.call(end())
        gc.enable()
