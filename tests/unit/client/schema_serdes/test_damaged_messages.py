"""Damaged messages of all formats: a value or a `SerializationError`, in little time, and nothing else."""

import json
import random
import time
import uuid
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from headrace.errors import SchemaRegistryError, SerializationError
from headrace.schema_registry import SchemaRegistryClient
from headrace.schema_registry.avro import AvroDeserializer, AvroSerializer
from headrace.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from headrace.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from headrace.serialization import MessageField, SerializationContext
from tests.support.protobuf_samples import compiled

AVRO = json.dumps({"type": "record", "name": "R", "fields": [
    {"name": "text", "type": "string"}, {"name": "next", "type": ["null", "R"]},
    {"name": "all", "type": {"type": "array", "items": ["null", "long", "string"]}},
    {"name": "of", "type": {"type": "map", "values": {"type": "bytes", "logicalType": "decimal", "precision": 8}}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}}]})
RECORD = {"text": "some text", "next": None, "all": [None, 5, "a"], "of": {"a": Decimal(12)},
          "at": datetime(2026, 1, 2, tzinfo=UTC), "id": uuid.UUID(int=3)}
JSON = '{"type":"object","properties":{"a":{"type":"array","items":{"type":"number"}}}}'
CONTEXT = SerializationContext("damaged", MessageField.VALUE)


def formats():
    client = SchemaRegistryClient({"url": f"mock://{uuid.uuid4()}"})
    user = compiled()["user"].User
    message = user(name="a", number=3, tags=["x"] * 3, place={"name": "b", "point": {"x": 1.5}})
    return {
        "avro": (AvroSerializer(client, AVRO)({**RECORD, "next": RECORD}, CONTEXT), AvroDeserializer(client)),
        "json": (JSONSerializer(JSON, client)({"a": [1, 2.5e3]}, CONTEXT),
                 JSONDeserializer(None, schema_registry_client=client)),
        "protobuf": (ProtobufSerializer(user, client)(message, CONTEXT),
                     ProtobufDeserializer(user, schema_registry_client=client)),
    }


def damaged(chance: random.Random, payload: bytes) -> bytes:
    made = bytearray(payload)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(5, len(made)) if chance.random() < 0.9 else chance.randrange(len(made))
        what = chance.randrange(4)
        if what == 0:
            made[place] = chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        elif what == 1:
            del made[place:place + chance.randrange(1, 9)]
        elif what == 2:
            made[place:place] = chance.choice([b"\xff" * 9 + b"\1", b"\x80" * 20, chance.randbytes(5), b"[" * 2000])
        else:
            made[place:] = made[place:] * chance.randrange(1, 4)
        if len(made) < 6:
            break
    return bytes(made)


@pytest.mark.parametrize("form", ["avro", "json", "protobuf"])
def test_a_damaged_message_is_a_value_or_an_error_that_says_so(form) -> None:
    payload, deserializer = formats()[form]
    chance, refused = random.Random(7), 0
    began = time.process_time()
    for _ in range(3000):
        try:
            deserializer(damaged(chance, payload), CONTEXT)
        except SerializationError:
            refused += 1
        except SchemaRegistryError as error:
            if error.http_status_code != 404:  # which is another schema id
                raise
    assert refused > 300
    assert time.process_time() - began < 20
    assert deserializer(payload, CONTEXT)
