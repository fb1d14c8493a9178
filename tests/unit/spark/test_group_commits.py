"""Offsets set for lag tools: one commit at a time, the newest offsets in the end, and failures that are only told."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.spark.group_commits import GroupCommits
from headrace.spark.plan import Offsets


class View:
    """Takes commits; they are answered when `answer` says so."""

    def __init__(self) -> None:
        self.begun: list[Offsets] = []
        self.answer: Callable[[float], None] = lambda timeout_s: None

    def begin_commit(self, group_id: str, offsets: Offsets) -> Callable[[float], None]:
        self.begun.append(offsets)
        return lambda timeout_s: self.answer(timeout_s)


def late(timeout_s: float) -> None:
    raise TimeoutError


def refused(timeout_s: float) -> None:
    raise KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID, "it has members"))


def at(offset: int) -> Offsets:
    return {("t", 0): offset}


def test_the_same_offsets_are_set_once() -> None:
    view, commits = View(), GroupCommits("g")
    for offset in (3, 3, 5):
        commits.reached(view, at(offset))  # type: ignore[arg-type]
    assert view.begun == [at(3), at(5)]


def test_while_one_commit_is_under_way_the_next_waits_and_the_newest_is_set() -> None:
    view, commits = View(), GroupCommits("g")
    view.answer = late
    for offset in (1, 2, 3):
        commits.reached(view, at(offset))  # type: ignore[arg-type]
    assert view.begun == [at(1)]
    view.answer = lambda timeout_s: None
    commits.finish(view)  # type: ignore[arg-type]
    assert view.begun == [at(1), at(3)]


def test_in_the_end_each_commit_has_its_time_also_the_one_that_waits_for_another() -> None:
    view, commits, waited = View(), GroupCommits("g"), []

    def slow(timeout_s: float) -> None:
        waited.append(timeout_s)
        if not timeout_s:
            raise TimeoutError

    view.answer = slow
    for offset in (1, 2):
        commits.reached(view, at(offset))  # type: ignore[arg-type]
    commits.finish(view)  # type: ignore[arg-type]
    assert view.begun == [at(1), at(2)]
    assert waited[-1] > 0


def test_a_refusal_is_told_once_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    view, commits = View(), GroupCommits("g")
    view.answer = refused
    with caplog.at_level(logging.WARNING, "headrace"):
        for offset in (1, 2, 3):
            commits.reached(view, at(offset))  # type: ignore[arg-type]
        commits.finish(view)  # type: ignore[arg-type]
    assert view.begun == [at(1), at(2), at(3)]
    assert [record.getMessage() for record in caplog.records] == [
        'offsets of group "g", which only lag tools look at, were not set: it has members']
