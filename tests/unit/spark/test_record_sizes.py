"""How large records are, by a look at some of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace import Producer
from headrace.spark import record_sizes
from headrace.spark.record_sizes import RecordSizes
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.consumer.fetch import FetchRequest


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"large": 2, "small": 1}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for n in range(200):
                producer.produce("large", b"v" * 10_000, partition=1)
                producer.produce("small", b"v" * 100)
                if n == 0:
                    producer.produce("large", b"v", partition=0)
            assert producer.flush(10) == 0
        yield broker


def test_sizes_are_those_of_the_largest_backlog_and_asked_for_now_and_then(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[FetchRequest] = []
    broker.add_fault(Fault(action=Action.DELAY, request=FetchRequest, times=None,
                           when=lambda request: bool(asked.append(request))))
    sizes = RecordSizes({"bootstrap.servers": broker.bootstrap_servers, "fetch.message.max.bytes": "9999999"})
    latest = {("large", 0): 1, ("large", 1): 200, ("small", 0): 200}
    for _ in range(3):
        found = sizes.of({}, latest)
        assert 10_000 <= found["large"] <= 10_200
        assert 100 <= found["small"] <= 120
    assert len(asked) == 1
    assert {part.partition_max_bytes for topic in asked[0].topics for part in topic.partitions} == {64 << 10}
    monkeypatch.setattr(record_sizes, "_FRESH_S", -1.0)
    sizes.of({}, latest)
    assert len(asked) > 1
    broker.clear_faults()


def test_topics_without_a_backlog_are_not_looked_at(broker: EmbeddedBroker) -> None:
    sizes = RecordSizes({"bootstrap.servers": "127.0.0.1:1"})
    assert sizes.of({("small", 0): 200}, {("small", 0): 200}) == {}


def test_records_that_cannot_be_looked_at_are_taken_for_usual_ones(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_sizes, "_ANSWER_S", 0.3)
    sizes = RecordSizes({"bootstrap.servers": broker.bootstrap_servers})
    assert sizes.of({("small", 0): 900}, {("small", 0): 1000}) == {"small": 1024.0}
    monkeypatch.setattr(record_sizes, "_FRESH_S", -1.0)
    monkeypatch.setattr(record_sizes, "_ANSWER_S", 20.0)
    assert sizes.of({}, {("small", 0): 200})["small"] == pytest.approx(110, abs=10)  # with another reader
