"""Schemas with all that Protobuf has, the classes that the protobuf package makes of them, and what Spark reads."""

from __future__ import annotations

import datetime
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2, wrappers_pb2
from hypothesis import strategies as st

from headrace.schemas.protobuf import ParsedProtobuf, parse_protobuf

PROTO3 = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
message Order {
  int32 a = 1; int64 b = 2; uint32 c = 3; uint64 d = 4; sint32 e = 5; sint64 f = 6; fixed32 g = 7; fixed64 h = 8;
  sfixed32 i = 9; sfixed64 j = 10; float k = 11; double l = 12; bool m = 13; string n = 14; bytes o = 15;
  Color color = 16;
  optional int32 maybe = 17; optional string maybe_text = 18; optional Color maybe_color = 19;
  repeated int32 ints = 20; repeated sint64 zigzags = 21 [packed = false]; repeated string texts = 22;
  repeated double doubles = 23; repeated bool bools = 24; repeated Color colors = 25; repeated fixed32 fours = 26;
  map<string, int32> counts = 27; map<int64, Item> items = 28; map<bool, Color> colored = 29;
  map<sint32, google.protobuf.Timestamp> times = 30;
  Item item = 31; repeated Item many = 32;
  oneof choice { int32 number = 33; string word = 34; Item thing = 35; Color tint = 36; }
  google.protobuf.Timestamp at = 40; google.protobuf.Duration took = 41;
  repeated google.protobuf.Timestamp ats = 42;
  google.protobuf.Int32Value wrapped = 43; google.protobuf.StringValue wrapped_text = 44;
  string far = 5000;
  message Item { string name = 1; Deep deep = 2; repeated Deep deeps = 3;
    message Deep { int64 x = 1; repeated string tags = 2; map<string, string> labels = 3; } }
  enum Color { RED = 0; GREEN = 1; BLUE = 7; DARK = -3; }
}
"""
PROTO2 = """
syntax = "proto2";
package old;
message Order {
  required int32 id = 1;
  optional string name = 2 [default = "none\\n\\303\\244"];
  optional int64 number = 3 [default = -0x10];
  optional double ratio = 4 [default = -inf];
  optional bool flag = 5 [default = true];
  optional Color color = 6 [default = GREEN];
  optional bytes data = 7 [default = "\\001\\xff"];
  optional Color plain = 8;
  repeated int32 unpacked = 9;
  repeated int32 packed = 10 [packed = true];
  repeated Color colors = 11;
  map<string, Zeroed> colored = 12;
  optional Inner inner = 13;
  oneof choice { Color tint = 14; int32 other = 15; }
  optional uint32 big = 16 [default = 4294967295];
  optional float half = 17 [default = 0.5];
  message Inner { required string name = 1; optional int32 x = 2; }
  enum Zeroed { NONE = 0; SOME = 1; }
  enum Color { BLUE = 7; GREEN = 1; ALSO_GREEN = 1; option allow_alias = true; }
}
"""
TEXTS = {"shop.Order": PROTO3, "old.Order": PROTO2}


@cache
def parsed(name: str) -> ParsedProtobuf:
    return parse_protobuf(TEXTS[name])


@cache
def message_type(name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for module in (timestamp_pb2, duration_pb2, wrappers_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto.FromString(parsed(name).descriptor(f"{name}.proto"))
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


_RANGES = {"int32": (-1 << 31, (1 << 31) - 1), "int64": (-1 << 63, (1 << 63) - 1), "uint32": (0, (1 << 32) - 1),
           "uint64": (0, (1 << 64) - 1)}
_TYPES = {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "uint64", 7: "uint32", 8: "bool",
          9: "string", 12: "bytes", 13: "uint32", 14: "enum", 15: "int32", 16: "int64", 17: "int32", 18: "int64"}


def scalars(field: Any, *, beyond: bool = True) -> st.SearchStrategy[Any]:
    """Values of a scalar field, zero among them often."""
    kind = _TYPES[field.type]
    if kind == "enum":
        known = [value.number for value in field.enum_type.values]
        open_ones = st.integers(-5, 9) if beyond and not field.enum_type.is_closed else st.nothing()
        return st.sampled_from(known) | open_ones
    simple = {"double": st.floats(allow_nan=False), "float": st.floats(allow_nan=False, width=32),
              "bool": st.booleans(), "string": st.text(max_size=200), "bytes": st.binary(max_size=20)}
    return simple[kind] if kind in simple else st.sampled_from([0, 1]) | st.integers(*_RANGES[kind])


@st.composite
def messages(draw: Any, kind: Any) -> Any:
    """Messages of a class, some of whose fields are set."""
    made = kind()
    if kind.DESCRIPTOR.full_name == "google.protobuf.Timestamp":
        made.FromDatetime(draw(st.datetimes(datetime.datetime(1901, 1, 1), datetime.datetime(2100, 1, 1))))
        return made
    if kind.DESCRIPTOR.full_name == "google.protobuf.Duration":
        made.FromMicroseconds(draw(st.integers(-10**12, 10**12)))
        return made
    for field in kind.DESCRIPTOR.fields:
        if field.is_required or draw(st.booleans()):
            _fill(draw, made, field)
    return made


def _fill(draw: Any, made: Any, field: Any) -> None:
    own = getattr(made, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        for each in draw(st.lists(scalars(key), max_size=3)):
            if value.message_type is not None:
                own[each].CopyFrom(draw(messages(_class_of(value))))
            else:
                own[each] = draw(scalars(value))
    elif field.is_repeated:
        inner = scalars(field) if field.message_type is None else messages(_class_of(field))
        own.extend(draw(st.lists(inner, max_size=3)))
    elif field.message_type is not None:
        own.CopyFrom(draw(messages(_class_of(field))))
    else:
        setattr(made, field.name, draw(scalars(field)))


def _class_of(field: Any) -> Any:
    return message_factory.GetMessageClass(field.message_type)


def as_spark_reads(message: Any) -> dict[str, Any]:
    """A message as `from_protobuf` shows it."""
    return {field.name: _shown_field(message, field) for field in message.DESCRIPTOR.fields}


def _shown_field(message: Any, field: Any) -> Any:
    own = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        key = field.message_type.fields_by_name["key"]
        return {_shown(key, each): _shown(value, own[each]) for each in own}
    if field.is_repeated:
        return [_shown(field, each) for each in own]
    if field.has_presence:
        return _shown(field, own) if message.HasField(field.name) or field.has_default_value else None
    return _shown(field, own) if any(each.name == field.name for each, _ in message.ListFields()) else None


def _shown(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            nanos = value.nanos // 1000 if value.nanos >= 0 else -(-value.nanos // 1000)
            return value.seconds * 10**6 + nanos
        return as_spark_reads(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number
        return known[value].name if value in known else f"UNKNOWN_ENUM_VALUE_{field.enum_type.name}_{value}"
    bits = {13: 32, 7: 32, 4: 64, 6: 64}.get(field.type)
    return value - (1 << bits) if bits and value >> (bits - 1) else value
