"""What commands print: rows with named columns, as a table, JSON, TSV or names only.

A table is for people: aligned, without the columns that only `wide` shows, and marked on a terminal. JSON and TSV are
for programs: every column, under the keys that `docs/reference/command-line.md` documents, and nothing cut anywhere.
Read next: `cli.shared.subcommands`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TextIO

__all__ = ["FORMS", "Column", "amount", "coloured", "date", "human_size", "id_text", "print_rows", "printable",
           "table_lines"]

FORMS: Final = ("table", "wide", "json", "tsv", "name")
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP: Final = 1024
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_URL_SAFE: Final = str.maketrans("+/", "-_")
_TSV: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


class Column(NamedTuple):
    """A column of what a command prints.

    Args:
        key: its name in JSON and TSV.
        about: what it means; for the reference page.
        wide: a table has it with `-o wide` only.
        shown: makes the text for a table; numbers, lists and yes or no are known without.
    """

    key: str
    about: str
    wide: bool = False
    shown: Callable[[Any], str] | None = None


def amount(count: int, noun: str, plural: str = "") -> str:
    """A number and a noun: 1 record, 2,000 records; the plural has an s unless it is given."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def print_rows(
    form: str, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]], stream: TextIO | None = None, *,
    header: bool = True,
) -> None:
    """Print rows.

    Args:
        form: one of `FORMS`; `name` prints the first column.
        columns: what each row has.
        rows: values by key, of types that JSON knows; what is missing is None.
        stream: where to; standard output when None.
        header: TSV begins with the keys.
    """
    stream = sys.stdout if stream is None else stream
    if form == "json":
        import json

        found = [{column.key: row.get(column.key) for column in columns} for row in rows]
        print(json.dumps(found, indent=2, ensure_ascii=False), file=stream)
    elif form == "tsv":
        if header:
            print("\t".join(column.key for column in columns), file=stream)
        for row in rows:
            print("\t".join(_plain(row.get(column.key)).translate(_TSV) for column in columns), file=stream)
    elif form == "name":
        for name in dict.fromkeys(_plain(row.get(columns[0].key)) for row in rows):
            print(printable(name), file=stream)
    else:
        shown = [column for column in columns if form == "wide" or not column.wide]
        for line in table_lines(shown, list(rows), marked=coloured(stream)):
            print(line, file=stream)


def table_lines(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], *, marked: bool = False) -> list[str]:
    """The lines of a table, its head first.

    Args:
        columns: all of them are shown.
        rows: values by key.
        marked: the head is bold, by an escape sequence of terminals.
    """
    right = [any(_is_number(row.get(column.key)) for row in rows) for column in columns]
    cells = [[column.key.replace("_", "-").upper() for column in columns],
             *([_cell(column, row.get(column.key)) for column in columns] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    lines = ["  ".join(cell.rjust(width) if numeric else cell.ljust(width)
                       for cell, width, numeric in zip(row, widths, right, strict=True)).rstrip() for row in cells]
    return [f"{_BOLD}{lines[0]}{_PLAIN}" if marked else lines[0], *lines[1:]]


def coloured(stream: TextIO) -> bool:
    """Whether escape sequences are welcome: on a terminal that is not dumb, and not with NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """A text without what would move the cursor or break the line."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode()
                   for each in text)


def human_size(count: Any) -> str:
    """Bytes in the largest unit of which there is one; `-` for None."""
    if count is None:
        return "-"
    size, unit = float(count), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{count} B" if not unit else f"{size:.1f} {_UNITS[unit]}"


def id_text(found: Any) -> str:
    """A UUID as Kafka's own tools show it; `Uuid` shows it as librdkafka does, with / and +."""
    return str(found).translate(_URL_SAFE)


def date(time_ms: Any) -> str:
    """Milliseconds since the epoch as ISO 8601, in UTC; `-` for None."""
    if time_ms is None:
        return "-"
    from datetime import UTC, datetime

    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _cell(column: Column, value: Any) -> str:
    if column.shown is not None:
        return printable(column.shown(value))
    return printable(_plain(value)) or "-"


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(map(_plain, value))
    return str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
