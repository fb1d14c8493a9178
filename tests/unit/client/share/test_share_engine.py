"""What a share consumer does with records that are there, without a broker: decoding, gaps, damage, words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from headrace.client.application_callbacks import ApplicationCallbacks
from headrace.client.share.polled_messages import Messages
from headrace.client.share.share_engine import ShareEngine
from headrace.client.waits import LoopWaits
from headrace.errors import ConcurrentModificationException, IllegalStateException, KafkaError, KafkaException
from headrace.machines.share.acknowledgements import GAP, RELEASE, Acknowledged, Acknowledgements
from headrace.machines.share.share_fetcher import AcquiredBatch, Demand, ShareFailure
from headrace.machines.share.share_session import ShareSession
from headrace.records import BatchBuilder, set_base_offset
from headrace.types.records import TopicPartition
from headrace.types.share import AcknowledgeType

ACCEPT, _, REJECT, RENEW = AcknowledgeType
Given = list[tuple[dict[int, int], list[tuple[int, int, int]]]]


class Face:
    """Takes the place of a consumer."""


class Bench:
    """An engine whose broker is not there, with records put into its queue."""

    def __init__(self, **properties: Any) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self.now = 100.0
        self.face, self.waits = Face(), LoopWaits()
        self.callbacks = ApplicationCallbacks(self.face)
        self.engine = ShareEngine({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "error_cb": print, **named},
                                  self.callbacks, self.waits.notify, awaits=True, clock=lambda: self.now)
        self.fetcher, self.session = self.engine.machines.fetcher, ShareSession(1)
        self.given: Given = []
        self.fetcher.acknowledge = self.take  # type: ignore[method-assign,assignment]
        self.engine.machines.group.topics = ("t",)

    def take(self, acknowledgements: list[Acknowledgements]) -> None:
        self.given += [(dict(each.types), list(each.runs)) for each in acknowledgements]

    def put(self, *ranges: tuple[int, int, int], records: range = range(10), topic: str = "t", until: float = 999.0,
            damaged: bool = False) -> AcquiredBatch:
        builder = BatchBuilder(1 << 20, 1 << 20)
        for number in records:
            builder.append(1000, None, str(number).encode())
        data = bytearray(builder.seal(0).data)
        set_base_offset(data, records[0], 0)
        if damaged:
            data[-1] ^= 1
        batch = AcquiredBatch((topic, 0), UUID(int=1), self.session, list(ranges), bytes(data), until)
        self.fetcher.queue.append(batch)
        return batch

    async def poll(self) -> Messages:
        return await self.waits.run(self.engine.poll(0))

    async def offsets(self) -> list[Any]:
        return [message.offset() for message in await self.poll()]

    async def next(self) -> list[Any]:
        self.engine.want_one()
        return await self.offsets()


def on_bench(test: Callable[[Bench], Coroutine[Any, Any, None]], **properties: Any) -> None:
    """Run a test of an engine on a loop, and close the engine."""
    async def run() -> None:
        bench = Bench(**properties)
        try:
            await test(bench)
        finally:
            bench.engine.machines.group.topics = ()
            await bench.waits.run(bench.engine.close())

    asyncio.run(run())


def test_records_that_are_held_are_handed_out_with_their_delivery_counts() -> None:
    async def test(bench: Bench) -> None:
        bench.put((2, 4, 1), (7, 7, 3))
        messages = await bench.poll()
        assert [(m.topic(), m.partition(), m.offset(), m.value(), m.delivery_count()) for m in messages] == [
            ("t", 0, 2, b"2", 1), ("t", 0, 3, b"3", 1), ("t", 0, 4, b"4", 1), ("t", 0, 7, b"7", 3)]
        assert bench.given == []

    on_bench(test)


def test_the_next_poll_accepts_them() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 1, 1))
        await bench.poll()
        assert await bench.offsets() == []
        assert bench.given == [({0: ACCEPT, 1: ACCEPT}, [])]

    on_bench(test)


def test_offsets_without_a_record_are_given_back_as_gaps() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 3, 1), (8, 14, 1), records=range(10))
        assert await bench.offsets() == [0, 1, 2, 3, 8, 9]
        assert bench.given == [({}, [(10, 14, GAP)])]

    on_bench(test)


def test_what_is_held_is_handed_out_at_once_as_its_locks_are_running() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 9, 1), records=range(10))
        bench.put((10, 12, 1), records=range(10, 13))
        assert await bench.offsets() == [*range(13)]

    on_bench(test, max_poll_records=4)


def test_a_large_batch_is_handed_out_in_parts_where_the_limit_is_strict() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 11, 1), records=range(10))
        assert [await bench.offsets() for _ in range(4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], []]
        assert [types for types, _ in bench.given if types] == [
            dict.fromkeys(part, ACCEPT) for part in (range(4), range(4, 8), range(8, 10))]
        assert [runs for _, runs in bench.given if runs] == [[(10, 11, GAP)]]

    on_bench(test, max_poll_records=4, share_acquire_mode="record_limit")


def test_a_loop_that_is_left_has_accepted_what_it_saw_and_the_rest_comes_next() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 4, 1), records=range(5))
        bench.put((5, 6, 1), records=range(5, 7))
        assert [await bench.next() for _ in range(2)] == [[0], [1]]
        assert bench.given == [], "a batch is settled as a whole"
        assert await bench.offsets() == [2, 3, 4, 5, 6]
        assert bench.given == [({0: ACCEPT, 1: ACCEPT}, [])]

    on_bench(test)


def test_a_loop_settles_batch_by_batch_and_a_commit_within_one_what_was_seen() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 1, 1), records=range(2))
        bench.put((2, 4, 1), records=range(2, 5))
        assert [await bench.next() for _ in range(3)] == [[0], [1], [2]]
        assert bench.given == [({0: ACCEPT, 1: ACCEPT}, [])]
        await bench.waits.run(bench.engine.commit_async())
        assert bench.given[1:] == [({2: ACCEPT}, [])]
        assert [await bench.next() for _ in range(3)] == [[3], [4], []]
        assert bench.given[2:] == [({3: ACCEPT, 4: ACCEPT}, [])]

    on_bench(test)


@pytest.mark.parametrize(("mode", "word"), [("implicit", ACCEPT), ("explicit", REJECT)])
def test_a_slow_loop_settles_what_it_has_seen_before_the_locks_of_its_batch_are_over(mode: str, word: int) -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 4, 1), records=range(5))
        for number in range(4):
            assert await bench.next() == [number]
            if mode == "explicit":
                bench.engine.acknowledge_offset("t", 0, number, word)
            bench.now += 0.6
        assert bench.given == [({0: word, 1: word}, [])]

    on_bench(test, share_acknowledgement_mode=mode)


def test_who_leaves_a_loop_owes_a_word_for_what_it_saw_alone() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 4, 1), records=range(5))
        await bench.next()
        with pytest.raises(IllegalStateException, match=r"^1 records"):
            await bench.poll()
        bench.engine.acknowledge_offset("t", 0, 0, REJECT)
        assert await bench.offsets() == [1, 2, 3, 4]

    on_bench(test, share_acknowledgement_mode="explicit")


def test_a_loop_that_is_interrupted_lets_others_have_what_it_did_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 3, 1), records=range(4))
        await bench.next()
        with monkeypatch.context() as patch:
            patch.setattr(bench.engine, "_hold", interrupted)
            with pytest.raises(KeyboardInterrupt):
                await bench.next()
        assert await bench.offsets() == []
        assert [runs for _, runs in bench.given if runs] == [[(1, 3, RELEASE)]]

    on_bench(test)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_damage_is_told_and_what_lies_behind_it_is_released() -> None:
    async def test(bench: Bench) -> None:
        bench.put((2, 5, 1), damaged=True)
        bench.put((20, 21, 1), records=range(20, 22))
        broken, *rest = await bench.poll()
        assert broken.error().code() == KafkaError.INVALID_MSG  # type: ignore[union-attr]
        assert (broken.topic(), broken.partition(), broken.offset()) == ("t", 0, 2)
        assert [message.offset() for message in rest] == [20, 21]
        assert bench.given == [({}, [(2, 5, RELEASE)])]

    on_bench(test)


def test_records_that_others_may_have_by_now_are_not_handed_out() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 1, 1), until=bench.now)
        bench.put((2, 3, 1))
        bench.session.end()
        bench.session = ShareSession(1)
        bench.put((4, 5, 1))
        assert await bench.offsets() == [4, 5]
        assert bench.given == []

    on_bench(test)


def test_of_a_batch_whose_topic_is_given_up_midway_only_the_rest_is_released() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 1, 1), (3, 4, 1), (7, 8, 1))
        assert await bench.offsets() == [0, 1, 3]
        bench.engine.machines.group.topics = ("other",)
        assert await bench.offsets() == []
        assert [runs for _, runs in bench.given if runs] == [[(4, 4, RELEASE), (7, 8, RELEASE)]]

    on_bench(test, max_poll_records=3, share_acquire_mode="record_limit")


def test_records_of_a_topic_that_is_not_subscribed_any_more_are_released() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 1, 1), topic="gone")
        assert await bench.offsets() == []
        assert bench.given == [({}, [(0, 1, RELEASE)])]

    on_bench(test)


def test_errors_are_messages_and_need_no_word() -> None:
    async def test(bench: Bench) -> None:
        bench.fetcher.queue.append(ShareFailure(("t", 3), KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
        [message] = await bench.poll()
        assert message.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED  # type: ignore[union-attr]
        assert (message.topic(), message.partition()) == ("t", 3)
        assert await bench.offsets() == []

    on_bench(test, share_acknowledgement_mode="explicit")


def test_an_error_of_no_topic_is_raised_behind_the_records_that_came_before_it() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 1, 1))
        bench.fetcher.queue.append(ShareFailure(None, KafkaError(KafkaError._MAX_POLL_EXCEEDED)))
        bench.put((2, 2, 1))
        assert await bench.offsets() == [0, 1]
        with pytest.raises(KafkaException) as raised:
            await bench.poll()
        assert raised.value.args[0].code() == KafkaError._MAX_POLL_EXCEEDED
        assert await bench.offsets() == [2]
        assert bench.given == [({0: ACCEPT, 1: ACCEPT}, [])]

    on_bench(test)


def test_each_record_wants_a_word_where_words_are_explicit() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 2, 1))
        first, _, third = await bench.poll()
        bench.engine.acknowledge(first, ACCEPT)
        bench.engine.acknowledge(third, REJECT)
        with pytest.raises(IllegalStateException, match=r"^1 records from previous poll have not been acknowledged$"):
            await bench.poll()
        bench.engine.acknowledge_offset("t", 0, 1, RENEW)
        assert await bench.offsets() == []
        assert bench.given == [({0: ACCEPT, 2: REJECT, 1: RENEW}, [])]
        bench.engine.acknowledge_offset("t", 0, 1, ACCEPT)
        with pytest.raises(IllegalStateException, match=r"t\[0\]@0 is not held"):
            bench.engine.acknowledge(first, ACCEPT)

    on_bench(test, share_acknowledgement_mode="explicit")


def test_brokers_are_asked_while_the_application_waits_and_once_where_it_only_looks_in() -> None:
    async def test(bench: Bench) -> None:
        await bench.poll()
        assert bench.fetcher.demand is Demand.ONCE
        bench.fetcher.demand = Demand.NONE
        waiting = asyncio.create_task(bench.waits.run(bench.engine.poll(None)))
        await asyncio.sleep(0.01)
        assert bench.fetcher.demand is Demand.WAITING
        bench.fetcher.fetches += 1
        bench.put((0, 0, 1))
        bench.engine.machines.ready()
        assert len(await waiting) == 1
        assert bench.fetcher.demand is Demand.NONE

    on_bench(test)


def test_brokers_are_not_asked_while_records_are_taken() -> None:
    async def test(bench: Bench) -> None:
        seen: list[Demand] = []
        bench.fetcher.acknowledge = (  # type: ignore[method-assign]
            lambda acknowledgements: seen.append(bench.fetcher.demand))
        waiting = asyncio.create_task(bench.waits.run(bench.engine.poll(None)))
        await asyncio.sleep(0.01)
        bench.put((8, 14, 1))
        bench.engine.machines.ready()
        assert len(await waiting) == 2
        assert seen == [Demand.NONE]  # the gaps were told after the queue was emptied

    on_bench(test)


def test_brokers_without_share_groups_are_told_of_by_each_poll() -> None:
    async def test(bench: Bench) -> None:
        bench.engine.machines.group.failure = KafkaError(KafkaError._UNSUPPORTED_FEATURE, "none", fatal=True)
        for _ in range(2):
            with pytest.raises(KafkaException, match="none"):
                await bench.poll()

    on_bench(test)


def test_a_commit_waits_for_answers_and_the_callback_gets_them() -> None:
    answers: list[Any] = []

    async def answered(*answer: Any) -> None:
        answers.append(answer)

    async def test(bench: Bench) -> None:
        del bench.fetcher.acknowledge  # type: ignore[attr-defined]  # the machine's own
        bench.engine.set_callback(answered)
        bench.put((0, 1, 1))
        await bench.poll()
        found = await bench.waits.run(bench.engine.commit_sync(5))  # its session is none of the machine's
        [error] = found.values()
        assert isinstance(error, KafkaException)
        assert error.args[0].code() == KafkaError.SHARE_SESSION_NOT_FOUND
        assert list(found) == [TopicPartition("t", 0)]
        [(offsets, told)] = answers
        assert offsets == {TopicPartition("t", 0): {0, 1}}
        assert told.args[0].code() == KafkaError.SHARE_SESSION_NOT_FOUND
        assert await bench.waits.run(bench.engine.commit_sync(5)) == {}

    on_bench(test)


def test_a_commit_without_an_answer_says_so() -> None:
    async def test(bench: Bench) -> None:
        bench.put((0, 1, 1))
        await bench.poll()
        [error] = (await bench.waits.run(bench.engine.commit_sync(0))).values()
        assert isinstance(error, KafkaException)
        assert error.args[0].code() == KafkaError._TIMED_OUT

    on_bench(test)


def test_a_callback_cannot_call_the_consumer_and_what_it_raises_is_raised() -> None:
    async def test(bench: Bench) -> None:
        bench.engine.set_callback(lambda offsets, error: bench.engine.subscription())
        bench.engine.machines.on_acknowledged(("t", 0), frozenset({1}), None)
        with pytest.raises(IllegalStateException, match="cannot be called from its own callbacks"):
            await bench.poll()
        assert await bench.offsets() == []

    on_bench(test)


def test_another_thread_is_told_that_a_call_goes_on_also_while_a_callback_runs() -> None:
    async def test(bench: Bench) -> None:
        with ThreadPoolExecutor(1) as another:
            bench.engine.set_callback(lambda offsets, error: another.submit(bench.engine.subscription).result(10))
            bench.engine.machines.on_acknowledged(("t", 0), frozenset({1}), None)
            with pytest.raises(ConcurrentModificationException):
                await bench.poll()

    on_bench(test)


def test_gaps_are_not_told_to_the_callback() -> None:
    answers: list[Any] = []

    async def test(bench: Bench) -> None:
        bench.engine.set_callback(lambda *answer: answers.append(answer))
        bench.engine.machines.client.driver.listeners.clear()
        bench.engine.machines._on_event(Acknowledged(("t", 0), frozenset(), None))
        await bench.poll()
        assert answers == []

    on_bench(test)


def test_one_call_at_a_time() -> None:
    async def test(bench: Bench) -> None:
        waiting = asyncio.create_task(bench.waits.run(bench.engine.poll(None)))
        await asyncio.sleep(0.01)
        for call in (bench.engine.commit_sync(1), bench.engine.poll(0), bench.engine.close()):
            with pytest.raises(ConcurrentModificationException):
                await bench.waits.run(call)  # type: ignore[arg-type]
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await bench.offsets() == []

    on_bench(test)
