"""Whether a field's default fits its type, as Java's `Schema.isValidDefault` says.

The default of a union's field may fit any of its branches, as the specification has it since 1.12; that of an enum may
be any text, as Java has it. Read next: `schemas.avro_types`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from headrace.schemas.avro_types import ABSENT, AvroField, AvroType
from headrace.schemas.parsed import MAX_DEPTH, InvalidSchemaError, compact

__all__ = ["check_defaults", "leave_out_unfit"]

_INT, _LONG = 1 << 31, 1 << 63


def check_defaults(places: Iterable[tuple[str, AvroField]]) -> None:
    """Check the defaults of fields.

    Args:
        places: fields with defaults, and where each stands.

    Raises:
        InvalidSchemaError: one does not fit.
    """
    check = _Check()
    for place, each in places:
        if not check.fits(each.type, each.default, 0):
            shown = compact(each.default)
            raise InvalidSchemaError(f"at {place}: the default {shown[:100]} does not fit the type "
                                     f"{each.type.name or each.type.kind!r}")


def leave_out_unfit(places: Iterable[tuple[str, AvroField]]) -> None:
    """Let fields whose defaults do not fit have none."""
    check = _Check()
    for _, each in places:
        if not check.fits(each.type, each.default, 0):
            each.default = ABSENT


class _Check:
    """Checks each value of each type once: records whose fields have records for defaults would be checked for ever."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], bool] = {}

    def fits(self, kind: AvroType, value: Any, depth: int) -> bool:
        """Whether a value fits a type."""
        if depth > MAX_DEPTH:
            raise InvalidSchemaError(f"at {kind.name or kind.kind}: defaults are nested more than {MAX_DEPTH} deep")
        simple = _SIMPLE.get(kind.kind)
        if simple is not None:
            return simple(value)
        key = id(kind), id(value)
        if key not in self._known:
            self._known[key] = self._complex(kind, value, depth + 1)
        return self._known[key]

    def _complex(self, kind: AvroType, value: Any, depth: int) -> bool:
        if kind.kind == "union":
            return any(self.fits(branch, value, depth) for branch in kind.branches)
        if kind.kind == "array":
            return isinstance(value, list) and all(self.fits(kind.branches[0], each, depth) for each in value)
        if not isinstance(value, dict):
            return False
        if kind.kind == "map":
            return all(self.fits(kind.branches[0], each, depth) for each in value.values())
        given = ((each, value.get(each.name, each.default)) for each in kind.fields)
        return all(one is not ABSENT and self.fits(each.type, one, depth) for each, one in given)


def _whole(value: Any, bound: int) -> bool:
    return type(value) is int and -bound <= value < bound


_SIMPLE: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: _whole(value, _INT),
    "long": lambda value: _whole(value, _LONG),
    "float": lambda value: type(value) in (int, float),
    "double": lambda value: type(value) in (int, float),
    "bytes": lambda value: isinstance(value, str),
    "string": lambda value: isinstance(value, str),
    "fixed": lambda value: isinstance(value, str),
    "enum": lambda value: isinstance(value, str),
}
