"""`KafkaSyncProducer` and `KafkaAsyncProducer`: the thread that waits for a record takes its reply by itself."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from headrace import (
    EventsPollingOption,
    KafkaAsyncProducer,
    KafkaError,
    KafkaException,
    KafkaSyncProducer,
    ProducerRecord,
    RecordMetadata,
)
from headrace.broker.faults import Action, Fault
from headrace.buffers import implementation
from headrace.client.waits import threads_may_receive
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.producer.produce import ProduceRequest
from tests.support.later import later

from .test_direct_replies import in_threads
from .test_direct_sends import TOPIC, cut_all, until

pytestmark = pytest.mark.skipif(
    implementation == "plain" or not threads_may_receive(), reason="replies are all the loop's here")
_WARM = 8


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={TOPIC: 2}) as started:
        yield started


def record(value: bytes, partition: int = 0) -> ProducerRecord:
    return ProducerRecord(TOPIC, value, partition=partition)


@pytest.fixture
def producer(broker: EmbeddedBroker, by_loop: list[int]) -> Iterator[KafkaSyncProducer]:
    with KafkaSyncProducer({"bootstrap.servers": broker.bootstrap_servers}) as made:
        for number in range(_WARM):
            made.send(record(b"first %d" % number))
        by_loop.clear()
        yield made


def test_a_thread_that_waits_for_each_record_takes_its_reply(producer: KafkaSyncProducer, by_loop: list[int]) -> None:
    for number in range(50):
        assert producer.send(record(b"%d" % number)).offset == _WARM + number
    assert sum(by_loop) < 10


def test_the_thread_that_calls_back_takes_the_replies(broker: EmbeddedBroker, by_loop: list[int]) -> None:
    told: list[tuple[int, KafkaError | None, str]] = []

    def note(metadata: RecordMetadata, error: KafkaError | None) -> None:
        told.append((metadata.offset or 0, error, threading.current_thread().name))

    with KafkaAsyncProducer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0},
                            EventsPollingOption.AUTO) as producer:
        for number in range(50):
            if number == _WARM:
                by_loop.clear()
            producer.send(record(b"%d" % number), note)
            until(lambda: len(told) > number)  # noqa: B023 - it is called here
    assert told == [(number, None, "headrace-callbacks") for number in range(50)]
    assert sum(by_loop) < 10


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_threads_that_share_a_producer_are_all_told_of_their_own_records(
    producer: KafkaSyncProducer, by_loop: list[int], threads: int
) -> None:
    # The loop takes the replies then. Those that were in flight when it gave them away were once taken for reports.
    offsets: list[int] = []

    def work() -> None:
        mine = [producer.send(record(b"v")).offset or 0 for _ in range(200)]
        assert mine == sorted(mine)
        offsets.extend(mine)

    assert in_threads(threads, work) < 20
    assert sorted(offsets) == list(range(_WARM, _WARM + 200 * threads))
    by_loop.clear()
    for _ in range(100):  # and who is alone again takes its own
        producer.send(record(b"v"))
    assert sum(by_loop) < 50


def test_a_thread_that_serves_the_report_of_another_wakes_it(
    producer: KafkaSyncProducer, broker: EmbeddedBroker
) -> None:
    asked = threading.Event()
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.3, effect=lambda _: asked.set()))
    done: list[int | None] = []
    first = threading.Thread(target=lambda: done.append(producer.send(record(b"slow")).offset))
    first.start()
    assert asked.wait(20)
    assert producer.send(record(b"behind it")).offset == _WARM + 1
    first.join(20)
    assert done == [_WARM]


def test_errors_are_raised_and_the_next_record_goes_on(producer: KafkaSyncProducer, broker: EmbeddedBroker) -> None:
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.INVALID_RECORD))
    with pytest.raises(KafkaException) as caught:
        producer.send(record(b"bad"))
    assert caught.value.error == KafkaError.INVALID_RECORD
    assert producer.send(record(b"good")).offset == _WARM
    cut_all(producer._producer)
    assert producer.send(record(b"over another connection")).offset == _WARM + 1


def test_it_is_told_of_stored_records_whatever_is_reported_to_others(broker: EmbeddedBroker) -> None:
    with KafkaSyncProducer({"bootstrap.servers": broker.bootstrap_servers, "delivery.report.only.error": True}) as made:
        assert [made.send(record(b"v")).offset for _ in range(12)] == list(range(12))


def test_ctrl_c_ends_the_wait_at_once_and_the_record_is_stored(
    producer: KafkaSyncProducer, broker: EmbeddedBroker
) -> None:
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=60.0))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), later(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)):
        producer.send(record(b"one"))
    assert time.monotonic() - began < 20
    broker.clear_faults()
    assert producer.send(record(b"two")).offset == _WARM + 1
    assert producer.flush(5) == 0


def test_closing_in_another_thread_waits_for_the_record_and_tells_its_sender(
    producer: KafkaSyncProducer, broker: EmbeddedBroker
) -> None:
    asked = threading.Event()
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.3, effect=lambda _: asked.set()))
    done: list[int | None] = []
    sending = threading.Thread(target=lambda: done.append(producer.send(record(b"v")).offset))
    sending.start()
    assert asked.wait(20)
    producer.close()
    sending.join(20)
    assert done == [_WARM]


@pytest.mark.parametrize("made", [KafkaSyncProducer, lambda conf: KafkaAsyncProducer(conf, EventsPollingOption.AUTO)])
def test_errors_of_the_client_are_called_back_while_it_waits(made: Callable[..., KafkaSyncProducer]) -> None:
    told: list[tuple[KafkaError, int]] = []
    conf = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 500,
            "error_cb": lambda error: told.append((error, threading.get_ident()))}
    producer = made(conf)

    def are_all_down() -> bool:
        if isinstance(producer, KafkaSyncProducer):
            with pytest.raises(KafkaException):
                producer.send(record(b"v"))
            assert {thread for _, thread in told} <= {threading.get_ident()}
        return KafkaError._ALL_BROKERS_DOWN in [error.code() for error, _ in told]

    if not isinstance(producer, KafkaSyncProducer):
        producer.send(record(b"v"), None)
    until(are_all_down)
    producer.close()
