"""The native module and the plain twin put records in the same places, on the same bytes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import KafkaException
from tests.unit.records.samples import contents, fields, names, timestamps

quick = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(pages=st.lists(st.tuples(
    contents | st.text(max_size=5), contents | st.text(max_size=5), st.integers(-1, 3), timestamps.map(lambda t: t + 1),
    st.lists(st.tuples(st.text(max_size=3), contents), max_size=2), st.booleans()), max_size=40),
    partitioner=st.sampled_from(["random", "consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a",
                                 "fnv1a_random", "uniform_sticky"]),
    weights=st.none() | st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any),
    batch_bytes=st.integers(80, 600), batch_count=st.integers(1, 9), seed=st.integers(1, 2**64 - 1))
def test_on_where_produced_records_go(
    native: Any, plain: Any, pages: list[Any], partitioner: str, weights: Any, batch_bytes: int, batch_count: int,
    seed: int
) -> None:
    stories = []
    for twin in (native, plain):
        pool = twin.BufferPool(30, 4000)
        accumulator = twin.RecordAccumulator("topic", 4, pool, partitioner=partitioner, batch_bytes=batch_bytes,
                                  batch_count=batch_count, message_bytes=120, seed=seed)
        accumulator.weigh(weights)
        story: list[Any] = []
        for value, key, partition, timestamp, headers, reported in pages:
            try:
                story.append(accumulator.append(value, key, partition, timestamp, headers, print if reported else None))
            except Exception as error:
                story.append((type(error), str(error)))
        for opened in [*accumulator.open_batches.ready(None), *accumulator.open_batches.ready(math.inf)]:
            story.append((opened.partition, opened.count, opened.size_bytes, opened.cost_bytes, opened.data_bytes,
                          opened.reports, opened.runs))
            sealed = opened.seal(2)
            story += [bytes(sealed.data), sealed.count, sealed.max_timestamp, sealed.size_bytes]
            story += [(callback, fields(message)[:8]) for callback, message in opened.messages(5, 1, 0, None, 0.0)]
        stories.append((story, pool.messages, pool.bytes))
    assert stories[0] == stories[1]


@quick
@given(rows=st.lists(st.tuples(contents, contents, st.lists(st.tuples(names, contents), max_size=2)), max_size=20))
def test_on_columns_in(native: Any, plain: Any, rows: list[Any]) -> None:
    pa = pytest.importorskip("pyarrow")
    from headrace.buffers import column_input
    from headrace.buffers.arrow_rows import _binary_input, _header_input

    entry = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    keys = pa.array([row[0] for row in rows], pa.large_binary())
    values = pa.array([row[1] for row in rows], pa.binary())
    headers = pa.array([[{"key": n.decode(), "value": v} for n, v in row[2]] or None for row in rows], pa.list_(entry))
    stories = []
    for twin in (native, plain):
        accumulator = twin.RecordAccumulator("topic", 3, twin.BufferPool(15, 2000), seed=9)
        inputs = (_binary_input(keys, "key"), _binary_input(values, "value"), None,
                  b"".join((t + 1).to_bytes(8, "little") for t in range(len(rows))), _header_input(headers))
        half = len(rows) // 2
        count = twin.append_columns(accumulator, 0, half, *inputs, "one")
        if count == half:
            count += twin.append_columns(accumulator, half, len(rows), *inputs, "two")
        stories.append((count, [(b.runs, bytes(b.seal().data)) for b in accumulator.open_batches.ready(math.inf)]))
    assert stories[0] == stories[1]
    assert column_input.append_columns is plain.append_columns


def in_time(tell: Callable[[], list[Any]]) -> list[Any]:
    """A story that took less than 50 ms: within a batch, times that are further apart take a byte more."""
    for _ in range(50):
        began = time.monotonic()
        story = tell()
        if time.monotonic() - began < 0.05:
            return story
    raise AssertionError("fifty attempts took 50 ms each")


@quick
@given(lengths=st.lists(st.none() | st.integers(0, 150), max_size=300), first=st.integers(0, 200),
       partitioner=st.sampled_from(["random", "consistent_random", "uniform_sticky", "fnv1a"]),
       batch_bytes=st.integers(80, 3000), batch_count=st.integers(1, 200), message_bytes=st.integers(100, 150),
       budget=st.tuples(st.integers(1, 300), st.integers(100, 20_000)), seed=st.integers(1, 2**64 - 1))
def test_on_columns_of_values_alone(
    native: Any, plain: Any, lengths: list[int | None], first: int, partitioner: str, batch_bytes: int,
    batch_count: int, message_bytes: int, budget: tuple[int, int], seed: int
) -> None:
    """These are written in runs; rows whose keys are all null are not, and must give the same."""
    pa = pytest.importorskip("pyarrow")
    from headrace.buffers.arrow_rows import _binary_input

    values = _binary_input(pa.array([None if n is None else bytes(n) for n in lengths], pa.binary()), "value")
    no_keys = _binary_input(pa.nulls(len(lengths), pa.binary()), "key")
    first = min(first, len(lengths))

    def story_of(twin: Any, keys: Any) -> list[Any]:
        limits = twin.BufferPool(*budget)
        accumulator = twin.RecordAccumulator("topic", 3, limits, partitioner=partitioner, batch_bytes=batch_bytes,
                                             batch_count=batch_count, message_bytes=message_bytes, seed=seed)
        story: list[Any] = []
        for start, stop, listener in ((0, first, "one"), (first, len(lengths), "one"), (0, first, "two")):
            try:
                story.append(twin.append_columns(accumulator, start, stop, keys, values, None, None, None, listener))
            except KafkaException as refused:
                story.append((str(refused), refused.appended))  # type: ignore[attr-defined]
        story.append((limits.messages, limits.bytes, limits.ahead_bytes, accumulator.sticky))
        for opened in [*accumulator.open_batches.ready(None), *accumulator.open_batches.ready(math.inf)]:
            story.append((opened.partition, opened.count, opened.size_bytes, opened.cost_bytes, opened.data_bytes,
                          opened.runs))
            sealed = opened.seal()
            messages = twin.Cursor(bytes(sealed.data), "t", 0, 0).take(1000)
            story += [(m.key(), m.value(), m.headers(), m.offset()) for m in messages]
            assert max(m.timestamp()[1] for m in messages) == sealed.max_timestamp
        return story

    told = in_time(lambda: story_of(native, None))
    assert told == in_time(lambda: story_of(native, no_keys)) == in_time(lambda: story_of(plain, None))
