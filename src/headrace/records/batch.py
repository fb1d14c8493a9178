"""Record batches, version 2, in plain Python: the reference, the documentation, and what runs without a compiler.

A batch is a header of 61 bytes and then its records, compressed as one piece if at all. All numbers of the header are
big-endian; a record's are zigzag varints. `_batch.pyx` holds the same names in C; tests compare the two.

    at  bytes  field                          a record
     0   8     base offset                    length of what follows    varint
     8   4     length of all after this field attributes (unused)       1 byte
    12   4     leader epoch                   timestamp - base          varint
    16   1     magic: 2                       offset - base             varint
    17   4     CRC-32C of all after it        key length, -1 = None     varint, then the key
    21   2     attributes                     value length, -1 = None   varint, then the value
    23   4     last offset - base             count of headers          varint, then for each: name length, name,
    27  16     base and maximal timestamp                               value length (-1 = None), value
    43  14     producer id, epoch, sequence
    57   4     count of records

Attributes: bits 0-2 codec, 3 timestamps are the broker's, 4 transactional, 5 control, 6 the base timestamp is the
delete horizon (KIP-534). Bytes from the network are not trusted: every read is checked, and damage raises
`CorruptRecordError` and nothing else.

It must not know partitions' state, sockets or time. This file reads records, `headrace.records.header` headers;
`headrace.records.builder` writes.
Read next on the way back: `headrace.client.consumer.aio_consumer`.
Source: KIP-98, Java's `DefaultRecordBatch` and `DefaultRecord`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, cast

from headrace.errors import CorruptRecordError
from headrace.records.compression import MAX_DECOMPRESSED_BYTES, decompress
from headrace.records.control import aborts
from headrace.records.header import HEADER_BYTES, BatchInfo, check_sum, read_info
from headrace.records.legacy import message_set as legacy
from headrace.records.message import Message
from headrace.records.record import Record, read_all, wrapped

__all__ = ["Cursor", "FrameMemory", "PollFastPath", "ReadPosition"]


def read_records(data: memoryview, info: BatchInfo, topic: str, partition: int, limit: int) -> Iterator[Message]:
    """The records of one batch, in order; raises `CorruptRecordError` where they are damaged."""
    plain = data[info.position + HEADER_BYTES : info.position + info.size]
    if info.codec:
        plain = memoryview(decompress(info.codec, plain, limit))
    for record in read_all(plain, info.count):
        yield _message(record, info, topic, partition)


def _message(record: Record, info: BatchInfo, topic: str, partition: int) -> Message:
    if not 0 <= record.offset_delta <= info.last_offset - info.base_offset:
        raise CorruptRecordError("a record's offset is outside of its batch")
    stamp = (2, info.max_timestamp) if info.is_log_append_time else (
        1, wrapped(info.base_timestamp + record.timestamp_delta))
    return Message(topic, partition, info.base_offset + record.offset_delta, record.key, record.value, record.headers,
                   None, stamp, None, info.leader_epoch)


class FrameMemory(bytearray):
    """Memory of one large frame, to be written as it comes. Nobody may look at what has not been written.

    Args:
        size: bytes.
    """

    __slots__ = ()


class Cursor:
    """Hands out the records of fetched bytes, batch by batch, as the application asks for them.

    Control batches, aborted transactions (those in `aborted`) and records before `fetch_offset` are passed over.
    Damage is raised only after every record in front of it has been taken, and then on every further call.

    Args:
        data: whole batches; a part of a batch at the end is left out.
        topic: for the messages.
        partition: for the messages.
        fetch_offset: first offset wanted; brokers send whole batches, so earlier records may come with it.
        check_crcs: compare checksums.
        aborted: (producer id, first offset) of aborted transactions, as a read_committed fetch reply lists them.
        max_decompressed_bytes: most bytes that one batch may decompress to.

    Attributes:
        position: the offset to fetch next once all that was taken is done with.
    """

    def __init__(
        self,
        data: Any,
        topic: str,
        partition: int,
        fetch_offset: int,
        *,
        check_crcs: bool = True,
        aborted: Sequence[tuple[int, int]] | None = None,
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    ) -> None:
        self._view = memoryview(data)
        self._topic = topic
        self._partition = partition
        self._fetch_offset = fetch_offset
        self._check_crcs = check_crcs
        self._aborted = sorted(aborted or (), key=lambda entry: entry[1], reverse=True)
        self._aborting: set[int] = set()
        self._limit = max_decompressed_bytes
        self._at = 0
        self._last_offset = -1
        self._left = 0
        self._records: Iterator[Message] = iter(())
        self._error: str | None = None  # an exception would keep alive what was decompressed
        self._given_back: tuple[Message, int] | None = None  # with the position behind it
        self.position = fetch_offset
        self._advance()

    @property
    def exhausted(self) -> bool:
        """True when nothing more can be taken."""
        return self._left == 0 and self._error is None and self._given_back is None

    def take(self, count: int) -> list[Message]:
        """Up to `count` records; fewer only at the end.

        Raises:
            CorruptRecordError: the next record or its batch is damaged.
        """
        taken: list[Message] = []
        while len(taken) < count and (message := self._next(raises=not taken)) is not None:
            taken.append(message)
        return taken

    def take_one(self) -> Message | None:
        """The next record, None at the end.

        Raises:
            CorruptRecordError: it or its batch is damaged.
        """
        return self._next(raises=True)

    def give_back(self, message: Message) -> None:
        """Hand out the record that was taken last once more."""
        self._given_back = (message, self.position)
        self.position = message.offset() or 0

    def _next(self, raises: bool) -> Message | None:
        if self._given_back is not None:
            (message, self.position), self._given_back = self._given_back, None
            return message
        while self._error is None and self._left:
            try:
                message = next(self._records)
            except CorruptRecordError as error:
                self._fail(str(error))
                break
            self._left -= 1
            if self._left == 0:
                self._finish()
            offset = message.offset()
            if offset is not None and offset >= self._fetch_offset:
                self.position = max(self.position, offset + 1)
                return message
        if self._error is not None and raises:
            raise CorruptRecordError(self._error)
        return None

    def _finish(self) -> None:
        """The batch's last record was read: look for what follows, so that `position` is as far as possible."""
        try:
            next(self._records, None)
        except CorruptRecordError as error:
            self._fail(str(error))
            return
        self.position = max(self.position, self._last_offset + 1)
        self._advance()

    def _advance(self) -> None:
        """Go to the next batch that has records for the application."""
        try:
            while (info := read_info(self._view, self._at, self._topic, self._partition)) is not None:
                self._at += info.size
                self._last_offset = info.last_offset
                if info.last_offset < self._fetch_offset:
                    continue
                if self._check_crcs:
                    check_sum(self._view, info, self._topic, self._partition)
                if self._is_visible(info):
                    self._open(info)
                    return
                self.position = max(self.position, info.last_offset + 1)
        except CorruptRecordError as error:
            self._error = str(error)

    def _is_visible(self, info: BatchInfo) -> bool:
        while self._aborted and self._aborted[-1][1] <= info.last_offset:
            self._aborting.add(self._aborted.pop()[0])
        if info.is_control:
            if info.producer_id in self._aborting and aborts(self._view[info.position : info.position + info.size]):
                self._aborting.discard(info.producer_id)
            return False
        return info.count != 0 and not (info.is_transactional and info.producer_id in self._aborting)

    def _open(self, info: BatchInfo) -> None:
        if info.magic < 2:
            found = legacy.read_set(self._view, info.position, self._limit, self._check_crcs)
            self._left = found.count
            self._records = (Message(self._topic, self._partition, r.offset, r.key, r.value, timestamp=r.timestamp)
                             for r in found.records)
        else:
            self._left = info.count
            self._records = read_records(self._view, info, self._topic, self._partition, self._limit)

    def _fail(self, reason: str) -> None:
        self._error = f"batch up to offset {self._last_offset} of {self._topic}[{self._partition}]: {reason}"


class ReadPosition:
    """Where the application is in a partition.

    Attributes:
        position: next offset to hand out.
        stored: offset for the next commit.
    """

    __slots__ = ("position", "stored")

    def __init__(self) -> None:
        self.position = self.stored = 0


class PollFastPath:
    """`poll` while a batch lasts: the next record is there, and nothing else is to be done (decision 0029).

    It is opened behind a call that went the general way, and closed by whatever else may happen: a callback that is
    due, a seek, a pause, a partition that is taken away, the end of the consumer, another call. This twin leaves every
    call to the general way.

    Args:
        otherwise: called as otherwise(consumer, timeout), in the general way; returns a message or None. For
            `async for` it returns an awaitable of a message.
        lasts_s: the general way comes again after so many seconds; 0 for as long as a batch lasts.
    """

    __slots__ = ("_otherwise",)

    def __init__(self, otherwise: Callable[[Any, Any], Any], lasts_s: float = 0.0) -> None:
        self._otherwise = otherwise

    def open(self, cursor: Cursor, state: ReadPosition, auto_store: bool, group: Any = None) -> None:
        """Let `poll` go on with a cursor.

        Args:
            cursor: has the next records of the application.
            state: of their partition; its `position` moves with each record.
            auto_store: its `stored` moves too.
            group: its `application_at` says, in monotonic seconds, when the application was here; None for none.
        """

    def close(self) -> None:
        """Have the next `poll` go the general way."""

    def poll(self, consumer: Any, timeout: Any = -1) -> Message | None:
        """The next message, or None; see `headrace.Consumer.poll`."""
        message: Message | None = self._otherwise(consumer, timeout)
        return message

    def take(self) -> Message | None:
        """The next message, if it is there and nothing else is to be done; else None."""
        return None

    def each(self, consumer: Any) -> EachMessage:
        """One message after the other, for `for` and `async for`; the consumer lives as long as that is held."""
        return EachMessage(self, consumer)


class EachMessage:
    """One message after the other of a consumer, which it keeps alive.

    Args:
        fast_path: the consumer's.
        consumer: read on in the general way.
    """

    __slots__ = ("_consumer", "_fast_path")

    def __init__(self, fast_path: PollFastPath, consumer: Any) -> None:
        self._fast_path, self._consumer = fast_path, consumer

    def __iter__(self) -> EachMessage:
        return self

    def __next__(self) -> Message:
        while (message := self._fast_path.poll(self._consumer)) is None:
            pass
        return message

    def __aiter__(self) -> EachMessage:
        return self

    def __anext__(self) -> Awaitable[Message]:
        awaitable: Any = self._fast_path.poll(self._consumer)
        return cast(Awaitable[Message], awaitable)
