"""What `close()` waits for, and who waits for it: threads, callbacks, tasks."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator

import confluent_kafka
import pytest

import headrace
from headrace import KafkaException, Producer, ProducerInterceptor
from headrace.aio import AIOProducer
from headrace.errors import ClientClosedError
from headrace.testing import EmbeddedBroker
from headrace.types.records import ProducerRecord

BOTH = pytest.mark.parametrize("kafka", [confluent_kafka, headrace], ids=["confluent_kafka", "headrace"])
PATIENCE_S = 10


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker(topics={"one": 1}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def conf(servers):
    return {"bootstrap.servers": servers, "logger": logging.Logger("quiet", logging.CRITICAL)}


class Call:
    """A call in another thread."""

    def __init__(self, function, *arguments):
        self.answers = []
        self._thread = threading.Thread(target=lambda: self.answers.append(function(*arguments)), daemon=True)
        self._thread.start()

    @property
    def waits(self):
        return self._thread.is_alive()

    def answer(self):
        self._thread.join(PATIENCE_S)
        assert not self.waits
        return self.answers[0]


class Gate:
    """A delivery callback that is in no hurry."""

    def __init__(self):
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, error, message):
        self.entered.set()
        assert self.opened.wait(PATIENCE_S)


@BOTH
def test_who_polls_without_an_end_is_let_go_when_another_thread_closes(kafka, conf):
    producer = kafka.Producer(conf)
    polling = Call(producer.poll, -1)
    time.sleep(0.1)
    assert polling.waits
    assert producer.close() is True
    assert polling.answer() == 0


@BOTH
def test_close_ends_when_no_callback_runs_any_more_and_everybody_who_closes_waits(kafka, conf):
    producer, gate = kafka.Producer(conf), Gate()
    producer.produce("one", b"v", on_delivery=gate)
    polling = Call(producer.poll, PATIENCE_S)
    assert gate.entered.wait(PATIENCE_S)
    closing = [Call(producer.close) for _ in range(3)]
    time.sleep(0.2)
    assert all(call.waits for call in closing)
    gate.opened.set()
    assert [call.answer() for call in closing] == [True] * 3
    assert polling.answer() == 1


def test_callbacks_that_close_waits_for_may_produce_and_nobody_else(conf):
    producer, gate, told = Producer(conf), Gate(), []

    def again(error, message):
        gate(error, message)
        producer.produce("one", b"last", on_delivery=lambda error, message: told.append((error, message.value())))
        producer.poll(0)

    producer.produce("one", b"first", on_delivery=again)
    closing = Call(producer.close)
    assert gate.entered.wait(PATIENCE_S)
    with pytest.raises(ClientClosedError):
        producer.produce("one", b"late")
    gate.opened.set()
    assert closing.answer() is True
    assert told == [(None, b"last")]


def test_what_is_open_when_a_transactional_producer_is_closed_takes_no_records_from_callbacks_either(conf):
    producer, refused = Producer({**conf, "transactional.id": "closing"}), []
    producer.init_transactions()
    producer.begin_transaction()

    def again(error, message):
        try:
            producer.produce("one", b"late")
        except KafkaException as late:
            refused.append(late)

    producer.produce("one", b"v", on_delivery=again)
    producer.close()
    assert [type(error) for error in refused] == [ClientClosedError]


def test_callbacks_of_two_threads_that_both_close_do_not_wait_for_each_other(conf):
    producer, meeting, closed = Producer(conf), threading.Barrier(2), []

    def close(error, message):
        meeting.wait(PATIENCE_S)
        closed.append(producer.close())

    for _ in range(2):
        producer.produce("one", b"v", on_delivery=close)
    polling = [Call(producer.poll, PATIENCE_S) for _ in range(2)]
    for call in polling:
        call.answer()
    assert closed == [True, True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_while_a_thread_closes_waits_for_nobody(conf):
    producer, gate = Producer(conf), Gate()
    producer.produce("one", b"v", on_delivery=gate)
    closing = Call(producer.close)
    assert gate.entered.wait(PATIENCE_S)
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE_S)
        os._exit(0 if producer.close() is True else 1)
    gate.opened.set()
    assert os.waitpid(child, 0)[1] == 0
    assert closing.answer() is True


def test_a_callback_of_send_cannot_wait_for_what_only_its_own_thread_can_bring(conf):
    with Producer(conf) as producer:
        refused = []

        def callback(metadata, error):
            for wait in (producer.flush, producer.close, producer.poll):
                try:
                    wait()
                except RuntimeError as raised:
                    refused.append(str(raised).partition(" ")[0])
            producer.poll(0)

        producer.send(ProducerRecord("one", b"v"), callback).result(PATIENCE_S)
        assert refused == ["flush()", "close()", "poll()"]
        producer.produce("one", b"v")
        assert producer.flush(PATIENCE_S) == 0


def test_a_callback_of_send_may_close_what_is_being_closed(conf):
    producer, closed = Producer({**conf, "linger.ms": 100}), []
    producer.send(ProducerRecord("one", b"v"), lambda metadata, error: closed.append(producer.close()))
    assert producer.close() is True
    assert closed == [True]


# asyncio


def test_a_task_that_polls_without_an_end_is_let_go_by_close(conf):
    async def main():
        producer = AIOProducer(conf)
        await (await producer.produce("one", b"v"))
        await producer.poll(0)
        polling = asyncio.create_task(producer.poll(-1))
        await asyncio.sleep(0.05)
        assert not polling.done()
        await producer.close()
        assert await asyncio.wait_for(polling, PATIENCE_S) == 0

    asyncio.run(main())


def test_every_task_that_closes_waits_until_all_is_delivered_and_the_interceptors_are_closed_after_it(conf):
    log = []

    class Interceptor(ProducerInterceptor):
        def on_acknowledgement(self, metadata, error):
            log.append("acknowledged")

        def close(self):
            log.append("closed")

    async def main():
        producer = AIOProducer({**conf, "linger.ms": 50, "interceptor.classes": [Interceptor()]})
        delivered = await producer.produce("one", b"v")
        await asyncio.gather(producer.close(), producer.close())
        assert delivered.done()
        assert log == ["acknowledged", "closed"]
        await producer.close()

    asyncio.run(main())


def test_callbacks_may_be_coroutine_functions_and_call_the_producer(conf):
    delivered, statistics, made, begun = [], [], [], []

    async def stats_cb(text):
        statistics.append(text)
        if len(delivered) == 2 and not begun:
            begun.append(text)
            message = await (await made[0].produce("one", b"from a callback"))
            await made[0].flush()
            delivered.append(message.value())

    async def on_delivery(error, message):
        await asyncio.sleep(0)
        delivered.append((error, message.value()))

    async def on_sent(metadata, error):
        await asyncio.sleep(0)
        delivered.append(metadata.topic)

    async def main():
        made.append(producer := AIOProducer({**conf, "stats_cb": stats_cb, "statistics.interval.ms": 50}))
        await (await producer.produce("one", b"v", on_delivery=on_delivery))
        await (await producer.send(ProducerRecord("one", b"v"), on_sent))
        deadline = time.monotonic() + PATIENCE_S
        while (len(statistics) < 3 or len(delivered) < 3) and time.monotonic() < deadline:
            await producer.poll(0.1)
        await producer.close()

    asyncio.run(main())
    assert delivered == [(None, b"v"), "one", b"from a callback"]
    assert len(statistics) >= 3


@pytest.mark.parametrize("name", ["on_delivery", "dr_cb"])
def test_the_configured_delivery_callback_may_be_a_coroutine_function_too(conf, name):
    delivered = []

    async def on_delivery(error, message):
        await asyncio.sleep(0)
        delivered.append((error, message.value()))

    async def main():
        async with AIOProducer({**conf, name: on_delivery}) as producer:
            await (await producer.produce("one", b"v"))
            await asyncio.sleep(0.05)

    asyncio.run(main())
    assert delivered == [(None, b"v")]


def test_what_a_coroutine_of_a_callback_raises_reaches_the_loops_exception_handler(conf):
    async def on_delivery(error, message):
        raise ValueError("mine")

    async def main():
        raised = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context["exception"]))
        async with AIOProducer(conf) as producer:
            await (await producer.produce("one", b"v", on_delivery=on_delivery))
            await asyncio.sleep(0)
        assert [str(error) for error in raised] == ["mine"]

    asyncio.run(main())
