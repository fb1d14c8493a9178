"""Schemas that refer to others come behind what they refer to, each once."""

from collections.abc import Mapping
from typing import Any

import pytest

from headrace.schemas.parsed import InvalidSchemaError
from headrace.schemas.parsing import parse
from headrace.schemas.references import KeptSchema, in_order


def to(*subjects: str) -> list[Mapping[str, Any]]:
    return [{"name": f"{subject}.name", "subject": subject} for subject in subjects]


def names(graph: Mapping[str, list[Mapping[str, Any]]], *roots: str) -> list[str]:
    def find(each: Mapping[str, Any]) -> KeptSchema:
        return KeptSchema(each["subject"], f"text of {each['subject']}", graph.get(each["subject"], []))

    return [each.name.removesuffix(".name") for each in in_order(to(*roots), find)]


def test_each_comes_behind_those_that_it_refers_to() -> None:
    assert names({"a": to("b", "c"), "b": to("d"), "c": to("d")}, "a") == ["d", "b", "c", "a"]
    assert names({}, "b", "a") == ["b", "a"]


def test_circles_end() -> None:
    assert sorted(names({"a": to("b"), "b": to("a")}, "a")) == ["a", "b"]
    assert names({"a": to("a")}, "a") == ["a"]


def test_long_chains_need_no_stack_and_too_long_ones_are_refused() -> None:
    chain = {str(n): to(str(n + 1)) for n in range(2000)}
    assert names(chain, "1001")[0] == "2000"
    with pytest.raises(InvalidSchemaError, match="more than 1000 schemas are referred to"):
        names(chain, "0")


@pytest.mark.parametrize(("kind", "other", "text"), [
    ("JSON", '{"type": "string"}', '{"properties": {"a": {"$ref": "a.json"}, "b": {"$ref": "b.json"}}}'),
    ("PROTOBUF", 'syntax = "proto3"; message X {}',
     'syntax = "proto3"; import "a.json"; import "b.json"; message Y { X x = 1; }'),
    ("AVRO", '{"type": "fixed", "name": "X", "size": 2}', '{"type": "array", "items": "X"}'),
])
def test_one_schema_may_be_called_by_two_names(kind: str, other: str, text: str) -> None:
    found = in_order([{"name": "a.json"}, {"name": "b.json"}, {"name": "a.json"}],
                     lambda each: KeptSchema("one", other, []))
    assert [each.name for each in found] == ["a.json", "b.json"]
    assert parse(kind, text, found).schema_type == kind
