"""What Java's documentation of ProducerInterceptor says beyond `test_interceptors`: threads, types, chains, keys."""

import logging
import threading
import time
from collections.abc import Iterator

import pytest

from headrace import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    ProducerInterceptor,
    ProducerRecord,
    RecordMetadata,
    TopicPartition,
)
from headrace.broker.settings import BrokerSettings
from headrace.errors import ConfigError
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import ProduceRequest


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "eight": 8}, settings=BrokerSettings(auto_create_topics=False)) as made:
        yield made


def making(broker, *interceptors, **properties):
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "interceptor.classes": list(interceptors),
                     **{name.replace("_", "."): value for name, value in properties.items()}})


def interceptor(**methods):
    """An interceptor with the given functions as its methods."""
    return type("Made", (ProducerInterceptor,), {
        name: lambda self, *arguments, call=call: call(*arguments) for name, call in methods.items()})()


def changed(value):
    return interceptor(on_send=lambda record: ProducerRecord(record.topic, value(record.value)))


def failing(record):
    raise LookupError("no change today")


def stored_values(broker, topic):
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        return [message.value() for message in consumer.consume(broker.end_offsets(topic)[0], 5)]


# Configuration


def test_they_share_the_names_of_properties_but_none_can_change_what_the_next_one_is_given(broker):
    seen = []

    def take(config):
        seen.append(config.pop("audit.interceptor.level"))
        config["bootstrap.servers"] = "elsewhere:1"

    made = [interceptor(configure=take), interceptor(configure=take)]
    with making(broker, *made, **{"audit.interceptor.level": 7}) as producer:
        assert producer.send(ProducerRecord("one", b"v")).result(10).has_offset()
    assert seen == [7, 7]


def test_a_property_of_theirs_cannot_take_the_name_of_one_of_the_producers(broker):
    with pytest.raises(ConfigError, match=r'"linger\.ms"'):
        making(broker, interceptor(), **{"linger.ms": "as the interceptor likes"})


# Types and threads


def test_one_that_expects_another_type_is_logged_and_the_producer_raises_nothing(broker, caplog):
    shouting = interceptor(on_send=lambda record: ProducerRecord(record.topic, record.value.upper() + "!"))
    with caplog.at_level(logging.ERROR, "headrace"), making(broker, shouting) as producer:
        assert producer.send(ProducerRecord("one", "text")).result(10).value_size == len("TEXT!")
        assert producer.send(ProducerRecord("one", b"bytes")).result(10).value_size == len("bytes")
        assert producer.send(ProducerRecord("one", None)).result(10).value_size == -1
    assert caplog.text.count("on_send of") == 2
    assert caplog.text.count("TypeError") == 1
    assert caplog.text.count("AttributeError") == 1


def test_records_are_seen_by_the_threads_that_send_them_and_acknowledged_by_the_io_thread(broker):
    sent_by, told_by, barrier = set(), set(), threading.Barrier(3)
    watching = interceptor(
        on_send=lambda record: sent_by.add(threading.current_thread().name) or record,
        on_acknowledgement=lambda metadata, error: told_by.add(threading.current_thread().name))

    def work(producer):
        barrier.wait(5)
        for _ in range(20):
            producer.send(ProducerRecord("eight", b"v")).result(10)

    with making(broker, watching) as producer:
        threads = [threading.Thread(target=work, args=(producer,), name=f"sender-{n}") for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told_by == {producer._waits.thread._thread.name}
    assert sent_by == {"sender-0", "sender-1", "sender-2"}


def test_two_threads_may_be_in_one_interceptor_at_the_same_time(broker):
    both = threading.Barrier(2, timeout=5)

    def wait_for_the_other(record):
        both.wait()
        return ProducerRecord(record.topic, b"together")

    with making(broker, interceptor(on_send=wait_for_the_other)) as producer:
        sizes = []
        threads = [threading.Thread(target=lambda: sizes.append(producer.send(ProducerRecord("one", b"v")).result(
            10).value_size)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sizes == [len("together")] * 2


def test_acknowledgements_of_records_with_a_callback_of_produce_come_where_that_is_called(broker):
    told_by = []
    watching = interceptor(on_acknowledgement=lambda metadata, error: told_by.append(threading.current_thread()))
    with making(broker, watching) as producer:
        producer.produce("one", b"v", callback=lambda error, message: told_by.append(threading.current_thread()))
        producer.flush(10)
    assert told_by == [threading.current_thread()] * 2


def test_a_slow_acknowledgement_holds_up_the_records_of_others(broker):
    pause_s = 0.2
    slow = interceptor(on_acknowledgement=lambda metadata, error: time.sleep(pause_s))
    plain = {"bootstrap.servers": broker.bootstrap_servers}
    with making(broker, slow, linger_ms=100) as held, Producer(plain) as other:
        other.send(ProducerRecord("one", b"v")).result(10)
        began_at = time.monotonic()
        futures = [held.send(ProducerRecord("one", b"v")) for _ in range(4)]
        futures[0].result(10)  # all are one batch, and the thread of all producers is busy with the second
        other.send(ProducerRecord("one", b"v")).result(10)
        assert time.monotonic() - began_at >= 4 * pause_s


# Chains


def test_behind_a_first_one_that_raises_the_next_gets_the_record_of_the_client(broker, caplog):
    seen = []
    watching = interceptor(on_send=lambda record: seen.append(record) or record)
    given = ProducerRecord("one", "mine", "key", None, {"h": b"1"}, 1_700_000_000_000, 5)
    with caplog.at_level(logging.ERROR, "headrace"), making(
            broker, interceptor(on_send=failing), interceptor(on_send=failing), watching) as producer:
        assert producer.send(given).result(10).record_id == 5
    assert seen == [given]
    assert caplog.text.count("LookupError: no change today") == 2


def test_one_that_depends_on_the_change_of_another_meets_records_without_it(broker, caplog):
    """Why Java advises against such pipelines: the second cannot know that the first has failed."""
    calls = []

    def number(record):
        calls.append(record.value)
        if len(calls) == 2:
            raise LookupError("no number")
        return ProducerRecord(record.topic, f"{len(calls)}:{record.value}")

    def rely(record):
        number, _, value = record.value.partition(":")
        return ProducerRecord(record.topic, f"{value}#{int(number)}")

    broker.create_topic("chained")
    with caplog.at_level(logging.ERROR, "headrace"), making(
            broker, interceptor(on_send=number), interceptor(on_send=rely)) as producer:
        for value in ("a", "b", "c"):
            producer.send(ProducerRecord("chained", value)).result(10)
    assert stored_values(broker, "chained") == [b"a#1", b"b", b"c#3"]  # b as the client gave it
    assert caplog.text.count("on_send of") == 2


def test_a_key_that_does_not_always_become_the_same_key_is_scattered_over_partitions(broker):
    """Why transformations must be consistent: compaction and order know only the key that is stored."""
    turns = iter(range(64))
    steady = interceptor(on_send=lambda r: ProducerRecord(r.topic, r.value, f"tenant-{r.key}"))
    fickle = interceptor(on_send=lambda r: ProducerRecord(r.topic, r.value, f"{next(turns)}-{r.key}"))
    with making(broker, steady) as producer:
        assert len({producer.send(ProducerRecord("eight", b"v", "k")).result(10).partition for _ in range(64)}) == 1
    with making(broker, fickle) as producer:
        assert len({producer.send(ProducerRecord("eight", b"v", "k")).result(10).partition for _ in range(64)}) > 4


def test_the_value_that_partitions_are_chosen_by_is_the_changed_one(broker):
    by_value = {"partitioner": lambda topic, key, value, partition_count: int(value) % partition_count}
    with making(broker, changed(lambda value: "5"), **by_value) as producer:
        assert producer.send(ProducerRecord("eight", "2")).result(10).partition == 5


def test_topic_and_partition_are_what_the_last_one_returned_and_a_wrong_place_is_an_error(broker):
    def elsewhere(record):
        return ProducerRecord("eight" if record.value == b"move" else record.topic, record.value, partition=6)

    with making(broker, interceptor(on_send=elsewhere)) as producer:
        moved = producer.send(ProducerRecord("one", b"move", partition=0)).result(10)
        assert (moved.topic, moved.partition) == ("eight", 6)
        with pytest.raises(KafkaException) as caught:
            producer.send(ProducerRecord("one", b"stay", partition=0))
        assert caught.value.error == KafkaError._UNKNOWN_PARTITION


# Acknowledgements


def test_a_record_that_the_broker_refuses_is_acknowledged_with_its_topic_and_partition(broker):
    acks = []
    watching = interceptor(on_acknowledgement=lambda metadata, error: acks.append((metadata, error)))
    broker.add_fault(Fault(action=Action.ERROR, request=ProduceRequest, error_code=KafkaError.POLICY_VIOLATION))
    with making(broker, watching) as producer:
        with pytest.raises(KafkaException):
            producer.send(ProducerRecord("eight", b"v", partition=3)).result(10)
        assert producer.send(ProducerRecord("eight", b"v", partition=3)).result(10).has_offset()
    (metadata, error), (second, nothing) = acks
    assert (metadata.topic, metadata.partition, metadata.offset) == ("eight", 3, -1)
    assert error == KafkaError.POLICY_VIOLATION
    assert (second.has_offset(), nothing) == (True, None)


def test_without_a_partition_the_acknowledgement_of_a_record_that_got_none_says_no_partition(broker):
    acks = []
    watching = interceptor(on_acknowledgement=lambda metadata, error: acks.append(metadata.partition))
    with making(broker, watching, max_block_ms=200) as producer:
        for partition in (None, 2):
            with pytest.raises(KafkaException):
                producer.send(ProducerRecord("nowhere", b"v", partition=partition))
    assert acks == [RecordMetadata.NO_PARTITION, 2]
