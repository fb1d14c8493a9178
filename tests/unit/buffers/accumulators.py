"""Accumulators of either twin."""

from __future__ import annotations

from typing import Any


def make(twin: Any, partitions: int = 4, messages: int = 10**6, size: int = 10**9, linger_s: float = 0.0,
         codec: int = 0, **how: Any) -> tuple[Any, Any]:
    pool = twin.BufferPool(messages, size)
    return twin.RecordAccumulator("topic", partitions, pool, twin.OpenBatches(linger_s, codec), **how), pool


def read(twin: Any, opened: Any) -> list[Any]:
    return [m.value() for m in twin.Cursor(opened.seal().data, "topic", opened.partition, 0).take(10**6)]
