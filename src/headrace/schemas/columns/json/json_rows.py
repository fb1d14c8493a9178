"""JSON texts as Python values, record by record: the plain twin of `_json_columns.pyx`, and what it means.

Read next: `schemas.columns.json.json_shapes`.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from headrace.errors import SerializationError
from headrace.schemas.columns.json.json_shapes import JsonShape
from headrace.schemas.columns.plain_rows import value_rows

if TYPE_CHECKING:
    import pyarrow

__all__ = ["read_rows", "write_rows"]

MOST_DEPTH: Final = 400
MOST_CELLS: Final = 1 << 24
_SPACE: Final = re.compile(rb"[ \n\t\r]*")
_TEXT: Final = re.compile(rb'"((?:[^"\\\x00-\x1f]|\\.)*)"', re.DOTALL)
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))|\\')
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BRACKETS: Final = {0x7B: b"}", 0x5B: b"]"}
_WORDS: Final = {b"true": True, b"false": False, b"null": None}
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"(.{10})[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
                          r"([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?", re.DOTALL)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
"""Said, because `b64decode` lets more signs of padding pass than there can be."""
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_DAY: Final = 86_400_000_000
_MOST_EXPONENT: Final = 100_000
_NOT: Final = {"bool": "neither true nor false", "int": "no whole number", "float": "no number", "double": "no number",
               "decimal": "no number", "struct": "no object", "map": "no object", "list": "no array"}


class _BadTextError(Exception):
    """The text is not JSON of the type."""


def read_rows(
    shape: JsonShape, kind: pyarrow.DataType, payloads: pyarrow.Array, is_loose: bool
) -> tuple[pyarrow.Array, dict[int, str]]:
    """Read texts.

    Args:
        shape: of the type.
        kind: of the column.
        payloads: the texts.
        is_loose: a string may be any value, whose text it is then, and a time a date, whose midnight it is.

    Returns:
        The column, and what is wrong with the rows that are malformed.
    """
    import pyarrow as pa

    rows: list[Any] = []
    bad: dict[int, str] = {}
    for row, payload in enumerate(payloads):
        data = payload.as_py()
        try:
            rows.append(None if data is None else _Reading(data, is_loose).whole(shape))
        except _BadTextError as error:
            rows.append(None)
            bad[row] = str(error)
    return pa.array(rows, kind), bad


class _Reading:
    """Reads one text, from its first byte to its last."""

    def __init__(self, data: bytes, is_loose: bool) -> None:
        self._data = data
        self._at = 0
        self._cells = 0
        self._is_loose = is_loose

    def whole(self, shape: JsonShape) -> Any:
        """The value, behind which there is nothing."""
        value = self._value(shape, "")
        self._space()
        if self._at < len(self._data):
            raise _BadTextError("there is more behind the value")
        return value

    def _value(self, shape: JsonShape, path: str) -> Any:
        self._space()
        first = self._data[self._at:self._at + 1]
        try:
            if first == b"n":
                return self._word()
            if shape.form in ("struct", "map"):
                return self._object(shape, path) if first == b"{" else self._other(shape)
            if shape.form == "list":
                return self._list(shape, path) if first == b"[" else self._other(shape)
            return self._scalar(shape, first)
        except _BadTextError as error:
            raise _located(error, path) from None

    def _scalar(self, shape: JsonShape, first: bytes) -> Any:
        start = self._at
        if first == b'"':
            return _of_text(shape, self._text(), self._is_loose)
        if first in (b"t", b"f") and shape.form == "bool":
            return self._word()
        if first in b"-0123456789" and first and shape.form in _OF_NUMBERS:
            return _OF_NUMBERS[shape.form](shape, self._number())
        self._skip(0)
        if shape.form != "string" or not self._is_loose:
            raise _BadTextError(f"the value is {_NOT.get(shape.form, 'no text')}")
        return _compact(self._data[start:self._at])

    def _other(self, shape: JsonShape) -> Any:
        self._skip(0)
        raise _BadTextError(f"the value is {_NOT[shape.form]}")

    def _object(self, shape: JsonShape, path: str) -> Any:
        found: dict[str, Any] = {}
        fields = {each.name: each for each in shape.children}
        self._at += 1
        is_first = True
        while self._goes_on(b"}", is_first):
            is_first = False
            self._count(shape)
            name = self._key()
            child = shape.children[0] if shape.form == "map" else fields.get(name)
            if child is None:
                self._skip(0)
                continue
            found.pop(name, None)
            found[name] = self._value(child, path if shape.form == "map" else f"{path}.{name}" if path else name)
        return list(found.items()) if shape.form == "map" else found

    def _list(self, shape: JsonShape, path: str) -> list[Any]:
        found: list[Any] = []
        self._at += 1
        while self._goes_on(b"]", not found):
            self._count(shape)
            found.append(self._value(shape.children[0], path))
        return found

    def _count(self, shape: JsonShape) -> None:
        if shape.form != "struct":
            self._cells += _cells(shape)
        if self._cells > MOST_CELLS:
            raise _BadTextError(f"the value has more than {MOST_CELLS} values")

    def _skip(self, depth: int) -> None:
        """A value of any kind."""
        self._space()
        first = self._data[self._at:self._at + 1]
        if first == b'"':
            self._text()
        elif first and first in b"-0123456789":
            self._number()
        elif first in (b"{", b"["):
            if depth == MOST_DEPTH:
                raise _BadTextError(f"values are nested more than {MOST_DEPTH} deep")
            self._at += 1
            is_first = True
            while self._goes_on(_BRACKETS[first[0]], is_first):
                is_first = False
                if first == b"{":
                    self._key()
                self._skip(depth + 1)
        else:
            self._word()

    def _goes_on(self, bracket: bytes, is_first: bool) -> bool:
        """Whether another value comes, behind a comma if it is not the first."""
        self._space()
        if self._data.startswith(bracket, self._at):
            self._at += 1
            return False
        if not is_first:
            self._take(b",")
        return True

    def _key(self) -> str:
        self._space()
        name = self._text()
        self._space()
        self._take(b":")
        return name

    def _word(self) -> Any:
        for word, value in _WORDS.items():
            if self._data.startswith(word, self._at):
                self._at += len(word)
                return value
        raise _BadTextError("the text is not JSON")

    def _text(self) -> str:
        found = self._match(_TEXT)
        try:
            text = found[1].decode()
        except UnicodeDecodeError:
            raise _BadTextError("the text is not UTF-8") from None
        return _unescaped(text) if "\\" in text else text

    def _number(self) -> str:
        found = self._match(_NUMBER)
        if self._data[self._at:self._at + 1].isdigit() or self._data[self._at:self._at + 1] in (b".", b"e", b"E"):
            raise _BadTextError("the text is not JSON")
        return found[0].decode()

    def _match(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        found = pattern.match(self._data, self._at)
        if found is None:
            raise _BadTextError("the text is not JSON")
        self._at = found.end()
        return found

    def _space(self) -> None:
        found = _SPACE.match(self._data, self._at)
        assert found is not None
        self._at = found.end()

    def _take(self, sign: bytes) -> None:
        if not self._data.startswith(sign, self._at):
            raise _BadTextError("the text is not JSON")
        self._at += 1


def _located(error: _BadTextError, path: str) -> _BadTextError:
    """An error with the innermost field that has a name."""
    text = str(error)
    return error if not path or text.startswith("field ") else _BadTextError(f"field {path}: {text}")


def _cells(shape: JsonShape) -> int:
    if not shape.children:
        return 1
    keys = {"map": 2, "list": 1}.get(shape.form, 0)
    return keys + sum(map(_cells, shape.children))


def _unescaped(text: str) -> str:
    def undo(match: re.Match[str]) -> str:
        code, letter = match.groups()
        if code is None and letter is None:
            raise _BadTextError("the text is not JSON")
        return chr(int(code, 16)) if code else _LETTERS.get(letter, letter)
    found = _ESCAPE.sub(undo, text)
    try:
        return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise _BadTextError("the text is not UTF-8") from None


def _compact(data: bytes) -> str:
    """A value's text without the spaces round its parts."""
    parts = re.split(rb'("(?:[^"\\]|\\.)*")', data, flags=re.DOTALL)
    return b"".join(part if index % 2 else b"".join(part.split()) for index, part in enumerate(parts)).decode()


def _of_text(shape: JsonShape, text: str, is_loose: bool) -> Any:
    """The value that a text between quotes stands for."""
    form = shape.form
    if form == "string":
        return text
    if form == "binary":
        if not _BASE64.fullmatch(text):
            raise _BadTextError("the text is not base64")
        return base64.b64decode(text)
    if form == "date":
        return _day(text, "the text is no date")
    if form in ("time", "local_time"):
        if is_loose and _DATE.fullmatch(text):
            return _day(text, "the text is no time") * _DAY
        return _moment(text, form == "local_time")
    if form in ("float", "double") and text in _SPECIAL:
        return _SPECIAL[text]
    if form == "decimal" and _NUMBER.fullmatch(text.encode()):
        return _decimal(shape, text)
    raise _BadTextError(f"the value is {_NOT[form]}")


def _day(text: str, reason: str) -> int:
    found = _DATE.fullmatch(text)
    try:
        if found is not None and text.isascii():
            return datetime.date(*map(int, found.groups())).toordinal() - _EPOCH
    except ValueError:
        pass
    raise _BadTextError(reason)


def _moment(text: str, is_local: bool) -> int:
    found = _TIME.fullmatch(text)
    if found is None or not text.isascii() or (is_local and found[6]):
        raise _BadTextError("the text is no time")
    hour, minute, second = (int(each or 0) for each in found.group(2, 3, 4))
    zone = (found[6] or "Z").replace(":", "")
    hours, minutes = (0, 0) if zone in "Zz" else (int(zone[1:3]), int(zone[3:] or 0))
    if hour > 23 or minute > 59 or second > 59 or hours > 23 or minutes > 59:
        raise _BadTextError("the text is no time")
    ahead = (hours * 60 + minutes) * 60_000_000 * (-1 if zone[0] == "-" else 1)
    of_day = ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((found[5] or "")[:6].ljust(6, "0"))
    return _day(found[1], "the text is no time") * _DAY + of_day - ahead


def _number(text: str) -> Decimal:
    """A number; an exponent beyond all types says no more than a large one."""
    digits, _, exponent = text.lower().partition("e")
    return Decimal(f"{digits}e{max(-_MOST_EXPONENT, min(_MOST_EXPONENT, int(exponent[:12] or 0)))}")


def _whole(shape: JsonShape, text: str) -> int:
    number = _number(text)
    parts = number.as_tuple()
    assert isinstance(parts.exponent, int)
    if parts.exponent < 0 and any(parts.digits[parts.exponent:]):
        raise _BadTextError("the value is no whole number")
    bits = shape.width * 8 - 1
    if not -1 << bits <= number < 1 << bits:
        raise _BadTextError("the value is out of range")
    return int(number)


def _floating(shape: JsonShape, text: str) -> float:
    value = float(text)
    if shape.form == "float" and not math.isinf(value):
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.inf
    if math.isinf(value):
        raise _BadTextError("the value is out of range")
    return value


def _decimal(shape: JsonShape, text: str) -> Decimal:
    number = _number(text)
    if not number or number.adjusted() < -400:
        number = Decimal(0)
    if number.adjusted() > 400:
        raise _BadTextError("the value is out of range")
    made = number.quantize(Decimal(1).scaleb(-shape.scale), ROUND_HALF_UP, Context(prec=len(text) + 1000))
    if made and made.adjusted() >= shape.precision - shape.scale:
        raise _BadTextError("the value is out of range")
    return made


_OF_NUMBERS: Final[dict[str, Callable[[JsonShape, str], Any]]] = {
    "int": _whole, "float": _floating, "double": _floating, "decimal": _decimal}


def write_rows(shape: JsonShape, kind: pyarrow.DataType, values: pyarrow.Array) -> pyarrow.BinaryArray:
    """Write values.

    Args:
        shape: of the type.
        kind: the type.
        values: of the type, or structs with some of its fields.

    Raises:
        SerializationError: JSON has no text for a value.
    """
    import pyarrow as pa

    written: list[bytes | None] = []
    for row, value in enumerate(value_rows(values, kind)):
        try:
            written.append(None if value is None else _written(shape, value, "").encode())
        except _BadTextError as error:
            raise SerializationError(f"row {row} cannot be written as JSON: {error}") from None
    return pa.array(written, pa.binary())


def _written(shape: JsonShape, value: Any, path: str) -> str:
    if shape.form == "struct":
        parts = [each.key + _field(each, value.get(each.name), f"{path}.{each.name}" if path else each.name)
                 for each in shape.children if each.keeps_null or value.get(each.name) is not None]
        return f"{{{','.join(parts)}}}"
    if shape.form == "list":
        return f"[{','.join(_element(shape, each, path) for each in value)}]"
    if shape.form == "map":
        if any(key is None for key, _ in value):
            raise _located(_BadTextError("a key is null"), path)
        return "{" + ",".join(f"{_quoted(key)}:{_element(shape, each, path)}" for key, each in value) + "}"
    try:
        return _WRITERS[shape.form](value)
    except _BadTextError as error:
        raise _located(error, path) from None


def _field(shape: JsonShape, value: Any, path: str) -> str:
    return "null" if value is None else _written(shape, value, path)


def _element(shape: JsonShape, value: Any, path: str) -> str:
    return _field(shape.children[0], value, path)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _date_text(days: int) -> str:
    try:
        return datetime.date.fromordinal(days + _EPOCH).isoformat()
    except (ValueError, OverflowError):
        raise _BadTextError("the value is out of range") from None


def _moment_text(micros: int) -> str:
    days, rest = divmod(micros, _DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    tail = f".{fraction:06d}" if fraction % 1000 else f".{fraction // 1000:03d}" if fraction else ""
    return f"{_date_text(days)}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"


def _floating_text(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value)


def _narrow_text(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return _floating_text(value)
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            break
    return text if "." in text or "e" in text else text + ".0"


_WRITERS: Final[dict[str, Callable[[Any], str]]] = {
    "bool": lambda value: "true" if value else "false", "int": str, "float": _narrow_text, "double": _floating_text,
    "decimal": lambda value: f"{value:f}", "string": _quoted,
    "binary": lambda value: f'"{base64.b64encode(value).decode()}"', "date": lambda value: f'"{_date_text(value)}"',
    "time": lambda value: f'"{_moment_text(value)}Z"', "local_time": lambda value: f'"{_moment_text(value)}"',
}
