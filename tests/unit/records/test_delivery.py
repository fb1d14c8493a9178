"""What asyncio's producer gives back for a record: something that is a future as soon as somebody looks."""

from __future__ import annotations

import asyncio
import gc
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.records import ProduceResult

LOST = KafkaError(KafkaError._MSG_TIMED_OUT)


def new_future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


class Sent:
    """A batch whose records have deliveries."""

    def __init__(self, twin: Any, count: int = 4) -> None:
        self.deliveries = [twin.DeliveryFuture(new_future) for _ in range(count)]
        buffer = twin.RecordAccumulator("topic", 2, twin.BufferPool(0, 10**9))
        for number, delivery in enumerate(self.deliveries):
            buffer.append(b"v%d" % number, b"k" * number or None, 1, 100 + number, [("h", b"x")], delivery)
        self.opened = buffer.ready(math.inf)[0]
        self.opened.seal()
        self.unheard: list[KafkaError] = []

    def settle(self, error: KafkaError | None = None, base_offset: int = 50, stamp: tuple[int, int] = (1, -1)) -> None:
        fate = ProduceResult(base_offset, *stamp, error, time.monotonic() + 1, self.unheard.append)
        self.opened.settle(fate)

    def forget(self) -> None:
        del self.opened, self.deliveries
        gc.collect()


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.wait_for(body(), 10)
    asyncio.run(main())


def test_a_delivery_gives_its_message_whether_it_is_asked_before_or_after(twin: Any) -> None:
    async def body() -> None:
        sent = Sent(twin)
        early = asyncio.ensure_future(sent.deliveries[2])
        waiting = asyncio.create_task(asyncio.wait_for(sent.deliveries[1], 5))
        await asyncio.sleep(0)
        assert not any(delivery.done() for delivery in sent.deliveries)
        sent.settle()
        assert all(delivery.done() for delivery in sent.deliveries)
        assert ((await early).offset(), (await waiting).offset()) == (52, 51)
        message = await sent.deliveries[3]
        assert (message.topic(), message.partition(), message.offset()) == ("topic", 1, 53)
        assert (message.key(), message.value(), message.headers()) == (b"kkk", b"v3", [("h", b"x")])
        assert message.timestamp() == (1, 103)
        assert 1 <= message.latency() < 5
        assert sent.deliveries[0].result().value() == b"v0"
        assert [await delivery for delivery in reversed(sent.deliveries)] == [
            delivery.result() for delivery in reversed(sent.deliveries)]
    run(body)


def test_a_delivery_goes_where_asyncio_takes_a_future(twin: Any) -> None:
    async def body() -> None:
        sent = Sent(twin, 6)
        gathered = asyncio.gather(*sent.deliveries[:3])
        first_of = asyncio.create_task(asyncio.wait(sent.deliveries[3:5]))  # type: ignore[type-var]
        shielded = asyncio.shield(sent.deliveries[5])
        in_turn = asyncio.as_completed(sent.deliveries[:3])
        await asyncio.sleep(0)
        sent.settle()
        assert [message.offset() for message in await gathered] == [50, 51, 52]
        assert await first_of == ({sent.deliveries[3], sent.deliveries[4]}, set())
        assert (await shielded).offset() == 55
        assert sorted([(await one).offset() for one in in_turn]) == [50, 51, 52]
        assert sent.deliveries[0].get_loop() is asyncio.get_running_loop()
        assert asyncio.isfuture(sent.deliveries[0])
    run(body)


def test_callbacks_are_called_with_the_delivery_and_can_be_taken_back(twin: Any) -> None:
    async def body() -> None:
        sent, told = Sent(twin), []
        one, other = sent.deliveries[:2]
        one.add_done_callback(told.append)
        other.add_done_callback(told.append)
        assert (other.remove_done_callback(told.append), other.remove_done_callback(told.append)) == (1, 0)
        sent.settle()
        one.add_done_callback(told.append)
        await asyncio.sleep(0)
        assert told == [one, one]
        assert one.exception() is None
    run(body)


def test_a_record_that_was_not_delivered_raises_from_its_delivery(twin: Any) -> None:
    async def body() -> None:
        sent = Sent(twin)
        early = asyncio.ensure_future(sent.deliveries[0])
        sent.settle(LOST)
        for ask in (early, sent.deliveries[0], sent.deliveries[1]):
            with pytest.raises(KafkaException) as raised:
                await ask
            assert raised.value.error == LOST
        with pytest.raises(KafkaException):
            sent.deliveries[2].result()
        assert isinstance(sent.deliveries[3].exception(), KafkaException)
        sent.forget()
        assert sent.unheard == []
    run(body)


@pytest.mark.parametrize("kept", [True, False])
def test_an_error_that_nobody_asks_for_is_told_once_for_the_batch(twin: Any, kept: bool) -> None:
    async def body() -> None:
        sent = Sent(twin)
        if not kept:
            sent.deliveries.clear()
        sent.settle(LOST)
        assert sent.unheard == []
        sent.forget()
        assert sent.unheard == [LOST]
    run(body)


def test_a_cancelled_delivery_stays_cancelled_and_its_record_goes_on(twin: Any) -> None:
    async def body() -> None:
        sent = Sent(twin)
        one = sent.deliveries[0]
        assert one.cancel()
        assert (one.done(), one.cancelled()) == (True, True)
        sent.settle()
        with pytest.raises(asyncio.CancelledError):
            await one
        assert (await sent.deliveries[1]).offset() == 51
    run(body)


def test_the_result_of_a_delivery_that_is_not_done_is_an_error(twin: Any) -> None:
    async def body() -> None:
        with pytest.raises(asyncio.InvalidStateError):
            Sent(twin).deliveries[0].result()
    run(body)


def test_deliveries_have_the_brokers_time_and_no_offset_where_it_is_not_known(twin: Any) -> None:
    async def body() -> None:
        sent = Sent(twin)
        sent.settle(base_offset=-1, stamp=(2, 7777))
        message = await sent.deliveries[1]
        assert (message.offset(), message.timestamp()) == (None, (2, 7777))
    run(body)


def test_other_callbacks_of_a_batch_are_left_where_they_are(twin: Any) -> None:
    async def body() -> None:
        buffer = twin.RecordAccumulator("topic", 1, twin.BufferPool(0, 10**9))
        delivery = twin.DeliveryFuture(new_future)
        for callback in (None, delivery, "theirs"):
            buffer.append(b"x", callback=callback)
        opened = buffer.ready(math.inf)[0]
        assert (opened.has_deliveries, opened.reports) == (True, [None, None, "theirs"])
        opened.settle(ProduceResult(5, 1, -1, None, 0.0, print))
        assert [(callback, message.offset()) for callback, message in opened.messages(5, 1, -1, None, 0.0)] == [
            ("theirs", 7)]
        assert (await delivery).offset() == 6
    run(body)


def test_a_delivery_follows_its_record_into_a_part_of_its_batch(twin: Any) -> None:
    async def body() -> None:
        sent = Sent(twin)
        parts = sent.opened.split([0, 1, 0, 1])
        for offset, part in zip((10, 20), parts, strict=True):
            part.settle(ProduceResult(offset, 1, -1, None, time.monotonic(), print))
        assert [(await delivery).offset() for delivery in sent.deliveries] == [10, 20, 11, 21]
        assert [(await delivery).value() for delivery in sent.deliveries] == [b"v0", b"v1", b"v2", b"v3"]
    run(body)


def test_who_waits_for_a_delivery_is_told_also_when_its_batch_is_divided_twice(twin: Any) -> None:
    async def body() -> None:
        sent = Sent(twin)
        cost = sent.opened.cost_bytes
        waiting = [asyncio.ensure_future(delivery) for delivery in sent.deliveries[:3]]
        left, right = sent.opened.split([0, 0, 1, 0])
        parts = [*left.split([1, 0, 0]), right]
        assert sum(part.cost_bytes for part in parts) == cost
        assert not any(future.done() for future in waiting)
        for offset, part in zip((10, 20, 30), parts, strict=True):
            error = None if offset < 30 else LOST
            part.settle(ProduceResult(offset, 1, -1, error, time.monotonic(), sent.unheard.append))
        assert [(await future).offset() for future in waiting[:2]] == [20, 10]
        with pytest.raises(KafkaException):
            await waiting[2]
        assert (await sent.deliveries[3]).offset() == 11
        del parts, left, right, waiting
        sent.forget()
        assert sent.unheard == []
    run(body)


def test_a_delivery_that_nobody_keeps_is_gone_at_once_and_its_batch_is_settled_all_the_same(twin: Any) -> None:
    async def body() -> None:
        buffer = twin.RecordAccumulator("topic", 1, twin.BufferPool(0, 10**9))
        kept = twin.DeliveryFuture(new_future)
        for callback in (twin.DeliveryFuture(new_future), kept):
            buffer.append(b"x", callback=callback)
        del callback
        opened = buffer.ready(math.inf)[0]
        opened.settle(ProduceResult(5, 1, -1, None, 0.0, print))
        assert (await kept).offset() == 6
    run(body)


class ProduceFastPath:
    """An `AIOProduceFastPath` and what it was seen to do."""

    def __init__(self, twin: Any, **how: Any) -> None:
        self.budget = twin.BufferPool(how.pop("messages", 0), 10**9)
        self.buffer = twin.RecordAccumulator("topic", 1, self.budget, **how)
        self.wakes = 0
        self.others: list[tuple[Any, ...]] = []
        self.produce = twin.AIOProduceFastPath({"topic": self.buffer}, self._otherwise, self._wake, new_future,
                                       lambda: asyncio.sleep(0)).produce

    def _wake(self) -> None:
        self.wakes += 1

    async def _otherwise(self, *arguments: Any) -> str:
        self.others.append(arguments)
        return "other"


def test_produce_leaves_to_the_other_way_what_is_unusual(twin: Any) -> None:
    async def body() -> None:
        intake = ProduceFastPath(twin, messages=2)
        assert not isinstance(await intake.produce("topic", b"v", key=b"k"), str)
        assert intake.wakes == 1
        assert await intake.produce("unknown", b"v") == "other"
        assert await intake.produce("topic", b"v", on_delivery=print) == "other"
        assert not isinstance(await intake.produce("topic", value="text", headers={"h": b"x"}, timestamp=5), str)
        assert await intake.produce("topic", b"full", partition=0, timestamp=7, headers={"a": b"b"}) == "other"
        assert intake.others == [
            ("unknown", b"v", None, -1, None, 0, None),
            ("topic", b"v", None, -1, print, 0, None),
            ("topic", b"full", None, 0, None, 7, {"a": b"b"}),
        ]
    run(body)


def test_the_loop_has_a_turn_when_a_batch_is_full_and_none_before(twin: Any) -> None:
    async def body() -> None:
        intake, turns = ProduceFastPath(twin, batch_count=3), []
        asyncio.get_running_loop().call_soon(turns.append, "turn")
        for _ in range(2):
            await intake.produce("topic", b"v")
        assert turns == []
        await intake.produce("topic", b"v")
        assert turns == ["turn"]
        assert len(intake.buffer.ready()) == 1
    run(body)


def test_produce_can_be_made_a_task(twin: Any) -> None:
    async def body() -> None:
        intake = ProduceFastPath(twin)
        deliveries = await asyncio.gather(*[asyncio.create_task(intake.produce("topic", b"v")) for _ in range(3)])
        opened = intake.buffer.ready(math.inf)[0]
        opened.settle(ProduceResult(0, 1, -1, None, 0.0, print))
        assert [delivery.result().offset() for delivery in deliveries] == [0, 1, 2]
    run(body)


def test_what_produce_gives_is_a_coroutine_that_is_awaited_once(twin: Any) -> None:
    async def body() -> None:
        intake = ProduceFastPath(twin)
        accepted = intake.produce("topic", b"v")
        assert asyncio.iscoroutine(accepted)
        assert len(intake.buffer.ready(math.inf)) == 1  # it was appended by the call
        assert isinstance(await accepted, twin.DeliveryFuture)
        with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
            await accepted
        with pytest.raises(StopIteration) as returned:
            intake.produce("topic", b"v").send(None)
        assert isinstance(returned.value.value, twin.DeliveryFuture)
        with pytest.raises(StopIteration) as returned:
            next(iter(intake.produce("topic", b"v").__await__()))
        assert isinstance(returned.value.value, twin.DeliveryFuture)
        thrown = intake.produce("topic", b"v")
        with pytest.raises(KeyError):
            thrown.throw(KeyError("k"))
        thrown.close()
        with pytest.raises(RuntimeError):
            thrown.send(None)
    run(body)


def test_a_record_that_is_refused_is_left_to_the_other_way_and_the_others_are_taken(twin: Any) -> None:
    async def body() -> None:
        intake = ProduceFastPath(twin, message_bytes=10)
        calls = [intake.produce("topic", value) for value in (b"v", b"v" * 100, 5.5, b"v")]
        assert (await asyncio.gather(*calls))[1:3] == ["other", "other"]
        assert intake.others == [("topic", value, None, -1, None, 0, None) for value in (b"v" * 100, 5.5)]
        assert intake.buffer.ready(math.inf)[0].count == 2
    run(body)


def test_a_task_that_awaits_an_accepted_record_can_be_cancelled(twin: Any) -> None:
    async def body() -> None:
        task = asyncio.create_task(ProduceFastPath(twin).produce("topic", b"v"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    run(body)


# A wait that is hardly longer than it takes to wake up

def test_a_watch_ends_when_it_is_told(twin: Any) -> None:
    watch, happened = twin.SpinWait(), threading.Event()

    def tell() -> None:
        time.sleep(0.05)
        happened.set()
        watch.tell()

    teller = threading.Thread(target=tell)
    teller.start()
    began = time.monotonic()
    while not happened.is_set() and time.monotonic() < began + 10:
        watch.wait(happened.is_set, 10)
    assert 0.04 < time.monotonic() - began < 5
    teller.join()


def test_a_watch_ends_in_time_when_nothing_happens(twin: Any) -> None:
    watch = twin.SpinWait()
    began = time.monotonic()
    watch.wait(lambda: False, 0.03)
    assert 0.02 < time.monotonic() - began < 5
    watch.tell()  # nobody watches any more: it does not wait either


def test_a_watch_does_not_begin_when_it_has_happened(twin: Any) -> None:
    began = time.monotonic()
    twin.SpinWait().wait(lambda: True, 10)
    assert time.monotonic() - began < 5


def test_other_threads_run_while_one_watches(twin: Any) -> None:
    watch, counted = twin.SpinWait(), 0
    watcher = threading.Thread(target=watch.wait, args=(lambda: False, 0.2))
    watcher.start()
    while watcher.is_alive():
        counted += 1
    assert counted > 1_000


def test_what_the_question_of_a_watch_raises_ends_it(twin: Any) -> None:
    watch = twin.SpinWait()
    with pytest.raises(ZeroDivisionError):
        watch.wait(lambda: 1 // 0, 10)
    began = time.monotonic()
    watch.tell()
    assert time.monotonic() - began < 5
