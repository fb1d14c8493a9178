"""What `protoc --descriptor_set_out` writes is a schema of values, with all that it imports."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("google.protobuf")

import pyarrow as pa
from google.protobuf import descriptor_pb2, timestamp_pb2

from headrace.errors import ConfigError
from headrace.schemas.parsed import InvalidSchemaError, ReferencedSchema
from headrace.schemas.protobuf import files_of_set, parse_protobuf
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
