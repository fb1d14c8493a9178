"""Values that JSON objects describe: a table says how."""

from __future__ import annotations

from typing import ClassVar

from headrace.slotted import slotted
from headrace.types.json_values import FromJson, Json, objects_of


@slotted()
class Leaf(FromJson):
    size: int | None

    JSON: ClassVar[tuple[Json, ...]] = (Json("size", "sizeInBytes", absent=1),)


@slotted()
class Tree(FromJson):
    leaves: list[Leaf] | None

    JSON: ClassVar[tuple[Json, ...]] = (objects_of(Leaf, "leaves", "leaves"),)


def test_a_key_that_is_missing_has_the_value_that_json_means_and_null_is_none() -> None:
    assert (Leaf.from_dict({}).size, Leaf.from_dict({"sizeInBytes": None}).size) == (1, None)


def test_none_is_not_written() -> None:
    assert (Leaf(None).to_dict(), Leaf(3).to_dict(), Tree(None).to_dict()) == ({}, {"sizeInBytes": 3}, {})


def test_values_hold_others() -> None:
    given = {"leaves": [{"sizeInBytes": 2}, {"sizeInBytes": 3}]}
    assert Tree.from_dict(given) == Tree([Leaf(2), Leaf(3)])
    assert Tree.from_dict(given).to_dict() == given
