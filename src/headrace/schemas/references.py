"""Schemas that refer to others: all of them, in the order in which they can be read.

Where they are kept is not known here. Read next: `schemas.parsing`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from headrace.schemas.parsed import InvalidSchemaError, ReferencedSchema

__all__ = ["KeptSchema", "in_order"]

_MAX_REFERENCES: Final = 1000

Reference = Mapping[str, Any]


class KeptSchema(NamedTuple):
    """What a reference leads to.

    Args:
        key: what tells it from others.
        text: the schema.
        references: its own; each has a `name` besides what says where it leads to.
    """

    key: Hashable
    text: str
    references: Sequence[Reference]


def in_order(references: Sequence[Reference], find: Callable[[Reference], KeptSchema]) -> list[ReferencedSchema]:
    """The schemas that are referred to, directly or not, each behind those that it refers to. Each comes once for each
    name by which it is called, even where they refer to each other.

    Args:
        references: of the schema that is to be read.
        find: says where a reference leads to; what it raises comes out of here.

    Raises:
        InvalidSchemaError: they are more than a thousand.
    """
    found: dict[Hashable, ReferencedSchema] = {}
    entered: set[Hashable] = set()
    waiting = [(each, False) for each in reversed(references)]
    while waiting:
        each, is_entered = waiting.pop()
        target = find(each)
        key = each["name"], target.key
        if is_entered:
            found.setdefault(key, ReferencedSchema(each["name"], target.text))
        elif key not in entered:
            entered.add(key)
            waiting.append((each, True))
            waiting += [(one, False) for one in reversed(target.references)]
        if len(entered) > _MAX_REFERENCES:
            raise InvalidSchemaError(f"more than {_MAX_REFERENCES} schemas are referred to")
    return list(found.values())
