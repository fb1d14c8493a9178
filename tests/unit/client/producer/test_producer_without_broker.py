"""What a producer says and does when no broker answers: nothing hangs, nothing is lost silently."""

import asyncio
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from headrace.buffers import BufferPool
from headrace.client.producer.aio_producer import AIOProducer
from headrace.client.producer.producer import Producer
from headrace.client.producer.producer_calls import Backpressure
from headrace.errors import BufferFullError, ClientClosedError, ConfigError, KafkaError, KafkaException
from headrace.net.thread import FORKED


@pytest.fixture
def nobody():
    """An address where nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


@pytest.fixture
def producer(nobody):
    made = Producer({"bootstrap.servers": nobody, "error_cb": lambda error: None})
    yield made
    made.purge() if not made._engine.closed else None
    made.close()


def test_making_a_producer_does_not_need_a_broker(producer):
    assert len(producer) == 0
    assert producer


def test_an_unknown_property_is_refused_with_a_suggestion(nobody):
    with pytest.raises(ConfigError, match=r'linger\.mss.*Did you mean "linger\.ms"'):
        Producer({"bootstrap.servers": nobody, "linger.mss": 5})


def test_produce_returns_at_once_and_counts(producer):
    producer.produce("t", b"value")
    assert len(producer) == 1


def test_flush_returns_what_still_waits_when_its_time_is_over(producer):
    producer.produce("t", b"value")
    started = time.monotonic()
    assert producer.flush(0.2) == 1
    assert 0.15 < time.monotonic() - started < 20


def test_poll_returns_when_its_time_is_over(producer):
    started = time.monotonic()
    while producer.poll(0.1):  # the broken connection is reported first
        pass
    assert time.monotonic() - started < 20


def test_who_is_far_ahead_of_the_brokers_rests_for_four_fifths_of_the_time_at_most():
    buffer_pool, woken, here, moment = BufferPool(0, 1 << 40), [], [], [100.0]
    pace = Backpressure(lambda: woken.append(1), buffer_pool, lambda: bool(here))

    def naps(calls, work_s):
        slept = []

        def sleep(seconds):
            slept.append(seconds)
            moment[0] += seconds

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "monotonic", lambda: moment[0])
            patch.setattr(time, "sleep", sleep)
            for _ in range(calls):
                moment[0] += work_s
                pace.wake()
        return sum(slept)

    assert naps(100, 0.01) == 0  # not far ahead
    buffer_pool.answer(-17 << 20)
    assert naps(100, 0.01) == pytest.approx(100 * 0.005, rel=0.01)
    assert naps(100, 0.0005) == pytest.approx(100 * 4 * 0.0005, rel=0.1)
    assert naps(1_000, 0.00005) == pytest.approx(1_000 * 4 * 0.00005, rel=0.1)  # small batches
    here.append(1)
    assert naps(100, 0.01) == 0  # the loop's own thread
    assert len(woken) == 1_400


def test_an_application_that_seeds_random_gets_its_own_sequence(nobody):
    random.seed(7)
    expected = [random.random() for _ in range(3)]
    random.seed(7)
    with Producer({"bootstrap.servers": nobody, "reconnect.backoff.ms": 1, "reconnect.backoff.max.ms": 2,
                   "error_cb": lambda error: None}) as producer:
        producer.produce("t", b"value")
        producer.poll(0.1)  # it dials many times meanwhile
        producer.purge()
    assert [random.random() for _ in range(3)] == expected


def test_a_full_buffer_is_a_buffer_error_that_says_what_to_do(nobody):
    with Producer({"bootstrap.servers": nobody, "queue.buffering.max.messages": 2, "error_cb": print}) as producer:
        producer.produce("t", b"1")
        producer.produce("t", b"2")
        with pytest.raises(BufferError, match=r"Queue full.*poll\(\)") as caught:
            producer.produce("t", b"3")
        assert isinstance(caught.value, BufferFullError)
        assert caught.value.error == KafkaError._QUEUE_FULL
        producer.purge()


def test_records_fail_after_message_timeout_with_one_clear_line(nobody):
    got = []
    with Producer({"bootstrap.servers": nobody, "message.timeout.ms": 200, "error_cb": lambda e: None}) as producer:
        producer.produce("nowhere", b"value", on_delivery=lambda error, message: got.append((error, message.value())))
        assert producer.flush(5) == 0
    ((error, value),) = got
    assert error == KafkaError._MSG_TIMED_OUT
    told = re.match(r'Message timed out: topic "nowhere" is not known to the brokers after (\d+\.\d+) s', error.str())
    assert told
    assert 0.2 <= float(told[1]) < 5
    assert value == b"value"


def test_a_dead_broker_is_told_to_error_cb(nobody):
    errors = []
    producer = Producer({"bootstrap.servers": nobody, "error_cb": errors.append})
    end = time.monotonic() + 20
    while KafkaError._ALL_BROKERS_DOWN not in errors and time.monotonic() < end:
        producer.poll(0.1)
    producer.close()
    assert KafkaError._TRANSPORT in errors
    assert KafkaError._ALL_BROKERS_DOWN in errors


def test_purge_reports_every_waiting_record_once(producer):
    got = []
    for value in (b"1", b"2"):
        producer.produce("t", value, callback=lambda error, message: got.append((error.code(), message.value())))
    producer.purge()
    assert producer.flush(1) == 0
    assert got == [(KafkaError._PURGE_QUEUE, b"1"), (KafkaError._PURGE_QUEUE, b"2")]


def test_a_closed_producer_says_so(producer):
    assert producer.close()
    for call in (lambda: producer.produce("t", b""), lambda: producer.poll(0), lambda: producer.flush(0),
                 producer.purge, producer.list_topics):
        with pytest.raises(RuntimeError, match="closed") as caught:
            call()
        assert isinstance(caught.value, ClientClosedError)
    assert producer.close()


def test_records_that_are_given_up_by_close_are_reported(nobody):
    got = []
    producer = Producer({"bootstrap.servers": nobody, "message.timeout.ms": 150, "error_cb": lambda e: None})
    producer.produce("t", b"1", callback=lambda error, message: got.append(error.code()))
    producer.close()
    assert got == [KafkaError._MSG_TIMED_OUT]


def test_list_topics_fails_in_its_time(producer):
    started = time.monotonic()
    with pytest.raises(KafkaException):
        producer.list_topics(timeout=0.3)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("call", ["flush()", "poll()", "close()"])
def test_ctrl_c_interrupts_a_wait(nobody, call):
    program = (
        "from headrace.client.producer.producer import Producer\n"
        f"p = Producer({{'bootstrap.servers': '{nobody}', 'error_cb': None}})\n"
        "p.produce('t', b'v')\n"
        "try:\n    print('waiting', flush=True)\n"
        f"    while True: p.{call}\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as child:
        assert child.stdout.readline() == b"waiting\n"
        time.sleep(0.3)
        started = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == b"interrupted\n"
        assert time.monotonic() - started < 20


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_cannot_use_its_parents_producer(producer):
    producer.produce("t", b"1")
    calls = [lambda: producer.produce("t", b"2"), lambda: producer.poll(0), lambda: producer.poll(1),
             lambda: producer.flush(1), producer.purge, lambda: producer.list_topics(timeout=1),
             producer.begin_transaction, lambda: producer.set_sasl_credentials("user", "password")]
    child = os.fork()
    if child == 0:
        for number, call in enumerate(calls, 1):
            try:
                call()
            except ClientClosedError as error:
                if str(error) != FORKED:
                    os._exit(100 + number)
            else:
                os._exit(number)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    producer.produce("t", b"3")
    assert len(producer) == 2


def test_under_asyncio_a_record_that_is_not_delivered_raises(nobody):
    async def main():
        async with AIOProducer({"bootstrap.servers": nobody, "message.timeout.ms": 150}) as producer:
            delivery = await producer.produce("t", b"v")
            with pytest.raises(KafkaException) as caught:
                await delivery
            assert caught.value.error == KafkaError._MSG_TIMED_OUT

    asyncio.run(main())


def test_under_asyncio_produce_waits_while_the_buffer_is_full(nobody):
    async def main():
        producer = AIOProducer({"bootstrap.servers": nobody, "queue.buffering.max.messages": 1,
                                "message.timeout.ms": 60_000})
        first = await producer.produce("t", b"1")
        waiting = asyncio.create_task(producer.produce("t", b"2"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await producer.purge()
        second = await waiting
        await producer.purge()
        for delivery in (first, second):
            with pytest.raises(KafkaException):
                await delivery
        await producer.close()

    asyncio.run(main())


def test_under_asyncio_a_closed_producer_says_so(nobody):
    async def main():
        producer = AIOProducer({"bootstrap.servers": nobody})
        await producer.close()
        with pytest.raises(ClientClosedError):
            await producer.produce("t", b"1")

    asyncio.run(main())
