"""Groups that the coordinator plans for: what heartbeats say, reconciling, fencing, stalled applications, leaving."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.config import CONSUMER, Config
from headrace.errors import KafkaError as K
from headrace.machines.backoff import RetryPolicy
from headrace.machines.cluster.coordinator import CoordinatorFinder
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.subscription import Subscription
from headrace.machines.groups.consumer_group import TRANSITIONS, ConsumerGroup, MemberState
from headrace.machines.groups.membership import Change, EpochMoved, GroupFailed, Left, Rebalance
from headrace.machines.machine import ANY_NODE, Event, Send
from headrace.machines.producer.transaction_requests import ConsumerGroupMetadata
from headrace.wire.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.groups.classic_groups import FindCoordinatorResponse
from headrace.wire.messages.groups.consumer_groups import (
    AssignedTopicPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
)

ME = UUID(int=7)
T, U = UUID(int=100), UUID(int=101)
INTERVAL_S = 3.0
Partitions = list[tuple[str, int]]
Optional = ("rack_id", "rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex", "server_assignor",
            "topic_partitions")


class Bench:
    """One member and a scripted coordinator, broker 1."""

    def __init__(self, *topics: str, jitter: float = 0.5, **properties: Any) -> None:
        self.config = Config(CONSUMER, {
            "bootstrap.servers": "h:1", "group.id": "g", "group.protocol": "consumer", **properties})
        self.metadata = Metadata([("h", 1)])
        self.subscription = Subscription("g", "latest")
        self.finder = CoordinatorFinder(0, "g", retries=RetryPolicy(jitter=lambda: jitter))
        self.group = ConsumerGroup(self.config, self.subscription, self.metadata, self.finder, lambda: ME)
        self.group.application_at = 0.0
        self.now = 0.0
        self.set_topics({"t": T})
        self.subscription.subscribe(topics or ("t",))
        self.version = 1

    def set_topics(self, topics: dict[str, UUID]) -> None:
        self.now += 0.001
        self.metadata.want_topics([*topics, f"at {self.now}"])
        [send] = self.metadata.poll(self.now)
        self.metadata.on_reply(send, MetadataResponse(
            cluster_id="c", brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)],
            topics=[MetadataResponseTopic(name=name, topic_id=topic_id, partitions=[
                MetadataResponsePartition(partition_index=p, leader_id=1) for p in range(4)])
                for name, topic_id in topics.items()]), self.now)

    def find(self) -> None:
        for send in list(self.finder.poll(self.now)):
            self.finder.on_reply(send, FindCoordinatorResponse(node_id=1, host="h", port=1), self.now)

    def sends(self, after_s: float = 0.0) -> list[Send]:
        """What the member sends next, as it is written."""
        self.now += after_s
        self.find()
        sends = list(self.group.poll(self.now))
        for send in sends:
            if send.for_version is not None:
                send.request = send.for_version(send.request, self.version)
        deadline = self.group.deadline()
        assert deadline is None or deadline > self.now
        return sends

    def beat(self, after_s: float = 0.0) -> Send:
        """The one heartbeat that the member sends next."""
        [send] = self.sends(after_s)
        assert isinstance(send.request, ConsumerGroupHeartbeatRequest)
        assert send.destination == 1
        return send

    def silent(self, after_s: float = 0.0) -> None:
        assert self.sends(after_s) == []

    def reply(self, send: Send, epoch: int, assigned: dict[UUID, list[int]] | None = None, **more: Any) -> None:
        assignment = None if assigned is None else HeartbeatAssignment(topic_partitions=[
            AssignedTopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in assigned.items()])
        self.group.on_reply(send, ConsumerGroupHeartbeatResponse(
            member_id=str(ME), member_epoch=epoch, heartbeat_interval_ms=int(INTERVAL_S * 1000),
            assignment=assignment, **more), self.now)

    def refuse(self, send: Send, code: int, text: str | None = None) -> None:
        self.reply(send, 0, error_code=code, error_message=text)

    def events(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.group.events() if isinstance(event, kind)]

    def rebalance(self) -> Rebalance:
        """The one rebalance that the application has to deal with."""
        [event] = self.events(Rebalance)
        assert event.incremental
        return event

    def agree(self, change: Change, partitions: Partitions) -> None:
        event = self.rebalance()
        assert (event.change, [(tp.topic, tp.partition) for tp in event.partitions]) == (change, partitions)
        self.group.callback_done(self.now)

    def joined(self, *partitions: int, epoch: int = 5) -> None:
        """The member joins, takes these partitions of the topic and has that acknowledged."""
        self.reply(self.beat(), epoch, {T: list(partitions)})
        self.silent()
        self.agree(Change.ASSIGN, [("t", p) for p in partitions])
        self.reply(self.beat(), epoch)
        self.silent()


def said(send: Send) -> dict[str, Any]:
    """The fields of a heartbeat that are not left out."""
    unset = {"rebalance_timeout_ms": -1}
    found = {name: getattr(send.request, name) for name in Optional}
    found = {name: value for name, value in found.items() if value != unset.get(name)}
    if "topic_partitions" in found:
        found["topic_partitions"] = {topic.topic_id: topic.partitions for topic in found["topic_partitions"]}
    return found


ALL = {"rebalance_timeout_ms": 300_000, "subscribed_topic_names": ["t"], "subscribed_topic_regex": ""}


# What heartbeats say

def test_it_joins_with_epoch_0_an_id_of_its_own_and_all_that_there_is_to_say() -> None:
    bench = Bench(**{"client.rack": "r", "group.remote.assignor": "range", "group.instance.id": "i"})
    send = bench.beat()
    request: Any = send.request
    assert (request.group_id, request.member_id, request.member_epoch, request.instance_id) == ("g", str(ME), 0, "i")
    assert said(send) == {**ALL, "rack_id": "r", "server_assignor": "range", "topic_partitions": {}}


def test_it_does_not_join_before_it_is_subscribed() -> None:
    bench = Bench()
    bench.subscription.subscribe([])
    bench.silent()
    assert bench.group.is_outside


def test_a_heartbeat_in_which_nothing_is_new_carries_the_epoch_alone() -> None:
    bench = Bench()
    bench.joined(0, 1)
    send = bench.beat(INTERVAL_S)
    assert said(send) == {}
    assert (send.request.member_epoch, send.request.member_id) == (5, str(ME))  # type: ignore[attr-defined]


def test_the_broker_says_how_often_it_wants_to_hear_of_a_member() -> None:
    bench = Bench()
    bench.joined(0)
    bench.silent(INTERVAL_S - 0.01)
    assert bench.group.deadline() == pytest.approx(bench.now + 0.01)
    bench.beat(0.011)
    bench.silent(60.0)


def test_a_new_subscription_is_said_at_once_and_alone() -> None:
    bench = Bench()
    bench.joined(0)
    bench.group.subscribe(["u", "t"], bench.now)
    send = bench.beat()
    assert said(send) == {"subscribed_topic_names": ["t", "u"]}


def test_what_changed_while_a_heartbeat_was_on_its_way_is_said_in_the_next() -> None:
    bench = Bench()
    bench.joined(0)
    send = bench.beat(INTERVAL_S)
    bench.group.subscribe(["u"], bench.now)
    bench.silent()
    bench.reply(send, 5)
    assert said(bench.beat()) == {"subscribed_topic_names": ["u"]}


def test_after_a_heartbeat_without_an_answer_everything_is_said_again() -> None:
    bench = Bench()
    bench.joined(0, 2)
    send = bench.beat(INTERVAL_S)
    bench.group.on_error(send, K(K._TRANSPORT), bench.now)
    assert bench.finder.node_id is None
    bench.silent()
    send = bench.beat(1.0)
    assert said(send) == {**ALL, "topic_partitions": {T: [0, 2]}}
    bench.reply(send, 5)
    assert said(bench.beat(INTERVAL_S)) == {}


def test_a_passing_error_is_followed_by_a_pause_that_grows_and_by_everything() -> None:
    bench = Bench()
    bench.joined(0)
    send = bench.beat(INTERVAL_S)
    for pause in (0.1, 0.2, 0.4):
        bench.refuse(send, K.COORDINATOR_LOAD_IN_PROGRESS)
        bench.silent(pause - 0.01)
        send = bench.beat(0.011)
        assert said(send) == {**ALL, "topic_partitions": {T: [0]}}
    bench.reply(send, 5)
    assert said(bench.beat(INTERVAL_S)) == {}
    assert bench.events(GroupFailed) == []


@pytest.mark.parametrize(("jitter", "pause"), [(0.0, 0.08), (1.0, 0.12)])
def test_members_that_were_refused_together_do_not_come_back_together(jitter: float, pause: float) -> None:
    bench = Bench(jitter=jitter)
    bench.joined(0)
    bench.refuse(bench.beat(INTERVAL_S), K.COORDINATOR_LOAD_IN_PROGRESS)
    bench.silent(pause - 0.01)
    bench.beat(0.011)


@pytest.mark.parametrize("code", [K.NOT_COORDINATOR, K.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_for_and_the_member_goes_on(code: int) -> None:
    bench = Bench()
    bench.joined(0)
    bench.refuse(bench.beat(INTERVAL_S), code)
    assert bench.finder.node_id is None
    send = bench.beat(0.2)
    assert send.request.member_epoch == 5  # type: ignore[attr-defined]
    assert bench.events(Rebalance) == []


# Patterns

def test_patterns_are_the_coordinators_to_match() -> None:
    bench = Bench("^a.*", "t", "^b$")
    send = bench.beat()
    assert said(send) == {**ALL, "subscribed_topic_regex": "^a.*|^b$", "topic_partitions": {}}
    assert not bench.group.resolves_patterns


def test_a_pattern_that_is_given_up_is_taken_back() -> None:
    bench = Bench("^a.*")
    bench.reply(bench.beat(), 5, {})
    bench.reply(bench.beat(), 5)
    bench.group.subscribe(["t"], bench.now)
    assert said(bench.beat()) == {"subscribed_topic_names": ["t"], "subscribed_topic_regex": ""}


def test_where_the_coordinator_matches_no_patterns_the_member_does_and_follows_new_topics() -> None:
    bench = Bench("^[tu]")
    bench.version = 0
    send = bench.beat()
    assert said(send) == {"rebalance_timeout_ms": 300_000, "subscribed_topic_names": ["t"], "topic_partitions": {}}
    assert bench.group.resolves_patterns
    bench.reply(send, 5, {})
    bench.reply(bench.beat(), 5)
    bench.set_topics({"t": T, "u": U})
    assert said(bench.beat()) == {"subscribed_topic_names": ["t", "u"]}


def test_where_the_coordinator_matches_no_patterns_the_member_joins_when_there_is_a_topic_that_matches() -> None:
    bench = Bench("^u")
    bench.version = 0
    send = bench.beat()
    assert said(send)["subscribed_topic_names"] == []  # whether the coordinator matches is known by now only
    bench.refuse(send, K.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    bench.silent(60)
    assert bench.events(GroupFailed) == []
    bench.set_topics({"t": T, "u": U})
    send = bench.beat()
    assert said(send) == {"rebalance_timeout_ms": 300_000, "subscribed_topic_names": ["u"], "topic_partitions": {}}


def test_a_member_whose_pattern_matches_no_topic_any_more_stays_one() -> None:
    bench = Bench("^t")
    bench.version = 0
    bench.reply(bench.beat(), 5, {})
    bench.reply(bench.beat(), 5)
    bench.subscription.subscribe(["^u"])
    assert said(bench.beat()) == {"subscribed_topic_names": []}


# Reconciling

def test_what_is_given_is_taken_up_and_then_acknowledged() -> None:
    bench = Bench()
    bench.reply(bench.beat(), 5, {T: [1, 0]})
    bench.silent()
    assert bench.group.owned == frozenset()
    bench.agree(Change.ASSIGN, [("t", 0), ("t", 1)])
    assert bench.group.owned == {("t", 0), ("t", 1)}
    assert said(bench.beat()) == {"topic_partitions": {T: [0, 1]}}


def test_what_is_taken_away_is_given_up_before_the_coordinator_learns_of_it() -> None:
    bench = Bench()
    bench.joined(0, 1)
    bench.reply(bench.beat(INTERVAL_S), 5, {T: [0]})
    bench.silent()
    [event] = bench.events(Rebalance)
    assert (event.change, event.partitions[0].partition, event.generation) == (Change.REVOKE, 1, 5)
    send = bench.beat(INTERVAL_S)
    assert said(send) == {}, "the application has not given it up"
    bench.reply(send, 5)
    bench.group.callback_done(bench.now)
    send = bench.beat()
    assert said(send) == {"topic_partitions": {T: [0]}}
    bench.agree(Change.ASSIGN, [])
    bench.reply(send, 6)
    assert bench.group.identity == ConsumerGroupMetadata("g", 6, str(ME))


def test_what_is_free_is_taken_up_only_after_what_was_taken_away_was_given_up() -> None:
    bench = Bench()
    bench.joined(0, 1)
    bench.reply(bench.beat(INTERVAL_S), 5, {T: [1, 2]})
    bench.silent()
    bench.agree(Change.REVOKE, [("t", 0)])
    send = bench.beat()
    assert said(send) == {"topic_partitions": {T: [1]}}
    assert bench.events(Rebalance) == []
    bench.reply(send, 6)
    bench.silent()
    bench.agree(Change.ASSIGN, [("t", 2)])
    assert said(bench.beat()) == {"topic_partitions": {T: [1, 2]}}


def test_nothing_is_taken_up_before_the_answer_to_a_heartbeat_that_did_not_name_it() -> None:
    """The coordinator may give it to another by that."""
    bench = Bench()
    bench.reply(bench.beat(), 5, {U: [0, 1]})
    question, send = bench.sends()
    assert said(send) == {"topic_partitions": {}}, "its name is not known"
    bench.group.on_reply(question, MetadataResponse(
        brokers=[], topics=[MetadataResponseTopic(name="u", topic_id=U, partitions=[])]), bench.now)
    bench.silent()
    assert bench.events(Rebalance) == []
    bench.reply(send, 6, {U: [1]})
    bench.silent()
    bench.agree(Change.ASSIGN, [("u", 1)])


def test_nothing_is_taken_up_while_it_is_not_sure_what_the_coordinator_knows() -> None:
    bench = Bench()
    bench.joined(0)
    bench.reply(bench.beat(INTERVAL_S), 6, {U: [0], T: [0]})
    question, send = bench.sends()
    bench.group.on_error(send, K(K._TRANSPORT), bench.now)
    bench.group.on_reply(question, MetadataResponse(
        brokers=[], topics=[MetadataResponseTopic(name="u", topic_id=U, partitions=[])]), bench.now)
    send = bench.beat(1.0)
    assert bench.events(Rebalance) == []
    bench.reply(send, 6, {U: [0], T: [0]})
    bench.silent()
    bench.agree(Change.ASSIGN, [("u", 0)])


def test_what_is_being_taken_up_is_named_when_everything_is_said() -> None:
    bench = Bench()
    bench.reply(bench.beat(), 5, {T: [0, 1]})
    bench.silent()
    bench.group.on_error(bench.beat(INTERVAL_S), K(K._TRANSPORT), bench.now)
    assert said(bench.beat(1.0))["topic_partitions"] == {T: [0, 1]}
    bench.agree(Change.ASSIGN, [("t", 0), ("t", 1)])


def test_an_assignment_that_changes_nothing_is_acknowledged_without_the_application() -> None:
    bench = Bench()
    bench.joined(0)
    bench.reply(bench.beat(INTERVAL_S), 6, {T: [0]})
    assert said(bench.beat()) == {"topic_partitions": {T: [0]}}
    assert bench.events(Rebalance) == []


def test_a_member_without_partitions_learns_of_none_and_says_so() -> None:
    bench = Bench()
    bench.reply(bench.beat(), 5, {})
    assert said(bench.beat()) == {"topic_partitions": {}}
    assert bench.events(Rebalance) == []


def test_an_assignment_that_came_during_a_callback_is_met_after_it() -> None:
    bench = Bench()
    bench.reply(bench.beat(), 5, {T: [0, 1]})
    bench.silent()
    send = bench.beat(INTERVAL_S)
    bench.reply(send, 5, {T: [1]})
    bench.silent()
    bench.agree(Change.ASSIGN, [("t", 0), ("t", 1)])
    send = bench.beat()
    assert said(send) == {"topic_partitions": {T: [0, 1]}}
    bench.agree(Change.REVOKE, [("t", 0)])
    assert bench.group.owned == {("t", 1)}


def test_a_newer_epoch_is_an_event_and_no_rebalance() -> None:
    bench = Bench()
    bench.joined(0)
    bench.group.events()
    bench.reply(bench.beat(INTERVAL_S), 9)
    bench.silent()
    [moved] = bench.group.events()
    assert isinstance(moved, EpochMoved)
    assert (moved.generation, moved.member_id) == (9, str(ME))


# Topic ids

def test_a_topic_whose_name_is_not_known_is_asked_about_and_waited_for() -> None:
    bench = Bench("^t|u")
    bench.reply(bench.beat(), 5, {T: [0], U: [3]})
    [question] = bench.sends()
    assert isinstance(question.request, MetadataRequest)
    assert question.destination == ANY_NODE
    assert [(topic.topic_id, topic.name) for topic in question.request.topics or ()] == [(U, None)]
    bench.agree(Change.ASSIGN, [("t", 0)])
    bench.reply(bench.beat(), 5)
    bench.silent()
    bench.group.on_reply(question, MetadataResponse(
        brokers=[], topics=[MetadataResponseTopic(name="u", topic_id=U, partitions=[])]), bench.now)
    bench.silent()
    bench.agree(Change.ASSIGN, [("u", 3)])
    assert said(bench.beat()) == {"topic_partitions": {T: [0], U: [3]}}
    assert bench.group.planned_topics == {"t", "u"}


def test_a_topic_that_no_broker_knows_yet_is_asked_about_again() -> None:
    bench = Bench()
    bench.reply(bench.beat(), 5, {U: [3]})
    question, send = bench.sends()
    bench.reply(send, 5)
    for pause in (0.1, 0.2):
        assert isinstance(question.request, MetadataRequest)
        bench.group.on_reply(question, MetadataResponse(brokers=[], topics=[
            MetadataResponseTopic(error_code=K.UNKNOWN_TOPIC_ID, name=None, topic_id=U, partitions=[])]), bench.now)
        bench.silent(pause - 0.01)
        [question] = bench.sends(0.011)
    bench.group.on_error(question, K(K._TRANSPORT), bench.now)
    [question] = bench.sends(1.0)
    assert isinstance(question.request, MetadataRequest)
    bench.set_topics({"u": U})
    bench.sends()
    bench.agree(Change.ASSIGN, [("u", 3)])


def test_a_topic_that_was_made_anew_is_given_up_and_taken_up() -> None:
    bench = Bench()
    bench.joined(0)
    bench.set_topics({"t": U})
    bench.reply(bench.beat(INTERVAL_S), 6, {U: [0]})
    bench.sends()
    bench.agree(Change.REVOKE, [("t", 0)])
    bench.reply(bench.beat(), 6)
    bench.silent()
    bench.agree(Change.ASSIGN, [("t", 0)])
    assert bench.group.owned == {("t", 0)}


# Fencing

@pytest.mark.parametrize("code", [K.UNKNOWN_MEMBER_ID, K.FENCED_MEMBER_EPOCH, K.GROUP_ID_NOT_FOUND])
def test_a_member_that_was_dropped_loses_its_partitions_and_then_joins_anew(code: int) -> None:
    bench = Bench()
    bench.joined(0, 1)
    bench.refuse(bench.beat(INTERVAL_S), code)
    assert bench.group.identity.generation == -1
    bench.silent()
    event = bench.rebalance()
    assert (event.change, event.generation, len(event.partitions)) == (Change.LOSE, -1, 2)
    bench.silent(INTERVAL_S)
    bench.group.callback_done(bench.now)
    send = bench.beat()
    assert (send.request.member_epoch, send.request.member_id) == (0, str(ME))  # type: ignore[attr-defined]
    assert said(send) == {**ALL, "topic_partitions": {}}


def test_a_member_in_doubt_asks_at_once_and_not_for_one_that_it_is_no_more() -> None:
    bench = Bench()
    bench.joined(0)
    former = bench.group.identity
    bench.group.doubt(former)
    bench.reply(bench.beat(), 6)
    bench.group.doubt(former)
    bench.silent()


@pytest.mark.parametrize("code", [K.UNKNOWN_MEMBER_ID, K.FENCED_MEMBER_EPOCH, K.GROUP_ID_NOT_FOUND])
def test_a_member_that_was_dropped_while_the_application_takes_up_partitions_loses_those_too(code: int) -> None:
    bench = Bench()
    bench.joined(0)
    bench.reply(bench.beat(INTERVAL_S), 6, {T: [0, 1]})
    bench.silent()
    bench.refuse(bench.beat(INTERVAL_S), code)
    bench.silent(INTERVAL_S)
    bench.agree(Change.ASSIGN, [("t", 1)])
    bench.agree(Change.LOSE, [("t", 0), ("t", 1)])
    assert bench.beat().request.member_epoch == 0  # type: ignore[attr-defined]


def test_what_was_given_up_is_not_lost_as_well() -> None:
    bench = Bench()
    bench.joined(0, 1)
    bench.reply(bench.beat(INTERVAL_S), 5, {T: [0]})
    bench.silent()
    bench.refuse(bench.beat(INTERVAL_S), K.FENCED_MEMBER_EPOCH)
    bench.agree(Change.REVOKE, [("t", 1)])
    bench.agree(Change.LOSE, [("t", 0)])


def test_a_member_without_partitions_that_was_dropped_joins_anew_at_once() -> None:
    bench = Bench()
    bench.reply(bench.beat(), 5, {})
    bench.refuse(bench.beat(), K.FENCED_MEMBER_EPOCH)
    assert bench.events(Rebalance) == []
    assert bench.beat().request.member_epoch == 0  # type: ignore[attr-defined]


def test_a_join_that_is_fenced_is_repeated_after_a_pause() -> None:
    bench = Bench()
    bench.refuse(bench.beat(), K.UNKNOWN_MEMBER_ID)
    bench.silent(0.09)
    bench.beat(0.02)


def test_a_static_member_whose_join_was_not_answered_makes_way_for_itself() -> None:
    bench = Bench(**{"group.instance.id": "i"})
    bench.group.on_error(bench.beat(), K(K._TRANSPORT), bench.now)
    away, join = bench.sends(1.0)
    assert [send.request.member_epoch for send in (away, join)] == [-2, 0]  # type: ignore[attr-defined]
    bench.group.on_error(away, K(K._TRANSPORT), bench.now)
    bench.reply(join, 5, {T: [0]})
    bench.sends()
    bench.agree(Change.ASSIGN, [("t", 0)])


def test_a_static_member_that_was_fenced_makes_way_for_itself() -> None:
    bench = Bench(**{"group.instance.id": "i"})
    bench.joined(0)
    bench.refuse(bench.beat(INTERVAL_S), K.FENCED_MEMBER_EPOCH)
    away = bench.beat()
    assert away.request.member_epoch == -2  # type: ignore[attr-defined]
    bench.refuse(away, K.UNKNOWN_MEMBER_ID)
    bench.agree(Change.LOSE, [("t", 0)])
    assert bench.beat().request.member_epoch == 0  # type: ignore[attr-defined]


def test_an_answer_to_the_membership_before_is_not_heard() -> None:
    bench = Bench(**{"max.poll.interval.ms": 10_000})
    bench.joined(0)
    late = bench.beat(INTERVAL_S)
    bench.sends(20.0)
    bench.agree(Change.LOSE, [("t", 0)])
    bench.reply(late, 8, {T: [0]})
    assert bench.group.identity.generation == -1
    assert bench.group.state is MemberState.STALLED


@pytest.mark.parametrize("code", [K.UNRELEASED_INSTANCE_ID, K.GROUP_MAX_SIZE_REACHED, K.INVALID_REGULAR_EXPRESSION,
                                  K.GROUP_AUTHORIZATION_FAILED, K.GROUP_ID_NOT_FOUND])
def test_a_refusal_that_may_end_is_reported_and_the_member_goes_on_asking(code: int) -> None:
    bench = Bench()
    bench.refuse(bench.beat(), code, "because")
    [failed] = bench.events(GroupFailed)
    assert (failed.error.code(), failed.error.fatal()) == (code, False)
    assert "because" in failed.error.str()
    bench.silent(4.9)
    bench.beat(0.2)


@pytest.mark.parametrize("code", [K.FENCED_INSTANCE_ID, K.UNSUPPORTED_ASSIGNOR, K.UNSUPPORTED_VERSION,
                                  K.INVALID_REQUEST, K.INVALID_GROUP_ID])
def test_a_refusal_for_good_ends_the_membership(code: int) -> None:
    bench = Bench()
    bench.joined(0)
    bench.refuse(bench.beat(INTERVAL_S), code)
    failed, lost = [event for event in bench.group.events() if not isinstance(event, EpochMoved)]
    assert isinstance(failed, GroupFailed)
    assert (failed.error.code(), failed.error.fatal()) == (code, True)
    assert isinstance(lost, Rebalance)
    assert lost.change is Change.LOSE
    bench.group.callback_done(bench.now)
    bench.silent(60.0)
    assert bench.group.state is MemberState.ENDED
    bench.group.leave()
    bench.silent()
    assert bench.events(Left)


def test_a_refusal_for_good_during_a_callback_takes_what_that_gives() -> None:
    bench = Bench()
    bench.reply(bench.beat(), 5, {T: [0]})
    bench.silent()
    bench.refuse(bench.beat(INTERVAL_S), K.FENCED_INSTANCE_ID)
    given, lost = bench.events(Rebalance)
    assert (given.change, lost.change) == (Change.ASSIGN, Change.LOSE)
    assert given.partitions == lost.partitions


def test_brokers_without_the_protocol_are_a_fatal_error_that_names_version_and_remedy() -> None:
    bench = Bench()
    bench.group.on_error(bench.beat(), K(K._UNSUPPORTED_FEATURE), bench.now)
    [failed] = bench.events(GroupFailed)
    assert failed.error.fatal()
    assert "Apache Kafka 4.0" in failed.error.str()
    assert 'set "group.protocol" to "classic"' in failed.error.str()
    bench.silent(60.0)


# The application's time

def test_an_application_that_does_not_poll_leaves_loses_and_comes_back_when_it_does() -> None:
    bench = Bench(**{"max.poll.interval.ms": 10_000})
    bench.joined(0)
    [send] = bench.sends(10.0)
    assert send.request.member_epoch == -1  # type: ignore[attr-defined]
    [failed] = [event for event in bench.group._events if isinstance(event, GroupFailed)]
    assert failed.error.code() == K._MAX_POLL_EXCEEDED
    bench.agree(Change.LOSE, [("t", 0)])
    assert bench.group.stalled
    bench.reply(send, -1)
    bench.silent(INTERVAL_S)
    bench.group.application_at = bench.now
    assert bench.beat().request.member_epoch == 0  # type: ignore[attr-defined]
    assert not bench.group.stalled


def test_an_application_that_is_late_while_a_rebalance_waits_for_it_is_told_so_once() -> None:
    bench = Bench(**{"max.poll.interval.ms": 10_000})
    bench.reply(bench.beat(), 5, {T: [0]})
    bench.silent()
    bench.sends(10.0)
    for _ in range(3):
        bench.silent(1.0)
    events = bench.group.events()
    assert [event.error.code() for event in events if isinstance(event, GroupFailed)] == [K._MAX_POLL_EXCEEDED]
    assert [event.change for event in events if isinstance(event, Rebalance)] == [Change.ASSIGN]
    bench.group.callback_done(bench.now)
    assert bench.rebalance().change is Change.LOSE


def test_a_static_member_that_stalls_keeps_its_place() -> None:
    bench = Bench(**{"max.poll.interval.ms": 10_000, "group.instance.id": "i"})
    bench.joined(0)
    [send] = bench.sends(10.0)
    assert send.request.member_epoch == -2  # type: ignore[attr-defined]


def test_an_application_that_is_inside_of_poll_is_not_late() -> None:
    bench = Bench(**{"max.poll.interval.ms": 10_000})
    bench.joined(0)
    bench.group.application_at = float("inf")
    assert said(bench.beat(60.0)) == {}


# Leaving

@pytest.mark.parametrize(("instance", "epoch"), [("", -1), ("i", -2)])
def test_who_leaves_says_so_with_an_epoch_that_means_it(instance: str, epoch: int) -> None:
    bench = Bench(**({"group.instance.id": instance} if instance else {}))
    bench.joined(0)
    bench.subscription.subscribe([])
    bench.group.leave()
    send = bench.beat()
    assert (send.request.member_epoch, said(send)) == (epoch, {})  # type: ignore[attr-defined]
    bench.silent()
    assert bench.events(Left) == []
    bench.reply(send, epoch)
    assert bench.events(Left)
    assert bench.group.is_outside
    assert bench.group.identity == ConsumerGroupMetadata("g", instance_id=instance or None)


def test_who_left_in_the_middle_of_a_rebalance_does_not_wait_for_its_application_when_it_comes_back() -> None:
    bench = Bench()
    bench.reply(bench.beat(), 5, {T: [0]})
    bench.silent()
    assert bench.rebalance().change is Change.ASSIGN
    bench.subscription.subscribe([])
    bench.group.leave()
    bench.reply(bench.beat(), -1)
    bench.subscription.subscribe(["t"])
    bench.reply(bench.beat(), 6, {})
    bench.refuse(bench.beat(INTERVAL_S), K.UNKNOWN_MEMBER_ID)
    assert bench.beat(1.0).request.member_epoch == 0  # type: ignore[attr-defined]


def test_who_never_asked_to_join_has_nothing_to_leave() -> None:
    bench = Bench()
    bench.finder.invalidate(0.0)
    list(bench.group.poll(bench.now))
    bench.subscription.subscribe([])
    bench.group.leave()
    bench.silent()
    assert bench.events(Left)


def test_who_leaves_while_a_join_is_on_its_way_takes_it_back() -> None:
    bench = Bench()
    join = bench.beat()
    bench.subscription.subscribe([])
    bench.group.leave()
    send = bench.beat()
    bench.reply(join, 5, {T: [0]})
    assert bench.events(Left) == []
    bench.group.on_error(send, K(K._TRANSPORT), bench.now)
    assert bench.events(Left)
    assert bench.group.owned == frozenset()


def test_who_left_may_come_back() -> None:
    bench = Bench()
    bench.joined(0)
    bench.group.leave()
    bench.reply(bench.beat(), -1)
    assert said(bench.beat()) == {**ALL, "topic_partitions": {}}


def test_every_state_is_reached_from_the_first() -> None:
    reached = {TRANSITIONS.first}
    for _ in TRANSITIONS.states:
        reached |= {after for before, _, after in TRANSITIONS if before in reached}
    assert reached == set(TRANSITIONS.states)
