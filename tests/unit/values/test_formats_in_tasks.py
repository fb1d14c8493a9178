"""Protobuf, JSON and JSON Schema in tasks: as planned, by a registry, and as the project's deserializers read them."""

import datetime
import json
import uuid

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa

from headrace.errors import ConfigError, SerializationError
from headrace.schema_registry.json_schema import JSONDeserializer
from headrace.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from headrace.schema_registry.schema_registry_client import Schema, SchemaRegistryClient
from headrace.serialization import MessageField, SerializationContext
from headrace.spark.options import SinkOptions
from headrace.values.schema_formats import SchemaText, schema_format
from headrace.values.value_decoder import ValueDecoder
from headrace.values.value_encoder import encoded_columns
from headrace.values.value_format import ValueFormat
from headrace.values.value_planning import planned_read
from tests.unit.schemas.columns.proto_messages import as_spark_reads, message_type, parsed

TOPIC = "orders"
VALUE = SerializationContext(TOPIC, MessageField.VALUE)
ORDER = {"title": "Order", "type": "object", "required": ["id"], "properties": {
    "id": {"type": "integer", "minimum": 0}, "tags": {"type": "array", "items": {"type": "string"}},
    "at": {"type": "string", "format": "date-time"}, "note": {"type": ["null", "string"]}}}
FRAME = pa.struct([("id", pa.int64()), ("name", pa.string()), ("prices", pa.list_(pa.float64())),
                   ("at", pa.timestamp("us", tz="UTC")), ("counts", pa.map_(pa.string(), pa.int32())),
                   ("inner", pa.struct([("x", pa.int32())])), ("flag", pa.bool_())])
ROWS = [
    {"id": 1, "name": "a", "prices": [1.5], "at": datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC),
     "counts": [("k", 7)], "inner": {"x": 3}, "flag": False},
    {"id": 0, "name": None, "prices": [], "at": None, "counts": [], "inner": {"x": None}, "flag": None}]


@pytest.fixture
def url():
    return f"mock://{uuid.uuid4().hex}"


@pytest.fixture
def registry(url):
    with SchemaRegistryClient.new_client({"url": url}) as client:
        yield client


def options(url, name, **more):
    return {"value.format": name, "schema.registry.url": url, **more}


def decoder(given):
    return ValueDecoder(planned_read(ValueFormat.parse(given, "value"), [TOPIC]))


def written(given, values):
    sink = SinkOptions.parse({"kafka.bootstrap.servers": "b:1", "topic": TOPIC, **given})
    return encoded_columns((sink.key, sink.value), TOPIC, {"value": values})["value"]


@pytest.mark.parametrize("name", ["protobuf", "json-schema", "json"])
def test_a_frame_without_a_schema_is_written_and_comes_back(url, name):
    given = options(url, name)
    rows = pa.array([*ROWS, None], FRAME)
    payloads = written(given, rows)
    assert payloads[2].as_py() is None
    if name == "json":
        given |= {"value.schema": schema_format("json").derived(FRAME, "").text}
    found = decoder(given).decode(payloads)
    assert dict(found.malformed) == {}
    expected = [*ROWS, None]
    if name != "protobuf":  # integers of JSON are bigint, and nothing else changes
        assert found.values.cast(FRAME).to_pylist() == expected
    else:
        assert found.values.to_pylist() == expected


def test_protobuf_columns_are_what_the_deserializer_reads(url, registry):
    kind = message_type("shop.Order")
    serialize = ProtobufSerializer(kind, registry)
    messages = [kind(a=n, n=f"n{n}", ints=range(n), counts={"k": n}, item=kind.Item(name="i"), number=n)
                for n in range(5)]
    payloads = [serialize(each, VALUE) for each in messages]
    deserialize = ProtobufDeserializer(kind, schema_registry_client=registry)
    read = [as_spark_reads(deserialize(each, VALUE)) for each in payloads]
    found = decoder(options(url, "protobuf")).decode(pa.array(payloads, pa.binary()))
    assert dict(found.malformed) == {}
    for row, wanted in zip(found.values.to_pylist(), read, strict=True):
        assert {key: dict(value) if key in ("counts", "items", "colored", "times") else value
                for key, value in row.items()} == wanted
    assert (found.values.field("a").to_pylist(), found.values.field("maybe").null_count) == ([None, 1, 2, 3, 4], 5)


def test_what_is_written_as_protobuf_is_read_by_the_deserializer(url, registry):
    text = parsed("shop.Order").formatted("serialized")  # the registry of a test does not convert
    payloads = written(options(url, "protobuf", **{"value.schema": text}), pa.array(
        [{"a": 5, "texts": ["x", "y"]}], pa.struct([("a", pa.int32()), ("texts", pa.list_(pa.string()))])))
    read = ProtobufDeserializer(message_type("shop.Order"), schema_registry_client=registry)(payloads[0].as_py(), VALUE)
    assert (read.a, list(read.texts)) == (5, ["x", "y"])


def test_a_message_within_another_is_named_before_its_bytes(url, registry):
    text = parsed("shop.Order").formatted("serialized")  # the registry of a test does not convert
    given = options(url, "protobuf", **{"value.schema": text, "value.message": "shop.Order.Item.Deep"})
    payloads = written(given, pa.array([{"x": 7}], pa.struct([("x", pa.int64())])))
    number = registry.get_latest_version(f"{TOPIC}-value").schema_id
    read = ProtobufDeserializer(message_type("shop.Order").Item.Deep, schema_registry_client=registry)
    assert read(payloads[0].as_py(), VALUE).x == 7
    found = decoder(given).decode(pa.concat_arrays([
        payloads, pa.array([b"\0" + number.to_bytes(4, "big") + b"\0\x08\x01"], pa.binary())]))
    assert found.values.to_pylist() == [{"x": 7, "tags": [], "labels": []}, None]
    assert dict(found.malformed) == {1: "the message is a shop.Order, not a shop.Order.Item.Deep"}
    unnamed = decoder(options(url, "protobuf")).decode(payloads)
    assert dict(unnamed.malformed) == {0: "the message is a shop.Order.Item.Deep, not a shop.Order: value.message, or "
                                          "key.message, names the type that is read"}


def test_fields_that_a_newer_schema_has_are_null_for_older_records(url, registry):
    old, new = ('syntax = "proto3"; message M { int32 a = 1; }', 'syntax = "proto3"; message M { int32 a = 1; '
                'optional string b = 2; }')
    payloads = written(options(url, "protobuf", **{"value.schema": old}), pa.array([{"a": 1}]).cast(
        pa.struct([("a", pa.int32())])))
    registry.register_schema(f"{TOPIC}-value", Schema(new, "PROTOBUF"))
    assert decoder(options(url, "protobuf")).decode(payloads).values.to_pylist() == [{"a": 1, "b": None}]


def test_imports_come_from_the_registry(url, registry):
    registry.register_schema("b.proto", Schema('syntax = "proto3"; package b; message B { int32 x = 1; }', "PROTOBUF"))
    from headrace.schema_registry.schema_registry_client import SchemaReference
    main = Schema('syntax = "proto3"; import "b.proto"; message A { b.B b = 1; }', "PROTOBUF",
                  [SchemaReference("b.proto", "b.proto", 1)])
    number = registry.register_schema(f"{TOPIC}-value", main)
    payload = b"\0" + number.to_bytes(4, "big") + b"\0\x0a\x02\x08\x05"
    assert decoder(options(url, "protobuf")).decode(pa.array([payload])).values.to_pylist() == [{"b": {"x": 5}}]


def test_json_by_a_schema_is_what_the_deserializer_reads(url, registry):
    pytest.importorskip("jsonschema_rs")
    number = registry.register_schema(f"{TOPIC}-value", Schema(json.dumps(ORDER), "JSON"))
    head = b"\0" + number.to_bytes(4, "big")
    texts = [{"id": 1, "tags": ["a"], "at": "2026-01-01T00:00:00+00:00", "note": None, "more": {"x": 1}}, {"id": 2.0},
             {"tags": []}, {"id": -1}, {"id": "x"}]
    payloads = [head + json.dumps(each).encode() for each in texts]
    deserialize = JSONDeserializer(None, schema_registry_client=registry)
    read = []
    for each in payloads:
        try:
            read.append(deserialize(each, VALUE))
        except SerializationError:
            read.append(None)
    assert [each is None for each in read] == [False, False, True, True, True]
    loose = decoder(options(url, "json-schema")).decode(pa.array(payloads))
    strict = decoder(options(url, "json-schema", **{"value.validate": "true"})).decode(pa.array(payloads))
    assert list(loose.malformed) == [4]
    assert sorted(strict.malformed) == [2, 3, 4]
    assert strict.malformed[3].startswith("-1 is less than the minimum of 0")
    rows = strict.values.to_pylist()
    assert [row and row["id"] for row in rows] == [each and each["id"] for each in read]
    assert rows[0] == {"id": 1, "tags": ["a"], "note": None, "at": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}


def test_what_is_written_as_json_is_read_by_the_deserializer_and_checked_if_asked(url, registry):
    pytest.importorskip("jsonschema_rs")
    given = options(url, "json-schema", **{"value.schema": json.dumps(ORDER)})
    rows = pa.array([{"id": 1, "note": "x"}, {"id": -1, "note": None}])
    payloads = written(given, rows).to_pylist()
    deserialize = JSONDeserializer(None, schema_registry_client=registry)
    assert deserialize(payloads[0], VALUE) == {"id": 1, "note": "x"}
    with pytest.raises(SerializationError, match="row 1 is not valid: -1 is less than the minimum of 0"):
        written(given | {"value.validate": "true"}, rows)


def test_options_that_a_format_does_not_have_are_refused():
    for name, option, owner in (("json", "validate", "json-schema"), ("avro", "emit.default.values", "protobuf")):
        with pytest.raises(ConfigError, match=f"value.{option} has no meaning with value.format {name}.*{owner}"):
            ValueFormat.parse({"value.format": name, "value.schema": "x INT", f"value.{option}": "true"}, "value")
    with pytest.raises(ConfigError, match=r"value\.format json needs value\.schema: the fields as Spark's DDL"):
        planned_read(ValueFormat.parse({"value.format": "json"}, "value"), [TOPIC])


def test_defaults_are_read_as_values_if_asked(url):
    text = 'syntax = "proto3"; message M { int32 a = 1; string b = 2; }'
    given = {"value.format": "protobuf", "value.schema": text}
    payloads = pa.array([b""], pa.binary())
    assert decoder(given).decode(payloads).values.to_pylist() == [{"a": None, "b": None}]
    assert decoder(given | {"value.emit.default.values": "true"}).decode(payloads).values.to_pylist() == [
        {"a": 0, "b": ""}]


@pytest.mark.parametrize("name", ["protobuf", "json-schema", "json"])
def test_columns_that_cannot_be_written_are_said_before_any_is(name):
    schemas = {"protobuf": 'syntax = "proto3"; message M { int32 a = 1; }', "json": "a INT",
               "json-schema": '{"properties":{"a":{"type":"integer"}}}'}
    codec = schema_format(name).codec(SchemaText(schemas[name]))
    codec.check_columns(pa.struct([("a", pa.int16())]))
    for kind, reason in ((pa.struct([("a", pa.string())]), "field a is string, and the schema has int.*cast the column"
                          ), (pa.struct([("b", pa.int32())]), "fields that the schema does not have: b")):
        with pytest.raises(SerializationError, match=reason):
            codec.check_columns(kind)


def test_a_frame_without_a_field_that_protobuf_requires_is_refused_before_any_row_is_written():
    codec = schema_format("protobuf").codec(SchemaText(
        'syntax = "proto2"; message M { required int32 a = 1; optional I i = 2; message I { required int32 x = 1; } }'))
    codec.check_columns(pa.struct([("a", pa.int32()), ("i", pa.struct([("x", pa.int32())]))]))
    for kind, reason in ((pa.struct([("i", pa.struct([("x", pa.int32())]))]), r"the column lacks .* requires: a"),
                         (pa.struct([("a", pa.int32()), ("i", pa.struct([]))]), r"field i lacks .* requires: x")):
        with pytest.raises(SerializationError, match=reason):
            codec.check_columns(kind)


@pytest.mark.parametrize(("name", "kind", "reason"), [
    ("protobuf", pa.struct([("a", pa.decimal128(5, 2))]), "field a: Protobuf has no type for decimal128"),
    ("protobuf", pa.struct([("a", pa.list_(pa.list_(pa.int32())))]), "field a: Protobuf has no type for list"),
    ("protobuf", pa.struct([("a b", pa.int32())]), "'a b' cannot be a name in Protobuf"),
    ("protobuf", pa.int32(), "a Protobuf message is a struct"),
    ("json-schema", pa.struct([("a", pa.decimal128(5, 2))]), "field a: JSON Schema has no type for decimal128"),
    ("json", pa.struct([("a", pa.duration("us"))]), "^field a: JSON has no values of the type duration"),
    ("json", pa.struct([("a", pa.list_(pa.struct([("b", pa.time64("us"))])))]), "^field a.b: JSON has no values"),
    ("json", pa.duration("us"), "^JSON has no values of the type duration"),
])
def test_columns_of_which_a_format_has_no_type_are_refused(name, kind, reason):
    with pytest.raises(SerializationError, match=reason):
        schema_format(name).derived(kind, "")


@pytest.mark.parametrize("name", ["json", "json-schema", "protobuf"])
def test_the_schema_of_a_frame_says_its_types_again(name):
    kind = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string()), ("d", pa.binary())])),
                      ("e", pa.timestamp("us", tz="UTC")), ("f", pa.float64()), ("g", pa.bool_())])
    assert schema_format(name).codec(schema_format(name).derived(kind, "a.Order")).data_type == kind
