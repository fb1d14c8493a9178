"""The Avro schema of a column that has none: what a frame is written with when nobody gave a schema.

Names are Spark's (`topLevelRecord`), and what may be null is a union that begins with null and has null as its default,
so that a field that is dropped later can still be read. Read next: `schemas.columns.avro.avro_shapes`, the other way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from headrace.errors import SerializationError
from headrace.schemas.parsed import compact

if TYPE_CHECKING:
    import pyarrow

__all__ = ["derived_avro"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RECORD: Final = "topLevelRecord"


def derived_avro(data_type: pyarrow.DataType, name: str = "") -> str:
    """The schema of a type, as JSON.

    Args:
        data_type: of the column.
        name: full name of the record; empty for `topLevelRecord`.

    Raises:
        SerializationError: Avro has no such type, or a column's name cannot be one of a field.
    """
    return compact(_schema(data_type, name or _RECORD, ""))


def _schema(kind: pyarrow.DataType, name: str, place: str) -> Any:
    import pyarrow.types as kinds

    if kinds.is_struct(kind):
        return {"type": "record", "name": name, "fields": [_field(each, name, place) for each in kind]}
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return {"type": "array", "items": _nullable(kind.value_field, name, place)}
    if kinds.is_map(kind) and (kinds.is_string(kind.key_type) or kinds.is_large_string(kind.key_type)):
        return {"type": "map", "values": _nullable(kind.item_field, name, place)}
    for is_kind, made in _SIMPLE.items():
        if getattr(kinds, is_kind)(kind):
            return made
    if kinds.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if kinds.is_timestamp(kind) and kind.unit == "us":
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if kinds.is_time64(kind):
        return {"type": "long", "logicalType": "time-micros"}
    raise SerializationError(f"at {place or '/'}: Avro has no type for {kind}: cast the column")


def _field(of: pyarrow.Field, parent: str, place: str) -> dict[str, Any]:
    at = f"{place}/{of.name}"
    if not _NAME.fullmatch(of.name):
        raise SerializationError(f"at {at}: {of.name!r} cannot be the name of a field in Avro: rename the column")
    made: dict[str, Any] = {"name": of.name, "type": _nullable(of, f"{parent}.{of.name}", at)}
    if isinstance(made["type"], list):
        made["default"] = None
    return made


def _nullable(of: pyarrow.Field, name: str, place: str) -> Any:
    made = _schema(of.type, name, place)
    return ["null", made] if of.nullable and made != "null" else made


_SIMPLE: Final[dict[str, Any]] = {
    "is_null": "null", "is_boolean": "boolean", "is_int8": "int", "is_int16": "int", "is_int32": "int",
    "is_int64": "long", "is_float32": "float", "is_float64": "double", "is_string": "string",
    "is_large_string": "string", "is_binary": "bytes", "is_large_binary": "bytes",
    "is_date32": {"type": "int", "logicalType": "date"},
}
