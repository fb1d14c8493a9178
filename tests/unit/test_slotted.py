"""Small classes of named fields: what `dataclasses` would have made of them."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import pytest

from headrace.slotted import Late, LateInDict, field, hashed_by, late, later, replace, slotted, source_of
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
    assert Box.__dictoffset__ == 0  # a value has no room for a dict: that of `vars()` is made when it is asked for


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


def test_who_looks_into_the_dict_of_a_value_finds_a_copy_of_its_fields() -> None:
    box = Box(1, inside=["a"])
    assert vars(box) == {"width": 1, "height": 2, "inside": ["a"]}
    vars(box)["width"] = 5
    box.height = 7
    assert (box.width, vars(box)["height"]) == (1, 7)
    assert (vars(Point(3)), vars(Nothing())) == ({"x": 3, "y": 0}, {})
    assert [copied(box) == box for copied in (copy.copy, copy.deepcopy)] == [True, True]


def test_a_value_that_can_be_changed_may_be_a_key_by_some_of_its_fields() -> None:
    @hashed_by("name")
    @slotted()
    class Entry:
        name: str
        value: int = 0

    entries = {Entry("a"), Entry("a"), Entry("a", 1), Entry("b")}
    assert sorted((each.name, each.value) for each in entries) == [("a", 0), ("a", 1), ("b", 0)]


@slotted()
class Shelf(Late):
    name: str
    boxes: list[str] = field(default_factory=list)
    weight: int = 0


@slotted(frozen=True)
class Fixed(Late):
    name: str
    boxes: tuple[str, ...] = ()


@dataclass
class Room(LateInDict):
    name: str
    shelves: list[str]
    door: int | None = None


MADE: list[object] = []


def split(source: str) -> list[str]:
    MADE.append(source)
    return source.split()


def measured(source: str) -> int:
    return len(source)


MAKERS: dict[str, Callable[[str], Any]] = {"boxes": split, "weight": measured, "shelves": split}


@pytest.fixture
def shelf() -> Shelf:
    MADE.clear()
    made = Shelf.__new__(Shelf)
    made.name = "s"
    later(made, MAKERS, "a b")
    return made


def test_a_late_field_is_made_once_and_when_somebody_asks_for_it(shelf: Shelf) -> None:
    assert (shelf.name, MADE) == ("s", [])
    first = shelf.boxes
    assert first is shelf.boxes
    assert (first, MADE, shelf.weight) == (["a", "b"], ["a b"], 3)
    assert (source_of(shelf), source_of(Shelf("t"))) == ("a b", None)


def test_a_late_field_that_was_set_is_not_made(shelf: Shelf) -> None:
    shelf.boxes = ["mine"]
    assert (shelf.boxes, shelf.weight, MADE) == (["mine"], 3, [])


def test_values_with_late_fields_are_as_those_without(shelf: Shelf) -> None:
    assert copy.deepcopy(shelf) == shelf == Shelf("s", ["a", "b"], 3) == pickle.loads(pickle.dumps(shelf))
    assert repr(shelf) == "Shelf(name='s', boxes=['a', 'b'], weight=3)"
    for value in (shelf, Shelf("t"), Shelf.__new__(Shelf)):
        assert not hasattr(value, "colour")
    with pytest.raises(AttributeError, match="'Shelf' object has no attribute 'colour'"):
        shelf.colour  # type: ignore[attr-defined]  # noqa: B018


def test_frozen_values_may_have_late_fields() -> None:
    made = late(Fixed, {"boxes": lambda source: tuple(source.split())}, "a b", name="f")
    with pytest.raises(AttributeError, match="frozen"):
        made.boxes = ()  # type: ignore[misc]
    assert made == Fixed("f", ("a", "b"))
    assert {made: 1}[Fixed("f", ("a", "b"))] == 1
    assert replace(made, name="g") == Fixed("g", ("a", "b"))


def test_who_looks_into_the_dict_of_a_value_finds_its_late_fields() -> None:
    def room() -> Room:
        return late(Room, MAKERS, "x y", name="r", weight=0, boxes=[])

    assert vars(room()) == {"name": "r", "weight": 0, "boxes": [], "shelves": ["x", "y"]}
    assert room() == Room("r", ["x", "y"]) == copy.copy(room()) == pickle.loads(pickle.dumps(room()))
    assert asdict(room()) == {"name": "r", "shelves": ["x", "y"], "door": None}
    marked = room()
    marked.mark = 1  # type: ignore[attr-defined]
    assert copy.copy(marked).mark == 1  # type: ignore[attr-defined]
    assert vars(Room("r", [])) == {"name": "r", "shelves": [], "door": None}


def test_threads_that_ask_at_once_get_the_same_value() -> None:
    both = threading.Barrier(2)
    found: list[list[str]] = []

    def slow(source: str) -> list[str]:
        time.sleep(0.05)
        return [source]

    made = late(Shelf, {"boxes": slow}, "a", name="s", weight=1)

    def ask() -> None:
        both.wait(30)
        found.append(made.boxes)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found[0] is found[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_that_was_forked_while_a_field_was_made_makes_its_own() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(source: str) -> list[str]:
        begun.set()
        go_on.wait(30)
        return []

    thread = threading.Thread(target=lambda: late(Shelf, {"boxes": slow}, "a").boxes)
    thread.start()
    begun.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        os._exit(len(late(Shelf, MAKERS, "a b").boxes))
    go_on.set()
    thread.join(30)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
