"""The JSON Schema of a column that has none: what a frame is written with when nobody gave a schema.

Properties that are null are left out, so none is required. Read next: `schemas.columns.json.json_types`, the other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headrace.errors import SerializationError
from headrace.schemas.parsed import compact

if TYPE_CHECKING:
    import pyarrow

__all__ = ["derived_json_schema"]

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"


def derived_json_schema(data_type: pyarrow.DataType, name: str = "") -> str:
    """The schema of a type, as JSON.

    Args:
        data_type: of the column.
        name: title of the schema; empty for none.

    Raises:
        SerializationError: a schema that is read again would be another type.
    """
    title = {"title": name} if name else {}
    return compact({"$schema": _DRAFT, **title, **_schema(data_type, "")})


def _schema(kind: Any, place: str) -> dict[str, Any]:
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind):
        return {"type": "object", "properties": {
            each.name: _schema(each.type, f"{place}.{each.name}" if place else each.name) for each in kind}}
    if types.is_map(kind) and (types.is_string(kind.key_type) or types.is_large_string(kind.key_type)):
        return {"type": "object", "additionalProperties": _or_null(_schema(kind.item_type, place))}
    if types.is_list(kind) or types.is_large_list(kind):
        return {"type": "array", "items": _or_null(_schema(kind.value_type, place))}
    for is_kind, made in (
        (types.is_boolean, {"type": "boolean"}), (types.is_signed_integer, {"type": "integer"}),
        (types.is_floating, {"type": "number"}), (types.is_string, {"type": "string"}),
        (types.is_large_string, {"type": "string"}), (types.is_date32, {"type": "string", "format": "date"}),
        (types.is_binary, {"type": "string", "contentEncoding": "base64"}),
        (types.is_large_binary, {"type": "string", "contentEncoding": "base64"}),
    ):
        if is_kind(kind):
            return made
    if types.is_timestamp(kind) and kind.tz:
        return {"type": "string", "format": "date-time"}
    where = f"field {place}: " if place else ""
    raise SerializationError(f"{where}JSON Schema has no type for {kind}: cast the column")


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, schema]}
