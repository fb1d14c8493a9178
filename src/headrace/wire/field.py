"""How one field of a message travels, in the words of the class: nothing is read here but ranges of versions.

Read next: `wire.schema`, which makes classes of fields, and `wire.layout`, which reads them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `headrace`: all messages import this module
if TYPE_CHECKING:
    from typing import Any, Final

__all__ = ["ALL", "NO_END", "UNKNOWN", "UNSET", "Field", "bounds", "field"]

ALL: Final = "0+"
"""Every version."""

NO_END: Final = 0x7FFF
"""Highest version of a range without an end."""

UNSET: Final[Any] = object()
"""Stands for "no default given": the type's zero, or a fresh list or structure."""

UNKNOWN: Final = "unknown_tags"
"""Attribute of every structure that keeps the tagged fields which were read but are not known."""

_fields: dict[tuple[object, ...], Field] = {}


class Field:
    """How one field of a message travels; made by `field()`, which explains the parts."""

    __slots__ = ("default", "ignorable", "nullable", "tag", "tagged", "versions")

    def __init__(
        self, versions: str, default: Any, nullable: str, tag: int | None, tagged: str, ignorable: bool
    ) -> None:
        self.versions = versions
        self.default = default
        self.nullable = nullable
        self.tag = tag
        self.tagged = tagged
        self.ignorable = ignorable


def field(
    versions: str = ALL,
    *,
    default: Any = UNSET,
    nullable: str = "",
    tag: int | None = None,
    tagged: str = "",
    ignorable: bool = False,
) -> Any:
    """Describe a field of a message.

    Args:
        versions: message versions that have the field: ``"3+"``, ``"0-12"``, ``"2"``.
        default: its value when it is not given or not sent; the type's zero when left out.
        nullable: versions in which None may be sent; those of the field when left out and the annotation allows None.
        tag: number of a tagged field (KIP-482); a tagged field is sent only when it differs from its default.
        tagged: versions in which the field is tagged; those of the field when left out.
        ignorable: a value may be dropped in silence when the negotiated version lacks the field.

    Returns:
        The same object for the same arguments: 1,700 fields are of 130 kinds.
    """
    kind = (versions, default, type(default), nullable, tag, tagged, ignorable)  # 0, 0.0 and False are equal
    found = _fields.get(kind)
    if found is None:
        found = _fields[kind] = Field(versions, default, nullable, tag, tagged, ignorable)
    return found


def bounds(text: str) -> tuple[int, int]:
    """Lowest and highest version of a range that is written ``"0-13"``, ``"3+"`` or ``"2"``."""
    if text.endswith("+"):
        return int(text[:-1]), NO_END
    low, _, high = text.partition("-")
    return int(low), int(high or low)
