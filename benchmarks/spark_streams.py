"""Streaming queries that `benchmarks.spark` times: many small micro-batches, and one that has nothing to do."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.spark_session import FORMATS, MEMORY, SINK_OPTIONS, Session, cpu_of_all_s

__all__ = ["BATCHES", "BATCH_ROWS", "LARGE_ROWS", "all_available", "idle", "records", "small_batches"]

BATCHES, BATCH_ROWS = 40, 10_000
LARGE_ROWS = 500_000
_WARM = 5
"""Micro-batches at the beginning that are not counted: Spark's own code gets quicker, processes start."""


def small_batches(session: Session, name: str, topic: str, target: str | None) -> list[float]:
    """Read a topic of `(BATCHES + _WARM) * BATCH_ROWS` records in small micro-batches.

    Args:
        session: with the connectors.
        name: of the connector.
        topic: what to read.
        target: topic to write to; None throws the rows away.

    Returns:
        Seconds of each micro-batch that counts.
    """
    folder = tempfile.mkdtemp(prefix="benchmark-")
    frame = _stream(session, name, topic).option("startingOffsets", "earliest").option(
        "maxOffsetsPerTrigger", BATCH_ROWS).load()
    if target is None:
        writer = frame.writeStream.format("noop")
    else:
        writer = frame.select("value").writeStream.format(FORMATS[name]).option(
            "kafka.bootstrap.servers", session.bootstrap).option("topic", target).options(**SINK_OPTIONS.get(name, {}))
    try:
        query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        batches = [each for each in query.recentProgress if each.numInputRows]
        if sum(each.numInputRows for each in batches) != records():
            raise RuntimeError(f"{name} read {sum(each.numInputRows for each in batches):,} rows of {records():,}")
    finally:
        shutil.rmtree(folder)
    return [each.durationMs["triggerExecution"] / 1000 for each in batches[_WARM:]]


def all_available(session: Session, name: str, topic: str, expected: int, limit: int, tasks: int) -> float:
    """Read all that a topic has as a stream into nothing.

    Args:
        session: with the connectors.
        name: of the connector; `MEMORY` for as many rows of the same size from the memory of Spark's workers.
        topic: what to read.
        expected: rows that it has.
        limit: rows of a micro-batch; 0 for all in one, as it is from memory.
        tasks: into which rows from memory are divided.

    Returns:
        Seconds, start and end of the query with it.
    """
    folder = tempfile.mkdtemp(prefix="benchmark-")
    stream = (session.spark.readStream.format(FORMATS[name]).options(rows=expected, tasks=tasks, size=session.size)
              if name == MEMORY else _stream(session, name, topic).option("startingOffsets", "earliest"))
    frame = (stream.option("maxOffsetsPerTrigger", limit) if limit else stream).load()
    began = time.perf_counter()
    try:
        query = frame.writeStream.format("noop").option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        took_s = time.perf_counter() - began
        if (found := sum(each.numInputRows for each in query.recentProgress)) != expected:
            raise RuntimeError(f"{name} read {found:,} rows of {expected:,}")
    finally:
        shutil.rmtree(folder)
    return took_s


def records() -> int:
    """Records that `small_batches` wants in its topic."""
    return (BATCHES + _WARM) * BATCH_ROWS


def idle(session: Session, name: str, topic: str, seconds: float, others_s: Callable[[], float | None]) -> float:
    """CPU seconds per second of all of Spark's processes while a query waits at the end of a topic.

    Args:
        session: with the connectors.
        name: of the connector.
        topic: what to wait for.
        seconds: how long.
        others_s: CPU seconds of what this process has started besides: the broker.
    """
    folder = tempfile.mkdtemp(prefix="benchmark-")
    frame = _stream(session, name, topic).option("startingOffsets", "latest").load()
    query = frame.writeStream.format("noop").option("checkpointLocation", folder).start()
    try:
        time.sleep(5)
        before, began = cpu_of_all_s() - (others_s() or 0.0), time.perf_counter()
        time.sleep(seconds)
        return (cpu_of_all_s() - (others_s() or 0.0) - before) / (time.perf_counter() - began)
    finally:
        query.stop()
        shutil.rmtree(folder)


def _stream(session: Session, name: str, topic: str) -> Any:
    return session.spark.readStream.format(FORMATS[name]).option(
        "kafka.bootstrap.servers", session.bootstrap).option("subscribe", topic)
