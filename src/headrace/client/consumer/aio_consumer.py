"""`AIOConsumer`: reads records, alone or as a member of a group, on the running event loop.

The last stop of the way back: `consume()` takes records out of what the fetcher has queued; they are decoded there and
then. What the machines want from the application is kept in `client.consumer.consumer_engine`; the blocking face is
`client.consumer.consumer`. This module must not know machines' insides, wire formats or sockets.

Read next: `client.consumer.consumer_engine`, then `machines.consumer.fetcher` for what is fetched when.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Mapping
from typing import Any

from headrace.arguments import instance_of, list_of
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.consumer.consumer_engine import (
    NOTHING_TO_COMMIT,
    Callback,
    ConsumerCore,
    Partitions,
    RebalanceCallback,
    offsets_of,
)
from headrace.client.statistics import Metrics
from headrace.errors import KafkaError, KafkaException
from headrace.machines.consumer.subscription import EARLIEST, LATEST
from headrace.machines.groups.membership import Change
from headrace.machines.producer.transactions import ConsumerGroupMetadata
from headrace.records import Message
from headrace.types.records import OFFSET_END, OFFSET_INVALID, TopicPartition

__all__ = ["AIOConsumer"]

_FOREVER = float("inf")


class AIOConsumer:
    """A consumer on the running event loop, under confluent_kafka's names.

    Close it, or use it in an `async with` statement. One that is just let go leaves its group and commits nothing.

    `async for` over it gives one message after the other, for ever. After `close()` every method but `close()` raises
    `ClientClosedError`, a `RuntimeError`.

    Args:
        config: properties, see `headrace.config.PROPERTIES`; the blocking face gives a core that it made itself.

    Raises:
        ConfigError: an unknown property or a bad value.
    """

    def __init__(self, config: Mapping[str, Any] | ConsumerCore) -> None:
        self._ready = asyncio.Event()
        if isinstance(config, ConsumerCore):
            self._core = config
        else:
            self._given = ApplicationCallbacks(self)
            self._core = ConsumerCore(config, self, self._given, self._ready.set)

    # Reading

    async def poll(self, timeout: float | None = -1) -> Message | None:
        """The next message, or None. Runs callbacks.

        Args:
            timeout: longest wait in seconds; negative or None waits for ever.

        Returns:
            A record, an event when its `error()` is not None, or None when time was up.
        """
        if self._core.usable and not self._core.callbacks:
            message = self._core.fetcher.take_one()
            if message is not None:
                self._core.leave()
                return message
        messages = await self.consume(1, timeout)
        return messages[0] if messages else None

    async def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """Up to `num_messages` messages; fewer when time is up, or the group rebalances, first. Runs callbacks.

        Partitions come and go only at the beginning of a call: a rebalance ends one that waits for more, so that all
        that it returns is read as one member of the group.

        Args:
            num_messages: most messages, 1,000,000 at most.
            timeout: longest wait in seconds; negative or None waits for ever.

        Raises:
            ValueError: `num_messages` is out of range.
            ClientClosedError: the consumer is closed (a `RuntimeError`).
        """
        core, ready = self._core, self._ready
        core.enter(num_messages)
        clock = asyncio.get_running_loop().time
        give_up_at = _FOREVER if timeout is None or timeout < 0 else clock() + timeout
        messages: list[Message] = []
        try:
            for callback in core.collect(messages, num_messages):
                if callback is not None:
                    await self._run(callback)
                    continue
                left_s = give_up_at - clock()
                if left_s <= 0:
                    break
                await _wait(ready, left_s)
                ready.clear()
            return messages
        except BaseException:  # cancelled, or a callback raised: the caller will not see these messages
            core.give_back(messages)
            raise
        finally:
            core.leave()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            message = await self.poll()
            if message is not None:
                yield message

    async def _run(self, callback: Callback) -> None:
        self._core.meet(callback)
        try:
            result = callback.function(*callback.arguments)
            if inspect.isawaitable(result):
                await result
        finally:
            if callback.rebalance is not None:
                await self._core.complete(callback.rebalance)

    # Choosing what to read

    async def subscribe(
        self, topics: list[str], on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None, on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Join the group to read these topics. Replaces an earlier subscription.

        Args:
            topics: names; one that starts with ``^`` is a regular expression.
            on_assign: called with partitions that this consumer gets, from `poll()`.
            on_revoke: called with partitions that it is about to give up; it may commit.
            on_lost: called with partitions that are gone already; `on_revoke` when None.

        Raises:
            KafkaException: no "group.id"; `_INVALID_ARG` for an empty list, a name given twice or empty, or a malformed
                pattern.
            TypeError: not a list of str.
        """
        for callback in (on_assign, on_revoke, on_lost):
            if callback is not None and not callable(callback):
                raise TypeError(f"a rebalance callback must be callable, not {type(callback).__name__}")
        self._core.subscribe(
            topics, {Change.ASSIGN: on_assign, Change.REVOKE: on_revoke, Change.LOSE: on_lost or on_revoke})

    async def unsubscribe(self) -> None:
        """Give all partitions up and leave the group; `on_revoke` is called, offsets are committed."""
        self._core.check_open()
        for callback in self._core.revocation():
            await self._run(callback)
        await self._core.leave_group()

    async def assign(self, partitions: Partitions) -> None:
        """Read exactly these partitions, from their offsets on; without an offset, from the committed one."""
        self._core.change_assignment(self._core.subscription.assign, partitions)

    async def unassign(self) -> None:
        """Stop reading."""
        self._core.change_assignment(self._core.subscription.assign, [])

    async def incremental_assign(self, partitions: Partitions) -> None:
        """Read these partitions too."""
        self._core.change_assignment(self._core.subscription.add, partitions)

    async def incremental_unassign(self, partitions: Partitions) -> None:
        """Read these partitions no more."""
        self._core.change_assignment(self._core.subscription.remove, partitions)

    async def assignment(self) -> Partitions:
        """The assigned partitions."""
        self._core.check_open()
        return self._core.subscription.positions()

    async def pause(self, partitions: Partitions) -> None:
        """Hand out no records of these partitions until `resume()`."""
        self._core.check_open()
        self._core.subscription.set_paused(list_of(TopicPartition, partitions, "partitions"), True)
        self._core.client.driver.wake()

    async def resume(self, partitions: Partitions) -> None:
        """Go on with paused partitions."""
        self._core.check_open()
        self._core.subscription.set_paused(list_of(TopicPartition, partitions, "partitions"), False)
        self._core.fetcher.resume()
        self._core.client.driver.wake()
        self._core.on_ready()

    async def seek(self, partition: TopicPartition) -> None:
        """Go on from `partition.offset`, absolute or logical.

        Raises:
            KafkaException: `_STATE` when the partition is not assigned.
            TypeError: not a `TopicPartition`.
        """
        self._core.check_open()
        instance_of(TopicPartition, partition, "partition")
        self._core.subscription.seek(partition.topic, partition.partition, partition.offset)
        self._core.client.driver.wake()

    # Offsets

    async def commit(
        self, message: Message | None = None, offsets: Partitions | None = None, asynchronous: bool = True
    ) -> Partitions | None:
        """Commit the offset after `message`, or `offsets`, or what is stored of the assignment.

        Args:
            message: a record that was consumed.
            offsets: partitions with the offset of the next record to read; those without an offset are left out.
            asynchronous: return None at once and tell `on_commit`; else wait.

        Returns:
            The partitions, each with its own `error`; None when asynchronous.

        Raises:
            KafkaException: the commit failed; `_NO_OFFSET` when there is nothing to commit, which `on_commit` is told
                when asynchronous.
        """
        self._core.check_open()
        self._core.require_group()
        given = offsets_of(message, offsets)
        wanted = self._core.subscription.to_commit() if given is None else [tp for tp in given if tp.offset >= 0]
        if not asynchronous:
            if not wanted:
                raise KafkaException(NOTHING_TO_COMMIT)
            return await self._core.commit_and_wait(wanted)
        self._core.commit(wanted)
        return None

    async def committed(self, partitions: Partitions, timeout: float | None = -1) -> Partitions:
        """The group's committed offsets; `OFFSET_INVALID` where there is none, or `error` set.

        Args:
            partitions: partitions to ask for.
            timeout: longest wait in seconds; negative or None waits for ever.
        """
        return await self._core.committed(partitions, timeout)

    async def position(self, partitions: Partitions) -> Partitions:
        """The offset of the next record of each partition; `OFFSET_INVALID` before it is known."""
        return self._core.positions(partitions)

    async def store_offsets(self, message: Message | None = None, offsets: Partitions | None = None) -> None:
        """Choose what the next commit covers. Needs "enable.auto.offset.store": false.

        Raises:
            KafkaException: `_STATE` for a partition that is not assigned, `_INVALID_ARG` with automatic storing.
        """
        self._core.store(message, offsets)

    async def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None = -1, cached: bool = False
    ) -> tuple[int, int]:
        """The first offset of a partition, and the one after its last record.

        Args:
            partition: partition to ask for.
            timeout: longest wait in seconds; negative or None waits for ever.
            cached: take what the last fetch said, without asking; -1001 where nothing is known.

        Raises:
            KafkaException: the offsets could not be found, `_TIMED_OUT` among others.
        """
        self._core.check_open()
        instance_of(TopicPartition, partition, "partition")
        if cached:
            state = self._core.subscription.get(partition.topic, partition.partition)
            known = state is not None and state.high_watermark >= 0
            return (state.log_start, state.high_watermark) if state and known else (OFFSET_INVALID, OFFSET_INVALID)
        ends = [TopicPartition(partition.topic, partition.partition, at) for at in (EARLIEST, LATEST)]
        low, high = [(await self._core.look_up([end], timeout))[0] for end in ends]
        for found in (low, high):
            if found.error is not None:
                raise KafkaException(found.error)
        return low.offset, high.offset

    async def offsets_for_times(self, partitions: Partitions, timeout: float | None = -1) -> Partitions:
        """The first offset at or after the time (ms) in each partition's `offset`; `OFFSET_END` when none is.

        Raises:
            KafkaException: `_INVALID_ARG` for an empty list.
        """
        self._core.check_open()
        if partitions == []:
            raise KafkaException(KafkaError(
                KafkaError._INVALID_ARG, "offsets_for_times() takes at least one partition"))
        found = await self._core.look_up(partitions, timeout)
        for tp in found:
            tp.offset = OFFSET_END if tp.error is None and tp.offset < 0 else tp.offset
        return found

    # The group and the cluster

    async def metrics(self) -> Metrics:
        """What `stats_cb` gets, as a dictionary: librdkafka's names, documented in `client.statistics`."""
        self._core.check_open()
        return self._core.statistics.metrics()

    async def memberid(self) -> str | None:
        """This consumer's id in the group; None outside of one."""
        self._core.check_open()
        return (self._core.group.identity.member_id or None) if self._core.group else None

    async def consumer_group_metadata(self) -> ConsumerGroupMetadata | None:
        """This consumer's place in its group, for `send_offsets_to_transaction()`; None without a "group.id"."""
        return self._core.group_member()

    async def list_topics(self, topic: str | None = None, timeout: float | None = -1) -> ClusterMetadata:
        """Brokers, topics and partitions as the cluster knows them; of one topic only when it is named."""
        self._core.check_open()
        forever = timeout is None or timeout < 0
        return await self._core.client.list_topics(topic, _FOREVER if forever or timeout is None else timeout)

    # Ending

    async def close(self) -> None:
        """Commit, leave the group and close all connections. Closing twice does no harm."""
        if self._core.closed:
            return
        try:
            for callback in self._core.revocation():
                await self._run(callback)
        finally:
            await self._core.close()

    async def __aenter__(self) -> AIOConsumer:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), None if timeout_s == _FOREVER else timeout_s)
    except TimeoutError:
        pass
