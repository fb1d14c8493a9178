"""A future between threads: as Python's own, and Ctrl-C leaves it unlocked."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, Future, as_completed, wait

import pytest

from headrace.client.waits import SteadyFuture, submit
from headrace.net.thread import loop_thread
from tests.support.ctrl_c import CtrlC, interrupted, keys

__all__ = ["keys"]


@pytest.mark.parametrize("kind", [Future, SteadyFuture])
def test_it_does_what_a_future_does(kind: type[Future[int]]) -> None:
    given, failed, late, dropped = kind(), kind(), kind(), kind()
    given.set_result(1)
    failed.set_exception(ValueError("why"))
    assert dropped.cancel()
    assert (given.result(), given.exception(0), given.done()) == (1, None, True)
    with pytest.raises(ValueError, match="why"):
        failed.result()
    assert isinstance(failed.exception(), ValueError)
    for ask in (dropped.result, dropped.exception):
        with pytest.raises(CancelledError):
            ask()
    for ask in (late.result, late.exception):
        with pytest.raises(TimeoutError):
            ask(0.01)
    threading.Timer(0.05, late.set_result, [5]).start()
    assert late.result(10) == 5


@pytest.mark.parametrize("kind", [Future, SteadyFuture])
def test_each_callback_is_called_once_and_one_that_raises_stops_no_other(kind: type[Future[int]]) -> None:
    called, future = list[str](), kind()
    future.add_done_callback(lambda done: called.append(f"before {done.result()}"))
    future.add_done_callback(lambda _: called[5])
    future.add_done_callback(lambda _: called.append("behind"))
    future.set_result(1)
    future.add_done_callback(lambda _: called.append("after"))
    assert called == ["before 1", "behind", "after"]


@pytest.mark.parametrize("kind", [Future, SteadyFuture])
def test_several_are_waited_for_together(kind: type[Future[int]]) -> None:
    futures = [kind() for _ in range(3)]
    for number, future in enumerate(futures):
        threading.Timer(0.01 * number, future.set_result, [number]).start()
    assert sorted(future.result() for future in as_completed(futures, 10)) == [0, 1, 2]
    assert wait(futures, 10).not_done == set()


def test_a_cancelled_future_cancels_what_the_loop_does_for_it() -> None:
    ended = list[str]()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    future = submit(loop_thread(), work())
    loop_thread().call(asyncio.sleep(0))
    assert future.cancel()
    loop_thread().call(asyncio.sleep(0.01))
    assert ended == ["cancelled"]


@interrupted
def test_the_loop_outlives_calls_that_are_interrupted_at_any_moment(keys: CtrlC) -> None:
    def call() -> None:
        for _ in range(3):
            loop_thread().call(asyncio.sleep(0))
            submit(loop_thread(), asyncio.sleep(0, 1)).result(5)

    call()  # the loop is made
    keys.again_and_again(3e-4, call, 1.5, 100)
    assert loop_thread().call(asyncio.sleep(0, "alive"), 5) == "alive"
    assert submit(loop_thread(), asyncio.sleep(0, "alive")).result(5) == "alive"
