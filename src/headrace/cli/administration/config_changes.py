"""Changes of properties as they are typed: `retention.ms=1000`, `cleanup.policy+=compact`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headrace.admin import AlterConfigOpType, ConfigEntry
from headrace.cli.shared.exits import RefusedError

__all__ = ["change_of", "changes"]

_CHANGE: Final = re.compile(r"([^=+-][^=]*?)([+-]?)=(.*)", re.DOTALL)
_OPERATIONS: Final = {"": AlterConfigOpType.SET, "+": AlterConfigOpType.APPEND, "-": AlterConfigOpType.SUBTRACT}


def change_of(text: str, *, plain: bool = False) -> tuple[str, str, str]:
    """Name, sign and value of a change.

    Args:
        text: what was typed.
        plain: it can only be set.

    Raises:
        RefusedError: it is no change. It is not repeated: its value may be a secret.
    """
    found = _CHANGE.fullmatch(text)
    if found is None or (plain and found[2]):
        raise RefusedError("expected NAME=VALUE" + ("" if plain else ", NAME+=VALUE or NAME-=VALUE"))
    return found[1], found[2], found[3]


def changes(settings: Sequence[str], unset: Sequence[str]) -> list[ConfigEntry]:
    """Changes for `AdminClient.incremental_alter_configs`.

    Args:
        settings: changes as they were typed.
        unset: names of what goes back to its default.
    """
    typed = [change_of(text) for text in settings]
    return [*(ConfigEntry(name, value, incremental_operation=_OPERATIONS[sign]) for name, sign, value in typed),
            *(ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE) for name in unset)]
