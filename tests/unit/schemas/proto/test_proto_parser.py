"""Text of .proto files to their parts."""

import pytest

from headrace.schemas.parsed import InvalidSchemaError
from headrace.schemas.proto.proto_parser import parse_proto


def test_a_file_has_its_syntax_package_imports_and_declarations() -> None:
    file = parse_proto("""
        syntax = "proto3"; package a.b; import public "x.proto"; import "y.proto"; option java_package = "p";
        message M { } enum E { ZERO = 0; } service S { rpc R (stream M) returns (M); } ;
    """)
    assert (file.syntax, file.package, file.imports) == ("proto3", "a.b", [("public", "x.proto"), ("", "y.proto")])
    assert ([each.name for each in file.messages], [each.name for each in file.enums]) == (["M"], ["E"])
    (method,) = file.services[0].methods
    assert (method.name, method.input, method.streams_in, method.output, method.streams_out) == (
        "R", "M", True, "M", False)


def test_a_message_has_fields_of_all_kinds() -> None:
    (message,) = parse_proto("""syntax = "proto3"; message M {
        int32 a = 1; optional string b = 2; repeated N c = 3; map<string, .p.N> d = 4;
        oneof e { bool f = 5; bytes g = 0x6; } reserved 7, 9 to 11; reserved "h"; message N { } enum E { Z = 0; } }
    """).messages
    assert [(each.name, each.label, each.type, each.key_type, each.number, each.oneof) for each in message.fields] == [
        ("a", "", "int32", "", 1, ""), ("b", "optional", "string", "", 2, ""), ("c", "repeated", "N", "", 3, ""),
        ("d", "", ".p.N", "string", 4, ""), ("f", "", "bool", "", 5, "e"), ("g", "", "bytes", "", 6, "e")]
    assert message.reserved == [(7, 7), (9, 11), "h"]
    assert ([each.name for each in message.messages], [each.name for each in message.enums]) == (["N"], ["E"])


def test_without_a_syntax_it_is_proto2() -> None:
    assert parse_proto("message M { required int32 a = 1 [default = -1]; }").syntax == "proto2"
    assert parse_proto('edition = "2023"; message M { int32 a = 1; }').syntax == "2023"


@pytest.mark.parametrize(("text", "reason"), [
    ("message", "line 1"), ("\n\nmessage M {", "line 3"), ("message M { int32 a = 1 }", "';' is expected"),
    ('syntax = "proto4";', "it can be proto2 or proto3"), ("nonsense M {}", "begins no statement"),
    ("message M { int32 a = 99999999999; }", "line 1"), ("message M { map<string> a = 1; }", "',' is expected"),
    ("message M { reserved 1 }", "';' is expected"),
    ("message 1 { }", "the name of a message"), ("message M { } $", "is not understood"),
    ('import "x', "is not understood")])
def test_what_breaks_the_grammar_is_refused_with_the_line(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=reason):
        parse_proto(text)
