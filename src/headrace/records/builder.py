"""Writing record batches, version 2, in plain Python. The layout is described in `headrace.records.batch`.

It must not know partitions or callbacks. Read next: `headrace.buffers.record_accumulator`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from headrace.errors import CorruptRecordError
from headrace.records.batch import read_records
from headrace.records.compression import compress
from headrace.records.hashing import crc32c
from headrace.records.header import HEADER, HEADER_BYTES, LOG_APPEND_TIME, SUMMED_FROM, TRANSACTIONAL, BatchInfo
from headrace.records.message import Message
from headrace.records.record import encode_record, wrapped

__all__ = ["Batch", "BatchBuilder", "set_base_offset", "set_log_append_time"]


class BatchBuilder:
    """Collects the records of one batch.

    Args:
        max_bytes: size of the batch before compression; the first record may pass it.
        max_count: most records.
    """

    def __init__(self, max_bytes: int, max_count: int) -> None:
        self._max_bytes = max_bytes
        self._max_count = max_count
        self._records = bytearray()
        self._base_timestamp = 0
        self._max_timestamp = -1
        self.count = 0

    @property
    def size_bytes(self) -> int:
        """Size of the batch so far, before compression."""
        return HEADER_BYTES + len(self._records)

    def append(self, timestamp_ms: int, key: bytes | None, value: bytes | None,
               headers: Iterable[tuple[bytes, bytes | None]] = ()) -> bool:
        """Add a record behind the others.

        Returns:
            False if it does not fit; nothing was added then.
        """
        base = self._base_timestamp if self.count else timestamp_ms
        record = encode_record(wrapped(timestamp_ms - base), self.count, key, value, headers)
        if self.count and (self.count >= self._max_count or self.size_bytes + len(record) > self._max_bytes):
            return False
        self._base_timestamp = base
        self._max_timestamp = max(self._max_timestamp, timestamp_ms)
        self._records += record
        self.count += 1
        return True

    def seal(self, codec: int = 0, level: int = -1) -> Batch:
        """Compress the records and write the header. The builder takes no more records."""
        self._max_count = 0
        records = compress(codec, self._records, level) if codec else self._records
        return Batch(records, codec, self.count, self._base_timestamp, self._max_timestamp)

    def read_back(self, topic: str, partition: int) -> Iterator[Message]:
        """The records so far as messages with offsets from 0, for their delivery reports."""
        data = memoryview(bytes(HEADER_BYTES) + self._records)
        info = BatchInfo(0, self.count - 1, 2, 0, -1, self._base_timestamp, self._max_timestamp, -1, -1, -1,
                         self.count, 0, len(data))
        return read_records(data, info, topic, partition, 0)


class Batch:
    """A sealed batch: its bytes, and the few fields that a producer writes when it sends it."""

    def __init__(self, records: bytes | bytearray, codec: int, count: int, base_timestamp: int, max_timestamp: int,
                 ) -> None:
        self.count = count
        self.max_timestamp = max_timestamp
        self._codec = codec
        self._data = bytearray(HEADER_BYTES) + records
        HEADER.pack_into(self._data, 0, 0, len(self._data) - 12, -1, 2, 0, codec, count - 1, base_timestamp,
                          max_timestamp, -1, -1, -1, count)
        self._summed = False

    @property
    def size_bytes(self) -> int:
        """Size on the wire."""
        return len(self._data)

    @property
    def data(self) -> bytearray:
        """The batch as it goes on the wire: base offset 0, leader epoch -1. Do not change it."""
        if not self._summed:
            struct.pack_into(">I", self._data, 17, crc32c(memoryview(self._data)[SUMMED_FROM:]))
            self._summed = True
        return self._data

    def stamp(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool = False) -> None:
        """Write the producer's identity and the first record's sequence number (KIP-98). May be called again."""
        struct.pack_into(">h", self._data, 21, self._codec | (TRANSACTIONAL if transactional else 0))
        struct.pack_into(">qhi", self._data, 43, producer_id, epoch, base_sequence)
        self._summed = False


def set_base_offset(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Write the two fields that a broker sets on append; the checksum does not cover them."""
    if len(batch) < HEADER_BYTES:
        raise CorruptRecordError("a batch is shorter than its header")
    struct.pack_into(">q", batch, 0, base_offset)
    struct.pack_into(">i", batch, 12, leader_epoch)


def set_log_append_time(batch: bytearray | memoryview, timestamp_ms: int) -> None:
    """Replace the timestamps of all records by the broker's; writes the checksum anew."""
    view = memoryview(batch)
    if len(view) < HEADER_BYTES:
        raise CorruptRecordError("a batch is shorter than its header")
    attributes, = struct.unpack_from(">h", view, 21)
    struct.pack_into(">h", view, 21, attributes | LOG_APPEND_TIME)
    struct.pack_into(">q", view, 35, timestamp_ms)
    struct.pack_into(">I", view, 17, crc32c(view[SUMMED_FROM:]))
