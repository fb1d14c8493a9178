"""`AIOShareConsumer`: the blocking one's calls, awaited, on the loop that makes it; without a broker."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any
from uuid import UUID

import pytest

from headrace import IllegalStateException, ShareConsumer
from headrace.aio import AIOShareConsumer
from headrace.machines.share.share_fetcher import AcquiredBatch
from headrace.machines.share.share_session import ShareSession
from headrace.records import BatchBuilder
from tests.support.same_as_confluent import QUIET

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "logger": QUIET, "error_cb": lambda _: None}


def test_it_has_the_blocking_ones_calls_with_their_arguments() -> None:
    def calls(kind: type) -> dict[str, Any]:
        return {name: [(p.name, p.default) for p in inspect.signature(call).parameters.values()]
                for name, call in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    assert calls(AIOShareConsumer) == calls(ShareConsumer)


def test_it_polls_commits_and_closes() -> None:
    async def run() -> None:
        async with AIOShareConsumer(NOWHERE) as one:
            with pytest.raises(IllegalStateException, match=r"not subscribed"):
                await one.poll(0)
            await one.subscribe(["t"])
            assert await one.subscription() == ["t"]
            assert (await one.poll(0.1)).is_empty()
            assert await one.commit_sync(0.1) == {}
            await one.commit_async()
            await one.set_acknowledgement_commit_callback(None)
            assert await one.acquisition_lock_timeout_ms() is None
            assert (await one.metrics())["type"] == "consumer"
            with pytest.raises(IllegalStateException):
                await one.acknowledge_offset("t", 0, 0)
            await one.unsubscribe()
        with pytest.raises(IllegalStateException, match=r"^Share consumer closed$"):
            await one.poll(0)
        await one.close()

    asyncio.run(run())


def test_a_poll_that_is_cancelled_leaves_the_consumer_usable() -> None:
    async def run() -> None:
        async with AIOShareConsumer(NOWHERE) as one:
            await one.subscribe(["t"])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await one.poll()
            assert (await one.poll(0)).is_empty()

    asyncio.run(run())


def lock(consumer: AIOShareConsumer, count: int) -> None:
    """Have so many records locked for a consumer."""
    builder = BatchBuilder(1 << 20, 1 << 20)
    for number in range(count):
        builder.append(1000, None, b"%d" % number)
    consumer._engine.machines.fetcher.queue.append(AcquiredBatch(
        ("t", 0), UUID(int=1), ShareSession(1), [(0, count - 1, 1)], builder.seal(0).data, float("inf")))


def test_other_tasks_have_a_turn_while_a_loop_reads_records_that_are_there() -> None:
    """Heartbeats among them, without which the records go to others."""
    async def run() -> None:
        turns: list[int] = []

        async def others() -> None:
            while True:
                turns.append(1)
                await asyncio.sleep(0)

        async with AIOShareConsumer(NOWHERE) as one:
            await one.subscribe(["t"])
            lock(one, 50)
            task, read = asyncio.create_task(others()), 0
            async for _ in one:
                time.sleep(0.001)
                read += 1
                if read == 50:
                    break
            assert len(turns) > 2
            task.cancel()

    asyncio.run(run())


def test_a_loop_may_be_left_at_any_record_and_the_next_one_goes_on_there() -> None:
    async def run() -> None:
        async with AIOShareConsumer(NOWHERE) as one:
            await one.subscribe(["t"])
            lock(one, 6)
            seen = []
            for _ in range(3):
                async for message in one:
                    seen.append(message.offset())
                    break
            assert [*seen, *(message.offset() for message in await one.poll(0))] == [*range(6)]

    asyncio.run(run())
