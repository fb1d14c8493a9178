"""`KafkaSyncProducer` and `KafkaAsyncProducer`: one producer for each way to send, as in modern-cpp-kafka.

The first waits for each record, the second calls back, from a thread of its own or from `poll_events()`. Both stand on
`Producer`. They must not decide anything: `client.producer.producer_engine` does. Read next:
`client.producer.faces.producer`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import enum
import itertools
import logging
import math
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any, Self

from headrace.client.producer.faces.producer import Producer
from headrace.client.producer.interception import (
    Callback,
    FutureReport,
    MetadataReport,
    arguments_of,
    check_record,
    refused_message,
)
from headrace.config import PRODUCER, PROPERTIES, Config
from headrace.errors import BufferFullError, ClientClosedError, KafkaError, KafkaException
from headrace.slotted import replace
from headrace.types.records import ProducerRecord, RecordMetadata

__all__ = ["EventsPollingOption", "KafkaAsyncProducer", "KafkaSyncProducer", "SendOption"]

_SLICE_S = 0.1  # longest wait before signals are looked at
_IDLE_S = 60.0  # the thread is told when there is something to do
_log = logging.getLogger("headrace")


class EventsPollingOption(enum.Enum):
    """Who calls the callbacks of a `KafkaAsyncProducer`."""

    AUTO = "auto"
    """A thread of the producer."""
    MANUAL = "manual"
    """The application, in `poll_events()`."""


class SendOption(enum.Enum):
    """What happens to a record's value in `send()`. It is copied into the batch at once, so both are safe here."""

    NO_COPY_RECORD_VALUE = "no copy"
    TO_COPY_RECORD_VALUE = "to copy"


class _KafkaProducer:
    """What both producers share.

    Records are numbered from 0 where they bring no `record_id` of their own. A producer that is let go, or alive when
    the interpreter ends, is closed.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._ids = itertools.count()
        self._closing = weakref.finalize(self, _close_anywhere, producer)

    def flush(self, timeout: float = -1) -> int:
        """Send everything now and wait until every callback was called.

        Args:
            timeout: seconds; negative waits as long as it takes.

        Returns:
            Number of records that still wait.

        Raises:
            ClientClosedError: the producer is closed.
        """
        return self._producer.flush(timeout)

    def purge(self) -> None:
        """Give up all records that are not acknowledged; they are reported as failed."""
        self._producer.purge()

    def close(self) -> None:
        """Deliver what waits, wait until every callback was called, and stop. Closing twice does nothing."""
        self._producer.close()
        self._closing.detach()

    def _accept(self, record: ProducerRecord) -> ProducerRecord:
        accepted = self._producer._entrance.accept(record)
        return accepted if accepted.record_id is not None else replace(accepted, record_id=next(self._ids))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class KafkaSyncProducer(_KafkaProducer):
    """A producer whose `send()` waits until its record is stored.

    Args:
        properties: see `headrace.config`; `linger.ms` is 0 if it is not given, for nobody else adds to the batch.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        Config(PRODUCER, properties)  # which needs servers, as `Producer` does not
        linger = PROPERTIES["linger.ms"]
        given = {linger.name, *linger.aliases} & set(properties)
        super().__init__(Producer(properties if given else {**properties, linger.name: 0}))

    def send(self, record: ProducerRecord) -> RecordMetadata:
        """Send a record and wait until it is stored. Ctrl-C ends the wait, not the sending.

        Args:
            record: what to send.

        Returns:
            Where it was stored.

        Raises:
            KafkaException: it was not stored; `error` says why. `BufferFullError`: threads that send at the same time
                left no room in `max.block.ms`.
            RuntimeError: called on the thread that its answer comes from, in a callback of `Producer.send()`.
            TypeError: not a `ProducerRecord`, or something in it is of a wrong type.
        """
        producer = self._producer
        if producer._on_loop():
            raise RuntimeError("KafkaSyncProducer.send() was called on the thread that its answer comes from: use "
                               "Producer.send() in callbacks")
        accepted = self._accept(record)
        report = FutureReport(producer._entrance.chain, accepted, None, producer._core.budget)
        expires_at = time.monotonic() + producer._core.config.seconds("max.block.ms")
        with producer._entrance.refusals(arguments_of(accepted), accepted.record_id):
            check_record(accepted)
            producer._put(accepted, report, expires_at)
        report.accepted()
        while not report.future.done():
            concurrent.futures.wait([report.future], _SLICE_S)
        return report.future.result()


class KafkaAsyncProducer(_KafkaProducer):
    """A producer whose `send()` does not wait; what became of a record is told to its callback, exactly once.

    Args:
        properties: see `headrace.config`.
        events_polling: `AUTO` calls callbacks from a thread of the producer; `MANUAL` from `poll_events()` only.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
    """

    def __init__(
        self, properties: Mapping[str, Any], events_polling: EventsPollingOption = EventsPollingOption.AUTO
    ) -> None:
        Config(PRODUCER, properties)
        self._manual = EventsPollingOption(events_polling) is EventsPollingOption.MANUAL
        super().__init__(Producer(properties) if self._manual else _Calling(properties))

    def send(
        self,
        record: ProducerRecord,
        callback: Callback | None = None,
        option: SendOption = SendOption.NO_COPY_RECORD_VALUE,
    ) -> None:
        """Put a record on its way.

        With `AUTO` it waits while the buffer is full; with `MANUAL`, and in a callback, that is an error at once.

        Args:
            record: what to send. It may be changed or reused as soon as this returns.
            callback: called as callback(metadata, error) when the record is stored (error is None) or given up, also
                when it can not be sent at all: an invalid topic (`_INVALID_ARG`), a topic or partition that does not
                exist (`_UNKNOWN_TOPIC`, `_UNKNOWN_PARTITION`), no time left (`_MSG_TIMED_OUT`).
            option: either way the value is copied.

        Raises:
            BufferFullError: too much waits already: call `poll_events()` and try again.
            ClientClosedError: the producer is closed.
            TypeError: not a `ProducerRecord`, or something in it is of a wrong type.
        """
        SendOption(option)
        producer, accepted = self._producer, self._accept(record)
        report = MetadataReport(producer._entrance.chain, accepted, callback)
        waits = isinstance(producer, _Calling) and not producer.is_here()
        with producer._entrance.refusals(arguments_of(accepted), accepted.record_id):
            try:
                check_record(accepted)
                producer._put(accepted, report, math.inf if waits else -math.inf)
            except BufferFullError:
                raise BufferFullError(
                    f"Local: Queue full: {len(producer)} messages wait for delivery or for their callbacks; call "
                    "poll_events() and try again, or raise queue.buffering.max.messages or queue.buffering.max.kbytes"
                ) from None
            except ClientClosedError:
                raise
            except KafkaException as refused:
                producer._core.deliveries.add_notice(report, refused.error, refused_message(accepted, refused.error))

    def poll_events(self, timeout: float = -1) -> int:
        """Call the callbacks that are due. What a callback raises passes through; the others stay for the next call.

        Args:
            timeout: seconds to wait for the first one; negative waits as long as it takes.

        Returns:
            How many callbacks were called.

        Raises:
            ClientClosedError: the producer is closed.
            KafkaException: the producer calls them by itself (`_STATE`).
        """
        if not self._manual:
            raise KafkaException(KafkaError(
                KafkaError._STATE, "poll_events() needs a producer that was made with EventsPollingOption.MANUAL: "
                "this one calls its callbacks by itself"))
        return self._producer.poll(timeout)


class _Calling(Producer):
    """A `Producer` with a thread that calls the callbacks; `flush()` and `close()` wait for it.

    The thread holds this producer, but not the face, which may be let go.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        super().__init__(properties)
        self._stopping = False
        self._caller = threading.Thread(target=self._run, name="headrace-callbacks", daemon=True)
        self._caller.start()

    def is_here(self) -> bool:
        """True on the thread that calls the callbacks."""
        return threading.current_thread() is self._caller

    def _run(self) -> None:
        deliveries, change = self._core.deliveries, self._change
        while deliveries.pending or not self._stopping:
            try:
                deliveries.serve()
            except Exception:
                _log.exception("a callback of a KafkaAsyncProducer raised")
            change.tell()  # `_flush` waits for the callbacks as well
            change.wait(lambda: deliveries.pending or self._stopping, math.inf, _IDLE_S)

    def _flush(self, expires_at: float) -> int:
        if self.is_here():
            return super()._flush(expires_at)
        core, deliveries = self._core, self._core.deliveries
        core.flush(True)
        try:
            self._change.wait(
                lambda: not (len(core) or deliveries.pending or deliveries.called_elsewhere()), expires_at)
        finally:
            core.flush(False)
        return len(core)

    def _serve_last(self) -> None:
        self._stopping = True
        if self.is_here():
            super()._serve_last()
        else:
            self._change.tell()
            self._caller.join()


def _close_anywhere(producer: Producer) -> None:
    """Close a producer that nobody holds any more, in another thread where waiting is not allowed."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        producer.close()
    else:
        threading.Thread(target=producer.close, name="headrace-close", daemon=True).start()
