"""Interceptors see every record and what became of it, and cannot hurt the producer or each other (KIP-42)."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Iterator

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
    RecordMetadata,
    TopicPartition,
)
from headrace.aio import AIOProducer
from headrace.broker.settings import BrokerSettings
from headrace.errors import BufferFullError, ClientClosedError, ConfigError
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import ProduceRequest


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "four": 4}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


class Witness(ProducerInterceptor):
    """Notes what it is told, in a list that several may share."""

    def __init__(self, notes=None, name=""):
        self.notes = [] if notes is None else notes
        self.name = name
        self.config = None

    def configure(self, config):
        self.config = config
        self.notes.append(f"configure {self.name}")

    def on_send(self, record):
        self.notes.append(f"on_send {self.name} {record.value}")
        return record

    def on_acknowledgement(self, metadata, error):
        self.notes.append(f"ack {self.name} {metadata} {error.name() if isinstance(error, KafkaError) else error}")

    def close(self):
        self.notes.append(f"close {self.name}")


class Changing(ProducerInterceptor):
    """Does to each record what it is told."""

    def __init__(self, change):
        self.change = change

    def on_send(self, record):
        return self.change(record)


class Acks(ProducerInterceptor):
    """Keeps acknowledgements."""

    def __init__(self):
        self.got = []

    def on_acknowledgement(self, metadata, error):
        self.got.append((metadata, error))


class Named(Witness):
    """Made by its import path; the last one is kept."""

    last = None

    def __init__(self):
        super().__init__()
        Named.last = self


def conf(broker, *interceptors, **properties):
    return {"bootstrap.servers": broker.bootstrap_servers, "interceptor.classes": list(interceptors),
            **{name.replace("_", "."): value for name, value in properties.items()}}


def value_of(record, value):
    record.value = value
    return record


def stored(broker, topic, partition, offset):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, offset)])
    (message,) = consumer.consume(1, 10)
    consumer.close()
    return message


# The order of things


def test_they_are_configured_called_in_order_acknowledged_before_the_callback_and_closed_once(broker):
    notes = []
    producer = Producer(conf(broker, Witness(notes, "a"), Witness(notes, "b")))
    start = broker.end_offsets("one")[0]
    for value in (b"1", b"2"):
        producer.produce("one", value, callback=lambda error, message: notes.append(f"callback {message.value()}"))
    producer.flush(10)
    producer.close()
    producer.close()
    assert notes == [
        "configure a", "configure b", "on_send a b'1'", "on_send b b'1'", "on_send a b'2'", "on_send b b'2'",
        f"ack a one[0]@{start} None", f"ack b one[0]@{start} None", "callback b'1'",
        f"ack a one[0]@{start + 1} None", f"ack b one[0]@{start + 1} None", "callback b'2'",
        "close a", "close b",
    ]


def test_send_acknowledges_before_its_callback_and_its_future(broker):
    notes = []
    with Producer(conf(broker, Witness(notes))) as producer:
        future = producer.send(ProducerRecord("one", "v", record_id=3), lambda m, e: notes.append(f"callback {m}"))
        metadata = future.result(10)
        assert notes == ["configure ", "on_send  v", f"ack  {metadata} None", f"callback {metadata}"]


def test_the_record_comes_before_anything_is_serialised_or_a_partition_chosen(broker):
    seen = []
    given = {"topic": "four", "value": "värld", "key": "k", "headers": {"h": "x"}, "timestamp": 1_700_000_000_000}
    with Producer(conf(broker, Changing(lambda record: seen.append(record) or record))) as producer:
        producer.produce(**given)
        producer.produce("four", b"v", partition=2)
    assert seen == [
        ProducerRecord("four", "värld", "k", None, {"h": "x"}, 1_700_000_000_000),
        ProducerRecord("four", b"v", None, 2, None, None),
    ]


def test_each_gets_what_the_one_before_returned_and_the_last_is_stored(broker):
    def to_topic(record):
        return ProducerRecord("four", record.value + "!", "key", 3, [("added", b"1")], 1_700_000_000_000, 9)

    acks = Acks()
    interceptors = (Changing(lambda r: value_of(r, r.value + "a")), Changing(lambda r: value_of(r, r.value + "b")),
                    Changing(to_topic), acks)
    with Producer(conf(broker, *interceptors)) as producer:
        producer.produce("one", "v")
    ((metadata, error),) = acks.got
    assert (error, metadata.topic, metadata.partition, metadata.record_id) == (None, "four", 3, 9)
    assert (metadata.key_size, metadata.value_size, metadata.headers) == (3, 4, [("added", b"1")])
    assert metadata.latency_s > 0
    message = stored(broker, "four", 3, metadata.offset)
    assert (message.value(), message.key(), message.timestamp()) == (b"vab!", b"key", (1, 1_700_000_000_000))


def test_the_partition_is_chosen_by_the_changed_key(broker):
    partitions = {}
    with Producer(conf(broker, Changing(lambda r: ProducerRecord(r.topic, r.value, "same")))) as producer:
        for key in ("a", "b", "c", "d", "e", "f", "g"):
            partitions[key] = producer.send(ProducerRecord("four", b"v", key)).result(10).partition
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as plain:
        expected = plain.send(ProducerRecord("four", b"v", "same")).result(10).partition
    assert set(partitions.values()) == {expected}


# Mistakes


def test_one_that_raises_is_logged_and_passed_over_with_the_last_good_record(broker, caplog):
    def spoil(record):
        record.value = "spoilt"
        record.headers["spoilt"] = b"1"
        raise ZeroDivisionError("mine")

    headers, acks = {"h": b"1"}, Acks()
    given = ProducerRecord("one", "v", headers=headers)
    with caplog.at_level(logging.ERROR, "headrace"), Producer(conf(
            broker, Changing(lambda r: value_of(r, "good")), Changing(spoil), acks)) as producer:
        metadata = producer.send(given).result(10)
    message = stored(broker, "one", 0, metadata.offset)
    assert (message.value(), message.headers()) == (b"good", [("h", b"1")])
    assert "on_send of" in caplog.text
    assert "Changing raised" in caplog.text
    assert "ZeroDivisionError: mine" in caplog.text
    assert (given, headers) == (ProducerRecord("one", "v", headers={"h": b"1"}), {"h": b"1"})  # the user's are theirs


@pytest.mark.parametrize("wrong", [None, "text", b"v", ("one", b"v"), RecordMetadata("one")])
def test_a_wrong_return_value_is_logged_and_ignored(broker, caplog, wrong):
    with caplog.at_level(logging.ERROR, "headrace"), Producer(conf(broker, Changing(lambda r: wrong))) as producer:
        metadata = producer.send(ProducerRecord("one", b"kept")).result(10)
    assert stored(broker, "one", 0, metadata.offset).value() == b"kept"
    assert f"returned {type(wrong).__name__} where a ProducerRecord is expected" in caplog.text


def test_what_on_acknowledgement_and_close_raise_is_logged_and_hurts_nobody(broker, caplog):
    class Bad(ProducerInterceptor):
        def on_acknowledgement(self, metadata, error):
            raise ValueError("bad ack")

        def close(self):
            raise ValueError("bad close")

    notes = []
    with caplog.at_level(logging.ERROR, "headrace"):
        with Producer(conf(broker, Bad(), Witness(notes))) as producer:
            assert producer.send(ProducerRecord("one", b"v")).result(10).has_offset()
            producer.produce("one", b"w", callback=lambda error, message: notes.append("callback"))
            producer.flush(10)
        assert [note.split()[0] for note in notes] == [
            "configure", "on_send", "ack", "on_send", "ack", "callback", "close"]
    assert caplog.text.count("bad ack") >= 2
    assert "bad close" in caplog.text


def test_a_record_that_became_impossible_is_refused_and_acknowledged(broker):
    acks = Acks()
    with Producer(conf(broker, Changing(lambda r: value_of(r, 5)), acks)) as producer, pytest.raises(
            TypeError, match="value must be bytes"):
        producer.produce("one", b"v")
    ((metadata, error),) = acks.got
    assert (metadata.topic, metadata.partition, type(error)) == ("one", RecordMetadata.NO_PARTITION, TypeError)


# Acknowledgements


def test_records_without_a_callback_are_acknowledged_and_nobody_has_to_poll(broker):
    acks = Acks()
    with Producer(conf(broker, acks, queue_buffering_max_messages=10)) as producer:
        for number in range(100):
            while True:
                try:
                    producer.produce("one", str(number))
                    break
                except BufferError:
                    time.sleep(0.005)
        assert producer.flush(10) == 0
        stored_at = [metadata.offset for metadata, error in acks.got if error is None]
    assert stored_at == list(range(stored_at[0], stored_at[0] + 100))
    assert {error.code() for _, error in acks.got if error} <= {KafkaError._QUEUE_FULL}


def test_with_reports_of_errors_only_every_record_is_acknowledged_all_the_same(broker):
    acks, reports = Acks(), []
    with Producer(conf(broker, acks, delivery_report_only_error=True, linger_ms=60_000)) as producer:
        producer.produce("one", b"1", callback=lambda error, message: reports.append(error))
        producer.flush(10)
        producer.produce("one", b"2", callback=lambda error, message: reports.append(error))
        producer.purge()
        assert [error for _, error in acks.got] == [None, KafkaError._PURGE_QUEUE]
        assert reports == []
        producer.poll(1)
    assert reports == [KafkaError._PURGE_QUEUE]


def test_the_default_callback_is_called_behind_them(broker):
    notes = []
    properties = conf(broker, Witness(notes), on_delivery=lambda error, message: 0)
    properties.pop("on.delivery")
    with Producer({**properties, "on_delivery": lambda error, message: notes.append("default")}) as producer:
        producer.produce("one", b"v")
    assert [note.split()[0] for note in notes] == ["configure", "on_send", "ack", "default", "close"]


def test_failed_records_are_acknowledged_with_what_is_known(broker):
    acks = Acks()
    with Producer(conf(broker, acks, message_timeout_ms=1500)) as producer:
        producer.produce("nope", b"abc", "k", headers={"h": b"1"})
        producer.flush(10)
    ((metadata, error),) = acks.got
    assert error == KafkaError._UNKNOWN_TOPIC
    assert (metadata.topic, metadata.partition, metadata.offset) == ("nope", RecordMetadata.NO_PARTITION, -1)
    assert (metadata.key_size, metadata.value_size, metadata.headers) == (1, 3, [("h", b"1")])


WAYS = {
    "produce": lambda producer, topic, value, **more: producer.produce(topic, value, headers={"h": b"1"}, **more),
    "produce_batch": lambda producer, topic, value, **more: producer.produce_batch(
        topic, [{"value": value, "headers": {"h": b"1"}, **more}]),
    "send": lambda producer, topic, value, **more: producer.send(
        ProducerRecord(topic, value, headers={"h": b"1"}, **more)),
}


@pytest.mark.parametrize(("topic", "more", "error"), [
    ("one", {"value": b"x" * 1_000_001}, KafkaError.MSG_SIZE_TOO_LARGE),
    ("nope", {}, KafkaError._UNKNOWN_TOPIC),
    ("one", {"partition": 7}, KafkaError._UNKNOWN_PARTITION),
    ("one", {"unreachable": "wait"}, KafkaError._MSG_TIMED_OUT),
    ("one", {"unreachable": "purge"}, KafkaError._PURGE_QUEUE),
], ids=["too large", "no such topic", "no such partition", "given up in time", "purged"])
@pytest.mark.parametrize("way", WAYS)
def test_a_record_that_fails_before_it_is_sent_is_acknowledged_once(way, topic, more, error):
    acks, sent = Acks(), []
    more = {"value": b"abc", **more}
    unreachable = more.pop("unreachable", None)
    with EmbeddedBroker(topics={"one": 1}, settings=BrokerSettings(auto_create_topics=False)) as broker:
        broker.add_fault(Fault(action=Action.PASS, request=ProduceRequest, times=None, effect=sent.append))
        with Producer(conf(broker, acks, message_timeout_ms=1500, max_block_ms=500, linger_ms=1000)) as producer:
            first = producer.send(ProducerRecord("one", b"v"))
            producer.flush(10)
            first.result(10)
            acks.got.clear()
            sent.clear()
            if unreachable:
                broker.stop()  # the topic is known, and nobody there any more
            with contextlib.suppress(KafkaException):
                WAYS[way](producer, topic, **more)
            if unreachable == "purge":
                producer.purge()
            assert producer.flush(10) == 0
    ((metadata, told),) = acks.got
    assert told == error
    assert (metadata.topic, metadata.offset, metadata.headers) == (topic, -1, [("h", b"1")])
    assert sent == []


@pytest.mark.parametrize(("record", "error"), [
    (ProducerRecord("one", b"v", partition=7, record_id=4), KafkaError._UNKNOWN_PARTITION),
    (ProducerRecord("one", b"x" * 1_000_001, record_id=4), KafkaError.MSG_SIZE_TOO_LARGE),
    (ProducerRecord("a b", b"v", record_id=4), KafkaError._INVALID_ARG),
    (ProducerRecord("nope", b"v", record_id=4), KafkaError._UNKNOWN_TOPIC),
])
def test_a_send_that_raises_is_acknowledged(broker, record, error):
    acks = Acks()
    with Producer(conf(broker, acks, max_block_ms=200)) as producer:
        producer.send(ProducerRecord("one", b"v")).result(10)
        acks.got.clear()
        with pytest.raises(KafkaException) as caught:
            producer.send(record)
    assert acks.got == [(RecordMetadata(record.topic, record.partition or -1, record_id=4), error)]
    assert caught.value.error == error


def test_a_full_buffer_and_a_closed_producer_are_acknowledged_as_well(broker):
    acks = Acks()
    producer = Producer(conf(broker, acks, queue_buffering_max_messages=1, max_block_ms=300))
    producer.send(ProducerRecord("one", b"v")).result(10)
    producer.produce("one", b"v", callback=lambda error, message: None)  # waits for a poll()
    del acks.got[:]
    for call in (lambda: producer.produce("one", b"w", timestamp=5, headers={"h": "x"}),
                 lambda: producer.send(ProducerRecord("one", b"w", timestamp_ms=5, headers={"h": "x"}))):
        with pytest.raises(BufferFullError):
            call()
    full = RecordMetadata("one", timestamp_ms=5, headers=[("h", b"x")])
    assert acks.got == [(full, KafkaError._QUEUE_FULL)] * 2
    producer.close()
    del acks.got[:]
    with pytest.raises(ClientClosedError):
        producer.produce("one", b"w")
    assert acks.got == [(RecordMetadata("one"), KafkaError._DESTROY)]


def test_only_what_is_no_record_has_no_metadata(broker):
    acks = Acks()
    with Producer(conf(broker, acks)) as producer, pytest.raises(TypeError):
        producer.send(None)
    ((metadata, error),) = acks.got
    assert metadata is None
    assert isinstance(error, TypeError)


def test_every_record_of_a_batch_passes_through_them(broker):
    notes, reports = [], []
    with Producer(conf(broker, Witness(notes))) as producer:
        producer.send(ProducerRecord("one", b"-")).result(10)
        del notes[:]
        batch = [{"value": b"1"}, {"value": b"2", "partition": 9}, {"value": b"3"}]
        assert producer.produce_batch("one", batch, callback=lambda e, m: reports.append(m.value())) == 2
        producer.flush(10)
        assert [note.split()[0] for note in notes] == ["on_send", "on_send", "ack", "on_send", "ack", "ack"]
        assert notes[2] == "ack  one[9]@? _UNKNOWN_PARTITION"
    assert batch[1]["_error"] == KafkaError._UNKNOWN_PARTITION
    assert reports == [b"1", b"3"]


# The other faces


def test_the_sync_producer_has_them(broker):
    notes = []
    with KafkaSyncProducer(conf(broker, Witness(notes))) as producer:
        metadata = producer.send(ProducerRecord("one", b"v"))
        assert notes[1:] == ["on_send  b'v'", f"ack  {metadata} None"]
        with pytest.raises(KafkaException):
            producer.send(ProducerRecord("a b"))
        assert notes[-1] == "ack  a b[-1]@? _INVALID_ARG"
    assert notes[-1] == "close "


@pytest.mark.parametrize("option", list(EventsPollingOption))
def test_the_async_producer_has_them_and_each_record_is_acknowledged_once(broker, option):
    notes = []
    with KafkaAsyncProducer(conf(broker, Witness(notes), queue_buffering_max_messages=1), option) as producer:
        producer.send(ProducerRecord("one", b"v"), lambda metadata, error: notes.append("callback"))
        producer.flush(10)
        producer.send(ProducerRecord("a b"), lambda metadata, error: notes.append("callback"))
        producer.flush(10)
        if option is EventsPollingOption.MANUAL:
            producer.send(ProducerRecord("one", b"v"))
            with pytest.raises(BufferFullError):
                producer.send(ProducerRecord("one", b"w"))
            assert notes[-1] == "ack  one[-1]@? _QUEUE_FULL"
            producer.flush(10)
        with pytest.raises(TypeError):
            producer.send(None)
    kinds = [note.split()[0] for note in notes]
    assert kinds[:7] == ["configure", "on_send", "ack", "callback", "on_send", "ack", "callback"]
    assert kinds[-2:] == ["ack", "close"]
    assert kinds.count("ack") == kinds.count("on_send") + 1


def test_under_asyncio_they_are_the_same(broker):
    notes = []

    async def main():
        async with AIOProducer(conf(broker, Witness(notes), queue_buffering_max_messages=2)) as producer:
            futures = [await producer.produce("one", str(n), on_delivery=lambda e, m: notes.append("callback"))
                       for n in range(5)]  # more than there is room for: on_send is called once for each
            messages = await asyncio.gather(*futures)
            metadata = await (await producer.send(ProducerRecord("one", b"v"), lambda m, e: notes.append("callback")))
            assert metadata.offset == messages[-1].offset() + 1
            with pytest.raises(KafkaException):
                await producer.send(ProducerRecord("one", b"v", partition=7))
            with pytest.raises(KafkaException):
                await (await producer.produce("one", b"v", partition=7))
            with pytest.raises(TypeError):
                await producer.send(None)
            assert await producer.produce_batch("one", [{"value": b"1"}, {"value": b"2", "partition": 7}]) == 1

    asyncio.run(main())
    kinds = [note.split()[0] for note in notes]
    assert (kinds.count("on_send"), kinds.count("callback"), kinds.count("close")) == (5 + 1 + 2 + 2, 6, 1)
    assert kinds.count("ack") == kinds.count("on_send") + 1  # None was never sent
    assert sum("_UNKNOWN_PARTITION" in note for note in notes) == 3
    first = kinds.index("callback")
    assert kinds[first - 1] == "ack"


def test_under_asyncio_a_producer_that_was_never_used_closes_them_as_well(broker):
    notes = []

    async def main():
        producer = AIOProducer(conf(broker, Witness(notes)))
        await producer.close()
        await producer.close()

    asyncio.run(main())
    assert notes == ["configure ", "close "]


# Configuration


def test_configure_gets_all_properties_as_they_were_given_and_a_client_id(broker):
    one, two = Witness(), Witness()
    given = conf(broker, one, delivery_timeout_ms="5000", my_interceptor_colour="red", interceptor_limit=5)
    with Producer(given), Producer({**given, "interceptor.classes": two, "client.id": "mine"}):
        pass
    assert one.config == {**given, "client.id": "headrace"}
    assert two.config["client.id"] == "mine"


def test_properties_of_interceptors_are_refused_where_there_is_none(broker):
    with pytest.raises(ConfigError, match=r"my\.interceptor\.colour"):
        Producer({"bootstrap.servers": broker.bootstrap_servers, "my.interceptor.colour": "red"})


@pytest.mark.parametrize("entry", ["{}.Named", " {}:Named , {}.Acks", [Named], ["{}.Named", Acks()], Named])
def test_they_are_given_as_import_paths_classes_or_objects(broker, entry):
    if isinstance(entry, str):
        entry = entry.replace("{}", __name__)
    elif isinstance(entry, list):
        entry = [each.replace("{}", __name__) if isinstance(each, str) else each for each in entry]
    Named.last = None
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "interceptor.classes": entry}) as producer:
        producer.send(ProducerRecord("one", b"v")).result(10)
    assert [note.split()[0] for note in Named.last.notes] == ["configure", "on_send", "ack", "close"]


class NeedsArguments(ProducerInterceptor):
    def __init__(self, needed):
        self.needed = needed


class Asynchronous(ProducerInterceptor):
    async def on_send(self, record):
        return record


@pytest.mark.parametrize(("entry", "text"), [
    ("com.example.Auditing", "No module named 'com'.*package.module.Class"),
    ("headrace.types.records.Nothing", "no attribute 'Nothing'"),
    ("Plain", "package.module.Class"),
    (object, "expected a class derived from headrace.ProducerInterceptor"),
    ([5], "expected a class derived from"),
    (NeedsArguments, "cannot be made without arguments.*give an object"),
    (Asynchronous, "on_send of .*Asynchronous.* must be a plain function"),
])
def test_what_is_no_interceptor_is_refused_with_the_property_and_the_remedy(broker, entry, text):
    with pytest.raises(ConfigError, match=text) as caught:
        Producer({"bootstrap.servers": broker.bootstrap_servers, "interceptor.classes": entry})
    assert "interceptor.classes" in str(caught.value)


def test_one_that_refuses_its_configuration_stops_the_producer_and_the_others_are_closed(broker):
    class Refusing(ProducerInterceptor):
        def configure(self, config):
            raise KeyError("interceptor.limit")

    notes = []
    with pytest.raises(ConfigError, match=r"Refusing.* refused its configuration: KeyError: 'interceptor.limit'"):
        Producer(conf(broker, Witness(notes), Refusing()))
    assert notes == ["configure ", "close "]


def test_without_them_produce_is_bound_to_the_buffers_directly(broker):
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "interceptor.classes": ""}) as producer:
        assert producer._calls.intercepted.open is producer._engine.accumulators.open
        assert producer._calls.intercepted.produce == producer._engine.produce
        assert not producer._engine.deliveries.has_at_once


def test_a_producer_whose_brokers_never_answer_acknowledges_what_it_gives_up():
    acks = Acks()
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{reserved.getsockname()[1]}", "interceptor.classes": acks,
                             "error_cb": lambda error: None})
        for _ in range(3):
            producer.produce("one", b"v")
        producer.purge()
        producer.close()
    assert [error for _, error in acks.got] == [KafkaError._PURGE_QUEUE] * 3
