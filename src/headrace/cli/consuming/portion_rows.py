"""Portions as rows of bytes: what a part of a row reads of a portion, and all rows piece by piece (decision 0048).

Columns that were fetched are read where they lie; what was picked, decoded or received otherwise is lists. Read next:
`headrace.records.columns.joined_rows`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from headrace import records
from headrace.cli.consuming.portions import Portion
from headrace.records.columns.columns import Buffer
from headrace.records.columns.joined_rows import BYTES, HEADERS, LITERAL, NUMBER, TIME, RowPart, headers_text

__all__ = ["cell_part", "header_part", "literal", "number_part", "offset_part", "rows_of", "text_part", "time_part"]

def literal(text: bytes) -> RowPart:
    """The same in each row."""
    return RowPart(LITERAL, text)


def text_part(texts: Sequence[bytes]) -> RowPart:
    """A text for each record."""
    return RowPart(BYTES, column=texts if isinstance(texts, list) else list(texts))


def number_part(numbers: Iterable[int]) -> RowPart:
    """A number for each record."""
    return RowPart(NUMBER, column=array("q", numbers))


def cell_part(portion: Portion, kind: int, name: str, null: bytes = b"") -> RowPart:
    """Keys or values.

    Args:
        portion: the records.
        kind: one of those of `RowPart` that take them.
        name: "keys" or "values".
        null: stands for null, where the kind is `BYTES`.
    """
    column, first = portion.column(name)
    return RowPart(kind, null, column, first)


def offset_part(portion: Portion) -> RowPart:
    """Offsets."""
    column, first = portion.column("offsets")
    return RowPart(NUMBER, b"", column if portion.batch is not None else array("q", column), first)


def time_part(portion: Portion, missing: bytes) -> RowPart:
    """Timestamps in milliseconds since 1970, and what stands where a record has none."""
    times, first = portion.column("timestamps")
    types, _ = portion.column("timestamp_types")
    return RowPart(TIME, missing, (times, types) if portion.batch is not None else (array("q", times), bytes(types)),
                   first)


def header_part(portion: Portion) -> RowPart:
    """Headers as JSON."""
    column, first = portion.column("headers")
    if portion.batch is None:
        return text_part([headers_text(headers) for headers in column])
    return RowPart(HEADERS, b"", column, first) if column.total else literal(headers_text(()))


def rows_of(parts: Iterable[RowPart], count: int) -> Iterator[Buffer]:
    """So many rows, piece by piece; each piece is whole rows, in a buffer."""
    joined = _joined(parts)
    row = 0
    while row < count:
        piece, row = join_rows(joined, row, count)
        yield piece


def _joined(parts: Iterable[RowPart]) -> list[RowPart]:
    """Literals that follow each other are one."""
    joined: list[RowPart] = []
    for part in parts:
        if part.kind == LITERAL and joined and joined[-1].kind == LITERAL:
            joined[-1] = literal(joined[-1].text + part.text)
        else:
            joined.append(part)
    return joined


def _join_rows() -> Callable[[Sequence[RowPart], int, int], tuple[Buffer, int]]:
    """The native function where it was built."""
    if records.implementation == "native":
        try:
            from headrace.records._joined_rows import join_rows
        except ImportError:
            pass
        else:
            return join_rows
    from headrace.records.columns import joined_rows

    return joined_rows.join_rows


join_rows = _join_rows()
