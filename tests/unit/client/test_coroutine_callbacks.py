"""Callbacks that are coroutine functions run as tasks; others are called as they are."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from headrace.client.coroutine_callbacks import started, with_started


def test_a_function_is_called_at_once_with_its_arguments() -> None:
    got: list[Any] = []
    assert started(lambda *arguments: got.append(arguments))(1, "two") is None
    assert got == [(1, "two")]


def test_what_a_function_raises_reaches_its_caller() -> None:
    def wrong() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        started(wrong)()


@pytest.mark.parametrize("value", [None, 5, "print"])
def test_what_cannot_be_called_stays_what_it_is(value: object) -> None:
    assert started(value) is value


def test_a_coroutine_function_runs_as_a_task_that_nobody_has_to_hold() -> None:
    got: list[Any] = []

    async def callback(*arguments: Any) -> None:
        await asyncio.sleep(0)
        got.append(arguments)

    async def main() -> None:
        started(callback)(1, "two")
        assert got == []
        gc.collect()
        for _ in range(3):
            await asyncio.sleep(0)
        assert got == [(1, "two")]

    asyncio.run(main())


def test_a_function_that_returns_a_coroutine_is_one_too() -> None:
    got: list[int] = []

    async def work(number: int) -> None:
        got.append(number)

    async def main() -> None:
        started(lambda number: work(number))(7)
        await asyncio.sleep(0)
        assert got == [7]

    asyncio.run(main())


def test_what_a_coroutine_raises_is_told_to_the_loop_and_holds_up_nobody() -> None:
    told: list[dict[str, Any]] = []

    async def callback() -> None:
        raise ValueError("mine")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
        call = started(callback)
        call()
        call()
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(main())
    assert [(context["message"], str(context["exception"])) for context in told] == [("a callback raised", "mine")] * 2


def test_the_callbacks_of_a_client_are_wrapped_and_nothing_else_is() -> None:
    def callback(*arguments: Any) -> None:
        raise AssertionError("not called here")

    given = dict.fromkeys(("error_cb", "stats_cb", "throttle_cb", "on_delivery", "partitioner"), callback)
    made = with_started({**given, "client.id": "c"})
    assert {name for name, value in made.items() if value is not given.get(name)} == {
        "error_cb", "stats_cb", "throttle_cb", "client.id"}
    assert made["client.id"] == "c"
