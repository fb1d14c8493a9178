"""`AIOConsumer`: `Consumer` on the running event loop.

It signs what `client.consumer.consumer_engine` does, and must not know how that waits.
Read next: `client.consumer.consumer_engine`, then `machines.consumer.fetcher` for what is fetched when.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from headrace.arguments import given_properties
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.consumer.consumer_engine import ConsumerEngine
from headrace.client.consumer.rebalance import RebalanceCallback
from headrace.client.core import LiveClient
from headrace.client.waits import TURNS_S, LoopWaits, Steps, running_loop
from headrace.records import Message, PollFastPath
from headrace.types.records import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    from headrace.client.consumer.consumer_health import ConsumerHealth
    from headrace.records.columns.arrow_batch import ArrowBatch
    from headrace.types.metrics import Metrics

__all__ = ["AIOConsumer"]

T = TypeVar("T")


class AIOConsumer(LiveClient):
    """A consumer on the running event loop, under confluent_kafka's names: `Consumer`, awaited.

    Close it, or use it in an `async with` statement. One that is just let go leaves its group and commits nothing.
    Callbacks may be coroutine functions.

    `async for` over it gives one message after the other, for ever. After `close()` every method but `close()` raises
    `ClientClosedError`, a `RuntimeError`.

    Args:
        consumer_conf: properties, see `headrace.config.PROPERTIES`.
        max_workers, executor: without effect: no threads are needed.

    Raises:
        ConfigError: an unknown property or a bad value.
        ValueError: `max_workers` is less than 1, without an executor.
    """

    def __init__(
        self, consumer_conf: Mapping[str, Any], max_workers: int = 100, executor: Executor | None = None
    ) -> None:
        if executor is None and max_workers < 1:
            raise ValueError("max_workers must be at least 1")
        self._running = 0  # calls in which callbacks may run
        self._fast_path = PollFastPath(AIOConsumer._next, TURNS_S)
        self._loop = running_loop()
        self._waits = LoopWaits(self._loop)
        self._given = ApplicationCallbacks(self)
        properties = given_properties(consumer_conf, None, {})
        self._consumer = ConsumerEngine(properties, self._given, self._waits.notify, awaits=True)

    @property
    def _engine(self) -> ConsumerEngine:
        """The consumer, for tasks of its own loop."""
        self._waits.running_loop()
        return self._consumer

    # Reading

    async def poll(self, timeout: float | None = -1) -> Message | None:
        """As `Consumer.poll`, awaited."""
        message = self._fast_path.take()
        return await self._poll(timeout) if message is None else message

    async def _poll(self, timeout: float | None) -> Message | None:
        """`poll` in the general way; opens the fast path where only records are to be handed out next."""
        await self._waits.give_turn()
        self._fast_path.close()
        message = self._engine.take_one()
        if message is None:
            messages = await self._run(self._engine.consume(1, timeout, []))
            return messages[0] if messages else None
        if not self._running:
            self._engine.lend(self._fast_path)
        return message

    async def _next(self, timeout: float | None) -> Message:
        """The next message, in the general way."""
        while (message := await self._poll(timeout)) is None:
            pass
        return message

    async def _run(self, steps: Steps[T]) -> T:
        """Read with callbacks, which may read as well."""
        self._running += 1
        try:
            return await self._waits.run(steps)
        finally:
            self._running -= 1

    async def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """As `Consumer.consume`, awaited. Nothing is lost when it is cancelled: the messages come again."""
        await self._waits.give_turn()
        self._fast_path.close()
        messages: list[Message] = []
        if self._engine.take(messages, num_messages):
            return messages
        return await self._run(self._engine.consume(num_messages, timeout, messages))

    async def consume_arrow(self, num_messages: int = 100_000, timeout: float | None = 1.0) -> ArrowBatch:
        """As `Consumer.consume_arrow`, awaited. Nothing is lost when it is cancelled: the records come again."""
        await self._waits.give_turn()
        self._fast_path.close()
        return await self._run(self._engine.consume_arrow(num_messages, timeout))

    async def consume_batches(
        self, num_messages: int = 100_000, timeout: float | None = 1.0
    ) -> AsyncIterator[ArrowBatch]:
        """As `Consumer.consume_batches`, for `async for`."""
        while True:
            batch = await self.consume_arrow(num_messages, timeout)
            if batch:
                yield batch

    def __aiter__(self) -> AsyncIterator[Message]:
        return self._fast_path.each(self) if type(self).poll is AIOConsumer.poll else self._each()

    async def _each(self) -> AsyncIterator[Message]:
        while True:
            message = await self.poll()
            if message is not None:
                yield message

    # Choosing what to read

    async def subscribe(
        self, topics: list[str], on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None, on_lost: RebalanceCallback | None = None,
    ) -> None:
        """As `Consumer.subscribe`, awaited."""
        await self._engine.subscribe(topics, on_assign, on_revoke, on_lost)

    async def unsubscribe(self) -> None:
        """As `Consumer.unsubscribe`, awaited."""
        await self._waits.run(self._engine.unsubscribe())

    async def assign(self, partitions: list[TopicPartition]) -> None:
        """As `Consumer.assign`, awaited."""
        await self._engine.assign(partitions)

    async def unassign(self) -> None:
        """As `Consumer.unassign`, awaited."""
        await self._engine.assign([])

    async def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """As `Consumer.incremental_assign`, awaited."""
        await self._engine.incremental_assign(partitions)

    async def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """As `Consumer.incremental_unassign`, awaited."""
        await self._engine.incremental_unassign(partitions)

    async def assignment(self) -> list[TopicPartition]:
        """As `Consumer.assignment`, awaited."""
        return self._engine.assignment()

    async def pause(self, partitions: list[TopicPartition]) -> None:
        """As `Consumer.pause`, awaited."""
        await self._engine.pause(partitions)

    async def resume(self, partitions: list[TopicPartition]) -> None:
        """As `Consumer.resume`, awaited."""
        await self._engine.resume(partitions)

    async def seek(self, partition: TopicPartition) -> None:
        """As `Consumer.seek`, awaited."""
        await self._engine.seek(partition)

    # Offsets

    async def commit(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None, asynchronous: bool = True
    ) -> list[TopicPartition] | None:
        """As `Consumer.commit`, awaited."""
        if not asynchronous:
            return await self._engine.offsets.commit(message, offsets)
        if self._engine.offsets.ask_to_commit(message, offsets):
            self._engine.offsets.begin_commits()
        return None

    async def committed(self, partitions: list[TopicPartition], timeout: float | None = -1) -> list[TopicPartition]:
        """As `Consumer.committed`, awaited."""
        return await self._engine.offsets.committed(partitions, timeout)

    async def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """As `Consumer.position`, awaited."""
        return self._engine.offsets.positions(partitions)

    async def store_offsets(self, message: Message | None = None, offsets: list[TopicPartition] | None = None) -> None:
        """As `Consumer.store_offsets`, awaited."""
        self._engine.offsets.store(message, offsets)

    async def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None = -1, cached: bool = False
    ) -> tuple[int, int]:
        """As `Consumer.get_watermark_offsets`, awaited."""
        offsets = self._engine.offsets
        return offsets.cached_watermarks(partition) if cached else await offsets.watermarks(partition, timeout)

    async def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float | None = -1
    ) -> list[TopicPartition]:
        """As `Consumer.offsets_for_times`, awaited."""
        return await self._engine.offsets.at_times(partitions, timeout)

    # The group and the cluster

    async def lag(self) -> dict[TopicPartition, int | None]:
        """As `Consumer.lag`, awaited."""
        return self._engine.lag()

    async def health(self) -> ConsumerHealth:
        """As `Consumer.health`, awaited."""
        return self._engine.health()

    async def metrics(self) -> Metrics:
        """As `Consumer.metrics`, awaited."""
        return await self._engine.metrics()

    async def memberid(self) -> str | None:
        """As `Consumer.memberid`, awaited."""
        return self._engine.memberid()

    async def enforce_rebalance(self, reason: str | None = None) -> None:
        """As `Consumer.enforce_rebalance`, awaited."""
        await self._engine.enforce_rebalance(reason)

    async def consumer_group_metadata(self) -> ConsumerGroupMetadata | None:
        """As `Consumer.consumer_group_metadata`, awaited."""
        return self._engine.offsets.group_member()

    async def list_topics(self, topic: str | None = None, timeout: float | None = -1) -> ClusterMetadata:
        """As `Consumer.list_topics`, awaited."""
        return await self._engine.list_topics(topic, timeout)

    async def cluster_id(self, timeout: float | None = -1) -> str | None:
        """As `Consumer.cluster_id`, awaited."""
        return await self._engine.cluster_id(timeout)

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """As `Consumer.set_sasl_credentials`, awaited."""
        self._engine.set_sasl_credentials(username, password)

    # Ending

    def wakeup(self) -> None:
        """As `Consumer.wakeup`, for calls that read; not awaited. A task that waits for others can be cancelled."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._waits.wake()
        self._consumer.machines.notify(self._waits.wakeup.heed)

    async def close(self) -> None:
        """As `Consumer.close`, awaited."""
        self._waits.wakeup.forget()
        await self._waits.run(self._engine.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()
