"""`Consumer`: reads records, alone or as a member of a group, under confluent_kafka's names.

The machines run on the process's loop thread. Records are decoded in the caller's thread, and callbacks run there,
inside of `poll()` and `consume()`. It signs what `client.consumer.consumer_engine` does, and must not know how that
waits. Read next: `client.consumer.consumer_engine`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from headrace.arguments import given_properties
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.consumer.consumer_engine import ConsumerEngine
from headrace.client.consumer.rebalance import RebalanceCallback
from headrace.client.core import HANDLE_CLOSED, LiveClient
from headrace.client.waits import Steps, ThreadWaits, seconds
from headrace.errors import ClientClosedError
from headrace.interpreter import SteadyLock
from headrace.net.thread import loop_thread
from headrace.records import Message, PollFastPath
from headrace.types.records import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    from headrace.client.consumer.consumer_health import ConsumerHealth
    from headrace.records.columns.arrow_batch import ArrowBatch
    from headrace.types.metrics import Metrics

__all__ = ["Consumer"]

T = TypeVar("T")


class Consumer(LiveClient):
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
        RuntimeError: it was made already.
        TypeError: no properties were given.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, *, logger: Any = None, **properties: Any) -> None:
        if "_engine" in self.__dict__:
            raise RuntimeError("Consumer already initialized")
        given = given_properties(config, logger, properties)
        self._waits = ThreadWaits(loop_thread())
        self._reading = SteadyLock()
        self._running = 0  # calls in which callbacks may run, one in the other
        self._fast_path = PollFastPath(Consumer._poll)
        self._given = ApplicationCallbacks(self)
        self._engine = self._waits.call(self._make(given))

    if not TYPE_CHECKING:  # a type checker would take every name for one of a consumer's

        def __getattr__(self, name: str) -> Any:
            if name in ("_engine", "_fast_path", "_reading", "_waits"):  # a subclass did not call `Consumer.__init__`
                raise ClientClosedError("Consumer closed: its __init__() was not called, or failed")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    async def _make(self, config: Mapping[str, Any]) -> ConsumerEngine:
        engine = await ConsumerEngine(config, self._given, self._waits.notify).log_in()
        engine.machines.client.on_forked = self._reading.after_fork
        engine.machines.receive_directly(self._waits.look_again)
        return engine

    # Reading

    def poll(self, timeout: float | None = -1) -> Message | None:
        """The next message, or None. Runs callbacks.

        Args:
            timeout: longest wait in seconds; negative or None waits for ever.

        Returns:
            A record, an event when its `error()` is not None, or None when time was up. Behind a damaged batch
            (`INVALID_MSG`, with the offset of its first record) the partition stops and its position stays in front of
            the batch: `seek()` goes on, behind it or offset by offset. With "check.crcs" checksums are compared too.

        Raises:
            ClientClosedError: the consumer is closed (a `RuntimeError`).
            WakeupError: `wakeup()` was called.
        """
        return self._fast_path.poll(self, timeout)

    def _poll(self, timeout: float | None) -> Message | None:
        """`poll` in the general way; opens the fast path where only records are to be handed out next."""
        if not isinstance(timeout, (int, float)):
            seconds(timeout)  # refuses what is none, also where nobody has to wait
        message: Message | None = None
        try:
            for _ in iter(self._reading.acquire, False):  # as `with self._reading`, without its frame
                break
            try:
                self._fast_path.close()
                message = self._engine.take_one()
                if message is None:
                    self._running += 1
                    try:  # as `_run`, without its frame: each record that is read alone comes here
                        messages = self._waits.run(self._engine.consume(1, timeout, []))
                        message = messages[0] if messages else None
                    finally:
                        self._running -= 1
                elif not self._running:
                    self._engine.lend(self._fast_path)
            finally:
                self._reading.release()
            return message
        except BaseException:
            self._give_back([] if message is None else [message])
            raise

    def _give_back(self, messages: list[Message]) -> None:
        """The caller of a call that was interrupted does not see these."""
        if self._engine.machines.usable:
            with self._reading:
                self._fast_path.close()
                self._waits.call(self._engine.give_back(messages))

    def _run(self, steps: Steps[T]) -> T:
        """Read with callbacks, which may read as well."""
        self._running += 1
        try:
            return self._waits.run(steps)
        finally:
            self._running -= 1

    def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """Up to `num_messages` messages; fewer when time is up, or the group rebalances, first. Runs callbacks.

        Partitions come and go only at the beginning of a call: a rebalance ends one that waits for more, so that all
        that it returns is read as one member of the group.

        Args:
            num_messages: most messages, 1,000,000 at most.
            timeout: longest wait in seconds; negative or None waits for ever.

        Raises:
            TypeError: `num_messages` is not an int.
            ValueError: `num_messages` is out of range.
            ClientClosedError: the consumer is closed (a `RuntimeError`).
        """
        if not isinstance(timeout, (int, float)):
            seconds(timeout)
        messages: list[Message] = []
        try:
            with self._reading:
                self._fast_path.close()
                if not self._engine.take(messages, num_messages):
                    self._run(self._engine.consume(num_messages, timeout, messages))
            return messages
        except BaseException:
            self._give_back(messages)
            raise

    def consume_arrow(self, num_messages: int = 100_000, timeout: float | None = 1.0) -> ArrowBatch:
        """Up to `num_messages` records as Arrow columns; fewer when time is up, or the group rebalances, first.

        It reads as `consume()` does, without an object for each record; positions move and offsets are stored in the
        same way. Polars, pandas, DuckDB and pyarrow take the batch as it is; nothing else needs to be installed.

        Args:
            num_messages: most records, 1,000,000 at most; fewer come when the columns take 256 MiB.
            timeout: longest wait in seconds; negative or None waits for ever.

        Returns:
            The records in the order in which they came; none when time was up.

        Raises:
            ConsumeError: what `consume()` gives as a message with an error, the end of a partition
                ("enable.partition.eof") included, with that message; records before it are returned first.
            TypeError: `num_messages` is not an int.
            ValueError: `num_messages` is out of range.
            ClientClosedError: the consumer is closed (a `RuntimeError`).
        """
        with self._reading:
            self._fast_path.close()
            return self._run(self._engine.consume_arrow(num_messages, timeout))

    def consume_batches(self, num_messages: int = 100_000, timeout: float | None = 1.0) -> Iterator[ArrowBatch]:
        """One batch of `consume_arrow()` after the other, for ever; none is empty.

        Args:
            num_messages: most records of a batch.
            timeout: longest time in seconds that a batch may take to fill.

        Raises:
            ConsumeError: as `consume_arrow()`; a new iterator goes on behind the error.
        """
        while True:
            batch = self.consume_arrow(num_messages, timeout)
            if batch:
                yield batch

    def __iter__(self) -> Iterator[Message]:
        if type(self).poll is Consumer.poll:
            return self._fast_path.each(self)
        return iter(self._each, None)

    def _each(self) -> Message:
        while (message := self.poll()) is None:
            pass
        return message

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
        self._waits.call(self._engine.subscribe(topics, on_assign, on_revoke, on_lost))

    def unsubscribe(self) -> None:
        """Give the group's partitions up and leave it; `on_revoke` is called, offsets are committed.

        Without a subscription it does nothing: what `assign()` chose is read on until `unassign()`.
        """
        self._waits.run(self._engine.unsubscribe())

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read exactly these partitions, from their offsets on; without an offset, from the committed one.

        Raises:
            KafkaException: `_STATE` for a member of a cooperative group, which changes its assignment with
                `incremental_assign()` and `incremental_unassign()`; a member of an eager one does with this.
        """
        self._waits.call(self._engine.assign(partitions))

    def unassign(self) -> None:
        """Stop reading."""
        self._waits.call(self._engine.assign([]))

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions too."""
        self._waits.call(self._engine.incremental_assign(partitions))

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions no more.

        Raises:
            KafkaException: `_INVALID_ARG` when one is not assigned; nothing is changed then.
        """
        self._waits.call(self._engine.incremental_unassign(partitions))

    def assignment(self) -> list[TopicPartition]:
        """The assigned partitions in the order of topics and numbers, each with the offset of its next record."""
        return self._engine.assignment()

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Hand out no records of these partitions until `resume()`, also when they are given up and come back."""
        self._waits.call(self._engine.pause(partitions))

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Go on with paused partitions."""
        with self._reading:
            self._waits.call(self._engine.resume(partitions))

    def seek(self, partition: TopicPartition) -> None:
        """Go on from `partition.offset`, absolute or logical.

        Raises:
            KafkaException: the partition is not assigned: `_UNKNOWN_PARTITION` when no partition of its topic ever
                was, else `_STATE`.
            TypeError: not a `TopicPartition`.
        """
        self._waits.call(self._engine.seek(partition))

    # Offsets

    def commit(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None, asynchronous: bool = True
    ) -> list[TopicPartition] | None:
        """Commit the offset after `message`, or `offsets`, or what is stored of the assignment.

        Args:
            message: a record that was consumed.
            offsets: partitions with the offset of the next record to read; those without an offset stay as they are.
            asynchronous: return None at once and call `on_commit` later; else wait.

        Returns:
            The partitions, `OFFSET_INVALID` for those of the assignment with nothing new; None when asynchronous.

        Raises:
            CommitError: a partition was not committed; `partitions` has each with its own `error`.
            KafkaException: `_INVALID_ARG` for a message with an error, which is raised at once; `_NO_OFFSET` when
                there is nothing to commit. When asynchronous, `on_commit` gets the others instead.
        """
        offsets_of = self._engine.offsets
        if not asynchronous:
            return self._waits.call_until_woken(offsets_of.commit(message, offsets))
        if offsets_of.ask_to_commit(message, offsets):
            self._waits.thread.call_soon(offsets_of.begin_commits)
        return None

    def committed(self, partitions: list[TopicPartition], timeout: float | None = -1) -> list[TopicPartition]:
        """The group's committed offsets; `OFFSET_INVALID` where there is none, or `error` set.

        Args:
            partitions: partitions to ask for.
            timeout: longest wait in seconds; negative or None waits for ever.

        Raises:
            KafkaException: nothing was found of any partition, `_TIMED_OUT` among others.
        """
        return self._waits.call_until_woken(self._engine.offsets.committed(partitions, timeout))

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """The offset of the next record of each partition; `OFFSET_INVALID` before it is known."""
        return self._engine.offsets.positions(partitions)

    def store_offsets(self, message: Message | None = None, offsets: list[TopicPartition] | None = None) -> None:
        """Choose what the next commit covers. Needs "enable.auto.offset.store": false.

        Of several partitions those are stored that are assigned; the others get their `error`.

        Raises:
            KafkaException: `_STATE` or `_UNKNOWN_PARTITION` where none is assigned, as in `seek()`; `_INVALID_ARG` with
                automatic storing, or for a message with an error.
            TypeError: not a `Message`, or not a list of `TopicPartition`.
            ValueError: neither or both were given.
        """
        self._engine.offsets.store(message, offsets)

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None = -1, cached: bool = False
    ) -> tuple[int, int]:
        """The first offset of a partition, and the one after its last record.

        Args:
            partition: partition to ask for.
            timeout: longest wait in seconds; negative or None waits for ever.
            cached: take the values of the last fetch, without asking; -1001 where nothing is known.

        Raises:
            KafkaException: the offsets could not be found, `_TIMED_OUT` among others.
        """
        offsets = self._engine.offsets
        if cached:
            return offsets.cached_watermarks(partition)
        return self._waits.call_until_woken(offsets.watermarks(partition, timeout))

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float | None = -1) -> list[TopicPartition]:
        """The first offset at or after the time (ms) in each partition's `offset`; `OFFSET_END` when none is.

        Raises:
            KafkaException: `_INVALID_ARG` for an empty list; nothing was found of any partition.
        """
        return self._waits.call_until_woken(self._engine.offsets.at_times(partitions, timeout))

    # The group and the cluster

    def lag(self) -> dict[TopicPartition, int | None]:
        """How many records each assigned partition is behind, as of the last fetch. From any thread; asks nobody.

        Returns:
            By partition, the offsets between its position (in the key's `offset`) and its end: the last stable offset
            with "isolation.level" read_committed, else the high watermark. None while one of the two is not known.
        """
        return self._engine.lag()

    def health(self) -> ConsumerHealth:
        """How the consumer is and what it waits for, as far as it knows. From any thread; asks nobody."""
        return self._engine.health()

    def metrics(self) -> Metrics:
        """What `stats_cb` gets, as a dictionary: librdkafka's names, documented in `types.metrics`."""
        return self._waits.call(self._engine.metrics())

    def memberid(self) -> str | None:
        """This consumer's id in the group; None outside of one.

        With "group.protocol" "consumer" it chooses its id itself, and has it from the beginning.
        """
        return self._engine.memberid()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Have the group rebalance soon, as when something has changed on which its assignment depends (KIP-568).

        Without effect while the group rebalances, and with "group.protocol" "consumer", where the coordinator decides.

        Args:
            reason: shown in the coordinator's log.

        Raises:
            KafkaException: no "group.id".
            TypeError: the reason is not str.
        """
        self._waits.call(self._engine.enforce_rebalance(reason))

    def consumer_group_metadata(self) -> ConsumerGroupMetadata | None:
        """This consumer's place in its group, for `send_offsets_to_transaction()`; None without a "group.id"."""
        return self._engine.offsets.group_member()

    def list_topics(self, topic: str | None = None, timeout: float | None = -1) -> ClusterMetadata:
        """Brokers, topics and partitions as the cluster knows them; of one topic only when it is named."""
        listing = self._handle.list_topics(topic, timeout)
        return self._waits.call_until_woken(listing)

    def cluster_id(self, timeout: float | None = -1) -> str | None:
        """Id of the cluster (KIP-78); None when the broker is from before Kafka 0.10.1.

        Args:
            timeout: longest wait in seconds; negative or None waits for ever.

        Raises:
            KafkaException: `_TIMED_OUT`: no broker answered in time.
        """
        asking = self._handle.cluster_id(timeout)
        return self._waits.call_until_woken(asking)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replace user and password of PLAIN or SCRAM, for connections and authentications that come after this.

        Raises:
            ConfigError: one is empty, or has a NUL character.
            TypeError: one is not str.
        """
        self._handle.set_sasl_credentials(username, password)

    @property
    def _handle(self) -> ConsumerEngine:
        if "_engine" not in self.__dict__:
            raise ClientClosedError(HANDLE_CLOSED)
        return self._engine

    # Ending

    def wakeup(self) -> None:
        """End a call that waits, with `headrace.errors.WakeupError`. From any thread, and from signal handlers.

        It ends one call: that which reads or waits for brokers now, else the next that reads or would have to wait for
        them: `poll()`, `consume()`, `consume_arrow()`, iteration, `commit()` unless asynchronous, `committed()`,
        `offsets_for_times()`, `get_watermark_offsets()`, `list_topics()`, `cluster_id()`. What was read and not
        returned comes again; the consumer goes on as before. A `close()` that waits already is ended too: it neither
        commits nor leaves the group then, but closes. One that is called later is not.
        """
        self._waits.wake()
        self._engine.machines.notify(self._waits.wakeup.heed)

    def close(self) -> None:
        """Commit, leave the group and close all connections. Closing twice does no harm."""
        if "_engine" in self.__dict__ and not sys.is_finalizing():
            self._waits.wakeup.forget()
            self._given.renew(self)
            self._waits.run(self._engine.close(), gives_up=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
