"""`KafkaSyncProducer` and `KafkaAsyncProducer`: one producer for each way to send, as in modern-cpp-kafka.

The first waits for each record, the second calls back, from a thread of its own or from `poll_events()`. Both stand on
`Producer`. They must not decide anything. Read next: `client.producer.producer_calls`.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import itertools
import logging
import threading
from collections.abc import Mapping
from typing import Any, Self

from headrace.client.core import LiveClient
from headrace.client.producer.interception import Callback
from headrace.client.producer.producer import Producer, calls_of, end_with
from headrace.client.producer.producer_calls import ProducerCalls
from headrace.client.waits import ThreadWaits, Wait
from headrace.config import PRODUCER, PROPERTIES, Config
from headrace.errors import ConfigError, KafkaError, KafkaException
from headrace.types.records import ProducerRecord, RecordMetadata

__all__ = ["EventsPollingOption", "KafkaAsyncProducer", "KafkaSyncProducer", "SendOption"]

_log = logging.getLogger("headrace")


class EventsPollingOption(enum.Enum):
    """The thread that calls the callbacks of a `KafkaAsyncProducer`."""

    AUTO = "auto"
    """A thread of the producer."""
    MANUAL = "manual"
    """The application's own, in `poll_events()`."""


class SendOption(enum.Enum):
    """What happens to a record's value in `send()`. It is copied into the batch at once, so both are safe here."""

    NO_COPY_RECORD_VALUE = "no copy"
    TO_COPY_RECORD_VALUE = "to copy"


class _KafkaProducer(LiveClient):
    """What both producers share.

    Records are numbered from 0 where they bring no `record_id` of their own. A producer that is let go, or alive when
    the interpreter ends, is closed.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._calls = calls_of(producer)
        self._calls.record_ids = itertools.count()
        self._run = self._calls.waits.run
        self._closing = end_with(producer, functools.partial(_close_anywhere, self._calls))

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class KafkaSyncProducer(_KafkaProducer):
    """A producer whose `send()` waits until its record is stored.

    Args:
        properties: see `headrace.config`; `linger.ms` is 0 if it is not given, for no other record joins the batch.
            `delivery.report.only.error` means nothing here.

    Raises:
        ConfigError: a property is unknown, malformed, contradicts another, or is of transactions.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        _check(properties)
        linger = PROPERTIES["linger.ms"]
        given = {linger.name, *linger.aliases} & set(properties)
        at_once = {} if given else {linger.name: 0}
        super().__init__(Producer({**properties, **at_once, "delivery.report.only.error": False}))

    def send(self, record: ProducerRecord) -> RecordMetadata:
        """Send a record and wait until it is stored. Ctrl-C ends the wait, not the sending.

        Callbacks of properties (`error_cb`) are called meanwhile; what they raise passes through.

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
        if not self._calls.waits.may_wait():
            raise RuntimeError("KafkaSyncProducer.send() was called on the thread that its answer comes from: use "
                               "Producer.send() in callbacks")
        return self._run(self._calls.send_and_wait(record))


class KafkaAsyncProducer(_KafkaProducer):
    """A producer whose `send()` does not wait; a record's callback is called with its outcome, exactly once.

    Args:
        properties: see `headrace.config`.
        events_polling: `AUTO` calls callbacks from a thread of the producer; `MANUAL` from `poll_events()` only.

    Raises:
        ConfigError: a property is unknown, malformed, contradicts another, or is of transactions.
    """

    def __init__(
        self, properties: Mapping[str, Any], events_polling: EventsPollingOption = EventsPollingOption.AUTO
    ) -> None:
        _check(properties)
        self._manual = EventsPollingOption(events_polling) is EventsPollingOption.MANUAL
        super().__init__(Producer(properties))
        self._caller = None if self._manual else _Caller(self._calls)

    def send(
        self,
        record: ProducerRecord,
        callback: Callback | None = None,
        option: SendOption = SendOption.NO_COPY_RECORD_VALUE,
    ) -> None:
        """Put a record on its way.

        With `AUTO` it waits while the buffer is full, as long as it takes: `max.block.ms` is of `Producer.send()`. With
        `MANUAL`, and in a callback, a full buffer is an error at once.

        Args:
            record: what to send. It may be changed or reused as soon as this returns.
            callback: called as callback(metadata, error) when the record is stored (error is None) or given up, also
                when it cannot be sent at all: an invalid topic (`_INVALID_ARG`), a topic or partition that does not
                exist (`_UNKNOWN_TOPIC`, `_UNKNOWN_PARTITION`), no time left (`_MSG_TIMED_OUT`).
            option: either way the value is copied.

        Raises:
            BufferFullError: too much waits already: call `poll_events()` and try again.
            ClientClosedError: the producer is closed.
            TypeError: not a `ProducerRecord`, or something in it is of a wrong type.
        """
        SendOption(option)
        waits = self._caller is not None and not self._caller.is_here()
        self._run(self._calls.send_reported(record, callback, waits=waits))

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


def _check(properties: Mapping[str, Any]) -> None:
    config = Config(PRODUCER, properties)  # which needs servers, as `Producer` does not
    if config["transactional.id"]:
        raise ConfigError('"transactional.id" is of use to a producer that begins and commits transactions: take '
                          "headrace.Producer, whose send() takes the same records")


class _Caller:
    """A thread that calls the callbacks of a producer; `flush()` and `close()` wait for it. It holds no face."""

    def __init__(self, calls: ProducerCalls[ThreadWaits]) -> None:
        self._calls, self._deliveries, self._waits = calls, calls.engine.deliveries, calls.waits
        self._stopping = False
        calls.serves, calls.serve_last = self.is_here, self._stop
        self._thread = threading.Thread(target=self._call, name="headrace-callbacks", daemon=True)
        self._thread.start()

    def is_here(self) -> bool:
        """True on the thread itself."""
        return threading.current_thread() is self._thread

    def _call(self) -> None:
        deliveries = self._deliveries
        while deliveries.pending or not self._stopping:
            try:
                deliveries.serve()
            except BaseException:  # also what would end the thread, which nobody else stands in for
                _log.exception("a callback of a KafkaAsyncProducer raised")
            self._waits.notify()  # the calls that wait for the callbacks
            self._calls.count_poll()
            self._waits.wait(Wait(lambda: deliveries.pending or self._stopping, meanwhile=self._calls.engine.replies))

    def _stop(self) -> None:
        """Call the callbacks that are left, and end."""
        self._stopping = True
        if self.is_here():
            self._deliveries.serve()
        else:
            self._waits.notify()
            self._thread.join()


def _close_anywhere(calls: ProducerCalls[ThreadWaits]) -> None:
    """Close a producer that was let go, in another thread where waiting is not allowed."""
    if calls.engine.closed:
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _close(calls)
    else:
        threading.Thread(target=_close, args=(calls,), name="headrace-close", daemon=True).start()


def _close(calls: ProducerCalls[ThreadWaits]) -> None:
    calls.waits.run(calls.close(spare_callbacks=True))
