"""The producer: where a record's way out begins. What its faces call is in `client.producer.producer_calls`.

A record: `produce()` appends it to its topic's buffer in the caller's thread and, when a batch becomes ready, wakes the
loop. There the sender's machine takes over; what it wants compressed is compressed here, in threads (`_on_effect()`).
The report comes back through `_on_event()`.
It must not know bytes or sockets. Read next: `machines.producer.batch_queue`.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import math
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.buffers import Alarm, BufferPool, DirectReplies, Polling, implementation
from headrace.client.core import ClientCore
from headrace.client.producer.partitioning import balance_of
from headrace.client.producer.reports import DeliveryReportQueue
from headrace.client.producer.topics import PRODUCER_CLOSED, FailedRecord, TopicAccumulators, compression_of, never
from headrace.client.statistics import ProducerStatistics
from headrace.client.waits import threads_may_receive
from headrace.config import Config
from headrace.errors import BufferFullError, ClientClosedError, FatalError, KafkaError
from headrace.interpreter import has_gil
from headrace.machines.cluster.metadata import HostsUnknown, MetadataChanged, MetadataFailed
from headrace.machines.machine import REFUSALS, Effect, Event
from headrace.machines.producer.batch_queue import BatchQueues, ProducerBatch, SealedBatch
from headrace.machines.producer.lone_batch import Lend
from headrace.machines.producer.sender import BatchDone, Limits, ProducerFailed, Seal, Sender
from headrace.machines.producer.sequences import Sequences
from headrace.net.thread import FORKED, LoopAlarm, waking
from headrace.records import compress

if TYPE_CHECKING:
    from headrace.client.producer.direct_sends import DirectSends
    from headrace.client.producer.transaction_calls import TransactionCalls

__all__ = ["LEFT_AT_EXIT", "ProducerEngine"]

_T = TypeVar("_T")
LEFT_AT_EXIT: weakref.WeakSet[ProducerEngine] = weakref.WeakSet()
"""Those that nothing closes when the interpreter ends; the log tells what is lost with them."""


@atexit.register
def _tell_of_left() -> None:
    for engine in list(LEFT_AT_EXIT):
        if not engine.closed:
            engine.tell_of_lost()


class ProducerEngine:
    """One producer without a face: made on the loop that it runs on; `produce()` may be called from any thread.

    Args:
        config: the producer's properties.
        on_change: called on the loop when reports came or there is room again.
        same_thread: `produce()` is called on the loop only.

    Attributes:
        client: its machines run there.
        wake: wakes the loop for a batch that became ready; for faces that append to `accumulators.open` themselves.
        accumulators: accumulators by topic; its `open` is the fast way for `produce()`.
        buffer_pool: what waits, from `produce()` to the report.
        deliveries: reports to be served.
        statistics: the producer's figures.
        transactions: None without a `transactional.id`.
        flushes: those that have begun and not ended, under a key of their own each; batches do not linger meanwhile.
        polling: counts the calls that look for reports; None where only the loop takes replies.
        forked: this is a child process; a thread that held a lock does not exist here to release it.
    """

    def __init__(self, config: Config, on_change: Callable[[], None], *, same_thread: bool = False) -> None:
        self.config = config
        self.buffer_pool = BufferPool(
            config["queue.buffering.max.messages"], config["queue.buffering.max.kbytes"] * 1024)
        self.deliveries = DeliveryReportQueue(self.buffer_pool, config["delivery.report.only.error"], on_change)
        self._wanted = deque[str]()
        self.accumulators = TopicAccumulators(config, self.buffer_pool, self._want_topic, self._want_partitions)
        self.closed = self.forked = False
        self._looked_at = -math.inf
        self.flushes: dict[object, None] = {}
        codec, level = compression_of(config)
        compress(codec, b"", level)  # a missing codec or a wrong level shows now
        self._sealers = concurrent.futures.ThreadPoolExecutor(2, "headrace-seal") if codec else None
        self.client = ClientCore(
            config, on_event=self._on_event, on_effect=self._on_effect,
            allow_auto_create=config["allow.auto.create.topics"], closed_text=PRODUCER_CLOSED)
        if config["error_cb"] is not None:
            self.client.on_error = lambda error: self.deliveries.add_notice(config["error_cb"], error)
        self._driver = self.client.driver
        self._loop = asyncio.get_running_loop()
        self._topic_timer: asyncio.TimerHandle | None = None
        self._batch_queues = BatchQueues(
            self.accumulators.open_batches, config.seconds("linger.ms"),
            config.seconds("message.timeout.ms") or math.inf, codec, level)
        self._batch_queues.flushing = self.flushes
        self.transactions = self._make_transactions() if config["transactional.id"] else None
        self.statistics = ProducerStatistics(
            config, self.client.metadata, self._driver, self.deliveries.add_notice, self.deliveries.waiting,
            buffer_pool=self.buffer_pool, batch_queues=self._batch_queues)
        self._driver.listeners[BatchDone] = (self.deliveries.add, self.statistics.on_batch)
        self._sender = self._make_sender()
        self._direct_sends: DirectSends | None = None
        self.polling: Polling | None = None
        self._look_again: Callable[[], object] = bool
        self.wake = self._driver.stirrer(self._sender) if same_thread else self._driver.waker(self._sender)
        balance = balance_of(config, self.accumulators.all, self._batch_queues, self.client.metadata)
        for machine in (self._sender, *balance):
            self._driver.add(machine)
        if self.transactions is not None:
            self.transactions.start(self._sender, self.purge)
        self.client.on_forked, self.client.ending = self.after_fork, self._end_unattended
        self._alarm = None if same_thread else self._make_alarm()  # such a face's wake-up looks which loop it is on

    async def log_in(self) -> ProducerEngine:
        """This engine, once it has the token of `oauth_cb`, where there is one; else it is closed."""
        await self.client.log_in(self.close)
        return self

    def _make_transactions(self) -> TransactionCalls:
        from headrace.client.producer.transaction_calls import TransactionCalls  # few producers need it

        return TransactionCalls(self.config, self.client, self.accumulators)

    def _limits(self) -> tuple[Limits, Callable[[int], float]]:
        """The sender's settings, and seconds to wait before attempt n (0, 1, ...)."""
        config = self.config
        limits = Limits(
            config["acks"], config["max.in.flight.requests.per.connection"], config["message.max.bytes"],
            config.seconds("request.timeout.ms"), config["retries"], config.seconds("message.timeout.ms") or math.inf)
        return limits, lambda attempt: self.client.retries.wait_s(attempt + 1)

    def _make_alarm(self) -> LoopAlarm | None:
        """What polls the sender when a batch has lingered, where no wake-up is needed for that."""
        if not (Alarm.exists and self._batch_queues.linger_s):
            return None
        try:
            alarm = LoopAlarm(self._loop, self._driver.stepper(self._sender))
        except (OSError, NotImplementedError):  # no file to spare; a loop that watches no files
            return None
        self.accumulators.open_batches.ring(alarm.alarm, self.flushes)
        return alarm

    def _make_sender(self) -> Sender:
        config = self.config
        limits, backoff = self._limits()
        if self.transactions is None:
            sequences = Sequences(config["enable.idempotence"], limits.request_timeout_s, backoff)
            # A plain step can be interrupted half way; a session of TLS is guarded by the GIL, where it is lent.
            lends = implementation == "native" and (has_gil() or not config["security.protocol"].endswith("ssl"))
            return Sender(self._batch_queues, sequences, self.client.metadata, limits, backoff, lends=lends)
        return Sender(self._batch_queues, self.transactions.sequences(), self.client.metadata, limits, backoff,
                      self.transactions.machine)

    def __len__(self) -> int:
        return self.buffer_pool.messages + len(self.deliveries)

    @property
    def is_done(self) -> bool:
        """No record waits, and the future of each was resolved."""
        return not (len(self) or self.deliveries.settling)

    # Out: the caller's thread

    def produce(
        self, topic: str, value: Any, key: Any, partition: int, timestamp_ms: int, headers: Any, callback: Any
    ) -> None:
        """Append a record to its topic's accumulator, and wake the loop if a batch became ready.

        Raises:
            BufferFullError: too much waits already.
            ClientClosedError: the producer is closed.
            KafkaException: the record cannot be stored anywhere.
        """
        accumulator = self.accumulators.open.get(topic)
        try:
            if accumulator is not None:
                woken = accumulator.append(value, key, partition, timestamp_ms, headers, callback)
            else:
                woken = self.accumulators.append(topic, value, key, partition, timestamp_ms, headers, callback)
        except BufferFullError:
            self.flush_now()
            raise
        if woken:
            self.wake()

    def flush_now(self) -> None:
        """The pool is used up: send what there is, without lingering."""
        self._batch_queues.collect_all_once = True
        self.wake()

    def _want_topic(self, topic: str) -> None:
        self._wanted.append(topic)
        self._loop.call_soon_threadsafe(self._ask)

    def _ask(self) -> None:
        """All topics that are wanted by now are asked for at once: each time, all that wait are looked at."""
        wanted = [self._wanted.popleft() for _ in range(len(self._wanted))]
        if wanted:
            self.client.metadata.want_topics(wanted)
            self._open_topics()
            self._driver.wake()

    def _want_partitions(self) -> None:
        """A partition is not known: perhaps it is new. Who asks on and on asks the brokers as often as they may be."""
        now = time.monotonic()
        if now - self._looked_at >= self.client.retries.first_s:
            self._looked_at = now
            self._in_loop(self.client.refresh_metadata)

    # On the loop

    def _on_effect(self, effect: Effect) -> None:
        if isinstance(effect, Lend):
            self._lend(effect)
            return
        assert isinstance(effect, Seal)
        assert self._sealers is not None
        batch = effect.batch
        try:
            sealing = self._sealers.submit(batch.open.seal, effect.codec, effect.level)
        except RuntimeError:  # the interpreter ends: no thread works any more
            sealing = _done(batch.open.seal, effect.codec, effect.level)
        sealing.add_done_callback(lambda done: self._in_loop(self._on_sealed, batch, done))

    def _lend(self, effect: Lend) -> None:
        if self._direct_sends is None:
            from headrace.client.producer.direct_sends import DirectSends

            self._direct_sends = DirectSends(
                self._sender, self._driver, self.accumulators.all, self.deliveries, self.statistics,
                self.config["client.id"], waking(self._loop), self.polling, self._look_again)
        self._direct_sends.lend(effect)

    def receive_directly(self, polling: Polling, look_again: Callable[[], object]) -> None:
        """Let the threads that poll take replies by themselves, where they can.

        Args:
            polling: how the producer is polled.
            look_again: has threads that wait see that they may.
        """
        if threads_may_receive():
            self.polling, self._look_again = polling, look_again

    @property
    def replies(self) -> DirectReplies | None:
        """Where threads that poll take replies; None while the loop takes all."""
        return None if self._direct_sends is None else self._direct_sends.replies

    def _in_loop(self, action: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed; so is the producer
            self._loop.call_soon_threadsafe(action, *arguments)

    def _on_sealed(self, batch: ProducerBatch, sealing: concurrent.futures.Future[SealedBatch]) -> None:
        error = sealing.exception()
        if error is None:
            self._sender.on_sealed(batch, sealing.result())
        else:
            reason = KafkaError(KafkaError._BAD_COMPRESSION, f"compression failed: {error}")
            self._sender.on_seal_failed(batch, reason)
        self._driver.wake()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, BatchDone):
            self.deliveries.add(event)
            self.statistics.on_batch(event)
        elif isinstance(event, MetadataChanged):
            self._open_topics()
        elif isinstance(event, MetadataFailed):
            may_pass = self._sender.was_let_in and event.error.code() in REFUSALS
            self._fail((self.accumulators.drop_watchers if may_pass else self.accumulators.drop)(event.error))
        elif isinstance(event, HostsUnknown):
            self._fail(self.accumulators.drop_watchers(event.error))
        elif isinstance(event, ProducerFailed):
            self.accumulators.refuse(partial(FatalError, event.error))
            self._fail(self.accumulators.drop(event.error))
            self.client.on_error(event.error)
        elif self.transactions is not None:
            failed = self.transactions.on_event(event)
            if failed is not None:
                self._fail(self.accumulators.drop(failed))
                self._sender.fail_on(failed if failed.fatal() else None)
                self._driver.wake()

    def _open_topics(self) -> None:
        """Records of topics that are known by now leave their waiting place; some fail; the rest is timed."""
        opened = len(self.accumulators.all)
        metadata, now = self.client.metadata, time.monotonic()
        self._fail(self.accumulators.on_cluster(metadata.cluster))
        expired = self.accumulators.expired(now, metadata.last_error, metadata.is_silent(now))
        self._fail(expired)
        metadata.unwant({record.message.topic() or "" for record in expired})
        if len(self.accumulators.all) > opened:
            self._driver.wake()
        if self._topic_timer is not None:
            self._topic_timer.cancel()
        deadline = self.accumulators.deadline()
        self._topic_timer = None if deadline is None else self._loop.call_later(
            max(deadline - time.monotonic(), 0.0) + 0.001, self._open_topics)

    def _fail(self, records: list[FailedRecord]) -> None:
        for record in records:
            self.deliveries.add_failed(record)
        if self.transactions is not None:  # a call that only waited for its topic has given it nothing
            accepted = next((record for record in records if record.was_accepted), None)
            if accepted is not None:
                self.transactions.on_record_failed(accepted.error)

    def purge(self, in_queue: bool, in_flight: bool) -> None:
        """Report records as failed: those that wait, those in flight."""
        queued = KafkaError(KafkaError._PURGE_QUEUE) if in_queue else None
        flying = KafkaError(KafkaError._PURGE_INFLIGHT, maybe_applied=True) if in_flight else None
        self._sender.purge(queued, flying)
        if queued is not None:
            self._fail(self.accumulators.drop(queued))
        self._driver.wake()
        for event in self._sender.events():
            self._on_event(event)

    def refusal(self, closed_text: str = PRODUCER_CLOSED) -> ClientClosedError:
        """The error of a call that finds this producer closed.

        Args:
            closed_text: what this call says after `close()`, where the others say something else.
        """
        return ClientClosedError(FORKED if self.forked else closed_text)

    def refuse(self, *, spare_callbacks: bool = False) -> None:
        """Take no more records; from callbacks still, if they are waited for. Callable from any thread."""
        self.closed = True
        admits = self.deliveries.in_callback if spare_callbacks and self.transactions is None else never
        self.accumulators.refuse(self.refusal, admits)

    async def close(self) -> None:
        """Stop; what is not delivered is reported as purged."""
        self.refuse()
        self.purge(True, True)
        if self._topic_timer is not None:
            self._topic_timer.cancel()
        if self._alarm is not None:
            self.accumulators.open_batches.ring()
            self._alarm.close()
        self.statistics.stop()
        if self.transactions is not None:
            self.transactions.close(KafkaError(KafkaError._DESTROY, "the producer was closed"))
        await self.client.close()
        if self._direct_sends is not None:
            self._direct_sends.end()
        if self._sealers is not None:
            self._sealers.shutdown(wait=False)

    async def _end_unattended(self) -> None:
        """Nobody closes the producer: give up what waits, and say how much."""
        self.tell_of_lost()
        await self.close()

    def tell_of_lost(self) -> None:
        """Log how many records end with the producer, as librdkafka does: nobody is left to be told otherwise."""
        if lost := self.buffer_pool.messages:
            self.client.log.log(
                logging.WARNING, "a producer ends, and records were not delivered or not confirmed yet (%d): call "
                "flush() or close() before it is let go and before the program ends", lost)

    def after_fork(self) -> None:
        """In a forked child: there is no loop, no connection, and nothing that may be sent."""
        self.closed = self.forked = True
        if self._direct_sends is not None:
            self._direct_sends.end()
        self.accumulators.after_fork(self.refusal)


def _done(function: Callable[..., _T], *arguments: Any) -> concurrent.futures.Future[_T]:
    """What a function returns or raises, as of an executor."""
    future: concurrent.futures.Future[_T] = concurrent.futures.Future()
    try:
        future.set_result(function(*arguments))
    except Exception as error:
        future.set_exception(error)
    return future
