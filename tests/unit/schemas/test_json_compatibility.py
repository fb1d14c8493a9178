"""Which JSON Schema takes what was valid by another, by Confluent's rules."""

import json
import time
from typing import Any

import pytest

from headrace.schemas.json_schema import parse_json_schema
from headrace.schemas.parsed import ReferencedSchema

S, WHOLE, N, NULL = ({"type": kind} for kind in ("string", "integer", "number", "null"))
EITHER = {"type": ["string", "null"]}


def found(old: Any, new: Any) -> list[str]:
    reader, writer = parse_json_schema(json.dumps(new)), parse_json_schema(json.dumps(old))
    return [f"{each.type} {each.location}" for each in reader.can_read(writer)]


def closed(properties: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def opened(properties: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


@pytest.mark.parametrize(("old", "new"), [
    (S, {**S, "title": "t", "description": "d", "default": "x"}), (WHOLE, N), (S, True), (S, {}), (False, S),
    (True, {}),
    ({**S, "maxLength": 1}, S), ({**S, "maxLength": 1}, {**S, "maxLength": 2}),
    ({**S, "minLength": 2}, {**S, "minLength": 1}),
    ({**S, "pattern": "a"}, {**S, "pattern": "a", "title": "t"}),
    ({"type": ["string", "null"], "maxLength": 5}, EITHER),
    ({**S, "pattern": "a"}, S), ({**N, "maximum": 1}, {**N, "maximum": 2}), ({**N, "minimum": 1}, N),
    ({**N, "multipleOf": 4}, {**N, "multipleOf": 2}), ({"enum": ["a"]}, {"enum": ["a", "b"]}),
    (closed({}), closed({"a": S})), (closed({}), closed({"a": {**S, "default": ""}}, required=["a"])),
    (opened({"a": S}), opened({})), (opened({}), opened({"a": {}})), (closed({"a": False}), closed({})),
    (closed({}), opened({})), (opened({"a": S}, required=["a"]), opened({"a": S})),
    (opened({"a": S}), opened({"a": {**S, "default": ""}}, required=["a"])),
    (opened({}, additionalProperties=S), opened({"a": S}, additionalProperties=S)),
    (opened({"a": S}, additionalProperties=False), opened({}, additionalProperties=S)),
    (closed({"xa": S}), closed({}, patternProperties={"^x": S})),
    (opened({}, additionalProperties=WHOLE), opened({}, additionalProperties=N)),
    (opened({}, maxProperties=1), opened({}, maxProperties=2)), (opened({}, dependencies={"a": ["b"]}), opened({})),
    (opened({}, dependencies={"a": ["b", "c"]}), opened({}, dependencies={"a": ["b"]})),
    (opened({}, dependentSchemas={"a": {"maxItems": 2}}), opened({}, dependentSchemas={"a": {"maxItems": 3}})),
    ({"type": "array", "items": WHOLE}, {"type": "array", "items": N}),
    ({"type": "array", "uniqueItems": True}, {"type": "array"}),
    ({"items": [S], "additionalItems": False}, {"items": [S, S], "additionalItems": False}),
    ({"items": [S, S]}, {"items": [S]}), ({"type": "array", "maxItems": 1}, {"type": "array"}),
    ({"items": [S, WHOLE], "additionalItems": False}, {"items": [S], "additionalItems": N}),
    ({"items": [S, False], "additionalItems": False}, {"items": [S], "additionalItems": False}),
    ({"items": [S], "additionalItems": WHOLE}, {"items": [S, N], "additionalItems": N}),
    ({"items": [S]}, {"items": [S, True]}),
    ({"prefixItems": [S, WHOLE], "items": False}, {"prefixItems": [S], "items": N}),
    ({"prefixItems": [S], "items": False}, {"prefixItems": [S, S], "items": False}),
    ({"prefixItems": [S], "unevaluatedItems": False}, {"prefixItems": [S, S], "unevaluatedItems": False}),
    (S, {"oneOf": [S, WHOLE]}), (S, {"type": ["string", "null"]}), ({"oneOf": [S]}, S),
    ({"anyOf": [S]}, {"anyOf": [WHOLE, S]}),
    ({"oneOf": [S, WHOLE]}, {"anyOf": [S, WHOLE]}), ({"allOf": [S, {"maxLength": 1}]}, {"allOf": [S]}),
    ({"not": {**S, "maxLength": 5}}, {"not": {**S, "maxLength": 3}}), ({"const": 1}, {"const": 1}),
    ({"$ref": "#/definitions/a", "definitions": {"a": S}}, S),
])
def test_what_the_rules_allow_is_taken(old: Any, new: Any) -> None:
    assert found(old, new) == []


@pytest.mark.parametrize(("old", "new", "reason"), [
    (S, WHOLE, "TYPE_CHANGED #"), (N, WHOLE, "TYPE_NARROWED #"), ({}, S, "TYPE_CHANGED #"),
    (S, False, "TYPE_CHANGED #"),
    (S, {**S, "maxLength": 1}, "MAX_LENGTH_ADDED #/maxLength"),
    ({**S, "maxLength": 2}, {**S, "maxLength": 1}, "MAX_LENGTH_DECREASED #/maxLength"),
    ({**S, "minLength": 1}, {**S, "minLength": 2}, "MIN_LENGTH_INCREASED #/minLength"),
    (S, {**S, "pattern": "a"}, "PATTERN_ADDED #/pattern"),
    ({**S, "pattern": "b"}, {**S, "pattern": "a"}, "PATTERN_CHANGED #/pattern"),
    (N, {**N, "minimum": 0}, "MINIMUM_ADDED #/minimum"),
    ({**N, "maximum": 2}, {**N, "maximum": 1}, "MAXIMUM_DECREASED #/maximum"),
    (N, {**N, "exclusiveMaximum": 1}, "EXCLUSIVE_MAXIMUM_ADDED #/exclusiveMaximum"),
    (N, {**N, "multipleOf": 2}, "MULTIPLE_OF_ADDED #/multipleOf"),
    ({**N, "multipleOf": 2}, {**N, "multipleOf": 4}, "MULTIPLE_OF_EXPANDED #/multipleOf"),
    ({**N, "multipleOf": 2}, {**N, "multipleOf": 3}, "MULTIPLE_OF_CHANGED #/multipleOf"),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, "ENUM_ARRAY_NARROWED #/enum"),
    ({"enum": ["a", "b"]}, {"enum": ["a", "c"]}, "ENUM_ARRAY_CHANGED #/enum"),
    ({"const": 1}, {"const": 2}, "CONST_CHANGED #/const"),
    (opened({}), opened({"a": S}), "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"),
    (closed({"a": S}), closed({}), "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"),
    (closed({}), closed({"a": S}, required=["a"]), "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"),
    (opened({"a": S}), opened({"a": S}, required=["a"]), "REQUIRED_ATTRIBUTE_ADDED #/required/a"),
    (opened({"a": WHOLE}), opened({"a": S}), "TYPE_CHANGED #/properties/a"),
    (opened({}), closed({}), "ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"),
    (opened({}), opened({}, additionalProperties=S), "ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties"),
    (opened({}), opened({}, minProperties=1), "MIN_PROPERTIES_ADDED #/minProperties"),
    (opened({}), opened({}, dependencies={"a": ["b"]}), "DEPENDENCY_ARRAY_ADDED #/dependencies/a"),
    (opened({}, dependencies={"a": ["b"]}), opened({}, dependencies={"a": ["b", "c"]}),
     "DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"),
    (opened({}), opened({}, dependencies={"a": {}}), "DEPENDENCY_SCHEMA_ADDED #/dependencies/a"),
    (opened({}, dependencies={"a": {"maxProperties": 3}}), opened({}, dependencies={"a": {"maxProperties": 2}}),
     "MAX_PROPERTIES_DECREASED #/dependencies/a/maxProperties"),
    (opened({}, dependentRequired={"a": ["b", "c"]}), opened({}, dependentRequired={"a": ["b", "d"]}),
     "DEPENDENCY_ARRAY_CHANGED #/dependencies/a"),
    ({"prefixItems": [S]}, {"prefixItems": [S], "items": N}, "ADDITIONAL_ITEMS_NARROWED #/additionalItems"),
    ({"type": "array"}, {"type": "array", "items": S}, "SCHEMA_ADDED #/items"),
    ({"type": "array", "items": N}, {"type": "array", "items": WHOLE}, "TYPE_NARROWED #/items"),
    ({"type": "array"}, {"type": "array", "uniqueItems": True}, "UNIQUE_ITEMS_ADDED #/uniqueItems"),
    ({"items": [S]}, {"items": [S, S]}, "ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"),
    ({"items": [S, S], "additionalItems": False}, {"items": [S], "additionalItems": False},
     "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"),
    (EITHER, {"type": ["string", "null"], "maxLength": 5}, "COMBINED_TYPE_SUBSCHEMAS_CHANGED #"),
    ({"oneOf": [S, WHOLE]}, {"oneOf": [S]}, "SUM_TYPE_NARROWED #"),
    ({"allOf": [S]}, {"allOf": [S, {"maxLength": 1}]}, "PRODUCT_TYPE_EXTENDED #"),
    ({"anyOf": [S, WHOLE]}, {"oneOf": [S, WHOLE]}, "COMBINED_TYPE_CHANGED #"),
    ({"oneOf": [S, WHOLE]}, {"oneOf": [S, NULL]}, "COMBINED_TYPE_SUBSCHEMAS_CHANGED #"),
    ({"not": {**S, "maxLength": 3}}, {"not": {**S, "maxLength": 5}}, "NOT_TYPE_EXTENDED #/not"),
])
def test_what_they_do_not_allow_is_said_with_the_place(old: Any, new: Any, reason: str) -> None:
    assert found(old, new) == [reason]


@pytest.mark.parametrize(("old", "new", "reasons"), [
    (opened({"a": WHOLE}, additionalProperties=False), opened({}, additionalProperties=S),
     ["TYPE_CHANGED #/properties/a", "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a"]),
    (opened({}, additionalProperties=S), opened({"a": WHOLE}, additionalProperties=S),
     ["TYPE_CHANGED #/properties/a", "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a"]),
    ({"items": [S, S], "additionalItems": False}, {"items": [S], "additionalItems": N},
     ["TYPE_CHANGED #/items/1", "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"]),
    ({"items": [S], "additionalItems": N}, {"items": [S, S], "additionalItems": N},
     ["TYPE_CHANGED #/items/1", "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"]),
    ({"prefixItems": [S], "items": N}, {"prefixItems": [S, S], "items": N},
     ["TYPE_CHANGED #/items/1", "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"]),
    ({"prefixItems": [S, S], "items": False}, {"prefixItems": [S], "items": False},
     ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"]),
])
def test_partially_open_models_must_cover_what_comes_or_goes(old: Any, new: Any, reasons: list[str]) -> None:
    assert found(old, new) == reasons


def test_schemas_that_hold_themselves_are_compared() -> None:
    def tree(leaf: Any) -> dict[str, Any]:
        kids = {"type": "array", "items": {"$ref": "#/definitions/t"}}
        return {"definitions": {"t": opened({"kids": kids, "leaf": leaf})}, "$ref": "#/definitions/t"}

    assert found(tree(WHOLE), tree(N)) == []
    assert [each.partition(" ")[0] for each in found(tree(N), tree(WHOLE))] == ["TYPE_NARROWED"]
    assert found({"not": {"$ref": "#"}}, {"not": {"$ref": "#"}}) == []


def test_long_chains_of_references_are_compared() -> None:
    def chain(last: Any) -> dict[str, Any]:
        return {"$ref": "#/definitions/d0", "definitions": {
            **{f"d{n}": {"items": {"$ref": f"#/definitions/d{n + 1}"}} for n in range(3000)}, "d3000": last}}

    assert found(chain(WHOLE), chain(N)) == []
    assert len(found(chain(N), chain(WHOLE))) == 1


def test_patterns_that_could_take_for_ever_are_not_tried() -> None:
    started = time.process_time()
    for pattern in ("(a+)+$", "(a|a)*$", "a*a*a*a*a*a*a*b", "(?:a*)*b"):
        new = opened({}, additionalProperties=False, patternProperties={pattern: S})
        assert found(closed({"a" * 150: S}), new) != []
    assert time.process_time() - started < 10


def test_references_to_other_schemas_are_followed_on_both_sides() -> None:
    def using(kind: Any) -> Any:
        text = '{"properties": {"a": {"$ref": "o.json"}}}'
        return parse_json_schema(text, [ReferencedSchema("o.json", json.dumps(kind))])

    assert using(N).can_read(using(WHOLE)) == []
    assert [each.type for each in using(WHOLE).can_read(using(N))] == ["TYPE_NARROWED"]
