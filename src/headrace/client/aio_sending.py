"""What `AIOProducer` has beyond `produce()`: `send()` as in Java, batches, the cluster's id, new credentials.

It must not decide anything: `client.producer` does. Read next: `client.sending`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

from headrace.client.cluster import ClusterMetadata
from headrace.client.interceptors import InterceptorChain
from headrace.client.producer import Core
from headrace.client.sending import (
    Arguments,
    Callback,
    Deliver,
    Entrance,
    MetadataReport,
    TopicWatch,
    arguments_of,
    batch_arguments,
    check_topic,
    still_full,
    unknown_topic,
)
from headrace.config import Config
from headrace.errors import BufferFullError, ClientClosedError, KafkaError, KafkaException
from headrace.records import Message
from headrace.types import ProducerRecord, RecordMetadata

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
            TypeError: not a `ProducerRecord`, or its key, value or headers are of a wrong type.
        """
        core = self._core
        accepted = self._entrance.accept(record)
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        report = _Report(self._chain, accepted, callback, future)
        waited_s = core.config.seconds("max.block.ms")
        expires_at = time.monotonic() + waited_s
        arguments = arguments_of(accepted)
        with self._entrance.refusals(arguments, accepted.record_id):
            check_topic(accepted.topic)
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
        arguments, record_id = self._entrance.intercept(arguments)
        with self._entrance.refusals(arguments, record_id):
            await self._append(arguments, self._entrance.reporting(report, record_id), math.inf)

    async def _change(self, expires_at: float) -> None:
        """Wait for reports, or for room."""
        raise NotImplementedError

    def _wanted(self, callback: Deliver | None) -> Deliver | None:
        """A callback as `delivery.report.only.error` wants it called."""
        if callback is None or not self._config["delivery.report.only.error"]:
            return callback
        return lambda error, message: None if error is None else callback(error, message)

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


def _look_at(future: asyncio.Future[RecordMetadata]) -> None:
    """The callback was told of the error: nobody has to ask the future as well."""
    if not future.cancelled():
        future.exception()
