"""`Producer.send()`: a future and a callback without poll(), bounded waits, clear refusals."""

import concurrent.futures
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator

import pytest

from headrace import Consumer, KafkaError, KafkaException, Producer, ProducerRecord, RecordMetadata, TopicPartition
from headrace.admin import AdminClient, NewPartitions
from headrace.broker.settings import BrokerSettings
from headrace.errors import BufferFullError, ClientClosedError
from headrace.testing import EmbeddedBroker
from tests.support.let_go import until


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "four": 4}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def producer(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as made:
        yield made


@pytest.fixture
def nobody():
    """An address where nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


def silent(nobody, **properties):
    return Producer({"bootstrap.servers": nobody, "error_cb": lambda error: None,
                     **{name.replace("_", "."): value for name, value in properties.items()}})


def test_the_future_tells_where_the_record_was_stored_and_nobody_polls(broker, producer):
    before = broker.end_offsets("four")[2]
    record = ProducerRecord("four", "värld", "k", 2, {"h": b"1"}, 1_700_000_000_000, record_id=42)
    metadata = producer.send(record).result(10)
    assert (metadata.topic, metadata.partition, metadata.offset) == ("four", 2, before)
    assert metadata.has_offset()
    assert (metadata.timestamp_ms, metadata.timestamp_type) == (1_700_000_000_000, 1)
    assert (metadata.key_size, metadata.value_size, metadata.record_id) == (1, 6, 42)
    assert metadata.headers == [("h", b"1")]
    assert metadata.latency_s > 0
    assert str(metadata) == f"four[2]@{before}"
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("four", 2, before)])
    (message,) = consumer.consume(1, 10)
    consumer.close()
    assert (message.value(), message.key(), message.headers()) == ("värld".encode(), b"k", [("h", b"1")])


def test_sizes_of_what_is_not_there_are_minus_one_and_of_nothing_zero(producer):
    tombstone = producer.send(ProducerRecord("one")).result(10)
    assert (tombstone.key_size, tombstone.value_size, tombstone.headers) == (-1, -1, None)
    empty = producer.send(ProducerRecord("one", b"", "")).result(10)
    assert (empty.key_size, empty.value_size) == (0, 0)


def test_metadata_can_be_kept_in_sets_and_says_when_there_is_no_offset():
    unknown = RecordMetadata("t", headers=[("a", b"1")])
    assert RecordMetadata.NO_PARTITION == -1
    assert (unknown.partition, unknown.has_offset(), str(unknown)) == (-1, False, "t[-1]@?")
    assert len({unknown, RecordMetadata("t")}) == 2


def test_the_callback_is_called_without_poll_before_the_future_is_done(producer):
    seen = []

    def callback(metadata, error):
        seen.append((metadata.offset >= 0, error, threading.current_thread() is threading.main_thread(), future.done()))

    future = producer.send(ProducerRecord("one", b"v"), callback)
    future.result(10)
    assert seen == [(True, None, False, False)]


def test_what_a_callback_raises_is_logged_and_the_others_are_called(producer, caplog):
    seen = []

    def callback(metadata, error):
        seen.append(metadata.record_id)
        raise ZeroDivisionError("mine")

    with caplog.at_level(logging.ERROR, "headrace"):
        futures = [producer.send(ProducerRecord("one", b"v", record_id=n), callback) for n in range(3)]
        assert all(future.result(10).has_offset() for future in futures)
    assert seen == [0, 1, 2]
    assert caplog.text.count("ZeroDivisionError: mine") == 3


def test_callbacks_of_produce_wait_for_poll_although_send_shares_their_batch(producer):
    polled, sent = [], []
    producer.send(ProducerRecord("one", b"first")).result(10)  # the topic is known
    producer.produce("one", b"a", callback=lambda e, m: polled.append(m.value()))
    future = producer.send(ProducerRecord("one", b"b"), lambda m, e: sent.append(m.value_size))
    producer.produce("one", b"c", callback=lambda e, m: polled.append(m.value()))
    offset = future.result(10).offset
    assert (polled, sent) == ([], [1])
    served = 0
    while served < 2:
        served += producer.poll(5)
    assert (polled, served) == ([b"a", b"c"], 2)
    assert producer.poll(0) == 0
    assert producer.send(ProducerRecord("one", b"d")).result(10).offset == offset + 2
    assert len(producer) == 0


def test_records_of_send_and_produce_keep_one_order(broker, producer):
    start = producer.send(ProducerRecord("four", b"-", partition=1)).result(10).offset + 1
    futures = []
    for number in range(0, 1000, 2):
        futures.append(producer.send(ProducerRecord("four", str(number), partition=1)))
        producer.produce("four", str(number + 1), partition=1)
    assert [future.result(10).offset for future in futures] == list(range(start, start + 1000, 2))


def test_only_failed_records_are_reported_to_callbacks_if_so_configured_but_futures_always_end(broker):
    polled = []
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "delivery.report.only.error": True}) as producer:
        future = producer.send(ProducerRecord("one", b"a"))
        producer.produce("one", b"b", callback=lambda e, m: polled.append(m))
        assert future.result(10).has_offset()
    assert polled == []


def test_a_future_cannot_be_cancelled_for_a_record_cannot_be_taken_back(producer):
    future = producer.send(ProducerRecord("one", b"v"))
    assert not future.cancel()
    assert future.result(10).has_offset()


def test_without_acknowledgements_the_offset_is_not_known(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "acks": 0}) as producer:
        metadata = producer.send(ProducerRecord("one", b"v")).result(10)
    assert (metadata.partition, metadata.offset, metadata.has_offset()) == (0, -1, False)


def test_an_unknown_topic_is_waited_for_up_to_max_block_ms(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "max.block.ms": 300}) as producer:
        started = time.monotonic()
        with pytest.raises(KafkaException, match=r'"nope" is not known .* after 0.3 s \(max.block.ms\)') as e:
            producer.send(ProducerRecord("nope", b"v"), print)
        assert 0.25 < time.monotonic() - started < 5
        assert e.value.error == KafkaError._UNKNOWN_TOPIC
        assert len(producer) == 0


def test_a_topic_that_turns_up_while_send_waits_is_used(broker):
    threading.Timer(0.3, broker.create_topic, ("late", 2)).start()
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.max.ms": 200}) as producer:
        assert producer.send(ProducerRecord("late", b"v", partition=1)).result(10).partition == 1


def test_records_that_wait_for_a_topic_stay_before_those_of_send(broker):
    got = []
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce("four", b"first", partition=3, callback=lambda e, m: got.append(m.offset()))
        offset = producer.send(ProducerRecord("four", b"second", partition=3)).result(10).offset
    assert got == [offset - 1]


def test_a_partition_that_does_not_exist_is_refused_at_once(producer):
    with pytest.raises(KafkaException, match="one has no partition 7: it has 1") as caught:
        producer.send(ProducerRecord("one", b"v", partition=7))
    assert caught.value.error == KafkaError._UNKNOWN_PARTITION


@pytest.mark.parametrize("topic", [None, "", ".", "..", "a b", "ä", "x" * 250, "a/b", 5, "new\n"])
def test_an_invalid_topic_name_is_an_argument_error_at_once(producer, topic):
    with pytest.raises(KafkaException, match="invalid topic") as caught:
        producer.send(ProducerRecord(topic, b"v"))
    assert caught.value.error == KafkaError._INVALID_ARG
    assert len(caught.value.error.str()) < 250


@pytest.mark.parametrize(("record", "error", "text"), [
    (None, TypeError, "takes a ProducerRecord, not NoneType"),
    ("one", TypeError, "takes a ProducerRecord, not str"),
    (ProducerRecord("one", 5), TypeError, "value must be bytes"),
    (ProducerRecord("one", key=5), TypeError, "key must be bytes"),
    (ProducerRecord("one", headers=[5]), TypeError, "headers"),
    (ProducerRecord("one", timestamp_ms=-5), ValueError, "timestamp"),
    (ProducerRecord("one", b"x" * 1_000_001), KafkaException, "message.max.bytes"),
])
def test_what_is_no_proper_record_is_refused_at_once(producer, record, error, text):
    with pytest.raises(error, match=text):
        producer.send(record)
    assert len(producer) == 0


def test_a_full_buffer_is_waited_for_and_then_a_buffer_error(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 1,
                   "max.block.ms": 300}) as producer:
        producer.send(ProducerRecord("one", b"0")).result(10)
        producer.produce("one", b"1", callback=lambda error, message: None)  # waits for a poll() that does not come
        started = time.monotonic()
        with pytest.raises(BufferFullError, match=r"no room in 0\.\d s \(max\.block\.ms\)") as caught:
            producer.send(ProducerRecord("one", b"2"))
        assert 0.25 < time.monotonic() - started < 5
        assert caught.value.error == KafkaError._QUEUE_FULL
        assert producer.poll(5) == 1
        assert producer.send(ProducerRecord("one", b"3")).result(10).has_offset()


def test_send_goes_on_as_soon_as_there_is_room(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 5}) as producer:
        futures = [producer.send(ProducerRecord("one", str(number))) for number in range(100)]
        offsets = [future.result(10).offset for future in futures]
    assert offsets == list(range(offsets[0], offsets[0] + 100))


def test_a_send_that_waits_for_room_is_told_that_the_producer_was_closed(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 1})
    producer.send(ProducerRecord("one", b"0")).result(10)
    producer.produce("one", b"1", callback=lambda error, message: None)  # its report is waited for: nobody polls
    closing = threading.Timer(0.2, producer.close)
    closing.start()
    with pytest.raises(ClientClosedError):
        producer.send(ProducerRecord("one", b"2"))
    closing.join()


def test_a_closed_producer_takes_no_records(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.close()
    for topic in ("one", "unseen"):
        with pytest.raises(ClientClosedError, match="closed"):
            producer.send(ProducerRecord(topic, b"v"))


def test_what_is_given_up_fails_its_future_and_calls_its_callback(nobody):
    seen = []
    producer = silent(nobody, message_timeout_ms=60_000)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        report = threads.submit(producer.send, ProducerRecord("one", b"v"), lambda *a: seen.append(a))
        time.sleep(0.2)
        assert not report.done()  # the topic is waited for
        producer.purge()
        with pytest.raises(KafkaException) as caught:
            report.result(5)
    producer.close()
    assert caught.value.error == KafkaError._PURGE_QUEUE
    assert seen == []  # it was never accepted


def test_a_record_that_is_purged_after_it_was_accepted_is_told_both_ways(broker):
    seen = []
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 60_000}) as producer:
        future = producer.send(ProducerRecord("one", b"abc", "k", record_id=5), lambda *a: seen.append(a))
        producer.purge()
        with pytest.raises(KafkaException) as caught:
            future.result(5)
    ((metadata, error),) = seen
    assert caught.value.error == error == KafkaError._PURGE_QUEUE
    assert (metadata.topic, metadata.partition, metadata.offset, metadata.record_id) == ("one", 0, -1, 5)
    assert (metadata.key_size, metadata.value_size) == (1, 3)


def test_a_callback_may_send_but_never_waits_there(broker):
    seen, done = [], threading.Event()

    def callback(metadata, error):
        seen.append(producer.send(ProducerRecord("one", b"next")))  # there is room for one more
        try:
            producer.send(ProducerRecord("one", b"too much"))
        except BufferFullError as full:
            seen.append(full)
        done.set()

    with Producer({"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 2}) as producer:
        producer.send(ProducerRecord("one", b"first"), callback)
        assert done.wait(10)
        assert seen[0].result(10).has_offset()
        assert isinstance(seen[1], BufferFullError)


def test_flush_waits_for_what_was_sent_and_counts_it(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 60_000}) as producer:
        future = producer.send(ProducerRecord("one", b"v"))
        assert len(producer) == 1
        assert producer.flush(10) == 0
        assert future.done()


@pytest.mark.parametrize("wait", ["topic", "room"])
def test_ctrl_c_interrupts_a_send_that_waits(broker, wait):
    program = (
        "from headrace import Producer, ProducerRecord\n"
        f"p = Producer({{'bootstrap.servers': '{broker.bootstrap_servers}', 'queue.buffering.max.messages': 1}})\n"
        "p.send(ProducerRecord('one', b'v')).result(10)\n"
        "p.produce('one', b'v', callback=print)\n"  # its report is never served
        "try:\n    print('waiting', flush=True)\n"
        f"    p.send(ProducerRecord({'nope' if wait == 'topic' else 'one'!r}, b'v'))\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
        "import os; os._exit(0)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as child:
        assert child.stdout.readline() == b"waiting\n"
        time.sleep(0.3)
        started = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == b"interrupted\n"
        assert time.monotonic() - started < 20


def test_a_mutable_value_is_copied_although_its_topic_is_not_known_yet(broker):
    broker.create_topic("mutable", 1)
    value, header = bytearray(b"before"), bytearray(b"before")
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce("mutable", value, memoryview(value), headers={"h": header})
        value[:] = header[:] = b"AFTER!"
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("mutable", 0, 0)])
    (message,) = consumer.consume(1, 10)
    consumer.close()
    assert (message.value(), message.key(), message.headers()) == (b"before", b"before", [("h", b"before")])


def test_a_record_that_never_found_its_topic_is_reported_as_bytes(nobody):
    got = []
    with silent(nobody, message_timeout_ms=150) as producer:
        producer.produce("nowhere", "text", "key", headers={"a": "b"}, callback=lambda e, m: got.append(m))
    (message,) = got
    assert (message.value(), message.key(), message.headers()) == (b"text", b"key", [("a", b"b")])


def test_a_partition_that_was_added_is_found_by_who_asks_for_it() -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        given = {"bootstrap.servers": broker.bootstrap_servers}
        with Producer(given) as producer, AdminClient(given) as admin:
            producer.send(ProducerRecord("t", b"v")).result(10)
            admin.create_partitions([NewPartitions("t", 5)])["t"].result(10)
            until(lambda: "it has 5" in refused(producer, 7))
            assert producer.send(ProducerRecord("t", b"v", partition=3)).result(10).partition == 3


def refused(producer: Producer, partition: int) -> str:
    with pytest.raises(KafkaException) as refusal:
        producer.send(ProducerRecord("t", b"v", partition=partition))
    assert refusal.value.error == KafkaError._UNKNOWN_PARTITION
    return str(refusal.value)


def test_what_a_closed_producer_says_is_said_anew_each_time() -> None:
    with EmbeddedBroker(topics={"t": 1}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.close()
    sizes = set()
    for call in (producer.send, lambda record: producer.produce(record.topic, record.value)) * 2:
        with pytest.raises(ClientClosedError) as refused:
            call(ProducerRecord("t", b"v"))
        frames = traceback.extract_tb(refused.value.__traceback__)
        sizes.add((call is producer.send, len(frames)))
        assert refused.value.__context__ is None
    assert max(size for _, size in sizes) < 15
    assert len(sizes) <= 2
