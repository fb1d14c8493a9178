"""Columns of Avro: `AvroColumns` reads what was written with one schema into columns of another, and writes it.

Natively where the native module is, else in plain Python. Read next: `schemas.columns.avro.avro_shapes` for the types,
`schemas.columns.avro.avro_resolution` for how one schema reads another.
"""

from __future__ import annotations

import os
import sys
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from headrace.schemas.avro import ParsedAvro
from headrace.schemas.columns.avro.avro_flaws import reason_of
from headrace.schemas.columns.avro.avro_resolution import resolved
from headrace.schemas.columns.avro.avro_shapes import ColumnShape, shape_of
from headrace.schemas.columns.avro.avro_writing import writing_of
from headrace.schemas.columns.avro.written_columns import written_columns
from headrace.schemas.columns.column_codec import DecodedColumn

if TYPE_CHECKING:
    import pyarrow

    from headrace.schemas.columns.avro.avro_plain_decoder import PlainDecoder
    from headrace.schemas.columns.avro.avro_plain_encoder import PlainEncoder
    from headrace.schemas.columns.column_codec import ColumnCodec

__all__ = ["AvroColumns"]

_PLAIN: Final = (os.environ.get("HEADRACE_PURE", "") not in ("", "0") or sys.byteorder != "little"
                 or find_spec("headrace.schemas.columns._avro_columns") is None)


class AvroColumns:
    """Reads and writes columns of Avro; a `ColumnCodec`. From any thread.

    Args:
        writer: schema that the payloads were written with, or are to be written with.
        reader: schema that the values are to have; None for the writer's.

    Attributes:
        data_type: Arrow type of the values.

    Raises:
        InvalidSchemaError: a column cannot have the reader's schema: a type contains itself, a decimal has more than 38
            digits, or there are too many columns. Schemas that do not go together are no error here: their payloads
            are malformed.
    """

    def __init__(self, writer: ParsedAvro, reader: ParsedAvro | None = None) -> None:
        self._writer = writer
        self._reader = writer if reader is None else reader
        self._shape = shape_of(self._reader.root)
        self.data_type = self._shape.data_type
        self._program = resolved(writer.root, self._reader.root, self._shape)
        self._decoder = _decoder_class()(self._program)
        self._encoder: tuple[pyarrow.DataType, PlainEncoder] | None = None

    def decode(self, payloads: pyarrow.BinaryArray) -> DecodedColumn:
        """Read a column of payloads; see `ColumnCodec.decode`."""
        values, bad = self._decoder.decode(payloads)
        return DecodedColumn(values, {row: reason_of(self._program, trouble, step) for row, trouble, step in bad})

    def encode(self, values: pyarrow.Array) -> pyarrow.BinaryArray:
        """Write a column of values; see `ColumnCodec.encode`."""
        encoder = self._encoder
        if encoder is None or encoder[0] != values.type:
            program = writing_of(self._writer.root, self._written, values.type)
            encoder = self._encoder = values.type, _encoder_class()(program)
        return encoder[1].encode(values, written_columns(values, self._written))

    @cached_property
    def _written(self) -> ColumnShape:
        return shape_of(self._writer.root)

    def check_columns(self, given: pyarrow.DataType) -> None:
        """Refuse columns that cannot be written, before there are any.

        Args:
            given: their Arrow type.

        Raises:
            SerializationError: a column is missing, unknown, or of another type.
        """
        writing_of(self._writer.root, self._written, given)


def _encoder_class() -> type[PlainEncoder]:
    if _PLAIN:
        from headrace.schemas.columns.avro.avro_plain_encoder import PlainEncoder

        return PlainEncoder
    from headrace.schemas.columns._avro_columns import Encoder

    return Encoder


def _decoder_class() -> type[PlainDecoder]:
    if _PLAIN:
        from headrace.schemas.columns.avro.avro_plain_decoder import PlainDecoder

        return PlainDecoder
    from headrace.schemas.columns._avro_columns import Decoder

    return Decoder


if TYPE_CHECKING:
    _: type[ColumnCodec] = AvroColumns
