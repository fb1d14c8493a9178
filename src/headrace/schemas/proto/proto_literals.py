"""Texts between quotes and numbers as .proto files write them, and what they stand for.

Read next: `schemas.proto.proto_parser`, which gives them with their quotes.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from typing import Final

__all__ = ["escaped", "real", "shown_number", "unquoted", "whole"]

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


def whole(text: str) -> int:
    """A whole number: decimal, hexadecimal behind 0x, or octal behind 0.

    Raises:
        ValueError: it is none.
    """
    digits = text.lstrip("+-")
    value = int(digits, 16 if digits[:2] in ("0x", "0X") else 8 if digits[:1] == "0" else 10)
    return -value if text[0] == "-" else value


def real(text: str) -> float:
    """A number of a float or double field, which may be written as a whole one.

    Raises:
        ValueError: it is none.
    """
    digits = text.lstrip("+-")
    is_decimal = digits[:1] != "0" or not (digits.isdigit() or digits[:2] in ("0x", "0X"))
    value = float(digits) if is_decimal else float(whole(digits))
    return -value if text[0] == "-" else value


def shown_number(text: str, kind: str) -> str:
    """A number as descriptors have the defaults of number fields; what is none stays as it is.

    Args:
        text: as the file has it.
        kind: the field's type.
    """
    try:
        if kind not in ("float", "double"):
            return str(whole(text))
        value = real(text)
        if kind == "double":
            short = f"{value:.15g}"
            return short if float(short) == value else f"{value:.17g}"
        value = _as_float32(value)
        short = f"{value:.6g}"
        return short if _as_float32(float(short)) == value else f"{value:.9g}"
    except ValueError:
        return text


def _as_float32(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded
