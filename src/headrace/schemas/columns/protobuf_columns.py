"""Protobuf: a column of messages' bytes to a column of structs, and back.

Records are read with the reader's schema alone, whatever they were written with: fields are known by their numbers.
Types and nulls are those of Spark's `from_protobuf` (`schemas.columns.protobuf.protobuf_plan`). Native code does it
where it was built, else the plain twin. Read next: `schemas.columns.protobuf.protobuf_rows`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.errors import SerializationError
from headrace.schemas.columns.arrow_tree import check_required, check_type, layout_of, made_array, seen_array
from headrace.schemas.columns.column_codec import ColumnTooLargeError, DecodedColumn
from headrace.schemas.columns.protobuf.protobuf_plan import MessagePlan, arrow_type, plan_of
from headrace.schemas.protobuf import ParsedProtobuf

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ProtobufColumns"]


class ProtobufColumns:
    """Reads and writes messages of one type.

    Args:
        schema: the .proto file, with those that it imports.
        message: full name of the message type; empty for the first of the file.
        emit_defaults: a field without presence that is zero is read as zero; else as null, as Spark does.
        plain: use the plain twin.

    Raises:
        InvalidSchemaError: there is no such message type, or it holds itself, or has no fields.
    """

    def __init__(
        self, schema: ParsedProtobuf, message: str = "", *, emit_defaults: bool = False, plain: bool = False
    ) -> None:
        self.plan = plan_of(schema, message, emit_defaults=emit_defaults)
        self._type = arrow_type(self.plan)
        self._native = None if plain else _native(self.plan, self._type)

    @property
    def data_type(self) -> pyarrow.StructType:
        """A struct of the message's fields."""
        return self._type

    def decode(self, payloads: pyarrow.BinaryArray) -> DecodedColumn:
        """Read messages; see `ColumnCodec.decode`."""
        if self._native is None:
            from headrace.schemas.columns.protobuf.protobuf_rows import read_rows

            return DecodedColumn(*read_rows(self.plan, self._type, payloads))
        kept: list[Any] = []
        try:
            grown, owner, bad = self._native.decode(_bytes_seen(payloads, kept), len(payloads))
        except OverflowError as error:
            raise ColumnTooLargeError(str(error)) from None
        return DecodedColumn(made_array(self._type, grown, owner), bad)

    def check_columns(self, given: pyarrow.DataType) -> None:
        """Refuse columns that cannot be written; see `ColumnCodec.check_columns`."""
        check_type(given, self._type)
        check_required(given, self._type)

    def encode(self, values: pyarrow.Array) -> pyarrow.BinaryArray:
        """Write structs; see `ColumnCodec.encode`. Fields go by their names, and may be absent if they can be null."""
        import pyarrow as pa

        kept: list[Any] = []
        seen = seen_array(values, self._type, kept)
        if self._native is None:
            from headrace.schemas.columns.protobuf.protobuf_rows import write_rows

            return write_rows(self.plan, self._type, values)
        try:
            grown, owner, refused = self._native.encode(seen, len(values))
        except OverflowError as error:
            raise ColumnTooLargeError(str(error)) from None
        if refused is not None:
            raise SerializationError(f"row {refused[0]} cannot be written as {self.plan.name}: {refused[1]}")
        made: pyarrow.BinaryArray = made_array(pa.binary(), grown, owner)
        return made


def _bytes_seen(payloads: Any, kept: list[Any]) -> Any:
    import pyarrow as pa

    return seen_array(payloads, pa.binary(), kept)


def _native(plan: MessagePlan, kind: Any) -> Any:
    """The compiled program, or None where native code was not built or is not wanted."""
    if os.environ.get("HEADRACE_PURE") == "1":
        return None
    try:
        from headrace.schemas.columns._protobuf_columns import ProtobufProgram
    except ImportError:
        return None
    make: Callable[..., Any] = ProtobufProgram
    return make(plan, layout_of(kind), int.from_bytes(os.urandom(8), "little"))
