"""`async for` and `await poll()` hand out the rest of a batch natively; whatever else happens is seen at once."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace import KafkaError, Message, Producer, TopicPartition
from headrace.aio import AIOConsumer
from headrace.client.consumer.consumer_engine import ConsumerEngine
from headrace.errors import ClientClosedError
from headrace.records import implementation
from headrace.testing import EmbeddedBroker

RECORDS = 200
native = pytest.mark.skipif(implementation == "plain", reason="the plain twin goes the general way")
Next = Callable[[], Awaitable[Message | None]]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with one batch of many records."""
    with EmbeddedBroker(topics={"t": 1}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 500}) as producer:
            for number in range(RECORDS):
                producer.produce("t", b"%d" % number)
        yield broker.bootstrap_servers


@asynccontextmanager
async def reading(servers: str, **properties: Any) -> AsyncIterator[AIOConsumer]:
    """A consumer that is amid a batch."""
    async with AIOConsumer({"bootstrap.servers": servers, "group.id": f"g{time.time_ns()}",
                            "enable.auto.commit": False, **properties}) as consumer:
        await consumer.assign([TopicPartition("t", 0, 0)])
        for _ in range(3):
            assert await consumer.poll(10) is not None
        yield consumer


def by_poll(consumer: AIOConsumer) -> Next:
    return lambda: consumer.poll(10)


def by_iteration(consumer: AIOConsumer) -> Next:
    return aiter(consumer).__anext__


ways = pytest.mark.parametrize("way", [by_poll, by_iteration])
Way = Callable[[AIOConsumer], Next]


async def number(following: Next) -> int:
    message = await following()
    assert message is not None
    assert message.error() is None
    return int(message.value() or b"")


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


@native
@ways
def test_the_rest_of_a_batch_needs_nothing_of_the_general_way(
    servers: str, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    take_one = ConsumerEngine.take_one
    monkeypatch.setattr(ConsumerEngine, "take_one", lambda engine: calls.append(1) or take_one(engine))

    async def main() -> None:
        async with reading(servers) as consumer:
            following = way(consumer)
            calls.clear()
            assert [await number(following) for _ in range(3, RECORDS - 1)] == list(range(3, RECORDS - 1))
            assert not calls

    run(main())


@ways
def test_position_seek_pause_and_other_calls_hold_from_the_next_record_on(servers: str, way: Way) -> None:
    async def main() -> None:
        async with reading(servers) as consumer:
            following = way(consumer)
            assert [await number(following) for _ in range(3)] == [3, 4, 5]
            ((found),) = await consumer.position([TopicPartition("t", 0)])
            assert found.offset == 6
            assert [int(each.value() or b"") for each in await consumer.consume(2, 10)] == [6, 7]
            assert await number(following) == 8
            assert len(await consumer.consume_arrow(2, 10)) == 2
            assert await number(following) == 11
            ((committed),) = await consumer.commit(asynchronous=False) or []
            assert committed.offset == 12
            await consumer.seek(TopicPartition("t", 0, 150))
            assert [await number(following) for _ in range(3)] == [150, 151, 152]
            await consumer.pause([TopicPartition("t", 0)])
            assert await consumer.poll(0.05) is None
            await consumer.resume([TopicPartition("t", 0)])
            assert await number(following) == 153

    run(main())


@ways
def test_a_callback_that_is_due_is_called_before_the_next_record(servers: str, way: Way) -> None:
    async def main() -> None:
        async with reading(servers) as consumer:
            following, told = way(consumer), list[object]()
            await number(following)
            consumer._engine.machines.notify(told.append, KafkaError(KafkaError._FAIL))
            await number(following)
            assert told == [KafkaError(KafkaError._FAIL)]

    run(main())


@ways
def test_a_closed_consumer_hands_out_nothing(servers: str, way: Way) -> None:
    async def main() -> None:
        async with reading(servers) as consumer:
            following = way(consumer)
            await number(following)
            await consumer.close()
            with pytest.raises(ClientClosedError):
                await following()

    run(main())


def test_other_tasks_have_a_turn_while_records_are_there(servers: str) -> None:
    async def main() -> None:
        async with reading(servers) as consumer:
            turns: list[int] = []

            async def others() -> None:
                while True:
                    turns.append(1)
                    await asyncio.sleep(0)

            task = asyncio.create_task(others())
            for _ in range(4):  # each time to the end of the batch, where the general way is gone
                await consumer.seek(TopicPartition("t", 0, 0))
                time.sleep(0.02)
                before, read = len(turns), 0
                async for _ in consumer:
                    read += 1
                    if read == RECORDS:
                        break
                assert len(turns) > before
            task.cancel()

    run(main())


def test_a_next_message_may_be_awaited_by_a_task_and_in_time(servers: str) -> None:
    async def main() -> None:
        async with reading(servers) as consumer:
            messages = aiter(consumer)
            first = await asyncio.ensure_future(anext(messages))
            second = await asyncio.wait_for(anext(messages), 10)
            one, other = anext(messages), anext(messages)  # in the order of the awaits, as of an async generator
            third, fourth = await other, await one
            assert [each.offset() for each in (first, second, third, fourth)] == [3, 4, 5, 6]
            assert (await asyncio.create_task(anext(messages))).offset() == 7  # type: ignore[arg-type]

    run(main())


def test_a_next_message_that_is_given_up_before_it_is_awaited_is_not_lost(servers: str) -> None:
    async def main() -> None:
        async with reading(servers) as consumer:
            messages = aiter(consumer)
            cancelled = asyncio.ensure_future(anext(messages))
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(messages), 0)
            closed: Any = anext(messages)
            closed.close()
            thrown: Any = anext(messages)
            with pytest.raises(ZeroDivisionError):
                thrown.throw(ZeroDivisionError)
            assert [(await anext(messages)).offset() for _ in range(2)] == [3, 4]

    run(main())


def test_what_comes_between_a_next_message_and_its_await_is_seen(servers: str) -> None:
    async def main() -> None:
        async with reading(servers) as consumer:
            messages = aiter(consumer)
            following = anext(messages)
            await consumer.seek(TopicPartition("t", 0, 100))
            assert (await following).offset() == 100
            waiting = asyncio.ensure_future(anext(messages))
            await consumer.pause([TopicPartition("t", 0)])
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await consumer.resume([TopicPartition("t", 0)])
            assert (await anext(messages)).offset() == 101

    run(main())


@native
def test_a_message_is_awaited_once(servers: str) -> None:
    async def main() -> None:
        async with reading(servers) as consumer:
            following: Any = anext(aiter(consumer))
            assert (await following).offset() == 3
            for await_again in (following.__await__, following.__next__):
                with pytest.raises(RuntimeError, match="already awaited"):
                    await following if await_again == following.__await__ else await_again()

    run(main())


def test_a_debugger_sees_the_same_messages(servers: str) -> None:
    async def main() -> None:
        async with reading(servers) as consumer:
            following = by_iteration(consumer)
            before = sys.gettrace()
            sys.settrace(lambda *_: None)  # `await` then takes the way of plain iterators
            try:
                assert [await number(following) for _ in range(3)] == [3, 4, 5]
            finally:
                sys.settrace(before)

    run(main())


def test_a_subclass_sees_each_call_of_its_poll(servers: str) -> None:
    class Counting(AIOConsumer):
        polls = 0

        async def poll(self, timeout: float | None = -1) -> Message | None:
            self.polls += 1
            return await super().poll(timeout)

    async def main() -> None:
        async with Counting({"bootstrap.servers": servers, "group.id": "c"}) as consumer:
            await consumer.assign([TopicPartition("t", 0, 0)])
            read = 0
            async for _ in consumer:
                read += 1
                if read == 20:
                    break
            assert consumer.polls >= 20

    run(main())


def test_a_rebalance_callback_may_read_itself(servers: str) -> None:
    read: list[int | None] = []

    async def on_assign(consumer: AIOConsumer, partitions: list[TopicPartition]) -> None:
        await consumer.assign([TopicPartition("t", 0, 5)])
        message = await consumer.poll(10)
        read.append(message and message.offset())

    async def main() -> None:
        async with AIOConsumer({"bootstrap.servers": servers, "group.id": f"g{time.time_ns()}"}) as consumer:
            await consumer.subscribe(["t"], on_assign=on_assign)
            for _ in range(5):
                message = await consumer.poll(10)
                read.append(message and message.offset())

    run(main())
    assert read == [5, 6, 7, 8, 9, 10]
