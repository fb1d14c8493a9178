"""The reports of a batch while they are served: what is counted, and what is passed over; by both twins."""

from __future__ import annotations

from operator import length_hint
from typing import Any

import pytest

from headrace.errors import KafkaError


class AtOnce:
    """A callback that was called before."""


def run_of(twin: Any, callbacks: list[Any], **given: Any) -> tuple[Any, Any]:
    pool = twin.BufferPool(100, 10_000)
    assert pool.take(3, 300)
    return twin.ReportRun(iter([(callback, "m") for callback in callbacks]), None, pool, 3, 300, **given), pool


def test_the_pool_counts_records_until_their_reports_are_begun_and_not_after(twin: Any) -> None:
    run, pool = run_of(twin, [print, len])
    assert (run.begun, length_hint(run), pool.messages, pool.bytes) == (False, 2, 3, 300)
    assert [run.begin(), run.begin()] == [True, False]
    assert (run.begun, length_hint(run), pool.messages, pool.bytes) == (True, 2, 0, 0)


def test_each_report_is_given_once_whoever_asks(twin: Any) -> None:
    run, _ = run_of(twin, [print, len, repr])
    assert next(run) == (print, "m")
    assert length_hint(run) == 2
    assert [callback for callback, _ in run] == [len, repr]
    assert list(run) == []


def test_callbacks_that_were_called_before_are_passed_over(twin: Any) -> None:
    run, _ = run_of(twin, [AtOnce(), len, AtOnce(), repr, AtOnce()], passed_over=AtOnce)
    assert [callback for callback, _ in run] == [len, repr]


def test_it_says_why_the_records_were_not_delivered(twin: Any) -> None:
    error = KafkaError(KafkaError._MSG_TIMED_OUT)
    run = twin.ReportRun(iter(()), error, twin.BufferPool(1, 1), 0, 0)
    assert run.error is error
    with pytest.raises(StopIteration):
        next(run)
