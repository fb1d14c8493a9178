"""Descriptors written and read, compared with those of Protobuf's own compiler."""

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headrace.schemas.parsed import InvalidSchemaError, ReferencedSchema
from headrace.schemas.protobuf import parse_protobuf
from tests.unit.schemas.proto.samples import EDITION, OTHER, PROTO2, PROTO3, compiled

REFERENCES = [ReferencedSchema("other/types.proto", OTHER)]
SAMPLES = {"proto3": PROTO3, "proto2": PROTO2, "no syntax": "message A { optional int32 a = 1; }", "edition": EDITION}


def theirs(text: str) -> FileDescriptorProto:
    made = compiled(text, {"other/types.proto": OTHER})
    assert made is not None
    made.name = "default"
    for message in _messages(list(made.message_type)):
        for field in message.field:
            if field.json_name == _json_name(field.name):
                field.ClearField("json_name")
    for field in [*made.extension, *(each for message in made.message_type for each in message.extension)]:
        field.ClearField("json_name")
    return made


def _messages(messages: list) -> list:
    return [each for message in messages for each in (message, *_messages(list(message.nested_type)))]


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_a_descriptor_is_the_compiler_s(text: str) -> None:
    ours = FileDescriptorProto.FromString(parse_protobuf(text, REFERENCES).descriptor())
    assert str(ours) == str(theirs(text))


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_the_compiler_takes_the_text_that_is_written_and_finds_the_same_in_it(text: str) -> None:
    assert theirs(parse_protobuf(text, REFERENCES).canonical()) == theirs(text)


def test_numbers_are_the_compiler_s() -> None:
    whole = ["0x10", "-0x10", "010", "-010", "7", "-7", "0XfF", "0"]
    real = ["1e3", "1e15", "1e17", "1.0", ".5", "-.5", "0.1", "3", "1e400", "inf", "-inf", "nan", "1e-7", "0.0001",
            "123456789.125", "3.4028236e38", "0x10", "010", "0.30000000000000004", "-0.0", "-0", "3.3",
            "100000000000000000000"]
    fields = [f"{kind} f{at}_{kind} = {number} [default = {text}];" for number, (kind, at, text) in enumerate(
        [(kind, at, text) for kind in ("int32", "sint64") for at, text in enumerate(whole)]
        + [(kind, at, text) for kind in ("double", "float") for at, text in enumerate(real)], 1)]
    text = f'syntax = "proto2"; message M {{ {" ".join(f"optional {each}" for each in fields)} }}'
    ours = FileDescriptorProto.FromString(parse_protobuf(text, REFERENCES).descriptor())
    assert [each.default_value for each in ours.message_type[0].field] == [
        each.default_value for each in theirs(text).message_type[0].field]


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_a_descriptor_of_the_compiler_reads_as_the_text_does(text: str) -> None:
    encoded = base64.b64encode(theirs(text).SerializeToString()).decode()
    read = parse_protobuf(encoded, REFERENCES)
    assert FileDescriptorProto.FromString(read.descriptor()) == theirs(text)
    assert read.normalized() == parse_protobuf(text, REFERENCES).normalized()
    assert base64.b64decode(read.formatted("serialized")) == read.descriptor()


@pytest.mark.parametrize("change", [
    {"package": 'a";'}, {"name": "x", "dependency": ['google/protobuf/x"']},
    {"message_type": [{"name": "A{"}]}, {"enum_type": [{"name": "A", "value": [{"name": "B=1", "number": 0}]}]},
    {"message_type": [{"name": "A", "field": [{"name": "b", "number": 1, "label": 1, "type": 10}]}]},
    {"message_type": [{"name": "A", "field": [{"name": "b", "number": 1, "label": 1, "type": 11, "type_name": ".C"}]}]},
    {"message_type": [{"name": "A", "field": [{"name": "b", "number": 1, "label": 1, "type": 5,
                                               "default_value": "1];"}]}]},
])
def test_a_descriptor_whose_words_are_none_is_refused(change: dict) -> None:
    encoded = base64.b64encode(FileDescriptorProto(**change).SerializeToString()).decode()
    with pytest.raises(InvalidSchemaError):
        parse_protobuf(encoded)


def test_damaged_descriptors_are_read_or_refused() -> None:
    whole = theirs(PROTO3).SerializeToString()
    refused = 0
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:]):
            try:
                parse_protobuf(base64.b64encode(damaged).decode() or "=", REFERENCES)
            except InvalidSchemaError:
                refused += 1
    assert refused > len(whole)


def test_nested_descriptors_are_bounded() -> None:
    data = b"\x0a\x01A"
    for _ in range(200):
        data = b"\x0a\x01A\x1a" + bytes([len(data) & 0x7F | 0x80, len(data) >> 7 & 0x7F | 0x80, len(data) >> 14]) + data
    whole = b"\x22" + bytes([len(data) & 0x7F | 0x80, len(data) >> 7 & 0x7F | 0x80, len(data) >> 14]) + data
    with pytest.raises(InvalidSchemaError, match="deep"):
        parse_protobuf(base64.b64encode(whole).decode())
