"""Checksums and hashes: CRC-32C of batches, and the hashes by which partitioners place keys.

Plain Python, the reference for `_batch`; CRC-32C takes an installed accelerator if there is one, because summing
bytes in Python is slow. It must not know what is hashed. Read next: `headrace.records.batch`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["PARTITIONERS", "crc32", "crc32c", "fnv1a", "murmur2"]

Buffer = bytes | bytearray | memoryview


@cache
def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


def crc32c_reference(data: Buffer, value: int = 0) -> int:
    """CRC-32C (Castagnoli), one byte at a time.

    Args:
        data: bytes to sum.
        value: checksum of the bytes in front of them.

    Returns:
        Unsigned 32-bit checksum.
    """
    crc = value ^ 0xFFFFFFFF
    table = _table()
    for byte in memoryview(data).cast("B"):
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@cache
def _implementation() -> Callable[..., int]:
    try:
        from google_crc32c import extend  # type: ignore[import-not-found]
    except ImportError:
        return crc32c_reference

    def accelerated(data: Buffer, value: int = 0) -> int:
        return int(extend(value, bytes(data)))

    return accelerated


def crc32c(data: Buffer, value: int = 0) -> int:
    """As `crc32c_reference`, faster with an accelerator: an installed one is found when the first bytes are summed."""
    return _implementation()(data, value)


def crc32(key: Buffer) -> int:
    """CRC-32 as in gzip: the hash of librdkafka's `consistent` partitioners. Unsigned."""
    return zlib.crc32(key)


def murmur2(key: Buffer) -> int:
    """Java's partitioning hash, as a signed 32-bit number.

    Source: `org.apache.kafka.common.utils.Utils.murmur2`.
    """
    size = len(key)
    h = 0x9747B28C ^ size
    for at in range(0, size & ~3, 4):
        k = int.from_bytes(key[at : at + 4], "little") * 0x5BD1E995 & 0xFFFFFFFF
        k = (k ^ (k >> 24)) * 0x5BD1E995 & 0xFFFFFFFF
        h = (h * 0x5BD1E995 & 0xFFFFFFFF) ^ k
    if tail := key[size & ~3 :]:
        h = (h ^ int.from_bytes(tail, "little")) * 0x5BD1E995 & 0xFFFFFFFF
    h = (h ^ (h >> 13)) * 0x5BD1E995 & 0xFFFFFFFF
    h ^= h >> 15
    return h - 0x1_0000_0000 if h & 0x8000_0000 else h


def fnv1a(key: Buffer) -> int:
    """Sarama's partitioning hash: FNV-1a of 32 bits, made positive by negation. Unsigned."""
    h = 0x811C9DC5
    for byte in bytes(key):
        h = ((h ^ byte) * 0x01000193) & 0xFFFFFFFF
    return 0x1_0000_0000 - h if h & 0x8000_0000 else h


PARTITIONERS: dict[str, tuple[Callable[[Any], int] | None, str]] = {
    "uniform_sticky": (None, "any"),
    "random": (None, "always"),
    "consistent": (crc32, "never"),
    "consistent_random": (crc32, "empty"),
    "murmur2": (lambda key: murmur2(key) & 0x7FFFFFFF, "never"),
    "murmur2_random": (lambda key: murmur2(key) & 0x7FFFFFFF, "null"),
    "fnv1a": (fnv1a, "never"),
    "fnv1a_random": (fnv1a, "null"),
}
"""Partitioner name -> its hash, and which records take turns instead (librdkafka's rules).

any: all of them. always: those without a key; with one, each goes to a partition at random. never: none. empty: those
without a key or with an empty one. null: those without a key.
"""
