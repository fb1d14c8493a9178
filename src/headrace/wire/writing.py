"""Generates the source of an encoder: one flat function for one version of one message.

The function appends to a bytearray. Runs of fixed-size fields become one `struct.pack`. Records are not copied: the
place where they belong is noted in `cuts`, and `wire.codec` puts the parts together. All nested structures are written
in place, because a call a structure would cost more than its fields.

Read next: `wire.reading`, the mirror image.
"""

from __future__ import annotations

from struct import pack
from typing import Any

from headrace.wire.layout import FIXED, SIZED, UNKNOWN, UNSET, ZERO_UUID, Column, Type, columns
from headrace.wire.primitives import as_view, write_tags, write_text_length, write_uvarint
from headrace.wire.source import Source
from headrace.wire.versions import NEVER

__all__ = ["encoder_source"]


def encoder_source(message: type[Any], version: int) -> tuple[str, dict[str, Any]]:
    """Source of `write(message, out, cuts)` and the names that it needs."""
    names = {"uvarint": write_uvarint, "text_length": write_text_length, "write_tags": write_tags, "as_view": as_view,
             "pack_many": _pack_many, "lacks": _lacks, "refuse": _refuse}
    source = Source(message, version, names)
    _write_struct(source, message, "m", "out")
    return source.function("def write(m, out, cuts):", "None"), names


def _write_struct(source: Source, cls: type[Any], value: str, out: str) -> None:
    version = source.version
    run: list[tuple[str, str]] = []
    for column in columns(cls):
        here = f"{value}.{column.name}"
        if not column.versions.holds(version):
            _refuse_unsendable(source, cls, column, here)
        elif not column.is_tagged(version):
            letter = None if column.type.is_array else FIXED.get(column.type.name)
            if letter:
                run.append((letter, here))
                continue
            _flush(source, run, out)
            _write_value(source, column.type, here, out, column)
    _flush(source, run, out)
    if source.flexible:
        _write_tags(source, [c for c in columns(cls) if c.versions.holds(version) and c.is_tagged(version)], value, out)
    else:
        source.add(f"if {value}.{UNKNOWN}: lacks({cls.__name__!r}, {UNKNOWN!r}, 'with tagged fields')")


def _flush(source: Source, run: list[tuple[str, str]], out: str) -> None:
    if run:
        pack = source.packer("".join(letter for letter, _ in run))
        source.add(f"{out} += {pack}({', '.join(value for _, value in run)})")
        run.clear()


def _refuse_unsendable(source: Source, cls: type[Any], column: Column, here: str) -> None:
    """A value that this version can not carry is an error, unless Kafka calls the field ignorable."""
    if not column.ignorable:
        arguments = f"{cls.__name__!r}, {column.name!r}, {str(column.versions)!r}"
        source.add(f"if {_differs(source, column, here)}: lacks({arguments})")


def _differs(source: Source, column: Column, here: str) -> str:
    """Source of the test "this field does not hold its default"."""
    default = column.default
    if default is None:
        return f"{here} is not None"
    if default is UNSET:
        if column.type.is_array:
            return f"{here} or {here} is None" if column.nullable != NEVER else here
        assert column.type.struct is not None
        source.names[column.type.struct.__name__] = column.type.struct
        return f"{here} != {column.type.struct.__name__}()"
    if isinstance(default, (bool, int, float, str, bytes)):
        return f"{here} != {default!r}"
    source.names["ZERO_UUID"] = ZERO_UUID
    return f"{here} != ZERO_UUID"


def _write_tags(source: Source, tagged: list[Column], value: str, out: str) -> None:
    unknown = f"{value}.{UNKNOWN}"
    if not tagged:
        source.add(f"if {unknown}: write_tags({out}, [], {unknown}, ())", f"else: {out}.append(0)")
        return
    tags, buffer = source.fresh("tags"), source.fresh("tag")
    source.add(f"{tags} = []")
    for column in sorted(tagged, key=lambda c: c.tag or 0):
        here = f"{value}.{column.name}"
        source.add(f"if {_differs(source, column, here)}:")
        source.indent(1)
        source.add(f"{buffer} = bytearray()")
        _write_value(source, column.type, here, buffer, column)
        source.add(f"{tags}.append(({column.tag}, {buffer}))")
        source.indent(-1)
    reserved = tuple(column.tag for column in tagged)
    source.add(f"if {tags} or {unknown}: write_tags({out}, {tags}, {unknown}, {reserved})", f"else: {out}.append(0)")


def _write_value(source: Source, type_: Type, here: str, out: str, column: Column) -> None:
    """Write one value; `column` says whether it may be None (elements of an array may not)."""
    value = here
    if not here.isidentifier():
        value = source.fresh("v")
        source.add(f"{value} = {here}")
    is_struct = type_.struct is not None and not type_.is_array
    if not is_struct and (type_.is_array or type_.name in SIZED):
        _write_none(source, type_, value, out, column)
        source.indent(1)
        _write_body(source, type_, value, out, column)
        source.indent(-1)
    elif is_struct and column.nullable.holds(source.version):
        source.add(f"if {value} is None: {out}.append(255)", "else:")
        source.indent(1)
        source.add(f"{out}.append(1)")
        _write_body(source, type_, value, out, column)
        source.indent(-1)
    else:
        _write_body(source, type_, value, out, column)


def _write_none(source: Source, type_: Type, value: str, out: str, column: Column) -> None:
    if column.nullable.holds(source.version):
        none = r"b'\0'" if _compact(source, type_) else repr(b"\xff" * (2 if _short(type_) else 4))
        source.add(f"if {value} is None: {out} += {none}", "else:")
    else:
        source.add(f"if {value} is None: refuse({column.name!r})", "else:")


def _short(type_: Type) -> bool:
    return type_.name in ("String", "ShortString") and not type_.is_array


def _compact(source: Source, type_: Type) -> bool:
    return source.flexible and (type_.is_array or type_.name != "ShortString")


def _write_length(source: Source, type_: Type, size: str, out: str) -> None:
    if not _compact(source, type_):
        source.add(f"{out} += {source.packer('h' if _short(type_) else 'i')}({size})")
        return
    length = source.fresh("n")
    source.add(f"{length} = {size} + 1", f"if {length} < 128: {out}.append({length})",
               f"else: {out} += {'text_length' if _short(type_) else 'uvarint'}({length})")


def _write_body(source: Source, type_: Type, value: str, out: str, column: Column) -> None:
    if type_.is_array:
        _write_array(source, type_, value, out, column)
    elif type_.struct is not None:
        _write_struct(source, type_.struct, value, out)
    elif _short(type_):
        data = source.fresh("s")
        source.add(f"{data} = {value}.encode()")
        _write_length(source, type_, f"len({data})", out)
        source.add(f"{out} += {data}")
    elif type_.name == "Records":
        source.add(f"{value} = as_view({value})")
        _write_length(source, type_, f"len({value})", out)
        source.add(f"cuts.append((len({out}), {value}))")
    elif type_.name == "Bytes":
        _write_length(source, type_, f"len({value})", out)
        source.add(f"{out} += {value}")
    elif type_.name == "Uuid":
        source.add(f"{out} += {value}.bytes")
    else:
        source.add(f"{out} += {source.packer(FIXED[type_.name])}({value})")


def _write_array(source: Source, type_: Type, value: str, out: str, column: Column) -> None:
    _write_length(source, type_, f"len({value})", out)
    letter = FIXED.get(type_.name)
    if letter:
        source.add(f"{out} += pack_many({letter!r}, {value})")
        return
    item = source.fresh("e")
    source.add(f"for {item} in {value}:")
    source.indent(1)
    _write_value(source, type_.item, item, out, column._replace(nullable=NEVER))
    source.indent(-1)


def _pack_many(letter: str, values: list[Any]) -> bytes:
    return pack(f">{len(values)}{letter}", *values)


def _lacks(cls: str, name: str, versions: str) -> None:
    raise LookupError(f"{cls}.{name} is set, which only versions {versions} carry")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} must not be None in this version")
