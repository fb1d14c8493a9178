"""Small classes of named fields: what `dataclasses` would have made of them."""

from __future__ import annotations

import copy
import pickle
from typing import ClassVar

import pytest

from headrace.slotted import field, hashed_by, replace, slotted
from headrace.types.records import NodeAddress, RecordMetadata, ThrottleEvent, Uuid


@slotted()
class Box:
    kind: ClassVar[str] = "box"

    width: int
    height: int = 2
    inside: list[str] = field(default_factory=list)

    def area(self) -> int:
        return self.width * self.height


@slotted(frozen=True)
class Point:
    x: int
    y: int = 0


@slotted()
class Nothing:
    pass


@slotted(eq=False)
class Token:
    name: str


def test_fields_are_the_arguments_in_order_and_by_name() -> None:
    assert (Box(3).area(), Box(3, 4).area(), Box(height=5, width=1).area(), Box.kind) == (6, 12, 5, "box")
    for _ in range(2):  # the first value compiles what later ones use
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'width'"):
            Box()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
            Box(1, depth=1)  # type: ignore[call-arg]


def test_a_default_that_is_made_belongs_to_one_value() -> None:
    first, second = Box(1), Box(1)
    first.inside.append("cat")
    assert second.inside == []


def test_there_are_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        Box(1).depth = 3  # type: ignore[attr-defined]
    assert not hasattr(Box(1), "__dict__")


def test_values_are_equal_by_their_fields_and_shown_with_them() -> None:
    assert Box(1) == Box(1, 2, [])
    assert Box(1) != Box(2)
    assert Box(1) != Point(1)
    assert repr(Box(1)).endswith("Box(width=1, height=2, inside=[])")
    assert Nothing() == Nothing()
    with pytest.raises(TypeError, match="unhashable"):
        hash(Box(1))


def test_without_eq_each_is_its_own() -> None:
    token = Token("a")
    assert token != Token("a")
    assert len({token, Token("a")}) == 2


def test_frozen_values_cannot_change_and_are_keys() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="Point is frozen: x cannot be set"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del point.x
    assert {Point(1): "a"}[point] == "a"
    assert replace(point, y=5) == Point(1, 5)


def test_values_can_be_matched_copied_and_pickled() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)
    box = Box(1, 2, ["cat"])
    deep = copy.deepcopy(box)
    assert deep == box == copy.copy(box) == pickle.loads(pickle.dumps(box))
    assert deep.inside is not box.inside
    assert pickle.loads(pickle.dumps(Point(1))) == Point(1)


@pytest.mark.parametrize("shared", [
    RecordMetadata("t", 1, headers=[("a", b"b")]), ThrottleEvent("b", 1, 0.5), Uuid(1, 2), NodeAddress(1, "h", 9092)])
def test_the_public_ones_are_such_values(shared: object) -> None:
    assert pickle.loads(pickle.dumps(shared)) == shared
    if not isinstance(shared, NodeAddress):
        assert hash(shared) == hash(copy.copy(shared))


def test_a_value_that_can_be_changed_may_be_a_key_by_some_of_its_fields() -> None:
    @hashed_by("name")
    @slotted()
    class Entry:
        name: str
        value: int = 0

    entries = {Entry("a"), Entry("a"), Entry("a", 1), Entry("b")}
    assert sorted((each.name, each.value) for each in entries) == [("a", 0), ("a", 1), ("b", 0)]
