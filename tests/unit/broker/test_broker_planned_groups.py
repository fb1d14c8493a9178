"""Groups that the broker plans for, request by request and under a clock of the test: epochs, fencing, time, plans.

What Kafka answers as well is in `tests.support.conversations_planned`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace.broker.apis.consumer_groups import consumer_group_describe, consumer_group_heartbeat
from headrace.broker.apis.groups import join_group, offset_commit
from headrace.broker.cluster import ApiCall, BrokerCluster, BrokerNode
from headrace.broker.coordinators.target_assignors import ASSIGNORS, Wish
from headrace.broker.deadlines import Now
from headrace.broker.dispatch import SERVED
from headrace.broker.settings import BrokerSettings
from headrace.errors import KafkaError as K
from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.groups.classic_groups import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.groups.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OwnedTopicPartitions,
)

SESSION_S, REBALANCE_S = 45.0, 60.0


class Coordinator:
    """A broker of one node, without sockets, and its clock. The topic "t" has four partitions."""

    def __init__(self, directory: Path | None = None, **settings: Any) -> None:
        ids = count(1)
        self.cluster = BrokerCluster([BrokerNode(1, "h", 1, True)], BrokerSettings(**settings), SERVED,
                                     lambda: UUID(int=next(ids)), directory)
        self.topic = self.cluster.catalog.topics.get("t") or self.cluster.catalog.create("t", 4, 1)
        self.now = 0.0

    def call(self, version: int = 1) -> ApiCall:
        return ApiCall(self.cluster, 1, version, "client", "host", Now(self.now, 0))

    def beat(self, member: str, epoch: int, *owned: int, **more: Any) -> ConsumerGroupHeartbeatResponse:
        if owned:
            more["topic_partitions"] = [OwnedTopicPartitions(topic_id=self.topic.id, partitions=list(owned))]
        return consumer_group_heartbeat(self.call(), ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=epoch, **more))

    def join(self, member: str, **more: Any) -> ConsumerGroupHeartbeatResponse:
        return self.beat(member, 0, **{
            "rebalance_timeout_ms": int(REBALANCE_S * 1000), "subscribed_topic_names": ["t"], "topic_partitions": [],
            **more})

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.cluster.deadlines.run(Now(self.now, 0))

    @property
    def members(self) -> dict[str, tuple[int, set[int]]]:
        """Epoch and partitions of each member."""
        [group] = consumer_group_describe(self.call(), ConsumerGroupDescribeRequest(group_ids=["g"])).groups
        return {member.member_id: (member.member_epoch, {
            index for topic in member.assignment.topic_partitions for index in topic.partitions})
            for member in group.members}

    def commit(self, member: str, epoch: int, partition: int = 0) -> int:
        reply = offset_commit(self.call(9), OffsetCommitRequest(
            group_id="g", generation_id_or_member_epoch=epoch, member_id=member, topics=[OffsetCommitRequestTopic(
                name="t", partitions=[OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=1, committed_metadata="")])]))
        return reply.topics[0].partitions[0].error_code


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    coordinator = Coordinator()
    yield coordinator
    coordinator.cluster.close()


def given(reply: ConsumerGroupHeartbeatResponse) -> list[int] | None:
    assert not reply.error_code, reply
    return None if reply.assignment is None else [
        index for topic in reply.assignment.topic_partitions for index in topic.partitions]


# Time

def test_a_member_that_is_silent_for_a_session_is_dropped_and_the_others_get_what_it_had(
    coordinator: Coordinator
) -> None:
    assert given(coordinator.join("a")) == [0, 1, 2, 3]
    assert given(coordinator.join("b")) == []
    coordinator.wait(SESSION_S / 2)
    coordinator.beat("b", 3)
    coordinator.wait(SESSION_S / 2)
    assert coordinator.members == {"b": (3, set())}
    assert given(coordinator.beat("b", 3)) == [0, 1, 2, 3]
    assert coordinator.beat("a", 2).error_code == K.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_in_time_is_dropped_though_it_beats(coordinator: Coordinator) -> None:
    coordinator.join("a")
    coordinator.join("b")
    assert given(coordinator.beat("a", 2)) == [0, 1]
    for _ in range(6):
        coordinator.wait(REBALANCE_S / 6)
        assert coordinator.beat("b", 3).error_code == 0
        dropped = coordinator.beat("a", 2).error_code
    assert dropped == K.UNKNOWN_MEMBER_ID
    assert coordinator.members == {"b": (4, {0, 1, 2, 3})}


def test_a_member_that_gives_up_in_time_is_not_dropped(coordinator: Coordinator) -> None:
    coordinator.join("a")
    coordinator.join("b")
    coordinator.beat("a", 2)
    coordinator.beat("a", 2, 0, 1)
    for _ in range(6):
        coordinator.wait(REBALANCE_S / 3)
        assert coordinator.beat("a", 3).error_code == coordinator.beat("b", 3).error_code == 0


def test_members_are_described_as_they_said_they_are_and_rights_where_they_are_asked_for(
    coordinator: Coordinator
) -> None:
    coordinator.join("a", rack_id="r", instance_id="i")
    described = [consumer_group_describe(coordinator.call(), ConsumerGroupDescribeRequest(
        group_ids=["g"], include_authorized_operations=asked)).groups[0] for asked in (False, True)]
    assert [group.authorized_operations == -(2**31) for group in described] == [True, False]
    [member] = described[0].members
    assert (member.rack_id, member.instance_id, member.client_id, member.client_host) == ("r", "i", "client", "/host")
    assert (member.subscribed_topic_names, member.member_type) == (["t"], 1)


def test_a_group_is_stable_when_each_member_has_all_that_it_shall_have(coordinator: Coordinator) -> None:
    def state() -> str:
        [group] = consumer_group_describe(coordinator.call(), ConsumerGroupDescribeRequest(group_ids=["g"])).groups
        return group.group_state

    coordinator.join("a")
    assert state() == "Stable"
    coordinator.join("b")
    assert state() == "Reconciling"
    coordinator.beat("a", 2)
    assert given(coordinator.beat("a", 2, 0, 1)) is None
    assert state() == "Reconciling", "b waits for what a has given up"
    coordinator.beat("b", 3)
    assert (state(), coordinator.members) == ("Stable", {"a": (3, {0, 1}), "b": (3, {2, 3})})


def test_a_static_member_that_is_away_longer_than_a_session_has_left(coordinator: Coordinator) -> None:
    coordinator.join("a", instance_id="one")
    coordinator.beat("a", -2, instance_id="one")
    coordinator.wait(SESSION_S - 1)
    assert given(coordinator.join("b", instance_id="one")) == [0, 1, 2, 3]
    coordinator.beat("b", -2, instance_id="one")
    coordinator.wait(SESSION_S)
    assert coordinator.members == {}


# One owner at any time

def test_what_a_member_has_to_give_up_nobody_gets_before_it_says_that_it_has(coordinator: Coordinator) -> None:
    coordinator.join("a")
    coordinator.join("b")
    coordinator.beat("a", 2)
    for owned in ((0, 1, 2, 3), (0, 1, 3), ()):
        coordinator.beat("a", 2, *owned)
        assert given(coordinator.beat("b", 3)) is None
        assert coordinator.members == {"a": (2, {0, 1, 2, 3}), "b": (3, set())}
    assert given(coordinator.beat("a", 2, 0, 1)) is None
    assert given(coordinator.beat("b", 3)) == [2, 3]
    assert coordinator.members == {"a": (3, {0, 1}), "b": (3, {2, 3})}


def test_a_plan_that_changes_while_a_member_gives_up_is_followed_from_where_it_stands(coordinator: Coordinator) -> None:
    coordinator.join("a")
    coordinator.join("b")
    coordinator.beat("a", 2)
    coordinator.beat("b", -1)
    assert given(coordinator.beat("a", 2)) is None, "it may be giving up what it is to have again"
    assert given(coordinator.beat("a", 2, 0, 1)) == [0, 1, 2, 3]


def test_more_partitions_of_a_topic_are_a_new_epoch(coordinator: Coordinator) -> None:
    coordinator.join("a")
    coordinator.cluster.catalog.grow(coordinator.topic, 6)
    reply = coordinator.beat("a", 2)
    assert (given(reply), reply.member_epoch) == ([0, 1, 2, 3, 4, 5], 3)


def test_a_topic_that_was_deleted_is_taken_away(coordinator: Coordinator) -> None:
    coordinator.join("a")
    coordinator.cluster.catalog.delete(coordinator.topic)
    assert given(coordinator.beat("a", 2)) == []


def test_topics_that_match_a_pattern_as_a_whole_are_read_and_new_ones_found(coordinator: Coordinator) -> None:
    coordinator.cluster.catalog.create("tt", 1, 1)
    assert given(coordinator.join("a", subscribed_topic_names=[], subscribed_topic_regex="^t")) == [0, 1, 2, 3]
    assert given(coordinator.beat("a", 2, subscribed_topic_regex="^t+")) == [0, 1, 2, 3, 0]
    coordinator.cluster.catalog.create("ttt", 2, 1)
    assert given(coordinator.beat("a", 3)) == [0, 1, 2, 3, 0, 0, 1]
    assert given(coordinator.beat("a", 4, subscribed_topic_regex="")) == []


# Refusals

def test_a_group_that_is_full_takes_nobody_in(coordinator: Coordinator) -> None:
    coordinator.cluster.settings.consumer_group_max_size = 1
    coordinator.join("a")
    assert coordinator.join("b").error_code == K.GROUP_MAX_SIZE_REACHED
    assert given(coordinator.join("a")) == [0, 1, 2, 3]


def test_a_broker_of_before_offers_such_groups_and_refuses_them() -> None:
    coordinator = Coordinator(group_version=0)
    assert coordinator.join("a").error_code == K.UNSUPPORTED_VERSION
    [group] = consumer_group_describe(coordinator.call(), ConsumerGroupDescribeRequest(group_ids=["g"])).groups
    assert group.error_code == K.UNSUPPORTED_VERSION
    assert BrokerSettings.of_kafka("3.9").group_version == 0
    assert BrokerSettings.of_kafka("4.0").group_version == 1


def test_a_group_without_a_name_is_refused_and_one_that_there_is_not_is_not_found(coordinator: Coordinator) -> None:
    asked = ConsumerGroupDescribeRequest(group_ids=["", "nobody"])
    described = consumer_group_describe(coordinator.call(), asked).groups
    assert [each.error_code for each in described] == [K.INVALID_GROUP_ID, K.GROUP_ID_NOT_FOUND]


def test_members_of_before_a_restart_are_told_to_join_again_and_a_group_that_was_deleted_stays_so(
    tmp_path: Path,
) -> None:
    before = Coordinator(tmp_path)
    assert given(before.join("a")) == [0, 1, 2, 3]
    assert before.beat("b", 1).error_code == K.UNKNOWN_MEMBER_ID
    before.cluster.close()
    after = Coordinator(tmp_path)
    assert after.cluster.kind_of("g") == "consumer"
    assert after.commit("a", 1) == K.UNKNOWN_MEMBER_ID
    assert [after.beat(member, 1).error_code for member in "aab"] == [K.UNKNOWN_MEMBER_ID] * 3
    assert given(after.join("a")) == [0, 1, 2, 3]
    assert after.beat("a", -1).error_code == 0
    after.cluster.planned_groups.remove("g")
    after.cluster.close()
    third = Coordinator(tmp_path)
    assert third.cluster.kind_of("g") == ""
    assert third.beat("a", 1).error_code == K.GROUP_ID_NOT_FOUND
    third.cluster.close()


def join_classic(coordinator: Coordinator) -> Any:
    return join_group(coordinator.call(3), JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id="", protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")]))


def test_a_group_with_members_stays_of_its_kind_and_one_without_changes(coordinator: Coordinator) -> None:
    coordinator.join("a")
    assert join_classic(coordinator).error_code == K.INCONSISTENT_GROUP_PROTOCOL
    coordinator.beat("a", -1)
    join_classic(coordinator)
    classic = coordinator.cluster.groups.get("g")
    assert classic is not None
    assert coordinator.join("a").error_code == K.GROUP_ID_NOT_FOUND
    classic.close()
    assert given(coordinator.join("a")) == [0, 1, 2, 3]


def test_a_member_commits_with_the_epoch_in_which_it_got_the_partition_or_a_later_one(
    coordinator: Coordinator
) -> None:
    coordinator.join("a")
    coordinator.join("b")
    coordinator.beat("a", 2)
    coordinator.beat("a", 2, 0, 1)
    coordinator.beat("b", 3)
    assert [coordinator.commit("a", epoch) for epoch in (1, 2, 3, 4)] == [
        K.STALE_MEMBER_EPOCH, 0, 0, K.STALE_MEMBER_EPOCH]
    assert coordinator.commit("a", 2, partition=2) == K.STALE_MEMBER_EPOCH
    assert coordinator.commit("b", 3, partition=2) == 0
    assert coordinator.commit("nobody", 3) == K.UNKNOWN_MEMBER_ID


# Plans

def plan(assignor: str, wishes: Mapping[str, tuple[str, str]], counts: str) -> dict[str, str]:
    """Plans as text: topics are letters, a partition is a letter and a digit; `counts` says how many there are."""
    ids = {letter: UUID(int=ord(letter)) for letter in "abc"}
    found = ASSIGNORS[assignor](
        {member: Wish(frozenset(ids[letter] for letter in topics), frozenset(
            (ids[owned[at]], int(owned[at + 1])) for at in range(0, len(owned), 2)), member)
            for member, (topics, owned) in wishes.items()},
        {ids[counts[at]]: int(counts[at + 1]) for at in range(0, len(counts), 2)})
    return {member: "".join(sorted(f"{chr(topic.int)}{index}" for topic, index in keys))
            for member, keys in found.items()}


@pytest.mark.parametrize(("wishes", "counts", "expected"), [
    ({"x": ("a", "")}, "a3", {"x": "a0a1a2"}),
    ({"x": ("a", ""), "y": ("a", "")}, "a3", {"x": "a0a2", "y": "a1"}),
    ({"x": ("a", "a0a1a2a3"), "y": ("a", "")}, "a4", {"x": "a0a1", "y": "a2a3"}),
    ({"x": ("a", "a0"), "y": ("a", "a1")}, "a4", {"x": "a0a2", "y": "a1a3"}),
    ({"x": ("a", "a0a7"), "y": ("b", "a0")}, "a1b2", {"x": "a0", "y": "b0b1"}),
    ({"x": ("ab", "a0a1b0b1"), "y": ("b", "")}, "a2b2", {"x": "a0a1", "y": "b0b1"}),
    ({"x": ("ab", ""), "y": ("a", ""), "z": ("", "")}, "a1b1", {"x": "b0", "y": "a0", "z": ""}),
    ({"x": ("a", ""), "y": ("a", "")}, "", {"x": "", "y": ""}),
])
def test_uniform_levels_what_members_have_and_moves_nothing_without_need(
    wishes: dict[str, tuple[str, str]], counts: str, expected: dict[str, str]
) -> None:
    found = plan("uniform", wishes, counts)
    assert {member: len(keys) for member, keys in found.items()} == {
        member: len(keys) for member, keys in expected.items()}
    if len(wishes) < 3:
        assert found == expected


@pytest.mark.parametrize(("wishes", "counts", "expected"), [
    ({"x": ("ab", ""), "y": ("ab", "")}, "a3b3", {"x": "a0a1b0b1", "y": "a2b2"}),
    ({"y": ("ab", ""), "x": ("a", "")}, "a2b2", {"x": "a0", "y": "a1b0b1"}),
    ({"x": ("a", ""), "y": ("a", ""), "z": ("a", "")}, "a2", {"x": "a0", "y": "a1", "z": ""}),
])
def test_range_gives_neighbours_and_the_same_numbers_of_each_topic(
    wishes: dict[str, tuple[str, str]], counts: str, expected: dict[str, str]
) -> None:
    assert plan("range", wishes, counts) == expected
