"""What is a JSON Schema and what is not."""

import json

import pytest

from headrace.schemas.json_schema import parse_json_schema
from headrace.schemas.parsed import InvalidSchemaError, ReferencedSchema

VALID = {
    "true": "true", "false": "false", "empty": "{}", "types": '{"type": ["string", "null"]}',
    "unknown keywords": '{"x-own": {"type": 1}, "format": "date"}',
    "a reference to itself": '{"properties": {"next": {"$ref": "#"}}}',
    "a definition": '{"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "string"}}}',
    "an anchor": '{"$ref": "#here", "$defs": {"x": {"$anchor": "here"}}}',
    "an id": '{"$id": "http://x/y/z.json", "$ref": "w.json", "$defs": {"x": {"$id": "w.json", "type": "null"}}}',
    "draft 4": '{"id": "#a", "type": "number", "minimum": 1, "exclusiveMinimum": true}',
    "tuples": '{"items": [{"type": "string"}], "additionalItems": false}',
    "tuples of 2020-12": '{"prefixItems": [{"type": "string"}], "items": false}',
    "a property named like a keyword": '{"properties": {"type": {"type": "string"}, "$ref": {"type": "null"}}}',
}
INVALID = {
    "no JSON": "{", "a number": "1", "a text": '"string"', "an unknown type": '{"type": "strin"}',
    "no types": '{"type": []}',
    "a property that is none": '{"properties": {"a": 1}}', "properties that are none": '{"properties": []}',
    "required that is no list": '{"required": "a"}', "required that has no names": '{"required": [1]}',
    "an enum that is none": '{"enum": "a"}', "a length below 0": '{"minLength": -1}',
    "a length that is none": '{"maxLength": "1"}',
    "a bound that is none": '{"minimum": "1"}', "a step of 0": '{"multipleOf": 0}', "no alternatives": '{"anyOf": []}',
    "alternatives that are none": '{"oneOf": {}}', "a pattern that is none": '{"pattern": 1}',
    "a reference to nowhere": '{"$ref": "#/definitions/a"}', "an unknown document": '{"$ref": "http://x/y.json"}',
    "a circle": '{"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#"}}}',
    "a reference to no schema": '{"$ref": "#/title", "title": "t"}',
    "a reference in a property": '{"properties": {"a": {"items": {"$ref": "#/nope"}}}}',
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID)
def test_what_is_a_schema_is_read_and_keeps_its_order(text: str) -> None:
    schema = parse_json_schema(text)
    assert json.loads(schema.canonical()) == json.loads(schema.normalized()) == json.loads(text)
    assert schema.can_read(schema) == []
    assert schema.can_read(parse_json_schema(text)) == []


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchemaError):
        parse_json_schema(text)


@pytest.mark.parametrize("text", ["[" * 10_000, '{"not":' * 10_000, '{"not":' * 150 + "{}" + "}" * 150])
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchemaError, match="deep"):
        parse_json_schema(text)


def test_normalising_sorts_keys() -> None:
    text = '{ "type":"object",\n "properties":{"b":{},"a":{"maxLength":1, "default":"é"}}}'
    assert parse_json_schema(text).canonical() == (
        '{"type":"object","properties":{"b":{},"a":{"maxLength":1,"default":"é"}}}')
    assert parse_json_schema(text).normalized() == (
        '{"properties":{"a":{"default":"é","maxLength":1},"b":{}},"type":"object"}')


@pytest.mark.parametrize("reference", ["address.json", "address.json#/$defs/street", "http://x/address.json"])
def test_references_lead_to_other_schemas(reference: str) -> None:
    address = '{"$id": "http://x/address.json", "type": "object", "$defs": {"street": {"type": "string"}}}'
    text = json.dumps({"properties": {"home": {"$ref": reference}}})
    assert parse_json_schema(text, [ReferencedSchema("address.json", address)]).canonical()
    with pytest.raises(InvalidSchemaError, match="leads to no schema"):
        parse_json_schema(text)
