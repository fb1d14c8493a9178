"""What the quick start of modern-cpp-kafka's producers says beyond `test_kafka_producers`, and its programs."""

import gc
import inspect
import io
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from headrace import (
    OFFSET_BEGINNING,
    Consumer,
    EventsPollingOption,
    KafkaAsyncProducer,
    KafkaError,
    KafkaException,
    KafkaSyncProducer,
    Producer,
    ProducerRecord,
    RecordMetadata,
    TopicPartition,
)
from headrace.errors import BufferFullError
from headrace.records import scan
from headrace.testing import Action, BrokerSettings, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import ProduceRequest

AUTO, MANUAL = EventsPollingOption.AUTO, EventsPollingOption.MANUAL


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "four": 4}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


@pytest.fixture
def topic(broker, request):
    name = re.sub(r"\W", ".", request.node.name)
    broker.create_topic(name)
    return name


@pytest.fixture
def props(broker):
    yield {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": "true"}
    broker.clear_faults()


def read(broker, topic, count):
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        return consumer.consume(count, 10)


def counted(broker):
    """A list that grows by the numbers of records of each produce request."""
    counts = []

    def note(request):
        counts.append(sum(scan(bytes(part.records))[0].count for each in request.topic_data
                          for part in each.partition_data))
        return False

    broker.add_fault(Fault(action=Action.DROP, request=ProduceRequest, when=note, times=None))
    return counts


# The programs


def test_the_sync_program_sends_lines_until_an_empty_one(broker, props, topic):
    said, lines = [], io.StringIO("first\nsecond\n\nnever read\n")
    producer = KafkaSyncProducer(props)
    for line in lines:
        text = line.rstrip("\n")
        try:
            metadata = producer.send(ProducerRecord(topic, text))
            said.append(f"% Message delivered: {metadata}")
        except KafkaException as failed:
            said.append(f"% Message delivery failed: {failed.error.str()}")
        if not text:
            break
    del producer  # no explicit close is needed
    assert said == [f"% Message delivered: {topic}[0]@{offset}" for offset in range(3)]
    assert [message.value() for message in read(broker, topic, 3)] == [b"first", b"second", b""]


def test_the_async_program_is_told_in_callbacks(broker, props, topic):
    said, lines = [], io.StringIO("first\nsecond\n\nnever read\n")

    def report(metadata, error):
        said.append(f"% Message delivered: {metadata}" if error is None
                    else f"% Message delivery failed: {error.str()}")

    producer = KafkaAsyncProducer(props)
    for line in lines:
        text = line.rstrip("\n")
        producer.send(ProducerRecord(topic, text), report)
        if not text:
            break
    del producer
    gc.collect()
    assert said == [f"% Message delivered: {topic}[0]@{offset}" for offset in range(3)]


def test_the_manual_program_erases_what_was_delivered(broker, props, topic):
    to_be_sent = {number: (f"key{number}", f"value{number}") for number in range(20)}
    errors = []

    def acknowledged(metadata, error):
        if error is not None:
            errors.append((metadata.record_id, error))
        else:
            del to_be_sent[metadata.record_id]

    with KafkaAsyncProducer(props, MANUAL) as producer:
        for number, (key, value) in to_be_sent.items():  # it cannot change meanwhile: callbacks wait for poll_events
            producer.send(ProducerRecord(topic, value, key, 0, record_id=number), acknowledged)
        assert len(to_be_sent) == 20
        while to_be_sent:
            producer.poll_events(5)
    assert errors == []
    assert {message.key() for message in read(broker, topic, 20)} == {f"key{n}".encode() for n in range(20)}


def test_the_program_with_headers(broker, props, topic):
    errors = []
    with KafkaAsyncProducer(props) as producer:
        record = ProducerRecord(topic, b"", b"", 0)
        for session, number in (("s-1", 1), ("s-2", 2)):
            record.headers = [("session", session), ("seqno", number.to_bytes(4, "little"))]
            producer.send(record, lambda metadata, error: errors.append(error))
    assert errors == [None, None]
    assert [message.headers() for message in read(broker, topic, 2)] == [
        [("session", b"s-1"), ("seqno", b"\1\0\0\0")], [("session", b"s-2"), ("seqno", b"\2\0\0\0")]]


# Names and ways to send


def test_the_api_is_that_of_java_under_pythons_names():
    assert list(inspect.signature(KafkaSyncProducer.send).parameters) == ["self", "record"]
    assert list(inspect.signature(KafkaAsyncProducer.send).parameters) == ["self", "record", "callback", "option"]
    assert list(inspect.signature(Producer.send).parameters) == ["self", "record", "callback"]
    for name in ("topic", "partition", "key", "value", "headers", "timestamp_ms"):
        assert name in inspect.signature(ProducerRecord).parameters
    for name in ("topic", "partition", "offset", "timestamp_ms"):
        assert name in inspect.signature(RecordMetadata).parameters
    for producer in (KafkaSyncProducer, KafkaAsyncProducer):
        assert all(callable(getattr(producer, name)) for name in ("send", "flush", "purge", "close"))


def test_only_the_async_producer_has_callbacks_and_events(props):
    with KafkaSyncProducer(props) as producer:
        with pytest.raises(TypeError):
            producer.send(ProducerRecord("one", b"v"), lambda metadata, error: None)
        assert not hasattr(producer, "poll_events")


def test_automatic_polling_is_the_default(props):
    told = []
    assert inspect.signature(KafkaAsyncProducer).parameters["events_polling"].default is AUTO
    with KafkaAsyncProducer(props) as producer:
        producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append(threading.current_thread()))
        producer.flush(10)
    assert told[0] is not threading.current_thread()


def test_an_async_send_returns_nothing_and_does_not_wait_for_the_broker(broker, props):
    told = []
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.5))
    for option in (AUTO, MANUAL):
        with KafkaAsyncProducer(props, option) as producer:
            assert producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append(error)) is None
            assert told == []
        assert told.pop() is None


def test_sync_sends_cost_a_request_each_and_async_ones_share(broker, props):
    counts = counted(broker)
    with KafkaSyncProducer(props) as producer:
        for _ in range(20):
            producer.send(ProducerRecord("one", b"v"))
    assert counts == [1] * 20
    counts.clear()
    with KafkaAsyncProducer({**props, "linger.ms": 100}) as producer:
        for _ in range(20):
            producer.send(ProducerRecord("one", b"v"))
    assert sum(counts) == 20
    assert len(counts) <= 3


# Memory


@pytest.mark.parametrize("make", [KafkaSyncProducer, KafkaAsyncProducer])
def test_a_record_borrows_its_memory_until_send_has_copied_it(broker, props, topic, make):
    value, key, header = bytearray(b"value0"), bytearray(b"key0"), bytearray(b"head0")
    with make(props) as producer:
        record = ProducerRecord(topic, value, memoryview(key), headers={"h": header})
        for number in (b"1", b"2"):
            value[-1:] = number  # seen by send(), for the record owns nothing
            header[-1:] = number
            producer.send(record)
        value[-1:] = header[-1:] = b"3"
    assert [(m.value(), m.key(), m.headers()) for m in read(broker, topic, 2)] == [
        (b"value1", b"key0", [("h", b"head1")]), (b"value2", b"key0", [("h", b"head2")])]


def test_the_report_of_a_record_that_cannot_be_sent_has_memory_of_its_own(props):
    told, value, header = [], bytearray(b"value"), bytearray(b"head")
    with KafkaAsyncProducer(props, MANUAL) as producer:
        producer.send(ProducerRecord("a b", value, "kéy", 3, {"h": header}), lambda *report: told.append(report))
        value.clear()
        header.clear()
        producer.poll_events(5)
    ((metadata, error),) = told
    assert error == KafkaError._INVALID_ARG
    assert (metadata.partition, metadata.value_size, metadata.key_size) == (3, 5, 4)
    assert metadata.headers == [("h", b"head")]


def test_memory_may_be_given_back_in_the_callback_and_every_record_gets_one(broker, props):
    pool = [bytearray(100) for _ in range(8)]
    used = sent = 0
    with KafkaAsyncProducer({**props, "queue.buffering.max.messages": 50}) as producer:
        while sent < 500:
            if not pool:
                producer.flush(10)
            block = pool.pop()
            used += 1
            producer.send(ProducerRecord("one", block), lambda metadata, error, block=block: pool.append(block))
            sent += 1
    assert len(pool) == 8


def test_a_sync_producer_that_is_let_go_is_closed(props):
    producer = KafkaSyncProducer(props)
    producer.send(ProducerRecord("one", b"v"))
    engine = producer._producer._engine
    del producer
    gc.collect()
    assert engine.closed


# Manual polling


def test_a_manual_send_that_finds_no_memory_left_raises_until_events_are_polled(props):
    told = []
    with KafkaAsyncProducer({**props, "queue.buffering.max.kbytes": 1}, MANUAL) as producer:
        producer.send(ProducerRecord("one", b"x" * 700), lambda metadata, error: told.append(error))
        for _ in range(3):
            with pytest.raises(BufferFullError, match=r"poll_events\(\).*queue\.buffering\.max\.kbytes"):
                producer.send(ProducerRecord("one", b"x" * 700), lambda metadata, error: told.append("never"))
        assert producer.poll_events(10) == 1
        producer.send(ProducerRecord("one", b"x" * 700), lambda metadata, error: told.append(error))
    assert told == [None, None]


def test_a_delivered_record_takes_room_until_its_callback_was_called(broker, props):
    before = broker.end_offsets("one")[0]
    with KafkaAsyncProducer({**props, "queue.buffering.max.messages": 1}, MANUAL) as producer:
        producer.send(ProducerRecord("one", b"v"), lambda metadata, error: None)
        ends_at = time.monotonic() + 10
        while broker.end_offsets("one")[0] == before and time.monotonic() < ends_at:
            time.sleep(0.01)
        time.sleep(0.1)  # stored, and its answer has come
        with pytest.raises(BufferFullError):
            producer.send(ProducerRecord("one", b"v"))
        producer.poll_events(5)
        producer.send(ProducerRecord("one", b"v"))


def test_a_callback_in_poll_events_may_send(broker, props):
    told = []
    with KafkaAsyncProducer(props, MANUAL) as producer:
        def again(metadata, error):
            told.append(metadata.record_id)
            if len(told) < 5:
                producer.send(ProducerRecord("one", b"v"), again)

        producer.send(ProducerRecord("one", b"v"), again)
        while len(told) < 5:
            assert producer.poll_events(5) == 1
    assert told == [0, 1, 2, 3, 4]


# Questions and answers


def test_a_topic_that_does_not_exist_is_made_with_the_brokers_defaults():
    settings = BrokerSettings(auto_create_topics=True, default_partitions=3, default_replication_factor=1)
    with EmbeddedBroker(nodes=3, settings=settings) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        with KafkaSyncProducer(servers) as producer:
            assert producer.send(ProducerRecord("sent", b"v", partition=2)).has_offset()
        with Consumer({**servers, "group.id": "g", "allow.auto.create.topics": True}) as consumer:
            consumer.subscribe(["subscribed"])
            consumer.poll(0.5)
        with Consumer({**servers, "group.id": "g"}) as consumer:
            consumer.subscribe(["not-made"])
            consumer.poll(0.5)
        with Producer(servers) as producer:
            made = producer.list_topics(timeout=10).topics
    assert "not-made" not in made
    for name in ("sent", "subscribed"):
        assert [len(partition.replicas) for partition in made[name].partitions.values()] == [1, 1, 1]


def test_more_records_in_a_batch_mean_fewer_batches(broker, props):
    sizes = []
    for most in (10, 100):
        counts = counted(broker)
        with KafkaAsyncProducer({**props, "batch.num.messages": most, "linger.ms": 1000}) as producer:
            for _ in range(400):
                producer.send(ProducerRecord("one", b"v"))
        assert sum(counts) == 400
        assert max(counts) <= most
        sizes.append(len(counts))
        broker.clear_faults()
    assert sizes[0] >= 40
    assert sizes[1] <= 5


def test_linger_is_added_to_the_latency_of_a_lone_record(props):
    latencies = []
    for linger_ms in (0, 300):
        with KafkaSyncProducer({**props, "linger.ms": linger_ms}) as producer:
            producer.send(ProducerRecord("one", b"v"))
            latencies.append(producer.send(ProducerRecord("one", b"v")).latency_s)
    assert latencies[1] >= 0.3 > latencies[0]


def test_a_send_blocks_while_there_is_no_memory_left(broker, props):
    with KafkaAsyncProducer({**props, "queue.buffering.max.kbytes": 1}) as producer:
        producer.send(ProducerRecord("one", b"v"))
        producer.flush(10)
        broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.4))
        producer.send(ProducerRecord("one", b"x" * 700))
        began_at = time.monotonic()
        producer.send(ProducerRecord("one", b"x" * 700))
        assert time.monotonic() - began_at >= 0.3


@pytest.mark.parametrize("most", [10, 1000])
def test_a_larger_queue_holds_more_records_locally(broker, props, most):
    broker.add_fault(Fault(action=Action.DELAY, request=ProduceRequest, delay_s=0.3))
    with KafkaAsyncProducer({**props, "queue.buffering.max.messages": most}, MANUAL) as producer:
        for _ in range(most):
            producer.send(ProducerRecord("one", b"v"), lambda metadata, error: None)
        with pytest.raises(BufferFullError):
            producer.send(ProducerRecord("one", b"v"))


THREADS = """
import sys, threading
from headrace import *
option = {"sync": None, "auto": EventsPollingOption.AUTO, "manual": EventsPollingOption.MANUAL}[sys.argv[2]]
conf = {"bootstrap.servers": sys.argv[1], "compression.type": sys.argv[3]}
producer = KafkaSyncProducer(conf) if option is None else KafkaAsyncProducer(conf, option)
for partition in range(3):
    producer.send(ProducerRecord("three", b"v" * int(sys.argv[4]), partition=partition))
producer.flush()
print(*(thread.name for thread in threading.enumerate()))
producer.close()
"""


@pytest.mark.parametrize(("face", "codec", "size", "expected"), [
    ("sync", "none", 100, ["MainThread", "headrace"]),
    ("manual", "none", 100, ["MainThread", "headrace"]),
    ("auto", "none", 100, ["MainThread", "headrace", "headrace-callbacks"]),
    ("sync", "gzip", 100, ["MainThread", "headrace"]),
    ("sync", "gzip", 10_000, ["MainThread", "headrace", "headrace-seal"]),
])
def test_there_is_one_thread_for_all_brokers_one_for_callbacks_and_two_at_most_for_compression(
    face, codec, size, expected
):
    with EmbeddedBroker(nodes=3, topics={"three": 3}) as broker:
        done = subprocess.run([sys.executable, "-c", THREADS, broker.bootstrap_servers, face, codec, str(size)],
                              capture_output=True, timeout=60, check=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    names = [name.rstrip("_0123456789") for name in done.stdout.decode().split()]
    assert sorted(set(names)) == sorted(expected)
    assert len(names) <= len(expected) + (codec != "none")


def test_callbacks_run_while_the_sending_thread_goes_on(props):
    """So what both touch needs a lock, or what is as good as one."""
    told_at, finished = [], []
    with KafkaAsyncProducer(props) as producer:
        ends_at = time.monotonic() + 10
        while not told_at and time.monotonic() < ends_at:
            producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told_at.append(
                (threading.current_thread() is threading.main_thread(), bool(finished))))
        finished.append(True)
    assert told_at[0] == (False, False)


@pytest.mark.parametrize("partition", [-2, 2**31, 2**70])
def test_a_partition_that_cannot_exist_is_unknown_everywhere(props, partition):
    told, record = [], ProducerRecord("one", b"v", partition=partition)
    with KafkaAsyncProducer(props) as producer:
        producer.send(record, lambda metadata, error: told.append((metadata.record_id, error)))
    assert told == [(0, KafkaError._UNKNOWN_PARTITION)]
    with KafkaSyncProducer(props) as sync, Producer(props) as plain:
        for send in (sync.send, plain.send):
            with pytest.raises(KafkaException, match=f"no partition {partition}") as caught:
                send(record)
            assert caught.value.error == KafkaError._UNKNOWN_PARTITION


@pytest.mark.parametrize(("fields", "text"), [
    ({"partition": "0"}, "partition must be int or None, not str"),
    ({"partition": 1.0}, "partition must be int or None, not float"),
    ({"timestamp_ms": "now"}, "timestamp_ms must be int or None, not str"),
])
def test_a_number_of_a_wrong_type_is_named(props, fields, text):
    record = ProducerRecord("one", b"v", **fields)
    with KafkaSyncProducer(props) as sync, KafkaAsyncProducer(props) as each, Producer(props) as plain:
        for producer in (sync, each, plain):
            with pytest.raises(TypeError, match=text):
                producer.send(record)


def test_errors_have_the_brokers_code_in_exceptions_and_callbacks_alike(broker, props):
    code, told = KafkaError.POLICY_VIOLATION, []
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, times=2, error_code=code))
    with KafkaSyncProducer(props) as sync, pytest.raises(KafkaException) as caught:
        sync.send(ProducerRecord("one", b"v"))
    with KafkaAsyncProducer(props) as producer:
        producer.send(ProducerRecord("one", b"v"), lambda metadata, error: told.append((str(metadata), error)))
    assert caught.value.error == code
    assert told == [("one[0]@?", code)]
