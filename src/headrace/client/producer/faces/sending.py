"""What `Producer` has beyond `produce()`: `send()` as in Java, batches, columns, the cluster's id, new credentials.

`send()` waits, up to `max.block.ms`, for room and for its topic; the loop's thread tells what became of the record.
It must not decide anything: `client.producer.producer_engine` does. Read next: `client.producer.interception`.
"""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.producer.column_feed import (
    ColumnFeed,
    ColumnRole,
    Roles,
    RowRange,
    RowReport,
    RowsReport,
    StoredRows,
    records_of,
)
from headrace.client.producer.interception import (
    EASE_S,
    Callback,
    Entrance,
    FutureReport,
    TopicWatch,
    arguments_of,
    batch_arguments,
    check_record,
    produce_all,
    still_full,
    unknown_topic,
)
from headrace.client.producer.producer_engine import Core
from headrace.errors import BufferFullError, KafkaError, KafkaException
from headrace.net.thread import LoopThread
from headrace.records import Budget, Message
from headrace.types.records import ProducerRecord, RecordMetadata

__all__ = ["Pace", "Sending"]

_REST_S, _NAP_S = 0.005, 0.001
_SLICE_S = 0.1  # longest wait before signals are looked at


class Pace:
    """Wakes the loop. Who is far ahead of the brokers rests meanwhile: up to `_REST_S`, and four fifths of the time.

    Memory that comes back from the brokers costs less than new memory does, and two threads less than one and a half.

    Args:
        wake: wakes the loop.
        budget: knows who is far ahead.
        on_loop: true on the loop's own thread, which never rests.
    """

    def __init__(self, wake: Callable[[], None], budget: Budget, on_loop: Callable[[], bool]) -> None:
        self._wake, self._budget, self._on_loop = wake, budget, on_loop
        self._rested_at = 0.0

    def wake(self) -> None:
        """There is something to send, or to wait for."""
        self._wake()
        if self._budget.is_far_ahead and not self._on_loop():
            now = time.monotonic()
            last = now + min(4 * (now - self._rested_at), _REST_S) - _NAP_S
            while self._budget.is_far_ahead and (now := time.monotonic()) < last + 1e-6:
                time.sleep(_NAP_S)
                self._rested_at = now + _NAP_S


class Sending:
    """The half of `Producer` that is not confluent_kafka's oldest."""

    _core: Core
    _entrance: Entrance
    _thread: LoopThread

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
                callback nor a future tells of it then.
            TypeError: not a `ProducerRecord`, or something in it is of a wrong type.
        """
        accepted = self._entrance.accept(record)
        report = FutureReport(self._entrance.chain, accepted, callback, self._core.budget)
        expires_at = time.monotonic() + self._core.config.seconds("max.block.ms")
        with self._entrance.refusals(arguments_of(accepted), accepted.record_id):
            check_record(accepted)
            if accepted.topic not in self._core.buffers.all and not self._on_loop():
                self._await_topic(accepted.topic, expires_at)
            self._put(accepted, report, expires_at)
        report.accepted()
        return report.future

    def _put(self, record: ProducerRecord, report: Callable[..., None], expires_at: float) -> None:
        """Append a record as soon as there is room. Ctrl-C ends the wait."""
        began_at, waited = time.monotonic(), False
        while True:
            before = self._load()
            try:
                return self._entrance.put(record, report)
            except BufferFullError:
                now = time.monotonic()
                if now < expires_at and not self._on_loop():
                    self._wait_for_room(before, expires_at)
                    waited = True
                elif waited:
                    raise still_full(before[0], now - began_at) from None
                else:
                    raise

    def _wait_for_room(self, before: tuple[int, int], expires_at: float, *, rows: bool = False) -> None:
        """Wait for room, and for nothing more once the producer is closed, but for callbacks that may still produce.

        Args:
            before: what waited when there was none.
            expires_at: monotonic seconds.
            rows: wait for much room, or for reports to serve.
        """
        core, spared = self._core, self._core.deliveries.in_callback()

        def happened() -> bool:
            if core.closed and not spared:
                return True
            has_room = self._load() != before
            return core.deliveries.pending or (has_room and core.budget.is_roomy) if rows else has_room

        self._wait_until(happened, expires_at)

    def _load(self) -> tuple[int, int]:
        return self._core.budget.messages, self._core.budget.bytes

    def _await_topic(self, topic: str, expires_at: float) -> None:
        last: KafkaException | None = None
        while True:
            known: Future[None] = Future()
            if not self._core.buffers.await_topic(topic, TopicWatch(known)):
                return
            while not known.done() and (left_s := expires_at - time.monotonic()) > 0:
                concurrent.futures.wait([known], min(left_s, _SLICE_S))
            if not known.done():
                raise last or unknown_topic(topic, self._core.config.seconds("max.block.ms"))
            failed = known.exception()
            if failed is None:
                return
            assert isinstance(failed, KafkaException)
            if failed.error != KafkaError._UNKNOWN_TOPIC or time.monotonic() >= expires_at:
                raise failed
            last = failed

    def _on_loop(self) -> bool:
        return self._thread.is_here()

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
        report = callback or on_delivery or self._core.config["on_delivery"]
        return produce_all(batch_arguments(topic, messages, partition, report), self._entrance.produce)

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
            TypeError: the table, or a column's type, can not be used.
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
        """The same for the rows of many tables, or of a stream of record batches, one after the other."""
        if self._on_loop():
            raise RuntimeError("columns wait for room: do not send them from callbacks that must not wait")
        stored = StoredRows(topic)
        feed = ColumnFeed(topic, Roles(value, key, headers, timestamp, partition), RowsReport(topic, stored.resolve))
        by_rows = self._entrance.chain is not None or self._core.buffers.by_function
        with feed.accepting():
            self._check_open()
            if topic not in self._core.buffers.all:
                self._await_topic(topic, self._expiry())
            for arrays in feed.arrays(tables):
                if by_rows:
                    self._put_rows(feed, arrays)
                else:
                    self._put_columns(feed, RowRange(arrays))
        return stored

    def _put_rows(self, feed: ColumnFeed, arrays: dict[str, Any]) -> None:
        for record in records_of(feed.topic, arrays):
            accepted = self._entrance.accept(record)
            with self._entrance.refusals(arguments_of(accepted), accepted.record_id):
                self._put(accepted, RowReport(self._entrance, accepted, feed.report), self._expiry())
            feed.accepted += 1

    def _put_columns(self, feed: ColumnFeed, part: RowRange) -> None:
        core, expires_at = self._core, self._expiry()
        while part.left:
            before = self._load()
            appended = feed.append(part, core.buffers)
            core.wake()
            if appended:
                if core.budget.is_far_ahead and not self._on_loop():
                    self._wait_until(lambda: not core.budget.is_far_ahead, time.monotonic() + EASE_S)
                expires_at = self._expiry()
                continue
            if time.monotonic() >= expires_at:
                raise still_full(core.budget.messages, core.config.seconds("max.block.ms"))
            core.relieve()
            self._wait_for_room(before, expires_at, rows=True)
            core.deliveries.serve()

    def _expiry(self) -> float:
        return time.monotonic() + self._core.config.seconds("max.block.ms")

    def cluster_id(self, timeout: float = -1) -> str | None:
        """Id of the cluster (KIP-78).

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: no broker answered in time.
        """
        listed: ClusterMetadata = self.list_topics(timeout=timeout)
        return listed.cluster_id

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replace user and password of PLAIN or SCRAM, for connections and authentications that come after this.

        Raises:
            ConfigError: one is empty, or has a NUL character.
        """
        self._check_open()
        self._core.config.set_sasl_credentials(username, password)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Ask the cluster for its brokers and topics."""
        raise NotImplementedError

    def _check_open(self) -> None:
        raise NotImplementedError

    def _wait_until(self, happened: Callable[[], Any], expires_at: float) -> None:
        raise NotImplementedError
