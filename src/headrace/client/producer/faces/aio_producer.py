"""`AIOProducer`: the producer for asyncio, on the caller's own loop. No thread, no executor.

It must not decide anything: `client.producer.producer_engine` does. Read next: `client.producer.producer_engine`.
"""

from __future__ import annotations

import asyncio
import functools
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from headrace.client.coroutine_callbacks import with_started
from headrace.client.producer.faces.aio_sending import AIOSending
from headrace.client.producer.faces.aio_transactional import AIOTransactional
from headrace.client.producer.interception import Entrance, refused_message
from headrace.client.producer.interceptors import InterceptorChain
from headrace.client.producer.producer_engine import Core
from headrace.client.producer.topics import producer_closed
from headrace.client.producer.transaction_calls import seconds
from headrace.client.statistics import Metrics
from headrace.config import PRODUCER, Config
from headrace.errors import KafkaError, KafkaException
from headrace.records import AIOIntake, Message
from headrace.types.records import Headers, ProducerRecord

__all__ = ["AIOProducer"]

_OF_THE_RECORD = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._UNKNOWN_PARTITION)


class AIOProducer(AIOSending, AIOTransactional):
    """A producer for asyncio (confluent_kafka.aio's names).

    `produce()` waits only while the buffer is full; it returns a future of the delivered message:
    `message = await (await producer.produce("topic", b"value"))`.

    Args:
        producer_conf: properties, see `headrace.config`. Callbacks may be functions, or coroutine functions, which run
            as tasks.
        max_workers, executor: without effect: no threads are needed.
        batch_size, buffer_timeout: without effect: batch.num.messages, batch.size and linger.ms say when records go.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
    """

    def __init__(
        self,
        producer_conf: Mapping[str, Any],
        max_workers: int = 4,
        executor: Executor | None = None,
        batch_size: int = 1000,
        buffer_timeout: float = 1.0,
    ) -> None:
        self._config = Config(PRODUCER, with_started(producer_conf), servers_needed=False)
        self._chain = InterceptorChain.of(self._config)
        self._core_if_started: Core | None = None
        self._changed = asyncio.Event()
        self._closing: asyncio.Future[None] | None = None
        self._served = 0

    @property
    def _core(self) -> Core:
        if self._core_if_started is None:
            if self._closing is not None:
                raise producer_closed()
            self._core_if_started = core = Core(self._config, self._on_change, same_thread=True)
            core.deliveries.only_errors = False  # futures are to be resolved in any case
            self._entrance = Entrance(core, self._chain)
            core.deliveries.unheard = functools.partial(_on_unheard, asyncio.get_running_loop())
            if type(self).produce is AIOProducer.produce and self._config["on_delivery"] is None:
                intake = AIOIntake(self._entrance.open, self._produce_one, core.wake, _new_future, self._ease)
                self.__dict__["produce"] = intake.produce  # saves Python's frames and a future for each record
        return self._core_if_started

    def _on_change(self) -> None:
        if self._core_if_started is None:
            return
        try:
            self._served += self._core_if_started.deliveries.serve()
        except Exception as error:  # a callback's; the rest of the reports must not wait for ever
            loop = asyncio.get_running_loop()
            loop.call_exception_handler({"message": "a callback of a producer raised", "exception": error})
            loop.call_soon(self._on_change)
        self._changed.set()

    async def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        on_delivery: Callable[[KafkaError | None, Message], Any] | None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> asyncio.Future[Message]:
        """Put a record on its way. Waits while the buffer is full; the loop has a turn when a batch is.

        Args:
            topic: topic name.
            value: payload; None is a tombstone.
            key: key for partitioning and compaction.
            partition: partition number; -1 lets the partitioner choose.
            on_delivery: called with (error, message) as well.
            timestamp: milliseconds since the epoch; 0 takes the time of the call.
            headers: names and values.

        Returns:
            A future of the delivered message; it raises `KafkaException` when the record is not delivered, also when
            it is too large or its partition does not exist.

        Raises:
            ClientClosedError: the producer is closed.
            KafkaException: the producer takes no records now: it has failed, or is not in a transaction.
            TypeError: topic, value, key or headers are of a wrong type.
        """
        return await self._produce_one(topic, value, key, partition, on_delivery, timestamp, headers)

    async def _produce_one(
        self, topic: str, value: Any, key: Any, partition: int,
        on_delivery: Callable[[KafkaError | None, Message], Any] | None, timestamp: int, headers: Headers | None,
    ) -> asyncio.Future[Message]:
        """`produce`, with everything that may be unusual."""
        core = self._core
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        report = _Report(future, self._wanted(on_delivery or self._config["on_delivery"]))
        arguments = (topic, value, key, partition, timestamp, headers)
        try:
            await self._produce(arguments, report)
            if topic not in core.buffers.all:
                await asyncio.sleep(0)  # else the loop would never hear of the topic
        except KafkaException as refused:
            if refused.error not in _OF_THE_RECORD:
                raise
            record = ProducerRecord(topic, value, key, partition, headers, timestamp)
            core.deliveries.add_notice(report, refused.error, refused_message(record, refused.error))
        return future

    async def poll(self, timeout: float = 0) -> int:
        """Wait until something is reported. The loop calls callbacks by itself, whether this is called or not.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Returns:
            How many callbacks were called since the last `poll()`.

        Raises:
            ClientClosedError: the producer is closed.
        """
        if self._core.closed:
            raise producer_closed()
        if not self._served:  # `close()` ends the wait as well
            await self._change(time.monotonic() + seconds(timeout))
        served, self._served = self._served, 0
        return served

    async def flush(self, timeout: float = -1) -> int:
        """Send everything now and wait for the reports.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Returns:
            Number of records that still wait.
        """
        core = self._core
        expires_at = time.monotonic() + seconds(timeout)
        core.flush(True)
        try:
            while len(core) and time.monotonic() < expires_at:
                await self._change(expires_at)
        finally:
            core.flush(False)
        return len(core)

    async def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Give up records that wait (`in_queue`) or were sent and not acknowledged (`in_flight`)."""
        self._core.purge(in_queue, in_flight)

    async def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Ask the cluster for its brokers and topics, or for one topic.

        Args:
            topic: only this one; None for all. Brokers create it if it does not exist and they do so
                (auto.create.topics.enable).
            timeout: seconds; negative waits as long as it takes.

        Returns:
            A `ClusterMetadata`.
        """
        return await self._core.list_topics(topic, timeout)

    async def metrics(self) -> Metrics:
        """What `stats_cb` gets, as a dictionary: librdkafka's names, documented in `client.statistics`."""
        return self._core.statistics.metrics()

    async def close(self) -> None:
        """Deliver what waits, then stop. Closing twice does nothing. An open transaction is aborted.

        If it is cancelled, the rest is given up and the producer is closed all the same.
        """
        if self._closing is not None:
            if not self._closing.done():  # another task is at it
                await asyncio.wait((self._closing,))
            return
        self._closing = asyncio.get_running_loop().create_future()
        core = self._core_if_started
        try:
            if core is not None and not core.closed:
                await self._close(core)
        finally:
            if self._chain is not None:
                self._chain.close()
            self._closing.set_result(None)

    async def _close(self, core: Core) -> None:
        core.refuse()
        self._changed.set()  # tasks in `poll()` have nothing to wait for
        try:
            if core.transactions is not None:
                await core.transactions.leave()
            await self.flush()
        finally:
            await core.close()

    async def _change(self, expires_at: float) -> None:
        self._changed.clear()
        left_s = expires_at - time.monotonic()
        try:
            await asyncio.wait_for(self._changed.wait(), None if left_s == math.inf else max(left_s, 0.0))
        except TimeoutError:
            pass

    def __len__(self) -> int:
        return 0 if self._core_if_started is None else len(self._core_if_started)

    def __bool__(self) -> bool:
        return True

    async def __aenter__(self) -> AIOProducer:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


def _new_future() -> asyncio.Future[Message]:
    return asyncio.get_running_loop().create_future()


def _on_unheard(loop: asyncio.AbstractEventLoop, error: KafkaError) -> None:
    """As asyncio does when nobody asked a future for its exception."""
    loop.call_exception_handler({
        "message": "records were not delivered, and nobody asks what became of them",
        "exception": KafkaException(error)})


class _Report:
    """A record's delivery callback under asyncio: resolves its future."""

    __slots__ = ("_callback", "_future")

    def __init__(
        self, future: asyncio.Future[Message], callback: Callable[[KafkaError | None, Message], Any] | None
    ) -> None:
        self._future = future
        self._callback = callback

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if not self._future.done():
            if error is None:
                self._future.set_result(message)
            else:
                self._future.set_exception(KafkaException(error))
        if self._callback is not None:
            self._callback(error, message)
