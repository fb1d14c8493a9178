"""A producer that wants no acknowledgement learns from closed connections, as Kafka intends."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import time

import pytest
import trustme

from headrace import KafkaError, Producer
from headrace.broker.faults import Action, Fault
from headrace.net import closing
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.cluster.metadata import MetadataRequest
from tests.support.threaded_broker import TOPIC, ThreadedBroker


def until(condition, timeout_s=10.0):
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_no_reply_is_awaited_and_the_report_knows_no_offset():
    with EmbeddedBroker(topics={"t": 1}) as broker, Producer({"bootstrap.servers": broker.bootstrap_servers,
                                                              "acks": 0}) as producer:
        reports = []
        for _ in range(3):
            producer.produce("t", b"v", on_delivery=lambda error, message: reports.append((error, message.offset())))
        producer.flush(10)
        assert reports == [(None, None)] * 3
        until(lambda: broker.end_offsets("t") == [3])


def test_a_leader_that_hangs_up_makes_the_producer_look_for_the_new_one():
    with EmbeddedBroker(nodes=2, topics={"t": 1}) as broker, Producer({"bootstrap.servers": broker.bootstrap_servers,
                                                                       "acks": 0}) as producer:
        producer.produce("t", b"before")
        producer.flush(10)
        until(lambda: broker.end_offsets("t") == [1])
        asked = []
        broker.add_fault(Fault(action=Action.PASS, request=MetadataRequest, times=None, effect=asked.append))
        broker.move_leader("t", 0, 3 - broker.leader("t", 0))
        producer.produce("t", b"lost")  # the old leader may not say why it hangs up
        producer.flush(10)
        until(lambda: asked)

        def arrived():
            producer.produce("t", b"after")
            producer.flush(10)
            time.sleep(0.05)
            return broker.end_offsets("t") != [1]

        until(arrived)


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def tls_of(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def properties_for(broker, authority=None, **more):
    secure = {"security.protocol": "ssl", "ssl.ca.pem": authority.cert_pem.bytes().decode()} if authority else {}
    return {"bootstrap.servers": broker.bootstrap_servers, "acks": 0, **secure, **more}


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("values", [500, 1])
def test_all_that_was_sent_before_close_reaches_a_broker_that_reads_slowly(authority, secure, values):
    tls = tls_of(authority) if secure else None
    with ThreadedBroker(tls=tls, pause_s=0.01) as broker:
        with Producer(properties_for(broker, authority if secure else None)) as producer:
            for _ in range(values):  # 50 MB, or less than the kernel takes at once
                producer.produce(TOPIC, bytes(100_000))
        until(lambda: broker.records == values)
        until(lambda: broker.ends == ["", ""])  # the one for metadata, and the leader's


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_flush_returns_when_the_kernel_has_everything(authority, secure):
    tls = tls_of(authority) if secure else None
    with ThreadedBroker(tls=tls, pause_s=0.01) as broker:
        given = properties_for(broker, authority if secure else None)
        program = (
            "import os\nfrom headrace import Producer\n"
            f"producer = Producer({given!r})\n"
            f"for _ in range(200): producer.produce({TOPIC!r}, bytes(100_000))\n"
            "assert producer.flush() == 0\n"
            "os._exit(0)\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60,
                       env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        until(lambda: broker.records == 200)


def test_close_gives_up_a_peer_that_reads_no_more():
    with ThreadedBroker(reads_bytes=1_000_000) as broker:
        producer = Producer(properties_for(broker, **{"message.timeout.ms": 1000}))
        failed = []
        for _ in range(200):
            producer.produce(TOPIC, bytes(100_000), on_delivery=lambda error, message: failed.append(error))
        started = time.monotonic()
        producer.close()
        assert time.monotonic() - started < 5.0
        assert len(failed) == 200
        assert {error.code() for error in failed if error is not None} == {KafkaError._MSG_TIMED_OUT}


def test_a_closed_peer_that_reads_no_more_is_left_at_once_by_who_gives_up(monkeypatch):
    monkeypatch.setattr(closing, "_PATIENCE_S", 60.0)
    with ThreadedBroker(reads_bytes=1_000_000) as broker:
        producer = Producer(properties_for(broker))
        for _ in range(200):
            producer.produce(TOPIC, bytes(100_000))
        producer.flush(0.5)
        producer.purge()
        started = time.monotonic()
        producer.close()
        assert time.monotonic() - started < 20


def test_what_the_kernel_does_not_take_is_not_copied_out_of_the_producers_memory():
    with ThreadedBroker(reads_bytes=1_000_000) as broker:
        producer = Producer(properties_for(broker, **{"max.in.flight": 1000}))
        for _ in range(300):
            producer.produce(TOPIC, bytes(100_000))
        end, most = time.monotonic() + 20, 0
        while not most and time.monotonic() < end:
            producer.flush(0.5)
            most = max((connection._outlet._transport.get_write_buffer_size()
                        for connection in producer._engine._driver._connections.values() if connection._outlet),
                       default=0)
        producer.purge()
        producer.close()
    assert 0 < most <= 1_024
