"""Ctrl-C and SIGTERM for commands that end in an orderly way."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["told_of_signals"]


@contextmanager
def told_of_signals(handler: Callable[[int], None]) -> Iterator[None]:
    """Call a function with the number of each SIGINT and SIGTERM; what stood there before comes back in the end."""
    def on_signal(number: int, _frame: FrameType | None) -> None:
        handler(number)

    before: dict[int, Any] = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
