"""What a column's type means for JSON: the tree that native code and its plain twin follow.

Read next: `schemas.columns.json_columns`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.schemas.parsed import InvalidSchemaError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["KEEPS_NULL", "JsonShape", "nullable_type", "shape_of"]

KEEPS_NULL: Final = {b"headrace": b"keeps null"}
"""Metadata of a struct's field that is written as null where it is null; others are left out."""


class JsonShape(NamedTuple):
    """A value of JSON.

    Attributes:
        form: `bool`, `int`, `float`, `double`, `decimal`, `string`, `binary`, `date`, `time`, `local_time`, `struct`,
            `list` or `map`.
        name: of a struct's field.
        width: bytes of a number.
        precision: digits of a decimal.
        scale: of these, digits behind the point.
        children: a struct's fields, a list's elements, a map's values.
        keeps_null: of a struct's field: it is written where it is null.
    """

    form: str
    name: str = ""
    width: int = 0
    precision: int = 0
    scale: int = 0
    children: tuple[JsonShape, ...] = ()
    keeps_null: bool = False

    @property
    def key(self) -> str:
        """The name as it is written, with its colon."""
        return json.dumps(self.name, ensure_ascii=False) + ":"


def nullable_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The type with nulls everywhere but in the keys of maps: JSON may leave out any value. Without metadata."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, nullable_type(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, nullable_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", nullable_type(kind.value_type)))
    return kind


def shape_of(kind: pyarrow.DataType, name: str = "", path: str = "") -> JsonShape:
    """The shape of a type.

    Args:
        kind: the type.
        name: of the field.
        path: where the field is, for errors.

    Raises:
        InvalidSchemaError: JSON has no values of this type.
    """
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind):
        if len({each.name for each in kind}) < kind.num_fields:
            raise InvalidSchemaError(f"{_place(path)} has two fields of the same name")
        return JsonShape("struct", name, children=tuple(
            shape_of(each.type, each.name, f"{path}.{each.name}" if path else each.name)
            ._replace(keeps_null=each.metadata == KEEPS_NULL) for each in kind))
    if types.is_map(kind):
        if kind.key_type != pa.string():
            raise InvalidSchemaError(f"{_place(path)} is a map of {kind.key_type}: keys of JSON are strings")
        return JsonShape("map", name, children=(shape_of(kind.item_type, "", path),))
    if types.is_list(kind) or types.is_large_list(kind):
        return JsonShape("list", name, children=(shape_of(kind.value_type, "", path),))
    if types.is_decimal128(kind):
        return JsonShape("decimal", name, 16, kind.precision, kind.scale)
    if types.is_signed_integer(kind):
        return JsonShape("int", name, kind.bit_width // 8)
    form = {
        pa.bool_(): "bool", pa.float32(): "float", pa.float64(): "double", pa.string(): "string",
        pa.binary(): "binary", pa.date32(): "date", pa.timestamp("us", tz="UTC"): "time",
        pa.timestamp("us"): "local_time",
    }.get(kind)
    if form is None:
        raise InvalidSchemaError(f"{_place(path)} is {kind}: JSON has no values of this type")
    return JsonShape(form, name, 0 if form == "bool" else layout_width(kind))


def layout_width(kind: pyarrow.DataType) -> int:
    """Bytes of a number; 0 of texts."""
    import pyarrow as pa

    return 0 if kind in (pa.string(), pa.binary()) else int(kind.bit_width) // 8


def _place(path: str) -> str:
    return f"field {path}" if path else "the value"
