"""Write `docs/internals/states.md` from the tables of states: `python -m tools.state_diagrams`."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from headrace.broker.coordinators import classic_groups, planned_groups, transactional_ids
from headrace.broker.shares import in_flight
from headrace.machines.consumer import subscription
from headrace.machines.groups import classic, consumer_group, share_group
from headrace.machines.producer import batch_queue, transactions
from headrace.net import settings
from headrace.states import Transitions

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs/internals/states.md"
_HEAD = """# States

Made from the tables in the code by `python -m tools.state_diagrams`. A table has the only ways from one state to
another: any other way is refused (`headrace/states.py`). What leads to the same state from nearly
everywhere stands below its diagram.

"""


class Drawn(NamedTuple):
    """One diagram: its title, the module and the name of its table."""

    title: str
    module: Any
    name: str

    @property
    def table(self) -> Transitions[Any]:
        """The table itself."""
        found: Transitions[Any] = getattr(self.module, self.name)
        return found

    @property
    def where(self) -> str:
        """The module's file in the package, and the table's name."""
        file = str(sys.modules[self.module.__name__].__file__).rpartition("headrace/")[2]
        return f"`headrace/{file}`, `{self.name}`"


DIAGRAMS = (
    Drawn("A connection to a broker", settings, "CONNECTION_TRANSITIONS"),
    Drawn("The position of an assigned partition", subscription, "POSITION_TRANSITIONS"),
    Drawn("A member of a classic group", classic, "TRANSITIONS"),
    Drawn("A member of a share group", share_group, "SHARE_MEMBER_TRANSITIONS"),
    Drawn("A member of a group that the coordinator plans for", consumer_group, "TRANSITIONS"),
    Drawn("A batch on its way out", batch_queue, "BATCH_TRANSITIONS"),
    Drawn("A transactional producer", transactions, "TXN_TRANSITIONS"),
    Drawn("A classic group in the embedded broker", classic_groups, "GROUP_TRANSITIONS"),
    Drawn("A member of a group that the embedded broker plans for", planned_groups, "MEMBER_TRANSITIONS"),
    Drawn("A record of a share group in the embedded broker", in_flight, "SHARED_RECORD_TRANSITIONS"),
    Drawn("A transactional id in the embedded broker", transactional_ids, "TRANSACTION_TRANSITIONS"),
)


def page() -> str:
    """The page as it must be."""
    return _HEAD + "\n".join(_section(each) for each in DIAGRAMS)


def _section(drawn: Drawn) -> str:
    lines = [f"## {drawn.title}", "", drawn.where, "", "```mermaid", *_diagram(drawn.table), "```", ""]
    wide = _wide(drawn.table)
    if wide:
        lines += [f"* `{trigger}`: {_origins(drawn.table, trigger)} to {after.name}" for trigger, after in wide.items()]
        lines.append("")
    return "\n".join((*lines, *_meanings(drawn.table)))


def _diagram(table: Transitions[Any]) -> list[str]:
    arrows: dict[tuple[str, str], list[str]] = {}
    wide = _wide(table)
    for state, trigger, after in table:
        if trigger not in wide:
            arrows.setdefault((state.name, after.name), []).append(trigger)
    left = {state for state, _, _ in table}
    last = sorted({after.name for _, _, after in table if after not in left})
    return ["stateDiagram-v2", f"    [*] --> {table.first.name}",
            *(f"    {state} --> {after}: {', '.join(triggers)}" for (state, after), triggers in arrows.items()),
            *(f"    {state} --> [*]" for state in last)]


def _wide(table: Transitions[Any]) -> dict[str, Enum]:
    """The triggers that lead from more than half of the states, and at least four, to the same one."""
    ways: dict[str, list[Enum]] = {}
    for _, trigger, after in table:
        ways.setdefault(trigger, []).append(after)
    least = max(4, len(table.states) // 2 + 1)
    return {trigger: after[0] for trigger, after in ways.items() if len(after) >= least and len(set(after)) == 1}


def _origins(table: Transitions[Any], wanted: str) -> str:
    origins = {state for state, trigger, _ in table if trigger == wanted}
    others = [state.name for state in table.states if state not in origins]
    return f"from every state but {', '.join(others)}" if others else "from every state"


def _meanings(table: Transitions[Any]) -> list[str]:
    known = {state for way in table for state in (way[0], way[2])}
    rows = [f"| {state.name} | {state.value} |" for state in table.states if state in known]
    return ["| state | meaning |", "|---|---|", *rows, ""]


if __name__ == "__main__":
    PAGE.write_text(page())
