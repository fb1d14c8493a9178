"""What a message is: a class whose annotated fields carry the versions they exist in.

    class InitProducerIdRequest(Request, key=22, versions="0-5", flexible="2+"):
        transactional_id: String | None = field(nullable="0+")
        producer_id: Int64 = field("3+", default=-1)

A class only notes its fields; `wire.codec` compiles the code that reads and writes a version when it is first needed,
so importing all messages stays cheap. Nothing here knows bytes or connections. Read next: `wire.codec`.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar, dataclass_transform
from uuid import UUID

__all__ = [
    "ZERO_UUID", "Array", "Bool", "Bytes", "Embedded", "Field", "Float64", "Int8", "Int16", "Int32", "Int64", "Records", "Request",
    "Response", "String", "Struct", "Uint16", "Uint32", "Uuid", "Versions", "default_of", "field", "fields_of", "struct_named",
]

# The names that fields are annotated with: to the type checker they are Python's types.
Int8 = int
Int16 = int
Int32 = int
Int64 = int
Uint16 = int
Uint32 = int
Float64 = float
Bool = bool
String = str
Bytes = bytes
Records = bytes | bytearray | memoryview
Uuid = UUID
Array = list

ZERO_UUID = UUID(int=0)
_FOREVER = 1 << 15


class Versions:
    """An inclusive range of versions: "3-5", "3+", "3" or "none"."""

    __slots__ = ("high", "low")

    def __init__(self, text: str) -> None:
        if text == "none":
            self.low, self.high = _FOREVER, -1
        elif text.endswith("+"):
            self.low, self.high = int(text[:-1]), _FOREVER
        else:
            low, _, high = text.partition("-")
            self.low, self.high = int(low), int(high or low)

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __repr__(self) -> str:
        return f"Versions({self.low}-{self.high})"


class Field:
    """One field of a message, as its class declares it. `kind` is the annotation's text, for example "Array[Int32]"."""

    __slots__ = ("_default", "ignorable", "kind", "name", "nullable", "tag", "tagged", "versions")

    def __init__(
        self, versions: str, default: Any, nullable: str, tag: int | None, tagged: str, ignorable: bool
    ) -> None:
        self.name = ""
        self.kind = ""
        self.versions = versions
        self.nullable = nullable
        self.tag = tag
        self.tagged = tagged
        self.ignorable = ignorable
        self._default = default


_UNSET: Any = object()


def field(
    versions: str = "0+",
    *,
    default: Any = _UNSET,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str = "none",
    ignorable: bool = False,
) -> Any:
    """Declare a field of a message.

    Args:
        versions: versions of the message that carry it.
        default: its value when it is not given, or not in the version that is read; the type's zero if unset.
        nullable: versions in which it may be null.
        tag: its number among the tagged fields (KIP-482).
        tagged: versions in which it is a tagged field.
        ignorable: a value may be dropped silently when a version lacks the field; otherwise writing it is an error.
    """
    return Field(versions, default, nullable, tag, tagged, ignorable)


_ZERO: dict[str, Any] = {
    "Int8": 0, "Int16": 0, "Int32": 0, "Int64": 0, "Uint16": 0, "Uint32": 0, "Float64": 0.0, "Bool": False,
    "String": "", "Bytes": b"", "Records": None, "Uuid": ZERO_UUID,
}


class _Meta(type):
    """Takes the fields out of the class body, so that they can be slots."""

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any], **kw: Any) -> Any:
        own = []
        annotations = space.get("__annotations__", {})
        for attribute, value in list(space.items()):
            if isinstance(value, Field):
                value.name = attribute
                value.kind = annotations[attribute]
                own.append(space.pop(attribute))
        space["__slots__"] = tuple(f.name for f in own)
        space["_fields"] = tuple(own)
        return super().__new__(mcs, name, bases, space, **kw)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Struct(metaclass=_Meta):
    """A group of fields; made with keywords, compared by value. A field that is not given has its default."""

    _fields: ClassVar[tuple[Field, ...]] = ()

    def __init__(self, **values: Any) -> None:
        for f in self._fields:
            setattr(self, f.name, values.pop(f.name) if f.name in values else default_of(type(self), f))
        if values:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(map(repr, values))}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self._fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        inner = ", ".join(f"{f.name}={_short(getattr(self, f.name))}" for f in self._fields)
        return f"{type(self).__name__}({inner})"


class _Message(Struct):
    """What requests, responses and the embedded structures of the group protocol share."""

    api_key: ClassVar[int] = -1
    min_version: ClassVar[int]
    max_version: ClassVar[int]
    flexible_version: ClassVar[int]

    def __init_subclass__(cls, *, key: int = -1, versions: str = "", flexible: str = "none", **kw: Any) -> None:
        super().__init_subclass__(**kw)
        if versions:
            valid = Versions(versions)
            cls.api_key, cls.min_version, cls.max_version = key, valid.low, valid.high
            cls.flexible_version = Versions(flexible).low


class Request(_Message):
    """A request; `response_type` is the class of its answer."""

    response_type: ClassVar[type[Response]]


class Response(_Message):
    """The answer to a request."""


class Embedded(_Message):
    """A structure with versions of its own that travels inside a bytes field, for example a group's assignment."""


def fields_of(cls: type[Struct]) -> tuple[Field, ...]:
    """The fields of a message in the order they are written."""
    return cls._fields


def struct_named(cls: type[Struct], kind: str) -> type[Struct] | None:
    """The struct class that an annotation of `cls` names, None for the built-in kinds."""
    if kind in _ZERO:
        return None
    found: type[Struct] = getattr(sys.modules[cls.__module__], kind)
    return found


def default_of(cls: type[Struct], f: Field) -> Any:
    """The value of a field that was not given; a new object where it could be changed."""
    if f._default is not _UNSET:
        return f._default
    kind = f.kind.removesuffix(" | None")
    if kind.startswith("Array["):
        return []
    struct = struct_named(cls, kind)
    return _ZERO[kind] if struct is None else struct()


def _short(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)) and len(value) > 32:
        return f"<{len(value)} bytes>"
    return repr(value)
