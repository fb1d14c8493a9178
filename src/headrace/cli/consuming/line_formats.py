r"""Portions as lines: values with delimiters, and format strings with kcat's tokens and rpk's verbs.

    %t topic   %p partition   %o offset   %k key   %s %v value   %h headers, name=value with commas between
    %K %S %V   bytes of the key and of the value, -1 for null   %H how many headers   %R bytes of the value, in 32 bits
    %T %d      timestamp, in milliseconds since 1970            %i number of the record, from 1 on   %% %{ %} themselves

A token may say how: %k %s %v with {hex}, {base64} or {json}; %h with {json}; %T and %d with {iso}, {unix} (seconds) or
{strftime[%H:%M]}. Escapes are those of C: \n \t \r \\ \0 \x1e.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice

from headrace.cli.consuming.encodings_of_text import ENCODERS, escaped
from headrace.cli.consuming.portion_rows import (
    cell_part,
    header_part,
    literal,
    number_part,
    offset_part,
    rows_of,
    text_part,
    time_part,
)
from headrace.cli.consuming.portions import HeaderPairs, Portion
from headrace.records.columns.columns import Buffer
from headrace.records.columns.joined_rows import BYTES, JSON, SIZE, SIZE_32, RowPart

__all__ = ["LineFormat", "TokenFormat"]

_TOKEN = re.compile(rb"%(?:([%{}])|([^%{}])(?:\{((?:[^{}\[\]]|\[[^\]]*\])*)\}|(\{))?)?", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LineFormat:
    """Values, with their keys in front if there is something between, and an end.

    Args:
        delimiter: behind each record.
        key_delimiter: between key and value; None for values alone.
        encoding: "text", byte for byte, or a key of `ENCODERS`.
        null: stands for a key or a value that is null.
    """

    def __init__(self, delimiter: bytes, key_delimiter: bytes | None, encoding: str, null: bytes) -> None:
        self._delimiter = delimiter
        self._key_delimiter = key_delimiter
        self._encode = ENCODERS.get(encoding)
        self._null = null

    def __call__(self, portion: Portion) -> Iterator[Buffer]:
        """All lines of a portion, piece by piece."""
        keys = [] if self._key_delimiter is None else [self._cells(portion, "keys"), literal(self._key_delimiter)]
        return rows_of([*keys, self._cells(portion, "values"), literal(self._delimiter)], len(portion))

    def _cells(self, portion: Portion, name: str) -> RowPart:
        return _encoded(portion, name, self._encode, self._null)


def _encoded(portion: Portion, name: str, encode: Callable[[bytes], bytes] | None, null: bytes) -> RowPart:
    """Keys or values, as they are or in an encoding."""
    if encode is None:
        return cell_part(portion, BYTES, name, null)
    return text_part([null if cell is None else encode(cell) for cell in getattr(portion, name)])


class TokenFormat:
    """A format string, taken apart once.

    Args:
        text: the string.
        null: stands for a key or a value that is null.

    Raises:
        ValueError: an escape or a token is wrong.
    """

    def __init__(self, text: str, null: bytes) -> None:
        self._null = null
        self._numbers = count(1)
        self._literals: list[bytes] = []
        self._parts: list[Callable[[Portion], RowPart]] = []
        template, last = escaped(text), 0
        for token in _TOKEN.finditer(template):
            self._literal(template[last : token.start()])
            if token[4]:
                raise ValueError("a brace behind a token is not closed; %{ is a brace itself")
            if token[1]:
                self._literal(token[1])
            else:
                self._token((token[2] or b"").decode("utf-8", "replace"), (token[3] or b"").decode("utf-8", "replace"))
            last = token.end()
        self._literal(template[last:])

    def _literal(self, text: bytes) -> None:
        if text:
            self._parts.append(lambda _: literal(text))

    def _token(self, name: str, way: str) -> None:
        makers = _MAKERS.get(name)
        if makers is None:
            raise ValueError(f"%{name} is no token: there are %{' %'.join(_MAKERS)} and %% %{{ %}}")
        maker = makers.get(way)
        if maker is None and way.startswith("strftime[") and "iso" in makers:
            maker = _strftime(way[len("strftime[") : -1])
        if maker is None:
            ways = ", ".join(f"{{{each}}}" for each in makers if each) or "none"
            raise ValueError(f"%{name} cannot be written as {{{way}}}: there are {ways}")
        self._parts.append(lambda portion: maker(self, portion))

    def __call__(self, portion: Portion) -> Iterator[Buffer]:
        """All records of a portion, piece by piece."""
        return rows_of([part(portion) for part in self._parts], len(portion))

    # One part each

    def text(self, portion: Portion, name: str, encode: Callable[[bytes], bytes] | None) -> RowPart:
        """Keys or values."""
        return _encoded(portion, name, encode, self._null)

    def number(self, portion: Portion) -> RowPart:
        """The number of each record."""
        return number_part(islice(self._numbers, len(portion)))


_Maker = Callable[[TokenFormat, Portion], RowPart]


def _texts(name: str) -> dict[str, _Maker]:
    def maker(encode: Callable[[bytes], bytes] | None) -> _Maker:
        return lambda form, portion: form.text(portion, name, encode)

    ways: dict[str, _Maker] = {"": maker(None), **{way: maker(encode) for way, encode in ENCODERS.items()}}
    ways["json"] = lambda _, portion: cell_part(portion, JSON, name)
    return ways


def _cells(kind: int, name: str) -> dict[str, _Maker]:
    return {"": lambda _, portion: cell_part(portion, kind, name)}


def _shown_headers(headers: HeaderPairs) -> bytes:
    return b",".join([name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers])


def _stamps(write: Callable[[int], str]) -> _Maker:
    return lambda _, portion: text_part([b"-1" if time is None else write(time).encode() for time in portion.times()])


def _moment(time_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=time_ms)


def _strftime(form: str) -> _Maker:
    return _stamps(lambda time: _moment(time).strftime(form))


_TIMES: dict[str, _Maker] = {
    "": lambda _, portion: time_part(portion, b"-1"), "unix": _stamps(lambda time: str(time // 1000)),
    "iso": _stamps(lambda time: _moment(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")),
}
_VALUES = _texts("values")
_MAKERS: dict[str, dict[str, _Maker]] = {
    "t": {"": lambda _, portion: literal(portion.topic.encode())},
    "p": {"": lambda _, portion: literal(b"%d" % portion.partition)},
    "o": {"": lambda _, portion: offset_part(portion)},
    "k": _texts("keys"), "s": _VALUES, "v": _VALUES,
    "K": _cells(SIZE, "keys"), "S": _cells(SIZE, "values"), "V": _cells(SIZE, "values"), "R": _cells(SIZE_32, "values"),
    "h": {"": lambda _, portion: text_part([_shown_headers(headers) for headers in portion.headers]),
          "json": lambda _, portion: header_part(portion)},
    "H": {"": lambda _, portion: number_part(map(len, portion.headers))},
    "T": _TIMES, "d": _TIMES,
    "i": {"": lambda form, portion: form.number(portion)},
}
