"""Both drivers of rules: they wake at once, end in time, and raise inside of the rule what ends a wait early."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from headrace.client import waits
from headrace.client.waits import TURN, LoopWaits, Steps, ThreadWaits, Wait
from headrace.net.thread import loop_thread
from tests.support.ctrl_c import ctrl_c_after

AT_ONCE_S = 8.0
"""Longer than a busy machine stops, and shorter than a wait that nobody ends."""
"""Far more than it takes, even where others keep the machine busy."""


class Switch:
    """Something that happens."""

    def __init__(self, tell: Callable[[], object]) -> None:
        self.on = False
        self._tell = tell

    def is_on(self) -> bool:
        return self.on

    def turn_on(self) -> None:
        self.on = True
        self._tell()


class Witness:
    """A rule that waits, and notes how that ended."""

    def __init__(self, wait: Any) -> None:
        self.wait = wait
        self.noted: list[Any] = []

    def steps(self) -> Steps[str]:
        try:
            self.noted.append((yield self.wait))
        except BaseException as error:
            self.noted.append(type(error))
            raise
        finally:
            self.noted.append((yield answer("cleaned up")))
        return "result"


async def answer(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def refuse() -> None:
    await asyncio.sleep(0)
    raise LookupError("refused")


def nothing() -> bool:
    return False


@pytest.fixture
def threaded() -> ThreadWaits:
    return ThreadWaits(loop_thread())


@pytest.fixture
def looped() -> LoopWaits:
    return LoopWaits()


@pytest.fixture(params=["thread", "loop"])
def run(request: Any, threaded: ThreadWaits, looped: LoopWaits) -> Callable[[Steps[Any]], Any]:
    """Run a rule by either driver."""
    def by_loop(steps: Steps[Any]) -> Any:
        return asyncio.run(looped.run(steps))

    return threaded.run if request.param == "thread" else by_loop


# Either driver


def test_a_rule_gets_the_results_of_its_coroutines_and_its_caller_that_of_the_rule(run):
    witness = Witness(answer(7))
    assert run(witness.steps()) == "result"
    assert witness.noted == [7, "cleaned up"]


def test_a_rule_that_waits_for_nothing_returns(run):
    def steps() -> Steps[int]:
        yield from ()
        return 5

    assert run(steps()) == 5


def test_a_wait_ends_in_its_time(run):
    witness = Witness(Wait(nothing, time.monotonic() + 0.1))
    began_at = time.monotonic()
    assert run(witness.steps()) == "result"
    assert 0.09 < time.monotonic() - began_at < AT_ONCE_S
    assert witness.noted == [None, "cleaned up"]


def test_a_wait_whose_time_is_over_does_not_begin(run):
    assert run(Witness(Wait(nothing, -1.0)).steps()) == "result"


def test_what_has_happened_is_not_waited_for(run):
    began_at = time.monotonic()
    assert run(Witness(TURN).steps()) == "result"
    assert time.monotonic() - began_at < AT_ONCE_S


def test_what_a_coroutine_raises_is_raised_in_the_rule_which_cleans_up(run):
    witness = Witness(refuse())
    with pytest.raises(LookupError, match="refused"):
        run(witness.steps())
    assert witness.noted == [LookupError, "cleaned up"]


def test_a_rule_may_go_on_after_what_was_raised(run):
    def steps() -> Steps[str]:
        try:
            yield refuse()
        except LookupError:
            return "went on"
        return "did not hear of it"

    assert run(steps()) == "went on"


def test_what_the_rule_itself_raises_reaches_the_caller_once(run):
    raised = []

    def steps() -> Steps[None]:
        yield TURN
        try:
            raise ZeroDivisionError
        except ZeroDivisionError as error:
            raised.append(error)
            raise

    with pytest.raises(ZeroDivisionError) as caught:
        run(steps())
    assert raised == [caught.value]
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_what_cleaning_up_raises_takes_the_place_of_the_first(run):
    def steps() -> Steps[None]:
        try:
            yield refuse()
        finally:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        run(steps())
    assert isinstance(caught.value.__context__, LookupError)


# Threads


def test_a_thread_wakes_at_once(threaded):
    switch = Switch(threaded.notify)
    threading.Timer(0.1, switch.turn_on).start()
    began_at = time.monotonic()
    threaded.wait(Wait(switch.is_on))
    assert time.monotonic() - began_at < AT_ONCE_S


def test_a_thread_that_watches_wakes_at_once_and_sleeps_after_that(threaded):
    for watch_s in (0.05, 10.0):
        switch = Switch(threaded.notify)
        threading.Timer(0.1, switch.turn_on).start()
        began_at = time.monotonic()
        threaded.wait(Wait(switch.is_on, watch_until=began_at + watch_s))
        assert time.monotonic() - began_at < AT_ONCE_S
    began_at = time.monotonic()
    threaded.wait(Wait(nothing, began_at + 0.05, watch_until=began_at + 10))
    assert 0.04 < time.monotonic() - began_at < AT_ONCE_S


def test_only_the_thread_wakes_for_which_it_has_happened(threaded):
    mine, others, asked = Switch(threaded.notify), Switch(threaded.notify), []

    def happened() -> bool:
        if threading.current_thread() is waiting:
            asked.append(1)
        return others.on

    waiting = threading.Thread(target=threaded.wait, args=(Wait(happened),))
    waiting.start()
    time.sleep(0.1)
    before = len(asked)
    for _ in range(10):
        mine.turn_on()
    time.sleep(0.1)
    assert len(asked) == before
    others.turn_on()
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_wait_that_another_thread_was_faster_for_goes_on(threaded):
    tokens, taken = [], []

    def take() -> None:
        threaded.wait(Wait(lambda: tokens))
        taken.append(tokens.pop())

    def taking() -> None:
        while True:
            try:
                return take()
            except IndexError:
                continue

    threads = [threading.Thread(target=taking) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(4):
        tokens.append(number)
        threaded.notify()
    for thread in threads:
        thread.join(10)
    assert sorted(taken) == [0, 1, 2, 3]


def test_no_wake_up_is_lost_however_close_it_comes_to_the_wait(threaded):
    for _ in range(2000):
        switch = Switch(threaded.notify)
        thread = threading.Thread(target=switch.turn_on)
        thread.start()
        threaded.wait(Wait(switch.is_on))
        thread.join()


@pytest.mark.parametrize("wait", [lambda: Wait(nothing), lambda: asyncio.sleep(60)], ids=["a wait", "a coroutine"])
def test_ctrl_c_is_raised_in_the_rule_which_cleans_up(threaded, wait):
    witness = Witness(wait())
    began_at = time.monotonic()
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(1.0):
        threaded.run(witness.steps())
    assert time.monotonic() - began_at < 1.0 + AT_ONCE_S
    assert witness.noted == [KeyboardInterrupt, "cleaned up"]


def test_ctrl_c_is_heard_in_slices_where_python_delivers_it_between_two_of_them(threaded, monkeypatch):
    monkeypatch.setattr(waits, "SLICE_S", 0.05)
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(1.0):
        threaded.wait(Wait(nothing))


@pytest.mark.parametrize("wait", [lambda: Wait(nothing), lambda: asyncio.sleep(60)], ids=["a wait", "a coroutine"])
def test_something_else_is_done_in_every_wait_and_may_end_it(threaded, wait):
    called = []

    def meanwhile() -> None:
        called.append(1)
        if len(called) == 3:
            raise LookupError

    began_at, witness = time.monotonic(), Witness(wait())
    with pytest.raises(LookupError):
        threaded.run(witness.steps(), meanwhile)
    assert 0.1 < time.monotonic() - began_at < 0.15 + AT_ONCE_S
    assert witness.noted == [LookupError, "cleaned up"]


def test_with_something_else_to_do_a_coroutine_gives_its_result_as_well(threaded):
    assert threaded.call(answer(3), lambda: None) == 3
    with pytest.raises(LookupError):
        threaded.call(refuse(), lambda: None)


def test_a_function_is_called_on_the_loop(threaded):
    assert threaded.do(threaded.may_wait) is False
    assert threaded.may_wait() is True


def test_nobody_may_wait_on_the_loop_for_what_only_the_loop_can_do(threaded):
    with pytest.raises(RuntimeError, match=r"headrace\.aio"):
        threaded.do(lambda: threaded.run(Witness(answer(1)).steps()))


# Tasks


def test_a_task_wakes_at_once(looped):
    async def main() -> None:
        switch = Switch(looped.notify)
        asyncio.get_running_loop().call_later(0.05, switch.turn_on)
        began_at = time.monotonic()
        await looped.wait(Wait(switch.is_on))
        assert time.monotonic() - began_at < AT_ONCE_S

    asyncio.run(main())


def test_only_the_task_wakes_for_which_it_has_happened(looped):
    async def main() -> None:
        switches = [Switch(looped.notify) for _ in range(3)]
        tasks = [asyncio.create_task(looped.wait(Wait(switch.is_on))) for switch in switches]
        await asyncio.sleep(0)
        switches[1].turn_on()
        done, pending = await asyncio.wait(tasks, timeout=0.05)
        assert done == {tasks[1]}
        for switch in switches:
            switch.turn_on()
        await asyncio.gather(*pending)

    asyncio.run(main())


@pytest.mark.parametrize("wait", [TURN, Wait(nothing, -1.0)], ids=["happened", "too late"])
def test_others_have_a_turn_in_every_wait(looped, wait):
    async def main() -> None:
        turns = []
        asyncio.get_running_loop().call_soon(turns.append, 1)
        await looped.wait(wait)
        assert turns

    asyncio.run(main())


@pytest.mark.parametrize("wait", [lambda: Wait(nothing), lambda: asyncio.sleep(60)], ids=["a wait", "a coroutine"])
def test_a_cancelled_task_cleans_up_where_it_waits_and_leaves_nothing(looped, wait):
    witness = Witness(wait())

    async def main() -> None:
        task = asyncio.create_task(looped.run(witness.steps()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        looped.notify()

    asyncio.run(main())
    assert witness.noted == [asyncio.CancelledError, "cleaned up"]


def test_a_timeout_around_a_call_ends_its_wait_only(looped):
    async def main() -> None:
        witness = Witness(Wait(nothing, time.monotonic() + 60))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await looped.run(witness.steps())
        assert witness.noted == [asyncio.CancelledError, "cleaned up"]

    asyncio.run(main())


def test_a_task_of_another_loop_is_told_so() -> None:
    looped = LoopWaits()

    def rule() -> Steps[int]:
        yield TURN
        return 5

    async def work() -> int:
        return await looped.run(rule())

    assert [asyncio.run(work()) for _ in range(2)] == [5, 5]
    looped.loop = asyncio.new_event_loop()
    with contextlib.closing(looped.loop), pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(work())
