"""Where `produce()` puts records: the accumulator of each topic, and a queue for topics that are not known yet.

`open` is read without a lock by `produce()`. The first records of a topic wait here until metadata says how many
partitions it has; they count against the same `BufferPool`, and fail when the topic does not turn up.

It must not know the sender or the wire. Read next: `client.producer.producer_engine`.
"""

from __future__ import annotations

import math
import operator
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from headrace.buffers import CALLBACK_BYTES, BufferPool, OpenBatches, RecordAccumulator
from headrace.buffers.refusals import milliseconds, no_partition
from headrace.client.producer.partitioning import choice_of
from headrace.config import Config
from headrace.errors import BufferFullError, ClientClosedError, KafkaError, KafkaException
from headrace.interpreter import SteadyLock
from headrace.machines.cluster.metadata import Cluster, TopicInfo
from headrace.machines.machine import because
from headrace.records import CODEC_NAMES, Message
from headrace.records.message import encode_headers, encode_text
from headrace.slotted import slotted
from headrace.types.records import PARTITION_UA, TIMESTAMP_CREATE_TIME

__all__ = ["PRODUCER_CLOSED", "SOON", "FailedRecord", "TopicAccumulators", "compression_of", "never", "producer_closed"]

PRODUCER_CLOSED: Final = "Producer has been closed: make a new one"
SOON: Final = {"topic.metadata.propagation.max.ms": 5_000}
"""For who waits for a topic before there is anything to do: one that does not exist is said so after 5 s, not 30."""
_INT32, _INT64 = 1 << 31, 1 << 63
_WAITING_BYTES = 512
"""What a record that is not in a batch costs beyond its bytes: the objects that keep or report it."""


def never() -> bool:
    """False, always."""
    return False


def producer_closed() -> ClientClosedError:
    """The error of a call that a closed producer cannot carry out."""
    return ClientClosedError(PRODUCER_CLOSED)


@slotted()
class FailedRecord:
    """A record that never reached a batch, and why.

    Attributes:
        callback: to be called with the message.
        message: what is known of it.
        cost_bytes: is to be released; None if it is not counted.
        was_accepted: False for none at all: a call has waited for its topic, and does not go on.
    """

    callback: Callable[..., Any] | None
    message: Message
    cost_bytes: int | None
    was_accepted: bool

    @property
    def error(self) -> KafkaError:
        """Why."""
        error = self.message.error()
        assert error is not None
        return error


@slotted()
class _Waiting:
    """A record of a topic that is not known yet; the arguments of `RecordAccumulator.append`, copied.

    Or, without a cost, no record at all: only its callback waits for the topic.
    """

    value: bytes | None
    key: bytes | None
    partition: int
    timestamp_ms: int
    headers: list[tuple[str, bytes | None]] | None
    callback: Callable[..., Any] | None
    cost_bytes: int | None
    since: float

    def failed(self, topic: str, error: KafkaError) -> FailedRecord:
        message = Message(topic, self.partition, None, self.key, self.value, self.headers, error,
                          (TIMESTAMP_CREATE_TIME, self.timestamp_ms), time.monotonic() - self.since)
        return FailedRecord(self.callback, message, self.cost_bytes, was_accepted=self.cost_bytes is not None)


def compression_of(config: Config) -> tuple[int, int]:
    """How a producer's batches are compressed: the codec, 0 for none, and its level."""
    return CODEC_NAMES.index(config["compression.type"]), config["compression.level"]


class TopicAccumulators:
    """The accumulators of one producer.

    Args:
        config: the producer's properties.
        buffer_pool: counts every record from `produce()` to its report.
        want_topic: called, in the thread of `produce()`, for each topic that is not known yet.
        look_again: the same, where a record is refused because there is no such partition.

    Attributes:
        open: accumulators by topic that take any caller's records; empty once the producer is closed, and always when a
            Python function chooses the partitions.
        all: accumulators by topic that may hold records.
        open_batches: of all of them.
        by_function: a Python function chooses the partitions; it must see each record.
    """

    def __init__(
        self, config: Config, buffer_pool: BufferPool, want_topic: Callable[[str], None],
        look_again: Callable[[], object] = bool,
    ) -> None:
        self.open: dict[str, RecordAccumulator] = {}
        self.all: dict[str, RecordAccumulator] = {}
        self.open_batches = OpenBatches(config.seconds("linger.ms"), *compression_of(config))
        self._config = config
        self._buffer_pool = buffer_pool
        self._want_topic = want_topic
        self._look_again = look_again
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._lock = SteadyLock()
        self._refusal: Callable[[], KafkaException] | None = None
        self._admits = never
        self._choose = choice_of(config["partitioner"])
        self.by_function = self._choose is not None
        self._timeout_s = config.seconds("message.timeout.ms") or math.inf
        self._propagation_s = config.seconds("topic.metadata.propagation.max.ms")
        self._cluster: Cluster | None = None  # as it was seen last
        self._infos: dict[str, TopicInfo] = {}  # of `all`: what their partitions are from
        self._missed: dict[str, float] = {}  # when brokers first answered that they do not have a topic
        self._unanswered = False  # they may have it by now: they do not answer

    def append(
        self, topic: str, value: Any, key: Any, partition: int, timestamp_ms: int, headers: Any, callback: Any
    ) -> int:
        """Add a record, whatever is known of its topic. `produce()` comes here when `open` does not have it.

        Returns:
            As `RecordAccumulator.append`: not 0 when the loop has something to do.
        """
        if not isinstance(topic, str):
            raise TypeError(f"topic must be str, not {type(topic).__name__}")
        with self._lock:
            self._check_taking()
            accumulator = self.all.get(topic)
            if accumulator is None:
                self._accept(topic, value, key, partition, timestamp_ms, headers, callback)
                return 0
        if partition == PARTITION_UA and self._choose is not None:
            partition = self._choose(topic, key, value, accumulator.partition_count)
        return accumulator.append(value, key, partition, timestamp_ms, headers, callback)

    def await_topic(self, topic: str, callback: Callable[[KafkaError | None, Message | None], Any]) -> bool:
        """Have `callback` called, on the loop, as soon as a topic is known, or cannot be used.

        Returns:
            False if the topic is known already; nothing is called then.
        """
        with self._lock:
            self._check_taking()
            if topic in self.all:
                return False
            self._queue(topic).append(_Waiting(None, None, -1, 0, None, callback, None, time.monotonic()))
            return True

    def accumulator_of(self, topic: str) -> RecordAccumulator:
        """The accumulator of a topic that is known, for those that append to it by themselves.

        Raises:
            KafkaException: no records are taken.
        """
        accumulator = self.open.get(topic)
        if accumulator is None:
            with self._lock:
                self._check_taking()
            accumulator = self.all[topic]
        return accumulator

    def _queue(self, topic: str) -> deque[_Waiting]:
        """What waits for a topic, which is asked for with the first."""
        queue = self._waiting.get(topic)
        if queue is None:
            topic.encode()  # one with a surrogate would spoil each request that asks for it and for others
            queue = self._waiting[topic] = deque()
            try:
                self._want_topic(topic)
            except BaseException:  # Ctrl-C in between: later records of the topic count on this one
                self._want_topic(topic)
                raise
        return queue

    def _accept(
        self, topic: str, value: Any, key: Any, partition: int, timestamp_ms: int, headers: Any, callback: Any
    ) -> None:
        """Check a record as `RecordAccumulator.append` would, count it, and have it wait for its topic."""
        given_ms = milliseconds(timestamp_ms)
        if given_ms < 0:
            raise ValueError(f"timestamp must not be negative: {given_ms}")
        if not PARTITION_UA <= operator.index(partition) < _INT32:
            raise no_partition(topic, partition, None)
        if given_ms >= _INT64:
            raise OverflowError(f"timestamp {given_ms} is out of range")
        raw_key, raw_value = encode_text(key, "key"), encode_text(value, "value")
        pairs = encode_headers(headers)
        raw = [raw_key, raw_value, *(part for pair in pairs for part in pair)]
        size = sum(len(part) for part in raw if part is not None)
        if size > self._config["message.max.bytes"]:
            raise KafkaException(KafkaError(
                KafkaError.MSG_SIZE_TOO_LARGE, f"a record of {size} bytes for {topic} is larger than "
                f"message.max.bytes ({self._config['message.max.bytes']})"))
        cost = size + _WAITING_BYTES + (CALLBACK_BYTES if callback is not None else 0)
        stamp = given_ms or time.time_ns() // 1_000_000
        copied = [(name.decode(), content) for name, content in pairs] or None
        record = _Waiting(raw_value, raw_key, partition, stamp, copied, callback, cost, time.monotonic())
        if not self._buffer_pool.admit(self._queue(topic), record, cost):
            raise BufferFullError(
                f"Local: Queue full: {self._buffer_pool.messages} messages wait for delivery, topic {topic} is not "
                "known yet; call poll() and try again, or raise queue.buffering.max.messages")

    def on_cluster(self, cluster: Cluster) -> list[FailedRecord]:
        """New metadata came: give known topics their buffers. Returns the records that cannot be stored."""
        if cluster is not self._cluster:
            self._cluster = cluster
            for name, accumulator in self.all.items():
                info = cluster.topics.get(name)
                if info is not None and info is not self._infos[name] and info.partitions:
                    self._fit(accumulator, info)
        failed: list[FailedRecord] = []
        for name in list(self._waiting):
            info = cluster.topics.get(name)
            if info is not None and info.error is not None and not info.error.retriable():
                failed += self._fail(name, info.error)
            elif info is not None and info.error is None and info.partitions:
                failed += self._open(info)
            elif info is not None:
                self._missed.setdefault(name, time.monotonic())
        return failed

    def _fit(self, accumulator: RecordAccumulator, info: TopicInfo) -> None:
        """Have a topic's partitions in the buffer. Only a topic made anew has fewer: else a broker lags behind."""
        made_anew = info.topic_id != self._infos[info.name].topic_id
        self._infos[info.name] = info
        if len(info.partitions) > accumulator.partition_count:
            accumulator.grow(len(info.partitions))
        elif made_anew:
            accumulator.shrink(len(info.partitions))

    def expired(
        self, now: float, last_error: KafkaError | None = None, unanswered: bool = False
    ) -> list[FailedRecord]:
        """Records whose topic did not turn up in time.

        Args:
            now: monotonic seconds.
            last_error: why the brokers could not be asked.
            unanswered: they were asked again, and do not answer.
        """
        self._unanswered = unanswered
        return [failed for name in list(self._waiting) for failed in self._late(name, now, because(last_error))]

    def deadline(self) -> float | None:
        """When `expired` has something."""
        end = min((self._end(name, queue[0]) for name, queue in self._waiting.items() if queue), default=math.inf)
        return None if end == math.inf else end

    def _end(self, topic: str, record: _Waiting) -> float:
        """When a record's wait ends. Brokers may have the topic until they say that they do not, and answer still."""
        missed_at = None if self._unanswered else self._missed.get(topic)
        unknown_at = math.inf if missed_at is None else max(missed_at, record.since) + self._propagation_s
        return min(record.since + self._timeout_s, unknown_at)

    def _late(self, topic: str, now: float, why: str) -> list[FailedRecord]:
        failed, errors = [], dict[tuple[bool, str], KafkaError]()
        with self._lock:
            queue = self._waiting[topic]
            while queue and self._end(topic, queue[0]) <= now:
                record = queue.popleft()
                asked = topic in self._missed and not self._unanswered
                timed_out = record.cost_bytes is not None and not asked
                waited = f"{now - record.since:.3g} s"
                if (timed_out, waited) not in errors:  # a million records share them
                    what = "Message timed out: topic" if timed_out else "topic"
                    errors[timed_out, waited] = KafkaError(
                        KafkaError._MSG_TIMED_OUT if timed_out else KafkaError._UNKNOWN_TOPIC,
                        f'{what} "{topic}" is not known to the brokers after {waited}: create it, check its name, or '
                        f"that the brokers can be reached{why}")
                failed.append(record.failed(topic, errors[timed_out, waited]))
            if not queue:
                self._forget(topic)
        return failed

    def _forget(self, topic: str) -> deque[_Waiting]:
        self._missed.pop(topic, None)
        return self._waiting.pop(topic)

    def refuse(self, refusal: Callable[[], KafkaException], admits: Callable[[], bool] = never) -> None:
        """Take no more records.

        Args:
            refusal: makes what `append` raises from now on: one for each call, for an exception remembers its frames.
            admits: whether records of the thread that asks are taken nevertheless.
        """
        with self._lock:
            self._refusal, self._admits = refusal, admits
            self.open.clear()

    @property
    def is_taking(self) -> bool:
        """Records are taken, from any caller."""
        return self._refusal is None

    def _check_taking(self) -> None:
        if self._refusal is not None and not self._admits():
            raise self._refusal()

    def admit(self) -> None:
        """Take records again after `refuse`."""
        with self._lock:
            self._refusal = None
            if self._choose is None:
                self.open.update(self.all)

    def after_fork(self, refusal: Callable[[], KafkaException]) -> None:
        """In a forked child: another thread may have held the lock, and nothing here will ever be sent."""
        self._lock = SteadyLock()
        self.refuse(refusal)

    def drop(self, error: KafkaError) -> list[FailedRecord]:
        """Take out all records that wait for their topic."""
        return [failed for name in list(self._waiting) for failed in self._fail(name, error)]

    def drop_watchers(self, error: KafkaError) -> list[FailedRecord]:
        """Take out the calls that wait for their topic, and no record."""
        failed = []
        with self._lock:
            for topic, queue in list(self._waiting.items()):
                failed += [each.failed(topic, error) for each in queue if each.cost_bytes is None]
                records = [each for each in queue if each.cost_bytes is not None]
                queue.clear()
                queue.extend(records)
                if not queue:
                    self._forget(topic)
        return failed

    def _fail(self, topic: str, error: KafkaError) -> list[FailedRecord]:
        """Take out the records of a topic."""
        with self._lock:
            queue = self._forget(topic)
            return [queue.popleft().failed(topic, error) for _ in range(len(queue))]

    def _open(self, info: TopicInfo) -> list[FailedRecord]:
        """Move waiting records into a new accumulator, then publish it: no later record may overtake them."""
        self._infos[info.name] = info
        accumulator = RecordAccumulator(
            info.name,
            len(info.partitions),
            self._buffer_pool,
            self.open_batches,
            partitioner="consistent_random" if self._choose is not None else self._config["partitioner"],
            batch_bytes=self._config["batch.size"],
            batch_count=self._config["batch.num.messages"],
            message_bytes=self._config["message.max.bytes"],
            turn_ms=self._config["sticky.partitioning.linger.ms"],
            on_no_partition=self._look_again,
        )
        failed, watchers = [], []
        with self._lock:
            queue = self._forget(info.name)
            while queue:  # each is let go of as soon as it is copied
                record = queue.popleft()
                if record.cost_bytes is None:
                    watchers.append(record.callback)
                    continue
                # It counts all the time: else its room could be taken, and a flush would take it for delivered.
                try:
                    self._append(accumulator, record, record.cost_bytes)
                except KafkaException as refused:  # no such partition
                    failed.append(record.failed(info.name, refused.error))
                except MemoryError:
                    failed.append(record.failed(info.name, KafkaError(
                        KafkaError._CRIT_SYS_RESOURCE, "there is no memory for the record: raise the limit of the "
                        'process, or have less wait ("queue.buffering.max.kbytes")')))
            self.all[info.name] = accumulator
            if self._refusal is None and self._choose is None:
                self.open[info.name] = accumulator
        for watcher in watchers:
            assert watcher is not None
            watcher(None, None)
        return failed

    def _append(self, accumulator: RecordAccumulator, record: _Waiting, counted_bytes: int) -> None:
        partition = record.partition
        if partition == PARTITION_UA and self._choose is not None:
            partition = self._choose(accumulator.topic, record.key, record.value, accumulator.partition_count)
        accumulator.append(record.value, record.key, partition, record.timestamp_ms, record.headers, record.callback,
                           counted_bytes)
