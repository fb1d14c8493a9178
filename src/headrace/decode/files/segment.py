"""A log segment as a stream: its batches one by one, with the byte at which each begins. Never the whole file.

After damage the next batch is looked for whose checksum is right. Zeros at the end are what a broker set aside
(`log.preallocate`) and no damage. Read next: `record_nodes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from headrace.decode.messages.record_nodes import BatchHead, read_head
from headrace.errors import CorruptRecordError

__all__ = ["LogBatch", "LogTrouble", "begins_batch", "read_log"]

_CHUNK: Final = 1 << 20
_MAX_BATCH: Final = 128 << 20
_HEAD: Final = 17
_SMALLEST: Final = {0: 26, 1: 34, 2: 61}
_ATTRIBUTES: Final = 0x7F
Read = Callable[[int], bytes]


class LogBatch(NamedTuple):
    """A batch, the byte of the file at which it begins, and its header."""

    position: int
    data: memoryview
    head: BatchHead


class LogTrouble(NamedTuple):
    """Bytes that are no batch."""

    text: str
    position: int
    is_damage: bool


def begins_batch(head: bytes) -> bool:
    """True when bytes begin as a batch or a message of an old format does."""
    if len(head) < _HEAD:
        return False
    smallest = _SMALLEST.get(head[16])
    size = _size(head)
    return smallest is not None and smallest <= size <= _MAX_BATCH and head[0] < 0x80 and (
        head[16] == 2 or not head[17:18] or head[17] < 16)


def _size(head: bytes | bytearray) -> int:
    return int.from_bytes(head[8:12], "big", signed=True) + 12


class _Window:
    """The bytes of the file from a position on, as many as were asked for."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._at_end = False
        self.buffer = bytearray()
        self.position = 0

    def fill(self, count: int) -> bool:
        """Have at least `count` bytes; False when the file ends before."""
        while len(self.buffer) < count and not self._at_end:
            chunk = self._read(max(_CHUNK, count - len(self.buffer)) if count < _MAX_BATCH else _CHUNK)
            self._at_end = not chunk
            self.buffer += chunk
        return len(self.buffer) >= count

    def drop(self, count: int) -> None:
        """Go on behind `count` bytes."""
        del self.buffer[:count]
        self.position += count


def read_log(read: Read) -> Iterator[LogBatch | LogTrouble]:
    """Read a log segment to its end.

    Args:
        read: called with a size, gives at most as many of the next bytes, and none at the end.
    """
    window = _Window(read)
    last_offset = -1
    while window.fill(_HEAD) or window.buffer:
        head = bytes(window.buffer[:_HEAD])
        if len(head) < _HEAD or not any(head):
            yield from _zeros_or_rest(window)
        elif not begins_batch(bytes(window.buffer[:_HEAD + 1])):
            yield LogTrouble("no batch begins here", window.position, True)
            yield from _look_further(window)
        else:
            found = _next(window)
            if isinstance(found, LogTrouble):
                yield found
                yield from _look_further(window)
                continue
            if found.head.info.base_offset <= last_offset:
                yield LogTrouble(f"offset {found.head.info.base_offset} follows on {last_offset}: offsets must grow",
                                 found.position, True)
            last_offset = max(last_offset, found.head.info.last_offset)
            is_sound, size = found.head.is_sound, len(found.data)
            yield found
            if is_sound or _is_followed(window, size):
                window.drop(size)
            else:
                yield from _look_further(window)


def _next(window: _Window) -> LogBatch | LogTrouble:
    size = _size(window.buffer)
    if not window.fill(size):
        return LogTrouble(f"the file ends within a batch: {len(window.buffer)} of {size} bytes are there",
                          window.position, True)
    data = memoryview(bytes(memoryview(window.buffer)[:size]))
    try:
        return LogBatch(window.position, data, read_head(data))
    except CorruptRecordError as error:
        return LogTrouble(str(error), window.position, True)


def _is_followed(window: _Window, size: int) -> bool:
    """Whether a batch with a wrong checksum has at least the right length."""
    window.fill(size + _HEAD + 1)
    rest = bytes(window.buffer[size:size + _HEAD + 1])
    return not any(rest) or begins_batch(rest)


def _zeros_or_rest(window: _Window) -> Iterator[LogTrouble]:
    start, zeros = window.position, 0
    while window.buffer:
        if any(window.buffer):
            break
        zeros += len(window.buffer)
        window.drop(len(window.buffer))
        window.fill(1)
    if not window.buffer:
        yield LogTrouble(f"{zeros} zeros to the end: room that the broker set aside", start, False)
        return
    yield LogTrouble("no batch begins here" if window.fill(_HEAD) else
                     f"the file ends within a batch's header: {len(window.buffer)} bytes are there", start, True)
    yield from _look_further(window)


def _look_further(window: _Window) -> Iterator[LogTrouble]:
    """Drop bytes up to the next batch of format 2 with a right checksum, or to the end."""
    start = window.position
    window.drop(1)
    while True:
        window.fill(_CHUNK)
        place = _candidate(window)
        if place is not None:
            window.drop(place)
            break
        if not window.fill(_CHUNK + 1) or len(window.buffer) <= _SMALLEST[2]:
            window.drop(len(window.buffer))
            break
        window.drop(len(window.buffer) - _SMALLEST[2])
    yield LogTrouble(f"{window.position - start} bytes were passed over", start, False)


def _candidate(window: _Window) -> int | None:
    at = window.buffer.find(b"\x02", 16)
    while at >= 0:
        place = at - 16
        head = bytes(window.buffer[place:place + _SMALLEST[2]])
        if len(head) == _SMALLEST[2] and begins_batch(head) and _may_be_batch(head):
            size = _size(head)
            if window.fill(place + size) and _is_sound(window.buffer, place, size):
                return place
        at = window.buffer.find(b"\x02", at + 1)
    return None


def _may_be_batch(head: bytes) -> bool:
    attributes = int.from_bytes(head[21:23], "big")
    delta, count = int.from_bytes(head[23:27], "big"), int.from_bytes(head[57:61], "big")
    return attributes <= _ATTRIBUTES and attributes & 7 <= 4 and count <= delta + 1 and head[0] == 0


def _is_sound(buffer: bytearray, place: int, size: int) -> bool:
    try:
        return read_head(memoryview(bytes(memoryview(buffer)[place:place + size]))).is_sound
    except CorruptRecordError:
        return False
