"""Waits for what happens to clients that nobody holds any more."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

SOON_S = 20.0


def until(happened: Callable[[], Any]) -> None:
    """Wait until something has happened, which it does soon."""
    deadline = time.monotonic() + SOON_S
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


async def aio_until(happened: Callable[[], Any]) -> None:
    """As `until`, while the loop runs on."""
    async with asyncio.timeout(SOON_S):
        while not happened():
            await asyncio.sleep(0.01)


def is_gone(reference: weakref.ref[Any]) -> bool:
    """True when nothing but garbage led to an object. All that a client has on a loop leads to its driver."""
    gc.collect()
    return reference() is None
