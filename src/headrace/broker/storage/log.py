"""One partition's log: record batches as they came, one after the other, found by offset.

A batch is stored as the bytes that the producer sent (base offset and leader epoch patched in place before), so that
both produce and fetch cost one copy a batch and nothing a record. Three numbers a batch are kept in memory: base
offset, end position, highest timestamp. A log on disk rebuilds them when it is opened, and cuts off what a sudden end
left half written.

The log knows no topics, leaders or clients. Read next: `broker.storage.partition`, which decides what may be appended.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.broker.storage.segments import FileSegment, MemorySegment, Segment
from headrace.errors import CorruptRecordError
from headrace.records import BatchInfo, scan, verify

__all__ = ["Log", "LogSlice"]

_BATCH_LENGTH = struct.Struct(">qi")
"""Base offset, and the count of the bytes that follow it."""
_SEGMENT_BYTES = 128 << 20


class LogSlice(NamedTuple):
    """What was read, and an offset behind all of it and before all that follows."""

    data: bytes | memoryview
    end_offset: int


class _Indexed:
    """A segment and where each of its batches starts."""

    __slots__ = ("base_offset", "base_offsets", "max_timestamps", "modified_ms", "positions", "segment")

    def __init__(self, base_offset: int, segment: Segment, modified_ms: int) -> None:
        self.base_offset = base_offset
        self.segment = segment
        self.base_offsets = array("q")
        self.positions = array("q", [0])
        """Start of each batch, and at the end that of the next."""
        self.max_timestamps = array("q")
        self.modified_ms = modified_ms
        """When something was last written into it."""

    def note(self, base_offset: int, max_timestamp_ms: int, end: int) -> None:
        self.base_offsets.append(base_offset)
        self.max_timestamps.append(max_timestamp_ms)
        self.positions.append(end)

    def batch(self, index: int) -> bytes | memoryview:
        return self.segment.read(self.positions[index], self.positions[index + 1])


class Log:
    """Batches in the order of their offsets, without gaps between what was appended.

    Args:
        directory: where the segments are kept; None keeps them in memory.
        segment_bytes: size at which a file is closed and the next one begun.
    """

    def __init__(self, directory: Path | None = None, *, segment_bytes: int = _SEGMENT_BYTES) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self.size_bytes = 0
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._segments: list[_Indexed] = []
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def append(self, batch: memoryview, last_offset: int, max_timestamp_ms: int, now_ms: int) -> None:
        """Store one batch, whose base offset is the log's end offset.

        Args:
            batch: all bytes of the batch.
            last_offset: offset of its last record.
            max_timestamp_ms: highest timestamp in it, milliseconds.
            now_ms: wall clock, milliseconds.

        Raises:
            OSError: the disk refused; nothing was stored.
        """
        indexed = self._segment_for(len(batch), now_ms)
        indexed.segment.append(batch)
        indexed.note(self.end_offset, max_timestamp_ms, indexed.segment.size)
        indexed.modified_ms = now_ms
        self.end_offset = last_offset + 1
        self.size_bytes += len(batch)

    def read(self, offset: int, max_bytes: int, before: int | None = None) -> LogSlice:
        """Whole batches from the one that holds `offset` on.

        Args:
            offset: from `start_offset` to `end_offset`; at the end there is nothing to read.
            max_bytes: upper bound in bytes, but the first batch always comes whole (KIP-74).
            before: begin of the first batch that is not to be read; None reads to the end.

        Returns:
            The batches' bytes. The first may begin with records before `offset`.
        """
        end = self.end_offset if before is None else min(before, self.end_offset)
        if offset >= end:
            return LogSlice(b"", end)
        indexed = self._segment_at(offset)
        first = max(bisect_right(indexed.base_offsets, offset) - 1, 0)
        start = indexed.positions[first]
        last = max(bisect_right(indexed.positions, start + max_bytes) - 1, first + 1)
        last = min(last, bisect_left(indexed.base_offsets, end))
        after = indexed.base_offsets[last] if last < len(indexed.base_offsets) else end
        return LogSlice(indexed.segment.read(start, indexed.positions[last]), min(after, end))

    def batches_by_time(self, timestamp_ms: int) -> Iterator[bytes | memoryview]:
        """The batches that may hold a record of `timestamp_ms` or later, in the order of offsets."""
        for indexed in self._segments:
            for index, latest in enumerate(indexed.max_timestamps):
                if latest >= timestamp_ms:
                    yield indexed.batch(index)

    def max_timestamp_ms(self) -> int:
        """The highest timestamp in the log, milliseconds; -1 when it is empty."""
        return max((max(indexed.max_timestamps) for indexed in self._segments if indexed.max_timestamps), default=-1)

    def segment_starts(self) -> list[tuple[int, int]]:
        """First offset of each segment and when it was last written to (milliseconds), the oldest first."""
        return [(max(each.base_offset, self.start_offset), each.modified_ms) for each in self._segments]

    def advance_start(self, offset: int) -> None:
        """Drop what lies before `offset`: its records are no longer served, whole segments are removed."""
        self.start_offset = max(self.start_offset, offset)
        while len(self._segments) > 1 and self._segments[1].base_offset <= self.start_offset:
            gone = self._segments.pop(0).segment
            self.size_bytes -= gone.size
            gone.delete()

    def recover(self, start_offset: int) -> Iterator[BatchInfo]:
        """Read a log from disk: check every batch, cut off the first damaged one and what follows it.

        Args:
            start_offset: first offset that is still served.

        Yields:
            The headers of the batches, in order, with their true offsets.
        """
        assert self._directory is not None
        self.start_offset = start_offset
        paths = sorted(self._directory.glob("*.log"))
        for number, path in enumerate(paths):
            indexed = _Indexed(int(path.stem), FileSegment(path, self._segment_bytes),
                               path.stat().st_mtime_ns // 1_000_000)
            self._segments.append(indexed)
            yield from self._recover_segment(indexed)
            self.size_bytes += indexed.positions[-1]
            if indexed.segment.size != indexed.positions[-1]:
                indexed.segment.truncate(indexed.positions[-1])
                for lost in paths[number + 1:]:
                    lost.unlink()
                break
        self.end_offset = max(self.end_offset, start_offset)

    def close(self) -> None:
        """Close the segments' files."""
        for indexed in self._segments:
            indexed.segment.close()

    def delete(self) -> None:
        """Remove everything that was stored."""
        for indexed in self._segments:
            indexed.segment.delete()
        self._segments.clear()
        if self._directory is not None and self._directory.exists():
            self._directory.rmdir()

    def _recover_segment(self, indexed: _Indexed) -> Iterator[BatchInfo]:
        for info in _sound_batches(indexed.segment):
            if info.base_offset < self.end_offset:
                return  # offsets only ever grow: these bytes are not of this log
            indexed.note(info.base_offset, info.max_timestamp, indexed.positions[-1] + info.size)
            self.end_offset = info.last_offset + 1
            yield info

    def _segment_at(self, offset: int) -> _Indexed:
        found = bisect_right(self._segments, offset, key=lambda indexed: indexed.base_offset) - 1
        return self._segments[max(found, 0)]

    def _segment_for(self, count: int, now_ms: int) -> _Indexed:
        current = self._segments[-1] if self._segments else None
        if current is None or not current.segment.has_room(count):
            current = _Indexed(self.end_offset, self._new_segment(count), now_ms)
            self._segments.append(current)
        return current

    def _new_segment(self, needed: int) -> Segment:
        if self._directory is not None:
            return FileSegment(self._directory / f"{self.end_offset:020d}.log", self._segment_bytes)
        previous = self._segments[-1].segment if self._segments else None
        return MemorySegment.after(previous if isinstance(previous, MemorySegment) else None, needed)


def _sound_batches(segment: Segment) -> Iterator[BatchInfo]:
    """The batches from the start of a segment up to the first that is torn or damaged."""
    position = 0
    while position + _BATCH_LENGTH.size <= segment.size:
        _, length = _BATCH_LENGTH.unpack(segment.read(position, position + _BATCH_LENGTH.size))
        end = position + _BATCH_LENGTH.size + length
        if length <= 0 or end > segment.size:
            return
        batch = segment.read(position, end)
        try:
            verify(batch)
            infos = scan(batch)
        except CorruptRecordError:
            return
        if len(infos) != 1:
            return
        yield infos[0]
        position = end
