"""`Producer`: confluent_kafka's producer, call for call, on the loop of one background thread.

`produce()` appends in the caller's thread and never waits; reports are served in `poll()` and `flush()`.
It must not decide anything: `client.producer.producer_engine` does. Read next: `client.producer.producer_engine`.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from headrace.client.producer.faces.sending import Pace, Sending
from headrace.client.producer.faces.transactional import Transactional
from headrace.client.producer.interception import Entrance
from headrace.client.producer.interceptors import InterceptorChain
from headrace.client.producer.producer_engine import Core
from headrace.client.producer.topics import producer_closed
from headrace.client.producer.transaction_calls import seconds
from headrace.client.statistics import Metrics
from headrace.config import PRODUCER, Config
from headrace.errors import BufferFullError, KafkaError
from headrace.net.thread import loop_thread
from headrace.records import Intake, Message, Watch
from headrace.types.records import Headers

__all__ = ["Producer"]

_SLICE_S = 0.1  # longest wait before signals are looked at
_SHORT_S = 0.001  # librdkafka does not sleep for less either: it counts in milliseconds
_STEP_ASIDE_S = 50e-6  # as long as a step of the loop, which needs the GIL

DeliveryCallback = Callable[[KafkaError | None, Message], Any]


class Producer(Sending, Transactional):
    """Sends records to Kafka (confluent_kafka's names and behaviour).

    Close it, or use it in a `with` statement: records that wait are lost with a producer that is just let go.

    Args:
        config: properties, see `headrace.config`; may also be given as keywords.
        logger: `logging.Logger` to write to.

    Raises:
        ConfigError: a property is unknown, malformed or contradicts another.
        TypeError: no properties were given.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, logger: Any = None, **properties: Any) -> None:
        if config is None and not properties:
            raise TypeError("expected configuration dict: give the properties as a mapping, or as keywords")
        given = {**(config or {}), **properties}
        if logger is not None:
            given["logger"] = logger
        checked = Config(PRODUCER, given, servers_needed=False)
        self._change = _Change()
        self._closing = threading.RLock()  # a signal's handler may close it as well
        self._thread = loop_thread()
        chain = InterceptorChain.of(checked)
        try:
            self._core: Core = self._thread.call(_make(checked, self._change.tell))
        except BaseException:
            if chain is not None:
                chain.close()
            raise
        self._core.deliveries.on_served = self._change.tell
        self._entrance = Entrance(self._core, chain)
        self._polled_for = 0  # records under way at the last `poll(0)` that had nothing to call
        self._full_at: tuple[int, int] | None = None  # what waited when `produce()` found no room
        wake = Pace(self._core.wake, self._core.budget, self._thread.is_here).wake
        intake = Intake(self._entrance.open, self._produce_unusual, wake, checked["on_delivery"])
        self._produce = intake.produce
        if type(self).produce is Producer.produce:
            self.__dict__["produce"] = intake.produce  # saves a Python frame for each record

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

    def _produce_unusual(self, *arguments: Any) -> None:
        """A record that is not simply appended; `poll()` learns when there was no room for it."""
        before = self._load()
        try:
            self._entrance.produce(*arguments)
        except BufferFullError:
            self._full_at = before
            raise

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
        core = self._core
        if timeout == 0 and not core.closed:  # as many call it behind each record: that costs next to nothing
            served, under_way = core.deliveries.serve(), core.budget.messages
            if served or not under_way or under_way != self._polled_for:
                self._polled_for = under_way
                return served
            timeout = _STEP_ASIDE_S  # nothing was produced since: who only waits must not keep the loop from the GIL
        else:
            self._check_serving("poll")
        return self._poll(timeout)

    def _poll(self, timeout: float | None) -> int:
        core, deliveries = self._core, self._core.deliveries
        full_at, self._full_at = self._full_at, None

        def happened() -> bool:
            return deliveries.pending or core.closed or (full_at is not None and self._load() != full_at)

        if not deliveries.pending:
            expires_at = time.monotonic() + seconds(timeout)
            watched = core.budget.messages and timeout is not None and 0 < timeout < _SHORT_S
            self._change.wait(happened, expires_at, watch_until=expires_at if watched else 0.0)
        return deliveries.serve()

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
        self._check_serving("flush")
        return self._flush(time.monotonic() + seconds(timeout))

    def _flush(self, expires_at: float) -> int:
        core, deliveries = self._core, self._core.deliveries
        core.flush(True)
        watch_until = time.monotonic() + _SHORT_S
        try:
            while True:
                deliveries.serve()
                if not len(core) or time.monotonic() >= expires_at:
                    return len(core)
                self._change.wait(lambda: deliveries.pending or not len(core), expires_at, watch_until=watch_until)
        finally:
            core.flush(False)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Give up records; their callbacks are called from the next `poll()` or `flush()`.

        Args:
            in_queue: those that wait, with error `_PURGE_QUEUE`.
            in_flight: those that were sent and not acknowledged, with error `_PURGE_INFLIGHT`. They may be stored.
            blocking: wait until it is done.
        """
        self._check_open()
        if blocking:
            self._thread.call(_purge(self._core, in_queue, in_flight))
        else:
            self._thread.call_soon(self._core.purge, in_queue, in_flight)

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
        self._check_open()
        return self._thread.call(self._core.list_topics(topic, timeout))

    def metrics(self) -> Metrics:
        """What `stats_cb` gets, as a dictionary: librdkafka's names, documented in `client.statistics`."""
        self._check_open()
        return self._thread.call(_metrics(self._core))

    def close(self) -> bool:
        """Deliver what waits, call the callbacks, and stop. Closing twice does nothing. An open transaction is aborted.

        Callbacks may produce until then, and no callback runs any more when it returns, but one that has called it. If
        the wait is interrupted, or a callback raises, the rest is given up and the producer is closed all the same.

        Returns:
            True.

        Raises:
            RuntimeError: called in a callback of `send()`, on the thread that the reports come from.
        """
        core = self._core
        if core.forked:
            return True
        waited_for = core.deliveries.in_callback() or self._thread.is_here()
        if not self._closing.acquire(blocking=not waited_for):
            return True  # by whoever is closing it
        try:
            if not core.closed:
                self._check_thread("close")
                self._close()
        finally:
            self._closing.release()
        return True

    def _close(self) -> None:
        core, deliveries = self._core, self._core.deliveries
        core.refuse(spare_callbacks=True)
        self._change.tell()  # threads in `poll()` have nothing to wait for
        here = int(deliveries.in_callback())  # whoever tells asks what has happened, too, and is somewhere else
        try:
            self._leave()
            self._flush(math.inf)
            while deliveries.callers > here or len(core):  # a callback that has just returned may have produced
                self._change.wait(lambda: deliveries.pending or deliveries.callers <= here, math.inf)
                self._flush(math.inf)
        finally:
            self._thread.call(core.close())
            try:
                self._serve_last()
            finally:
                self._entrance.close()

    def _serve_last(self) -> None:
        """Nothing more will come: call the callbacks that are left."""
        self._core.deliveries.serve()

    def _check_open(self) -> None:
        if self._core.closed:
            raise producer_closed()

    def _check_serving(self, call: str) -> None:
        self._check_thread(call)
        if not self._core.deliveries.in_callback():  # which `close()` calls as well
            self._check_open()

    def _check_thread(self, call: str) -> None:
        if self._thread.is_here():
            raise RuntimeError(f"{call}() was called on the thread that the reports come from: do it outside of the "
                               "callbacks of send()")

    def _wait_until(self, happened: Callable[[], Any], expires_at: float) -> None:
        self._change.wait(happened, expires_at)

    def __del__(self) -> None:
        core = getattr(self, "_core", None)  # the constructor may have failed
        if core is not None and not core.closed:  # let go of the sockets; records that wait are lost, as documented
            with contextlib.suppress(RuntimeError):
                self._thread.call_soon(core.abandon)

    def __len__(self) -> int:
        return len(self._core)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Change:
    """How the loop wakes up threads that wait for reports."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._awaited: list[Callable[[], Any]] = []
        self._watch = Watch()

    def wait(
        self, happened: Callable[[], Any], expires_at: float, slice_s: float | None = None, *, watch_until: float = 0.0
    ) -> None:
        """Sleep until something has happened; wakes up for signals in between, and for nothing else.

        Args:
            happened: says so. Whoever makes it true calls `tell()`.
            expires_at: monotonic seconds.
            slice_s: longest sleep, seconds; None for what signals need.
            watch_until: monotonic seconds; does not sleep before, for it may happen sooner than a thread wakes up.
        """
        if watch_until:
            watch_until = min(watch_until, expires_at)
            while not happened() and (left_s := watch_until - time.monotonic()) > 0:
                self._watch.wait(happened, left_s)
            if watch_until == expires_at or happened():
                return
        with self._condition:
            self._awaited.append(happened)
            try:
                while not happened() and (left_s := expires_at - time.monotonic()) > 0:
                    self._condition.wait(min(left_s, _SLICE_S if slice_s is None else slice_s))
            finally:
                self._awaited.remove(happened)

    def tell(self) -> None:
        """Something may have happened. Cheap while nobody waits, or not for this: to wake a thread is not."""
        self._watch.tell()
        if self._awaited:
            with self._condition:
                if any(happened() for happened in self._awaited):
                    self._condition.notify_all()


async def _make(config: Config, on_change: Callable[[], None]) -> Core:
    return Core(config, on_change)


async def _metrics(core: Core) -> Metrics:
    return core.statistics.metrics()


async def _purge(core: Core, in_queue: bool, in_flight: bool) -> None:
    core.purge(in_queue, in_flight)
