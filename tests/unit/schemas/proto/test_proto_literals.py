"""Texts between quotes: what escapes stand for, as protoc has it."""

import math

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.proto.proto_literals import escaped, real, shown_number, unquoted, whole
from headrace.schemas.protobuf import parse_protobuf

TEXT = r'''
syntax = "proto2"; package p;
message A {
  optional string text = 1 [default = "a\n\303\244\x41\u00e4\U0001F600\t\"\'" '\\end'];
  optional bytes data = 2 [default = "\001\xff\000\"\\\n"];
}
'''


def test_escapes_stand_for_bytes() -> None:
    assert unquoted([r'"a\n\101\x41\u00e4\"\q"', "'b'"]) == 'aA'.replace("A", "\nAA").encode() + "ä\"q".encode() + b"b"


@given(data=st.binary())
def test_bytes_come_back_from_what_descriptors_write(data: bytes) -> None:
    assert unquoted([f'"{escaped(data)}"']) == data


def test_numbers_may_be_hexadecimal_or_octal() -> None:
    assert [whole(text) for text in ("0x1F", "-010", "0", "12")] == [31, -8, 0, 12]
    assert [real(text) for text in ("0x1F", "-010", "0", "0.5", "1e3", "-inf")] == [31, -8, 0, 0.5, 1000, -math.inf]
    assert math.copysign(1, real("-0")) == -1
    assert shown_number("GREEN", "Color") == "GREEN"


def test_the_protobuf_package_reads_the_defaults_of_a_descriptor() -> None:
    for text in (TEXT, parse_protobuf(TEXT).formatted("serialized")):
        pool = descriptor_pool.DescriptorPool()
        pool.Add(descriptor_pb2.FileDescriptorProto.FromString(parse_protobuf(text).descriptor("p.proto")))
        message = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.A"))()
        assert (message.text, message.data) == ("a\näAä\U0001F600\t\"'\\end", b"\x01\xff\0\"\\\n")
