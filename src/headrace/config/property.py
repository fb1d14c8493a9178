"""One property: what it is called, which values it takes, and how a value becomes what the clients work with.

Knows no names. Read next: `headrace.config.rows_common` and its neighbours, the tables of all properties.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from headrace.errors import CallbackTypeError, ConfigError
from headrace.slotted import slotted

__all__ = ["ADMIN", "ALL", "CONSUMER", "INT32", "PRODUCER", "SHARE", "Property", "as_text", "close_matches", "convert",
           "duration_ms"]

PRODUCER = "producer"
CONSUMER = "consumer"
ADMIN = "admin"
SHARE = "share consumer"
ALL = (PRODUCER, CONSUMER, SHARE, ADMIN)
INT32 = 2**31 - 1
_BY_DURATION = "by_duration:"
_OF_FILES = (".location", ".file", ".keytab")
"""Names of files may have bytes that are no text, and are not sent."""
_TRUE, _FALSE = ("true", "t", "1", "yes", "on"), ("false", "f", "0", "no", "off")


@slotted(frozen=True)
class Property:
    """One row of a table.

    Attributes:
        name: librdkafka's name, the one that code uses.
        kind: "int", "float", "bool", "str", "enum", "list", "callable", "logger", "objects" or "secret".
        default: value when the property is not given; already converted.
        doc: what it does, in one or two sentences; of one that does nothing here, why there is nothing to do.
        aliases: other accepted names: Java's, and librdkafka's own aliases.
        roles: clients that read it; the others leave it alone, so that one mapping may serve several clients.
        unit: unit of the value, "" when it has none.
        low, high: inclusive range of a number.
        choices: allowed values of an enum, or parts of a list, in lower case; a mapping gives an enum's stored values.
        only: values, converted, out of those that are well formed: another one should have an effect that it does not
            have here. Empty for all.
        kip: where it comes from, if a KIP introduced it.
        otherwise: what to do instead of a value that is none of the choices.
    """

    name: str
    kind: str
    default: Any
    doc: str
    aliases: tuple[str, ...] = ()
    roles: tuple[str, ...] = ALL
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: Mapping[str, Any] | tuple[str, ...] = ()
    only: tuple[Any, ...] = ()
    kip: str = ""
    otherwise: str = ""


def convert(row: Property, name: str, value: Any) -> Any:
    """A value as the clients work with it.

    Args:
        row: the property.
        name: which of its names was given.
        value: what was given.

    Raises:
        ConfigError: it is malformed, out of range, or one that cannot have the effect that it should.
    """
    if row.kind == "callable" and not callable(value):
        raise CallbackTypeError(f'"{name}" must be callable, not {type(value).__name__}')
    try:
        made = _CONVERSIONS[row.kind](row, value)
        if not (row.name.endswith(_OF_FILES) or _can_be_sent(made)):
            raise _BadValueError("text without lone surrogates, which stand for bytes that could not be decoded")
    except _BadValueError as bad:
        shown = "[hidden]" if row.kind == "secret" else value if _can_be_sent(value) else ascii(value)
        raise ConfigError(f'Invalid value for configuration property "{name}": {shown}: expected {bad}') from None
    if row.only and made not in row.only:
        raise ConfigError(f'"{name}" can only be {as_text(row.only[0])}, not {value!r}: {row.doc}')
    return made


def _can_be_sent(value: Any) -> bool:
    """Whether a text, or each of several, is made of characters: of what has no text, yes."""
    if isinstance(value, (list, tuple)):
        return all(map(_can_be_sent, value))
    try:
        return not isinstance(value, str) or value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def as_text(value: Any) -> str:
    """A converted value as one would write it."""
    if isinstance(value, tuple):
        return ",".join(value) or "empty"
    return str(value).lower() if isinstance(value, bool) else str(value) if value != "" else "empty"


def duration_ms(text: str) -> int | None:
    """The milliseconds of an ISO-8601 duration of days, hours, minutes and seconds (P2DT3H4M5.5S); None for no such."""
    found = re.fullmatch(r"P(?!$)(?:(\d+)D)?(?:T(?!$)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?", text.upper())
    if found is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def close_matches(text: str, known: list[str]) -> list[str]:
    """The known name that is nearest to a text, if one is near."""
    from difflib import get_close_matches  # nobody waits for it whose properties are right

    return get_close_matches(text, known, n=1)


class _BadValueError(ValueError):
    """Says what is expected."""


def _to_number(row: Property, value: Any) -> float:
    try:
        if isinstance(value, bool):  # `yes` in a file of YAML; as 1 it would pass for many
            raise TypeError
        number = float(value) if row.kind == "float" else int(value)
    except (TypeError, ValueError, OverflowError):
        raise _BadValueError("a number" if row.kind == "float" else "a whole number") from None
    if not ((row.low is None or number >= row.low) and (row.high is None or number <= row.high)):  # NaN is neither
        raise _BadValueError(f"{_range(row)}{' ' + row.unit if row.unit else ''}")
    return number


def _range(row: Property) -> str:
    return f"{row.low} or more" if row.high is None else f"{row.low} to {row.high}"


def _to_bool(row: Property, value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in _TRUE + _FALSE:
        raise _BadValueError("true or false")
    return text in _TRUE


def _to_choice(row: Property, value: Any) -> Any:
    if row.name == "partitioner" and callable(value):
        return value
    text = str(value).strip().lower()
    if row.name == "auto.offset.reset" and text.startswith(_BY_DURATION):
        return _to_duration(text.removeprefix(_BY_DURATION))
    _check_choice(row, text)
    return row.choices[text] if isinstance(row.choices, Mapping) else text


def _check_choice(row: Property, text: str) -> None:
    if text not in row.choices:
        close = close_matches(text, list(row.choices))
        hints = [f'did you mean "{close[0]}"?' if close else "", row.otherwise]
        raise _BadValueError("; ".join(filter(None, [f"one of {', '.join(filter(None, row.choices))}", *hints])))


def _to_duration(text: str) -> int:
    milliseconds = duration_ms(text)
    if milliseconds is None:
        raise _BadValueError(f"an ISO-8601 duration after {_BY_DURATION}, for example {_BY_DURATION}PT1H30M")
    return milliseconds


def _to_list(row: Property, value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise _BadValueError("text with commas, or a list of text")
    found = tuple(part.strip() for part in parts if part.strip())
    for part in found if row.choices else ():
        _check_choice(row, part.lower())
    return found


def _to_objects(row: Property, value: Any) -> tuple[Any, ...]:
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else (value,)
    parts = [part.strip() if isinstance(part, str) else part for part in parts]
    return tuple(part for part in parts if part != "")


def _to_logger(row: Property, value: Any) -> Any:
    if not callable(getattr(value, "log", None)):
        raise _BadValueError("a logging.Logger, or another object with its method log()")
    return value


def _to_text(row: Property, value: Any) -> str:
    """A UUID for a group, a path for a file: whatever has a text for people. What programmers see of a list is none."""
    if not isinstance(value, (str, int, float)) and (
            str(value) == repr(value) or hasattr(type(value), "__members__")):
        raise _BadValueError("text")
    return str(value)


_CONVERSIONS: dict[str, Callable[[Property, Any], Any]] = {
    "int": _to_number, "float": _to_number, "bool": _to_bool, "enum": _to_choice, "list": _to_list,
    "callable": lambda row, value: value, "logger": _to_logger, "objects": _to_objects,
    "str": _to_text, "secret": _to_text,
}
