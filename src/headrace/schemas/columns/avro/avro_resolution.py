"""How values that were written with one Avro schema get into the columns of another: a program of small steps.

The program is made once for a pair of schemas, by the rules of Avro's schema resolution, and then run for each payload:
by `schemas.columns.avro.avro_plain_decoder`, or by the native module, which reads the same numbers. A step takes what
the writer wrote, and appends to a column or passes it over. Where the schemas do not fit, the step is `FAIL`: only
values that get there are malformed. Read next: `schemas.columns.avro.avro_plain_decoder`, which says what each step
does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from headrace.schemas.avro_types import ABSENT, AvroField, AvroType
from headrace.schemas.columns.avro.avro_default_bytes import default_bytes
from headrace.schemas.columns.avro.avro_shapes import ColumnKind, ColumnShape, decimal_of, logical_of
from headrace.schemas.parsed import InvalidSchemaError

__all__ = ["DecodeProgram", "ReadStep", "ReadVerb", "resolved"]

_MOST_STEPS: Final = 100_000
NO_COLUMN: Final = -1


class ReadVerb(IntEnum):
    """What a step does; the numbers are those of the native module."""

    NOTHING = 0
    NULL = 1
    BOOL = 2
    NUMBER = 3
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
    MEMBER = 14
    DEFAULT = 15
    FAIL = 16
    SKIP_NUMBER = 17
    SKIP_FIXED = 18
    SKIP_BYTES = 19


@dataclass(frozen=True, slots=True)
class ReadStep:
    """One step.

    Attributes:
        verb: what to do.
        column: number of the column to append to; `NO_COLUMN` to pass over what is read.
        a: a size, a factor, a precision, the place of a constant, or the number of a member; see the decoder.
        b: a second number: whether 32 bits (1) or a day (2) are the limit, whether text must be UTF-8, the least bytes
            of an item.
        steps: numbers of other steps, or of constants for `ENUM`.
        place: path in the writer's schema, for errors.
    """

    verb: ReadVerb
    column: int = NO_COLUMN
    a: int = 0
    b: int = 0
    steps: tuple[int, ...] = ()
    place: str = ""


@dataclass(slots=True)
class DecodeProgram:
    """What to do for each payload.

    Attributes:
        shape: the columns.
        steps: by number.
        constants: bytes that steps refer to: symbols, defaults and texts of errors.
        root: number of the first step.
    """

    shape: ColumnShape
    steps: list[ReadStep] = field(default_factory=list)
    constants: list[bytes] = field(default_factory=list)
    root: int = 0


class _MismatchError(Exception):
    """Why a type cannot be read as another."""


def resolved(writer: AvroType, reader: AvroType, shape: ColumnShape) -> DecodeProgram:
    """The program that reads what was written with one schema into the columns of another.

    Args:
        writer: the schema of the payloads.
        reader: the schema of the columns.
        shape: the reader's columns.

    Raises:
        InvalidSchemaError: the program would be too long.
    """
    maker = _Maker(DecodeProgram(shape))
    maker.program.root = maker.into(writer, reader, shape, "")
    return maker.program


class _Maker:
    """Adds steps, those within a step before it."""

    def __init__(self, program: DecodeProgram) -> None:
        self.program = program
        self._skips: dict[int, int] = {}
        self._least: dict[int, int] = {}

    def add(self, step: ReadStep) -> int:
        if len(self.program.steps) >= _MOST_STEPS:
            raise InvalidSchemaError(f"reading with these schemas takes more than {_MOST_STEPS:,} steps")
        self.program.steps.append(step)
        return len(self.program.steps) - 1

    def constant(self, value: bytes) -> int:
        self.program.constants.append(value)
        return len(self.program.constants) - 1

    def into(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        """The step that reads a writer's value into a reader's column."""
        if writer.kind == "union":
            branches = [self.into(each, reader, column, place) for each in writer.branches]
            return self.add(ReadStep(ReadVerb.UNION, column.number, steps=tuple(branches), place=place))
        try:
            if reader.kind == "union":
                return self._branch(writer, reader, column, place)
            return self._single(writer, reader, column, place)
        except _MismatchError as error:
            return self.add(ReadStep(ReadVerb.FAIL, a=self.constant(str(error).encode()), place=place))

    def _branch(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        chosen = _chosen(writer, reader)
        if chosen.kind == "null":
            return self.add(ReadStep(ReadVerb.NULL, column.number, place=place))
        if not column.is_union:
            return self._single(writer, chosen, column, place)
        member = [each for each in reader.branches if each.kind != "null"].index(chosen)
        inner = self._single(writer, chosen, column.children[member], place)
        return self.add(ReadStep(ReadVerb.MEMBER, column.number, a=member, steps=(inner,), place=place))

    def _single(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        why = _mismatch(writer, reader)
        if why:
            raise _MismatchError(why)
        return _MAKERS[reader.kind](self, writer, reader, column, place)

    def _null(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        return self.add(ReadStep(ReadVerb.NULL, column.number, place=place))

    def _boolean(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        return self.add(ReadStep(ReadVerb.BOOL, column.number, place=place))

    def _number(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        if writer.kind in ("int", "long"):
            factor = _factor(writer, reader) if column.kind == ColumnKind.LONG else 1
            bound = _TIME_OF_DAY if logical_of(reader) == "time-micros" and factor == 1000 else writer.kind == "int"
            return self.add(ReadStep(ReadVerb.NUMBER, column.number, factor, bound, place=place))
        return self.add(ReadStep(ReadVerb.FLOAT if writer.kind == "float" else ReadVerb.DOUBLE, column.number,
                                 place=place))

    def _bytes(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        if column.kind == ColumnKind.DECIMAL:
            return self._decimal(writer, reader, column, place)
        return self.add(ReadStep(ReadVerb.BYTES, column.number, b=reader.kind == "string", place=place))

    def _fixed(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        if column.kind == ColumnKind.DECIMAL:
            return self._decimal(writer, reader, column, place)
        return self.add(ReadStep(ReadVerb.FIXED, column.number, writer.size, place=place))

    def _decimal(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        wanted, written = decimal_of(reader), decimal_of(writer)
        assert wanted is not None
        if written is not None and written[1] != wanted[1]:
            raise _MismatchError(f"a decimal of scale {written[1]} cannot be read as one of scale {wanted[1]}")
        size = writer.size if writer.kind == "fixed" else -1
        return self.add(ReadStep(ReadVerb.DECIMAL, column.number, wanted[0], size, place=place))

    def _enum(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        known = {symbol: self.constant(symbol.encode()) for symbol in reader.symbols}
        other = known[reader.default] if reader.default is not None else -1
        return self.add(ReadStep(ReadVerb.ENUM, column.number, steps=tuple(known.get(each,
                                 other) for each in writer.symbols),
                             place=place))

    def _array(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        item = self.into(writer.branches[0], reader.branches[0], column.children[0], f"{place}[]")
        return self.add(ReadStep(ReadVerb.ARRAY, column.number, b=self._least_of(writer.branches[0]), steps=(item,),
                             place=place))

    def _map(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        key = self.add(ReadStep(ReadVerb.BYTES, column.children[0].number, b=1, place=f"{place}[]"))
        value = self.into(writer.branches[0], reader.branches[0], column.children[1], f"{place}[]")
        least = 1 + self._least_of(writer.branches[0])
        return self.add(ReadStep(ReadVerb.MAP, column.number, b=least, steps=(key, value), place=place))

    def _record(self, writer: AvroType, reader: AvroType, column: ColumnShape, place: str) -> int:
        wanted = {each.name: index for index, each in enumerate(reader.fields)}
        taken = _taken_fields(writer, reader)
        steps = []
        for each in writer.fields:
            name, at = taken.get(each.name), f"{place}/{each.name}"
            if name is None:
                steps.append(self.passed_over(each.type, at))
            else:
                index = wanted.pop(name)
                steps.append(self.into(each.type, reader.fields[index].type, column.children[index], at))
        steps += [self._default(reader.fields[index], column.children[index], place) for index in wanted.values()]
        return self.add(ReadStep(ReadVerb.RECORD, column.number, steps=tuple(steps), place=place))

    def _default(self, wanted: AvroField, column: ColumnShape, place: str) -> int:
        if wanted.default is ABSENT:
            raise _MismatchError(f"field {wanted.name} of the reader was not written, and has no default")
        given = default_bytes(wanted.type, wanted.default)
        at = f"{place}/{wanted.name} (default)"
        inner = self.into(wanted.type, wanted.type, column, at)
        return self.add(ReadStep(ReadVerb.DEFAULT, column.number, a=self.constant(given), steps=(inner,), place=at))

    def passed_over(self, avro: AvroType, place: str) -> int:
        """The step that reads a value and keeps nothing of it. A type that contains itself has a step that does."""
        known = self._skips.get(id(avro))
        if known is not None:
            return known
        simple = _SKIPS.get(avro.kind)
        if simple is not None:
            step = ReadStep(simple, a=avro.size or _WIDTHS.get(avro.kind, 0), place=place)
            return self._skips.setdefault(id(avro), self.add(step))
        number = self._skips[id(avro)] = self.add(ReadStep(ReadVerb.NOTHING))
        if avro.kind == "record":
            inner = tuple(self.passed_over(each.type, f"{place}/{each.name}") for each in avro.fields)
            step = ReadStep(ReadVerb.RECORD, steps=inner, place=place)
        elif avro.kind == "union":
            step = ReadStep(ReadVerb.UNION, steps=tuple(self.passed_over(each, place) for each in avro.branches),
                            place=place)
        else:
            step = self._skipped_items(avro, place)
        self.program.steps[number] = step
        return number

    def _skipped_items(self, avro: AvroType, place: str) -> ReadStep:
        least, item = self._least_of(avro.branches[0]), self.passed_over(avro.branches[0], f"{place}[]")
        if avro.kind == "array":
            return ReadStep(ReadVerb.ARRAY, b=least, steps=(item,), place=place)
        key = self.add(ReadStep(ReadVerb.SKIP_BYTES, place=f"{place}[]"))
        return ReadStep(ReadVerb.MAP, b=1 + least, steps=(key, item), place=place)

    def _least_of(self, avro: AvroType) -> int:
        """Bytes that a value takes at least; of a type that contains itself perhaps fewer."""
        if avro.kind == "fixed":
            return avro.size
        if avro.kind != "record":
            return 0 if avro.kind == "null" else _WIDTHS.get(avro.kind, 1)
        if id(avro) not in self._least:
            self._least[id(avro)] = 0
            self._least[id(avro)] = min(sum(self._least_of(each.type) for each in avro.fields), 1 << 31)
        return self._least[id(avro)]


_TIME_OF_DAY: Final = 2
_WIDTHS: Final = {"boolean": 1, "float": 4, "double": 8}
_SKIPS: Final = {
    "null": ReadVerb.NOTHING, "boolean": ReadVerb.SKIP_FIXED, "int": ReadVerb.SKIP_NUMBER, "long": ReadVerb.SKIP_NUMBER,
    "float": ReadVerb.SKIP_FIXED, "double": ReadVerb.SKIP_FIXED, "bytes": ReadVerb.SKIP_BYTES,
    "string": ReadVerb.SKIP_BYTES,
    "fixed": ReadVerb.SKIP_FIXED, "enum": ReadVerb.SKIP_NUMBER,
}
_MAKERS: Final[dict[str, Callable[[_Maker, AvroType, AvroType, ColumnShape, str], int]]] = {
    "null": _Maker._null, "boolean": _Maker._boolean, "int": _Maker._number, "long": _Maker._number,
    "float": _Maker._number, "double": _Maker._number, "bytes": _Maker._bytes, "string": _Maker._bytes,
    "fixed": _Maker._fixed, "enum": _Maker._enum, "array": _Maker._array, "map": _Maker._map,
    "record": _Maker._record,
}
_READ_FROM: Final = {
    "long": ("int",), "float": ("int", "long"), "double": ("int", "long", "float"), "bytes": ("string",),
    "string": ("bytes",),
}
"""The writer's kinds that a reader's kind takes beside its own."""


def _mismatch(writer: AvroType, reader: AvroType) -> str:
    """Why one type cannot be read as another, as far as the types themselves say; empty when it can."""
    if writer.kind != reader.kind and writer.kind not in _READ_FROM.get(reader.kind, ()):
        return f"{_said(writer)} cannot be read as {_said(reader)}"
    if reader.name and writer.short_name != reader.short_name and writer.name not in reader.aliases:
        return f"{writer.name} cannot be read as {reader.name}: neither its name nor an alias"
    if reader.kind == "fixed" and writer.size != reader.size:
        return f"a fixed of {writer.size} bytes cannot be read as one of {reader.size}"
    return ""


def _said(avro: AvroType) -> str:
    return f"{avro.kind} {avro.name}".strip()


def _chosen(writer: AvroType, reader: AvroType) -> AvroType:
    """The branch of a reader's union: of the writer's name or kind, else one that takes its values."""
    fitting = [each for each in reader.branches if not _mismatch(writer, each)]
    same = [each for each in fitting if each.kind == writer.kind]
    named = [each for each in same if each.name == writer.name]
    for found in (named, same, fitting):
        if found:
            return found[0]
    raise _MismatchError(f"no branch of the reader's union takes {_said(writer)}")


def _taken_fields(writer: AvroType, reader: AvroType) -> dict[str, str]:
    """The reader's field for each of the writer's that it reads: by name, else by the reader's aliases."""
    written = {each.name for each in writer.fields}
    found = {each.name: each.name for each in reader.fields if each.name in written}
    for each in reader.fields:
        alias = next((name for name in each.aliases if name in written and name not in found), None)
        if each.name not in written and alias is not None:
            found[alias] = each.name
    return found


def _factor(writer: AvroType, reader: AvroType) -> int:
    """What a long is multiplied by: columns of timestamps count microseconds, those of times of day nanoseconds."""
    if logical_of(reader) == "time-micros":
        return 1000
    if not logical_of(reader).endswith(("timestamp-millis", "timestamp-micros")):
        return 1
    unit = logical_of(writer) if "timestamp" in logical_of(writer) else logical_of(reader)
    if unit.endswith("-nanos"):
        raise _MismatchError("nanoseconds cannot be read as a timestamp of microseconds")
    return 1000 if unit.endswith("-millis") else 1

