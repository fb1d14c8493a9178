"""Checks of pairs that depend on each other."""

import itertools

import pytest

from headrace.schemas import pairwise
from headrace.schemas.pairwise import Check, Found, Place, checked
from headrace.schemas.parsed import Incompatibility, InvalidSchemaError


class Node:
    def __init__(self, name: str) -> None:
        self.name = name
        self.next: list[Node] = []


def found(name: str) -> Found:
    return {Incompatibility("BAD", name, "/", name): None}


def test_each_pair_is_checked_once_and_circles_end() -> None:
    seen: list[str] = []
    one, two = Node("one"), Node("two")
    one.next, two.next = [two, two, one], [one]

    def check(first: Node, second: Node, place: Place) -> Check:
        seen.append(first.name)
        said: Found = {}
        for each in first.next:
            said |= yield each, second, (*place, each.name)
        return said | found(first.name)

    assert [each.message for each in checked(check, one, Node("other"))] == ["two", "one"]
    assert seen == ["one", "two"]


def test_what_was_found_of_a_pair_is_found_wherever_it_stands() -> None:
    leaf, other, said = Node("leaf"), Node("other"), []

    def check(first: Node, second: Node, place: Place) -> Check:
        if first is leaf:
            return found("leaf")
        said.append((yield leaf, second, place))
        said.append((yield leaf, second, (*place, "again")))
        return {}

    assert checked(check, Node("root"), other) == []
    assert said == [found("leaf")] * 2


def test_long_chains_need_no_stack() -> None:
    nodes = [Node(str(n)) for n in range(20_000)]
    for before, after in itertools.pairwise(nodes):
        before.next = [after]

    def check(first: Node, second: Node, place: Place) -> Check:
        said: Found = {}
        for each in first.next:
            said |= yield each, second, place
        return said if first.next else found("the last")

    assert len(checked(check, nodes[0], nodes[0])) == 1


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise, "MAX_PAIRS", 10)

    def check(first: Node, second: Node, place: Place) -> Check:
        return (yield Node("another"), second, place)

    with pytest.raises(InvalidSchemaError, match="more than 10 pairs"):
        checked(check, Node("first"), Node("other"))
