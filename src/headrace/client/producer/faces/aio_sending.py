"""What `AIOProducer` has beyond `produce()`: `send()` as in Java, batches, columns, the cluster's id, new credentials.

It must not decide anything: `client.producer.producer_engine` does. Read next: `client.producer.interception`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import Any

from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.coroutine_callbacks import started
from headrace.client.producer.column_feed import (
    ColumnFeed,
    ColumnRole,
    Roles,
    RowRange,
    RowReport,
    RowsReport,
    records_of,
)
from headrace.client.producer.interception import (
    EASE_S,
    Arguments,
    Callback,
    Deliver,
    Entrance,
    MetadataReport,
    TopicWatch,
    arguments_of,
    batch_arguments,
    check_record,
    still_full,
    unknown_topic,
)
from headrace.client.producer.interceptors import InterceptorChain
from headrace.client.producer.producer_engine import Core
from headrace.config import Config
from headrace.errors import BufferFullError, ClientClosedError, KafkaError, KafkaException
from headrace.records import Message
from headrace.types.records import ProducerRecord, RecordMetadata

__all__ = ["AIOSending"]


class AIOSending:
    """The half of `AIOProducer` that is not confluent_kafka's oldest."""

    _chain: InterceptorChain | None
    _config: Config
    _entrance: Entrance

    @property
    def _core(self) -> Core:
        raise NotImplementedError

    async def send(self, record: ProducerRecord, callback: Callback | None = None) -> asyncio.Future[RecordMetadata]:
        """Put a record on its way (Java: `KafkaProducer.send`).

        Waits while the buffer is full, or the topic not known yet, up to `max.block.ms`.
        `metadata = await (await producer.send(record))`.

        Args:
            record: what to send.
            callback: called as callback(metadata, error) when the record is stored (error is None) or given up.

        Returns:
            A future of where the record was stored; it raises `KafkaException` when it was not. The callback has been
            called before it is done.

        Raises:
            BufferFullError: there was no room in `max.block.ms`.
            ClientClosedError: the producer is closed.
            KafkaException: the record was not accepted: too large, an invalid topic (`_INVALID_ARG`), one that was not
                known in `max.block.ms` (`_UNKNOWN_TOPIC`), or a partition that it does not have.
            TypeError: not a `ProducerRecord`, or something in it is of a wrong type.
        """
        core = self._core
        accepted = self._entrance.accept(record)
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        report = _Report(self._chain, accepted, started(callback), future)
        waited_s = core.config.seconds("max.block.ms")
        expires_at = time.monotonic() + waited_s
        arguments = arguments_of(accepted)
        with self._entrance.refusals(arguments, accepted.record_id):
            check_record(accepted)
            if accepted.topic not in core.buffers.all:
                await self._await_topic(accepted.topic, expires_at)
            try:
                await self._append(arguments, report, expires_at)
            except BufferFullError:
                raise still_full(core.budget.messages, waited_s) from None
        return future

    async def _await_topic(self, topic: str, expires_at: float) -> None:
        buffers, last = self._core.buffers, None
        while True:
            known: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if not buffers.await_topic(topic, TopicWatch(known)):
                return
            try:
                await asyncio.wait_for(known, max(expires_at - time.monotonic(), 0.0))
                return
            except TimeoutError:
                raise last or unknown_topic(topic, self._core.config.seconds("max.block.ms")) from None
            except KafkaException as failed:
                if failed.error != KafkaError._UNKNOWN_TOPIC or time.monotonic() >= expires_at:
                    raise
                last = failed

    async def _append(self, arguments: Arguments, report: Deliver | None, expires_at: float) -> None:
        core = self._core
        while True:
            try:
                return core.produce(*arguments, report)
            except BufferFullError:
                if time.monotonic() >= expires_at:
                    raise
                await self._change(expires_at)

    async def _produce(self, arguments: Arguments, report: Deliver | None) -> None:
        """`Core.produce` with interceptors; waits while the buffer is full."""
        if self._chain is None:
            await self._append(arguments, report, math.inf)
            return
        arguments, record_id = self._entrance.intercept(arguments)
        with self._entrance.refusals(arguments, record_id):
            await self._append(arguments, self._entrance.reporting(report, record_id), math.inf)

    async def _change(self, expires_at: float) -> None:
        """Wait for reports, or for room."""
        raise NotImplementedError

    def _wanted(self, callback: Deliver | None) -> Deliver | None:
        """A callback as `delivery.report.only.error` wants it called."""
        call: Deliver | None = started(callback)
        if call is None or not self._config["delivery.report.only.error"]:
            return call
        return lambda error, message: None if error is None else call(error, message)

    async def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        callback: Callable[[KafkaError | None, Message], Any] | None = None,
        on_delivery: Callable[[KafkaError | None, Message], Any] | None = None,
    ) -> int:
        """Put many records of one topic on their way; waits while the buffer is full.

        Args:
            topic: topic name.
            messages: one dict for each record, with any of `value`, `key`, `partition`, `timestamp` (milliseconds),
                `headers`, and `callback` (or `on_delivery`). A record that is not accepted gets a `KafkaError` as
                `_error`.
            partition: of records that name none; -1 lets the partitioner choose.
            callback: for records that have none of their own, as in `produce()`.
            on_delivery: the same as `callback`.

        Returns:
            How many records were accepted.

        Raises:
            ClientClosedError: the producer is closed.
            TypeError: something is of a wrong type; no record was accepted.
        """
        accepted = 0
        default = callback or on_delivery or self._config["on_delivery"]
        for message, arguments, report in batch_arguments(topic, messages, partition, default):
            message.pop("_error", None)
            try:
                await self._produce(arguments, self._wanted(report))
                accepted += 1
            except ClientClosedError:
                raise
            except KafkaException as refused:
                message["_error"] = refused.error
        return accepted

    async def produce_arrow(
        self,
        topic: str,
        table: Any,
        *,
        value: str = "value",
        key: ColumnRole = ...,
        headers: ColumnRole = ...,
        timestamp: ColumnRole = ...,
        partition: ColumnRole = ...,
    ) -> asyncio.Future[int]:
        """Put the rows of a table on their way, without a Python object for each.

        Waits, up to `max.block.ms`, while the buffer is full or the topic not known yet. Returns when all rows
        are accepted: `stored = await (await producer.produce_arrow(topic, table))`.

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
        return await self.produce_batches(
            topic, [table], value=value, key=key, headers=headers, timestamp=timestamp, partition=partition)

    async def produce_batches(
        self,
        topic: str,
        tables: Iterable[Any],
        *,
        value: str = "value",
        key: ColumnRole = ...,
        headers: ColumnRole = ...,
        timestamp: ColumnRole = ...,
        partition: ColumnRole = ...,
    ) -> asyncio.Future[int]:
        """The same for the rows of many tables, or of a stream of record batches, one after the other."""
        core = self._core
        stored: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        feed = ColumnFeed(topic, Roles(value, key, headers, timestamp, partition),
                          RowsReport(topic, lambda rows, error: _resolve(stored, rows, error)))
        by_rows = self._chain is not None or core.buffers.by_function
        with feed.accepting():
            if topic not in core.buffers.all:
                await self._await_topic(topic, self._expiry())
            for arrays in feed.arrays(tables):
                if by_rows:
                    await self._put_rows(feed, arrays)
                else:
                    await self._put_columns(feed, RowRange(arrays))
                await asyncio.sleep(0)  # others have their turn
        return stored

    async def _put_rows(self, feed: ColumnFeed, arrays: dict[str, Any]) -> None:
        core = self._core
        for record in records_of(feed.topic, arrays):
            accepted = self._entrance.accept(record)
            arguments = arguments_of(accepted)
            with self._entrance.refusals(arguments, accepted.record_id):
                core.deliveries.has_at_once = True
                await self._append(arguments, RowReport(self._entrance, accepted, feed.report), self._expiry())
            feed.accepted += 1

    async def _put_columns(self, feed: ColumnFeed, part: RowRange) -> None:
        core, expires_at = self._core, self._expiry()
        while part.left:
            appended = feed.append(part, core.buffers)
            core.wake()
            if appended:
                await self._ease()
                expires_at = self._expiry()
                continue
            if time.monotonic() >= expires_at:
                raise still_full(core.budget.messages, core.config.seconds("max.block.ms"))
            core.relieve()
            await self._change(expires_at)

    async def _ease(self) -> None:
        """Let the loop send; wait a moment for brokers that the records are far ahead of."""
        await asyncio.sleep(0)
        budget, ends = self._core.budget, time.monotonic() + EASE_S
        while budget.is_far_ahead and time.monotonic() < ends:
            await self._change(ends)

    def _expiry(self) -> float:
        return time.monotonic() + self._core.config.seconds("max.block.ms")

    async def cluster_id(self, timeout: float = -1) -> str | None:
        """Id of the cluster (KIP-78).

        Args:
            timeout: seconds; negative waits as long as it takes.

        Raises:
            KafkaException: no broker answered in time.
        """
        listed: ClusterMetadata = await self._core.list_topics(None, timeout)
        return listed.cluster_id

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """Replace user and password of PLAIN or SCRAM, for connections and authentications that come after this.

        Raises:
            ConfigError: one is empty, or has a NUL character.
        """
        self._core.config.set_sasl_credentials(username, password)


class _Report(MetadataReport):
    """Resolves the future of a `send()`."""

    __slots__ = ("_future",)

    def __init__(self, chain: InterceptorChain | None, record: ProducerRecord, callback: Callback | None,
                 future: asyncio.Future[RecordMetadata]) -> None:
        super().__init__(chain, record, callback)
        self._future = future
        if callback is not None:
            future.add_done_callback(_look_at)

    def settle(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
        """Resolve the future."""
        if self._future.done():  # cancelled
            return
        if error is None:
            self._future.set_result(metadata)
        else:
            self._future.set_exception(KafkaException(error))


def _resolve(future: asyncio.Future[int], rows: int, error: KafkaException | None) -> None:
    if future.done():  # cancelled
        return
    if error is None:
        future.set_result(rows)
    else:
        future.set_exception(error)


def _look_at(future: asyncio.Future[RecordMetadata]) -> None:
    """The callback was told of the error: nobody has to ask the future as well."""
    if not future.cancelled():
        future.exception()
