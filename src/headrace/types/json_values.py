"""Values that JSON objects describe: what turns one into the other is a table for each class.

Read next: `types.registry`, whose values are made so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Self

__all__ = ["FromJson", "Json", "described", "list_or_none", "named_by", "object_of", "objects_of"]


def _as_it_is(value: Any) -> Any:
    return value


class Json(NamedTuple):
    """How one field of a value is written in JSON.

    Args:
        name: the field.
        key: its name in JSON.
        read: makes the field of what JSON has; it gets `absent` where JSON has nothing.
        write: makes JSON of a field that is not None.
        absent: what JSON means when the key is missing.
    """

    name: str
    key: str
    read: Callable[[Any], Any] = _as_it_is
    write: Callable[[Any], Any] = _as_it_is
    absent: Any = None


class FromJson:
    """Base class of values that JSON objects describe. Keys that no field has are ignored."""

    __slots__: tuple[str, ...] = ()
    JSON: ClassVar[tuple[Json, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of this value, without the fields that are None."""
        given = ((row, getattr(self, row.name)) for row in self.JSON)
        return {row.key: row.write(value) for row, value in given if value is not None}

    @classmethod
    def from_dict(cls, src_dict: dict[str, Any]) -> Self:
        """The value that a JSON object describes.

        Raises:
            TypeError: this, or something in it, is of another type.
            ValueError: a name of a fixed list is not in it.
        """
        found = described(cls, src_dict)
        return cls(**{row.name: row.read(found.get(row.key, row.absent)) for row in cls.JSON})


def described(cls: type, given: Any) -> Mapping[str, Any]:
    """What must be a JSON object.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"a {cls.__name__} is described by a dict, not by {type(given).__name__}")
    return given


def object_of(kind: type[FromJson], name: str, key: str) -> Json:
    """A field that holds another value, or None."""
    return Json(name, key, lambda given: None if given is None else kind.from_dict(given), _written)


def objects_of(kind: type[FromJson], name: str, key: str) -> Json:
    """A field that holds a list of other values; JSON may leave it out, which is an empty list."""
    return Json(name, key, lambda given: [kind.from_dict(one) for one in list_or_none(given)], _all_written)


def named_by(kind: type[StrEnum], name: str, key: str) -> Json:
    """A field that holds one of a fixed list of names, perhaps as a text, or None."""
    return Json(name, key, lambda given: None if given is None else kind(given), lambda value: kind(value).value)


def list_or_none(given: Any) -> list[Any]:
    """What must be a list, or nothing, which is an empty list.

    Raises:
        TypeError: it is something else.
    """
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        raise TypeError(f"a list was expected, not {type(given).__name__}")
    return list(given)


def _written(value: Any) -> Any:
    """What holds a dict in the place of a value is passed on as it is."""
    return value.to_dict() if isinstance(value, FromJson) else value


def _all_written(values: list[FromJson]) -> list[Any]:
    return [value.to_dict() for value in values]
