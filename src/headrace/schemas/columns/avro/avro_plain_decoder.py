"""Runs a decoding program for each payload, in plain Python: the twin of the native decoder, and what it must do.

Every read is checked against the end of the payload, items are counted before they are read, and nesting is limited, so
that any bytes are read or refused within bounds. Read next: `schemas.columns.avro_columns`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from headrace.schemas.columns.avro.avro_flaws import MAX_DEPTH, MAX_EMPTY_ITEMS, Flaw
from headrace.schemas.columns.avro.avro_resolution import DecodeProgram, ReadStep, ReadVerb
from headrace.schemas.columns.avro.avro_shapes import ColumnKind, ColumnShape

if TYPE_CHECKING:
    import pyarrow

__all__ = ["PlainDecoder"]

_LONGEST_VARINT: Final = 10
_LONG: Final = 1 << 63
_DAY_US: Final = 86_400_000_000
_EXACT: Final = Context(prec=40)


class _BadError(Exception):
    """A payload that cannot be read: the trouble; `_Reading.step` has found it."""


class PlainDecoder:
    """Reads payloads by a program.

    Args:
        program: what to do.
    """

    def __init__(self, program: DecodeProgram) -> None:
        self._program = program
        self._columns = program.shape.walk()

    def decode(self, payloads: pyarrow.BinaryArray) -> tuple[pyarrow.Array, list[tuple[int, int, int]]]:
        """Read a column.

        Args:
            payloads: bytes; null stays null.

        Returns:
            The values, and for each row that could not be read the row, the `Flaw` and the number of the step.
        """
        import pyarrow

        values, bad = [], []
        for row, payload in enumerate(payloads.to_pylist()):
            value = None
            if payload is not None:
                reading = _Reading(self._program, self._columns, payload)
                try:
                    value = reading.run(self._program.root, 0)
                except _BadError as error:
                    bad.append((row, error.args[0], reading.step))
            values.append(value)
        return pyarrow.array(values, self._program.shape.data_type), bad


class _Reading:
    """One payload, as far as it is read."""

    def __init__(self, program: DecodeProgram, columns: list[ColumnShape], payload: bytes) -> None:
        self._program = program
        self._columns = columns
        self._payload = payload
        self._at = 0
        self._empty = 0
        self.step = 0
        """The step that was begun last."""

    def run(self, number: int, depth: int) -> Any:
        """Carry a step out. Returns the value for its column."""
        self.step = number
        if depth > MAX_DEPTH:
            raise _BadError(Flaw.DEPTH)
        step = self._program.steps[number]
        return _VERBS[step.verb](self, step, number, depth)

    def _nothing(self, step: ReadStep, number: int, depth: int) -> None:
        return None

    def _boolean(self, step: ReadStep, number: int, depth: int) -> bool:
        byte = self._taken(1)[0]
        if byte > 1:
            raise _BadError(Flaw.BOOLEAN)
        return byte == 1

    def _number(self, step: ReadStep, number: int, depth: int) -> int | float:
        value = self._varint()
        if step.b == 1 and not -(1 << 31) <= value < 1 << 31:
            raise _BadError(Flaw.INT_RANGE)
        if step.b == 2 and not 0 <= value < _DAY_US:
            raise _BadError(Flaw.TIME)
        if step.a != 1:
            value *= step.a
            if not -_LONG <= value < _LONG:
                raise _BadError(Flaw.TIMESTAMP)
        return float(value) if self._columns[step.column].kind in (ColumnKind.FLOAT, ColumnKind.DOUBLE) else value

    def _floating(self, step: ReadStep, number: int, depth: int) -> Any:
        layout = "<f" if step.verb == ReadVerb.FLOAT else "<d"
        return struct.unpack(layout, self._taken(struct.calcsize(layout)))[0]

    def _bytes(self, step: ReadStep, number: int, depth: int) -> str | bytes:
        raw = self._sized()
        if not step.b:
            return raw
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise _BadError(Flaw.UTF8) from None

    def _fixed(self, step: ReadStep, number: int, depth: int) -> bytes:
        return self._taken(step.a)

    def _enum(self, step: ReadStep, number: int, depth: int) -> str:
        index = self._varint()
        if not 0 <= index < len(step.steps) or step.steps[index] < 0:
            raise _BadError(Flaw.SYMBOL)
        return self._program.constants[step.steps[index]].decode()

    def _decimal(self, step: ReadStep, number: int, depth: int) -> Decimal:
        raw = self._sized() if step.b < 0 else self._taken(step.b)
        value = int.from_bytes(raw, "big", signed=True)
        if abs(value) >= 10 ** step.a:
            raise _BadError(Flaw.DIGITS)
        return Decimal(value).scaleb(-self._columns[step.column].data_type.scale, _EXACT)

    def _record(self, step: ReadStep, number: int, depth: int) -> dict[str, Any]:
        steps, found = self._program.steps, {}
        for each in step.steps:
            value = self.run(each, depth + 1)
            if steps[each].column >= 0:
                found[steps[each].column] = value
        if step.column < 0:
            return {}
        shape = self._columns[step.column]
        return {of.name: found[child.number] for of, child in zip(shape.data_type, shape.children, strict=True)}

    def _items(self, step: ReadStep, number: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while count := self._block(step, number):
            for _ in range(count):
                given = [self.run(each, depth + 1) for each in step.steps]
                found.append(given[0] if step.verb == ReadVerb.ARRAY else tuple(given))
        return found

    def _block(self, step: ReadStep, number: int) -> int:
        """The items of the next block."""
        self.step = number
        count = self._varint()
        if count < 0:
            if count == -_LONG:
                raise _BadError(Flaw.NEGATIVE)
            count = -count
            self._varint()
        if step.b:
            possible = count <= (len(self._payload) - self._at) // step.b
        else:
            possible = count <= MAX_EMPTY_ITEMS - self._empty
            self._empty += count
        if not possible:
            raise _BadError(Flaw.ITEMS)
        return count

    def _union(self, step: ReadStep, number: int, depth: int) -> Any:
        index = self._varint()
        if not 0 <= index < len(step.steps):
            raise _BadError(Flaw.BRANCH)
        return self.run(step.steps[index], depth + 1)

    def _member(self, step: ReadStep, number: int, depth: int) -> dict[str, Any]:
        return {f"member{step.a}": self.run(step.steps[0], depth + 1)}

    def _default(self, step: ReadStep, number: int, depth: int) -> Any:
        outer = self._payload, self._at
        self._payload, self._at = self._program.constants[step.a], 0
        value = self.run(step.steps[0], depth + 1)
        self._payload, self._at = outer
        return value

    def _fail(self, step: ReadStep, number: int, depth: int) -> None:
        raise _BadError(Flaw.MISMATCH)

    def _skip_number(self, step: ReadStep, number: int, depth: int) -> None:
        self._varint()

    def _skip_bytes(self, step: ReadStep, number: int, depth: int) -> None:
        self._sized()

    def _varint(self) -> int:
        value = 0
        for index in range(_LONGEST_VARINT):
            if self._at >= len(self._payload):
                raise _BadError(Flaw.ENDS)
            byte = self._payload[self._at]
            self._at += 1
            if index == _LONGEST_VARINT - 1 and byte > 1:
                raise _BadError(Flaw.LONG_NUMBER)
            value |= (byte & 0x7F) << (7 * index)
            if byte <= 0x7F:
                break
        return (value >> 1) ^ -(value & 1)

    def _sized(self) -> bytes:
        size = self._varint()
        if size < 0:
            raise _BadError(Flaw.NEGATIVE)
        return self._taken(size)

    def _taken(self, size: int) -> bytes:
        if size > len(self._payload) - self._at:
            raise _BadError(Flaw.ENDS)
        self._at += size
        return self._payload[self._at - size:self._at]


_VERBS: Final[dict[ReadVerb, Callable[[_Reading, ReadStep, int, int], Any]]] = {
    ReadVerb.NOTHING: _Reading._nothing, ReadVerb.NULL: _Reading._nothing, ReadVerb.BOOL: _Reading._boolean,
    ReadVerb.NUMBER: _Reading._number, ReadVerb.FLOAT: _Reading._floating, ReadVerb.DOUBLE: _Reading._floating,
    ReadVerb.BYTES: _Reading._bytes, ReadVerb.FIXED: _Reading._fixed, ReadVerb.ENUM: _Reading._enum,
    ReadVerb.DECIMAL: _Reading._decimal, ReadVerb.RECORD: _Reading._record, ReadVerb.ARRAY: _Reading._items,
    ReadVerb.MAP: _Reading._items, ReadVerb.UNION: _Reading._union, ReadVerb.MEMBER: _Reading._member,
    ReadVerb.DEFAULT: _Reading._default, ReadVerb.FAIL: _Reading._fail, ReadVerb.SKIP_NUMBER: _Reading._skip_number,
    ReadVerb.SKIP_FIXED: _Reading._fixed, ReadVerb.SKIP_BYTES: _Reading._skip_bytes,
}
