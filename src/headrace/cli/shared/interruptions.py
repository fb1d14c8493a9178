"""Ctrl-C and SIGTERM for commands whose main thread is busy: a thread of their own answers at once.

Read next: `headrace.cli.run`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Final

from headrace.cli.shared.signals import name_of

__all__ = ["Interruptions"]

_WATCHED: Final = (signal.SIGINT, signal.SIGTERM)


class Interruptions:
    """Counts signals and has each answered; a context manager of the main thread.

    Args:
        answer: called on a thread of its own with the count so far, in the order in which signals came.

    Attributes:
        count: signals so far.
        number: the first signal, 0 when none came.
        patient: while False, a second signal raises KeyboardInterrupt in the main thread.
    """

    def __init__(self, answer: Callable[[int], None]) -> None:
        self.count = 0
        self.number = 0
        self.patient = False
        self._answer = answer
        # Its put() may interrupt itself, as a signal's handler can.
        self._came: SimpleQueue[int] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="headrace-interruptions", daemon=True)
        self._before: dict[int, Any] = {}

    @property
    def name(self) -> str:
        """What the first signal is called."""
        return name_of(self.number) if self.number else ""

    def __enter__(self) -> Interruptions:
        self._thread.start()
        self._before = {number: signal.getsignal(number) for number in _WATCHED}
        self.arm()
        return self

    def arm(self) -> None:
        """Take the signals, again where another library has taken them meanwhile: PySpark does when it starts."""
        for number in _WATCHED:
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.number = self.number or number
        self._came.put(self.count)
        if self.count > (2 if self.patient else 1):
            raise KeyboardInterrupt

    def _serve(self) -> None:
        while (count := self._came.get()) > 0:
            self._answer(count)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._came.put(0)
        self._thread.join()
