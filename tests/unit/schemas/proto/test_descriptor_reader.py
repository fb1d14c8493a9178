"""Descriptors to files. `test_descriptors` compares them with those of Protobuf's own compiler."""

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headrace.schemas.parsed import InvalidSchemaError
from headrace.schemas.proto.descriptor_reader import read_descriptor


def test_a_file_has_what_its_descriptor_says() -> None:
    given = FileDescriptorProto(name="f", package="p", dependency=["x", "y"], public_dependency=[1], syntax="proto3")
    message = given.message_type.add(name="M")
    message.field.add(name="a", number=1, type="TYPE_INT32", label="LABEL_REPEATED")
    message.field.add(name="b", number=2, type="TYPE_MESSAGE", type_name=".p.M", label="LABEL_OPTIONAL")
    given.enum_type.add(name="E").value.add(name="Z", number=-1)
    file = read_descriptor(given.SerializeToString(), {})
    assert (file.syntax, file.package, file.imports) == ("proto3", "p", [("", "x"), ("public", "y")])
    assert [(each.name, each.number, each.label, each.type) for each in file.messages[0].fields] == [
        ("a", 1, "repeated", "int32"), ("b", 2, "", "M")]
    assert [(each.name, each.number) for each in file.enums[0].values] == [("Z", -1)]


def test_a_file_of_an_edition_says_which() -> None:
    assert read_descriptor(FileDescriptorProto(syntax="editions", edition="EDITION_2023").SerializeToString(), {}
                           ).syntax == "2023"


@pytest.mark.parametrize("data", [b"\x0b", b"\x22\x01\x0b", b"\x22\x05\x0a", b"\x12\x01\xff"])
def test_bytes_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidSchemaError):
        read_descriptor(data, {})
