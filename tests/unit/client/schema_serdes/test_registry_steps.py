"""How rules ask."""

import asyncio

import pytest

from headrace.client.schema_serdes.registry_steps import Steps, run, run_async


def rule(call) -> Steps[str]:
    try:
        answer = yield call
    except ValueError:
        answer = yield lambda: "instead"
    return f"<{answer}>"


def fail():
    raise ValueError("no")


async def later():
    return "awaited"


async def fail_later():
    raise ValueError("no")


def test_a_rule_gets_what_its_calls_return() -> None:
    assert run(rule(lambda: "at once")) == "<at once>"


def test_a_rule_gets_what_its_calls_raise() -> None:
    assert run(rule(fail)) == "<instead>"


@pytest.mark.parametrize(("call", "answer"), [(lambda: "at once", "at once"), (later, "awaited"), (fail, "instead"),
                                              (fail_later, "instead")])
def test_an_awaited_rule_gets_results_of_functions_and_of_coroutine_functions(call, answer) -> None:
    assert asyncio.run(run_async(rule(call))) == f"<{answer}>"


def test_what_a_rule_does_not_catch_is_raised() -> None:
    def careless() -> Steps[None]:
        yield fail

    with pytest.raises(ValueError, match="no"):
        run(careless())
    with pytest.raises(ValueError, match="no"):
        asyncio.run(run_async(careless()))


def test_a_rule_that_is_cancelled_cleans_up_before_its_task_ends() -> None:
    cleaned = []

    def careful() -> Steps[None]:
        try:
            yield lambda: asyncio.sleep(60)
        finally:
            cleaned.append(True)

    async def cancelled() -> None:
        task = asyncio.create_task(run_async(careful()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cleaned == [True]

    asyncio.run(cancelled())
