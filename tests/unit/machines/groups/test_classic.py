"""Classic groups: joining, both kinds of rebalances, fencing, stalled applications, leaving."""

from __future__ import annotations

import pytest

from headrace.errors import KafkaError
from headrace.machines.groups.assignors import (
    read_assignment,
    read_member,
    sticky_user_data,
    write_assignment,
    write_subscription,
)
from headrace.machines.groups.classic import TRANSITIONS, JoinState
from headrace.machines.groups.membership import Change, EpochMoved, GroupFailed, Left, Rebalance
from headrace.machines.machine import Send
from headrace.wire import codec
from headrace.wire.messages.cluster.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.groups.classic_groups import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.support.classic_bench import ClassicBench

COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
STICKY = {"partition.assignment.strategy": "sticky,range"}


def test_a_member_joins_syncs_and_is_told_what_it_got() -> None:
    bench = ClassicBench()
    request = bench.join()
    assert (request.group_id, request.member_id, request.session_timeout_ms) == ("g", "", 45_000)
    assert [protocol.name for protocol in request.protocols] == ["range", "roundrobin"]
    bench.sync(("t", 1))
    assert bench.rebalanced() == (Change.ASSIGN, {("t", 1)})
    assert (bench.group.state, bench.group.member_id, bench.group.generation) == (JoinState.STABLE, "me", 1)


def test_an_answer_that_the_coordinator_gives_when_all_have_joined_is_waited_for_longer_than_they_may_take() -> None:
    bench = ClassicBench(properties={"max.poll.interval.ms": 60_000})
    join = bench.send(JoinGroupRequest)
    assert join.timeout_s == 65
    assert isinstance(join.request, JoinGroupRequest)
    assert (join.request.session_timeout_ms, join.request.rebalance_timeout_ms) == (45_000, 60_000)
    bench.reply(join, JoinGroupResponse(generation_id=1, protocol_name="range", member_id="me", leader="another"))
    assert bench.send(SyncGroupRequest).timeout_s == 65


def test_who_left_in_the_middle_of_a_rebalance_does_not_wait_for_its_application_when_it_comes_back() -> None:
    bench = ClassicBench()
    bench.join()
    bench.sync(("t", 0))
    assert len(bench.events(Rebalance)) == 1
    bench.subscription.subscribe([])
    bench.group.leave()
    bench.reply(bench.send(LeaveGroupRequest), LeaveGroupResponse())
    bench.subscription.subscribe(["t"])
    bench.settle(("t", 1), generation=2)


def test_who_leaves_while_nobody_coordinates_has_left() -> None:
    bench = ClassicBench()
    bench.settle(("t", 0))
    bench.finder.invalidate(bench.now)
    bench.subscription.subscribe([])
    bench.group.leave()
    bench.silent()
    assert len(bench.events(Left)) == 1


def test_nothing_is_sent_before_there_is_a_coordinator_and_a_subscription() -> None:
    bench = ClassicBench()
    bench.subscription.subscribe([])
    bench.silent()
    bench.subscription.subscribe(["t"])
    bench.finder.invalidate(bench.now)
    bench.silent()


def test_a_member_waits_until_it_knows_its_topics() -> None:
    bench = ClassicBench(topics={})
    bench.silent()
    bench.set_topics({"t": 1})
    bench.send(JoinGroupRequest)


def test_the_member_id_that_the_coordinator_asks_for_is_used_at_once() -> None:
    bench = ClassicBench()
    bench.reply(bench.send(JoinGroupRequest), JoinGroupResponse(
        error_code=KafkaError.MEMBER_ID_REQUIRED, member_id="given", protocol_name=""))
    again = bench.send(JoinGroupRequest).request
    assert isinstance(again, JoinGroupRequest)
    assert again.member_id == "given"


def test_the_leader_sends_everybody_their_share() -> None:
    bench = ClassicBench()
    other = JoinGroupResponseMember(member_id="you", metadata=write_subscription(["t"], (), -1, None))
    bench.join(leader=True, others=(other,))
    plan = bench.sync(("t", 0)).assignments
    shares = {share.member_id: read_assignment(share.assignment) for share in plan}
    assert shares == {"me": [("t", 0), ("t", 1)], "you": [("t", 2), ("t", 3)]}


def test_the_leader_asks_for_a_rebalance_when_partitions_are_added() -> None:
    bench = ClassicBench()
    bench.join(leader=True)
    bench.sync(("t", 0))
    bench.rebalanced()
    bench.set_topics({"t": 5})
    bench.silent()
    assert bench.rebalanced() == (Change.REVOKE, {("t", 0)})
    bench.send(JoinGroupRequest)


def test_an_eager_member_gives_everything_up_before_it_joins_again() -> None:
    bench = ClassicBench()
    bench.settle(("t", 0), ("t", 1))
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    bench.silent()
    assert bench.group.owned == {("t", 0), ("t", 1)}, "nothing is gone before the application agrees"
    assert bench.rebalanced() == (Change.REVOKE, {("t", 0), ("t", 1)})
    request = bench.join(generation=2)
    assert request.member_id == "me"
    bench.sync(("t", 3))
    assert bench.rebalanced() == (Change.ASSIGN, {("t", 3)})


def test_heartbeats_go_on_while_the_application_is_in_its_callback() -> None:
    bench = ClassicBench()
    bench.settle(("t", 0))
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    bench.silent()
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    assert bench.group.state is JoinState.PREPARING


def test_a_sticky_member_gives_everything_up_and_says_what_it_had_even_after_it_was_dropped() -> None:
    bench = ClassicBench(properties=STICKY)
    bench.settle(("t", 0), ("t", 3), generation=5)
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    bench.silent()
    assert bench.rebalanced() == (Change.REVOKE, {("t", 0), ("t", 3)})
    sticky, other = bench.join(generation=6).protocols
    remembered = read_member("me", None, sticky.metadata, remembers=True)
    assert (remembered.owned, remembered.generation) == ((("t", 0), ("t", 3)), 5)
    assert [read_member("me", None, each.metadata).owned for each in (sticky, other)] == [(), ()]
    assert read_member("me", None, other.metadata, remembers=True).owned == ()
    bench.sync(("t", 0))
    bench.rebalanced()
    bench.heartbeat(KafkaError.UNKNOWN_MEMBER_ID)
    assert bench.rebalanced() == (Change.LOSE, {("t", 0)})
    sticky, _ = bench.join(generation=8).protocols
    remembered = read_member("me", None, sticky.metadata, remembers=True)
    assert (remembered.owned, remembered.generation) == ((("t", 0),), 6)


@pytest.mark.parametrize(("assignors", "told"), [
    ("range,roundrobin", [None, None]), ("cooperative-sticky", [b"\xff\xff\xff\xff"])])
def test_user_data_is_only_that_of_the_assignor(assignors: str, told: list[bytes | None]) -> None:
    """Java's members send the same. A leader of librdkafka's sends it back, and such a group cannot migrate."""
    bench = ClassicBench(properties={"partition.assignment.strategy": assignors})
    sent = [codec.decode(ConsumerProtocolSubscription, each.metadata[2:], 3).user_data
            for each in bench.join().protocols]
    assert sent == told


def test_a_leader_gives_sticky_members_what_they_had() -> None:
    bench = ClassicBench(properties=STICKY)
    other = write_subscription(["t"], (), 4, None, sticky_user_data([("t", 0), ("t", 2)], 4))
    bench.join(leader=True, others=(JoinGroupResponseMember(member_id="you", metadata=other),))
    plan = bench.sync(("t", 1)).assignments
    shares = {share.member_id: read_assignment(share.assignment) for share in plan}
    assert shares == {"me": [("t", 1), ("t", 3)], "you": [("t", 0), ("t", 2)]}


def test_a_sticky_member_that_left_the_group_begins_anew() -> None:
    bench = ClassicBench(properties=STICKY)
    bench.settle(("t", 0))
    bench.group.leave()
    bench.reply(bench.send(LeaveGroupRequest), LeaveGroupResponse())
    sticky, _ = bench.join().protocols
    assert read_member("me", None, sticky.metadata, remembers=True).owned == ()


def test_a_cooperative_member_keeps_its_partitions_and_gives_up_what_moves() -> None:
    bench = ClassicBench(properties=COOPERATIVE)
    bench.settle(("t", 0), ("t", 1))
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    bench.join(generation=2)
    assert bench.events(Rebalance) == []
    bench.sync(("t", 0))
    assert bench.rebalanced() == (Change.REVOKE, {("t", 1)})
    assert bench.rebalanced() == (Change.ASSIGN, set())
    assert bench.group.owned == {("t", 0)}
    bench.join(generation=3)  # so that the others get what was given up
    bench.sync(("t", 0))
    assert bench.rebalanced() == (Change.ASSIGN, set())
    bench.silent()


def test_a_member_that_keeps_partitions_is_of_the_next_generation_before_the_application_meets_it() -> None:
    bench = ClassicBench(properties=COOPERATIVE)
    bench.join()
    bench.sync(("t", 0), ("t", 1))
    first = list(bench.group.events())
    assert [type(event) for event in first] == [Rebalance], "who holds nothing meets its first generation"
    bench.group.callback_done(bench.now)
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    bench.join(generation=2)
    bench.sync(("t", 0))
    moved, asked = bench.group.events()
    assert moved == EpochMoved(2, bench.group.member_id)
    assert isinstance(asked, Rebalance)


def test_a_dropped_member_loses_its_partitions_and_joins_as_a_new_one() -> None:
    bench = ClassicBench()
    bench.settle(("t", 0))
    bench.heartbeat(KafkaError.UNKNOWN_MEMBER_ID)
    assert bench.group.generation == -1
    assert bench.rebalanced() == (Change.LOSE, {("t", 0)})
    assert bench.join().member_id == ""


def test_a_member_in_doubt_asks_at_once_and_not_for_one_that_it_is_no_more() -> None:
    bench = ClassicBench()
    bench.settle(("t", 0))
    former = bench.group.identity
    bench.group.doubt(former)
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS, after_s=0.0)
    bench.silent()
    assert bench.rebalanced() == (Change.REVOKE, {("t", 0)})
    bench.settle(("t", 0), generation=2)
    bench.group.doubt(former)
    bench.silent()


def test_a_member_that_is_dropped_during_a_callback_is_told_afterwards() -> None:
    bench = ClassicBench()
    bench.join()
    bench.sync(("t", 0))
    bench.heartbeat(KafkaError.ILLEGAL_GENERATION)
    assert bench.rebalanced() == (Change.ASSIGN, {("t", 0)})
    assert bench.rebalanced() == (Change.LOSE, {("t", 0)})
    bench.send(JoinGroupRequest)


def test_a_late_answer_to_a_membership_that_was_left_ends_nothing_and_keeps_no_heartbeat_back() -> None:
    """A static member that comes back has another id in the same generation: its predecessor's id is fenced."""
    bench = ClassicBench(properties={"group.instance.id": "one", "heartbeat.interval.ms": 1000})
    bench.join(7, member_id="first")
    bench.sync(("t", 0))
    bench.rebalanced()
    late = bench.send(HeartbeatRequest, 1.0)
    bench.group.leave()
    bench.silent()
    assert bench.events(Left)
    bench.subscription.subscribe(["t"])
    bench.join(7, member_id="second")
    bench.sync(("t", 0))
    bench.rebalanced()
    bench.send(HeartbeatRequest, 1.0)
    bench.reply(late, HeartbeatResponse(error_code=KafkaError.FENCED_INSTANCE_ID))
    assert (bench.group.state, bench.events(GroupFailed)) == (JoinState.STABLE, [])
    bench.silent()


@pytest.mark.parametrize("code", [KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID])
@pytest.mark.parametrize("properties", [{}, COOPERATIVE], ids=["eager", "cooperative"])
def test_a_heartbeat_that_was_overtaken_by_joining_drops_nobody(properties: dict[str, str], code: int) -> None:
    bench = ClassicBench(properties=properties)
    strategy = properties.get("partition.assignment.strategy", "range")
    bench.settle(("t", 0))
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    if not properties:
        bench.silent()
        late = bench.send(HeartbeatRequest, after_s=3.0)
        bench.rebalanced()
        joining = bench.send(JoinGroupRequest)
    else:
        joining = bench.send(JoinGroupRequest)
        late = Send(1, HeartbeatRequest(group_id="g"), 1.0, context=1)  # sent with the generation of before
    bench.reply(late, HeartbeatResponse(error_code=code))  # the coordinator had the next generation by then
    bench.silent()
    bench.reply(joining, JoinGroupResponse(generation_id=2, protocol_name=strategy, member_id="me", leader="you"))
    assert bench.sync(("t", 0)).member_id == "me"
    assert [event.change for event in bench.events(Rebalance)] == [Change.ASSIGN]


def test_a_member_that_hears_nothing_for_a_session_gives_its_partitions_up() -> None:
    bench = ClassicBench(properties={"session.timeout.ms": 10_000})
    bench.settle(("t", 0))
    for _ in range(4):
        bench.now += 3
        bench.find()
        for send in list(bench.group.poll(bench.now)):
            if isinstance(send.request, HeartbeatRequest):
                bench.group.on_error(send, KafkaError(KafkaError._TRANSPORT), bench.now)
    assert bench.rebalanced() == (Change.LOSE, {("t", 0)})


def test_a_coordinator_that_stands_still_leaves_time_to_find_the_one_in_its_place_before_the_session_ends() -> None:
    """As in Java's client, by its defaults: brokers give the group another coordinator long before."""
    bench = ClassicBench()
    bench.settle(("t", 0))
    beat = bench.send(HeartbeatRequest, after_s=3.0)
    bench.now += beat.timeout_s
    bench.group.on_error(beat, KafkaError(KafkaError._TIMED_OUT), bench.now)
    bench.heartbeat(after_s=5.0)
    bench.silent()
    assert (bench.group.state, bench.events(Rebalance)) == (JoinState.STABLE, [])


@pytest.mark.parametrize("request_type", [JoinGroupRequest, SyncGroupRequest])
def test_a_member_that_waits_for_a_slow_rebalance_for_longer_than_a_session_keeps_what_it_holds(
    request_type: type,
) -> None:
    bench = ClassicBench(properties={"partition.assignment.strategy": "cooperative-sticky"})
    bench.settle(("t", 0))
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    if request_type is SyncGroupRequest:
        bench.join(generation=2)
    bench.group.application_at = bench.now + 60
    bench.send(request_type)
    bench.now += 60
    bench.silent()
    assert bench.events(Rebalance) == []
    assert bench.group.owned == {("t", 0)}


def test_a_moved_coordinator_is_looked_for_without_a_rebalance() -> None:
    bench = ClassicBench()
    bench.settle(("t", 0))
    bench.heartbeat(KafkaError.NOT_COORDINATOR)
    assert bench.finder.node_id is None
    bench.now += 1
    bench.send(HeartbeatRequest)
    assert bench.group.state is JoinState.STABLE
    assert bench.events(Rebalance) == []


@pytest.mark.parametrize("code", [
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE])
def test_a_passing_error_while_joining_is_ridden_out_in_silence(code: int) -> None:
    bench = ClassicBench()
    bench.reply(bench.send(JoinGroupRequest), JoinGroupResponse(error_code=code, member_id="", protocol_name=""))
    assert (bench.finder.node_id is None) is (code != KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    bench.silent()
    bench.send(JoinGroupRequest, after_s=1.0)
    assert bench.events(GroupFailed) == []


@pytest.mark.parametrize(("jitter", "spread"), [(0.0, 0.8), (0.5, 1.0), (1.0, 1.2)])
def test_the_pause_before_it_joins_again_is_what_the_properties_say_spread_by_a_fifth(
    jitter: float, spread: float,
) -> None:
    bench = ClassicBench(properties={"retry.backoff.ms": 20, "retry.backoff.max.ms": 40}, jitter=jitter)
    for wait_s in (0.02 * spread, 0.04 * spread, 0.04 * spread):
        bench.reply(bench.send(JoinGroupRequest), JoinGroupResponse(
            error_code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS, member_id="", protocol_name=""))
        bench.now += wait_s - 0.001
        bench.silent()
        bench.now += 0.002


def test_a_refusal_that_a_person_must_mend_is_told_and_tried_again_later() -> None:
    bench = ClassicBench()
    bench.reply(bench.send(JoinGroupRequest), JoinGroupResponse(
        error_code=KafkaError.INCONSISTENT_GROUP_PROTOCOL, member_id="", protocol_name=""))
    [failed] = bench.events(GroupFailed)
    assert failed.error == KafkaError.INCONSISTENT_GROUP_PROTOCOL
    assert "'g'" in failed.error.str()
    bench.now += 1
    bench.silent()
    bench.send(JoinGroupRequest, after_s=10)


@pytest.mark.parametrize("leader", ["me", "another"])
def test_an_answer_with_a_strategy_that_was_not_offered_is_told_and_the_member_joins_again(leader: str) -> None:
    bench = ClassicBench()
    bench.reply(bench.send(JoinGroupRequest), JoinGroupResponse(
        generation_id=1, protocol_name="ran\0e", member_id="me", leader=leader))
    [failed] = bench.events(GroupFailed)
    assert "'ran\\x00e', which this member did not offer" in failed.error.str()
    assert not failed.error.fatal()
    bench.now += 6.0
    bench.settle(("t", 0))



def test_a_rebalance_during_sync_starts_over() -> None:
    bench = ClassicBench()
    bench.join()
    bench.reply(bench.send(SyncGroupRequest), SyncGroupResponse(error_code=KafkaError.REBALANCE_IN_PROGRESS))
    assert bench.join(generation=2).member_id == "me"


def test_two_consumers_with_one_instance_id_end_the_older_one_for_good() -> None:
    bench = ClassicBench(properties={"group.instance.id": "i"})
    bench.settle(("t", 0))
    bench.heartbeat(KafkaError.FENCED_INSTANCE_ID)
    [failed] = bench.events(GroupFailed)
    assert failed.error.fatal()
    bench.now += 100
    bench.silent()


def test_an_application_that_does_not_poll_loses_its_partitions_and_comes_back() -> None:
    bench = ClassicBench(properties={"max.poll.interval.ms": 60_000})
    bench.settle(("t", 0))
    for _ in range(19):
        bench.heartbeat()
    bench.now += 4
    sends = list(bench.group.poll(bench.now))
    assert [type(send.request) for send in sends] == [LeaveGroupRequest]
    failed, rebalance = bench.group.events()
    assert isinstance(failed, GroupFailed)
    assert failed.error == KafkaError._MAX_POLL_EXCEEDED
    assert isinstance(rebalance, Rebalance)
    assert rebalance.change is Change.LOSE
    bench.group.callback_done(bench.now)
    bench.silent()
    assert bench.group.state is JoinState.STALLED
    bench.group.application_at = bench.now
    bench.send(JoinGroupRequest)


def test_an_application_that_is_late_in_its_callback_is_told_so_once() -> None:
    bench = ClassicBench(properties={"max.poll.interval.ms": 60_000})
    bench.settle(("t", 0))
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    bench.silent()
    [revoke] = bench.events(Rebalance)
    assert revoke.change is Change.REVOKE
    failures = 0
    for _ in range(40):
        bench.now += 3
        list(bench.group.poll(bench.now))
        failures += sum(isinstance(event, GroupFailed) for event in bench.group.events())
    assert failures == 1
    bench.group.callback_done(bench.now)
    [lost] = bench.events(Rebalance)
    assert lost.change is Change.LOSE


def test_an_application_that_waits_inside_poll_is_not_late() -> None:
    bench = ClassicBench(properties={"max.poll.interval.ms": 60_000})
    bench.settle(("t", 0))
    bench.group.application_at = float("inf")
    for _ in range(50):
        bench.heartbeat()
    assert bench.group.state is JoinState.STABLE


def test_leaving_is_told_to_the_group_and_then_to_the_client() -> None:
    bench = ClassicBench()
    bench.settle(("t", 0))
    bench.subscription.subscribe([])
    bench.group.leave()
    send = bench.send(LeaveGroupRequest)
    assert isinstance(send.request, LeaveGroupRequest)
    assert [member.member_id for member in send.request.members] == ["me"]
    assert send.for_version is not None
    assert send.for_version(send.request, 3) is send.request
    assert send.for_version(send.request, 2) == LeaveGroupRequest(group_id="g", member_id="me")
    bench.reply(send, LeaveGroupResponse())
    assert len(bench.events(Left)) == 1
    assert (bench.group.state, bench.group.generation) == (JoinState.OUTSIDE, -1)


def test_a_static_member_goes_without_a_word_so_that_it_finds_its_place_again() -> None:
    bench = ClassicBench(properties={"group.instance.id": "i"})
    bench.settle(("t", 0))
    bench.subscription.subscribe([])
    bench.group.leave()
    bench.silent()
    assert len(bench.events(Left)) == 1


def test_a_changed_subscription_makes_the_member_join_again() -> None:
    bench = ClassicBench(topics={"t": 1, "u": 1})
    bench.settle(("t", 0))
    bench.subscription.subscribe(["u"])
    bench.silent()
    assert bench.rebalanced() == (Change.REVOKE, {("t", 0)})
    assert b"u" in bench.join(generation=2).protocols[0].metadata


def test_a_pattern_picks_up_topics_that_appear_later() -> None:
    bench = ClassicBench(topics={"log-1": 1})
    bench.subscription.subscribe(["^log-.*"])
    bench.settle(("log-1", 0))
    bench.set_topics({"log-1": 1, "log-2": 1})
    bench.silent()
    assert bench.rebalanced()[0] is Change.REVOKE
    assert b"log-2" in bench.join(generation=2).protocols[0].metadata


@pytest.mark.parametrize("excluded", [True, False])
def test_a_pattern_may_leave_out_the_topics_of_the_brokers(excluded: bool) -> None:
    bench = ClassicBench(properties={"exclude.internal.topics": excluded})
    bench.set_topics({"mine": 1, "__consumer_offsets": 1}, internal="__consumer_offsets")
    bench.subscription.subscribe(["^.*"])
    wanted = bench.join().protocols[0].metadata
    assert b"mine" in wanted
    assert (b"__consumer_offsets" in wanted) is not excluded


def test_an_answer_to_a_round_that_was_given_up_changes_nothing() -> None:
    bench = ClassicBench()
    old = bench.send(JoinGroupRequest)
    bench.subscription.subscribe([])
    bench.group.leave()
    bench.now += 1.0
    bench.silent()
    bench.reply(old, JoinGroupResponse(generation_id=9, member_id="me", leader="me", protocol_name="range"))
    assert bench.group.state is JoinState.OUTSIDE


@pytest.mark.parametrize("code", [KafkaError.MEMBER_ID_REQUIRED, 0], ids=["an id to join with", "a member"])
def test_a_member_that_leaves_during_its_first_join_waits_a_moment_for_its_id_and_gives_it_back(code: int) -> None:
    bench = ClassicBench()
    joins = bench.send(JoinGroupRequest)
    bench.subscription.subscribe([])
    bench.group.leave()
    bench.silent()
    assert bench.group.deadline() == bench.now + 1.0
    assert bench.events(Left) == []
    bench.reply(joins, JoinGroupResponse(error_code=code, member_id="nobody"))
    farewell = bench.send(LeaveGroupRequest)
    assert isinstance(farewell.request, LeaveGroupRequest)
    assert [member.member_id for member in farewell.request.members] == ["nobody"]
    bench.now += 1.0
    bench.silent()
    bench.reply(farewell, LeaveGroupResponse())
    assert len(bench.events(Left)) == 1
    assert bench.group.state is JoinState.OUTSIDE


@pytest.mark.parametrize("late", [False, True], ids=["refused", "not answered"])
def test_a_member_that_leaves_during_its_first_join_does_not_wait_for_an_id_that_does_not_come(late: bool) -> None:
    bench = ClassicBench()
    joins = bench.send(JoinGroupRequest)
    bench.group.leave()
    if late:
        bench.now += 1.0
    else:
        bench.reply(joins, JoinGroupResponse(error_code=KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
    bench.subscription.subscribe([])
    bench.silent()
    assert len(bench.events(Left)) == 1


@pytest.mark.parametrize("code", [KafkaError.MEMBER_ID_REQUIRED, 0], ids=["an id to join with", "a member"])
@pytest.mark.parametrize("properties", [{}, {"group.instance.id": "one"}], ids=["dynamic", "static"])
def test_an_id_that_came_after_its_round_was_given_up_is_given_back(properties: dict[str, str], code: int) -> None:
    """The group would wait for its owner; a static member's is the same one in the next round."""
    bench = ClassicBench(properties=properties)
    old = bench.send(JoinGroupRequest)
    bench.subscription.subscribe([])
    bench.group.leave()
    bench.silent()
    bench.now += 1.0  # the id is not waited for any longer
    bench.silent()
    bench.subscription.subscribe(["t"])
    joins = bench.send(JoinGroupRequest)
    bench.reply(old, JoinGroupResponse(error_code=code, member_id="nobody"))
    if properties:
        bench.silent()
    else:
        farewell = bench.send(LeaveGroupRequest)
        assert isinstance(farewell.request, LeaveGroupRequest)
        assert [member.member_id for member in farewell.request.members] == ["nobody"]
        bench.reply(farewell, LeaveGroupResponse())
    bench.reply(joins, JoinGroupResponse(error_code=KafkaError.MEMBER_ID_REQUIRED, member_id="me"))
    assert bench.join().member_id == "me"


@pytest.mark.parametrize("kind", [JoinGroupRequest, SyncGroupRequest])
def test_a_member_that_leaves_while_it_joins_again_does_not_mind_the_answer(kind: type) -> None:
    bench = ClassicBench(properties=COOPERATIVE)
    bench.settle(("t", 0))
    bench.heartbeat(KafkaError.REBALANCE_IN_PROGRESS)
    if kind is SyncGroupRequest:
        bench.join(generation=2)
    old = bench.send(kind)
    bench.subscription.subscribe([])
    bench.group.leave()
    goodbye = bench.send(LeaveGroupRequest)
    bench.reply(old, JoinGroupResponse(generation_id=3, member_id="me", leader="me", protocol_name="range")
                if kind is JoinGroupRequest else SyncGroupResponse(assignment=write_assignment([("t", 0)])))
    bench.reply(goodbye, LeaveGroupResponse())
    assert bench.group.state is JoinState.OUTSIDE


def test_every_state_can_be_reached_and_left() -> None:
    reached = {after for _, _, after in TRANSITIONS}
    left = {state for state, _, _ in TRANSITIONS}
    assert reached == set(JoinState)
    assert left == set(JoinState)


def test_the_application_can_have_the_group_rebalance_and_the_coordinator_hears_why() -> None:
    bench = ClassicBench(properties=COOPERATIVE)
    bench.group.enforce_rebalance("too early")
    assert bench.join().reason is None
    bench.sync(("t", 0))
    bench.rebalanced()
    bench.group.enforce_rebalance("the weather")
    bench.group.enforce_rebalance("once more")
    assert bench.join(generation=2).reason == "the weather"


def test_a_leader_deals_by_the_racks_that_members_and_replicas_are_in() -> None:
    bench = ClassicBench({}, {"client.rack": "west"})
    send = next(iter(bench.metadata.poll(bench.now)), None) or Send(-1, JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="", protocol_type="", protocols=[]), 1)
    bench.metadata.on_reply(send, MetadataResponse(
        cluster_id="c",
        brokers=[MetadataResponseBroker(node_id=n, host="h", port=n, rack=rack)
                 for n, rack in ((1, "east"), (2, "west"))],
        topics=[MetadataResponseTopic(name="t", partitions=[
            MetadataResponsePartition(partition_index=p, leader_id=1, replica_nodes=[2 if p < 2 else 1])
            for p in range(4)])]), bench.now)
    other = JoinGroupResponseMember(member_id="a", metadata=write_subscription(["t"], [], -1, "east"))
    bench.join(leader=True, others=(other,))
    send = bench.send(SyncGroupRequest)
    assert isinstance(send.request, SyncGroupRequest)
    plan = {each.member_id: [p for _, p in read_assignment(each.assignment)] for each in send.request.assignments}
    assert plan == {"me": [0, 1], "a": [2, 3]}
