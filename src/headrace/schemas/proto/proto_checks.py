"""What must hold of a .proto file beyond its grammar: numbers and names are unique, types exist.

Read next: `schemas.proto.proto_nodes`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from headrace.schemas.parsed import InvalidSchemaError
from headrace.schemas.proto.proto_nodes import (
    SCALARS,
    ProtoEnum,
    ProtoField,
    ProtoFile,
    ProtoMessage,
    ProtoNames,
    is_builtin,
)

__all__ = ["check_file"]

_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PATH: Final = re.compile(r"[^\x00-\x1f\"\\]+")
_VALUE: Final = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|[-+.\w]+")
_OF_PROTOBUF: Final = range(19_000, 20_000)
_NOT_KEYS: Final = frozenset(("double", "float", "bytes", ""))


def check_file(names: ProtoNames) -> None:
    """Check a file.

    Raises:
        InvalidSchemaError: a rule is broken.
    """
    own = names.own
    for _, path in own.imports:
        if path not in names.others and not is_builtin(path):
            raise InvalidSchemaError(f"the import {path!r:.200} is not among the references")
    _check_words(own)
    declared = (own.messages, own.enums, own.services)
    _check_unique(own.package or "the file", [each.name for kind in declared for each in _named(kind)])
    for enum in own.enums:
        _check_enum(enum, own.syntax, own.package)
    waiting = [(own.package, message) for message in own.messages]
    while waiting:
        outer, message = waiting.pop()
        full = f"{outer}.{message.name}" if outer else message.name
        _check_message(names, message, full)
        waiting += [(full, inner) for inner in message.messages]
    for service in own.services:
        for method in service.methods:
            _check_word(method.name, service.name)
            for kind in (method.input, method.output):
                if names.kind(names.resolve(kind, own.package)) != "message":
                    raise InvalidSchemaError(f"{service.name}.{method.name}: {kind!r:.100} is no message")


def _check_message(names: ProtoNames, message: ProtoMessage, full: str) -> None:
    declared = (message.fields, message.messages, message.enums)
    _check_unique(full, [each.name for kind in declared for each in _named(kind)])
    for name in message.oneofs:
        _check_word(name, full)
    _check_unique(full, [each.number for each in message.fields])
    reserved, extensions = _Reserved(message.reserved, full), _Reserved(message.extensions, full)
    for each in message.fields:
        _check_field(names, each, full)
        reserved.check(each.name, each.number, "reserved")
        extensions.check(each.name, each.number, "for extensions")
    for name in message.oneofs.keys() - {each.oneof for each in message.fields}:
        raise InvalidSchemaError(f"{full}: the oneof {name!r} has no field")
    for enum in message.enums:
        _check_enum(enum, names.own.syntax, full)


def _check_field(names: ProtoNames, each: ProtoField, full: str) -> None:
    place = f"{full}.{each.name}"
    if each.number < 1 or each.number in _OF_PROTOBUF:
        raise InvalidSchemaError(f"{place}: a field cannot have the number {each.number}")
    if not each.type:
        raise InvalidSchemaError(f"{place}: groups are not supported")
    if any(option.name == "default" and not all(map(_VALUE.fullmatch, option.value)) for option in each.options):
        raise InvalidSchemaError(f"{place}: the default is no value")
    if each.type not in SCALARS and not names.resolve(each.type, full):
        raise InvalidSchemaError(f"{place}: {each.type!r:.100} is not a type")
    if each.key_type and (each.key_type not in SCALARS or each.key_type in _NOT_KEYS):
        raise InvalidSchemaError(f"{place}: a map cannot have keys of the type {each.key_type!r:.60}")
    syntax = names.own.syntax
    if syntax == "proto3" and each.label == "required":
        raise InvalidSchemaError(f"{place}: proto3 has no required fields")
    if syntax == "proto3" and any(option.name == "default" for option in each.options):
        raise InvalidSchemaError(f"{place}: proto3 has no defaults")
    if syntax == "proto2" and not each.label and not each.oneof and not each.key_type:
        raise InvalidSchemaError(f"{place}: proto2 needs optional, required or repeated")


def _check_enum(enum: ProtoEnum, syntax: str, scope: str) -> None:
    place = f"{scope}.{enum.name}" if scope else enum.name
    if not enum.values:
        raise InvalidSchemaError(f"{place}: the enum has no values")
    if syntax == "proto3" and enum.values[0].number != 0:
        raise InvalidSchemaError(f"{place}: the first value of an enum of proto3 is 0")
    _check_unique(place, [each.name for each in enum.values])
    if not any(option.name == "allow_alias" and option.value == ("true",) for option in enum.options):
        _check_unique(place, [each.number for each in enum.values])
    reserved = _Reserved(enum.reserved, place)
    for each in enum.values:
        _check_word(each.name, place)
        reserved.check(each.name, each.number, "reserved")


class _Reserved:
    """Names and ranges of numbers that a declaration keeps free, found by bisection."""

    def __init__(self, kept: Sequence[tuple[int, int] | str], place: str) -> None:
        self._place = place
        self._names = {each for each in kept if isinstance(each, str)}
        for word in self._names:
            _check_word(word, place)
        self._starts: list[int] = []
        self._ends: list[int] = []
        for first, last in sorted(each for each in kept if not isinstance(each, str)):
            self._starts.append(first)
            self._ends.append(max(last, self._ends[-1]) if self._ends else last)

    def check(self, name: str, number: int, what: str) -> None:
        """Refuse a name or a number that is kept free."""
        at = bisect_right(self._starts, number) - 1
        if name in self._names or (at >= 0 and number <= self._ends[at]):
            raise InvalidSchemaError(f"{self._place}.{name}: the name or the number {number} is {what}")


class _Named(Protocol):
    name: str


def _named(declared: Sequence[_Named]) -> Sequence[_Named]:
    """Declarations, once their names are known to be names: a descriptor may have anything in their place."""
    for each in declared:
        _check_word(each.name, "the file")
    return declared


def _check_words(own: ProtoFile) -> None:
    for word in own.package.split(".") if own.package else ():
        _check_word(word, "the package")
    for _, path in own.imports:
        if not _PATH.fullmatch(path):
            raise InvalidSchemaError(f"{path!r:.100} is not the path of an import")


def _check_word(word: str, place: str) -> None:
    if not _WORD.fullmatch(word):
        raise InvalidSchemaError(f"{place}: {word!r:.100} is not a name")


def _check_unique(place: str, values: Iterable[object]) -> None:
    known = set()
    for each in values:
        if each in known:
            raise InvalidSchemaError(f"{place}: {each!r:.100} is there twice")
        known.add(each)
