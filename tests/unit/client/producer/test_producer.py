"""The producer through the embedded broker: records arrive, reports are true, both faces do the same."""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator

import pytest

from headrace import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from headrace.admin import AdminClient, NewTopic
from headrace.aio import AIOProducer
from headrace.broker.settings import BrokerSettings
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.producer.produce import ProduceRequest


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker(topics={"one": 1, "four": 4, "aio": 1}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def producer(servers):
    with Producer({"bootstrap.servers": servers}) as made:
        yield made


def read(servers, topic, partition, offset, count):
    """The records of a partition from an offset on."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, offset)])
    found = []
    while len(found) < count:
        found += consumer.consume(count - len(found), 5)
    consumer.close()
    return found


def test_a_record_arrives_as_it_was_given_and_its_report_says_where(servers, producer):
    reports = []
    producer.produce("one", b"value", "key", timestamp=1_700_000_000_000, headers=[("h", b"1"), ("h", None)],
                     on_delivery=lambda error, message: reports.append((error, message)))
    assert producer.flush(10) == 0
    ((error, report),) = reports
    assert error is None
    assert (report.topic(), report.partition(), report.value(), report.key()) == ("one", 0, b"value", b"key")
    assert report.headers() == [("h", b"1"), ("h", None)]
    assert report.latency() > 0
    (message,) = read(servers, "one", 0, report.offset(), 1)
    assert (message.value(), message.key(), message.headers()) == (b"value", b"key", [("h", b"1"), ("h", None)])
    assert message.timestamp() == (1, 1_700_000_000_000)


def test_records_of_a_partition_keep_their_order(servers, producer):
    offsets = []
    for number in range(5_000):
        producer.produce("four", str(number), partition=2, callback=lambda e, m: offsets.append((e, m.offset())))
    assert producer.flush(10) == 0
    assert [error for error, _ in offsets if error] == []
    first = offsets[0][1]
    assert [offset for _, offset in offsets] == list(range(first, first + 5_000))
    assert [int(m.value()) for m in read(servers, "four", 2, first, 5_000)] == list(range(5_000))


def test_records_with_one_key_go_to_one_partition(producer):
    partitions = set()
    for _ in range(20):
        producer.produce("four", b"v", key=b"same", callback=lambda e, m: partitions.add(m.partition()))
    producer.flush(10)
    assert len(partitions) == 1


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_arrive(servers, codec):
    offsets = []
    with Producer({"bootstrap.servers": servers, "compression.type": codec}) as producer:
        for _ in range(100):
            producer.produce("one", b"x" * 200, callback=lambda e, m: offsets.append(m.offset()))
    assert {m.value() for m in read(servers, "one", 0, offsets[0], 100)} == {b"x" * 200}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_level_of_acknowledgement_delivers(servers, acks):
    errors = []
    with Producer({"bootstrap.servers": servers, "acks": acks, "batch.num.messages": 10}) as producer:
        for _ in range(1_000):
            producer.produce("one", b"v", callback=lambda e, m: errors.append(e))
        assert producer.flush(10) == 0
    assert errors == [None] * 1_000


def test_the_default_callback_serves_records_without_their_own(servers):
    got = []
    with Producer({"bootstrap.servers": servers, "on_delivery": lambda e, m: got.append("default")}) as producer:
        producer.produce("one", b"v")
        producer.produce("one", b"v", on_delivery=lambda e, m: got.append("own"))
    assert got == ["default", "own"]


def test_poll_serves_callbacks_and_says_how_many(producer):
    producer.produce("one", b"v", callback=lambda e, m: None)
    assert producer.poll(10) == 1
    assert producer.poll(0) == 0
    assert len(producer) == 0


def test_who_does_nothing_but_poll_leaves_the_loop_its_turn(servers):
    """Without stepping aside the loop gets the GIL every 5 ms only: twice for each record."""
    reports = []

    def seconds_for(records):
        began = time.monotonic()
        for number in range(records):
            producer.produce("one", b"v", callback=lambda e, m: reports.append(e))
            while len(reports) <= number:
                producer.poll(0)
        reports.clear()
        return time.monotonic() - began

    with Producer({"bootstrap.servers": servers, "linger.ms": 0}) as producer:
        seconds_for(1)
        assert any(seconds_for(20) < 20 * 0.005 for _ in range(20))


def test_what_a_callback_raises_comes_out_of_flush_and_the_other_reports_stay(producer):
    got = []

    def report(error, message):
        got.append(message.value())
        if message.value() == b"1":
            raise ZeroDivisionError

    for value in (b"1", b"2", b"3"):
        producer.produce("one", value, callback=report)
    with pytest.raises(ZeroDivisionError):
        producer.flush(10)
    assert producer.flush(10) == 0
    assert got == [b"1", b"2", b"3"]


def test_a_partition_that_the_topic_does_not_have_is_refused(producer):
    producer.produce("one", b"v")
    producer.flush(10)
    with pytest.raises(KafkaException, match="no partition 7") as caught:
        producer.produce("one", b"v", partition=7)
    assert caught.value.error == KafkaError._UNKNOWN_PARTITION


@pytest.mark.parametrize("partitioner", ["consistent_random", "round_robin"])
@pytest.mark.parametrize("known", [False, True])
def test_of_the_negative_numbers_only_minus_one_stands_for_any_partition(servers, partitioner, known):
    batch = [{"value": b"v", "partition": partition} for partition in (0, -2, -5, -1)]

    async def aio() -> None:
        async with AIOProducer({"bootstrap.servers": servers, "partitioner": partitioner}) as producer:
            if known:
                await (await producer.produce("four", b"v"))
            with pytest.raises(KafkaException, match=r"no partition -2.*give -1") as caught:
                await (await producer.produce("four", b"v", partition=-2))
            assert caught.value.error == KafkaError._UNKNOWN_PARTITION
            assert await producer.produce_batch("four", batch) == 2

    with Producer({"bootstrap.servers": servers, "partitioner": partitioner}) as producer:
        if known:
            producer.produce("four", b"v")
            producer.flush(10)
        with pytest.raises(KafkaException, match=r"no partition -2.*give -1") as caught:
            producer.produce("four", b"v", partition=-2)
        assert caught.value.error == KafkaError._UNKNOWN_PARTITION
        assert len(producer) == 0
        assert producer.produce_batch("four", batch) == 2
    errors = [message.pop("_error", None) for message in batch]
    assert errors == [None, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_PARTITION, None]
    asyncio.run(aio())
    assert [message.pop("_error", None) for message in batch] == errors


def test_a_record_beyond_the_limit_is_refused_at_once(producer):
    with pytest.raises(KafkaException) as caught:
        producer.produce("one", b"x" * 1_000_001)
    assert caught.value.error == KafkaError.MSG_SIZE_TOO_LARGE


def test_topics_are_listed(producer):
    listed = producer.list_topics(timeout=10)
    assert len(listed.topics["four"].partitions) == 4
    assert list(producer.list_topics("one", 10).topics) == ["one"]


def test_a_producer_that_is_let_go_lets_go_of_its_connections(servers, caplog):
    with caplog.at_level(logging.WARNING):
        Producer({"bootstrap.servers": servers}).list_topics(timeout=10)
    assert caplog.records == []


def test_under_asyncio_a_thousand_records_are_delivered_in_order(servers):
    async def main():
        async with AIOProducer({"bootstrap.servers": servers}) as producer:
            deliveries = [await producer.produce("aio", str(number)) for number in range(1_000)]
            return [(m.offset(), m.value()) for m in await asyncio.gather(*deliveries)]

    delivered = asyncio.run(main())
    assert [value for _, value in delivered] == [str(number).encode() for number in range(1_000)]
    assert [offset for offset, _ in delivered] == list(range(1_000))


def test_keys_of_a_topic_that_was_made_anew_with_fewer_partitions_go_to_those():
    settings = BrokerSettings(auto_create_topics=False)
    with EmbeddedBroker(topics={"t": 4}, settings=settings) as broker:
        servers, told = {"bootstrap.servers": broker.bootstrap_servers}, []
        often = {"topic.metadata.refresh.interval.ms": 50, "message.timeout.ms": 2_000}
        with Producer({**servers, **often}) as producer, AdminClient(servers) as admin:
            def produce_each():
                told.clear()
                for number in range(40):
                    producer.produce("t", b"v", b"%d" % number, on_delivery=lambda *report: told.append(report))
                assert producer.flush(10) == 0
                return {(error, message.partition()) for error, message in told}

            assert produce_each() == {(None, partition) for partition in range(4)}
            admin.delete_topics(["t"])["t"].result(10)
            admin.create_topics([NewTopic("t", 1, 1)])["t"].result(10)

            def name_one_that_is_gone():
                for _ in range(200):  # until it has heard of it; what it takes before that times out
                    producer.produce("t", b"v", partition=3)
                    time.sleep(0.05)

            with pytest.raises(KafkaException) as refused:
                name_one_that_is_gone()
            assert refused.value.error == KafkaError._UNKNOWN_PARTITION
            assert producer.flush(10) == 0
            assert produce_each() == {(None, 0)}


def test_under_asyncio_flush_waits_for_all(servers):
    async def main():
        producer = AIOProducer({"bootstrap.servers": servers, "linger.ms": 60_000})
        delivery = await producer.produce("one", b"v")
        assert await producer.flush(10) == 0
        assert delivery.done()
        assert "one" in (await producer.list_topics(timeout=10)).topics
        await producer.close()
        await producer.close()

    asyncio.run(main())


def test_one_table_goes_the_way_of_many_with_all_its_roles(monkeypatch):
    asked = []
    roles = {"value": "v", "key": "k", "headers": "h", "timestamp": "t", "partition": "p"}
    monkeypatch.setattr(Producer, "produce_batches", lambda _, topic, tables, **how: asked.append((topic, tables, how)))
    with Producer({"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: None}) as producer:
        producer.produce_arrow("one", "table", **roles)
    assert asked == [("one", ["table"], roles)]


def test_a_flush_without_a_time_waits_for_all_and_one_without_any_time_for_nothing():
    told = []
    with EmbeddedBroker(topics={"one": 1}) as broker, Producer({
            "bootstrap.servers": broker.bootstrap_servers}) as made:
        broker.add_fault(Fault(action=Action.DELAY, delay_s=60, request=ProduceRequest))
        made.produce("one", b"v", on_delivery=lambda error, message: told.append(error))
        assert made.flush(0) == 1
        threading.Timer(0.3, broker.clear_faults).start()
        assert made.flush() == 0
        assert told == [None]
