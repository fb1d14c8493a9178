"""Builders of serializers."""

import asyncio
import inspect

import pytest

from headrace.client.schema_serdes import serde_builders
from headrace.client.schema_serdes.avro_serdes import AvroSerializer
from headrace.client.schema_serdes.serde_builders import (
    AsyncAvroDeserializerBuilder,
    AsyncAvroSerializerBuilder,
    AvroDeserializerBuilder,
    AvroSerializerBuilder,
    JSONDeserializerBuilder,
    JSONSerializerBuilder,
    ProtobufDeserializerBuilder,
    ProtobufSerializerBuilder,
    async_build_serde,
    build_serde,
)
from headrace.schema_registry import AsyncSchemaRegistryClient, SchemaRegistryClient
from headrace.serialization import MessageField, SerializationContext
from tests.support.kept_registry import KeptRegistry
from tests.support.protobuf_samples import compiled

VALUE = SerializationContext("users", MessageField.VALUE)
INT = '{"type":"int"}'


@pytest.mark.parametrize(("writing", "reading", "value", "payload"), [
    (AvroSerializerBuilder().set_schema(INT), AvroDeserializerBuilder(), 1, b"\0\0\0\0\1\2"),
    (JSONSerializerBuilder().set_schema("{}"), JSONDeserializerBuilder().set_schema("{}"), 1, b"\0\0\0\0\0011"),
    (JSONSerializerBuilder(schema="{}", json_encode=lambda value: f"{value}!"),
     JSONDeserializerBuilder(schema="{}").set_json_decode(lambda data: int(data[:-1])), 1, b"\0\0\0\0\0011!")])
def test_a_builder_makes_what_it_is_named_after(writing, reading, value, payload) -> None:
    registry = KeptRegistry()
    serializer, left = writing.set_schema_registry_client(registry).build({"acks": "all"}, False)
    assert left == {"acks": "all"}
    assert serializer(value, VALUE) == payload
    deserializer, left = reading.set_schema_registry_client(registry).build({}, False)
    assert deserializer(payload, VALUE) == value


def test_builders_of_protobuf_take_the_messages_class() -> None:
    registry, plain = KeptRegistry(), compiled()["plain"].Plain
    serializer, _ = ProtobufSerializerBuilder(None, registry).set_message_type(plain).build({}, True)
    deserializer, _ = ProtobufDeserializerBuilder(None, registry).set_message_type(plain).build({}, True)
    assert deserializer(serializer(plain(name="a"), VALUE), VALUE) == plain(name="a")


def test_every_setter_gives_the_builder_back_and_is_heeded() -> None:
    seen = []
    builder = AvroSerializerBuilder()
    same = (builder.set_schema_registry_client(KeptRegistry()).set_schema(INT).set_to_dict(lambda obj, ctx: obj * 2)
            .set_serializer_config({"subject.name.strategy.type": "RECORD"}).set_rule_config({})
            .set_serializer_init(seen.append))
    assert same is builder
    serializer, _ = builder.build({}, False)
    assert seen == [serializer]
    assert serializer(1, VALUE) == b"\0\0\0\0\1\4"
    reading = (AvroDeserializerBuilder(schema_registry_client=serializer._registry).set_return_record_name(True)
               .set_from_dict(lambda value, ctx: [value]).set_deserializer_config({})
               .set_deserializer_init(seen.append))
    deserializer, _ = reading.build({}, False)
    assert deserializer(b"\0\0\0\0\1\4", VALUE) == [2]
    with pytest.raises(ValueError, match="rule_registry"):
        builder.set_rule_registry(object()).build({}, False)


@pytest.mark.parametrize("name", [name for name in serde_builders.__all__ if name.endswith("Builder")])
@pytest.mark.parametrize("by_setters", [False, True])
def test_all_that_a_builder_is_given_arrives(name, by_setters, monkeypatch) -> None:
    kind = getattr(serde_builders, name)
    monkeypatch.setattr(kind, "_serde", staticmethod(lambda **given: given))
    if by_setters:
        names = [each[4:] for each in dir(kind) if each.startswith("set_")]
    else:
        names = list(inspect.signature(kind).parameters)
    names.remove("schema_registry_config")
    seen = []
    values = {each: seen.append if each.endswith("_init") else f"the {each}" for each in names}
    builder = kind(**({} if by_setters else values))
    if by_setters:
        for each, value in values.items():
            assert getattr(builder, f"set_{each}")(value) is builder
    built = builder.build({}, False)
    given, _ = asyncio.run(built) if inspect.isawaitable(built) else built
    assert set(given.values()) - {None, False} == {value for value in values.values() if isinstance(value, str)}
    assert seen == [given]


def test_a_client_that_a_builder_made_is_closed_with_what_it_built(monkeypatch) -> None:
    closed = []
    monkeypatch.setattr(SchemaRegistryClient, "close", lambda self: closed.append(self))
    serializer, _ = AvroSerializerBuilder({"url": "mock://builders"}, schema=INT).build({}, False)
    assert serializer(1, VALUE)[5:] == b"\2"
    assert not closed
    serializer.close()
    assert len(closed) == 1
    with pytest.raises(ValueError, match="Unrecognized"):
        AvroSerializerBuilder({"url": "mock://builders"}, schema=INT, serializer_config={"no": 1}).build({}, False)
    assert len(closed) >= 2


def test_a_client_and_properties_of_one_are_too_much() -> None:
    with pytest.raises(ValueError, match=r"both a Schema Registry client and a configuration .*: use one or the other"):
        build_serde(KeptRegistry(), {"url": "mock://"}, lambda client: client)
    with pytest.raises(ValueError, match=r"both a Schema Registry client and a configuration .*: use one or the other"):
        asyncio.run(async_build_serde(KeptRegistry(), {"url": "mock://"}, lambda client: client))


def test_without_either_there_is_no_client() -> None:
    assert build_serde(None, None, lambda client: [client]) == [None]


def test_awaited_builders_make_awaited_serializers_and_close_their_clients() -> None:
    async def both() -> None:
        conf = {"url": "mock://awaited-builders"}
        serializer, left = await AsyncAvroSerializerBuilder(conf, schema=INT).build({"a": 1}, False)
        assert left == {"a": 1}
        payload = await serializer(1, VALUE)
        seen = []

        async def init(made) -> None:
            seen.append(made)

        client = AsyncSchemaRegistryClient(conf)
        deserializer, _ = await AsyncAvroDeserializerBuilder(
            schema_registry_client=client, deserializer_init=init).build({}, False)
        assert await deserializer(payload, VALUE) == 1
        assert seen == [deserializer]
        await serializer.aclose()
        await deserializer.aclose()
        await client.aclose()

    asyncio.run(both())


def test_a_client_that_an_awaited_builder_made_is_closed_where_nothing_is_built(monkeypatch) -> None:
    closed = []

    async def close(self) -> None:
        closed.append(self)

    monkeypatch.setattr(AsyncSchemaRegistryClient, "aclose", close)
    builder = AsyncAvroSerializerBuilder({"url": "mock://builders"}, schema=INT, serializer_config={"no": 1})
    with pytest.raises(ValueError, match="Unrecognized"):
        asyncio.run(builder.build({}, False))
    assert len(closed) == 1


def test_each_format_has_builders_of_both_kinds_and_both_ways_to_wait() -> None:
    assert len(serde_builders.__all__) == 12 + 2
    assert AvroSerializerBuilder._serde is AvroSerializer
