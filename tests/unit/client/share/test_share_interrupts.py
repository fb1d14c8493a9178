"""Ctrl-C at any moment: a share consumer goes on, and what it took and did not return comes again.

A word about a record that Ctrl-C cut off is not sent: the record comes again when its lock has ended, after 30 s.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from headrace import Producer, ShareConsumer
from headrace.testing import EmbeddedBroker
from tests.support.ctrl_c import INTERRUPTED, CtrlC, keys

__all__ = ["keys"]
pytestmark = [*INTERRUPTED]
TOPIC = "shared"


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={TOPIC: 1}) as started:
        yield started


def test_an_interrupted_share_consumer_goes_on_and_takes_nothing_away(
    broker: EmbeddedBroker, keys: CtrlC
) -> None:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    producer, consumer = Producer(servers), ShareConsumer({**servers, "group.id": "g", "max.poll.records": 20})
    consumer.subscribe([TOPIC])
    end = time.monotonic() + 20
    while not consumer.poll(0.1):  # until it is a member: groups begin with what comes then
        producer.produce(TOPIC, b"first")
        assert time.monotonic() < end
    seen: set[int | None] = set()
    left = 1500  # less than what the broker gives out behind a record that is locked

    def step() -> None:
        nonlocal left
        if left := max(left - 1, 0):
            producer.produce(TOPIC, b"value")
        seen.update(message.offset() for message in consumer.poll(0.01))
        consumer.commit_sync(5)

    keys.again_and_again(3e-4, step, 1.0, 30)
    last: set[int | None] = set()
    producer.produce(TOPIC, b"last", on_delivery=lambda _, message: last.add(message.offset()))
    assert producer.flush(20) == 0
    end = time.monotonic() + 20
    while not last <= seen:
        seen.update(message.offset() for message in consumer.poll(0.1))
        assert time.monotonic() < end
    for _ in range(5):
        seen.update(message.offset() for message in consumer.poll(0.05))
    consumer.close()
    producer.close()
    written = max(offset or 0 for offset in last) + 1 - min(offset or 0 for offset in seen)
    assert written - len(seen) <= 20 * (keys.count // 8)
