"""The seven compatibility levels: which of the old versions a new schema is compared with, and in which direction.

Read next: `schemas.avro_compatibility`, `schemas.json_compatibility`, `schemas.protobuf_compatibility` for the rules of
each kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.schemas.parsed import Incompatibility, ParsedSchema

__all__ = ["LEVELS", "Conflict", "incompatibilities"]


class _Level(NamedTuple):
    """New reads old, old reads new, and whether all versions count or the latest only."""

    backward: bool
    forward: bool
    transitive: bool


LEVELS: Final = {
    "NONE": _Level(False, False, False),
    "BACKWARD": _Level(True, False, False),
    "BACKWARD_TRANSITIVE": _Level(True, False, True),
    "FORWARD": _Level(False, True, False),
    "FORWARD_TRANSITIVE": _Level(False, True, True),
    "FULL": _Level(True, True, False),
    "FULL_TRANSITIVE": _Level(True, True, True),
}
"""The levels by their names."""


class Conflict(NamedTuple):
    """A version that a schema is not compatible with: its position among the old ones, and why."""

    position: int
    found: list[Incompatibility]


def incompatibilities(level: str, new: ParsedSchema, old_versions: Sequence[ParsedSchema]) -> Conflict | None:
    """The newest of the old versions that a new schema is not compatible with.

    Args:
        level: one of `LEVELS`.
        new: the new schema.
        old_versions: the versions that there are, the oldest first.

    Returns:
        That version and why; None when there is none.

    Raises:
        KeyError: there is no such level.
        InvalidSchemaError: two schemas are too large to compare.
    """
    rules = LEVELS[level]
    first = 0 if rules.transitive else max(len(old_versions) - 1, 0)
    for position in range(len(old_versions) - 1, first - 1, -1):
        found = _between(rules, new, old_versions[position])
        if found:
            return Conflict(position, found)
    return None


def _between(rules: _Level, new: ParsedSchema, old: ParsedSchema) -> list[Incompatibility]:
    if not rules.backward and not rules.forward:
        return []
    if new.schema_type != old.schema_type:
        return [Incompatibility("SCHEMA_TYPE_CHANGED", f"{old.schema_type} to {new.schema_type}", "/",
                                "The schema is of another type than the earlier one")]
    forward = old.can_read(new) if rules.forward else []
    return forward + (new.can_read(old) if rules.backward else [])
