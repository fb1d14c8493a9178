"""A profile by function that counts CPU time of every thread, native code included.

Each tick looks at every thread's own CPU clock and gives what was used since the last tick to the function that the
thread is in. So time inside a native call belongs to the Python function that made it, and waiting costs nothing.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from types import FrameType

_TICK_S = 0.001
_ROWS = 25


class CpuProfile:
    """Samples all threads of this process while it is entered from the main thread."""

    def __init__(self) -> None:
        self._own: defaultdict[str, float] = defaultdict(float)
        self._under: defaultdict[str, float] = defaultdict(float)
        self._clocks: dict[int, float] = {}

    def __enter__(self) -> CpuProfile:
        self._tick(0, None)
        self._own.clear()
        self._under.clear()
        signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, _TICK_S, _TICK_S)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)

    def _tick(self, _signal: int, frame: FrameType | None) -> None:
        me = threading.get_ident()
        for thread, seen in sys._current_frames().items():
            try:
                used_s = time.clock_gettime(time.pthread_getcpuclockid(thread))
            except OSError:
                continue  # it has ended meanwhile
            delta_s = used_s - self._clocks.get(thread, 0.0)
            self._clocks[thread] = used_s
            if delta_s > 0:
                self._count(frame if thread == me else seen, delta_s)

    def _count(self, frame: FrameType | None, seconds: float) -> None:
        if frame is None or frame.f_code is CpuProfile._tick.__code__:
            return  # the profile's own cost is nobody's
        self._own[_name(frame)] += seconds
        names = set()
        while frame is not None:
            names.add(_name(frame))
            frame = frame.f_back
        for name in names:
            self._under[name] += seconds

    def lines(self) -> list[str]:
        """The functions that used most, with their own time and that of all they called, in percent."""
        total = sum(self._own.values()) or 1.0
        rows = [f"{'own %':>6} {'all %':>6}  function   (CPU {total:.2f} s in samples of {_TICK_S * 1e3:.0f} ms)"]
        for name, seconds in sorted(self._own.items(), key=lambda row: -row[1])[:_ROWS]:
            rows.append(f"{seconds / total * 100:6.1f} {self._under[name] / total * 100:6.1f}  {name}")
        return rows


def _name(frame: FrameType) -> str:
    path = "/".join(frame.f_code.co_filename.split("/")[-2:])
    return f"{path}:{frame.f_code.co_firstlineno} {frame.f_code.co_qualname}"


@contextlib.contextmanager
def maybe(wanted: bool) -> Iterator[None]:
    """Profile the block and print the result when `wanted`."""
    if not wanted:
        yield
        return
    with CpuProfile() as profile:
        yield
    print("\n".join(profile.lines()))
