"""What a class says of one field of a message."""

from __future__ import annotations

from headrace.wire.field import ALL, NO_END, UNSET, bounds, field


def test_equal_fields_are_one_object_and_unequal_defaults_are_not() -> None:
    assert field("3+", default=-1) is field("3+", default=-1)
    kinds = [field(), field(default=0), field(default=0.0), field(default=False), field(default=""), field("1+")]
    assert len({id(kind) for kind in kinds}) == len(kinds)
    assert [type(kind.default) for kind in kinds[1:4]] == [int, float, bool]


def test_a_field_is_in_every_version_and_has_no_default_unless_it_says_so() -> None:
    plain = field()
    assert (plain.versions, plain.default, plain.nullable, plain.tag, plain.tagged, plain.ignorable) == (
        ALL, UNSET, "", None, "", False)
    said = field("3+", default="x", nullable="4+", tag=2, tagged="9+", ignorable=True)
    assert (said.versions, said.default, said.nullable, said.tag, said.tagged, said.ignorable) == (
        "3+", "x", "4+", 2, "9+", True)


def test_fields_that_differ_in_one_word_are_two_objects() -> None:
    kinds = [field(), field("1+"), field(nullable="1+"), field(tag=0), field(tag=1), field(tag=1, tagged="2+"),
             field(ignorable=True), field(default=None)]
    assert len({id(kind) for kind in kinds}) == len(kinds)


def test_the_bounds_of_a_range_are_both_inside() -> None:
    assert [bounds(text) for text in ("0-13", "7", "3+", ALL)] == [(0, 13), (7, 7), (3, NO_END), (0, NO_END)]
