"""The way of fetches whose replies the thread that waits for records takes by itself (decision 0052). The plain twin.

While few records come at a time, the loop lends a connection that has one fetch in flight, and nothing else, to a
`FetchLane`. The thread that waits in `poll()` then waits for the sockets of all `FetchLanes`, sends the request for
what follows and finds the records, without a turn of the loop. Whatever is not as usual is left to the loop, with all
bytes that have come.

A plain step can be interrupted by Ctrl-C half way, so clients lend nothing where there is no native module.
It must not know what the bytes around the records mean. Read next: `headrace.client.consumer.direct_fetches`.
"""

from __future__ import annotations

import os
import select
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from headrace.buffers.lanes.direct_lane import uvarint
from headrace.buffers.lanes.tls_pipe import Lendable, pipe_of
from headrace.errors import CorruptRecordError
from headrace.records.header import scan

__all__ = ["FetchLane", "FetchLanes", "FetchShapes"]

_MOST_LANES: Final = 15
_MOST_BYTES: Final = 65_536
_MOST_REQUEST: Final = 1_024
_MOST_PARTITIONS: Final = 16
"""Of one reply: most have one or two."""
_LAST_EPOCH: Final = (1 << 31) - 1
_MASK: Final = (1 << 31) - 1
_INT32, _INT64 = struct.Struct(">i"), struct.Struct(">q")
_NUMBERS = struct.Struct(">qqq")  # high watermark, last stable offset, log start offset

Request = tuple[bytes, tuple[int, ...], int]
Reply = tuple[bytes, int, bytes, bool, bytes]
FetchShapes = tuple[tuple[Request, Request], tuple[Reply, bytes]]
"""The requests and replies of a lane.

A request is a frame, the places in it of the session's epoch, the partition, its leader's epoch and the offset, and how
many bytes a partition has in it; the second one asks for nothing new and has the first place only. A reply with records
is the bytes between the correlation id and three offsets, the place of the partition in them, the bytes between the
offsets and the length of the records, whether that length is a varint and one more than it is, and the bytes behind the
records. The reply without records is the bytes behind the correlation id.

Where lengths are varints, the byte before the first partition is their number and one more, in the request and in the
reply, and each partition of a reply ends with the first of the bytes behind the records: others may follow.
"""


class FetchLanes:
    """Where one thread waits for the replies of all its lanes.

    What a reply holds is queued in the step that asks for what follows: the loop may have the next reply and queue it
    before the thread comes back.

    Args:
        queue: a deque. Nothing is received while something is in it.
        make: makes what is queued for a partition, of its state, its epoch, the offset that was asked for, the one
            behind the records, the leader's epoch of the last one, the records, how many, and that epoch if all have
            it, else -1.

    Attributes:
        queue, make: as given.
        lanes: all that there are.
        received_bytes: of records, since the beginning.
        answered_at: when a reply was taken last, in monotonic seconds.
    """

    def __init__(self, queue: deque[Any], make: Callable[..., Any]) -> None:
        self._wake = -1
        self.queue, self.make = queue, make
        self.lanes: list[FetchLane] = []
        self.received_bytes = 0
        self.answered_at = 0.0

    def begin(self, wake: int) -> None:
        """An eventfd that ends a wait is used from now on, until `end`."""
        self._wake = wake

    def end(self) -> None:
        """All lanes were stopped; the eventfd is not used any more."""
        self._wake = -1

    def wake(self) -> None:
        """End the wait of `receive`, or the next one. From any thread, and from signal handlers."""
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    @property
    def has_room(self) -> bool:
        """Whether one lane more can be waited for."""
        return len(self.lanes) < _MOST_LANES

    @property
    def ready(self) -> bool:
        """Whether replies may be taken, or the loop has to be told that one is to be read in the general way."""
        return any(lane.lent for lane in self.lanes) or self._is_to_be_told()

    def _is_to_be_told(self) -> bool:
        return any(lane.failed and not lane.told for lane in self.lanes)

    def receive(self, timeout_s: float) -> bool:
        """Wait for a reply and take it, and all others that are there.

        The wait also ends with `wake`, when a lane has failed or none is lent, and when the time is over. What has come
        is taken in any case.

        Returns:
            Whether the loop has to be told that a lane has failed.
        """
        if not self._is_to_be_told():  # who was to tell it may have been interrupted
            self._receive(timeout_s)
        return self._is_to_be_told()

    def _receive(self, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        while not self.queue and (lent := [(lane, lane.file) for lane in self.lanes if lane.lent]):
            wake, left_s = self._wake, until - time.monotonic()
            poll = select.poll()
            for file in (wake, *(file for _, file in lent)):
                poll.register(file, select.POLLIN)
            found = {ready for ready, _ in poll.poll(left_s * 1000 + 1 if left_s > 0 else 0)}
            if wake in found and self._wake == wake:
                with suppress(BlockingIOError):
                    os.eventfd_read(wake)
            for lane, file in lent:
                if file in found and lane.lent and lane.file == file and not (lane.take(self) and lane._pipe.push()):
                    lane.lent, lane.failed = False, True
            if wake in found or self._is_to_be_told() or (not found and left_s <= 0):
                return


class FetchLane:
    """One connection whose replies the thread that waits for records takes by itself.

    Attributes:
        lent: replies may be taken.
        failed: something came that is to be read in the general way; the loop has not taken the connection back yet.
        told: the loop was asked to do that.
        file: descriptor of the socket; -1 while it is not lent.
        correlation_id, session_epoch, partition: of the request in flight; the last is -1 unless that names just one.
        exchanges, sent_bytes, reply_bytes: replies taken since `start`, and bytes of requests and replies.
        written_at: when the request in flight was written, in monotonic seconds.
    """

    def __init__(self) -> None:
        self.file, self._pipe = -1, pipe_of(-1)
        self.lent = self.failed = self.told = False
        self.correlation_id = self.session_epoch = self.partition = 0
        self.exchanges = self.sent_bytes = self.reply_bytes = 0
        self.written_at = 0.0
        self._data = bytearray()
        self._rest: bytes | None = None
        self._stops = 0

    def start(
        self, lent: Lendable, shapes: FetchShapes, session: tuple[str, Mapping[tuple[str, int], Any], object],
        in_flight: tuple[int, int, int, float],
    ) -> None:
        """Let replies be taken.

        Args:
            lent: the connection, which nobody else reads or writes from now on.
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
        self._pipe = pipe_of(lent)
        self._pipe.begin_sending()
        self._pipe.begin_receiving()
        self.file = self._pipe.file
        self.failed = self.told = False
        self.lent = True

    def stop(self) -> tuple[bytes, bytes | None]:
        """Let no more be taken. A thread that waits is to be woken.

        Returns:
            The bytes that have come and were not taken, and those that the kernel did not take, as they go over the
            wire, None for none.
        """
        self._stops += 1
        opened, unsent = self._pipe.end_receiving(), self._pipe.end_sending()
        data, rest = bytes(self._data) + opened, unsent or self._rest
        self.lent = self.failed = self.told = False
        self.file = -1
        self._data.clear()
        self._rest = None
        return data, rest

    def take(self, to: FetchLanes) -> bool:
        """Take what has come; False if it is to be read in the general way."""
        stops = self._stops
        self._pipe.pull()
        received = self._pipe.take(_MOST_BYTES - len(self._data)) if self._stops == stops else None
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
        return len(self._data) < whole or self._reply(bytes(self._data[_INT32.size:]), to)

    def _reply(self, reply: bytes, to: FetchLanes) -> bool:
        if _INT32.unpack_from(reply)[0] != self.correlation_id:
            return False
        if reply[_INT32.size:] == self._shapes[1][1]:
            if not self._send(self._shapes[0][1], [], to):
                return False
            self._data.clear()
            return True
        return self._records(reply[_INT32.size:], to)

    def _records(self, reply: bytes, to: FetchLanes) -> bool:
        found = self._partitions(reply)
        if not found:
            return False
        stops, fetched = self._stops, list[Any]()
        taken: list[tuple[Any, tuple[int, ...], int, int, int, int, bytes]] = []
        for partition, numbers, records in found:
            known = self._known.get((self._topic, partition))
            if known is None or any(known is each[0] for each in taken):
                return False
            offset = known.fetch_offset
            try:
                batches = scan(records, self._topic, partition)
            except CorruptRecordError:
                return False
            if (not batches or sum(batch.size for batch in batches) != len(records)
                    or any(batch.magic < 2 for batch in batches)):
                return False
            epoch, next_offset = batches[-1].leader_epoch, batches[-1].last_offset + 1
            if next_offset <= offset:
                return False
            count = sum(batch.count for batch in batches)
            fetched.append(to.make(known.state, known.epoch, offset, next_offset, epoch, records, count,
                                   epoch if batches[0].leader_epoch == epoch else -1))
            taken.append((known, numbers, offset, next_offset, epoch, count, records))
        # Others had a turn meanwhile. What follows is one step.
        if self._stops != stops:
            return True
        for known, _, offset, *_ in taken:
            state = known.state
            if (state.epoch != known.epoch or not offset == known.fetch_offset == state.fetch_offset
                    or state.phase is not self._phase or state.paused or state.stop_offset is not None):
                return False
        if not self._send(self._shapes[0][0], [
                (partition, known.leader_epoch, next_offset)
                for (partition, _, _), (known, _, _, next_offset, *_) in zip(found, taken, strict=True)], to):
            return False
        to.queue.extend(fetched)
        for known, numbers, _, next_offset, epoch, count, records in taken:
            state = known.state
            known.fetch_offset = state.fetch_offset = next_offset
            state.fetch_epoch = epoch
            state.attempts = 0
            state.high_watermark, state.last_stable, state.log_start = numbers
            state.received_bytes += len(records)
            state.received_records += count
            to.received_bytes += len(records)
        self._data.clear()
        return True

    def _partitions(self, reply: bytes) -> list[tuple[int, tuple[int, ...], bytes]]:
        """Partitions of a reply that is as expected, with their three offsets and their records; none of another."""
        before, place, between, flexible, tail = self._shapes[1][0]
        ends = int(flexible)  # bytes behind the records of each partition
        count, at, end = 1, place, len(reply) - len(tail) + ends
        if flexible and reply[:place - 1] == before[:place - 1]:
            count = reply[place - 1] - 1 if len(reply) >= place else 0
        elif reply[:place] != before[:place]:
            return []
        if not 1 <= count <= _MOST_PARTITIONS or reply[end:] != tail[ends:]:
            return []
        head = before[place + _INT32.size:]
        fixed = _INT32.size + len(head) + _NUMBERS.size + len(between)
        found = []
        for _ in range(count):
            numbers = at + _INT32.size + len(head)
            start = numbers + _NUMBERS.size + len(between)
            if at + fixed + _INT32.size > end:  # a length has no more bytes than that, and records follow
                return []
            length = _canonical_uvarint(reply[start:start + 3]) - 1 if flexible else _INT32.unpack_from(reply, start)[0]
            begin = start + (len(uvarint(length + 1)) if flexible else _INT32.size)
            if (length <= 0 or begin + length + ends > end or reply[at + _INT32.size:numbers] != head
                    or reply[numbers + _NUMBERS.size:start] != between
                    or reply[begin + length:begin + length + ends] != tail[:ends]):
                return []
            found.append((_INT32.unpack_from(reply, at)[0], _NUMBERS.unpack_from(reply, numbers),
                          reply[begin:begin + length]))
            at = begin + length + ends
        return found if at == end else []

    def _send(self, shape: Request, asked: list[tuple[int, int, int]], to: FetchLanes) -> bool:
        """Ask for what comes next; False, with nothing changed, if that has to go the general way.

        Args:
            shape: of the request.
            asked: partitions that it names, their leaders' epochs, and offsets.
            to: is told the time.
        """
        request, (epoch_at, *places), size = shape
        correlation_id = self.correlation_id + 1 & _MASK
        epoch = 1 if self.session_epoch == _LAST_EPOCH else self.session_epoch + 1
        frame = bytearray(request)
        if len(asked) > 1:
            at = places[0]
            frame[at:at + size] = len(asked) * frame[at:at + size]
            frame[at - 1] = len(asked) + 1
            _INT32.pack_into(frame, 0, len(frame) - _INT32.size)
        if len(frame) > _MOST_REQUEST:
            return False
        _INT32.pack_into(frame, 8, correlation_id)
        _INT32.pack_into(frame, epoch_at, epoch)
        for index, numbers in enumerate(asked):
            for packer, place, number in zip((_INT32, _INT32, _INT64), places, numbers, strict=True):
                packer.pack_into(frame, place + index * size, number)
        sent = self._pipe.put(bytes(frame))
        if not sent:
            return False
        if sent < len(frame):
            self._rest = bytes(frame[sent:])
            self.lent, self.failed = False, True
        to.answered_at = self.written_at = time.monotonic()
        self.correlation_id, self.session_epoch = correlation_id, epoch
        self.partition = asked[0][0] if len(asked) == 1 else -1
        self.exchanges += 1
        self.sent_bytes += len(frame)
        self.reply_bytes += len(self._data)
        return True


def _canonical_uvarint(data: bytes) -> int:
    """The varint at the beginning of three bytes; 0 if it is longer, or longer than it has to be."""
    value = 0
    for index, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value if byte or not index else 0
    return 0
