"""The door for schemas of any type."""

import pytest

from headrace.schemas.parsed import MAX_TEXT, InvalidSchemaError
from headrace.schemas.parsing import SCHEMA_TYPES, parse

TEXTS = {"AVRO": '"int"', "JSON": '{"type": "integer"}', "PROTOBUF": 'syntax = "proto3"; message A {}'}


@pytest.mark.parametrize("kind", SCHEMA_TYPES)
def test_each_type_is_read_and_says_what_it_is(kind: str) -> None:
    schema = parse(kind, TEXTS[kind])
    assert schema.schema_type == kind
    assert parse(kind, schema.canonical()).canonical() == schema.canonical()
    assert schema.formatted("no such format") == schema.canonical()
    assert schema.can_read(schema) == []


@pytest.mark.parametrize("kind", ["XML", "avro", ""])
def test_another_type_is_refused(kind: str) -> None:
    with pytest.raises(InvalidSchemaError, match="AVRO, JSON or PROTOBUF"):
        parse(kind, "")


@pytest.mark.parametrize("kind", SCHEMA_TYPES)
@pytest.mark.parametrize("text", ["", " ", "\0", "\ud800", "nonsense", "x" * (MAX_TEXT + 1), "[" * 100_000])
def test_what_is_no_schema_is_refused(kind: str, text: str) -> None:
    if not (kind == "PROTOBUF" and not text.strip(" ")):  # an empty file is one
        with pytest.raises(InvalidSchemaError):
            parse(kind, text)


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_a_text_that_is_too_long_is_not_looked_at(kind: str) -> None:
    with pytest.raises(InvalidSchemaError, match="4,000,001 characters; 4,000,000 are allowed"):
        parse(kind, " " * (MAX_TEXT + 1))
