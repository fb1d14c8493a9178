"""Which Protobuf schema reads what another has written."""

import pytest

from headrace.schemas.parsed import ReferencedSchema
from headrace.schemas.protobuf import ParsedProtobuf, parse_protobuf

HEAD = 'syntax = "proto3"; package p; '


def found(old: str, new: str, head: str = HEAD) -> list[str]:
    reader, writer = parse_protobuf(head + new), parse_protobuf(head + old)
    return [f"{each.type} {each.location}" for each in reader.can_read(writer)]


def message(body: str) -> str:
    return f"message A {{ {body} }} message M {{}} message N {{}} enum E {{ Z = 0; }}"


@pytest.mark.parametrize(("old", "new"), [
    ("", "int32 a = 1;"), ("int32 a = 1;", ""), ("int32 a = 1;", "int32 b = 1;"), ("int32 a = 1;", "int64 a = 1;"),
    ("int32 a = 1;", "bool a = 1;"), ("uint64 a = 1;", "E a = 1;"), ("sint32 a = 1;", "sint64 a = 1;"),
    ("string a = 1;", "bytes a = 1;"), ("fixed32 a = 1;", "sfixed32 a = 1;"), ("fixed64 a = 1;", "sfixed64 a = 1;"),
    ("string a = 1;", "repeated string a = 1;"), ("M a = 1;", "repeated M a = 1;"),
    ("int32 a = 1;", "optional int32 a = 1;"),
    ("int32 a = 1;", "oneof o { int32 a = 1; }"), ("oneof o { int32 a = 1; }", "oneof o { int32 a = 1; int32 b = 2; }"),
    ("oneof o { int32 a = 1; }", "int32 a = 1;"), ("oneof o { int32 a = 1; }", "oneof p { int32 a = 1; }"),
    ("oneof o { int32 a = 1; }", ""), ("map<int32, string> a = 1;", "map<int64, bytes> a = 1;"),
    ("M a = 1;", "p.M a = 1;"), ("", "message X {}"), ("enum F { Y = 0; }", ""),
    ("enum F { Y = 0; }", "enum F { X = 0; W = 1; }"),
    ("message X { X x = 1; }", "message X { X x = 1; }"),
])
def test_what_the_rules_allow_is_read(old: str, new: str) -> None:
    assert found(message(old), message(new)) == []


@pytest.mark.parametrize(("old", "new", "reason"), [
    ("int32 a = 1;", "sint32 a = 1;", "FIELD_SCALAR_KIND_CHANGED #/A/1"),
    ("int32 a = 1;", "string a = 1;", "FIELD_SCALAR_KIND_CHANGED #/A/1"),
    ("float a = 1;", "double a = 1;", "FIELD_SCALAR_KIND_CHANGED #/A/1"),
    ("int32 a = 1;", "M a = 1;", "FIELD_KIND_CHANGED #/A/1"),
    ("map<int32, M> a = 1;", "repeated M a = 1;", "FIELD_KIND_CHANGED #/A/1"),
    ("map<int32, M> a = 1;", "map<string, M> a = 1;", "FIELD_SCALAR_KIND_CHANGED #/A/1"),
    ("map<int32, M> a = 1;", "map<int32, N> a = 1;", "FIELD_NAMED_TYPE_CHANGED #/A/1"),
    ("M a = 1;", "N a = 1;", "FIELD_NAMED_TYPE_CHANGED #/A/1"),
    ("int32 a = 1;", "repeated int32 a = 1;", "FIELD_NUMERIC_LABEL_CHANGED #/A/1"),
    ("oneof o { int32 a = 1; int32 b = 2; }", "oneof o { int32 a = 1; }", "ONEOF_FIELD_REMOVED #/A/2"),
    ("int32 a = 1; int32 b = 2;", "oneof o { int32 a = 1; int32 b = 2; }", "MULTIPLE_FIELDS_MOVED_TO_ONEOF #/A/o"),
    ("oneof o { int32 a = 1; } int32 b = 2;", "oneof o { int32 a = 1; int32 b = 2; }",
     "FIELD_MOVED_TO_EXISTING_ONEOF #/A/o"),
    ("oneof o { int32 a = 1; }", "oneof p { string a = 1; }", "FIELD_SCALAR_KIND_CHANGED #/A/1"),
    ("message X {}", "", "MESSAGE_REMOVED #/A/X"),
    ("message X { int32 a = 1; }", "message X { string a = 1; }", "FIELD_SCALAR_KIND_CHANGED #/A/X/1"),
])
def test_what_they_do_not_allow_is_said_with_the_place(old: str, new: str, reason: str) -> None:
    assert found(message(old), message(new)) == [reason]


def test_required_fields_may_neither_come_nor_go() -> None:
    head = 'syntax = "proto2"; '
    one, none = "message A { required int32 a = 1; }", "message A { }"
    assert found(none, one, head) == ["REQUIRED_FIELD_ADDED #/A/1"]
    assert found(one, none, head) == ["REQUIRED_FIELD_REMOVED #/A/1"]


def test_the_package_may_not_change() -> None:
    new, old = (parse_protobuf(f'syntax = "proto3"; package {name}; message A {{}}') for name in "ab")
    assert [each.type for each in new.can_read(old)] == ["PACKAGE_CHANGED"]


def test_imported_messages_are_compared_too() -> None:
    def using(kind: str) -> str:
        return f'syntax = "proto3"; package q; message P {{ {kind} x = 1; P next = 2; }}'

    text = 'syntax = "proto3"; import "q.proto"; message A { q.P p = 1; }'
    old, same, other = (parse_protobuf(text, [ReferencedSchema("q.proto", using(kind))])
                        for kind in ("int32", "int64", "string"))
    assert same.can_read(old) == []
    assert [each.type for each in other.can_read(old)] == ["FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED"]


def test_types_that_come_with_protobuf_are_known_whether_they_are_referred_to_or_not() -> None:
    path, package = "google/protobuf/timestamp.proto", 'syntax = "proto3"; package google.protobuf; '
    text = f'syntax = "proto3"; import "{path}"; message A {{ google.protobuf.Timestamp t = 1; }}'
    without = parse_protobuf(text)
    given = parse_protobuf(text, [ReferencedSchema(path, package + "message Timestamp { int64 seconds = 1; }")])
    assert given.can_read(without) == without.can_read(given) == []
    head = HEAD + 'import "google/protobuf/struct.proto"; '
    assert found("message A { int32 a = 1; }", "message A { google.protobuf.NullValue a = 1; }", head) == []
    assert found("message A { int32 a = 1; }", "message A { google.protobuf.Value a = 1; }", head) == [
        "FIELD_KIND_CHANGED #/A/1"]


def test_types_that_come_with_protobuf_are_known_in_files_that_are_imported() -> None:
    def using(path: str, kind: str) -> ParsedProtobuf:
        text = f'syntax = "proto3"; package q; import "google/protobuf/{path}.proto"; message P {{ {kind} x = 1; }}'
        return parse_protobuf('syntax = "proto3"; import "q.proto"; message A { q.P p = 1; }',
                              [ReferencedSchema("q.proto", text)])

    time, span = using("timestamp", "google.protobuf.Timestamp"), using("duration", "google.protobuf.Duration")
    assert time.can_read(time) == []
    assert {each.type for each in span.can_read(time)} == {"FIELD_NAMED_TYPE_CHANGED"}
    enum, number = using("struct", "google.protobuf.NullValue"), using("struct", "int32")
    assert enum.can_read(number) == number.can_read(enum) == []
