"""The columns that a schema's program writes: found by name in what is given, and cast to the schema's types.

Read next: `schemas.columns.avro.avro_plain_encoder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.errors import SerializationError
from headrace.schemas.columns.avro.avro_shapes import ColumnKind, ColumnShape

if TYPE_CHECKING:
    import pyarrow

__all__ = ["written_columns"]


def written_columns(values: pyarrow.Array, shape: ColumnShape) -> dict[int, tuple[ColumnShape, pyarrow.Array]]:
    """Columns by the numbers that their shapes have; those that are not given are left out.

    Args:
        values: what is to be written.
        shape: the schema's columns.

    Raises:
        SerializationError: a value has no place in the schema's type, as 2**40 in an int.
    """
    found: dict[int, tuple[ColumnShape, pyarrow.Array]] = {}
    _collect(values, shape, found)
    return found


def _collect(values: pyarrow.Array, shape: ColumnShape, found: dict[int, tuple[ColumnShape, pyarrow.Array]]) -> None:
    import pyarrow

    if shape.kind == ColumnKind.STRUCT and pyarrow.types.is_struct(values.type):
        found[shape.number] = shape, values
        names = {each.name for each in values.type}
        for each, child in zip(shape.data_type, shape.children, strict=True):
            if each.name in names:
                _collect(values.field(each.name), child, found)
    elif shape.kind == ColumnKind.LIST:
        if not pyarrow.types.is_list(values.type):
            values = values.cast(pyarrow.list_(values.type.value_field))
        found[shape.number] = shape, values
        _collect(values.values, shape.children[0], found)
    elif shape.kind == ColumnKind.MAP:
        found[shape.number] = shape, values
        _collect(values.keys, shape.children[0], found)
        _collect(values.items, shape.children[1], found)
    else:
        found[shape.number] = shape, _cast(values, shape.data_type)


def _cast(values: pyarrow.Array, wanted: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow

    if values.type == wanted:
        return values
    try:
        return values.cast(wanted)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        raise SerializationError(f"a value of type {values.type} has no place in {wanted}: {error}") from None
