"""The way of fetches whose replies the thread that waits for records takes by itself (decision 0052). The plain twin.

While records come one by one, the loop lends a connection that has one fetch in flight, and nothing else, to a
`FetchLane`. The thread that waits in `poll()` then waits for the socket, sends the request for what follows and finds
the records, without a turn of the loop. Whatever is not as usual is left to the loop, with all bytes that have come.

A plain step can be interrupted by Ctrl-C half way, so clients lend nothing where there is no native module.
It must not know what the bytes around the records mean. Read next: `headrace.client.consumer.direct_fetches`.
"""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from headrace.buffers.direct_lane import receive_now, uvarint
from headrace.errors import CorruptRecordError
from headrace.records.header import scan

__all__ = ["FetchLane", "FetchShapes"]

_MOST_BYTES: Final = 65_536
_MOST_REQUEST: Final = 1_024
_LAST_EPOCH: Final = (1 << 31) - 1
_MASK: Final = (1 << 31) - 1
_INT32, _INT64 = struct.Struct(">i"), struct.Struct(">q")
_NUMBERS = struct.Struct(">qqq")  # high watermark, last stable offset, log start offset

Request = tuple[bytes, tuple[int, ...]]
Reply = tuple[bytes, int, bytes, bool, bytes]
FetchShapes = tuple[tuple[Request, Request], tuple[Reply, bytes]]
"""The requests and replies of a lane.

A request is a frame, and the places in it of the session's epoch, the partition, its leader's epoch and the offset; the
second one asks for nothing new and has the first place only. A reply with records is the bytes between the correlation
id and three offsets, the place of the partition in them, the bytes between the offsets and the length of the records,
whether that length is a varint and one more than it is, and the bytes behind the records. The reply without records is
the bytes behind the correlation id.
"""


class FetchLane:
    """One connection whose replies the thread that waits for records takes by itself.

    Attributes:
        lent: replies may be taken.
        failed: something came that is to be read in the general way; the loop has not taken the connection back yet.
        correlation_id, session_epoch, partition: of the request in flight; the last is -1 if that names none.
        landed: what the last reply held, until `settle`: the partition's state, its epoch, the offset that was asked
            for, the one behind the records, the leader's epoch of the last one, the records, how many, and the epoch if
            all have it, else -1.
        received_bytes: of records, since the lane was made.
        exchanges, sent_bytes, reply_bytes: replies taken since `start`, and bytes of requests and replies.
        written_at, answered_at: when the request in flight was written, and when a reply was taken last; monotonic
            seconds.
    """

    def __init__(self) -> None:
        self._file = self._wake = -1
        self.lent = self.failed = False
        self.correlation_id = self.session_epoch = self.partition = 0
        self.landed: tuple[Any, int, int, int, int, bytes, int, int] | None = None
        self.received_bytes = self.exchanges = self.sent_bytes = self.reply_bytes = 0
        self.written_at = self.answered_at = 0.0
        self._data = bytearray()
        self._rest: bytes | None = None

    def start(
        self, file: int, wake: int, shapes: FetchShapes, session: tuple[str, Mapping[tuple[str, int], Any], object],
        in_flight: tuple[int, int, int, float],
    ) -> None:
        """Let replies be taken.

        Args:
            file: descriptor of the connection's socket, which nobody else reads or writes from now on.
            wake: an eventfd that ends a wait, the lane's until `end`.
            shapes: what requests and replies are made of.
            session: the topic, the session's partitions, and the phase of those whose records are wanted. Each
                partition has its `state`, `epoch`, `leader_epoch` and `fetch_offset`, which is moved.
            in_flight: correlation id, session's epoch, partition and time of the request in flight.
        """
        self._shapes = shapes
        self._topic, self._known, self._phase = session
        self.correlation_id, self.session_epoch, self.partition, self.written_at = in_flight
        self.exchanges = self.sent_bytes = self.reply_bytes = 0
        self._data.clear()
        self._rest = None
        self._file, self._wake = file, wake
        self.failed = False
        self.lent = True

    def stop(self) -> tuple[bytes, bytes | None]:
        """Let no more be taken.

        Returns:
            The bytes that have come and were not taken, and those of the request in flight that the kernel did not
            take, None for none.
        """
        data, rest = bytes(self._data), self._rest
        self.lent = self.failed = False
        self._file = -1
        self._data.clear()
        self._rest = None
        self.wake()
        return data, rest

    def wake(self) -> None:
        """End the wait of `receive`, or the next one. From any thread, and from signal handlers."""
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def end(self) -> None:
        """`stop` was called; the eventfd is not used any more."""
        self._wake = -1

    def receive(self, timeout_s: float) -> None:
        """Wait for a reply and take it; also until `wake`, until the connection is taken back, or the time is over.

        What has come is taken in any case.
        """
        file, wake, until = self._file, self._wake, time.monotonic() + timeout_s
        while self.lent and self._file == file and self.landed is None:
            left_s = until - time.monotonic()
            poll = select.poll()
            poll.register(file, select.POLLIN)
            poll.register(wake, select.POLLIN)
            found = {ready for ready, _ in poll.poll(left_s * 1000 + 1 if left_s > 0 else 0)}
            if wake in found and self._wake == wake:
                with suppress(BlockingIOError):
                    os.eventfd_read(wake)
            if file in found and self.lent and self._file == file and not self._take():
                self.lent, self.failed = False, True
            if wake in found or (not found and left_s <= 0):
                return

    def settle(self, queue: Any, fetched: object) -> None:
        """Queue what has landed: both are done, or nothing."""
        queue.append(fetched)
        self.landed = None

    def _take(self) -> bool:
        """Bytes have come; False if they are to be read in the general way."""
        received = receive_now(self._file, _MOST_BYTES - len(self._data))
        if received is None:
            return True
        self._data += received
        if not received:
            return False
        if len(self._data) < _INT32.size:
            return True
        (size,) = _INT32.unpack_from(self._data)
        whole = size + _INT32.size
        if size < _INT32.size or whole > _MOST_BYTES or len(self._data) > whole:
            return False
        return len(self._data) < whole or self._reply(bytes(self._data[_INT32.size:]))

    def _reply(self, reply: bytes) -> bool:
        (empty, places), empty_reply = self._shapes[0][1], self._shapes[1][1]
        if _INT32.unpack_from(reply)[0] != self.correlation_id:
            return False
        if reply[_INT32.size:] == empty_reply:
            if not self._send(empty, places, (0,)):
                return False
            self.partition = -1
            self._data.clear()
            return True
        return self._records(reply[_INT32.size:])

    def _records(self, reply: bytes) -> bool:
        before, place, between, flexible, tail = self._shapes[1][0]
        numbers = len(before)
        start = numbers + _NUMBERS.size
        length = len(reply) - start - len(between) - len(tail)
        width = 4 if not flexible else 1 if length < 128 else 2 if length <= 16_384 else 3
        length -= width
        if length <= 0:
            return False
        (partition,) = _INT32.unpack_from(reply, place)
        expected = before[:place] + _INT32.pack(partition) + before[place + _INT32.size:]
        written = uvarint(length + 1) if flexible else _INT32.pack(length)
        begin = start + len(between) + width
        if (reply[:numbers] != expected or reply[start:begin] != between + written
                or reply[begin + length:] != tail):
            return False
        asked = self._known.get((self._topic, partition))
        if asked is None:
            return False
        state, offset, records = asked.state, asked.fetch_offset, reply[begin:begin + length]
        if (state.epoch != asked.epoch or state.fetch_offset != offset or state.phase is not self._phase
                or state.paused or state.stop_offset is not None):
            return False
        try:
            batches = scan(records, self._topic, partition)
        except CorruptRecordError:
            return False
        if not batches or sum(batch.size for batch in batches) != length or any(batch.magic < 2 for batch in batches):
            return False
        last, next_offset, count = batches[-1], batches[-1].last_offset + 1, sum(batch.count for batch in batches)
        request, places = self._shapes[0][0]
        if next_offset <= offset or not self._send(request, places, (0, partition, asked.leader_epoch, next_offset)):
            return False
        epoch = last.leader_epoch
        self.partition = partition
        self.landed = (state, asked.epoch, offset, next_offset, epoch, records, count,
                       epoch if batches[0].leader_epoch == epoch else -1)
        asked.fetch_offset = state.fetch_offset = next_offset
        state.fetch_epoch = epoch
        state.attempts = 0
        state.high_watermark, state.last_stable, state.log_start = _NUMBERS.unpack_from(reply, numbers)
        state.received_bytes += length
        state.received_records += count
        self.received_bytes += length
        self._data.clear()
        return True

    def _send(self, request: bytes, places: tuple[int, ...], numbers: tuple[int, ...]) -> bool:
        """Ask for what comes next; False, with nothing changed, if that has to go the general way."""
        correlation_id = self.correlation_id + 1 & _MASK
        epoch = 1 if self.session_epoch == _LAST_EPOCH else self.session_epoch + 1
        if len(request) > _MOST_REQUEST:
            return False
        frame = bytearray(request)
        _INT32.pack_into(frame, 8, correlation_id)
        for packer, place, number in zip((_INT32, _INT32, _INT32, _INT64), places, (epoch, *numbers[1:]), strict=False):
            packer.pack_into(frame, place, number)
        try:
            sent = os.write(self._file, frame)
        except OSError:
            return False
        if sent < len(frame):
            self._rest = bytes(frame[sent:])
            self.lent, self.failed = False, True
        self.answered_at = self.written_at = time.monotonic()
        self.correlation_id, self.session_epoch = correlation_id, epoch
        self.exchanges += 1
        self.sent_bytes += len(frame)
        self.reply_bytes += len(self._data)
        return True
