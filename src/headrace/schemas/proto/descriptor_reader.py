"""A `FileDescriptorProto`, as clients send it instead of text, to the parts of a .proto file.

Names of types, which descriptors have in full, are written as short as they mean the same. Read next:
`schemas.proto.descriptor_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headrace.schemas.parsed import MAX_DEPTH, InvalidSchemaError
from headrace.schemas.proto.descriptor_rows import FEATURES, FEATURES_AT, LABELS, OPTIONS, OptionRows, Wire, wire_fields
from headrace.schemas.proto.proto_nodes import (
    SCALARS,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    ProtoMethod,
    ProtoNames,
    ProtoOption,
    ProtoService,
    ProtoValue,
)

__all__ = ["read_descriptor", "read_descriptor_set"]

_EDITIONS = {998: "proto2", 999: "proto3", 1000: "2023", 1001: "2024"}
_MAP_ENTRY = 7


class _Entry(NamedTuple):
    """The message of a map's entries, and how many others are before it."""

    wire: Wire
    place: int


def read_descriptor(data: bytes, others: Mapping[str, ProtoFile]) -> ProtoFile:
    """Read a descriptor.

    Args:
        data: its bytes.
        others: the files that it imports, by their paths.

    Raises:
        InvalidSchemaError: the bytes are no descriptor.
    """
    wire = Wire(data)
    made = ProtoFile(wire.text(12) or "proto2", wire.text(2))
    if made.syntax == "editions":
        made.syntax = _EDITIONS.get(wire.number(14), "2023")
    public, weak = set(wire.numbers(10)), set(wire.numbers(11))
    made.imports = [("public" if index in public else "weak" if index in weak else "", path)
                    for index, path in enumerate(wire.texts(3))]
    made.messages = [_message(part, made.syntax, 0) for part in wire.parts(4)]
    made.enums = [_enum(part) for part in wire.parts(5)]
    made.services = [_service(part) for part in wire.parts(6)]
    made.extends = [_field(part, made.syntax, {}) for part in wire.parts(7)]
    made.options = _options(wire, 8, "file")
    _shorten(ProtoNames(made, others))
    return made


def read_descriptor_set(data: bytes) -> dict[str, bytes] | None:
    """The descriptors of a `FileDescriptorSet`, by the paths of their files; None where the bytes are something else.

    A file's own descriptor has its path where a set has descriptors, and each of those begins with a path.
    """
    try:
        fields = list(wire_fields(data))
        parts = [value for number, value in fields if number == 1 and isinstance(value, bytes)]
        if not parts or len(parts) < len(fields):
            return None
        files = {Wire(part).text(1): part for part in parts}
    except InvalidSchemaError:
        return None
    return files if all(files) else None


def _message(data: bytes, syntax: str, depth: int) -> ProtoMessage:
    if depth >= MAX_DEPTH:
        raise InvalidSchemaError(f"messages are nested more than {MAX_DEPTH} deep")
    wire = Wire(data)
    nested = [(Wire(part), part) for part in wire.parts(3)]
    entries: dict[str, _Entry] = {}
    for index, (each, _) in enumerate(nested):
        if _is_entry(each):
            entries[each.text(1)] = _Entry(each, index - len(entries))
    made = ProtoMessage(wire.text(1))
    made.messages = [_message(part, syntax, depth + 1) for each, part in nested if each.text(1) not in entries]
    declared = [(Wire(part).text(1), Wire(part)) for part in wire.parts(8)]
    made.fields = [_field(part, syntax, entries, [name for name, _ in declared]) for part in wire.parts(2)]
    used = {each.oneof for each in made.fields}
    made.oneofs = {name: _options(one, 2, "oneof") for name, one in declared if name in used}
    made.enums = [_enum(part) for part in wire.parts(4)]
    made.extensions = [_range(part) for part in wire.parts(5)]
    made.extends = [_field(part, syntax, {}) for part in wire.parts(6)]
    made.options = _options(wire, 7, "message")
    made.reserved = [*(_range(part) for part in wire.parts(9)), *wire.texts(10)]
    return made


def _is_entry(wire: Wire) -> bool:
    return any(Wire(part).number(_MAP_ENTRY) for part in wire.parts(7))


def _field(data: bytes, syntax: str, entries: Mapping[str, _Entry], oneofs: list[str] | None = None) -> ProtoField:
    wire = Wire(data)
    kind, label = _type(wire), LABELS[wire.number(4) if wire.number(4) in range(4) else 0]
    is_optional = bool(wire.number(17))
    key, oneof = "", ""
    entry = entries.get(kind.rpartition(".")[2]) if label == "repeated" else None
    if entry is not None:
        parts = {Wire(part).number(3): Wire(part) for part in entry.wire.parts(2)}
        if set(parts) != {1, 2}:
            raise InvalidSchemaError("the descriptor has a map without key and value")
        key, kind, label = _type(parts[1]), _type(parts[2]), ""
    elif wire.has(9) and not is_optional:
        oneof = (oneofs or [])[wire.number(9)] if wire.number(9) in range(len(oneofs or [])) else ""
    if oneof or (label == "optional" and syntax != "proto2" and not is_optional):
        label = ""
    return ProtoField(wire.text(1), wire.number(3), kind, label, key, oneof, wire.text(2), tuple(_own_options(wire)),
                      0 if entry is None else entry.place)


def _own_options(wire: Wire) -> list[ProtoOption]:
    found = _options(wire, 8, "field")
    if wire.has(7):
        kind = "".join(SCALARS[wire.number(5) - 1 : wire.number(5)])
        default = _quoted(wire.text(7)) if kind == "string" else wire.text(7)
        found.insert(0, ProtoOption("default", (f'"{default}"' if kind == "bytes" else default,)))
    if wire.has(10) and wire.text(10) != _json_name(wire.text(1)):
        found.append(ProtoOption("json_name", (_quoted(wire.text(10)),)))
    return found


def _type(wire: Wire) -> str:
    number = wire.number(5)
    return wire.text(6) or (SCALARS[number - 1] if 0 < number <= len(SCALARS) else "")


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _range(data: bytes) -> tuple[int, int]:
    wire = Wire(data)
    return wire.number(1), wire.number(2) - 1


def _enum(data: bytes) -> ProtoEnum:
    wire = Wire(data)
    values = [Wire(part) for part in wire.parts(2)]
    made = ProtoEnum(wire.text(1), [ProtoValue(each.text(1), each.number(2), tuple(_options(each, 3, "value")))
                                    for each in values], _options(wire, 3, "enum"))
    made.reserved = [*((Wire(part).number(1), Wire(part).number(2)) for part in wire.parts(4)), *wire.texts(5)]
    return made


def _service(data: bytes) -> ProtoService:
    wire = Wire(data)
    methods = [Wire(part) for part in wire.parts(2)]
    return ProtoService(wire.text(1), [
        ProtoMethod(each.text(1), each.text(2), each.text(3), bool(each.number(5)), bool(each.number(6)),
                    tuple(_options(each, 4, "method"))) for each in methods], _options(wire, 3, "service"))


def _options(wire: Wire, number: int, kind: str) -> list[ProtoOption]:
    found: list[ProtoOption] = []
    for part in wire.parts(number):
        own = Wire(part)
        found += _rows(own, OPTIONS[kind])
        for features in own.parts(FEATURES_AT[kind]):
            found += _rows(Wire(features), FEATURES)
    return found


def _rows(own: Wire, rows: OptionRows) -> list[ProtoOption]:
    found = []
    for name, (field, form) in rows.items():
        if own.has(field):
            if form == "text":
                value = _quoted(own.text(field))
            elif form == "flag":
                value = "true" if own.number(field) else "false"
            else:
                assert not isinstance(form, str)
                value = next((word for word, each in form.items() if each == own.number(field)), "0")
            found.append(ProtoOption(name, (value,)))
    return found


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _shorten(names: ProtoNames) -> None:
    package = names.own.package
    waiting = [(package, message) for message in names.own.messages]
    scoped = [(package, each) for each in names.own.extends]
    while waiting:
        outer, message = waiting.pop()
        own = f"{outer}.{message.name}" if outer else message.name
        scoped += [(own, each) for each in (*message.fields, *message.extends)]
        waiting += [(own, inner) for inner in message.messages]
    for scope, each in scoped:
        each.type = _short(names, each.type, scope)
        each.extendee = _short(names, each.extendee, scope)
    for service in names.own.services:
        service.methods = [each._replace(input=_short(names, each.input, package),
                                         output=_short(names, each.output, package)) for each in service.methods]


def _short(names: ProtoNames, name: str, scope: str) -> str:
    """The shortest way to write a full name that means the same in a scope."""
    if not name.startswith("."):
        return name
    full = short = name.removeprefix(".")
    parts = full.split(".")
    for first in range(len(parts) - 1, -1, -1):
        short = ".".join(parts[first:])
        if names.resolve(short, scope) == full:
            return short
    return name
