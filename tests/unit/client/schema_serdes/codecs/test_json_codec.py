"""JSON and JSON Schema."""

import sys
import time

import jsonschema
import pytest

from headrace.client.schema_serdes.codecs.json_codec import json_codec, loaded, validator_of
from headrace.errors import DependencyError, SerializationError

CLOSED = {"properties": {"b": {}}, "additionalProperties": False}


@pytest.fixture(params=["orjson", "json"])
def codec(request, monkeypatch):
    if request.param == "json":
        monkeypatch.setitem(sys.modules, "orjson", None)
    else:
        pytest.importorskip("orjson")
    json_codec.cache_clear()
    yield json_codec()
    json_codec.cache_clear()


@pytest.mark.parametrize(("value", "text"), [
    ({"a": [1, 2.5, None, True], "ü": "\u2028"}, '{"a":[1,2.5,null,true],"ü":"\u2028"}'), ([], "[]"),
    ("text", '"text"'), (123456789012, "123456789012")])
def test_both_writers_write_the_same(codec, value, text) -> None:
    encode, decode = codec
    written = encode(value)
    assert (written if isinstance(written, bytes) else written.encode()) == text.encode()
    assert decode(text.encode()) == value


def test_a_value_that_does_not_fit_is_an_error_that_says_where() -> None:
    check = validator_of({"type": "object", "properties": {"a": {"type": "integer"}}}, {})
    check({"a": 1})
    with pytest.raises(SerializationError, match=r"'x' is not of type 'integer' \(at a\)"):
        check({"a": "x"})
    with pytest.raises(SerializationError):
        check({"a": object()})


@pytest.mark.parametrize(("schema", "value"), [
    ({"type": "integer"}, "x"), ({"type": "integer"}, "it's\n\"ü\\"), ({"required": ["productId"]}, {}),
    ({"required": ["a'b\"c"]}, {}), ({"const": "a"}, 1), ({"pattern": r"^\d+\\$"}, "x\\y"), ({"minimum": 3}, 2),
    (CLOSED, {'a"': 1}), ({"propertyNames": {"pattern": "^a"}}, {"b": 1}),
])
def test_what_does_not_fit_is_told_as_jsonschema_tells_it(schema, value) -> None:
    with pytest.raises(jsonschema.ValidationError) as theirs:
        jsonschema.validate(value, schema)
    with pytest.raises(SerializationError) as ours:
        validator_of(schema, {})(value)
    assert str(ours.value).startswith(theirs.value.message)


def test_a_name_full_of_quotes_is_told_in_little_time() -> None:
    for name in ('"' * 300_001, '\\"' * 300_000, '"' + '\\"' * 300_000 + "\\"):
        began = time.process_time()
        with pytest.raises(SerializationError):
            validator_of(CLOSED, {})({name: 1})
        assert time.process_time() - began < 5


@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#",
                                   "https://json-schema.org/draft/2020-12/schema"])
def test_the_schema_says_its_draft(draft) -> None:
    check = validator_of({"$schema": draft, "type": "array", "items": [{"type": "integer"}],
                          "prefixItems": [{"type": "string"}]} if "2020" not in draft else
                         {"$schema": draft, "prefixItems": [{"type": "integer"}]}, {})
    check([1])
    with pytest.raises(SerializationError):
        check(["a"])


def test_formats_are_not_checked() -> None:
    validator_of({"$schema": "http://json-schema.org/draft-07/schema#", "format": "ipv4"}, {})("nothing like it")


def test_schemas_that_are_referred_to() -> None:
    check = validator_of({"$ref": "other.json#/definitions/n"},
                         {"other.json": {"definitions": {"n": {"$ref": "http://there/third.json"}}},
                          "http://there/third.json": {"type": "integer"}})
    check(1)
    with pytest.raises(SerializationError):
        check("a")


def test_a_schema_that_is_referred_to_and_names_no_draft_is_of_draft_7() -> None:
    check = validator_of({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "other.json"},
                         {"other.json": {"items": [{"type": "integer"}], "additionalItems": False}})
    check([1])
    for value in (["a"], [1, 2]):
        with pytest.raises(SerializationError):
            check(value)


def test_a_schema_is_not_fetched_from_where_it_is_said_to_be() -> None:
    with pytest.raises(SerializationError, match="not among the references"):
        validator_of({"$ref": "http://127.0.0.1:9/schema.json"}, {})


def deep(levels: int) -> object:
    schema: object = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize("schema", [{"type": "nope"}, {"$ref": "missing.json"}, deep(10_000), {"pattern": "("}])
def test_what_cannot_be_a_schema_is_an_error(schema) -> None:
    with pytest.raises(SerializationError, match="cannot be used"):
        validator_of(schema, {})


def test_a_schema_that_refers_to_itself_checks_values_of_any_depth() -> None:
    check = validator_of({"$id": "http://x/t.json", "properties": {"next": {"$ref": "http://x/t.json"}},
                          "required": ["n"]}, {})
    value: dict = {"n": 1}
    for _ in range(50):
        value = {"n": 1, "next": value}
    check(value)
    del value["next"]["next"]["n"]
    with pytest.raises(SerializationError):
        check(value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_what_is_not_json_is_an_error(text) -> None:
    with pytest.raises(SerializationError, match="the schema cannot be read"):
        loaded(text, "the schema")


def test_without_jsonschema_rs_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(DependencyError, match=r"pip install headrace\[json\]"):
        validator_of({}, {})
