"""Lines of a generated function under construction. Used by `wire.writing` and `wire.reading`."""

from __future__ import annotations

from struct import Struct as Packer
from typing import Any

from headrace.wire.layout import is_flexible

__all__ = ["Source"]


class Source:
    """The body of a function that handles one version of one message.

    Args:
        message: class of the message.
        version: the version.
        names: what the lines may refer to.

    Attributes:
        flexible: the version has compact lengths and tagged fields.
    """

    def __init__(self, message: type[Any], version: int, names: dict[str, Any]) -> None:
        self.version = version
        self.flexible = is_flexible(message, version)
        self.names = names
        self._lines: list[str] = []
        self._depth = 1
        self._fresh = 0

    def add(self, *lines: str) -> None:
        """Append lines at the present depth."""
        self._lines.extend("    " * self._depth + line for line in lines)

    def indent(self, by: int) -> None:
        """Go `by` levels deeper, or back up when it is negative."""
        self._depth += by

    def fresh(self, stem: str) -> str:
        """A variable name that is not used yet."""
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def packer(self, letters: str) -> str:
        """Name of a function that packs fixed-size values, big-endian."""
        return self._struct("pack", letters, Packer(f">{letters}").pack)

    def unpacker(self, letters: str) -> str:
        """Name of a function that unpacks fixed-size values at a position."""
        return self._struct("unpack", letters, Packer(f">{letters}").unpack_from)

    def _struct(self, verb: str, letters: str, function: Any) -> str:
        name = f"{verb}_{letters.replace('?', 'o')}"
        self.names[name] = function
        return name

    def function(self, head: str, result: str) -> str:
        """The whole function."""
        return "\n".join([head, *self._lines, f"    return {result}"])
