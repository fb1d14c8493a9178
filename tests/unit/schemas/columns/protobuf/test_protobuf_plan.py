"""What a Protobuf message type means for columns."""

import pyarrow as pa
import pytest

from headrace.schemas.columns.protobuf.protobuf_plan import MessagePlan, arrow_type, message_at, place_of, plan_of
from headrace.schemas.columns.protobuf_columns import ProtobufColumns
from headrace.schemas.parsed import InvalidSchemaError, ReferencedSchema
from headrace.schemas.protobuf import parse_protobuf
from tests.unit.schemas.columns.proto_messages import parsed

P3 = 'syntax = "proto3"; package a; '


def type_of(text: str, message: str = "") -> pa.DataType:
    return arrow_type(plan_of(parse_protobuf(P3 + text), message))


def test_types_are_those_of_sparks_from_protobuf() -> None:
    text = """import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
              import "google/protobuf/wrappers.proto"; import "google/protobuf/any.proto";
              message M { uint32 a = 1; fixed64 b = 2; E c = 3; google.protobuf.Timestamp d = 4;
                google.protobuf.Duration e = 5; google.protobuf.UInt64Value f = 6; google.protobuf.Any g = 7;
                repeated bytes h = 8; map<string, bool> i = 9; float j = 10; }
              enum E { A = 0; }"""
    assert type_of(text) == pa.struct([
        ("a", pa.int32()), ("b", pa.int64()), ("c", pa.string()), ("d", pa.timestamp("us", tz="UTC")),
        ("e", pa.duration("us")), ("f", pa.struct([("value", pa.int64())])),
        ("g", pa.struct([("type_url", pa.string()), ("value", pa.binary())])),
        ("h", pa.list_(pa.field("element", pa.binary(), nullable=False))),
        ("i", pa.map_(pa.string(), pa.field("value", pa.bool_(), nullable=False))), ("j", pa.float32())])


def test_messages_without_fields_have_no_columns() -> None:
    assert type_of("message M { Empty e = 1; int32 x = 2; repeated Empty es = 3; map<string, Empty> m = 4; }"
                   "message Empty {}").names == ["x"]


@pytest.mark.parametrize(("text", "reason"), [
    ("message M { Inner i = 1; message Inner { repeated M m = 1; } }", "a.M > a.M.Inner > a.M"),
    ("message M { map<string, M> m = 1; }", "holds itself"),
    ('import "google/protobuf/struct.proto"; message M { google.protobuf.Struct s = 1; }',
     "google.protobuf.Struct > google.protobuf.Value > google.protobuf.Struct"),
    ("message M {}", "has no fields"),
    ("enum E { A = 0; }", "no message type"),
    ('import "google/api/http.proto"; message M { google.api.Http h = 1; }', "not among the references"),
])
def test_types_without_columns_are_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=reason.replace(".", r"\.")):
        type_of(text)


def test_a_type_that_multiplies_its_columns_is_refused_before_memory_is_full() -> None:
    levels = "".join(f"message M{n} {{ {''.join(f'M{n + 1} f{i} = {i};' for i in range(1, 11))} }}" for n in range(20))
    with pytest.raises(InvalidSchemaError, match="more than 20000 columns"):
        type_of(levels + "message M20 { int32 x = 1; }")


def test_an_unknown_message_type_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidSchemaError, match=r"no message type 'a\.X'; it has a\.M, a\.M\.N"):
        type_of("message M { int32 x = 1; message N { int32 y = 1; } }", "a.X")


def test_types_may_come_from_files_that_are_imported() -> None:
    other = ReferencedSchema("other.proto", 'syntax = "proto2"; package b; message B { required int32 x = 1; }')
    schema = parse_protobuf(P3 + 'import "other.proto"; message M { b.B b = 1; }', [other])
    assert arrow_type(plan_of(schema)) == pa.struct([
        ("b", pa.struct([pa.field("x", pa.int32(), nullable=False)]))])


def test_messages_are_found_by_their_places_among_which_maps_have_entries() -> None:
    schema = parse_protobuf(P3 + """message A { map<string, int32> m = 1; message B { int32 x = 1; }
                                      map<string, int32> n = 2; message C { int32 x = 1; message D { int32 x = 1; } } }
                                    message E { int32 x = 1; }""")
    assert [message_at(schema, each) for each in ([0], [1], [0, 1], [0, 3], [0, 3, 0])] == [
        "a.A", "a.E", "a.A.B", "a.A.C", "a.A.C.D"]
    with pytest.raises(InvalidSchemaError, match="out of range"):
        message_at(schema, [2])


@pytest.mark.parametrize("default", ["1.5", "99999999999", "RED", '"x"'])
def test_a_default_that_its_type_does_not_have_is_refused(default: str) -> None:
    with pytest.raises(InvalidSchemaError, match="default"):
        plan_of(parse_protobuf(f'syntax = "proto2"; message M {{ optional int32 x = 1 [default = {default}]; }}'))


def test_features_of_editions_decide_presence_packing_and_enums() -> None:
    schema = parse_protobuf("""edition = "2023"; option features.field_presence = IMPLICIT;
        message M { int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT];
          repeated int32 c = 3 [features.repeated_field_encoding = EXPANDED];
          int32 d = 4 [features.field_presence = LEGACY_REQUIRED]; E e = 5 [features.field_presence = EXPLICIT]; }
        enum E { option features.enum_type = CLOSED; A = 0; }""")
    a, b, c, d, e = plan_of(schema).fields
    assert (a.is_implicit, b.is_implicit, c.is_packed, d.is_required) == (True, False, False, True)
    assert e.enum is not None
    assert e.enum.is_closed


def test_defaults_can_be_read_in_place_of_nulls() -> None:
    schema = parse_protobuf(P3 + "message M { int32 a = 1; string b = 2; optional int32 c = 3; }")
    empty = pa.array([b""], pa.binary())
    for plain in (True, False):
        null, zero = (ProtobufColumns(schema, emit_defaults=each, plain=plain).decode(empty).values.to_pylist()
                      for each in (False, True))
        assert null == [{"a": None, "b": None, "c": None}]
        assert zero == [{"a": 0, "b": "", "c": None}]


@pytest.mark.parametrize("name", ["shop.Order", "old.Order"])
def test_a_descriptor_means_the_same_as_the_text_that_it_was_made_of(name: str) -> None:
    again = parse_protobuf(parsed(name).formatted("serialized"))
    assert told(plan_of(again, name)) == told(plan_of(parsed(name), name))
    assert [place_of(again, message_at(again, place)) for place in ([0], [0, 0])] == [(0,), (0, 0)]


def told(plan: MessagePlan) -> list[object]:
    return [(each.name, each.number, each.kind, each.shape, each.is_required, each.is_implicit, each.is_packed,
             each.default, each.oneof, each.enum and (each.enum.is_closed, each.enum.numbers),
             each.message and told(each.message)) for each in plan.fields]


def test_a_message_that_the_file_does_not_declare_has_no_place() -> None:
    with pytest.raises(InvalidSchemaError, match=r"does not declare the message type 'shop\.Other'"):
        place_of(parsed("shop.Order"), "shop.Other")
