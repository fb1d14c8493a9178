"""Serializers of both packages and the embedded registry, over HTTP: each reads what the other wrote."""

import json
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.testing import EmbeddedBroker
from tests.support.protobuf_samples import compiled

STREET = '{"type":"record","name":"Street","namespace":"a.b","fields":[{"name":"name","type":"string"}]}'
HOUSE = ('{"type":"record","name":"House","namespace":"a.b","fields":[{"name":"street","type":"a.b.Street"},'
         '{"name":"number","type":"int"}]}')
NEWER = HOUSE.replace('{"name":"number","type":"int"}',
                      '{"name":"number","type":"long"},{"name":"city","type":"string","default":"Rome"}')
NAME = '{"type":"string","maxLength":5}'
USER = json.dumps({"type": "object", "title": "User", "properties": {"name": {"$ref": "name.json"}}})
BOTH = ["headrace", "confluent_kafka"]


@pytest.fixture(scope="module")
def url():
    with EmbeddedBroker(registry=True) as broker:
        yield broker.registry_url


@pytest.fixture
def package(url):
    opened = []

    def made(name: str) -> Any:
        opened.append(opened_package(name, url))
        return opened[-1]

    yield made
    for each in opened:
        each.client.close()


def opened_package(name: str, url: str) -> Any:
    found: dict[str, Any] = {}
    for module in ("serialization", "schema_registry", *(f"schema_registry.{form}" for form in (
            "avro", "json_schema", "protobuf"))):
        found |= vars(import_module(f"{name}.{module}"))
    return SimpleNamespace(client=found["SchemaRegistryClient"]({"url": url}), **found)


def serdes(writer: Any, reader: Any, conf: dict[str, Any]) -> dict[str, tuple[Any, Any, Any]]:
    """By topic: serializer, deserializer, value."""
    street = writer.SchemaReference("a.b.Street", "street", 1)
    writer.client.register_schema("street", writer.Schema(STREET, "AVRO"))
    writer.client.register_schema("name", writer.Schema(NAME, "JSON"))
    user = compiled()["user"].User
    place = {"name": "b", "point": {"x": 1.5}}
    return {
        "avro": (writer.AvroSerializer(writer.client, writer.Schema(HOUSE, "AVRO", [street]), conf=conf),
                 reader.AvroDeserializer(reader.client), {"street": {"name": "Via dei Condotti"}, "number": 3}),
        "json": (writer.JSONSerializer(writer.Schema(USER, "JSON", [writer.SchemaReference("name.json", "name", 1)]),
                                       writer.client, conf=conf),
                 reader.JSONDeserializer(None, schema_registry_client=reader.client), {"name": "Anna"}),
        "protobuf": (writer.ProtobufSerializer(user, writer.client, conf),
                     reader.ProtobufDeserializer(user, schema_registry_client=reader.client),
                     user(name="a", place=place)),
        "inner": (writer.ProtobufSerializer(user.Inner.Innermost, writer.client, conf),
                  reader.ProtobufDeserializer(user.Inner.Innermost, schema_registry_client=reader.client),
                  user.Inner.Innermost(b=7)),
    }


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(("writing", "reading"), [(a, b) for a in BOTH for b in BOTH if (a, b) != (BOTH[1], BOTH[1])])
def test_what_one_writes_the_other_reads(package, writing, reading, header) -> None:
    writer, reader = package(writing), package(reading)
    conf = {"schema.id.serializer": writer.header_schema_id_serializer} if header else {}
    for topic, (serialize, deserialize, value) in serdes(writer, reader, conf).items():
        headers: Any = [] if header else None
        payload = serialize(value, writer.SerializationContext(topic, writer.MessageField.VALUE, headers))
        assert deserialize(payload, reader.SerializationContext(topic, reader.MessageField.VALUE, headers)) == value
        assert bool(headers) == header


def test_a_newer_schema_is_followed_by_readers_of_the_latest(package) -> None:
    k = package("headrace")
    context = k.SerializationContext("evolved", k.MessageField.VALUE)
    k.client.register_schema("street", k.Schema(STREET, "AVRO"))
    references = [k.SchemaReference("a.b.Street", "street", 1)]
    payload = k.AvroSerializer(k.client, k.Schema(HOUSE, "AVRO", references))(
        {"street": {"name": "Via"}, "number": 3}, context)
    k.client.register_schema("evolved-value", k.Schema(NEWER, "AVRO", references))
    reader = k.AvroDeserializer(k.client, conf={"use.latest.version": True})
    assert reader(payload, context) == {"street": {"name": "Via"}, "number": 3, "city": "Rome"}


def test_a_schema_that_is_not_compatible_is_the_registrys_error(package) -> None:
    k = package("headrace")
    context = k.SerializationContext("strict", k.MessageField.VALUE)
    k.AvroSerializer(k.client, STREET)({"name": "Via"}, context)
    with pytest.raises(k.SchemaRegistryError) as refused:
        k.AvroSerializer(k.client, STREET.replace('"string"', '"int"'))({"name": 3}, context)
    assert refused.value.http_status_code == 409
