"""Ctrl-C at any moment: a timer's signal comes between any two steps of a program, as the key does, but often.

`keys` is a fixture. The test's work is done again and again, and interrupted each time.
"""

from __future__ import annotations

import gc
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

__all__ = ["INTERRUPTED", "CtrlC", "ctrl_c_after", "interrupted", "keys", "needs_timers"]

needs_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that send signals")
INTERRUPTED = (
    # Python says so of a call that ends between its first two steps, and of one that forgets an object.
    needs_timers, pytest.mark.filterwarnings("ignore:(?s).*was never awaited"),
    pytest.mark.filterwarnings("ignore:(?s).*weakref callback:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:(?s).*coroutine:pytest.PytestUnraisableExceptionWarning"),
)
"""Marks of tests that are interrupted at any moment."""


def interrupted(test: Callable[..., None]) -> Callable[..., None]:
    """A test that is interrupted at any moment."""
    for mark in INTERRUPTED:
        test = mark(test)
    return test


class CtrlC:
    """Interrupts the main thread once, some time after it was asked to.

    Attributes:
        count: how often it did.
    """

    def __init__(self) -> None:
        self.count = 0
        self._armed = False

    def on_signal(self, *_: object) -> None:
        """The handler."""
        if self._armed:
            self._armed = False
            self.count += 1
            raise KeyboardInterrupt

    def arm(self, seconds: float) -> None:
        """Interrupt after so many seconds."""
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def again_and_again(self, within_s: float, work: Callable[[], None], seconds: float, times: int) -> None:
        """Do something and interrupt it each time, `within_s` seconds after it began at the latest.

        Args:
            within_s: as said.
            work: what is done.
            seconds: for how long.
            times: how often it is interrupted at least, on a busy machine, for which there are 20 s more.
        """
        end, last, enough = time.monotonic() + seconds, time.monotonic() + seconds + 20, self.count + times
        try:
            while True:
                try:
                    self._armed = False
                    if (now := time.monotonic()) >= end and (self.count >= enough or now >= last):
                        assert self.count >= enough
                        return
                    self.arm(random.uniform(1e-5, within_s))
                    work()
                    self._armed = False
                except KeyboardInterrupt:
                    if random.random() < 0.5:  # many programs go on, or close, right here
                        work()
        finally:
            self._armed = False

    def end(self) -> None:
        """Nothing is interrupted any more."""
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in what is done within this, after so many seconds."""
    keys = CtrlC()
    before = signal.signal(signal.SIGALRM, keys.on_signal)
    try:
        keys.arm(seconds)
        yield
    finally:
        keys.end()
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def keys() -> Iterator[CtrlC]:
    """Ctrl-C, for the time of a test."""
    made = CtrlC()
    gc.collect()
    gc.disable()  # Python drops what is raised while an object is finalised
    before = signal.signal(signal.SIGALRM, made.on_signal)
    yield made
    made.end()
    signal.signal(signal.SIGALRM, before)
    gc.enable()
    gc.collect()  # what was interrupted goes here, and not in another test
