"""Whether other threads go on while native code is at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

AROUND = 2
"""Turns that another thread may have just before and just after an action that lets it have none."""


class Turns:
    """Counts how often another thread had a turn; it gives each back at once."""

    def __init__(self) -> None:
        self.count = 0
        self._ended = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Turns:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._thread.join()

    def _run(self) -> None:
        while not self._ended:
            self.count += 1
            time.sleep(0)

    def during(self, action: Callable[[], object]) -> int:
        """Turns while the action runs."""
        before = self.count
        action()
        return self.count - before


@pytest.fixture
def turns() -> Iterator[Turns]:
    with Turns() as counted:
        yield counted


def had_some(turns: Turns, action: Callable[[], object]) -> bool:
    """Whether another thread has turns in one of some calls: a busy machine may need more than one to wake it."""
    return any(turns.during(action) > AROUND for _ in range(20))
