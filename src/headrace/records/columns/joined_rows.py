"""Rows of columns as bytes, one part behind the other: lines, format strings, JSON. The plain twin of native code.

What is put together is a list of parts, in the order in which a row has them. A part has a kind, a text, a column and
the row of its column that is row 0 here. A column of keys or values is a `BinaryColumn`, or a list of bytes and None.
It must not know what the rows are for. Read next: `headrace.records.columns.columns`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple

from headrace.records.columns.columns import BinaryColumn, Buffer, HeaderColumn, cells, header_lists
from headrace.types.records import TIMESTAMP_NOT_AVAILABLE

__all__ = ["BYTES", "HEADERS", "JSON", "LITERAL", "NUMBER", "PIECE_BYTES", "SIZE", "SIZE_32", "TIME", "RowPart",
           "headers_text", "join_rows", "json_text"]

LITERAL: Final = 0
"""The text itself, in each row."""
BYTES: Final = 1
"""Keys or values, byte for byte; the text for null."""
JSON: Final = 2
"""Keys or values as JSON, see `json_text`."""
SIZE: Final = 3
"""How many bytes a key or a value has, in digits; -1 for null."""
SIZE_32: Final = 4
"""The same as 32 bits, big-endian."""
NUMBER: Final = 5
"""Numbers of 64 bits, in digits."""
TIME: Final = 6
"""Timestamps in digits; the text where a record has none. The column is a pair: numbers of 64 bits, and their types."""
HEADERS: Final = 7
"""Headers as JSON, see `headers_text`; the column is a `HeaderColumn`."""

PIECE_BYTES: Final = 1 << 18
"""Bytes that are made at once: so many stay in the processor's cache until they are written."""

_quoted = json.JSONEncoder(ensure_ascii=False).encode


class RowPart(NamedTuple):
    """What stands at one place of each row."""

    kind: int
    text: bytes = b""
    column: Any = None
    first: int = 0


def json_text(data: bytes | None) -> bytes:
    """Bytes as JSON that `headrace produce` turns back: text, null, or {"base64": ...} where they are no UTF-8."""
    if data is None:
        return b"null"
    try:
        return _quoted(data.decode()).encode()
    except UnicodeDecodeError:
        return b'{"base64":"%b"}' % base64.b64encode(data)


def headers_text(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Headers as JSON: a list of objects with name and value."""
    return b"[" + b",".join([b'{"name":%b,"value":%b}' % (_quoted(name).encode(), json_text(value))
                             for name, value in headers]) + b"]"


def join_rows(parts: Sequence[RowPart], row: int, end: int, most_bytes: int = PIECE_BYTES) -> tuple[Buffer, int]:
    """Rows from one on, as many as it takes to have so many bytes, or all up to another.

    Args:
        parts: what a row is made of.
        row: the first row.
        end: the row behind the last one.
        most_bytes: the row that reaches this size is the last one. One row may be larger.

    Returns:
        The bytes, and the row behind them.

    Raises:
        ValueError: a column has fewer rows, or a part is of no known kind.
        TypeError: a list holds something that is neither bytes nor None.
    """
    pieces, size = [], 0
    texts = [_texts(part, part.first + row, part.first + end) for part in parts]
    while row < end and size < most_bytes:
        piece = b"".join(map(next, texts))
        pieces.append(piece)
        size += len(piece)
        row += 1
    return b"".join(pieces), row


def _texts(part: RowPart, first: int, end: int) -> Iterator[bytes]:
    """The texts of a part, row by row."""
    kind, text = part.kind, part.text
    if kind == LITERAL:
        return repeat(text)
    if kind == NUMBER:
        return (b"%d" % number for number in _numbers(part.column, first, end))
    if kind == TIME:
        times, types = part.column
        kinds = memoryview(types).cast("B")[first:end]
        _check(len(kinds), first, end)
        return (text if each == TIMESTAMP_NOT_AVAILABLE else b"%d" % time
                for time, each in zip(_numbers(times, first, end), kinds, strict=True))
    if kind == HEADERS:
        headers: HeaderColumn = part.column
        _check(len(memoryview(headers.offsets).cast("B")) // 4 - 1 - first, first, end)
        return map(headers_text, header_lists(headers, first, end))
    column = _cells(part.column, first, end)
    if kind == BYTES:
        return (text if cell is None else cell for cell in column)
    if kind == JSON:
        return map(json_text, column)
    sizes = (-1 if cell is None else len(cell) for cell in column)
    if kind == SIZE:
        return (b"%d" % size for size in sizes)
    if kind == SIZE_32:
        return (size.to_bytes(4, "big", signed=True) for size in sizes)
    raise ValueError(f"{kind} is no kind of part")


def _check(found: int, first: int, end: int) -> None:
    if first < 0 or found < end - first:
        raise ValueError("a column has fewer rows")


def _numbers(column: Buffer, first: int, end: int) -> memoryview:
    numbers = memoryview(column).cast("B").cast("q")[first:end]
    _check(len(numbers), first, end)
    return numbers


def _cells(column: BinaryColumn | list[bytes | None], first: int, end: int) -> list[bytes | None]:
    if isinstance(column, BinaryColumn):
        _check(len(memoryview(column.offsets).cast("B")) // 4 - 1 - first, first, end)
        return cells(column, first, end)
    found = column[first:end]
    _check(len(found), first, end)
    for cell in found:
        if cell is not None and not isinstance(cell, bytes):
            raise TypeError("a cell is neither bytes nor None")
    return found
