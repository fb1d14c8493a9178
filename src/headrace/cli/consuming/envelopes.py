"""Portions as JSON lines and as rows of CSV, which `headrace produce` reads back, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from headrace.cli.consuming.encodings_of_text import ENCODERS
from headrace.cli.consuming.portion_rows import (
    cell_part,
    header_part,
    literal,
    offset_part,
    rows_of,
    text_part,
    time_part,
)
from headrace.cli.consuming.portions import HeaderPairs, Portion
from headrace.errors import ConfigError
from headrace.records.columns.columns import Buffer
from headrace.records.columns.joined_rows import BYTES, JSON, RowPart, headers_text

__all__ = ["CSV_HEADER", "csv_rows", "json_lines"]

CSV_HEADER = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def json_lines(portion: Portion) -> Iterator[Buffer]:
    """One object a line: where the record is, and what it is.

    Bytes that are no UTF-8 are {"base64": "..."}; values that a schema was known for are JSON themselves.
    """
    front = b'{"topic":%b,"partition":%d,"offset":' % (json.dumps(portion.topic).encode(), portion.partition)
    parts = [literal(front), offset_part(portion), literal(b',"timestamp":'), time_part(portion, b"null")]
    if portion.is_control:
        parts += [literal(b","), text_part([(told or b"{}")[1:] for told in portion.values]), literal(b"\n")]
    else:
        parts += [literal(b',"key":'), _cells(portion, "keys", portion.json_keys), literal(b',"value":'),
                  _cells(portion, "values", portion.json_values), literal(b',"headers":'), header_part(portion),
                  literal(b"}\n")]
    return rows_of(parts, len(portion))


def _cells(portion: Portion, name: str, is_json: bool) -> RowPart:
    return cell_part(portion, BYTES if is_json else JSON, name, b"null")


def csv_rows(portion: Portion, encoding: str) -> bytes:
    """Rows of CSV in the order of `CSV_HEADER`; null and empty look the same.

    Args:
        portion: the records.
        encoding: of keys and values: "text", or a key of `ENCODERS`.

    Raises:
        ConfigError: a key or a value is no text.
    """
    import csv
    import io

    made = io.StringIO(newline="")
    times = ["" if time is None else time for time in portion.times()]
    csv.writer(made, lineterminator="\n").writerows(zip(
        [portion.topic] * len(portion), [portion.partition] * len(portion), portion.offsets, times,
        _texts(portion, portion.keys, encoding), _texts(portion, portion.values, encoding),
        map(_headers, portion.headers), strict=True))
    return made.getvalue().encode()


def _texts(portion: Portion, column: Sequence[bytes | None], encoding: str) -> list[str]:
    encode = ENCODERS.get(encoding)
    if encode is not None:
        return ["" if cell is None else encode(cell).decode("ascii") for cell in column]
    try:
        return [(cell or b"").decode() for cell in column]
    except UnicodeDecodeError:
        row = next(row for row, cell in enumerate(column) if not _is_text(cell or b""))
        raise ConfigError(f"{portion.topic} [{portion.partition}] offset {portion.offsets[row]}: not UTF-8, so that it "
                          "cannot be written as text in CSV: give --encoding base64 or hex") from None


def _is_text(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True


def _headers(headers: HeaderPairs) -> str:
    return headers_text(headers).decode() if headers else ""
