"""Whom a step of the driver asks: the machines to which something has happened, and all where it may concern all."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace.client.core import ClientCore
from headrace.config import ADMIN, Config
from headrace.errors import KafkaError
from headrace.machines.machine import ErrorEvent, Event, Send
from headrace.wire.messages.groups.classic_groups import HeartbeatRequest, HeartbeatResponse
from headrace.wire.schema import Struct
from tests.support.scripted_broker import ScriptedBroker, admin_config

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


class Counting:
    """A machine that counts how often it is polled, and has news behind each reply."""

    def __init__(self, *, alone: bool = True, idle: bool = False) -> None:
        self.alone, self.idle = alone, idle
        self.sends: list[Send] = []
        self.polls = self.replies = self.asked = 0
        self.due: float | None = None
        self.news: list[Event] = []

    def poll(self, now: float) -> list[Send]:
        self.polls += 1
        if self.due is not None and self.due <= now:
            self.due = None
        sends, self.sends = self.sends, []
        return sends

    def deadline(self) -> float | None:
        self.asked += 1
        return self.due

    def on_reply(self, send: Send, reply: Struct | None, now: float) -> None:
        self.replies += 1
        self.news.append(ErrorEvent(KafkaError(KafkaError._FAIL, "news")))

    def on_error(self, send: Send, error: KafkaError, now: float) -> None:
        raise AssertionError(error)

    def events(self) -> list[Event]:
        news, self.news = self.news, []
        return news


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def run(check: Callable[[ClientCore, list[Event], Counting, Counting], Awaitable[None]], **first: Any) -> None:
    """Run a check with two machines that have nothing to do; the counts begin when all is quiet."""
    async def main() -> None:
        broker = ScriptedBroker(node1=("broker", 9092))
        broker.on(HeartbeatRequest, HeartbeatResponse())
        told: list[Event] = []
        core = ClientCore(Config(ADMIN, admin_config()), connector=broker.connector, on_event=told.append)
        one, other = Counting(**first), Counting()
        await core.wait_for_metadata(lambda cluster: 1 in cluster.nodes, 5)
        core.add(one)
        core.add(other)
        await settle()
        told.clear()
        one.polls = other.polls = 0
        await check(core, told, one, other)
        await core.close()

    asyncio.run(main())


def beat(core: ClientCore, machine: Counting) -> None:
    machine.sends = [Send(1, HEARTBEAT, 5.0)]
    core.driver.stirrer(machine)()


def test_who_is_woken_is_polled_and_again_behind_its_reply_and_nobody_else() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        beat(core, one)
        await settle()
        assert (one.replies, one.polls, other.polls) == (1, 2, 0)
        assert len(told) == 1

    run(check)


def test_an_idle_one_is_not_polled_behind_its_reply_but_its_news_are_told() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        beat(core, one)
        await settle()
        assert (one.replies, one.polls, other.polls) == (1, 1, 0)
        assert len(told) == 1

    run(check, idle=True)


def test_an_idle_one_is_not_asked_for_its_deadline_behind_a_poll() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        before = one.asked
        for idle, asked in ((True, 0), (False, 1), (True, 1)):
            one.idle = idle
            core.driver.stirrer(one)()
            await settle()
            assert one.asked - before == asked
        assert (one.polls, other.polls) == (3, 0)

    run(check)


def test_an_idle_one_that_wakes_another_while_it_is_polled_has_the_other_polled_too() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        quiet, stir = one.poll, core.driver.stirrer(other)

        def poll(now: float) -> list[Send]:
            stir()
            return quiet(now)

        one.poll = poll  # type: ignore[method-assign]
        core.driver.stirrer(one)()
        await settle()
        assert (one.polls, other.polls) == (1, 1)

    run(check, idle=True)


def test_a_deadline_is_kept_although_an_idle_one_is_polled_when_it_rings() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        other.due = asyncio.get_running_loop().time() + 0.02
        core.driver.stirrer(other)()
        await settle()
        core.driver.waker(one)()
        time.sleep(0.03)  # both happen in one turn of the loop
        await settle()
        assert (one.polls, other.polls) == (1, 2)
        other.due = asyncio.get_running_loop().time() + 0.02
        core.driver.stirrer(other)()
        for _ in range(5):
            core.driver.stirrer(one)()
            await asyncio.sleep(0.01)
        assert other.due is None

    run(check, idle=True)


def test_a_step_looks_at_the_clock_behind_what_it_was_woken_for() -> None:
    """What happens while it does is told of with a wake of its own: else it would be polled for a time before it."""
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        wake, clock = core.driver.waker(one), core.driver._clock

        def late() -> float:
            core.driver._clock = clock
            now = clock()
            wake()  # as another thread does behind a record
            return now

        core.driver._clock = late
        wake()
        await settle()
        assert one.polls == 2

    run(check, idle=True)


def test_events_of_a_class_that_somebody_hears_go_to_nobody_else() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        heard: list[tuple[str, Event]] = []
        core.driver.listeners[ErrorEvent] = (
            lambda event: heard.append(("first", event)), lambda event: heard.append(("second", event)))
        beat(core, one)
        await settle()
        assert [who for who, _ in heard] == ["first", "second"]
        assert not told

    run(check)


def test_a_reply_to_one_that_shares_something_polls_all() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        beat(core, one)
        await settle()
        assert one.polls == other.polls == 2

    run(check, alone=False)


def test_one_that_has_done_what_concerns_others_while_it_was_polled_has_all_polled() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        quiet = one.poll

        def poll(now: float) -> list[Send]:
            one.alone = one.polls > 0  # the first time only
            return quiet(now)

        one.poll = poll  # type: ignore[method-assign]
        core.driver.stirrer(one)()
        await settle()
        assert (one.polls, other.polls) == (2, 1)

    run(check)


def test_a_deadline_polls_the_one_that_has_it() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        one.due = asyncio.get_running_loop().time() + 0.02
        core.driver.stirrer(one)()
        await asyncio.sleep(0.1)
        assert (one.polls, other.polls) == (2, 0)

    run(check)


def test_what_is_wanted_of_the_metadata_polls_all() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        before = core.metadata.updates

        def poll(now: float) -> list[Send]:
            if not one.polls:
                core.metadata.refresh(now)
            one.polls += 1
            return []

        one.poll = poll  # type: ignore[method-assign]
        core.driver.stirrer(one)()
        for _ in range(200):
            await asyncio.sleep(0.005)
            if core.metadata.updates > before:
                break
        assert core.metadata.updates > before
        assert other.polls

    run(check)


def test_a_wake_for_all_is_not_lost_behind_a_wake_for_one_that_is_on_its_way() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, other: Counting) -> None:
        wake_one = core.driver.waker(one)

        def both() -> None:
            wake_one()
            core.wake_threadsafe()
            wake_one()

        thread = threading.Thread(target=both)
        thread.start()
        thread.join()  # the loop has not run meanwhile: both are on their way
        await settle()
        await asyncio.sleep(0.01)
        assert one.polls
        assert other.polls == 1

    run(check)


def test_a_wake_that_ctrl_c_interrupts_wakes_all_the_same() -> None:
    async def check(core: ClientCore, told: list[Event], one: Counting, two: Counting) -> None:
        ring, rung = core.driver._ring, []

        def interrupted(step: Callable[[], object]) -> None:
            rung.append(step)
            if len(rung) == 1:
                raise KeyboardInterrupt
            ring(step)

        core.driver._ring = interrupted
        wake = core.driver.waker(one)
        with pytest.raises(KeyboardInterrupt):
            wake()
        await settle()
        assert one.polls == 1
        wake()
        await settle()
        assert one.polls == 2

    run(check)
