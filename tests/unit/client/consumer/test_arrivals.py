"""Waiting for records: brokers hold the question, an arrival is told at once, and nothing is asked meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import Producer
from headrace.client.consumer.log_view import LogView
from headrace.errors import KafkaError
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.consumer.fetch import FetchRequest

PATIENCE_S = 10


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 3}) as broker:
        yield broker


@pytest.fixture
def view(broker: EmbeddedBroker) -> Iterator[LogView]:
    with LogView({"bootstrap.servers": broker.bootstrap_servers, "isolation.level": "read_committed"}, ["t"]) as view:
        view.topics(PATIENCE_S)
        yield view


def ends(**offsets: int) -> dict[tuple[str, int], int]:
    return {("t", partition): offsets.get(f"p{partition}", 0) for partition in range(3)}


def send(broker: EmbeddedBroker, partition: int = 0, **more: Any) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, **more}) as producer:
        producer.produce("t", b"v" * 1000, partition=partition)
        assert producer.flush(PATIENCE_S) == 0


def test_without_records_the_time_is_waited_for(view: LogView) -> None:
    began = time.monotonic()
    assert not view.wait_for_records(ends(), 0.3)
    assert 0.3 <= time.monotonic() - began < 5


def test_one_question_is_held_over_several_waits(view: LogView, asked: list[FetchRequest]) -> None:
    for _ in range(4):
        assert not view.wait_for_records(ends(), 0.1)
    assert len(asked) == 1
    assert asked[0].max_wait_ms == 10_000


def test_an_arrival_ends_the_wait(view: LogView, broker: EmbeddedBroker) -> None:
    came: list[float] = []

    def wait() -> None:
        if view.wait_for_records(ends(), 30):
            came.append(time.monotonic())

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not waiting.is_alive():
        time.sleep(0.01)
    send(broker, 2)
    waiting.join(PATIENCE_S)
    assert came


def test_what_came_before_the_wait_ends_it_too(view: LogView, broker: EmbeddedBroker) -> None:
    assert not view.wait_for_records(ends(), 0.1)
    send(broker, 1)
    assert view.wait_for_records(ends(), PATIENCE_S)
    assert not view.wait_for_records(ends(p1=1), 0.1)
    send(broker, 1)
    assert view.wait_for_records(ends(p1=1), PATIENCE_S)


def test_an_error_is_no_arrival_and_the_next_wait_asks_anew(view: LogView, broker: EmbeddedBroker) -> None:
    broker.add_fault(Fault(action=Action.ERROR, request=FetchRequest, times=1,
                           error_code=KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert not view.wait_for_records(ends(), 0.2)
    broker.clear_faults()
    send(broker)
    assert view.wait_for_records(ends(), PATIENCE_S)


def test_an_offset_behind_the_end_is_no_arrival(view: LogView) -> None:
    assert not view.wait_for_records(ends(p0=7), 0.2)


def test_a_broker_that_restarts_is_asked_again(view: LogView, broker: EmbeddedBroker) -> None:
    assert not view.wait_for_records(ends(), 0.1)
    broker.stop_node(1)
    broker.start_node(1)
    send(broker)
    assert view.wait_for_records(ends(), PATIENCE_S)


def test_questions_that_are_held_elsewhere_stay_there_when_something_comes() -> None:
    asked: list[FetchRequest] = []
    with (EmbeddedBroker(topics={"t": 3}, nodes=3) as broker,
          LogView({"bootstrap.servers": broker.bootstrap_servers}, ["t"]) as view):
        view.topics(PATIENCE_S)
        assert not view.wait_for_records(ends(), 0.1)
        broker.add_fault(Fault(action=Action.DELAY, request=FetchRequest, times=None,
                               when=lambda request: bool(asked.append(request))))
        for count in range(1, 4):
            send(broker, 1)
            assert view.wait_for_records(ends(p1=count - 1), PATIENCE_S)
            assert not view.wait_for_records(ends(p1=count), 0.3)
    assert [[(part.partition, part.fetch_offset) for topic in each.topics for part in topic.partitions]
            for each in asked] == [[(1, 1)], [(1, 2)], [(1, 3)]]


def test_what_came_elsewhere_and_is_known_by_now_is_no_arrival(view: LogView, broker: EmbeddedBroker) -> None:
    assert not view.wait_for_records(ends(), 0.1)
    send(broker, 0)
    send(broker, 1)
    assert not view.wait_for_records(ends(p0=1, p1=1), 0.3)
    send(broker, 1)
    assert view.wait_for_records(ends(p0=1, p1=1), PATIENCE_S)


def test_only_committed_records_arrive(view: LogView, broker: EmbeddedBroker) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"}) as producer:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("t", b"v", partition=0)
        assert producer.flush(PATIENCE_S) == 0
        assert not view.wait_for_records(ends(), 0.3)
        producer.commit_transaction(PATIENCE_S)
    assert view.wait_for_records(ends(), PATIENCE_S)
