"""Members of share groups: joining, heartbeats, assignments, being dropped, stalled applications, leaving."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.config import SHARE, Config
from headrace.errors import KafkaError
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.groups.membership import GroupFailed, Left
from headrace.machines.groups.share_group import SHARE_MEMBER_TRANSITIONS, ShareGroup, ShareMemberState
from headrace.machines.machine import Send
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.groups.classic_groups import FindCoordinatorResponse
from headrace.wire.messages.groups.consumer_groups import AssignedTopicPartitions, HeartbeatAssignment
from headrace.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

T = UUID(int=5)


class Bench:
    """One member and a scripted coordinator, broker 1."""

    def __init__(self, *, jitter: float = 0.5, **properties: Any) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        config = Config(SHARE, {"bootstrap.servers": "h:1", "group.id": "g", **named})
        self.metadata = Metadata([("h", 1)])
        self.finder = CoordinatorFinder(0, "g", retries=RetryPolicy(jitter=lambda: jitter))
        self.group = ShareGroup(config, self.metadata, self.finder, "me")
        self.now = 0.0
        self.find()
        self.group.subscribe(["t"], self.now)

    def find(self) -> None:
        for send in list(self.finder.poll(self.now)):
            self.finder.on_reply(send, FindCoordinatorResponse(node_id=1, host="h", port=1), self.now)

    def know(self, name: str = "t", topic_id: UUID = T) -> None:
        self.now += 1
        self.metadata.want_topics([f"{self.now}"])
        [send] = self.metadata.poll(self.now)
        self.metadata.on_reply(send, MetadataResponse(
            cluster_id="c", brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)],
            topics=[MetadataResponseTopic(name=name, topic_id=topic_id, partitions=[
                MetadataResponsePartition(partition_index=p, leader_id=1) for p in range(2)])]), self.now)

    def send(self, after_s: float = 0.0) -> ShareGroupHeartbeatRequest:
        self.now += after_s
        self.find()
        [self.sent] = list(self.group.poll(self.now))
        request = self.sent.request
        assert isinstance(request, ShareGroupHeartbeatRequest)
        return request

    def silent(self, after_s: float = 0.0) -> None:
        self.now += after_s
        assert list(self.group.poll(self.now)) == []

    def reply(self, epoch: int = 1, partitions: list[int] | None = None, code: int = 0, sent: Send | None = None,
              message: str | None = None) -> None:
        assignment = None if partitions is None else HeartbeatAssignment(
            topic_partitions=[AssignedTopicPartitions(topic_id=T, partitions=partitions)] if partitions else [])
        self.group.on_reply(sent or self.sent, ShareGroupHeartbeatResponse(
            member_epoch=epoch, heartbeat_interval_ms=5000, assignment=assignment, error_code=code,
            error_message=message), self.now)

    def join(self) -> None:
        self.send()
        self.reply(3, [0, 1])

    def failures(self) -> list[int]:
        return [event.error.code() for event in self.group.events() if isinstance(event, GroupFailed)]


def test_a_member_joins_with_its_topics_and_gets_partitions() -> None:
    bench = Bench(client_rack="r")
    bench.know()
    request = bench.send()
    assert (request.group_id, request.member_id, request.member_epoch) == ("g", "me", 0)
    assert (request.rack_id, request.subscribed_topic_names) == ("r", ["t"])
    bench.reply(3, [0, 1])
    assert bench.group.state is ShareMemberState.STABLE
    assert bench.group.epoch == 3
    assert bench.group.assignment == {("t", 0): T, ("t", 1): T}


def test_heartbeats_come_as_often_as_the_coordinator_wants_and_say_only_what_is_new() -> None:
    bench = Bench()
    bench.join()
    bench.silent(4.9)
    assert bench.group.deadline() == pytest.approx(5.0)
    request = bench.send(0.1)
    assert (request.member_epoch, request.rack_id, request.subscribed_topic_names) == (3, None, None)
    bench.silent(10)  # one at a time


def test_other_topics_are_told_at_once() -> None:
    bench = Bench()
    bench.join()
    bench.group.subscribe(["t", "u"], bench.now)
    assert bench.send().subscribed_topic_names == ["t", "u"]
    bench.group.subscribe(["u"], bench.now)
    bench.silent()
    bench.reply(4)
    assert bench.send().subscribed_topic_names == ["u"]


def test_a_new_member_without_partitions_asks_again_soon() -> None:
    bench = Bench()
    bench.send()
    bench.reply(1, [])
    waited = []
    for _ in range(6):
        waited.append(bench.group.deadline() - bench.now)  # type: ignore[operator]
        bench.send(waited[-1])
        bench.reply(1)
    assert waited == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    assert bench.group.deadline() == pytest.approx(bench.now + 5)


def test_topics_that_are_known_by_their_id_only_are_named_when_the_metadata_comes() -> None:
    bench = Bench()
    bench.join()
    assert bench.group.assignment == {}
    bench.know()
    bench.silent()
    assert bench.group.assignment == {("t", 0): T, ("t", 1): T}


def test_names_are_asked_for_as_long_as_one_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.join()
    asked: list[float] = []
    monkeypatch.setattr(bench.metadata, "refresh", asked.append)
    for name, topic_id, times in (("u", UUID(int=99), 1), ("t", T, 0)):
        asked.clear()
        bench.know(name, topic_id)
        bench.silent()
        bench.silent()
        assert len(asked) == times


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_MEMBER_EPOCH])
def test_a_member_that_was_dropped_joins_again(code: int) -> None:
    bench = Bench()
    bench.know()
    bench.join()
    bench.send(5)
    bench.reply(code=code)
    assert bench.group.assignment == {}
    request = bench.send()
    assert (request.member_epoch, request.subscribed_topic_names) == (0, ["t"])
    assert bench.failures() == []


def test_a_member_that_is_refused_while_it_joins_pauses() -> None:
    bench = Bench()
    bench.send()
    bench.reply(code=KafkaError.UNKNOWN_MEMBER_ID)
    bench.silent()
    assert bench.send(0.1).member_epoch == 0


@pytest.mark.parametrize("code", [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_for(code: int) -> None:
    bench = Bench()
    bench.join()
    bench.send(5)
    bench.reply(code=code)
    assert bench.finder.node_id is None
    assert bench.send(0.1).member_epoch == 3


def test_a_coordinator_that_loads_is_asked_again() -> None:
    bench = Bench()
    bench.send()
    bench.reply(code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    assert bench.finder.node_id == 1
    bench.silent()
    bench.send(0.1)


def test_pauses_grow_only_while_the_coordinator_gives_no_answer_of_use() -> None:
    bench = Bench()
    bench.send()
    for pause in (0.1, 0.2, 0.4):
        bench.reply(code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
        bench.silent(pause - 0.01)
        bench.send(0.011)
    bench.reply(3, [0])
    bench.send(5.0)
    bench.reply(code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    bench.send(0.11)


@pytest.mark.parametrize(("jitter", "pause"), [(0.0, 0.08), (1.0, 0.12)])
def test_members_that_were_refused_together_do_not_come_back_together(jitter: float, pause: float) -> None:
    bench = Bench(jitter=jitter)
    bench.send()
    bench.reply(code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    bench.silent(pause - 0.01)
    bench.send(0.011)


def test_a_refusal_is_reported_and_tried_again_much_later() -> None:
    bench = Bench()
    bench.send()
    bench.reply(code=KafkaError.GROUP_AUTHORIZATION_FAILED, message="not you")
    [event] = bench.group.events()
    assert isinstance(event, GroupFailed)
    assert event.error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert "'g' refused this member: not you" in event.error.str()
    bench.silent(4.9)
    bench.send(0.1)


def test_brokers_without_share_groups_end_the_membership() -> None:
    for code in (KafkaError.UNSUPPORTED_VERSION, None):
        bench = Bench()
        bench.send()
        if code is None:
            bench.group.on_error(bench.sent, KafkaError(KafkaError._UNSUPPORTED_FEATURE), bench.now)
        else:
            bench.reply(code=code)
        assert bench.failures() == [KafkaError._UNSUPPORTED_FEATURE]
        assert bench.group.failure is not None
        assert bench.group.failure.fatal()
        bench.silent(100)
        assert bench.group.deadline() is None
        bench.group.leave()
        bench.silent()
        assert bench.group.is_outside


def test_a_lost_answer_is_asked_for_again_at_the_coordinator_of_that_time() -> None:
    bench = Bench()
    bench.join()
    bench.send(5)
    bench.group.on_error(bench.sent, KafkaError(KafkaError._TRANSPORT), bench.now)
    assert bench.finder.node_id is None
    assert bench.send(0.2).member_epoch == 3


def test_a_coordinator_that_stands_still_is_given_up_before_the_session_ends() -> None:
    """Brokers give the group another coordinator long before, which waits for the member no longer than a session."""
    bench = Bench()
    bench.join()
    bench.send(5.0)
    assert bench.sent.timeout_s == 15.0
    impatient = Bench(socket_timeout_ms=5000)
    impatient.send()
    assert impatient.sent.timeout_s == 5.0


def test_behind_an_answer_that_did_not_come_the_topics_are_told_again_so_that_the_assignment_is() -> None:
    """The coordinator tells an assignment once, and again to who names the topics: it may have been in that answer."""
    bench = Bench()
    bench.know()
    bench.join()
    assert bench.send(5).subscribed_topic_names is None
    bench.group.on_error(bench.sent, KafkaError(KafkaError._TIMED_OUT, maybe_applied=True), bench.now)
    assert bench.send(1).subscribed_topic_names == ["t"]
    bench.reply(4, [1])
    assert set(bench.group.assignment) == {("t", 1)}
    assert bench.send(5).subscribed_topic_names is None


def test_an_application_that_does_not_poll_leaves_and_comes_back_when_it_does() -> None:
    bench = Bench(max_poll_interval_ms=6000)
    bench.know()
    bench.join()
    bench.group.application_at = bench.now
    bench.send(5)
    assert bench.send(1).member_epoch == -1
    assert bench.failures() == [KafkaError._MAX_POLL_EXCEEDED]
    assert bench.group.stalled
    assert bench.group.assignment == {}
    farewell = bench.sent
    bench.group.application_at = bench.now
    bench.silent()  # until the coordinator has read the farewell
    bench.reply(-1, sent=farewell)
    assert bench.group.state is ShareMemberState.JOINING
    assert bench.send().member_epoch == 0


def test_who_leaves_because_of_its_application_says_so_whether_a_heartbeat_is_on_its_way_or_not() -> None:
    bench = Bench(max_poll_interval_ms=3000)
    bench.join()
    bench.group.application_at = bench.now
    assert bench.send(3).member_epoch == -1
    assert bench.failures() == [KafkaError._MAX_POLL_EXCEEDED]


def test_leaving_is_told_and_known() -> None:
    bench = Bench()
    bench.join()
    bench.group.leave()
    assert bench.send().member_epoch == -1
    bench.silent()
    assert (bench.group.events(), bench.group.is_outside) == ([], False)
    bench.reply(-1)
    assert bench.group.events() == [Left()]
    assert bench.group.is_outside
    bench.group.leave()
    assert bench.group.events() == [Left()]


def test_who_leaves_while_it_joins_is_a_member_perhaps_and_says_so() -> None:
    bench = Bench()
    bench.send()
    joining = bench.sent
    bench.group.leave()
    assert bench.send().member_epoch == -1
    bench.reply(1, [0], sent=joining)
    assert bench.group.assignment == {}
    assert not bench.group.is_outside
    bench.group.on_error(bench.sent, KafkaError(KafkaError._TRANSPORT), bench.now)
    assert bench.group.is_outside


def test_who_left_may_come_again() -> None:
    bench = Bench()
    bench.join()
    bench.group.leave()
    bench.send()
    bench.reply(-1)
    bench.group.subscribe(["u"], bench.now)
    request = bench.send()
    assert (request.member_epoch, request.subscribed_topic_names) == (0, ["u"])


def test_every_state_can_be_reached_and_left() -> None:
    ways = list(SHARE_MEMBER_TRANSITIONS)
    assert {after for _, _, after in ways} == set(ShareMemberState)
    assert {state for state, _, _ in ways} == set(ShareMemberState)
