"""Batches of format 2 with every field set: control batches, and batches written again with gaps or nothing left.

A producer's batches come from `headrace.records.builder`, which is made for speed; this is for brokers and tools.
Source: KIP-98, KIP-534, Java's `MemoryRecordsBuilder` and `MemoryRecords`. Read next: `headrace.records.control`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from headrace import records
from headrace.records.compression import compress
from headrace.records.control import ABORT, COMMIT, MARKER_KEY, MARKER_VALUE
from headrace.records.header import (
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    SUMMED_FROM,
    TRANSACTIONAL,
)
from headrace.records.record import encode_record, wrapped

__all__ = ["Row", "write_batch", "write_end_marker"]

Row = tuple[int, int, bytes | None, bytes | None, Sequence[tuple[bytes, bytes | None]]]
"""A record: offset, timestamp in milliseconds or -1, key, value, headers."""

_NO_TIMESTAMP = -1
_MAX_DELTA = (1 << 31) - 1


def write_batch(
    rows: Iterable[Row],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    codec: int = 0,
    level: int = -1,
    leader_epoch: int = -1,
    producer_id: int = -1,
    epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    max_timestamp: int = _NO_TIMESTAMP,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """One batch.

    Args:
        rows: the records; offsets increase, with or without gaps.
        base_offset: the batch's; the first record's with None.
        last_offset: the batch's; the last record's with None. A compacted batch keeps the one that it had.
        codec: `NONE` to `ZSTD`.
        level: compression level, on the codec's own scale.
        leader_epoch: epoch of the partition's leader.
        producer_id: of an idempotent producer.
        epoch: of an idempotent producer.
        base_sequence: sequence number of `base_offset`.
        transactional: it belongs to a transaction.
        control: it holds control records.
        max_timestamp: largest timestamp of a batch without records.
        log_append_time_ms: the broker's timestamp for all records.
        delete_horizon_ms: when tombstones and markers in it may be dropped.

    Raises:
        ValueError: offsets do not increase or are too far apart, or a batch without records has no offsets.
    """
    body, count, last, first_time = bytearray(), 0, -1, delete_horizon_ms
    for offset, timestamp, key, value, headers in rows:
        base_offset = offset if base_offset is None else base_offset
        first_time = timestamp if first_time is None else first_time
        if offset <= last or not 0 <= offset - base_offset <= _MAX_DELTA:
            raise ValueError(f"offset {offset} cannot follow {last} in a batch from {base_offset} on")
        body += encode_record(wrapped(timestamp - first_time), offset - base_offset, key, value, headers)
        last, max_timestamp, count = offset, max(max_timestamp, timestamp), count + 1
    last = last if last_offset is None else last_offset
    if base_offset is None or last < base_offset:
        raise ValueError("a batch without records needs base_offset and last_offset")
    attributes = codec if count else 0
    for flag, bit in ((log_append_time_ms is not None, LOG_APPEND_TIME), (transactional, TRANSACTIONAL),
                      (control, CONTROL), (delete_horizon_ms is not None, DELETE_HORIZON)):
        attributes |= bit if flag else 0
    packed = compress(codec, body, level) if codec and count else body
    batch = bytearray(HEADER_BYTES) + packed
    HEADER.pack_into(
        batch, 0, base_offset, len(batch) - 12, leader_epoch, 2, 0, attributes, last - base_offset,
        _NO_TIMESTAMP if first_time is None else first_time,
        max_timestamp if log_append_time_ms is None else log_append_time_ms, producer_id, epoch, base_sequence, count)
    struct.pack_into(">I", batch, 17, records.crc32c(memoryview(batch)[SUMMED_FROM:]))
    return batch


def write_end_marker(
    commit: bool,
    producer_id: int,
    epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    *,
    offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """The control batch that ends a transaction in one partition.

    Args:
        commit: False when it is aborted.
        producer_id: of the transaction's producer.
        epoch: of the transaction's producer.
        coordinator_epoch: epoch of the transaction coordinator.
        timestamp_ms: the broker's time.
        offset: where it is appended.
        leader_epoch: epoch of the partition's leader.
    """
    key = MARKER_KEY.pack(0, COMMIT if commit else ABORT)
    return write_batch([(offset, timestamp_ms, key, MARKER_VALUE.pack(0, coordinator_epoch), [])],
                       producer_id=producer_id, epoch=epoch, leader_epoch=leader_epoch, transactional=True,
                       control=True)
