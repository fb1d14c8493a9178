"""Functions that are made of text while a program runs: codecs of messages, constructors.

Compiling those that the first client of a process needs takes as long as all else that it does. So the code of such
texts is made when the package is built, as Python's own is (`tools/compiled_texts.py`), and looked up here. Where there
is none (no wheel, another text, another Python) it is made now; the function is the same.
"""

from __future__ import annotations

import marshal
import os
from functools import cache
from importlib.util import MAGIC_NUMBER, source_hash
from struct import Struct as Packer
from struct import error as StructError  # noqa: N812  it is a class
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["NONE", "TABLE", "Table", "code_of", "function_of", "read_table", "table_of"]

TABLE = os.path.join(os.path.dirname(__file__), "_compiled.bin")
"""The file with the table."""

_START = MAGIC_NUMBER + b"1"
"""Python's number for its byte code, and ours for the table."""
_SIZES = Packer(">II")
"""Bytes of the places and of the codes."""
_NOWHERE = b"", 0, 0


class Table(NamedTuple):
    """Code of texts.

    Attributes:
        places: by title, the hash of the text (PEP 552) and where its code begins and ends.
        codes: of all, as `marshal` writes them.
    """

    places: dict[str, tuple[bytes, int, int]]
    codes: memoryview


NONE = Table({}, memoryview(b""))


def function_of(name: str, text: str, names: dict[str, Any], title: str) -> Any:
    """The function `name` that a text defines.

    Args:
        name: what the text defines.
        text: source text.
        names: what it refers to.
        title: stands in tracebacks for the file, and is of this text alone.
    """
    exec(code_of(text, title, _package_table()), names)
    return names[name]


def code_of(text: str, title: str, table: Table) -> CodeType:
    """The code of a text, from a table or compiled."""
    digest, start, stop = table.places.get(title, _NOWHERE)
    if digest and digest == source_hash(text.encode()):
        code: CodeType = marshal.loads(table.codes[start:stop])
        return code
    return compile(text, f"<{title}>", "exec")


def table_of(texts: dict[str, str]) -> bytes:
    """What the file holds when these texts, by title, are to be found in it."""
    places, codes = {}, bytearray()
    for title, text in texts.items():
        start = len(codes)
        codes += marshal.dumps(code_of(text, title, NONE))
        places[title] = source_hash(text.encode()), start, len(codes)
    head = marshal.dumps(places)
    return _START + _SIZES.pack(len(head), len(codes)) + head + codes


def read_table(data: bytes) -> Table:
    """The table that `table_of` wrote; an empty one if another Python did, or if it is cut short."""
    if not data.startswith(_START):
        return NONE
    try:
        size, rest = _SIZES.unpack_from(data, len(_START))
        codes = len(_START) + _SIZES.size + size
        if len(data) != codes + rest:
            return NONE
        return Table(marshal.loads(data[codes - size:codes]), memoryview(data)[codes:])
    except StructError:
        return NONE


@cache
def _package_table() -> Table:
    try:
        with open(TABLE, "rb") as file:
            return read_table(file.read())
    except OSError:
        return NONE
