"""The types of files by name."""

import pytest

from headrace.schemas.proto.proto_nodes import ProtoField, ProtoNames, by_oneof, is_builtin
from headrace.schemas.proto.proto_parser import parse_proto


@pytest.fixture
def names() -> ProtoNames:
    own = parse_proto("""syntax = "proto3"; package a.b; import "o.proto"; import "google/protobuf/timestamp.proto";
                         message M { message N { } enum E { Z = 0; } } message N { }""")
    return ProtoNames(own, {"o.proto": parse_proto('syntax = "proto3"; package a.c; enum F { Z = 0; }')})


@pytest.mark.parametrize(("name", "scope", "full"), [
    ("N", "a.b.M", "a.b.M.N"), ("N", "a.b", "a.b.N"), ("M.N", "a.b.N", "a.b.M.N"), ("c.F", "a.b.M", "a.c.F"),
    (".a.c.F", "a.b", "a.c.F"), ("F", "a.b", ""), (".N", "a.b", ""), ("b.M.E", "", ""),
    ("google.protobuf.Timestamp", "a.b.M", "google.protobuf.Timestamp"), ("google.protobuf.no", "a.b", "")])
def test_a_name_is_looked_for_from_its_scope_outwards(names: ProtoNames, name: str, scope: str, full: str) -> None:
    assert names.resolve(name, scope) == full


def test_a_type_is_a_message_or_an_enum(names: ProtoNames) -> None:
    assert [names.kind(each) for each in ("a.b.M", "a.b.M.E", "a.c.F", "a.b.X")] == ["message", "enum", "enum", ""]
    assert names.kind("google.protobuf.NullValue") == "enum"
    assert (names.packages["a.b.M.N"], names.packages["a.c.F"]) == ("a.b", "a.c")


def test_fields_are_found_by_their_oneof() -> None:
    fields = [ProtoField(name=name, type="int32", number=number, oneof=oneof)
              for number, (name, oneof) in enumerate((("a", ""), ("b", "x"), ("c", ""), ("d", "x")), 1)]
    assert {oneof: [each.name for each in some] for oneof, some in by_oneof(fields).items()} == {
        "": ["a", "c"], "x": ["b", "d"]}


def test_files_of_protobuf_itself_need_no_reference() -> None:
    assert is_builtin("google/protobuf/any.proto")
    assert not is_builtin("google/other.proto")
