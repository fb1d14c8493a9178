"""`RangeReader`: the raw bytes of ranges of offsets, for readers that decode columns; its connections stay.

All ranges of a task are fetched together, one request for each broker, while the caller works on what came; they are
handed out one after the other, in the order given, so that a task that runs again gives the same rows in the same
order. No group, no commits, nothing decoded; Spark's tasks read this way. It must not know Arrow or Spark. Read next:
`client.consumer.kept_readers`; `records.columns.arrow` for the decoding.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from headrace.client.core import ClientCore
from headrace.client.waits import ThreadWaits, Wait
from headrace.config import CONSUMER, Config
from headrace.errors import KafkaError, KafkaException
from headrace.machines.cluster.metadata import LAGGING_S, Cluster, MetadataChanged
from headrace.machines.consumer.fetcher import CompletedFetch, Fetcher, PositionsInDoubt, RecordsReady
from headrace.machines.consumer.recreation import follow
from headrace.machines.consumer.subscription import Key, Subscription
from headrace.machines.machine import ErrorEvent, Event
from headrace.net.thread import loop_thread
from headrace.records import Message
from headrace.slotted import slotted
from headrace.types.records import TopicPartition

if TYPE_CHECKING:  # few leaders change, and fewer lack records
    from headrace.machines.consumer.truncation import LogTruncated

__all__ = ["FetchedRange", "OffsetRange", "RangeReader"]

_REPLY_BYTES: Final = 8 << 20
_PARTITION_BYTES: Final = {"max.partition.fetch.bytes", "fetch.message.max.bytes"}
"""One property under both of its names."""
_LARGEST: Final = "receive.message.max.bytes"
"""The property that bounds replies; the error of one that is larger names it."""
_FIRST_BYTES: Final = (1 << 20, 6 << 20, 8 << 20)
"""What the first replies bring, each asked for when the caller is done with the one before: Spark's `show()` wants few
rows, and brokers sent up to eight replies of full size ahead of it. The first has room for a batch of the usual size;
the second is more than what a worker's socket takes, so that a worker that is given up is still busy with it; the third
has nothing behind it yet, for who wants some more."""
_HELD_BYTES: Final = 16 << 20
"""What may wait for its turn. Beyond that the ranges are fetched one after the other."""
_NO_ID: Final = UUID(int=0)
_ANSWER_S: Final = 1.0
"""Longest wait for brokers when they are asked whether they are there."""


@slotted(frozen=True)
class OffsetRange:
    """Offsets of one partition, from `start` up to and without `end`.

    Attributes:
        topic_id: id of the topic in which the offsets hold; None when it is not known. Another topic of that name is
            not read.
    """

    topic: str
    partition: int
    start: int
    end: int
    topic_id: UUID | None = None

    @property
    def key(self) -> Key:
        """Topic and partition."""
        return (self.topic, self.partition)


@slotted(frozen=True)
class FetchedRange:
    """Whole record batches as they came, and what is needed to decode them.

    Attributes:
        data: record batches; valid for as long as it is referenced. They may hold records from the end of the range on.
        fetch_offset: records before it belong to the range before.
        next_offset: where the next range begins.
        aborted: producer id and first offset of each aborted transaction, None when there is none to skip.
        high_watermark: offset after the last committed record of the partition.
        log_start_offset: first offset that the partition still has.
        topic: topic name.
        partition: partition number.
    """

    data: memoryview | bytes | bytearray
    fetch_offset: int
    next_offset: int
    aborted: list[tuple[int, int]] | None
    high_watermark: int
    log_start_offset: int
    topic: str = ""
    partition: int = -1


def _named(key: Key) -> str:
    return f"{key[0]}[{key[1]}]"


class RangeReader:
    """Reads ranges for one caller at a time.

    Args:
        config: a consumer's properties; "max.partition.fetch.bytes" is 8 MiB unless it is given.

    Attributes:
        finished: all ranges that were asked for have been handed out.

    Raises:
        ConfigError: an unknown property or a bad value.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        properties = dict(config)
        if _LARGEST not in config:  # who says how large replies may be has said it
            properties.setdefault("fetch.max.bytes", _REPLY_BYTES)
        if not _PARTITION_BYTES & config.keys():
            properties["max.partition.fetch.bytes"] = _REPLY_BYTES
        properties |= {"auto.offset.reset": "error", "group.id": "", "enable.partition.eof": True}
        self._config = Config(CONSUMER, properties)
        self._waits = ThreadWaits(loop_thread())
        self._subscription = Subscription("", "error")
        self.finished = True
        self._forget()
        self._news = 0
        self._core, self._fetcher = self._waits.call(self._start())

    def _forget(self) -> None:
        self._failure: KafkaException | None = None
        self._error: KafkaError | None = None
        self._no_room = ""
        self._timeout_s = 0.0
        self._at_end: set[Key] = set()
        self._absent: dict[Key, float] = {}
        self._held: dict[Key, deque[CompletedFetch]] = {}
        self._held_bytes = 0
        self._is_one_by_one = False
        self._first_bytes = iter(_FIRST_BYTES)

    async def _start(self) -> tuple[ClientCore, Fetcher]:
        core = ClientCore(self._config, on_event=self._on_event)
        fetcher = Fetcher(self._subscription, core.metadata, self._config, core.driver.wake_threadsafe,
                          core.retries.jitter)
        core.driver.add(fetcher)
        return core, fetcher

    @property
    def closed(self) -> bool:
        """After `close()`, and in a child process that was forked after it was made."""
        return self._core.closed

    # What happens, on the loop

    def _begin(self, ranges: Sequence[OffsetRange]) -> None:
        subscription, metadata = self._subscription, self._core.metadata
        metadata.want_only({each.topic for each in ranges}, every=False)
        starts = [TopicPartition(*each.key, each.start) for each in ranges]
        subscription.set_paused(starts, False)  # by a call before, which did not read all of them
        subscription.assign(starts)
        for each in ranges:
            state = subscription.require(*each.key)
            state.stop_offset, state.topic_id = each.end, each.topic_id
        # A reader that was kept may know the topic that had the name before: only then are brokers asked who is right.
        others = {each.topic for each in ranges if each.topic_id is not None
                  and metadata.topic_id(each.topic) not in (_NO_ID, each.topic_id)}
        if others:
            metadata.forget(others)
        if any(each.topic_id is not None for each in ranges):  # else the first answer says which topic it is
            self._follow(metadata.cluster)
        self._allow_more()

    def _allow_more(self) -> None:
        self._fetcher.allow(next(self._first_bytes, None))
        self._core.wake()

    def _follow(self, cluster: Cluster) -> None:
        """Look whether the topics are the ones that are meant, and can be read."""
        for state, _ in follow(self._subscription, cluster).errors:
            if state is not None:
                self._failure = KafkaException(KafkaError(
                    KafkaError.UNKNOWN_TOPIC_ID, f"{_named(state.key)}: the topic was deleted and made anew, with id "
                    f"{state.topic_id}; the offsets are those of the one before"))
        for topic in self._subscription.topics():
            info = cluster.topics.get(topic)
            if info is not None and info.error is not None:
                self._error = info.error
                if not info.error.retriable():
                    self._failure = KafkaException(info.error)
        self._follow_absent()

    def _follow_absent(self) -> None:
        """Give up what is not there. One answer does not say so: its broker may lag behind, or have just started."""
        now = time.monotonic()
        for state in self._subscription:
            absence = self._absence(state.key)
            if absence is None:
                self._absent.pop(state.key, None)
            elif now - self._absent.setdefault(state.key, now) >= LAGGING_S:
                self._failure = KafkaException(KafkaError(
                    KafkaError.UNKNOWN_TOPIC_OR_PART, f"{absence}, brokers have said for {LAGGING_S:g} s"))

    def _absence(self, key: Key) -> str | None:
        """What the newest picture says of a partition that is not there."""
        metadata = self._core.metadata
        missing = metadata.missing(*key)
        if missing is not None and missing == KafkaError._UNKNOWN_PARTITION:
            return missing.str()
        return f"{_named(key)}: the broker asked last lacks the topic" if key[0] in metadata.cluster.doubted else None

    def _on_event(self, event: Event) -> None:
        if isinstance(event, MetadataChanged):
            self._follow(event.cluster)
        elif isinstance(event, ErrorEvent):
            self._error = event.error
            self._follow_room(event.error)
        elif isinstance(event, PositionsInDoubt):
            self._compare_positions()
        elif not isinstance(event, RecordsReady):
            return
        self._news += 1
        self._waits.notify()

    def _follow_room(self, error: KafkaError) -> None:
        """Give up where a reply is too large again, by as much, which is no damage but a record that will not fit; or
        where there is no memory for one again.
        """
        text = error.str()
        if error != KafkaError._CRIT_SYS_RESOURCE:
            text = text.partition(" (")[0]  # without its history
            if error != KafkaError._BAD_MSG or _LARGEST not in text:
                return
        if text == self._no_room:
            self._failure = KafkaException(KafkaError(error.code(), text))
        self._no_room = text
        self._core.driver.report_again()  # whether it is the same again is the question

    def _compare_positions(self) -> None:
        """Ask the new leader whether it has what was read; the next question follows by itself."""
        from headrace.client.consumer.consumer_truncation import compare_positions

        compare_positions(self._core, self._subscription, self._core.config.seconds("socket.timeout.ms"),
                          self._on_truncated)
        self._core.driver.wake()

    def _on_truncated(self, event: LogTruncated) -> None:
        where = _named((event.topic, event.partition))
        self._failure = KafkaException(KafkaError(
            KafkaError._LOG_TRUNCATION, f"the new leader of {where} lacks records in front of offset {event.offset}, "
            "which the one before had"))
        self._news += 1
        self._waits.notify()

    # The caller's thread

    def read(self, ranges: Sequence[OffsetRange], timeout_s: float) -> Iterator[FetchedRange]:
        """The bytes of ranges, in their order. What an earlier call has not read is dropped.

        Args:
            ranges: at most one of each partition.
            timeout_s: longest wait for a reply with data, in seconds.

        Raises:
            KafkaException: records are gone (`_AUTO_OFFSET_RESET`, `OFFSET_OUT_OF_RANGE`, `_LOG_TRUNCATION`), another
                topic has the name (`UNKNOWN_TOPIC_ID`), brokers go on to not know the topic
                (`UNKNOWN_TOPIC_OR_PART`), a record is larger than replies may be (`_BAD_MSG`), there is no memory for
                replies (`_CRIT_SYS_RESOURCE`), or nothing came in time (`_TIMED_OUT`).
        """
        self.finished = False
        self._forget()
        self._timeout_s = timeout_s
        wanted = [each for each in ranges if each.start < each.end]
        if wanted:
            self._waits.do(self._begin, wanted)
        for place, each in enumerate(wanted):
            if self._is_one_by_one:
                self._waits.do(self._set_paused, [each], False)
            yield from self._pieces(each, wanted[place + 1:])
        self.finished = True

    def _pieces(self, wanted: OffsetRange, later: Sequence[OffsetRange]) -> Iterator[FetchedRange]:
        at = wanted.start
        while at < wanted.end:
            fetched = self._next(wanted, at, later)
            at, state = fetched.next_offset, fetched.state
            yield FetchedRange(fetched.data, fetched.offset, at, fetched.aborted, state.high_watermark,
                               state.log_start, *wanted.key)

    def _next(self, wanted: OffsetRange, at: int, later: Sequence[OffsetRange]) -> CompletedFetch:
        """The next piece of a range; waits for it, and holds pieces of later ones."""
        held = self._held.get(wanted.key)
        if held:
            fetched = held.popleft()
            self._held_bytes -= len(fetched.data)
            return fetched
        give_up_at = time.monotonic() + self._timeout_s
        while True:
            seen = self._news
            piece = self._fetcher.take_fetched()
            if piece is None:
                self._wait(seen, give_up_at, wanted, at)
            elif piece.notice is not None:
                self._heed(piece.notice, piece.state.key)
            elif piece.state.key == wanted.key:
                return piece
            else:
                self._hold(piece, later)

    def _heed(self, notice: Message, key: Key) -> None:
        error = notice.error()
        if error == KafkaError._AUTO_OFFSET_RESET:  # in words for those who have no such property to set
            raise KafkaException(KafkaError(
                KafkaError._AUTO_OFFSET_RESET, f"offset {notice.offset()} is out of the range of {_named(key)}: "
                "records in front of its log's beginning were deleted, or its end was cut off"))
        if error != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        self._at_end.add(key)

    def _hold(self, piece: CompletedFetch, later: Sequence[OffsetRange]) -> None:
        self._held.setdefault(piece.state.key, deque()).append(piece)
        self._held_bytes += len(piece.data)
        if self._held_bytes > _HELD_BYTES and not self._is_one_by_one:
            self._is_one_by_one = True
            self._waits.do(self._set_paused, later, True)

    def _set_paused(self, ranges: Sequence[OffsetRange], paused: bool) -> None:
        self._subscription.set_paused([TopicPartition(*each.key) for each in ranges], paused)
        if not paused:
            self._fetcher.resume()
        self._core.wake()

    def _wait(self, seen: int, give_up_at: float, wanted: OffsetRange, at: int) -> None:
        if self._failure is not None:
            raise self._failure
        if self._fetcher.has_all_allowed:
            self._waits.do(self._allow_more)
        self._waits.wait(Wait(self._news_since(seen), give_up_at))
        if self._news == seen:
            raise KafkaException(self._late(wanted, at))

    def _news_since(self, seen: int) -> Callable[[], bool]:
        return lambda: self._news != seen

    def _late(self, wanted: OffsetRange, at: int) -> KafkaError:
        where, absence = _named(wanted.key), self._absence(wanted.key)
        silence = f"no reply with data of {where} at offset {at} for {self._timeout_s:g} s"
        if absence is not None:
            return KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"{silence}: {absence}")
        if wanted.key in self._at_end:
            text = (f"{where} ends before offset {wanted.end}: nothing came at offset {at} for {self._timeout_s:g} s; "
                    "records were lost, or the topic was made anew")
            return KafkaError(KafkaError.OFFSET_OUT_OF_RANGE, text)
        reason = f": {self._error.str()}" if self._error is not None else ""
        return KafkaError(KafkaError._TIMED_OUT, f"{silence}{reason}")

    # Its end

    def confirm(self) -> bool:
        """Ask brokers for its topics; whether one has answered within a second."""
        return self._waits.call(self._confirmed())

    async def _confirmed(self) -> bool:
        core = self._core
        before = core.metadata.updates
        core.refresh_metadata()
        try:
            await core.wait_for_metadata(lambda _: core.metadata.updates != before, _ANSWER_S)
        except KafkaException:
            return False
        return True

    def close(self) -> None:
        """Close the connections. Closing twice does no harm."""
        self._waits.call(self._core.close())

    def abandon(self) -> None:
        """Close the connections without waiting. On the loop."""
        self._core.abandon()
