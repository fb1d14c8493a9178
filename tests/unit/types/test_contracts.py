"""Data contracts: equal and hashed by what they say."""

from __future__ import annotations

import pytest

from headrace.types.contracts import MetadataProperties, MetadataTags, Rule, RuleParams, RuleSet, SchemaMetadata


def rule(name: str, **given: str) -> Rule:
    return Rule.from_dict({"name": name, **given})


def test_the_order_of_rules_matters_for_equality_and_not_for_the_hash() -> None:
    first, second = RuleSet([], [rule("a"), rule("b")]), RuleSet([], [rule("b"), rule("a")])
    assert first != second
    assert hash(first) == hash(second)


def test_rules_that_differ_are_found_apart() -> None:
    assert len({RuleSet([], [rule("a")]), RuleSet([], [rule("a")]), RuleSet([rule("a", expr="1")], None)}) == 2


def test_parameters_properties_and_tags_are_keys() -> None:
    found = {RuleParams({"a": "1"}): 1, MetadataProperties({"a": "1"}): 2, MetadataTags({"a": ["1"]}): 3}
    assert (found[RuleParams({"a": "1"})], found[MetadataProperties({"a": "1"})], found[MetadataTags({"a": ["1"]})]) \
        == (1, 2, 3)


def test_what_is_written_is_a_copy() -> None:
    metadata = SchemaMetadata(MetadataTags({"a": ["x"]}), MetadataProperties({"p": "q"}), ["p"])
    metadata.to_dict()["properties"]["p"] = "changed"
    metadata.to_dict()["sensitive"].append("more")
    assert metadata.to_dict() == {"tags": {"a": ["x"]}, "properties": {"p": "q"}, "sensitive": ["p"]}


def test_a_rule_of_an_unknown_kind_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="'MAYBE' is not a valid RuleKind"):
        rule("a", kind="MAYBE")


def test_tags_that_are_null_are_kept_and_can_be_keys() -> None:
    tags = MetadataTags.from_dict({"a": None})
    assert tags.to_dict() == {"a": None}
    assert hash(tags) == hash(MetadataTags.from_dict({"a": None}))
