"""Commits that wait go together, and each call is told what became of its own partitions."""

from __future__ import annotations

import pytest

from headrace.errors import KafkaError
from headrace.machines.backoff import Pauses, RetryPolicy
from headrace.machines.consumer.pending_commit import PendingCommit
from headrace.types.records import ConsumerGroupMetadata, TopicPartition

MEMBER = ConsumerGroupMetadata("g", 3, "me")
Told = list[tuple[str, list[tuple[int, int, KafkaError | None]], KafkaError | None]]


@pytest.fixture
def told() -> Told:
    return []


def commit(
    told: Told, name: str, *offsets: tuple[int, int], member: ConsumerGroupMetadata = MEMBER, holds: bool = True,
    tenure: int = 1, expires_at: float = 60.0
) -> PendingCommit:
    return PendingCommit(
        member, holds, [TopicPartition("t", partition, offset) for partition, offset in offsets],
        [(0, tenure)] * len(offsets), {}, expires_at, lambda partitions, error: told.append(
            (name, [(tp.partition, tp.offset, tp.error) for tp in partitions], error)))


def test_of_several_offsets_of_a_partition_the_last_is_committed_and_each_call_is_told(told: Told) -> None:
    first = commit(told, "a", (0, 1), (1, 5))
    assert first.join(commit(told, "b", (0, 2)))
    assert first.join(commit(told, "c", (2, 7), expires_at=60.5))
    assert [(tp.partition, tp.offset) for tp in first.partitions] == [(0, 2), (1, 5), (2, 7)]
    assert len(first.tenures) == 3
    first.finish(None)
    assert told == [("a", [(0, 1, None), (1, 5, None)], None), ("b", [(0, 2, None)], None), ("c", [(2, 7, None)], None)]


def test_a_call_is_told_of_its_own_partitions_only(told: Told) -> None:
    first = commit(told, "a", (0, 1))
    assert first.join(commit(told, "b", (1, 2)))
    error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    first.partitions[1].error = error
    first.finish(error)
    assert told == [("a", [(0, 1, None)], None), ("b", [(1, 2, error)], error)]


def test_what_one_request_cannot_do_stays_apart(told: Told) -> None:
    other = ConsumerGroupMetadata("g", 4, "me")
    for later in (commit(told, "b", (0, 2), member=other), commit(told, "b", (0, 2), holds=False),
                  commit(told, "b", (0, 2), tenure=2), commit(told, "b", (0, 2), expires_at=5.0),
                  commit(told, "b", (0, 2), expires_at=70.0)):
        assert not commit(told, "a", (0, 1)).join(later)
    assert commit(told, "a", (0, 1)).join(commit(told, "b", (1, 2), tenure=2)), "another partition"


def test_what_is_under_way_tried_again_or_partly_gone_takes_nothing_over(told: Told) -> None:
    flying, tried, forgotten = (commit(told, "a", (0, 1)) for _ in range(3))
    flying.flying = True
    tried.back_off(0.0, Pauses(RetryPolicy().wait_s))
    forgotten.forgotten.add("t")
    for first in (flying, tried, forgotten):
        assert not first.join(commit(told, "b", (0, 2)))
    assert tried.not_before > 0.0
    assert forgotten.all_forgotten
