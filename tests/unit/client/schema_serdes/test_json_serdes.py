"""JSON's serializers and deserializers."""

import asyncio
import json
from dataclasses import dataclass

import pytest

from headrace.client.schema_serdes.json_serdes import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)
from headrace.errors import SerializationError
from headrace.serialization import MessageField, SerializationContext
from headrace.types.registry import Schema, SchemaReference
from tests.support.kept_registry import AsyncKeptRegistry, KeptRegistry

VALUE = SerializationContext("users", MessageField.VALUE)
USER = json.dumps({"title": "User", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
OF_USER = b'\0\0\0\0\1{"name":"a"}'


@dataclass
class User:
    name: str


@pytest.mark.parametrize("value", [{"name": "a"}, User("a")])
def test_what_is_written_is_read(value) -> None:
    registry = KeptRegistry()
    assert JSONSerializer(USER, registry)(value, VALUE) == OF_USER
    assert JSONDeserializer(USER, schema_registry_client=registry)(OF_USER, VALUE) == {"name": "a"}
    assert JSONDeserializer(None, schema_registry_client=registry)(OF_USER, VALUE) == {"name": "a"}
    assert JSONDeserializer(USER)(OF_USER, VALUE) == {"name": "a"}
    assert JSONDeserializer(USER)(OF_USER) == {"name": "a"}


def test_values_must_fit_the_schema_unless_they_need_not() -> None:
    registry = KeptRegistry()
    with pytest.raises(SerializationError, match="name"):
        JSONSerializer(USER, registry)({}, VALUE)
    assert JSONSerializer(USER, registry, conf={"validate": False})({}, VALUE) == b"\0\0\0\0\1{}"
    for given in (USER, None):
        with pytest.raises(SerializationError, match="name"):
            JSONDeserializer(given, schema_registry_client=registry)(b"\0\0\0\0\1{}", VALUE)
        unchecked = JSONDeserializer(given, schema_registry_client=registry, conf={"validate": False})
        assert unchecked(b"\0\0\0\0\1{}", VALUE) == {}


def test_the_title_is_the_records_name() -> None:
    registry = KeptRegistry()
    JSONSerializer(USER, registry, conf={"subject.name.strategy.type": "RECORD"})({"name": "a"}, VALUE)
    assert list(registry.versions) == ["User"]
    reader = JSONDeserializer(None, schema_registry_client=registry,
                              conf={"subject.name.strategy.type": "RECORD", "use.latest.version": True})
    assert reader(OF_USER, VALUE) == {"name": "a"}


def test_a_schema_may_refer_to_others() -> None:
    registry = KeptRegistry()
    registry.register_schema("names", Schema('{"type":"string","maxLength":3}', "JSON"))
    schema = Schema('{"type":"object","properties":{"name":{"$ref":"name.json"}}}', "JSON",
                    [SchemaReference("name.json", "names", 1)])
    serializer = JSONSerializer(schema, registry)
    assert serializer({"name": "abc"}, VALUE) == b'\0\0\0\0\2{"name":"abc"}'
    with pytest.raises(SerializationError):
        serializer({"name": "abcd"}, VALUE)
    with pytest.raises(SerializationError):
        JSONDeserializer(schema, schema_registry_client=registry)(b'\0\0\0\0\2{"name":"abcd"}', VALUE)


def test_without_a_schema_or_with_references_the_client_is_needed() -> None:
    with pytest.raises(ValueError, match=r"must be provided if .* is not provided"):
        JSONDeserializer(None)
    with pytest.raises(ValueError, match=r"must be provided if .* with references"):
        JSONDeserializer(Schema("{}", "JSON", [SchemaReference("a", "a", 1)]))
    with pytest.raises(TypeError, match="schema_str"):
        JSONDeserializer(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("payload", [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5000 + b"x"])
def test_what_is_not_json_is_an_error(payload) -> None:
    with pytest.raises(SerializationError, match="not JSON"):
        JSONDeserializer(USER)(b"\0\0\0\0\1" + payload, VALUE)


def test_the_application_may_bring_its_own_json() -> None:
    serializer = JSONSerializer("{}", KeptRegistry(), json_encode=lambda value: f"<{value}>")
    assert serializer(1, VALUE) == b"\0\0\0\0\1<1>"
    assert JSONDeserializer("{}", json_decode=lambda data: data.decode() + "!")(b"\0\0\0\0\1<1>", VALUE) == "<1>!"


def test_the_latest_schema_checks_what_is_written() -> None:
    registry = KeptRegistry()
    registry.register_schema("users-value", Schema('{"type":"integer"}', "JSON"))
    serializer = JSONSerializer(None, registry, conf={"auto.register.schemas": False, "use.latest.version": True})
    assert serializer(1, VALUE) == b"\0\0\0\0\0011"
    with pytest.raises(SerializationError):
        serializer("a", VALUE)
    with pytest.raises(SerializationError, match="no schema to write"):
        JSONSerializer(None, registry)(1, VALUE)


@pytest.mark.parametrize("conf", [{"use.latest.version": True}, {"use.schema.id": 2}])
def test_a_text_without_its_references_does_where_the_registrys_schema_is_chosen(conf) -> None:
    registry = KeptRegistry()
    text = '{"type": "object", "properties": {"user": {"$ref": "user.json"}}}'
    registry.register_schema("user", Schema(USER, "JSON"))
    registry.register_schema("users-value", Schema(text, "JSON", [SchemaReference("user.json", "user", 1)]))
    write = JSONSerializer(text, registry, conf={"auto.register.schemas": False, **conf})
    written = write({"user": {"name": "a"}}, VALUE)
    assert written == b'\0\0\0\0\2{"user":{"name":"a"}}'
    with pytest.raises(SerializationError, match="name"):
        write({"user": {}}, VALUE)
    latest = JSONDeserializer(text, schema_registry_client=registry, conf={"use.latest.version": True})
    assert latest(written, VALUE) == {"user": {"name": "a"}}
    with pytest.raises(SerializationError, match=r"user\.json"):  # the text itself is what counts here
        latest(written)
    with pytest.raises(SerializationError, match=r"user\.json"):
        JSONSerializer(text, registry)


@pytest.mark.parametrize("dialect", ["https://example.com/ours.json", "http://json-schema.org/draft-03/schema#", ""])
def test_a_schema_of_a_dialect_that_nobody_knows_is_taken_for_one_of_the_newest_draft(dialect) -> None:
    registry = KeptRegistry()
    text = json.dumps({"$schema": dialect, **json.loads(USER)})
    assert JSONSerializer(text, registry)({"name": "a"}, VALUE) == OF_USER
    with pytest.raises(SerializationError, match="name"):
        JSONSerializer(text, registry)({}, VALUE)
    assert JSONDeserializer(None, schema_registry_client=registry)(OF_USER, VALUE) == {"name": "a"}


def test_awaited_they_do_the_same() -> None:
    async def both() -> None:
        registry = AsyncKeptRegistry()
        serializer = await AsyncJSONSerializer(USER, registry, lambda obj, ctx: {"name": obj})
        assert await serializer("a", VALUE) == OF_USER
        deserializer = await AsyncJSONDeserializer(None, lambda value, ctx: User(**value), registry)
        assert await deserializer(OF_USER, VALUE) == User("a")

    asyncio.run(both())
