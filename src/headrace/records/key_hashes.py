"""Where a key goes, without a producer: the hashes of partitioners, as functions (confluent_kafka's names).

It must not know producers. Read next: `records.hashing`.
"""

from __future__ import annotations

import operator

from headrace.records.hashing import PARTITIONERS

__all__ = ["consistent", "fnv1a", "murmur2"]


def murmur2(key: bytes, partition_count: int) -> int:
    """The partition of a key as Java's producers, and the partitioners murmur2 and murmur2_random, choose it.

    Raises:
        TypeError: the key is not bytes.
        ValueError: there is no partition.
    """
    return _place("murmur2", key, partition_count)


def consistent(key: bytes, partition_count: int) -> int:
    """The partition of a key as librdkafka's default partitioner chooses it: CRC-32."""
    return _place("consistent", key, partition_count)


def fnv1a(key: bytes, partition_count: int) -> int:
    """The partition of a key as Sarama's producers, and the partitioners fnv1a and fnv1a_random, choose it."""
    return _place("fnv1a", key, partition_count)


def _place(partitioner: str, key: bytes, partition_count: int) -> int:
    if not isinstance(key, (bytes, bytearray, memoryview)):
        raise TypeError(f"a key is bytes, not {type(key).__name__}: encode it first")
    if operator.index(partition_count) < 1:
        raise ValueError(f"partition_count must be > 0, got {partition_count}")
    hashed, _ = PARTITIONERS[partitioner]
    assert hashed is not None
    return hashed(key) % partition_count
