"""Functions that make many objects run without the collector, and leave it as it was; Ctrl-C leaves no lock locked."""

import gc
import subprocess
import sys
import threading

import pytest

from headrace.interpreter import SteadyLock, uncollected
from tests.support.ctrl_c import CtrlC, keys, needs_timers

__all__ = ["keys"]


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_off_in_the_function_and_as_before_behind_it(on: bool) -> None:
    (gc.enable if on else gc.disable)()
    try:
        assert uncollected(gc.isenabled)() is False
        assert gc.isenabled() is on
    finally:
        gc.enable()


def test_it_is_on_again_when_the_function_raises() -> None:
    with pytest.raises(ValueError, match="no number"):
        uncollected(int)("no number")
    assert gc.isenabled()


def test_one_function_may_call_another() -> None:
    assert uncollected(lambda: uncollected(gc.isenabled)() or gc.isenabled())() is False
    assert gc.isenabled()


@needs_timers
def test_ctrl_c_leaves_the_collector_on(keys: CtrlC) -> None:
    call, off = uncollected(lambda: None), 0
    gc.enable()

    def work() -> None:
        nonlocal off
        off += not gc.isenabled()
        gc.enable()
        for _ in range(1000):
            call()

    keys.again_and_again(5e-5, work, 0.5, 1000)
    assert off == 0


@needs_timers
def test_ctrl_c_leaves_no_lock_locked(keys: CtrlC) -> None:
    lock, left = SteadyLock(), 0

    def work() -> None:
        nonlocal left
        left += lock._is_owned()
        for _ in range(1000):
            with lock:
                pass

    keys.again_and_again(5e-5, work, 0.5, 1000)
    assert left == 0


def test_a_lock_keeps_others_out_but_not_the_thread_that_has_it() -> None:
    lock, order = SteadyLock(), []

    def other() -> None:
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    with lock, lock:
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join(10)
    assert order == ["first", "other"]


def test_a_lock_that_another_thread_had_when_the_interpreter_ended_holds_nobody_up() -> None:
    program = """
import subprocess
import sys
import threading
from headrace.interpreter import SteadyLock

class AtTheEnd:
    def __init__(self):
        self.lock = SteadyLock()
        other = threading.Thread(target=self.lock.acquire)
        other.start()
        other.join()

    def __del__(self):
        with self.lock:
            print("taken")

owner = AtTheEnd()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("taken\n", "")
