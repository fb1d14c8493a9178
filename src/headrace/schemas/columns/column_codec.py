"""What the codecs of all formats have in common: a column of bytes to a column of values, and back.

A codec knows one schema, or a pair of them, and no registry. Rows that cannot be read do not disturb the others.
pyarrow is imported where it is used. Read next: `schemas.columns.framing`, then `schemas.columns.avro_columns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ColumnCodec", "ColumnTooLargeError", "DecodedColumn", "put_in_order"]


class ColumnTooLargeError(ValueError):
    """A column of one batch would exceed the 2 GiB that Arrow's 32-bit offsets reach: use smaller batches."""


@dataclass(frozen=True, slots=True)
class DecodedColumn:
    """A column of values.

    Attributes:
        values: one for each payload; null where the payload is null or malformed.
        malformed: why a payload could not be read, by its row; rows count from 0.
    """

    values: pyarrow.Array
    malformed: Mapping[int, str] = field(default_factory=dict)


class ColumnCodec(Protocol):
    """Reads and writes the values of one schema."""

    @property
    def data_type(self) -> pyarrow.DataType:
        """The type of the decoded column: a struct for records, or of single values."""

    def decode(self, payloads: pyarrow.BinaryArray) -> DecodedColumn:
        """Read a column of payloads.

        Args:
            payloads: bytes without framing; null stays null.

        Raises:
            ColumnTooLargeError: the values are too many for one Arrow column.
        """

    def encode(self, values: pyarrow.Array) -> pyarrow.BinaryArray:
        """Write a column of values.

        Args:
            values: of a type that can be cast to the schema's; null stays null.

        Returns:
            Bytes without framing.

        Raises:
            SerializationError: a value does not fit the schema; the text names its row and field.
            ColumnTooLargeError: the bytes are too many for one Arrow column.
        """

    def check_columns(self, given: pyarrow.DataType) -> None:
        """Refuse columns that cannot be written, before there are any.

        Args:
            given: their Arrow type.

        Raises:
            SerializationError: a column is missing, unknown, or of another type.
        """


def put_in_order(
    parts: Iterable[tuple[pyarrow.Array | None, DecodedColumn]], rows: int, data_type: pyarrow.DataType,
    malformed: Mapping[int, str],
) -> DecodedColumn:
    """Make one column of parts that were decoded by themselves.

    Args:
        parts: for each its rows in the whole (integers, ascending; None for all rows) and what was decoded.
        rows: rows of the whole; those of no part are null.
        data_type: type of the parts' values.
        malformed: reasons for rows of no part.
    """
    import pyarrow

    reasons = dict(malformed)
    found, places = [], []
    for numbers, part in parts:
        if numbers is None:
            return DecodedColumn(part.values, {**reasons, **part.malformed})
        reasons |= {numbers[row].as_py(): why for row, why in part.malformed.items()}
        found.append(part.values)
        places.append(numbers.cast(pyarrow.int32()))
    if not found:
        return DecodedColumn(pyarrow.nulls(rows, data_type), reasons)
    order: list[int | None] = [None] * rows
    for place, row in enumerate(pyarrow.concat_arrays(places).to_pylist()):
        order[row] = place
    values = pyarrow.concat_arrays(found).take(pyarrow.array(order, pyarrow.int32()))
    return DecodedColumn(values, reasons)
