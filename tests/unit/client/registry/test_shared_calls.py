"""One request for many who ask the same at the same time."""

from __future__ import annotations

import asyncio

import pytest

from headrace.client.registry.shared_calls import SharedCalls


class Work:
    """Work that is done when a test says so."""

    def __init__(self) -> None:
        self.begun = self.cancelled = 0
        self.done = asyncio.Event()

    async def __call__(self) -> str:
        self.begun += 1
        try:
            await self.done.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return "result"


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_who_asks_while_the_work_goes_on_gets_its_result() -> None:
    async def main() -> None:
        shared, work = SharedCalls(), Work()
        askers = [asyncio.create_task(shared.once("key", work)) for _ in range(3)]
        await turns()
        work.done.set()
        assert await asyncio.gather(*askers) == ["result"] * 3
        assert work.begun == 1
        assert await shared.once("key", work) == "result"
        assert work.begun == 2

    asyncio.run(main())


def test_other_work_is_not_waited_for() -> None:
    async def main() -> None:
        shared, first, second = SharedCalls(), Work(), Work()
        asker = asyncio.create_task(shared.once("first", first))
        second.done.set()
        assert await shared.once("second", second) == "result"
        assert not asker.done()
        asker.cancel()

    asyncio.run(main())


def test_an_asker_that_is_cancelled_leaves_the_work_to_the_others() -> None:
    async def main() -> None:
        shared, work = SharedCalls(), Work()
        first, second = (asyncio.create_task(shared.once("key", work)) for _ in range(2))
        await turns()
        first.cancel()
        await turns()
        work.done.set()
        assert await second == "result"
        assert (first.cancelled(), work.cancelled) == (True, 0)

    asyncio.run(main())


def test_work_that_nobody_waits_for_is_cancelled_and_begins_anew_for_the_next() -> None:
    async def main() -> None:
        shared, work = SharedCalls(), Work()
        only = asyncio.create_task(shared.once("key", work))
        await turns()
        only.cancel()
        await asyncio.sleep(0)
        work.done.set()
        assert await shared.once("key", work) == "result"
        assert (work.begun, work.cancelled) == (2, 1)

    asyncio.run(main())


def test_an_error_is_everybodys() -> None:
    async def fails() -> str:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def main() -> None:
        shared = SharedCalls()
        found = await asyncio.gather(*(shared.once("key", fails) for _ in range(3)), return_exceptions=True)
        assert [str(each) for each in found] == ["no"] * 3
        assert len({id(each) for each in found}) == 1

    asyncio.run(main())


def test_each_loop_has_work_of_its_own() -> None:
    shared = SharedCalls()

    async def left_behind() -> None:
        asyncio.create_task(shared.once("key", Work())).add_done_callback(lambda task: task.cancelled())
        await turns()

    async def done() -> str:
        return "mine"

    asyncio.run(left_behind())
    assert asyncio.run(asyncio.wait_for(shared.once("key", done), 5)) == "mine"


def test_a_failure_that_nobody_saw_is_not_complained_about(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def fails() -> None:
            await asyncio.sleep(0)
            raise ValueError("no")

        asker = asyncio.create_task(SharedCalls().once("key", fails))
        await asyncio.sleep(0)
        asker.cancel()
        await turns()

    asyncio.run(main())
    assert caplog.records == []
