"""Positions and new leaders: who is asked, what confirms a position, and what becomes of one that is beyond the log."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.consumer.fetcher import PositionsInDoubt
from headrace.machines.consumer.subscription import PositionPhase
from headrace.machines.consumer.truncation import LogTruncated, PositionCheck
from headrace.machines.machine import Send
from headrace.types.records import TopicPartition
from headrace.wire.messages.consumer.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
    PartitionData,
)
from tests.unit.machines.consumer.test_fetcher import TOPIC_ID, Bench, batch, fetch_offset, offsets

READ = 10
"""Records that were fetched under epoch 3."""


class Site(Bench):
    """Partitions of which so many records were fetched; then leaders change."""

    def __init__(self, partitions: int = 1, read: int = READ, **properties: Any) -> None:
        super().__init__(partitions, auto_offset_reset=properties.pop("reset", "earliest"), **properties)
        self.check = PositionCheck(self.subscription, self.metadata, 30.0, RetryPolicy(0.1, 1.0))
        if read:
            self.fetch(read)
            offsets(self)

    def fetch(self, count: int) -> None:
        """So many records for each partition."""
        for node, send in self.poll().items():
            parts = [PartitionData(partition_index=state.partition, error_code=0, high_watermark=1000,
                                   records=memoryview(batch(0, count)))
                     for state in self.subscription if 1 + state.partition % 2 == node]
            self.fetcher.on_reply(send, FetchResponse(session_id=5, responses=[
                FetchableTopicResponse(topic_id=TOPIC_ID, partitions=parts)]), self.now)

    @property
    def state(self) -> Any:
        return self.subscription.require("t", 0)

    def ask(self) -> dict[int, Send]:
        """What the leaders are asked about their logs, after the fetcher has had its turn."""
        self.fetcher.poll(self.now)
        sends = {send.destination: send for send in self.check.poll(self.now)}
        deadline = self.check.deadline()
        assert deadline is None or deadline > self.now
        return sends

    def answer(self, send: Send, end_offset: int, epoch: int = 3, code: int = 0, partition: int = 0) -> None:
        end = EpochEndOffset(partition=partition, error_code=code, leader_epoch=epoch, end_offset=end_offset)
        self.check.on_reply(send, OffsetForLeaderEpochResponse(topics=[
            OffsetForLeaderTopicResult(topic="t", partitions=[end])]), self.now)

    def told(self) -> list[Any]:
        return [(event.offset, event.goes_on, event.error.code()) for event in self.check.events()
                if isinstance(event, LogTruncated)]


def asked(send: Send) -> list[tuple[int, int, int]]:
    assert isinstance(send.request, OffsetForLeaderEpochRequest)
    assert send.request.replica_id == -1
    return [(part.partition, part.current_leader_epoch, part.leader_epoch)
            for topic in send.request.topics for part in topic.partitions]


def test_a_new_leader_is_asked_before_it_is_fetched_from() -> None:
    site = Site()
    site.fetcher.events()
    site.set_leaders({0: 2}, epoch=5)
    assert site.poll() == {}
    assert not site.fetcher.alone
    assert [type(event) for event in site.fetcher.events()] == [PositionsInDoubt]
    sends = site.ask()
    assert {node: asked(send) for node, send in sends.items()} == {2: [(0, 5, 3)]}
    assert site.ask() == {}
    site.answer(sends[2], READ)
    assert fetch_offset(site.poll()[2]) == READ
    assert (site.told(), site.state.phase) == ([], PositionPhase.FETCH)


def test_leaders_are_asked_once_for_all_of_their_partitions() -> None:
    site = Site(partitions=4)
    site.set_leaders({0: 1, 1: 1, 2: 1, 3: 2}, epoch=5)
    assert {node: [part for part, *_ in asked(send)] for node, send in site.ask().items()} == {1: [0, 1, 2], 2: [3]}


@pytest.mark.parametrize(("offset", "epoch", "is_asked"), [(0, None, False), (7, None, False), (7, 0, True),
                                                           (7, 2, True), (7, 3, False)])
def test_a_position_is_compared_only_if_the_record_in_front_of_it_is_of_an_earlier_term(
    offset: int, epoch: int | None, is_asked: bool
) -> None:
    site = Site(read=0)
    site.subscription.assign([TopicPartition("t", 0, offset, leader_epoch=epoch)])
    assert bool(site.ask()) is is_asked
    site.subscription.seek("t", 0, offset, epoch)
    assert bool(site.ask()) is is_asked


def test_nobody_is_asked_again_while_a_leader_stays() -> None:
    site = Site()
    site.set_leaders({0: 2}, epoch=5)
    site.answer(site.ask()[2], READ)
    site.reply(site.poll()[2], data=batch(READ, 2, epoch=5))
    site.set_leaders({0: 2}, epoch=5)
    assert site.ask() == {}


@pytest.mark.parametrize("moved", [KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH,
                                   KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_a_leader_that_is_none_any_more_is_looked_for_and_asked_after_a_pause(moved: int) -> None:
    site = Site()
    site.set_leaders({0: 2}, epoch=5)
    site.now = 1.0
    site.answer(site.ask()[2], -1, code=moved)
    assert site.ask() == {}
    deadline = site.check.deadline()
    assert deadline is not None
    assert 1.0 < deadline < 1.5
    assert list(site.metadata.poll(site.now + 1))
    site.set_leaders({0: 1}, epoch=6)
    site.now = deadline
    assert {node: asked(send) for node, send in site.ask().items()} == {1: [(0, 6, 3)]}


def test_a_lost_question_is_asked_again() -> None:
    site = Site()
    site.set_leaders({0: 2}, epoch=5)
    site.check.on_error(site.ask()[2], KafkaError(KafkaError._TRANSPORT), site.now)
    assert site.ask() == {}
    site.now += 2
    assert list(site.ask()) == [2]


@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED])
def test_a_leader_that_will_not_say_is_fetched_from(code: int) -> None:
    site = Site()
    site.set_leaders({0: 2}, epoch=5)
    site.answer(site.ask()[2], -1, code=code)
    assert fetch_offset(site.poll()[2]) == READ


def test_a_broker_without_such_an_api_is_fetched_from() -> None:
    site = Site()
    site.set_leaders({0: 2}, epoch=5)
    site.check.on_error(site.ask()[2], KafkaError(KafkaError._UNSUPPORTED_FEATURE), site.now)
    assert fetch_offset(site.poll()[2]) == READ


def test_records_that_are_gone_are_told_and_reading_goes_on_where_the_logs_part() -> None:
    site = Site()
    site.set_leaders({0: 2}, epoch=5)
    site.answer(site.ask()[2], 6, epoch=2)
    assert site.told() == [(READ, True, KafkaError._LOG_TRUNCATION)]
    assert (site.state.position, site.state.fetch_epoch) == (6, 2)
    assert {node: asked(send) for node, send in site.ask().items()} == {2: [(0, 5, 2)]}, "it has to hold there as well"


def test_the_next_commit_takes_the_group_back_to_where_the_logs_part() -> None:
    site = Site()
    site.state.committed = READ
    site.set_leaders({0: 2}, epoch=5)
    site.answer(site.ask()[2], 6, epoch=2)
    assert [(tp.offset, tp.leader_epoch) for tp in site.subscription.to_commit()] == [(6, 2)]


def test_a_reader_that_stops_commits_its_epoch_so_that_the_next_one_is_told_as_well() -> None:
    site = Site(reset="error")
    site.set_leaders({0: 2}, epoch=5)
    site.answer(site.ask()[2], 6)
    [stored] = site.subscription.to_commit()
    assert (stored.offset, stored.leader_epoch) == (READ, 3)
    site.subscription.assign([stored])
    assert [asked(send) for send in site.ask().values()] == [[(0, 5, 3)]]


def test_where_the_policy_is_error_reading_stops_and_the_error_names_the_offset() -> None:
    site = Site(reset="error")
    site.set_leaders({0: 2}, epoch=5)
    site.answer(site.ask()[2], 6)
    (event,) = site.check.events()
    assert isinstance(event, LogTruncated)
    assert (event.offset, event.goes_on, site.state.phase) == (READ, False, PositionPhase.FAILED)
    assert "t[0]" in event.error.str()
    assert "from offset 6 to 9" in event.error.str()
    site.subscription.seek("t", 0, 6)
    assert fetch_offset(site.poll()[2]) == 6


@pytest.mark.parametrize(("reset", "phase"), [("earliest", PositionPhase.RESET), ("latest", PositionPhase.RESET),
                                              ("error", PositionPhase.FAILED)])
def test_where_nobody_knows_how_far_the_logs_are_the_same_the_policy_decides(reset: str, phase: PositionPhase) -> None:
    site = Site(reset=reset)
    site.set_leaders({0: 2}, epoch=5)
    site.answer(site.ask()[2], -1, epoch=-1)
    assert site.told() == [(READ, reset != "error", KafkaError._LOG_TRUNCATION)]
    assert site.state.phase is phase


def test_what_was_fetched_before_is_handed_out_before_a_position_is_given_up() -> None:
    site = Site(read=0)
    site.fetch(READ)
    site.set_leaders({0: 2}, epoch=5)
    site.answer(site.ask()[2], 6)
    assert offsets(site, 3) == [0, 1, 2]
    assert (site.ask(), site.told(), site.drained) == ({}, [], 0)
    assert offsets(site) == list(range(3, READ))
    assert site.drained == 1, "the loop is woken"
    site.ask()
    assert site.told() == [(READ, True, KafkaError._LOG_TRUNCATION)]
    assert site.state.position == 6


def test_a_seek_while_a_leader_is_asked_is_kept() -> None:
    site = Site()
    site.set_leaders({0: 2}, epoch=5)
    send = site.ask()[2]
    site.subscription.seek("t", 0, 2)
    site.answer(send, 1)
    assert (site.told(), site.state.position) == ([], 2)
    assert fetch_offset(site.poll()[2]) == 2


def test_what_an_earlier_leader_answers_late_is_dropped() -> None:
    site = Site()
    late = site.poll()[1]
    site.set_leaders({0: 2}, epoch=5)
    send = site.ask()[2]
    site.reply(late, data=batch(READ, 5))
    assert offsets(site) == []
    site.answer(send, READ)
    assert fetch_offset(site.poll()[2]) == READ
