"""An alarm rings once, when its time is over, whichever thread has set it."""

import math
import os
import select
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def alarm(twin: Any) -> Iterator[Any]:
    made = twin.Alarm()
    yield made
    made.close()


def rings(alarm: Any, within_s: float) -> bool:
    return alarm.file >= 0 and bool(select.select([alarm.file], [], [], within_s)[0])


def test_it_rings_when_its_time_is_over_and_until_it_is_answered(twin: Any, alarm: Any) -> None:
    assert alarm.at == math.inf
    at = time.monotonic() + 0.05
    alarm.set(at)
    assert alarm.at == at
    assert not rings(alarm, 0)
    assert rings(alarm, 5) == twin.Alarm.exists
    assert rings(alarm, 0) == twin.Alarm.exists
    assert time.monotonic() >= at or not twin.Alarm.exists
    alarm.answer()
    assert not rings(alarm, 0.05)


@pytest.mark.parametrize("over_since_s", [0.001, 1e9])
def test_a_time_that_is_over_rings_at_once(twin: Any, alarm: Any, over_since_s: float) -> None:
    alarm.set(time.monotonic() - over_since_s)
    assert rings(alarm, 1) == twin.Alarm.exists


def test_another_time_replaces_the_one_before(twin: Any, alarm: Any) -> None:
    alarm.set(time.monotonic() + 0.02)
    alarm.set(time.monotonic() + 100)
    assert not rings(alarm, 0.1)
    alarm.set(time.monotonic())
    assert rings(alarm, 1) == twin.Alarm.exists


def test_an_answer_without_a_ring_does_not_wait(alarm: Any) -> None:
    alarm.answer()


def closed(alarm: Any) -> None:
    alarm.close()
    alarm.close()


def dropped(alarm: Any) -> None:
    del alarm


@pytest.mark.parametrize("ends", [closed, dropped])
def test_its_file_is_closed_with_it(twin: Any, ends: Callable[[Any], None]) -> None:
    alarm = twin.Alarm()
    file = alarm.file
    ends(alarm)
    assert alarm.file == -1 or ends is dropped
    del alarm
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)
