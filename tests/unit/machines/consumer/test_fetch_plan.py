"""Whom to fetch from: one request for each broker, for the partitions that are wanted and have room."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.config import CONSUMER, Config
from headrace.machines.cluster.metadata import Metadata
from headrace.machines.consumer.fetch_plan import FetchPlan
from headrace.machines.consumer.fetch_session import FetchSession
from headrace.machines.consumer.subscription import Key, PartitionState, Subscription
from headrace.machines.machine import Send
from headrace.types.records import TopicPartition
from headrace.wire.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.messages.consumer.fetch import FetchRequest, FetchResponse

TOPIC_ID = UUID(int=7)
SHARE_BYTES = 1000


class Plan:
    """A plan for partitions of topic "t", each with its leader, and the request that was sent last to each broker."""

    def __init__(self, leaders: dict[int, int], topic_id: UUID = TOPIC_ID,
                 jitter: Callable[[], float] = lambda: 0.5, **properties: Any) -> None:
        names = {name.replace("_", "."): value for name, value in properties.items()}
        config = Config(CONSUMER, {"bootstrap.servers": "h:1", **names})
        self.metadata = Metadata([("h", 1)])
        self.subscription = Subscription("", "earliest")
        self.plan = FetchPlan(self.subscription, self.metadata, config, jitter)
        self.looked_at: list[int] = []
        self.topic_id = topic_id
        self.now = 100.0
        self.nodes: tuple[int, ...] = (1, 2, 3)
        self.queued_bytes = 0
        self.lead(leaders)
        self.subscription.assign([TopicPartition("t", partition, 10 * partition) for partition in leaders])

    def lead(self, leaders: dict[int, int]) -> None:
        self.metadata.want_topics(["t"])
        self.metadata.refresh(self.now)
        self.now += 10
        [asked] = self.metadata.poll(self.now)
        self.metadata.on_reply(asked, self.picture(leaders), self.now)

    def picture(self, leaders: dict[int, int]) -> MetadataResponse:
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=node, host="h", port=node) for node in self.nodes],
            topics=[MetadataResponseTopic(name="t", topic_id=self.topic_id, partitions=[
                MetadataResponsePartition(partition_index=partition, leader_id=leader, leader_epoch=4)
                for partition, leader in leaders.items()])])

    def note_looks(self) -> None:
        """Have the partitions that are looked at in `looked_at`."""
        place = self.plan._place

        def placed(key: Key, state: PartitionState, now: float) -> FetchSession | None:
            self.looked_at.append(key[1])
            return place(key, state, now)

        self.plan._place = placed  # type: ignore[method-assign]

    def state(self, partition: int = 0) -> PartitionState:
        return self.subscription.require("t", partition)

    def sends(self) -> list[Send]:
        return list(self.plan.requests(self.now, self.queued_bytes))

    def asked(self) -> dict[int, list[int]]:
        """The partitions that each broker is asked for now."""
        sends = self.sends()
        assert len({send.destination for send in sends}) == len(sends)
        return {send.destination: sorted(partition for _, partition in send.context.partitions) for send in sends}

    def one(self) -> Send:
        (send,) = self.sends()
        return send


def request_of(send: Send) -> FetchRequest:
    assert isinstance(send.request, FetchRequest)
    return send.request


@given(st.dictionaries(st.integers(0, 30), st.integers(1, 3), max_size=12), st.sets(st.integers(0, 30)),
       st.sets(st.integers(0, 30)))
def test_each_leader_is_asked_once_for_exactly_its_partitions_that_are_wanted(
    leaders: dict[int, int], paused: set[int], waiting: set[int]
) -> None:
    made = Plan(leaders)
    made.subscription.set_paused([TopicPartition("t", partition) for partition in paused & leaders.keys()], True)
    for partition in waiting & leaders.keys():
        made.plan.back_off(made.state(partition), made.now)
    wanted: dict[int, list[int]] = {}
    for partition, leader in sorted(leaders.items()):
        if partition not in paused | waiting:
            wanted.setdefault(leader, []).append(partition)
    assert made.asked() == wanted
    assert made.asked() == {}


def test_a_request_says_from_where_how_much_and_how_long() -> None:
    made = Plan({3: 1}, fetch_wait_max_ms=70, fetch_min_bytes=5, fetch_max_bytes=4_000_000, client_rack="r",
                max_partition_fetch_bytes=999, isolation_level="read_uncommitted", socket_timeout_ms=1500)
    send = made.one()
    request = request_of(send)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes, request.rack_id, request.isolation_level) == (
        70, 5, 4_000_000, "r", 0)
    assert send.timeout_s == pytest.approx(1.57)
    [topic] = request.topics
    [part] = topic.partitions
    assert (topic.topic_id, part.partition, part.fetch_offset, part.current_leader_epoch, part.partition_max_bytes) == (
        TOPIC_ID, 3, 30, 4, 999)


@pytest.mark.parametrize(("topic_id", "highest"), [(TOPIC_ID, None), (UUID(int=0), 12)])
def test_a_topic_whose_id_is_not_known_is_asked_for_by_name(topic_id: UUID, highest: int | None) -> None:
    assert Plan({0: 1}, topic_id).one().max_version == highest


def test_a_broker_with_a_request_on_the_wire_is_not_asked_until_it_has_landed() -> None:
    made = Plan({0: 1, 1: 2})
    first, second = made.sends()
    assert made.asked() == {}
    flight = made.plan.landed(second)
    assert list(flight.partitions) == [("t", 1)]
    assert made.asked() == {2: [1]}
    made.plan.landed(first)
    assert made.asked() == {1: [0]}


@pytest.mark.parametrize("change", ["seek", "add", "resume"])
def test_what_comes_to_be_wanted_while_a_broker_holds_a_request_back_is_asked_for_beside_it(change: str) -> None:
    made = Plan({0: 1, 1: 1})
    if change != "seek":
        other = TopicPartition("t", 1, 10)
        made.subscription.remove([other]) if change == "add" else made.subscription.set_paused([other], True)
    held = made.one()
    if change == "seek":
        made.subscription.seek("t", 1, 7)
    elif change == "add":
        made.subscription.add([TopicPartition("t", 1, 7)])
    else:
        made.subscription.set_paused([other], False)
    beside = made.one()
    assert (held.beside, beside.beside) == (False, True)
    [topic] = request_of(beside).topics
    assert [(part.partition, part.fetch_offset) for part in topic.partitions] == [(1, 10 if change == "resume" else 7)]
    assert (request_of(beside).session_id, request_of(beside).session_epoch) == (0, -1)
    assert made.sends() == []  # one of them
    made.plan.landed(held)
    assert sorted(made.one().context.partitions) == [("t", 0), ("t", 1)]  # the session has all again
    made.plan.landed(beside)
    made.plan.look_at(made.state(1))
    assert made.sends() == []


def test_many_partitions_are_asked_for_beside_in_turn_and_none_is_held_back_before_each_had_one() -> None:
    made = Plan(dict.fromkeys(range(120), 1))
    made.one()
    for partition in range(120):
        made.subscription.seek("t", partition, 1)
    turns: list[tuple[list[int], int]] = []
    for _ in range(4):
        beside = made.one()
        turns.append(([partition for _, partition in beside.context.partitions], request_of(beside).max_wait_ms))
        made.plan.landed(beside)
        for _, partition in beside.context.partitions:
            made.plan.look_at(made.state(partition))  # as after any reply
    everyone = list(range(120))
    assert turns == [(everyone[:50], 0), (everyone[50:100], 0), (everyone[100:] + everyone[:30], 50),
                     (everyone[30:80], 50)]


def test_beside_a_request_those_that_got_something_come_last_next_time() -> None:
    made = Plan(dict.fromkeys(range(4), 1))
    made.one()
    for partition in range(4):
        made.subscription.seek("t", partition, 1)
    turns: list[list[int]] = []
    for served in ([0, 1], [2, 3, 0], []):
        beside = made.one()
        turns.append([asked.partition for topic in request_of(beside).topics for asked in topic.partitions])
        made.plan.landed(beside)
        for partition in turns[-1]:
            made.state(partition).fetch_offset += 5 if partition in served else 0
            made.plan.look_at(made.state(partition))  # as after any reply
    assert turns == [[0, 1, 2, 3], [2, 3, 0, 1], [1, 2, 3, 0]]


def test_a_broker_is_not_asked_again_while_all_that_is_wanted_is_asked_for_beside() -> None:
    made = Plan({0: 1})
    held = made.one()
    made.subscription.seek("t", 0, 7)
    beside = made.one()
    made.plan.landed(held)
    assert made.sends() == []
    made.plan.landed(beside)
    assert not made.one().beside


def test_what_is_drained_waits_for_the_request_that_was_sent_without_it_for_that_is_not_held_back() -> None:
    made = Plan({0: 1, 1: 1}, max_partition_fetch_bytes=SHARE_BYTES)
    made.state(1).received_bytes = 8 * SHARE_BYTES
    assert request_of(made.one()).max_wait_ms == 20
    made.state(1).released_bytes = 8 * SHARE_BYTES
    made.plan.drained(made.state(1))
    assert made.sends() == []


def test_what_is_asked_for_beside_keeps_to_the_budget_but_for_one_reply() -> None:
    made = Plan({0: 1, 1: 1, 2: 1}, max_partition_fetch_bytes=1 << 20, queued_max_messages_kbytes=1 << 10)
    made.one()
    for partition in range(3):
        made.subscription.seek("t", partition, 1)
    assert request_of(made.one()).max_bytes == 1 << 20


def test_what_landed_says_under_which_epoch_and_from_where_each_partition_was_asked_for() -> None:
    made = Plan({0: 1})
    send = made.one()
    before = (made.state().epoch, made.state().fetch_offset)
    made.subscription.seek("t", 0, 50)
    [asked] = made.plan.landed(send).partitions.values()
    assert (asked.state, (asked.epoch, asked.fetch_offset)) == (made.state(), before)
    assert asked.state.epoch > asked.epoch


@pytest.mark.parametrize("change", ["seek", "subscribe", "pause", "leader", "touch"])
def test_whatever_changes_is_looked_at_with_the_next_request_and_nothing_else_is(change: str) -> None:
    made = Plan({0: 1})
    made.subscription.set_paused([TopicPartition("t", 0)], True)
    assert made.asked() == {}
    made.state().paused = False  # nobody said so: partitions are not looked at again and again for nothing
    assert made.asked() == {}
    if change == "seek":
        made.subscription.seek("t", 0, 5)
    elif change == "subscribe":
        made.subscription.subscribe(["t"])
    elif change == "pause":
        made.subscription.set_paused([TopicPartition("t", 0)], False)
    elif change == "leader":
        made.lead({0: 1})
    else:
        made.plan.touch()
    assert made.asked() == {1: [0]}


@pytest.mark.parametrize("change", ["seek", "pause", "resume", "assign", "unassign"])
def test_where_one_partition_of_many_is_changed_the_others_are_not_looked_at(change: str) -> None:
    made = Plan(dict.fromkeys(range(1000), 1))
    subscription = made.subscription
    partition = TopicPartition("t", 7, 0)
    if change == "assign":
        subscription.remove([partition])
    elif change == "resume":
        subscription.set_paused([partition], True)
    made.plan.landed(made.one())
    made.note_looks()
    changes: dict[str, Callable[[], None]] = {
        "seek": lambda: subscription.seek("t", 7, 5), "pause": lambda: subscription.set_paused([partition], True),
        "resume": lambda: subscription.set_paused([partition], False),
        "assign": lambda: subscription.add([partition]), "unassign": lambda: subscription.remove([partition])}
    changes[change]()
    send = made.one()
    assert made.looked_at == [7]
    assert (7 in [asked.state.partition for asked in made.plan.landed(send).partitions.values()]) is (
        change in ("seek", "resume", "assign"))


@pytest.mark.parametrize(("jitter", "spread"), [(0.5, 1.0), (0.0, 0.8), (1.0, 1.2)])
def test_a_partition_that_fails_waits_longer_each_time_and_is_asked_for_when_the_deadline_has_come(
    jitter: float, spread: float
) -> None:
    made = Plan({0: 1}, jitter=lambda: jitter, fetch_error_backoff_ms=300)
    waits = []
    for _ in range(5):
        made.plan.landed(made.one())
        made.plan.back_off(made.state(), made.now)
        assert made.asked() == {}
        assert made.plan.deadline is not None
        waits.append(made.plan.deadline - made.now)
        made.now = made.plan.deadline
    assert waits == pytest.approx([spread * wait for wait in (0.05, 0.1, 0.2, 0.3, 0.3)])
    assert made.asked() == {1: [0]}
    assert made.plan.deadline is None


def test_what_fails_together_is_asked_for_together_again_and_nothing_else_is_looked_at() -> None:
    jitters = itertools.count()
    made = Plan(dict.fromkeys(range(1000), 1), jitter=lambda: next(jitters) * 0.618 % 1)
    for failed in (range(10), range(10, 30)):
        made.plan.landed(made.one())
        for partition in failed:
            made.plan.back_off(made.state(partition), made.now)
        made.now += 0.02
    made.one()
    made.note_looks()
    for failed in (range(10), range(10, 30)):
        assert made.asked() == {}
        assert made.plan.deadline is not None
        made.now = made.plan.deadline
        made.looked_at.clear()
        again = made.one()
        assert {partition for _, partition in again.context.partitions} == {*failed}
        assert {*failed} <= {*made.looked_at} <= {*range(30)}
        made.plan.landed(again)
    assert made.plan.deadline is None


@pytest.mark.parametrize("first", [0, 1])
def test_of_several_that_wait_the_first_one_is_the_deadline(first: int) -> None:
    made = Plan({0: 1, 1: 2})
    made.plan.back_off(made.state(first), made.now)
    for _ in range(2):
        made.plan.back_off(made.state(1 - first), made.now)
    made.sends()
    assert made.plan.deadline == made.state(first).retry_at < made.state(1 - first).retry_at


def test_a_partition_that_was_read_as_far_as_it_shall_be_is_left_alone() -> None:
    made = Plan({0: 1})
    made.state().stop_offset = 0
    assert made.asked() == {}
    made.state().stop_offset = 1
    made.plan.touch()
    assert made.asked() == {1: [0]}


# Room in the queue


def test_a_partition_is_left_out_while_its_share_of_the_queue_is_full_and_its_broker_answers_sooner() -> None:
    made = Plan({0: 1, 2: 1, 1: 2}, max_partition_fetch_bytes=SHARE_BYTES, queued_max_messages_kbytes=3)
    made.state(0).received_bytes = 3 * 1024 // 3
    sends = {send.destination: request_of(send) for send in made.sends()}
    assert [part.partition for part in sends[1].topics[0].partitions] == [2]
    assert made.plan.starved
    assert sends[1].max_wait_ms < sends[2].max_wait_ms == 500


def test_a_partition_has_room_again_when_what_it_got_is_taken() -> None:
    made = Plan({0: 1}, max_partition_fetch_bytes=SHARE_BYTES, queued_max_messages_kbytes=1)
    state = made.state()
    state.received_bytes = 1024
    assert made.asked() == {}
    assert made.plan.starved
    state.released_bytes = 1
    made.plan.touch()
    assert made.asked() == {1: [0]}
    assert not made.plan.starved


def test_nothing_is_asked_while_all_partitions_together_have_used_the_budget() -> None:
    made = Plan({0: 1, 1: 2}, queued_max_messages_kbytes=1)
    made.queued_bytes = 1024
    assert made.asked() == {}
    assert made.plan.starved
    made.queued_bytes = 1023
    made.plan.touch()
    assert made.asked() == {1: [0], 2: [1]}


@given(st.integers(1, 50), st.integers(1, 100_000), st.integers(1, 200))
def test_a_partition_may_always_hold_one_reply_and_never_more_than_eight_of_full_size(
    count: int, partition_bytes: int, budget_kb: int
) -> None:
    made = Plan(dict.fromkeys(range(count), 1), max_partition_fetch_bytes=partition_bytes,
                queued_max_messages_kbytes=budget_kb)
    state = made.state()
    state.received_bytes = partition_bytes - 1
    assert 0 in made.asked()[1]
    made = Plan(dict.fromkeys(range(count), 1), max_partition_fetch_bytes=partition_bytes,
                queued_max_messages_kbytes=budget_kb)
    made.state().received_bytes = 8 * partition_bytes
    assert 0 not in made.asked().get(1, [])


def test_a_partition_with_as_many_records_as_are_wanted_is_left_out() -> None:
    made = Plan({0: 1, 1: 1}, queued_min_messages=10)
    made.state(0).received_records, made.state(0).released_records = 15, 5
    made.state(1).received_records, made.state(1).released_records = 15, 6
    assert made.asked() == {1: [1]}


# Leaders and followers


def test_a_partition_whose_leader_is_not_known_is_not_asked_for_but_looked_for() -> None:
    made = Plan({0: 1})
    assert list(made.metadata.poll(made.now)) == []
    made.subscription.add([TopicPartition("t", 9, 0)])
    assert made.asked() == {1: [0]}
    made.now += 10
    [looked_for] = made.metadata.poll(made.now)
    assert isinstance(looked_for.request, MetadataRequest)


def test_a_preferred_follower_is_read_while_its_time_lasts_and_it_is_there() -> None:
    made = Plan({0: 1})
    state = made.state()
    state.replica, state.replica_until = 3, made.now + 10
    send = made.one()
    assert send.destination == 3
    made.plan.landed(send)
    made.now += 10
    assert made.asked() == {1: [0]}
    assert state.replica == -1


def test_a_leader_that_is_not_known_is_looked_for_less_and_less_often_and_soon_again_later() -> None:
    made = Plan({0: 1})
    made.subscription.add([TopicPartition("t", 7, 0), TopicPartition("t", 8, 0)])
    for _ in range(2):
        pauses = []
        for _ in range(6):
            made.sends()
            assert made.metadata.deadline() is not None  # the picture is asked for again
            assert made.plan.deadline is not None
            pauses.append(made.plan.deadline - made.now)
            made.now = made.plan.deadline
            [asked] = made.metadata.poll(made.now + 0.1)
            made.metadata.on_reply(asked, made.picture({0: 1}), made.now)
        assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.5, 0.5])
        made.now += 10


def test_a_partition_whose_leader_turns_up_is_asked_for_at_once_though_it_was_looked_for_less_and_less_often() -> None:
    made = Plan({0: 1})
    made.subscription.add([TopicPartition("t", 7, 0)])
    made.plan.landed(made.one())
    for _ in range(6):
        made.sends()
        assert made.plan.deadline is not None
        made.now = made.plan.deadline
    made.lead({0: 1, 7: 2})
    assert made.asked()[2] == [7]


def test_a_new_picture_has_only_the_partitions_of_topics_that_changed_looked_at_unless_brokers_did() -> None:
    made = Plan(dict.fromkeys(range(1000), 1))
    made.plan.landed(made.one())
    made.note_looks()
    made.metadata.want_topics(["t", "u"])
    [asked] = made.metadata.poll(made.now)
    made.metadata.on_reply(asked, MetadataResponse(
        brokers=made.picture({}).brokers, topics=[MetadataResponseTopic(name="u", topic_id=UUID(int=8))]), made.now)
    made.one()
    assert made.looked_at == []
    made.lead({**dict.fromkeys(range(1000), 1), 7: 2})
    assert 7 in made.asked()[2]
    assert sorted(made.looked_at) == [*range(1000)]
    made.looked_at.clear()
    made.nodes = (1, 2)
    made.lead({**dict.fromkeys(range(1000), 1), 7: 2})
    made.sends()
    assert sorted(made.looked_at) == [*range(1000)]


def test_a_follower_that_is_gone_from_the_cluster_is_left_for_the_leader() -> None:
    made = Plan({0: 1})
    made.state().replica, made.state().replica_until = 8, made.now + 10
    assert made.asked() == {1: [0]}


@given(leaders=st.dictionaries(st.integers(0, 60), st.integers(1, 3), min_size=1, max_size=60),
       steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 100), st.integers(0, 100)), max_size=40),
       budget_kb=st.integers(1, 64))
def test_what_is_queued_and_on_the_wire_stays_within_the_budget_but_for_one_reply_of_each_broker(
    leaders: dict[int, int], steps: list[tuple[int, int, int]], budget_kb: int
) -> None:
    made = Plan(leaders, max_partition_fetch_bytes=SHARE_BYTES, fetch_max_bytes=20_000,
                queued_max_messages_kbytes=budget_kb)
    flying: list[Send] = []

    def most(send: Send) -> int:
        return min(request_of(send).max_bytes, SHARE_BYTES * len(send.context.partitions))

    for which, filled, taken in steps:
        flying += made.sends()
        assert made.queued_bytes + sum(map(most, flying)) <= budget_kb * 1024 + 3 * SHARE_BYTES
        if flying:
            landed = flying.pop(which % len(flying))
            made.plan.landed(landed)
            made.queued_bytes += most(landed) * filled // 100
        made.queued_bytes -= made.queued_bytes * taken // 100
        made.plan.touch()


@pytest.mark.parametrize(("budget_kb", "most"), [(200, 50_000), (40, 40 * 256), (3, 1_000)])
def test_a_broker_is_asked_for_a_full_reply_if_two_of_each_find_room_else_for_less_or_one_partition(
    budget_kb: int, most: int
) -> None:
    made = Plan({partition: 1 + partition % 2 for partition in range(20)}, max_partition_fetch_bytes=SHARE_BYTES,
                fetch_max_bytes=50_000, queued_max_messages_kbytes=budget_kb)
    assert [request_of(send).max_bytes for send in made.sends()] == [most, most]


@pytest.mark.parametrize(("partition_mb", "most_mb"), [(1, 8), (10, 10), (60, 50)])
def test_no_broker_is_asked_for_more_than_8_mb_unless_a_partition_may_bring_more(
    partition_mb: int, most_mb: int
) -> None:
    made = Plan(dict.fromkeys(range(20), 1), max_partition_fetch_bytes=partition_mb << 20)
    assert request_of(made.one()).max_bytes == most_mb << 20
    for partition in range(20):
        made.subscription.seek("t", partition, 1)
    beside = made.one()
    assert beside.beside
    assert request_of(beside).max_bytes <= most_mb << 20


def test_a_broker_is_asked_although_others_may_use_up_the_budget() -> None:
    made = Plan({partition: 1 + partition % 3 for partition in range(90)}, max_partition_fetch_bytes=SHARE_BYTES,
                fetch_max_bytes=50_000, queued_max_messages_kbytes=4)
    assert [request_of(send).max_bytes for send in made.sends()] == [1000, 1000, 1000]
    made.plan.landed(Send(1, FetchRequest(max_wait_ms=0, min_bytes=0), 1))
    made.queued_bytes = 1000
    assert [request_of(send).max_bytes for send in made.sends()] == [SHARE_BYTES]


def test_a_record_alone_is_asked_for_with_the_same_request_until_the_share_of_its_broker_changes() -> None:
    made = Plan(dict.fromkeys(range(40), 1), max_partition_fetch_bytes=SHARE_BYTES,
                fetch_max_bytes=50_000, queued_max_messages_kbytes=40)
    made.plan.landed(made.one()).session.on_reply(FetchResponse(session_id=5))

    def moved() -> Send:
        made.state(0).fetch_offset += 1
        made.plan.look_at(made.state(0))
        send = made.one()
        made.plan.landed(send).session.on_reply(FetchResponse(session_id=5))
        return send

    first = moved()
    assert first.template is not None
    assert request_of(first).max_bytes == 20 * 1024
    assert moved().template is first.template
    made.lead({39: 2})
    made.plan.landed(made.sends()[-1])
    made.plan.touch()
    again = moved()
    assert again.template is not first.template
    assert request_of(again).max_bytes == 10 * 1024


# Many partitions


def test_partitions_to_which_nothing_has_happened_are_not_looked_at() -> None:
    made = Plan(dict.fromkeys(range(3), 1))
    made.plan.landed(made.one()).session.on_reply(FetchResponse(session_id=5))
    made.state(0).paused = True  # nobody said so
    made.state(1).fetch_offset += 7
    made.plan.look_at(made.state(1))
    request = request_of(made.one())
    assert [(part.partition, part.fetch_offset) for topic in request.topics for part in topic.partitions] == [(1, 17)]
    assert request.forgotten_topics_data == []


def test_a_partition_that_was_taken_away_is_not_asked_for_because_of_what_happens_to_it() -> None:
    made = Plan({0: 1, 1: 1})
    gone = made.state(0)
    made.subscription.remove([TopicPartition("t", 0)])
    assert made.asked() == {1: [1]}
    made.plan.landed(Send(1, FetchRequest(max_wait_ms=0, min_bytes=0), 1))
    made.plan.look_at(gone)
    assert made.asked() == {1: [1]}


def test_a_partition_that_moves_to_a_follower_is_forgotten_by_its_leader() -> None:
    made = Plan({0: 1, 1: 1})
    made.plan.landed(made.one()).session.on_reply(FetchResponse(session_id=5))
    made.state(0).replica, made.state(0).replica_until = 2, made.now + 10
    made.plan.look_at(made.state(0))
    requests = {send.destination: request_of(send) for send in made.sends()}
    assert [topic.partitions for topic in requests[1].forgotten_topics_data] == [[0]]
    assert [part.partition for topic in requests[2].topics for part in topic.partitions] == [0]
    assert made.plan.deadline == made.now + 10  # when the leader is asked again


def test_a_partition_that_is_drained_is_asked_for_again_and_no_other_is_looked_at() -> None:
    made = Plan({0: 1, 1: 1}, queued_min_messages=10)
    made.state(0).received_records = made.state(1).received_records = 10
    assert made.asked() == {}
    made.state(0).released_records = made.state(1).released_records = 1
    assert made.plan.drained(made.state(0))  # the plan has to be asked
    assert not made.plan.drained(PartitionState("t", 5))  # it has been told already
    assert made.asked() == {1: [0]}
    assert made.plan.starved


def test_what_is_drained_while_the_queue_is_found_full_is_not_missed() -> None:
    made = Plan({0: 1}, queued_min_messages=10)
    state = made.state()
    state.received_records = 10
    made.asked()
    made.plan.starved = False  # as while the next look is under way
    state.released_records = 5
    assert not made.plan.drained(state)
    made.plan.starved = True
    assert made.plan.missed
    made.plan.again()
    assert made.asked() == {1: [0]}
    assert not made.plan.missed


STEPS = st.lists(st.one_of(
    st.tuples(st.sampled_from(("seek", "pause", "resume", "drop", "add", "lead")), st.integers(0, 7),
              st.integers(1, 3)),
    st.tuples(st.just("land"), st.integers(0, 2), st.dictionaries(st.integers(0, 7), st.integers(1, 900), max_size=4)),
    st.tuples(st.just("drain"), st.integers(0, 7), st.integers(1, 900))), max_size=40)


@example({4: 1}, [("lead", 0, 1), ("seek", 4, 1), ("add", 0, 1), ("land", 2, {}), ("land", 0, {}), ("land", 0, {})],
         False)  # a partition that was late was asked for beside the request that asks for it
@given(st.dictionaries(st.integers(0, 7), st.integers(1, 3), min_size=1), STEPS, st.booleans())
def test_requests_are_those_of_a_plan_that_looks_at_all_partitions_each_time(
    leaders: dict[int, int], steps: list[tuple[str, int, Any]], has_sessions: bool
) -> None:
    plans = [Plan(dict(leaders), max_partition_fetch_bytes=SHARE_BYTES) for _ in range(2)]
    flights: list[dict[int, Send]] = [{}, {}]
    for kind, which, value in steps:
        said = []
        for looks_at_all, made, flying in zip((False, True), plans, flights, strict=True):
            if kind == "land":
                land(made, flying, which, value, has_sessions)
            else:
                happen(made, kind, which, value)
            if looks_at_all:
                made.plan.touch()
            sends = {~send.destination if send.beside else send.destination: send for send in made.sends()}
            flying |= sends
            said.append({node: shown(request_of(send)) for node, send in sends.items()})
        assert said[0] == said[1]


def land(made: Plan, flying: dict[int, Send], which: int, got: dict[int, int], has_sessions: bool) -> None:
    """A broker answers, with so many bytes for some partitions."""
    if not flying:
        return
    send = flying.pop(sorted(flying)[which % len(flying)])
    flight = made.plan.landed(send)
    flight.session.on_reply(FetchResponse(session_id=5 if has_sessions and not send.beside else 0))
    for asked in flight.partitions.values() if send.beside else ():  # it names all of them
        made.plan.look_at(asked.state)
    for partition, size in got.items():
        asked = flight.partitions.get(("t", partition))
        if asked is None:
            continue
        made.plan.look_at(asked.state)
        if asked.epoch == asked.state.epoch:
            asked.state.fetch_offset += size
            asked.state.received_bytes += size


def happen(made: Plan, kind: str, which: int, value: int) -> None:
    """The application does something, or a leader moves."""
    state = made.subscription.get("t", which)
    if kind == "add" and state is None:
        made.subscription.add([TopicPartition("t", which, value)])
    elif kind == "lead":
        made.lead({partition: 1 + (partition + value) % 3 for partition in range(8)})
    elif state is None:
        return
    elif kind == "seek":
        made.subscription.seek("t", which, value)
    elif kind in ("pause", "resume"):
        made.subscription.set_paused([TopicPartition("t", which)], kind == "pause")
    elif kind == "drop":
        made.subscription.remove([TopicPartition("t", which)])
    elif kind == "drain":
        state.released_bytes = min(state.received_bytes, state.released_bytes + value)
        made.plan.drained(state)


def shown(request: FetchRequest) -> tuple[object, ...]:
    """What a request says, whatever the order of its partitions."""
    return (request.session_id, request.session_epoch, request.max_bytes, request.max_wait_ms,
            sorted((part.partition, part.fetch_offset) for topic in request.topics for part in topic.partitions),
            sorted(number for topic in request.forgotten_topics_data for number in topic.partitions))


def test_a_topic_that_is_being_asked_for_has_nothing_else_asked_for() -> None:
    made = Plan({0: 1})
    made.metadata.want_topics(["new"])
    [asking] = made.metadata.poll(made.now)
    made.subscription.assign([TopicPartition("t", 0, 0), TopicPartition("new", 0, 0)])
    assert made.asked() == {1: [0]}
    made.metadata.on_reply(asking, MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node, host="h", port=node) for node in (1, 2, 3)],
        topics=[MetadataResponseTopic(name="new", topic_id=UUID(int=8), partitions=[
            MetadataResponsePartition(partition_index=0, leader_id=2, leader_epoch=0)])]), made.now)
    assert made.asked() == {2: [0]}
    assert list(made.metadata.poll(made.now + 5)) == []


def test_a_partition_that_its_topic_does_not_have_is_asked_for() -> None:
    made = Plan({0: 1})
    made.subscription.assign([TopicPartition("t", 1, 0)])
    assert made.asked() == {}
    [asking] = made.metadata.poll(made.now + 5)
    assert isinstance(asking.request, MetadataRequest)
    assert [topic.name for topic in asking.request.topics or ()] == ["t"]
