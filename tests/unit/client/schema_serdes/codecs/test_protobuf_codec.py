"""Protobuf's descriptors."""

import base64
import sys

import pytest

from headrace.client.schema_serdes.codecs.protobuf_codec import (
    file_text,
    is_builtin,
    message_class,
    message_indexes,
    message_name,
)
from headrace.errors import DependencyError, SerializationError
from tests.support.protobuf_samples import compiled


def types():
    user = compiled()["user"]
    return [(user.User, [0]), (user.Other, [1]), (user.User.Inner, [0, 0]), (user.User.Inner.Innermost, [0, 0, 0]),
            (user.Other.Inner, [1, 0])]


def test_where_a_type_is_in_its_file_and_which_type_is_there() -> None:
    text = file_text(compiled()["user"].DESCRIPTOR)
    for kind, indexes in types():
        assert message_indexes(kind.DESCRIPTOR) == indexes
        assert message_name(text, indexes) == kind.DESCRIPTOR.full_name


def test_a_file_without_a_package() -> None:
    assert message_name(file_text(compiled()["plain"].DESCRIPTOR), [0]) == "Plain"


@pytest.mark.parametrize("indexes", [[2], [-1], [0, 1], [0, 0, 0, 0]])
def test_a_place_where_no_type_is_is_an_error(indexes) -> None:
    with pytest.raises(SerializationError, match="out of range"):
        message_name(file_text(compiled()["user"].DESCRIPTOR), indexes)


@pytest.mark.parametrize("text", ["!", base64.b64encode(b"\xff" * 9).decode(), 'syntax = "proto3";', "ü"])
def test_what_is_no_file_is_an_error(text) -> None:
    with pytest.raises(SerializationError, match="Protobuf schema"):
        message_name(text, [0])


def test_the_class_of_messages() -> None:
    plain = compiled()["plain"].Plain
    assert message_class(plain) is plain


def test_files_that_come_with_protobuf() -> None:
    assert is_builtin("google/protobuf/timestamp.proto")
    assert is_builtin("confluent/meta.proto")
    assert not is_builtin("org/google/protobuf/a.proto")


def test_without_protobuf_the_error_says_what_to_install(monkeypatch) -> None:
    kind = compiled()["plain"].Plain
    monkeypatch.setitem(sys.modules, "google.protobuf.message_factory", None)
    with pytest.raises(DependencyError, match=r"pip install headrace\[protobuf\]"):
        message_class(kind)
