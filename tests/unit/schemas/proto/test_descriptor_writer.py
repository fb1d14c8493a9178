"""Files to descriptors. `test_descriptors` compares them with those of Protobuf's own compiler."""

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headrace.schemas.proto.descriptor_reader import read_descriptor
from headrace.schemas.proto.descriptor_writer import write_descriptor
from headrace.schemas.proto.proto_nodes import ProtoNames
from headrace.schemas.proto.proto_parser import parse_proto
from headrace.schemas.proto.proto_text import proto_text
from tests.unit.schemas.proto.samples import OTHER, PROTO3


def names_of(text: str) -> ProtoNames:
    return ProtoNames(parse_proto(text), {"other/types.proto": parse_proto(OTHER)})


def test_protobuf_reads_what_is_written() -> None:
    found = FileDescriptorProto.FromString(write_descriptor(names_of(PROTO3), "a/file.proto"))
    assert (found.name, found.package, found.syntax) == ("a/file.proto", "a.b", "proto3")
    assert list(found.dependency) == ["other/types.proto", "google/protobuf/timestamp.proto"]
    assert list(found.public_dependency) == [0]
    assert found.message_type[0].name == "Order"
    assert found.options.java_package == 'org."x"'


def test_an_edition_is_written_as_one() -> None:
    found = FileDescriptorProto.FromString(write_descriptor(names_of('edition = "2024"; message M { int32 a = 1; }')))
    assert (found.name, found.syntax, found.edition) == ("default", "editions", 1001)


def test_what_is_written_reads_as_the_same_file() -> None:
    names = names_of(PROTO3)
    again = ProtoNames(read_descriptor(write_descriptor(names), names.others), names.others)
    assert proto_text(again, normalize=True) == proto_text(names, normalize=True)
