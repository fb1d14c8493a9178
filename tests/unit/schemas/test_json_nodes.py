"""What a JSON Schema says, one thing at a time, and where its references lead."""

import re
from typing import Any

import pytest

from headrace.schemas.json_nodes import JsonDocuments
from headrace.schemas.parsed import InvalidSchemaError


@pytest.mark.parametrize(("schema", "kind"), [
    (True, "empty"), (False, "false"), ({}, "empty"), ({"title": "t"}, "empty"), ({"type": "integer"}, "number"),
    ({"properties": {}}, "object"), ({"minItems": 1}, "array"), ({"enum": [1]}, "enum"), ({"const": 1}, "const"),
    ({"not": {}}, "not"), ({"if": {}}, "conditional"), ({"anyOf": [{}]}, "anyOf"),
    ({"type": ["string", "null"]}, "anyOf"), ({"type": "string", "enum": ["a"]}, "allOf"),
    ({"minLength": 1, "minimum": 1}, "allOf")])
def test_a_schema_says_one_thing_or_all_of_several(schema: Any, kind: str) -> None:
    documents = JsonDocuments(schema, {})
    assert documents.node(schema).kind == kind


def test_a_node_is_made_once() -> None:
    schema = {"allOf": [{"type": "string"}]}
    documents = JsonDocuments(schema, {})
    assert documents.node(schema) is documents.node(schema)
    assert documents.knows(schema["allOf"][0])
    assert not documents.knows({"type": "string"})


@pytest.mark.parametrize(("reference", "found"), [
    ("#/$defs/a", {"type": "string"}), ("#/$defs/b~1c", {"type": "null"}),
    ("#here", {"type": "number", "$anchor": "here"}),
    ("other.json", {"type": "array", "items": {"type": "object"}}), ("other.json#/items", {"type": "object"}),
    ("inner.json", {"$id": "inner.json", "type": "boolean"})])
def test_references_lead_to_pointers_anchors_ids_and_other_schemas(reference: str, found: Any) -> None:
    root = {"$defs": {"a": {"type": "string"}, "b/c": {"type": "null"}, "d": {"type": "number", "$anchor": "here"},
                      "e": {"$id": "inner.json", "type": "boolean"}}}
    documents = JsonDocuments(root, {"other.json": {"type": "array", "items": {"type": "object"}}})
    assert documents.resolved(reference, "") == found


@pytest.mark.parametrize("reference", ["#/$defs/none", "#nowhere", "none.json", "http://x/y#/a"])
def test_references_that_lead_nowhere_are_named(reference: str) -> None:
    documents = JsonDocuments({"$ref": reference, "$defs": {}}, {})
    with pytest.raises(InvalidSchemaError, match=re.escape(reference)):
        documents.follow()


def test_a_reference_may_lead_over_a_hundred_others_and_not_in_a_circle() -> None:
    def chain(length: int) -> Any:
        return {"$ref": "#/$defs/0", "$defs": {**{str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(length)},
                                               str(length): {"type": "string"}}}

    short = chain(98)
    assert JsonDocuments(short, {}).node(short).kind == "string"
    for schema in (chain(101), {"$ref": "#"}):
        with pytest.raises(InvalidSchemaError, match="leads in a circle, or over more than 100 others"):
            JsonDocuments(schema, {}).follow()
