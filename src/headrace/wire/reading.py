"""Generates the source of a decoder: one flat function for one version of one message. All bounds checks are here.

Positions only grow. Fixed-size runs go through `unpack_from`, single bytes through indexing: both raise by themselves
at the end of the data. Slices do not, so every length is compared with the end first; a count of elements is compared
with the bytes that are left, so that a mutated count cannot fill the memory. `wire.codec` turns every exception into
a `ProtocolError`.

Read next: `wire.codec`, which compiles and keeps these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import calcsize
from types import MappingProxyType
from typing import Any

from headrace.errors import ProtocolError
from headrace.wire.layout import FIXED, SIZED, UNKNOWN, UNSET, FieldColumn, Type, columns, default_source, min_size
from headrace.wire.primitives import read_text_length, read_uuid, read_uvarint
from headrace.wire.source import Source

__all__ = ["ArrayReaders", "decoder_source"]

ArrayReaders = Mapping[type[Any], Callable[[Any, int, int], tuple[list[Any], int]]]
"""By structure, what begins to read an array of it: from the data, a position and a count it makes items, as many as it
can, and the position behind them. The codec reads the rest."""


def decoder_source(
    message: type[Any], version: int, part: type[Any] | None = None, arrays: ArrayReaders = MappingProxyType({})
) -> tuple[str, dict[str, Any]]:
    """Source of `read(d, view, p)` and the names that it needs.

    `d` is the data, `view` a memoryview of it, `p` where to begin; returned are the message and the position behind it.

    Args:
        message: class of the message.
        version: the version.
        part: a structure of the message that is to be read alone; None for the message.
        arrays: what begins to read arrays of some structures.
    """
    names = {"uvarint": read_uvarint, "text_length": read_text_length, "read_uuid": read_uuid, "new": object.__new__,
             "short": _short_of_data, "null": _unexpected_null, "odd": _odd_tag, "keep": _keep}
    source = Source(message, version, names)
    names |= {_array_reader(cls): reader for cls, reader in arrays.items()}
    source.add("end = len(d)")
    _read_struct(source, part or message, "m")
    return source.function("def read(d, view, p):", "m, p"), names


def _read_struct(source: Source, cls: type[Any], target: str) -> None:
    version = source.version
    _make(source, cls, target)
    for column in columns(cls):
        place = f"{target}.{column.name}"
        if not column.versions.holds(version) or column.is_tagged(version):
            _default(source, column, place)
        else:
            _read_value(source, column.type, place, column.nullable.holds(version), column.name)
    if source.flexible:
        _read_tags(source, [c for c in columns(cls) if c.versions.holds(version) and c.is_tagged(version)], target)
    _flush(source)


def _make(source: Source, cls: type[Any], target: str) -> None:
    source.names[cls.__name__] = cls
    source.add(f"{target} = new({cls.__name__})", f"{target}.{UNKNOWN} = None")


def _default(source: Source, column: FieldColumn, place: str) -> None:
    """Give a field that is not read its default; a structure's are written out, which is cheaper than its class."""
    struct = column.type.struct
    if struct is None or column.type.is_array or column.default is not UNSET:
        source.add(f"{place} = {default_source(column, source.names)}")
        return
    value = source.fresh("o")
    _make(source, struct, value)
    for inner in columns(struct):
        _default(source, inner, f"{value}.{inner.name}")
    source.add(f"{place} = {value}")


def _flush(source: Source) -> None:
    """Read the fixed-size values that have come together."""
    if source.run:
        letters, places, after = source.take_run()
        source.add(f"{', '.join(places)}{',' if len(places) == 1 else ''} = {source.unpacker(letters)}(d, p)",
                   f"p += {calcsize('>' + letters)}", *after)


def _read_tags(source: Source, tagged: list[FieldColumn], target: str) -> None:
    """Read the tagged fields of a structure; unknown ones are kept as bytes.

    As in Java they may come in any order and more than once: the last one counts.
    """
    count, tag, stop = source.fresh("tags"), source.fresh("tag"), source.fresh("stop")
    _read_byte(source, count)
    source.add(f"if {count}:")
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
        _flush(source)
        source.add(f"if p != {stop}: odd({column.name!r}, p, {stop})")
        source.indent(-1)
    source.add(f"{'else: ' if tagged else ''}p = keep({target}, {tag}, d, p, {stop})", f"{count} -= 1")
    source.indent(-2)


def _read_byte(source: Source, place: str) -> None:
    """Read an unsigned byte, together with the fixed-size values before it if there are any."""
    if source.run:
        source.run.append(("B", place, ""))
        _flush(source)
    else:
        source.add(f"{place} = d[p]; p += 1")


def _read_length(source: Source, letter: str, compact: bool) -> str:
    """Read a length; -1 stands for null in both encodings."""
    length = source.fresh("n")
    if compact:
        read = "text_length" if letter == "h" else "uvarint"
        _read_byte(source, length)
        source.add(f"if {length} > 127: {length}, p = {read}(d, p - 1)", f"{length} -= 1")
    else:
        source.run.append((letter, length, ""))
        _flush(source)
    return length


def _read_value(source: Source, type_: Type, target: str, nullable: bool, name: str) -> None:
    if type_.is_array:
        _read_array(source, type_, target, nullable, name)
    elif type_.struct is not None:
        _read_nested(source, type_.struct, target, nullable)
    elif type_.name in SIZED:
        _read_bytes(source, type_.name, target, nullable, name)
    elif type_.name == "Uuid":
        raw = source.fresh("u")
        source.run.append(("16s", raw, f"{target} = read_uuid({raw})"))
    else:
        source.run.append((FIXED[type_.name], target, ""))


def _read_nested(source: Source, cls: type[Any], target: str, nullable: bool) -> None:
    if nullable:
        _flush(source)
        source.add("p += 1", f"if d[p - 1] > 127: {target} = None", "else:")
        source.indent(1)
    if target.isidentifier():
        _read_struct(source, cls, target)
    else:
        value = source.fresh("o")
        _read_struct(source, cls, value)
        source.add(f"{target} = {value}")
    source.indent(-1 if nullable else 0)


def _read_none(source: Source, length: str, target: str, nullable: bool, name: str) -> int:
    """Read null; what follows is for values that are not. Returns how much deeper that stands."""
    if not nullable:
        source.add(f"if {length} < 0: null({name!r})")
        return 0
    source.add(f"if {length} < 0: {target} = None", "else:")
    source.indent(1)
    return 1


def _read_bytes(source: Source, type_name: str, target: str, nullable: bool, name: str) -> None:
    compact = source.flexible and type_name != "ShortString"
    length = _read_length(source, "h" if type_name.endswith("String") else "i", compact)
    deeper = _read_none(source, length, target, nullable, name)
    stop = source.fresh("stop")
    source.add(f"{stop} = p + {length}", f"if {stop} > end: short({stop}, end)")
    text = f"str(d[p:{stop}], 'utf-8')"
    made = {"String": text, "ShortString": text, "Bytes": f"bytes(d[p:{stop}])", "Records": f"view[p:{stop}]"}
    source.add(f"{target} = {made[type_name]}", f"p = {stop}")
    source.indent(-deeper)


def _read_array(source: Source, type_: Type, target: str, nullable: bool, name: str) -> None:
    length = _read_length(source, "i", source.flexible)
    letter = FIXED.get(type_.name)
    if letter:
        size = calcsize(">" + letter)
        source.add(f"if {length} > 0:", f"    if {length} * {size} > end - p: short(p + {length} * {size}, end)",
                   f"    {target} = list({source.unpackers(letter)}[{length}](d, p))", f"    p += {length} * {size}",
                   f"elif {length}: {f'{target} = None' if nullable else f'null({name!r})'}", f"else: {target} = []")
        return
    deeper = _read_none(source, length, target, nullable, name)
    least = max(1, min_size(type_.item, source.version, source.flexible))
    items, item = source.fresh("list"), source.fresh("e")
    first, count = f"{items} = []", length
    if type_.struct is not None and _array_reader(type_.struct) in source.names:
        first, count = f"{items}, p = {_array_reader(type_.struct)}(d, p, {length})", f"{length} - len({items})"
    source.add(f"if {length} * {least} > end - p: short(p + {length} * {least}, end)", first, f"{target} = {items}",
               f"for _ in range({count}):")
    source.indent(1)
    _read_value(source, type_.item, item, False, name)
    _flush(source)
    source.add(f"{items}.append({item})")
    source.indent(-1 - deeper)


def _array_reader(cls: type[Any]) -> str:
    return f"array_{cls.__name__}"


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
