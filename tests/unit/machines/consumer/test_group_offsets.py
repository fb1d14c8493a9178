"""Offsets of a group: starts, questions, commits."""

from __future__ import annotations

import gc
import time
from typing import Any
from uuid import UUID

import pytest

from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.consumer.group_offsets import GroupOffsets
from headrace.machines.consumer.offsets import PositionFailed
from headrace.machines.consumer.subscription import EARLIEST, PositionPhase
from headrace.machines.groups.membership import Change, EpochMoved, MemberRefused
from headrace.machines.machine import Send
from headrace.types.records import OFFSET_INVALID, ConsumerGroupMetadata, TopicPartition
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.consumer.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from headrace.wire.messages.groups.classic_groups import FindCoordinatorResponse
from tests.support.offset_bench import NEVER, Bench, committed, fetched, listed, poll


def test_a_question_that_a_silent_leader_or_coordinator_does_not_answer_expires_when_its_time_is_over() -> None:
    bench = Bench()
    bench.ask_leader(0, expires_at=2.0)
    bench.group.ask([TopicPartition("t", 0)], 3.0, bench.found.append)
    [asked_leader], [asked_group] = poll(bench.lookup, 0.0), poll(bench.group, 0.0)
    assert (bench.lookup.deadline(), bench.group.deadline()) == (2.0, 3.0)
    assert poll(bench.lookup, 2.0) == poll(bench.group, 3.0) == []
    assert [tp.error for tp in bench.found] == [KafkaError._TIMED_OUT] * 2
    bench.lookup.on_reply(asked_leader, listed(0), 4.0)
    bench.group.on_reply(asked_group, fetched(0, 5), 4.0)
    assert len(bench.found) == 2, "an answer that comes too late is no second one"


def test_a_committed_offset_is_the_start() -> None:
    bench = Bench()
    bench.subscription.assign([TopicPartition("t", 0)])
    [send] = poll(bench.group, 0.0)
    assert send.destination == 1
    bench.group.on_reply(send, fetched(0, 12), 0.0)
    state = bench.subscription.require("t", 0)
    assert (state.phase, state.position, state.committed) == (PositionPhase.FETCH, 12, 12)


def test_also_the_first_offset_of_all_may_be_committed() -> None:
    bench = Bench(reset="latest")
    bench.subscription.assign([TopicPartition("t", 0)])
    bench.group.ask([TopicPartition("t", 0)], NEVER, bench.found.append)
    for send in poll(bench.group, 0.0):
        bench.group.on_reply(send, fetched(0, 0), 0.0)
    state = bench.subscription.require("t", 0)
    assert (state.phase, state.position, state.committed) == (PositionPhase.FETCH, 0, 0)
    assert [tp.offset for tp in bench.found] == [0]


def test_a_partition_that_came_back_starts_behind_what_is_being_committed_of_it() -> None:
    bench = Bench()
    bench.commit(offset=9)
    bench.subscription.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
    commit, start = poll(bench.group, 0.0)
    assert isinstance(start.request, OffsetFetchRequest)
    assert [tuple(topic.partition_indexes) for topic in start.request.topics or ()] == [(1,)], "0 waits"
    bench.group.on_reply(commit, committed(code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS), 0.0)
    [commit] = poll(bench.group, 1.0)
    bench.group.on_reply(commit, committed(), 1.0)
    [start] = poll(bench.group, 1.0)
    bench.group.on_reply(start, fetched(0, 9), 1.0)
    assert bench.subscription.require("t", 0).position == 9


def test_without_a_committed_offset_the_policy_decides() -> None:
    bench = Bench(reset="earliest")
    bench.subscription.assign([TopicPartition("t", 0)])
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, fetched(0, -1), 0.0)
    assert bench.subscription.require("t", 0).phase is PositionPhase.RESET
    assert len(poll(bench.lookup, 0.0)) == 1


def test_without_a_committed_offset_the_policy_error_is_told() -> None:
    bench = Bench(reset="error")
    bench.subscription.assign([TopicPartition("t", 0)])
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, fetched(0, -1), 0.0)
    [event] = bench.group.events()
    assert isinstance(event, PositionFailed)
    assert event.error == KafkaError._AUTO_OFFSET_RESET


def test_asking_for_committed_offsets_gives_offset_and_metadata() -> None:
    bench = Bench()
    bench.group.ask([TopicPartition("t", 0)], NEVER, bench.found.append)
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, fetched(0, 12), 0.0)
    assert [(tp.offset, tp.metadata) for tp in bench.found] == [(12, "note")]
    bench.group.ask([TopicPartition("t", 0)], NEVER, bench.found.append)
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, fetched(0, -1), 0.0)
    nothing = bench.found[1]
    assert (nothing.offset, nothing.leader_epoch, nothing.metadata, nothing.error) == (OFFSET_INVALID, None, None, None)


@pytest.mark.parametrize("reply", [
    fetched(0, 0, top=KafkaError.NOT_COORDINATOR), fetched(0, 0, top=KafkaError.COORDINATOR_LOAD_IN_PROGRESS),
    fetched(0, 0, code=KafkaError.UNSTABLE_OFFSET_COMMIT)])
def test_passing_errors_of_the_coordinator_are_ridden_out(reply: OffsetFetchResponse) -> None:
    bench = Bench()
    bench.group.ask([TopicPartition("t", 0)], NEVER, bench.found.append)
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, reply, 0.0)
    bench.now = 5.0
    bench.find()
    [again] = poll(bench.group, 5.0)
    bench.group.on_reply(again, fetched(0, 3), 5.0)
    assert [tp.offset for tp in bench.found] == [3]


def test_a_question_whose_time_is_over_says_why_the_coordinator_did_not_answer_it() -> None:
    bench = Bench()
    bench.group.ask([TopicPartition("t", 0)], 10.0, bench.found.append)
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, fetched(0, 0, code=KafkaError.UNSTABLE_OFFSET_COMMIT), 0.0)
    assert not poll(bench.group, 10.0)
    [tp] = bench.found
    assert tp.error == KafkaError._TIMED_OUT
    assert str(tp.error).endswith('last error: A transaction that commits offsets is still open."}')


def test_a_commit_carries_the_identity_of_the_member() -> None:
    bench = Bench()
    bench.commit()
    [send] = poll(bench.group, 0.0)
    request = send.request
    assert isinstance(request, OffsetCommitRequest)
    assert (request.member_id, request.generation_id_or_member_epoch) == ("me", 3)
    bench.group.on_reply(send, committed(), 0.0)
    [(partitions, error)] = bench.done
    assert (partitions[0].offset, partitions[0].error, error) == (5, None, None)


@pytest.mark.parametrize(("given", "sent"), [
    (TopicPartition("t", 0, 5, "note", 7), (0, 5, "note", 7)), (TopicPartition("t", 1, 0), (1, 0, "", -1))])
def test_a_commit_has_all_that_the_application_said(given: TopicPartition, sent: tuple[int, int, str, int]) -> None:
    bench = Bench()
    bench.group.commit([given], NEVER, lambda *_: None)
    [send] = poll(bench.group, 0.0)
    assert isinstance(send.request, OffsetCommitRequest)
    [topic] = send.request.topics
    [part] = topic.partitions
    assert (topic.name, part.partition_index, part.committed_offset, part.committed_metadata,
            part.committed_leader_epoch) == ("t", *sent)


def identities(bench: Bench) -> list[tuple[str, int, list[int]]]:
    """What is committed as whom, one commit after the other: member id, generation, partitions."""
    found = []
    while sends := poll(bench.group, 0.0):
        [send] = sends
        request = send.request
        assert isinstance(request, OffsetCommitRequest)
        partitions = [p.partition_index for t in request.topics for p in t.partitions]
        found.append((request.member_id, request.generation_id_or_member_epoch, partitions))
        bench.group.on_reply(send, committed(*partitions), 0.0)
    return found


def test_nobody_waits_for_a_group_that_refuses_but_positions_do() -> None:
    bench = Bench()
    bench.finder.invalidate(1.0)
    for send in bench.finder.poll(1.0):
        bench.finder.on_reply(send, FindCoordinatorResponse(error_code=KafkaError.GROUP_AUTHORIZATION_FAILED), 1.0)
    bench.subscription.assign([TopicPartition("t", 0)])
    bench.group.ask([TopicPartition("t", 1)], 60.0, bench.found.append)
    bench.group.commit([TopicPartition("t", 1, 5)], 60.0,
                       lambda partitions, error: bench.done.append((partitions, error)))
    assert poll(bench.group, 1.0) == []
    assert [found.error for found in bench.found] == [KafkaError.GROUP_AUTHORIZATION_FAILED]
    assert [error for _, error in bench.done] == [KafkaError.GROUP_AUTHORIZATION_FAILED]
    assert bench.group.events() == []
    bench.now = 9.0
    bench.find()
    assert [type(send.request) for send in poll(bench.group, 9.0)] == [OffsetFetchRequest]


def test_a_partition_that_moved_is_committed_as_the_member_that_read_it() -> None:
    bench = Bench()
    bench.meet(Change.ASSIGN, 4, 0, 1)
    bench.meet(Change.REVOKE, 4, 0)
    bench.meet(Change.ASSIGN, 5)
    bench.group.commit([TopicPartition("t", 0, 5), TopicPartition("t", 1, 6)], NEVER,
                       lambda partitions, error: bench.done.append((partitions, error)))
    assert identities(bench) == [("me", 4, [0]), ("me", 5, [1])]
    [(partitions, error)] = bench.done
    assert [(tp.partition, tp.offset, tp.error) for tp in partitions] == [(0, 5, None), (1, 6, None)]
    assert error is None


def test_a_commit_of_two_parts_is_told_once_with_the_error_of_the_refused_one() -> None:
    bench = Bench()
    bench.meet(Change.ASSIGN, 4, 0, 1)
    bench.meet(Change.LOSE, -1, 0)
    bench.meet(Change.ASSIGN, 5)
    bench.group.commit([TopicPartition("t", 1, 6), TopicPartition("t", 0, 5)], NEVER,
                       lambda partitions, error: bench.done.append((partitions, error)))
    [kept] = poll(bench.group, 0.0)
    bench.group.on_reply(kept, committed(1), 0.0)
    assert bench.done == []
    [moved] = poll(bench.group, 0.0)
    bench.group.on_reply(moved, committed(code=KafkaError.ILLEGAL_GENERATION), 0.0)
    [(partitions, error)] = bench.done
    assert [(tp.partition, tp.error) for tp in partitions] == [(1, None), (0, KafkaError.ILLEGAL_GENERATION)]
    assert error == KafkaError.ILLEGAL_GENERATION


def test_a_partition_that_comes_back_is_committed_as_the_present_member() -> None:
    bench = Bench()
    bench.meet(Change.ASSIGN, 4, 0)
    bench.meet(Change.REVOKE, 4, 0)
    bench.meet(Change.ASSIGN, 5, 0)
    bench.commit()
    assert identities(bench) == [("me", 5, [0])]


def test_who_left_the_group_commits_as_nobody() -> None:
    bench = Bench()
    bench.meet(Change.ASSIGN, 4, 0)
    bench.ownership.leave()
    bench.commit()
    assert identities(bench) == [("", -1, [0])]


def test_a_commit_names_topics_by_id_if_all_are_known_and_by_name_else() -> None:
    bench = Bench()
    bench.subscription.assign([TopicPartition("t", 0, 0), TopicPartition("u", 0, 0)])
    bench.subscription.require("t", 0).topic_id = UUID(int=1)
    both = [TopicPartition("t", 0, 5), TopicPartition("u", 0, 6)]
    bench.group.commit(both, NEVER, lambda *done: bench.done.append(done))
    [send] = poll(bench.group, 0.0)
    assert send.max_version == 9
    bench.group.on_reply(send, committed(), 0.0)
    bench.subscription.require("u", 0).topic_id = UUID(int=2)
    bench.group.commit(both, NEVER, lambda *done: bench.done.append(done))
    [send] = poll(bench.group, 0.0)
    assert isinstance(send.request, OffsetCommitRequest)
    assert (send.max_version, [topic.topic_id.int for topic in send.request.topics]) == (None, [1, 2])
    bench.group.on_reply(send, OffsetCommitResponse(topics=[
        OffsetCommitResponseTopic(topic_id=UUID(int=topic), partitions=[OffsetCommitResponsePartition(
            partition_index=0, error_code=code)])
        for topic, code in ((2, 0), (1, KafkaError.TOPIC_AUTHORIZATION_FAILED))]), 0.0)
    partitions, error = bench.done[-1]
    assert error == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert [tp.error for tp in partitions] == [KafkaError.TOPIC_AUTHORIZATION_FAILED, None]
    assert bench.subscription.require("u", 0).committed == 6


@pytest.mark.parametrize("flying", [False, True], ids=["before it is sent", "while it is on its way"])
def test_what_was_read_of_a_topic_that_is_gone_is_not_committed_to_another_of_its_name(flying: bool) -> None:
    bench = Bench()
    bench.subscription.assign([TopicPartition("t", 0, 0)])
    bench.commit()
    bench.group.commit([TopicPartition("t", 0, 7), TopicPartition("u", 0, 8)], NEVER,
                       lambda *done: bench.done.append(done))
    if flying:
        [send] = poll(bench.group, 0.0)
    bench.group.forget({"t"})
    if flying:
        bench.group.on_reply(send, committed(code=KafkaError.UNKNOWN_TOPIC_OR_PART), 0.0)
    [send] = poll(bench.group, 0.0)
    assert isinstance(send.request, OffsetCommitRequest)
    assert [topic.name for topic in send.request.topics] == ["u"]
    assert bench.done[0][0][0].error == KafkaError.UNKNOWN_TOPIC_OR_PART
    bench.group.on_reply(send, OffsetCommitResponse(topics=[OffsetCommitResponseTopic(
        name="u", partitions=[OffsetCommitResponsePartition(partition_index=0)])]), 0.0)
    assert [tp.error for tp in bench.done[1][0]] == [KafkaError.UNKNOWN_TOPIC_OR_PART, None]
    assert bench.subscription.require("t", 0).committed == OFFSET_INVALID
    assert poll(bench.group, 100.0) == []


def test_a_commit_on_its_way_whose_topics_are_all_gone_by_now_ends_with_its_answer_and_once() -> None:
    bench = Bench()
    bench.commit()
    [send] = poll(bench.group, 0.0)
    bench.group.forget({"t"})
    assert (poll(bench.group, 1.0), bench.done) == ([], [])
    bench.group.on_reply(send, committed(), 2.0)
    assert [error for _, error in bench.done] == [None]
    assert not bench.group.is_committing


def test_commits_go_out_in_order_and_one_at_a_time() -> None:
    bench = Bench()
    bench.commit(1)
    bench.commit(2)
    [first] = poll(bench.group, 0.0)
    assert poll(bench.group, 0.0) == []
    bench.group.on_reply(first, committed(), 0.0)
    [second] = poll(bench.group, 0.0)
    offsets: list[Any] = [s.request.topics[0].partitions[0].committed_offset  # type: ignore[attr-defined]
                          for s in (first, second)]
    assert offsets == [1, 2]


def test_commits_that_wait_go_together_and_each_is_told() -> None:
    bench = Bench()
    for offset in range(1, 21):
        bench.commit(offset=offset, expires_at=60.0 + offset / 1000)
        if offset == 1:
            [first] = poll(bench.group, 0.0)
    assert poll(bench.group, 0.0) == []
    bench.group.on_reply(first, committed(), 0.0)
    [rest] = poll(bench.group, 0.0)
    assert isinstance(rest.request, OffsetCommitRequest)
    assert [part.committed_offset for part in rest.request.topics[0].partitions] == [20]
    bench.group.on_reply(rest, committed(), 0.0)
    assert [(partitions[0].offset, error) for partitions, error in bench.done] == [(n, None) for n in range(1, 21)]
    assert not bench.group.is_committing


def test_what_was_committed_need_not_be_committed_again() -> None:
    bench = Bench()
    bench.subscription.assign([TopicPartition("t", 0, 0)])
    bench.subscription.require("t", 0).stored = 5
    bench.commit(5)
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, committed(), 0.0)
    assert bench.subscription.to_commit() == []


@pytest.mark.parametrize("since", [None, 7])
@pytest.mark.parametrize("joined", [False, True])
def test_a_commit_by_hand_covers_what_was_stored_when_it_was_asked_for_and_nothing_later(
    since: int | None, joined: bool
) -> None:
    bench = Bench()
    bench.subscription.assign([TopicPartition("t", 0, 0)])
    state = bench.subscription.require("t", 0)
    state.stored = 5
    if joined:
        bench.commit(4, expires_at=60.0)
    bench.commit(20, expires_at=60.0, stored={("t", 0): 5})
    state.stored = since or state.stored
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, committed(), 0.0)
    assert state.committed == 20
    assert [tp.offset for tp in bench.subscription.to_commit()] == ([] if since is None else [since])


def test_a_commit_by_hand_covers_nothing_of_what_is_stored_behind_it() -> None:
    bench = Bench()
    bench.subscription.assign([TopicPartition("t", 0, 0)])
    bench.subscription.require("t", 0).stored = 100
    bench.commit(50, stored={("t", 0): 100})
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, committed(), 0.0)
    assert [tp.offset for tp in bench.subscription.to_commit()] == [100]


def test_a_commit_by_hand_that_fails_covers_nothing() -> None:
    bench = Bench()
    bench.subscription.assign([TopicPartition("t", 0, 0)])
    bench.subscription.require("t", 0).stored = 5
    bench.commit(20, stored={("t", 0): 5})
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, committed(code=KafkaError.GROUP_AUTHORIZATION_FAILED), 0.0)
    assert [tp.offset for tp in bench.subscription.to_commit()] == [5]


@pytest.mark.parametrize("code", [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_commit_follows_the_coordinator(code: int) -> None:
    bench = Bench()
    bench.commit()
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, committed(code=code), 0.0)
    bench.now = 5.0
    bench.find()
    [again] = poll(bench.group, 5.0)
    bench.group.on_reply(again, committed(), 5.0)
    assert bench.done[0][1] is None


def test_a_commit_that_is_refused_for_the_moment_is_due_again_after_a_pause() -> None:
    bench = Bench()
    bench.commit()
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, committed(code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS), 0.0)
    assert poll(bench.group, 0.0) == []
    deadline = bench.group.deadline()
    assert deadline is not None
    assert deadline < 1.0
    assert len(poll(bench.group, deadline)) == 1


@pytest.mark.parametrize("code", [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE,
                                  KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError._TRANSPORT,
                                  KafkaError._TIMED_OUT])
def test_who_is_told_too_late_that_the_coordinator_moved_asks_the_new_one_once_more(code: int) -> None:
    bench = Bench()
    bench.commit(expires_at=5.0)
    [send] = poll(bench.group, 0.0)
    for again in (True, False):
        bench.now += 20.0
        if code > 0:
            bench.group.on_reply(send, committed(code=code), bench.now)
        else:
            bench.group.on_error(send, KafkaError(code), bench.now)
        poll(bench.group, bench.now)
        bench.now += 1.0
        bench.find()
        if again:
            [send] = poll(bench.group, bench.now)
    assert poll(bench.group, bench.now) == []
    assert len(bench.done) == 1
    assert bench.done[0][1] in (code, KafkaError._TIMED_OUT)


def test_a_commit_that_waits_for_one_on_the_wire_has_its_time_behind_it() -> None:
    bench = Bench()
    bench.commit(1)
    [first] = poll(bench.group, 0.0)
    bench.commit(2, expires_at=5.0)
    bench.now = 6.0
    bench.finder.invalidate(6.0)
    assert poll(bench.group, 6.0) == []
    assert bench.done == []
    bench.find()
    bench.group.on_reply(first, committed(), 20.0)
    [second] = poll(bench.group, 20.0)
    bench.group.on_reply(second, committed(), 20.0)
    assert [error for _, error in bench.done] == [None, None]


def test_who_ends_waits_less_for_what_is_not_on_the_wire() -> None:
    bench = Bench()
    bench.commit(1, expires_at=60.0)
    [send] = poll(bench.group, 0.0)
    bench.group.hurry(5.0)
    assert poll(bench.group, 6.0) == []
    assert bench.done == []
    bench.group.on_reply(send, committed(code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS), 20.0)
    poll(bench.group, 26.0)
    [(_, error)] = bench.done
    assert error == KafkaError._TIMED_OUT
    assert "still loading" in str(error), "the reason is said"


@pytest.mark.parametrize(("code", "reason", "for_good"), [
    (KafkaError.ILLEGAL_GENERATION, "max.poll.interval.ms", False),
    (KafkaError.UNKNOWN_MEMBER_ID, "max.poll.interval.ms", False),
    (KafkaError.FENCED_INSTANCE_ID, "group.instance.id", True)])
def test_a_fenced_commit_fails_and_says_why(code: int, reason: str, for_good: bool) -> None:
    bench = Bench(incremental=False)
    bench.commit()
    [send] = poll(bench.group, 0.0)
    bench.group.on_reply(send, committed(code=code), 0.0)
    [(partitions, error)] = bench.done
    assert error is not None
    assert error == code
    assert reason in error.str()
    assert error.fatal() is for_good
    assert partitions[0].error == code


@pytest.mark.parametrize("code", [KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID,
                                  KafkaError.FENCED_MEMBER_EPOCH, KafkaError.FENCED_INSTANCE_ID])
def test_a_refused_commit_makes_the_member_doubt_that_it_is_one(code: int) -> None:
    bench = Bench()
    send = bench.commit_of_a_member()
    bench.group.on_reply(send, committed(code=code), 0.0)
    assert bench.group.events() == [MemberRefused(ConsumerGroupMetadata("g", 4, "me"))]


def test_a_commit_that_fails_for_its_topic_says_nothing_of_the_member() -> None:
    bench = Bench()
    send = bench.commit_of_a_member()
    bench.group.on_reply(send, committed(code=KafkaError.TOPIC_AUTHORIZATION_FAILED), 0.0)
    assert bench.group.events() == []


def test_a_commit_without_a_coordinator_times_out() -> None:
    bench = Bench()
    bench.finder.invalidate(0.0)
    bench.commit(expires_at=3.0)
    assert poll(bench.group, 0.0) == []
    assert bench.group.deadline() == 3.0
    assert poll(bench.group, 3.0) == []
    assert bench.done[0][1] == KafkaError._TIMED_OUT


@pytest.mark.parametrize("code", [None, KafkaError._UNSUPPORTED_FEATURE], ids=["time is over", "refused"])
def test_a_commit_that_fails_as_a_whole_fails_for_each_partition(code: int | None) -> None:
    bench = Bench()
    bench.commit(expires_at=3.0)
    [send] = poll(bench.group, 0.0)
    bench.group.on_error(send, KafkaError(KafkaError._TRANSPORT if code is None else code), 0.0)
    poll(bench.group, 3.0)
    [(partitions, error)] = bench.done
    assert error is not None
    assert [tp.error for tp in partitions] == [error]


def test_what_kept_a_commit_or_a_question_is_said_when_time_is_over() -> None:
    bench = Bench()
    bench.commit(expires_at=3.0)
    bench.group.ask([TopicPartition("t", 0)], 3.0, bench.found.append)
    bench.ask_leader(0, expires_at=3.0)
    for machine in (bench.group, bench.lookup):
        for send in poll(machine, 0.0):
            machine.on_error(send, KafkaError(KafkaError._TRANSPORT, "no frame"), 0.0)
        poll(machine, 3.0)
    errors = [bench.done[0][1], *(tp.error for tp in bench.found)]
    assert len(errors) == 3
    for error in errors:
        assert error == KafkaError._TIMED_OUT
        assert "; last error: no frame" in str(error)


def test_what_kept_the_coordinator_or_the_metadata_is_said_when_time_is_over() -> None:
    bench = Bench()
    bench.finder.invalidate(0.0)
    [lookup] = bench.finder.poll(1.0)
    bench.finder.on_error(lookup, KafkaError(KafkaError._TRANSPORT, "no frame"), 1.0)
    bench.commit(expires_at=3.0)
    poll(bench.group, 3.0)
    bench.lookup.ask("nowhere", 0, EARLIEST, 3.0, bench.found.append)
    poll(bench.lookup, 1.0)
    [ask] = bench.metadata.poll(2.0)
    bench.metadata.on_error(ask, KafkaError(KafkaError._TRANSPORT, "no frame"), 2.0)
    poll(bench.lookup, 5.0)
    assert "; last error: no frame" in str(bench.done[0][1])
    assert "; last error: no frame" in str(bench.found[0].error)


def test_a_commit_to_a_topic_that_does_not_exist_is_repeated_twice_then_fails_and_names_it() -> None:
    """The coordinator may hear of a new topic later than the leader that gave the records."""
    bench = Bench()
    bench.commit()
    for now in (0.0, 1.0, 2.0):
        assert bench.done == []
        [send] = poll(bench.group, now)
        bench.group.on_reply(send, committed(code=KafkaError.UNKNOWN_TOPIC_OR_PART), now)
    [([tp], error)] = bench.done
    assert error is not None
    assert tp.error == error == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert "t[0]" in error.str()


@pytest.mark.parametrize("doubted", [False, True])
@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_ID, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_a_commit_to_a_topic_that_the_coordinator_does_not_know_is_repeated_unless_others_doubt_it(
    code: int, doubted: bool
) -> None:
    bench = Bench()
    bench.commit()
    [send] = poll(bench.group, 0.0)
    bench.group.doubted = {"t"} if doubted else set()
    bench.group.on_reply(send, committed(code=code), 0.0)
    if doubted:
        [(partitions, error)] = bench.done
        assert error == partitions[0].error == code
        assert poll(bench.group, 1.0) == []
        return
    assert bench.done == []
    [send] = poll(bench.group, 1.0)
    bench.group.on_reply(send, committed(), 1.0)
    [(_, error)] = bench.done
    assert error is None


def test_a_lost_connection_repeats_the_commit() -> None:
    bench = Bench()
    bench.commit()
    [send] = poll(bench.group, 0.0)
    bench.group.on_error(send, KafkaError(KafkaError._TRANSPORT), 0.0)
    bench.now = 5.0
    bench.find()
    assert len(poll(bench.group, 5.0)) == 1
    assert bench.done == []


_BETWEEN = pytest.mark.parametrize("code", [KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS])


@_BETWEEN
def test_a_commit_between_two_generations_is_repeated_in_the_newer_one(code: int) -> None:
    bench = Bench()
    send = bench.commit_of_a_member()
    bench.group.on_reply(send, committed(code=code), 0.0)
    [again] = poll(bench.group, 1.0)  # the member has not heard of it yet
    bench.ownership.advance(EpochMoved(5, "me"))
    bench.group.on_reply(again, committed(code=code), 1.0)
    [again] = poll(bench.group, 2.0)
    assert isinstance(again.request, OffsetCommitRequest)
    assert again.request.generation_id_or_member_epoch == 5
    bench.group.on_reply(again, committed(), 2.0)
    assert bench.done[0][1] is None


@_BETWEEN
def test_a_commit_of_what_was_lost_meanwhile_fails_although_the_application_does_not_know(code: int) -> None:
    bench = Bench()
    send = bench.commit_of_a_member()
    bench.ownership.expect(bench.rebalance(Change.LOSE, -1, 0))
    bench.group.on_reply(send, committed(code=code), 0.0)
    assert bench.done[0][1] == code


@_BETWEEN
def test_a_commit_between_two_generations_is_not_repeated_for_longer_than_it_may_take(code: int) -> None:
    bench = Bench()
    send = bench.commit_of_a_member(expires_at=3.0)
    bench.group.on_reply(send, committed(code=code), 0.0)
    [send] = poll(bench.group, 2.0)
    bench.group.on_reply(send, committed(code=code), 4.0)
    assert bench.done[0][1] == code


def test_a_commit_with_an_outdated_epoch_is_repeated_with_the_newer_one() -> None:
    bench = Bench()
    send = bench.commit_of_a_member()
    bench.group.on_reply(send, committed(code=KafkaError.STALE_MEMBER_EPOCH), 0.0)
    bench.ownership.advance(EpochMoved(5, "me"))
    assert poll(bench.group, 0.05) == []
    [send] = poll(bench.group, 0.15)
    bench.group.on_reply(send, committed(code=KafkaError.STALE_MEMBER_EPOCH), 0.15)
    [again] = poll(bench.group, 1.0)
    assert isinstance(again.request, OffsetCommitRequest)
    assert again.request.generation_id_or_member_epoch == 5
    bench.group.on_reply(again, committed(), 1.0)
    assert bench.done[0][1] is None


def test_a_commit_with_an_outdated_epoch_fails_when_its_partition_was_given_up() -> None:
    bench = Bench()
    send = bench.commit_of_a_member()
    bench.meet(Change.REVOKE, 4, 0)
    bench.ownership.advance(EpochMoved(5, "me"))
    bench.group.on_reply(send, committed(code=KafkaError.STALE_MEMBER_EPOCH), 0.0)
    [(_, error)] = bench.done
    assert error == KafkaError.STALE_MEMBER_EPOCH
    assert "no longer that member" in error.str()


def test_what_was_given_up_is_not_committed_in_the_epoch_in_which_the_member_stays() -> None:
    bench = Bench()
    ask_as_member(bench)
    bench.meet(Change.ASSIGN, 4, 0)
    bench.meet(Change.ASSIGN, 4, 1)
    bench.commit()
    [send] = poll(bench.group, 0.0)
    bench.meet(Change.REVOKE, 4, 0)
    assert (poll(bench.group, 0.0), bench.done) == ([], []), "what is on the wire is answered"
    bench.group.on_reply(send, committed(code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS), 0.0)
    assert poll(bench.group, 1.0) == []
    [(_, error)] = bench.done
    assert error == KafkaError.STALE_MEMBER_EPOCH
    assert "no longer that member" in error.str()
    done: list[list[tuple[int, KafkaError | None]]] = []
    bench.group.commit([TopicPartition("t", 0, 3), TopicPartition("t", 1, 4)], 60.0,
                       lambda partitions, error: done.append([(tp.partition, tp.error) for tp in partitions]))
    [send] = poll(bench.group, 1.0)
    assert isinstance(send.request, OffsetCommitRequest)
    assert [[part.partition_index for part in each.partitions] for each in send.request.topics] == [[1]]


def ask_as_member(bench: Bench) -> None:
    bench.group = GroupOffsets("g", bench.subscription, bench.finder, bench.ownership, 1, 30.0, RetryPolicy(),
                               is_planned=True)


def asked_as(send: Send) -> list[tuple[str | None, int]]:
    assert send.for_version is not None
    request = send.for_version(send.request, 9)
    assert isinstance(request, OffsetFetchRequest)
    return [(each.member_id, each.member_epoch) for each in request.groups]


def fetched_by_group(code: int) -> OffsetFetchResponse:
    part = OffsetFetchResponsePartitions(partition_index=0, committed_offset=7, metadata="", error_code=0)
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(
        group_id="g", error_code=code, topics=[OffsetFetchResponseTopics(name="t", partitions=[part])])])


def test_an_application_whose_member_was_dropped_learns_the_offsets_of_its_group() -> None:
    """It hears of the loss only when it reads again, and may never do so before it has the answer."""
    bench = Bench()
    ask_as_member(bench)
    bench.group.ask([TopicPartition("t", 0)], NEVER, bench.found.append)
    [send] = poll(bench.group, 0.0)
    assert asked_as(send) == [("me", 3)]
    bench.group.on_reply(send, fetched_by_group(KafkaError.UNKNOWN_MEMBER_ID), 0.0)
    assert bench.group.events() == [MemberRefused(ConsumerGroupMetadata("g", 3, "me"))]
    bench.group.ask([TopicPartition("t", 0)], NEVER, bench.found.append)
    first, second = poll(bench.group, 1.0)
    assert [asked_as(first), asked_as(second)] == [[("me", 3)], [(None, -1)]]
    bench.group.on_reply(second, fetched_by_group(0), 1.0)
    assert [tp.offset for tp in bench.found] == [7]


def test_where_to_begin_is_only_asked_as_a_member() -> None:
    bench = Bench()
    ask_as_member(bench)
    bench.subscription.subscribe(["t"])
    bench.subscription.assign([TopicPartition("t", 0)])
    for now in (0.0, 1.0):
        [send] = poll(bench.group, now)
        assert asked_as(send) == [("me", 3)]
        bench.group.on_reply(send, fetched_by_group(KafkaError.UNKNOWN_MEMBER_ID), now)


@pytest.mark.parametrize("how", ["it is lost", "the group is left", "it is committed after it was lost"])
def test_a_commit_with_an_outdated_epoch_fails_when_its_partition_was_given_up_and_has_come_back(how: str) -> None:
    bench = Bench()
    send = bench.commit_of_a_member()
    if how == "the group is left":
        bench.ownership.leave()
    else:
        bench.meet(Change.LOSE, -1, 0)
    if how == "it is committed after it was lost":
        bench.group.on_reply(send, committed(), 0.0)
        bench.done.clear()
        bench.commit(6)
        [send] = poll(bench.group, 0.0)
    bench.ownership.advance(EpochMoved(6, "me"))
    bench.meet(Change.ASSIGN, 6, 0)
    bench.group.on_reply(send, committed(code=KafkaError.STALE_MEMBER_EPOCH), 0.0)
    [(_, error)] = bench.done
    assert error == KafkaError.STALE_MEMBER_EPOCH, "another may have committed in between"


@pytest.mark.parametrize("code", [KafkaError.STALE_MEMBER_EPOCH, KafkaError.UNKNOWN_MEMBER_ID])
def test_a_member_asks_for_offsets_as_itself_and_again_when_its_epoch_was_outdated(code: int) -> None:
    bench = Bench()
    bench.group = GroupOffsets("g", bench.subscription, bench.finder, bench.ownership, 1, 30.0, RetryPolicy(),
                               is_planned=True)
    bench.group.ask([TopicPartition("t", 0)], NEVER, bench.found.append)
    for epoch, now in ((3, 0.0), (5, 1.0)):
        bench.ownership.advance(EpochMoved(epoch, "me"))
        [send] = poll(bench.group, now)
        assert send.for_version is not None
        request = send.for_version(send.request, 9)
        assert isinstance(request, OffsetFetchRequest)
        assert [(each.member_id, each.member_epoch) for each in request.groups] == [("me", epoch)]
        bench.group.on_reply(send, OffsetFetchResponse(groups=[OffsetFetchResponseGroup(
            group_id="g", error_code=code if epoch == 3 else 0, topics=[OffsetFetchResponseTopics(
                name="t", partitions=[OffsetFetchResponsePartitions(
                    partition_index=0, committed_offset=7, metadata="", error_code=0)])])]), now)
    assert [tp.offset for tp in bench.found] == [7]


def answers_s(machine: str, count: int) -> float:
    """CPU seconds to ask about so many partitions at once and to take the answers."""
    bench = Bench()
    bench.metadata.on_reply(Send(1, ListOffsetsRequest(), 1), MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)],
        topics=[MetadataResponseTopic(name="t", partitions=[
            MetadataResponsePartition(partition_index=p, leader_id=1) for p in range(count)])]), 0.0)
    begun = time.process_time()
    if machine == "leaders":
        for partition in range(count):
            bench.ask_leader(partition)
        [send] = poll(bench.lookup, 0.0)
        bench.lookup.on_reply(send, ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[
            ListOffsetsPartitionResponse(partition_index=p, offset=7) for p in reversed(range(count))])]), 0.0)
    else:
        bench.group.ask([TopicPartition("t", p) for p in reversed(range(count))], NEVER, bench.found.append)
        [send] = poll(bench.group, 0.0)
        bench.group.on_reply(send, OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[
            OffsetFetchResponsePartition(partition_index=p, committed_offset=7) for p in range(count)])]), 0.0)
    assert [tp.offset for tp in bench.found] == [7] * count
    return time.process_time() - begun


@pytest.mark.parametrize("machine", ["leaders", "group"])
def test_ten_times_as_many_partitions_cost_ten_times_as_much_to_ask_about(machine: str) -> None:
    gc.disable()  # it would look through what all tests before have left
    try:
        few, many = (min(answers_s(machine, count) for _ in range(5)) for count in (800, 8000))
    finally:
        gc.enable()
    assert many / few < 30, "100 would be the square"


def test_a_start_that_the_coordinator_refuses_is_asked_for_again_and_told_once() -> None:
    bench = Bench()
    bench.subscription.assign([TopicPartition("t", 0)])
    now = 0.0
    for _ in range(2):
        [send] = poll(bench.group, now)
        bench.group.on_reply(send, fetched(0, -1, code=KafkaError.GROUP_AUTHORIZATION_FAILED), now)
        assert poll(bench.group, now) == []
        now = bench.group.deadline() or 0.0
    assert [event.error.code() for event in bench.group.events() if isinstance(event, PositionFailed)] == [
        KafkaError.GROUP_AUTHORIZATION_FAILED]
    [send] = poll(bench.group, now)
    bench.group.on_reply(send, fetched(0, 5), now)
    assert bench.subscription.require("t", 0).position == 5
