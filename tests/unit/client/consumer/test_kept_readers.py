"""Readers that stay open from one task to the next: the same connections, and what the brokers say meanwhile."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from headrace import Producer
from headrace.admin import AdminClient
from headrace.client.consumer.kept_readers import KeptReaders
from headrace.client.consumer.log_view import LogView
from headrace.client.consumer.range_reader import FetchedRange, OffsetRange, RangeReader
from headrace.errors import KafkaError, KafkaException
from headrace.net.thread import loop_thread
from headrace.slotted import replace
from headrace.testing import Action, EmbeddedBroker, Fault
from headrace.wire.messages.cluster.metadata import MetadataRequest
from headrace.wire.messages.cluster.session import ApiVersionsRequest
from headrace.wire.messages.consumer.fetch import FetchRequest
from tests.support.let_go import until

PATIENCE_S = 10
ONE = OffsetRange("one", 0, 0, 1)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"one": 1, "two": 1}) as made:
        fill(made)
        yield made


@pytest.fixture
def conf(broker: EmbeddedBroker) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "fetch.wait.max.ms": 50}


@pytest.fixture
def kept() -> Iterator[KeptReaders]:
    made = KeptReaders()
    yield made
    made.close()


def fill(broker: EmbeddedBroker) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for topic in ("one", "two"):
            producer.produce(topic, b"v")
        assert producer.flush(PATIENCE_S) == 0


def task(kept: KeptReaders, conf: dict[str, Any], wanted: OffsetRange = ONE) -> RangeReader:
    """What a task does."""
    reader = kept.take(conf)
    try:
        assert sum(piece.next_offset - piece.fetch_offset for piece in reader.read([wanted], PATIENCE_S)) == 1
    finally:
        kept.give_back(reader)
    return reader


def delete(broker: EmbeddedBroker) -> None:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        for done in admin.delete_topics(["one", "two"]).values():
            done.result(PATIENCE_S)


def make_anew(broker: EmbeddedBroker) -> None:
    delete(broker)
    for topic in ("one", "two"):
        broker.create_topic(topic, 1)
    fill(broker)


def id_of(broker: EmbeddedBroker) -> UUID:
    """The id that topic "one" has by now."""
    with LogView({"bootstrap.servers": broker.bootstrap_servers}, ["one"]) as view:
        return view.topics(PATIENCE_S)["one"].topic_id


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let time pass, but not for the brokers."""
    now = time.monotonic
    monkeypatch.setattr("headrace.client.kept_clients._clock", lambda: now() + seconds)


def test_the_next_task_connects_to_nobody(kept: KeptReaders, conf: dict[str, Any], broker: EmbeddedBroker) -> None:
    two = OffsetRange("two", 0, 0, 1)
    first = task(kept, conf)
    assert task(kept, conf, two) is first  # to the bootstrap server, then to the broker, and once more for its fetches
    asked: list[object] = []
    broker.add_fault(Fault(action=Action.DELAY, request=ApiVersionsRequest, times=None,
                           when=lambda request: asked.append(request) is not None))
    assert task(kept, conf) is first
    assert task(kept, conf, two) is first
    assert asked == []


def test_a_task_that_leaves_in_the_middle_closes_its_reader(kept: KeptReaders, conf: dict[str, Any]) -> None:
    reader = kept.take(conf)
    pieces = reader.read([ONE, OffsetRange("two", 0, 0, 1)], PATIENCE_S)
    next(pieces)
    kept.give_back(reader)
    assert reader.closed


def test_a_task_whose_generator_the_collector_ends_on_the_loop_closes_its_reader(
    kept: KeptReaders, conf: dict[str, Any]
) -> None:
    reader = kept.take(conf)

    def pieces() -> Iterator[FetchedRange]:
        try:
            yield from reader.read([ONE, OffsetRange("two", 0, 0, 1)], PATIENCE_S)
        finally:
            kept.give_back(reader)

    left = pieces()
    next(left)

    async def end() -> None:
        left.close()

    asyncio.run_coroutine_threadsafe(end(), loop_thread().loop).result(PATIENCE_S)
    until(lambda: reader.closed)


def test_a_task_that_failed_closes_its_reader(kept: KeptReaders, conf: dict[str, Any]) -> None:
    with pytest.raises(KafkaException):
        task(kept, conf, OffsetRange("one", 0, 7, 8))
    task(kept, conf)


def test_a_broker_that_was_restarted_is_found_again(
    kept: KeptReaders, conf: dict[str, Any], broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    task(kept, conf)
    broker.stop_node(1)
    broker.start_node(1)
    later(monkeypatch, 5)
    task(kept, conf)


def test_a_broker_that_cuts_the_connection_is_asked_once_more(
    kept: KeptReaders, conf: dict[str, Any], broker: EmbeddedBroker
) -> None:
    first = task(kept, conf)
    broker.add_fault(Fault(action=Action.CUT, request=FetchRequest, times=1))
    assert task(kept, conf) is first


def test_a_topic_that_was_made_anew_meanwhile_is_read_as_the_new_one(
    kept: KeptReaders, conf: dict[str, Any], broker: EmbeddedBroker
) -> None:
    task(kept, conf)
    make_anew(broker)
    task(kept, conf)


def test_a_reader_that_knows_the_topic_from_before_asks_which_one_there_is(
    kept: KeptReaders, conf: dict[str, Any], broker: EmbeddedBroker
) -> None:
    asked: list[object] = []
    broker.add_fault(Fault(action=Action.DELAY, request=MetadataRequest, times=None,
                           when=lambda request: asked.append(request) is not None))
    before = id_of(broker)
    reader = task(kept, conf, replace(ONE, topic_id=before))
    asked.clear()
    assert task(kept, conf, replace(ONE, topic_id=before)) is reader
    assert asked == []  # the ids agree
    make_anew(broker)
    now = id_of(broker)
    asked.clear()
    assert task(kept, conf, replace(ONE, topic_id=now)) is reader
    assert len(asked) == 1
    with pytest.raises(KafkaException, match=f"made anew, with id {now}"):
        task(kept, conf, replace(ONE, topic_id=before))
    assert len(asked) == 2


def test_a_topic_that_was_deleted_meanwhile_is_unknown_and_not_late(
    kept: KeptReaders, conf: dict[str, Any], broker: EmbeddedBroker
) -> None:
    known = replace(ONE, topic_id=id_of(broker))
    task(kept, conf, known)
    delete(broker)
    reader = kept.take(conf)
    with pytest.raises(KafkaException, match="lacks the topic") as gone:
        list(reader.read([known], 0.5))
    kept.give_back(reader)
    assert gone.value.error == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_reader_is_confirmed_when_a_broker_answers(
    kept: KeptReaders, conf: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = kept.take(conf)
    assert kept.confirm(reader) is True
    monkeypatch.setattr(type(reader), "confirm", lambda self: False)
    assert kept.confirm(reader) is False
    kept.give_back(reader)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_makes_its_own(kept: KeptReaders, conf: dict[str, Any]) -> None:
    parents = task(kept, conf)
    child = os.fork()
    if not child:
        status = 1
        try:
            status = 0 if task(kept, conf) is not parents else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert task(kept, conf) is parents
