r"""Portions as lines: values with delimiters, and format strings with kcat's tokens and rpk's verbs.

    %t topic   %p partition   %o offset   %k key   %s %v value   %h headers, name=value with commas between
    %K %S %V   bytes of the key and of the value, -1 for null   %H how many headers   %R bytes of the value, in 32 bits
    %T %d      timestamp, in milliseconds since 1970            %i number of the record, from 1 on   %% %{ %} themselves

A token may say how: %k %s %v with {hex}, {base64} or {json}; %h with {json}; %T and %d with {iso}, {unix} (seconds) or
{strftime[%H:%M]}. Escapes are those of C: \n \t \r \\ \0 \x1e.
"""

from __future__ import annotations

import base64
import codecs
import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, repeat
from typing import cast

from headrace.cli.consuming.portions import HeaderPairs, Portion

__all__ = ["ENCODERS", "LineFormat", "TokenFormat", "escaped", "headers_text", "json_text"]

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "hex": lambda data: data.hex().encode(), "base64": base64.b64encode}
"""How keys and values that are binary are written in text."""

_TOKEN = re.compile(rb"%(?:([%{}])|([^%{}])(?:\{((?:[^{}\[\]]|\[[^\]]*\])*)\}|(\{))?)?", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def escaped(text: str) -> bytes:
    """The bytes of a text with C's escapes.

    Raises:
        ValueError: an escape is wrong.
    """
    return bytes(codecs.escape_decode(text.encode("utf-8", "surrogateescape"))[0])


def json_text(data: bytes | None) -> bytes:
    """Bytes as JSON that `headrace produce` turns back: text, null, or {"base64": ...} where they are no UTF-8."""
    if data is None:
        return b"null"
    try:
        return _quoted(data.decode()).encode()
    except UnicodeDecodeError:
        return b'{"base64":"%b"}' % base64.b64encode(data)


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

    def __call__(self, portion: Portion) -> bytes:
        """All lines of a portion."""
        lines = self._cells(portion.values)
        if self._key_delimiter is not None:
            between = self._key_delimiter
            lines = [key + between + value for key, value in zip(self._cells(portion.keys), lines, strict=True)]
        lines.append(b"")
        return self._delimiter.join(lines)

    def _cells(self, column: Sequence[bytes | None]) -> list[bytes]:
        encode, null = self._encode, self._null
        if encode is not None:
            return [null if cell is None else encode(cell) for cell in column]
        if None in column:
            return [null if cell is None else cell for cell in column]
        return list(cast(Sequence[bytes], column))


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
        self._columns: list[Callable[[Portion], Iterator[bytes]]] = []
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
            self._columns.append(lambda _: repeat(text))

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
        self._columns.append(lambda portion: maker(self, portion))

    def __call__(self, portion: Portion) -> bytes:
        """All records of a portion."""
        if not self._columns:
            return b""
        columns = [column(portion) for column in self._columns]
        rows = zip(portion.offsets, *columns, strict=False)  # the offsets end them all
        return b"".join([b"".join(row[1:]) for row in rows])

    # One column each

    def text(self, column: Sequence[bytes | None], encode: Callable[[bytes], bytes] | None) -> Iterator[bytes]:
        """Keys or values."""
        null = self._null
        return iter([null if cell is None else cell if encode is None else encode(cell) for cell in column])

    def number(self) -> Iterator[bytes]:
        """The number of each record."""
        return (b"%d" % number for number in self._numbers)


_Maker = Callable[[TokenFormat, Portion], Iterator[bytes]]


def _texts(name: str) -> dict[str, _Maker]:
    def maker(encode: Callable[[bytes], bytes] | None) -> _Maker:
        return lambda form, portion: form.text(getattr(portion, name), encode)

    ways: dict[str, _Maker] = {"": maker(None), **{way: maker(encode) for way, encode in ENCODERS.items()}}
    ways["json"] = lambda _, portion: map(json_text, getattr(portion, name))
    return ways


def _sizes(name: str) -> dict[str, _Maker]:
    return {"": lambda _, portion: (b"-1" if cell is None else b"%d" % len(cell) for cell in getattr(portion, name))}


def _shown_headers(headers: HeaderPairs) -> bytes:
    return b",".join([name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers])


def headers_text(headers: HeaderPairs) -> bytes:
    """Headers as JSON: a list of objects with name and value."""
    return b"[" + b",".join([b'{"name":%b,"value":%b}' % (_quoted(name).encode(), json_text(value))
                             for name, value in headers]) + b"]"


def _stamps(write: Callable[[int], str]) -> _Maker:
    return lambda _, portion: (b"-1" if time is None else write(time).encode() for time in portion.times())


def _moment(time_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=time_ms)


def _strftime(form: str) -> _Maker:
    return _stamps(lambda time: _moment(time).strftime(form))


_TIMES: dict[str, _Maker] = {
    "": _stamps(str), "unix": _stamps(lambda time: str(time // 1000)),
    "iso": _stamps(lambda time: _moment(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")),
}
_VALUES = _texts("values")
_MAKERS: dict[str, dict[str, _Maker]] = {
    "t": {"": lambda _, portion: repeat(portion.topic.encode())},
    "p": {"": lambda _, portion: repeat(b"%d" % portion.partition)},
    "o": {"": lambda _, portion: (b"%d" % offset for offset in portion.offsets)},
    "k": _texts("keys"), "s": _VALUES, "v": _VALUES,
    "K": _sizes("keys"), "S": _sizes("values"), "V": _sizes("values"),
    "R": {"": lambda _, portion: ((-1 if cell is None else len(cell)).to_bytes(4, "big", signed=True)
                                  for cell in portion.values)},
    "h": {"": lambda _, portion: map(_shown_headers, portion.headers),
          "json": lambda _, portion: map(headers_text, portion.headers)},
    "H": {"": lambda _, portion: (b"%d" % len(each) for each in portion.headers)},
    "T": _TIMES, "d": _TIMES,
    "i": {"": lambda form, _: form.number()},
}

