"""Which records are wanted: by key, by header, by value, and by an expression of JMESPath."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import ConfigError

if TYPE_CHECKING:
    from headrace.cli.consuming.portions import HeaderPairs, Portion

__all__ = ["RecordFilter", "header_filter", "jmespath_filter", "key_filter", "pattern_filter"]

RecordFilter = Callable[["Portion"], list[bool]]
"""Says of each record whether it is wanted."""


def key_filter(key: bytes) -> RecordFilter:
    """Records with this key, byte for byte."""
    return lambda portion: [each == key for each in portion.keys]


def pattern_filter(pattern: bytes, column: str) -> RecordFilter:
    """Records whose key or value a regular expression finds something in.

    Args:
        pattern: the expression, over bytes.
        column: "keys" or "values".

    Raises:
        ValueError: it is no regular expression.
    """
    try:
        search = re.compile(pattern).search
    except re.error as error:
        raise ValueError(f"{pattern.decode(errors='replace')!r} is no regular expression: {error}") from None
    return lambda portion: [each is not None and search(each) is not None for each in getattr(portion, column)]


def header_filter(name: str, value: bytes | None, *, any_value: bool) -> RecordFilter:
    """Records with a header of this name, and of this value unless any will do."""
    def wanted(headers: HeaderPairs) -> bool:
        return any(found == name and (any_value or content == value) for found, content in headers)

    return lambda portion: [wanted(headers) for headers in portion.headers]


def jmespath_filter(expression: str) -> RecordFilter:
    """Records of which a JMESPath expression is true: neither false, nor null, nor empty.

    It sees topic, partition, offset, timestamp, key, value and headers; a value or a key that is JSON is seen as such,
    others as text, and headers as an object.

    Raises:
        ConfigError: the expression is wrong, or jmespath is missing.
    """
    try:
        import jmespath
    except ImportError:
        raise ConfigError("--filter needs jmespath: pip install 'headrace[cli]'") from None
    try:
        compiled = jmespath.compile(expression)
    except jmespath.exceptions.JMESPathError as error:
        raise ConfigError(f"--filter: {' '.join(str(error).split())}") from None

    def judge(portion: Portion) -> list[bool]:
        try:
            return [_is_true(compiled.search(row)) for row in _objects(portion)]
        except jmespath.exceptions.JMESPathError as error:
            raise ConfigError(f"--filter: {' '.join(str(error).split())}") from None

    return judge


def _is_true(found: Any) -> bool:
    return found is not None and found is not False and found not in ("", [], {})


def _objects(portion: Portion) -> list[dict[str, Any]]:
    rows = zip(portion.offsets, portion.times(), _seen(portion.keys), _seen(portion.values), portion.headers,
               strict=True)
    return [{"topic": portion.topic, "partition": portion.partition, "offset": offset, "timestamp": time, "key": key,
             "value": value, "headers": {name: _text(content) for name, content in headers}}
            for offset, time, key, value, headers in rows]


def _seen(column: Sequence[bytes | None]) -> list[Any]:
    return [_parsed(cell) for cell in column]


def _parsed(cell: bytes | None) -> Any:
    try:
        return None if cell is None else json.loads(cell)
    except (ValueError, RecursionError):
        return _text(cell)


def _text(cell: bytes | None) -> str | None:
    return None if cell is None else cell.decode(errors="replace")
