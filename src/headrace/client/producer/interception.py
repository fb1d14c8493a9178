"""`ProducerRecord` in, `RecordMetadata` out: what the faces of the producer share beyond `produce()`.

`InterceptedSend` takes records in: interceptors first, then the engine. Reports make a record's outcome the call or the
future that its sender waits for. It must not wait. Read next: `client.producer.producer_calls`.
"""

from __future__ import annotations

import logging
import string
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from headrace.buffers import BufferPool
from headrace.client.producer.producer_engine import ProducerEngine
from headrace.client.producer.reports import IoThreadCallback
from headrace.client.waits import SteadyFuture
from headrace.config import Config
from headrace.errors import BufferFullError, KafkaError, KafkaException
from headrace.records import Message
from headrace.records.message import encode_headers, encode_text
from headrace.types.records import PARTITION_UA, ProducerRecord, RecordMetadata

if TYPE_CHECKING:
    from headrace.client.producer.interceptors import InterceptorChain

__all__ = [
    "Arguments", "AwaitedReport", "Callback", "Deliver", "FutureReport", "InterceptedSend", "LoopFutureReport",
    "MetadataReport", "TopicWatch",
    "arguments_of", "batch_arguments", "chain_of", "check_record", "check_topic", "metadata_of", "refused_message",
    "resolve", "still_full", "unknown_topic",
]

Callback = Callable[[RecordMetadata, KafkaError | None], Any]
"""Called as callback(metadata, error) when a record is stored (error is None) or given up."""

Deliver = Callable[[KafkaError | None, Any], Any]
Arguments = tuple[str, Any, Any, int, int, Any]
"""Of `ProducerEngine.produce` without the callback: topic, value, key, partition, timestamp, headers."""

_FUTURE_BYTES = 1_400
"""What a future with its report takes beyond what a callback is counted with."""
_INT32 = 1 << 31
_LONGEST_TOPIC = 249
_OF_TOPICS = frozenset(f"{string.ascii_letters}{string.digits}._-")
_log = logging.getLogger("headrace")


def chain_of(config: Config) -> InterceptorChain | None:
    """`InterceptorChain.of`, which is loaded only if there is an interceptor."""
    if not config["interceptor.classes"]:
        return None
    from headrace.client.producer.interceptors import InterceptorChain

    return InterceptorChain.of(config)


def check_topic(topic: Any) -> None:
    """Raise when no broker would accept a topic of this name (Java: `Topic.validate`).

    Raises:
        KafkaException: `_INVALID_ARG`.
    """
    if (not isinstance(topic, str) or not 0 < len(topic) <= _LONGEST_TOPIC or not _OF_TOPICS.issuperset(topic)
            or topic in (".", "..")):
        shown = repr(topic) if len(repr(topic)) <= 60 else f"{repr(topic)[:57]}... ({len(topic)} characters)"
        raise KafkaException(KafkaError(
            KafkaError._INVALID_ARG, f"invalid topic {shown}: a name has 1 to 249 of the characters a-z, A-Z, 0-9, "
            "'.', '_' and '-', and is not '.' or '..'"))


def check_record(record: ProducerRecord) -> None:
    """Raise when no broker would accept a record where it is to go.

    Raises:
        KafkaException: the topic's name (`_INVALID_ARG`) or the partition (`_UNKNOWN_PARTITION`) cannot exist.
        TypeError: partition or timestamp is no number.
    """
    check_topic(record.topic)
    for name, number in (("partition", record.partition), ("timestamp_ms", record.timestamp_ms)):
        if number is not None and not hasattr(number, "__index__"):
            raise TypeError(f"{name} must be int or None, not {type(number).__name__}")
    if record.partition is not None and not PARTITION_UA <= record.partition < _INT32:
        raise KafkaException(KafkaError(
            KafkaError._UNKNOWN_PARTITION, f"{record.topic} can have no partition {record.partition}: give one from 0 "
            "on, or None to let the partitioner choose"))


def unknown_topic(topic: str, waited_s: float) -> KafkaException:
    """A topic did not turn up while `send()` waited."""
    return KafkaException(KafkaError(
        KafkaError._UNKNOWN_TOPIC, f'topic "{topic}" is not known to the brokers after {waited_s:g} s (max.block.ms): '
        "create it, check its name, or that the brokers can be reached"))


def still_full(waiting: int, waited_s: float) -> BufferFullError:
    """There was no room while `send()` waited."""
    return BufferFullError(
        f"Local: Queue full: {waiting} messages wait for delivery, and there was no room in {waited_s:.1f} s "
        "(max.block.ms); try again later, or raise queue.buffering.max.messages or queue.buffering.max.kbytes")


def metadata_of(message: Message, record_id: int | None = None) -> RecordMetadata:
    """What a delivery report says of a record."""
    value_size = len(message)
    if not value_size and message.value() is None:
        value_size = -1
    key, partition, offset = message.key(), message.partition(), message.offset()
    kind, stamp_ms = message.timestamp()
    return RecordMetadata(
        message.topic() or "", RecordMetadata.NO_PARTITION if partition is None else partition,
        -1 if offset is None else offset, stamp_ms if kind else -1, kind, -1 if key is None else len(key), value_size,
        record_id, message.headers(), message.latency())


def refused_message(record: ProducerRecord, error: KafkaError) -> Message:
    """The report of a record that was not accepted."""
    key, value = (encode_text(given, name) for given, name in ((record.key, "key"), (record.value, "value")))
    headers = [(name.decode(), content) for name, content in encode_headers(record.headers)]
    partition = record.partition if (record.partition or 0) < _INT32 else None  # a message has room for no other
    return Message(record.topic, partition, None, key, value, headers or None, error, None, 0.0)


class InterceptedSend:
    """Where records come into a producer.

    Args:
        engine: the producer.
        chain: its interceptors; None for none.

    Attributes:
        chain: the same.
        open: accumulators that a face may append to by itself: none when interceptors must see each record.
        produce: `ProducerEngine.produce`, with interceptors if there are any.
    """

    def __init__(self, engine: ProducerEngine, chain: InterceptorChain | None) -> None:
        self.chain = chain
        self._engine = engine
        self.open = engine.accumulators.open if chain is None else {}
        self.produce: Callable[..., None] = engine.produce if chain is None else self._produce
        engine.deliveries.has_at_once = engine.deliveries.has_at_once or chain is not None

    def _produce(self, topic: str, value: Any, key: Any, partition: int, timestamp_ms: int, headers: Any,
                 callback: Deliver | None) -> None:
        arguments, record_id = self.intercept((topic, value, key, partition, timestamp_ms, headers))
        with self.reporting_rejection(arguments, record_id):
            self._engine.produce(*arguments, self.reporting(callback, record_id))

    def intercept(self, arguments: Arguments) -> tuple[Arguments, int | None]:
        """A record given to `produce()` as the interceptors return it."""
        if self.chain is None:
            return arguments, None
        topic, value, key, partition, timestamp_ms, headers = arguments
        record = self.chain.on_send(ProducerRecord(
            topic, value, key, None if partition == PARTITION_UA else partition, headers, timestamp_ms or None))
        return arguments_of(record), record.record_id

    def accept(self, record: Any) -> ProducerRecord:
        """A record given to `send()` as the interceptors return it.

        Raises:
            TypeError: it is no record.
        """
        if not isinstance(record, ProducerRecord):
            error = TypeError(f"send() takes a ProducerRecord, not {type(record).__name__}")
            if self.chain is not None:
                self.chain.on_acknowledgement(None, error)
            raise error
        if self.chain is None:
            return record
        sent = self.chain.on_send(record)
        if sent.record_id is None and record.record_id is not None:  # it was made anew, as in Java, which has no ids
            sent = with_id(sent, record.record_id)
        return sent

    def reporting_rejection(self, arguments: Arguments, record_id: int | None) -> AbstractContextManager[None]:
        """Report a record to the interceptors as not accepted when the block raises."""
        return _NOBODY if self.chain is None else _reporting_rejection(self.chain, arguments, record_id)

    def reporting(self, callback: Deliver | None, record_id: int | None) -> Deliver | None:
        """A callback that calls the interceptors before the given one.

        Records whose own callback is not to be called are acknowledged by the loop: perhaps nothing polls for them.
        """
        if self.chain is None:
            return callback
        deliveries = self._engine.deliveries
        if callback is None or deliveries.only_errors:
            report = None if callback is None else lambda error, done: deliveries.add_notice(callback, error, done)
            return _AcknowledgedAtOnce(self.chain, record_id, report)
        return _Acknowledged(self.chain, record_id, callback)

    def close(self) -> None:
        """Close the interceptors."""
        if self.chain is not None:
            self.chain.close()


_NOBODY = nullcontext()


@contextmanager
def _reporting_rejection(chain: InterceptorChain, arguments: Arguments, record_id: int | None) -> Iterator[None]:
    try:
        yield
    except Exception as raised:
        topic, _, _, partition, timestamp_ms, headers = arguments
        known = RecordMetadata(
            topic if isinstance(topic, str) else "",
            partition if isinstance(partition, int) and partition >= 0 else RecordMetadata.NO_PARTITION,
            timestamp_ms=timestamp_ms if isinstance(timestamp_ms, int) and timestamp_ms > 0 else -1,
            record_id=record_id, headers=_pairs(headers))
        chain.on_acknowledgement(known, raised.error if isinstance(raised, KafkaException) else raised)
        raise


def arguments_of(record: ProducerRecord) -> Arguments:
    """A record as `ProducerEngine.produce` takes it."""
    partition = PARTITION_UA if record.partition is None else record.partition
    return record.topic, record.value, record.key, partition, record.timestamp_ms or 0, record.headers


def with_id(record: ProducerRecord, record_id: int) -> ProducerRecord:
    """The same record under another id."""
    return ProducerRecord(record.topic, record.value, record.key, record.partition, record.headers,
                          record.timestamp_ms, record_id)


def _pairs(headers: Any) -> Sequence[tuple[str, bytes | None]] | None:
    try:
        return [(name.decode(), content) for name, content in encode_headers(headers)] or None
    except TypeError:
        return None  # they may be why the record was not accepted


class _Acknowledged:
    """A `produce()` callback behind interceptors."""

    __slots__ = ("_callback", "_chain", "_record_id")

    def __init__(self, chain: InterceptorChain, record_id: int | None, callback: Deliver) -> None:
        self._chain = chain
        self._record_id = record_id
        self._callback = callback

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        self._chain.on_acknowledgement(metadata_of(message, self._record_id), error)
        self._callback(error, message)


class _AcknowledgedAtOnce(IoThreadCallback):
    """Interceptors of a record without a callback of its own, or with one for errors only (`on_error`)."""

    __slots__ = ("_chain", "_on_error", "_record_id")

    def __init__(self, chain: InterceptorChain, record_id: int | None, on_error: Deliver | None) -> None:
        self._chain = chain
        self._record_id = record_id
        self._on_error = on_error

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        assert message is not None
        self._chain.on_acknowledgement(metadata_of(message, self._record_id), error)
        if error is not None and self._on_error is not None:
            self._on_error(error, message)


class MetadataReport:
    """The report of one `ProducerRecord`: interceptors are called, then its callback.

    Args:
        chain: interceptors, or None.
        record: the record.
        callback: called as callback(metadata, error), or None.
    """

    __slots__ = ("_callback", "_chain", "_record_id")

    def __init__(self, chain: InterceptorChain | None, record: ProducerRecord, callback: Callback | None) -> None:
        self._chain = chain
        self._record_id = record.record_id
        self._callback = callback

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """The record is done."""
        assert message is not None
        metadata = metadata_of(message, self._record_id)
        if self._chain is not None:
            self._chain.on_acknowledgement(metadata, error)
        try:
            if self._callback is not None:
                self._callback(metadata, error)
        finally:
            self.settle(metadata, error)

    def settle(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
        """Runs after interceptors and callback, even if the callback raised."""


class AwaitedReport(MetadataReport):
    """A `MetadataReport` of a record that a thread waits for. It is called where reports are served.

    Attributes:
        outcome: what came of the record; None before.
    """

    __slots__ = ("outcome",)

    def __init__(self, chain: InterceptorChain | None, record: ProducerRecord) -> None:
        super().__init__(chain, record, None)
        self.outcome: RecordMetadata | KafkaError | None = None

    def settle(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
        """Keep what came of it."""
        self.outcome = error or metadata


class FutureReport(MetadataReport, IoThreadCallback):
    """A `MetadataReport` that the loop calls itself; then a future is resolved. What the callback raises is logged.

    Args:
        chain, record, callback: as above.
        buffer_pool: counts what the future takes, from `accepted()` until it is resolved.
    """

    __slots__ = ("_buffer_pool", "_outcome", "future")

    def __init__(self, chain: InterceptorChain | None, record: ProducerRecord, callback: Callback | None,
                 buffer_pool: BufferPool) -> None:
        super().__init__(chain, record, None if callback is None else _logged(callback))
        self._buffer_pool = buffer_pool
        self._outcome: RecordMetadata | KafkaError
        self.future: Future[RecordMetadata] = SteadyFuture()
        self.future.set_running_or_notify_cancel()  # what was sent cannot be taken back

    def accepted(self) -> None:
        """The record is on its way: it may even be done by now."""
        self._buffer_pool.release(0, -_FUTURE_BYTES)

    def settle(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
        """Keep what came of it for the future."""
        self._outcome = error or metadata

    def resolve(self) -> None:
        """Resolve the future."""
        self._buffer_pool.release(0, _FUTURE_BYTES)
        if isinstance(self._outcome, KafkaError):
            self.future.set_exception(KafkaException(self._outcome))
        else:
            self.future.set_result(self._outcome)


def _logged(callback: Callback) -> Callback:
    def call(metadata: RecordMetadata, error: KafkaError | None) -> None:
        try:
            callback(metadata, error)
        except Exception:
            _log.exception("the callback of a record of %s raised", metadata.topic)

    return call


class LoopFutureReport(MetadataReport):
    """A `MetadataReport` called where reports are served; resolves a loop's future, which may have been cancelled.

    Args:
        chain, record, callback: as above.
        future: of the loop. An error that the callback received need not be retrieved from it.
    """

    __slots__ = ("_future",)

    def __init__(self, chain: InterceptorChain | None, record: ProducerRecord, callback: Callback | None,
                 future: Any) -> None:
        super().__init__(chain, record, callback)
        self._future = future
        if callback is not None:
            future.add_done_callback(_look_at)

    def settle(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
        """Resolve the future."""
        resolve(self._future, metadata, None if error is None else KafkaException(error))


def is_given_up(error: KafkaError) -> bool:
    """The application gave the records up, by a purge or with their transaction: it need not be told if nobody asks."""
    return error.code() in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


def resolve(future: Any, result: Any, error: KafkaException | None) -> None:
    """Give a future of the loop its result, or its error, unless it was cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
        if is_given_up(error.error):
            future.exception()  # asyncio would log it as one that was never retrieved


def _look_at(future: Any) -> None:
    """The callback received the error: it need not be retrieved from the future as well."""
    if not future.cancelled():
        future.exception()


class TopicWatch(IoThreadCallback):
    """Called when a topic becomes known or unusable.

    Args:
        on_change: called then, on the loop.

    Attributes:
        error: why it cannot be used.
    """

    __slots__ = ("_done", "_on_change", "error")

    def __init__(self, on_change: Callable[[], object]) -> None:
        self._on_change = on_change
        self._done = False
        self.error: KafkaError | None = None

    def is_done(self) -> bool:
        """The topic is known, or cannot be used."""
        return self._done

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """The topic is known, or cannot be used."""
        self.error, self._done = error, True
        self._on_change()


def batch_arguments(
    topic: str, messages: list[dict[str, Any]], partition: int, callback: Deliver | None
) -> Iterator[tuple[dict[str, Any], Arguments, Deliver | None]]:
    """The messages of `produce_batch()`, each with what `produce()` takes. All are checked before the first is given.

    Raises:
        OverflowError: a partition's number is out of any range.
        TypeError: something is of a wrong type; the text says at which index.
    """
    if not isinstance(topic, str):
        raise TypeError(f"topic must be str, not {type(topic).__name__}")
    if not isinstance(partition, int):
        raise TypeError(f"partition must be int, not {type(partition).__name__}")
    if not -_INT32 <= partition < _INT32:
        raise OverflowError(f"partition is out of range: {partition}")
    if not isinstance(messages, list):
        raise TypeError(f"messages must be a list, not {type(messages).__name__}")
    for index, message in enumerate(messages):
        _check(index, message)
    return ((message, (
        topic, message.get("value"), message.get("key"), message.get("partition", partition),
        message.get("timestamp") or 0, message.get("headers"),
    ), message.get("callback") or message.get("on_delivery") or callback) for message in messages)


def _check(index: int, message: Any) -> None:
    if not isinstance(message, dict):
        raise TypeError(f"Message at index {index} must be a dict, not {type(message).__name__}")
    for name in ("value", "key"):
        if not isinstance(message.get(name), (bytes, str, bytearray, memoryview, type(None))):
            raise TypeError(f"Message {name} at index {index} must be bytes or str, not "
                            f"{type(message[name]).__name__}")
    partition = message.get("partition", PARTITION_UA)
    if not isinstance(partition, int):
        raise TypeError(f"Message partition at index {index} must be int, not {type(partition).__name__}")
    if not -_INT32 <= partition < _INT32:
        raise OverflowError(f"Message partition at index {index} is out of range: {partition}")
    if not isinstance(message.get("timestamp"), (int, type(None))):
        raise TypeError(f"Message timestamp at index {index} must be int, not {type(message['timestamp']).__name__}")
    if (message.get("timestamp") or 0) < 0:
        raise ValueError(f"Message timestamp at index {index} must not be negative")
    try:
        encode_headers(message.get("headers"))
    except TypeError as wrong:
        raise TypeError(f"Message headers at index {index}: {wrong}") from None
