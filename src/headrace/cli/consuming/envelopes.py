"""Portions as JSON lines and as rows of CSV, which `headrace produce` reads back, byte for byte."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from headrace.cli.consuming.line_formats import ENCODERS, headers_text, json_text
from headrace.cli.consuming.portions import HeaderPairs, Portion
from headrace.errors import ConfigError

__all__ = ["CSV_HEADER", "csv_rows", "json_lines"]

CSV_HEADER = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def json_lines(portion: Portion) -> bytes:
    """One object a line: where the record is, and what it is.

    Bytes that are no UTF-8 are {"base64": "..."}; values that a schema was known for are JSON themselves.
    """
    front = b'{"topic":%b,"partition":%d,"offset":' % (json.dumps(portion.topic).encode(), portion.partition)
    if portion.is_control:
        rows = zip(portion.offsets, portion.timestamps, portion.values, strict=True)
        return b"".join([b"%b%d,\"timestamp\":%d,%b\n" % (front, offset, time, (told or b"{}")[1:])
                         for offset, time, told in rows])
    cells = zip(
        portion.offsets, [b"null" if time is None else b"%d" % time for time in portion.times()],
        _cells(portion.keys, portion.json_keys), _cells(portion.values, portion.json_values),
        [headers_text(headers) for headers in portion.headers] if any(portion.headers) else [b"[]"] * len(portion),
        strict=True)
    return b"".join([b'%b%d,"timestamp":%b,"key":%b,"value":%b,"headers":%b}\n' % (front, *row) for row in cells])


def _cells(column: Sequence[bytes | None], is_json: bool) -> list[bytes]:
    return [cell or b"null" for cell in column] if is_json else [json_text(cell) for cell in column]


def csv_rows(portion: Portion, encoding: str) -> bytes:
    """Rows of CSV in the order of `CSV_HEADER`; null and empty look the same.

    Args:
        portion: the records.
        encoding: of keys and values: "text", or a key of `ENCODERS`.

    Raises:
        ConfigError: a key or a value is no text.
    """
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
