"""Avro by fastavro."""

import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from headrace.client.schema_serdes.codecs.avro_codec import avro_name, declared, parsed, reader_of, writer_of
from headrace.errors import DependencyError, SerializationError

USER = """{"type":"record","name":"User","namespace":"org.example","fields":[
    {"name":"name","type":"string"},{"name":"age","type":["null","int"],"default":null}]}"""


@pytest.mark.parametrize(("text", "made"), [
    ('"string"', '{"type":"string"}'), (' {"type":"int"} ', '{"type":"int"}'), ('["null"]', '["null"]')])
def test_a_primitive_alone_is_declared_as_an_object(text, made) -> None:
    assert declared(text) == made


@pytest.mark.parametrize(("text", "name"), [
    (USER, "org.example.User"), ('"string"', "string"), ('["null","int"]', None)])
def test_the_name_of_a_schema(text, name) -> None:
    assert avro_name(parsed(text)) == name


@pytest.mark.parametrize("text", ["", "nonsense", "{", '{"type":"nope"}', "[" * 100_000,
                                  '{"type":"array","items":' * 10_000 + '"int"' + "}" * 10_000])
def test_what_is_no_schema_is_an_error(text) -> None:
    with pytest.raises(SerializationError):
        parsed(text)


@pytest.mark.parametrize(("text", "value"), [
    ('"int"', 3), ('"string"', "zwölf"), ('["null","string"]', None), ('"bytes"', b"\0\1"),
    ('{"type":"int","logicalType":"date"}', date(2026, 11, 22)),
    ('{"type":"long","logicalType":"timestamp-millis"}', datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ('{"type":"string","logicalType":"uuid"}', UUID(int=7)),
    ('{"type":"fixed","name":"D","size":8,"logicalType":"decimal","precision":10,"scale":2}', Decimal("12.34")),
    (USER, {"name": "a", "age": 3})])
def test_what_is_written_is_read(text, value) -> None:
    schema = parsed(text)
    assert reader_of(schema)(bytes(writer_of(schema)(value))) == value


def test_bytes_alone_have_no_length() -> None:
    assert writer_of(parsed('"bytes"'))("abc") == b"abc"
    with pytest.raises(TypeError, match="takes bytes or str"):
        writer_of(parsed('"bytes"'))(3)


def test_a_dataclass_is_a_record() -> None:
    @dataclass
    class User:
        name: str
        age: int

    schema = parsed(USER)
    assert reader_of(schema)(bytes(writer_of(schema)(User("a", 3)))) == {"name": "a", "age": 3}


def test_values_become_those_of_the_schema_that_is_asked_for() -> None:
    newer = parsed(USER.replace('"name":"age"', '"name":"years","aliases":["age"]').replace(
        '"fields":[', '"fields":[{"name":"city","type":"string","default":"Rome"},'))
    written = bytes(writer_of(parsed(USER))({"name": "a", "age": 3}))
    assert reader_of(parsed(USER), newer)(written) == {"city": "Rome", "name": "a", "years": 3}


def test_values_that_cannot_become_those_of_the_other_schema_are_an_error() -> None:
    with pytest.raises(SerializationError):
        reader_of(parsed('"string"'), parsed('"int"'))(b"\2a")


def test_records_of_a_union_come_with_their_names_if_they_are_to() -> None:
    text = ('[{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]},'
            '{"type":"record","name":"B","fields":[{"name":"x","type":"int"}]}]')
    schema = parsed(text)
    written = bytes(writer_of(schema)(("B", {"x": 1})))
    assert reader_of(schema, return_record_name=True)(written) == ("B", {"x": 1})
    assert reader_of(schema)(written) == {"x": 1}


def test_strict_writing_refuses_other_fields_and_missing_ones() -> None:
    schema = parsed(USER)
    with pytest.raises(ValueError):
        writer_of(schema, strict=True)({"name": "a", "age": 1, "more": 2})
    with pytest.raises(ValueError):
        writer_of(schema, strict=True)({"name": "a"})
    assert writer_of(schema, strict_allow_default=True)({"name": "a"}) == b"\x02a\x00"


def test_schemas_that_are_referred_to() -> None:
    references = {
        "org.example.Street": '{"type":"record","name":"Street","namespace":"org.example","fields":[]}',
        "Alias": '{"type":"record","name":"Town","fields":[{"name":"s","type":"org.example.Street"}]}'}
    schema = parsed('{"type":"record","name":"R","fields":[{"name":"t","type":"Alias"},'
                    '{"name":"u","type":["null","org.example.Street"]}]}', references)
    value = {"t": {"s": {}}, "u": {}}
    assert reader_of(schema)(bytes(writer_of(schema)(value))) == value
    with pytest.raises(SerializationError, match="Alias"):
        parsed('{"type":"record","name":"R","fields":[{"name":"t","type":"Alias"}]}')


REFERENCES = {name: f'{{"type":"record","name":"{name}","fields":[{{"name":"{name}","type":"int"}}]}}' for name in "AB"}


@pytest.mark.parametrize(("text", "value", "read"), [
    ('["A","B"]', ("B", {"B": 1}), {"B": 1}), ('{"type":"array","items":"A"}', [{"A": 1}], [{"A": 1}]),
    ('{"type":"map","values":["null","B"]}', {"x": {"B": 2}}, {"x": {"B": 2}}),
    ('["null",{"type":"array","items":["A","B"]}]', [{"A": 1}, {"B": 1}], [{"A": 1}, {"B": 1}])])
def test_a_schema_that_is_no_record_may_refer_to_records(text, value, read) -> None:
    schema = parsed(text, REFERENCES)
    assert reader_of(schema)(bytes(writer_of(schema)(value))) == read


@pytest.mark.parametrize("text", [USER, f'["null",{USER}]', f'{{"type":"array","items":{USER}}}',
                                  f'["null",{{"type":"map","values":{USER}}}]'])
def test_fastavro_does_not_parse_the_schema_again_for_each_value(text) -> None:
    import fastavro
    schema = parsed(text)
    for branch in schema.content if isinstance(schema.content, list) else [schema.content]:
        assert fastavro.parse_schema(branch) is branch


@pytest.mark.parametrize("payload", [b"", b"\x04a", b"\x02a\x09", b"\x02\xff\x00", b"\xff" * 20])
def test_bytes_that_do_not_fit_are_an_error_that_names_the_schema(payload) -> None:
    with pytest.raises(SerializationError, match=r"org\.example\.User"):
        reader_of(parsed(USER))(payload)


def test_without_fastavro_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(DependencyError, match=r"pip install headrace\[avro\]"):
        parsed(USER)
