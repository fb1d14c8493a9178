"""Generates the source of an encoder: one flat function for one version of one message.

The function appends to a bytearray. Runs of fixed-size fields become one `struct.pack`. Records are not copied: the
place where they belong is noted in `cuts`, and `wire.codec` puts the parts together. All nested structures are written
in place, because a call a structure would cost more than its fields.

Read next: `wire.reading`, the mirror image.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Packer
from typing import Any, NoReturn

from headrace.compiled import function_of
from headrace.wire.layout import FIXED, SIZED, TEXTS, UNKNOWN, UNSET, ZERO_UUID, FieldColumn, Type, columns
from headrace.wire.primitives import TINY, as_view, write_tags, write_text_length, write_uvarint
from headrace.wire.source import Source
from headrace.wire.versions import NEVER

__all__ = ["encoder_source"]

_INT16 = Packer(">h")
_NO_TEXT = _INT16.pack(-1)


def encoder_source(message: type[Any], version: int) -> tuple[str, dict[str, Any]]:
    """Source of `write(message, out, cuts)` and the names that it needs."""
    source = _new_source(message, version)
    _write_struct(source, message, "m")
    return source.function("def write(m, out, cuts):", "None"), source.names


def _new_source(message: type[Any], version: int) -> Source:
    return Source(message, version, {
        "uvarint": write_uvarint, "write_tags": write_tags, "as_view": as_view, "lacks": _lacks, "refuse": _refuse,
        "text": _text, "text_or_null": _text_or_null, "compact_text": _compact_text,
        "compact_text_or_null": _compact_text_or_null})


def _write_struct(source: Source, cls: type[Any], value: str) -> None:
    version = source.version
    for column in columns(cls):
        here = f"{value}.{column.name}"
        if not column.versions.holds(version):
            _refuse_unsendable(source, cls, column, here)
        elif not column.is_tagged(version):
            _write_value(source, column.type, here, column)
    if source.flexible:
        _write_tags(source, cls, value)
    else:
        source.add(f"if {value}.{UNKNOWN}: lacks({cls.__name__!r}, {UNKNOWN!r}, 'with tagged fields')")
    _flush(source)


def _flush(source: Source) -> None:
    """Write the fixed-size values that have come together."""
    if source.run:
        source.add(_packed(source))
        source.run.clear()


def _packed(source: Source, *further: tuple[str, str]) -> str:
    """Source that writes the run and, in the same call, further values."""
    together = [*((letter, value) for letter, value, _ in source.run), *further]
    packer = source.packer("".join(letter for letter, _ in together))
    return f"out += {packer}({', '.join(value for _, value in together)})"


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


def _write_tags(source: Source, cls: type[Any], value: str) -> None:
    unknown = f"{value}.{UNKNOWN}"
    tagged = [column for column in columns(cls) if column.is_tagged(source.version)]
    if not tagged:
        _write_no_tags(source, unknown)
        return
    _flush(source)
    tags = source.fresh("tags")
    source.add(f"{tags} = []")
    for column in sorted(tagged, key=lambda c: c.tag or 0):
        name = f"tag_{cls.__name__}_{column.tag}"
        source.names[name] = _TagWriter(source.message, source.version, column)
        source.add(f"if {_differs(source, column, f'{value}.{column.name}')}: {tags}.append({name}({value}))")
    reserved = tuple(column.tag for column in tagged)
    source.add(f"if {tags} or {unknown}: write_tags(out, {tags}, {unknown}, {reserved})", "else: out.append(0)")


class _TagWriter:
    """Writes one tagged field of a structure. Such are seldom sent: what writes it is made when it first is."""

    def __init__(self, message: type[Any], version: int, column: FieldColumn) -> None:
        self._message = message
        self._version = version
        self._column = column
        self._write: Callable[[Any, bytearray], None] | None = None

    def __call__(self, struct: Any) -> tuple[int, bytearray]:
        """Number and bytes of the field in `struct`."""
        out = bytearray()
        (self._write or self._made())(struct, out)
        assert self._column.tag is not None
        return self._column.tag, out

    def _made(self) -> Callable[[Any, bytearray], None]:
        source, name = _new_source(self._message, self._version), self._column.name
        _write_value(source, self._column.type, f"m.{name}", self._column)
        _flush(source)
        text = source.function("def write(m, out):", "None")
        title = f"write {self._message.__name__}.{name} v{self._version}"
        write: Callable[[Any, bytearray], None] = function_of("write", text, source.names, title)
        self._write = write
        return write


def _write_no_tags(source: Source, unknown: str) -> None:
    """Write the tagged fields of a structure that has none of its own."""
    write = f"write_tags(out, [], {unknown}, ())"
    if source.run:
        source.add(f"if {unknown}: {_packed(source)}; {write}", f"else: {_packed(source, ('B', '0'))}")
        source.run.clear()
    else:
        source.add(f"if {unknown}: {write}", "else: out.append(0)")


def _write_value(source: Source, type_: Type, here: str, column: FieldColumn) -> None:
    """Write one value; `column` says whether it may be None (elements of an array may not)."""
    struct = None if type_.is_array else type_.struct
    if struct is None and not type_.is_array and type_.name not in SIZED:
        if type_.name == "Uuid":  # by itself: as a part of a pack it would be copied twice
            _flush(source)
            source.add(f"out += {here}.bytes")
        else:
            source.run.append((FIXED[type_.name], here, ""))
        return
    if type_.name in TEXTS and not type_.is_array:
        _write_text(source, type_, here, column)
        return
    value = here
    if not here.isidentifier():
        value = source.fresh("v")
        source.add(f"{value} = {here}")
    nullable = column.nullable.holds(source.version)
    if struct is None:
        if not nullable:
            source.add(f"if {value} is None: refuse({column.name!r})")
        _write_sized(source, type_, value, column, nullable)
    elif not nullable:
        _write_struct(source, struct, value)
    else:
        _flush(source)
        source.add(f"if {value} is None: out.append(255)", "else:")
        source.indent(1)
        source.add("out.append(1)")
        _write_struct(source, struct, value)
        source.indent(-1)


def _write_text(source: Source, type_: Type, value: str, column: FieldColumn) -> None:
    _flush(source)
    kind = "compact_text" if source.flexible and type_.name == "String" else "text"
    nullable = column.nullable.holds(source.version)
    source.add(f"{kind}_or_null(out, {value})" if nullable else f"{kind}(out, {value}, {column.name!r})")


def _write_sized(source: Source, type_: Type, value: str, column: FieldColumn, nullable: bool) -> None:
    """Write a value behind its length; null has a length only."""
    data = value
    if type_.name == "Records" and not type_.is_array:
        data = source.fresh("s")
        source.add(f"{data} = {f'None if {value} is None else ' if nullable else ''}as_view({value})")
    _write_length(source, data, nullable)
    if type_.is_array:
        _write_items(source, type_, data, column, nullable)
    elif type_.name == "Records":
        source.add(f"if {data}: cuts.append((len(out), {data}))")
    else:
        source.add(f"{f'if {data}: ' if nullable else ''}out += {data}")


def _write_length(source: Source, data: str, nullable: bool) -> None:
    """Write the length of `data`, together with the fixed-size values before it."""
    if not source.flexible:
        source.run.append(("i", f"-1 if {data} is None else len({data})" if nullable else f"len({data})", ""))
        _flush(source)
        return
    length = source.fresh("n")
    large = f"out += uvarint({length})"
    source.add(f"{length} = {f'0 if {data} is None else ' if nullable else ''}len({data}) + 1")
    if source.run:
        source.add(f"if {length} < 128: {_packed(source, ('B', length))}",
                   f"else: {_packed(source)}; {large}")
        source.run.clear()
    else:
        source.add(f"if {length} < 128: out.append({length})", f"else: {large}")


def _write_items(source: Source, type_: Type, data: str, column: FieldColumn, nullable: bool) -> None:
    letter = FIXED.get(type_.name)
    if letter:
        source.add(f"if {data}: out += {source.packers(letter)}[len({data})](*{data})")
        return
    item = source.fresh("e")
    source.add(f"for {item} in {data}{' or ()' if nullable else ''}:")
    source.indent(1)
    _write_value(source, type_.item, item, column._replace(nullable=NEVER))
    _flush(source)
    source.indent(-1)


def _text(out: bytearray, text: str | None, name: str) -> None:
    """Append a string behind its length."""
    if text is None:
        _refuse(name)
    data = text.encode()
    out += _INT16.pack(len(data))
    out += data


def _text_or_null(out: bytearray, text: str | None) -> None:
    if text is None:
        out += _NO_TEXT
    else:
        _text(out, text, "")


def _compact_text(out: bytearray, text: str | None, name: str) -> None:
    """As `_text`, behind a varint of its length plus one."""
    if text is None:
        _refuse(name)
    data = text.encode()
    above = len(data) + 1
    if above < TINY:
        out.append(above)
    else:
        out += write_text_length(above)
    out += data


def _compact_text_or_null(out: bytearray, text: str | None) -> None:
    if text is None:
        out.append(0)
    else:
        _compact_text(out, text, "")


def _lacks(cls: str, name: str, versions: str) -> None:
    raise LookupError(f"{cls}.{name} is set, which only versions {versions} carry")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} must not be None in this version")
