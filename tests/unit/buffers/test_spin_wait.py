"""A wait that is hardly longer than it takes to wake up: by both twins."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest


def test_a_spin_wait_ends_when_it_is_told(twin: Any) -> None:
    spin_wait, happened = twin.SpinWait(), threading.Event()

    def tell() -> None:
        time.sleep(0.05)
        happened.set()
        spin_wait.notify()

    teller = threading.Thread(target=tell)
    began = time.monotonic()
    teller.start()
    while not happened.is_set() and time.monotonic() < began + 10:
        spin_wait.wait(happened.is_set, 10)
    assert 0.04 < time.monotonic() - began < 5
    teller.join()


def test_a_spin_wait_ends_in_time_when_nothing_happens(twin: Any) -> None:
    spin_wait = twin.SpinWait()
    began = time.monotonic()
    spin_wait.wait(lambda: False, 0.03)
    assert 0.02 < time.monotonic() - began < 5
    spin_wait.notify()  # nobody watches any more: it does not wait either


def test_a_spin_wait_does_not_begin_when_it_has_happened(twin: Any) -> None:
    began = time.monotonic()
    twin.SpinWait().wait(lambda: True, 10)
    assert time.monotonic() - began < 5


def test_other_threads_run_while_one_watches(twin: Any) -> None:
    spin_wait, counted = twin.SpinWait(), 0
    watcher = threading.Thread(target=spin_wait.wait, args=(lambda: counted > 1_000, 10))
    began = time.monotonic()
    watcher.start()
    while watcher.is_alive():
        counted += 1
        if counted == 1_001:
            spin_wait.notify()
    assert time.monotonic() - began < 5


def test_what_the_question_of_a_spin_wait_raises_ends_it(twin: Any) -> None:
    spin_wait = twin.SpinWait()
    with pytest.raises(ZeroDivisionError):
        spin_wait.wait(lambda: 1 // 0, 10)
    began = time.monotonic()
    spin_wait.notify()
    assert time.monotonic() - began < 5
