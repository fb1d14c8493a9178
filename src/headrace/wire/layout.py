"""From a class to what the code generators need: each field's type, range, default, and the fields of one version.

Annotations are text (PEP 563) and are read here, on first use, not when a class is made. `compile_init` makes a class's
keyword constructor. This module takes any class with `fields`; `wire.schema` builds the classes on it.
Read next: `wire.writing` and `wire.reading`.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headrace.compiled import function_of
from headrace.wire.field import UNKNOWN, UNSET, Field
from headrace.wire.versions import NEVER, Versions

__all__ = [
    "FIXED", "SIZED", "TEXTS", "UNKNOWN", "UNSET", "ZERO_UUID", "FieldColumn", "Field", "Type", "columns",
    "compile_init", "default_source", "is_flexible", "min_size",
]

ZERO_UUID: Final = uuid.UUID(int=0)
"""Kafka's "no id"."""

FIXED = {"Bool": "?", "Int8": "b", "Int16": "h", "Int32": "i", "Int64": "q", "Uint16": "H", "Uint32": "I",
         "Float64": "d"}
"""Types of a fixed size, with their letter for the `struct` module."""

TEXTS = ("String", "ShortString")
SIZED = (*TEXTS, "Bytes", "Records")
"""Types that begin with their length."""

_SIZES = {"?": 1, "b": 1, "h": 2, "i": 4, "q": 8, "H": 2, "I": 4, "d": 8}
_ZEROS: dict[str, Any] = {**dict.fromkeys(FIXED, 0), "Bool": False, "Float64": 0.0, "String": "", "ShortString": "",
                          "Bytes": b"", "Records": b"", "Uuid": ZERO_UUID}
_columns: dict[type[Any], tuple[FieldColumn, ...]] = {}


class Type(NamedTuple):
    """Type of a value: `name` is a primitive's name or, for a structure, empty."""

    name: str
    struct: type[Any] | None
    is_array: bool

    @property
    def item(self) -> Type:
        """Type of an array's elements."""
        return self._replace(is_array=False)


class FieldColumn(NamedTuple):
    """One field of a class, read."""

    name: str
    type: Type
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    ignorable: bool
    default: Any

    def is_tagged(self, version: int) -> bool:
        """True when the field travels as a tagged field in `version`."""
        return self.tag is not None and self.versions.holds(version) and self.tagged.holds(version)


def columns(cls: type[Any]) -> tuple[FieldColumn, ...]:
    """The fields of a class in order."""
    found = _columns.get(cls)
    if found is None:
        annotations = cls.__annotations__
        found = tuple(_column(cls, name, annotations[name], spec) for name, spec in cls.fields.items())
        _columns[cls] = found
    return found


def _column(cls: type[Any], name: str, annotation: str, spec: Field) -> FieldColumn:
    text = annotation.removesuffix(" | None")
    is_array = text.startswith("Array[")
    item = text[6:-1] if is_array else text
    type_ = Type(item, None, is_array) if item in _ZEROS else Type("", _struct(cls, item), is_array)
    versions = Versions.parse(spec.versions)
    nullable = Versions.parse(spec.nullable or spec.versions) if text != annotation else NEVER
    tagged = Versions.parse(spec.tagged) if spec.tagged else versions
    default = spec.default
    if default is UNSET and not is_array and item in _ZEROS:
        default = None if item == "Records" and text != annotation else _ZEROS[item]
    return FieldColumn(name, type_, versions, nullable, spec.tag, tagged, spec.ignorable, default)


def _struct(cls: type[Any], name: str) -> type[Any]:
    found: type[Any] = getattr(sys.modules[cls.__module__], name)
    return found


def is_flexible(message: type[Any], version: int) -> bool:
    """True when `version` of a message has compact lengths and tagged fields."""
    return message.flexible_version is not None and version >= message.flexible_version


def default_source(column: FieldColumn, namespace: dict[str, Any]) -> str:
    """Source text of a fresh default value; names that it needs are put into `namespace`."""
    if column.default is not UNSET:
        if isinstance(column.default, (type(None), bool, int, float, str, bytes)):
            return repr(column.default)
        namespace[f"default_{column.name}"] = column.default
        return f"default_{column.name}"
    if column.type.is_array:
        return "[]"
    assert column.type.struct is not None
    namespace[column.type.struct.__name__] = column.type.struct
    return f"{column.type.struct.__name__}()"


def compile_init(cls: type[Any]) -> Callable[..., None]:
    """Make the keyword constructor of a class. A default that can be changed in place is made afresh."""
    namespace: dict[str, Any] = {"UNSET": UNSET}
    parameters, body = [f"{UNKNOWN}=None"], [f"    self.{UNKNOWN} = {UNKNOWN}"]
    for column in columns(cls):
        name, source = column.name, default_source(column, namespace)
        if column.default is UNSET:
            parameters.append(f"{name}=UNSET")
            body.append(f"    self.{name} = {source} if {name} is UNSET else {name}")
        else:
            parameters.append(f"{name}={source}")
            body.append(f"    self.{name} = {name}")
    head = f"def __init__(self, *, {', '.join(parameters)}):"
    text = "\n".join([head, *body, "    return None"])
    init: Callable[..., None] = function_of("__init__", text, namespace, f"{cls.__name__}.__init__")
    init.__qualname__ = f"{cls.__name__}.__init__"
    return init


def min_size(type_: Type, version: int, flexible: bool) -> int:
    """The fewest bytes that one value can take, so that a count can be checked before a list is filled."""
    if type_.name == "ShortString" and not type_.is_array:
        return 2
    if type_.is_array or type_.name in SIZED:
        return 1 if flexible else 2 if type_.name == "String" and not type_.is_array else 4
    if type_.struct is None:
        return 16 if type_.name == "Uuid" else _SIZES[FIXED[type_.name]]
    here = (c for c in columns(type_.struct) if c.versions.holds(version) and not c.is_tagged(version))
    return sum(1 if _null_struct(c, version) else min_size(c.type, version, flexible) for c in here) + flexible


def _null_struct(column: FieldColumn, version: int) -> bool:
    return column.type.struct is not None and not column.type.is_array and column.nullable.holds(version)
