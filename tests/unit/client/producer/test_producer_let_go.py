"""Producers that nobody holds any more and nobody has closed: they end, whatever still leads back to them."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace import EventsPollingOption, KafkaAsyncProducer, KafkaSyncProducer
from headrace.buffers import implementation
from headrace.client.consumer.aio_consumer import AIOConsumer
from headrace.client.producer.aio_producer import AIOProducer
from headrace.client.producer.producer import Producer
from headrace.client.producer.serializing_producers import SerializingProducer
from headrace.errors import KafkaError, KafkaException
from headrace.testing import EmbeddedBroker
from headrace.types.records import ProducerRecord, TopicPartition
from tests.support.let_go import SOON_S, aio_until, is_gone, until

AWAY = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        yield broker


@pytest.fixture
def conf(broker: EmbeddedBroker) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def on_the_loop(producer: Any) -> weakref.ref[Any]:
    """What the loop's timers, tasks and sockets lead to."""
    return weakref.ref(producer._engine.client.driver)


def unused(producer: Producer) -> None:
    pass


def flushed(producer: Producer) -> None:
    producer.produce("t", b"value")
    assert producer.flush(SOON_S) == 0


def produced(producer: Producer) -> None:
    producer.produce("t", b"value")
    producer.produce("u", b"value")
    producer.poll(0)


def polled(producer: Producer) -> None:
    for _ in range(20):  # the thread that polls takes replies by itself then
        producer.produce("t", b"value")
        until(lambda: producer.poll(0))
    assert producer.poll(0.01) == 0


@pytest.mark.parametrize("use", [unused, flushed, produced, polled])
@pytest.mark.parametrize("kind", [Producer, SerializingProducer])
def test_a_producer_that_is_let_go_leaves_nothing(kind: type[Producer], use: Callable[[Producer], None],
                                                  conf: dict[str, Any]) -> None:
    producer = kind({**conf, "on_delivery": lambda error, message: None})
    use(producer)
    gone, driver = weakref.ref(producer), on_the_loop(producer)
    gc.disable()
    try:
        del producer
        assert gone() is None, "nothing leads back to it: no collection is needed"
    finally:
        gc.enable()
    until(lambda: is_gone(driver))


@pytest.mark.parametrize("use", [unused, produced])
def test_a_producer_whose_brokers_are_away_is_gone_when_it_is_let_go(use: Callable[[Producer], None]) -> None:
    producer = Producer(AWAY)
    use(producer)
    driver = on_the_loop(producer)
    del producer
    until(lambda: is_gone(driver))


def test_records_that_wait_are_not_reported_when_their_producer_is_let_go(caplog: pytest.LogCaptureFixture) -> None:
    reports: list[Any] = []
    producer = Producer({**AWAY, "on_delivery": lambda *report: reports.append(report)})
    producer.produce("t", b"value")
    driver = on_the_loop(producer)
    del producer
    until(lambda: is_gone(driver))
    assert reports == []
    assert [each.message for each in caplog.records if "not confirmed yet (1)" in each.message]


@pytest.mark.parametrize("name", ["produce", "poll", "flush"])
def test_who_holds_a_method_of_a_producer_holds_the_producer(name: str, conf: dict[str, Any]) -> None:
    reports: list[Any] = []

    def used() -> tuple[weakref.ref[Any], Any, Any]:
        producer = Producer({**conf, "on_delivery": lambda error, message: reports.append(error)})
        producer.produce("t", b"first")
        return on_the_loop(producer), getattr(producer, name), producer.poll

    driver, method, poll = used()
    gc.collect()
    if name == "produce":
        method("t", b"second")
    expected = [None] * (1 + (name == "produce"))
    give_up_at = time.monotonic() + SOON_S
    while len(reports) < len(expected) and time.monotonic() < give_up_at:
        poll(0.01)
    assert reports == expected
    del method, poll
    until(lambda: is_gone(driver))


def test_a_call_on_a_producer_that_nobody_holds_is_done(conf: dict[str, Any]) -> None:
    assert Producer(conf).produce("t", b"value") is None
    assert Producer(conf).poll(0) == 0
    assert Producer(conf).flush() == 0


class Worker:
    """An application that owns a producer and gives it its own methods to call."""

    def __init__(self, conf: dict[str, Any], kind: Callable[[dict[str, Any]], Any] = Producer) -> None:
        self.count = 0
        self.producer = kind({**conf, "error_cb": self.told, "stats_cb": self.told, "throttle_cb": self.told,
                              "on_delivery": self.told, "statistics.interval.ms": 20})

    def told(self, *arguments: Any) -> None:
        self.count += 1


@pytest.mark.parametrize("brokers", ["there", "away"])
def test_callbacks_that_lead_back_to_a_producer_do_not_keep_it(brokers: str, conf: dict[str, Any]) -> None:
    def used() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        worker = Worker(conf if brokers == "there" else AWAY)
        if brokers == "there":
            flushed(worker.producer)
        until(lambda: (worker.producer.poll(0.02), worker.count > 3)[1])
        return weakref.ref(worker), on_the_loop(worker.producer)

    worker, driver = used()
    until(lambda: is_gone(worker))
    until(lambda: is_gone(driver))


@pytest.mark.skipif(implementation == "plain", reason="the collector sees the plain twin of what a client ends with")
def test_who_flushes_in_a_del_method_has_its_records_delivered_also_in_a_circle(conf: dict[str, Any]) -> None:
    reports: list[Any] = []

    class Owner:
        def __init__(self) -> None:
            self.producer = Producer({**conf, "linger.ms": 50, "error_cb": self.told})
            self.producer.produce("t", b"value", on_delivery=lambda error, message: reports.append(error))

        def told(self, error: KafkaError) -> None:
            pass

        def __del__(self) -> None:
            reports.append(self.producer.flush(SOON_S))

    Owner()
    gc.collect()
    assert reports == [None, 0]


@pytest.mark.parametrize("kind", [
    KafkaSyncProducer, KafkaAsyncProducer,
    lambda conf: KafkaAsyncProducer(conf, EventsPollingOption.MANUAL)], ids=["sync", "async", "manual"])
def test_callbacks_that_lead_back_to_a_kafka_producer_do_not_keep_it(kind: Any, conf: dict[str, Any]) -> None:
    kind(conf).close()  # the first client of all leaves the loop's thread
    threads = threading.active_count()

    def used() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        worker = Worker(conf, kind)
        worker.producer.flush(SOON_S)
        return weakref.ref(worker), on_the_loop(worker.producer._producer)

    worker, driver = used()
    until(lambda: is_gone(worker))
    until(lambda: is_gone(driver))
    until(lambda: threading.active_count() <= threads)


def test_the_callback_of_all_records_is_called_also_through_an_alias(conf: dict[str, Any]) -> None:
    reports: list[Any] = []
    with Producer({**conf, "dr_msg_cb": lambda error, message: reports.append((error, message.value()))}) as producer:
        producer.produce("t", b"value")
        assert producer.produce_batch("t", [{"value": b"other"}]) == 1
    assert reports == [(None, b"value"), (None, b"other")]


@pytest.mark.parametrize("kind", [KafkaSyncProducer, KafkaAsyncProducer])
def test_a_kafka_producer_that_is_let_go_delivers_what_waits_and_leaves_nothing(
    kind: Any, conf: dict[str, Any]
) -> None:
    acknowledged: list[Any] = []
    producer = kind(conf)
    driver = on_the_loop(producer._producer)
    if kind is KafkaAsyncProducer:
        producer.send(ProducerRecord("t", b"value"), lambda metadata, error: acknowledged.append(error))
    else:
        acknowledged.append(None if producer.send(ProducerRecord("t", b"value")).offset >= 0 else "not stored")
    del producer
    until(lambda: is_gone(driver))
    assert acknowledged == [None]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_that_lets_a_producer_go_leaves_the_parents_alone(conf: dict[str, Any]) -> None:
    producer = Producer(conf)
    flushed(producer)
    child = os.fork()
    if child == 0:
        del producer
        gc.collect()
        time.sleep(0.2)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    flushed(producer)
    producer.close()


@pytest.mark.parametrize("used", [False, True])
def test_an_asyncio_producer_that_is_let_go_leaves_nothing(used: bool, conf: dict[str, Any]) -> None:
    async def main() -> None:
        producer = AIOProducer(conf)
        driver = on_the_loop(producer)
        if used:
            for _ in range(3):
                assert (await (await producer.produce("t", b"value"))).error() is None
        gone = weakref.ref(producer)
        gc.disable()
        try:
            del producer
            assert gone() is None
        finally:
            gc.enable()
        await aio_until(lambda: is_gone(driver))
        await aio_until(lambda: asyncio.all_tasks() == {asyncio.current_task()})

    asyncio.run(main())


def test_records_of_an_asyncio_producer_that_is_let_go_are_delivered(conf: dict[str, Any]) -> None:
    async def main() -> None:
        waiting = [await (producer := AIOProducer({**conf, "linger.ms": 50})).produce("t", b"value")]
        waiting.append(await producer.produce("u", b"value"))
        driver = on_the_loop(producer)
        del producer
        gc.collect()
        async with asyncio.timeout(SOON_S):
            assert [(await delivery).error() for delivery in waiting] == [None, None]
        await aio_until(lambda: is_gone(driver))

    asyncio.run(main())


def test_records_of_an_asyncio_producer_that_is_let_go_fail_where_brokers_are_away() -> None:
    async def main() -> None:
        producer = AIOProducer({**AWAY, "message.timeout.ms": 50, "linger.ms": 0})
        waiting, driver = await producer.produce("t", b"value"), on_the_loop(producer)
        del producer
        gc.collect()
        async with asyncio.timeout(SOON_S):
            with pytest.raises(KafkaException) as caught:
                await waiting
        assert caught.value.args[0].code() == KafkaError._MSG_TIMED_OUT
        await aio_until(lambda: is_gone(driver))

    asyncio.run(main())


def test_an_open_transaction_of_an_asyncio_producer_that_is_let_go_is_aborted(conf: dict[str, Any]) -> None:
    async def main() -> None:
        producer = AIOProducer({**conf, "transactional.id": "let go"})
        await producer.init_transactions()
        await producer.begin_transaction()
        assert (await (await producer.produce("x", b"aborted"))).error() is None
        del producer
        gc.collect()
        async with AIOProducer(conf) as other, AIOConsumer({**conf, "group.id": "g"}) as reader:
            await (await other.produce("x", b"behind it"))
            await reader.assign([TopicPartition("x", 0, 0)])
            message = await reader.poll(SOON_S)
            assert message is not None, "a transaction that is open would hold it back"
            assert message.value() == b"behind it"

    asyncio.run(main())


def test_who_holds_the_produce_of_an_asyncio_producer_holds_the_producer(conf: dict[str, Any]) -> None:
    async def main() -> None:
        producer = AIOProducer(conf)
        driver = on_the_loop(producer)
        await (await producer.produce("t", b"value"))
        produce = producer.produce
        del producer
        gc.collect()
        for topic in ("t", "new"):
            assert (await (await produce(topic, b"value"))).error() is None
        del produce
        await aio_until(lambda: is_gone(driver))

    asyncio.run(main())


def test_callbacks_that_lead_back_to_an_asyncio_producer_do_not_keep_it(conf: dict[str, Any]) -> None:
    async def used() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        worker = Worker(conf, AIOProducer)
        assert (await (await worker.producer.produce("t", b"value"))).error() is None
        await aio_until(lambda: worker.count > 3)
        return weakref.ref(worker), on_the_loop(worker.producer)

    async def main() -> None:
        worker, driver = await used()
        await aio_until(lambda: is_gone(worker))
        await aio_until(lambda: is_gone(driver))

    asyncio.run(main())
