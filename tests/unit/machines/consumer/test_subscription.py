"""Where a consumer stands: topics, assignment, starts and what there is to commit."""

from __future__ import annotations

import pytest

from headrace.errors import KafkaError, KafkaException
from headrace.machines.consumer.subscription import EARLIEST, LATEST, PositionPhase, Subscription
from headrace.types.records import OFFSET_BEGINNING, OFFSET_END, OFFSET_STORED, TopicPartition


def test_an_absolute_offset_is_fetched_from_at_once() -> None:
    subscription = Subscription("", "latest")
    subscription.assign([TopicPartition("t", 0, 42)])
    state = subscription.require("t", 0)
    assert (state.phase, state.position, state.fetch_offset) == (PositionPhase.FETCH, 42, 42)


@pytest.mark.parametrize(("offset", "timestamp", "tail"), [
    (OFFSET_BEGINNING, EARLIEST, 0), (OFFSET_END, LATEST, 0), (-2000, LATEST, 0), (-2007, LATEST, 7)])
def test_a_logical_offset_is_looked_up_at_the_leader(offset: int, timestamp: int, tail: int) -> None:
    subscription = Subscription("g", "error")
    subscription.assign([TopicPartition("t", 0, offset)])
    state = subscription.require("t", 0)
    assert (state.phase, state.reset_timestamp, state.tail) == (PositionPhase.RESET, timestamp, tail)


def test_without_an_offset_the_group_is_asked_and_without_a_group_the_policy_decides() -> None:
    with_group, without = Subscription("g", "earliest"), Subscription("", "earliest")
    for subscription in (with_group, without):
        subscription.assign([TopicPartition("t", 0), TopicPartition("t", 1, OFFSET_STORED)])
    assert [state.phase for state in with_group] == [PositionPhase.COMMITTED, PositionPhase.COMMITTED]
    assert [state.phase for state in without] == [PositionPhase.RESET, PositionPhase.RESET]


def test_the_policy_error_leaves_a_partition_without_a_position() -> None:
    subscription = Subscription("", "error")
    subscription.assign([TopicPartition("t", 0, 7)])
    state = subscription.require("t", 0)
    assert not subscription.reset_by_policy(state)
    assert state.phase is PositionPhase.FAILED


def test_every_jump_makes_older_data_stale() -> None:
    subscription = Subscription("", "latest")
    subscription.assign([TopicPartition("t", 0, 0)])
    state = subscription.require("t", 0)
    before = state.epoch
    subscription.seek("t", 0, 100)
    assert state.epoch > before
    at_seek = state.epoch
    subscription.remove([TopicPartition("t", 0)])
    assert state.epoch > at_seek


def test_a_failed_change_changes_nothing() -> None:
    subscription = Subscription("", "latest")
    subscription.assign([TopicPartition("t", 0, 0)])
    with pytest.raises(KafkaException) as conflict:
        subscription.add([TopicPartition("t", 1, 0), TopicPartition("t", 0, 0)])
    assert conflict.value.error == KafkaError._CONFLICT
    with pytest.raises(KafkaException) as unknown:
        subscription.remove([TopicPartition("t", 0), TopicPartition("t", 9)])
    assert unknown.value.error == KafkaError._INVALID_ARG
    assert [state.key for state in subscription] == [("t", 0)]


@pytest.mark.parametrize("partitions", [[(1, -2), (1, -2)], [(1, -2), (0, -2)], [(1, -2), (2, -5)]],
                         ids=["twice", "assigned", "no offset"])
def test_machines_hear_nothing_of_partitions_whose_assignment_is_refused(partitions: list[tuple[int, int]]) -> None:
    subscription = Subscription("", "latest")
    subscription.assign([TopicPartition("t", 0, 0)])
    seen, wanted = subscription.version, [TopicPartition("t", *one) for one in partitions]
    for change in [subscription.add] if (0, -2) in partitions else [subscription.add, subscription.assign]:
        with pytest.raises(KafkaException):
            change(wanted)
    assert subscription.changed_since(seen) == []
    assert [state.key for state in subscription] == [("t", 0)]


def test_a_partition_of_a_known_topic_is_paused_before_it_is_assigned() -> None:
    subscription = Subscription("", "latest")
    subscription.set_paused([TopicPartition("t", 1)], True)
    subscription.assign([TopicPartition("t", 0, 0)])
    subscription.set_paused([TopicPartition("t", 2)], True)
    subscription.add([TopicPartition("t", 1, 0), TopicPartition("t", 2, 0)])
    assert [state.paused for state in subscription] == [False, False, True]


def test_a_name_that_starts_with_a_caret_is_a_pattern() -> None:
    subscription = Subscription("g", "latest")
    subscription.subscribe(["^log-[0-9]+$", "plain"])
    assert subscription.matching(["log-1", "log-x", "other"]) == {"log-1", "plain"}


@pytest.mark.parametrize("topics", [["^("], [""]])
def test_a_bad_topic_is_refused_with_a_reason(topics: list[str]) -> None:
    with pytest.raises(KafkaException) as refused:
        Subscription("g", "latest").subscribe(topics)
    assert refused.value.error == KafkaError._INVALID_ARG


def test_only_stored_offsets_that_no_commit_has_covered_are_committed() -> None:
    subscription = Subscription("g", "latest")
    subscription.assign([TopicPartition("t", number, 0) for number in range(4)])
    subscription.require("t", 0).stored = 5
    done = subscription.require("t", 1)
    done.stored = done.settled = 7
    subscription.require("t", 2).stored = 0
    assert [(tp.partition, tp.offset) for tp in subscription.to_commit()] == [(0, 5), (2, 0)]


def test_who_has_not_looked_for_a_while_is_told_which_partitions_changed_or_that_all_may_have() -> None:
    subscription = Subscription("g", "latest")
    subscription.assign([TopicPartition("t", number, 0) for number in range(4)])
    states = [subscription.require("t", number) for number in range(4)]
    seen = subscription.version
    assert subscription.changed_since(seen) == []
    assert subscription.changed_since(seen - 1) is None
    subscription.seek("t", 2, 5)
    subscription.set_paused([TopicPartition("t", 1), TopicPartition("t", 9)], True)
    subscription.remove([TopicPartition("t", 3)])
    subscription.add([TopicPartition("t", 3, 7)])
    assert subscription.changed_since(seen) == [states[2], states[1], states[3], subscription.require("t", 3)]
    assert subscription.changed_since(subscription.version - 1) == [subscription.require("t", 3)]
    subscription.assign([TopicPartition("t", 0, 0)])
    assert subscription.changed_since(seen) is None


def test_of_very_many_changes_all_partitions_are_looked_at_and_their_memory_is_bounded() -> None:
    subscription = Subscription("g", "latest")
    subscription.assign([TopicPartition("t", 0, 0)])
    seen = subscription.version
    for offset in range(3000):
        subscription.seek("t", 0, offset)
    assert subscription.changed_since(seen) is None
    assert len(subscription.changed_since(subscription.version - 500) or ()) == 500
