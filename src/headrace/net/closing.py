"""What a client waits for before it closes its connections: the last replies, where closing at once would lose bytes.

Knows no requests. Read next: `machines.cluster.in_flight`, which knows whether a reply is owed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from headrace.machines.cluster.in_flight import InFlightRequests

__all__ = ["last_replies"]

_PATIENCE_S = 1.0


async def last_replies(pipelines: Iterable[InFlightRequests]) -> None:
    """Wait, a second at most, until no reply is owed."""
    waiting = []
    for pipeline in pipelines:
        if pipeline.owed:
            paid = asyncio.get_running_loop().create_future()
            pipeline.on_paid = _resolving(paid)
            waiting.append(paid)
    if waiting:
        await asyncio.wait(waiting, timeout=_PATIENCE_S)


def _resolving(paid: asyncio.Future[None]) -> Callable[[], None]:
    def resolve() -> None:
        if not paid.done():
            paid.set_result(None)

    return resolve
