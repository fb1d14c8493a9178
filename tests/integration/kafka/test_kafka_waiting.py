"""Calls that wait for a real Kafka which answers nothing: `wakeup()` and Ctrl-C end them at once, and all goes on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from headrace import Consumer, Producer, TopicPartition
from headrace.errors import WakeupError
from tests.support.real_kafka import make_topic, take
from tools.kafka import KafkaCluster

pytestmark = pytest.mark.slow  # a broker of its own

AT_ONCE_S, WAITS_S, RECORDS = 0.1, 0.1, 20
Call = Callable[[Consumer, TopicPartition], Any]
CALLS: dict[str, Call] = {
    "poll": lambda c, _: c.poll(), "consume": lambda c, _: c.consume(100),
    "consume_arrow": lambda c, _: c.consume_arrow(100, None),
    "commit": lambda c, tp: c.commit(offsets=[tp], asynchronous=False), "committed": lambda c, tp: c.committed([tp]),
    "offsets_for_times": lambda c, tp: c.offsets_for_times([tp]),
    "watermarks": lambda c, tp: c.get_watermark_offsets(tp),
    "list_topics": lambda c, _: c.list_topics(), "cluster_id": lambda c, _: c.cluster_id(),
}


def ended(act: Callable[[], object], call: Callable[[], object], error: type[BaseException]) -> float:
    """Seconds from an act in the middle of a call to the error with which the call ends."""
    at: list[float] = []
    timer = threading.Timer(WAITS_S, lambda: (at.append(time.monotonic()), act()))
    timer.start()
    try:
        with pytest.raises(error):
            call()
        return time.monotonic() - at[0]
    finally:
        timer.join()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_call_that_waits_for_a_frozen_broker_can_be_ended(own_kafka: KafkaCluster, protocol: str) -> None:
    if protocol == "consumer" and own_kafka.version < "4":
        pytest.skip(f"Kafka {own_kafka.version} offers no groups that the coordinator plans for")
    topic = make_topic(own_kafka, 1)
    with Producer(own_kafka.connection) as producer:
        for number in range(RECORDS):
            producer.produce(topic, str(number))
        assert producer.flush(30) == 0
    config = {**own_kafka.connection, "group.id": topic, "auto.offset.reset": "earliest", "group.protocol": protocol,
              "enable.auto.commit": False}
    consumer, place = Consumer(config), TopicPartition(topic, 0, 1)
    consumer.subscribe([topic])
    take(consumer, RECORDS)
    own_kafka.pause(1)
    try:
        took = {}
        for name, call in CALLS.items():
            took[name] = ended(consumer.wakeup, lambda call=call: call(consumer, place), WakeupError)  # type: ignore[misc]
            took[f"{name}, Ctrl-C"] = ended(
                lambda: os.kill(os.getpid(), signal.SIGINT), lambda call=call: call(consumer, place),  # type: ignore[misc]
                KeyboardInterrupt)
        assert {name: seconds for name, seconds in took.items() if seconds >= AT_ONCE_S} == {}
        own_kafka.resume(1)
        consumer.seek(TopicPartition(topic, 0, 0))
        take(consumer, RECORDS)
        consumer.commit(asynchronous=False)
        assert consumer.committed([place], 30)[0].offset == RECORDS
        own_kafka.pause(1)
        assert ended(consumer.wakeup, consumer.close, WakeupError) < AT_ONCE_S
    finally:
        own_kafka.resume(1)
