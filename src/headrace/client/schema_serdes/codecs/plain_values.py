"""Dataclasses and pydantic models as plain dicts, which the formats' libraries take.

It must not know formats. Read next: `client.schema_serdes.avro_serdes`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any

__all__ = ["plain"]

Convert = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """A value without dataclasses and pydantic models: each becomes a dict of its fields, and so do those within it.

    Args:
        value: any value; what is neither, nor a list, tuple or dict, stays as it is.
    """
    kind = type(value)
    convert = _CONVERTERS.get(kind)
    if convert is None:
        convert = _converter(kind)
        if len(_CONVERTERS) < _MOST_KINDS:
            _CONVERTERS[kind] = convert
    return convert(value)


def _converter(kind: type) -> Convert:
    if dataclasses.is_dataclass(kind):
        return _of_fields([field.name for field in dataclasses.fields(kind)])
    dump = getattr(kind, "model_dump", None)
    if callable(dump) and hasattr(kind, "model_fields"):
        return _dumped
    return _same


def _of_fields(names: list[str]) -> Convert:
    if len(names) == 1:
        name = names[0]
        return lambda value: {name: plain(getattr(value, name))}
    if not names:
        return lambda value: {}
    all_of = attrgetter(*names)
    return lambda value: dict(zip(names, map(plain, all_of(value)), strict=True))


def _dumped(value: Any) -> Any:
    return value.model_dump(by_alias=True)


def _same(value: Any) -> Any:
    return value


def _list(value: list[Any]) -> list[Any]:
    return [plain(item) for item in value]


def _tuple(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(plain(item) for item in value)


def _dict(value: dict[Any, Any]) -> dict[Any, Any]:
    return {name: plain(item) for name, item in value.items()}


_MOST_KINDS = 1000
_CONVERTERS: dict[type, Convert] = {list: _list, tuple: _tuple, dict: _dict}
