"""Protobuf's descriptors: where a message's type is in its file, and files as the registry has them.

It must not know registries. Read next: `client.schema_serdes.protobuf_serdes`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headrace.errors import DependencyError, SerializationError

__all__ = ["class_of", "file_text", "is_builtin", "message_class", "message_indexes", "message_name",
           "protobuf_needed"]

_BUILTIN = ("confluent/", "google/protobuf/", "google/type/")


def is_builtin(name: str) -> bool:
    """Whether a file comes with Protobuf, or with the registry, so that nobody need register it."""
    return name.startswith(_BUILTIN)


def message_indexes(descriptor: Any) -> list[int]:
    """Where a message's type is in its file: the place of the outermost type, and then of each one within.

    Args:
        descriptor: of the type.
    """
    indexes: list[int] = []
    while descriptor.containing_type is not None:
        within = descriptor.containing_type
        indexes.append([each.full_name for each in within.nested_types].index(descriptor.full_name))
        descriptor = within
    indexes.append(list(descriptor.file.message_types_by_name).index(descriptor.name))
    return indexes[::-1]


def file_text(file: Any) -> str:
    """A file as the registry takes it: base64 of its serialized descriptor."""
    return base64.b64encode(file.serialized_pb).decode("ascii")


def message_class(message_type: Any) -> Any:
    """The class of messages of a type, which may be given as that class.

    Raises:
        DependencyError: protobuf is not installed.
    """
    return class_of(message_type.DESCRIPTOR)


def class_of(descriptor: Any) -> Any:
    """The class of messages of a type that has this descriptor.

    Raises:
        DependencyError: protobuf is not installed.
    """
    with protobuf_needed():
        from google.protobuf.message_factory import GetMessageClass
    return GetMessageClass(descriptor)


@contextmanager
def protobuf_needed() -> Iterator[None]:
    """Around imports of protobuf: says what to install where it is not there.

    Raises:
        DependencyError: protobuf is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise DependencyError("Protobuf needs protobuf: pip install headrace[protobuf]") from error


def message_name(text: str, indexes: Sequence[int]) -> str:
    """The full name of a message's type.

    Args:
        text: of the file, as `file_text` makes it.
        indexes: as `message_indexes` makes them.

    Raises:
        SerializationError: the file cannot be read, or has no such type.
    """
    file = _file(text)
    names = [file.package] if file.package else []
    types = file.message_type
    for index in indexes:
        if not 0 <= index < len(types):
            where = f"{'.'.join(names)} has" if names else "the schema has"
            raise SerializationError(f"message index {index} is out of range: {where} {len(types)} message types")
        names.append(types[index].name)
        types = types[index].nested_type
    return ".".join(names)


def _file(text: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError) as error:
        raise SerializationError(f"the Protobuf schema is no base64 of a file's descriptor: {error}") from error
