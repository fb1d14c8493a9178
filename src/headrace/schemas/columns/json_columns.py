"""JSON: a column of texts to a column of values, and back, by Spark's types or by a JSON Schema.

Reading is strict where silence would change a value: a number out of range, a text where a number should be, and bytes
behind the value are malformed. Keys that the type does not have are left out, keys that are missing are null, and of a
key that comes twice the last counts. Times are ISO 8601, UTC where they have no zone; what is finer than a microsecond
is cut off; digits behind a decimal's scale are rounded half up. Binary is base64. What is written is what Spark's
`to_json` writes: nulls left out of structs, decimals as numbers, NaN and infinities as texts; but times keep their
microseconds, and what a schema requires and lets be null is written as null. Read next:
`schemas.columns.json.json_rows`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.errors import SerializationError
from headrace.schemas.columns.arrow_tree import check_type, layout_of, made_array, seen_array
from headrace.schemas.columns.column_codec import ColumnTooLargeError, DecodedColumn
from headrace.schemas.columns.json.json_shapes import JsonShape, nullable_type, shape_of

if TYPE_CHECKING:
    import pyarrow

__all__ = ["JsonColumns"]

Check = Callable[[bytes], None]


class JsonColumns:
    """Reads and writes JSON of one type.

    Args:
        data_type: of the column; nulls are allowed everywhere in it, whatever it says. Fields with the metadata
            `KEEPS_NULL` are written where they are null.
        is_loose: a column of strings takes other values as their JSON text, and one of times a date as its midnight, as
            Spark's `from_json` does.
        check: called with each text that is read or written; raises `SerializationError` if it is not valid. It costs
            Python objects for each record, so it is for those who ask for it.
        plain: use the plain twin.

    Raises:
        InvalidSchemaError: JSON has no values of a type.
    """

    def __init__(
        self, data_type: pyarrow.DataType, *, is_loose: bool = False, check: Check | None = None, plain: bool = False
    ) -> None:
        self._type = nullable_type(data_type)
        self._shape = shape_of(data_type)
        self._is_loose = is_loose
        self._check = check
        self._native = None if plain else _native(self._shape, self._type, is_loose)

    @property
    def data_type(self) -> pyarrow.DataType:
        """The type of the values, all of which can be null."""
        return self._type

    def decode(self, payloads: pyarrow.BinaryArray) -> DecodedColumn:
        """Read texts; see `ColumnCodec.decode`."""
        if self._check is not None:
            return self._checked(self._check, payloads)
        return self._decoded(payloads)

    def _decoded(self, payloads: Any) -> DecodedColumn:
        import pyarrow as pa

        if self._native is None:
            from headrace.schemas.columns.json.json_rows import read_rows

            return DecodedColumn(*read_rows(self._shape, self._type, payloads, self._is_loose))
        kept: list[Any] = []
        seen = seen_array(payloads, pa.binary(), kept)
        try:
            grown, owner, bad = self._native.decode(seen, len(payloads))
        except OverflowError as error:
            raise ColumnTooLargeError(str(error)) from None
        return DecodedColumn(made_array(self._type, grown, owner), bad)

    def _checked(self, check: Check, payloads: Any) -> DecodedColumn:
        """Leave out what is not valid before the rest is read."""
        import pyarrow as pa

        given, bad = payloads.to_pylist(), {}
        for row, payload in enumerate(given):
            try:
                if payload is not None:
                    check(payload)
            except SerializationError as error:
                bad[row], given[row] = str(error), None
        found = self._decoded(pa.array(given, pa.binary()))
        return DecodedColumn(found.values, {**found.malformed, **bad})

    def check_columns(self, given: pyarrow.DataType) -> None:
        """Refuse columns that cannot be written; see `ColumnCodec.check_columns`."""
        check_type(given, self._type)

    def encode(self, values: pyarrow.Array) -> pyarrow.BinaryArray:
        """Write values; see `ColumnCodec.encode`."""
        import pyarrow as pa

        kept: list[Any] = []
        seen = seen_array(values, self._type, kept)
        if self._native is None:
            from headrace.schemas.columns.json.json_rows import write_rows

            made: pyarrow.BinaryArray = write_rows(self._shape, self._type, values)
        else:
            try:
                grown, owner, refused = self._native.encode(seen, len(values))
            except OverflowError as error:
                raise ColumnTooLargeError(str(error)) from None
            if refused is not None:
                raise SerializationError(f"row {refused[0]} cannot be written as JSON: {refused[1]}")
            made = made_array(pa.binary(), grown, owner)
        if self._check is not None:
            _check_all(self._check, made)
        return made


def _check_all(check: Check, payloads: Any) -> None:
    for row, payload in enumerate(payloads.to_pylist()):
        try:
            if payload is not None:
                check(payload)
        except SerializationError as error:
            raise SerializationError(f"row {row} is not valid: {error}") from None


def _native(shape: JsonShape, kind: Any, is_loose: bool) -> Any:
    """The compiled program, or None where native code was not built or is not wanted."""
    if os.environ.get("HEADRACE_PURE") == "1":
        return None
    try:
        from headrace.schemas.columns._json_columns import JsonProgram
    except ImportError:
        return None
    return JsonProgram(shape, layout_of(kind), is_loose, int.from_bytes(os.urandom(8), "little"))
