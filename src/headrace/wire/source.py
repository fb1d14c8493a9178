"""Lines of a generated function under construction. Used by `wire.writing` and `wire.reading`."""

from __future__ import annotations

from struct import Struct as Packer
from typing import Any

from headrace.wire.layout import is_flexible

__all__ = ["Source"]

_KEPT = 64


class _ByCount(dict[int, Any]):
    """What packs or unpacks `count` numbers of one kind. Kept for short arrays only, so that memory stays bounded."""

    def __init__(self, verb: str, letter: str) -> None:
        self._verb = verb
        self._letter = letter

    def __missing__(self, count: int) -> Any:
        function = getattr(Packer(f">{count}{self._letter}"), self._verb)
        if count <= _KEPT:
            self[count] = function
        return function


_arrays: dict[tuple[str, str], _ByCount] = {}


class Source:
    """The body of a function that handles one version of one message.

    Args:
        message: class of the message.
        version: the version.
        names: what the lines may refer to.

    Attributes:
        flexible: the version has compact lengths and tagged fields.
        run: letters and places of fixed-size values that are to be packed or unpacked together, and what is to be
            done with each when it was read.
    """

    def __init__(self, message: type[Any], version: int, names: dict[str, Any]) -> None:
        self.message = message
        self.version = version
        self.flexible = is_flexible(message, version)
        self.names = names
        self.run: list[tuple[str, str, str]] = []
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
        return self._named("pack", letters, Packer(f">{letters}").pack)

    def unpacker(self, letters: str) -> str:
        """Name of a function that unpacks fixed-size values at a position."""
        return self._named("unpack", letters, Packer(f">{letters}").unpack_from)

    def packers(self, letter: str) -> str:
        """Name of a table with what packs so many numbers of one kind."""
        return self._named("packs", letter, _arrays.setdefault(("pack", letter), _ByCount("pack", letter)))

    def unpackers(self, letter: str) -> str:
        """Name of a table with what unpacks so many numbers of one kind."""
        verb = "unpack_from"
        return self._named("unpacks", letter, _arrays.setdefault((verb, letter), _ByCount(verb, letter)))

    def take_run(self) -> tuple[str, list[str], list[str]]:
        """Empty the run: its letters, its places, and the lines that follow."""
        letters = "".join(letter for letter, _, _ in self.run)
        places, after = [place for _, place, _ in self.run], [line for _, _, line in self.run if line]
        self.run.clear()
        return letters, places, after

    def _named(self, verb: str, letters: str, function: Any) -> str:
        name = f"{verb}_{letters.replace('?', 'o')}"
        self.names[name] = function
        return name

    def function(self, head: str, result: str) -> str:
        """The whole function."""
        return "\n".join([head, *self._lines, f"    return {result}"])
