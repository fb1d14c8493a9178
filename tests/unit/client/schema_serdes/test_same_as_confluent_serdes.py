"""Serializers of both packages on one registry: the same bytes, each reads the other's, the same errors."""

import asyncio
import inspect
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache, partial
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import UUID

import confluent_kafka
import confluent_kafka.schema_registry
import confluent_kafka.serialization
import pytest

import headrace
import headrace.schema_registry
import headrace.serialization
from tests.support.protobuf_samples import compiled
from tests.support.same_as_confluent import by_name
from tests.support.shared_registry import OverTheirs, emptied, their_client

BOTH = ["headrace", "confluent_kafka"]
USER = json.dumps({"type": "record", "name": "User", "namespace": "a.b", "fields": [
    {"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"], "default": None}]})
NEWER = json.dumps({"type": "record", "name": "User", "namespace": "a.b", "fields": [
    {"name": "name", "type": "string"}, {"name": "city", "type": "string", "default": "Rome"}]})
STREET = '{"type":"record","name":"Street","namespace":"a.b","fields":[{"name":"name","type":"string"}]}'
AT_STREET = '{"type":"record","name":"House","namespace":"a.b","fields":[{"name":"street","type":"a.b.Street"}]}'
JSON_USER = json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "title": "User", "type": "object",
                        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
                        "required": ["name"]})
UNION = ('[{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]},'
         '{"type":"record","name":"B","fields":[{"name":"y","type":"int"}]}]')


def package(name: str, client: Any) -> SimpleNamespace:
    """What a case needs of one package."""
    registry, serialization = import_module(f"{name}.schema_registry"), import_module(f"{name}.serialization")
    parts = [import_module(f"{name}.schema_registry.{part}") for part in ("avro", "json_schema", "protobuf", "serde")]
    made = SimpleNamespace(**{key: value for module in (serialization, *parts, registry)
                              for key, value in vars(module).items() if not key.startswith("__")})
    made.client = OverTheirs(client) if name == "headrace" else client
    made.of = partial(context, serialization)
    made.registered = partial(register, made)
    return made


def context(serialization: ModuleType, topic: str = "users", field: str = "VALUE", headers: Any = None) -> Any:
    return serialization.SerializationContext(topic, serialization.MessageField[field], headers)


def register(k: Any, subject: str, text: str, kind: str = "AVRO", references: Any = ()) -> int:
    schema = k.Schema(text, kind, [k.SchemaReference(*each) for each in references])
    return k.client.register_schema(subject, schema)


def outcome(case: Any, name: str, client: Any) -> Any:
    k = package(name, client)
    try:
        return case(k)
    except k.SerializationError:
        return "SerializationError"
    except Exception as error:
        return next((kind.__name__ for kind in (TypeError, ValueError) if isinstance(error, kind)),
                    type(error).__name__)


one_client = cache(their_client)  # it is slow to make


def same(case: Any) -> Any:
    """Both packages, ours on the registry that theirs has used, and on an empty one."""
    client = emptied(one_client())
    theirs = outcome(case, "confluent_kafka", client)
    assert outcome(case, "headrace", client) == theirs
    assert outcome(case, "headrace", emptied(client)) == theirs
    return theirs


def avro(k: Any, schema: Any, value: Any, conf: Any = None, **named: Any) -> Any:
    return k.AvroSerializer(k.client, schema, conf=conf, **named)(value, k.of())


@by_name({
    "record": lambda k: avro(k, USER, {"name": "a", "age": 3}),
    "default": lambda k: avro(k, USER, {"name": "a"}),
    "primitive": lambda k: avro(k, '"string"', "ü"), "bytes": lambda k: avro(k, '"bytes"', b"\0\1"),
    "text as bytes": lambda k: avro(k, '"bytes"', "abc"), "null": lambda k: avro(k, '"null"', None),
    "double": lambda k: avro(k, '"double"', 1.5), "union": lambda k: avro(k, '["null","int"]', 3),
    "union of records": lambda k: [avro(k, UNION, value) for value in ({"y": 1}, ("A", {"x": 1}))],
    "array": lambda k: avro(k, '{"type":"array","items":"long"}', [1, 2, -3]),
    "map": lambda k: avro(k, '{"type":"map","values":"long"}', {"a": 1}),
    "enum": lambda k: avro(k, '{"type":"enum","name":"E","symbols":["X","Y"]}', "Y"),
    "fixed": lambda k: avro(k, '{"type":"fixed","name":"F","size":2}', b"ab"),
    "date": lambda k: avro(k, '{"type":"int","logicalType":"date"}', date(2026, 11, 22)),
    "time": lambda k: avro(k, '{"type":"int","logicalType":"time-millis"}', time(1, 2, 3)),
    "timestamp": lambda k: avro(k, '{"type":"long","logicalType":"timestamp-micros"}',
                                datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    "decimal": lambda k: avro(k, '{"type":"record","name":"R","fields":[{"name":"d","type":{"type":"bytes",'
                                 '"logicalType":"decimal","precision":8,"scale":2}}]}', {"d": Decimal("12.34")}),
    "uuid": lambda k: avro(k, '{"type":"string","logicalType":"uuid"}', UUID(int=5)),
    "key": lambda k: k.AvroSerializer(k.client, USER)({"name": "a"}, k.of(field="KEY")),
    "none": lambda k: k.AvroSerializer(k.client, USER)(None, k.of()),
    "references": lambda k: (k.registered("street", STREET), avro(
        k, k.Schema(AT_STREET, "AVRO", [k.SchemaReference("a.b.Street", "street", 1)]), {"street": {"name": "x"}})),
    "union of references": lambda k: (k.registered("street", STREET), k.registered("user", USER), avro(
        k, k.Schema('["a.b.Street","a.b.User"]', "AVRO", [
            k.SchemaReference("a.b.Street", "street", 1), k.SchemaReference("a.b.User", "user", 1)]),
        {"name": "x", "age": 1})),
    "to_dict": lambda k: avro(k, USER, "a", to_dict=lambda obj, ctx: {"name": obj + ctx.topic + ctx.field}),
    "subjects": lambda k: ([
        avro(k, STREET, {"name": "a"}, {"subject.name.strategy.type": kind})
        for kind in ("TOPIC", "RECORD", "TOPIC_RECORD", "ASSOCIATED")], sorted(k.client.get_subjects())),
    "a strategy": lambda k: (avro(k, STREET, {"name": "a"}, {"subject.name.strategy": lambda ctx, name: name + "!"}),
                             k.client.get_subjects()),
    "strategies": lambda k: [strategy(k.of(), "R") for strategy in (
        k.topic_subject_name_strategy, k.record_subject_name_strategy, k.topic_record_subject_name_strategy)],
    "not registered": lambda k: avro(k, USER, {"name": "a"}, {"auto.register.schemas": False}),
    "latest": lambda k: (k.registered("users-value", NEWER), avro(
        k, None, {"name": "a"}, {"auto.register.schemas": False, "use.latest.version": True})),
    "latest that is not there": lambda k: avro(
        k, None, 1, {"auto.register.schemas": False, "use.latest.version": True}),
    "strict": lambda k: avro(k, USER, {"name": "a", "more": 1}, {"validate.strict": True}),
    "strict with defaults": lambda k: avro(k, USER, {"name": "a"}, {"validate.strict.allow.default": True}),
    "a field is missing": lambda k: avro(k, USER, {}), "another type": lambda k: avro(k, '"int"', "a"),
    "another symbol": lambda k: avro(k, '{"type":"enum","name":"E","symbols":["X"]}', "Z"),
    "no branch": lambda k: avro(k, '["null","int"]', "a"),
    "header": lambda k: (lambda ctx: (k.AvroSerializer(k.client, USER, conf={
        "schema.id.serializer": k.header_schema_id_serializer})({"name": "a"}, ctx),
        [name for name, _ in ctx.headers], [len(value) for _, value in ctx.headers]))(k.of(headers=[])),
    "header without headers": lambda k: avro(k, USER, {"name": "a"}, {
        "schema.id.serializer": k.header_schema_id_serializer}),
    "without context": lambda k: k.AvroSerializer(k.client, USER)({"name": "a"}),
    "to_dict without context": lambda k: k.AvroSerializer(k.client, USER, lambda obj, ctx: obj, {
        "subject.name.strategy": k.record_subject_name_strategy})({"name": "a"}),
})
def test_avro_is_written_in_the_same_way(case) -> None:
    same(case)


@by_name({name: partial(lambda conf, k: k.AvroSerializer(k.client, USER, conf=conf) and "made", conf)
          for name, conf in {
    "unknown": {"nothing": 1}, "auto": {"auto.register.schemas": "yes"}, "normalize": {"normalize.schemas": 1},
    "latest": {"use.latest.version": "yes"}, "both": {"use.latest.version": True}, "id": {"use.schema.id": "1"},
    "metadata": {"use.latest.with.metadata": 1}, "strategy": {"subject.name.strategy": 3},
    "strategy type": {"subject.name.strategy.type": "OTHER"}, "no strategy": {"subject.name.strategy.type": "NONE"},
    "serializer": {"schema.id.serializer": 3}, "strict": {"validate.strict": 1},
    "right": {"normalize.schemas": True, "auto.register.schemas": False},
    "rules": {"validation.rules.execution": "DISABLED"}}.items()})
def test_properties_are_checked_in_the_same_way(case) -> None:
    same(case)


@by_name({
    "unknown": lambda k: k.AvroDeserializer(k.client, conf={"a": 1}) and 0,
    "latest": lambda k: k.AvroDeserializer(k.client, conf={"use.latest.version": 1}) and 0,
    "not a schema": lambda k: k.AvroDeserializer(k.client, 3) and 0,
    "not callable": lambda k: k.AvroDeserializer(k.client, None, 3) and 0,
    "not a flag": lambda k: k.AvroDeserializer(k.client, return_record_name="a") and 0,
    "json without anything": lambda k: k.JSONDeserializer(None) and 0,
    "json with references alone": lambda k: k.JSONDeserializer(
        k.Schema("{}", "JSON", [k.SchemaReference("a", "a", 1)])) and 0,
    "json not a schema": lambda k: k.JSONDeserializer(3) and 0,
    "json not a flag": lambda k: k.JSONDeserializer("{}", conf={"validate": 1}) and 0,
    "protobuf of before": lambda k: k.ProtobufDeserializer(compiled()["plain"].Plain,
                                                           {"use.deprecated.format": True}) and 0,
    "protobuf unknown": lambda k: k.ProtobufSerializer(compiled()["plain"].Plain, k.client, {"a": 1}) and 0,
    "to_dict": lambda k: k.AvroSerializer(k.client, USER, 3) and 0,
})
def test_arguments_are_checked_in_the_same_way(case) -> None:
    assert same(case) in ("ValueError", "TypeError")


def asked_for_a_subject(k: Any) -> Any:
    conf = {"subject.name.strategy.type": "ASSOCIATED",
            "subject.name.strategy.conf": {"subject.name.strategy.fallback.type": "NONE"}}
    return k.AvroSerializer(k.client, USER, conf=conf)({"name": "a", "age": 1}, k.of(topic="alone"))


def asked_for_one_of_two(k: Any) -> Any:
    found = [SimpleNamespace(subject=name) for name in ("one", "two")]
    client = SimpleNamespace(get_associations_by_resource_name=lambda **asked: found)
    return k.AssociatedNameStrategy()(k.of(), None, client, {})


def cut_short(k: Any) -> Any:
    payload = avro(k, USER, {"name": "a", "age": 1})
    return k.AvroDeserializer(k.client)(payload[:5], k.of())


def asked_for_a_cluster(k: Any) -> Any:
    serializer = k.AvroSerializer(k.client, USER, conf={"subject.name.strategy.type": "ASSOCIATED"})
    serializer.set_cluster_id_resolver(lambda: "")
    return serializer({"name": "a", "age": 1}, k.of())


@pytest.mark.parametrize(("case", "texts"), [
    (lambda k: k.AvroDeserializer(k.client, 3), ["You must pass either schema string or schema object"]),
    (lambda k: k.JSONDeserializer(3), ["You must pass either str or Schema"]),
    (lambda k: k.JSONDeserializer(None), ['schema_registry_client must be provided if "schema_str" is not provided']),
    (lambda k: k.JSONDeserializer(k.Schema("{}", "JSON", [k.SchemaReference("a", "a", 1)])),
     ['schema_registry_client must be provided if "schema_str" is a Schema instance with references']),
    (asked_for_a_subject, ["No associated subject found for topic alone"]),
    (asked_for_one_of_two, ["Multiple associated subjects found for topic users"]),
    (lambda k: write_json(k, JSON_USER, {}), ["'name' is a required property"]),
    (lambda k: write_json(k, JSON_USER, {"name": "a", "age": "x"}), ["'x' is not of type 'integer'"]),
    *[(partial(lambda data, k: k.AvroDeserializer(k.client)(data, k.of()), data), [
        f"Expecting data framing of length 6 bytes or more but total data size is {len(data)} bytes"])
      for data in (b"", b"abc", b"\0\0\0\0")],
    (cut_short, ["Expecting data framing of length 6 bytes or more but total data size is 5 bytes"]),
    (asked_for_a_cluster, ["subject.name.strategy.kafka.cluster.id", "empty"]),
], ids=["avro", "json", "json alone", "json with references", "no association", "two associations", "json incomplete",
        "json of another type", "empty", "no magic", "four bytes", "five bytes", "no cluster"])
def test_a_refusal_says_what_the_peers_says(case, texts) -> None:
    client = emptied(one_client())
    for name in ("confluent_kafka", "headrace"):
        with pytest.raises((TypeError, ValueError, package(name, client).SerializationError)) as refused:
            case(package(name, client))
        assert [text for text in texts if text not in str(refused.value)] == []


def read_avro(k: Any, schema: str, value: Any, reader: Any = None, **named: Any) -> Any:
    payload = k.AvroSerializer(k.client, schema)(value, k.of())
    return k.AvroDeserializer(k.client, reader, **named)(payload, k.of())


@by_name({
    "record": lambda k: read_avro(k, USER, {"name": "a", "age": 3}),
    "evolved": lambda k: read_avro(k, USER, {"name": "a", "age": 3}, NEWER),
    "latest": lambda k: (k.registered("users-value", USER), k.registered("users-value", NEWER), read_avro(
        k, USER, {"name": "a", "age": 3}, conf={"use.latest.version": True})),
    "bytes": lambda k: read_avro(k, '"bytes"', b"\0\1"), "text": lambda k: read_avro(k, '"string"', "a"),
    "from_dict": lambda k: read_avro(k, USER, {"name": "a"}, from_dict=lambda value, ctx: (value["name"], ctx.topic)),
    "record names": lambda k: read_avro(k, UNION, ("B", {"y": 1}), return_record_name=True),
    "decimal": lambda k: read_avro(k, '{"type":"fixed","name":"D","size":8,"logicalType":"decimal","precision":10,'
                                      '"scale":2}', Decimal("1.25")),
    "none": lambda k: k.AvroDeserializer(k.client)(None, k.of()),
    "empty": lambda k: k.AvroDeserializer(k.client)(b"", k.of()),
    "too short": lambda k: k.AvroDeserializer(k.client)(b"\0\0\0\0", k.of()),
    "no magic": lambda k: k.AvroDeserializer(k.client)(b"abcdefgh", k.of()),
    "unknown schema": lambda k: k.AvroDeserializer(k.client)(b"\0\0\0\0\x63abc", k.of()),
    "without context": lambda k: k.AvroDeserializer(k.client)(
        k.AvroSerializer(k.client, USER)({"name": "a"}, k.of())),
    "references": lambda k: (k.registered("street", STREET), k.AvroDeserializer(k.client)(avro(
        k, k.Schema(AT_STREET, "AVRO", [k.SchemaReference("a.b.Street", "street", 1)]), {"street": {"name": "x"}}),
        k.of())),
})
def test_avro_is_read_in_the_same_way(case) -> None:
    same(case)


def write_json(k: Any, schema: Any, value: Any, conf: Any = None) -> Any:
    return k.JSONSerializer(schema, k.client, conf=conf)(value, k.of())


@by_name({
    "object": lambda k: write_json(k, JSON_USER, {"name": "ü", "age": 3}),
    "text": lambda k: write_json(k, '{"type":"string"}', "a"), "any": lambda k: write_json(k, "true", [1, None, 1.5]),
    "does not fit": lambda k: write_json(k, JSON_USER, {"name": 3}),
    "is not complete": lambda k: write_json(k, JSON_USER, {}),
    "is not checked": lambda k: write_json(k, JSON_USER, {}, {"validate": False}),
    "format": lambda k: write_json(k, '{"type":"string","format":"ipv4"}', "nothing"),
    "no draft": lambda k: write_json(k, '{"prefixItems":[{"type":"integer"}]}', ["a"]),
    "old draft": lambda k: write_json(k, '{"$schema":"http://json-schema.org/draft-04/schema#","minimum":3,'
                                         '"exclusiveMinimum":true}', 3),
    "title": lambda k: (write_json(k, JSON_USER, {"name": "a"}, {"subject.name.strategy.type": "RECORD"}),
                        k.client.get_subjects()),
    "references": lambda k: (k.registered("names", '{"type":"string"}', "JSON"), [write_json(
        k, k.Schema('{"type":"object","properties":{"n":{"$ref":"name.json"}}}', "JSON",
                    [k.SchemaReference("name.json", "names", 1)]), {"n": "a"})]),
    "read": lambda k: k.JSONDeserializer(None, schema_registry_client=k.client)(
        write_json(k, JSON_USER, {"name": "a"}), k.of()),
    "read by another": lambda k: k.JSONDeserializer('{"type":"string"}', schema_registry_client=k.client)(
        write_json(k, JSON_USER, {"name": "a"}), k.of()),
    "read without a registry": lambda k: k.JSONDeserializer(JSON_USER)(b'\0\0\0\0\1{"name":"a"}', k.of()),
    "read what does not fit": lambda k: k.JSONDeserializer(JSON_USER)(b"\0\0\0\0\1{}", k.of()),
    "read unchecked": lambda k: k.JSONDeserializer(JSON_USER, conf={"validate": False})(b"\0\0\0\0\1{}", k.of()),
    "read no magic": lambda k: k.JSONDeserializer(JSON_USER)(b'\2\0\0\0\1{"name":"a"}', k.of()),
    "own encoder": lambda k: k.JSONSerializer("{}", k.client, json_encode=lambda value: f"<{value}>")(1, k.of()),
    "from_dict": lambda k: k.JSONDeserializer(JSON_USER, lambda value, ctx: list(value))(
        b'\0\0\0\0\1{"name":"a"}', k.of()),
})
def test_json_is_written_and_read_in_the_same_way(case) -> None:
    same(case)


@pytest.mark.parametrize("wait", ["", "Async"])
def test_a_reader_of_protobuf_takes_a_writers_properties(wait) -> None:
    conf = {"use.deprecated.format": False, "auto.register.schemas": True, "normalize.schemas": True,
            "skip.known.types": True, "use.latest.version": False}

    async def made(k: Any, conf: dict[str, Any]) -> str:
        found = getattr(k, f"{wait}ProtobufDeserializer")(compiled()["plain"].Plain, conf)
        return type(await found if inspect.isawaitable(found) else found).__name__

    for name in BOTH:
        k = package(name, one_client())
        assert asyncio.run(made(k, conf)) == f"{wait}ProtobufDeserializer"
    with pytest.raises(ValueError, match=r'auto.register.schema; did you mean "auto.register.schemas"\?'):
        asyncio.run(made(package("headrace", one_client()), {"auto.register.schema": True}))


def message(*path: str, **fields: Any) -> Any:
    kind = compiled()["user"]
    for name in path:
        kind = getattr(kind, name)
    return kind(**fields)


def subjects_behind_another_message(k: Any) -> Any:
    with pytest.raises(ValueError, match="message must be of type"):
        k.ProtobufSerializer(compiled()["plain"].Plain, k.client)(message("User"), k.of())
    return k.client.get_subjects()


def write_protobuf(k: Any, value: Any, conf: Any = None) -> Any:
    return k.ProtobufSerializer(type(value), k.client, conf)(value, k.of())


@by_name({
    "first": lambda k: write_protobuf(k, message("User", name="a", number=-3, tags=["x", "y"])),
    "second": lambda k: write_protobuf(k, message("Other", a=3)),
    "inner": lambda k: [write_protobuf(k, value) for value in (
        message("User", "Inner", a=1), message("Other", "Inner", a=1), message("User", "Inner", "Innermost", b=1))],
    "no package": lambda k: write_protobuf(k, compiled()["plain"].Plain(name="a")),
    "imports": lambda k: (write_protobuf(k, message("User")), sorted(k.client.get_subjects()), [
        (each.name, each.subject, each.version)
        for each in k.client.get_latest_version("users-value").schema.references],
        k.client.get_latest_version("users-value").schema.schema_str),
    "record name": lambda k: (write_protobuf(k, message("Other", "Inner"), {"subject.name.strategy.type": "RECORD"}),
                              sorted(k.client.get_subjects())),
    "reference strategy": lambda k: (write_protobuf(k, message("User"), {
        "reference.subject.name.strategy": lambda ctx, file: f"{ctx.topic}/{file.name}"}),
        sorted(k.client.get_subjects())),
    "another message": lambda k: k.ProtobufSerializer(compiled()["plain"].Plain, k.client)(message("User"), k.of()),
    "another message leaves nothing": subjects_behind_another_message,
    "none": lambda k: k.ProtobufSerializer(compiled()["plain"].Plain, k.client)(None, k.of()),
    "read": lambda k: k.ProtobufDeserializer(type(message("User")), schema_registry_client=k.client)(
        write_protobuf(k, message("User", name="a")), k.of()) == message("User", name="a"),
    "read inner": lambda k: k.ProtobufDeserializer(type(message("Other", "Inner")), schema_registry_client=k.client)(
        write_protobuf(k, message("Other", "Inner", a=3)), k.of()).a,
    "read without a registry": lambda k: k.ProtobufDeserializer(compiled()["plain"].Plain)(
        b"\0\0\0\0\1\0\n\1a", k.of()).name,
    "read nonsense": lambda k: k.ProtobufDeserializer(compiled()["plain"].Plain)(b"\0\0\0\0\1\0\n\x09a", k.of()),
    "read a place that is none": lambda k: (write_protobuf(k, message("User")), k.ProtobufDeserializer(
        type(message("User")), schema_registry_client=k.client)(b"\0\0\0\0\3\2\x12", k.of())),
    "header": lambda k: (lambda ctx: (k.ProtobufSerializer(type(message("Other")), k.client, {
        "schema.id.serializer": k.header_schema_id_serializer})(message("Other", a=3), ctx),
        ctx.headers[0][1][17:]))(k.of(headers=[])),
})
def test_protobuf_is_written_and_read_in_the_same_way(case) -> None:
    same(case)


@pytest.mark.parametrize("headers", [None, []])
def test_each_reads_what_the_other_wrote(headers) -> None:
    client = their_client()
    ours, theirs = (package(name, client) for name in BOTH)
    header = {} if headers is None else {"schema.id.serializer": "header_schema_id_serializer"}
    for writer, reader in ((ours, theirs), (theirs, ours)):
        conf = {name: getattr(writer, value) for name, value in header.items()}
        for topic, made, read, value in (
            ("a", writer.AvroSerializer(writer.client, USER, conf=conf), reader.AvroDeserializer(reader.client),
             {"name": "a long enough name", "age": 3}),
            ("j", writer.JSONSerializer(JSON_USER, writer.client, conf=conf),
             reader.JSONDeserializer(None, schema_registry_client=reader.client), {"name": "a", "age": 3}),
            ("p", writer.ProtobufSerializer(type(message("Other")), writer.client, conf),
             reader.ProtobufDeserializer(type(message("Other")), schema_registry_client=reader.client),
             message("Other", a=3)),
        ):
            sent = None if headers is None else list(headers)
            payload = made(value, writer.of(topic, headers=sent))
            assert read(payload, reader.of(topic, headers=sent)) == value


def test_awaited_serializers_write_the_same() -> None:
    async def write(name: str) -> list[Any]:
        k = package(name, their_client())
        client = k.AsyncSchemaRegistryClient.new_client({"url": "mock://"})
        avro_writer = await k.AsyncAvroSerializer(client, USER)
        json_writer = await k.AsyncJSONSerializer(JSON_USER, client)
        protobuf_writer = await k.AsyncProtobufSerializer(type(message("Other")), client)
        written = [await avro_writer({"name": "a"}, k.of("a")), await json_writer({"name": "a"}, k.of("j")),
                   await protobuf_writer(message("Other", a=3), k.of("p"))]
        read = [await (await k.AsyncAvroDeserializer(client))(written[0], k.of("a")),
                await (await k.AsyncJSONDeserializer(None, None, client))(written[1], k.of("j")),
                (await (await k.AsyncProtobufDeserializer(type(message("Other")), None, client))(
                    written[2], k.of("p"))).a]
        return [each[5:] for each in written] + read

    ours, theirs = (asyncio.run(write(name)) for name in BOTH)
    assert ours == theirs


CLASSES = [f"{wait}{form}{kind}{builder}" for wait in ("", "Async") for form in ("Avro", "JSON", "Protobuf")
           for kind in ("Serializer", "Deserializer") for builder in ("", "Builder")]


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_same_methods_and_arguments(name) -> None:
    module = "avro" if "Avro" in name else "json_schema" if "JSON" in name else "protobuf"
    ours, theirs = (getattr(import_module(f"{package}.schema_registry.{module}"), name) for package in BOTH)
    public = {each for each in dir(theirs) if not each.startswith("_")}
    assert public <= set(dir(ours)), public - set(dir(ours))
    for each in ["__init__", *sorted(each for each in public if each.startswith("set_") or each == "build")]:
        assert list(inspect.signature(getattr(ours, each)).parameters) == list(
            inspect.signature(getattr(theirs, each)).parameters), each


def test_packages_are_what_the_test_says_they_are() -> None:
    assert headrace.schema_registry.Schema is not confluent_kafka.schema_registry.Schema
