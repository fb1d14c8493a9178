"""Types of Avro, as they are after parsing.

A named type is one object, however often it is referred to; each other type is an object of its own, so that pairs of
types can be compared by identity. What a type has beside the attributes that the specification knows (logical types
too) is kept in `properties`. Read next: `schemas.avro`, which makes them.
"""

from __future__ import annotations

from typing import Any, Final

from headrace.slotted import field, slotted

__all__ = ["ABSENT", "PRIMITIVES", "AvroField", "AvroType"]

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
ABSENT: Final[Any] = object()
"""Stands for a default that is not there; null is one."""


@slotted(eq=False)
class AvroField:
    """A field of a record; `default` is the JSON value, or `ABSENT`."""

    name: str
    type: AvroType
    default: Any = ABSENT
    doc: str | None = None
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    properties: dict[str, Any] = field(default_factory=dict)


@slotted(eq=False)
class AvroType:
    """A type.

    Attributes:
        kind: a primitive's name, or `record`, `enum`, `fixed`, `array`, `map`, `union`.
        name: full name, where it has one.
        fields: of a record.
        symbols: of an enum.
        default: symbol that stands for unknown ones, of an enum.
        size: bytes, of a fixed.
        branches: of a union; the one type of items or values, of an array or a map.
        aliases: full names.
        is_error: declared as `error`, which otherwise is a record.
    """

    kind: str
    name: str = ""
    fields: tuple[AvroField, ...] = ()
    symbols: tuple[str, ...] = ()
    default: str | None = None
    size: int = 0
    branches: tuple[AvroType, ...] = ()
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    is_error: bool = False
    properties: dict[str, Any] = field(default_factory=dict)

    @property
    def short_name(self) -> str:
        """The name without its namespace; for types without names, their kind."""
        return self.name.rpartition(".")[2] or self.kind

    @property
    def namespace(self) -> str:
        """The namespace; empty where there is none."""
        return self.name.rpartition(".")[0]
