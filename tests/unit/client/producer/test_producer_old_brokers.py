"""The producer at brokers from before record batches: it writes message sets, and says what these cannot hold."""

from __future__ import annotations

import pytest

from headrace import KafkaError, Producer
from headrace.broker.faults import Action, Fault
from headrace.client.consumer.consumer import Consumer
from headrace.errors import FatalError
from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.types.records import OFFSET_BEGINNING, TopicPartition
from headrace.wire.messages.producer.produce import ProduceRequest


def old_broker(highest: int = 2, **more):
    versions = {"Produce": (0, highest), "InitProducerId": None, **more}
    return EmbeddedBroker(settings=BrokerSettings(api_versions=versions), topics={"t": 1})


def sent(broker, records, **config):
    """Produce records, each as the arguments of `produce`; returns error and offset of each."""
    found = []
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": False, "linger.ms": 50,
                   **config}) as producer:
        for record in records:
            producer.produce("t", **record, on_delivery=lambda error, message: found.append(
                (message.value(), error, message.offset())))
        assert producer.flush(10) == 0
    return found


def stored(broker, count):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
    found = []
    while len(found) < count:
        found += consumer.consume(count - len(found), 5)
    consumer.close()
    return [(m.key(), m.value(), m.timestamp()) for m in found]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_arrive_in_message_sets(version, codec):
    records = [{"key": b"k" if number % 2 else None, "value": b"v%d" % number, "timestamp": 1_700_000_000_000 + number}
               for number in range(20)]
    with old_broker(version) as broker:
        found = sent(broker, records, **{"compression.type": codec})
        assert found == [(record["value"], None, offset) for offset, record in enumerate(records)]
        time = (lambda stamp: (1, stamp)) if version == 2 else (lambda stamp: (1, -1))
        assert stored(broker, 20) == [(r["key"], r["value"], time(r["timestamp"])) for r in records]


@pytest.mark.parametrize("release", ["0.10.0", "0.10.1", "0.10.2"])
def test_a_release_from_before_record_batches_is_written_to(release):
    with EmbeddedBroker(settings=BrokerSettings.of_kafka(release), topics={"t": 1}) as broker:
        assert sent(broker, [{"value": b"v"}]) == [(b"v", None, 0)]


def test_with_acks_of_0_message_sets_arrive_as_well():
    with old_broker() as broker:
        assert sent(broker, [{"value": b"v"}], acks=0) == [(b"v", None, None)]
        assert stored(broker, 1)[0][1] == b"v"


def test_records_with_headers_fail_alone_for_an_old_broker_has_no_room_for_them():
    records = [{"value": b"%d" % n, "headers": {"h": b"x"} if n in (1, 3) else None} for n in range(5)]
    with old_broker() as broker:
        found = sent(broker, records)
        failed = {value: error for value, error, _ in found if error}
        assert set(failed) == {b"1", b"3"}
        assert {error.code() for error in failed.values()} == {KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT}
        assert "older than Kafka 0.11 and stores no headers" in failed[b"1"].str()
        assert [(value, offset) for value, error, offset in found if not error] == [(b"0", 0), (b"2", 1), (b"4", 2)]


@pytest.mark.parametrize("highest", [2, 6])
def test_zstd_fails_where_the_broker_does_not_know_it(highest):
    with old_broker(highest) as broker:
        ((_, error, _),) = sent(broker, [{"value": b"v" * 100}], **{"compression.type": "zstd"})
        assert error.code() == KafkaError.UNSUPPORTED_COMPRESSION_TYPE
        assert "set compression.type to lz4" in error.str()


@pytest.mark.parametrize("config", [{}, {"enable.idempotence": True}])
def test_idempotence_is_never_dropped_silently(config):
    reports, told = [], []
    with old_broker() as broker, Producer({"bootstrap.servers": broker.bootstrap_servers, "error_cb": told.append,
                                           **config}) as producer:
        try:
            producer.produce("t", b"v", on_delivery=lambda error, _: reports.append(error))
        except FatalError as refused:  # the brokers may have said so before
            reports.append(refused.error)
        producer.flush(10)
        assert broker.end_offsets("t") == [0]
    assert [error.fatal() for error in told] == [True]
    assert "set enable.idempotence to false" in reports[0].str()


def test_numbered_batches_are_not_stripped_for_a_leader_that_is_older_than_the_others():
    with old_broker(InitProducerId=(0, 1)) as broker:
        ((_, error, _),) = sent(broker, [{"value": b"v"}], **{"enable.idempotence": True})
        assert error.code() == KafkaError._UNSUPPORTED_FEATURE
        assert "set enable.idempotence to false" in error.str()


def test_a_set_that_is_too_large_for_an_old_broker_is_sent_in_halves():
    with old_broker() as broker:
        broker.create_topic("small", configs={"max.message.bytes": "500"})
        requests, errors = [], []
        broker.add_fault(Fault(action=Action.PASS, request=ProduceRequest, times=None, effect=requests.append))
        with Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": False}) as producer:
            for number in range(32):
                producer.produce("small", b"%030d" % number, on_delivery=lambda e, m: errors.append((e, m.offset())))
        assert errors == [(None, offset) for offset in range(32)]
        assert len(requests) > 4
