"""A request that belongs to no machine: its answer goes to a future.

Knows asyncio's futures, no sockets. Read next: `net.driver`.
"""

from __future__ import annotations

import asyncio

from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.machines.machine import Send
from headrace.wire.schema import Response, Struct

__all__ = ["PendingReply"]


class PendingReply:
    """The caller of a single request. One that has given up is not called.

    Args:
        loop: the waiting caller's loop.

    Attributes:
        answer: resolves to the reply, or raises KafkaException; ClientClosedError when the client was closed meanwhile.
    """

    __slots__ = ("answer",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.answer: asyncio.Future[Response] = loop.create_future()

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        """The reply came."""
        if not self.answer.done():
            assert isinstance(reply, Response)
            self.answer.set_result(reply)

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        """No reply will come."""
        if not self.answer.done():
            closed = error == KafkaError._DESTROY
            self.answer.set_exception(ClientClosedError(error.str()) if closed else KafkaException(error))
