"""Avro's serializers and deserializers."""

import asyncio
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from headrace.client.schema_serdes.avro_serdes import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
    AvroSerializer,
)
from headrace.errors import SerializationError
from headrace.serialization import MessageField, SerializationContext
from headrace.types.registry import Schema, SchemaReference
from tests.support.kept_registry import AsyncKeptRegistry, KeptRegistry

VALUE = SerializationContext("users", MessageField.VALUE)
STREET = '{"type":"record","name":"Street","namespace":"a.b","fields":[{"name":"name","type":"string"}]}'
USER = '{"type":"record","name":"User","namespace":"a.b","fields":[{"name":"street","type":"a.b.Street"}]}'


@dataclass
class Street:
    name: str


@dataclass
class User:
    street: Street


class Model(BaseModel):
    street: dict[str, str]


def referring(registry: KeptRegistry) -> Schema:
    registry.register_schema("streets", Schema(STREET))
    return Schema(USER, "AVRO", [SchemaReference("a.b.Street", "streets", 1)])


@pytest.mark.parametrize("value", [{"street": {"name": "Via"}}, User(Street("Via")), Model(street={"name": "Via"})])
def test_records_are_dicts_dataclasses_or_models_and_schemas_may_refer_to_others(value) -> None:
    registry = KeptRegistry()
    serializer = AvroSerializer(registry, referring(registry))
    payload = serializer(value, VALUE)
    assert payload == b"\0\0\0\0\2\6Via"
    assert AvroDeserializer(registry)(payload, VALUE) == {"street": {"name": "Via"}}


def test_a_primitive_schema_is_registered_as_an_object() -> None:
    registry = KeptRegistry()
    AvroSerializer(registry, '"string"')("a", VALUE)
    assert registry.versions["users-value"][0].schema.schema_str == '{"type":"string"}'


def test_the_name_of_the_record_is_its_full_name() -> None:
    registry = KeptRegistry()
    AvroSerializer(registry, STREET, conf={"subject.name.strategy.type": "TOPIC_RECORD"})({"name": "a"}, VALUE)
    assert list(registry.versions)[-1] == "users-a.b.Street"


def test_a_value_that_does_not_fit_is_the_librarys_error() -> None:
    serializer = AvroSerializer(KeptRegistry(), STREET)
    with pytest.raises((TypeError, ValueError)):
        serializer({"name": 3}, VALUE)


def test_strict_values_have_the_schemas_fields_and_no_others() -> None:
    with pytest.raises(ValueError):
        AvroSerializer(KeptRegistry(), STREET, conf={"validate.strict": True})({"name": "a", "more": 1}, VALUE)
    assert AvroSerializer(KeptRegistry(), STREET)({"name": "a", "more": 1}, VALUE) == b"\0\0\0\0\1\2a"


def test_a_schema_that_cannot_be_read_is_an_error_of_the_constructor() -> None:
    with pytest.raises(SerializationError):
        AvroSerializer(KeptRegistry(), "{")
    with pytest.raises(SerializationError):
        AvroDeserializer(KeptRegistry(), "{")
    with pytest.raises(TypeError, match="schema_str"):
        AvroDeserializer(KeptRegistry(), 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="return_record_name"):
        AvroDeserializer(KeptRegistry(), return_record_name="yes")  # type: ignore[arg-type]


def test_without_a_registry_avro_cannot_be_read() -> None:
    with pytest.raises(SerializationError, match="Schema Registry client"):
        AvroDeserializer(None)(b"\0\0\0\0\1\2a", VALUE)


def test_awaited_they_do_the_same() -> None:
    async def both() -> None:
        registry = AsyncKeptRegistry()
        serializer = await AsyncAvroSerializer(registry, referring(registry.kept))
        payload = await serializer(User(Street("Via")), VALUE)
        assert payload == b"\0\0\0\0\2\6Via"
        deserializer = await AsyncAvroDeserializer(registry, None, lambda value, ctx: value["street"]["name"])
        assert await deserializer(payload, VALUE) == "Via"
        with pytest.raises(SerializationError):
            await AsyncAvroSerializer(registry, "{")

    asyncio.run(both())
