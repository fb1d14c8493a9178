"""What the three kinds of schemas have in common: the parsed schema, the incompatibility, the error, the limits.

A schema comes from anybody who may register one, so each parser bounds how deep and how large it may be before it
looks at it. It must not know a registry. Read next: `schemas.avro`.
"""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any, Final, Protocol, Self

from headrace.slotted import slotted

__all__ = ["MAX_DEPTH", "MAX_TEXT", "Incompatibility", "InvalidSchemaError", "ParsedSchema", "ReferencedSchema",
           "checked_size", "compact", "load_json"]

MAX_DEPTH = 100
"""Most levels of types within types."""
MAX_TEXT = 4_000_000
"""Most characters of a schema's text. A registry keeps it in a record, which has a mebibyte at most."""
_MAX_JSON_DEPTH = 400
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS: Final = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")
"""Of brackets: one level down or, as a signed byte, up."""


class InvalidSchemaError(ValueError):
    """A text is no schema of its kind, or one beyond the limits. The message says where and why."""


@slotted(frozen=True)
class ReferencedSchema:
    """A schema that another one refers to.

    Attributes:
        name: how the other one calls it: a full name (Avro), a URL (JSON Schema), the path of an import (Protobuf).
        text: the schema.
    """

    name: str
    text: str


@slotted(frozen=True)
class Incompatibility:
    """Why what was written with one schema cannot be read with another.

    Attributes:
        type: the kind, as Confluent's registry names it.
        message: what it is about.
        location: where in the reader's schema.
        description: one sentence for people.
    """

    type: str
    message: str
    location: str
    description: str

    def __str__(self) -> str:
        return f"{{errorType:'{self.type}', description:'{self.description}', additionalInfo:'{self.message}'}}"


class ParsedSchema(Protocol):
    """A schema of one of the three kinds."""

    @property
    def schema_type(self) -> str:
        """`AVRO`, `JSON` or `PROTOBUF`."""

    def canonical(self) -> str:
        """The text that a registry keeps: equal for texts that differ only in how they are laid out."""

    def normalized(self) -> str:
        """The text that a registry keeps when it is asked to normalise."""

    def formatted(self, name: str) -> str:
        """The schema in a format that a client asks for; `canonical` for formats that its kind does not know."""

    def can_read(self, written: Self) -> list[Incompatibility]:
        """Why this schema cannot read what was written with another; empty when it can."""


def checked_size(text: str, name: str = "the schema") -> str:
    """The text, if it is not too long.

    Raises:
        InvalidSchemaError: it is.
    """
    if len(text) > MAX_TEXT:
        raise InvalidSchemaError(f"{name} has {len(text):,} characters; {MAX_TEXT:,} are allowed")
    return text


def load_json(text: str, name: str = "the schema") -> Any:
    """The value of a JSON text whose size and depth are bounded.

    Raises:
        InvalidSchemaError: it is no JSON, or beyond the limits.
    """
    checked_size(text, name)
    if _depth(text) > _MAX_JSON_DEPTH:
        raise InvalidSchemaError(f"{name} is nested too deep: more than {_MAX_JSON_DEPTH} brackets are open")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise InvalidSchemaError(f"{name} is not JSON: {error}") from None


def _depth(text: str) -> int:
    """Most brackets that are open at once, outside of strings. The time grows with the text, whatever it says."""
    without_strings = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    brackets = without_strings.encode(errors="replace").translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(memoryview(brackets).cast("b")), default=0)


def compact(value: Any) -> str:
    """JSON without spaces, keys in the order in which they are."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")

