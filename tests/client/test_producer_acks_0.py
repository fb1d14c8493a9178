"""A producer that wants no acknowledgement learns from closed connections, as Kafka intends."""

from __future__ import annotations

import time

from headrace import Producer
from headrace.broker.faults import Action, Fault
from headrace.testing import EmbeddedBroker
from headrace.wire.messages.metadata import MetadataRequest


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
