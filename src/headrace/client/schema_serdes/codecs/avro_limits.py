"""What bytes of Avro may ask for: how deep values nest, how many take no bytes, how many digits decimals have.

fastavro reads by calling itself, and so a few thousand levels end the process; an array of nulls may claim any length;
records of two records of two records may have any number of nulls; and a decimal of a million bytes takes minutes.
Schemas whose values are bounded by themselves are found here, once; messages of the others are gone over first. Schemas
are as fastavro has parsed them. Read next: `client.schema_serdes.codecs.avro_codec`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace.errors import SerializationError

__all__ = ["MAX_DECIMAL_BYTES", "MAX_DEPTH", "MAX_EMPTY_ITEMS", "MAX_VALUES_PER_BYTE", "check_nesting",
           "payload_check", "too_deep"]

MAX_DEPTH = 500
"""Levels that values, and schemas, may nest; threads of small stacks stand no more."""
MAX_EMPTY_ITEMS = 10_000
"""Items without bytes that the arrays of a message may have in all."""
MAX_DECIMAL_BYTES = 1024
"""Bytes that a decimal may take: 2,466 digits."""
MAX_VALUES_PER_BYTE = 100
"""Values that a message may have for each of its bytes, beside the first `MAX_EMPTY_ITEMS`."""
_WIDTHS = {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1, "enum": 1,
           "union": 1, "array": 1, "map": 1}
"""Bytes that a value of a type takes at least; what is longer is counted by `_Walk`."""
_LONGEST_VARINT = 10
_SMALLEST_LONG = -(1 << 63)


def check_nesting(schema: object) -> None:
    """Refuse a JSON value that nests deeper than parsers stand.

    Args:
        schema: as `json.loads` gives it.

    Raises:
        SerializationError: it nests deeper than `MAX_DEPTH`.
    """
    level, depth = [schema], 0
    while level:
        if depth > MAX_DEPTH:
            raise too_deep("parts of a schema")
        level = [child for each in level if isinstance(each, dict | list)
                 for child in (each.values() if isinstance(each, dict) else each)]
        depth += 1


def payload_check(schema: object, names: Mapping[str, Any]) -> Callable[[bytes], None] | None:
    """What must be checked of a message before it is read.

    Args:
        schema: that it was written with, parsed.
        names: the named types in it.

    Returns:
        A function that raises `SerializationError`, or None if the schema bounds its values by itself.

    Raises:
        SerializationError: the schema nests deeper than `MAX_DEPTH`, or a type contains itself without an end.
    """
    shape = _Shape(names)
    try:
        shape.visit(schema)
    except RecursionError:
        raise too_deep("values of the schema") from None
    if not (shape.recursive or shape.empty_items or shape.dense or shape.decimals):
        return None
    walk = _Walk(names)
    if shape.empty_items or shape.dense:
        return lambda payload: walk.over(schema, payload)
    harmless = MAX_DECIMAL_BYTES
    if shape.recursive:  # what is behind one byte holds each type once at most
        harmless = min(harmless, MAX_DEPTH // shape.types)
    return lambda payload: walk.over(schema, payload) if len(payload) > harmless else None


def too_deep(what: str) -> SerializationError:
    """The error of what nests too deep."""
    return SerializationError(f"{what} nest deeper than {MAX_DEPTH} levels")


class _Size(NamedTuple):
    """What values of a type take at least and at most, recursion left out.

    Args:
        least: bytes.
        height: levels that they nest.
        values: that they are in all; behind a branch, a key or a length others begin.
    """

    least: int
    height: int
    values: int


class _Shape:
    """What a schema says about sizes and depths.

    Attributes:
        recursive: a type contains itself.
        empty_items: of an array need no bytes.
        dense: values of a type may be many for each byte.
        decimals: there are some of any length.
        types: how many were looked at.
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._sizes: dict[str, _Size] = {}
        self._open: list[str] = []
        self._since_a_byte = 0
        """Which of the open types begin at the same byte as the one that is looked at."""
        self.recursive = False
        self.empty_items = False
        self.dense = False
        self.decimals = False
        self.types = 0

    def visit(self, schema: object) -> _Size:
        """The size of a type."""
        self.types += 1
        found = self._of_name(schema) if isinstance(schema, str) else self._of_type(schema)
        if found.height > MAX_DEPTH:
            raise too_deep("values of the schema")
        self.dense |= found.values > MAX_VALUES_PER_BYTE * max(found.least, 1)
        return found

    def _behind_a_byte(self, schema: object) -> _Size:
        """As `visit`, of a part that has a byte before it."""
        outer, self._since_a_byte = self._since_a_byte, len(self._open)
        found = self.visit(schema)
        self._since_a_byte = outer
        return found

    def _of_name(self, name: str) -> _Size:
        if name not in self._names:
            return _Size(_WIDTHS.get(name, 0), 1, 1)
        if name in self._open:
            if self._open.index(name) >= self._since_a_byte:
                raise SerializationError(f"type {name} contains itself without an end")
            self.recursive = True
            return _Size(0, 1, 1)  # not known yet; messages are gone over
        return self._of_type(self._names[name])

    def _of_type(self, schema: Any) -> _Size:
        if isinstance(schema, list):
            return _Size(1, 1 + max((self._behind_a_byte(branch).height for branch in schema), default=0), 1)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.visit(kind)
        if schema.get("logicalType") == "decimal":
            self._decimal(schema)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(kind, schema)
        if kind in ("array", "map"):
            item = self._behind_a_byte(schema["items" if kind == "array" else "values"])
            self.empty_items |= kind == "array" and item.least == 0
            return _Size(1, 1 + item.height, 1)
        return self.visit(kind)

    def _decimal(self, schema: Mapping[str, Any]) -> None:
        self.decimals |= schema["type"] == "bytes"
        if schema["type"] == "fixed" and _fixed_size(schema) > MAX_DECIMAL_BYTES:
            raise SerializationError(f"decimals of {schema['size']} bytes: {MAX_DECIMAL_BYTES} are the most")

    def _named(self, kind: str, schema: Mapping[str, Any]) -> _Size:
        name = schema["name"]
        known = self._sizes.get(name)
        if known is None:
            known = self._sizes[name] = self._of_record(schema) if kind in ("record", "error") else _Size(
                _fixed_size(schema) if kind == "fixed" else 1, 1, 1)
        return known

    def _of_record(self, schema: Mapping[str, Any]) -> _Size:
        self._open.append(schema["name"])
        fields = [self.visit(field["type"]) for field in schema["fields"]]
        self._open.pop()
        return _Size(sum(each.least for each in fields), 1 + max((each.height for each in fields), default=0),
                     1 + sum(each.values for each in fields))


class _Walk:
    """Goes over bytes as a reader would, without calling itself."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._sizes: dict[int, _Size] = {}

    def over(self, schema: object, payload: bytes) -> None:
        """Check a message.

        Raises:
            SerializationError: it nests too deep, has too many values for its bytes, or ends too early.
        """
        place, empty, depth = 0, 0, 0
        left = MAX_EMPTY_ITEMS + MAX_VALUES_PER_BYTE * len(payload)
        waiting: list[tuple[Any, int]] = [(schema, 1)]
        while waiting:
            schema, depth = waiting.pop()
            if depth > MAX_DEPTH:
                raise too_deep("values of the message")
            left -= 1
            if left < 0:
                raise SerializationError(f"the message has more than {MAX_VALUES_PER_BYTE} values for each of its "
                                         f"{len(payload)} bytes")
            if isinstance(schema, _Block):
                place, empty = self._block(schema, depth, payload, place, empty, waiting)
            else:
                place = self._value(self._resolved(schema), depth, payload, place, waiting)
            if place > len(payload):
                raise SerializationError("the message ends within a value")

    def _resolved(self, schema: Any) -> Any:
        while isinstance(schema, str) and schema in self._names:
            schema = self._names[schema]
        while isinstance(schema, dict) and (isinstance(schema["type"], dict | list) or schema["type"] in self._names):
            schema = schema["type"] if not isinstance(schema["type"], str) else self._names[schema["type"]]
        return schema

    def _value(self, schema: Any, depth: int, payload: bytes, place: int, waiting: list[tuple[Any, int]]) -> int:
        kind = schema if isinstance(schema, str) else "union" if isinstance(schema, list) else schema["type"]
        if kind in ("record", "error"):
            waiting.extend((field["type"], depth + 1) for field in reversed(schema["fields"]))
            return place
        if kind in ("array", "map"):
            waiting.append((_Block(schema["items" if kind == "array" else "values"], kind == "map"), depth + 1))
            return place
        if kind == "fixed":
            return place + int(schema["size"])
        if kind in ("null", "boolean", "float", "double"):
            return place + _WIDTHS[kind]
        number, place = _number(payload, place)
        if kind == "union":
            if not 0 <= number < len(schema):
                raise SerializationError(f"the message names branch {number} of a union of {len(schema)}")
            waiting.append((schema[number], depth + 1))
        elif kind in ("bytes", "string"):
            if number < 0:
                raise SerializationError(f"the message has a length of {number}")
            if number > MAX_DECIMAL_BYTES and isinstance(schema, dict) and schema.get("logicalType") == "decimal":
                raise SerializationError(f"a decimal of {number} bytes: {MAX_DECIMAL_BYTES} are the most")
            place += number
        return place

    def _block(
        self, block: _Block, depth: int, payload: bytes, place: int, empty: int, waiting: list[tuple[Any, int]]
    ) -> tuple[int, int]:
        """One item of an array or a map, or the length of its next block."""
        if block.left == 0:
            block.left, place = _number(payload, place)
            if block.left == 0:
                return place, empty
            if block.left < 0:
                if block.left == _SMALLEST_LONG:
                    raise SerializationError("the message has a block of no possible length")
                block.left = -block.left
                _, place = _number(payload, place)
            item = self._size(block.items)
            if not block.keys and item.least == 0:
                empty += block.left * (1 + item.values // MAX_VALUES_PER_BYTE)
                block.left = 0
                if empty > MAX_EMPTY_ITEMS:
                    raise SerializationError(f"the message has more than {MAX_EMPTY_ITEMS} array items without bytes")
                waiting.append((block, depth))
                return place, empty
        block.left -= 1
        waiting.append((block, depth))
        waiting.append((block.items, depth))
        if block.keys:
            waiting.append(("string", depth))
        return place, empty

    def _size(self, items: Any) -> _Size:
        known = self._sizes.get(id(items))
        if known is None:
            known = self._sizes[id(items)] = _Shape(self._names).visit(items)
        return known


class _Block:
    """Where a walk is in an array or a map."""

    __slots__ = ("items", "keys", "left")

    def __init__(self, items: Any, keys: bool) -> None:
        self.items = items
        self.keys = keys
        self.left = 0


def _fixed_size(schema: Mapping[str, Any]) -> int:
    size = schema["size"]
    if type(size) is not int or size < 0:
        raise SerializationError(f"{schema['name']} has a size of {size!r:.40}: it can be a number from 0 on")
    return size


def _number(payload: bytes, place: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = 0
    for index, byte in enumerate(payload[place:place + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte <= 0x7F:
            return (value >> 1) ^ -(value & 1), place + index + 1
    raise SerializationError("the message ends within a number, or has one of more than ten bytes")
