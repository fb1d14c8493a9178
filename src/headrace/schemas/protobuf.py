"""Protobuf schemas: one .proto file, as text or as a descriptor in base64, and the files that it imports.

It must not know a registry. Read next: `schemas.proto.proto_parser`, `schemas.proto.proto_text`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence

from headrace.schemas.parsed import Incompatibility, InvalidSchemaError, ReferencedSchema, checked_size
from headrace.schemas.proto.descriptor_reader import read_descriptor, read_descriptor_set
from headrace.schemas.proto.descriptor_writer import write_descriptor
from headrace.schemas.proto.proto_checks import check_file
from headrace.schemas.proto.proto_nodes import ProtoFile, ProtoNames, is_builtin
from headrace.schemas.proto.proto_parser import parse_proto
from headrace.schemas.proto.proto_text import proto_text
from headrace.schemas.protobuf_compatibility import incompatible_files
from headrace.slotted import slotted

__all__ = ["ParsedProtobuf", "files_of_set", "imports_of", "parse_protobuf"]

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@slotted(frozen=True, eq=False)
class ParsedProtobuf:
    """A Protobuf schema.

    Attributes:
        names: the file, and the types that it knows.
    """

    names: ProtoNames

    @property
    def schema_type(self) -> str:
        """`PROTOBUF`."""
        return "PROTOBUF"

    def canonical(self) -> str:
        """The file written anew, in the order in which it declares things, without comments."""
        return proto_text(self.names)

    def normalized(self) -> str:
        """The file with full names of types, and with imports, options, fields and values sorted."""
        return proto_text(self.names, normalize=True)

    def formatted(self, name: str) -> str:
        """`serialized`: the file's descriptor in base64; else `canonical`."""
        return base64.b64encode(self.descriptor()).decode() if name == "serialized" else self.canonical()

    def descriptor(self, path: str = "default") -> bytes:
        """The bytes of the `FileDescriptorProto`; custom options are left out.

        Args:
            path: the file's name in it.
        """
        return write_descriptor(self.names, path)

    def can_read(self, written: ParsedProtobuf) -> list[Incompatibility]:
        """Why this schema cannot read what was written with another."""
        return incompatible_files(written.names, self.names)


def parse_protobuf(text: str, references: Sequence[ReferencedSchema] = ()) -> ParsedProtobuf:
    """Read a Protobuf schema.

    Args:
        text: a .proto file, or a `FileDescriptorProto` in base64.
        references: the files that it imports, directly or not, named as they are imported, each behind those that it
            imports itself.

    Raises:
        InvalidSchemaError: the text is no .proto file, or an import is missing.
    """
    others: dict[str, ProtoFile] = {}
    for each in references:
        others[each.name] = _file(each.text, others)
    names = ProtoNames(_file(text, others), others)
    check_file(names)
    return ParsedProtobuf(names)


def imports_of(text: str) -> list[str]:
    """The paths of the files that a file imports itself.

    Args:
        text: a .proto file, or a `FileDescriptorProto` in base64.

    Raises:
        InvalidSchemaError: the text is no .proto file.
    """
    return [path for _, path in _file(text, {}).imports]


def files_of_set(text: str, message: str = "") -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """The files of a `FileDescriptorSet` in base64, which is what `protoc --descriptor_set_out` makes.

    Args:
        text: the set.
        message: name of a message type, full or without what is before a dot. The file that declares it is the schema;
            without it, or where none does, the last file: those that a file imports are before it.

    Returns:
        The schema, and name and text of each other file; None where the text is something else.

    Raises:
        InvalidSchemaError: a file that is imported is not there.
    """
    data = _decoded(checked_size(text).strip())
    found = None if data is None else read_descriptor_set(data)
    if not found:
        return None
    files = {path: read_descriptor(each, {}) for path, each in found.items()}
    imported = {path for file in files.values() for _, path in file.imports}
    missing = sorted(path for path in imported if path not in files and not is_builtin(path))
    if missing:
        raise InvalidSchemaError(f"the descriptor set lacks {', '.join(missing)[:200]}, which its files import: make "
                                 "it by protoc --include_imports")
    texts = {path: base64.b64encode(each).decode() for path, each in found.items()}
    return texts.pop(_declaring(files, message.lstrip("."))), tuple(texts.items())


def _declaring(files: dict[str, ProtoFile], message: str) -> str:
    """The path of the file that declares a type; of the last one, where none does."""
    names = {path: ProtoNames(file, {}).types for path, file in files.items()}
    exact = [path for path, types in names.items() if message in types]
    ending = [path for path, types in names.items() if any(name.endswith(f".{message}") for name in types)]
    return (exact or ending or [*files])[-1]


def _decoded(text: str) -> bytes | None:
    """The bytes of base64; None of other texts."""
    if not _BASE64.fullmatch(text):
        return None
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise InvalidSchemaError("the text is neither a .proto file nor base64") from None


def _file(text: str, others: dict[str, ProtoFile]) -> ProtoFile:
    data = _decoded(checked_size(text).strip())
    return parse_proto(text) if data is None else read_descriptor(data, others)
