"""Texts between quotes as .proto files write them, and the bytes that they stand for.

Read next: `schemas.proto.proto_parser`, which gives them with their quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["escaped", "unquoted"]

_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))",
                            re.DOTALL)
_LETTERS: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_WRITTEN: Final = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def unquoted(tokens: Sequence[str]) -> bytes:
    """What texts in quotes stand for, one behind the other.

    Raises:
        ValueError: an escape names no character.
    """
    return b"".join(_unescaped(each[1:-1]) for each in tokens)


def escaped(data: bytes) -> str:
    """Bytes between quotes, in ASCII, as descriptors have the defaults of bytes fields."""
    return "".join(_WRITTEN.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data)


def _unescaped(text: str) -> bytes:
    found, at = b"", 0
    for match in _ESCAPE.finditer(text):
        octal, hexadecimal, four, eight, letter = match.groups()
        found += text[at:match.start()].encode()
        if octal or hexadecimal:
            found += bytes([int(octal, 8) & 0xFF if octal else int(hexadecimal, 16)])
        elif letter:
            found += bytes([_LETTERS[letter]]) if letter in _LETTERS else letter.encode()
        else:
            found += chr(int(four or eight, 16)).encode()
        at = match.end()
    return found + text[at:].encode()
