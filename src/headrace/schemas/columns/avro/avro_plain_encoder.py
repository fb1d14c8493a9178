"""Runs an encoding program for each row, in plain Python: the twin of the native encoder, and what it must do.

Read next: `schemas.columns.avro_columns`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from headrace.schemas.columns.avro.avro_default_bytes import number_bytes
from headrace.schemas.columns.avro.avro_flaws import Misfit, misfit_error
from headrace.schemas.columns.avro.avro_shapes import ColumnKind, ColumnShape
from headrace.schemas.columns.avro.avro_writing import EncodeProgram, WriteStep, WriteVerb
from headrace.schemas.columns.column_codec import ColumnTooLargeError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["PlainEncoder"]

_MOST_BYTES: Final = (1 << 31) - 1
_EXACT: Final = Context(prec=40)


class _MisfitError(Exception):
    """A value that cannot be written: the misfit and the step."""


class PlainEncoder:
    """Writes rows by a program.

    Args:
        program: what to do.
    """

    def __init__(self, program: EncodeProgram) -> None:
        self._program = program

    def encode(
        self, values: pyarrow.Array, columns: Mapping[int, tuple[ColumnShape, pyarrow.Array]]
    ) -> pyarrow.BinaryArray:
        """Write rows.

        Args:
            values: of them, for which are null.
            columns: as `written_columns` gives them.

        Raises:
            SerializationError: a value does not fit.
            ColumnTooLargeError: the bytes are more than 2 GiB.
        """
        import pyarrow

        row_of = _Rows(self._program, columns)
        made: list[bytes | None] = []
        for row, valid in enumerate(values.is_valid().to_pylist()):
            if not valid:
                made.append(None)
                continue
            try:
                made.append(b"".join(row_of.written(self._program.root, row)))
            except _MisfitError as error:
                raise misfit_error(self._program, row, *error.args) from None
        if sum(map(len, filter(None, made))) > _MOST_BYTES:
            raise ColumnTooLargeError("the payloads of the batch are more than 2 GiB: write smaller batches")
        return pyarrow.array(made, pyarrow.binary())


class _Rows:
    """The columns as Python's values."""

    def __init__(
        self, program: EncodeProgram, columns: Mapping[int, tuple[ColumnShape, pyarrow.Array]]
    ) -> None:
        self._program = program
        self._values = {number: _listed(shape, array) for number, (shape, array) in columns.items()}
        self._scales = {number: shape.data_type.scale for number, (shape, _) in columns.items()
                        if shape.kind == ColumnKind.DECIMAL}

    def written(self, number: int, row: int) -> list[bytes]:
        """The bytes of a row, in pieces."""
        step = self._program.steps[number]
        if step.verb == WriteVerb.CONSTANT:
            return [self._program.constants[step.a]]
        value = self._values[step.column][row]
        if step.verb == WriteVerb.UNION:
            return self._union(step, number, value, row)
        if step.verb == WriteVerb.MEMBERS:
            return self._members(step, number, value, row)
        if value is None:
            raise _MisfitError(Misfit.NULL, number)
        if step.verb == WriteVerb.RECORD:
            return [piece for each in step.steps for piece in self.written(each, row)]
        if step.verb in (WriteVerb.ARRAY, WriteVerb.MAP):
            return self._items(step, *value)
        if step.verb == WriteVerb.ENUM:
            return [self._symbol(step, number, value)]
        if step.verb == WriteVerb.DECIMAL:
            return [self._decimal(step, number, value)]
        if step.verb == WriteVerb.FIXED and len(value) != step.a:
            raise _MisfitError(Misfit.SIZE, number)
        return [_SIMPLE[step.verb](value, step.a)]

    def _union(self, step: WriteStep, number: int, value: Any, row: int) -> list[bytes]:
        if value is None:
            return [self._null(step, number, Misfit.NULL)]
        return [number_bytes(step.b), *self.written(step.steps[0], row)]

    def _members(self, step: WriteStep, number: int, value: Any, row: int) -> list[bytes]:
        if value is not None:
            for inner, branch in zip(step.steps[::2], step.steps[1::2], strict=True):
                column = self._program.steps[inner].column
                if column >= 0 and self._values[column][row] is not None:
                    return [number_bytes(branch), *self.written(inner, row)]
        return [self._null(step, number, Misfit.MEMBERS)]

    def _null(self, step: WriteStep, number: int, misfit: Misfit) -> bytes:
        if step.a < 0:
            raise _MisfitError(misfit, number)
        return number_bytes(step.a)

    def _items(self, step: WriteStep, first: int, behind: int) -> list[bytes]:
        if first == behind:
            return [b"\0"]
        pieces = [number_bytes(behind - first)]
        for row in range(first, behind):
            for each in step.steps:
                pieces += self.written(each, row)
        return [*pieces, b"\0"]

    def _symbol(self, step: WriteStep, number: int, value: str) -> bytes:
        symbols = [self._program.constants[each] for each in step.steps]
        if value.encode() not in symbols:
            raise _MisfitError(Misfit.SYMBOL, number)
        return number_bytes(symbols.index(value.encode()))

    def _decimal(self, step: WriteStep, number: int, value: Decimal) -> bytes:
        unscaled = int(value.scaleb(self._scales[step.column], _EXACT))
        size = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() >> 3) + 1
        if step.a < 0:
            return number_bytes(size) + unscaled.to_bytes(size, "big", signed=True)
        if size > step.a:
            raise _MisfitError(Misfit.SIZE, number)
        return unscaled.to_bytes(step.a, "big", signed=True)


def _listed(shape: ColumnShape, array: pyarrow.Array) -> list[Any]:
    """The values; of lists and maps where their items are; of structs True. Null is None."""
    import pyarrow

    if shape.kind == ColumnKind.STRUCT:
        return [valid or None for valid in array.is_valid().to_pylist()]
    if shape.kind in (ColumnKind.LIST, ColumnKind.MAP):
        ends, valid = array.offsets.to_pylist(), array.is_valid().to_pylist()
        return [(ends[row], ends[row + 1]) if there else None for row, there in enumerate(valid)]
    if pyarrow.types.is_timestamp(array.type):
        array = array.cast(pyarrow.int64())
    elif pyarrow.types.is_date(array.type):
        array = array.cast(pyarrow.int32())
    elif pyarrow.types.is_time(array.type):
        array = array.cast(pyarrow.int64())
    return list(array.to_pylist())


_SIMPLE: Final[dict[WriteVerb, Callable[[Any, int], bytes]]] = {
    WriteVerb.BOOL: lambda value, _: b"\1" if value else b"\0",
    WriteVerb.INT: lambda value, _: number_bytes(value),
    WriteVerb.LONG: lambda value, divisor: number_bytes(value // divisor),
    WriteVerb.FLOAT: lambda value, _: struct.pack("<f", value),
    WriteVerb.DOUBLE: lambda value, _: struct.pack("<d", value),
    WriteVerb.BYTES: lambda value, _: _sized(value.encode() if isinstance(value, str) else value),
    WriteVerb.FIXED: lambda value, _: bytes(value),
}


def _sized(raw: bytes) -> bytes:
    return number_bytes(len(raw)) + raw
