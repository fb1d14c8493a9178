"""Between message formats: an old client's message sets become one batch of format 2, and batches become message sets.

A broker upgrades what it appends and downgrades what it gives to old consumers; a producer downgrades for brokers that
know nothing newer. It must not know partitions' state or requests.
Source: KIP-31, KIP-32, KIP-98, KIP-110, Java's `LogValidator` and `RecordsUtil.downConvert`.
Read next: `headrace.records.legacy.message_set_writer`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from headrace import records
from headrace.errors import CorruptRecordError
from headrace.records.compression import MAX_DECOMPRESSED_BYTES
from headrace.records.header import BatchInfo
from headrace.records.legacy import message_set as legacy
from headrace.records.legacy.message_set_writer import refuse_zstd, write_message_set

__all__ = ["downgrade", "upgrade"]

_AT_ONCE = 1000  # records that exist as objects at a time


def upgrade(
    data: Any, *, now_ms: int, log_append_time: bool = False, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Message sets of format 0 or 1 as one batch of format 2: base offset 0, no producer, the same codec.

    Records get the offsets 0, 1, ... in their order, whatever offsets the client gave. Those of format 0 get no
    timestamp (-1). Timestamps are not judged.

    Args:
        data: messages and wrappers of one format.
        now_ms: the broker's time in milliseconds, used with `log_append_time` only.
        log_append_time: the topic's timestamps are the broker's.
        max_decompressed_bytes: most bytes that they may decompress to, all together.

    Raises:
        CorruptRecordError: the bytes are damaged (checksums, lengths, a wrapper in a wrapper, formats or codecs that
            differ), not whole, or no messages at all.
    """
    view = memoryview(data)
    builder = records.BatchBuilder(sys.maxsize, sys.maxsize)
    codec, left = 0, max_decompressed_bytes
    for info in _whole(view):
        legacy.check_sum(view, info.position, info.size, "", -1)
        found = legacy.read_set(view, info.position, left, check_crcs=True, stored=False)
        if info.codec:
            if codec not in (0, info.codec):
                raise CorruptRecordError("message sets of different codecs cannot become one batch")
            codec = info.codec
            left -= found.size
        for _, key, value, (kind, timestamp) in found.records:
            builder.append(timestamp if kind else legacy.NO_TIMESTAMP, key, value)
    batch = bytearray(builder.seal(codec).data)
    if log_append_time:
        records.set_log_append_time(batch, now_ms)
    return bytes(batch)


def _whole(view: memoryview) -> Iterator[BatchInfo]:
    """The messages of a client's set, one by one: they have one format, and nothing else is there."""
    position, magic = 0, -1
    while position < len(view) or magic == -1:
        if len(view) - position > 16 and view[position + 16] == 2:
            raise CorruptRecordError("a batch of format 2 stands where message sets of format 0 or 1 are expected")
        info = legacy.read_info(BatchInfo._make, view, position, "", -1, stored=False)
        if info is None:
            raise CorruptRecordError(f"a message set ends too early: {len(view) - position} bytes at {position}")
        if magic not in (-1, info.magic):
            raise CorruptRecordError(f"messages of the formats {magic} and {info.magic} are mixed")
        magic = info.magic
        yield info
        position += info.size


def downgrade(
    data: Any, magic: int, *, first_offset: int = 0, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Batches as message sets of an older format, with the offsets that they have and the same codec.

    What is as old already stays as it is. Headers, transactions' markers and producers' identities are left out. A
    part of a batch at the end is left out too.

    Args:
        data: whole batches of whatever formats.
        magic: format wanted, 0 or 1.
        first_offset: records before it are left out of uncompressed batches that are converted, because each becomes
            a message of its own; compressed sets stay together, as they do in a log.
        max_decompressed_bytes: most bytes that one batch may decompress to.

    Raises:
        ValueError: `magic` is neither 0 nor 1.
        CorruptRecordError: the bytes are damaged.
        KafkaException: UNSUPPORTED_COMPRESSION_TYPE: a batch is compressed with zstd, which old formats have not.
    """
    if magic not in (0, 1):
        raise ValueError(f"batches can be converted to format 0 or 1, not {magic}")
    view, out = memoryview(data), bytearray()
    for info in records.scan(view):
        if info.is_control:
            continue
        refuse_zstd(info.codec, magic)
        batch = view[info.position : info.position + info.size]
        if info.magic <= magic:
            out += batch
            continue
        cursor = records.Cursor(batch, "", -1, 0 if info.codec else first_offset,
                                max_decompressed_bytes=max_decompressed_bytes)
        out += write_message_set(magic, _rows(cursor), info.codec,
                                 log_append_time_ms=info.max_timestamp if info.is_log_append_time else None)
    return bytes(out)


def _rows(cursor: records.Cursor) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    last = -1
    while not cursor.exhausted:
        for message in cursor.take(_AT_ONCE):
            offset = message.offset() or 0
            if offset <= last:
                raise CorruptRecordError(f"a record at offset {offset} follows one at offset {last}")
            yield offset, message.timestamp()[1], message.key(), message.value()
            last = offset
