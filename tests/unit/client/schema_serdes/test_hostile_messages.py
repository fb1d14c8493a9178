"""Messages and schemas that are made to cost much: each is an error that says why, in little time and memory."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.struct_pb2 import ListValue

from headrace.errors import SchemaRegistryError, SerializationError
from headrace.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from headrace.schema_registry.avro import AvroDeserializer
from headrace.schema_registry.json_schema import JSONDeserializer
from headrace.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from headrace.serialization import MessageField, SerializationContext
from tests.support.protobuf_samples import compiled

CONTEXT = SerializationContext("hostile", MessageField.VALUE)
DEEP = 10_000
MOST_S, MOST_BYTES = 5, 30_000_000
Read = Callable[[bytes], Any]


@pytest.fixture
def client() -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": f"mock://{uuid.uuid4()}"})


def refused(read: Callable[[], Any]) -> str:
    """The reason why; within bounds of time and memory."""
    began = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(SerializationError) as raised:
            read()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < MOST_S
    assert most < MOST_BYTES
    return str(raised.value)


def framed(schema_id: int, payload: bytes) -> bytes:
    return struct.pack(">bI", 0, schema_id) + payload


def varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*made, value))


SCHEMAS = {
    "arrays of arrays": ("AVRO", '{"type":"array","items":' * DEEP + '"int"' + "}" * DEEP),
    "unions of unions": ("AVRO", "[" * DEEP + '"int"' + "]" * DEEP),
    "four hundred arrays": ("AVRO", '{"type":"array","items":' * 400 + '"int"' + "}" * 400),
    "a record of itself": ("AVRO", '{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}'),
    "no Avro": ("AVRO", '{"type":"nonsense"}'), "items of items": ("JSON", '{"items":' * DEEP + "{}" + "}" * DEEP),
    "nine hundred negations": ("JSON", '{"not":' * 900 + "{}" + "}" * 900), "no JSON": ("JSON", "{"),
    "another host": ("JSON", '{"$ref":"http://127.0.0.1:9/x"}'), "a file": ("JSON", '{"$ref":"file:///etc/passwd"}'),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_of_the_registry_that_cannot_be_used_is_refused(client: SchemaRegistryClient, name: str) -> None:
    kind, text = SCHEMAS[name]
    schema_id = client.register_schema("hostile-value", Schema(text, kind))
    make: Any = AvroDeserializer if kind == "AVRO" else lambda registry: JSONDeserializer(
        None, schema_registry_client=registry)
    assert refused(lambda: make(client)(framed(schema_id, b"[]"), CONTEXT))


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_schemas_that_refer_to_each_other_in_a_circle_are_refused(client: SchemaRegistryClient, kind: str) -> None:
    text = '{"$ref":"b"}' if kind == "JSON" else '{"type":"array","items":"b"}'
    schema_id = client.register_schema("a", Schema(text, kind, [SchemaReference("b", "b", 1)]))
    client.register_schema("b", Schema(text, kind, [SchemaReference("b", "b", 1)]))
    make: Any = AvroDeserializer if kind == "AVRO" else lambda registry: JSONDeserializer(
        None, schema_registry_client=registry)
    assert "in a circle" in refused(lambda: make(client)(framed(schema_id, b"[]"), CONTEXT))


def test_a_schema_that_refers_to_itself_checks_a_value_once(client: SchemaRegistryClient) -> None:
    schema_id = client.register_schema("hostile-value", Schema('{"allOf":[{"$ref":"#"},{"$ref":"#"}]}', "JSON"))
    assert JSONDeserializer(None, schema_registry_client=client)(framed(schema_id, b"[1]"), CONTEXT) == [1]


JSON_TEXTS = {
    "lists": b"[" * 1_000_000, "closed lists": b"[" * DEEP + b"]" * DEEP, "objects": b'{"a":' * 200_000,
    "a number": b"9" * 1_000_000, "a text": b'"' + b"\\u" * 500_000, "no UTF-8": b'"\xff"', "half a pair": b'"\\ud800"',
    "nothing": b"", "too large a number": b"1e400",
}


@pytest.mark.parametrize("name", JSON_TEXTS)
def test_json_that_cannot_be_read_is_refused(client: SchemaRegistryClient, name: str) -> None:
    if name in ("closed lists", "half a pair", "too large a number"):  # Python's own json takes them
        pytest.importorskip("orjson")
    schema_id = client.register_schema("hostile-value", Schema("{}", "JSON"))
    read = JSONDeserializer(None, schema_registry_client=client)
    assert "not JSON" in refused(lambda: read(framed(schema_id, JSON_TEXTS[name]), CONTEXT))


@pytest.mark.parametrize(("pattern", "text"), [
    ("^(a+)+$", "a" * 50 + "!"), ("^(?=(a+)+$)(a+)+$", "a" * 50 + "!"), (r"^(a*)*\1b$", "a" * 200 + "!")])
def test_patterns_that_go_back_and_forth_end(client: SchemaRegistryClient, pattern: str, text: str) -> None:
    schema_id = client.register_schema("hostile-value", Schema(json.dumps({"pattern": pattern}), "JSON"))
    read = JSONDeserializer(None, schema_registry_client=client)
    assert refused(lambda: read(framed(schema_id, json.dumps(text).encode()), CONTEXT))


PROTOBUF = {
    "a length that is not there": b"\x0a" + varint(1 << 31) + b"a",
    "the longest length": b"\x0a" + varint((1 << 64) - 1), "a number without an end": b"\x10" + b"\xff" * 100_000,
    "groups of groups": b"\x0b" * 100_000, "a group that ends only": b"\x0c", "no field": b"\x00", "no type": b"\x0f\1",
    "a text that is none": b"\x0a\2\xff\xfe",
}


@pytest.mark.parametrize("name", PROTOBUF)
def test_protobuf_that_cannot_be_read_is_refused(client: SchemaRegistryClient, name: str) -> None:
    user = compiled()["user"].User
    frame = ProtobufSerializer(user, client)(user(), CONTEXT)
    read = ProtobufDeserializer(user, schema_registry_client=client)
    assert read(frame, CONTEXT) == user()
    assert refused(lambda: read(frame + PROTOBUF[name], CONTEXT))


def lists_of_lists(levels: int) -> bytes:
    payload = b""
    for _ in range(levels):  # a list of one value, which is a list
        value = b"\x32" + varint(len(payload)) + payload
        payload = b"\x0a" + varint(len(value)) + value
    return payload


def test_messages_of_messages_are_refused_when_they_nest_too_deep(client: SchemaRegistryClient) -> None:
    frame = ProtobufSerializer(ListValue, client)(ListValue(), CONTEXT)
    read = ProtobufDeserializer(ListValue, schema_registry_client=client)
    assert read(frame + lists_of_lists(10), CONTEXT).ByteSize() == len(lists_of_lists(10))
    assert refused(lambda: read(frame + lists_of_lists(DEEP), CONTEXT))


@pytest.mark.parametrize("indexes", [
    varint(2 << 30), varint(2 * 5) + b"\0" * 4, varint(2) + b"\xff" * 50, b"\1", varint(2) + varint(2 * 99),
    varint(2 * 1000) + b"\0" * 1000])
def test_message_indexes_that_lead_nowhere_are_refused(client: SchemaRegistryClient, indexes: bytes) -> None:
    user = compiled()["user"].User
    frame = ProtobufSerializer(user, client)(user(), CONTEXT)
    read = ProtobufDeserializer(user, schema_registry_client=client)
    assert refused(lambda: read(frame[:5] + indexes, CONTEXT))


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0\0\0", b"\1" + b"g" * 15, b"\2abcd", b"\xff" * 100])
@pytest.mark.parametrize("make", [
    AvroDeserializer, lambda client: JSONDeserializer(None, schema_registry_client=client),
    lambda client: ProtobufDeserializer(compiled()["user"].User, schema_registry_client=client)],
    ids=["avro", "json", "protobuf"])
def test_a_frame_that_is_none_is_refused(client: SchemaRegistryClient, make: Any, frame: bytes) -> None:
    assert refused(lambda: make(client)(frame, CONTEXT))


def test_a_schema_that_nobody_has_registered_is_the_registrys_refusal(client: SchemaRegistryClient) -> None:
    with pytest.raises(SchemaRegistryError, match="404"):
        AvroDeserializer(client)(framed(0x7FFFFFFF, b"x"), CONTEXT)
