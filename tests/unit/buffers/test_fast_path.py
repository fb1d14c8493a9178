"""What `produce()` does by itself and what it leaves to the other way: by both twins."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace.buffers import ProduceResult
from headrace.errors import KafkaException


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
        began = time.monotonic()
        fast_path, turns = FastPath(twin, batch_count=3), []
        asyncio.get_running_loop().call_soon(turns.append, "turn")
        for _ in range(2):
            await fast_path.produce("topic", b"v")
        assert turns == [] or time.monotonic() - began > 0.01
        await fast_path.produce("topic", b"v")
        assert turns == ["turn"]
        assert len(fast_path.accumulator.open_batches.ready()) == 1
    run(body)


def test_the_loop_has_a_turn_every_ten_milliseconds_although_no_batch_is_full(twin: Any) -> None:
    async def body() -> None:
        fast_path, turns = FastPath(twin, batch_count=100), []
        for _ in range(3):
            asyncio.get_running_loop().call_soon(turns.append, "turn")
            time.sleep(0.011)
            await fast_path.produce("topic", b"v")
        assert turns == ["turn"] * 3
    run(body)


def test_produce_can_be_made_a_task(twin: Any) -> None:
    async def body() -> None:
        fast_path = FastPath(twin)
        deliveries = await asyncio.gather(*[asyncio.create_task(fast_path.produce("topic", b"v")) for _ in range(3)])
        opened = fast_path.accumulator.open_batches.ready(math.inf)[0]
        opened.settle(ProduceResult(0, 1, -1, None, 0.0, print))
        assert [delivery.result().offset() for delivery in deliveries] == [0, 1, 2]
    run(body)


def test_what_produce_gives_is_a_coroutine_that_is_awaited_once(twin: Any) -> None:
    async def body() -> None:
        fast_path = FastPath(twin)
        accepted = fast_path.produce("topic", b"v")
        assert asyncio.iscoroutine(accepted)
        assert len(fast_path.accumulator.open_batches.ready(math.inf)) == 1  # it was appended by the call
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
        assert fast_path.accumulator.open_batches.ready(math.inf)[0].count == 2
    run(body)


def test_a_task_that_awaits_an_accepted_record_can_be_cancelled(twin: Any) -> None:
    async def body() -> None:
        task = asyncio.create_task(FastPath(twin).produce("topic", b"v"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    run(body)


# `Producer.produce`

class Quiet(list[Any]):
    """A callback that is false where it is asked."""

    def __call__(self, *_: Any) -> None: ...


def blocking(twin: Any, default: Any = None, **how: Any) -> tuple[Any, Any, list[tuple[Any, ...]], list[int]]:
    """A `ProduceFastPath.produce`, its accumulator, and what was left to others and when the loop was woken."""
    pool = twin.BufferPool(how.pop("messages", 0), 10**9)
    accumulator = twin.RecordAccumulator("topic", 2, pool, **how)
    others: list[tuple[Any, ...]] = []
    wakes: list[int] = []
    made = twin.ProduceFastPath({"topic": accumulator}, pool, twin.LoopTurns(), lambda *what: others.append(what),
                                lambda: wakes.append(1), default)
    return made.produce, accumulator, others, wakes


def test_the_loop_is_woken_for_a_new_batch_and_for_a_full_one(twin: Any) -> None:
    produce, accumulator, others, wakes = blocking(twin, batch_count=3)
    woken = []
    for _ in range(4):
        produce("topic", b"v", partition=0)
        woken.append(len(wakes))
    assert woken == [1, 1, 2, 3]
    assert (others, [batch.count for batch in accumulator.open_batches.ready(math.inf)]) == ([], [3, 1])


def test_unknown_topics_and_a_full_pool_are_left_to_the_other_way(twin: Any) -> None:
    produce, accumulator, others, wakes = blocking(twin, "default", messages=1)
    produce("unknown", b"v", b"k", 1, timestamp=7, headers={"a": b"b"})
    produce("topic", b"v")
    produce("topic", b"w", on_delivery="told")
    assert others == [("unknown", b"v", b"k", 1, 7, {"a": b"b"}, "default"),
                      ("topic", b"w", None, -1, 0, None, "told")]
    assert (len(wakes), accumulator.open_batches.ready(math.inf)[0].reports) == (1, ["default"])


def test_what_is_refused_raises_and_is_left_to_nobody(twin: Any) -> None:
    produce, accumulator, others, wakes = blocking(twin, message_bytes=10)
    for arguments, error in (((b"v" * 11,), KafkaException), ((5.5,), TypeError), ((b"v", None, 2), KafkaException)):
        with pytest.raises(error):
            produce("topic", *arguments)
    assert (others, wakes, accumulator.open_batches.ready(math.inf)) == ([], [], [])


def test_a_record_reports_to_its_own_callback_before_the_others_and_none_of_them_is_asked_whether_it_is_true(
    twin: Any
) -> None:
    produce, accumulator, _, _ = blocking(twin, "default")
    quiet = Quiet()
    produce("topic", b"1", partition=0, callback=quiet, on_delivery="told")
    produce("topic", b"2", partition=0, on_delivery=quiet)
    produce("topic", b"3", partition=0, on_delivery="told")
    produce("topic", b"4", partition=0)
    first, second, *others = accumulator.open_batches.ready(math.inf)[0].reports
    assert first is quiet
    assert second is quiet
    assert others == ["told", "default"]


class Client:
    closed = False


class Serving:
    """`poll()` for a client that notes which calls go the general way."""

    def __init__(self, twin):
        self.pool, self.client, self.queues = twin.BufferPool(100, 10**6), Client(), ([], [])
        self.general = []
        self.poll = twin.ServeFastPath(twin.Polling(), self.queues, twin.LoopTurns(), self.client, self.otherwise).poll

    def otherwise(self, timeout):
        self.general.append(timeout)
        return 7


def test_a_poll_without_waiting_needs_nothing_while_nothing_is_due(twin):
    serving = Serving(twin)
    assert [serving.poll(0), serving.poll(timeout=0)] == [0, 0]
    assert [serving.poll(0) for _ in range(1_000)] == [0] * 1_000
    assert serving.general == []


@pytest.mark.parametrize("timeout", [1, -1, 0.5, 0.0, None, False])
def test_every_other_poll_goes_the_general_way(twin, timeout):
    serving = Serving(twin)
    assert serving.poll(timeout) == 7
    assert serving.general == [timeout]


def test_what_is_due_is_called_the_general_way(twin):
    for place in (0, 1):
        serving = Serving(twin)
        serving.queues[place].append("a report")
        assert serving.poll(0) == 7


def test_a_closed_client_is_asked_the_general_way(twin):
    serving = Serving(twin)
    serving.client.closed = True
    assert serving.poll(0) == 7


def test_a_timestamp_in_seconds_is_refused_by_both_ways(twin: Any) -> None:
    async def body() -> None:
        fast_path = FastPath(twin)
        for topic in ("topic", "unknown"):
            with pytest.raises(TypeError, match="timestamp must be int, in milliseconds"):
                await fast_path.produce(topic, b"v", timestamp=1767225600.5)
        assert (fast_path.others, fast_path.pool.messages) == ([], 0)

    run(body)
    blocking = twin.ProduceFastPath({}, twin.BufferPool(0, 1), twin.LoopTurns(), print, print)
    with pytest.raises(TypeError, match="timestamp must be int, in milliseconds"):
        blocking.produce("unknown", b"v", timestamp=1767225600.5)
