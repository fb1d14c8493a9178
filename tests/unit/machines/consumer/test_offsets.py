"""Offsets from leaders: starts, questions."""

from __future__ import annotations

import pytest

from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.offsets import OffsetLookup, PositionFailed
from headrace.machines.consumer.subscription import EARLIEST, LATEST, PositionPhase
from headrace.types.records import TopicPartition
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.consumer.offsets import ListOffsetsRequest
from tests.support.offset_bench import NEVER, NOW_MS, Bench, listed, poll


def test_each_leader_is_asked_for_its_partitions() -> None:
    bench = Bench()
    bench.ask_leader(0)
    bench.ask_leader(1)
    sends = poll(bench.lookup, 0.0)
    assert [send.destination for send in sends] == [1, 2]
    assert [[part.partition_index for topic in send.request.topics for part in topic.partitions]
            for send in sends if isinstance(send.request, ListOffsetsRequest)] == [[0], [1]]
    assert poll(bench.lookup, 0.0) == []
    for partition, send in enumerate(sends):
        bench.lookup.on_reply(send, listed(partition), 0.0)
    assert [(tp.partition, tp.offset, tp.leader_epoch) for tp in bench.found] == [(0, 7, 2), (1, 7, 2)]


def test_what_is_asked_twice_of_one_partition_is_answered_twice_one_request_after_the_other() -> None:
    bench = Bench()
    for timestamp in (1000, 1000, 2000):
        bench.ask_leader(0, timestamp)
    for asked in range(1, 4):
        [send] = poll(bench.lookup, 0.0)
        assert isinstance(send.request, ListOffsetsRequest)
        assert [len(topic.partitions) for topic in send.request.topics] == [1], "Kafka refuses one that is named twice"
        assert poll(bench.lookup, 0.0) == []
        assert bench.lookup.deadline() is None, "the rest waits for the reply"
        bench.lookup.on_reply(send, listed(0, asked), 0.0)
        assert [tp.offset for tp in bench.found] == list(range(1, asked + 1))
    assert poll(bench.lookup, 0.0) == []


def test_a_partition_to_be_reset_gets_its_start() -> None:
    bench = Bench(group_id="")
    bench.subscription.assign([TopicPartition("t", 0)])
    [send] = poll(bench.lookup, 0.0)
    assert isinstance(send.request, ListOffsetsRequest)
    [topic] = send.request.topics
    assert (topic.name, [part.timestamp for part in topic.partitions]) == ("t", [EARLIEST])
    bench.lookup.on_reply(send, listed(0, 40), 0.0)
    state = bench.subscription.require("t", 0)
    assert (state.phase, state.position) == (PositionPhase.FETCH, 40)


def test_a_start_that_was_overtaken_by_a_seek_is_ignored() -> None:
    bench = Bench(group_id="")
    bench.subscription.assign([TopicPartition("t", 0)])
    [send] = poll(bench.lookup, 0.0)
    bench.subscription.seek("t", 0, 99)
    bench.lookup.on_reply(send, listed(0, 40), 0.0)
    assert bench.subscription.require("t", 0).position == 99


def test_a_stale_leader_is_asked_again_after_a_pause_and_metadata_refreshed() -> None:
    bench = Bench()
    bench.ask_leader(0)
    [send] = poll(bench.lookup, 0.0)
    bench.lookup.on_reply(send, listed(0, code=KafkaError.NOT_LEADER_FOR_PARTITION), 0.0)
    assert poll(bench.lookup, 0.0) == []
    assert list(bench.metadata.poll(bench.now + 1))
    assert len(poll(bench.lookup, 5.0)) == 1


def test_a_question_expires_with_a_reason() -> None:
    bench = Bench()
    bench.lookup.ask("nowhere", 0, EARLIEST, 2.0, bench.found.append)
    now = 0.0
    while not bench.found and now < 10:
        assert poll(bench.lookup, now) == []
        now += 0.25
    error = bench.found[0].error
    assert error is not None
    assert error == KafkaError._TIMED_OUT
    assert "nowhere[0]" in error.str()


def test_a_question_whose_time_is_over_says_why_the_leader_did_not_answer_it() -> None:
    bench = Bench()
    bench.ask_leader(0, expires_at=2.0)
    [send] = poll(bench.lookup, 0.0)
    bench.lookup.on_reply(send, listed(0, code=KafkaError.OFFSET_NOT_AVAILABLE), 0.0)
    assert not poll(bench.lookup, 2.0)
    assert f"last error: {KafkaError(KafkaError.OFFSET_NOT_AVAILABLE).str()}" in str(bench.found[0].error)


def test_a_question_that_waits_for_another_one_expires_as_well() -> None:
    bench = Bench()
    bench.ask_leader(0)
    bench.ask_leader(0, 1000, expires_at=2.0)
    [_] = poll(bench.lookup, 0.0)
    assert bench.lookup.deadline() == 2.0
    poll(bench.lookup, 2.0)
    assert [tp.error for tp in bench.found] == [KafkaError._TIMED_OUT]


def answer_metadata(bench: Bench, now: float, code: int) -> None:
    [send] = bench.metadata.poll(now)
    bench.metadata.on_reply(send, MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)],
        topics=[MetadataResponseTopic(name="t", partitions=[
            MetadataResponsePartition(partition_index=p, leader_id=1 + p) for p in (0, 1)]),
            MetadataResponseTopic(name="nowhere", error_code=code, partitions=[])]), now)


@pytest.mark.parametrize(("topic", "partition", "code", "answer", "text"), [
    ("t", 9, 3, KafkaError._UNKNOWN_PARTITION, r"t[9] does not exist: the topic has 2 partition(s)"),
    ("nowhere", 0, 3, KafkaError._UNKNOWN_PARTITION, "nowhere[0] does not exist: there is no such topic"),
    ("nowhere", 0, 29, KafkaError.TOPIC_AUTHORIZATION_FAILED, "nowhere"),
])
def test_a_partition_that_a_new_picture_does_not_know_has_no_offset(
    topic: str, partition: int, code: int, answer: int, text: str
) -> None:
    bench = Bench()
    bench.lookup.ask(topic, partition, EARLIEST, NEVER, bench.found.append)
    assert poll(bench.lookup, 1.0) == []
    assert bench.found == [], "the picture may be too old"
    answer_metadata(bench, 1.0, code)
    assert poll(bench.lookup, 1.0) == []
    [found] = bench.found
    assert found.error is not None
    assert found.error == answer
    assert text in found.error.str()


def test_a_topic_that_is_only_just_made_is_waited_for() -> None:
    bench = Bench()
    bench.lookup.ask("nowhere", 0, EARLIEST, NEVER, bench.found.append)
    poll(bench.lookup, 1.0)
    answer_metadata(bench, 1.0, KafkaError.LEADER_NOT_AVAILABLE)
    poll(bench.lookup, 1.0)
    assert bench.found == []


def test_a_partition_of_the_subscription_is_waited_for_until_it_is_made() -> None:
    bench = Bench(group_id="")
    bench.subscription.assign([TopicPartition("nowhere", 0)])
    poll(bench.lookup, 1.0)
    answer_metadata(bench, 1.0, 3)
    poll(bench.lookup, 1.0)
    assert bench.lookup.events() == []
    assert bench.subscription.require("nowhere", 0).phase is PositionPhase.RESET


@pytest.mark.parametrize(("tail", "start"), [(3, 37), (40, 10), (99, 10)])
def test_the_last_so_many_records_begin_so_far_in_front_of_the_end_but_not_in_front_of_the_first(
    tail: int, start: int
) -> None:
    bench = Bench()
    bench.subscription.assign([TopicPartition("t", 0, -2000 - tail)])
    for timestamp, offset in ((LATEST, 40), (EARLIEST, 10)):
        [send] = poll(bench.lookup, 0.0)
        assert isinstance(send.request, ListOffsetsRequest)
        assert send.request.topics[0].partitions[0].timestamp == timestamp
        bench.lookup.on_reply(send, listed(0, offset), 0.0)
    state = bench.subscription.require("t", 0)
    assert (state.phase, state.position) == (PositionPhase.FETCH, start)


@pytest.mark.parametrize(("found", "start"), [(20, 20), (-1, 40)])
def test_a_reset_by_duration_begins_with_the_first_record_that_is_young_enough_or_at_the_end(
    found: int, start: int
) -> None:
    bench = Bench(reset=1000, group_id="")
    bench.subscription.assign([TopicPartition("t", 0)])
    for timestamp, offset in ((NOW_MS - 1000, found), (LATEST, 40))[:1 if found >= 0 else 2]:
        [send] = poll(bench.lookup, 0.0)
        assert isinstance(send.request, ListOffsetsRequest)
        assert send.request.topics[0].partitions[0].timestamp == timestamp
        bench.lookup.on_reply(send, listed(0, offset), 0.0)
    assert bench.subscription.require("t", 0).position == start
    assert poll(bench.lookup, 0.0) == []


def test_a_leader_is_asked_as_soon_as_it_is_known_and_after_a_pause_when_it_refused() -> None:
    bench = Bench()
    bench.metadata = Metadata([("h", 1)])
    bench.lookup = OffsetLookup(bench.subscription, bench.metadata, 1, 30.0, RetryPolicy())
    bench.ask_leader(0)
    assert poll(bench.lookup, 0.0) == []
    answer_metadata(bench, 0.001, 3)
    [send] = poll(bench.lookup, 0.001)
    bench.lookup.on_reply(send, listed(0, code=KafkaError.NOT_LEADER_FOR_PARTITION), 0.002)
    assert poll(bench.lookup, 0.002) == []
    assert len(poll(bench.lookup, 1.0)) == 1


def test_an_error_that_does_not_pass_is_the_answer() -> None:
    bench = Bench()
    bench.ask_leader(0)
    [send] = poll(bench.lookup, 0.0)
    bench.lookup.on_reply(send, listed(0, code=KafkaError.TOPIC_AUTHORIZATION_FAILED), 0.0)
    assert [tp.error for tp in bench.found] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


def test_a_start_that_leaders_refuse_is_asked_for_again_and_told_once() -> None:
    bench = Bench(reset="earliest", group_id="")
    bench.subscription.assign([TopicPartition("t", 0)])
    now = 0.0
    for _ in range(3):
        [send] = poll(bench.lookup, now)
        bench.lookup.on_reply(send, listed(0, -1, code=KafkaError.TOPIC_AUTHORIZATION_FAILED), now)
        assert poll(bench.lookup, now) == []
        now = bench.lookup.deadline() or 0.0
    [event] = bench.lookup.events()
    assert isinstance(event, PositionFailed)
    assert event.error == KafkaError.TOPIC_AUTHORIZATION_FAILED
    [send] = poll(bench.lookup, now)
    bench.lookup.on_reply(send, listed(0, 7), now)
    assert bench.subscription.require("t", 0).position == 7


def test_a_start_that_nobody_waits_for_any_more_is_not_asked_for_again() -> None:
    bench = Bench(reset="earliest", group_id="")
    bench.subscription.assign([TopicPartition("t", 0)])
    [send] = poll(bench.lookup, 0.0)
    bench.subscription.seek("t", 0, 3)
    bench.lookup.on_reply(send, listed(0, -1, code=KafkaError.TOPIC_AUTHORIZATION_FAILED), 0.0)
    assert poll(bench.lookup, 100.0) == []
    assert bench.lookup.events() == []
