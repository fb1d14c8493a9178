"""What must hold of a file beyond its grammar."""

import pytest

from headrace.schemas.parsed import InvalidSchemaError
from headrace.schemas.proto.proto_checks import check_file
from headrace.schemas.proto.proto_nodes import ProtoNames
from headrace.schemas.proto.proto_parser import parse_proto

P3, P2 = 'syntax = "proto3"; ', 'syntax = "proto2"; '


def check(text: str) -> None:
    check_file(ProtoNames(parse_proto(text), {}))


@pytest.mark.parametrize("text", [
    P3 + "message M { int32 a = 1; M b = 2; map<string, M> c = 3; reserved 5 to max; }",
    P2 + "message M { optional int32 a = 1 [default = 3]; required M b = 2; extensions 100 to 200; }",
    P3 + "enum E { option allow_alias = true; A = 0; B = 0; }",
    P3 + 'import "google/protobuf/any.proto"; message M { }'])
def test_what_keeps_the_rules_passes(text: str) -> None:
    check(text)


@pytest.mark.parametrize(("text", "reason"), [
    (P3 + 'import "x.proto";', "'x.proto' is not among the references"),
    (P3 + "message M { } message M { }", "M"), (P3 + "message M { int32 a = 1; int32 a = 2; }", "a"),
    (P3 + "message M { int32 a = 1; int32 b = 1; }", "1"), (P3 + "message M { int32 a = 0; }", "the number 0"),
    (P3 + "message M { int32 a = 19500; }", "the number 19500"), (P3 + "message M { X a = 1; }", "'X' is not a type"),
    (P3 + "message M { reserved 1; int32 a = 1; }", "reserved"), (P3 + "message M { oneof o { } }", "has no field"),
    (P3 + "message M { map<double, int32> a = 1; }", "keys of the type 'double'"),
    (P3 + "message M { required int32 a = 1; }", "no required fields"),
    (P3 + "message M { int32 a = 1 [default = 3]; }", "no defaults"),
    (P2 + "message M { int32 a = 1; }", "needs optional, required or repeated"),
    (P3 + "service S { rpc R (X) returns (X); }", "'X' is no message"), (P3 + "enum E { A = 1; }", "E"),
    (P3 + "enum E { A = 0; B = 0; }", "E")])
def test_what_breaks_a_rule_is_refused_by_its_name(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchemaError, match=reason):
        check(text)
