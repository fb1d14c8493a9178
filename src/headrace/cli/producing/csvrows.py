"""CSV as slices: a role for each column. Without pyarrow, row by row."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from headrace.cli.producing.jsonlines import headers_of, timestamp_of
from headrace.cli.producing.lines import DECODERS
from headrace.cli.producing.slices import SLICE_RECORDS, Headers, Malformed, Places, Slice
from headrace.errors import ConfigError

__all__ = ["ALL_COLUMNS", "CsvForm", "csv_slices"]

ALL_COLUMNS = "*"
"""As the column of values: an object with all columns that have no other role."""
_ROLES = ("value", "key", "partition", "timestamp", "headers")


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How to read a CSV file.

    Attributes:
        delimiter: one character between two fields.
        header: the first row has the names of the columns; they are called 1, 2, 3 and so on otherwise.
        roles: names of columns by role; a role that is not named takes the column that is called like it.
        encoding: of keys and values: "text", or a key of `DECODERS`.
        limit: longest field, in characters.
    """

    delimiter: str
    header: bool
    roles: dict[str, str]
    encoding: str
    limit: int


class _Feed:
    """Lines as text for the CSV reader, which asks for as many as a row has."""

    def __init__(self, lines: Iterator[tuple[int, list[bytes]]], places: Places) -> None:
        self._lines = lines
        self._places = places
        self.number = 0  # of the line that was given last
        self.waits = False  # nothing more is at hand: what is read should be sent before the next line is asked for

    def __iter__(self) -> Iterator[str]:
        for first, found in self._lines:
            self._places.reached(first + len(found) - 1)
            for number, line in enumerate(found, first):
                self.number = number
                self.waits = number == first + len(found) - 1
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise csv.Error(f"not UTF-8 at byte {error.start}") from None
                yield text + "\n"


def csv_slices(
    lines: Iterator[tuple[int, list[bytes]]], places: Places, malformed: Malformed, form: CsvForm
) -> Iterator[Slice]:
    """Rows as records.

    Raises:
        ConfigError: there is no such column.
    """
    csv.field_size_limit(form.limit)
    feed = _Feed(lines, places)
    rows = _rows(feed, malformed, form)
    first = next(rows, None)
    if first is None:
        return
    names = first[1] if form.header else [str(number) for number in range(1, len(first[1]) + 1)]
    columns = _Columns(names, form)
    made, good = columns.slice(), list[int]()
    for number, row in rows if form.header else chain([first], rows):
        why = columns.take(made, row)
        if not why:
            good.append(number)
        elif malformed(number, why):
            break
        if feed.waits or len(made) >= SLICE_RECORDS:
            made.lines = good
            yield made
            made, good = columns.slice(), []
    made.lines = good
    yield made


def _rows(feed: _Feed, malformed: Malformed, form: CsvForm) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with the number of the line where each begins."""
    reader = csv.reader(iter(feed), delimiter=form.delimiter, strict=True)
    while True:
        number = feed.number + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # Where the next row begins is not known any more, so that this is not passed over.
            malformed(number, f"not CSV: {error}; what follows cannot be read")
            return
        if row:
            yield number, row


class _Columns:
    """Which column is what.

    Args:
        names: of all columns.
        form: says the roles.
    """

    def __init__(self, names: list[str], form: CsvForm) -> None:
        self._names = names
        self._decode = DECODERS.get(form.encoding)
        found = {role: self._place(role, form.roles.get(role)) for role in _ROLES}
        self._places = {role: place for role, place in found.items() if place is not None}
        self._rest: list[int] | None = None
        if form.roles.get("value") == ALL_COLUMNS:
            self._rest = [place for place in range(len(names)) if place not in self._places.values()]

    def _place(self, role: str, name: str | None) -> int | None:
        if name == ALL_COLUMNS and role == "value":
            return None
        wanted = role if name is None else name
        count = self._names.count(wanted)
        if count == 1:
            return self._names.index(wanted)
        if count > 1 or name is not None or role == "value":
            remedy = f"name one with --{role}-column" + (", or '*' for an object of all columns" * (role == "value"))
            raise ConfigError(f"there is {'more than one' if count else 'no'} column {wanted!r} for the {role}: "
                              f"{remedy}; the columns are {', '.join(map(repr, self._names))}")
        return None

    def slice(self) -> Slice:
        """An empty slice with the columns that there are."""
        has = self._places
        return Slice([], [], [] if "key" in has else None, [] if "partition" in has else None,
                     [] if "timestamp" in has else None, [] if "headers" in has else None)

    def take(self, made: Slice, row: list[str]) -> str:
        """Add a row to a slice; returns what is wrong with it if it is no record."""
        try:
            if len(row) != len(self._names):
                raise ValueError(f"{len(row)} fields where {len(self._names)} columns are")
            value = self._value(row)
            parts = {role: row[place] for role, place in self._places.items() if role != "value"}
            key = self._bytes(parts["key"], "key") if made.keys is not None else None
            partition = _partition(parts["partition"]) if made.partitions is not None else -1
            timestamp = _timestamp(parts["timestamp"]) if made.timestamps is not None else 0
            headers = _headers(parts["headers"]) if made.headers is not None else []
        except ValueError as error:
            return str(error)
        made.values.append(value)
        for column, content in ((made.keys, key), (made.partitions, partition), (made.timestamps, timestamp),
                                (made.headers, headers)):
            if column is not None:
                column.append(content)  # type: ignore[arg-type]
        return ""

    def _value(self, row: list[str]) -> bytes:
        if self._rest is None:
            return self._bytes(row[self._places["value"]], "value")
        shown = {self._names[place]: row[place] for place in self._rest}
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()

    def _bytes(self, text: str, role: str) -> bytes:
        if self._decode is None:
            return text.encode()
        try:
            return self._decode(text.encode())
        except ValueError as error:
            raise ValueError(f"the {role} cannot be decoded: {error}") from None


def _partition(text: str) -> int:
    if not text:
        return -1
    if not text.isascii() or not text.isdigit() or int(text) >= 1 << 31:
        raise ValueError(f"partition {text!r} is not a partition number")
    return int(text)


def _timestamp(text: str) -> int:
    return timestamp_of(int(text) if text.isascii() and text.isdigit() else text or None)


def _headers(text: str) -> Headers:
    try:
        return headers_of(json.loads(text) if text else None)
    except json.JSONDecodeError as error:
        raise ValueError(f"headers are not JSON: {error.msg}") from None
