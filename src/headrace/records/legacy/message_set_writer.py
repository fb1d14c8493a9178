"""Message sets of the formats 0 and 1: records into bytes, for brokers and clients that know nothing newer.

The layout, and what is peculiar to a wrapper, is described in `headrace.records.legacy.message_set`; that reads.
Source: KIP-31, KIP-32, KAFKA-3160, Java's `MemoryRecordsBuilder` and `LegacyRecord`.
Read next: `headrace.records.legacy.conversion`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from headrace.errors import KafkaError, KafkaException
from headrace.records.compression import LZ4, ZSTD, compress
from headrace.records.legacy.message_set import LOG_APPEND_TIME, NO_TIMESTAMP, resum_lz4

__all__ = ["refuse_zstd", "write_message_set"]

_HEAD = struct.Struct(">qiI")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)


def write_message_set(
    magic: int,
    records: Iterable[tuple[int, int, bytes | None, bytes | None]],
    codec: int = 0,
    *,
    base_offset: int | None = None,
    log_append_time_ms: int | None = None,
    level: int = -1,
) -> bytearray:
    """Records as messages, or as one wrapping message when they are compressed.

    Args:
        magic: format, 0 or 1.
        records: (offset, timestamp in milliseconds or -1, key, value); offsets increase. Format 0 has no timestamps.
        codec: `NONE`, `GZIP`, `SNAPPY` or `LZ4`.
        base_offset: what the inner offsets of a compressed set of format 1 are relative to; the first record's
            offset with None.
        log_append_time_ms: the broker's timestamp for all of them, in format 1.
        level: compression level, on the codec's own scale.

    Returns:
        The bytes; none without records.

    Raises:
        ValueError: no such format, or offsets do not increase.
        KafkaException: UNSUPPORTED_COMPRESSION_TYPE: zstd.
    """
    if magic not in (0, 1):
        raise ValueError(f"message sets have format 0 or 1, not {magic}")
    refuse_zstd(codec, magic)
    out = bytearray()
    attributes = LOG_APPEND_TIME if magic and log_append_time_ms is not None else 0
    start = base_offset if magic and codec else 0
    last, latest = -1, NO_TIMESTAMP
    for offset, timestamp, key, value in records:
        if offset <= last:
            raise ValueError(f"offset {offset} does not follow {last}")
        if start is None:
            start = offset
        if log_append_time_ms is not None:
            timestamp = log_append_time_ms
        _write(out, magic, offset - start, attributes, timestamp, key, value)
        last, latest = offset, max(latest, timestamp)
    if not codec or not out:
        return out
    packed = compress(codec, out, level)
    if codec == LZ4 and magic == 0:
        packed = resum_lz4(packed, with_magic=True)
    wrapper = bytearray()
    _write(wrapper, magic, last, attributes | codec, latest, None, packed)
    return wrapper


def refuse_zstd(codec: int, magic: int) -> None:
    """Raise UNSUPPORTED_COMPRESSION_TYPE for the codec that message sets cannot have (KIP-110)."""
    if codec == ZSTD:
        raise KafkaException(KafkaError(
            KafkaError.UNSUPPORTED_COMPRESSION_TYPE, f"zstd is not allowed in message format {magic}; formats 0 and 1 "
            "know gzip, snappy and lz4: choose one of them with compression.type"))


def _write(out: bytearray, magic: int, offset: int, attributes: int, timestamp: int, key: bytes | None,
           value: bytes | None) -> None:
    begin = len(out)
    out += bytes(16)
    out += struct.pack(">bbq", 1, attributes, timestamp) if magic else bytes((0, attributes))
    for field in (key, value):
        if field is None:
            out += _NULL
        else:
            out += _LENGTH.pack(len(field))
            out += field
    with memoryview(out) as view:
        _HEAD.pack_into(out, begin, offset, len(out) - begin - 12, zlib.crc32(view[begin + 16 :]))
