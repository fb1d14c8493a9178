"""Which Arrow columns the values of an Avro schema take: the types of Spark's `from_avro`, nullability included.

A union with null is nullable; of int and long it is long, of float and double it is double; any other union is a struct
`member0, member1, ...` of which one is set. A `ColumnShape` is one column of the tree. Read next:
`schemas.columns.avro.avro_resolution`, which says how what was written gets there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from headrace.schemas.avro_types import AvroType
from headrace.schemas.parsed import InvalidSchemaError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ColumnKind", "ColumnShape", "decimal_of", "logical_of", "shape_of"]

_MOST_COLUMNS: Final = 10_000
_MOST_DIGITS: Final = 38


class ColumnKind(IntEnum):
    """How a column lies in memory; the numbers are those of the native module."""

    NULL = 0
    BOOL = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    DECIMAL = 6
    BYTES = 7
    LIST = 8
    MAP = 9
    STRUCT = 10


@dataclass(frozen=True, slots=True, eq=False)
class ColumnShape:
    """A column of the tree.

    Attributes:
        number: its place when the tree is walked from the top, each column before those within it.
        kind: how it lies in memory.
        data_type: its Arrow type.
        nullable: whether a value may be null.
        children: of a list its items; of a map keys and values; of a struct its fields.
        is_union: a struct of a union's branches.
    """

    number: int
    kind: ColumnKind
    data_type: pyarrow.DataType
    nullable: bool
    children: tuple[ColumnShape, ...] = ()
    is_union: bool = False

    def walk(self) -> list[ColumnShape]:
        """This column and all within it, in the order of their numbers."""
        found = [self]
        for child in self.children:
            found += child.walk()
        return found


def shape_of(avro: AvroType) -> ColumnShape:
    """The columns of a schema.

    Args:
        avro: the schema that values are to have.

    Raises:
        InvalidSchemaError: a type contains itself, which a column cannot; or there would be too many columns.
    """
    return _Shapes().of(avro, "")


def logical_of(avro: AvroType) -> str:
    """The name of the logical type; empty where there is none."""
    found = avro.properties.get("logicalType")
    return found if isinstance(found, str) else ""


def decimal_of(avro: AvroType) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None for other types, and where they make no sense, as in Avro's library."""
    if avro.kind not in ("bytes", "fixed") or logical_of(avro) != "decimal":
        return None
    precision, scale = avro.properties.get("precision"), avro.properties.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or precision <= 0 or not 0 <= scale <= precision:
        return None
    if avro.kind == "fixed" and precision > len(str((1 << max(8 * avro.size - 1, 0)) - 1)) - 1:
        return None
    return precision, scale


class _Shapes:
    """Makes the tree; `place` is the path to a type, for errors."""

    def __init__(self) -> None:
        self._made = 0
        self._open: list[AvroType] = []

    def of(self, avro: AvroType, place: str, nullable: bool = False) -> ColumnShape:
        number = self._made
        self._made += 1
        if self._made > _MOST_COLUMNS:
            raise InvalidSchemaError(f"the schema has more than {_MOST_COLUMNS:,} columns")
        simple = _SIMPLE.get(avro.kind)
        if simple is not None:
            kind, data_type = simple(avro, place)
            return ColumnShape(number, kind, data_type, nullable or kind == ColumnKind.NULL)
        if avro.kind == "union":
            self._made -= 1
            return self._union(avro, place, nullable)
        if any(each is avro for each in self._open):
            raise InvalidSchemaError(f"at {place or '/'}: type {avro.name} contains itself, and a column cannot. To "
                                     "read, give a reader's schema without that field, or take the bytes as raw; to "
                                     "write, give a schema without it, or bytes as raw")
        self._open.append(avro)
        made = self._nested(avro, number, place, nullable)
        self._open.pop()
        return made

    def _nested(self, avro: AvroType, number: int, place: str, nullable: bool) -> ColumnShape:
        import pyarrow

        if avro.kind == "record":
            fields = tuple(self.of(each.type, f"{place}/{each.name}") for each in avro.fields)
            return self._struct(number, [each.name for each in avro.fields], fields, nullable, False)
        if avro.kind == "array":
            items = self.of(avro.branches[0], f"{place}[]")
            data_type = pyarrow.list_(pyarrow.field("element", items.data_type, items.nullable))
            return ColumnShape(number, ColumnKind.LIST, data_type, nullable, (items,))
        keys = ColumnShape(self._made, ColumnKind.BYTES, pyarrow.string(), False)
        self._made += 1
        values = self.of(avro.branches[0], f"{place}[]")
        data_type = pyarrow.map_(pyarrow.field("key", keys.data_type, nullable=False),
                                 pyarrow.field("value", values.data_type, values.nullable))
        return ColumnShape(number, ColumnKind.MAP, data_type, nullable, (keys, values))

    def _union(self, avro: AvroType, place: str, nullable: bool) -> ColumnShape:
        branches = [each for each in avro.branches if each.kind != "null"]
        nullable = nullable or len(branches) < len(avro.branches)
        if not branches:
            return self.of(AvroType("null"), place, nullable)
        if len(branches) == 1:
            return self.of(branches[0], place, nullable)
        kinds = {each.kind for each in branches}
        if len(branches) == 2 and kinds in ({"int", "long"}, {"float", "double"}):
            return self.of(AvroType("long" if "long" in kinds else "double"), place, nullable)
        number = self._made
        self._made += 1
        members = tuple(self.of(each, f"{place}/member{index}", True) for index, each in enumerate(branches))
        return self._struct(number, [f"member{index}" for index in range(len(members))], members, nullable, True)

    def _struct(
        self, number: int, names: list[str], fields: tuple[ColumnShape, ...], nullable: bool, is_union: bool
    ) -> ColumnShape:
        import pyarrow

        data_type = pyarrow.struct([pyarrow.field(name, each.data_type, each.nullable)
                                    for name, each in zip(names, fields, strict=True)])
        return ColumnShape(number, ColumnKind.STRUCT, data_type, nullable, fields, is_union)


def _number(avro: AvroType, place: str) -> tuple[ColumnKind, pyarrow.DataType]:
    import pyarrow

    logical = logical_of(avro)
    if avro.kind == "int":
        return ColumnKind.INT, pyarrow.date32() if logical == "date" else pyarrow.int32()
    if logical == "time-micros":
        return ColumnKind.LONG, pyarrow.time64("ns")
    zones = {"timestamp-millis": "UTC", "timestamp-micros": "UTC", "local-timestamp-millis": None,
             "local-timestamp-micros": None}
    return ColumnKind.LONG, pyarrow.timestamp("us", zones[logical]) if logical in zones else pyarrow.int64()


def _bytes(avro: AvroType, place: str) -> tuple[ColumnKind, pyarrow.DataType]:
    import pyarrow

    if avro.kind in ("string", "enum"):
        return ColumnKind.BYTES, pyarrow.string()
    decimal = decimal_of(avro)
    if decimal is None:
        return ColumnKind.BYTES, pyarrow.binary()
    if decimal[0] > _MOST_DIGITS:
        raise InvalidSchemaError(f"at {place or '/'}: a decimal of {decimal[0]} digits: {_MOST_DIGITS} are the most")
    return ColumnKind.DECIMAL, pyarrow.decimal128(*decimal)


def _plain(kind: ColumnKind, name: str) -> Callable[[AvroType, str], tuple[ColumnKind, pyarrow.DataType]]:
    def made(avro: AvroType, place: str) -> tuple[ColumnKind, pyarrow.DataType]:
        import pyarrow

        return kind, getattr(pyarrow, name)()

    return made


_SIMPLE: Final[dict[str, Callable[[AvroType, str], tuple[ColumnKind, pyarrow.DataType]]]] = {
    "null": _plain(ColumnKind.NULL, "null"), "boolean": _plain(ColumnKind.BOOL, "bool_"), "int": _number,
    "long": _number, "float": _plain(ColumnKind.FLOAT, "float32"), "double": _plain(ColumnKind.DOUBLE, "float64"),
    "bytes": _bytes, "string": _bytes, "fixed": _bytes, "enum": _bytes,
}
