"""What `protoc --descriptor_set_out` writes is a schema of values, with all that it imports."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("google.protobuf")

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from headrace.errors import ConfigError
from headrace.schema_registry.protobuf import ProtobufSerializer
from headrace.schema_registry.schema_registry_client import SchemaReference, SchemaRegistryClient
from headrace.schemas.parsed import InvalidSchemaError, ReferencedSchema
from headrace.schemas.protobuf import files_of_set, parse_protobuf
from headrace.serialization import MessageField, SerializationContext
from headrace.values.value_decoder import ValueDecoder
from headrace.values.value_encoder import ValueEncoder
from headrace.values.value_format import ValueFormat
from headrace.values.value_planning import planned_read

MONEY = 'syntax = "proto3"; package q; message Money { int64 cents = 1; }'
ORDER = ('syntax = "proto3"; package p; import "money.proto"; import "google/protobuf/timestamp.proto"; '
         "message Order { int32 id = 1; q.Money price = 2; google.protobuf.Timestamp at = 3; message Line { int32 n "
         "= 1; } } message Other { string s = 1; }")
MONEY_TYPE = pa.struct([("cents", pa.int64())])


def descriptor_set(*, imports: bool = True) -> bytes:
    """As protoc makes it of order.proto."""
    parsed = [("money.proto", parse_protobuf(MONEY)), ("order.proto", parse_protobuf(
        ORDER, [ReferencedSchema("money.proto", MONEY)]))]
    made = descriptor_pb2.FileDescriptorSet()
    if imports:
        made.file.append(descriptor_pb2.FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb))
    for path, each in parsed if imports else parsed[1:]:
        made.file.append(descriptor_pb2.FileDescriptorProto.FromString(each.descriptor(path)))
    return made.SerializeToString()


def format_of(**given: str) -> ValueFormat:
    options = {f"value.{name.replace('_', '.')}": each for name, each in given.items()}
    return ValueFormat.parse({"value.format": "protobuf", **options}, "value")


def as_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_values_are_read_and_written_by_a_set_in_a_file_or_in_the_option(tmp_path: Path) -> None:
    file = tmp_path / "order.desc"
    file.write_bytes(descriptor_set())
    for of in (format_of(schema_file=str(file), message="p.Order"),
               format_of(schema=as_text(descriptor_set()), message="Order"), format_of(schema_file=str(file))):
        decoder = ValueDecoder(planned_read(of, None))
        assert decoder.data_type == pa.struct([("id", pa.int32()), ("price", MONEY_TYPE),
                                               ("at", pa.timestamp("us", tz="UTC"))])
        values = pa.array([{"id": 1, "price": {"cents": 7}, "at": None}], decoder.data_type)
        assert decoder.decode(ValueEncoder(of, "t", decoder.data_type).encode(values)).values.equals(values)


@pytest.mark.parametrize(("message", "kind"), [
    ("q.Money", MONEY_TYPE), ("Money", MONEY_TYPE), (".q.Money", MONEY_TYPE),
    ("Line", pa.struct([("n", pa.int32())])), ("Order.Line", pa.struct([("n", pa.int32())])),
    ("Other", pa.struct([("s", pa.string())])),
])
def test_the_message_tells_which_file_is_meant(message: str, kind: Any) -> None:
    of = format_of(schema=as_text(descriptor_set()), message=message)
    assert planned_read(of, None).data_type == kind


def test_a_set_without_its_imports_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidSchemaError, match=r"lacks money\.proto, which its files import.*--include_imports"):
        planned_read(format_of(schema=as_text(descriptor_set(imports=False))), None)


def test_a_message_that_is_not_there_is_told_of_those_that_are_the_own_ones_first() -> None:
    with pytest.raises(InvalidSchemaError, match=(
            r"no message type 'Odrer'; it has p\.Order, p\.Order\.Line, p\.Other, q\.Money, google\.protobuf\.Tim")):
        _ = planned_read(format_of(schema=as_text(descriptor_set()), message="Odrer"), None).data_type


def test_a_short_name_that_several_types_have_is_refused_unless_one_is_in_the_package_itself() -> None:
    lines = "message {0} {{ message Line {{ int32 {0} = 1; }} Line x = 1; }}"
    text = 'syntax = "proto3"; package p; ' + lines.format("A") + lines.format("B")
    with pytest.raises(InvalidSchemaError, match=r"several message types 'Line': choose among p\.A\.Line, p\.B\.Line"):
        _ = planned_read(format_of(schema=text, message="Line"), None).data_type
    of = format_of(schema=text + "message Line { bool own = 1; }", message="Line")
    assert planned_read(of, None).data_type == pa.struct([("own", pa.bool_())])


def test_what_is_no_set_stays_what_it_is(tmp_path: Path) -> None:
    single = parse_protobuf(MONEY).descriptor("money.proto")
    for text in (MONEY, as_text(single), as_text(b"\x0a\x03abc"), as_text(b"\xff\xff")):
        assert files_of_set(text) is None
    assert planned_read(format_of(schema=as_text(single)), None).data_type == MONEY_TYPE
    for data in (single, MONEY.encode()):
        (tmp_path / "money").write_bytes(data)
        assert planned_read(format_of(schema_file=str(tmp_path / "money")), None).data_type == MONEY_TYPE


def test_a_compiled_file_is_no_schema_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "set").write_bytes(b"\x0a\xff")
    with pytest.raises(ConfigError, match=r"option value\.schema\.file cannot be read: 'utf-8' codec"):
        ValueFormat.parse({"value.format": "avro", "value.schema.file": str(tmp_path / "set")}, "value")


CHAIN = {
    "base.proto": 'syntax = "proto3"; package q; message Base { int32 n = 1; }',
    "left.proto": 'syntax = "proto3"; package q; import "base.proto"; message Left { Base base = 1; }',
    "right.proto": 'syntax = "proto3"; package q; import "base.proto"; message Right { Base base = 1; }',
    "beside.proto": 'syntax = "proto3"; package q; import "base.proto"; message Beside { Base base = 1; }',
    "main.proto": 'syntax = "proto3"; package q; import "left.proto"; import "google/protobuf/timestamp.proto"; '
                  'import "right.proto"; message Main { Left left = 1; Right right = 2; }',
}


def chain(*paths: str) -> str:
    """A set of files of `CHAIN`, in this order."""
    made = descriptor_pb2.FileDescriptorSet()
    others = [ReferencedSchema(path, text) for path, text in CHAIN.items()]
    for path in paths:
        parsed = parse_protobuf(CHAIN[path], others[:[*CHAIN].index(path)])
        made.file.append(descriptor_pb2.FileDescriptorProto.FromString(parsed.descriptor(path)))
    return as_text(made.SerializeToString())


@pytest.fixture
def url() -> str:
    return f"mock://{uuid.uuid4().hex}"


@pytest.fixture
def registry(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient.new_client({"url": url}) as client:
        yield client


def in_registry(url: str, **given: str) -> ValueFormat:
    return ValueFormat.parse({"value.format": "protobuf", "schema.registry.url": url, **{
        f"value.{name.replace('_', '.')}": each for name, each in given.items()}}, "value")


def test_the_imports_of_a_set_are_registered_as_references_of_what_imports_them(
    url: str, registry: SchemaRegistryClient
) -> None:
    of = in_registry(url, schema=chain(*CHAIN))
    kind = pa.struct([(side, pa.struct([("base", pa.struct([("n", pa.int32())]))])) for side in ("left", "right")])
    values = pa.array([{"left": {"base": {"n": 1}}, "right": {"base": {"n": 2}}}], kind)
    payloads = ValueEncoder(of, "t", kind).encode(values)
    assert sorted(registry.get_subjects()) == ["base.proto", "left.proto", "right.proto", "t-value"]

    def references(subject: str) -> Any:
        found = registry.get_latest_version(subject)
        return found.version, found.schema and found.schema.references

    base = SchemaReference("base.proto", "base.proto", 1)
    assert references("t-value") == (1, [SchemaReference(name, name, 1) for name in ("left.proto", "right.proto")])
    assert references("left.proto") == references("right.proto") == (1, [base])
    assert references("base.proto") == (1, [])
    found = ValueDecoder(planned_read(in_registry(url), ["t"]))  # all that it needs comes from the registry
    assert found.decode(payloads).values.equals(values)
    ValueEncoder(of, "t", kind)
    assert registry.get_versions("left.proto") == [1]  # as it was


def test_imports_that_may_not_be_registered_must_be_there_as_the_serializer_registers_them(
    url: str, registry: SchemaRegistryClient
) -> None:
    of = in_registry(url, schema=as_text(descriptor_set()), auto_register="false")
    kind = pa.struct([("id", pa.int32())])
    with pytest.raises(ConfigError, match=r"not registered under subject money\.proto: .* allow it by auto\.register"):
        ValueEncoder(of, "t", kind)
    assert registry.get_subjects() == []
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set()).file:
        pool.Add(file)
    order = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Order"))
    by_serializer = ProtobufSerializer(order, registry)(order(id=5), SerializationContext("t", MessageField.VALUE))
    assert ValueEncoder(of, "t", kind).encode(pa.array([{"id": 5}], kind)).to_pylist() == [by_serializer]


def test_a_file_of_a_set_that_comes_before_what_it_imports_is_refused_by_name(
    url: str, registry: SchemaRegistryClient
) -> None:
    of = in_registry(url, schema=chain("left.proto", "base.proto", "right.proto", "main.proto"))
    with pytest.raises(InvalidSchemaError, match=r"left\.proto imports base\.proto, which does not come before it"):
        ValueEncoder(of, "t", pa.struct([("left", pa.struct([]))]))
    assert registry.get_subjects() == []
