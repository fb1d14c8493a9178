"""Who shall have which partition: everything has one reader, loads are level, and nothing moves without need."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from headrace.broker.coordinators.target_assignors import ASSIGNORS, TopicIndex, Wish, by_topic

TOPICS = [UUID(int=number) for number in range(1, 5)]
Members = dict[str, tuple[frozenset[UUID], frozenset[TopicIndex]]]


def wishes(members: Members) -> dict[str, Wish]:
    return {member: Wish(topics, owned, member) for member, (topics, owned) in members.items()}


def drawn(chance: random.Random) -> tuple[Members, dict[UUID, int]]:
    counts = {topic: chance.randint(0, 7) for topic in chance.sample(TOPICS, chance.randint(1, 4))}
    members: Members = {}
    for number in range(chance.randint(1, 5)):
        read = frozenset(chance.sample(TOPICS, chance.randint(1, 4)))
        owned = frozenset((topic, chance.randint(0, 8)) for topic in TOPICS if chance.random() < 0.5)
        members[f"m{number}"] = (read, owned)
    return members, counts


@pytest.mark.parametrize("name", ASSIGNORS)
def test_each_partition_that_somebody_reads_has_one_reader_and_others_have_none(name: str) -> None:
    chance = random.Random(5)
    for _ in range(300):
        members, counts = drawn(chance)
        plan = ASSIGNORS[name](wishes(members), counts)
        given = [key for keys in plan.values() for key in keys]
        read = frozenset[UUID]().union(*(topics for topics, _ in members.values()))
        assert sorted(given) == sorted((topic, index) for topic, count in counts.items() if topic in read
                                       for index in range(count))
        assert all(key[0] in members[member][0] for member, keys in plan.items() for key in keys)


def test_uniform_gives_members_of_the_same_topics_the_same_number() -> None:
    chance = random.Random(6)
    for _ in range(300):
        members, counts = drawn(chance)
        everything = {member: (frozenset(TOPICS), owned) for member, (_, owned) in members.items()}
        sizes = [len(keys) for keys in ASSIGNORS["uniform"](wishes(everything), counts).values()]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("members", "moved"), [(3, 0), (2, 0), (4, 3)])
def test_uniform_moves_only_what_a_member_that_comes_is_to_have(members: int, moved: int) -> None:
    counts = {TOPICS[0]: 12}
    before = ASSIGNORS["uniform"](wishes({f"m{n}": (frozenset(TOPICS), frozenset()) for n in range(3)}), counts)
    after = ASSIGNORS["uniform"](wishes({f"m{n}": (frozenset(TOPICS), before.get(f"m{n}", frozenset()))
                                         for n in range(members)}), counts)
    assert sum(len(before[member] - after[member]) for member in before if member in after) == moved
    assert len({len(keys) for keys in after.values()}) == 1


def test_range_gives_neighbours_in_the_order_of_names_the_first_ones_more() -> None:
    topics = frozenset(TOPICS[:2])
    plan = ASSIGNORS["range"](
        {"x": Wish(topics, frozenset(), "b"), "y": Wish(topics, frozenset(), "a"),
         "z": Wish(frozenset(TOPICS[:1]), frozenset(), "c")}, {TOPICS[0]: 5, TOPICS[1]: 3})
    assert {member: by_topic(keys) for member, keys in plan.items()} == {
        "y": [(TOPICS[0], [0, 1]), (TOPICS[1], [0, 1])],
        "x": [(TOPICS[0], [2, 3]), (TOPICS[1], [2])],
        "z": [(TOPICS[0], [4])]}


def test_range_keeps_the_place_of_a_static_member_that_comes_back_under_another_id() -> None:
    def planned(member_id: str) -> frozenset[TopicIndex]:
        reads = frozenset(TOPICS[:1])
        return ASSIGNORS["range"]({member_id: Wish(reads, frozenset(), "i1"), "other": Wish(reads, frozenset(), "i2")},
                                  {TOPICS[0]: 6})[member_id]

    assert planned("zzz") == planned("old") == {(TOPICS[0], 0), (TOPICS[0], 1), (TOPICS[0], 2)}
