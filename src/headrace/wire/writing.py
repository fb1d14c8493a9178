"""Generates the source of an encoder: one flat function for one version of one message.

The function appends to a bytearray. Runs of fixed-size fields become one `struct.pack`. Records are not copied: the
place where they belong is noted in `cuts`, and `wire.codec` puts the parts together. All nested structures are written
in place, because a call a structure would cost more than its fields.

Read next: `wire.reading`, the mirror image.
"""

from __future__ import annotations

from typing import Any

from headrace.wire.layout import FIXED, SIZED, UNKNOWN, UNSET, ZERO_UUID, FieldColumn, Type, columns
from headrace.wire.primitives import as_view, write_tags, write_text_length, write_uvarint
from headrace.wire.source import Source
from headrace.wire.versions import NEVER

__all__ = ["encoder_source"]


def encoder_source(message: type[Any], version: int) -> tuple[str, dict[str, Any]]:
    """Source of `write(message, out, cuts)` and the names that it needs."""
    names = {"uvarint": write_uvarint, "text_length": write_text_length, "write_tags": write_tags, "as_view": as_view,
             "lacks": _lacks, "refuse": _refuse}
    source = Source(message, version, names)
    _write_struct(source, message, "m", "out")
    return source.function("def write(m, out, cuts):", "None"), names


def _write_struct(source: Source, cls: type[Any], value: str, out: str) -> None:
    version = source.version
    for column in columns(cls):
        here = f"{value}.{column.name}"
        if not column.versions.holds(version):
            _refuse_unsendable(source, cls, column, here)
        elif not column.is_tagged(version):
            _write_value(source, column.type, here, out, column)
    if source.flexible:
        _write_tags(source, [c for c in columns(cls) if c.versions.holds(version) and c.is_tagged(version)], value, out)
    else:
        source.add(f"if {value}.{UNKNOWN}: lacks({cls.__name__!r}, {UNKNOWN!r}, 'with tagged fields')")
    _flush(source, out)


def _flush(source: Source, out: str) -> None:
    """Write the fixed-size values that have come together."""
    if source.run:
        source.add(_packed(source, out))
        source.run.clear()


def _packed(source: Source, out: str, *further: tuple[str, str]) -> str:
    """Source that writes the run and, in the same call, further values."""
    together = [*((letter, value) for letter, value, _ in source.run), *further]
    packer = source.packer("".join(letter for letter, _ in together))
    return f"{out} += {packer}({', '.join(value for _, value in together)})"


def _refuse_unsendable(source: Source, cls: type[Any], column: FieldColumn, here: str) -> None:
    """A value that this version cannot carry is an error, unless Kafka calls the field ignorable."""
    if not column.ignorable:
        arguments = f"{cls.__name__!r}, {column.name!r}, {str(column.versions)!r}"
        source.add(f"if {_differs(source, column, here)}: lacks({arguments})")


def _differs(source: Source, column: FieldColumn, here: str) -> str:
    """Source of the test "this field does not hold its default"."""
    default = column.default
    if default is None:
        return f"{here} is not None"
    if default is UNSET:
        if column.type.is_array:
            return f"{here} or {here} is None" if column.nullable != NEVER else here
        assert column.type.struct is not None
        parts = [_differs(source, inner, f"{here}.{inner.name}") for inner in columns(column.type.struct)]
        return " or ".join([*parts, f"{here}.{UNKNOWN}"])
    if isinstance(default, (bool, int, float, str, bytes)):
        return f"{here} != {default!r}"
    source.names["ZERO_UUID"] = ZERO_UUID
    return f"{here} != ZERO_UUID"


def _write_tags(source: Source, tagged: list[FieldColumn], value: str, out: str) -> None:
    unknown = f"{value}.{UNKNOWN}"
    if not tagged:
        _write_no_tags(source, unknown, out)
        return
    _flush(source, out)
    tags, buffer = source.fresh("tags"), source.fresh("tag")
    source.add(f"{tags} = []")
    for column in sorted(tagged, key=lambda c: c.tag or 0):
        here = f"{value}.{column.name}"
        source.add(f"if {_differs(source, column, here)}:")
        source.indent(1)
        source.add(f"{buffer} = bytearray()")
        _write_value(source, column.type, here, buffer, column)
        _flush(source, buffer)
        source.add(f"{tags}.append(({column.tag}, {buffer}))")
        source.indent(-1)
    reserved = tuple(column.tag for column in tagged)
    source.add(f"if {tags} or {unknown}: write_tags({out}, {tags}, {unknown}, {reserved})", f"else: {out}.append(0)")


def _write_no_tags(source: Source, unknown: str, out: str) -> None:
    """Write the tagged fields of a structure that has none of its own."""
    write = f"write_tags({out}, [], {unknown}, ())"
    if source.run:
        source.add(f"if {unknown}: {_packed(source, out)}; {write}", f"else: {_packed(source, out, ('B', '0'))}")
        source.run.clear()
    else:
        source.add(f"if {unknown}: {write}", f"else: {out}.append(0)")


def _write_value(source: Source, type_: Type, here: str, out: str, column: FieldColumn) -> None:
    """Write one value; `column` says whether it may be None (elements of an array may not)."""
    struct = None if type_.is_array else type_.struct
    if struct is None and not type_.is_array and type_.name not in SIZED:
        if type_.name == "Uuid":  # by itself: as a part of a pack it would be copied twice
            _flush(source, out)
            source.add(f"{out} += {here}.bytes")
        else:
            source.run.append((FIXED[type_.name], here, ""))
        return
    value = here
    if not here.isidentifier():
        value = source.fresh("v")
        source.add(f"{value} = {here}")
    nullable = column.nullable.holds(source.version)
    if struct is None:
        if not nullable:
            source.add(f"if {value} is None: refuse({column.name!r})")
        _write_sized(source, type_, value, out, column, nullable)
    elif not nullable:
        _write_struct(source, struct, value, out)
    else:
        _flush(source, out)
        source.add(f"if {value} is None: {out}.append(255)", "else:")
        source.indent(1)
        source.add(f"{out}.append(1)")
        _write_struct(source, struct, value, out)
        source.indent(-1)


def _short(type_: Type) -> bool:
    return type_.name in ("String", "ShortString") and not type_.is_array


def _compact(source: Source, type_: Type) -> bool:
    return source.flexible and (type_.is_array or type_.name != "ShortString")


def _write_sized(source: Source, type_: Type, value: str, out: str, column: FieldColumn, nullable: bool) -> None:
    """Write a value behind its length; null has a length only."""
    data, made = value, ""
    if _short(type_):
        data, made = source.fresh("s"), f"{value}.encode()"
    elif type_.name == "Records":
        made = f"as_view({value})"
    if made:
        source.add(f"{data} = {f'None if {value} is None else ' if nullable else ''}{made}")
    _write_length(source, type_, data, out, nullable)
    if type_.is_array:
        _write_items(source, type_, data, out, column, nullable)
    elif type_.name == "Records":
        source.add(f"if {data}: cuts.append((len({out}), {data}))")
    else:
        source.add(f"{f'if {data}: ' if nullable else ''}{out} += {data}")


def _write_length(source: Source, type_: Type, data: str, out: str, nullable: bool) -> None:
    """Write the length of `data`, together with the fixed-size values before it."""
    if not _compact(source, type_):
        size = f"-1 if {data} is None else len({data})" if nullable else f"len({data})"
        source.run.append(("h" if _short(type_) else "i", size, ""))
        _flush(source, out)
        return
    length = source.fresh("n")
    large = f"{out} += {'text_length' if _short(type_) else 'uvarint'}({length})"
    source.add(f"{length} = {f'0 if {data} is None else ' if nullable else ''}len({data}) + 1")
    if source.run:
        source.add(f"if {length} < 128: {_packed(source, out, ('B', length))}",
                   f"else: {_packed(source, out)}; {large}")
        source.run.clear()
    else:
        source.add(f"if {length} < 128: {out}.append({length})", f"else: {large}")


def _write_items(source: Source, type_: Type, data: str, out: str, column: FieldColumn, nullable: bool) -> None:
    letter = FIXED.get(type_.name)
    if letter:
        source.add(f"if {data}: {out} += {source.packers(letter)}[len({data})](*{data})")
        return
    item = source.fresh("e")
    source.add(f"for {item} in {data}{' or ()' if nullable else ''}:")
    source.indent(1)
    _write_value(source, type_.item, item, out, column._replace(nullable=NEVER))
    _flush(source, out)
    source.indent(-1)


def _lacks(cls: str, name: str, versions: str) -> None:
    raise LookupError(f"{cls}.{name} is set, which only versions {versions} carry")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} must not be None in this version")
