"""What both twins refuse, and in which words: the native one is spared the plain one for it.

It must not know batches. Read next: `headrace.buffers.record_accumulator`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

from headrace.errors import KafkaError, KafkaException

__all__ = ["count_parts", "milliseconds", "no_partition", "sums_of", "too_large"]

_INT32 = 1 << 31
_MOST_WEIGHT = 1 << 31


def sums_of(weights: Sequence[int], partition_count: int) -> list[int]:
    """The sum of the weights up to each partition.

    Raises:
        ValueError: see `RecordAccumulator.weigh`.
    """
    sums = list(itertools.accumulate(weights))
    if len(sums) > partition_count or min(weights, default=-1) < 0 or not 0 < sums[-1] <= _MOST_WEIGHT:
        raise ValueError(f"weights of {len(sums)} partitions of {partition_count} must not be negative, and their sum "
                         f"be 1 to {_MOST_WEIGHT}")
    return sums


def too_large(topic: str, size: int, limit: int) -> KafkaException:
    """The error of a record that no broker would take."""
    return KafkaException(KafkaError(
        KafkaError.MSG_SIZE_TOO_LARGE,
        f"a record of {size} bytes for {topic} is larger than message.max.bytes ({limit})"))


def no_partition(topic: str, partition: int, count: int | None) -> Exception:
    """The error of a partition that the topic does not have; `count` is how many it has, None while it is not known."""
    if not -_INT32 <= partition < _INT32:
        return OverflowError(f"partition {partition} of {topic} is out of range: no topic has so many")
    known = "" if count is None else f": it has {count}"
    remedy = "; give -1 to let the partitioner choose" if partition < -1 else ""
    return KafkaException(KafkaError(
        KafkaError._UNKNOWN_PARTITION, f"{topic} has no partition {partition}{known}{remedy}"))


def milliseconds(timestamp: Any) -> int:
    """A record's timestamp as users give it.

    Raises:
        TypeError: it is no integer: `time.time()`, cut off, would be a day of January 1970.
    """
    try:
        return operator.index(timestamp)
    except TypeError:
        raise TypeError("timestamp must be int, in milliseconds since the epoch, not "
                        f"{type(timestamp).__name__}") from None


def count_parts(parts: Sequence[int], count: int) -> int:
    """How many batches `ClosedBatch.split` is to make.

    Raises:
        ValueError: see there.
    """
    numbers = set(parts)
    if len(parts) != count or numbers != set(range(len(numbers))):
        raise ValueError(f"{len(parts)} numbers of parts for {count} records; each part from 0 on needs a record")
    return len(numbers)
