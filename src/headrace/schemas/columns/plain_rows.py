"""Arrays of pyarrow as lists of Python's values, for the plain twins.

pyarrow is imported inside the functions only. Read next: `schemas.columns.arrow_tree`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

__all__ = ["value_rows"]


def value_rows(array: pyarrow.Array, kind: pyarrow.DataType) -> list[Any]:
    """Values as Python has them: times as numbers, so that none is beyond what Python has; maps as pairs.

    Args:
        array: the values.
        kind: the type to read them as; of a struct, fields that the array does not have are left out.
    """
    import pyarrow as pa

    if pa.types.is_null(array.type):
        return [None] * len(array)
    if pa.types.is_struct(kind):
        given = {field.name: at for at, field in enumerate(array.type)}
        columns = {each.name: value_rows(array.field(given[each.name]), each.type)
                   for each in kind if each.name in given}
        return [{name: column[row] for name, column in columns.items()} if valid else None
                for row, valid in enumerate(array.is_valid().to_pylist())]
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _lists(array, kind)
    array = array if array.type == kind else array.cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        array = array.cast(pa.int64())
    elif pa.types.is_date32(kind):
        array = array.cast(pa.int32())
    found: list[Any] = array.to_pylist()
    return found


def _lists(array: pyarrow.Array, kind: pyarrow.DataType) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_map(kind):
        elements: list[Any] = list(zip(value_rows(array.keys, kind.key_type), value_rows(array.items, kind.item_type),
                                       strict=True))
    else:
        elements = value_rows(array.values, kind.value_type)
    ends = array.offsets.to_pylist()
    return [elements[start:end] if valid else None
            for (start, end), valid in zip(pairwise(ends), array.is_valid().to_pylist(), strict=True)]
