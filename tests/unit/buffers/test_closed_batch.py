"""What a batch that left its accumulator says of its records, and how it is divided: by both twins."""

from __future__ import annotations

import gc
import math
import time
from operator import length_hint
from typing import Any

import pytest

from headrace.errors import KafkaError
from tests.unit.records.samples import fields

from .accumulators import make, read


@pytest.mark.parametrize("codec", [0, 4])
def test_delivery_reports_tell_what_was_sent_and_where_it_is(twin: Any, codec: int) -> None:
    accumulator, _ = make(twin, 2)
    for number in range(6):
        accumulator.append(f"v{number}", b"k", 1, 100 + number, [("h", b"x")], number if number % 2 else None)
    opened, = accumulator.open_batches.ready(math.inf)
    assert opened.reports == [None, 1, None, 3, None, 5]
    opened.seal(codec)
    left = opened.messages(50, 1, -1, None, time.monotonic() + 1)
    assert length_hint(left) == 3
    reports = list(left)
    assert length_hint(left) == 0
    assert [callback for callback, _ in reports] == [1, 3, 5]
    assert fields(reports[1][1])[:8] == ("topic", 1, 53, b"k", b"v3", [("h", b"x")], (1, 103), None)
    assert 0.9 <= reports[0][1].latency() < 5  # two clocks are read, and a thread may have to wait in between


def test_delivery_reports_of_failed_batches_have_the_error_and_no_offset(twin: Any) -> None:
    accumulator, _ = make(twin, 1)
    accumulator.append(b"x", callback=print)
    error = KafkaError(KafkaError._MSG_TIMED_OUT)
    (_, message), = accumulator.open_batches.ready(math.inf)[0].messages(-1, 0, -1, error, 0.0)
    assert (message.error(), message.offset(), message.latency(), message.value()) == (error, None, 0.0, b"x")


def test_delivery_reports_have_the_brokers_time_when_it_sets_it(twin: Any) -> None:
    accumulator, _ = make(twin, 1)
    accumulator.append(b"x", callback=print)
    (_, message), = accumulator.open_batches.ready(math.inf)[0].messages(0, 2, 12345, None, 0.0)
    assert (message.timestamp(), message.offset()) == ((2, 12345), 0)


def test_batches_without_callbacks_keep_nothing(twin: Any) -> None:
    accumulator, _ = make(twin, 1)
    accumulator.append(b"x")
    opened, = accumulator.open_batches.ready(math.inf)
    assert opened.reports is None
    assert list(opened.messages(0, 1, 0, None, 0.0)) == []


def divided(twin: Any, parts: list[int], codec: int = 0) -> tuple[Any, list[Any]]:
    accumulator, pool = make(twin, 2)
    for number in range(4):
        headers = [("h", b"x"), ("n", None)] if number == 2 else None
        callback = number if number % 2 else None
        accumulator.append(f"v{number}", b"k" * number or None, 1, 100 - 7 * number, headers, callback)
    opened, = accumulator.open_batches.ready(math.inf)
    opened.seal(codec)
    assert opened.cost_bytes == pool.bytes
    return opened, opened.split(parts)


@pytest.mark.parametrize("codec", [0, 4])
def test_a_batch_is_divided_into_batches_that_keep_the_order_and_all_that_a_record_has(twin: Any, codec: int) -> None:
    opened, parts = divided(twin, [0, 1, 0, 1], codec)
    found = [[(m.value(), m.key(), m.headers(), m.timestamp()) for m in
              twin.Cursor(part.seal(codec).data, "topic", 1, 0).take(9)] for part in parts]
    assert found == [
        [(b"v0", None, None, (1, 100)), (b"v2", b"kk", [("h", b"x"), ("n", None)], (1, 86))],
        [(b"v1", b"k", None, (1, 93)), (b"v3", b"kkk", None, (1, 79))],
    ]
    assert [(part.topic, part.partition, part.opened_at, part.count) for part in parts] == [
        ("topic", 1, opened.opened_at, 2)] * 2
    assert sum(part.cost_bytes for part in parts) == opened.cost_bytes


def test_the_parts_of_a_divided_batch_report_its_records_with_their_latencies(twin: Any) -> None:
    opened, parts = divided(twin, [1, 0, 0, 1])
    now = time.monotonic() + 1
    whole = dict(opened.messages(0, 1, -1, None, now))
    shown = [(callback, message.value(), message.offset(), message.latency())
             for part in parts for callback, message in part.messages(50, 1, -1, None, now)]
    assert shown == [(1, b"v1", 50, whole[1].latency()), (3, b"v3", 51, whole[3].latency())]


def test_a_part_whose_records_have_no_callback_keeps_nothing(twin: Any) -> None:
    _, parts = divided(twin, [0, 1, 0, 1])
    assert [part.reports for part in parts] == [None, [1, 3]]


@pytest.mark.parametrize("parts", [[0, 0, 0], [0] * 5, [0, 0, 2, 2], [1, 1, 1, 1], [-1, 0, 0, 0]])
def test_a_division_that_leaves_a_record_or_a_part_out_is_refused(twin: Any, parts: list[int]) -> None:
    with pytest.raises(ValueError, match="4 records"):
        divided(twin, parts)


def test_memory_of_batches_that_only_the_garbage_collector_finds_goes_back_to_its_pool(twin: Any) -> None:
    accumulator, _ = make(twin, 1)
    for _ in range(40):
        rows: list[Any] = []
        accumulator.append(b"x" * 100_000, callback=rows)
        opened, = accumulator.open_batches.ready(math.inf)
        rows += [opened, opened.seal(), memoryview(opened.seal().data)]
        del opened, rows
    assert gc.collect() > 0
    accumulator.append(b"y" * 100_000)
    assert read(twin, accumulator.open_batches.ready(math.inf)[0]) == [b"y" * 100_000]
