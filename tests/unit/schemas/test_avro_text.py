"""Avro schemas as text."""

import json

import fastavro.schema
import pytest

from headrace.schemas.avro import parse_avro
from headrace.schemas.avro_text import fingerprint, parsing_canonical_form
from tests.unit.schemas.test_avro import VALID

RECORD = """{
    "fields": [
        {"type": {"size": 4, "name": "F", "type": "fixed"}, "name": "f", "doc": "a field", "custom": [1.5, "é"]},
        {"name": "g", "type": ["null", "x.y.F"], "default": null, "order": "ignore", "aliases": ["h"]},
        {"name": "e", "type": {"type": "enum", "name": "z.E", "symbols": ["P"], "default": "P", "aliases": ["D"]}}
    ], "namespace": "x.y", "name": "A", "type": "record", "doc": "a record", "aliases": ["B", "q.C"],
    "x": {"b": 1, "a": 2}
}"""


def test_the_canonical_text_is_java_s() -> None:
    assert parse_avro(RECORD).canonical() == (
        '{"type":"record","name":"A","namespace":"x.y","doc":"a record","fields":[{"name":"f","type":{"type":"fixed",'
        '"name":"F","size":4},"doc":"a field","custom":[1.5,"é"]},{"name":"g","type":["null","F"],"default":null,'
        '"order":"ignore","aliases":["h"]},{"name":"e","type":{"type":"enum","name":"E","namespace":"z","symbols":["P"],'
        '"default":"P","aliases":["D"]}}],"x":{"b":1,"a":2},"aliases":["B","q.C"]}')


def test_the_normalised_text_has_full_names_and_sorted_attributes() -> None:
    assert parse_avro(RECORD).normalized() == (
        '{"name":"x.y.A","type":"record","fields":[{"name":"f","type":{"name":"x.y.F","type":"fixed","size":4},'
        '"doc":"a field","custom":[1.5,"é"]},{"name":"g","type":["null","x.y.F"],"aliases":["h"],"default":null,'
        '"order":"ignore"},{"name":"e","type":{"name":"z.E","type":"enum","symbols":["P"],"aliases":["z.D"],'
        '"default":"P"}}],"aliases":["q.C","x.y.B"],"doc":"a record","x":{"a":2,"b":1}}')


def test_a_name_without_a_namespace_stays_so_within_one() -> None:
    text = ('{"type":"record","name":"A","namespace":"x","fields":[{"name":"a","type":{"type":"fixed","name":"F",'
            '"namespace":"","size":1}},{"name":"b","type":"F"}]}')
    assert parse_avro(text).canonical() == text


@pytest.mark.parametrize("text", [RECORD, *VALID.values()], ids=["a record", *VALID])
def test_the_parsing_canonical_form_and_its_fingerprint_are_those_of_fastavro(text: str) -> None:
    schema = parse_avro(text).root
    form = parsing_canonical_form(schema)
    if text != VALID["a name without namespace from within one"]:  # fastavro does not find it
        assert fastavro.schema.to_parsing_canonical_form(json.loads(text)) == form
    for algorithm in ("CRC-64-AVRO", "MD5", "SHA-256"):
        theirs = fastavro.schema.fingerprint(form, algorithm)
        ours = fingerprint(schema, algorithm)
        assert ours.hex() in (theirs, bytes.fromhex(theirs)[::-1].hex())


def test_the_fingerprint_of_int_is_the_specification_s() -> None:
    assert fingerprint(parse_avro('"int"').root).hex() == "7275d51a3f395c8f"


def test_an_unknown_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match="SHA-1"):
        fingerprint(parse_avro('"int"').root, "SHA-1")
