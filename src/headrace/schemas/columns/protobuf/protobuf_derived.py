"""The Protobuf schema of a column that has none: what a frame is written with when nobody gave a schema.

Every scalar is `optional`, so that null and zero differ. Read next: `schemas.columns.protobuf.protobuf_plan`, the other
way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from headrace.errors import SerializationError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["derived_protobuf"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RECORD: Final = "Value"
_TIMES: Final = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}


def derived_protobuf(data_type: pyarrow.DataType, name: str = "") -> str:
    """The schema of a struct, as a .proto file.

    Args:
        data_type: of the column.
        name: full name of the message; empty for `Value`.

    Raises:
        SerializationError: Protobuf has no such type, or a column's name cannot be one of a field.
    """
    import pyarrow as pa

    if not pa.types.is_struct(data_type):
        raise SerializationError(f"a Protobuf message is a struct, and the column is {data_type}")
    package, _, own = (name or _RECORD).rpartition(".")
    lines = _message(data_type, own, "")
    imports = [f'import "google/protobuf/{kind}.proto";' for kind, full in _TIMES.items()
               if any(full in line for line in lines)]
    head = ['syntax = "proto3";', *([f"package {package};"] if package else []), *imports]
    return "\n".join([*head, *lines, ""])


def _message(kind: Any, name: str, path: str) -> list[str]:
    """The lines of a message; types within it are named by their fields' numbers, which are unique."""
    _checked(name, path)
    inner: list[str] = []
    fields = []
    for number, field in enumerate(kind, 1):
        place = f"{path}.{field.name}" if path else field.name
        _checked(field.name, place)
        declared = _declared(field.type, f"Field{number}", place, inner)
        fields.append(f"  {declared} {field.name} = {number};")
    return [f"message {name} {{", *fields, *(f"  {line}" for line in inner), "}"]


def _declared(kind: Any, name: str, place: str, inner: list[str]) -> str:
    """Label and type of a field."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        key = _type(kind.key_type, name, place, inner)
        if key not in ("int32", "int64", "bool", "string"):
            raise _refused(place, f"a map whose keys are {kind.key_type}")
        return f"map<{key}, {_type(kind.item_type, name, place, inner)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"repeated {_type(kind.value_type, name, place, inner)}"
    return f"optional {_type(kind, name, place, inner)}"


def _type(kind: Any, name: str, place: str, inner: list[str]) -> str:
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind):
        inner += _message(kind, name, place)
        return name
    if types.is_signed_integer(kind):
        return "int64" if kind.bit_width == 64 else "int32"
    for is_kind, made in (
        (types.is_boolean, "bool"), (types.is_float32, "float"), (types.is_float64, "double"),
        (types.is_string, "string"), (types.is_large_string, "string"), (types.is_binary, "bytes"),
        (types.is_large_binary, "bytes"), (types.is_duration, _TIMES["duration"]),
    ):
        if is_kind(kind):
            return made
    if types.is_timestamp(kind) and kind.tz:
        return _TIMES["timestamp"]
    raise _refused(place, str(kind))


def _refused(place: str, kind: str) -> SerializationError:
    return SerializationError(f"field {place}: Protobuf has no type for {kind}: cast the column")


def _checked(name: str, place: str) -> None:
    if not _NAME.fullmatch(name):
        raise SerializationError(f"{f'field {place}: ' if place else ''}{name!r} cannot be a name in Protobuf: "
                                 "rename it")
