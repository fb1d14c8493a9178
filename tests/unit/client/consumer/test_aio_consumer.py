"""The asyncio consumer: the same names and behaviour as the blocking one, on the running loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.broker.faults import Action, Fault
from headrace.client.consumer.aio_consumer import AIOConsumer
from headrace.client.consumer.consumer import Consumer
from headrace.client.producer.producer import Producer
from headrace.errors import ClientClosedError, KafkaError, KafkaException
from headrace.testing import EmbeddedBroker
from headrace.types.records import OFFSET_BEGINNING, TopicPartition
from headrace.wire.messages.consumer.offsets import OffsetCommitRequest


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 2}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for i in range(10):
                producer.produce("t", value=b"%d" % i, partition=i % 2)
            assert producer.flush(10) == 0
        yield broker


def properties(broker: EmbeddedBroker, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50,
            **more}


def test_both_faces_have_the_same_methods_with_the_same_parameters() -> None:
    def methods(face: type) -> dict[str, list[tuple[str, Any]]]:
        return {
            name: [(p.name, p.default) for p in inspect.signature(member).parameters.values()]
            for name, member in inspect.getmembers(face, inspect.isfunction) if not name.startswith("_")
        }

    assert methods(AIOConsumer) == methods(Consumer)
    awaited = [getattr(AIOConsumer, name) for name in methods(AIOConsumer) if name != "wakeup"]  # from any thread
    assert all(inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method) for method in awaited)


def test_a_group_member_reads_commits_and_calls_coroutine_callbacks(broker: EmbeddedBroker) -> None:
    assigned: list[int] = []

    async def on_assign(member: AIOConsumer, partitions: list[TopicPartition]) -> None:
        await asyncio.sleep(0)
        assigned.extend(tp.partition for tp in partitions)

    async def main() -> None:
        async with AIOConsumer(properties(broker, **{"group.id": "aio"})) as member:
            await member.subscribe(["t"], on_assign=on_assign)
            messages = await member.consume(10, 10)
            assert [m.error() for m in messages] == [None] * 10
            result = await member.commit(asynchronous=False)
            assert result is not None
            assert {tp.offset for tp in result} == {5}

    asyncio.run(main())
    assert sorted(assigned) == [0, 1]


def test_async_for_gives_one_message_after_the_other(broker: EmbeddedBroker) -> None:
    async def main() -> list[bytes]:
        values = []
        async with AIOConsumer(properties(broker)) as reader:
            await reader.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
            async for message in reader:
                values.append(message.value())
                if len(values) == 5:
                    break
        return values

    assert asyncio.run(main()) == [b"0", b"2", b"4", b"6", b"8"]


@pytest.mark.parametrize("how", ["async for", "poll", "consume"])
def test_other_tasks_have_turns_while_records_are_there_and_each_takes_long(broker: EmbeddedBroker, how: str) -> None:
    """Or a member's heartbeats, and all else on its loop, would stand still for a whole batch, or for all of them."""
    async def main() -> None:
        async with AIOConsumer(properties(broker)) as reader:
            await reader.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
            assert await reader.poll(10) is not None  # the others of its batch are here
            turns: list[int] = []
            other = asyncio.create_task(_count_turns(turns))
            for _ in range(3):
                time.sleep(0.011)
                if how == "async for":
                    assert await anext(aiter(reader)) is not None
                elif how == "poll":
                    assert await reader.poll(10) is not None
                else:
                    assert await reader.consume(1, 10)
            assert len(turns) >= 3
            other.cancel()

    asyncio.run(main())


async def _count_turns(turns: list[int]) -> None:
    while True:
        turns.append(1)
        await asyncio.sleep(0)


def test_a_wait_can_be_cancelled_and_nothing_is_lost(broker: EmbeddedBroker) -> None:
    async def main() -> None:
        async with AIOConsumer(properties(broker)) as reader:
            await reader.assign([TopicPartition("t", 0, 1)])
            waiting = asyncio.create_task(reader.consume(100))
            await asyncio.sleep(0.3)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert [m.offset() for m in await reader.consume(4, 10)] == [1, 2, 3, 4]

    asyncio.run(main())


def test_two_tasks_that_read_at_once_share_what_comes_and_neither_is_forgotten(broker: EmbeddedBroker) -> None:
    async def main() -> None:
        async with AIOConsumer(properties(broker)) as reader:
            waiting = [asyncio.create_task(reader.consume(5, 10)) for _ in range(2)]
            await asyncio.sleep(0.05)
            await reader.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
            first, second = await asyncio.gather(*waiting)
            read = sorted((m.partition(), m.offset()) for m in first + second)
            assert read == [(partition, offset) for partition in range(2) for offset in range(5)]

    asyncio.run(main())


def test_questions_are_answered_together(broker: EmbeddedBroker) -> None:
    async def main() -> None:
        async with AIOConsumer(properties(broker, **{"group.id": "questions"})) as reader:
            watermarks, committed, topics = await asyncio.gather(
                reader.get_watermark_offsets(TopicPartition("t", 1), timeout=5),
                reader.committed([TopicPartition("t", 0)], timeout=5),
                reader.list_topics("t", timeout=5),
            )
        assert watermarks == (0, 5)
        assert committed[0].error is None
        assert len(topics.topics["t"].partitions) == 2

    asyncio.run(main())


def test_an_offset_of_a_partition_that_does_not_exist_is_refused_at_once_and_says_so(broker: EmbeddedBroker) -> None:
    async def main() -> KafkaError:
        async with AIOConsumer(properties(broker)) as reader:
            with pytest.raises(KafkaException) as raised:
                await reader.offsets_for_times([TopicPartition("nowhere", 0, 1)], timeout=30)
            [found, other] = await reader.offsets_for_times(
                [TopicPartition("t", 0, 0), TopicPartition("nowhere", 0, 1)], timeout=30)
            assert (found.error, other.error) == (None, raised.value.error.code()), "one that was found is no loss"
            return raised.value.error

    started = time.monotonic()
    error = asyncio.run(main())
    assert error == KafkaError._UNKNOWN_PARTITION
    assert time.monotonic() - started < 10
    assert "nowhere" in error.str()


def test_a_closed_consumer_says_so(broker: EmbeddedBroker) -> None:
    async def main() -> None:
        reader = AIOConsumer(properties(broker))
        await reader.close()
        await reader.close()
        with pytest.raises(ClientClosedError):
            await reader.poll(0)

    asyncio.run(main())


def test_a_commit_without_an_answer_ends_when_another_task_closes_the_consumer(broker: EmbeddedBroker) -> None:
    async def main() -> None:
        member = AIOConsumer(properties(broker, **{"group.id": "unanswered", "enable.auto.commit": False}))
        await member.assign([TopicPartition("t", 0, 0)])
        assert len(await member.consume(1, 10)) == 1
        asked: list[Any] = []
        broker.add_fault(Fault(action=Action.SILENCE, request=OffsetCommitRequest, effect=asked.append))
        try:
            committing = asyncio.create_task(member.commit(asynchronous=False))
            while not asked:
                await asyncio.sleep(0.01)
            await member.close()
            with pytest.raises(RuntimeError, match="Consumer closed") as caught:
                await asyncio.wait_for(committing, 5)
            assert caught.value.error == KafkaError._DESTROY
        finally:
            broker.clear_faults()

    asyncio.run(main())


def test_a_task_that_is_cancelled_in_a_callback_that_closes_the_consumer_ends(broker: EmbeddedBroker) -> None:
    asked: list[Any] = []

    async def on_revoke(member: AIOConsumer, partitions: list[TopicPartition]) -> None:
        await member.close()

    async def reads(member: AIOConsumer) -> None:
        while True:
            await member.poll(1)

    async def main() -> None:
        given = properties(broker, **{"group.id": "cancelled", "auto.commit.interval.ms": 0,
                                      "heartbeat.interval.ms": 100})
        member, other = AIOConsumer(given), AIOConsumer(given)
        await member.subscribe(["t"], on_revoke=on_revoke)
        assert await member.consume(3, 10)
        broker.add_fault(Fault(action=Action.SILENCE, request=OffsetCommitRequest, times=None, effect=asked.append))
        try:
            await other.subscribe(["t"])
            tasks = [asyncio.create_task(reads(each)) for each in (member, other)]
            while not asked:
                await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            done, late = await asyncio.wait(tasks, timeout=20)
            assert (len(done), len(late)) == (2, 0)
        finally:
            broker.clear_faults()
            await member.close()
            await other.close()

    asyncio.run(main())


@pytest.mark.parametrize("call", ["poll", "close"])
def test_a_call_on_another_loop_is_told_so_and_does_not_wait_for_ever(broker: EmbeddedBroker, call: str) -> None:
    async def main() -> None:
        async with AIOConsumer(properties(broker, **{"group.id": "loops"})) as consumer:
            async def elsewhere() -> None:
                await getattr(consumer, call)()

            with pytest.raises(RuntimeError, match="another event loop"):
                await asyncio.to_thread(asyncio.run, elsewhere())
            await consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
            message = await consumer.poll(60)
            assert message is not None
            assert message.value() == b"0"

    asyncio.run(main())
