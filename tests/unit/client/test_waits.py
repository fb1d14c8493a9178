"""Whoever waits is told: no wait relies on the slice after which it would look again by itself.

Slices are there for signals alone. Here they last half a minute, and everything is still done at once.
"""

import contextlib
import threading
import time

import pytest

from headrace import Consumer, KafkaError, KafkaException, Producer
from headrace.broker.faults import Action, Fault
from headrace.client import waits
from headrace.client.producer.kafka_producers import KafkaAsyncProducer, KafkaSyncProducer
from headrace.errors import BufferFullError, ClientClosedError
from headrace.net import thread
from headrace.testing import EmbeddedBroker
from headrace.types.records import ProducerRecord
from headrace.wire.messages.producer.produce import ProduceRequest

SLICE_S = 30.0
AT_ONCE_S = 8.0
"""Far longer than anything here takes, even where others keep the machine busy, and far shorter than a slice."""
RECORD = ProducerRecord("one", b"v")


@pytest.fixture(autouse=True)
def _long_slices(monkeypatch):
    for module in (waits, thread):
        monkeypatch.setattr(module, "SLICE_S", SLICE_S)


@pytest.fixture(scope="module")
def broker():
    with EmbeddedBroker(topics={"one": 1, "three": 3}) as made:
        yield made


@pytest.fixture
def conf(broker):
    return {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5}


@contextlib.contextmanager
def at_once():
    began_at = time.monotonic()
    yield
    assert time.monotonic() - began_at < AT_ONCE_S


class Call:
    """A call in another thread."""

    def __init__(self, function, *arguments):
        self.raised = None
        self._thread = threading.Thread(target=self._run, args=(function, arguments), daemon=True)
        self._thread.start()

    def _run(self, function, arguments):
        try:
            function(*arguments)
        except Exception as raised:
            self.raised = raised

    def end(self, timeout_s=AT_ONCE_S):
        self._thread.join(timeout_s)
        assert not self._thread.is_alive()
        return self.raised


def full(conf, **more):
    """A producer whose buffer is full: its one record waits for a `poll()`."""
    made = Producer({**conf, "queue.buffering.max.messages": 1, **more})
    made.produce("one", b"v")
    made.flush(10)
    made.produce("one", b"v", on_delivery=lambda error, message: None)
    return made


def test_everyday_calls(conf):
    with at_once():
        with Producer(conf) as made:
            made.list_topics(timeout=10)
            made.send(RECORD).result(10)
            made.produce("one", b"v", on_delivery=lambda error, message: None)
            assert made.poll(10) == 1
            made.produce("one", b"v")
            assert made.flush(10) == 0
            made.purge()
        with Producer({**conf, "acks": 0, "enable.idempotence": False}) as made:
            made.produce("one", b"v")
        with KafkaSyncProducer(conf) as made:
            made.send(RECORD)
        with KafkaAsyncProducer(conf) as made:
            made.send(RECORD, lambda metadata, error: None)
            assert made.flush(10) == 0


def test_columns_into_a_small_buffer(conf):
    pyarrow = pytest.importorskip("pyarrow")
    with at_once(), Producer({**conf, "queue.buffering.max.messages": 10}) as made:
        made.produce_arrow("three", pyarrow.table({"value": [b"v"] * 200})).result(10)


def test_transactions(conf):
    with at_once(), Producer({**conf, "transactional.id": "waits"}) as made:
        made.init_transactions(10)
        with made.transaction():
            made.produce("one", b"v")


def test_reading(conf):
    with Producer(conf) as made:
        made.produce("one", b"v")
    with Consumer({**conf, "group.id": "waits", "auto.offset.reset": "earliest"}) as reader, at_once():
        reader.subscribe(["one"])
        assert reader.poll(10) is not None
        reader.commit(asynchronous=False)


def test_a_send_that_waits_for_room_hears_of_room(conf):
    made = full(conf)
    sending_call = Call(made.send, RECORD)
    time.sleep(0.1)
    with at_once():
        assert made.poll(10) == 1
        assert sending_call.end() is None
    made.close()


@pytest.mark.parametrize("what", ["send", "produce_arrow"])
def test_who_waits_for_room_hears_that_the_producer_was_closed(broker, conf, what):
    pyarrow = pytest.importorskip("pyarrow")
    made = Producer({**conf, "queue.buffering.max.messages": 1})
    made.send(RECORD).result(10)
    answered = threading.Event()
    broker.add_fault(Fault(action=Action.PASS, request=ProduceRequest, effect=lambda _: answered.wait(AT_ONCE_S + 1)))
    made.produce("one", b"v")
    waiting = Call(made.send, RECORD) if what == "send" else Call(
        made.produce_arrow, "one", pyarrow.table({"value": [b"v"]}))
    time.sleep(0.1)
    closing = Call(made.close)
    with at_once():
        assert isinstance(waiting.end(), ClientClosedError)
    answered.set()
    closing.end(10)


def test_close_hears_that_a_callback_has_returned(conf):
    entered, opened = threading.Event(), threading.Event()

    def slow(_error, _message):
        entered.set()
        assert opened.wait(10)

    made = Producer(conf)
    made.produce("one", b"v", on_delivery=slow)
    polling = Call(made.poll, 10)
    assert entered.wait(10)
    closing = Call(made.close)
    time.sleep(0.1)
    opened.set()
    with at_once():
        assert closing.end() is None
        assert polling.end() is None


def test_a_poll_after_a_buffer_error_returns_when_there_is_room(broker, conf):
    with Producer({**conf, "queue.buffering.max.messages": 1}) as made:
        made.send(RECORD).result(10)
        held = Fault(action=Action.DELAY, request=ProduceRequest, delay_s=60.0, times=None)
        broker.add_fault(held)
        made.produce("one", b"v")  # without a callback: there will be nothing to serve
        with pytest.raises(BufferFullError):
            made.produce("one", b"v")
        with at_once():
            threading.Timer(0.1, broker.clear_faults).start()
            assert made.poll(SLICE_S) == 0
            broker.add_fault(held)
            made.produce("one", b"v")
        with pytest.raises(BufferFullError):
            made.produce("one", b"v")
        broker.clear_faults()
        made.flush(10)


def test_a_poll_without_a_buffer_error_before_it_waits_for_callbacks(conf):
    with Producer(conf) as made:
        made.produce("one", b"v")
        began_at = time.monotonic()
        assert made.poll(0.3) == 0
        assert time.monotonic() - began_at > 0.25


def test_a_full_buffer_is_a_plain_error_where_nobody_waited(conf):
    made = full(conf, **{"max.block.ms": 0})
    with pytest.raises(BufferFullError, match="call poll"):
        made.send(RECORD)
    made.poll(10)
    made.close()


def test_who_waits_for_a_topic_hears_that_the_producer_was_closed():
    made = Producer({"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None})
    waiting = Call(made.send, RECORD)
    time.sleep(0.1)
    with at_once():
        made.close()
        raised = waiting.end()
    assert isinstance(raised, KafkaException)
    assert raised.error == KafkaError._PURGE_QUEUE
