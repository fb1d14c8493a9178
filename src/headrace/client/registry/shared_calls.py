"""One request for many who ask the same at the same time. Knows no registry. Read next:
`client.registry.registry_engine`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

__all__ = ["SharedCalls"]

_T = TypeVar("_T")


class _Call:
    """Work that goes on, and how many wait for it."""

    __slots__ = ("askers", "work")

    def __init__(self, work: asyncio.Task[Any]) -> None:
        self.work = work
        self.askers = 0


class SharedCalls:
    """Runs work once for all who ask for it before it is done. On a loop; what other loops began is not waited for."""

    def __init__(self) -> None:
        self._calls: dict[tuple[asyncio.AbstractEventLoop, Hashable], _Call] = {}

    async def once(self, key: Hashable, start: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """The result of work that goes on, or that begins now. It is cancelled when nobody waits for it any more.

        Args:
            key: what is asked for.
            start: makes the work.
        """
        where = (asyncio.get_running_loop(), key)
        call = self._calls.get(where)
        if call is None:
            call = self._calls[where] = _Call(asyncio.create_task(start()))
            call.work.add_done_callback(lambda _: self._end(where, call))
        call.askers += 1
        try:
            result: _T = await asyncio.shield(call.work)
            return result
        finally:
            call.askers -= 1
            if not call.askers and not call.work.done():
                self._end(where, call)  # who asks now needs work of their own
                call.work.cancel()

    def _end(self, where: tuple[asyncio.AbstractEventLoop, Hashable], call: _Call) -> None:
        if self._calls.get(where) is call:
            del self._calls[where]
