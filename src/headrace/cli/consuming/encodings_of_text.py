"""What the command line says of text: escapes in delimiters, and encodings of binary keys and values.

Apart from `line_formats`, because the help and complaints need it and no records. Read next: `line_formats`.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable

__all__ = ["ENCODERS", "escaped"]

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "hex": lambda data: data.hex().encode(), "base64": base64.b64encode}
"""How keys and values that are binary are written in text."""


def escaped(text: str) -> bytes:
    """The bytes of a text with C's escapes.

    Raises:
        ValueError: an escape is wrong.
    """
    return bytes(codecs.escape_decode(text.encode("utf-8", "surrogateescape"))[0])
