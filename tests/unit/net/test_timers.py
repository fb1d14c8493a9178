"""Alarms: one for each function, called once, when its time has come and not before."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.net.timers import Timers, in_time, jitter, monotonic
from headrace.testing.simulated_clock import SimulatedLoop


class Bell:
    """Notes when it rang."""

    def __init__(self) -> None:
        self.rang: list[float] = []

    def ring(self) -> None:
        self.rang.append(round(asyncio.get_running_loop().time(), 3))


def simulated(work: Callable[[Timers], Coroutine[Any, Any, None]]) -> None:
    loop = SimulatedLoop()
    loop.run(work(Timers(loop)))
    assert loop.failures == []


@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(-5, 50))), max_size=30))
def test_the_last_word_about_each_function_counts(said: list[tuple[int, int | None]]) -> None:
    async def work(timers: Timers) -> None:
        bells = [Bell() for _ in range(4)]
        last: dict[int, int] = {}
        for which, wait_s in said:
            if wait_s is None:
                timers.cancel(bells[which].ring)
                last.pop(which, None)
            else:
                timers.set(bells[which].ring, wait_s)
                last[which] = max(wait_s, 0)
        await asyncio.sleep(60)
        assert [bell.rang for bell in bells] == [[last[which]] if which in last else [] for which in range(4)]

    simulated(work)


def test_an_alarm_without_end_is_none_and_takes_the_place_of_the_one_before() -> None:
    async def work(timers: Timers) -> None:
        bell = Bell()
        timers.set(bell.ring, 1.0)
        timers.set(bell.ring, float("inf"))
        await asyncio.sleep(100)
        assert bell.rang == []

    simulated(work)


def test_what_has_rung_can_be_set_again_also_by_itself() -> None:
    async def work(timers: Timers) -> None:
        rang: list[float] = []

        def ring() -> None:
            rang.append(round(asyncio.get_running_loop().time(), 3))
            if len(rang) < 3:
                timers.set(ring, 2.0)

        timers.set(ring, 1.0)
        await asyncio.sleep(100)
        assert rang == [1.0, 3.0, 5.0]

    simulated(work)


def test_all_can_be_silenced_at_once() -> None:
    async def work(timers: Timers) -> None:
        bells = [Bell() for _ in range(3)]
        for bell in bells:
            timers.set(bell.ring, 1.0)
        timers.cancel_all()
        timers.set(bells[0].ring, 2.0)
        await asyncio.sleep(100)
        assert [bell.rang for bell in bells] == [[2.0], [], []]

    simulated(work)


def test_the_clock_is_the_one_of_asyncios_own_loop_and_never_runs_backwards() -> None:
    async def run() -> None:
        before = monotonic()
        between = asyncio.get_running_loop().time()
        assert before <= between <= monotonic()

    asyncio.run(run())


def test_chance_is_our_own_an_application_that_seeds_random_gets_its_own_sequence() -> None:
    random.seed(7)
    expected = [random.random() for _ in range(3)]
    random.seed(7)
    found = []
    for _ in range(3):
        assert 0 <= jitter() < 1
        found.append(random.random())
    assert found == expected
    assert len({jitter() for _ in range(20)}) > 1


def test_what_comes_within_its_time_is_given_also_in_the_turn_in_which_that_is_over() -> None:
    async def given_after(wait_s: float, *, error: Exception | None = None, in_that_turn: bool = False) -> str:
        future: asyncio.Future[str] = loop.create_future()

        def come() -> None:
            if not future.done():
                future.set_exception(error) if error else future.set_result("it")

        def stop_and_come() -> None:
            loop.now += 10
            loop.call_soon(come)  # the loop looks at its timers first

        loop.call_later(wait_s, stop_and_come if in_that_turn else come)
        return await in_time(future, 5)

    async def main() -> None:
        assert await given_after(0.0) == "it"
        assert await given_after(1, in_that_turn=True) == "it"
        with pytest.raises(KeyError):
            await given_after(1, in_that_turn=True, error=KeyError())
        with pytest.raises(TimeoutError):
            await given_after(10)

    loop = SimulatedLoop()
    loop.run(main())
    assert loop.failures == []
