"""What `produce()` does by itself and what it leaves to the other way: by both twins."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace.buffers import ProduceResult


def new_future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.wait_for(body(), 10)
    asyncio.run(main())


class FastPath:
    """An `AIOProduceFastPath` and what it was seen to do."""

    def __init__(self, twin: Any, **how: Any) -> None:
        self.pool = twin.BufferPool(how.pop("messages", 0), 10**9)
        self.accumulator = twin.RecordAccumulator("topic", 1, self.pool, **how)
        self.wakes = 0
        self.others: list[tuple[Any, ...]] = []
        self.produce = twin.AIOProduceFastPath({"topic": self.accumulator}, self._otherwise, self._wake, new_future,
                                       lambda: asyncio.sleep(0)).produce

    def _wake(self) -> None:
        self.wakes += 1

    async def _otherwise(self, *arguments: Any) -> str:
        self.others.append(arguments)
        return "other"


def test_produce_leaves_to_the_other_way_what_is_unusual(twin: Any) -> None:
    async def body() -> None:
        fast_path = FastPath(twin, messages=2)
        assert not isinstance(await fast_path.produce("topic", b"v", key=b"k"), str)
        assert fast_path.wakes == 1
        assert await fast_path.produce("unknown", b"v") == "other"
        assert await fast_path.produce("topic", b"v", on_delivery=print) == "other"
        assert not isinstance(await fast_path.produce("topic", value="text", headers={"h": b"x"}, timestamp=5), str)
        assert await fast_path.produce("topic", b"full", partition=0, timestamp=7, headers={"a": b"b"}) == "other"
        assert fast_path.others == [
            ("unknown", b"v", None, -1, None, 0, None),
            ("topic", b"v", None, -1, print, 0, None),
            ("topic", b"full", None, 0, None, 7, {"a": b"b"}),
        ]
    run(body)


def test_the_loop_has_a_turn_when_a_batch_is_full_and_none_before(twin: Any) -> None:
    async def body() -> None:
        fast_path, turns = FastPath(twin, batch_count=3), []
        asyncio.get_running_loop().call_soon(turns.append, "turn")
        for _ in range(2):
            await fast_path.produce("topic", b"v")
        assert turns == []
        await fast_path.produce("topic", b"v")
        assert turns == ["turn"]
        assert len(fast_path.accumulator.ready()) == 1
    run(body)


def test_produce_can_be_made_a_task(twin: Any) -> None:
    async def body() -> None:
        fast_path = FastPath(twin)
        deliveries = await asyncio.gather(*[asyncio.create_task(fast_path.produce("topic", b"v")) for _ in range(3)])
        opened = fast_path.accumulator.ready(math.inf)[0]
        opened.settle(ProduceResult(0, 1, -1, None, 0.0, print))
        assert [delivery.result().offset() for delivery in deliveries] == [0, 1, 2]
    run(body)


def test_what_produce_gives_is_a_coroutine_that_is_awaited_once(twin: Any) -> None:
    async def body() -> None:
        fast_path = FastPath(twin)
        accepted = fast_path.produce("topic", b"v")
        assert asyncio.iscoroutine(accepted)
        assert len(fast_path.accumulator.ready(math.inf)) == 1  # it was appended by the call
        assert isinstance(await accepted, twin.DeliveryFuture)
        with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
            await accepted
        with pytest.raises(StopIteration) as returned:
            fast_path.produce("topic", b"v").send(None)
        assert isinstance(returned.value.value, twin.DeliveryFuture)
        with pytest.raises(StopIteration) as returned:
            next(iter(fast_path.produce("topic", b"v").__await__()))
        assert isinstance(returned.value.value, twin.DeliveryFuture)
        thrown = fast_path.produce("topic", b"v")
        with pytest.raises(KeyError):
            thrown.throw(KeyError("k"))
        thrown.close()
        with pytest.raises(RuntimeError):
            thrown.send(None)
    run(body)


def test_a_record_that_is_refused_is_left_to_the_other_way_and_the_others_are_taken(twin: Any) -> None:
    async def body() -> None:
        fast_path = FastPath(twin, message_bytes=10)
        calls = [fast_path.produce("topic", value) for value in (b"v", b"v" * 100, 5.5, b"v")]
        assert (await asyncio.gather(*calls))[1:3] == ["other", "other"]
        assert fast_path.others == [("topic", value, None, -1, None, 0, None) for value in (b"v" * 100, 5.5)]
        assert fast_path.accumulator.ready(math.inf)[0].count == 2
    run(body)


def test_a_task_that_awaits_an_accepted_record_can_be_cancelled(twin: Any) -> None:
    async def body() -> None:
        task = asyncio.create_task(FastPath(twin).produce("topic", b"v"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    run(body)
