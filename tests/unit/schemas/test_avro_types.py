"""Types of Avro as values: names, and identity."""

from headrace.schemas.avro_types import ABSENT, AvroField, AvroType


def test_a_full_name_has_a_namespace_and_a_short_name() -> None:
    named, bare, unnamed = AvroType("record", "a.b.R"), AvroType("fixed", "F"), AvroType("array")
    assert [(each.namespace, each.short_name) for each in (named, bare, unnamed)] == [
        ("a.b", "R"), ("", "F"), ("", "array")]


def test_types_are_equal_to_themselves_alone() -> None:
    first, second = AvroType("int"), AvroType("int")
    assert first == first
    assert first != second
    assert len({first, second}) == 2


def test_no_default_is_another_one_than_null() -> None:
    assert AvroField("a", AvroType("null")).default is ABSENT
    assert AvroField("a", AvroType("null"), None).default is None
