"""Columns of Protobuf's messages: what the protobuf package reads and writes, by native code and by the plain twin."""

from __future__ import annotations

import datetime
import os
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import SerializationError
from headrace.schemas.columns.protobuf_columns import ProtobufColumns
from headrace.schemas.protobuf import parse_protobuf

from .proto_messages import as_spark_reads, message_type, messages, parsed

NAMES = ("shop.Order", "old.Order")
CODECS = {(name, kind): ProtobufColumns(parsed(name), name, plain=kind == "plain")
          for name in NAMES for kind in ("plain", "native")}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
EXAMPLES = int(os.environ.get("EXAMPLES", "15"))
KINDS = pytest.mark.parametrize("kind", ["plain", "native"])


def codec_of(text: str, kind: str, message: str = "", **given: Any) -> ProtobufColumns:
    return ProtobufColumns(parse_protobuf(text), message, plain=kind == "plain", **given)


def values(array: pa.Array) -> list[Any]:
    """Values as Python has them; times in microseconds, maps as dicts."""
    return [plain(each, array.type) for each in array.to_pylist()]


def plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {each.name: plain(value[each.name], each.type) for each in kind}
    if pa.types.is_map(kind):
        return {key: plain(each, kind.item_type) for key, each in value}
    if pa.types.is_list(kind):
        return [plain(each, kind.value_type) for each in value]
    if isinstance(value, datetime.datetime):
        value = value - EPOCH
    return value // datetime.timedelta(microseconds=1) if isinstance(value, datetime.timedelta) else value


@KINDS
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_columns_are_what_the_protobuf_package_reads(name: str, kind: str, data: st.DataObject) -> None:
    written = data.draw(st.lists(messages(message_type(name)), max_size=4))
    payloads = pa.array([each.SerializeToString() for each in written], pa.binary())
    decoded = CODECS[name, kind].decode(payloads)
    decoded.values.validate(full=True)
    assert decoded.malformed == {}
    assert values(decoded.values) == [as_spark_reads(each) for each in written]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_damaged_bytes_are_read_or_refused_alike_by_both(name: str, data: st.DataObject) -> None:
    payloads = pa.array([bytes(damaged(data, data.draw(messages(message_type(name))))) for _ in range(3)], pa.binary())
    native, twin = (CODECS[name, kind].decode(payloads) for kind in ("native", "plain"))
    native.values.validate(full=True)
    assert native.malformed.keys() == twin.malformed.keys()
    assert native.values.equals(twin.values)
    for row, payload in enumerate(payloads.to_pylist()):
        if row not in native.malformed:
            read = message_type(name)()
            read.ParseFromString(payload)  # the protobuf package reads all that we read


def damaged(data: st.DataObject, message: Any) -> bytearray:
    found = bytearray(message.SerializeToString() + message.SerializePartialToString()[:data.draw(st.integers(0, 40))])
    for _ in range(data.draw(st.integers(0, 3))):
        if found:
            at = data.draw(st.integers(0, len(found) - 1))
            found[at] ^= 1 << data.draw(st.integers(0, 7))
    return found[:data.draw(st.integers(0, len(found)))] if data.draw(st.booleans()) else found


@KINDS
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_the_protobuf_package_reads_what_is_written(name: str, kind: str, data: st.DataObject) -> None:
    written = data.draw(st.lists(messages(message_type(name)), max_size=4))
    codec = CODECS[name, kind]
    structs = codec.decode(pa.array([each.SerializeToString() for each in written], pa.binary())).values
    payloads = codec.encode(structs).to_pylist()
    read = [message_type(name).FromString(each) for each in payloads]
    assert [as_spark_reads(each) for each in read] == values(structs)
    assert codec.decode(pa.array(payloads, pa.binary())).values.equals(structs)


def test_native_code_is_there_to_be_compared() -> None:
    if os.environ.get("CI") != "true":
        pytest.importorskip("headrace.schemas.columns._protobuf_columns")
    from headrace.schemas.columns._json_columns import JsonProgram
    from headrace.schemas.columns._protobuf_columns import ProtobufProgram

    assert JsonProgram.__module__ != ProtobufProgram.__module__


P2 = 'syntax = "proto2"; '
P3 = 'syntax = "proto3"; '


def read(text: str, kind: str, *payloads: bytes | None) -> tuple[list[Any], dict[int, str]]:
    found = codec_of(text, kind).decode(pa.array(payloads, pa.binary()))
    found.values.validate(full=True)
    return values(found.values), dict(found.malformed)


@KINDS
@pytest.mark.parametrize(("payload", "reason"), [
    (b"\x08", "field a: the bytes end within a value"),
    (b"\x08" + b"\xff" * 10, "field a: the bytes end within a value"),
    (b"\x12\x05abc", "field b: the bytes end within a value"),
    (b"\x12\x02\xc3\x28", "field b: the text is not UTF-8"),
    (b"\x12\x03\xed\xa0\x80", "field b: the text is not UTF-8"),
    (b"\x1a\x02\x0a\x09", "field c.x: the bytes end within a value"),
    (b"\x22\x02\x01\x80", "field d: the bytes end within a value"),
    (b"\x06", "the bytes have no valid tag"),
    (b"\x0f", "the bytes have no valid tag"),
    (b"\x0c", "a group is not closed, or too deep"),
    (b"\x2b\x08\x01", "a group is not closed, or too deep"),
    (b"\x2b" * 101 + b"\x2c" * 101, "a group is not closed, or too deep"),
    (b"\x32\x0b\x08" + b"\xff" * 8 + b"\x7f\x00", "field t: the bytes have no valid tag"),
    (b"\x32\x0a\x08" + b"\xff" * 8 + b"\x7f", "field t: the time is out of range"),
])
def test_bytes_that_are_no_message_are_malformed_with_a_reason(kind: str, payload: bytes, reason: str) -> None:
    text = (P3 + 'import "google/protobuf/timestamp.proto"; message M { int32 a = 1; string b = 2; C c = 3; '
            "repeated int32 d = 4; google.protobuf.Timestamp t = 6; message C { string x = 1; } }")
    good = b"\x08\x05"
    found, bad = read(text, kind, good, payload, None, good)
    assert bad == {1: reason}
    assert [each and each["a"] for each in found] == [5, None, None, 5]


@KINDS
def test_a_malformed_row_leaves_nothing_in_the_columns(kind: str) -> None:
    text = P3 + """message M { repeated string a = 1; map<string, int32> m = 2; repeated bool b = 3; repeated C c = 4;
                    int32 x = 5; message C { int32 y = 1; repeated string z = 2; } }"""
    good = b"\x0a\x01p\x12\x05\x0a\x01k\x10\x07\x1a\x03\x01\x00\x01\x22\x05\x08\x01\x12\x01q\x28\x09"
    expected = {"a": ["p"], "m": {"k": 7}, "b": [True, False, True], "c": [{"y": 1, "z": ["q"]}], "x": 9}
    found, bad = read(text, kind, good, good + b"\x0a\x01s" + good + b"\x06", good, b"\x07", None, good)
    assert found == [expected, None, expected, None, None, expected]
    assert sorted(bad) == [1, 3]


@KINDS
def test_a_missing_required_field_is_malformed_and_named(kind: str) -> None:
    text = P2 + "message M { optional I i = 1; message I { required int32 x = 1; } }"
    assert read(text, kind, b"\x0a\x00", b"")[1] == {0: "field i.x: a required field is missing"}


@KINDS
def test_fields_that_come_again_replace_and_messages_add_up(kind: str) -> None:
    text = P3 + "message M { int32 a = 1; I i = 2; oneof o { int32 x = 3; I y = 4; } message I { int32 p = 1; " \
                "int32 q = 2; repeated int32 r = 3; } }"
    inner = [b"\x08\x01\x18\x01", b"\x10\x02\x18\x02"]
    payload = b"\x08\x01\x08\x02" + b"".join(b"\x12" + bytes([len(each)]) + each for each in inner)
    assert read(text, kind, payload)[0][0] | {"x": 0, "y": 0} == {
        "a": 2, "i": {"p": 1, "q": 2, "r": [1, 2]}, "x": 0, "y": 0}
    last = read(text, kind, b"\x22\x02\x08\x01\x18\x05", b"\x18\x05\x22\x02\x08\x01",
                b"\x22\x02\x08\x01\x18\x05\x22\x00")
    assert [(each["x"], each["y"]) for each in last[0]] == [
        (5, None), (None, {"p": 1, "q": None, "r": []}), (None, {"p": None, "q": None, "r": []})]


@KINDS
def test_of_a_maps_keys_the_last_one_counts(kind: str) -> None:
    text = P3 + "message M { map<int32, string> m = 1; repeated N n = 2; message N { map<string, int32> k = 1; } }"
    entry = b"\x0a\x05\x08%c\x12\x01%c"
    pairs = [(n % 40, 97 + n // 40) for n in range(100)]
    found, _ = read(text, kind, entry % (1, 97) + entry % (2, 98) + entry % (1, 99),
                    b"\x12\x0e" + b"\x0a\x05\x0a\x01k\x10\x01" + b"\x0a\x05\x0a\x01k\x10\x02",
                    b"".join(entry % pair for pair in pairs), entry % (1, 97))
    assert found[0]["m"] == {2: "b", 1: "c"}
    assert found[1]["n"] == [{"k": {"k": 2}}]
    assert found[2]["m"] == {n: "c" if n < 20 else "b" for n in range(40)}
    assert found[3]["m"] == {1: "a"}
    whole = codec_of(text, kind).decode(pa.array([b"".join(entry % pair for pair in pairs)], pa.binary())).values
    assert len(whole.field("m").keys) == 40


@KINDS
def test_a_closed_enum_leaves_out_numbers_that_it_does_not_have_and_an_open_one_names_them(kind: str) -> None:
    fields = "message M { %s E a = 1; repeated E b = 2; map<int32, E> c = 3; } enum E { A = 0; B = 1; }"
    payload = b"\x08\x09\x10\x01\x10\x09\x1a\x04\x10\x09\x08\x05\x1a\x04\x08\x06\x10\x01"
    assert read(P2 + fields % "optional", kind, payload)[0] == [{"a": None, "b": ["B"], "c": {6: "B"}}]
    unknown = "UNKNOWN_ENUM_VALUE_E_9"
    assert read(P3 + fields % "", kind, payload)[0] == [
        {"a": unknown, "b": ["B", unknown], "c": {5: unknown, 6: "B"}}]
    codec = codec_of(P3 + fields % "", kind)
    again = codec.decode(codec.encode(codec.decode(pa.array([payload], pa.binary())).values)).values
    assert values(again)[0]["b"] == ["B", unknown]


@KINDS
def test_unknown_fields_and_groups_and_other_wire_types_are_passed_over(kind: str) -> None:
    text = P3 + "message M { int32 a = 1; }"
    unknown = b"\x10\x05\x19" + b"x" * 8 + b"\x22\x03abc\x2d" + b"y" * 4
    unknown += b"\x33\x3b\x08\x01\x3c\x10\x01\x34\xfa\x7f\x00"
    assert read(text, kind, unknown + b"\x08\x07" + unknown + b"\x0a\x01x\x0d\x01\x02\x03\x04") == ([{"a": 7}], {})


def test_a_few_bytes_cannot_fill_the_memory() -> None:
    fields = "".join(f"int64 f{n} = {n};" for n in range(1, 200))
    text = P3 + "message M { repeated C c = 1; message C { " + fields + "} }"
    found, bad = read(text, "native", b"\x0a\x00" * 100_000, b"\x0a\x00")
    assert bad == {0: "field c: the message has more than 16777216 values"}
    assert len(found[1]["c"]) == 1


@KINDS
@pytest.mark.parametrize(("fields", "value", "reason"), [
    ("required int32 a = 1;", {"a": None}, "field a: a required field is null"),
    ("required int32 a = 1;", {}, "field a: a required field is null"),
    ("repeated int32 a = 1;", {"a": [1, None]}, "field a: an element is null"),
    ("map<string, int32> a = 1;", {"a": [("k", None)]}, "field a.value: a required field is null"),
    ("optional E a = 1;", {"a": "X"}, "field a: the enum has no such name"),
    ("oneof o { int32 a = 1; string b = 2; }", {"a": 1, "b": "x"}, "field b: two fields of a oneof are set"),
])
def test_values_that_do_not_fit_are_refused_with_row_and_field(
    kind: str, fields: str, value: dict[str, Any], reason: str
) -> None:
    codec = codec_of(P2 + "message M {" + fields + "} enum E { A = 0; }", kind)
    types = {each.name: _nullable(each.type) for each in codec.data_type}
    rows = pa.array([None, value], pa.struct([(name, types[name]) for name in value]))
    with pytest.raises(SerializationError, match=f"^row 1 cannot be written as M: {reason}$"):
        codec.encode(rows)


def _nullable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_type)
    return pa.list_(kind.value_type) if pa.types.is_list(kind) else kind


@KINDS
def test_columns_go_by_name_and_are_cast_where_nothing_is_lost(kind: str) -> None:
    codec = codec_of(P3 + "message M { int64 a = 1; string b = 2; double c = 3; }", kind)
    rows = pa.array([{"b": "x", "a": 5}, {"b": None, "a": 6}], pa.struct([("b", pa.large_string()), ("a", pa.int8())]))
    assert values(codec.decode(codec.encode(rows)).values) == [
        {"a": 5, "b": "x", "c": None}, {"a": 6, "b": None, "c": None}]
    with pytest.raises(SerializationError, match="fields that the schema does not have: z"):
        codec.encode(pa.array([{"z": 1}]))
    with pytest.raises(SerializationError, match="field a is string"):
        codec.encode(pa.array([{"a": "no number"}]))


@KINDS
def test_slices_of_columns_are_written_as_they_stand(kind: str) -> None:
    codec = codec_of(P3 + """message M { int32 a = 1; repeated string b = 2; map<string, int32> m = 3; I i = 4;
                             bool f = 5; message I { string c = 1; repeated int32 d = 2; } }""", kind)
    rows = [{"a": n, "b": ["x"] * n, "m": {str(n): n}, "i": {"c": str(n), "d": [n, n + 1]}, "f": True}
            for n in range(1, 20)]
    rows[7] = rows[7] | {"i": None}
    array = pa.array(rows, codec.data_type)
    for start, size in ((0, 19), (5, 9), (18, 1)):
        part = array.slice(start, size)
        assert values(codec.decode(codec.encode(part)).values) == rows[start:start + size]
        payloads = codec.encode(array).slice(start, size)
        assert values(codec.decode(payloads).values) == rows[start:start + size]
