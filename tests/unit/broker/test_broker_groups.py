"""The classic group protocol, request by request: generations, fencing, static members, timeouts, commits."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from headrace import ConsumerGroupTopicPartitions, TopicPartition
from headrace.admin import AdminClient
from headrace.errors import KafkaError
from headrace.testing import BrokerSettings, EmbeddedBroker
from headrace.wire.messages.consumer.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.groups.classic_groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.support.raw_client import RawClient


class Peer:
    """A member of group `g` that does what it is told; waiting requests run on a thread."""

    def __init__(self, broker: EmbeddedBroker, pool: ThreadPoolExecutor, instance: str | None = None) -> None:
        self.client = RawClient(broker)
        self.lock = threading.Lock()
        self.pool = pool
        self.instance = instance
        self.member_id = ""
        self.generation = -1

    def call(self, request: Any, version: int | None = None) -> Any:
        with self.lock:
            return self.client.call(request, version)

    def join(self, session_ms: int = 10_000, rebalance_ms: int = 10_000, protocols: str = "range",
             version: int = 9) -> JoinGroupResponse:
        reply = self.ask_to_join(session_ms, rebalance_ms, protocols, version)
        if reply.error_code == KafkaError.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
            reply = self.ask_to_join(session_ms, rebalance_ms, protocols, version)
        if reply.error_code == 0:
            self.member_id, self.generation = reply.member_id, reply.generation_id
        return reply

    def ask_to_join(self, session_ms: int, rebalance_ms: int, protocols: str, version: int) -> JoinGroupResponse:
        reply = self.call(JoinGroupRequest(
            group_id="g", session_timeout_ms=session_ms, rebalance_timeout_ms=rebalance_ms, member_id=self.member_id,
            group_instance_id=self.instance, protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=each, metadata=each.encode()) for each in protocols.split(",")],
        ), version)
        assert isinstance(reply, JoinGroupResponse)
        return reply

    def joining(self, **arguments: Any) -> Future[JoinGroupResponse]:
        return self.pool.submit(self.join, **arguments)

    def sync(self, assignments: dict[str, bytes] | None = None) -> SyncGroupResponse:
        reply = self.call(SyncGroupRequest(
            group_id="g", generation_id=self.generation, member_id=self.member_id, group_instance_id=self.instance,
            protocol_type="consumer", protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=each, assignment=data)
                         for each, data in (assignments or {}).items()]))
        assert isinstance(reply, SyncGroupResponse)
        return reply

    def heartbeat(self) -> int:
        return int(self.call(HeartbeatRequest(group_id="g", generation_id=self.generation, member_id=self.member_id,
                                              group_instance_id=self.instance)).error_code)

    def commit(self, generation: int | None = None) -> int:
        reply = self.call(OffsetCommitRequest(
            group_id="g", generation_id_or_member_epoch=self.generation if generation is None else generation,
            member_id=self.member_id, topics=[OffsetCommitRequestTopic(name="t", partitions=[
                OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")])]), 8)
        return int(reply.topics[0].partitions[0].error_code)

    def leave(self) -> int:
        reply = self.call(LeaveGroupRequest(group_id="g", members=[
            MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)]))
        return int(reply.members[0].error_code)


class Peers:
    def __init__(self, broker: EmbeddedBroker, pool: ThreadPoolExecutor, stack: ExitStack) -> None:
        self.broker, self.pool, self.stack = broker, pool, stack

    def new(self, instance: str | None = None) -> Peer:
        peer = Peer(self.broker, self.pool, instance)
        self.stack.callback(peer.client.socket.close)
        return peer

    def stable_pair(self) -> tuple[Peer, Peer]:
        """A leader and a follower in a stable group."""
        first, second = self.new(), self.new()
        first.join()
        first.sync({first.member_id: b"all"})
        waiting = second.joining()
        while first.heartbeat() != KafkaError.REBALANCE_IN_PROGRESS:
            pass
        reply = first.join()
        waiting.result(5)
        assert {each.member_id for each in reply.members} == {first.member_id, second.member_id}
        half = self.pool.submit(second.sync)
        assert first.sync({first.member_id: b"one", second.member_id: b"two"}).assignment == b"one"
        assert half.result(5).assignment == b"two"
        return first, second


@pytest.fixture
def peers() -> Iterator[Peers]:
    settings = BrokerSettings(min_session_timeout_ms=1)
    with (EmbeddedBroker(topics={"t": 1}, settings=settings) as broker, ExitStack() as stack,
          ThreadPoolExecutor(4) as pool):
        stack.callback(pool.shutdown, wait=False)
        yield Peers(broker, pool, stack)


def test_a_new_member_gets_an_id_before_it_may_join(peers: Peers) -> None:
    peer = peers.new()
    reply = peer.ask_to_join(10_000, 10_000, "range", 9)
    assert reply.error_code == KafkaError.MEMBER_ID_REQUIRED
    assert reply.member_id.startswith("raw-")
    peer.member_id = reply.member_id
    assert peer.join().error_code == 0


def test_the_leader_learns_the_members_and_assigns_to_all(peers: Peers) -> None:
    first, second = peers.stable_pair()
    assert first.generation == second.generation == 2
    assert [first.heartbeat(), second.heartbeat()] == [0, 0]


def test_a_member_that_leaves_makes_the_others_join_again(peers: Peers) -> None:
    first, second = peers.stable_pair()
    assert second.leave() == 0
    assert first.heartbeat() == KafkaError.REBALANCE_IN_PROGRESS
    assert [each.member_id for each in first.join().members] == [first.member_id]


def test_an_old_generation_and_an_unknown_member_are_refused(peers: Peers) -> None:
    first, second = peers.stable_pair()
    assert first.commit(generation=1) == KafkaError.ILLEGAL_GENERATION
    assert first.commit() == 0
    second.member_id = "someone-else"
    assert second.heartbeat() == second.commit() == KafkaError.UNKNOWN_MEMBER_ID


def test_outsiders_commit_only_while_the_group_is_empty(peers: Peers) -> None:
    outsider = peers.new()
    assert outsider.commit(generation=-1) == 0
    first, second = peers.stable_pair()
    assert outsider.commit(generation=-1) == KafkaError.UNKNOWN_MEMBER_ID
    assert first.leave() == second.leave() == 0
    assert outsider.commit(generation=-1) == 0


def test_a_silent_member_is_taken_out_after_its_session(peers: Peers) -> None:
    peer, watcher = peers.new(), peers.new()
    peer.join(session_ms=150)
    peer.sync({peer.member_id: b"all"})
    assert peer.heartbeat() == 0
    reply = watcher.join()  # the silent one has 150 ms, the rebalance would have 10 s
    assert reply.leader == watcher.member_id
    assert peer.heartbeat() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION)


def test_a_member_that_does_not_rejoin_is_left_behind_by_the_rebalance(peers: Peers) -> None:
    lazy, eager = peers.new(), peers.new()
    lazy.join(rebalance_ms=200)
    lazy.sync({lazy.member_id: b"all"})
    reply = eager.join(rebalance_ms=200)
    assert [each.member_id for each in reply.members] == [eager.member_id]
    assert lazy.heartbeat() == KafkaError.UNKNOWN_MEMBER_ID


def test_protocols_without_a_common_one_are_refused(peers: Peers) -> None:
    first, second = peers.new(), peers.new()
    first.join(protocols="range")
    assert second.join(protocols="sticky").error_code == KafkaError.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_that_joins_again_keeps_a_protocol_that_all_have(peers: Peers) -> None:
    only, late = peers.new(), peers.new()
    only.join(protocols="range,sticky")
    assert only.join(protocols="other").error_code == KafkaError.INCONSISTENT_GROUP_PROTOCOL
    assert only.join(protocols="other,sticky").error_code == 0
    assert only.join(protocols="range").error_code == KafkaError.INCONSISTENT_GROUP_PROTOCOL
    late.instance = "static"
    assert late.join(protocols="range").error_code == KafkaError.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_that_all_can_use_wins(peers: Peers) -> None:
    first, second = peers.new(), peers.new()
    first.join(protocols="sticky,range")
    first.sync({first.member_id: b""})
    waiting = second.joining(protocols="range")
    while first.heartbeat() != KafkaError.REBALANCE_IN_PROGRESS:
        pass
    assert first.join(protocols="sticky,range").protocol_name == "range"
    assert waiting.result(5).protocol_name == "range"


def test_a_static_member_comes_back_without_a_rebalance_and_fences_its_former_self(peers: Peers) -> None:
    before, other = peers.new("instance-1"), peers.new()
    before.join()
    before.sync({before.member_id: b"mine"})
    after = peers.new("instance-1")
    reply = after.join()
    assert (reply.error_code, reply.generation_id, reply.skip_assignment) == (0, 1, True)
    assert after.sync().assignment == b"mine"
    assert before.heartbeat() == KafkaError.FENCED_INSTANCE_ID
    assert after.heartbeat() == 0
    assert other.leave() == KafkaError.UNKNOWN_MEMBER_ID


def test_an_assignment_that_never_comes_ends_the_generation(peers: Peers) -> None:
    first, second = peers.new(), peers.new()
    first.join(rebalance_ms=200)
    first.sync({first.member_id: b""})
    waiting = second.joining(rebalance_ms=200)
    while first.heartbeat() != KafkaError.REBALANCE_IN_PROGRESS:
        pass
    first.join(rebalance_ms=200)
    waiting.result(5)
    assert second.sync().error_code == KafkaError.REBALANCE_IN_PROGRESS  # the leader, `first`, never assigns
    assert second.join(rebalance_ms=200).leader == second.member_id


def test_groups_are_listed_described_and_deleted(peers: Peers) -> None:
    first, second = peers.stable_pair()
    first.commit()
    listed = first.call(ListGroupsRequest(states_filter=["Stable"])).groups
    assert [(each.group_id, each.group_state, each.protocol_type) for each in listed] == [("g", "Stable", "consumer")]
    assert first.call(ListGroupsRequest(types_filter=["consumer"])).groups == []
    described = first.call(DescribeGroupsRequest(groups=["g"])).groups[0]
    assert (described.group_state, described.protocol_data) == ("Stable", "range")
    assert {each.member_assignment for each in described.members} == {b"one", b"two"}
    assert {each.client_id for each in described.members} == {"raw"}
    refused = first.call(DeleteGroupsRequest(groups_names=["g", "none"])).results
    assert [each.error_code for each in refused] == [KafkaError.NON_EMPTY_GROUP, KafkaError.GROUP_ID_NOT_FOUND]
    first.leave()
    second.leave()
    assert first.call(DescribeGroupsRequest(groups=["g"])).groups[0].group_state == "Empty"
    assert [each.group_id for each in first.call(ListGroupsRequest(states_filter=["Empty"])).groups] == ["g"]
    assert first.call(DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == 0
    gone = first.call(DescribeGroupsRequest(groups=["g"])).groups[0]
    assert (gone.group_state, gone.error_code) == ("Dead", KafkaError.GROUP_ID_NOT_FOUND)


def test_a_topic_that_is_deleted_takes_its_own_offsets_along(peers: Peers) -> None:
    peers.broker.create_topic("u")
    tps = [TopicPartition(topic, 0, 5) for topic in "tu"]
    with AdminClient({"bootstrap.servers": peers.broker.bootstrap_servers}) as admin:
        admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("g", tps)])["g"].result(10)
        admin.delete_topics(["u"])["u"].result(10)
        kept = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")])["g"].result(10)
        assert [(tp.topic, tp.offset) for tp in kept.topic_partitions or ()] == [("t", 5)]


def test_a_session_outside_of_the_limits_is_refused(broker: EmbeddedBroker) -> None:
    with ThreadPoolExecutor(1) as pool:
        peer = Peer(broker, pool)
        with peer.client:
            assert peer.join(session_ms=99).error_code == KafkaError.INVALID_SESSION_TIMEOUT
            assert peer.join(session_ms=2_000_000).error_code == KafkaError.INVALID_SESSION_TIMEOUT
