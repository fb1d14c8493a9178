"""Values of usual types to Avro's bytes, by a function that is made for one schema.

The function takes values of exactly the types that a schema names (dict, list, str, int, float, bool, bytes, None) with
all fields there, and raises `NotPlain`, or whatever comes, for any other: those are fastavro's, which also says what is
wrong with a value. So it need not know unions of several types, logical types, defaults, or tuples that name a branch.
Schemas are as fastavro has parsed them. Read next: `client.schema_serdes.codecs.avro_codec`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["NotPlain", "plain_writer"]

_SHORT = 1 << 13
"""Numbers from here on are not looked up in a table by themselves."""
_LEAST = {"int": -(1 << 31), "long": -(1 << 63)}
_FIXED_WIDTH = {"float": ("<f", "pack_float"), "double": ("<d", "pack_double")}
_MOST_LINES = 2000
"""Of one function; larger schemas are left to fastavro."""


class NotPlain(Exception):
    """The value, or the schema, is fastavro's."""


def plain_writer(schema: Any, names: Mapping[str, Any]) -> Callable[[Any], bytes] | None:
    """Make the function.

    Args:
        schema: parsed.
        names: the named types in it.

    Returns:
        A function of a value, which raises some exception if the value is fastavro's; None if the schema is.
    """
    maker = _Maker(names)
    try:
        maker.function("write_root", schema)
    except (NotPlain, RecursionError):
        return None
    scope = dict(maker.scope)
    exec("\n".join(maker.source), scope)  # nothing of it is a text of the schema's: names are constants in the scope
    root, join = scope["write_root"], b"".join

    def write(value: Any) -> bytes:
        parts: list[bytes] = []
        root(value, parts.append)
        return join(parts)
    return write


def _ended(value: int) -> bytes:
    """A varint of fourteen bits."""
    return bytes((value,)) if value < 0x80 else bytes((value & 0x7F | 0x80, value >> 7))


_LAST = tuple(_ended(value) for value in range(1 << 14))
"""Fourteen bits, and nothing behind them."""
_MORE = tuple(bytes((value & 0x7F | 0x80, value >> 7 | 0x80)) for value in range(1 << 14))
"""Fourteen bits, and more behind them."""


def _number(value: int) -> bytes:
    """A number of 64 bits as Avro has it: zigzag, seven bits a byte."""
    left = (value << 1) ^ (value >> 63)
    if left < 1 << 14:
        return _LAST[left]
    if left < 1 << 28:
        return _MORE[left & 0x3FFF] + _LAST[left >> 14]
    made = _MORE[left & 0x3FFF] + _MORE[left >> 14 & 0x3FFF]
    left >>= 28
    while left >= 1 << 14:
        made += _MORE[left & 0x3FFF]
        left >>= 14
    return made + _LAST[left]


class _Maker:
    """Writes the source: a function for each named record, for its fields one after the other."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._functions: dict[str, str] = {}
        self._made = 0
        self.source: list[str] = []
        self.scope: dict[str, Any] = {
            "last": _LAST, "number": _number, "NotPlain": NotPlain,
            **{name: struct.Struct(layout).pack for layout, name in _FIXED_WIDTH.values()}}

    def function(self, name: str, schema: Any) -> None:
        """Write a function of a value and of what takes its bytes."""
        lines: list[str] = []
        self._value(schema, "value", lines, 1)
        if len(lines) > _MOST_LINES:
            raise NotPlain
        self.source += [f"def {name}(value, add):", *lines, "    return"]

    def _new(self, what: str) -> str:
        """A name that nothing else has."""
        self._made += 1
        return f"{what}_{self._made}"

    def _constant(self, value: object) -> str:
        name = self._new("constant")
        self.scope[name] = value
        return name

    def _value(self, schema: Any, name: str, lines: list[str], depth: int) -> None:
        """Add the lines that write the value of a variable."""
        if depth > _DEEPEST_LINES:
            raise NotPlain
        pad = "    " * depth
        if isinstance(schema, str) and schema in self._names:
            self._named(schema, name, lines, pad)
        elif isinstance(schema, list):
            self._union(schema, name, lines, depth)
        elif isinstance(schema, dict):
            self._complex(schema, name, lines, depth)
        else:
            self._primitive(schema, name, lines, pad)

    def _named(self, full_name: str, name: str, lines: list[str], pad: str) -> None:
        if full_name not in self._functions:
            self._functions[full_name] = f"write_{len(self._functions)}"
            self.function(self._functions[full_name], self._names[full_name])
        lines.append(f"{pad}{self._functions[full_name]}({name}, add)")

    def _complex(self, schema: dict[str, Any], name: str, lines: list[str], depth: int) -> None:
        kind = schema["type"]
        if "logicalType" in schema:
            raise NotPlain
        if kind == "record":
            self._record(schema, name, lines, depth)
        elif kind in ("array", "map"):
            self._block(schema, name, lines, depth)
        elif kind == "enum":
            symbols = {symbol: _number(place) for place, symbol in enumerate(schema["symbols"])}
            lines.append(f"{'    ' * depth}add({self._constant(symbols)}[{name}])")
        elif kind == "fixed":
            self._check(f"type({name}) is bytes and len({name}) == {int(schema['size'])}", lines, "    " * depth)
            lines.append(f"{'    ' * depth}add({name})")
        else:
            self._value(kind, name, lines, depth)

    def _check(self, condition: str, lines: list[str], pad: str) -> None:
        lines.append(f"{pad}if not ({condition}): raise NotPlain")

    def _record(self, schema: dict[str, Any], name: str, lines: list[str], depth: int) -> None:
        pad = "    " * depth
        self._check(f"type({name}) is dict", lines, pad)
        if not schema["fields"]:
            lines.append(f"{pad}pass")
        for field in schema["fields"]:
            part = self._new("part")
            lines.append(f"{pad}{part} = {name}[{self._constant(field['name'])}]")
            self._value(field["type"], part, lines, depth)

    def _block(self, schema: dict[str, Any], name: str, lines: list[str], depth: int) -> None:
        pad, item, key, is_map = "    " * depth, self._new("item"), self._new("key"), schema["type"] == "map"
        self._check(f"type({name}) is {'dict' if is_map else 'list'}", lines, pad)
        lines.append(f"{pad}if {name}:")
        lines.append(f"{pad}    size = len({name})")
        lines.append(f"{pad}    add(last[size + size] if size < {_SHORT} else number(size))")
        lines.append(f"{pad}    for {key}, {item} in {name}.items():" if is_map else f"{pad}    for {item} in {name}:")
        if is_map:
            self._primitive("string", key, lines, f"{pad}        ")
        self._value(schema["values" if is_map else "items"], item, lines, depth + 2)
        lines.append(f"{pad}add({self._constant(_number(0))})")

    def _union(self, schema: list[Any], name: str, lines: list[str], depth: int) -> None:
        """Null and one other type; of several, fastavro finds the right one."""
        pad = "    " * depth
        if len(schema) != 2 or schema.count("null") != 1:
            raise NotPlain
        of_null = schema.index("null")
        lines.append(f"{pad}if {name} is None: add({self._constant(_number(of_null))})")
        lines.append(f"{pad}else:")
        lines.append(f"{pad}    if type({name}) is dict and '-type' in {name}: raise NotPlain")
        lines.append(f"{pad}    add({self._constant(_number(1 - of_null))})")
        self._value(schema[1 - of_null], name, lines, depth + 1)

    def _primitive(self, kind: str, name: str, lines: list[str], pad: str) -> None:
        if kind == "null":
            self._check(f"{name} is None", lines, pad)
        elif kind == "boolean":
            self._check(f"type({name}) is bool", lines, pad)
            lines.append(f"{pad}add(b'\\1' if {name} else b'\\0')")
        elif kind in _LEAST:
            least = _LEAST[kind]
            self._check(f"type({name}) is int and {least} <= {name} < {-least}", lines, pad)
            lines.append(f"{pad}add(last[{name} + {name}] if 0 <= {name} < {_SHORT} else number({name}))")
        elif kind in _FIXED_WIDTH:
            self._check(f"type({name}) is float", lines, pad)
            lines.append(f"{pad}add({_FIXED_WIDTH[kind][1]}({name}))")
        elif kind in ("string", "bytes"):
            self._check(f"type({name}) is {'str' if kind == 'string' else 'bytes'}", lines, pad)
            lines.append(f"{pad}data = {name}.encode()" if kind == "string" else f"{pad}data = {name}")
            lines.append(f"{pad}size = len(data)")
            lines.append(f"{pad}add(last[size + size] if size < {_SHORT} else number(size)); add(data)")
        else:
            raise NotPlain


_DEEPEST_LINES = 15
"""Python takes no more than twenty blocks within one another."""
