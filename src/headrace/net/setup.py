"""What a connection needs besides requests: versions and SASL at its beginning, SASL again before a session ends.

Steps of a mechanism that take long are made in a thread, so that the loop goes on. While SASL is renewed on a working
connection (KIP-368) nothing else is written; replies in flight come first, for a broker answers in order.

It must not know requests. Read next: `machines.cluster.handshake`, which decides; `net.connection`, which owns this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from headrace.errors import KafkaError, KafkaException, ProtocolError
from headrace.machines.cluster.handshake import Handshake, Say, opening_frame
from headrace.machines.cluster.sasl.exchange import Later
from headrace.machines.machine import Send
from headrace.net.errors import CANCELLED, Phase
from headrace.net.settings import ConnectionSettings
from headrace.net.stream import FrameWriter
from headrace.types.records import NodeAddress
from headrace.wire.api import negotiate
from headrace.wire.schema import Request

__all__ = ["ConnectionSetup", "ConnectionSetupOwner"]

_EARLIEST, _SPREAD = 0.85, 0.1
"""A session is renewed after 85 to 95 % of its life, so that connections do not all do it at once (as Java does)."""
_LEAST_S = 1.05
"""Kafka refuses a renewal less than a second after the one before (`KafkaChannel`, KIP-368)."""


class ConnectionSetupOwner(Protocol):
    """The owner of a setup: the connection."""

    def on_open(self) -> None:
        """Requests may be written."""

    def on_pause(self) -> None:
        """No more requests may be written until `on_open`."""

    def close(self, reason: KafkaException) -> None:
        """The setup failed: the connection is of no use."""


class ConnectionSetup:
    """The setup of one socket. Made anew for each.

    Args:
        settings: what all connections share.
        node: the broker.
        first_version: version of ApiVersions to begin with.
        owner: is called when requests may be written, when not, and on failure.

    Attributes:
        handshake: knows the broker's versions.
        versions: those that were negotiated, by class of the request and `Send.max_version`.
    """

    def __init__(
        self, settings: ConnectionSettings, node: NodeAddress, first_version: int, owner: ConnectionSetupOwner
    ) -> None:
        self._settings, self._node, self._owner = settings, node, owner
        self._loop = asyncio.get_running_loop()
        self._outlet: FrameWriter | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._thinking: asyncio.Task[None] | None = None
        self._wait_s = 0.0  # least time until the next renewal
        self._traffic = settings.traffic.of(node)
        self.versions: dict[tuple[type[Request], int | None], int] = {}
        self.handshake = Handshake(settings.software_version, first_version)

    def version(self, send: Send) -> int:
        """The version of a request to write.

        Raises:
            KafkaException: the broker and we share none that the request allows.
        """
        key = (type(send.request), send.max_version)
        version = self.versions.get(key)
        if version is None:
            version = self.versions[key] = negotiate(key[0], self.handshake.ranges, key[1])
        return version

    def phase(self, proved: bool) -> Phase:
        """How far the conversation is; `proved` when a request was answered."""
        if not self.handshake.ready:
            if not self.handshake.authenticating:
                return Phase.OPENING
            return Phase.RENEWAL if self.handshake.renewal else Phase.SASL
        return Phase.OPEN if proved else Phase.FIRST_REQUEST

    async def prepare(self) -> None:
        """Get what the first messages need: with OAUTHBEARER a token.

        Raises:
            KafkaException: it cannot be had.
        """
        if self._settings.mechanism is not None:
            version = self.handshake.version
            self.handshake = Handshake(
                self._settings.software_version, version, await self._settings.mechanism(self._node))

    def begin(self, outlet: FrameWriter) -> None:
        """The socket is open: send the first message."""
        self._outlet = outlet
        self._send(self.handshake.begin())

    def on_frame(self, frame: bytes | bytearray | memoryview) -> None:
        """Take the answer to the last frame.

        Raises:
            KafkaException: the broker refuses.
            ProtocolError: it is no answer to that.
        """
        self._traffic.on_received(frame)
        if self._thinking is not None and not self._thinking.done():
            raise ProtocolError("the broker sent more than it was asked during authentication")
        following = self.handshake.on_frame(frame)
        if callable(following):
            self._think(self._answer(following))
        else:
            self._go_on(following)

    def stop(self) -> None:
        """The socket is gone, or will be."""
        for pending in (self._renewal, self._thinking):
            if pending is not None:
                pending.cancel()
        self._thinking = None

    def _send(self, following: Say) -> None:
        assert self._outlet is not None
        parts = opening_frame(following, self._settings.client_id)
        self._traffic.on_sent(following[0], sum(map(len, parts)))
        self._outlet.write(parts)

    def _go_on(self, following: Say | None) -> None:
        if following is not None:
            self._send(following)
            return
        session_s = self.handshake.session_s
        if session_s:
            wait_s = session_s * (_EARLIEST + _SPREAD * self._settings.jitter())
            self._renewal = self._loop.call_later(max(wait_s, self._wait_s), self._renew)
        self._owner.on_open()

    def _think(self, work: Coroutine[Any, Any, None]) -> None:
        self._thinking = self._loop.create_task(work)
        self._thinking.add_done_callback(self._on_thought)

    def _on_thought(self, thought: asyncio.Task[None]) -> None:
        """Others than the connection may cancel it, with all tasks of their loop; nothing would follow."""
        if thought is self._thinking and thought.cancelled():
            self._owner.close(CANCELLED)

    async def _answer(self, slow: Later) -> None:
        try:
            self._go_on(self.handshake.settle(await self._loop.run_in_executor(None, slow)))
        except Exception as error:  # whatever a mechanism's library raises ends this attempt
            self._owner.close(_failure(error))

    def _renew(self) -> None:
        self._think(self._authenticate_again())

    async def _authenticate_again(self) -> None:
        assert self._settings.mechanism is not None
        try:
            self.handshake = self.handshake.renewed(await self._settings.mechanism(self._node))
        except Exception as error:
            self._owner.close(_failure(error))
            return
        self._wait_s = _LEAST_S
        self._owner.on_pause()
        self._send(self.handshake.begin())


def _failure(error: Exception) -> KafkaException:
    if isinstance(error, KafkaException):
        return error
    return KafkaException(KafkaError(KafkaError._AUTHENTICATION, f"authentication failed: {error!r}"))
