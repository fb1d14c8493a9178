"""`KafkaSyncProducer` and `KafkaAsyncProducer`: what their guide promises, sentence by sentence."""

import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace import (
    Consumer,
    EventsPollingOption,
    KafkaAsyncProducer,
    KafkaError,
    KafkaException,
    KafkaSyncProducer,
    Producer,
    ProducerInterceptor,
    ProducerRecord,
    SendOption,
    TopicPartition,
)
from headrace.broker.faults import Action, Fault
from headrace.broker.settings import BrokerSettings
from headrace.buffers import FEW_MESSAGES
from headrace.client.waits import ThreadWaits
from headrace.errors import BufferFullError, ClientClosedError, ConfigError
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.producer.produce import ProduceRequest

AUTO, MANUAL = EventsPollingOption.AUTO, EventsPollingOption.MANUAL
CALLBACKS = "headrace-callbacks"


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "four": 4}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def props(broker):
    yield {"bootstrap.servers": broker.bootstrap_servers}
    broker.clear_faults()


@pytest.fixture
def nobody():
    """Properties for an address where nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield {"bootstrap.servers": f"127.0.0.1:{reserved.getsockname()[1]}", "error_cb": lambda error: None}


def read(broker, topic, partition, offset, count):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, offset)])
    found = consumer.consume(count, 10)
    consumer.close()
    return found


def callers():
    return [thread for thread in threading.enumerate() if thread.name == CALLBACKS]


# KafkaSyncProducer


def test_sync_send_blocks_and_returns_the_metadata(broker, props):
    with KafkaSyncProducer(props) as producer:
        metadata = producer.send(ProducerRecord("one", b"value", b"key"))
    assert (metadata.topic, metadata.partition, metadata.key_size, metadata.value_size) == ("one", 0, 3, 5)
    assert broker.end_offsets("one")[0] == metadata.offset + 1
    (message,) = read(broker, "one", 0, metadata.offset, 1)
    assert (message.value(), message.key()) == (b"value", b"key")


def test_bootstrap_servers_is_mandatory():
    for make in (KafkaSyncProducer, KafkaAsyncProducer):
        with pytest.raises(ConfigError, match=r'"bootstrap\.servers" is missing'):
            make({"enable.idempotence": "true"})


def test_sync_send_does_not_linger_unless_asked_to(broker, props):
    with KafkaSyncProducer(props) as producer:
        assert producer._producer._engine.config["linger.ms"] == 0
    for name in ("linger.ms", "queue.buffering.max.ms"):
        with KafkaSyncProducer({**props, name: 7}) as producer:
            assert producer._producer._engine.config["linger.ms"] == 7


@pytest.mark.parametrize(("record", "code"), [
    (ProducerRecord("one", b"v", partition=9), KafkaError._UNKNOWN_PARTITION),
    (ProducerRecord(None, b"v"), KafkaError._INVALID_ARG),
    (ProducerRecord("", b"v"), KafkaError._INVALID_ARG),
    (ProducerRecord("x" * 250, b"v"), KafkaError._INVALID_ARG),
    (ProducerRecord("a b", b"v"), KafkaError._INVALID_ARG),
    (ProducerRecord("one", b"x" * 1_000_001), KafkaError.MSG_SIZE_TOO_LARGE),
    (ProducerRecord("nope", b"v"), KafkaError._UNKNOWN_TOPIC),
])
def test_errors_of_a_record_are_raised_by_sync_send_and_told_to_the_callback_by_async_send(props, record, code):
    props = {**props, "message.timeout.ms": 1500}
    with KafkaSyncProducer(props) as sync:
        with pytest.raises(KafkaException) as caught:
            sync.send(record)
        assert caught.value.error == code
        assert caught.value.error.str()
    for option in (AUTO, MANUAL):
        told = []
        with KafkaAsyncProducer(props, option) as producer:
            producer.send(record, lambda metadata, error, told=told: told.append((metadata, error)))
        ((metadata, error),) = told
        assert error == code
        assert (metadata.topic, metadata.offset, metadata.record_id) == (record.topic or "", -1, 0)


def test_no_acknowledgement_within_the_time_limit_is_msg_timed_out(broker, props):
    conf = {**props, "message.timeout.ms": 300, "request.timeout.ms": 200, "error_cb": lambda error: None}
    broker.add_fault(Fault(action=Action.SILENCE, request=ProduceRequest, times=None))
    with KafkaSyncProducer(conf) as sync:
        with pytest.raises(KafkaException) as caught:
            sync.send(ProducerRecord("one", b"v"))
        assert caught.value.error == KafkaError._MSG_TIMED_OUT
    told = []
    with KafkaAsyncProducer(conf) as producer:
        producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append(error))
    assert told == [KafkaError._MSG_TIMED_OUT]


def test_errors_of_the_broker_come_the_same_way(broker, props):
    refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, times=2, error_code=refused))
    told = []
    with KafkaSyncProducer(props) as sync, pytest.raises(KafkaException) as caught:
        sync.send(ProducerRecord("one", b"v"))
    assert caught.value.error == refused
    with KafkaAsyncProducer(props) as producer:
        producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append(error))
    assert told == [refused]


def test_threads_may_share_a_sync_producer(broker, props):
    found, lock = [], threading.Lock()
    with KafkaSyncProducer(props) as producer:
        def run():
            for _ in range(50):
                metadata = producer.send(ProducerRecord("four", b"v", partition=3))
                with lock:
                    found.append((metadata.offset, metadata.record_id))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    offsets, ids = zip(*found, strict=True)
    assert sorted(offsets) == list(range(min(offsets), min(offsets) + 200))
    assert sorted(ids) == list(range(200))


def test_a_sync_producer_makes_no_thread_of_its_own(props):
    before = threading.active_count()
    with KafkaSyncProducer(props) as producer:
        producer.send(ProducerRecord("one", b"v"))
        assert threading.active_count() <= before + 1  # the loop's, which all clients share


@pytest.mark.parametrize("make", [KafkaSyncProducer, KafkaAsyncProducer])
def test_a_closed_producer_takes_nothing_and_may_be_closed_again(props, make):
    producer = make(props)
    producer.close()
    producer.close()
    with pytest.raises(ClientClosedError):
        producer.send(ProducerRecord("one", b"v"))
    with pytest.raises(ClientClosedError):
        producer.flush()


def test_a_sync_send_where_it_would_wait_for_itself_is_refused(props):
    refused = []
    with Producer(props) as other, KafkaSyncProducer(props) as producer:
        def callback(metadata, error):
            try:
                producer.send(ProducerRecord("one", b"v"))
            except RuntimeError as error:
                refused.append(str(error))

        other.send(ProducerRecord("one", b"v"), callback).result(10)
    assert "use Producer.send() in callbacks" in refused[0]


# KafkaAsyncProducer: AUTO


def test_callbacks_come_from_a_background_thread_each_exactly_once_with_the_records_id(props):
    told, waiting = [], dict.fromkeys(range(100, 600), b"v")
    with KafkaAsyncProducer(props) as producer:
        for number, value in list(waiting.items()):
            record = ProducerRecord("four", value, partition=number % 4, record_id=number)
            producer.send(record, lambda metadata, error: told.append(
                (metadata.record_id, error, metadata.has_offset(), threading.current_thread().name)))
        assert producer.flush() == 0
        assert len(told) == 500
    assert sorted(told) == [(number, None, True, CALLBACKS) for number in waiting]


def test_callbacks_come_exactly_once_whatever_happens_to_requests(broker, props):
    told = []
    for after, action in enumerate((Action.LOSE_REPLY, Action.DROP, Action.CUT, Action.SILENCE, Action.DROP)):
        broker.add_fault(Fault(action=action, request=ProduceRequest, after=3 * after))
    conf = {**props, "message.timeout.ms": 20_000, "request.timeout.ms": 300, "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 5, "batch.num.messages": 20, "queue.buffering.max.messages": 200,
            "error_cb": lambda error: None}
    before = sum(broker.end_offsets("four"))
    with KafkaAsyncProducer(conf) as producer:
        for number in range(2000):
            partition = 9 if number % 100 == 99 else number % 4
            producer.send(ProducerRecord("four", b"v", partition=partition, record_id=number),
                          lambda metadata, error: told.append((metadata.record_id, error and error.name())))
    assert sorted(number for number, _ in told) == list(range(2000))
    assert {number for number, error in told if error == "_UNKNOWN_PARTITION"} == set(range(99, 2000, 100))
    assert [each for each in told if each[1] not in (None, "_UNKNOWN_PARTITION")] == []
    assert sum(broker.end_offsets("four")) == before + 1980


def test_records_without_an_id_are_numbered(props):
    told = []
    with KafkaAsyncProducer(props) as producer:
        for record_id in (None, 77, None, None):
            producer.send(ProducerRecord("one", b"v", record_id=record_id), lambda m, e: told.append(m.record_id))
    assert told == [0, 77, 1, 2]


@pytest.mark.parametrize("option", list(SendOption))
def test_the_value_may_be_reused_as_soon_as_send_returns_with_either_option(broker, props, option):
    value, key, header = bytearray(b"value1"), bytearray(b"key1"), bytearray(b"h1")
    told = []
    with KafkaAsyncProducer({**props, "linger.ms": 200}) as producer:
        for _ in range(2):  # the first while the topic is not known yet
            record = ProducerRecord("one", value, key, headers={"h": header})
            producer.send(record, lambda metadata, error: told.append(metadata), option)
            value[:], key[:], header[:] = b"reused", b"reus", b"re"
            value, key, header = bytearray(b"value2"), bytearray(b"key2"), bytearray(b"h2")
            if not told:
                producer.flush()
    messages = read(broker, "one", 0, told[0].offset, 2)
    assert [(m.value(), m.key(), m.headers()) for m in messages] == [
        (b"value1", b"key1", [("h", b"h1")]), (b"value2", b"key2", [("h", b"h2")])]


def test_a_callback_is_not_needed(broker, props):
    before = broker.end_offsets("one")[0]
    with KafkaAsyncProducer(props) as producer:
        producer.send(ProducerRecord("one", b"v"))
    assert broker.end_offsets("one")[0] == before + 1


def test_headers_go_with_the_record_and_come_back_to_the_callback(broker, props):
    told = []
    with KafkaAsyncProducer(props) as producer:
        record = ProducerRecord("one", b"v", headers={"session": "s-1"})
        record.headers = {**record.headers, "seqno": b"\x01\x00\x00\x00"}
        producer.send(record, lambda metadata, error: told.append(metadata))
    (metadata,) = told
    expected = [("session", b"s-1"), ("seqno", b"\x01\x00\x00\x00")]
    assert metadata.headers == expected
    (message,) = read(broker, "one", 0, metadata.offset, 1)
    assert message.headers() == expected


def test_close_waits_for_the_callbacks(props):
    told = []

    def slow(metadata, error):
        time.sleep(0.05)
        told.append(metadata.record_id)

    producer = KafkaAsyncProducer(props)
    for _ in range(5):
        producer.send(ProducerRecord("one", b"v"), slow)
    producer.close()
    assert told == [0, 1, 2, 3, 4]
    assert not callers()


def test_no_explicit_close_is_needed_for_the_callbacks_to_come(props):
    told = []
    producer = KafkaAsyncProducer({**props, "linger.ms": 60_000})
    for _ in range(5):
        producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append(error))
    del producer
    gc.collect()
    assert told == [None] * 5
    assert not callers()


@pytest.mark.parametrize("option", ["AUTO", "MANUAL"])
def test_a_producer_that_is_alive_when_the_interpreter_ends_delivers_first(broker, option):
    program = (
        "from headrace import *\n"
        f"p = KafkaAsyncProducer({{'bootstrap.servers': '{broker.bootstrap_servers}', 'linger.ms': 60_000}}, "
        f"EventsPollingOption.{option})\n"
        "p.send(ProducerRecord('one', b'v'), lambda metadata, error: print('told', error, flush=True))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.stdout, done.stderr, done.returncode) == (b"told None\n", b"", 0)


def test_a_callback_that_ends_its_thread_does_not_end_the_one_of_the_producer(props, caplog):
    called = []
    with KafkaAsyncProducer(props) as producer, caplog.at_level(logging.ERROR, "headrace"):
        producer.send(ProducerRecord("one", b"1"), lambda metadata, error: sys.exit("mine"))
        producer.send(ProducerRecord("one", b"2"), lambda metadata, error: called.append(error))
        assert producer.flush(10) == 0
        assert called == [None]
    assert "a callback of a KafkaAsyncProducer raised" in caplog.text


def test_what_a_callback_raises_is_logged_and_the_others_are_called(props, caplog):
    told = []

    def callback(metadata, error):
        told.append(metadata.record_id)
        raise ZeroDivisionError("mine")

    with caplog.at_level(logging.ERROR, "headrace"), KafkaAsyncProducer(props) as producer:
        for _ in range(3):
            producer.send(ProducerRecord("one", b"v"), callback)
    assert told == [0, 1, 2]
    assert caplog.text.count("ZeroDivisionError: mine") == 3


def test_send_blocks_while_the_queue_is_full_and_then_goes_on(props):
    told, gate = [], threading.Event()

    def callback(metadata, error):
        gate.wait(10)
        told.append(error)

    with KafkaAsyncProducer({**props, "queue.buffering.max.messages": 3, "max.block.ms": 0}) as producer:
        sending = threading.Thread(
            target=lambda: [producer.send(ProducerRecord("one", b"v"), callback) for _ in range(20)])
        sending.start()
        time.sleep(0.3)
        assert sending.is_alive()
        assert told == []
        gate.set()
        sending.join(10)
        assert not sending.is_alive()
    assert told == [None] * 20


def test_a_callback_may_send_flush_and_close(broker, props):
    told = []

    def last(metadata, error):
        told.append("last")
        producer.close()
        told.append("closed")

    def first(metadata, error):
        told.append("first")
        producer.send(ProducerRecord("one", b"2"), lambda metadata, error: told.append("second"))
        producer.flush()
        told.append("flushed")
        producer.send(ProducerRecord("one", b"3"), last)

    producer = KafkaAsyncProducer(props)
    producer.send(ProducerRecord("one", b"1"), first)
    ends_at = time.monotonic() + 10
    while (callers() or "closed" not in told) and time.monotonic() < ends_at:
        time.sleep(0.01)
    assert told == ["first", "second", "flushed", "last", "closed"]
    assert not callers()


def test_a_callback_cannot_wait_for_room(props):
    told, done = [], threading.Event()

    def callback(metadata, error):
        try:
            for _ in range(5):
                producer.send(ProducerRecord("one", b"v"))
        except BufferFullError as full:
            told.append(full)
        done.set()

    with KafkaAsyncProducer({**props, "queue.buffering.max.messages": 2, "linger.ms": 1000}) as producer:
        producer.send(ProducerRecord("one", b"v"), callback)
        producer._producer._waits.thread.call_soon(producer._producer._engine.flush_now)
        assert done.wait(10)
    assert len(told) == 1


def test_flush_gives_up_in_its_time(nobody):
    with KafkaAsyncProducer({**nobody, "message.timeout.ms": 60_000}) as producer:
        producer.send(ProducerRecord("one", b"v"))
        started = time.monotonic()
        assert producer.flush(0.2) == 1
        assert 0.15 < time.monotonic() - started < 20
        producer.purge()


@pytest.mark.parametrize("option", [AUTO, MANUAL])
def test_purged_records_are_told_to_their_callbacks(nobody, option):
    told = []
    with KafkaAsyncProducer(nobody, option) as producer:
        producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append(error))
        producer.purge()
    assert told == [KafkaError._PURGE_QUEUE]


def test_producers_that_come_and_go_leave_no_thread(props):
    for _ in range(5):
        with KafkaAsyncProducer(props) as producer:
            producer.send(ProducerRecord("one", b"v"))
            assert len(callers()) == 1
    KafkaAsyncProducer(props)
    gc.collect()
    assert not callers()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_cannot_use_its_parents_producer_but_can_make_its_own(props):
    told = []
    producer = KafkaAsyncProducer(props)
    producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append(error))
    child = os.fork()
    if child == 0:
        try:
            try:
                producer.send(ProducerRecord("one", b"v"))
            except ClientClosedError:
                producer.close()
                own = []
                with KafkaAsyncProducer(props) as other:
                    other.send(ProducerRecord("one", b"v"), lambda metadata, error: own.append(error))
                os._exit(0 if own == [None] else 3)
            os._exit(2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    producer.close()
    assert told == [None]


def test_ctrl_c_interrupts_a_sync_send(nobody):
    program = (
        "from headrace import *\n"
        f"p = KafkaSyncProducer({{'bootstrap.servers': '{nobody['bootstrap.servers']}'}})\n"
        "try:\n    print('waiting', flush=True)\n    p.send(ProducerRecord('one', b'v'))\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
        "p.purge()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as child:
        assert child.stdout.readline() == b"waiting\n"
        time.sleep(0.3)
        started = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == b"interrupted\n"
        assert time.monotonic() - started < 20
        assert child.wait(20) == 0


# KafkaAsyncProducer: MANUAL


def test_with_manual_polling_callbacks_are_called_in_poll_events_only_by_the_thread_that_calls_it(props):
    told, waiting = [], dict.fromkeys(range(10), b"v")

    def callback(metadata, error):
        told.append(threading.current_thread())
        del waiting[metadata.record_id]  # quite safe here

    with KafkaAsyncProducer(props, MANUAL) as producer:
        assert not callers()
        for number, value in list(waiting.items()):
            producer.send(ProducerRecord("one", value, record_id=number), callback)
        time.sleep(0.3)
        assert told == []
        count = 0
        while waiting:
            count += producer.poll_events(5)
        assert count == 10
        assert producer.poll_events(0) == 0
    assert set(told) == {threading.current_thread()}


@pytest.mark.parametrize("last_call", ["flush", "close", "leaving the block"])
def test_with_manual_polling_flush_and_close_call_back_in_the_thread_that_calls_them(broker, props, last_call):
    told, (begin,) = [], broker.end_offsets("one")

    def callback(metadata, error):
        told.append((metadata.record_id, error, threading.current_thread()))

    def end(producer):
        if last_call == "leaving the block":
            with producer:
                pass
        else:
            getattr(producer, last_call)()
        assert [(number, error) for number, error, _ in told] == [(number, None) for number in range(10)]

    producer = KafkaAsyncProducer(props, MANUAL)
    for number in range(10):
        producer.send(ProducerRecord("one", b"v", record_id=number), callback)
    while broker.end_offsets("one") != [begin + 10]:
        time.sleep(0.01)
    time.sleep(0.1)  # the reports are there as well
    assert told == []
    with ThreadPoolExecutor(1, "another") as another:
        another.submit(end, producer).result(10)
    assert {thread.name for _, _, thread in told} == {"another_0"}
    producer.close()
    assert len(told) == 10


def test_poll_events_waits_as_long_as_it_may(nobody):
    with KafkaAsyncProducer({**nobody, "error_cb": None}, MANUAL) as producer:
        started = time.monotonic()
        assert producer.poll_events(0.2) == 0
        assert 0.15 < time.monotonic() - started < 20


def test_with_manual_polling_a_full_queue_is_an_error_until_events_are_polled(props):
    told = []
    with KafkaAsyncProducer({**props, "queue.buffering.max.messages": 2}, MANUAL) as producer:
        for _ in range(2):
            producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append(error))
        started = time.monotonic()
        with pytest.raises(BufferFullError, match=r"call poll_events\(\)"):
            producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append("never accepted"))
        assert time.monotonic() - started < 20
        while len(told) < 2:
            producer.poll_events(5)
        producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append(error))
    assert told == [None] * 3


def test_with_automatic_polling_poll_events_is_refused(props):
    with KafkaAsyncProducer(props) as producer, pytest.raises(KafkaException, match="MANUAL") as caught:
        producer.poll_events(0)
    assert caught.value.error == KafkaError._STATE


def test_options_may_be_given_by_value_and_others_are_refused(props):
    with KafkaAsyncProducer(props, "manual") as producer, pytest.raises(ValueError, match="SendOption"):
        producer.send(ProducerRecord("one", b"v"), None, "perhaps")
    with pytest.raises(ValueError, match="EventsPollingOption"):
        KafkaAsyncProducer(props, "sometimes")


@pytest.mark.parametrize("option", [AUTO, MANUAL])
def test_what_is_no_record_is_a_type_error(props, option):
    with KafkaAsyncProducer(props, option) as producer:
        for wrong in (None, "one", ProducerRecord("one", 5)):
            with pytest.raises(TypeError):
                producer.send(wrong)
    with KafkaSyncProducer(props) as sync, pytest.raises(TypeError):
        sync.send(None)


def test_who_sends_with_few_records_under_way_lets_the_loop_go_first(props, monkeypatch):
    asides = []
    monkeypatch.setattr(ThreadWaits, "step_aside", lambda _: asides.append(1))
    with KafkaAsyncProducer(props | {"linger.ms": 60_000}, MANUAL) as producer:
        for _ in range(100):
            producer.send(ProducerRecord("one", b"v", partition=0))
        assert len(asides) == FEW_MESSAGES


@pytest.mark.parametrize("make", [KafkaSyncProducer, KafkaAsyncProducer])
def test_transactions_are_for_another_producer(props, make) -> None:
    with pytest.raises(ConfigError, match=r'"transactional\.id" .* take headrace\.Producer'):
        make({**props, "transactional.id": "x"})


class _MakesAnew(ProducerInterceptor):
    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return ProducerRecord(record.topic, b"anew " + record.value)


def test_a_record_that_an_interceptor_makes_anew_keeps_its_id(props) -> None:
    seen = []
    with KafkaAsyncProducer({**props, "interceptor.classes": [_MakesAnew]}) as producer:
        for number in (7, 8):
            producer.send(ProducerRecord("one", b"v", record_id=number),
                          lambda metadata, error: seen.append((metadata.record_id, metadata.value_size)))
    assert seen == [(7, 6), (8, 6)]
