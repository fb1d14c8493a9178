"""What a message is: typed classes whose fields carry Kafka's version ranges.

A message class reads like Kafka's own schema: one line a field, the field's type as annotation, and `field()` with the
versions in which it exists. Nothing is computed when a class is made beyond the list of its fields, so that importing
every message stays cheap; annotations are read and codecs compiled on first use.

This module must not know how a value is written. Read next: `wire.messages.producer.produce` for an example, then
`wire.codec`.
"""

from __future__ import annotations

from headrace.wire.field import UNKNOWN, Field, bounds, field

TYPE_CHECKING = False  # as in `headrace`: importing messages loads neither `typing` nor `uuid`
if TYPE_CHECKING:
    from typing import Any, ClassVar, TypeAlias, dataclass_transform
    from uuid import UUID

    from headrace.wire.layout import ZERO_UUID
else:
    def dataclass_transform(**_):
        return lambda cls: cls

    def __getattr__(name):  # for type checkers it would make every name one of this module
        if name != "ZERO_UUID":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from headrace.wire.layout import ZERO_UUID

        return ZERO_UUID


__all__ = [
    "ZERO_UUID", "Array", "Bool", "Bytes", "Float64", "Int16", "Int32", "Int64", "Int8", "ApiMessage", "Records",
    "Request", "Response", "ShortString", "String", "Struct", "Uint16", "Uint32", "Uuid", "field",
]

Int8: TypeAlias = int
Int16: TypeAlias = int
Int32: TypeAlias = int
Int64: TypeAlias = int
Uint16: TypeAlias = int
Uint32: TypeAlias = int
Float64: TypeAlias = float
Bool: TypeAlias = bool
String: TypeAlias = str
ShortString: TypeAlias = str
"""A string whose length is an int16 in flexible versions too: only the client id of a request's header."""
Bytes: TypeAlias = bytes
Records: TypeAlias = bytes | bytearray | memoryview
"""Record batches. Never copied: written as a part of its own, read as a view of the reply's bytes."""
Uuid: TypeAlias = "UUID"
Array = list

_SHOWN_BYTES = 32


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Turns the `field()` lines of a class into slots."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any) -> StructType:
        fields: dict[str, Field] = {}
        for key in namespace.get("__annotations__", ()):
            if type(namespace.get(key)) is Field:
                fields[key] = namespace.pop(key)
        namespace.pop(UNKNOWN, None)
        namespace["__slots__"] = tuple(fields) if bases else (UNKNOWN,)
        namespace["fields"] = fields
        return super().__new__(mcs, name, bases, namespace, **keywords)


class Struct(metaclass=StructType):
    """A value made of fields: a message, or a part of one. Fields are given by keyword; the rest take their defaults.

    Attributes:
        fields: the class's fields in the order in which they travel.
        unknown_tags: bytes of the tagged fields that were read but are not known here, by number; they are written
            again, as in Java (KIP-482). None when there are none, as nearly always.
    """

    fields: ClassVar[dict[str, Field]]
    unknown_tags: dict[int, bytes] | None = None

    def __init__(self, **values: Any) -> None:
        """The first instance of a class compiles the real `__init__` and puts it in the place of this one."""
        from headrace.wire.layout import compile_init

        cls = type(self)
        setattr(cls, "__init__", compile_init(cls))  # noqa: B010  mypy forbids the plain assignment
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        same = all(getattr(self, name) == getattr(other, name) for name in self.fields)
        return same and (self.unknown_tags or None) == (other.unknown_tags or None)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        names = [*self.fields, UNKNOWN] if self.unknown_tags else self.fields
        shown = ", ".join(f"{name}={_show(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({shown})"


def _show(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)) and len(value) > _SHOWN_BYTES:
        return f"<{len(value)} bytes {bytes(value[:8]).hex()}...>"
    return repr(value)


class ApiMessage(Struct):
    """A structure that travels by itself and so has versions of its own.

    Attributes:
        min_version: lowest version.
        max_version: highest version.
        flexible_version: first version with compact lengths and tagged fields (KIP-482), None when there is none.
    """

    min_version: ClassVar[int] = 0
    max_version: ClassVar[int] = 0
    flexible_version: ClassVar[int | None] = None

    def __init_subclass__(cls, *, versions: str = "", flexible: str = "") -> None:
        if versions:
            cls.min_version, cls.max_version = bounds(versions)
        if flexible:
            cls.flexible_version = bounds(flexible)[0]


class Response(ApiMessage):
    """What a broker answers. Its versions are those of the request that it answers, `to`."""

    api_key: ClassVar[int] = -1

    def __init_subclass__(cls, *, to: type[Request]) -> None:
        cls.api_key = to.api_key
        cls.min_version, cls.max_version = to.min_version, to.max_version
        cls.flexible_version = to.flexible_version
        to.response_type = cls


class Request(ApiMessage):
    """What a client asks.

    Attributes:
        api_key: Kafka's number of the API.
        response_type: class of the answer.
    """

    api_key: ClassVar[int] = -1
    response_type: ClassVar[type[Response]]

    def __init_subclass__(cls, *, key: int, versions: str, flexible: str = "") -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls.api_key = key
