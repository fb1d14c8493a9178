"""What guards a future: as `threading.Condition` does, and without a lock for who only waits; by both twins."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest


def soon(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Timer(0.05, action)
    thread.start()
    return thread


def test_who_waits_is_told_and_has_the_lock_again(twin: Any) -> None:
    condition = twin.FutureCondition()

    def tell() -> None:
        with condition:
            condition.notify_all()

    with condition:
        told = soon(tell)
        assert condition.wait(10)
    told.join()


def test_a_wait_ends_when_its_time_is_over(twin: Any) -> None:
    condition = twin.FutureCondition()
    with condition:
        assert not condition.wait(0.01)
        assert not condition.wait(-1)
    assert condition.acquire()
    condition.release()


def test_conditions_share_a_lock(twin: Any) -> None:
    lock = threading.RLock()
    one, other = twin.FutureCondition(lock), twin.FutureCondition(lock)
    with one, other:
        taken = []
        thread = threading.Thread(target=lambda: taken.append(lock.acquire(timeout=0.05)))
        thread.start()
        thread.join()
        assert taken == [False]


@pytest.mark.parametrize("over_before", [True, False])
def test_a_sleep_ends_as_soon_as_it_is_over(twin: Any, over_before: bool) -> None:
    condition, over = twin.FutureCondition(), [over_before]

    def end() -> None:
        with condition:
            over[0] = True
            condition.notify_all()

    ending = soon(end)
    began = time.monotonic()
    condition.sleep(lambda: over[0], 10)
    assert time.monotonic() - began < (0.04 if over_before else 5)
    ending.join()


def test_a_sleep_ends_when_its_time_is_over(twin: Any) -> None:
    condition = twin.FutureCondition()
    condition.sleep(lambda: False, 0.01)
    condition.sleep(lambda: False, -1)


def test_many_sleep_and_all_are_told(twin: Any) -> None:
    condition, over = twin.FutureCondition(), list[bool]()
    threads = [threading.Thread(target=condition.sleep, args=(lambda: bool(over), 10)) for _ in range(5)]
    for thread in threads:
        thread.start()
    over.append(True)
    with condition:
        condition.notify_all()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
