"""What an application says and asks about offsets: both faces take and refuse the same, with the same words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.aio import AIOConsumer
from headrace.client.consumer.consumer import Consumer
from headrace.client.core import ClientCore
from headrace.errors import KafkaError, KafkaException
from headrace.records import Message
from headrace.testing import EmbeddedBroker
from headrace.types.records import OFFSET_INVALID, TopicPartition
from tests.support.group_members import fill, poll_until

BY_HAND = {"group.id": "g", "enable.auto.offset.store": False, "enable.auto.commit": False}
RECORD = Message(topic="t", partition=0, offset=7)
EVENT = Message(topic="t", partition=0, offset=7, error=KafkaError(KafkaError._PARTITION_EOF))
PLACE = TopicPartition("t", 0, 3)

REFUSED: dict[str, tuple[dict[str, Any], Callable[[Any], Any], str]] = {
    "a commit without a group": ({}, lambda reader: reader.commit(), r"group\.id"),
    "a question without a group": ({}, lambda reader: reader.committed([PLACE]), r"group\.id"),
    "nothing to commit": (BY_HAND, lambda reader: reader.commit(asynchronous=False), "no new offset is stored"),
    "both forms": (BY_HAND, lambda reader: reader.commit(RECORD, [PLACE]), "mutually exclusive"),
    "an event": (BY_HAND, lambda reader: reader.commit(EVENT), "Cannot commit offsets for message with error"),
    "an event that is stored": (
        BY_HAND, lambda reader: reader.store_offsets(EVENT), "Cannot store offsets for message with error"),
    "offsets that are no list": (BY_HAND, lambda reader: reader.commit(offsets=PLACE), "offsets: expected list"),
    "neither form": (BY_HAND, lambda reader: reader.store_offsets(), "expected either message or offsets"),
    "a partition that is not assigned": (BY_HAND, lambda reader: reader.store_offsets(RECORD), "is not assigned"),
    "storing by hand and by itself": (
        {"group.id": "g"}, lambda reader: reader.store_offsets(RECORD), r"enable\.auto\.offset\.store"),
    "times of nothing": ({}, lambda reader: reader.offsets_for_times([]), "takes at least one partition"),
    "watermarks of no partition": ({}, lambda reader: reader.get_watermark_offsets("t"), "must be TopicPartition"),
    "positions of no list": ({}, lambda reader: reader.position(PLACE), "partitions: expected list"),
}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"t": 4}) as broker:
        fill(broker, "t", 5)
        yield broker


@pytest.mark.parametrize(("properties", "call", "text"), REFUSED.values(), ids=REFUSED)
def test_both_faces_refuse_the_same(
    broker: EmbeddedBroker, properties: dict[str, Any], call: Callable[[Any], Any], text: str
) -> None:
    config = {"bootstrap.servers": broker.bootstrap_servers, **properties}
    with Consumer(config) as reader, pytest.raises((KafkaException, TypeError, ValueError), match=text) as refused:
        call(reader)

    async def main() -> None:
        async with AIOConsumer(config) as reader:
            with pytest.raises(refused.type) as again:
                await call(reader)
            assert str(again.value) == str(refused.value)

    asyncio.run(main())


def test_an_asynchronous_commit_of_nothing_is_told_to_on_commit(broker: EmbeddedBroker) -> None:
    told: list[tuple[KafkaError | None, list[TopicPartition]]] = []
    config = {"bootstrap.servers": broker.bootstrap_servers, **BY_HAND}
    with Consumer({**config, "on_commit": lambda error, partitions: told.append((error, partitions))}) as reader:
        assert reader.commit() is None
        assert told == [], "it is told from poll()"
        reader.poll(0)
        reader.assign([TopicPartition("t", 3), TopicPartition("t", 0)])
        reader.commit()
        reader.commit(offsets=[TopicPartition("t", 3)])
        poll_until(lambda: len(told) == 3, reader)
    assert told == [(KafkaError._NO_OFFSET, []),
                    (KafkaError._NO_OFFSET, [TopicPartition("t", 0), TopicPartition("t", 3)]),
                    (KafkaError._NO_OFFSET, [TopicPartition("t", 3)])]


@pytest.mark.parametrize("interval_ms", [50, 60_000], ids=["by the clock", "as it is closed"])
def test_a_commit_that_nobody_asked_for_is_told_of_every_partition(broker: EmbeddedBroker, interval_ms: int) -> None:
    told: list[list[tuple[int, int]]] = []
    config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": f"g{interval_ms}",
              "auto.commit.interval.ms": interval_ms, "auto.offset.reset": "earliest",
              "on_commit": lambda error, partitions: told.append([(tp.partition, tp.offset) for tp in partitions])}
    with Consumer(config) as reader:
        reader.assign([TopicPartition("t", partition) for partition in (0, 3)])
        reader.pause([TopicPartition("t", 3)])
        assert len(reader.consume(5, 10)) == 5
        if interval_ms < 1000:
            poll_until(lambda: bool(told), reader)
    assert told[-1] == [(0, 5), (3, OFFSET_INVALID)]


def test_cached_watermarks_are_unknown_before_anything_was_fetched(broker: EmbeddedBroker) -> None:
    with Consumer({"bootstrap.servers": broker.bootstrap_servers}) as reader:
        assert reader.get_watermark_offsets(PLACE, cached=True) == (OFFSET_INVALID, OFFSET_INVALID)
        assert reader.position([PLACE])[0].offset == OFFSET_INVALID


def test_a_commit_of_a_message_covers_it_and_what_is_before(broker: EmbeddedBroker) -> None:
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, **BY_HAND}) as reader:
        done = reader.commit(Message(topic="t", partition=1, offset=2), asynchronous=False)
        assert done is not None
        assert [(tp.partition, tp.offset, tp.error) for tp in done] == [(1, 3, None)]
        assert [tp.offset for tp in reader.committed([TopicPartition("t", 1)], 5)] == [3]


def test_a_question_about_many_partitions_takes_one_future_as_one_about_one_does(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = [TopicPartition("t", number, 0) for number in (3, 1, 0, 2, 1)]
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, **BY_HAND}) as reader:
        reader.committed(partitions, 5)
        reader.offsets_for_times(partitions, 5)
        made: list[None] = []
        future = ClientCore.future
        monkeypatch.setattr(ClientCore, "future", lambda core: made.append(None) or future(core))
        for ask in (reader.committed, reader.offsets_for_times):
            assert [tp.partition for tp in ask(partitions, 5)] == [3, 1, 0, 2, 1]
            assert len(made) == 1
            made.clear()
        assert reader.committed([], 5) == []


def test_positions_of_no_known_epoch_are_made_without_a_look_at_each_field(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Consumer({"bootstrap.servers": broker.bootstrap_servers}) as reader:
        reader.assign([PLACE])
        monkeypatch.setattr(TopicPartition, "__setattr__", refuse)
        [position] = reader.position([PLACE])
        assert (position.offset, position.leader_epoch) == (3, None)


def refuse(*_: object) -> None:
    raise AssertionError("thousands are made for one call")
