"""Protobuf's serializers and deserializers."""

import asyncio
import base64

import pytest

from headrace.client.registry.schema_ids import header_schema_id_serializer
from headrace.client.schema_serdes.protobuf_serdes import (
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from headrace.errors import SerializationError
from headrace.serialization import MessageField, SerializationContext
from tests.support.kept_registry import AsyncKeptRegistry, KeptRegistry
from tests.support.protobuf_samples import compiled

VALUE = SerializationContext("users", MessageField.VALUE)


def plain(name: str = "a"):
    return compiled()["plain"].Plain(name=name)


def test_what_is_written_is_read() -> None:
    registry = KeptRegistry()
    payload = ProtobufSerializer(type(plain()), registry)(plain(), VALUE)
    assert payload == b"\0\0\0\0\1\0\n\1a"
    for client in (None, registry):
        deserializer = ProtobufDeserializer(type(plain()), schema_registry_client=client)
        assert deserializer(payload, VALUE) == deserializer(payload, VALUE) == deserializer(payload) == plain()
    assert registry.calls["get_schema"] == 2, "once for the subject, once without one"


@pytest.mark.parametrize(("path", "indexes"), [
    (["User"], b"\0"), (["Other"], b"\2\2"), (["User", "Inner"], b"\4\0\0"), (["Other", "Inner"], b"\4\2\0"),
    (["User", "Inner", "Innermost"], b"\6\0\0\0")])
def test_the_place_of_the_type_stands_behind_the_id(path, indexes) -> None:
    kind = compiled()["user"]
    for name in path:
        kind = getattr(kind, name)
    registry = KeptRegistry()
    payload = ProtobufSerializer(kind, registry)(kind(), VALUE)
    assert payload is not None
    assert payload[5:] == indexes
    deserializer = ProtobufDeserializer(kind, schema_registry_client=registry)
    for _ in range(3):
        assert deserializer(payload, VALUE) == kind()
    assert registry.calls["get_schema"] == 1


def test_files_that_are_imported_are_registered_and_referred_to() -> None:
    registry = KeptRegistry()
    user = compiled()["user"].User
    ProtobufSerializer(user, registry)(user(), VALUE)
    assert set(registry.versions) == {"headrace_sample_base.proto", "headrace_sample_place.proto", "users-value"}
    schema = registry.versions["users-value"][0].schema
    assert schema.schema_type == "PROTOBUF"
    assert base64.b64decode(schema.schema_str or "") == user.DESCRIPTOR.file.serialized_pb
    assert [(each.name, each.subject, each.version) for each in schema.references or ()] == [
        ("headrace_sample_base.proto", "headrace_sample_base.proto", 1),
        ("headrace_sample_place.proto", "headrace_sample_place.proto", 1)]


def test_for_a_value_that_is_no_such_message_nothing_is_registered() -> None:
    registry = KeptRegistry()
    serializer = ProtobufSerializer(compiled()["user"].User, registry)
    for value in (plain(), 5, compiled()["user"].User):
        with pytest.raises(ValueError, match=r"message must be of type .*User"):
            serializer(value, VALUE)
    assert registry.versions == {}


def test_files_that_come_with_protobuf_are_registered_only_if_they_are_to_be() -> None:
    registry = KeptRegistry()
    place = compiled()["place"].Place
    ProtobufSerializer(place, registry, {"skip.known.types": False})(place(), VALUE)
    assert "google/protobuf/timestamp.proto" in registry.versions


def test_the_subjects_of_imported_files_have_a_strategy_of_their_own() -> None:
    registry = KeptRegistry()
    place = compiled()["place"].Place
    conf = {"reference.subject.name.strategy": lambda ctx, file: f"{ctx.topic}/{file.name}"}
    ProtobufSerializer(place, registry, conf)(place(), VALUE)
    assert set(registry.versions) == {"users/headrace_sample_base.proto", "users-value"}


def test_nothing_is_registered_that_is_not_to_be() -> None:
    registry = KeptRegistry()
    ProtobufSerializer(type(plain()), registry)(plain(), VALUE)
    before = registry.calls["register"]
    ProtobufSerializer(type(plain()), registry, {"auto.register.schemas": False})(plain(), VALUE)
    assert registry.calls["register"] == before


@pytest.mark.parametrize("chosen", [{"use.latest.version": True}, {"use.latest.with.metadata": {"a": "b"}},
                                    {"use.schema.id": 1}])
def test_whichever_schema_is_chosen_its_descriptor_is_asked_for(chosen, monkeypatch) -> None:
    registry, forms = KeptRegistry(), []
    ProtobufSerializer(type(plain()), registry)(plain(), VALUE)
    one = registry.versions["users-value"][0]
    monkeypatch.setattr(registry, "get_schema", lambda number, subject, fmt: forms.append(fmt) or one.schema)
    monkeypatch.setattr(registry, "get_latest_version", lambda subject, fmt: forms.append(fmt) or one)
    monkeypatch.setattr(registry, "get_latest_with_metadata",
                        lambda subject, metadata, deleted, fmt=None: forms.append(fmt) or one)
    following = ProtobufSerializer(type(plain()), registry, {"auto.register.schemas": False, **chosen})
    assert following(plain(), VALUE) == b"\0\0\0\0\1\0\n\1a"
    assert forms == ["serialized"]


@pytest.mark.parametrize("kind", [ProtobufSerializer, AsyncProtobufSerializer, ProtobufDeserializer,
                                  AsyncProtobufDeserializer])
def test_an_engine_for_rules_cannot_be_given(kind) -> None:
    with pytest.raises(ValueError, match="rule_registry"):
        kind(type(plain()), schema_registry_client=KeptRegistry(), rule_registry=object())


def test_a_message_of_another_type_is_an_error() -> None:
    serializer = ProtobufSerializer(type(plain()), KeptRegistry())
    for _ in range(2):  # also behind messages of the type
        with pytest.raises(ValueError, match="message must be of type"):
            serializer(compiled()["user"].User(), VALUE)
        assert serializer(plain(), VALUE) == b"\0\0\0\0\1\0\n\1a"


@pytest.mark.parametrize("make", [
    lambda: ProtobufSerializer(type(plain()), KeptRegistry(), {"use.deprecated.format": True}),
    lambda: ProtobufDeserializer(type(plain()), {"use.deprecated.format": True}),
    lambda: ProtobufSerializer(type(plain()), KeptRegistry(), {"skip.known.types": "no"})])
def test_what_cannot_be_is_refused(make) -> None:
    with pytest.raises(ValueError, match=r"use\.deprecated\.format|skip\.known\.types"):
        make()


@pytest.mark.parametrize("data", [
    b"", b"\0\0\0\0\1", b"\0\0\0\0\1\x01\0", b"\0\0\0\0\1\4\0", b"\0\0\0\0\1\2\x0a", b"\0\0\0\0\1\0\xff\xff",
    b"\0\0\0\0\1\xfe\xff\xff\xff\xff\xff", b"\0\0\0\0\1\xfe\xff\xff\xff\x0f", b"\0\0\0\0\1\0" + b"\x0a\xff" * 50,
    b"\3\0\0\0\1\0"])
def test_damaged_bytes_are_an_error(data) -> None:
    registry = KeptRegistry()
    ProtobufSerializer(type(plain()), registry)(plain(), VALUE)
    deserializer = ProtobufDeserializer(type(plain()), schema_registry_client=registry)
    for _ in range(2):
        with pytest.raises(SerializationError):
            deserializer(data, VALUE)
    assert deserializer(b"\0\0\0\0\1\0\n\1a", VALUE) == plain()


def test_an_id_in_a_header_has_the_place_of_the_type_with_it() -> None:
    registry, kind = KeptRegistry(), compiled()["user"].Other
    context = SerializationContext("users", MessageField.VALUE, [])
    serializer = ProtobufSerializer(kind, registry, {"schema.id.serializer": header_schema_id_serializer})
    payload = serializer(kind(a=3), context)
    assert payload == b"\x08\3"
    assert context.headers is not None
    assert next(iter(context.headers))[1][17:] == b"\2\2"
    assert ProtobufDeserializer(kind, schema_registry_client=registry)(payload, context) == kind(a=3)


def test_the_types_full_name_is_the_records_name() -> None:
    registry, kind = KeptRegistry(), compiled()["user"].Other.Inner
    payload = ProtobufSerializer(kind, registry, {"subject.name.strategy.type": "RECORD"})(kind(a=1), VALUE)
    assert "headrace.samples.Other.Inner" in registry.versions
    reader = ProtobufDeserializer(kind, {"subject.name.strategy.type": "RECORD", "use.latest.version": True}, registry)
    assert reader(payload, VALUE) == kind(a=1)
    assert registry.calls["latest"] == 1


def test_awaited_they_do_the_same() -> None:
    async def both() -> None:
        registry = AsyncKeptRegistry()
        kind = compiled()["user"].Other
        serializer = await AsyncProtobufSerializer(kind, registry)
        payload = await serializer(kind(a=3), VALUE)
        deserializer = await AsyncProtobufDeserializer(kind, None, registry)
        for _ in range(2):
            assert await deserializer(payload, VALUE) == kind(a=3)

    asyncio.run(both())
