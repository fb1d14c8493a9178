"""How a message says which schema it was written with: the same bytes and headers as confluent_kafka's."""

from __future__ import annotations

import io
import uuid
from typing import Any

import confluent_kafka.schema_registry as theirs
import pytest
from confluent_kafka.schema_registry.serde import SchemaId as PeersId
from confluent_kafka.serialization import SerializationContext as PeersContext

from headrace.client.registry import schema_ids
from headrace.client.registry.schema_ids import (
    SchemaId,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
    prefix_schema_id_deserializer,
    prefix_schema_id_serializer,
)
from headrace.errors import SerializationError
from headrace.serialization import MessageField, SerializationContext

GUID = "89791762-2336-4186-9674-299b90a802e2"
INDEXES = [None, [0], [1], [2, 0, 300], [-1, 70000], [0] * 40]


@pytest.mark.parametrize("indexes", INDEXES)
def test_what_stands_before_a_payload_is_confluent_kafkas_and_is_read_again(indexes: list[int] | None) -> None:
    kind = "AVRO" if indexes is None else "PROTOBUF"
    written = prefix_schema_id_serializer(b"rest", None, SchemaId(kind, 7, GUID, indexes))
    assert written == theirs.prefix_schema_id_serializer(b"rest", None, PeersId(kind, 7, GUID, indexes))
    found = SchemaId(kind)
    assert prefix_schema_id_deserializer(written, None, found).read() == b"rest"
    assert (found.id, found.guid, found.message_indexes) == (7, None, indexes)


@pytest.mark.parametrize("indexes", INDEXES)
@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize("empty", [[], {}])
def test_what_stands_in_a_header_is_confluent_kafkas_and_is_read_again(
    indexes: list[int] | None, part: str, empty: Any
) -> None:
    kind = "AVRO" if indexes is None else "PROTOBUF"
    ours, peers = type(empty)(), type(empty)()
    context = SerializationContext("t", MessageField(part), ours)
    assert header_schema_id_serializer(b"all", context, SchemaId(kind, 7, GUID, indexes)) == b"all"
    theirs.header_schema_id_serializer(b"all", PeersContext("t", part, peers), PeersId(kind, 7, GUID, indexes))
    assert ours == peers
    found = SchemaId(kind)
    assert dual_schema_id_deserializer(b"all", context, found).read() == b"all"
    assert (found.id, found.guid, found.message_indexes) == (None, uuid.UUID(GUID), indexes)


@pytest.mark.parametrize("headers", [None, [], {}, [("__key_schema_id", b"\1" + bytes(16))], [("other", None)]])
def test_without_a_header_of_its_own_a_value_is_looked_at_in_front(headers: Any) -> None:
    found = SchemaId("JSON")
    context = SerializationContext("t", MessageField.VALUE, headers)
    assert dual_schema_id_deserializer(b"\0\0\0\1\0rest", context, found).read() == b"rest"
    assert found.id == 256
    assert dual_schema_id_deserializer(b"\0\0\0\1\0rest", None, found).read() == b"rest"


def test_a_guid_may_stand_in_front_as_well() -> None:
    found = SchemaId("JSON")
    assert found.from_bytes(io.BytesIO(b"\1" + uuid.UUID(GUID).bytes + b"rest")).read() == b"rest"
    assert found.guid == uuid.UUID(GUID)


@pytest.mark.parametrize(("payload", "message"), [
    (b"", "it is empty"), (b"\2abcdefg", "Invalid magic byte: the first byte is 2"),
    (b"\0\0\0", "ends within a schema id: 2 of 4 bytes"), (b"\1" + bytes(15), "ends within a schema GUID: 15 of 16"),
    (bytes(5), "ends within its message indexes"), (bytes(5) + b"\4\2", "ends within its message indexes"),
    (bytes(5) + b"\1", "Invalid msgidx array length: -1"),
    (bytes(5) + b"\x80\x80\x80\x01" + bytes(9), "Invalid msgidx array length: 1048576"),
    (bytes(5) + b"\xff" * 20, "more than five bytes"),
])
def test_bytes_that_say_no_schema_are_an_error_that_says_so(payload: bytes, message: str) -> None:
    with pytest.raises(SerializationError, match=message):
        prefix_schema_id_deserializer(payload, None, SchemaId("PROTOBUF"))


@pytest.mark.parametrize(("context", "message"), [
    (None, "SerializationContext is required"),
    (SerializationContext("t", MessageField.KEY), "Missing headers"),
    (SerializationContext("t", MessageField.KEY, (("a", b"b"),)), "Invalid headers type: tuple"),  # type: ignore[arg-type]
])
def test_a_guid_needs_headers_to_be_put_into(context: SerializationContext | None, message: str) -> None:
    with pytest.raises(SerializationError, match=message):
        header_schema_id_serializer(b"", context, SchemaId("AVRO", 1, GUID))


def test_what_is_not_known_cannot_be_written() -> None:
    with pytest.raises(SerializationError, match="Schema ID is not set"):
        SchemaId("AVRO").id_to_bytes()
    with pytest.raises(SerializationError, match="4294967296 is no number of 32 bits"):
        SchemaId("AVRO", 1 << 32).id_to_bytes()
    with pytest.raises(SerializationError, match="Schema GUID is not set"):
        SchemaId("AVRO", 1).guid_to_bytes()


def test_headers_have_confluents_names() -> None:
    assert (schema_ids.KEY_SCHEMA_ID_HEADER, schema_ids.VALUE_SCHEMA_ID_HEADER) == \
        ("__key_schema_id", "__value_schema_id")
