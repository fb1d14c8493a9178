"""`Producer`: confluent_kafka's producer, call for call, on the loop of one background thread; and more.

`produce()` appends in the caller's thread and never waits; reports are served in `poll()` and `flush()`.
It must not decide anything. Read next: `client.producer.producer_calls`, which all faces call.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from headrace.arguments import given_properties
from headrace.buffers import Polling, ProduceFastPath, Tether
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.core import HANDLE_CLOSED, LiveClient
from headrace.client.producer.interception import Callback, chain_of
from headrace.client.producer.producer_calls import Backpressure, ProducerCalls
from headrace.client.producer.producer_engine import LEFT_AT_EXIT, ProducerEngine
from headrace.client.waits import ThreadWaits, deadline
from headrace.config import PRODUCER, Config
from headrace.errors import BufferFullError, ClientClosedError, KafkaError
from headrace.net.thread import loop_thread
from headrace.records import Message
from headrace.types.records import ConsumerGroupMetadata, Headers, ProducerRecord, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    from headrace.client.producer.column_feed import ColumnRole
    from headrace.types.metrics import Metrics

__all__ = ["Producer", "Transaction", "calls_of", "end_with"]

DeliveryCallback = Callable[[KafkaError | None, Message], Any]


class _SlowPath:
    """What the fast paths of `produce()` and `poll()` leave. With a producer, or one of its methods, goes this.

    It holds no face, and nothing on the loop holds it: the producer ends when nobody has a way to call it any more.
    """

    def __init__(self, calls: ProducerCalls[ThreadWaits], callbacks: ApplicationCallbacks) -> None:
        self._calls, self.callbacks = calls, callbacks
        self._full_at: tuple[int, int] | None = None  # what waited when `produce()` found no room
        self.polling = Polling()

    def produce(self, *arguments: Any) -> None:
        """A record that is not simply appended; notes for `poll()` when there was no room for it."""
        before = self._calls.load()
        try:
            self._calls.intercepted.produce(*arguments)
        except BufferFullError:
            self._full_at = before
            raise

    def poll(self, timeout: float) -> int:
        """Callbacks are due, or somebody waits for them."""
        engine, waits = self._calls.engine, self._calls.waits
        deliveries = engine.deliveries
        if timeout == 0 and not engine.closed:  # as many call it behind each record: that costs next to nothing
            if not deliveries.pending:
                waits.step_aside()
            return deliveries.serve()
        self.check_serving("poll")
        full_at, self._full_at = self._full_at, None
        if not deliveries.pending:
            waits.wait(self._calls.report_due(timeout, full_at))
        return deliveries.serve()

    def check_serving(self, call: str) -> None:
        """Callbacks cannot be called by this thread, or not any more."""
        self.check_thread(call)
        engine = self._calls.engine
        if engine.closed and not engine.deliveries.in_callback():  # `close()` calls callbacks as well
            raise engine.refusal()

    def check_thread(self, call: str) -> None:
        """On the loop's thread nothing may wait for the loop."""
        if self._calls.waits.thread.is_here():
            raise RuntimeError(f"{call}() was called on the thread that the reports come from: do it outside of the "
                               "callbacks of send()")


class Producer(LiveClient):
    """Sends records to Kafka (confluent_kafka's names and behaviour).

    Close it, or use it in a `with` statement: records that wait are lost with a producer that is just let go.

    Errors of transactions are `KafkaException`s whose `KafkaError` says what to do: `retriable()` call it again,
    `txn_requires_abort()` call `abort_transaction()`, `fatal()` close the producer.

    Args:
        config: properties, see `headrace.config`; may also be given as keywords.
        logger: `logging.Logger` to write to.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
        RuntimeError: it was made already, and is not closed.
        TypeError: no properties were given.
    """

    _engine_class: type[ProducerEngine] = ProducerEngine
    _engine: ProducerEngine

    def __init__(self, config: Mapping[str, Any] | None = None, logger: Any = None, **properties: Any) -> None:
        if "_engine" in self.__dict__ and not self._engine.closed:
            raise RuntimeError("Producer already __init__:ialized")
        given = given_properties(config, logger, properties)
        callbacks = ApplicationCallbacks(self)
        checked = Config(PRODUCER, callbacks.lend_properties(given), servers_needed=False)
        self._closing = threading.RLock()  # a signal's handler may close it as well
        self._waits = waits = ThreadWaits(loop_thread())
        self._run = waits.run
        chain = chain_of(checked)
        try:
            self._engine = engine = waits.call(self._make(checked, callbacks))
        except BaseException:
            if chain is not None:
                chain.close()
            raise
        engine.deliveries.on_served = waits.notify
        self._calls = calls = ProducerCalls(engine, chain, waits, serves=lambda: True)
        self._slow_path = slow_path = _SlowPath(calls, callbacks)
        engine.receive_directly(slow_path.polling, waits.look_again)
        self._poll = engine.deliveries.fast_path(slow_path.polling, waits.thread.turns, engine, slow_path.poll).poll
        wake = Backpressure(engine.wake, engine.buffer_pool, waits.thread.is_here).wake
        self._produce = ProduceFastPath(
            calls.intercepted.open, engine.buffer_pool, waits.thread.turns, slow_path.produce, wake,
            callbacks.held("on_delivery")).produce
        if type(self).poll is Producer.poll:
            self.__dict__["poll"] = self._poll
        if type(self).produce is Producer.produce:
            self.__dict__["produce"] = self._produce  # saves a Python frame for each record

    async def _make(self, config: Config, callbacks: ApplicationCallbacks) -> ProducerEngine:
        engine = await self._engine_class(config, self._waits.notify).log_in()
        callbacks.when_let_go(lambda: not engine.closed, engine.client.abandon)  # what waits is lost, as documented
        LEFT_AT_EXIT.add(engine)
        return engine

    if not TYPE_CHECKING:  # a type checker would take every name for one of a producer's

        def __getattr__(self, name: str) -> Any:
            if name in ("_calls", "_engine", "_poll", "_produce", "_run", "_slow_path", "_waits"):  # as in `Consumer`
                raise ClientClosedError("Producer has been closed: its __init__() was not called, or failed")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        callback: DeliveryCallback | None = None,
        on_delivery: DeliveryCallback | None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> None:
        """Put a record on its way; returns at once.

        More than 16 MB ahead of the brokers a call may take 5 ms, in which what was produced is sent.

        Args:
            topic: topic name.
            value: payload; None is a tombstone.
            key: key for partitioning and compaction.
            partition: partition number; -1 lets the partitioner choose.
            callback: called as callback(error, message) from `poll()` or `flush()` when the record is delivered or
                given up.
            on_delivery: the same as `callback`.
            timestamp: milliseconds since the epoch; 0 takes the time of the call.
            headers: names and values; values are bytes, str or None.

        Raises:
            BufferError: too much waits already; call `poll()` and try again.
            ClientClosedError: the producer is closed.
            KafkaException: the record is too large, or its partition does not exist.
            TypeError: value, key or headers are of a wrong type.
        """
        self._produce(topic, value, key, partition, callback, on_delivery, timestamp, headers)

    def send(self, record: ProducerRecord, callback: Callback | None = None) -> Future[RecordMetadata]:
        """Put a record on its way (Java: `KafkaProducer.send`). `poll()` need not be called.

        Waits while the buffer is full, or the topic not known yet, up to `max.block.ms`. On the thread that calls
        callbacks it never waits: there a full buffer is an error at once.

        Args:
            record: what to send.
            callback: called as callback(metadata, error) when the record is stored (error is None) or given up, on the
                thread that all producers of the process share: it must not wait. What it raises is logged.

        Returns:
            A future of where the record was stored; it raises `KafkaException` when it was not. The callback has been
            called before it is done.

        Raises:
            BufferFullError: there was no room in `max.block.ms`.
            ClientClosedError: the producer is closed.
            KafkaException: the record was not accepted: too large, an invalid topic (`_INVALID_ARG`), one that was not
                known in `max.block.ms` (`_UNKNOWN_TOPIC`), or a partition that it does not have. Neither the
                callback nor a future reports it then.
            TypeError: not a `ProducerRecord`, or something in it is of a wrong type.
        """
        return self._run(self._calls.send(record, callback))

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        callback: Callable[[KafkaError | None, Message], Any] | None = None,
        on_delivery: Callable[[KafkaError | None, Message], Any] | None = None,
    ) -> int:
        """Put many records of one topic on their way; returns at once.

        Args:
            topic: topic name.
            messages: one dict for each record, with any of `value`, `key`, `partition`, `timestamp` (milliseconds),
                `headers`, and `callback` (or `on_delivery`). A record that is not accepted gets a `KafkaError` as
                `_error`. Once the buffer is full no more are tried: none overtakes another.
            partition: of records that name none; -1 lets the partitioner choose.
            callback: for records that have none of their own, as in `produce()`.
            on_delivery: the same as `callback`.

        Returns:
            How many records were accepted.

        Raises:
            ClientClosedError: the producer is closed.
            TypeError: something is of a wrong type; no record was accepted.
        """
        report = callback or on_delivery or self._slow_path.callbacks.held("on_delivery")
        return self._run(self._calls.produce_batch(topic, messages, partition, report))

    def produce_arrow(
        self,
        topic: str,
        table: Any,
        *,
        value: str = "value",
        key: ColumnRole = ...,
        headers: ColumnRole = ...,
        timestamp: ColumnRole = ...,
        partition: ColumnRole = ...,
    ) -> Future[int]:
        """Put the rows of a table on their way, without a Python object for each.

        Waits, up to `max.block.ms`, while the buffer is full or the topic not known yet; callbacks that are due are
        called meanwhile, as in `flush()`. Returns when all rows are accepted.

        Args:
            topic: topic name.
            table: a pyarrow Table, RecordBatch or RecordBatchReader, a Polars or pandas data frame, a DuckDB relation,
                or anything else that has the Arrow PyCapsule protocol. It is read batch by batch.
            value: name of the column of values (binary or string); null is a tombstone.
            key: of keys (binary or string); null is no key.
            headers: of headers: a list of structs (key, value), or a map.
            timestamp: of timestamps of any unit, or of integers in milliseconds; null stands for now.
            partition: of partition numbers; null leaves it to the partitioner. A role whose name is left out takes the
                column that is called like it, if there is one; None takes no column. Columns without a role stay here.

        Returns:
            A future of how many rows were stored. When some were not it raises a `KafkaException` with the first error
            and their number.

        Raises:
            BufferFullError: there was no room for any row in `max.block.ms`. As with every error of a row, the rows
                before it are on their way; a note says how many, and losses among them are logged.
            ClientClosedError: the producer is closed.
            KafkaException: a row was not accepted: too large, or a partition that does not exist; or the topic was not
                known in `max.block.ms`.
            TypeError: the table, or a column's type, cannot be used.
            ValueError: there is no such column, or a timestamp is negative.
        """
        return self.produce_batches(
            topic, [table], value=value, key=key, headers=headers, timestamp=timestamp, partition=partition)

    def produce_batches(
        self,
        topic: str,
        tables: Iterable[Any],
        *,
        value: str = "value",
        key: ColumnRole = ...,
        headers: ColumnRole = ...,
        timestamp: ColumnRole = ...,
        partition: ColumnRole = ...,
    ) -> Future[int]:
        """As `produce_arrow`, for the rows of many tables, or of a stream of record batches, one after the other."""
        from headrace.client.producer.column_feed import ColumnMapping, RowsResult, StoredRows

        stored = StoredRows(topic)
        roles = ColumnMapping(value, key, headers, timestamp, partition)
        self._run(self._usable.produce_batches(topic, tables, roles, RowsResult(topic, stored.resolve)))
        return stored

    def poll(self, timeout: float = -1) -> int:
        """Call the callbacks that are due.

        Args:
            timeout: seconds to wait for the first one; negative waits as long as it takes. After a `BufferError` there
                may be room sooner: it returns then.

        Returns:
            How many callbacks were called. It may be 0 when there is room again, or another thread closes the producer.

        Raises:
            ClientClosedError: the producer is closed.
            RuntimeError: called to wait in a callback of `send()`, on the thread that the reports come from.
        """
        return self._poll(timeout)

    def flush(self, timeout: float = -1) -> int:
        """Send everything now, wait for the reports and call their callbacks.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Returns:
            Number of records that still wait.

        Raises:
            ClientClosedError: the producer is closed.
            RuntimeError: called in a callback of `send()`, on the thread that the reports come from.
        """
        self._slow_path.check_serving("flush")
        self._calls.count_poll()
        return self._run(self._calls.flush(deadline(timeout)))

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Give up records; their callbacks are called from the next `poll()` or `flush()`.

        Args:
            in_queue: those that wait, with error `_PURGE_QUEUE`.
            in_flight: those that were sent and not acknowledged, with error `_PURGE_INFLIGHT`. They may be stored.
            blocking: wait until it is done.
        """
        purge = self._usable.engine.purge
        (self._waits.do if blocking else self._waits.thread.call_soon)(purge, in_queue, in_flight)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Ask the cluster for its brokers and topics, or for one topic.

        Args:
            topic: only this one; None for all. Brokers create it if it does not exist and they do so
                (auto.create.topics.enable).
            timeout: seconds; negative waits as long as it takes.

        Returns:
            A `ClusterMetadata`.

        Raises:
            KafkaException: no broker answered in time (`_TRANSPORT`).
            TypeError: the topic is not str.
        """
        listing = self._handle.list_topics(topic, timeout)
        return self._waits.call(listing)

    def cluster_id(self, timeout: float = -1) -> str | None:
        """Id of the cluster (KIP-78); None when the broker is from before Kafka 0.10.1.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT`: no broker answered in time.
        """
        asking = self._handle.cluster_id(timeout)
        return self._waits.call(asking)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replace user and password of PLAIN or SCRAM, for connections and authentications that come after this.

        Raises:
            ConfigError: one is empty, or has a NUL character.
        """
        self._handle.engine.client.set_sasl_credentials(username, password)

    def metrics(self) -> Metrics:
        """What `stats_cb` gets, as a dictionary: librdkafka's names, documented in `types.metrics`."""
        return self._waits.do(self._usable.engine.statistics.metrics)

    def init_transactions(self, timeout: float = -1) -> None:
        """Take over the transactional id: older producers with it are fenced, what they left open is ended.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), or fatal.
        """
        self._run(self._usable.init_transactions(timeout))

    def begin_transaction(self) -> None:
        """Open a transaction: what is produced from now on belongs to it.

        Raises:
            KafkaException: this is not the time for it (`_STATE`), or fatal.
        """
        self._run(self._usable.begin_transaction())

    def send_offsets_to_transaction(
        self, positions: list[TopicPartition], group_metadata: ConsumerGroupMetadata, timeout: float = -1
    ) -> None:
        """Commit a consumer's offsets with the transaction, or not at all.

        Args:
            positions: next offset to read of each partition; those without an offset are left out.
            group_metadata: `consumer_group_metadata()` of the consumer. Its `enable.auto.commit` must be off.
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), the transaction must be aborted, or fatal.
        """
        self._run(self._usable.send_offsets_to_transaction(positions, group_metadata, timeout))

    def commit_transaction(self, timeout: float = -1) -> None:
        """Deliver what was produced, call the callbacks, then commit.

        A record that was reported as failed, or purged, makes the commit fail: it is all or nothing.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), the transaction must be aborted, or fatal. Only if
                `error.maybe_applied` is set it may have been committed.
        """
        self._run(self._usable.commit_transaction(timeout))

    def abort_transaction(self, timeout: float = -1) -> None:
        """Give up what was produced in the transaction; records that wait are reported as purged.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: `_TIMED_OUT` (retriable: call it again), or fatal.
        """
        self._run(self._usable.abort_transaction(timeout))

    @contextlib.contextmanager
    def transaction(self, timeout: float = -1) -> Iterator[Transaction]:
        """Begin a transaction; commit it at the end of the block, abort it if the block or the commit raises.

        A commit that is under way when it is interrupted, or out of time, cannot be aborted and goes on.

        Args:
            timeout: seconds for the commit, and for the abort; negative waits as long as they take.

        Yields:
            The transaction, for `send_offsets()`.

        Raises:
            KafkaException: the transaction was aborted for this reason, or, if it is fatal, nothing can be done.
        """
        self.begin_transaction()
        try:
            yield Transaction(self)
            self.commit_transaction(timeout)
        except BaseException:
            if self._calls.can_abort:
                self.abort_transaction(timeout)
            raise

    def close(self, timeout: float | None = None) -> bool:
        """Deliver what waits, call the callbacks, and stop. Closing twice does nothing. An open transaction is aborted.

        For an abort it waits no longer than "transaction.timeout.ms": without brokers, what was open is over by then.

        Callbacks may produce until then, and no callback runs any more when it returns, but one that has called it. If
        the wait is interrupted, or a callback raises, the rest is given up and the producer is closed all the same.

        Args:
            timeout: without effect, as in confluent_kafka.

        Returns:
            True.

        Raises:
            RuntimeError: called in a callback of `send()`, on the thread that the reports come from.
        """
        engine = self.__dict__.get("_engine")
        if engine is None or engine.forked or (sys.is_finalizing() and not len(self)):
            return True
        waited_for = engine.deliveries.in_callback() or self._waits.thread.is_here()
        closes = False
        try:
            for closes in map(self._closing.acquire, (not waited_for,)):  # noqa: B007 - in one step, for Ctrl-C
                break
            if closes and not engine.closed:  # else the thread that is closing it does the rest
                self._slow_path.check_thread("close")
                self._run(self._calls.close(spare_callbacks=True))
        finally:
            if closes:
                self._closing.release()
        return True

    @property
    def _usable(self) -> ProducerCalls[ThreadWaits]:
        if self._engine.closed:
            raise self._engine.refusal()
        return self._calls

    @property
    def _handle(self) -> ProducerCalls[ThreadWaits]:
        if "_engine" not in self.__dict__:
            raise ClientClosedError(HANDLE_CLOSED)
        if self._engine.closed:
            raise self._engine.refusal(HANDLE_CLOSED)
        return self._calls

    def __len__(self) -> int:
        if "_slow_path" not in self.__dict__:
            return 0
        replies = self._slow_path.polling.replies
        if replies is not None:
            replies.look()
        return len(self._engine)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def calls_of(producer: Producer) -> ProducerCalls[ThreadWaits]:
    """The calls behind a producer, for modules that send through it in ways of their own."""
    return producer._calls


def end_with(producer: Producer, action: Callable[[], object]) -> weakref.finalize[..., Tether]:
    """Have something done when a producer is let go, or the interpreter ends, in place of giving up what waits.

    Args:
        producer: not closed yet.
        action: called on the thread on which it ends. It must not lead back to the producer.

    Returns:
        Its `detach()` keeps it from being called.
    """
    LEFT_AT_EXIT.discard(producer._engine)
    return producer._slow_path.callbacks.end_with(action)


class Transaction:
    """An open transaction of a `with producer.transaction()` block."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def send_offsets(self, positions: list[TopicPartition], group_metadata: ConsumerGroupMetadata) -> None:
        """Commit a consumer's offsets with the transaction; see `Producer.send_offsets_to_transaction`."""
        self._producer.send_offsets_to_transaction(positions, group_metadata)
