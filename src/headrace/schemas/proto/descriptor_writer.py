"""The parts of a .proto file to a `FileDescriptorProto`, as clients ask for it with `format=serialized`.

Read next: `schemas.proto.descriptor_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.schemas.parsed import InvalidSchemaError
from headrace.schemas.proto.descriptor_rows import (
    ENUM_TYPE,
    FEATURES,
    FEATURES_AT,
    LABELS,
    MESSAGE_TYPE,
    OPTIONS,
    OptionRows,
    bytes_field,
    number_field,
)
from headrace.schemas.proto.proto_literals import escaped, shown_number, unquoted
from headrace.schemas.proto.proto_nodes import (
    SCALARS,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    ProtoNames,
    ProtoOption,
    ProtoService,
)

__all__ = ["write_descriptor"]

_EDITIONS = {"2023": 1000, "2024": 1001}


def write_descriptor(names: ProtoNames, path: str = "default") -> bytes:
    """The descriptor of a file.

    Args:
        names: the file, and the types that it knows.
        path: its name in the descriptor.
    """
    own = names.own
    writer = _Writer(names)
    out = bytes_field(1, path) + (bytes_field(2, own.package) if own.package else b"")
    out += b"".join(bytes_field(3, target) for _, target in own.imports)
    out += b"".join(bytes_field(4, writer.message(each, own.package)) for each in own.messages)
    out += b"".join(bytes_field(5, _enum(each)) for each in own.enums)
    out += b"".join(bytes_field(6, writer.service(each)) for each in own.services)
    out += b"".join(bytes_field(7, writer.field(each, own.package, {})) for each in own.extends)
    out += _options(8, own.options, "file")
    for index, (kind, _) in enumerate(own.imports):
        out += number_field(10 if kind == "public" else 11, index) if kind else b""
    if own.syntax in ("proto2", "proto3"):
        return out + (bytes_field(12, own.syntax) if own.syntax == "proto3" else b"")
    return out + bytes_field(12, "editions") + number_field(14, _EDITIONS.get(own.syntax, 1000))


class _Writer:
    def __init__(self, names: ProtoNames) -> None:
        self._names = names

    def message(self, message: ProtoMessage, scope: str) -> bytes:
        """A message and all within."""
        own = f"{scope}.{message.name}" if scope else message.name
        is_proto3 = self._names.own.syntax == "proto3"
        synthetic = [f"_{each.name}" for each in message.fields if is_proto3 and each.label == "optional"]
        oneofs = {name: index for index, name in enumerate((*message.oneofs, *synthetic))}
        entries: dict[int, list[ProtoField]] = {}
        for each in message.fields:
            if each.key_type:
                entries.setdefault(each.entry_at, []).append(each)
        out = bytes_field(1, message.name)
        out += b"".join(bytes_field(2, self.field(each, own, oneofs)) for each in message.fields)
        for index in range(len(message.messages) + 1):
            out += b"".join(bytes_field(3, self._entry(each, own)) for each in entries.get(index, ()))
            out += b"".join(bytes_field(3, self.message(each, own)) for each in message.messages[index : index + 1])
        out += b"".join(bytes_field(4, _enum(each)) for each in message.enums)
        out += b"".join(bytes_field(5, _range(first, last + 1)) for first, last in message.extensions)
        out += b"".join(bytes_field(6, self.field(each, own, {})) for each in message.extends)
        out += _options(7, message.options, "message")
        out += b"".join(bytes_field(8, bytes_field(1, each) + _options(2, message.oneofs.get(each, ()), "oneof"))
                        for each in oneofs)
        return out + _reserved(message.reserved, 9, 10, 1)

    def field(self, each: ProtoField, scope: str, oneofs: Mapping[str, int]) -> bytes:
        """A field of a message, or of one that is extended."""
        label = "repeated" if each.key_type else each.label or "optional"
        out = bytes_field(1, each.name) + number_field(3, each.number) + number_field(4, LABELS.index(label))
        out += bytes_field(2, self._full(each.extendee, scope)) if each.extendee else b""
        if each.key_type:
            out += number_field(5, MESSAGE_TYPE) + bytes_field(6, f".{scope}.{_entry_name(each.name)}")
        else:
            out += self._type(each.type, scope)
        out += self._default(each)
        is_synthetic = f"_{each.name}" in oneofs and each.label == "optional"
        if each.oneof or is_synthetic:
            out += number_field(9, oneofs[each.oneof or f"_{each.name}"])
        out += b"".join(bytes_field(10, _text(option.value)) for option in each.options
                        if option.name == "json_name")
        out += _options(8, each.options, "field")
        return out + (number_field(17, 1) if is_synthetic else b"")

    def service(self, service: ProtoService) -> bytes:
        """A service and its methods."""
        out, scope = bytes_field(1, service.name), self._names.own.package
        for each in service.methods:
            method = bytes_field(1, each.name) + bytes_field(2, self._full(each.input, scope))
            method += bytes_field(3, self._full(each.output, scope)) + _options(4, each.options, "method")
            method += (number_field(5, 1) if each.streams_in else b"") + (
                number_field(6, 1) if each.streams_out else b"")
            out += bytes_field(2, method)
        return out + _options(3, service.options, "service")

    def _default(self, each: ProtoField) -> bytes:
        for option in each.options:
            if option.name == "default":
                if each.type == "bytes":
                    return bytes_field(7, escaped(unquoted(option.value)))
                if each.type == "string":
                    return bytes_field(7, _text(option.value))
                return bytes_field(7, shown_number("".join(option.value), each.type))
        return b""

    def _entry(self, each: ProtoField, scope: str) -> bytes:
        key, value = ProtoField("key", 1, each.key_type), ProtoField("value", 2, each.type)
        out = bytes_field(1, _entry_name(each.name))
        out += b"".join(bytes_field(2, self.field(one, scope, {})) for one in (key, value))
        return out + bytes_field(7, number_field(7, 1))

    def _type(self, name: str, scope: str) -> bytes:
        if name in SCALARS:
            return number_field(5, SCALARS.index(name) + 1)
        full = self._names.resolve(name, scope)
        kind = ENUM_TYPE if self._names.kind(full) == "enum" else MESSAGE_TYPE
        return number_field(5, kind) + bytes_field(6, f".{full}")

    def _full(self, name: str, scope: str) -> str:
        return f".{self._names.resolve(name, scope) or name.removeprefix('.')}"


def _enum(enum: ProtoEnum) -> bytes:
    out = bytes_field(1, enum.name)
    for each in enum.values:
        value = bytes_field(1, each.name) + number_field(2, each.number) + _options(3, each.options, "value")
        out += bytes_field(2, value)
    return out + _options(3, enum.options, "enum") + _reserved(enum.reserved, 4, 5, 0)


def _reserved(reserved: Iterable[tuple[int, int] | str], numbers: int, names: int, beyond: int) -> bytes:
    out = b""
    for each in reserved:
        out += bytes_field(names, each) if isinstance(each, str) else bytes_field(
            numbers, _range(each[0], each[1] + beyond))
    return out


def _range(first: int, end: int) -> bytes:
    return number_field(1, first) + number_field(2, end)


def _options(number: int, options: Sequence[ProtoOption], kind: str) -> bytes:
    features = _rows(options, FEATURES)
    out = _rows(options, OPTIONS[kind]) + (bytes_field(FEATURES_AT[kind], features) if features else b"")
    return bytes_field(number, out) if out else b""


def _rows(options: Sequence[ProtoOption], rows: OptionRows) -> bytes:
    out = b""
    for each in options:
        row = rows.get(each.name)
        if row is None:
            continue
        field, form = row
        if form == "text":
            out += bytes_field(field, _text(each.value))
        elif form == "flag":
            out += number_field(field, each.value == ("true",))
        else:
            assert not isinstance(form, str)
            out += number_field(field, form.get(each.value[0], 0))
    return out


def _entry_name(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"


def _text(tokens: tuple[str, ...]) -> str:
    """The text that tokens in quotes stand for."""
    try:
        return unquoted(tokens).decode()
    except ValueError:
        raise InvalidSchemaError(f"{' '.join(tokens):.100} is no text") from None
