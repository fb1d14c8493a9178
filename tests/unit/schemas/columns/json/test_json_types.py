"""JSON Schemas as types of columns: what has one type, and which pointer a refusal names."""

import json
from typing import Any

import pyarrow as pa
import pytest

from headrace.schemas.columns.json.json_types import type_of_schema
from headrace.schemas.json_schema import parse_json_schema
from headrace.schemas.parsed import InvalidSchemaError, ReferencedSchema


def type_of(schema: Any, *references: ReferencedSchema) -> pa.DataType:
    return type_of_schema(parse_json_schema(json.dumps(schema), references))


def struct(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def element(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


@pytest.mark.parametrize(("schema", "expected"), [
    ({"type": "integer"}, pa.int64()),
    ({"type": "number"}, pa.float64()),
    ({"type": ["null", "boolean"]}, pa.bool_()),
    ({"type": ["integer", "number"]}, pa.float64()),
    ({"type": "string", "format": "email"}, pa.string()),
    ({"type": "string", "format": "date-time"}, pa.timestamp("us", tz="UTC")),
    ({"type": "string", "format": "date"}, pa.date32()),
    ({"type": "string", "contentEncoding": "base64"}, pa.binary()),
    ({"type": "array", "items": {"type": "string"}}, element(pa.string())),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, pa.map_(pa.string(), pa.int64())),
    ({"enum": ["a", "b", None]}, pa.string()),
    ({"const": 5}, pa.int64()),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, pa.int64()),
    ({"oneOf": [{"type": "null"}, {"type": "array", "items": {"type": "number"}}]}, element(pa.float64())),
    ({"allOf": [{"type": "string"}], "description": "one"}, pa.string()),
    ({"properties": {"a": {"type": "string"}}, "additionalProperties": True, "required": ["a"]},
     pa.struct([("a", pa.string())])),
])
def test_a_schema_of_one_type_is_that_type(schema: Any, expected: pa.DataType) -> None:
    assert type_of(schema) == expected


def test_references_are_followed_in_the_schema_and_to_others() -> None:
    schema = {"$defs": {"name": {"type": "string"}}, "$schema": "https://json-schema.org/draft/2020-12/schema",
              **struct(a={"$ref": "#/$defs/name"}, b={"$ref": "other.json"}, c={"$ref": "#/$defs/name"})}
    other = ReferencedSchema("other.json", json.dumps(struct(x={"type": "integer"})))
    assert type_of(schema, other) == pa.struct([
        ("a", pa.string()), ("b", pa.struct([("x", pa.int64())])), ("c", pa.string())])


@pytest.mark.parametrize(("schema", "pointer"), [
    (struct(a={}), "#/properties/a"),
    (struct(a=True), "#/properties/a"),
    (struct(a={"type": ["string", "integer"]}), "#/properties/a/type"),
    (struct(a={"type": "null"}), "#/properties/a/type"),
    (struct(a={"anyOf": [{"type": "string"}, {"type": "integer"}]}), "#/properties/a/anyOf"),
    (struct(a={"oneOf": [struct(b={"type": "string"}), struct(c={"type": "string"})]}), "#/properties/a/oneOf"),
    (struct(a={"allOf": [struct(b={"type": "string"})], **struct(c={"type": "string"})}), "#/properties/a/allOf"),
    (struct(a={"type": "array"}), "#/properties/a/items"),
    (struct(a={"type": "array", "prefixItems": [{"type": "string"}]}), "#/properties/a/items"),
    (struct(a={"type": "object"}), "#/properties/a"),
    (struct(a={"type": "object", "patternProperties": {"x": {"type": "string"}}}), "#/properties/a/patternProperties"),
    ({**struct(a={"type": "string"}), "additionalProperties": {"type": "string"}}, "#/additionalProperties"),
    ({"type": "array", "items": {"type": ["string", "boolean"]}}, "#/items/type"),
    (struct(**{"a/b~": {"enum": [1, "x"]}}), "#/properties/a~1b~0/type"),
    (struct(a={"$ref": "#"}), "#/properties/a"),
    ({"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "#/items/anyOf/0"),
])
def test_a_schema_of_several_types_is_refused_at_its_pointer(schema: Any, pointer: str) -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        type_of(schema)
    assert str(caught.value).startswith(f"{pointer} of the JSON Schema has no type of a column: ")


def test_a_schema_that_multiplies_its_columns_is_refused() -> None:
    levels: dict[str, Any] = {f"L{n}": struct(**{str(i): {"$ref": f"#/$defs/L{n + 1}"} for i in range(10)})
                              for n in range(10)}
    with pytest.raises(InvalidSchemaError, match="more than 20000 columns"):
        type_of({"$defs": {**levels, "L10": {"type": "string"}}, "$ref": "#/$defs/L0"})


@pytest.mark.parametrize(("of_a", "keeps"), [
    ({"type": ["string", "null"]}, True),
    ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, True),
    ({"type": ["integer", "null"], "anyOf": [{"type": "null"}, {"type": "integer"}]}, True),
    ({"enum": ["x", None]}, True),
    ({"$ref": "#/definitions/text"}, True),
    ({"anyOf": [{"$ref": "#/definitions/text"}]}, True),
    ({"type": "string"}, False),
    ({"type": ["string", "null"], "enum": ["x"]}, False),
    ({"type": "integer", "anyOf": [{"type": "null"}, {"type": "integer"}]}, False),
    ({"const": 5}, False),
])
def test_a_property_that_is_required_keeps_its_null_where_the_schema_lets_it_be_null(of_a: Any, keeps: bool) -> None:
    schema = {**struct(a=of_a, b={"type": ["string", "null"]}), "required": ["a"],
              "definitions": {"text": {"type": ["null", "string"]}}}
    a, b = type_of(schema)
    assert (bool(a.metadata), bool(b.metadata)) == (keeps, False)
