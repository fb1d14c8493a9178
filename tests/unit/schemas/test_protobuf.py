"""What is a .proto file and what is not, as Protobuf's own compiler says, and how files are written down again."""

import pytest

from headrace.schemas.parsed import InvalidSchemaError, ReferencedSchema
from headrace.schemas.protobuf import parse_protobuf
from tests.unit.schemas.proto.samples import OTHER, PROTO2, PROTO3, compiled

REFERENCES = [ReferencedSchema("other/types.proto", OTHER)]
P3, P2 = 'syntax = "proto3"; ', 'syntax = "proto2"; '
VALID = {
    "empty": P3,
    "fields named by words of the language": P3 +
    "message A { string message = 1; int32 optional = 2; bool syntax = 3; "
    "int32 reserved = 4; int32 oneof = 5; int32 map = 6; int32 enum = 7; int32 extend = 8; int32 option = 9; }",
    "types from outer scopes": P3 +
    "package a.b; message A { message B { C c = 1; b.C d = 2; a.b.C e = 3; } } message C {}",
    "an enum of a nested message": P3 + "message A { B.E e = 1; message B { enum E { Z = 0; } } }",
    "options with braces": P2 + "message A { optional int32 a = 1 [deprecated = true, json_name = 'x']; }",
    "an empty statement": P3 + ";message A { ; }; enum E { Z = 0;; }",
    "octal and hexadecimal numbers": P3 + "message A { int32 a = 010; int32 b = 0x10; }",
    "a single well-known type": P3 + 'import "google/protobuf/struct.proto"; message A { google.protobuf.Struct s = 1; '
    "google.protobuf.NullValue n = 2; }",
}
INVALID = {
    "no JSON": "{", "no name": P3 + "message { }", "an open message": P3 + "message A {", "an unknown type":
    P3 + "message A { B b = 1; }", "a number twice": P3 + "message A { int32 a = 1; int32 b = 1; }",
    "a name twice": P3 + "message A { int32 a = 1; int32 a = 2; }", "number 0": P3 + "message A { int32 a = 0; }",
    "a number of Protobuf's own": P3 + "message A { int32 a = 19000; }",
    "a number too large": P3 + "message A { int32 a = 536870912; }", "no number": P3 + "message A { int32 a; }",
    "a reserved number": P3 + "message A { reserved 1 to 3; int32 a = 2; }",
    "a reserved name": P3 + 'message A { reserved "a"; int32 a = 2; }',
    "required in proto3": P3 + "message A { required int32 a = 1; }",
    "a default in proto3": P3 + "message A { int32 a = 1 [default = 1]; }",
    "no label in proto2": P2 + "message A { int32 a = 1; }",
    "an enum that does not begin with 0": P3 + "enum E { A = 1; }", "an empty enum": P3 + "enum E { }",
    "values that share a number": P3 + "enum E { A = 0; B = 0; }", "an empty oneof": P3 + "message A { oneof x { } }",
    "a repeated field in a oneof": P3 + "message A { oneof x { repeated int32 a = 1; } }",
    "a map of maps": P3 + "message A { map<int32, map<int32, int32>> a = 1; }",
    "keys that are floats": P3 + "message A { map<float, int32> a = 1; }",
    "a repeated map": P3 + "message A { repeated map<int32, int32> a = 1; }",
    "an unknown syntax": 'syntax = "proto4";', "a missing import": P3 + 'import "nowhere.proto";',
    "an unknown statement": P3 + "massage A { }", "a range the wrong way": P3 + "message A { reserved 5 to 3; }",
    "an extension's number": P2 + "message A { extensions 5 to 9; optional int32 a = 6; }",
    "a method without a message": P3 + "service S { rpc A (int32) returns (int32); }",
    "a message twice": P3 + "message A {} message A {}",
}


@pytest.mark.parametrize("text", [PROTO3, PROTO2, *VALID.values()], ids=["proto3", "proto2", *VALID])
def test_what_the_compiler_takes_is_read_and_written_so_that_it_reads_the_same(text: str) -> None:
    assert compiled(text, {"other/types.proto": OTHER}) is not None
    read = parse_protobuf(text, REFERENCES)
    for written in (read.canonical(), read.normalized()):
        again = parse_protobuf(written, REFERENCES)
        assert compiled(written, {"other/types.proto": OTHER}) is not None
        assert again.normalized() == read.normalized()
    assert parse_protobuf(read.canonical(), REFERENCES).descriptor() == read.descriptor()


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID)
def test_what_the_compiler_refuses_is_refused(text: str) -> None:
    assert compiled(text) is None
    with pytest.raises(InvalidSchemaError):
        parse_protobuf(text)


@pytest.mark.parametrize("text", [
    P3 + "message A { " * 10_000, P3 + "message A { " * 10_000 + "}" * 10_000,
    P3 + "message A { option (a) = " + "{" * 50_000,
    P3 + "/*" * 100_000, P3 + '"' * 100_001, P3 + "message A { int32 a = " + "9" * 10_000 + "; }", "A" * 100_000,
    P3 + "message A { A" + ".A" * 50_000 + " a = 1; }", "x" * 10_000_001,
])
def test_hostile_text_is_refused_in_a_moment(text: str) -> None:
    with pytest.raises(InvalidSchemaError):
        parse_protobuf(text)


def test_a_reason_names_the_line() -> None:
    with pytest.raises(InvalidSchemaError, match="line 3: ';' is not the name of a field"):
        parse_protobuf(P3 + "\nmessage A {\n int32; }")


def test_the_canonical_text_has_no_comments_and_one_layout() -> None:
    text = P3 + '/* c */ package p; message A{repeated int32 a=1[packed=false];oneof o{string s=2;}}// end'
    assert parse_protobuf(text).canonical() == """syntax = "proto3";
package p;

message A {
  repeated int32 a = 1 [packed = false];
  oneof o {
    string s = 2;
  }
}
"""


def test_the_normalised_text_does_not_depend_on_the_order_of_declarations() -> None:
    java, go = 'option java_package = "x";', 'option go_package = "y";'
    first = f"{P3} package p; {java} {go} message A {{ p.B b = 2; int32 a = 1; }} message B {{}}"
    second = f"{P3} package p; {go} {java} message A {{ int32 a = 1; B b = 2; }} message B {{}}"
    assert parse_protobuf(first).canonical() != parse_protobuf(second).canonical()
    assert parse_protobuf(first).normalized() == parse_protobuf(second).normalized()


def test_messages_keep_their_positions_among_entries_of_maps() -> None:
    text = P3 + "message A { map<int32, B> b = 9; message B {} map<int32, C> c = 2; message C {} map<int32, C> d = 1; }"
    names = ["BEntry", "B", "CEntry", "C", "DEntry"]
    for each in (text, parse_protobuf(text).canonical(), parse_protobuf(text).normalized()):
        made = compiled(each)
        assert made is not None
        assert [one.name for one in made.message_type[0].nested_type] == names
