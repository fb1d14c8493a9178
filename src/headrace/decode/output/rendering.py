"""Items as text for people, or as JSON Lines for programs. Both read the tree once and keep nothing of it.

Text that comes from the input is never printed raw: what a terminal would obey is escaped.
Read next: `headrace.cli.decode`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final, Protocol

from headrace.decode.output.nodes import Form, Hidden, Item, Pairs, TreeNode, Value

__all__ = ["JsonOutput", "Output", "TextOutput", "clean", "shown"]

_BOLD, _RED, _DIM, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[2m", "\x1b[0m"
_LINE: Final = 110
_CUT = "…"


class Output(Protocol):
    """Takes items and counts what is damaged in them."""

    damaged: int

    def show(self, item: Item) -> None:
        """Write one item."""


def clean(text: str) -> str:
    """Text with everything escaped that is not printable."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(content: Value, width: int) -> str:
    """A value as text.

    Args:
        content: the value.
        width: characters after which a text is cut; 0 for never.
    """
    if content is None:
        return "null"
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, Hidden):
        return f"<hidden {content.size} bytes>"
    if isinstance(content, Pairs):
        return ", ".join(f"{clean(name)}={shown(inner, width)}" for name, inner in content)
    if isinstance(content, bytes):
        return _shown_bytes(content, width)
    return _quoted(content, len(content), width) if isinstance(content, str) else str(content)


def _shown_bytes(content: bytes, width: int) -> str:
    """Quoted text when the bytes are UTF-8 that can be printed, else hex."""
    head = content if not width or len(content) <= 4 * width else content[:4 * width]
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # A character that the cut has halved is no reason against text.
        if len(head) == len(content) or error.start < len(head) - 3:
            return _hex(content, width)
        text = head[:error.start].decode()
    if all(c.isprintable() or c in "\t\n\r" for c in text):
        return _quoted(text, len(content), width)
    return _hex(content, width)


def _hex(content: bytes, width: int) -> str:
    if width and 2 * len(content) > width:
        return f"0x{content[:width // 2].hex()}{_CUT} ({len(content)} bytes)"
    return f"0x{content.hex()}"


def _quoted(text: str, size: int, width: int) -> str:
    if width and (len(text) > width or size > 4 * width):
        return f'"{_escaped(text[:width])}{_CUT}" ({size} bytes)'
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return clean(text.replace("\\", "\\\\").replace('"', '\\"'))


class TextOutput:
    """Readable text: a headline for each item, and its tree indented below.

    Args:
        write: takes text.
        width: characters after which a value is cut; 0 for never.
        colour: mark headlines and damage.
        fields: show the trees.
    """

    def __init__(self, write: Callable[[str], object], *, width: int, colour: bool, fields: bool) -> None:
        self.damaged = 0
        self._write = write
        self._width = width
        self._colour = colour
        self._fields = fields

    def show(self, item: Item) -> None:
        """Write one item."""
        self.damaged += item.damaged
        headline = self._marked(_RED if item.damaged else _BOLD, clean(item.headline))
        if item.label:
            self._line(0, headline)
            for node in item.parts if self._fields else ():
                self._node(node, 1)
        else:
            self._row(headline + ":", item.parts, 0, self._fields)

    def _marked(self, mark: str, text: str) -> str:
        return f"{mark}{text}{_PLAIN}" if self._colour else text

    def _line(self, depth: int, text: str) -> None:
        self._write(f"{'  ' * depth}{text}\n")

    def _text(self, node: TreeNode) -> str:
        return clean(node.text) if node.text else shown(node.value, self._width)

    def _node(self, node: TreeNode, depth: int) -> None:
        if node.quiet:
            return
        if node.form is Form.VALUE:
            self._line(depth, f"{node.name}: {self._text(node)}")
        elif node.form is Form.DAMAGE:
            self._damage(node, depth)
        elif node.form is Form.ROW:
            self._row(node.name, node.parts, depth, True)
        elif node.form is Form.LIST:
            self._list(node, depth)
        else:
            self._struct(node, depth)

    def _damage(self, node: TreeNode, depth: int) -> None:
        self.damaged += 1
        self._line(depth, self._marked(_RED, f"damaged: {clean(node.text)}"))

    def _struct(self, node: TreeNode, depth: int) -> None:
        parts = [part for part in node.parts if not part.quiet]
        if all(part.form is Form.VALUE for part in parts):
            line = ", ".join(f"{part.name} {self._text(part)}" for part in parts)
            if len(line) <= _LINE:
                self._line(depth, f"{node.name}: {line or 'empty'}")
                return
        self._line(depth, f"{node.name}:")
        for part in parts:
            self._node(part, depth + 1)

    def _row(self, name: str, parts: Iterable[TreeNode], depth: int, below: bool) -> None:
        words, rest = [], []
        for part in parts:
            if part.form is Form.VALUE and not part.quiet:
                text = self._text(part)
                words.append(text if text == part.name else f"{part.name} {text}")
            elif part.form is not Form.VALUE:
                rest.append(part)
        self._line(depth, f"{name} {', '.join(words)}")
        for part in rest:
            if below or part.form is Form.DAMAGE:
                self._node(part, depth + 1)

    def _list(self, node: TreeNode, depth: int) -> None:
        parts = iter(node.parts)
        first = next(parts, None)
        if first is None:
            self._line(depth, f"{node.name}: none")
            return
        if first.form is Form.VALUE and first.name == node.name:
            self._line(depth, f"{node.name}: {', '.join(self._text(part) for part in chain([first], parts))}")
            return
        self._line(depth, f"{node.name} ({self._text(node)}):")
        for part in chain([first], parts):
            self._node(part, depth + 1)


class JsonOutput:
    """One JSON object a line. Values are whole; bytes are text when they are UTF-8 and ``{"hex": ...}`` otherwise.

    Args:
        write: takes text.
        fields: write the trees.
    """

    def __init__(self, write: Callable[[str], object], *, fields: bool) -> None:
        self.damaged = 0
        self._write = write
        self._fields = fields

    def show(self, item: Item) -> None:
        """Write one item."""
        if item.kind == "heading":
            return
        self.damaged += item.damaged
        head = chain([("kind", item.kind)], item.head.items())
        self._write("{" + ", ".join(f"{_json(name)}: {_json(content)}" for name, content in head))
        if item.label and self._fields and item.parts:
            self._write(f", {_json(item.label)}: {{")
            self._members(item.parts, "")
            self._write("}")
        if not item.label:
            flat = item.parts if self._fields else (p for p in item.parts if p.form in (Form.VALUE, Form.DAMAGE))
            self._members(flat, ", ")
        self._write("}\n")

    def _members(self, parts: Iterable[TreeNode], between: str) -> None:
        damages = 0
        for part in parts:
            name = part.name
            if part.form is Form.DAMAGE:
                damages += 1
                name = "damage" if damages == 1 else f"damage_{damages}"
            self._write(f"{between}{_json(name)}: ")
            self._content(part)
            for extra, more in part.extra:
                self._write(f", {_json(extra)}: {_json(more)}")
            between = ", "

    def _content(self, node: TreeNode) -> None:
        if node.form in (Form.VALUE, Form.DAMAGE):
            self.damaged += node.form is Form.DAMAGE
            self._write(_json(node.value))
        elif node.form is Form.LIST:
            self._write("[")
            for count, part in enumerate(node.parts):
                self._write(", " if count else "")
                self._element(part, node.name)
            self._write("]")
        else:
            self._write("{")
            self._members(node.parts, "")
            self._write("}")

    def _element(self, part: TreeNode, name: str) -> None:
        if part.form is Form.DAMAGE or (part.form is Form.VALUE and part.name != name):
            self._write("{")
            self._members([part], "")
            self._write("}")
        else:
            self._content(part)


def _json(content: Value) -> str:
    return json.dumps(_plain(content), ensure_ascii=False)


def _plain(content: Value) -> object:
    if isinstance(content, bytes):
        try:
            return content.decode()
        except UnicodeDecodeError:
            return {"hex": content.hex()}
    if isinstance(content, Hidden):
        return {"hidden_bytes": content.size}
    if isinstance(content, Pairs):
        return [{"name": name, "value": _plain(inner)} for name, inner in content]
    if isinstance(content, float) and not math.isfinite(content):
        return str(content)
    return content
