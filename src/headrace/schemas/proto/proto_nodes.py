"""The parts of a .proto file, and which type a name means where it stands.

Read next: `schemas.proto.proto_parser`, which makes them of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from headrace.slotted import field, slotted

__all__ = ["MAX_FIELD", "MAX_VALUE", "SCALARS", "ProtoEnum", "ProtoField", "ProtoFile", "ProtoMessage",
           "ProtoMethod", "ProtoNames", "ProtoOption", "ProtoService", "ProtoValue", "by_oneof",
           "is_builtin"]

MAX_FIELD: Final = (1 << 29) - 1
"""Highest number of a field."""
MAX_VALUE: Final = (1 << 31) - 1
"""Highest number of a value of an enum."""
SCALARS: Final = ("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "", "",
                  "bytes", "uint32", "", "sfixed32", "sfixed64", "sint32", "sint64")
"""Names of the scalar types, in the order of their numbers in descriptors, from 1 on."""


class ProtoOption(NamedTuple):
    """An option: its name, and its value as the tokens of the text."""

    name: str
    value: tuple[str, ...]


@slotted(eq=False)
class ProtoField:
    """A field.

    Attributes:
        label: `optional`, `required`, `repeated`, or empty.
        type: as it is written; of a map that of its values.
        key_type: of a map; empty of other fields.
        oneof: the oneof that it is in, or empty.
        extendee: the message that it extends, or empty.
        entry_at: of a map, how many messages are declared before it in its message. The message of a map's entries
            stands between them, and messages are counted when they are named by their position.
    """

    name: str
    number: int
    type: str
    label: str = ""
    key_type: str = ""
    oneof: str = ""
    extendee: str = ""
    options: tuple[ProtoOption, ...] = ()
    entry_at: int = 0


class ProtoValue(NamedTuple):
    """A value of an enum."""

    name: str
    number: int
    options: tuple[ProtoOption, ...] = ()


@slotted(eq=False)
class ProtoEnum:
    """An enum; `reserved` has ranges of numbers, both ends included, and names."""

    name: str
    values: list[ProtoValue] = field(default_factory=list)
    options: list[ProtoOption] = field(default_factory=list)
    reserved: list[tuple[int, int] | str] = field(default_factory=list)


@slotted(eq=False)
class ProtoMessage:
    """A message.

    Attributes:
        oneofs: names, in order, with their options.
        reserved: ranges of numbers, both ends included, and names.
        extensions: ranges of numbers for extensions, both ends included.
        extends: fields of other messages that are declared within.
    """

    name: str
    fields: list[ProtoField] = field(default_factory=list)
    oneofs: dict[str, list[ProtoOption]] = field(default_factory=dict)
    messages: list[ProtoMessage] = field(default_factory=list)
    enums: list[ProtoEnum] = field(default_factory=list)
    options: list[ProtoOption] = field(default_factory=list)
    reserved: list[tuple[int, int] | str] = field(default_factory=list)
    extensions: list[tuple[int, int]] = field(default_factory=list)
    extends: list[ProtoField] = field(default_factory=list)


def by_oneof(fields: Iterable[ProtoField]) -> dict[str, list[ProtoField]]:
    """Fields by the oneof that they are in; those in none are under the empty name."""
    found: dict[str, list[ProtoField]] = {}
    for each in fields:
        found.setdefault(each.oneof, []).append(each)
    return found


class ProtoMethod(NamedTuple):
    """A method of a service."""

    name: str
    input: str
    output: str
    streams_in: bool
    streams_out: bool
    options: tuple[ProtoOption, ...] = ()


@slotted(eq=False)
class ProtoService:
    """A service."""

    name: str
    methods: list[ProtoMethod] = field(default_factory=list)
    options: list[ProtoOption] = field(default_factory=list)


@slotted(eq=False)
class ProtoFile:
    """A file.

    Attributes:
        syntax: `proto2`, `proto3`, or the number of an edition.
        imports: paths, with `public`, `weak` or nothing before each.
    """

    syntax: str = "proto2"
    package: str = ""
    imports: list[tuple[str, str]] = field(default_factory=list)
    messages: list[ProtoMessage] = field(default_factory=list)
    enums: list[ProtoEnum] = field(default_factory=list)
    services: list[ProtoService] = field(default_factory=list)
    extends: list[ProtoField] = field(default_factory=list)
    options: list[ProtoOption] = field(default_factory=list)


_Type = ProtoMessage | ProtoEnum
_TYPE_NAME: Final = re.compile(r"[A-Z]\w*(?:\.[A-Z]\w*)*")
_BUILTIN: Final = ("google/protobuf/", "google/type/", "google/api/", "google/rpc/", "confluent/")
_BUILTIN_ENUMS: Final = frozenset((
    "google.protobuf.NullValue", "google.protobuf.Syntax", "google.protobuf.Field.Kind",
    "google.protobuf.Field.Cardinality", "google.type.DayOfWeek", "google.type.Month", "google.type.CalendarPeriod"))


def is_builtin(path: str) -> bool:
    """Whether a file comes with every registry and compiler, and needs no reference."""
    return path.startswith(_BUILTIN)


class ProtoNames:
    """The types of a file and of those that it imports, by full name.

    Args:
        own: the file.
        others: the files that it refers to, with their paths.
    """

    def __init__(self, own: ProtoFile, others: Mapping[str, ProtoFile]) -> None:
        self.own = own
        self.others = others
        self.types: dict[str, _Type] = {}
        self.packages: dict[str, str] = {}
        self._builtin_packages = {
            path.rpartition("/")[0].replace("/", "."): None for each in (own, *others.values())
            for _, path in each.imports if is_builtin(path) and path not in others}
        for each in (*others.values(), own):
            for name, kind in _declared(each.messages, each.enums, each.package):
                self.types[name] = kind
                self.packages[name] = each.package

    def resolve(self, name: str, scope: str) -> str:
        """The full name of a type that is written in a scope; empty where there is none.

        Args:
            name: as it is written; with a dot in front it is full already.
            scope: full name of the message, or the package, that it is written in.
        """
        if name.startswith("."):
            return name[1:] if self.kind(name[1:]) != "" else ""
        while True:
            full = f"{scope}.{name}" if scope else name
            if self.kind(full):
                return full
            if not scope:
                return ""
            scope = scope.rpartition(".")[0]

    def kind(self, full: str) -> str:
        """`message` or `enum`; empty where there is no type of this name."""
        found = self.types.get(full)
        if found is not None:
            return "enum" if isinstance(found, ProtoEnum) else "message"
        if self._builtin_package(full):
            return "enum" if full in _BUILTIN_ENUMS else "message"
        return ""

    def local(self, full: str) -> str:
        """The name of a type without the package of the file that it is declared in."""
        package = self.packages.get(full) or self._builtin_package(full)
        return full.removeprefix(f"{package}.") if package else full

    def _builtin_package(self, full: str) -> str:
        """The package of a type of a file that any of these imports without a reference; empty where it is none."""
        return next((each for each in self._builtin_packages if full.startswith(f"{each}.")
                     and _TYPE_NAME.fullmatch(full, len(each) + 1)), "")


def _declared(messages: list[ProtoMessage], enums: list[ProtoEnum], scope: str) -> Iterator[tuple[str, _Type]]:
    """All types with their full names."""
    waiting: list[tuple[str, list[ProtoMessage], list[ProtoEnum]]] = [(scope, messages, enums)]
    while waiting:
        outer, inner, values = waiting.pop()
        before = f"{outer}." if outer else ""
        for each in values:
            yield before + each.name, each
        for message in inner:
            yield before + message.name, message
            waiting.append((before + message.name, message.messages, message.enums))
