"""Which members of a share group read which partitions: each partition is read, in equal shares, and little moves."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest

from headrace.broker.coordinators.share_assignor import simple

T, U = UUID(int=1), UUID(int=2)
Plan = dict[str, frozenset[tuple[UUID, int]]]


def plan(members: str, count: int, before: Plan | None = None) -> Plan:
    return simple({member: frozenset([T]) for member in members}, before or {}, {T: range(count)})


def sizes(found: Plan) -> list[int]:
    return sorted((len(keys) for keys in found.values()), reverse=True)


@pytest.mark.parametrize(("members", "count", "expected"), [
    ("a", 4, [4]), ("ab", 4, [2, 2]), ("abc", 4, [2, 1, 1]), ("abc", 2, [2, 1, 1]), ("abcde", 3, [2, 1, 1, 1, 1]),
    ("ab", 1, [1, 1]), ("abcd", 2, [1, 1, 1, 1])])
def test_members_have_as_many_partitions_as_with_kafka(members: str, count: int, expected: list[int]) -> None:
    found: Plan = {}
    for joined in range(1, len(members) + 1):
        found = plan(members[:joined], count, found)
    assert sizes(found) == expected
    assert set().union(*found.values()) == {(T, index) for index in range(count)}


@pytest.mark.parametrize("count", range(1, 8))
def test_every_partition_has_readers_and_shares_are_even_as_members_come_and_go(count: int) -> None:
    found: Plan = {}
    for members in ("a", "ab", "abc", "abcd", "abcdefghij", "bdfhj", "bdfhjk", "k", "kl"):
        found = plan(members, count, found)
        assert found.keys() == set(members)
        assert max(sizes(found)) - min(sizes(found)) <= 1
        readers = Counter(key for keys in found.values() for key in keys)
        assert len(readers) == count
        assert max(readers.values()) == -(-len(members) // count)


def test_nothing_moves_where_nothing_changes_and_little_where_one_goes() -> None:
    found = plan("abc", 6)
    assert plan("abc", 6, found) == found
    rest = plan("ab", 6, found)
    assert all(found[member] <= rest[member] for member in "ab")


def test_members_that_read_different_topics_share_each_topic_by_itself() -> None:
    found = simple({"a": frozenset([T]), "b": frozenset([U]), "c": frozenset([T, U])}, {}, {T: range(4), U: range(2)})
    assert {index for topic, index in found["a"] | found["c"] if topic == T} == {0, 1, 2, 3}
    assert Counter(topic for topic, _ in found["c"]) == {T: 2, U: 1}
    assert {topic for topic, _ in found["b"]} == {U}


def test_topics_without_partitions_and_members_without_topics_get_nothing() -> None:
    assert simple({}, {}, {}) == {}
    assert simple({"a": frozenset()}, {}, {}) == {"a": frozenset()}
    assert simple({"a": frozenset([T]), "b": frozenset()}, {}, {T: range(1)}) == {
        "a": frozenset([(T, 0)]), "b": frozenset()}


def test_partitions_that_nobody_wants_are_nobodys() -> None:
    partitions = {T: [0, 1], U: [0]}
    assert simple({"a": frozenset([T])}, {}, partitions) == {"a": {(T, 0), (T, 1)}}
    assert simple({"a": frozenset([T]), "b": frozenset()}, {}, partitions) == {"a": {(T, 0), (T, 1)}, "b": frozenset()}
