"""Checks of pairs that depend on the checks of other pairs, run without a deep stack.

A check is a generator: it yields the pairs that it depends on, is sent what was found of each, and returns what it
found itself. Each pair is checked once. A pair that is being checked counts as sound, so types that hold themselves
end. Read next: `schemas.avro_compatibility`, `schemas.json_compatibility`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final

from headrace.schemas.parsed import Incompatibility, InvalidSchemaError

__all__ = ["MAX_PAIRS", "Check", "Found", "Place", "checked"]

MAX_PAIRS: Final = 100_000
"""Most pairs that are checked: about a second's work."""

Found = dict[Incompatibility, None]
"""Incompatibilities in order, each once."""
Place = tuple[str, ...]
"""Where in a schema: the parts of a path."""
Check = Generator["tuple[Any, Any, Place]", Found, Found]


def checked(check: Callable[[Any, Any, Place], Check], first: Any, second: Any) -> list[Incompatibility]:
    """What is found of a pair and of all that it depends on.

    Args:
        check: of two values and where they are. Values are told apart by identity, so they must stay alive.
        first: one of the pair.
        second: the other.

    Raises:
        InvalidSchemaError: there are too many pairs.
    """
    known: dict[tuple[int, int], Found | None] = {(id(first), id(second)): None}
    running = [((id(first), id(second)), check(first, second, ()))]
    answer: Found | None = None
    while running:
        key, one = running[-1]
        try:
            needed = next(one) if answer is None else one.send(answer)
        except StopIteration as stop:
            known[key] = answer = stop.value
            running.pop()
            continue
        pair = id(needed[0]), id(needed[1])
        answer = known.get(pair) or {} if pair in known else None
        if answer is None:
            if len(known) >= MAX_PAIRS:
                raise InvalidSchemaError(f"the schemas are too large to compare: more than {MAX_PAIRS:,} pairs of "
                                         "types")
            known[pair] = None
            running.append((pair, check(*needed)))
    return list(answer or {})
