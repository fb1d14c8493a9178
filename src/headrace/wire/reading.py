"""Generates the source of a decoder: one flat function for one version of one message. All bounds checks are here.

Positions only grow. Fixed-size runs go through `unpack_from`, single bytes through indexing: both raise by themselves
at the end of the data. Slices do not, so every length is compared with the end first; a count of elements is compared
with the bytes that are left, so that a mutated count can not fill the memory. `wire.codec` turns every exception into
a `ProtocolError`.

Read next: `wire.codec`, which compiles and keeps these functions.
"""

from __future__ import annotations

from struct import calcsize, unpack_from
from typing import Any

from headrace.errors import ProtocolError
from headrace.wire.layout import FIXED, SIZED, UNKNOWN, Column, Type, columns, default_source, min_size
from headrace.wire.primitives import read_text_length, read_uuid, read_uvarint
from headrace.wire.source import Source

__all__ = ["decoder_source"]


def decoder_source(message: type[Any], version: int) -> tuple[str, dict[str, Any]]:
    """Source of `read(d, view, p)` and the names that it needs.

    `d` is the data, `view` a memoryview of it, `p` where to begin; returned are the message and the position behind it.
    """
    names = {"uvarint": read_uvarint, "read_uuid": read_uuid, "unpack_many": _unpack_many, "new": object.__new__,
             "short": _short_of_data, "null": _unexpected_null, "odd": _odd_tag, "keep": _keep,
             "text_length": read_text_length}
    source = Source(message, version, names)
    source.add("end = len(d)")
    _read_struct(source, message, "m")
    return source.function("def read(d, view, p):", "m, p"), names


def _read_struct(source: Source, cls: type[Any], target: str) -> None:
    version = source.version
    source.names[cls.__name__] = cls
    source.add(f"{target} = new({cls.__name__})", f"{target}.{UNKNOWN} = None")
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


def _flush(source: Source, run: list[tuple[str, str]]) -> None:
    if run:
        letters = "".join(letter for letter, _ in run)
        places = ", ".join(place for _, place in run)
        source.add(f"{places}{',' if len(run) == 1 else ''} = {source.unpacker(letters)}(d, p)",
                   f"p += {calcsize('>' + letters)}")
        run.clear()


def _read_tags(source: Source, tagged: list[Column], target: str) -> None:
    """Read the tagged fields of a structure; unknown ones are kept as bytes.

    As in Java they may come in any order and more than once: the last one counts.
    """
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
    source.add(f"{'else: ' if tagged else ''}p = keep({target}, {tag}, d, p, {stop})", f"{count} -= 1")
    source.indent(-2)


def _read_length(source: Source, letter: str, compact: bool) -> str:
    """Read a length; -1 stands for null in both encodings."""
    length = source.fresh("n")
    if compact:
        read = "text_length" if letter == "h" else "uvarint"
        source.add(f"{length} = d[p]; p += 1", f"if {length} > 127: {length}, p = {read}(d, p - 1)", f"{length} -= 1")
    else:
        source.add(f"{length}, = {source.unpacker(letter)}(d, p)", f"p += {calcsize('>' + letter)}")
    return length


def _read_value(source: Source, type_: Type, target: str, nullable: bool, name: str) -> None:
    if type_.is_array:
        _read_array(source, type_, target, nullable, name)
    elif type_.struct is not None:
        _read_nested(source, type_.struct, target, nullable)
    elif type_.name in SIZED:
        _read_bytes(source, type_.name, target, nullable, name)
    elif type_.name == "Uuid":
        source.add("if p + 16 > end: short(p + 16, end)", f"{target} = read_uuid(bytes(d[p:p + 16]))", "p += 16")
    else:
        letter = FIXED[type_.name]
        source.add(f"{target}, = {source.unpacker(letter)}(d, p)", f"p += {calcsize('>' + letter)}")


def _read_nested(source: Source, cls: type[Any], target: str, nullable: bool) -> None:
    if nullable:
        source.add("p += 1", f"if d[p - 1] > 127: {target} = None", "else:")
        source.indent(1)
    if target.isidentifier():
        _read_struct(source, cls, target)
    else:
        value = source.fresh("o")
        _read_struct(source, cls, value)
        source.add(f"{target} = {value}")
    source.indent(-1 if nullable else 0)


def _read_none(source: Source, length: str, target: str, nullable: bool, name: str) -> None:
    source.add(f"if {length} < 0:")
    source.add(f"    {target} = None" if nullable else f"    null({name!r})", "else:")


def _read_bytes(source: Source, type_name: str, target: str, nullable: bool, name: str) -> None:
    compact = source.flexible and type_name != "ShortString"
    length = _read_length(source, "h" if type_name.endswith("String") else "i", compact)
    _read_none(source, length, target, nullable, name)
    stop = source.fresh("stop")
    source.indent(1)
    source.add(f"{stop} = p + {length}", f"if {stop} > end: short({stop}, end)")
    text = f"str(d[p:{stop}], 'utf-8')"
    made = {"String": text, "ShortString": text, "Bytes": f"bytes(d[p:{stop}])", "Records": f"view[p:{stop}]"}
    source.add(f"{target} = {made[type_name]}", f"p = {stop}")
    source.indent(-1)


def _read_array(source: Source, type_: Type, target: str, nullable: bool, name: str) -> None:
    length = _read_length(source, "i", source.flexible)
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


def _keep(struct: Any, tag: int, data: bytes | memoryview, position: int, stop: int) -> int:
    if struct.unknown_tags is None:
        struct.unknown_tags = {}
    struct.unknown_tags[tag] = bytes(data[position:stop])
    return stop


def _short_of_data(stop: int, end: int) -> None:
    raise ProtocolError(f"a length or count reaches to byte {stop}, but the data ends at byte {end}")


def _unexpected_null(name: str) -> None:
    raise ProtocolError(f"{name} is null, which this version does not allow")


def _odd_tag(name: str, position: int, stop: int) -> None:
    raise ProtocolError(f"the tagged field {name} says it ends at byte {stop} but ends at byte {position}")
