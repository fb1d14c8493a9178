"""`AIOProducer`: the producer for asyncio, on the caller's own loop. No thread, no executor.

It must not decide anything. Read next: `client.producer.producer_calls`, which all faces call.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from headrace.arguments import given_properties
from headrace.buffers import AIOProduceFastPath
from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.core import LiveClient
from headrace.client.coroutine_callbacks import started, with_started
from headrace.client.producer.interception import Callback, Deliver, chain_of, is_given_up, resolve
from headrace.client.producer.producer_calls import ProducerCalls
from headrace.client.producer.producer_engine import LEFT_AT_EXIT, ProducerEngine
from headrace.client.producer.topics import producer_closed
from headrace.client.waits import LoopWaits, Wait, deadline
from headrace.config import PRODUCER, Config
from headrace.errors import KafkaError, KafkaException
from headrace.records import Message
from headrace.types.records import ConsumerGroupMetadata, Headers, ProducerRecord, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    from headrace.client.producer.column_feed import ColumnRole
    from headrace.types.metrics import Metrics

__all__ = ["AIOProducer", "AIOTransaction"]


class AIOProducer(LiveClient):
    """A producer for asyncio (confluent_kafka.aio's names).

    `produce()` waits only while the buffer is full; it returns a future of the delivered message:
    `message = await (await producer.produce("topic", b"value"))`. Close it, or use it in an `async with` statement. One
    that is just let go delivers what waits, as long as the loop runs, and ends then.

    Args:
        producer_conf: properties, see `headrace.config`. Callbacks may be functions, or coroutine functions, which run
            as tasks.
        max_workers, executor: without effect: no threads are needed.
        batch_size, buffer_timeout: without effect: batch.num.messages, batch.size and linger.ms say when records go.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
        ValueError: `max_workers` is less than 1, without an executor.
    """

    def __init__(
        self,
        producer_conf: Mapping[str, Any],
        max_workers: int = 4,
        executor: Executor | None = None,
        batch_size: int = 1000,
        buffer_timeout: float = 1.0,
    ) -> None:
        if executor is None and max_workers < 1:
            raise ValueError("max_workers must be at least 1")
        self._given = ApplicationCallbacks(self)
        given = with_started(given_properties(producer_conf, None, {}))
        self._config = Config(PRODUCER, self._given.lend_properties(given), servers_needed=False)
        self._chain = chain_of(self._config)
        self._sends_if_started: _Sends | None = None
        self._reports = _Reports(LoopWaits())
        self._waits = self._reports.waits
        self._run = self._waits.run
        self._closing: asyncio.Future[None] | None = None

    @property
    def _sends(self) -> _Sends:
        if self._sends_if_started is None:
            if self._closing is not None:
                raise producer_closed()
            self._waits.loop = self._waits.running_loop()
            engine = self._reports.engine = ProducerEngine(self._config, self._reports.serve, same_thread=True)
            engine.deliveries.only_errors = False  # futures are to be resolved in any case
            engine.deliveries.on_unretrieved = functools.partial(_on_unretrieved, self._waits.loop)
            run, calls = self._run, ProducerCalls(engine, self._chain, self._waits, serves=lambda: False)
            engine.client.ending = lambda: run(calls.close(spare_callbacks=False))
            self._given.when_let_go(lambda: not engine.closed, engine.client.abandon)
            LEFT_AT_EXIT.add(engine)
            sends = self._sends_if_started = _Sends(calls, self._config, self._given)
            if type(self).produce is AIOProducer.produce and self._config["on_delivery"] is None:
                fast_path = AIOProduceFastPath(calls.intercepted.open, sends.produce, sends.wake, sends.new_future,
                                               lambda: run(calls.await_brokers()))
                self.__dict__["produce"] = fast_path.produce  # saves Python's frames and a future for each record
        else:
            self._waits.running_loop()
        return self._sends_if_started

    @property
    def _calls(self) -> ProducerCalls[LoopWaits]:
        return self._sends.calls

    @property
    def _engine(self) -> ProducerEngine:
        return self._calls.engine

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

        A call that is cancelled may have sent its record: who calls again sends it twice.

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
        return await self._sends.produce(topic, value, key, partition, on_delivery, timestamp, headers)

    async def send(self, record: ProducerRecord, callback: Callback | None = None) -> asyncio.Future[RecordMetadata]:
        """As `Producer.send`, awaited: `metadata = await (await producer.send(record))`.

        The callback is called on the loop; it may be a coroutine function.
        """
        future: asyncio.Future[RecordMetadata] = self._waits.running_loop().create_future()
        return await self._waits.then_turn(self._run(self._calls.send_into(future, record, started(callback))))

    async def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        callback: Callable[[KafkaError | None, Message], Any] | None = None,
        on_delivery: Callable[[KafkaError | None, Message], Any] | None = None,
    ) -> int:
        """As `Producer.produce_batch`, awaited: it waits while the buffer is full."""
        default = callback or on_delivery or self._config["on_delivery"]
        steps = self._calls.produce_batch(topic, messages, partition, default, self._sends.wanted)
        return await self._waits.then_turn(self._run(steps))

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
        """As `Producer.produce_arrow`, awaited: `stored = await (await producer.produce_arrow(topic, table))`."""
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
        """As `produce_arrow`, for the rows of many tables, or of a stream of record batches, one after the other."""
        from headrace.client.producer.column_feed import ColumnMapping, RowsResult

        stored: asyncio.Future[int] = self._waits.running_loop().create_future()
        roles = ColumnMapping(value, key, headers, timestamp, partition)
        report = RowsResult(topic, functools.partial(resolve, stored))
        await self._run(self._calls.produce_batches(topic, tables, roles, report))
        return stored

    async def poll(self, timeout: float = 0) -> int:
        """Wait until something is reported. The loop calls callbacks by itself, whether this is called or not.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Returns:
            How many callbacks were called since the last `poll()`.

        Raises:
            ClientClosedError: the producer is closed.
        """
        engine, reports = self._engine, self._reports
        if engine.closed:
            raise engine.refusal()
        if not reports.served:
            before = reports.changes
            await self._waits.wait(Wait(lambda: reports.changes != before or engine.closed, deadline(timeout)))
        served, reports.served = reports.served, 0
        return served

    async def flush(self, timeout: float = -1) -> int:
        """Send everything now and wait for the reports.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Returns:
            Number of records that still wait.
        """
        return await self._run(self._calls.flush(deadline(timeout)))

    async def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Give up records that wait (`in_queue`) or were sent and not acknowledged (`in_flight`)."""
        self._engine.purge(in_queue, in_flight)

    async def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """As `Producer.list_topics`, awaited."""
        return await self._calls.list_topics(topic, timeout)

    async def cluster_id(self, timeout: float = -1) -> str | None:
        """As `Producer.cluster_id`, awaited."""
        return await self._calls.cluster_id(timeout)

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """As `Producer.set_sasl_credentials`."""
        self._engine.client.set_sasl_credentials(username, password)

    async def metrics(self) -> Metrics:
        """What `stats_cb` gets, as a dictionary: librdkafka's names, documented in `types.metrics`."""
        return self._engine.statistics.metrics()

    async def init_transactions(self, timeout: float = -1) -> None:
        """As `Producer.init_transactions`, awaited.

        What a cancelled call of transactions has begun goes on, as when it is out of time: call it again to go on
        waiting.
        """
        await self._run(self._calls.init_transactions(timeout))

    async def begin_transaction(self) -> None:
        """As `Producer.begin_transaction`, awaited."""
        await self._run(self._calls.begin_transaction())

    async def send_offsets_to_transaction(
        self, positions: list[TopicPartition], group_metadata: ConsumerGroupMetadata, timeout: float = -1
    ) -> None:
        """As `Producer.send_offsets_to_transaction`, awaited."""
        await self._run(self._calls.send_offsets_to_transaction(positions, group_metadata, timeout))

    async def commit_transaction(self, timeout: float = -1) -> None:
        """As `Producer.commit_transaction`, awaited."""
        await self._run(self._calls.commit_transaction(timeout))

    async def abort_transaction(self, timeout: float = -1) -> None:
        """As `Producer.abort_transaction`, awaited."""
        await self._run(self._calls.abort_transaction(timeout))

    @asynccontextmanager
    async def transaction(self, timeout: float = -1) -> AsyncIterator[AIOTransaction]:
        """As `Producer.transaction`, for `async with`.

        A commit that is under way when it is cancelled, or out of time, cannot be aborted and goes on.
        """
        await self.begin_transaction()
        try:
            yield AIOTransaction(self)
            await self.commit_transaction(timeout)
        except BaseException:
            if self._calls.can_abort:
                await self.abort_transaction(timeout)
            raise

    async def close(self) -> None:
        """Deliver what waits, then stop. Closing twice does nothing. An open transaction is aborted.

        If it is cancelled, the rest is given up and the producer is closed all the same.
        """
        if self._closing is not None:
            if not self._closing.done():  # another task is at it
                await asyncio.wait((self._closing,))
            return
        self._closing = self._waits.running_loop().create_future()
        sends = self._sends_if_started
        try:
            if sends is not None and not sends.calls.engine.closed:
                await self._run(sends.calls.close(spare_callbacks=False))
        finally:
            if self._chain is not None:
                self._chain.close()
            self._closing.set_result(None)

    def __len__(self) -> int:
        return 0 if self._sends_if_started is None else len(self._sends_if_started.calls.engine)

    def __bool__(self) -> bool:
        return True

    async def __aenter__(self) -> AIOProducer:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


class _Sends:
    """How records come into a producer. With the producer, or its `produce`, goes this; nothing on the loop holds it.

    Args:
        calls: the producer.
        config: its properties.
        callbacks: the functions among them.

    Attributes:
        calls: as given.
    """

    def __init__(self, calls: ProducerCalls[LoopWaits], config: Config, callbacks: ApplicationCallbacks) -> None:
        self.calls, self._config, self._callbacks = calls, config, callbacks

    async def produce(self, topic: str, value: Any, key: Any, partition: int, on_delivery: Deliver | None,
                      timestamp: int, headers: Headers | None) -> asyncio.Future[Message]:
        """`AIOProducer.produce`, with everything that may be unusual."""
        waits, future = self.calls.waits, self.new_future()
        report = _Report(future, self.wanted(on_delivery or self._config["on_delivery"]))
        arguments = (topic, value, key, partition, timestamp, headers)
        await waits.then_turn(waits.run(self.calls.produce_reported(arguments, report)))
        return future

    def wake(self) -> None:
        """The loop has something to do. It is the caller's, or nobody would learn what comes of it."""
        self.calls.waits.running_loop()
        self.calls.engine.wake()

    def new_future(self) -> asyncio.Future[Message]:
        """A future of the client's loop."""
        return self.calls.waits.running_loop().create_future()

    def wanted(self, callback: Deliver | None) -> Deliver | None:
        """A callback as `delivery.report.only.error` wants it called."""
        call: Deliver | None = started(callback)
        if call is None or not self._config["delivery.report.only.error"]:
            return call
        return lambda error, message: None if error is None else call(error, message)


class _Reports:
    """Serves a producer's reports on its loop.

    Args:
        waits: notified when some were served.

    Attributes:
        engine: set when the producer starts.
        served: callbacks called since somebody asked last.
        changes: how often there was something to look at.
    """

    def __init__(self, waits: LoopWaits) -> None:
        self.waits = waits
        self.engine: ProducerEngine | None = None
        self.served = self.changes = 0

    def serve(self) -> None:
        """Call what is due. What a callback raises goes to the loop's exception handler."""
        if self.engine is None:
            return
        try:
            self.served += self.engine.deliveries.serve()
        except Exception as error:  # the rest of the reports must not wait for ever
            loop = asyncio.get_running_loop()
            loop.call_exception_handler({"message": "a callback of a producer raised", "exception": error})
            loop.call_soon(self.serve)
        self.changes += 1
        self.waits.notify()


class AIOTransaction:
    """An open transaction of an `async with producer.transaction()` block."""

    def __init__(self, producer: AIOProducer) -> None:
        self._producer = producer

    async def send_offsets(self, positions: list[TopicPartition], group_metadata: ConsumerGroupMetadata) -> None:
        """Commit a consumer's offsets with the transaction; see `Producer.send_offsets_to_transaction`."""
        await self._producer.send_offsets_to_transaction(positions, group_metadata)


def _on_unretrieved(loop: asyncio.AbstractEventLoop, error: KafkaError) -> None:
    """Report an exception that was never retrieved, as asyncio does for a future."""
    if is_given_up(error):
        return
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
        resolve(self._future, message, None if error is None else KafkaException(error))
        if self._callback is not None:
            self._callback(error, message)
