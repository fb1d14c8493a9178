"""`Consumer`: the blocking face of `AIOConsumer`, under confluent_kafka's names.

The machines run on the process's loop thread. Records are decoded here, in the caller's thread, and callbacks run
here, inside `poll()` and `consume()`. Read next: `client.consumer.aio_consumer`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.consumer.aio_consumer import AIOConsumer
from headrace.client.consumer.consumer_engine import Callback, ConsumerCore, RebalanceCallback
from headrace.client.statistics import Metrics
from headrace.machines.producer.transactions import ConsumerGroupMetadata
from headrace.net.thread import loop_thread
from headrace.records import Message
from headrace.types.records import TopicPartition

__all__ = ["Consumer"]

T = TypeVar("T")
_FOREVER = float("inf")
_LONGEST_WAIT_S = 3600.0
"""One wait of `threading.Event`; an endless one could not be bounded on every platform."""


class Consumer:
    """A consumer for threads. Any thread may call it; calls that read take turns.

    Close it, or use it in a `with` statement. One that is just let go leaves its group and commits nothing, as after a
    crash: what it read since the last commit is read again.

    Iterating over it gives one message after the other, for ever. After `close()` every method but `close()` raises
    `ClientClosedError`, a `RuntimeError`.

    Args:
        config: properties, see `headrace.config.PROPERTIES`.
        logger: `logging.Logger` to use, as the property "logger".
        properties: more properties, by keyword.

    Raises:
        ConfigError: an unknown property or a bad value.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, *, logger: Any = None, **properties: Any) -> None:
        given = {**(config or {}), **properties}
        if logger is not None:
            given["logger"] = logger
        self._thread = loop_thread()
        self._ready = threading.Event()
        self._reading = threading.RLock()
        self._given = ApplicationCallbacks(self)
        self._core, self._aio = self._call(self._make(given))

    async def _make(self, config: Mapping[str, Any]) -> tuple[ConsumerCore, AIOConsumer]:
        core = ConsumerCore(config, self, self._given, self._ready.set)
        return core, AIOConsumer(core)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.call(work)

    # Reading

    def poll(self, timeout: float | None = -1) -> Message | None:
        """The next message, or None. Runs callbacks.

        Args:
            timeout: longest wait in seconds; negative or None waits for ever.

        Returns:
            A record, an event when its `error()` is not None, or None when time was up.

        Raises:
            ClientClosedError: the consumer is closed (a `RuntimeError`).
        """
        core = self._core
        with self._reading:
            if core.usable and not core.callbacks:
                message = core.fetcher.take_one()
                if message is not None:
                    core.leave()
                    return message
            messages = self.consume(1, timeout)
        return messages[0] if messages else None

    def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
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
        core = self._core
        with self._reading:
            core.enter(num_messages)
            messages: list[Message] = []
            try:
                self._collect(messages, num_messages, timeout)
                return messages
            except BaseException:  # an interrupt, or a callback that raised: the caller will not see these messages
                if messages:
                    self._call(self._give_back(messages))
                raise
            finally:
                core.leave()

    def _collect(self, messages: list[Message], count: int, timeout: float | None) -> None:
        """Fill `messages` up to `count`, or until time is up. An interrupt ends the wait at once."""
        ready = self._ready
        give_up_at = _FOREVER if timeout is None or timeout < 0 else time.monotonic() + timeout
        for callback in self._core.collect(messages, count):
            if callback is not None:
                self._run(callback)
                continue
            left_s = give_up_at - time.monotonic()
            if left_s <= 0:
                return
            ready.wait(min(left_s, _LONGEST_WAIT_S))
            ready.clear()

    async def _give_back(self, messages: list[Message]) -> None:
        self._core.give_back(messages)

    def _run(self, callback: Callback) -> None:
        self._core.meet(callback)
        try:
            callback.function(*callback.arguments)
        finally:
            if callback.rebalance is not None:
                self._call(self._core.complete(callback.rebalance))

    def __iter__(self) -> Iterator[Message]:
        while True:
            message = self.poll()
            if message is not None:
                yield message

    # Choosing what to read

    def subscribe(
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
        self._call(self._aio.subscribe(topics, on_assign, on_revoke, on_lost))

    def unsubscribe(self) -> None:
        """Give all partitions up and leave the group; `on_revoke` is called, offsets are committed."""
        self._core.check_open()
        for callback in self._core.revocation():
            self._run(callback)
        self._call(self._core.leave_group())

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read exactly these partitions, from their offsets on; without an offset, from the committed one."""
        self._call(self._aio.assign(partitions))

    def unassign(self) -> None:
        """Stop reading."""
        self._call(self._aio.unassign())

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions too."""
        self._call(self._aio.incremental_assign(partitions))

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions no more."""
        self._call(self._aio.incremental_unassign(partitions))

    def assignment(self) -> list[TopicPartition]:
        """The assigned partitions."""
        return self._call(self._aio.assignment())

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Hand out no records of these partitions until `resume()`."""
        self._call(self._aio.pause(partitions))

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Go on with paused partitions."""
        with self._reading:
            self._call(self._aio.resume(partitions))

    def seek(self, partition: TopicPartition) -> None:
        """Go on from `partition.offset`, absolute or logical.

        Raises:
            KafkaException: `_STATE` when the partition is not assigned.
            TypeError: not a `TopicPartition`.
        """
        self._call(self._aio.seek(partition))

    # Offsets

    def commit(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None, asynchronous: bool = True
    ) -> list[TopicPartition] | None:
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
        return self._call(self._aio.commit(message, offsets, asynchronous))

    def committed(self, partitions: list[TopicPartition], timeout: float | None = -1) -> list[TopicPartition]:
        """The group's committed offsets; `OFFSET_INVALID` where there is none, or `error` set.

        Args:
            partitions: partitions to ask for.
            timeout: longest wait in seconds; negative or None waits for ever.
        """
        return self._call(self._aio.committed(partitions, timeout))

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """The offset of the next record of each partition; `OFFSET_INVALID` before it is known."""
        return self._core.positions(partitions)

    def store_offsets(self, message: Message | None = None, offsets: list[TopicPartition] | None = None) -> None:
        """Choose what the next commit covers. Needs "enable.auto.offset.store": false.

        Raises:
            KafkaException: `_STATE` for a partition that is not assigned, `_INVALID_ARG` with automatic storing.
        """
        self._core.store(message, offsets)

    def get_watermark_offsets(
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
        return self._call(self._aio.get_watermark_offsets(partition, timeout, cached))

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float | None = -1) -> list[TopicPartition]:
        """The first offset at or after the time (ms) in each partition's `offset`; `OFFSET_END` when none is.

        Raises:
            KafkaException: `_INVALID_ARG` for an empty list.
        """
        return self._call(self._aio.offsets_for_times(partitions, timeout))

    # The group and the cluster

    def metrics(self) -> Metrics:
        """What `stats_cb` gets, as a dictionary: librdkafka's names, documented in `client.statistics`."""
        return self._call(self._aio.metrics())

    def memberid(self) -> str | None:
        """This consumer's id in the group; None outside of one."""
        return self._call(self._aio.memberid())

    def consumer_group_metadata(self) -> ConsumerGroupMetadata | None:
        """This consumer's place in its group, for `send_offsets_to_transaction()`; None without a "group.id"."""
        return self._core.group_member()

    def list_topics(self, topic: str | None = None, timeout: float | None = -1) -> ClusterMetadata:
        """Brokers, topics and partitions as the cluster knows them; of one topic only when it is named."""
        return self._call(self._aio.list_topics(topic, timeout))

    # Ending

    def close(self) -> None:
        """Commit, leave the group and close all connections. Closing twice does no harm."""
        if self._core.closed:
            return
        try:
            for callback in self._core.revocation():
                self._run(callback)
        finally:
            self._call(self._core.close())

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
