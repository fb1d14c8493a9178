"""What asyncio's producer gives back for a record: something that is a future as soon as somebody looks."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace.buffers import ProduceResult
from headrace.errors import KafkaError, KafkaException

LOST = KafkaError(KafkaError._MSG_TIMED_OUT)


def new_future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


class Sent:
    """A batch whose records have deliveries."""

    def __init__(self, twin: Any, count: int = 4) -> None:
        self.deliveries = [twin.DeliveryFuture(new_future) for _ in range(count)]
        accumulator = twin.RecordAccumulator("topic", 2, twin.BufferPool(0, 10**9))
        for number, delivery in enumerate(self.deliveries):
            accumulator.append(b"v%d" % number, b"k" * number or None, 1, 100 + number, [("h", b"x")], delivery)
        self.opened = accumulator.open_batches.ready(math.inf)[0]
        self.opened.seal()
        self.on_unretrieved: list[KafkaError] = []

    def settle(self, error: KafkaError | None = None, base_offset: int = 50, stamp: tuple[int, int] = (1, -1)) -> None:
        result = ProduceResult(base_offset, *stamp, error, time.monotonic() + 1, self.on_unretrieved.append)
        self.opened.settle(result)

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
        assert sent.on_unretrieved == []
    run(body)


@pytest.mark.parametrize("kept", [True, False])
def test_an_error_that_nobody_asks_for_is_told_once_for_the_batch(twin: Any, kept: bool) -> None:
    async def body() -> None:
        sent = Sent(twin)
        if not kept:
            sent.deliveries.clear()
        sent.settle(LOST)
        assert sent.on_unretrieved == []
        sent.forget()
        assert sent.on_unretrieved == [LOST]
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
        accumulator = twin.RecordAccumulator("topic", 1, twin.BufferPool(0, 10**9))
        delivery = twin.DeliveryFuture(new_future)
        for callback in (None, delivery, "theirs"):
            accumulator.append(b"x", callback=callback)
        opened = accumulator.open_batches.ready(math.inf)[0]
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
            part.settle(ProduceResult(offset, 1, -1, error, time.monotonic(), sent.on_unretrieved.append))
        assert [(await future).offset() for future in waiting[:2]] == [20, 10]
        with pytest.raises(KafkaException):
            await waiting[2]
        assert (await sent.deliveries[3]).offset() == 11
        del parts, left, right, waiting
        sent.forget()
        assert sent.on_unretrieved == []
    run(body)


def test_a_delivery_that_nobody_keeps_is_gone_at_once_and_its_batch_is_settled_all_the_same(twin: Any) -> None:
    async def body() -> None:
        accumulator = twin.RecordAccumulator("topic", 1, twin.BufferPool(0, 10**9))
        kept = twin.DeliveryFuture(new_future)
        for callback in (twin.DeliveryFuture(new_future), kept):
            accumulator.append(b"x", callback=callback)
        del callback
        opened = accumulator.open_batches.ready(math.inf)[0]
        opened.settle(ProduceResult(5, 1, -1, None, 0.0, print))
        assert (await kept).offset() == 6
    run(body)
