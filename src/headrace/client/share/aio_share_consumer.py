"""`AIOShareConsumer`: `ShareConsumer` on the running event loop.

It signs what `client.share.share_engine` does, and must not know how that waits.
Read next: `client.share.share_engine`, then `machines.share.share_fetcher` for what is fetched when.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.core import LiveClient
from headrace.client.share.polled_messages import Messages
from headrace.client.share.share_engine import AcknowledgementCallback, ShareEngine
from headrace.client.waits import LoopWaits, running_loop
from headrace.errors import KafkaException
from headrace.records import Message
from headrace.types.metrics import Metrics
from headrace.types.records import TopicPartition
from headrace.types.share import AcknowledgeType

__all__ = ["AIOShareConsumer"]


class AIOShareConsumer(LiveClient):
    """A member of a share group on the running event loop: `ShareConsumer`, awaited.

    Close it, or use it in an `async with` statement. One call at a time: a call from another task while one goes on
    raises `ConcurrentModificationException`. Callbacks may be coroutine functions.

    Args:
        config: properties, see `headrace.config.PROPERTIES`.

    Raises:
        ConfigError: an unknown property, a bad value, one that share groups do not have, or no "group.id".
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._loop = running_loop()
        self._waits = LoopWaits(self._loop)
        self._given = ApplicationCallbacks(self)
        self._consumer = ShareEngine(config, self._given, self._waits.notify, awaits=True)

    @property
    def _engine(self) -> ShareEngine:
        """The consumer, for tasks of its own loop."""
        self._waits.running_loop()
        return self._consumer

    async def subscribe(self, topics: list[str]) -> None:
        """As `ShareConsumer.subscribe`, awaited."""
        await self._waits.run(self._engine.subscribe(topics))

    async def unsubscribe(self) -> None:
        """As `ShareConsumer.unsubscribe`, awaited."""
        await self._waits.run(self._engine.unsubscribe())

    async def subscription(self) -> list[str]:
        """As `ShareConsumer.subscription`, awaited."""
        return self._engine.subscription()

    async def poll(self, timeout: float | None = -1) -> Messages:
        """As `ShareConsumer.poll`, awaited. Nothing is lost when it is cancelled."""
        self._waits.wakeup.heed()
        await self._waits.give_turn()
        return await self._waits.run(self._engine.poll(timeout))

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            await self._waits.give_turn()
            self._engine.want_one()  # as in `ShareConsumer`; with no turn until it polls
            for message in await self.poll():
                yield message

    async def acknowledge(self, message: Message, ack_type: int = AcknowledgeType.ACCEPT) -> None:
        """As `ShareConsumer.acknowledge`, awaited."""
        self._engine.acknowledge(message, ack_type)

    async def acknowledge_offset(
        self, topic: str, partition: int, offset: int, ack_type: int = AcknowledgeType.ACCEPT
    ) -> None:
        """As `ShareConsumer.acknowledge_offset`, awaited."""
        self._engine.acknowledge_offset(topic, partition, offset, ack_type)

    async def commit_sync(self, timeout: float | None = 60) -> dict[TopicPartition, KafkaException | None]:
        """As `ShareConsumer.commit_sync`, awaited."""
        return await self._waits.run(self._engine.commit_sync(timeout))

    async def commit_async(self) -> None:
        """As `ShareConsumer.commit_async`, awaited."""
        await self._waits.run(self._engine.commit_async())

    async def set_acknowledgement_commit_callback(self, callback: AcknowledgementCallback | None) -> None:
        """As `ShareConsumer.set_acknowledgement_commit_callback`, awaited."""
        self._engine.set_callback(callback)

    async def acquisition_lock_timeout_ms(self) -> int | None:
        """As `ShareConsumer.acquisition_lock_timeout_ms`, awaited."""
        return self._engine.lock_timeout_ms()

    async def metrics(self) -> Metrics:
        """As `ShareConsumer.metrics`, awaited."""
        return self._engine.metrics()

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """As `ShareConsumer.set_sasl_credentials`, awaited."""
        self._engine.set_sasl_credentials(username, password)

    def wakeup(self) -> None:
        """As `ShareConsumer.wakeup`; not awaited."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._waits.wake)

    async def close(self) -> None:
        """As `ShareConsumer.close`, awaited."""
        self._waits.wakeup.forget()
        await self._waits.run(self._engine.close())

    async def __aenter__(self) -> AIOShareConsumer:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()
