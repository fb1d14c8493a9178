"""What is an Avro schema and what is not, and how schemas are written down again."""

import json

import pytest

from headrace.schemas.avro import parse_avro
from headrace.schemas.avro_types import ABSENT
from headrace.schemas.parsed import InvalidSchemaError, ReferencedSchema

VALID = {
    "a primitive": '"string"',
    "a primitive as an object": '{"type": "long", "logicalType": "timestamp-millis"}',
    "an unknown logical type": '{"type": "int", "logicalType": "phase-of-the-moon"}',
    "a union": '["null", "string", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}]',
    "an empty union": "[]",
    "an empty record": '{"type": "record", "name": "A", "fields": []}',
    "an error": '{"type": "error", "name": "A", "fields": []}',
    "a fixed": '{"type": "fixed", "name": "a.b.F", "size": 16}',
    "an enum with a default": '{"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "B"}',
    "a record in itself": '{"type": "record", "name": "A", "fields": [{"name": "next", "type": ["null", "A"]}]}',
    "a default of a later branch":
        '{"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "int"], "default": 1}]}',
    "a default for a record":
        '{"type": "record", "name": "A", "fields": [{"name": "b", "default": {"c": 1}, "type": {"type": "record", '
        '"name": "B", "fields": [{"name": "c", "type": "int"}, {"name": "d", "type": "int", "default": 2}]}}]}',
    "a name by its short form in a namespace":
        '{"type": "record", "name": "A", "namespace": "x", "fields": [{"name": "a", "type": {"type": "fixed", "name": '
        '"F", "size": 1}}, {"name": "b", "type": "F"}, {"name": "c", "type": "x.F"}]}',
    "a name without namespace from within one":
        '[{"type": "fixed", "name": "F", "size": 1}, {"type": "record", "name": "x.A", "fields": '
        '[{"name": "a", "type": "F"}]}]',
}
INVALID = {
    "no JSON": ("{", "not JSON"),
    "a number": ("1", "a type is"),
    "NaN": ('{"type": "int", "x": NaN}', "NaN"),
    "an unknown type": ('"strin"', "'strin' is not a type"),
    "a type that comes later": (
        '[{"type": "record", "name": "A", "fields": [{"name": "b", "type": "B"}]}, '
        '{"type": "record", "name": "B", "fields": []}]', "'B' is not a type"),
    "no type": ('{"name": "A"}', 'needs a "type"'),
    "a type in a type": ('{"type": {"type": "int"}}', 'needs a "type"'),
    "no fields": ('{"type": "record", "name": "A"}', '"fields"'),
    "a field without type": ('{"type": "record", "name": "A", "fields": [{"name": "a"}]}', "/A/a"),
    "a field twice": (
        '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}',
        "twice"),
    "a field that is none": ('{"type": "record", "name": "A", "fields": ["a"]}', "a field is an object"),
    "a name with a hyphen": ('{"type": "record", "name": "a-b", "fields": []}', "'a-b'"),
    "a name that begins with a digit": ('{"type": "fixed", "name": "1", "size": 1}', "'1'"),
    "a namespace that is no name": ('{"type": "fixed", "name": "A", "namespace": "a..b", "size": 1}', "''"),
    "no name": ('{"type": "fixed", "size": 1}', 'no "name"'),
    "a primitive's name": ('{"type": "fixed", "name": "int", "size": 1}', "primitive"),
    "a name twice": (
        '[{"type": "fixed", "name": "A", "size": 1}, {"type": "enum", "name": "A", "symbols": []}]', "twice"),
    "a union in a union": ('[["null"]]', "union"),
    "a branch twice": ('["int", "int"]', "'int' twice"),
    "arrays twice": ('[{"type": "array", "items": "int"}, {"type": "array", "items": "long"}]', "'array' twice"),
    "a size below 0": ('{"type": "fixed", "name": "A", "size": -1}', "-1"),
    "a size that is no number": ('{"type": "fixed", "name": "A", "size": true}', "True"),
    "symbols that are none": ('{"type": "enum", "name": "A", "symbols": ["a b"]}', "symbol"),
    "a symbol twice": ('{"type": "enum", "name": "A", "symbols": ["a", "a"]}', "twice"),
    "a default that is no symbol": ('{"type": "enum", "name": "A", "symbols": ["a"], "default": "b"}', "'b'"),
    "no items": ('{"type": "array"}', '"items"'),
    "no values": ('{"type": "map"}', '"values"'),
    "an order that is none": (
        '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "int", "order": "up"}]}', "'up'"),
    "aliases that are none": ('{"type": "fixed", "name": "A", "size": 1, "aliases": "B"}', "aliases"),
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID)
def test_what_the_specification_allows_is_read_and_written_so_that_it_reads_the_same(text: str) -> None:
    schema = parse_avro(text)
    assert parse_avro(schema.canonical()).canonical() == schema.canonical()
    assert parse_avro(schema.normalized()).normalized() == schema.normalized()


@pytest.mark.parametrize("text", [
    '{"type":"array","items":{"type":"map","values":"int","x":1},"java-class":"L"}',
    '{"type":"enum","name":"E","symbols":["A"],"default":"A","x":1}', '{"type":"fixed","name":"F","size":1,"x":[2]}',
])
def test_what_a_type_says_besides_is_written_behind_it(text: str) -> None:
    assert parse_avro(text).canonical() == text


@pytest.mark.parametrize(("text", "reason"), INVALID.values(), ids=INVALID)
def test_what_it_does_not_allow_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        parse_avro(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", [
    "[" * 10_000, '{"type": "array", "items": ' * 10_000 + '"int"' + "}" * 10_000,
    '{"type": "array", "items": ' * 150 + '"int"' + "}" * 150,
    '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "A", "default": {}}]}',
    '"' + "x" * 10_000_001 + '"',
])
def test_what_is_nested_or_sized_beyond_the_limits_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchemaError, match=r"deep|characters"):
        parse_avro(text)


def test_a_reason_names_the_place() -> None:
    inner = {"type": "record", "name": "B", "fields": [{"name": "c", "type": {"type": "map", "values": "nope"}}]}
    outer = {"type": "record", "name": "x.A", "fields": [{"name": "b", "type": ["null", inner]}]}
    with pytest.raises(InvalidSchemaError, match=r"^at /x\.A/b/1/x\.B/c/values: 'x\.nope' is not a type"):
        parse_avro(json.dumps(outer))


def test_types_of_references_are_known_and_stay_names() -> None:
    address = ReferencedSchema("x.Address", '{"type": "record", "name": "Address", "namespace": "x", "fields": []}')
    text = '{"type":"record","name":"Person","namespace":"x","fields":[{"name":"home","type":"Address"}]}'
    schema = parse_avro(text, [address])
    assert schema.canonical() == text
    assert schema.formatted("resolved") == text.replace(
        '"Address"', '{"type":"record","name":"Address","fields":[]}')
    with pytest.raises(InvalidSchemaError, match="Address"):
        parse_avro(text)


def record(field: str) -> str:
    return f'{{"type": "record", "name": "R", "fields": [{field}]}}'


LENIENT = {
    "a default of another type": (record('{"name": "l", "type": "long", "default": null}'), "does not fit"),
    "a text for a number": (record('{"name": "i", "type": "int", "default": "0"}'), "does not fit"),
    "no fields where some are needed": (record('{"name": "r", "type": {"type": "record", "name": "S", "fields": '
                                               '[{"name": "a", "type": "int"}]}, "default": {}}'), "does not fit"),
    "a list for a map": (record('{"name": "m", "type": {"type": "map", "values": "int"}, "default": []}'), "not fit"),
    "a dash in a namespace": ('{"type": "record", "name": "R", "namespace": "com.my-company", "fields": []}', "a name"),
    "a dash in a name": ('{"type": "enum", "name": "a-b", "symbols": ["c-d"]}', "not a name"),
    "a default that is no symbol": ('{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}', "none of"),
}


@pytest.mark.parametrize(("text", "reason"), LENIENT.values(), ids=LENIENT)
def test_what_older_libraries_have_let_in_is_read_where_it_is_registered_already(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=reason):
        parse_avro(text)
    read = parse_avro(text, is_strict=False).root
    assert [each.default for each in read.fields] == [ABSENT] * len(read.fields)
    assert read.default is None


def test_limits_and_names_that_nothing_declares_are_refused_there_too() -> None:
    for text in ('{"type": "record", "name": "", "fields": []}', record('{"name": "a", "type": "Nothing"}')):
        with pytest.raises(InvalidSchemaError):
            parse_avro(text, is_strict=False)
