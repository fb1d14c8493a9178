"""Assignors: every partition to exactly one reader, evenly, and with as few moves as possible."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ProtocolError
from headrace.machines.cluster.metadata import Cluster, PartitionInfo, TopicInfo
from headrace.machines.groups.assignors import (
    ASSIGNORS,
    NO_RACKS,
    Assignment,
    MemberSubscription,
    Racks,
    assign_cooperative_sticky,
    assign_range,
    assign_round_robin,
    assign_sticky,
    cooperative_user_data,
    racks_of,
    read_assignment,
    read_member,
    sticky_user_data,
    write_assignment,
    write_subscription,
)
from headrace.types.records import NodeAddress

GROUPS = st.builds(
    lambda subscriptions, counts: (
        [MemberSubscription(f"m{i}", frozenset(topics)) for i, topics in enumerate(subscriptions)],
        dict(zip("abc", counts, strict=True)),
    ),
    st.lists(st.sets(st.sampled_from("abc"), min_size=1), min_size=1, max_size=5),
    st.tuples(*[st.integers(0, 7)] * 3),
)


def member(name: str, *topics: str, owned: tuple[tuple[str, int], ...] = (), generation: int = 1) -> MemberSubscription:
    return MemberSubscription(name, frozenset(topics), owned, generation)


def settle(members: list[MemberSubscription], counts: dict[str, int], racks: Racks = NO_RACKS) -> Assignment:
    """Run cooperative rebalances until nothing moves any more, as a group does; members hold what they end up with."""
    for generation in range(1, 10):
        plan = assign_cooperative_sticky(members, counts, racks)
        at_rest = all(set(plan[each.member_id]) == set(each.owned) for each in members)
        for each in members:
            each.owned, each.generation = tuple(plan[each.member_id]), generation
        if at_rest and generation > 1:
            return plan
    raise AssertionError("the group never came to rest")


def test_range_gives_runs_of_neighbours_and_the_first_get_more() -> None:
    plan = assign_range([member("b", "t"), member("a", "t")], {"t": 5})
    assert plan == {"a": [("t", 0), ("t", 1), ("t", 2)], "b": [("t", 3), ("t", 4)]}


def test_round_robin_deals_over_all_topics() -> None:
    plan = assign_round_robin([member("a", "t", "u"), member("b", "t", "u")], {"t": 3, "u": 3})
    assert plan == {"a": [("t", 0), ("t", 2), ("u", 1)], "b": [("t", 1), ("u", 0), ("u", 2)]}


def test_round_robin_skips_members_that_do_not_read_a_topic() -> None:
    plan = assign_round_robin([member("a", "t"), member("b", "u")], {"t": 2, "u": 2})
    assert plan == {"a": [("t", 0), ("t", 1)], "b": [("u", 0), ("u", 1)]}


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@settings(max_examples=80)
@given(group=GROUPS)
def test_every_partition_has_exactly_one_reader_that_wants_it(
    name: str, group: tuple[list[MemberSubscription], dict[str, int]]
) -> None:
    members, counts = group
    plan = ASSIGNORS[name].plan(members, counts, {})
    given = Counter(key for keys in plan.values() for key in keys)
    wanted = {topic for m in members for topic in m.topics}
    assert set(plan) == {m.member_id for m in members}
    assert given == Counter((t, p) for t in wanted for p in range(counts[t]))
    topics = {m.member_id: m.topics for m in members}
    assert all(topic in topics[who] for who, keys in plan.items() for topic, _ in keys)


@settings(max_examples=80)
@given(group=GROUPS)
def test_the_sticky_plan_comes_to_rest_and_is_balanced_where_all_read_the_same(
    group: tuple[list[MemberSubscription], dict[str, int]]
) -> None:
    members, counts = group
    members = [MemberSubscription(m.member_id, frozenset("abc")) for m in members]
    sizes = [len(keys) for keys in settle(members, counts).values()]
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == sum(counts.values())


def test_a_new_member_gets_only_what_others_have_given_up() -> None:
    everything = tuple(("t", p) for p in range(4))
    plan = assign_cooperative_sticky([member("a", "t", owned=everything), member("b", "t")], {"t": 4})
    assert len(plan["a"]) == 2
    assert plan["b"] == []
    plan = assign_cooperative_sticky([member("a", "t", owned=tuple(plan["a"])), member("b", "t")], {"t": 4})
    assert len(plan["a"]) == len(plan["b"]) == 2


@settings(max_examples=80)
@given(count=st.integers(2, 6), partitions=st.integers(0, 30))
def test_a_member_that_comes_takes_and_one_that_goes_leaves_no_more_than_its_share(count: int, partitions: int) -> None:
    counts = {"t": partitions, "u": 3}
    members = [member(f"m{i}", "t", "u") for i in range(count)]
    plans = {}
    for members_now in (members[1:], members, members[:-1]):
        for each in members_now:
            each.owned = tuple(plans.get(each.member_id, ()))
        after = assign_sticky(members_now, counts)
        for each in members_now:
            if plans:
                had, has = set(plans.get(each.member_id, ())), set(after[each.member_id])
                assert has <= had or had <= has, "it got another's, and gave up its own"
        plans = after


def test_members_keep_what_they_hold_when_one_leaves() -> None:
    a, b = (("t", 0), ("t", 1)), (("t", 2), ("t", 3))
    plan = assign_cooperative_sticky([member("a", "t", owned=a), member("b", "t", owned=b)], {"t": 6})
    assert set(a) <= set(plan["a"])
    assert set(b) <= set(plan["b"])


def test_of_two_owners_the_newer_generation_is_right_and_of_one_generation_neither() -> None:
    old, new = member("old", "t", owned=(("t", 0),), generation=1), member("new", "t", owned=(("t", 0),), generation=2)
    assert ("t", 0) in assign_cooperative_sticky([old, new], {"t": 1})["new"]
    new.generation = 1
    plan = assign_cooperative_sticky([old, new], {"t": 1})
    assert sorted(len(keys) for keys in plan.values()) == [0, 1]


def test_the_sticky_plan_gives_a_new_member_its_share_at_once_and_moves_no_more_than_that() -> None:
    everything = tuple(("t", p) for p in range(4))
    plan = assign_sticky([member("a", "t", owned=everything), member("b", "t")], {"t": 4})
    assert (set(plan["a"]) < set(everything), len(plan["a"]), len(plan["b"])) == (True, 2, 2)
    members = [member(name, "t", owned=tuple(keys)) for name, keys in plan.items()]
    assert {name: set(keys) for name, keys in assign_sticky(members, {"t": 4}).items()} == {
        name: set(keys) for name, keys in plan.items()}
    again = assign_sticky([*members, member("c", "t")], {"t": 6})
    assert all(set(keys) <= set(again[name]) for name, keys in plan.items())
    assert len(again["c"]) == 2


def test_a_static_member_keeps_its_place_whatever_its_member_id() -> None:
    first = MemberSubscription("zz", frozenset("t"), instance_id="1")
    plan = assign_range([member("a", "t"), first], {"t": 3})
    assert plan["zz"] == [("t", 0), ("t", 1)]


def in_racks(**racks: str) -> list[MemberSubscription]:
    return [MemberSubscription(name, frozenset("tu"), rack=rack or None) for name, rack in racks.items()]


@pytest.mark.parametrize("name", ["range", "cooperative-sticky"])
def test_members_get_partitions_with_a_replica_in_their_rack(name: str) -> None:
    members = in_racks(a="east", b="west", c="north")
    racks = {("t", p): frozenset({("west", "north", "east")[p % 3]}) for p in range(6)}
    plan = ASSIGNORS[name].plan(members, {"t": 6}, racks)
    assert {who: [p for _, p in keys] for who, keys in plan.items()} == {"a": [2, 5], "b": [0, 3], "c": [1, 4]}


@pytest.mark.parametrize("order", list(itertools.permutations("abc")), ids="".join)
def test_whoever_joins_first_all_end_up_near_what_they_read(order: tuple[str, ...]) -> None:
    racks = {("t", p): frozenset({("north", "east", "west")[p]}) for p in range(3)}
    of, members = {each.member_id: each for each in in_racks(a="east", b="west", c="north")}, []
    for name in order:
        members.append(of[name])
        plan = settle(members, {"t": 3}, racks)
    assert plan == {"a": [("t", 1)], "b": [("t", 2)], "c": [("t", 0)]}


@settings(max_examples=200)
@given(count=st.integers(0, 9), of=st.lists(st.sampled_from(["", "east", "west", "north"]), min_size=1, max_size=5),
       where=st.lists(st.frozensets(st.sampled_from(["east", "west", "north"]), max_size=2), min_size=9, max_size=9))
def test_a_group_in_racks_comes_to_rest_evenly_and_no_exchange_of_two_brings_more_of_them_near(
    count: int, of: list[str], where: list[frozenset[str]]
) -> None:
    """Members join one by one; of what they hold in the end nothing moves, and a leader of `sticky` moves none."""
    counts, racks = {"t": count}, {("t", p): where[p] for p in range(count)}
    everybody = in_racks(**{f"m{number}": rack for number, rack in enumerate(of)})
    for number in range(len(everybody)):
        plan = settle(everybody[:number + 1], counts, racks)
    assert {who: set(keys) for who, keys in plan.items()} == {
        who: set(keys) for who, keys in assign_sticky(everybody, counts, racks).items()}
    sizes = [len(keys) for keys in plan.values()]
    assert max(sizes) - min(sizes) <= 1

    rack_of = {each.member_id: each.rack for each in everybody}

    def near(key: tuple[str, int] | None, member_id: str) -> int:
        return key is not None and rack_of[member_id] in racks[key]

    for one, other in itertools.permutations(plan, 2):
        less = [None] if len(plan[other]) < len(plan[one]) else []
        for there, back in itertools.product(plan[one], [*plan[other], *less]):
            assert near(there, other) + near(back, one) <= near(there, one) + near(back, other), (plan, there, back)


@pytest.mark.parametrize("name", ["range", "cooperative-sticky"])
def test_where_a_rack_has_too_many_the_rest_goes_to_others(name: str) -> None:
    members = in_racks(a="east", b="west")
    plan = ASSIGNORS[name].plan(members, {"t": 5}, {("t", p): frozenset({"west"}) for p in range(4)})
    assert sorted(len(keys) for keys in plan.values()) == [2, 3]
    assert {p for _, p in plan["b"]} < {0, 1, 2, 3}


def test_range_deals_topics_alike_also_by_rack() -> None:
    racks = {("t", 0): frozenset({"west"}), ("t", 1): frozenset({"east"}),
             ("u", 0): frozenset({"west", "east"}), ("u", 1): frozenset({"east"})}
    plan = assign_range(in_racks(a="east", b="west"), {"t": 2, "u": 2}, racks)
    assert {who: sorted(keys) for who, keys in plan.items()} == {
        "a": [("t", 1), ("u", 1)], "b": [("t", 0), ("u", 0)]}


@pytest.mark.parametrize("racks", [{}, {("t", p): frozenset({"east", "west"}) for p in range(4)}])
def test_without_a_difference_between_racks_range_deals_as_without_racks(racks: Racks) -> None:
    members = in_racks(a="", b="east", c="west")
    assert assign_range(members, {"t": 4}, racks) == assign_range(members, {"t": 4})


@settings(max_examples=100)
@given(group=GROUPS, of=st.lists(st.sampled_from(["", "east", "west"]), min_size=5, max_size=5),
       where=st.lists(st.frozensets(st.sampled_from(["east", "west", "north"])), min_size=21, max_size=21))
@pytest.mark.parametrize("name", ["range", "cooperative-sticky"])
def test_by_rack_each_partition_has_one_reader_and_no_plan_is_less_even(
    name: str, group: tuple[list[MemberSubscription], dict[str, int]], of: list[str], where: list[frozenset[str]]
) -> None:
    members, counts = group
    for each, rack in zip(members, of, strict=False):
        each.rack = rack or None
    racks = {(topic, p): where[7 * number + p] for number, topic in enumerate("abc") for p in range(counts[topic])}
    plain, plan = ASSIGNORS[name].plan(members, counts, {}), ASSIGNORS[name].plan(members, counts, racks)
    assert Counter(key for keys in plan.values() for key in keys) == Counter(
        key for keys in plain.values() for key in keys)
    assert all(topic in each.topics for each in members for topic, _ in plan[each.member_id])
    for topics in [[topic] for topic in "abc"] if name == "range" else [list("abc")]:
        sizes = [sum(topic in topics for topic, _ in plan[m.member_id]) for m in members if m.topics >= {*topics}]
        if len(sizes) == len(members) or name == "range":
            assert max(sizes, default=0) - min(sizes, default=0) <= 1


def test_a_subscription_survives_its_bytes() -> None:
    data = write_subscription(["u", "t"], [("t", 1), ("t", 0)], 7, "rack-1")
    read = read_member("m", "static", data)
    assert read == MemberSubscription("m", frozenset({"t", "u"}), (("t", 0), ("t", 1)), 7, "static", "rack-1")


def test_a_subscription_of_an_old_client_is_read() -> None:
    data = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\xff\xff\xff\xff"
    assert read_member("m", None, data) == MemberSubscription("m", frozenset({"t"}))


def test_what_a_sticky_member_had_survives_its_bytes() -> None:
    data = write_subscription(["t"], (), 8, None, sticky_user_data([("t", 1), ("u", 0)], 7))
    read = read_member("m", None, data, remembers=True)
    assert read == MemberSubscription("m", frozenset("t"), (("t", 1), ("u", 0)), 7)
    assert read_member("m", None, data) == MemberSubscription("m", frozenset("t"), (), 8)


def test_a_generation_in_user_data_counts_only_where_the_subscription_has_none() -> None:
    for generation, read in ((-1, 7), (8, 8)):
        data = write_subscription(["t"], (), generation, None, cooperative_user_data(7))
        assert read_member("m", None, data).generation == read


def test_of_topics_that_the_leader_does_not_know_yet_no_racks_are_known() -> None:
    partition = PartitionInfo(1, replicas=[1, 2, 3])
    cluster = Cluster({n: NodeAddress(n, "h", n, rack) for n, rack in ((1, "east"), (2, None))},
                      topics={"t": TopicInfo("t", partitions={0: partition})})
    assert racks_of(cluster, in_racks(a="west", b=""), ["t", "u"]) == {("t", 0): {"east"}}
    assert racks_of(cluster, in_racks(a="", b=""), ["t", "u"]) == NO_RACKS


@pytest.mark.parametrize(("user_data", "owned", "generation"), [
    (b"\0\0\0\1" b"\0\1t" b"\0\0\0\1\0\0\0\2", (("t", 2),), -1),
    (b"\0\0\0\1" b"\0\1t" b"\0\0\0\1\0\0\0\2" b"\0\0\0\5", (("t", 2),), 5),
    (b"", (), -1),
    (b"\0\0\0\5", (), -1),
    (b"\x7f\xff\xff\xff", (), -1),
], ids=["v0", "v1", "none", "of a cooperative assignor", "damaged"])
def test_user_data_of_other_sticky_members_is_read_in_both_versions_and_else_says_nothing(
    user_data: bytes, owned: tuple[tuple[str, int], ...], generation: int
) -> None:
    data = write_subscription(["t"], [("t", 9)], 8, None, user_data)
    assert read_member("m", None, data, remembers=True) == MemberSubscription(
        "m", frozenset("t"), owned, generation)


def test_an_assignment_survives_its_bytes_and_an_empty_one_is_nothing() -> None:
    keys = [("t", 0), ("t", 3), ("u", 1)]
    assert read_assignment(write_assignment(keys)) == keys
    assert read_assignment(b"") == []


@pytest.mark.parametrize("data", [b"\0", b"\xff\xff\0\0\0\0", b"\0\1\0\0\0\7", b"\0\0\x7f\xff\xff\xff"])
def test_damaged_bytes_are_a_protocol_error(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_assignment(data)
    with pytest.raises(ProtocolError):
        read_member("m", None, data)
