"""How columns become Avro's bytes: a program of small steps, made once for a schema and the type of the columns.

Columns are matched with fields by name and cast to what the schema needs, where no value can change. A field without a
column takes its default, or null. The program is run by `schemas.columns.avro.avro_plain_encoder` or by the native
module.
Read next: `schemas.columns.avro.avro_plain_encoder`, which says what each step does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from headrace.errors import SerializationError
from headrace.schemas.avro_types import ABSENT, AvroField, AvroType
from headrace.schemas.columns.avro.avro_default_bytes import default_bytes, number_bytes
from headrace.schemas.columns.avro.avro_shapes import ColumnKind, ColumnShape, logical_of

if TYPE_CHECKING:
    import pyarrow

__all__ = ["EncodeProgram", "WriteStep", "WriteVerb", "writing_of"]


class WriteVerb(IntEnum):
    """What a step does; the numbers are those of the native module."""

    CONSTANT = 0
    BOOL = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    FIXED = 7
    ENUM = 8
    DECIMAL = 9
    RECORD = 10
    ARRAY = 11
    MAP = 12
    UNION = 13
    MEMBERS = 14


@dataclass(frozen=True, slots=True)
class WriteStep:
    """One step.

    Attributes:
        verb: what to do.
        column: number of the column whose value is written.
        a: a size, a divisor, the place of a constant, or the number of the union's branch that is null (-1: none).
        b: the number of the union's branch that is written.
        steps: numbers of other steps, or of constants for `ENUM`; for `MEMBERS` each with its branch behind it.
        place: path in the schema, for errors.
    """

    verb: WriteVerb
    column: int = -1
    a: int = 0
    b: int = 0
    steps: tuple[int, ...] = ()
    place: str = ""


@dataclass(slots=True)
class EncodeProgram:
    """What to do for each row.

    Attributes:
        steps: by number.
        constants: bytes that steps refer to: symbols and defaults.
        root: number of the first step.
        columns: of the schema, as many as have one that is given.
    """

    steps: list[WriteStep] = field(default_factory=list)
    constants: list[bytes] = field(default_factory=list)
    root: int = 0
    columns: int = 0


def writing_of(avro: AvroType, shape: ColumnShape, given: pyarrow.DataType) -> EncodeProgram:
    """The program that writes columns of a type.

    Args:
        avro: the schema.
        shape: its columns.
        given: the type of the columns that are there.

    Raises:
        SerializationError: the columns do not fit the schema; the text names the field.
    """
    maker = _Maker(EncodeProgram(columns=len(shape.walk())))
    maker.program.root = maker.of(avro, shape, given, "")
    return maker.program


class _Maker:
    """Adds steps, those within a step before it."""

    def __init__(self, program: EncodeProgram) -> None:
        self.program = program

    def add(self, step: WriteStep) -> int:
        self.program.steps.append(step)
        return len(self.program.steps) - 1

    def constant(self, value: bytes) -> int:
        self.program.constants.append(value)
        return len(self.program.constants) - 1

    def of(self, avro: AvroType, shape: ColumnShape, given: pyarrow.DataType, place: str) -> int:
        """The step that writes a column as a type."""
        if avro.kind == "union":
            return self._union(avro, shape, given, place)
        if avro.kind == "null":
            return self.add(WriteStep(WriteVerb.CONSTANT, a=self.constant(b""), place=place))
        if avro.kind == "record":
            return self._record(avro, shape, given, place)
        _check(shape, given, place)
        if avro.kind in ("array", "map"):
            return self._items(avro, shape, given, place)
        return self._value(avro, shape, place)

    def _value(self, avro: AvroType, shape: ColumnShape, place: str) -> int:
        column = shape.number
        if avro.kind == "enum":
            symbols = tuple(self.constant(each.encode()) for each in avro.symbols)
            return self.add(WriteStep(WriteVerb.ENUM, column, steps=symbols, place=place))
        if shape.kind == ColumnKind.DECIMAL:
            return self.add(WriteStep(WriteVerb.DECIMAL, column, avro.size if avro.kind == "fixed" else -1,
                                      place=place))
        if avro.kind == "fixed":
            return self.add(WriteStep(WriteVerb.FIXED, column, avro.size, place=place))
        divisor = 1000 if logical_of(avro).endswith(("timestamp-millis", "time-micros")) else 1
        return self.add(WriteStep(_VERBS[shape.kind], column, divisor, place=place))

    def _items(self, avro: AvroType, shape: ColumnShape, given: pyarrow.DataType, place: str) -> int:
        if avro.kind == "array":
            item = self.of(avro.branches[0], shape.children[0], given.value_type, f"{place}[]")
            return self.add(WriteStep(WriteVerb.ARRAY, shape.number, steps=(item,), place=place))
        keys, values = shape.children
        _check(keys, given.key_type, f"{place}[]")
        key = self.add(WriteStep(WriteVerb.BYTES, keys.number, place=f"{place}[]"))
        value = self.of(avro.branches[0], values, given.item_type, f"{place}[]")
        return self.add(WriteStep(WriteVerb.MAP, shape.number, steps=(key, value), place=place))

    def _record(self, avro: AvroType, shape: ColumnShape, given: pyarrow.DataType, place: str) -> int:
        _check(shape, given, place)
        names = {each.name for each in given}
        unknown = sorted(names - {each.name for each in avro.fields})
        if unknown:
            raise SerializationError(f"at {place or '/'}: the schema's record {avro.name} has no field "
                                     f"{', '.join(unknown)}: drop it, or give another schema")
        steps = []
        for each, column in zip(avro.fields, shape.children, strict=True):
            at = f"{place}/{each.name}"
            if each.name in names:
                steps.append(self.of(each.type, column, given.field(each.name).type, at))
            else:
                steps.append(self._absent(each, at))
        return self.add(WriteStep(WriteVerb.RECORD, shape.number, steps=tuple(steps), place=place))

    def _absent(self, missing: AvroField, place: str) -> int:
        if missing.default is not ABSENT:
            made = default_bytes(missing.type, missing.default)
        else:
            null = _null_branch(missing.type)
            if null < 0:
                raise SerializationError(f"at {place}: the schema's field has no column, and no default")
            made = number_bytes(null)
        return self.add(WriteStep(WriteVerb.CONSTANT, a=self.constant(made), place=place))

    def _union(self, avro: AvroType, shape: ColumnShape, given: pyarrow.DataType, place: str) -> int:
        import pyarrow

        null = _null_branch(avro)
        if shape.is_union:
            return self._members(avro, shape, given, null, place)
        if shape.kind == ColumnKind.NULL or pyarrow.types.is_null(given):
            if null < 0:
                raise SerializationError(f"at {place or '/'}: a column without values, and the schema takes no null")
            return self.add(WriteStep(WriteVerb.CONSTANT, a=self.constant(number_bytes(null)), place=place))
        # Of int and long, and of float and double, the column has the wider one's type.
        branch = max((each for each in avro.branches if each.kind != "null"),
                     key=lambda each: each.kind in ("long", "double"))
        inner = self.of(branch, shape, given, place)
        return self.add(WriteStep(WriteVerb.UNION, shape.number, null, avro.branches.index(branch), (inner,), place))

    def _members(self, avro: AvroType, shape: ColumnShape, given: pyarrow.DataType, null: int, place: str) -> int:
        _check(shape, given, place)
        branches = [each for each in avro.branches if each.kind != "null"]
        names = {each.name for each in given}
        steps: list[int] = []
        for index, (branch, column) in enumerate(zip(branches, shape.children, strict=True)):
            name = f"member{index}"
            if name in names:
                steps += (self.of(branch, column, given.field(name).type, f"{place}/{name}"),
                          avro.branches.index(branch))
        if len(steps) < 2 * len(names):
            raise SerializationError(f"at {place or '/'}: a union of {len(branches)} types is a struct of member0 to "
                                     f"member{len(branches) - 1}, and there are {', '.join(sorted(names))}")
        return self.add(WriteStep(WriteVerb.MEMBERS, shape.number, null, steps=tuple(steps), place=place))


_VERBS: Final = {
    ColumnKind.BOOL: WriteVerb.BOOL, ColumnKind.INT: WriteVerb.INT, ColumnKind.LONG: WriteVerb.LONG,
    ColumnKind.FLOAT: WriteVerb.FLOAT, ColumnKind.DOUBLE: WriteVerb.DOUBLE, ColumnKind.BYTES: WriteVerb.BYTES,
}


def _null_branch(avro: AvroType) -> int:
    kinds = [each.kind for each in avro.branches] if avro.kind == "union" else []
    return kinds.index("null") if "null" in kinds else -1


def _check(shape: ColumnShape, given: pyarrow.DataType, place: str) -> None:
    if not _fits(shape, given):
        raise SerializationError(f"at {place or '/'}: a column of type {given} cannot be written as "
                                 f"{_said(shape)}: cast it")


def _said(shape: ColumnShape) -> str:
    return "a union" if shape.is_union else str(shape.data_type) if not shape.children else shape.kind.name.lower()


def _fits(shape: ColumnShape, given: pyarrow.DataType) -> bool:
    """Whether a column can be cast to another, if each value has a place there."""
    import pyarrow.types as kinds

    wanted = shape.data_type
    if kinds.is_null(given):
        return not shape.children
    if shape.kind == ColumnKind.STRUCT:
        return bool(kinds.is_struct(given))
    if shape.kind == ColumnKind.LIST:
        return bool(kinds.is_list(given) or kinds.is_large_list(given) or kinds.is_fixed_size_list(given))
    if shape.kind == ColumnKind.MAP:
        return bool(kinds.is_map(given))
    if kinds.is_dictionary(given):
        return _fits(shape, given.value_type)
    if kinds.is_timestamp(wanted):
        return bool(kinds.is_timestamp(given) and (given.tz is None) == (wanted.tz is None))
    if kinds.is_integer(wanted):
        return bool(kinds.is_integer(given))
    if kinds.is_floating(wanted):
        return bool(kinds.is_floating(given) or (kinds.is_integer(given) and given.bit_width <= wanted.bit_width // 2))
    if kinds.is_decimal(wanted):
        return bool(kinds.is_decimal(given))
    texts = kinds.is_string(given) or kinds.is_large_string(given) or kinds.is_string_view(given)
    if kinds.is_string(wanted):
        return bool(texts)
    if kinds.is_binary(wanted):
        return bool(texts or kinds.is_binary(given) or kinds.is_large_binary(given) or kinds.is_binary_view(given)
                    or kinds.is_fixed_size_binary(given))
    return bool(given == wanted)
