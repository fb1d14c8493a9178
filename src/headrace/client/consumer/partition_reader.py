"""`PartitionReader`: the raw bytes of one partition, from one offset to another, for readers that decode columns.

The next reply is fetched while the caller works on the last one. No group, no commits, nothing decoded; Spark's tasks
read this way. It must not know Arrow or Spark. Read next: `records.columns.arrow` for the decoding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.client.core import ClientCore
from headrace.client.waits import ThreadWaits, Wait
from headrace.config import CONSUMER, Config
from headrace.errors import KafkaError, KafkaException
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.metadata import MetadataChanged
from headrace.machines.consumer.fetcher import CompletedFetch, Fetcher, PositionsInDoubt, RecordsReady
from headrace.machines.consumer.offsets import OffsetLookup
from headrace.machines.consumer.recreation import follow
from headrace.machines.consumer.subscription import Subscription
from headrace.machines.machine import ErrorEvent, Event
from headrace.net.thread import loop_thread
from headrace.types.records import TopicPartition

if TYPE_CHECKING:  # few leaders change, and fewer lack records
    from headrace.machines.consumer.truncation import LogTruncated

__all__ = ["FetchedRange", "PartitionReader"]

_REPLY_BYTES = 8 << 20


@dataclass(slots=True, frozen=True)
class FetchedRange:
    """Whole record batches as they came, and what is needed to decode them.

    Attributes:
        data: record batches; valid for as long as it is referenced.
        fetch_offset: records before it belong to the range before.
        next_offset: where the next range begins.
        aborted: producer id and first offset of each aborted transaction, None when there is none to skip.
        high_watermark: offset after the last committed record of the partition.
        log_start_offset: first offset that the partition still has.
    """

    data: memoryview | bytes | bytearray
    fetch_offset: int
    next_offset: int
    aborted: list[tuple[int, int]] | None
    high_watermark: int
    log_start_offset: int


class PartitionReader:
    """Iterates over the offsets [start, end) of a partition. Use it as a context manager, or close it.

    Args:
        config: a consumer's properties; "max.partition.fetch.bytes" is 8 MiB unless it is given.
        topic: topic name.
        partition: partition number.
        start: first offset to read.
        end: offset to stop before; the data may hold records from there on, which the decoder leaves out.
        isolation_level: "read_committed" or "read_uncommitted".
        timeout_s: longest wait for a reply with data, in seconds.

    Raises:
        ConfigError: an unknown property or a bad value.
    """

    def __init__(
        self, config: Mapping[str, Any], topic: str, partition: int, start: int, end: int, *,
        isolation_level: str = "read_committed", timeout_s: float = 60.0,
    ) -> None:
        self._range = (topic, partition, start, end)
        self._timeout_s = timeout_s
        properties = {"max.partition.fetch.bytes": _REPLY_BYTES, "fetch.max.bytes": _REPLY_BYTES, **config}
        properties |= {"isolation.level": isolation_level, "auto.offset.reset": "error", "group.id": "",
                       "enable.partition.eof": True}
        self._config = Config(CONSUMER, properties)
        self._waits = ThreadWaits(loop_thread())
        self._news = 0
        self._failure: KafkaException | None = None
        self._error: KafkaError | None = None
        self._at_end = False
        self._subscription = Subscription("", "error")
        self._core, self._fetcher = self._waits.call(self._start())

    async def _start(self) -> tuple[ClientCore, Fetcher]:
        topic, partition, start, end = self._range
        core = ClientCore(self._config, on_event=self._on_event)
        subscription = self._subscription
        subscription.assign([TopicPartition(topic, partition, start)])
        subscription.require(topic, partition).stop_offset = end
        fetcher = Fetcher(subscription, core.metadata, self._config, core.driver.wake_threadsafe)
        core.metadata.want_topics([topic])
        core.driver.add(OffsetLookup(subscription, core.metadata, self._config["isolation.level"], self._timeout_s,
                                     RetryPolicy.of(self._config)))
        core.driver.add(fetcher)
        return core, fetcher

    def _on_event(self, event: Event) -> None:
        if isinstance(event, MetadataChanged):
            for state, error in follow(self._subscription, event.cluster).errors:
                if state is not None:
                    self._failure = KafkaException(error)
            info = event.cluster.topics.get(self._range[0])
            if info is not None and info.error is not None:
                self._error = info.error
                if not info.error.retriable():
                    self._failure = KafkaException(info.error)
        elif isinstance(event, ErrorEvent):
            self._error = event.error
        elif isinstance(event, PositionsInDoubt):
            self._compare_positions()
        elif not isinstance(event, RecordsReady):
            return
        self._news += 1
        self._waits.notify()

    def _compare_positions(self) -> None:
        """Ask the new leader whether it has what was read; the next question follows by itself."""
        from headrace.client.consumer.consumer_truncation import compare_positions

        compare_positions(self._core, self._subscription, self._timeout_s, self._on_truncated)
        self._core.driver.wake()

    def _on_truncated(self, event: LogTruncated) -> None:
        self._failure = KafkaException(event.error)
        self._news += 1
        self._waits.notify()

    def __iter__(self) -> Iterator[FetchedRange]:
        _, _, at, end = self._range
        while at < end:
            fetched = self._next(at)
            at = fetched.next_offset
            state = fetched.state
            yield FetchedRange(fetched.data, fetched.offset, at, fetched.aborted, state.high_watermark,
                               state.log_start)

    def _next(self, at: int) -> CompletedFetch:
        """The next piece of the queue; waits for it."""
        give_up_at = time.monotonic() + self._timeout_s
        while True:
            seen = self._news
            fetched = self._fetcher.take_fetched()
            if fetched is not None:
                error = fetched.notice.error() if fetched.notice is not None else None
                if error is None:
                    return fetched
                if error != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                self._at_end = True
                continue
            if self._failure is not None:
                raise self._failure
            self._waits.wait(Wait(self._news_since(seen), give_up_at))
            if self._news == seen:
                raise KafkaException(self._late(at))

    def _news_since(self, seen: int) -> Callable[[], bool]:
        return lambda: self._news != seen

    def _late(self, at: int) -> KafkaError:
        topic, partition, _, end = self._range
        if self._at_end:
            text = (f"{topic}[{partition}] ends before offset {end}: nothing came at offset {at} for "
                    f"{self._timeout_s:g} s; records were lost, or the topic was made anew")
            return KafkaError(KafkaError.OFFSET_OUT_OF_RANGE, text)
        reason = f": {self._error.str()}" if self._error is not None else ""
        return KafkaError(KafkaError._TIMED_OUT, f"no reply with data of {topic}[{partition}] at offset {at} for "
                          f"{self._timeout_s:g} s{reason}")

    def close(self) -> None:
        """Close the connections. Closing twice does no harm."""
        self._waits.call(self._core.close())

    def __enter__(self) -> PartitionReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
