"""Generates the source of a decoder: one flat function for one version of one message. All bounds checks are here.

Positions only grow. Fixed-size runs go through `unpack_from`, single bytes through indexing: both raise by themselves
at the end of the data. Slices do not, so every length is compared with the end first; a count of elements is compared
with the bytes that are left, so that a mutated count can not fill the memory. `wire.codec` turns every exception into
a `ProtocolError`.

Read next: `wire.codec`, which compiles and keeps these functions.
"""

from __future__ import annotations

from struct import Struct as Packer
from struct import calcsize, unpack_from
from typing import Any

from headrace.errors import ProtocolError
from headrace.wire.layout import FIXED, Column, Type, columns, default_source, is_flexible, min_size
from headrace.wire.primitives import read_uuid, read_uvarint

__all__ = ["decoder_source"]


class _Source:
    """Lines of a function under construction, the names that they use, and fresh variable names."""

    def __init__(self, message: type[Any], version: int) -> None:
        self.version = version
        self.flexible = is_flexible(message, version)
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"uvarint": read_uvarint, "read_uuid": read_uuid, "new": object.__new__,
                                      "short": _short_of_data, "null": _unexpected_null, "odd": _odd_tag,
                                      "unpack_many": _unpack_many}
        self._depth = 1
        self._fresh = 0

    def add(self, *lines: str) -> None:
        self.lines.extend("    " * self._depth + line for line in lines)

    def indent(self, by: int) -> None:
        self._depth += by

    def fresh(self, stem: str) -> str:
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def unpacker(self, letters: str) -> str:
        name = f"unpack_{letters.replace('?', 'o')}"
        self.names[name] = Packer(f">{letters}").unpack_from
        return name


def decoder_source(message: type[Any], version: int) -> tuple[str, dict[str, Any]]:
    """Source of `read(d, view, p)` and the names that it needs.

    `d` is the data, `view` a memoryview of it, `p` where to begin; returned are the message and the position behind it.
    """
    source = _Source(message, version)
    _read_struct(source, message, "m")
    return "\n".join(["def read(d, view, p):", "    end = len(d)", *source.lines, "    return m, p"]), source.names


def _read_struct(source: _Source, cls: type[Any], target: str) -> None:
    version = source.version
    source.names[cls.__name__] = cls
    source.add(f"{target} = new({cls.__name__})")
    run: list[tuple[str, str]] = []
    for column in columns(cls):
        place = f"{target}.{column.name}"
        if not column.versions.holds(version) or column.is_tagged(version):
            source.add(f"{place} = {default_source(column, source.names)}")
            continue
        letter = None if column.type.is_array else FIXED.get(column.type.name)
        if letter:
            run.append((letter, place))
            continue
        _flush(source, run)
        _read_value(source, column.type, place, column.nullable.holds(version), column.name)
    _flush(source, run)
    if source.flexible:
        _read_tags(source, [c for c in columns(cls) if c.versions.holds(version) and c.is_tagged(version)], target)


def _flush(source: _Source, run: list[tuple[str, str]]) -> None:
    if run:
        letters = "".join(letter for letter, _ in run)
        places = ", ".join(place for _, place in run)
        source.add(f"{places}{',' if len(run) == 1 else ''} = {source.unpacker(letters)}(d, p)",
                   f"p += {calcsize('>' + letters)}")
        run.clear()


def _read_tags(source: _Source, tagged: list[Column], target: str) -> None:
    """Read the tagged fields of a structure; unknown tags are stepped over."""
    count, tag, stop = source.fresh("tags"), source.fresh("tag"), source.fresh("stop")
    source.add(f"{count} = d[p]; p += 1", f"if {count}:")
    source.indent(1)
    source.add(f"if {count} > 127: {count}, p = uvarint(d, p - 1)", f"while {count}:")
    source.indent(1)
    source.add(f"{tag}, p = uvarint(d, p)", f"{stop}, p = uvarint(d, p)", f"{stop} += p",
               f"if {stop} > end: short({stop}, end)")
    for number, column in enumerate(tagged):
        source.add(f"{'elif' if number else 'if'} {tag} == {column.tag}:")
        source.indent(1)
        nullable = column.nullable.holds(source.version)
        _read_value(source, column.type, f"{target}.{column.name}", nullable, column.name)
        source.add(f"if p != {stop}: odd({column.name!r}, p, {stop})")
        source.indent(-1)
    source.add(f"else: p = {stop}" if tagged else f"p = {stop}", f"{count} -= 1")
    source.indent(-2)


def _read_length(source: _Source, letter: str) -> str:
    """Read a length; -1 stands for null in both encodings."""
    length = source.fresh("n")
    if source.flexible:
        source.add(f"{length} = d[p]; p += 1", f"if {length} > 127: {length}, p = uvarint(d, p - 1)", f"{length} -= 1")
    else:
        source.add(f"{length}, = {source.unpacker(letter)}(d, p)", f"p += {calcsize('>' + letter)}")
    return length


def _read_value(source: _Source, type_: Type, target: str, nullable: bool, name: str) -> None:
    if type_.is_array:
        _read_array(source, type_, target, nullable, name)
    elif type_.struct is not None:
        _read_nested(source, type_.struct, target, nullable)
    elif type_.name in ("String", "Bytes", "Records"):
        _read_bytes(source, type_.name, target, nullable, name)
    elif type_.name == "Uuid":
        source.add("if p + 16 > end: short(p + 16, end)", f"{target} = read_uuid(bytes(d[p:p + 16]))", "p += 16")
    else:
        letter = FIXED[type_.name]
        source.add(f"{target}, = {source.unpacker(letter)}(d, p)", f"p += {calcsize('>' + letter)}")


def _read_nested(source: _Source, cls: type[Any], target: str, nullable: bool) -> None:
    value = source.fresh("o")
    if nullable:
        source.add("p += 1", f"if d[p - 1] > 127: {target} = None", "else:")
        source.indent(1)
    _read_struct(source, cls, value)
    source.add(f"{target} = {value}")
    source.indent(-1 if nullable else 0)


def _read_none(source: _Source, length: str, target: str, nullable: bool, name: str) -> None:
    source.add(f"if {length} < 0:")
    source.add(f"    {target} = None" if nullable else f"    null({name!r})", "else:")


def _read_bytes(source: _Source, type_name: str, target: str, nullable: bool, name: str) -> None:
    length = _read_length(source, "h" if type_name == "String" else "i")
    _read_none(source, length, target, nullable, name)
    stop = source.fresh("stop")
    source.indent(1)
    source.add(f"{stop} = p + {length}", f"if {stop} > end: short({stop}, end)")
    made = {"String": f"str(d[p:{stop}], 'utf-8')", "Bytes": f"bytes(d[p:{stop}])", "Records": f"view[p:{stop}]"}
    source.add(f"{target} = {made[type_name]}", f"p = {stop}")
    source.indent(-1)


def _read_array(source: _Source, type_: Type, target: str, nullable: bool, name: str) -> None:
    length = _read_length(source, "i")
    _read_none(source, length, target, nullable, name)
    source.indent(1)
    least = max(1, min_size(type_.item, source.version, source.flexible))
    source.add(f"if {length} * {least} > end - p: short(p + {length} * {least}, end)")
    letter = FIXED.get(type_.name)
    if letter:
        source.add(f"{target} = unpack_many({letter!r}, {length}, d, p)", f"p += {length} * {calcsize('>' + letter)}")
    else:
        items, item = source.fresh("list"), source.fresh("e")
        source.add(f"{target} = {items} = []", f"for _ in range({length}):")
        source.indent(1)
        _read_value(source, type_.item, item, False, name)
        source.add(f"{items}.append({item})")
        source.indent(-1)
    source.indent(-1)


def _unpack_many(letter: str, count: int, data: bytes | memoryview, position: int) -> list[Any]:
    return list(unpack_from(f">{count}{letter}", data, position))


def _short_of_data(stop: int, end: int) -> None:
    raise ProtocolError(f"a length or count reaches to byte {stop}, but the data ends at byte {end}")


def _unexpected_null(name: str) -> None:
    raise ProtocolError(f"{name} is null, which this version does not allow")


def _odd_tag(name: str, position: int, stop: int) -> None:
    raise ProtocolError(f"the tagged field {name} says it ends at byte {stop} but ends at byte {position}")
