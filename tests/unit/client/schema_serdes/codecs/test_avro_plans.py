"""Functions that are made for a schema."""

import io
import struct

import fastavro
import pytest

from headrace.client.schema_serdes.codecs.avro_codec import parsed
from headrace.client.schema_serdes.codecs.avro_plans import NotPlain, plain_writer

USER = """{"type":"record","name":"User","fields":[
    {"name":"name","type":"string"},{"name":"age","type":["null","int"],"default":null},
    {"name":"place","type":{"type":"record","name":"Place","fields":[{"name":"x","type":"double"},
                                                                    {"name":"y","type":"float"}]}},
    {"name":"former","type":{"type":"array","items":"Place"}},
    {"name":"tags","type":{"type":"map","values":["boolean","null"]}},
    {"name":"kind","type":{"type":"enum","name":"Kind","symbols":["A","B"]}},
    {"name":"hash","type":{"type":"fixed","name":"Hash","size":2}},
    {"name":"raw","type":"bytes"},{"name":"nothing","type":"null"},{"name":"boss","type":["null","User"]}]}"""
PLACE = {"x": 1.5, "y": 2.0}
ANNA = {"name": "Anna", "age": 30, "place": PLACE, "former": [PLACE, PLACE], "tags": {"a": True, "b": None},
        "kind": "B", "hash": b"ab", "raw": b"\0" * 300, "nothing": None, "boss": None}


def made(text: str):
    schema = parsed(text)
    return plain_writer(schema.content, schema.names)


def by_fastavro(text: str, value) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed(text).content, value)
    return out.getvalue()


@pytest.mark.parametrize("value", [ANNA, {**ANNA, "boss": ANNA}, {**ANNA, "more": 1},
                                   {**ANNA, "former": [], "tags": {}, "age": None}])
def test_it_writes_what_fastavro_writes(value) -> None:
    assert made(USER)(value) == by_fastavro(USER, value)


@pytest.mark.parametrize("value", [
    *(0, 1, -1, 63, 64, -64, -65, 8191, 8192, -8192, -8193), *((1 << bits) - 1 for bits in range(14, 64)),
    *(1 << bits for bits in range(13, 63)), *(-(1 << bits) for bits in range(13, 64))])
def test_numbers_of_every_length(value) -> None:
    assert made('"long"')(value) == by_fastavro('"long"', value)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192, 1 << 20])
def test_texts_of_every_length(size) -> None:
    assert made('"string"')("x" * size) == by_fastavro('"string"', "x" * size)


@pytest.mark.parametrize(("text", "value"), [
    ('"int"', 1 << 31), ('"int"', True), ('"long"', 1 << 63), ('"long"', 1.0), ('"string"', b"a"), ('"bytes"', "a"),
    ('"boolean"', 1), ('"double"', 1), ('"null"', 0), (USER, {}), (USER, [ANNA]), (USER, {**ANNA, "kind": "C"}),
    (USER, {**ANNA, "hash": b"a"}), (USER, {**ANNA, "boss": {"-type": "User", **ANNA}}),
    (USER, {**ANNA, "boss": ("User", ANNA)}), ('"string"', "\ud800"), ('{"type":"array","items":"int"}', (1, 2)),
    ('{"type":"map","values":"int"}', {1: 1})])
def test_a_value_of_any_other_type_is_left_to_fastavro(text, value) -> None:
    with pytest.raises((NotPlain, LookupError, UnicodeError)):  # whatever it is, fastavro is asked
        made(text)(value)


@pytest.mark.parametrize("text", [
    '["null","int","string"]', '["int","string"]', '["null"]', '{"type":"int","logicalType":"date"}',
    '{"type":"array","items":{"type":"string","logicalType":"uuid"}}'])
def test_a_schema_that_needs_more_is_left_to_fastavro(text) -> None:
    assert made(text) is None


def test_a_schema_of_many_levels_or_of_many_fields_is_left_to_fastavro_or_written_right() -> None:
    deep = '"int"'
    for _ in range(30):
        deep = f'{{"type":"array","items":{deep}}}'
    assert made(deep) is None
    fields = ",".join(f'{{"name":"f{at}","type":"string"}}' for at in range(5000))
    assert made(f'{{"type":"record","name":"W","fields":[{fields}]}}') is None


def test_names_of_fields_are_no_source() -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"f","type":"int"}]}'
    schema = parsed(text)
    schema.content["fields"][0]["name"] = "f'] + value.boom() + value['"
    write = plain_writer(schema.content, schema.names)
    assert write is not None
    assert write({"f'] + value.boom() + value['": 1}) == b"\2"


def test_floats_are_rounded_as_in_c() -> None:
    assert made('"float"')(0.1) == struct.pack("<f", 0.1) == by_fastavro('"float"', 0.1)
