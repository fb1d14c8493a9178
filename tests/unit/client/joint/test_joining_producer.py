"""A producer that writes into a transaction of another process, at an embedded broker."""

import time

import pytest

from headrace import Consumer, KafkaError, KafkaException
from headrace.broker.settings import BrokerSettings
from headrace.client.joint.joining_producer import JoiningProducer, KeptJoiningProducers
from headrace.testing import EmbeddedBroker


@pytest.fixture(scope="module", params=[0, 2], ids=["version-1", "version-2"])
def broker(request):
    with EmbeddedBroker(topics={"t": 3, "u": 1, "v": 3, "w": 3, "x": 1},
                        settings=BrokerSettings(transaction_version=request.param)) as made:
        yield made


@pytest.fixture
def producer(conf):
    with JoiningProducer(conf) as made:
        yield made


def committed(conf, topic):
    with Consumer({**conf, "group.id": "readers", "auto.offset.reset": "earliest", "enable.partition.eof": True,
                   "enable.auto.commit": False}) as consumer:
        consumer.subscribe([topic])
        found, ended = [], set()
        while len(ended) < len(consumer.list_topics(topic).topics[topic].partitions):
            message = consumer.poll(10)
            assert message is not None
            if message.error() is None:
                found.append(message.value())
            else:
                ended.add(message.partition())
        return sorted(found)


def test_records_of_two_producers_come_to_be_together(owner, producer, conf):
    begun, _ = owner.begin("both")
    with JoiningProducer(conf) as other:
        for number, each in enumerate((producer, other)):
            each.join(begun)
            each.produce("t", b"%d" % number, partition=number)
            assert each.flush(10) == 0
        assert producer.written() == {("t", 0): 1}
        assert other.written() == {("t", 1): 1}
    owner.check(begun, {("t", 0), ("t", 1)})
    assert committed(conf, "t") == []
    owner.end(begun)
    assert committed(conf, "t") == [b"0", b"1"]


def test_a_partition_that_another_has_written_is_refused_before_anything_is_sent(owner, producer, conf):
    begun, _ = owner.begin("claimed")
    producer.join(begun)
    producer.produce("u", b"first", partition=0)
    assert producer.flush(10) == 0
    told = []
    with JoiningProducer(conf) as other:
        other.join(begun)
        other.produce("u", b"second", partition=0, on_delivery=lambda error, message: told.append(error))
        other.flush(10)
        assert told[0] == KafkaError._CONFLICT
        with pytest.raises(KafkaException) as raised:
            other.produce("u", b"third", partition=0)
        assert raised.value.error == KafkaError._CONFLICT
    owner.end(begun)
    assert committed(conf, "u") == [b"first"]


def test_records_that_still_wait_are_reported_when_the_transaction_is_lost(owner, producer, conf):
    begun, _ = owner.begin("waiting")
    producer.join(begun)
    producer.produce("x", b"first", partition=0)
    assert producer.flush(10) == 0
    told = []
    with JoiningProducer({**conf, "linger.ms": 60_000, "batch.size": 1000}) as other:
        other.join(begun)
        other.produce("t", b"waits", partition=2, on_delivery=lambda error, message: told.append(error))
        for _ in range(2):  # the second fills a batch, which is sent at once
            other.produce("x", bytes(600), partition=0, on_delivery=lambda error, message: told.append(error))
        end = time.monotonic() + 20
        while len(told) < 3 and time.monotonic() < end:
            other.poll(0.1)
        assert [error.code() for error in told] == [KafkaError._CONFLICT] * 3
    owner.end(begun)


def test_a_producer_goes_on_to_the_next_transaction(owner, conf):
    kept = KeptJoiningProducers()
    used = set()
    for number in range(3):
        begun, _ = owner.begin("kept")
        producer = kept.take(conf)
        used.add(producer)
        producer.join(begun)
        assert producer.written() == {}
        producer.produce("v", b"%d" % number, partition=number % 2)
        assert producer.flush(10) == 0
        assert producer.written() == {("v", number % 2): 1}
        kept.give_back(producer)
        owner.end(begun)
    assert len(used) == 1
    assert committed(conf, "v") == [b"0", b"1", b"2"]
    kept.close()


def test_what_belongs_to_an_epoch_before_is_refused(owner, producer, conf):
    begun, _ = owner.begin("fenced")
    producer.join(begun)
    owner.begin("fenced")
    told = []
    producer.produce("w", b"late", partition=0, on_delivery=lambda error, message: told.append(error))
    producer.flush(10)
    assert told[0] is not None
    assert committed(conf, "w") == []


def test_a_producer_that_joined_nothing_writes_nothing(producer):
    assert producer.written() == {}
