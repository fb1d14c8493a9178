"""The calls of a producer: each rule about waiting once, as a generator that yields what it waits for.

The faces, Spark's writer and the command line run these with `client.waits`, on a thread or on a loop (decision 0017).
It must not know on which of the two. Read next: `client.producer.producer_engine`, which holds the machines.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headrace.arguments import list_of
from headrace.buffers import FEW_MESSAGES, BufferPool
from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.producer.interception import (
    Arguments,
    AwaitedReport,
    Callback,
    Deliver,
    FutureReport,
    InterceptedSend,
    LoopFutureReport,
    MetadataReport,
    TopicWatch,
    arguments_of,
    batch_arguments,
    check_record,
    refused_message,
    still_full,
    unknown_topic,
    with_id,
)
from headrace.client.producer.producer_engine import ProducerEngine
from headrace.client.waits import TURN, LoopWaits, Steps, ThreadWaits, Wait, deadline, seconds
from headrace.errors import BufferFullError, ClientClosedError, KafkaError, KafkaException
from headrace.types.records import ConsumerGroupMetadata, ProducerRecord, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    from headrace.client.producer.column_feed import ColumnFeed, ColumnMapping, RowRange, RowsResult
    from headrace.client.producer.interceptors import InterceptorChain
    from headrace.client.producer.transaction_calls import TransactionCalls
    from headrace.machines.producer.transactions import Operation

__all__ = ["Backpressure", "ProducerCalls"]

W = TypeVar("W", ThreadWaits, LoopWaits)
_FOREVER_S = 1e8
_SHORT_S = 0.001  # librdkafka does not sleep for less either: it counts in milliseconds
_AHEAD_WAIT_S = 0.05  # longest wait for brokers that records are far ahead of
_REST_S, _NAP_S = 0.005, 0.001
_OF_THE_RECORD = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._UNKNOWN_PARTITION)


class ProducerCalls(Generic[W]):
    """The calls of one producer. Those that return `Steps` are to be run by `waits.run()`.

    Args:
        engine: the producer's machines.
        chain: its interceptors; None for none.
        waits: runs the calls, and is notified of changes.
        serves: says whether a waiting call calls the callbacks that are due. If not, another thread does.

    Attributes:
        engine: as given.
        waits: as given.
        serves: as given; another server of callbacks may replace it.
        serve_last: how another thread calls the callbacks that are left, when nothing more will come; None for none.
        intercepted: where records come in: interceptors, then the engine.
        record_ids: for records that `send()` is given without one; None leaves them as they are.
    """

    def __init__(self, engine: ProducerEngine, chain: InterceptorChain | None, waits: W,
                 serves: Callable[[], bool]) -> None:
        self.engine = engine
        self.waits: W = waits
        self.serves = serves
        self.serve_last: Callable[[], object] | None = None
        self.intercepted = InterceptedSend(engine, chain)
        self.record_ids: Iterator[int] | None = None
        self._sends_alone = threading.Lock()  # Ctrl-C may leave it locked: then nobody is alone any more

    def load(self) -> tuple[int, int]:
        """Records and bytes that wait for delivery."""
        return self.engine.buffer_pool.messages, self.engine.buffer_pool.bytes

    def expiry(self) -> float:
        """When a wait that begins now ends (max.block.ms), in monotonic seconds."""
        return time.monotonic() + self.engine.config.seconds("max.block.ms")

    def count_poll(self) -> None:
        """This thread looks for reports: who does so behind each record takes replies by itself (decision 0053)."""
        if self.engine.polling is not None:
            self.engine.polling.polls += 1

    def _serve(self) -> None:
        if self.serves():
            self.engine.deliveries.serve()

    async def list_topics(self, topic: str | None, timeout: float) -> ClusterMetadata:
        """The cluster's brokers and topics; negative timeouts never end."""
        return await self.engine.client.list_topics(topic, min(_FOREVER_S, seconds(timeout)))

    async def cluster_id(self, timeout: float) -> str | None:
        """The cluster's id; negative timeouts never end."""
        return await self.engine.client.cluster_id(min(_FOREVER_S, seconds(timeout)))

    # Waiting for topics and for room

    def topic_answered(self, topic: str, until: float = math.inf) -> Steps[bool]:
        """Wait until a topic is known; False if it was not when the time was over.

        Raises:
            ClientClosedError: the producer is closed.
            KafkaException: the topic cannot be used, or the brokers say that they do not have it; `_RESOLVE`: there are
                no such brokers.
        """
        watch = yield from self._topic_watched(topic, until)
        if watch is None:
            return True
        if watch.error is not None:
            raise KafkaException(watch.error)
        return watch.is_done()

    def topic_known(self, topic: str, until: float) -> Steps[None]:
        """Wait until a topic is known, also if brokers deny it, or cannot be found: it may turn up.

        Raises:
            ClientClosedError: the producer is closed.
            KafkaException: no records are taken, the topic cannot be used, or it did not turn up.
        """
        missed: KafkaError | None = None
        while True:
            watch = yield from self._topic_watched(topic, until)
            if watch is None or (watch.is_done() and watch.error is None):
                return
            if watch.error is None:  # the time is over
                raise KafkaException(missed) if missed is not None else unknown_topic(
                    topic, self.engine.config.seconds("max.block.ms"))
            missed = watch.error
            if missed not in (KafkaError._UNKNOWN_TOPIC, KafkaError._RESOLVE) or time.monotonic() >= until:
                raise KafkaException(missed)

    def _topic_watched(self, topic: str, until: float) -> Steps[TopicWatch | None]:
        """Wait for the brokers' answer about a topic; None for one that is known already."""
        watch = TopicWatch(self.waits.notify)
        if not self.engine.accumulators.await_topic(topic, watch):
            return None
        yield Wait(watch.is_done, until)
        return watch

    def room(self, before: tuple[int, int], until: float, *, rows: bool = False) -> Wait:
        """A wait for room, and for nothing more once the producer is closed, but for callbacks that may still produce.

        Args:
            before: what waited when there was none.
            until: monotonic seconds.
            rows: wait for much room, or for reports to serve.
        """
        engine, spared = self.engine, self.engine.deliveries.in_callback()

        def happened() -> bool:
            if engine.closed and not spared:
                return True
            has_room = self.load() != before
            return engine.deliveries.pending or (has_room and engine.buffer_pool.is_roomy) if rows else has_room

        return Wait(happened, until)

    def await_brokers(self) -> Steps[None]:
        """Wait a moment for brokers that the records are far ahead of."""
        yield Wait(lambda: not self.engine.buffer_pool.is_far_ahead, time.monotonic() + _AHEAD_WAIT_S)

    def append(self, arguments: Arguments, report: Deliver | None, until: float = math.inf) -> Iterable[Wait]:
        """Append a record as soon as there is room. Without a generator where there is room at once.

        Raises:
            BufferFullError: there was none in time, or this is no place to wait.
            ClientClosedError: the producer is closed.
            KafkaException: the record cannot be stored anywhere.
        """
        if self.engine.buffer_pool.messages < FEW_MESSAGES:
            self.waits.step_aside()
        try:
            self.engine.produce(*arguments, report)
        except BufferFullError:
            if self.serves() and not self._may_wait(until):
                raise
            return self._append_later(arguments, report, until)
        return ()

    def _may_wait(self, until: float) -> bool:
        return time.monotonic() < until and self.waits.may_wait()

    def _append_later(self, arguments: Arguments, report: Deliver | None, until: float) -> Iterator[Wait]:
        began_at = time.monotonic()
        while True:
            before = self.load()
            try:
                return self.engine.produce(*arguments, report)
            except BufferFullError:
                if not self._may_wait(until):
                    raise still_full(before[0], time.monotonic() - began_at) from None
            yield self.room(before, until)

    def append_rows(self, append: Callable[[], int], until: float) -> Steps[int]:
        """Append rows of columns, as many as there is room for, and at least one: that is waited for.

        Args:
            append: appends what there is room for; returns how many rows.
            until: monotonic seconds.

        Raises:
            BufferFullError: there was no room in time.
        """
        engine = self.engine
        while True:
            before = self.load()
            try:
                appended = append()
            finally:
                engine.wake()
            if appended:
                return appended
            if time.monotonic() >= until:
                raise still_full(engine.buffer_pool.messages, engine.config.seconds("max.block.ms"))
            engine.flush_now()
            yield self.room(before, until, rows=True)
            self._serve()

    # Records

    def produce(self, arguments: Arguments, report: Deliver | None) -> Iterable[Wait]:
        """Append a record, waiting while the buffer is full. Interceptors see it first."""
        return (self.append if self.intercepted.chain is None else self._produce_intercepted)(arguments, report)

    def _produce_intercepted(self, arguments: Arguments, report: Deliver | None) -> Iterator[Wait]:
        intercepted = self.intercepted
        arguments, record_id = intercepted.intercept(arguments)
        with intercepted.reporting_rejection(arguments, record_id):
            yield from self.append(arguments, intercepted.reporting(report, record_id))

    def produce_reported(self, arguments: Arguments, report: Deliver) -> Steps[None]:
        """`produce`, with errors of the record itself passed to its report instead of raised."""
        try:
            yield from self.produce(arguments, report)
            if arguments[0] not in self.engine.accumulators.all:
                yield TURN  # else the loop would never process the metadata
        except KafkaException as refused:
            if refused.error not in _OF_THE_RECORD:
                raise
            topic, value, key, partition, timestamp_ms, headers = arguments
            record = ProducerRecord(topic, value, key, partition, headers, timestamp_ms)
            self._report(report, record, refused.error)

    def _report(self, report: Deliver, record: ProducerRecord, error: KafkaError) -> None:
        self.engine.deliveries.add_notice(report, error, refused_message(record, error))

    def produce_batch(self, topic: str, messages: list[dict[str, Any]], partition: int, default: Deliver | None,
                      wanted: Callable[[Deliver | None], Deliver | None] | None = None) -> Steps[int]:
        """Append the messages of a batch; those that are not accepted get their error as `_error`.

        Args:
            topic: topic name.
            messages: as of `Producer.produce_batch`.
            partition: of messages that name none.
            default: callback of messages that have none.
            wanted: what is called in place of a callback; with it, a full buffer is waited for. Without it, once the
                buffer is full no more are tried, so that none overtakes another.

        Returns:
            How many were accepted.

        Raises:
            ClientClosedError: the producer is closed.
        """
        accepted, full = 0, False
        error: KafkaError | None = None
        for message, arguments, callback in batch_arguments(topic, messages, partition, default):
            message.pop("_error", None)
            if full:
                message["_error"] = error
                continue
            try:
                if wanted is None:
                    self.intercepted.produce(*arguments, callback)
                else:
                    yield from self.produce(arguments, wanted(callback))
                accepted += 1
            except ClientClosedError:
                raise
            except KafkaException as refused:
                message["_error"] = error = refused.error
                full = isinstance(refused, BufferFullError)
        return accepted

    def send(self, record: ProducerRecord, callback: Callback | None) -> Steps[Future[RecordMetadata]]:
        """`Producer.send`: the future is resolved on the loop."""
        return (yield from self._send_for_future(self._accept(record), callback, knows_topic=True))

    def _send_for_future(self, record: ProducerRecord, callback: Callback | None, *,
                         knows_topic: bool = False) -> Steps[Future[RecordMetadata]]:
        report = FutureReport(self.intercepted.chain, record, callback, self.engine.buffer_pool)
        self.engine.deliveries.has_at_once = True
        yield from self._put(record, report, knows_topic=knows_topic)
        report.accepted()
        return report.future

    def send_and_wait(self, record: ProducerRecord) -> Steps[RecordMetadata]:
        """`KafkaSyncProducer.send`: also wait until the record is stored.

        A thread that sends alone serves reports meanwhile. Of several each would be woken for all of their records.
        """
        accepted = self._accept(record)
        if not self._sends_alone.acquire(blocking=False):
            future = yield from self._send_for_future(accepted, None)
            yield Wait(future.done)
            return future.result()
        try:
            return (yield from self._send_and_serve(accepted))
        finally:
            self._sends_alone.release()

    def _send_and_serve(self, record: ProducerRecord) -> Steps[RecordMetadata]:
        engine, deliveries = self.engine, self.engine.deliveries
        report = AwaitedReport(self.intercepted.chain, record)
        yield from self._put(record, report)
        self.count_poll()
        while (outcome := report.outcome) is None:
            yield Wait(lambda: deliveries.pending or report.outcome is not None, meanwhile=engine.replies)
            deliveries.serve()
        if isinstance(outcome, KafkaError):
            raise KafkaException(outcome)
        return outcome

    def send_into(self, future: asyncio.Future[RecordMetadata], record: ProducerRecord,
                  callback: Callback | None) -> Steps[asyncio.Future[RecordMetadata]]:
        """`AIOProducer.send`: resolve a future of the loop where reports are served."""
        accepted = self._accept(record)
        report = LoopFutureReport(self.intercepted.chain, accepted, callback, future)
        yield from self._put(accepted, report, knows_topic=True)
        return future

    def send_reported(self, record: ProducerRecord, callback: Callback | None, *, waits: bool) -> Steps[None]:
        """`KafkaAsyncProducer.send`: errors of the record are passed to its callback, too.

        Args:
            record: what to send.
            callback: called with the record's outcome.
            waits: wait for room as long as it takes; else there is room at once, or never.
        """
        accepted = self._accept(record)
        report, arguments = MetadataReport(self.intercepted.chain, accepted, callback), arguments_of(accepted)
        with self.intercepted.reporting_rejection(arguments, accepted.record_id):
            try:
                check_record(accepted)
                yield from self.append(arguments, report, math.inf if waits else -math.inf)
            except BufferFullError:
                raise BufferFullError(
                    f"Local: Queue full: {len(self.engine)} messages wait for delivery or for their callbacks; call "
                    "poll_events() and try again, or raise queue.buffering.max.messages or queue.buffering.max.kbytes"
                ) from None
            except ClientClosedError:
                raise
            except KafkaException as refused:
                self._report(report, accepted, refused.error)

    def _accept(self, record: Any) -> ProducerRecord:
        accepted = self.intercepted.accept(record)
        if self.record_ids is None or accepted.record_id is not None:
            return accepted
        return with_id(accepted, next(self.record_ids))

    def _put(self, record: ProducerRecord, report: Deliver, *, knows_topic: bool = False) -> Steps[None]:
        """Append a record of `send()`, of a topic that is to be known first, if so wanted."""
        arguments, until = arguments_of(record), self.expiry()
        with self.intercepted.reporting_rejection(arguments, record.record_id):
            check_record(record)
            if knows_topic and record.topic not in self.engine.accumulators.all and self.waits.may_wait():
                yield from self.topic_known(record.topic, until)
            yield from self.append(arguments, report, until)

    # Columns

    def produce_batches(self, topic: str, tables: Iterable[Any], roles: ColumnMapping,
                        report: RowsResult) -> Steps[None]:
        """Append the rows of tables, one after the other; the report counts what becomes of them."""
        if not self.waits.may_wait():
            raise RuntimeError("columns wait for room: do not send them from callbacks that must not wait")
        from headrace.client.producer.column_feed import ColumnFeed, RowRange

        engine, feed = self.engine, ColumnFeed(topic, roles, report)
        by_rows = self.intercepted.chain is not None or engine.accumulators.by_function
        engine.deliveries.has_at_once |= by_rows
        with feed.accepting():
            if topic not in engine.accumulators.all:
                yield from self.topic_known(topic, self.expiry())
            for arrays in feed.arrays(tables):
                yield from (self._records_of(feed, arrays) if by_rows else self._rows_of(feed, RowRange(arrays)))
                yield TURN

    def _records_of(self, feed: ColumnFeed, arrays: dict[str, Any]) -> Steps[None]:
        from headrace.client.producer.column_feed import RowReport, records_of

        for record in records_of(feed.topic, arrays):
            accepted = self.intercepted.accept(record)
            arguments = arguments_of(accepted)
            with self.intercepted.reporting_rejection(arguments, accepted.record_id):
                yield from self.append(arguments, RowReport(self.intercepted, accepted, feed.report), self.expiry())
            feed.accepted += 1

    def _rows_of(self, feed: ColumnFeed, part: RowRange) -> Steps[None]:
        while part.left:
            yield from self.append_rows(lambda: feed.append(part, self.engine.accumulators), self.expiry())
            yield from self.await_brokers()

    # Reports, and the end

    def report_due(self, timeout: float | None, full_at: tuple[int, int] | None) -> Wait:
        """A wait for reports to serve, or for the producer's end.

        Args:
            timeout: seconds; None and negative ones never end.
            full_at: wait for room as well: what waited when there was none.
        """
        engine, deliveries = self.engine, self.engine.deliveries

        def happened() -> bool:
            return deliveries.pending or engine.closed or (full_at is not None and self.load() != full_at)

        until = deadline(timeout)
        watched = engine.buffer_pool.messages and timeout is not None and 0 < timeout < _SHORT_S
        return Wait(happened, until, until if watched else 0.0, engine.replies)

    def flush(self, until: float) -> Steps[int]:
        """Send everything now and wait for the reports, which are served meanwhile. Returns how many records wait."""
        engine, deliveries, this = self.engine, self.engine.deliveries, object()
        try:
            engine.flushes[this] = None
            if not engine.accumulators.open_batches.send_open():
                engine.wake()
            watch_until = time.monotonic() + _SHORT_S
            if not self.serves():
                yield Wait(self._is_settled, until)
                return len(engine)
            while True:
                deliveries.serve()
                if engine.is_done or time.monotonic() >= until:
                    return len(engine)
                yield Wait(lambda: deliveries.pending or engine.is_done, until, watch_until, engine.replies)
        finally:
            engine.flushes.pop(this, None)  # first, and in one step: Ctrl-C may come after any call
            if not engine.is_done:
                engine.wake()  # what is left lingers again

    def _is_settled(self) -> bool:
        """Everything is delivered, and all callbacks were called on other threads."""
        deliveries = self.engine.deliveries
        return self.engine.is_done and not (deliveries.pending or deliveries.called_elsewhere())

    def close(self, *, spare_callbacks: bool) -> Steps[None]:
        """Deliver what waits, see to it that no callback runs any more, and stop. An open transaction is aborted.

        Args:
            spare_callbacks: callbacks may produce until then.
        """
        engine, deliveries = self.engine, self.engine.deliveries
        engine.refuse(spare_callbacks=spare_callbacks)
        self.waits.notify()  # a wait for reports has nothing to wait for any more
        here = int(deliveries.in_callback())  # the notifying thread evaluates `happened` too, on another thread
        try:
            if engine.transactions is not None:
                yield engine.transactions.leave()
            yield from self.flush(math.inf)
            while deliveries.callers > here or not engine.is_done:  # a callback that has returned may have produced
                yield Wait(lambda: deliveries.pending or deliveries.callers <= here)
                yield from self.flush(math.inf)
        finally:
            yield engine.close()
            try:
                (self.serve_last or self._serve)()
            finally:
                self.intercepted.close()

    # Transactions

    def init_transactions(self, timeout: float) -> Steps[None]:
        """Take over the transactional id."""
        limit_s = seconds(timeout)
        calls, operation = self._operation("init_transactions")
        yield from self._await(calls, operation, calls.run(operation, limit_s))

    def begin_transaction(self) -> Steps[None]:
        """Open a transaction."""
        yield self._transactions("begin_transaction").begin()

    def send_offsets_to_transaction(
        self, positions: list[TopicPartition], group_metadata: ConsumerGroupMetadata, timeout: float
    ) -> Steps[None]:
        """Commit a consumer's offsets with the transaction."""
        positions, limit_s = list_of(TopicPartition, positions, "positions"), seconds(timeout)
        if not isinstance(group_metadata, ConsumerGroupMetadata):
            raise TypeError("group_metadata must be what consumer_group_metadata() of a consumer with a group.id "
                            f"returns, not {type(group_metadata).__name__}")
        calls, operation = self._operation("send_offsets_to_transaction")
        yield from self._await(calls, operation, calls.add_offsets(positions, group_metadata, limit_s))

    def commit_transaction(self, timeout: float) -> Steps[None]:
        """Take no more records, deliver those that wait, then commit."""
        until = deadline(timeout)
        calls, operation = self._operation("commit_transaction")
        calls.stop_taking()
        if (yield from self.flush(until)):
            raise KafkaException(calls.late("commit_transaction"))
        left_s = max(until - time.monotonic(), 0.0)
        yield from self._await(calls, operation, calls.run(operation, left_s))

    def abort_transaction(self, timeout: float) -> Steps[None]:
        """Give up what was produced in the transaction."""
        limit_s = seconds(timeout)
        calls, operation = self._operation("abort_transaction")
        try:
            yield from self._await(calls, operation, calls.run(operation, limit_s))
        finally:
            self._serve()

    @property
    def can_abort(self) -> bool:
        """True when a transaction is open and not about to be committed."""
        return not self.engine.closed and self._transactions("transaction").can_abort

    def _transactions(self, call: str) -> TransactionCalls:
        if self.engine.transactions is None:
            from headrace.client.producer.transaction_calls import not_configured

            raise KafkaException(not_configured(call))
        return self.engine.transactions

    def _operation(self, call: str) -> tuple[TransactionCalls, Operation]:
        calls = self._transactions(call)
        return calls, calls.operation(call)

    def _await(self, calls: TransactionCalls, operation: Operation, work: Coroutine[Any, Any, None]) -> Steps[None]:
        try:
            yield work
        except KafkaException:
            raise
        except BaseException:  # a signal's, perhaps just when the end was to be returned
            yield calls.not_delivered(operation)
            raise


class Backpressure:
    """Wakes the loop. A caller far ahead of the brokers is paused: up to `_REST_S`, and four fifths of the time.

    Memory that comes back from the brokers costs less than new memory does, and two threads less than one and a half.

    Args:
        wake: wakes the loop.
        buffer_pool: knows whether records are far ahead.
        on_loop: true on the loop's own thread, which is never paused.
    """

    def __init__(self, wake: Callable[[], None], buffer_pool: BufferPool, on_loop: Callable[[], bool]) -> None:
        self._wake, self._buffer_pool, self._on_loop = wake, buffer_pool, on_loop
        self._rested_at = 0.0

    def wake(self) -> None:
        """There is something to send, or to wait for."""
        self._wake()
        if self._buffer_pool.is_far_ahead and not self._on_loop():
            now = time.monotonic()
            last = now + min(4 * (now - self._rested_at), _REST_S) - _NAP_S
            while self._buffer_pool.is_far_ahead and (now := time.monotonic()) < last + 1e-6:
                time.sleep(_NAP_S)
                self._rested_at = now + _NAP_S
