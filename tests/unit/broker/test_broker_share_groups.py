"""Share groups, request by request and under a clock of the test: members, sessions, waiting, settings, what is kept.

What Kafka answers as well is in `tests.support.conversations_share`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace.broker.apis.share_groups import share_group_describe, share_group_heartbeat
from headrace.broker.apis.share_offsets import describe_share_group_offsets
from headrace.broker.apis.share_records import share_acknowledge, share_fetch
from headrace.broker.cluster import ApiCall, BrokerCluster, BrokerNode
from headrace.broker.coordinators.group_configs import duration_ms
from headrace.broker.deadlines import Now
from headrace.broker.dispatch import SERVED
from headrace.broker.purgatory import DelayedReply
from headrace.broker.settings import BrokerSettings
from headrace.broker.storage.producer_state import Marker
from headrace.errors import KafkaError as K
from headrace.wire.messages.groups.share_groups import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    ShareAcknowledgeRequest,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from tests.support.raw_client import batch_of

ACCEPT, RELEASE = 1, 2
Runs = list[tuple[int, int, int]]


class Gate:
    """Lets every transaction in."""

    own_epochs = False

    def admit(self, producer_id: int, epoch: int) -> None:
        pass


class Bench:
    """Brokers without sockets, and their clock. The topic "t" has one partition, which node 1 leads."""

    def __init__(self, directory: Path | None = None, nodes: int = 1, reset: str = "earliest", **settings: Any) -> None:
        ids = count(1)
        self.cluster = BrokerCluster([BrokerNode(number + 1, "h", 1, True) for number in range(nodes)],
                                     BrokerSettings(**settings), SERVED, lambda: UUID(int=next(ids)), directory)
        self.topic = self.cluster.catalog.topics.get("t") or self.cluster.catalog.create("t", 1, nodes)
        self.now, self.node = 0.0, self.topic.partitions[0].leader_id
        self.cluster.group_configs.configure("g", {"share.auto.offset.reset": reset})

    def call(self, connection: object = None, node: int | None = None) -> ApiCall:
        return ApiCall(self.cluster, node or self.node, 2, "client", "host", Now(self.now, 0), connection)

    def beat(self, member: str, epoch: int, *topics: str) -> Any:
        coordinator = self.cluster.coordinator("g")
        assert coordinator is not None
        return share_group_heartbeat(self.call(node=coordinator.id), ShareGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=epoch, subscribed_topic_names=list(topics) or None))

    def join(self, *members: str) -> None:
        for member in members * 2:
            assert self.beat(member, 0, "t").error_code == 0

    def write(self, size: int, producer_id: int = -1) -> None:
        batch = batch_of([b"x"] * size, producer_id, min(producer_id, 0), min(producer_id, 0),
                         transactional=producer_id >= 0)
        self.topic.partitions[0].append(memoryview(bytearray(batch)), self.topic.configs, 0, Gate())

    def ask(self, epoch: int, member: str = "a", *, wait_ms: int = 0, connection: object = None, **more: Any) -> Any:
        topics = [] if epoch else [ShareFetchTopic(topic_id=self.topic.id, partitions=[
            ShareFetchPartition(partition_index=0)])]
        return share_fetch(self.call(connection), ShareFetchRequest(**{
            "group_id": "g", "member_id": member, "share_session_epoch": epoch, "max_wait_ms": wait_ms, "min_bytes": 1,
            "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, "topics": topics, **more}))

    def take(self, epoch: int, member: str = "a", **more: Any) -> Runs:
        return runs(self.ask(epoch, member, **more))

    def say(self, epoch: int, first: int, last: int, kind: int = ACCEPT, member: str = "a") -> int:
        reply = share_acknowledge(self.call(), ShareAcknowledgeRequest(
            group_id="g", member_id=member, share_session_epoch=epoch, topics=[AcknowledgeTopic(
                topic_id=self.topic.id, partitions=[AcknowledgePartition(
                    partition_index=0, acknowledgement_batches=[AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=[kind])])])]))
        return reply.error_code or reply.responses[0].partitions[0].error_code

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.cluster.deadlines.run(Now(self.now, 0))

    def begins_at(self) -> int:
        coordinator = self.cluster.coordinator("g")
        assert coordinator is not None
        [group] = describe_share_group_offsets(self.call(node=coordinator.id), DescribeShareGroupOffsetsRequest(groups=[
            DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)])).groups
        return int(group.topics[0].partitions[0].start_offset)


def runs(reply: Any) -> Runs:
    assert not isinstance(reply, DelayedReply)
    assert reply.error_code == 0, reply
    return [(each.first_offset, each.last_offset, each.delivery_count) for topic in reply.responses
            for part in topic.partitions for each in part.acquired_records]


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.cluster.close()


# Members

def test_a_member_that_is_silent_for_a_session_is_dropped_and_the_others_read_all(bench: Bench) -> None:
    bench.join("a", "b")
    epoch = bench.beat("b", 0, "t").member_epoch
    bench.wait(44)
    assert bench.beat("b", epoch).error_code == 0
    bench.wait(1)
    assert bench.beat("a", epoch).error_code == K.UNKNOWN_MEMBER_ID
    [group] = share_group_describe(bench.call(), ShareGroupDescribeRequest(group_ids=["g"])).groups
    assert [member.member_id for member in group.members] == ["b"]


def test_a_member_may_name_a_topic_that_is_not_there_yet(bench: Bench) -> None:
    for _ in range(2):
        reply = bench.beat("a", 0, "t", "later")
    assert [topic.topic_id for topic in reply.assignment.topic_partitions] == [bench.topic.id]
    later = bench.cluster.catalog.create("later", 1, 1)
    for _ in range(3):
        reply = bench.beat("a", reply.member_epoch, "t", "later")
    assert {topic.topic_id for topic in reply.assignment.topic_partitions} == {bench.topic.id, later.id}


def test_a_full_group_takes_nobody_more_and_leaves_nothing_behind() -> None:
    bench = Bench(share_group_max_size=1)
    bench.join("a")
    assert bench.beat("b", 0, "t").error_code == K.GROUP_MAX_SIZE_REACHED
    assert bench.beat("a", 0, "t").error_code == 0


def test_a_broker_without_share_groups_says_so() -> None:
    bench = Bench(share_version=0)
    assert bench.beat("a", 0, "t").error_code == K.UNSUPPORTED_VERSION
    assert bench.ask(0).error_code == K.UNSUPPORTED_VERSION


# Sessions

def test_a_connection_that_is_lost_gives_what_its_sessions_held_to_others(bench: Bench) -> None:
    bench.join("a", "b")
    bench.write(2)
    assert bench.take(0, "a", connection="one") == [(0, 1, 1)]
    bench.cluster.connection_lost("another")
    assert bench.take(0, "b") == []
    bench.cluster.connection_lost("one")
    assert bench.take(1, "b") == [(0, 1, 2)]
    assert bench.ask(1, "a").error_code == K.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize(("first", "last", "kind"), [(1, 0, ACCEPT), (2, 0, ACCEPT), (0, 0, 9), (-2, -1, ACCEPT)])
def test_words_that_make_no_sense_are_refused_and_change_nothing(
    bench: Bench, first: int, last: int, kind: int
) -> None:
    bench.join("a")
    bench.write(3)
    assert bench.take(0) == [(0, 2, 1)]
    assert bench.say(1, first, last, kind) == K.INVALID_REQUEST
    assert bench.say(2, 0, 2) == 0


def test_a_node_has_so_many_sessions_and_no_more() -> None:
    bench = Bench(share_max_sessions=1)
    bench.join("a", "b")
    assert bench.take(0, "a") == bench.take(0, "a") == []
    assert bench.ask(0, "b").error_code == K.SHARE_SESSION_LIMIT_REACHED


# Waiting

def test_a_fetch_waits_for_what_is_written_and_for_what_comes_back(bench: Bench) -> None:
    bench.join("a", "b")
    waiting = bench.ask(0, "a", wait_ms=500)
    assert isinstance(waiting, DelayedReply)
    bench.cluster.purgatory.put(waiting)
    bench.write(2)
    assert bench.cluster.purgatory.take_due() == [waiting]
    assert runs(waiting.look_again(Now(bench.now, 0))) == [(0, 1, 1)]
    bench.cluster.purgatory.remove(waiting)
    other = bench.ask(0, "b", wait_ms=500)
    bench.cluster.purgatory.put(other)
    assert bench.say(1, 0, 0, RELEASE) == 0
    assert bench.cluster.purgatory.take_due() == [other]
    assert runs(other.look_again(Now(bench.now, 0))) == [(0, 0, 2)]


def test_a_fetch_whose_time_is_up_is_answered_without_records(bench: Bench) -> None:
    bench.join("a")
    waiting = bench.ask(0, wait_ms=500)
    assert waiting.look_again(Now(0.4, 0)) is waiting
    assert runs(waiting.look_again(Now(0.5, 0))) == []


def test_a_fetch_waits_for_as_many_bytes_as_it_wants(bench: Bench) -> None:
    bench.join("a")
    bench.write(1)
    waiting = bench.ask(0, wait_ms=500, min_bytes=100)
    assert isinstance(waiting, DelayedReply)
    bench.write(1)
    assert runs(waiting.look_again(Now(0.1, 0))) == [(0, 1, 1)]


def test_a_fetch_of_a_session_that_has_ended_gets_nothing(bench: Bench) -> None:
    bench.join("a")
    waiting = bench.ask(0, wait_ms=500, connection="one")
    bench.cluster.connection_lost("one")
    bench.write(1)
    assert waiting.look_again(Now(0.1, 0)).error_code == K.SHARE_SESSION_NOT_FOUND
    assert bench.take(0) == [(0, 0, 1)]


# Leaders

def test_who_leads_no_more_names_the_new_leader_which_hands_out_again() -> None:
    bench = Bench(nodes=2)
    bench.join("a")
    bench.write(1)
    assert bench.take(0) == [(0, 0, 1)]
    other = 3 - bench.node
    bench.cluster.move_leader("t", 0, other)
    [part] = bench.ask(1).responses[0].partitions
    assert (part.error_code, part.current_leader.leader_id) == (K.NOT_LEADER_FOR_PARTITION, other)
    bench.node = other
    assert bench.take(0) == [(0, 0, 1)]


# Settings

@pytest.mark.parametrize(("reset", "offset"), [("earliest", 0), ("latest", 2), ("by_duration:PT1H", 0)])
def test_a_group_begins_where_its_setting_says(reset: str, offset: int) -> None:
    bench = Bench(reset=reset)
    bench.join("a")
    bench.write(2)
    bench.take(0)
    bench.write(1)
    assert bench.take(1) in ([(offset, 2, 1)], [(2, 2, 1)])
    assert bench.cluster.shares.get(bench.cluster.shares.of_group("g")[0]).records.start_offset == offset


def test_a_group_that_has_done_nothing_begins_by_its_settings_again_once_it_was_empty() -> None:
    bench = Bench(reset="latest")
    bench.join("a")
    bench.write(2)
    assert bench.take(0) == []
    assert bench.beat("a", -1).error_code == 0
    bench.write(1)
    bench.join("b")
    assert bench.take(0, "b") == []
    assert bench.beat("b", -1).error_code == 0
    bench.cluster.group_configs.configure("g", {"share.auto.offset.reset": "earliest"})
    bench.join("c", "d")
    assert bench.take(0, "c") == [(0, 2, 1)]
    bench.cluster.group_configs.configure("g", {"share.auto.offset.reset": "latest"})
    assert bench.beat("d", -1).error_code == 0
    assert bench.say(1, 0, 0, member="c") == 0
    assert bench.beat("c", -1).error_code == 0
    assert bench.begins_at() == 0, "what is written down stays"


@pytest.mark.parametrize(("text", "expected"), [
    ("by_duration:PT1H", 3_600_000), ("by_duration:P1DT2H3M4.5S", 93_784_500), ("by_duration:P2D", 172_800_000),
    ("by_duration:", None), ("by_duration:P", None), ("by_duration:PT", None), ("by_duration:-PT1S", None)])
def test_durations_are_read_as_java_reads_them(text: str, expected: int | None) -> None:
    assert duration_ms(text) == expected


def test_a_group_that_reads_committed_records_gets_none_of_aborted_transactions(bench: Bench) -> None:
    bench.join("a")
    bench.cluster.group_configs.configure("g", {"share.auto.offset.reset": "earliest",
                                                "share.isolation.level": "read_committed"})
    partition = bench.topic.partitions[0]
    bench.write(2)
    bench.write(1, producer_id=7)
    bench.write(1)
    assert bench.take(0) == [(0, 1, 1)]
    partition.end_transaction(Marker(7, 0, False, 0), 0)
    assert bench.take(1) == [(3, 4, 1)]


# What is kept

def test_where_a_group_is_outlives_the_broker(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.join("a")
    bench.write(5)
    assert bench.take(0) == [(0, 4, 1)]
    assert bench.say(1, 0, 1) == bench.say(2, 3, 3) == bench.say(3, 2, 2, RELEASE) == 0
    bench.cluster.close()
    again = Bench(tmp_path)
    [group] = share_group_describe(again.call(), ShareGroupDescribeRequest(group_ids=["g"])).groups
    assert (group.error_code, group.group_state) == (0, "Empty")
    again.join("a")
    assert again.take(0) == [(2, 2, 2), (4, 4, 1)]
    again.cluster.close()
    third = Bench(tmp_path)
    assert third.begins_at() == 2
    third.cluster.close()


def test_a_topic_that_is_deleted_is_forgotten(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.join("a")
    bench.write(1)
    bench.take(0)
    bench.cluster.catalog.delete(bench.topic)
    bench.cluster.shares.forget_topics({bench.topic.id})
    [part] = bench.ask(1).responses[0].partitions
    assert part.error_code == K.UNKNOWN_TOPIC_OR_PART
    bench.cluster.close()
    assert Bench(tmp_path).cluster.shares.groups() == set()


def test_a_session_that_never_knew_a_topic_names_its_id_as_unknown() -> None:
    bench = Bench()
    bench.join("a")
    bench.cluster.catalog.delete(bench.topic)
    for epoch in (0, 1):  # as in Kafka 4.4.0: the session of a member keeps names, and this one had none to keep
        [part] = bench.ask(epoch).responses[0].partitions
        assert part.error_code == K.UNKNOWN_TOPIC_ID
