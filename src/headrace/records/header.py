"""Headers of record batches, read before any record. The layout is described in `records.batch`.

Formats 0 and 1 have no batches; each of their messages is one here. Read next: `headrace.records.batch`.
Source: KIP-98, KIP-534, Java's `DefaultRecordBatch` and `ByteBufferLogInputStream`.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from headrace.errors import CorruptRecordError
from headrace.records.hashing import crc32c

__all__ = ["HEADER_BYTES", "BatchInfo", "scan", "verify"]

HEADER_BYTES = 61
HEADER = struct.Struct(">qiibIhiqqqhii")
_START = struct.Struct(">q8xb")  # base offset and format, which all formats have in the same places
SUMMED_FROM = 21
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40
_SEQUENCES = 1 << 31
_LAST = (1 << 63) - 1  # no record has this offset: the one behind it must have 64 bits too


class BatchInfo(NamedTuple):
    """The fields of a batch's header, and where in the scanned bytes the batch lies."""

    base_offset: int
    last_offset: int
    magic: int
    attributes: int
    leader_epoch: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not needed here
    position: int
    size: int

    @property
    def codec(self) -> int:
        """The compression codec's number."""
        return self.attributes & 7

    @property
    def is_log_append_time(self) -> bool:
        """True when the broker set the timestamps."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """True when the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """True when the batch holds a transaction's marker, not the application's records."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers in it may be dropped; it stands in `base_timestamp` then. None when not set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, -1 without a sequence; sequences start again from 0 after 2^31 - 1."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) % _SEQUENCES


def read_info(view: memoryview, position: int, topic: str = "", partition: int = -1) -> BatchInfo | None:
    """The batch at a position; None at the end, also where only the head of a batch is left.

    Raises:
        CorruptRecordError: the header cannot be true.
    """
    if len(view) - position < 17:
        return None
    if view[position + 16] < 2:
        from headrace.records.legacy import message_set  # few brokers still have these formats

        return message_set.read_info(BatchInfo._make, view, position, topic, partition)
    offset, magic = _START.unpack_from(view, position)
    where = f"batch at offset {offset} of {topic}[{partition}]"
    if magic != 2:
        raise CorruptRecordError(f"{where}: unknown format {magic}")
    if len(view) - position < HEADER_BYTES:
        return None
    (base, length, leader_epoch, _, _, attributes, delta, base_timestamp, max_timestamp, producer_id, epoch,
     sequence, count) = HEADER.unpack_from(view, position)
    size = length + 12
    if size < HEADER_BYTES or base < 0 or delta < 0 or base + delta >= _LAST or not 0 <= count <= delta + 1:
        raise CorruptRecordError(f"{where}: bad header (length {length}, last offset delta {delta}, count {count})")
    if position + size > len(view):
        return None
    return BatchInfo(base, base + delta, magic, attributes, leader_epoch, base_timestamp, max_timestamp, producer_id,
                     epoch, sequence, count, position, size)


def scan(data: Any, topic: str = "", partition: int = -1) -> list[BatchInfo]:
    """The headers of all whole batches; raises `CorruptRecordError` where one cannot be true."""
    view, found, position = memoryview(data), [], 0
    while (info := read_info(view, position, topic, partition)) is not None:
        found.append(info)
        position += info.size
    return found


def scan_to_damage(data: Any) -> list[BatchInfo]:
    """The headers of the whole batches in front of one that cannot be true; of all when there is none."""
    view, found, position = memoryview(data), [], 0
    try:
        while (info := read_info(view, position)) is not None:
            found.append(info)
            position += info.size
    except CorruptRecordError:
        pass
    return found


def verify(data: Any, topic: str = "", partition: int = -1) -> None:
    """Compare the checksum of every whole batch with its bytes; raises `CorruptRecordError`."""
    view = memoryview(data)
    for info in scan(data, topic, partition):
        check_sum(view, info, topic, partition)


def check_sum(view: memoryview, info: BatchInfo, topic: str = "", partition: int = -1) -> None:
    """Compare the checksum of one batch with its bytes; raises `CorruptRecordError`."""
    if info.magic < 2:
        from headrace.records.legacy import message_set

        message_set.check_sum(view, info.position, info.size, topic, partition)
        return
    expected = int.from_bytes(view[info.position + 17 : info.position + 21], "big")
    found = crc32c(view[info.position + SUMMED_FROM : info.position + info.size])
    if found != expected:
        raise CorruptRecordError(f"batch at offset {info.base_offset} of {topic}[{partition}]: checksum is "
                                 f"{found:#010x}, header says {expected:#010x}")
