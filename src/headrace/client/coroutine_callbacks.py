"""Callbacks of asyncio's clients may be coroutine functions: what they begin runs as a task of its own.

It must not know whose callbacks they are. Read next: `client.producer.aio_producer`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Mapping
from typing import Any

__all__ = ["started", "with_started"]

_CALLED = ("error_cb", "stats_cb", "throttle_cb")
_running: set[asyncio.Task[Any]] = set()  # a loop holds its tasks weakly


def started(callback: Any) -> Any:
    """A callback that may be a coroutine function, as a function: it begins what it is to await on the running loop."""
    if not callable(callback):
        return callback

    def start(*arguments: Any) -> None:
        result = callback(*arguments)
        if inspect.iscoroutine(result):
            task = asyncio.get_running_loop().create_task(_logged(result))
            _running.add(task)
            task.add_done_callback(_running.discard)

    return start


def with_started(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties whose callbacks may be called as functions; not `on_delivery`, which is seen to with each record."""
    return {name: started(value) if name in _CALLED else value for name, value in properties.items()}


async def _logged(begun: Coroutine[Any, Any, Any]) -> None:
    try:
        await begun
    except Exception as error:
        asyncio.get_running_loop().call_exception_handler({"message": "a callback raised", "exception": error})
