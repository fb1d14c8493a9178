"""What is shown, before it is text or JSON: trees of nodes, and items, which are a headline with a tree below.

Trees are made while they are shown, so a reply with a million records is never a million nodes in memory.
This module must not know where things come from or how they look. Read next: `decode.output.rendering`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import NamedTuple

from headrace.errors import ProtocolError

__all__ = [
    "Damage", "Form", "Hidden", "Item", "TreeNode", "Pairs", "Value", "clock", "damage", "items", "moment", "row",
    "struct", "value",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_NS = 86_400 * 10**9


class Damage(ProtocolError):
    """Input that cannot be true, and where.

    Args:
        text: what is wrong.
        position: byte of the input at which it was found, None when that is not known.
    """

    def __init__(self, text: str, position: int | None = None) -> None:
        super().__init__(text)
        self.position = position


class Hidden(NamedTuple):
    """A secret of which only the size is shown."""

    size: int


class Pairs(tuple[tuple[str, bytes | None], ...]):
    """A record's headers, in order."""


Value = str | int | float | bool | bytes | Hidden | Pairs | None


class Form(Enum):
    """How a node is laid out."""

    VALUE = "one value"
    STRUCT = "named parts, one a line"
    LIST = "parts without names"
    ROW = "named parts; the plain ones share a line"
    DAMAGE = "a sentence about bytes that cannot be read"


class TreeNode(NamedTuple):
    """One thing to show.

    Attributes:
        name: name of the field; for an element of a list, what it is.
        value: a plain value.
        text: what text output says in place of the value; the value itself when empty.
        extra: further keys of JSON output.
        parts: what it is made of.
        form: how it is laid out.
        quiet: text output leaves it out, since it says nothing.
    """

    name: str
    value: Value = None
    text: str = ""
    extra: tuple[tuple[str, Value], ...] = ()
    parts: Iterable[TreeNode] = ()
    form: Form = Form.VALUE
    quiet: bool = False


class Item(NamedTuple):
    """A headline and what is below it.

    Attributes:
        kind: "request", "reply", "batch", "entry", "note", "damage" and so on.
        headline: one line of text.
        head: the same for JSON output.
        parts: the tree below.
        label: JSON key of the tree.
        damaged: something in it could not be read, as the headline says.
    """

    kind: str
    headline: str
    head: dict[str, Value]
    parts: Iterable[TreeNode] = ()
    label: str = "fields"
    damaged: bool = False


def value(name: str, content: Value, text: str = "", *, quiet: bool = False, **extra: Value) -> TreeNode:
    """A plain value; `extra` are further keys of JSON output."""
    return TreeNode(name, content, text, tuple(extra.items()), quiet=quiet)


def struct(name: str, parts: Iterable[TreeNode], *, quiet: bool = False) -> TreeNode:
    """Named parts, one a line."""
    return TreeNode(name, parts=parts, form=Form.STRUCT, quiet=quiet)


def items(name: str, parts: Iterable[TreeNode], count: int) -> TreeNode:
    """A list; `count` is what text output shows when it is empty."""
    return TreeNode(name, count, parts=parts, form=Form.LIST)


def row(name: str, parts: Iterable[TreeNode]) -> TreeNode:
    """Named parts that share a line."""
    return TreeNode(name, parts=parts, form=Form.ROW)


def damage(text: str) -> TreeNode:
    """A sentence about bytes that cannot be read."""
    return TreeNode("damage", text, text, form=Form.DAMAGE)


def moment(name: str, milliseconds: int, none: str = "none") -> TreeNode:
    """A time of the wire: milliseconds since the epoch, negative for none or for a meaning of its own."""
    if milliseconds < 0:
        return value(name, milliseconds, f"{milliseconds} ({none})")
    utc = clock(milliseconds * 1_000_000, digits=3)
    return TreeNode(name, milliseconds, utc, ((f"{name}_utc", utc),))


def clock(nanoseconds: int, digits: int = 6) -> str:
    """A time as UTC text. Text captures have the time of day without a date: those times lie on the epoch's first day.

    Args:
        nanoseconds: since the epoch.
        digits: of the second's fraction.
    """
    try:
        whole = _EPOCH + timedelta(seconds=nanoseconds // 10**9)
    except OverflowError:
        return f"{nanoseconds} ns"
    fraction = f"{nanoseconds % 10**9:09d}"[:digits]
    if 0 < nanoseconds < _DAY_NS:
        return f"{whole:%H:%M:%S}.{fraction}"
    return f"{whole:%Y-%m-%d %H:%M:%S}.{fraction}Z"
