"""Write `docs/internals/invariants.md` from the mutations of the simulations.

    python -m tests.campaigns.sim.invariants_page
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from headrace.errors import KafkaError

from .broker_mutations import BROKER_RULES
from .group_mutations import GROUP_RULES
from .joint_mutations import JOINT_RULES
from .membership_mutations import MEMBERSHIP_RULES
from .mutation import Mutation
from .mutations import MUTATIONS
from .produce_mutations import PRODUCE_RULES
from .reading_mutations import READING_RULES
from .share_mutations import SHARE_RULES
from .transaction_mutations import TRANSACTION_RULES
from .whole_mutations import WHOLE_RULES

_ROOT = Path(__file__).parents[3]
PAGE = _ROOT / "docs/internals/invariants.md"
_ON_WHOLE = " (embedded broker)"
_HEAD = """# Invariants

Made from the mutations of the simulations by `python -m tests.campaigns.sim.invariants_page`. These are the rules that
keep records whole, once and in order. Each is broken on purpose in `tests/campaigns/sim`: what the second column names
is replaced, and the simulations of the third must find something wrong within so many schedules.
`python -m tests.campaigns.sim.mutations` breaks them all and prints what was found.

"""


class _Part(NamedTuple):
    title: str
    file: str
    rules: list[Mutation]


_PARTS = (
    _Part("Records are stored once and in order", "produce_mutations.py", PRODUCE_RULES),
    _Part("Transactions are whole or nothing", "transaction_mutations.py", TRANSACTION_RULES),
    _Part("Joint transactions: many processes write, and all of it is there once", "joint_mutations.py", JOINT_RULES),
    _Part("Groups: a record is read by whoever holds its partition", "membership_mutations.py", MEMBERSHIP_RULES),
    _Part("Reading: each record that is there is read, in order", "reading_mutations.py", READING_RULES),
    _Part("Share groups: a record is with one member, until it is done", "share_mutations.py", SHARE_RULES),
    _Part("Groups: who is not the member that it was is refused", "group_mutations.py", GROUP_RULES),
    _Part("What brokers do for it (the models)", "broker_mutations.py", BROKER_RULES),
    _Part("What brokers do for it (the embedded broker)", "whole_mutations.py",
          [each for each in WHOLE_RULES if not each.rule.endswith(_ON_WHOLE)]),
)


class _Noting:
    """Stands in for a `MonkeyPatch`: it notes what a mutation would replace, and replaces nothing."""

    def __init__(self) -> None:
        self.replaced: dict[str, None] = {}

    def setattr(self, owner: Any, name: Any, value: object = None, raising: bool = True) -> None:
        """Note an attribute of a class or a module, or one that is named from its package on."""
        found = owner if isinstance(owner, str) else f"{owner.__name__}.{name}"
        self.replaced[".".join(found.split(".")[-2:])] = None

    def setitem(self, table: object, key: Any, value: object) -> None:
        """Note a row of a table."""
        self.replaced[key.__name__ if isinstance(key, type) else KafkaError(key).name()] = None


def page() -> str:
    """The page as it must be."""
    shown = sum(len(part.rules) for part in _PARTS)
    again = [each for each in WHOLE_RULES if each.rule.endswith(_ON_WHOLE)]
    assert shown + len(again) == len(MUTATIONS), "a part is missing"
    return _HEAD + "\n".join(_section(part, {each.rule: each for each in again}) for part in _PARTS)


def _section(part: _Part, again: dict[str, Mutation]) -> str:
    rows = [_row(each, again.get(each.rule + _ON_WHOLE)) for each in part.rules]
    where = f"Broken in `tests/campaigns/sim/{part.file}`."
    return "\n".join((f"## {part.title}", "", where, "", "| rule | broken | noticed by, within |", "|---|---|---|",
                      *rows, ""))


def _row(rule: Mutation, again: Mutation | None) -> str:
    noticed = ", ".join(f"`{each.simulation}` {each.within}" for each in (rule, again) if each is not None)
    return f"| {rule.rule} | {', '.join(f'`{name}`' for name in _replaced(rule))} | {noticed} |"


def _replaced(rule: Mutation) -> list[str]:
    noting = _Noting()
    rule.break_it(cast(pytest.MonkeyPatch, noting))
    return list(noting.replaced)


if __name__ == "__main__":
    PAGE.write_text(page())
